"""How far apart the uses of a line of memory are: what a least-recently-used cache of any size keeps follows from that.

The *distance* of a use is the number of different lines that were used since the last use of the same line. A cache that
holds C lines and replaces the least recently used one still has the line if, and only if, the distance is below C. So the
distances are computed once, and each size of a cache costs no more than a comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

FIRST_USE = np.iinfo(np.int64).max
"""Distance of the first use of a line: no cache has it."""

SECTORS_PER_LINE = 4


def distances(lines: np.ndarray) -> np.ndarray:
    """Distance of each use, int64.

    Parameters
    ----------
    lines : numpy.ndarray
        What was used, in order; any integers.

    Examples
    --------
    >>> distances(np.array([7, 8, 8, 9, 7])).tolist()[2:]
    [0, 9223372036854775807, 2]
    """
    found = np.full(len(lines), FIRST_USE, np.int64)
    last = last_uses(lines)
    again = np.flatnonzero(last >= 0)
    before = last[again]
    # Since a line's last use at p, as many others were used as have a last use (or none) before p, among the uses up to
    # now. All p + 1 uses up to p are of that kind; what is left are those in between.
    is_last = np.zeros(len(lines), bool)
    is_last[before] = True
    rank = (np.cumsum(is_last) - 1)[before]
    first_uses = again - np.arange(len(again))
    found[again] = first_uses + earlier_and_smaller(rank) - (before + 1)
    return found


def last_uses(lines: np.ndarray) -> np.ndarray:
    """Index of the last use of the same line before each use, int64; -1 for the first."""
    order = np.argsort(lines, kind="stable")
    same = lines[order[1:]] == lines[order[:-1]]
    found = np.full(len(lines), -1, np.int64)
    found[order[1:][same]] = order[:-1][same]
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
class Uses:
    """The uses of lines in order, ready to be asked what a cache of some size would have.

    Attributes
    ----------
    lines : numpy.ndarray
        What was used, in order.
    sectors : numpy.ndarray
        For each use which of the line's four sectors: a mask, uint8.
    """

    lines: np.ndarray
    sectors: np.ndarray

    @cached_property
    def distances(self) -> np.ndarray:
        """Distance of each use, int64."""
        return distances(self.lines)

    @cached_property
    def _by_line(self) -> np.ndarray:
        return np.argsort(self.lines, kind="stable")

    def stays(self, capacity: float) -> np.ndarray:
        """For each use, in order, the number of the stay of its line in a cache of so many lines, int64.

        From one stay to the next the line was thrown out. Numbers are not shared by lines, and grow with time for each line.
        """
        begins = ((self.distances >= capacity) | (self.distances == FIRST_USE))[self._by_line]
        return _moved(np.cumsum(begins) - 1, self._by_line)

    def first_in_stay(self, capacity: float, among: np.ndarray | None = None) -> np.ndarray:
        """For each use and sector, whether it is the sector's first in the stay of its line: (n, 4), bool.

        Parameters
        ----------
        capacity : float
            Lines that the cache holds.
        among : numpy.ndarray, optional
            Only these uses (bool) count; all others are no uses of a sector, but still use the line.
        """
        masks = self.sectors if among is None else np.where(among, self.sectors, 0)
        stays = self.stays(capacity)
        found = np.zeros((len(self.lines), SECTORS_PER_LINE), bool)
        for sector in range(SECTORS_PER_LINE):
            used = self._by_line[masks[self._by_line] >> sector & 1 == 1]
            stay = stays[used]
            found[used, sector] = np.diff(stay, prepend=-1) != 0
        return found
