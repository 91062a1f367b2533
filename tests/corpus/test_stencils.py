"""Stencils, hotspot and the game of life."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def stencil_python(x, out, c):
    i, j = cuda.grid(2)
    if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
        out[i, j] = x[i, j] + c * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - 4 * x[i, j])


@cuda.jit
def life_python(cells, out):
    tile = cuda.shared.array((10, 10), numba.uint8)
    i, j = cuda.grid(2)
    for di in range(cuda.threadIdx.x, 10, 8):
        for dj in range(cuda.threadIdx.y, 10, 8):
            row = (cuda.blockIdx.x * 8 + di - 1) % cells.shape[0]
            column = (cuda.blockIdx.y * 8 + dj - 1) % cells.shape[1]
            tile[di, dj] = cells[row, column]
    cuda.syncthreads()
    if i < cells.shape[0] and j < cells.shape[1]:
        total = 0
        for di in range(3):
            for dj in range(3):
                total += tile[cuda.threadIdx.x + di, cuda.threadIdx.y + dj]
        alive = cells[i, j] != 0
        out[i, j] = total == 3 or (alive and total == 4)


def neighbors(x: np.ndarray) -> np.ndarray:
    """Sum of the four neighbors; the border's missing ones are the cell itself."""
    around = np.pad(x, 1, mode="edge")
    return around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]


def life_step(cells: np.ndarray) -> np.ndarray:
    """One generation on a torus."""
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    count = sum(np.roll(cells, shift, (0, 1)).astype(int) for shift in shifts)
    return (count == 3) | (cells & (count == 2))


@pytest.mark.parametrize(("shape", "block"), [((21, 37), (16, 4)), ((5, 33), (32, 2)), ((9, 7), (3, 5))])
def test_five_points(run: Runner, random: np.random.Generator, shape: tuple, block: tuple) -> None:
    x = random.random(shape).astype(np.float32)
    out = np.zeros_like(x)
    height, width = shape
    grid = (-(-width // block[0]), -(-height // block[1]))
    shared = 4 * (block[0] + 2) * (block[1] + 2)
    run(kernel("stencils.cu", "stencil_5")[grid, block, 0, shared], x, out, width, height, 0.2)
    np.testing.assert_allclose(out, x + 0.2 * (neighbors(x) - 4 * x), rtol=1e-5, atol=1e-6)


def test_seven_points(run: Runner, random: np.random.Generator) -> None:
    x = random.random((6, 11, 19))
    out = np.zeros_like(x)
    run(kernel("stencils.cu", "stencil_7")[(2, 3), (11, 4)], x, out, 19, 11, 6)
    wanted = np.zeros_like(x)
    inner = x[1:-1, 1:-1, 1:-1]
    around = x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1] + x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1]
    wanted[1:-1, 1:-1, 1:-1] = (around + x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:]) / 6 - inner
    np.testing.assert_allclose(out, wanted, rtol=1e-12, atol=1e-14)


def test_hotspot(run: Runner, random: np.random.Generator) -> None:
    heat, power = random.random((19, 13)).astype(np.float32), random.random((19, 13)).astype(np.float32)
    out = np.zeros_like(heat)
    run(kernel("stencils.cu", "hotspot<12, 2>")[(2, 3), (12, 12)], heat, power, out, 19, 13, 0.1)
    wanted = heat.astype(np.float64)
    for _ in range(2):
        wanted = wanted + 0.1 * (power + neighbors(wanted) - 4 * wanted)
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


def test_life_on_bits(run: Runner, random: np.random.Generator) -> None:
    cells = random.random((9, 96)) < 0.4
    words = np.packbits(cells, axis=1, bitorder="little").view(np.uint32)
    for _ in range(3):
        out = np.zeros_like(words)
        run(kernel("stencils.cu", "life_words")[2, 20], words, out, 3, 9)
        words, cells = out, life_step(cells)
    assert (np.unpackbits(words.view(np.uint8), axis=1, bitorder="little") == cells).all()


def test_life_in_python(run: Runner, random: np.random.Generator) -> None:
    cells = random.random((13, 18)) < 0.4
    out = np.zeros((13, 18), np.uint8)
    run(life_python[(2, 3), (8, 8)], cells.astype(np.uint8), out)
    assert (out == life_step(cells)).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_stencil_in_python(run: Runner, random: np.random.Generator, order: str) -> None:
    x = np.asarray(random.random((15, 20)), order=order)
    out = x.copy(order=order)
    run(stencil_python[(2, 3), (9, 7)], x, out, 0.2)
    wanted = x.copy()
    wanted[1:-1, 1:-1] = (x + 0.2 * (neighbors(x) - 4 * x))[1:-1, 1:-1]
    np.testing.assert_allclose(out, wanted, rtol=1e-13)
