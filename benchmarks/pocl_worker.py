"""Time the naive and the coalesced matmul in PoCL. Run by `emulator.py`; needs NumPy and pyopencl[pocl] only.

Usage: python pocl_worker.py N TILE REPEATS
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import numpy as np
import pyopencl as cl

SOURCE = """
kernel void naive(global const float *a, global const float *b, global float *c, int n, int m, int k)
{
    int row = get_global_id(0), column = get_global_id(1);
    if (row < n && column < m) {
        float total = 0.0f;
        for (int i = 0; i < k; i++)
            total += a[row * k + i] * b[i * m + column];
        c[row * m + column] = total;
    }
}

kernel void coalesced(global const float *a, global const float *b, global float *c, int n, int m, int k)
{
    int column = get_global_id(0), row = get_global_id(1);
    if (row < n && column < m) {
        float total = 0.0f;
        for (int i = 0; i < k; i++)
            total += a[row * k + i] * b[i * m + column];
        c[row * m + column] = total;
    }
}
"""


def main(n: int, tile: int, repeats: int) -> None:
    """Median seconds of each kernel at n x n x n, after one warm-up run that compiles it."""
    platform = next(item for item in cl.get_platforms() if "Portable Computing" in item.name)
    context = cl.Context(platform.get_devices())
    queue = cl.CommandQueue(context)
    program = cl.Program(context, SOURCE).build()
    rng = np.random.default_rng(1)
    a, b = rng.random((n, n), np.float32), rng.random((n, n), np.float32)
    c = np.zeros((n, n), np.float32)
    flags = cl.mem_flags
    inputs = [cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array) for array in (a, b)]
    output = cl.Buffer(context, flags.WRITE_ONLY, c.nbytes)
    found: dict[str, object] = {"version": platform.version, "device": context.devices[0].name, "n": n, "tile": tile}
    for name in ("naive", "coalesced"):
        kernel = cl.Kernel(program, name)
        times, cpu_times = [], []
        for _ in range(repeats + 1):
            start, cpu_start = time.perf_counter(), time.process_time()
            kernel(queue, (n, n), (tile, tile), *inputs, output, *(np.int32(n) for _ in range(3)))
            queue.finish()
            times.append(time.perf_counter() - start)
            cpu_times.append(time.process_time() - cpu_start)
        cl.enqueue_copy(queue, c, output)
        assert np.allclose(c, a @ b, rtol=1e-4)
        found[name] = {"seconds": statistics.median(times[1:]), "cpu_seconds": statistics.median(cpu_times[1:])}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
