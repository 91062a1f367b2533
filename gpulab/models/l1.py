"""L1, modeled: which share of a load's sectors an SM has to ask of L2.

The trace holds what the blocks of two SMs did to a sample of lines. In the order in which the warps of an SM take turns,
these accesses pass a cache of 32-byte sectors that replaces the least recently used line. Loads allocate; stores write
through and allocate nothing, atomics are done in L2. A cache for a share of the lines has that share of the capacity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.models.access import LINE_BYTES
from gpulab.models.residency import clocks_on_sms
from gpulab.models.reuse import SECTORS_OF, SectorUses, Uses
from gpulab.models.run import KernelRun
from gpulab.models.tally import FormLike
from gpulab.trace import Trace


@dataclass(frozen=True)
class SmLoads:
    """What the loads of an SM (or two) did, in order.

    Attributes
    ----------
    asked : numpy.ndarray
        Sectors that each instruction asked for, in the sample, float64.
    uses : SectorUses
        Each time that one was asked for; of several requests in one event only the first can miss.
    instructions : numpy.ndarray
        The instruction of each of these uses.
    rate : float
        Share of the lines that are in it.
    """

    asked: np.ndarray
    uses: SectorUses
    instructions: np.ndarray
    rate: float

    def missed(self, l1_bytes: float) -> np.ndarray:
        """Sectors that an L1 of this size has not, float64, one for each instruction."""
        missing = self.uses.missing(l1_bytes / LINE_BYTES * self.rate)
        return np.bincount(self.instructions[missing], minlength=len(self.asked)).astype(float)


def loads_on_sms(trace: Trace, cached: np.ndarray, blocks_per_sm: int) -> SmLoads:
    """The loads that look into L1, in the order of an SM that holds so many blocks.

    Parameters
    ----------
    trace : Trace
    cached : numpy.ndarray
        For each instruction whether it is a load that L1 may serve, bool.
    blocks_per_sm : int
    """
    events = trace.near.events
    sms = _sms(trace, events["block"])
    clocks = clocks_on_sms(events, sms, blocks_per_sm)
    kept = np.flatnonzero(cached[events["instruction"]])
    kept = kept[np.lexsort((clocks[kept], sms[kept]))]
    events, sms = events[kept], sms[kept]
    # Two SMs have nothing in common, so one that follows the other is a walk over other lines.
    uses = Uses(events["line"].astype(np.int64) * 2 + sms, events["sectors"]).of_sectors()
    asked = np.bincount(events["instruction"], SECTORS_OF[events["sectors"]] * events["count"], len(cached))
    return SmLoads(asked, uses, events["instruction"][uses.events], trace.near.rate)


def _sms(trace: Trace, blocks: np.ndarray) -> np.ndarray:
    """On which SM each block ran: 0, or 1."""
    traced = np.unique(blocks) if trace.near.blocks is None else trace.near.blocks
    # Blocks that follow each other share an SM only if the GPU has no other.
    sms = 1 if (np.diff(traced) == 1).all() else trace.near_sms
    return np.searchsorted(traced, blocks) % sms


def cached_loads(run: KernelRun) -> np.ndarray:
    """For each instruction whether it is a load of global memory that L1 may serve, bool."""
    tally = run.tally()
    return tally.where(kinds=("load",), spaces=("global",)) & np.array([not _passes_l1(form) for form in tally.forms])


def _passes_l1(form: FormLike) -> bool:
    """Whether a load goes to L2 at once: by its cache operator, or because it must see what other SMs stored."""
    strong = form.semantics not in (None, "weak") and form.scope != "cta"
    return form.cache in ("cg", "cv") or strong


def miss_shares(loads: SmLoads, l1_bytes: float) -> np.ndarray:
    """Share of each instruction's load sectors that miss in L1, float64.

    An instruction that is not in the sample of all lines was not executed by these blocks: it gets the mean (1 if there is
    none). If only some lines are sampled, it goes to few lines again and again, and they are in L1.
    """
    asked, missed = loads.asked, loads.missed(l1_bytes)
    mean = missed.sum() / asked.sum() if asked.any() else 1.0
    unknown = 0.0 if loads.rate < 1 and asked.any() else mean
    return np.divide(missed, asked, out=np.full(len(asked), unknown), where=asked > 0)
