"""How many sectors pass L2 and DRAM: a first estimate with honest bounds.

L2 sees the load sectors that missed the modeled L1, and every store and atomic. What DRAM moves lies between each
distinct sector once (L2 keeps all that is used again) and all that L2 sees (L2 keeps nothing).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from gpulab.gpus import Gpu
from gpulab.models.access import SECTOR_BYTES
from gpulab.models.occupancy import Occupancy
from gpulab.models.run import KernelRun
from gpulab.models.sharing import l1_misses

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
    l2_read, l2_write, l2_atomic : int
        Sectors that the SMs ask of L2.
    l2_write_partial : int
        Those of `l2_write` that are filled only in part.
    dram_read, dram_write : Bounded
        Sectors between L2 and DRAM, L2 being empty at the start and written back at the end.
    """

    l2_read: int
    l2_write: int
    l2_write_partial: int
    l2_atomic: int
    dram_read: Bounded
    dram_write: Bounded

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))

    @property
    def l2(self) -> int:
        """All sectors between the SMs and L2."""
        return self.l2_read + self.l2_write + self.l2_atomic

    @property
    def dram(self) -> Bounded:
        """Sectors read from and written to DRAM together."""
        return self.dram_read + self.dram_write


def traffic(run: KernelRun, gpu: Gpu, occupancy: Occupancy) -> Traffic:
    """Estimate the traffic of a launch on a GPU.

    Parameters
    ----------
    run : KernelRun
    gpu : Gpu
    occupancy : Occupancy
        Of this launch on this GPU: it says how many blocks share L2 at once.
    """
    tally = run.tally()
    misses = l1_misses(run)[tally.where(kinds=("load",), spaces=("global",))]
    l2_read = round(float(misses.sum()))
    l2_write = tally.total("sectors", kinds=("store",), spaces=("global",))
    asked = tally.total("bytes_asked", kinds=("store",), spaces=("global",))
    l2_atomic = tally.total("sectors", kinds=ATOMICS, spaces=("global",))
    counters = run.counters
    footprint = counters.footprint_sectors * SECTOR_BYTES
    in_flight = _waves(run, gpu, occupancy)
    wave_bytes = (l2_read + l2_write + l2_atomic) * SECTOR_BYTES / in_flight
    read_once = min(counters.distinct_sectors_read, l2_read + l2_atomic)
    # Blocks that run together share what they read, so no wave fetches a sector twice.
    read_most = min(l2_read + l2_atomic, in_flight * read_once)
    write_once = min(counters.distinct_sectors_written, l2_write + l2_atomic)
    return Traffic(
        l2_read=l2_read,
        l2_write=l2_write,
        l2_write_partial=min(l2_write, max(0, l2_write * SECTOR_BYTES - asked) // (SECTOR_BYTES - 4)),
        l2_atomic=l2_atomic,
        dram_read=_between(read_once, read_most, _overflow(footprint, gpu)),
        dram_write=_between(write_once, l2_write + l2_atomic, _overflow(wave_bytes, gpu)),
    )


def _waves(run: KernelRun, gpu: Gpu, occupancy: Occupancy) -> float:
    """How many times the GPU is filled with blocks, at least 1."""
    return max(1.0, run.config.blocks / (gpu.sm_count * occupancy.blocks_per_sm))


def _overflow(wanted_bytes: float, gpu: Gpu) -> float:
    """Share of the bytes wanted again that L2 can't keep, 0 to 1."""
    return 0.0 if wanted_bytes <= gpu.l2_bytes else 1 - gpu.l2_bytes / wanted_bytes


def _between(low: float, high: float, share: float) -> Bounded:
    """Geometric mean of the bounds, weighted: reuse distances spread over orders of magnitude."""
    high = max(low, high)
    value = low * (high / low) ** share if low else 0.0
    return Bounded(float(low), float(value), float(high))
