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
        Sectors that each instruction asked for, in the sample, float64: in the blocks that the SM began with, and in those
        that followed; shape (2, instructions).
    uses : SectorUses
        Each time that one was asked for; of several requests in one event only the first can miss.
    places : numpy.ndarray
        Where each of these uses counts in `asked`, flattened.
    blocks, slots : float and int
        Blocks that are traced of an SM, and that it holds at once.
    rate : float
        Share of the lines that are in it.
    """

    asked: np.ndarray
    uses: SectorUses
    places: np.ndarray
    blocks: float
    slots: int
    rate: float

    def missed(self, l1_bytes: float, blocks: float) -> np.ndarray:
        """Sectors that an L1 of this size has not, as in `asked`; `blocks` is how many an SM runs in all."""
        # If fewer are traced than are there at once, they have their share of L1.
        there = min(1.0, self.blocks / min(self.slots, max(1.0, blocks)))
        missing = self.uses.missing(l1_bytes / LINE_BYTES * self.rate * there)
        return np.bincount(self.places[missing], minlength=self.asked.size).reshape(self.asked.shape)

    def weights(self, blocks: float) -> np.ndarray:
        """How many blocks those that the SM began with, and those that followed, stand for: shape (2, 1)."""
        following = self.blocks - self.slots
        return np.array([[1.0], [max(1.0, (blocks - self.slots) / following) if following > 0 else 1.0]])


def loads_on_sms(trace: Trace, cached: np.ndarray, slots: int) -> SmLoads:
    """The loads that look into L1, in the order of an SM that holds so many blocks.

    Parameters
    ----------
    trace : Trace
    cached : numpy.ndarray
        For each instruction whether it is a load that L1 may serve, bool.
    slots : int
    """
    events = trace.near.events
    sms, turns, blocks = _turns(trace)
    clocks = clocks_on_sms(events, sms, slots)
    kept = np.flatnonzero(cached[events["instruction"]])
    kept = kept[np.lexsort((clocks[kept], sms[kept]))]
    events, sms = events[kept], sms[kept]
    places = events["instruction"] + len(cached) * (turns[kept] >= slots)
    # Two SMs have nothing in common, so one that follows the other is a walk over other lines.
    uses = Uses(events["line"].astype(np.int64) * 2 + sms, events["sectors"]).of_sectors()
    asked = np.bincount(places, SECTORS_OF[events["sectors"]] * events["count"], 2 * len(cached)).reshape(2, -1)
    return SmLoads(asked, uses, places[uses.events], blocks, slots, trace.near.rate)


def _turns(trace: Trace) -> tuple[np.ndarray, np.ndarray, float]:
    """Of each event the SM of its block (0 or 1), and how many blocks began there before; how many each SM has."""
    blocks = np.unique(trace.near.events["block"]) if trace.near.blocks is None else trace.near.blocks
    # Blocks that follow each other share an SM only if the GPU has no other.
    sms = 1 if (np.diff(blocks) == 1).all() else trace.near_sms
    numbers = np.searchsorted(blocks, trace.near.events["block"])
    return numbers % sms, numbers // sms, max(1.0, len(blocks) / sms)


def cached_loads(run: KernelRun) -> np.ndarray:
    """For each instruction whether it is a load of global memory that L1 may serve, bool."""
    tally = run.tally()
    return tally.where(kinds=("load",), spaces=("global",)) & np.array([not _passes_l1(form) for form in tally.forms])


def _passes_l1(form: FormLike) -> bool:
    """Whether a load goes to L2 at once: by its cache operator, or because it must see what other SMs stored."""
    strong = form.semantics not in (None, "weak") and form.scope != "cta"
    return form.cache in ("cg", "cv") or strong


def miss_shares(loads: SmLoads, l1_bytes: float, blocks: float) -> np.ndarray:
    """Share of each instruction's load sectors that miss in L1, float64.

    An instruction that is not in a sample of all lines was not executed by these blocks: it gets the mean (1 if there is
    none). If lines are missing in the sample, it goes to few of them again and again, and they are in L1.

    Parameters
    ----------
    loads : SmLoads
    l1_bytes : float
    blocks : float
        How many an SM runs in all.
    """
    weights = loads.weights(blocks)
    asked = (loads.asked * weights).sum(axis=0)
    missed = (loads.missed(l1_bytes, blocks) * weights).sum(axis=0)
    mean = missed.sum() / asked.sum() if asked.any() else 1.0
    unknown = 0.0 if loads.rate < 1 else mean
    return np.divide(missed, asked, out=np.full(len(asked), unknown), where=asked > 0)
