"""Barriers of the whole grid, in a cooperative launch."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def heat_grid_python(a, b, steps):
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(steps):
        if i < a.size:
            b[i] = a[i] + numba.float32(0.25) * (a[(i + 1) % a.size] + a[i - 1] - 2 * a[i])
        grid.sync()
        a, b = b, a


def heated(a: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        a = a + np.float32(0.25) * (np.roll(a, -1) + np.roll(a, 1) - 2 * a)
    return a


@pytest.mark.parametrize("steps", [4, 5])
def test_heat_with_a_barrier_of_the_grid(run: Runner, random: np.random.Generator, steps: int) -> None:
    a = random.random(150).astype(np.float32)
    wanted, b = heated(a, steps), np.zeros_like(a)
    run(kernel("grid.cu", "heat_grid", cooperative=True)[2, 64], a, b, 150, steps)
    np.testing.assert_allclose(b if steps % 2 else a, wanted, rtol=1e-5)


def test_heat_with_a_barrier_of_the_grid_in_python(run: Runner, random: np.random.Generator) -> None:
    a = random.random(60).astype(np.float32)
    wanted, b = heated(a, 3), np.zeros_like(a)
    run(heat_grid_python[2, 32], a, b, 3)
    np.testing.assert_allclose(b, wanted, rtol=1e-5)
