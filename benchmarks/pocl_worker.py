"""Time the workloads in PoCL. Run by `emulator.py`; needs NumPy and pyopencl[pocl] only.

Usage: python pocl_worker.py REPEATS SCALE [PART OF THE NAME]
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
from workloads import Workload, workloads


def time_workload(context: Any, queue: Any, program: Any, workload: Workload, repeats: int) -> dict[str, float]:
    """Least seconds of so many runs after one that compiles the kernel for its block."""
    arguments, flags = workload.arguments(), cl.mem_flags
    buffers = [
        cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=each)
        if isinstance(each, np.ndarray)
        else each
        for each in arguments
    ]
    kernel = cl.Kernel(program, workload.kernel)
    size = tuple(g * b for g, b in zip(workload.grid, workload.block, strict=True))
    times = []
    for _ in range(repeats + 1):
        start, cpu_start = time.perf_counter(), time.process_time()
        kernel(queue, size, workload.block, *buffers)
        queue.finish()
        times.append((time.perf_counter() - start, time.process_time() - cpu_start))
    output = np.empty_like(workload.output(arguments))
    place = next(index for index, each in enumerate(arguments) if each is workload.output(arguments))
    cl.enqueue_copy(queue, output, buffers[place])
    assert workload.is_right(arguments, output), workload.name
    return {"seconds": min(wall for wall, _ in times[1:]), "cpu_seconds": min(cpu for _, cpu in times[1:])}


def main(repeats: int, scale: int, only: str = "") -> None:
    """Time all workloads; one JSON document on stdout."""
    platform = next(item for item in cl.get_platforms() if "Portable Computing" in item.name)
    context = cl.Context(platform.get_devices())
    queue = cl.CommandQueue(context)
    program = cl.Program(context, (Path(__file__).parent / "kernels.cl").read_text()).build()
    chosen = [each for each in workloads(scale) if only in each.name]
    rows = {each.name: time_workload(context, queue, program, each, repeats) for each in chosen}
    json.dump({"version": platform.version, "device": context.devices[0].name, "rows": rows}, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
