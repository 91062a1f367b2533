"""Prefix sums."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def scan_python(x, out):
    """Inclusive over one block, any block size: doubling steps between two barriers."""
    work = cuda.shared.array(0, numba.float64)
    t = cuda.threadIdx.x
    work[t] = x[t] if t < x.size else 0.0
    step = 1
    while step < cuda.blockDim.x:
        cuda.syncthreads()
        other = work[t - step] if t >= step else 0.0
        cuda.syncthreads()
        work[t] += other
        step *= 2
    if t < out.size:
        out[t] = work[t]


@pytest.mark.parametrize(("n", "block"), [(100, 128), (33, 48), (1, 1), (96, 96)])
def test_doubling(run: Runner, random: np.random.Generator, n: int, block: int) -> None:
    x, out = random.integers(-1000, 1000, n).astype(np.int32), np.zeros(n, np.int32)
    run(kernel("scan.cu", "scan_doubling")[1, block, 0, 8 * block], x, out, n)
    assert (out == np.cumsum(x)).all()


@pytest.mark.parametrize(("n", "block"), [(1000, 64), (40, 32), (129, 4)])
def test_tree_over_several_blocks(run: Runner, random: np.random.Generator, n: int, block: int) -> None:
    x, out = random.integers(-1000, 1000, n).astype(np.int32), np.zeros(n, np.int32)
    blocks = -(-n // (2 * block))
    totals = np.zeros(blocks, np.int32)
    run(kernel("scan.cu", "scan_tree")[blocks, block, 0, 8 * block], x, out, totals, n)
    offsets = np.cumsum(totals, dtype=np.int32) - totals
    run(kernel("scan.cu", "add_offsets")[-(-n // 96), 96], out, offsets, 2 * block, n)
    assert (out == np.cumsum(x) - x).all()


def test_segments(run: Runner, random: np.random.Generator) -> None:
    n = 187
    x, heads = random.integers(-99, 99, n).astype(np.float32), (random.random(n) < 0.02).astype(np.uint8)
    out = np.zeros(n, np.float32)
    run(kernel("scan.cu", "scan_segments")[1, 192], x, heads, out, n)
    wanted, total = [], 0.0
    for value, head in zip(x, heads, strict=True):
        total = value if head else total + value
        wanted.append(total)
    assert out.tolist() == wanted


@pytest.mark.parametrize(("n", "block"), [(1000, 64), (70, 32)])
def test_look_back(run: Runner, random: np.random.Generator, n: int, block: int) -> None:
    x, out = random.integers(-1000, 1000, n).astype(np.int32), np.zeros(n, np.int32)
    blocks = -(-n // block)
    state, totals, prefixes = (np.zeros(blocks, np.int32) for _ in range(3))
    run(kernel("scan.cu", "scan_look_back")[blocks, block], x, out, n, np.zeros(1, np.uint32), state, totals, prefixes)
    assert (out == np.cumsum(x)).all()


@pytest.mark.parametrize(("n", "block"), [(75, 80), (32, 32)])
def test_in_python(run: Runner, random: np.random.Generator, n: int, block: int) -> None:
    x = random.random(n)
    out = np.zeros_like(x)
    run(scan_python[1, block, 0, 8 * block], x, out)
    np.testing.assert_allclose(out, np.cumsum(x), rtol=1e-13)
