"""Sorting and merging."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def rank_sort_python(x, out):
    """Each thread counts how many items come before its own."""
    i = cuda.grid(1)
    if i < x.size:
        rank = 0
        for j in range(x.size):
            if x[j] < x[i] or (x[j] == x[i] and j < i):
                rank += 1
        out[rank] = x[i]


@cuda.jit
def sort_rows_quick_python(rows):
    r = cuda.grid(1)
    if r >= rows.shape[0]:
        return
    stack = cuda.local.array((32, 2), numba.int32)
    stack[0, 0], stack[0, 1] = 0, rows.shape[1] - 1
    depth = 1
    while depth > 0:
        depth -= 1
        low, high = stack[depth, 0], stack[depth, 1]
        if low >= high:
            continue
        pivot, place = rows[r, high], low
        for j in range(low, high):
            if rows[r, j] < pivot:
                rows[r, place], rows[r, j] = rows[r, j], rows[r, place]
                place += 1
        rows[r, place], rows[r, high] = rows[r, high], rows[r, place]
        stack[depth, 0], stack[depth, 1] = low, place - 1
        stack[depth + 1, 0], stack[depth + 1, 1] = place + 1, high
        depth += 2


@pytest.mark.parametrize(("n", "width", "block"), [(100, 128, 64), (5, 8, 3), (32, 32, 32), (200, 256, 96)])
def test_bitonic(run: Runner, random: np.random.Generator, n: int, width: int, block: int) -> None:
    keys, values = random.permutation(n).astype(np.float32) - n / 3, np.arange(n, dtype=np.int32)
    before = keys.copy()
    run(kernel("sorting.cu", "sort_bitonic")[1, block, 0, 8 * width], keys, values, n, width)
    assert (keys == np.sort(before)).all()
    assert (before[values] == keys).all()


@pytest.mark.parametrize(("n", "block"), [(60, 64), (200, 224), (7, 32)])
def test_radix(run: Runner, random: np.random.Generator, n: int, block: int) -> None:
    keys = random.integers(0, 1 << 10, n, np.uint32)
    wanted = np.sort(keys)
    run(kernel("sorting.cu", "sort_radix")[1, block], keys, n, 10)
    assert (keys == wanted).all()


@pytest.mark.parametrize(("na", "nb", "per_thread"), [(100, 37, 3), (0, 50, 7), (64, 0, 1), (20, 300, 11)])
def test_merge(run: Runner, random: np.random.Generator, na: int, nb: int, per_thread: int) -> None:
    a, b = (np.sort(random.integers(0, 90, n)).astype(np.int32) for n in (na, nb))
    out = np.zeros(na + nb, np.int32)
    blocks = -(-(na + nb) // (32 * per_thread))
    run(kernel("sorting.cu", "merge_path")[blocks, 32], a, na, b, nb, out, per_thread)
    assert (out == np.sort(np.concatenate([a, b]))).all()


def test_odd_even(run: Runner, random: np.random.Generator) -> None:
    keys, rounds = random.integers(-30, 30, 45).astype(np.int16), np.zeros(1, np.int32)
    wanted = np.sort(keys)
    run(kernel("sorting.cu", "sort_odd_even")[1, 20], keys, keys.size, rounds)
    assert (keys == wanted).all()
    assert 1 <= rounds[0] <= keys.size


def test_quicksort_with_a_stack(run: Runner, random: np.random.Generator) -> None:
    rows, lengths = random.integers(-100, 100, (37, 50)).astype(np.int32), random.integers(0, 51, 37).astype(np.int32)
    wanted = rows.copy()
    for row, length in zip(wanted, lengths, strict=True):
        row[:length].sort()
    run(kernel("sorting.cu", "sort_rows_quick")[2, 20], rows, lengths, 50, 37)
    assert (rows == wanted).all()


def test_quicksort_in_python(run: Runner, random: np.random.Generator) -> None:
    rows = random.integers(-100, 100, (5, 30)).astype(np.int32)
    wanted = np.sort(rows, axis=1)
    run(sort_rows_quick_python[1, 8], rows)
    assert (rows == wanted).all()


def test_rank_sort_in_python(run: Runner, random: np.random.Generator) -> None:
    x = random.integers(0, 20, 70).astype(np.float64)
    out = np.zeros_like(x)
    run(rank_sort_python[3, 25], x, out)
    assert (out == np.sort(x)).all()
