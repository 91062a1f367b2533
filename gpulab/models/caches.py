"""What the caches of a GPU do for a launch, *modeled* from the trace of a sample of its lines.

See `gpulab.models.l1` and `gpulab.models.l2`. The orders of the accesses and their distances are kept with the trace, so
that another size of a cache, or a finding's "what if", costs no more than a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from gpulab.gpus import Gpu
from gpulab.models.carve_out import l1_bytes
from gpulab.models.l1 import cached_loads, loads_on_sms, miss_shares
from gpulab.models.l2 import accesses_in_waves
from gpulab.models.occupancy import Occupancy
from gpulab.models.run import KernelRun
from gpulab.models.sampled_l2 import often
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
    loads = _kept(trace, ("l1", slots), lambda: loads_on_sms(trace, cached, slots))
    shares = np.where(cached, miss_shares(loads, size, run.config.blocks / gpu.sm_count), 1.0)
    resident = gpu.sm_count * slots
    duration = float(run.counters.warp_instructions.sum() / max(1, run.counters.warps))
    done = _kept(trace, ("l2", resident), lambda: accesses_in_waves(trace.far, resident, duration))
    l2_sizes = [size * gpu.l2_bytes for size in SIZES]
    if trace.arrays is None:
        reads, writes = tuple(map(done.reads, l2_sizes)), tuple(map(done.writes, l2_sizes))
    else:
        reads, writes = often(trace, done, run.config.blocks, resident, l2_sizes)
    return Caches(size, shares, reads if done.loaded else None, writes if done.stored else None)


def _kept(trace: Trace, key: tuple[object, ...], make: Callable[[], T]) -> T:
    """What was made of a trace before; the last ones are kept."""
    if key not in trace.made:
        if len(trace.made) >= _KEPT_ORDERS:
            trace.made.clear()
        trace.made[key] = make()
    return trace.made[key]  # type: ignore[return-value]
