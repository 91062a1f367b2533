"""What the caches of a GPU do for a launch, *modeled* from the trace of a sample of its lines.

See `gpulab.models.l1` and `gpulab.models.l2`. The orders of the accesses and their distances are kept with the trace, so
that another size of a cache, or a finding's "what if", costs no more than a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from gpulab.counters import Counters
from gpulab.gpus import Gpu
from gpulab.models.access import SECTOR_BYTES
from gpulab.models.carve_out import l1_bytes
from gpulab.models.l1 import cached_loads, loads_on_sms, miss_shares
from gpulab.models.l2 import GpuAccesses, accesses_in_waves
from gpulab.models.occupancy import Occupancy
from gpulab.models.run import KernelRun
from gpulab.trace import Trace

SIZES = (np.inf, 2.0, 1.0, 0.5)
"""Sizes of L2 that are asked for, in units of its own. Twice and half are as far off as this model plausibly is: the halves of
A100's and H100's L2 both keep what all SMs read, and the order of blocks within a wave is not known."""

_KEPT_ORDERS = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caches:
    """What the caches do.

    Attributes
    ----------
    l1_bytes : int
        Size of L1 beside shared memory.
    l1_miss_shares : numpy.ndarray
        Share of each instruction's load sectors that miss in L1, float64, 0 to 1.
    reads, writes : tuple of float, or None
        How often each different sector is read from (written to) DRAM, for each of `SIZES`; None if that is not known.
    """

    l1_bytes: int
    l1_miss_shares: np.ndarray
    reads: tuple[float, ...] | None
    writes: tuple[float, ...] | None


def caches(run: KernelRun, gpu: Gpu, occupancy: Occupancy) -> Caches:
    """Model the caches of a GPU for a launch.

    Parameters
    ----------
    run : KernelRun
    gpu : Gpu
    occupancy : Occupancy
        Of this launch on this GPU: it says how many blocks share the caches at once.
    """
    size, trace = l1_bytes(gpu, occupancy, run.shared_bytes), run.counters.trace
    instructions, slots = len(run.program.forms), occupancy.blocks_per_sm
    if trace is None:
        return Caches(size, np.ones(instructions), None, None)
    cached = cached_loads(run)
    loads = _kept(trace, ("l1", slots), lambda: loads_on_sms(trace.near, cached, slots))
    shares = np.where(cached, miss_shares(loads, size), 1.0)
    resident = gpu.sm_count * slots
    duration = float(run.counters.warp_instructions.sum() / max(1, run.counters.warps))
    done = _kept(trace, ("l2", resident), lambda: accesses_in_waves(trace.far, resident, duration))
    if run.counters.sampled_blocks is None:
        reads = tuple(done.reads(size * gpu.l2_bytes) for size in SIZES)
        writes = tuple(done.writes(size * gpu.l2_bytes) for size in SIZES)
    else:
        reads, writes = sampled(run.counters, trace, done, gpu.l2_bytes, resident)
    return Caches(size, shares, reads if done.loaded else None, writes if done.stored else None)


def sampled(
    counters: Counters, trace: Trace, done: GpuAccesses, l2_bytes: int, resident: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The same for a launch of which only some blocks ran, which tell of one wave at most.

    How many different sectors a wave uses lies on the way from what the traced blocks use to what the whole grid uses, in
    proportion to a power of the number of blocks. What L2 does not keep until the next wave, each wave moves again.
    """
    traced, grid = len(trace.far.blocks), counters.blocks  # type: ignore[arg-type]
    wave, part = min(grid, resident), min(1.0, traced / resident)
    loaded = _in_a_wave(done.loaded / done.rate, counters.distinct_sectors_read, traced, wave, grid)
    stored = _in_a_wave(done.stored / done.rate, counters.distinct_sectors_written, traced, wave, grid)
    found = []
    for size in SIZES:
        kept = min(1.0, size * l2_bytes / max(1.0, (loaded + stored) * SECTOR_BYTES))
        sizes = size * l2_bytes * part
        found.append(
            [
                inside(sizes) * max(1.0, grid / wave * each / max(1, total)) ** (1 - kept)
                for inside, each, total in (
                    (done.reads, loaded, counters.distinct_sectors_read),
                    (done.writes, stored, counters.distinct_sectors_written),
                )
            ]
        )
    reads, writes = zip(*found, strict=True)
    return reads, writes


def _in_a_wave(traced_sectors: float, all_sectors: float, traced: int, wave: int, grid: int) -> float:
    """Different sectors that a wave of blocks uses, from those of the blocks traced and of the whole grid."""
    if traced >= grid or not traced_sectors or all_sectors <= traced_sectors:
        return min(traced_sectors, all_sectors)
    exponent = min(1.0, np.log(all_sectors / traced_sectors) / np.log(grid / traced))
    return float(traced_sectors * (wave / traced) ** exponent)


def _kept(trace: Trace, key: tuple[object, ...], make: Callable[[], T]) -> T:
    """What was made of a trace before; the last ones are kept."""
    if key not in trace.made:
        if len(trace.made) >= _KEPT_ORDERS:
            trace.made.clear()
        trace.made[key] = make()
    return trace.made[key]  # type: ignore[return-value]
