"""The modeled caches of real kernels: hit rates worked by hand, L2 that is too small, and bounds beside what is shown."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gpulab
from gpulab.kernels import ladder
from gpulab.profiling import Profile

HIT_RATE = "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct"
SOURCE = """
#define I (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void twice(const float* x, float* y, int n) {
    float sum = 0;
    for (int round = 0; round < 2; round++)
        for (int i = I; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    y[I] = sum;
}
extern "C" __global__ void columns(const float* x, float* y, int n) {
    int column = threadIdx.y + 32 * blockIdx.y, row = threadIdx.x + 32 * blockIdx.x;
    y[column * n + row] = x[row * n + column];
}
extern "C" __global__ void stencil(const float* x, float* y) {
    int i = I + 1024;
    y[i] = x[i - 1024] + x[i] + x[i + 1024];
}
"""


def kernel(name: str) -> gpulab.RawKernel:
    return gpulab.RawKernel(SOURCE, name)


def profiled(name: str, rung: str, **parameters: int) -> Profile:
    problem = ladder(name).at(**parameters)
    ((bound, arguments),) = problem.attempt(rung, "cuda").launches
    return gpulab.profile(bound, *arguments, gpu="A100")


@pytest.mark.parametrize(
    ("rung", "percent"),
    [
        # A warp reads 2 sectors of a, each in 8 steps, and 2 of b, as do all of the 8 warps.
        ("coalesced", 100 * 7 / 8),
        # 16 sectors of a, for 8 warps in 8 steps; one of b for 4 warps.
        ("naive", 100 * (1 - (16 + 16) / (8 * 8 * 17))),
        ("tiled", 0),
    ],
)
def test_matrix_products(rung: str, percent: float) -> None:
    # 8 x 8 blocks: each has an SM of its own.
    assert profiled("matmul", rung, n=128).metrics[HIT_RATE] == pytest.approx(percent)


def test_half_used_sectors_are_found_again() -> None:
    # Lanes go down columns: each sector is used by 8 of the block's warps.
    n = 256
    x, y = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    found = gpulab.profile(kernel("columns")[(n // 32, n // 32), (32, 32)], x, y, np.int32(n), gpu="A100")
    assert found.metrics[HIT_RATE] == pytest.approx(100 * 7 / 8)
    assert found.metrics["lts__t_sectors_op_read.sum"] == found.metrics["dram__sectors_read.sum"] == n * n // 8


def test_a_stencil_reuses_rows_of_blocks_on_its_sm() -> None:
    # One block of 1,024 per SM and wave: what it reads, its neighbors on other SMs read too, and L1 helps none of them.
    n = 1024 * 66
    x, y = np.zeros(n, np.float32), np.zeros(n, np.float32)
    launch = kernel("stencil")[64, 1024]
    assert gpulab.profile(launch, x, y, gpu="A100").metrics[HIT_RATE] == 0
    # On a single SM, two blocks run at once, and each finds a row of the other and of those before.
    alone = gpulab.gpu("A100").replace(sm_count=1)
    found = gpulab.profile(launch, x, y, gpu=alone)
    assert found.metrics[HIT_RATE] == pytest.approx(100 * (1 - 66 / (3 * 64)))
    assert found.metrics["lts__t_sectors_op_read.sum"] == n // 8


def test_a_second_walk_and_the_size_of_l2() -> None:
    n = 1 << 20
    x, y = np.zeros(n, np.float32), np.zeros(64 * 256, np.float32)
    found = gpulab.profile(kernel("twice")[64, 256], x, y, np.int32(n), gpu="A100")
    sectors = n // 8
    assert found.metrics["dram__sectors_read.sum"] == sectors
    assert found.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 2 * sectors
    assert found.metrics["lts__t_sectors_op_read.sum"] == pytest.approx(sectors, rel=0.01)  # 64 KiB an SM: L1 has it
    # 1 MiB of L2, and 8 SMs that walk over 512 KiB each: neither L1 nor L2 has it the second time.
    small = gpulab.gpu("A100").replace(sm_count=8, l2_bytes=1 << 20)
    again = found.on(small)
    assert again.metrics["lts__t_sectors_op_read.sum"] == pytest.approx(2 * sectors, rel=0.01)
    assert again.metrics["dram__sectors_read.sum"] == pytest.approx(2 * sectors, rel=0.02)
    assert found.on(dataclasses.replace(small, l2_bytes=8 << 20)).metrics["dram__sectors_read.sum"] == sectors


def test_a_smaller_l2_moves_no_less() -> None:
    found = profiled("matmul", "coalesced", n=256)
    moved = [
        found.on(gpulab.gpu("T4").replace(l2_bytes=size << 10)).metrics["dram__bytes.sum"]
        for size in (64, 128, 256, 512, 1024, 4096)
    ]
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > 1.2 * moved[-1]


def test_threads_of_the_emulator_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("GPULAB_THREADS", threads)
        found.append(profiled("matmul", "coalesced", n=512).metrics)
    assert found[0] == found[1]


def test_bounds_stand_beside_the_values() -> None:
    found = profiled("matmul", "coalesced", n=128)
    low, high = found.bounds["dram__sectors_read.sum"]
    assert (low, high) == (2 * 128 * 128 // 8, found.metrics["lts__t_sectors_op_read.sum"])
    assert "caches and time are modeled" in repr(found)
    row = next(row for row in found.details().rows if row[0] == "dram__sectors_read.sum")
    assert row[3] == "modeled"
    assert row[4].endswith(f"(at least {low:,.0f}, at most {high:,.0f})")
    assert found.to_json()["metric_bounds"]["dram__sectors_read.sum"] == [low, high]
