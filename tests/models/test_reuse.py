"""Distances of reuse, against a list that is searched, and what a cache has, against one that is played through."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from gpulab.models.reuse import FIRST_USE, Uses, distances, earlier_and_smaller


def by_a_stack(lines: list[int]) -> list[int]:
    """Most recent first: the place of a line in the stack is its distance."""
    stack, found = [], []
    for line in lines:
        found.append(stack.index(line) if line in stack else FIRST_USE)
        if line in stack:
            stack.remove(line)
        stack.insert(0, line)
    return found


@pytest.mark.parametrize("kinds", [1, 3, 50, 1000])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 700])
def test_distances_are_places_in_a_stack(count: int, kinds: int) -> None:
    lines = np.random.default_rng(count).integers(0, kinds, count) * 2**40
    assert distances(lines).tolist() == by_a_stack(lines.tolist())


def test_distances_by_hand() -> None:
    a, b, c = 5, 6, 7
    assert distances(np.array([a, b, b, c, a, c, b])).tolist() == [FIRST_USE, FIRST_USE, 0, FIRST_USE, 2, 1, 2]


@pytest.mark.parametrize("count", [0, 1, 2, 5, 64, 65, 333])
def test_earlier_and_smaller_by_pairs(count: int) -> None:
    values = np.random.default_rng(count).permutation(count)
    expected = [sum(values[other] < values[item] for other in range(item)) for item in range(count)]
    assert earlier_and_smaller(values).tolist() == expected


def played(lines: list[int], masks: list[int], capacity: int) -> list[int]:
    """For each use the mask of its sectors that a cache of so many lines had not."""
    held: OrderedDict[int, int] = OrderedDict()
    found = []
    for line, mask in zip(lines, masks, strict=True):
        has = held.pop(line, 0)
        found.append(mask & ~has)
        held[line] = has | mask
        if len(held) > capacity:
            held.popitem(last=False)
    return found


@pytest.mark.parametrize("capacity", [1, 2, 7, 30, 100])
def test_a_cache_of_any_size_follows_from_distances(capacity: int) -> None:
    rng = np.random.default_rng(3)
    lines, masks = rng.integers(0, 40, 2000), rng.integers(1, 16, 2000).astype(np.uint8)
    first = Uses(lines, masks).first_in_stay(capacity)
    assert (first @ [1, 2, 4, 8]).tolist() == played(lines.tolist(), masks.tolist(), capacity)


def test_a_larger_cache_misses_no_more() -> None:
    rng = np.random.default_rng(4)
    uses = Uses(rng.integers(0, 300, 5000), rng.integers(1, 16, 5000).astype(np.uint8))
    misses = [int(uses.first_in_stay(capacity).sum()) for capacity in range(0, 400, 10)]
    assert misses == sorted(misses, reverse=True)
    assert misses[0] > 2 * misses[-1] > 0


def test_only_some_uses_count_but_all_keep_a_line() -> None:
    # The line stays because of the second use, which is no store: one stay, written back once.
    uses = Uses(np.array([1, 2, 1, 3, 1]), np.array([1, 1, 1, 1, 1], np.uint8))
    stores = np.array([True, False, False, False, True])
    assert uses.first_in_stay(2, stores).any(axis=1).tolist() == [True, False, False, False, False]
    assert uses.first_in_stay(1, stores).any(axis=1).tolist() == [True, False, False, False, True]
