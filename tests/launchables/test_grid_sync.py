"""Barriers of the whole grid, in CUDA C++ and in Python."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.errors import KernelFault, LaunchError

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void stencil(float *a, float *b, int n, int steps) {
    cg::grid_group grid = cg::this_grid();
    int i = grid.thread_rank();
    for (int s = 0; s < steps; s++) {
        float *from = s % 2 ? b : a, *to = s % 2 ? a : b;
        if (i < n) to[i] = (i ? from[i - 1] : 0) + from[i] + (i + 1 < n ? from[i + 1] : 0);
        grid.sync();
    }
}
extern "C" __global__ void rank_only(unsigned *out) {
    out[cg::this_grid().thread_rank()] = cg::this_grid().size();
}
"""


def stencil(values: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        values = np.convolve(values, np.ones(3, np.float32), "same").astype(np.float32)
    return values


def test_a_stencil_in_cuda_waits_for_the_grid_in_each_step() -> None:
    kernel = gpulab.RawKernel(SOURCE, "stencil", enable_cooperative_groups=True)
    start = np.arange(500, dtype=np.float32) % 7
    a, b = start.copy(), np.zeros_like(start)
    kernel((4,), (128,), (a, b, np.int32(500), np.int32(5)))
    assert np.array_equal(b, stencil(start, 5)) and np.array_equal(a, stencil(start, 4))
    with pytest.raises(LaunchError, match=r"sample_blocks"):
        gpulab.profile(kernel[8, 128], a, b, np.int32(500), np.int32(5), sample_blocks=2)


def test_a_grid_barrier_needs_a_cooperative_launch() -> None:
    kernel, a = gpulab.RawKernel(SOURCE, "stencil"), np.zeros(64, np.float32)
    with pytest.raises(LaunchError, match="enable_cooperative_groups=True"):
        kernel((2,), (32,), (a, a.copy(), np.int32(64), np.int32(1)))


def test_a_grid_without_a_barrier_needs_none() -> None:
    out = np.zeros(96, np.uint32)
    gpulab.RawKernel(SOURCE, "rank_only")((3,), (32,), (out,))
    assert set(out.tolist()) == {96}


def test_a_cooperative_grid_must_fit_on_the_gpu() -> None:
    kernel, a = gpulab.RawKernel(SOURCE, "stencil", enable_cooperative_groups=True), np.zeros(64, np.float32)
    gpulab.use("A100")
    with pytest.raises(LaunchError, match=r"5,000 blocks and the A100 holds 1,728 \(108 SMs with 16 each\)"):
        kernel((5000,), (128,), (a, a.copy(), np.int32(64), np.int32(1)))


def test_python_kernels_wait_for_the_grid_by_themselves() -> None:
    @cuda.jit
    def spread(a, b, n):
        grid = cuda.cg.this_grid()
        i = cuda.grid(1)
        for step in range(3):
            if i < n:
                if step % 2 == 0:
                    b[i] = a[i] + a[(i + 1) % n]
                else:
                    a[i] = b[i] + b[(i + 1) % n]
            grid.sync()

    start = np.arange(150, dtype=np.int64)
    a, b = start.copy(), np.zeros_like(start)
    spread[3, 64](a, b, 150)
    expected = start
    for _ in range(3):
        expected = expected + np.roll(expected, -1)
    assert np.array_equal(b, expected)


def test_a_flag_that_is_never_set_is_a_deadlock_in_python() -> None:
    @cuda.jit
    def wait(flag):
        while flag[0] == 0:
            cuda.threadfence()

    with pytest.raises(KernelFault, match="in a loop") as caught:
        wait[2, 32](np.zeros(1, np.int32))
    assert caught.value.fault.kind == "deadlock"
