"""L2, modeled: how often a sector moves between L2 and DRAM.

The trace holds what all blocks did to a sample of lines. In the order of waves of resident blocks, these accesses pass a
cache of 32-byte sectors that replaces the least recently used line. It allocates for loads, stores and atomics, fetches no
sector that is stored to, and writes back what was stored when the line goes, or at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.models.access import LINE_BYTES
from gpulab.models.residency import clocks_in_waves
from gpulab.models.reuse import Uses
from gpulab.trace import LOAD, STORE, Stream


@dataclass(frozen=True)
class GpuAccesses:
    """What all blocks did, in order.

    Attributes
    ----------
    fetches : numpy.ndarray
        Each time that a load or an atomic asks for a sector, the largest distance since the sector was last used, float64: a
        smaller L2 has to fetch it.
    stays : numpy.ndarray
        Each time that a sector is stored to, the largest distance since it was last stored to: a smaller L2 has written it
        back since.
    loaded, stored : int
        Different sectors that are loaded, and stored to; an atomic does both.
    rate : float
        Share of the lines that are in it.
    """

    fetches: np.ndarray
    stays: np.ndarray
    loaded: int
    stored: int
    rate: float

    def reads(self, l2_bytes: float) -> float:
        """Sectors read from DRAM for each different sector that is loaded."""
        return int(np.count_nonzero(self.fetches >= self._lines(l2_bytes))) / max(1, self.loaded)

    def writes(self, l2_bytes: float) -> float:
        """Sectors written to DRAM for each different sector that is stored to."""
        return int(np.count_nonzero(self.stays >= self._lines(l2_bytes))) / max(1, self.stored)

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
    uses, kinds = Uses(events["line"], events["sectors"]), events["kind"]
    loads, stores, every = kinds != STORE, kinds != LOAD, uses.of_sectors()
    return GpuAccesses(
        fetches=every.distances[loads[every.events]],
        stays=uses.of_sectors(stores).distances,
        loaded=uses.different(loads),
        stored=uses.different(stores),
        rate=stream.rate,
    )
