"""Recursion, pointers to functions, virtual functions."""

from __future__ import annotations

import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit("int64(int64)", device=True)
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@cuda.jit
def fibonaccis_python(out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = fibonacci(i)


def test_quicksort_that_calls_itself(run: Runner, random: np.random.Generator) -> None:
    rows, lengths = random.integers(-100, 100, (21, 14)).astype(np.int32), random.integers(0, 15, 21).astype(np.int32)
    wanted = rows.copy()
    for row, length in zip(wanted, lengths, strict=True):
        row[:length].sort()
    run(kernel("calls.cu", "sort_rows_recursive")[2, 15], rows, lengths, 14, 21)
    assert (rows == wanted).all()


def test_queens(run: Runner) -> None:
    ways = np.zeros(20, np.int32)
    run(kernel("calls.cu", "count_queens")[2, 12], ways, 20)
    assert ways.tolist() == [[1, 0, 0, 2, 10, 4][i % 6] for i in range(20)]


def test_ackermann(run: Runner) -> None:
    out = np.zeros(12, np.int32)
    run(kernel("calls.cu", "ackermanns")[1, 32], out, 12)
    assert out.tolist() == [[n + 1, n + 2, 2 * n + 3][m] for n in range(4) for m in range(3)]


def test_functions_that_call_each_other(run: Runner) -> None:
    out = np.zeros(17, np.int32)
    run(kernel("calls.cu", "parities")[1, 32], out, 17)
    assert out.tolist() == [1 - i % 2 for i in range(17)]


def test_a_table_of_functions(run: Runner, random: np.random.Generator) -> None:
    which = random.integers(0, 4, 45).astype(np.uint8)
    a, b = random.integers(-99, 99, (2, 45)).astype(np.float32)
    out = np.zeros(45, np.float32)
    run(kernel("calls.cu", "apply")[2, 32], which, a, b, out, 45)
    assert (out == np.choose(which, [a + b, a - b, a * b, np.maximum(a, b)])).all()


@pytest.mark.parametrize("choice", [0, 1])
def test_a_function_as_an_argument(run: Runner, choice: int) -> None:
    out, to = np.zeros(5), np.arange(1, 6)
    run(kernel("calls.cu", "integrate")[1, 8], out, choice, 5)
    np.testing.assert_allclose(out, np.arctan(to) if choice else to**4 / 4, rtol=1e-4)


def test_virtual_functions(run: Runner, random: np.random.Generator) -> None:
    sizes, areas, corners = random.random(40).astype(np.float32), np.zeros(40, np.float32), np.zeros(40, np.int32)
    run(kernel("calls.cu", "measure")[2, 24], sizes, areas, corners, 40)
    kind = np.arange(40) % 3
    np.testing.assert_allclose(areas, np.choose(kind, [np.pi * sizes**2, 2 * sizes, sizes**2 + 0.5]), rtol=1e-6)
    assert (corners == np.choose(kind, [0, 4, 4])).all()


def test_recursion_in_python(run: Runner) -> None:
    out = np.zeros(10, np.int32)
    run(fibonaccis_python[1, 16], out)
    assert out.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
