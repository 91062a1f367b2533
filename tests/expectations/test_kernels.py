"""The kernels of the public ladders and microbenchmarks do what they say, on small sizes, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from validation.ladders import REDUCTION, SGEMM, SGEMM_V100, reduction_launch, sgemm_launch, tile_launch
from validation.records import Launch

import gpulab

GPU = gpulab.gpu("A100")
SIDE = 64
# Small tiles compile fast: kernel, elements of a side of the block's tile, and threads.
SMALL = {
    "uncoalesced": ("uncoalesced", 16, (16, 16)),
    "coalesced": ("coalesced", 16, (16, 16)),
    "block tile": ("block_tile<16>", 16, (16, 16)),
    "1-D thread tile": ("thread_tile_1d<32, 32, 8, 4>", 32, 256),
    "2-D thread tile": ("thread_tile_2d<32, 32, 8, 4, 4>", 32, 64),
    "vectorized": ("vectorized<32, 32, 8, 4, 4>", 32, 64),
    "a transposed": ("a_transposed<32, 32, 8, 4, 4>", 32, 64),
    "warp tile": ("warp_tile<64, 64, 4, 32, 64>", 64, 64),
    "prefetched": ("prefetched<32, 32, 8, 4, 4>", 32, 64),
}


def with_arguments(launch: Launch, *values: object) -> Launch:
    """The launch with other arguments."""
    return Launch(launch.file, launch.kernel, launch.grid, launch.block, lambda _: values)


def test_every_rung_of_the_products_is_tried() -> None:
    assert set(SMALL) == set(SGEMM) | set(SGEMM_V100)


@pytest.mark.parametrize("rung", SMALL)
def test_products(rung: str) -> None:
    a, b = np.random.default_rng(1).random((2, SIDE, SIDE), np.float32)
    c = np.full((SIDE, SIDE), np.nan, np.float32)
    with_arguments(sgemm_launch(*SMALL[rung], n=SIDE), a, b, c, np.int32(SIDE)).run(GPU)
    assert np.allclose(c, a.astype(np.float64) @ b, atol=1e-4)


@pytest.mark.parametrize("rung", REDUCTION)
def test_sums(rung: str) -> None:
    n = 8192
    launch = reduction_launch(rung, n)
    x, sums = np.arange(n, dtype=np.float32) % 7, np.full(launch.grid, np.nan, np.float32)
    sizes = [np.int32(n)] if rung in ("many for each", "shuffled") else []
    with_arguments(launch, x, sums, *sizes).run(GPU)
    assert np.array_equal(sums, x.reshape(launch.grid, -1).sum(axis=1))


@pytest.mark.parametrize(
    "kernel", ["write_coalesced", "read_coalesced", "through_tile<32>", "through_tile<33>", "swizzled"]
)
def test_transpositions(kernel: str) -> None:
    n = 96
    a = np.arange(n * n, dtype=np.float32).reshape(n, n)
    b = np.zeros_like(a)
    with_arguments(tile_launch(kernel, n), a, b, np.int32(n)).run(GPU)
    assert np.array_equal(b, a.T)


def test_streams() -> None:
    n = 512
    b, c = np.arange(n, dtype=float), np.arange(n, dtype=float) ** 2
    expected = {"init": np.full(n, 1.5), "scale": b * 3.25, "triad": b + c * 3.25}
    for kernel, values in expected.items():
        a = np.zeros(n)
        Launch("streams.cu", kernel, n // 128, 128, lambda _, a=a: (a, b, c)).run(GPU)
        assert np.array_equal(a, values)


def test_arithmetic_on_loaded_pairs() -> None:
    pairs, block = 4, 64
    a, b = np.random.default_rng(2).random((2, 2 * block * pairs), np.float32)
    out = np.zeros(2, np.float32)
    Launch("arithmetic.cu", "intensity<3>", 2, block, lambda _: (a, b, out, np.int32(pairs))).run(GPU)
    x, y = a.astype(float), b.astype(float)
    v = x - y
    for _ in range(3):
        v = v * x - y
    assert np.allclose(out, v.reshape(2, pairs, block).sum(axis=1)[:, 0], rtol=1e-5)
