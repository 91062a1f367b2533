"""L2, modeled: how often a sector moves between L2 and DRAM.

The trace holds what all blocks did to a sample of lines. In the order of waves of resident blocks, these accesses pass a
cache of 32-byte sectors that replaces the least recently used line. It allocates for loads, stores and atomics, fetches no
sector that is stored to, and writes back what was stored when the line goes, or at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpulab.models.residency import clocks_in_waves
from gpulab.models.reuse import Uses
from gpulab.trace import LOAD, STORE, Stream

LINE_BYTES = 128


@dataclass(frozen=True)
class GpuAccesses:
    """What all blocks did, in order.

    Attributes
    ----------
    uses : Uses
        One for each event.
    loads, stores : numpy.ndarray
        Whether an event asked for what is there, and whether it changed it (bool); an atomic does both.
    rate : float
        Share of the lines that are in it.
    """

    uses: Uses
    loads: np.ndarray
    stores: np.ndarray
    rate: float

    @cached_property
    def different_loaded(self) -> int:
        """Different sectors of the sample that are loaded."""
        return int(self.uses.first_in_stay(np.inf, self.loads).sum())

    @cached_property
    def different_stored(self) -> int:
        """Different sectors of the sample that are stored to."""
        return int(self.uses.first_in_stay(np.inf, self.stores).sum())

    def reads(self, l2_bytes: float) -> float:
        """Sectors read from DRAM for each different sector that is loaded."""
        first = self.uses.first_in_stay(self._lines(l2_bytes))
        return float(first[self.loads].sum() / max(1, self.different_loaded))

    def writes(self, l2_bytes: float) -> float:
        """Sectors written to DRAM for each different sector that is stored to."""
        first = self.uses.first_in_stay(self._lines(l2_bytes), self.stores)
        return float(first.sum() / max(1, self.different_stored))

    def _lines(self, l2_bytes: float) -> float:
        return l2_bytes / LINE_BYTES * self.rate


def accesses_in_waves(stream: Stream, resident: int, duration: float) -> GpuAccesses:
    """All accesses in the order of a GPU that holds so many blocks.

    Parameters
    ----------
    stream : Stream
        The far stream of a trace.
    resident : int
        Blocks that run at once.
    duration : float
        Instructions that a warp executes, on average.
    """
    events = stream.events
    turns = events["block"] if stream.blocks is None else np.searchsorted(stream.blocks, events["block"])
    order = np.argsort(clocks_in_waves(turns, events["time"], resident, duration), kind="stable")
    events = events[order]
    kinds = events["kind"]
    return GpuAccesses(Uses(events["line"], events["sectors"]), kinds != STORE, kinds != LOAD, stream.rate)
