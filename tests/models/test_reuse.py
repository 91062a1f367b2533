"""Distances of reuse, against a list that is searched, and what a cache has, against one that is played through."""

from __future__ import annotations

import math
from collections import OrderedDict

import numpy as np
import pytest

from gpulab.models.reuse import Uses, distances, earlier_and_smaller


def by_a_stack(lines: list[int]) -> list[float]:
    """Most recent first: the place of a line in the stack is its distance."""
    stack, found = [], []
    for line in lines:
        found.append(stack.index(line) if line in stack else math.inf)
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
    assert distances(np.array([a, b, b, c, a, c, b])).tolist() == [math.inf, math.inf, 0, math.inf, 2, 1, 2]


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


def misses(uses: Uses, capacity: float, among: np.ndarray | None = None) -> list[int]:
    """For each use how many of its sectors a cache of so many lines had not."""
    found = uses.of_sectors(among)
    return np.bincount(found.events[found.missing(capacity)], minlength=len(uses.lines)).tolist()


@pytest.mark.parametrize("capacity", [1, 2, 7, 30, 100])
def test_a_cache_of_any_size_follows_from_distances(capacity: int) -> None:
    rng = np.random.default_rng(3)
    lines, masks = rng.integers(0, 40, 2000), rng.integers(1, 16, 2000).astype(np.uint8)
    expected = [mask.bit_count() for mask in played(lines.tolist(), masks.tolist(), capacity)]
    assert misses(Uses(lines, masks), capacity) == expected


def test_a_larger_cache_misses_no_more() -> None:
    rng = np.random.default_rng(4)
    uses = Uses(rng.integers(0, 300, 5000), rng.integers(1, 16, 5000).astype(np.uint8))
    found = [sum(misses(uses, capacity)) for capacity in range(0, 400, 10)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 2 * found[-1] > 0


def test_only_some_uses_count_but_all_keep_a_line() -> None:
    # The line stays because of the second use, which is no store: one stay, written back once.
    uses = Uses(np.array([1, 2, 1, 3, 1]), np.array([1, 1, 1, 1, 1], np.uint8))
    stores = np.array([True, False, False, False, True])
    assert misses(uses, 2, stores) == [1, 0, 0, 0, 0]
    assert misses(uses, 1, stores) == [1, 0, 0, 0, 1]


def test_different_sectors() -> None:
    uses = Uses(np.array([5, 9, 5, 5, 7]), np.array([0b0011, 0b1000, 0b0110, 0b1111, 0b0001], np.uint8))
    assert uses.different(np.array([True, True, True, False, False])) == 3 + 1
    assert uses.different(np.array([False, False, False, True, True])) == 4 + 1
    assert Uses(np.zeros(0, np.int64), np.zeros(0, np.uint8)).different(np.zeros(0, bool)) == 0
