"""``from gpulab.cuda.random import …``: the spelling of ``numba.cuda.random``, random numbers inside kernels.

States are made here; the functions that kernels call (``xoroshiro128p_uniform_float32`` and its kin) are Numba's.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from gpulab.devices import DeviceArray, current
from gpulab.errors import ArgumentError

__all__ = ["create_xoroshiro128p_states"]


def create_xoroshiro128p_states(n: int, seed: int, subsequence_start: int = 0, stream: Any = 0) -> DeviceArray:
    """A device array with the states of `n` generators, each 2**64 numbers apart in one sequence.

    Parameters
    ----------
    n : int
        One for each thread that draws numbers.
    seed : int
        The same seed gives the same numbers, on every device.
    subsequence_start : int
        Skip so many generators.

    Raises
    ------
    ArgumentError
        If `n` is negative.
    """
    if n < 0:
        raise ArgumentError(f"The number of generators must be 0 or more, but {n} came.")
    numbas = importlib.import_module("numba.cuda.random")
    states = np.empty(n, numbas.xoroshiro128p_dtype)
    if n:
        numbas.init_xoroshiro128p_states_cpu(states, np.uint64(seed), np.uint64(subsequence_start))
    return current().to_device(states)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("numba.cuda.random"), name)
