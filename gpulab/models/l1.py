"""L1, modeled: which share of a load's sectors an SM has to ask of L2.

The trace holds what the blocks of two SMs did to a sample of lines. In the order in which the warps of an SM take turns,
these accesses pass a cache of 32-byte sectors that replaces the least recently used line. Loads allocate; stores write
through and allocate nothing, atomics are done in L2. A cache for a share of the lines has that share of the capacity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.models.residency import clocks_on_sms
from gpulab.models.reuse import Uses
from gpulab.models.run import KernelRun
from gpulab.models.tally import FormLike
from gpulab.trace import Stream

LINE_BYTES = 128
_SECTORS_OF = np.array([mask.bit_count() for mask in range(256)])


@dataclass(frozen=True)
class SmLoads:
    """What the loads of an SM (or two) did, in order.

    Attributes
    ----------
    uses : Uses
        One for each event.
    instructions, counts : numpy.ndarray
        The instruction of each event, and how many accesses it stands for.
    rate : float
        Share of the lines that are in it.
    """

    uses: Uses
    instructions: np.ndarray
    counts: np.ndarray
    rate: float

    def sectors(self, size: int) -> np.ndarray:
        """Sectors looked up by each of so many instructions, in the sample, float64."""
        found = _SECTORS_OF[self.uses.sectors] * self.counts.astype(float)
        return np.bincount(self.instructions, found, size)

    def misses(self, size: int, l1_bytes: float) -> np.ndarray:
        """Those of them that an L1 of this size has not, float64."""
        missing = self.uses.first_in_stay(l1_bytes / LINE_BYTES * self.rate).sum(axis=1)
        return np.bincount(self.instructions, missing, size)


def loads_on_sms(stream: Stream, cached: np.ndarray, blocks_per_sm: int) -> SmLoads:
    """The loads that look into L1, in the order of an SM that holds so many blocks.

    Parameters
    ----------
    stream : Stream
        The near stream of a trace.
    cached : numpy.ndarray
        For each instruction whether it is a load that L1 may serve, bool.
    blocks_per_sm : int
    """
    events = stream.events
    sms = _sms(stream, events["block"])
    clocks = clocks_on_sms(events, sms, blocks_per_sm)
    kept = np.flatnonzero(cached[events["instruction"]])
    kept = kept[np.lexsort((clocks[kept], sms[kept]))]
    events, sms = events[kept], sms[kept]
    # Two SMs have nothing in common, so one that follows the other is a walk over other lines.
    lines = events["line"].astype(np.int64) * 2 + sms
    return SmLoads(Uses(lines, events["sectors"]), events["instruction"], events["count"], stream.rate)


def _sms(stream: Stream, blocks: np.ndarray) -> np.ndarray:
    """On which of the two SMs each block ran, 0 or 1: of the blocks that are traced, they get every other one."""
    traced = np.unique(blocks) if stream.blocks is None else stream.blocks
    if (np.diff(traced) == 1).all():  # blocks that follow each other share an SM only if it is the only one
        return np.zeros(len(blocks), np.int64)
    return np.searchsorted(traced, blocks) % 2


def cached_loads(run: KernelRun) -> np.ndarray:
    """For each instruction whether it is a load of global memory that L1 may serve, bool."""
    tally = run.tally()
    return tally.where(kinds=("load",), spaces=("global",)) & np.array([not _passes_l1(form) for form in tally.forms])


def _passes_l1(form: FormLike) -> bool:
    """Whether a load goes to L2 at once: by its cache operator, or because it must see what other SMs stored."""
    strong = form.semantics not in (None, "weak") and form.scope != "cta"
    return form.cache in ("cg", "cv") or strong


def miss_shares(loads: SmLoads, size: int, l1_bytes: float) -> np.ndarray:
    """Share of each instruction's load sectors that miss in L1, float64.

    An instruction that is not in the sample of all lines was not executed by these blocks: it gets the mean (1 if there is
    none). If only some lines are sampled, it goes to few lines again and again, and they are in L1.
    """
    looked_up, missed = loads.sectors(size), loads.misses(size, l1_bytes)
    mean = missed.sum() / looked_up.sum() if looked_up.any() else 1.0
    unknown = 0.0 if loads.rate < 1 and looked_up.any() else mean
    return np.divide(missed, looked_up, out=np.full(size, unknown), where=looked_up > 0)
