"""What the speed benchmark runs: kernels with their data, launch and right results. NumPy only, for PoCL's Python too.

The same arguments go to CUDA C++ (`kernels.cu`), Numba (`numba_kernels.py`) and OpenCL (`kernels.cl`), whose kernels
have the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Workload:
    """One kernel at one size and block shape.

    Attributes
    ----------
    kernel : str
        Its name in all languages.
    grid, block : tuple of int
    work : int
        Units of work, for rates: FMA, elements.
    arguments : callable
        Makes the arguments; the last array is the output.
    expected : callable
        The right output, from the arguments.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    work: int
    arguments: Callable[[], list[Any]]
    expected: Callable[[list[Any]], np.ndarray]

    @property
    def name(self) -> str:
        """Kernel and block."""
        return f"{self.kernel} {'x'.join(map(str, self.block))}"

    def output(self, arguments: list[Any]) -> np.ndarray:
        """The array that holds the results."""
        return [each for each in arguments if isinstance(each, np.ndarray)][-1]

    def is_right(self, arguments: list[Any], output: np.ndarray) -> bool:
        """Whether the output is what NumPy says."""
        return bool(np.allclose(output, self.expected(arguments), rtol=1e-3, atol=1e-4))


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).random(shape, np.float32)


def _sgemm(kernel: str, n: int, block: tuple[int, int]) -> Workload:
    return Workload(
        kernel,
        (n // block[0], n // block[1]),
        block,
        n**3,
        lambda: [_random(n, n), _random(n, n).T.copy(), np.zeros((n, n), np.float32), np.int32(n)],
        lambda arguments: arguments[0] @ arguments[1],
    )


def _transpose(n: int, tile: int, rows: int) -> Workload:
    return Workload(
        f"transpose{tile}",
        (n // tile, n // tile),
        (tile, rows),
        n * n,
        lambda: [_random(n, n), np.zeros((n, n), np.float32), np.int32(n)],
        lambda arguments: arguments[0].T,
    )


def _reduction(n: int, blocks: int) -> Workload:
    return Workload(
        "reduction",
        (blocks,),
        (256,),
        n,
        lambda: [_random(n), np.zeros(blocks, np.float32), np.int32(n)],
        # Block i adds the elements i * 256 + thread, and every blocks * 256 further on.
        lambda arguments: arguments[0].reshape(-1, blocks, 256).sum(axis=(0, 2), dtype=np.float64),
    )


def _vector_add(n: int) -> Workload:
    return Workload(
        "vector_add",
        (n // 256,),
        (256,),
        n,
        lambda: [_random(n), _random(n)[::-1].copy(), np.zeros(n, np.float32), np.int32(n)],
        lambda arguments: arguments[0] + arguments[1],
    )


def _collatz(n: int) -> Workload:
    return Workload(
        "collatz",
        (-(-n // 256),),
        (256,),
        n,
        lambda: [np.zeros(n, np.int32), np.int32(n)],
        lambda arguments: _collatz_steps(n),
    )


def _collatz_steps(n: int) -> np.ndarray:
    value, steps = np.arange(1, n + 1, dtype=np.int64), np.zeros(n, np.int32)
    active = np.flatnonzero(value != 1)
    while len(active):
        now = value[active]
        value[active] = np.where(now % 2, 3 * now + 1, now // 2)
        steps[active] += 1
        active = active[value[active] != 1]
    return steps


def _softmax(rows: int, columns: int) -> Workload:
    return Workload(
        "softmax",
        (rows,),
        (256,),
        rows * columns,
        lambda: [_random(rows, columns) * 8, np.zeros((rows, columns), np.float32), np.int32(columns)],
        lambda arguments: _numpy_softmax(arguments[0]),
    )


def _numpy_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def workloads(scale: int = 1) -> list[Workload]:
    """All of them; `scale` divides the sizes (a power of two), for tests."""
    n = 512 // scale
    return [
        _sgemm("sgemm", n, (16, 16)),
        _sgemm("sgemm", n, (32, 32)),
        _sgemm("sgemm_columns", n, (16, 16)),
        _sgemm("sgemm_columns", n, (32, 32)),
        _sgemm("sgemm_tiled16", n, (16, 16)),
        _sgemm("sgemm_tiled32", n, (32, 32)),
        _transpose(2048 // scale, 16, 16),
        _transpose(2048 // scale, 32, 8),
        _reduction((1 << 22) // scale, 1024 // scale),
        _vector_add((1 << 24) // scale),
        _collatz((1 << 20) // scale),
        _softmax(4096 // scale, 1024),
    ]
