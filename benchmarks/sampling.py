"""Sampled launches: how long one takes, and how far its extrapolated counters are from those of the whole grid.

Any Python with gpulab runs it: ``python benchmarks/sampling.py``. It profiles a naive matrix product with 64 blocks and
with all, where that takes seconds, and with 64 blocks at 8192³, where all would take half an hour.
"""

from __future__ import annotations

import resource
import time

import numpy as np

import gpulab
from gpulab.profiling import Profile

SAMPLE = 64
BLOCK = (32, 32)
WHOLE = (512, 1024)
LARGE = 8192
SOURCE = r"""
extern "C" __global__ void sgemm(const float* a, const float* b, float* c, int n) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || col >= n) return;
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += a[row * n + i] * b[i * n + col];
    c[row * n + col] = sum;
}
"""
METRICS = (
    "smsp__inst_executed.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "lts__t_sectors_op_read.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
)


def run(n: int, sample: int | None) -> tuple[float, Profile]:
    """Seconds of one profile, and the profile."""
    a = np.random.default_rng(0).random((n, n), np.float32)
    arrays = a, a.copy(), np.zeros_like(a), np.int32(n)
    kernel = gpulab.RawKernel(SOURCE, "sgemm")[(n // BLOCK[0], n // BLOCK[1]), BLOCK]
    start = time.perf_counter()
    profile = gpulab.profile(kernel, *arrays, gpu="A100", sample_blocks=sample)
    return time.perf_counter() - start, profile


def main() -> None:
    """Print seconds, and the largest deviation from the whole grid."""
    run(256, SAMPLE)  # compiles
    for n in WHOLE:
        whole_s, whole = run(n, None)
        sampled_s, sampled = run(n, SAMPLE)
        off = {name: sampled.metrics[name] / whole.metrics[name] - 1 for name in METRICS}
        worst = max(off, key=lambda name: abs(off[name]))
        print(
            f"{n:,}³: all blocks {whole_s:.2f} s, {SAMPLE} blocks {sampled_s:.2f} s; furthest off: {worst} {off[worst]:+.2%}"
        )
    seconds, _ = run(LARGE, SAMPLE)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{LARGE:,}³: {SAMPLE} blocks {seconds:.2f} s; peak memory {peak:,.0f} MiB for {3 * 4 * LARGE**2 >> 20:,} MiB of arrays"
    )


if __name__ == "__main__":
    main()
