"""`Touched`: which sectors of global memory a launch loaded from and stored to."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import numpy as np

from gpulab.emulator.memory import SECTOR_BYTES, WINDOW_BITS, Allocation

_kept: dict[int, list[np.ndarray]] = {}
"""Maps of the last record that is gone, by their length."""


def _cleared(sectors: int) -> np.ndarray:
    found = _kept.get(sectors)
    if not found:
        return np.zeros(sectors, np.uint8)
    sectors_map = found.pop()
    sectors_map[:] = 0
    return sectors_map


def _keep(maps: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
    for pair in maps:
        for each in pair:
            _kept.setdefault(len(each), []).append(each)


class Touched:
    """Maps of touched sectors, one byte for each 32-byte sector of each allocation.

    Compiled kernels write 1 into the maps through the addresses in `Memory.windows`.

    Parameters
    ----------
    allocations : dict of int to Allocation
        By window, as in `Memory.allocations`.

    Attributes
    ----------
    maps : dict of int to (numpy.ndarray, numpy.ndarray)
        Of each window: sectors read, sectors written, dtype uint8.
    """

    def __init__(self, allocations: dict[int, Allocation]) -> None:
        # A copy, which keeps them: one that nobody else wants any more may be released while the launch runs.
        self._allocations = dict(allocations)
        self.maps = {}
        for window, allocation in self._allocations.items():
            sectors = -(-allocation.size // SECTOR_BYTES) + 1
            self.maps[window] = (_cleared(sectors), _cleared(sectors))
        _kept.clear()
        # The next launch most often has the same arrays, and fresh memory from the system costs more than to clear this.
        weakref.finalize(self, _keep, tuple(self.maps.values())).atexit = False

    def mark(self, read: Iterable[int], written: Iterable[int]) -> None:
        """Add sectors, given as addresses divided by 32."""
        for place, sectors in enumerate((read, written)):
            for sector in sectors:
                window = sector * SECTOR_BYTES >> WINDOW_BITS
                first = self._allocations[window].address // SECTOR_BYTES
                self.maps[window][place][sector - first] = 1

    def clear(self) -> None:
        """Forget all."""
        for each in self.maps.values():
            for sectors in each:
                sectors[:] = 0

    def add(self, other: Touched) -> None:
        """Add what another record of the same allocations has."""
        for window, others in other.maps.items():
            for mine, theirs in zip(self.maps[window], others, strict=True):
                mine |= theirs

    def counts(self) -> np.ndarray:
        """Sectors read, written, and touched in either way: shape (allocations, 3), int64."""
        found = []
        for read, written in ((r.view(np.bool_), w.view(np.bool_)) for r, w in self.maps.values()):
            loaded, stored = np.count_nonzero(read), np.count_nonzero(written)
            # Most arrays are only read or only written.
            both = np.count_nonzero(read & written) if loaded and stored else 0
            found.append((loaded, stored, loaded + stored - both))
        return np.array(found, np.int64).reshape(-1, 3)

    def sizes(self) -> np.ndarray:
        """Sectors that each allocation has: shape (allocations,), int64."""
        return np.array([-(-self._allocations[window].size // SECTOR_BYTES) for window in self.maps], np.int64)

    def first_sectors(self) -> np.ndarray:
        """The first sector of each allocation, as its address divided by 32: shape (allocations,), int64."""
        return np.array([self._allocations[window].address // SECTOR_BYTES for window in self.maps], np.int64)

    def written_names(self) -> tuple[str, ...]:
        """Names of the allocations that were stored to."""
        names = (self._allocations[window].name for window, (_, written) in self.maps.items() if written.any())
        return tuple(dict.fromkeys(names))
