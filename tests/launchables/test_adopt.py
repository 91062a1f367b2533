"""Kernels made with Numba's own decorator are taken over; anything else is refused with the spelling."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab.errors import ArgumentError
from gpulab.launchables import as_bound


def test_a_launch_of_numbas_own_kernel_runs_here() -> None:
    from numba import cuda as numbas

    @numbas.jit(fastmath=True)
    def divide(x):
        x[numbas.grid(1)] = x[0] / x[1]

    @numbas.jit(fastmath=True)
    def other(x):
        x[0] = 1

    launch = divide[128, 32]
    bound = as_bound(launch)
    assert (bound.config.grid, bound.config.block) == ((128, 1, 1), (32, 1, 1))
    assert bound.kernel is as_bound(divide[200, 1]).kernel
    assert bound.kernel is not as_bound(other[200, 1]).kernel
    assert "div.approx" in bound.kernel.compile((np.ones(2, np.float32),), (8, 0)).text
    x = np.full(32, 4, np.float32)
    gpulab.use("A100")
    as_bound(divide[128, 32]).kernel[1, 1](x)
    assert x[0] == 1
    with pytest.raises(ArgumentError, match=r"divide\[grid, block\], but the kernel alone came"):
        as_bound(divide)


def test_what_is_no_launch_is_refused_with_the_spelling() -> None:
    kernel = gpulab.cuda.jit(lambda x: None)
    bound = kernel[1, 1]
    assert as_bound(bound) is bound
    with pytest.raises(ArgumentError, match="with grid and block"):
        as_bound(kernel)
    with pytest.raises(ArgumentError, match=r"but None came\. Leave the parentheses out"):
        as_bound(None)
    with pytest.raises(ArgumentError, match="but 3 came"):
        as_bound(3)
