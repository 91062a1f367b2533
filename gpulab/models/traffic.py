"""How many sectors pass L2 and DRAM, with honest bounds.

L2 sees the load sectors that miss in the modeled L1, and every store and atomic. What DRAM moves lies between each
distinct sector once (L2 keeps all that is used again) and all that L2 sees (L2 keeps nothing); the modeled caches say where.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gpulab.gpus import Gpu
from gpulab.models.access import SECTOR_BYTES
from gpulab.models.caches import caches
from gpulab.models.occupancy import Occupancy
from gpulab.models.run import KernelRun

ATOMICS = ("atomic", "reduction")


@dataclass(frozen=True, slots=True)
class Bounded:
    """An estimate with its bounds, all in sectors of 32 bytes."""

    low: float
    value: float
    high: float

    def __add__(self, other: Bounded) -> Bounded:
        return Bounded(self.low + other.low, self.value + other.value, self.high + other.high)


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sectors (32 bytes) of one launch; *modeled* but for the distinct counts.

    Attributes
    ----------
    l1_misses : numpy.ndarray
        Load sectors of each instruction that miss in L1, float64.
    l2_read, l2_write, l2_atomic : int
        Sectors that the SMs ask of L2.
    l2_write_partial : int
        Those of `l2_write` that are filled only in part.
    dram_read, dram_write : Bounded
        Sectors between L2 and DRAM, L2 being empty at the start and written back at the end. The bounds hold whatever L2
        does: each distinct sector once, and all that L2 sees.
    dram_likely : Bounded
        Both together; the bounds are those of an L2 of twice and of half the size.
    """

    l1_misses: np.ndarray
    l2_read: int
    l2_write: int
    l2_write_partial: int
    l2_atomic: int
    dram_read: Bounded
    dram_write: Bounded
    dram_likely: Bounded

    def __add__(self, other: Traffic) -> Traffic:
        sums = (getattr(self, item.name) + getattr(other, item.name) for item in fields(self)[1:])
        return Traffic(np.concatenate((self.l1_misses, other.l1_misses)), *sums)

    @property
    def l2(self) -> int:
        """All sectors between the SMs and L2."""
        return self.l2_read + self.l2_write + self.l2_atomic

    @property
    def dram(self) -> Bounded:
        """Sectors read from and written to DRAM together."""
        return self.dram_read + self.dram_write


def traffic(run: KernelRun, gpu: Gpu, occupancy: Occupancy, l1_misses: np.ndarray | None = None) -> Traffic:
    """Estimate the traffic of a launch on a GPU.

    Parameters
    ----------
    run : KernelRun
    gpu : Gpu
    occupancy : Occupancy
        Of this launch on this GPU: it says how many blocks share L2 at once.
    l1_misses : numpy.ndarray, optional
        Load sectors of each instruction that miss in L1, if that is known: of a launch that never ran, say.
    """
    tally, counters, done = run.tally(), run.counters, caches(run, gpu, occupancy)
    loads = tally.where(kinds=("load",), spaces=("global",))
    misses = np.where(loads, counters.sectors * done.l1_miss_shares, 0.0) if l1_misses is None else l1_misses
    l2_write = tally.total("sectors", kinds=("store",), spaces=("global",))
    asked = tally.total("bytes_asked", kinds=("store",), spaces=("global",))
    l2_atomic = tally.total("sectors", kinds=ATOMICS, spaces=("global",))
    # What is read at all comes through L2 once, however few of its lines the trace has.
    at_least = min(int(counters.sectors[loads].sum()), counters.distinct_sectors_read - l2_atomic)
    l2_read = max(round(float(misses[loads].sum())), at_least)
    reads = _moved(counters.distinct_sectors_read, l2_read + l2_atomic, done.reads)
    writes = _moved(counters.distinct_sectors_written, l2_write + l2_atomic, done.writes)
    return Traffic(
        l1_misses=misses,
        l2_read=l2_read,
        l2_write=l2_write,
        l2_write_partial=min(l2_write, max(0, l2_write * SECTOR_BYTES - asked) // (SECTOR_BYTES - 4)),
        l2_atomic=l2_atomic,
        dram_read=reads[0],
        dram_write=writes[0],
        dram_likely=reads[1] + writes[1],
    )


def _moved(different: int, accesses: int, often: tuple[float, ...] | None) -> tuple[Bounded, Bounded]:
    """Sectors between L2 and DRAM one way: what must hold, and what is likely.

    Parameters
    ----------
    different : int
        Different sectors.
    accesses : int
        Sectors that L2 is asked for.
    often : tuple of float, or None
        How often each different sector is moved, for each of `gpulab.models.caches.SIZES`; None if that is not known.
    """
    high = float(accesses)
    if often is None:  # too few to be in the sample: an L2 of any size has them
        low = min(float(different), high)
        return Bounded(low, low, high), Bounded(low, low, low)
    low, twice, value, half = (min(different * each, high) for each in often)
    return Bounded(low, value, high), Bounded(twice, value, half)
