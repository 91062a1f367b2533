"""How far apart the uses of a line of memory are: what a least-recently-used cache of any size keeps follows from that.

The *distance* of a use is the number of different lines that were used since the last use of the same line. A cache that
holds C lines and replaces the least recently used one still has the line if, and only if, the distance is below C. So the
distances are computed once, and each size of a cache costs no more than a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

SECTORS_PER_LINE = 4
SECTORS_OF = np.array([mask.bit_count() for mask in range(1 << SECTORS_PER_LINE)])
"""How many sectors a mask has."""


def distances(lines: np.ndarray, by_line: np.ndarray | None = None) -> np.ndarray:
    """Distance of each use, float64; infinite for the first use of a line, which no cache has.

    Parameters
    ----------
    lines : numpy.ndarray
        What was used, in order; any integers.
    by_line : numpy.ndarray, optional
        What sorts them, in order for equal lines, if it is at hand.

    Examples
    --------
    >>> distances(np.array([7, 8, 8, 9, 7])).tolist()
    [inf, inf, 0.0, inf, 2.0]
    """
    order = np.argsort(lines, kind="stable") if by_line is None else by_line
    same = lines[order[1:]] == lines[order[:-1]]
    last = np.full(len(lines), -1)
    last[order[1:][same]] = order[:-1][same]
    again = np.flatnonzero(last >= 0)
    before = last[again]
    # Since a line's last use at p, as many others were used as have a last use (or none) before p, among the uses up to
    # now. All p + 1 uses up to p are of that kind; what is left are those in between.
    is_last = np.zeros(len(lines), bool)
    is_last[before] = True
    rank = (np.cumsum(is_last) - 1)[before]
    first_uses = again - np.arange(len(again))
    found = np.full(len(lines), np.inf)
    found[again] = first_uses + earlier_and_smaller(rank) - (before + 1)
    return found


def earlier_and_smaller(values: np.ndarray) -> np.ndarray:
    """For each item of a permutation of 0 to n - 1: how many of those before it are smaller, int64.

    The items are sorted from the highest bit to the lowest. Where two of them are parted, being equal in all higher bits,
    the one with a 1 is the larger; so it counts the zeros before it, and no pair is counted twice.
    """
    items = np.asarray(values, np.int32)
    place = np.arange(len(items), dtype=np.int32)
    counts = np.zeros(len(items), np.int32)
    for bit in reversed(range(max(len(items) - 1, 0).bit_length())):
        is_one = items >> bit & 1
        zeros = np.cumsum(1 - is_one, dtype=np.int32) - (1 - is_one)
        group = items >> (bit + 1) << (bit + 1)  # where the items with the same higher bits begin
        zeros -= zeros[group]
        counts += zeros * is_one
        goal = np.where(is_one, (group | 1 << bit) + (place - group - zeros), group + zeros)
        items, counts = _moved(items, goal), _moved(counts, goal)
    return counts[np.asarray(values)].astype(np.int64)


def _moved(values: np.ndarray, goals: np.ndarray) -> np.ndarray:
    found = np.empty_like(values)
    found[goals] = values
    return found


@dataclass(frozen=True)
class SectorUses:
    """The uses of single sectors, line by line.

    Attributes
    ----------
    events : numpy.ndarray
        Which use of a line each one is part of.
    distances : numpy.ndarray
        The largest distance of a use of the line since the last use of this sector, float64; infinite for the first use.
    """

    events: np.ndarray
    distances: np.ndarray

    def missing(self, capacity: float) -> np.ndarray:
        """For each whether a cache of so many lines has it not, bool: the line was thrown out since, or never there."""
        return self.distances >= capacity


@dataclass(frozen=True)
class Uses:
    """The uses of lines in order.

    Attributes
    ----------
    lines : numpy.ndarray
        What was used.
    sectors : numpy.ndarray
        For each use which of the line's four sectors: a mask, uint8.
    """

    lines: np.ndarray
    sectors: np.ndarray

    def of_sectors(self, among: np.ndarray | None = None) -> SectorUses:
        """The uses of its sectors.

        Parameters
        ----------
        among : numpy.ndarray, optional
            Only these uses (bool) use a sector; all others use the line alone, which keeps it in the cache.
        """
        masks = (self.sectors if among is None else np.where(among, self.sectors, 0))[self._by_line]
        events, far = [], []
        for sector in range(SECTORS_PER_LINE):
            used = np.flatnonzero(masks >> sector & 1)
            if len(used):
                # A segment ends with each use of the sector. That of a line's first has the first use of the line in it.
                begins = np.concatenate(([0], used[:-1] + 1))
                far.append(np.maximum.reduceat(self._distances[: used[-1] + 1], begins))
                events.append(self._by_line[used])
        return SectorUses(np.concatenate([np.zeros(0, np.int64), *events]), np.concatenate([np.zeros(0), *far]))

    def different(self, among: np.ndarray) -> int:
        """How many different sectors these uses (bool) have."""
        lines = self.lines[self._by_line]
        if not len(lines):
            return 0
        begins = np.flatnonzero(np.concatenate(([True], lines[1:] != lines[:-1])))
        masks = np.where(among, self.sectors, 0)[self._by_line]
        return int(SECTORS_OF[np.bitwise_or.reduceat(masks, begins)].sum())

    @cached_property
    def _by_line(self) -> np.ndarray:
        return np.argsort(self.lines, kind="stable")

    @cached_property
    def _distances(self) -> np.ndarray:
        return distances(self.lines, self._by_line)[self._by_line]
