"""Threads that wait for others: locks, flags, and barriers made of them."""

from __future__ import annotations

import numpy as np
import pytest
from corpus import Runner, kernel

from gpulab import cuda


@cuda.jit
def add_under_lock_python(lock, total, x):
    i = cuda.grid(1)
    if i < x.size:
        while cuda.atomic.cas(lock, 0, 0, 1) != 0:
            pass
        cuda.threadfence()
        total[0] = total[0] * 3 % 1000003 + 1
        total[1] += x[i]
        cuda.threadfence()
        cuda.atomic.exch(lock, 0, 0)


def heated(a: np.ndarray, steps: int) -> np.ndarray:
    for _ in range(steps):
        a = a + np.float32(0.25) * (np.roll(a, -1) + np.roll(a, 1) - 2 * a)
    return a


@pytest.mark.parametrize(("grid", "block", "lists"), [(2, 32, 1), (3, 24, 4)])
def test_sorted_lists_under_locks(run: Runner, random: np.random.Generator, grid: int, block: int, lists: int) -> None:
    n = 60
    values, heads = random.permutation(n).astype(np.int32), np.full(lists, -1, np.int32)
    following, locks = np.full(n, -9, np.int32), np.zeros(lists, np.int32)
    run(kernel("waiting.cu", "insert_sorted")[grid, block], values, n, heads, following, locks, lists)
    assert not locks.any()
    for number in range(lists):
        found, here = [], heads[number]
        while here >= 0:
            found.append(int(values[here]))
            here = following[here]
        assert found == list(range(number, n, lists))


def test_a_warp_that_feeds_another(run: Runner, random: np.random.Generator) -> None:
    x, out = random.integers(-1000, 1000, (7, 32)).astype(np.int32), np.zeros(32, np.int64)
    run(kernel("waiting.cu", "pass_along")[1, 64], x, out, 7)
    assert (out == (3 * x[:, ::-1].astype(np.int64) * np.arange(1, 8)[:, None]).sum(0)).all()


def test_blocks_that_wait_for_later_ones(run: Runner) -> None:
    turn, order, place = np.zeros(1, np.int32), np.full(9, -1, np.int32), np.zeros(1, np.int32)
    run(kernel("waiting.cu", "hand_on")[9, 64], turn, order, place)
    assert order.tolist() == list(range(8, -1, -1))


def test_heat_with_a_barrier_made_by_hand(run: Runner, random: np.random.Generator) -> None:
    a = random.random(150).astype(np.float32)
    wanted, b = heated(a, 3), np.zeros_like(a)
    arrived, generation = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    run(kernel("waiting.cu", "heat_by_hand")[3, 32], a, b, 150, 3, arrived, generation)
    np.testing.assert_allclose(b, wanted, rtol=1e-5)


def test_the_last_block_adds_up(run: Runner, random: np.random.Generator) -> None:
    x, parts, total = random.random(500).astype(np.float32), np.zeros(3, np.float32), np.zeros(1, np.float32)
    bound = kernel("waiting.cu", "sum_last_block")[3, 64]
    for _ in range(2):  # the counter has come round to zero
        run(bound, x, x.size, parts, total)
        np.testing.assert_allclose(total[0], x.sum(), rtol=1e-5)
        total[0] = 0


def test_a_lock_in_python(run: Runner, random: np.random.Generator) -> None:
    x = random.integers(0, 1000, 70)
    lock, total, count = np.zeros(1, np.int32), np.zeros(2, np.int64), 0
    run(add_under_lock_python[2, 40], lock, total, x)
    for _ in range(70):
        count = (count * 3 % 1000003) + 1
    assert total.tolist() == [count, x.sum()]
