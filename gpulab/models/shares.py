"""Which instructions the modeled time is spent on: each term of the time model given to those that cause it.

A term weighs as much as it contributes to the soft maximum (its third power), and within it an instruction has the share of
that resource's work that is its own; a wait belongs to what is waited for. What a launch costs whatever it does (`launch`)
is nobody's. The shares are *modeled*, and add up to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gpulab.gpus import Gpu
from gpulab.models.chain import chain_shares
from gpulab.models.costs import issue_slots, pipe_cycles
from gpulab.models.run import KernelRun
from gpulab.models.timing import PIPES, SOFTNESS, TimeEstimate
from gpulab.models.traffic import ATOMICS, Traffic


def time_shares(run: KernelRun, gpu: Gpu, traffic: Traffic, time: TimeEstimate) -> np.ndarray:
    """The share of the modeled time that each PTX instruction has.

    Parameters
    ----------
    run : KernelRun
    gpu : Gpu
    traffic : Traffic
        Of the launch on this GPU.
    time : TimeEstimate
        Likewise; of a measured time its modeled terms are taken.

    Returns
    -------
    numpy.ndarray
        Shape (instructions,), float64; adds up to 1, or is all 0 if nothing ran.
    """
    work = _Work(run, gpu, traffic)
    shares = np.zeros(len(run.program.forms))
    terms = {name: seconds for name, seconds in time.terms.items() if name != "launch" and seconds > 0}
    largest = max(terms.values(), default=1.0)
    for name, seconds in terms.items():
        own = work.of(name)
        if own.sum() > 0:
            shares += (seconds / largest) ** SOFTNESS * own / own.sum()
    if not shares.any():
        shares = work.of("issue")
    return shares / shares.sum() if shares.any() else shares


def joined_shares(shares: Sequence[np.ndarray], seconds: Sequence[float]) -> np.ndarray:
    """The shares of several launches that ran one after the other, in their order, by how long each takes."""
    total = sum(seconds)
    return np.concatenate([share * time / total for share, time in zip(shares, seconds, strict=True)])


class _Work:
    """How much of each resource every instruction takes, in any unit."""

    def __init__(self, run: KernelRun, gpu: Gpu, traffic: Traffic) -> None:
        self._run, self._gpu, self._traffic = run, gpu, traffic
        self._tally = run.tally()

    def of(self, term: str) -> np.ndarray:
        """One for each instruction, float64."""
        if term in PIPES:
            each = [pipe_cycles(form, self._gpu).get(term, 0.0) for form in self._tally.forms]
            return self._run.counters.warp_instructions * np.array(each, float)
        known: dict[str, Callable[[], np.ndarray]] = {
            "shared": lambda: self._tally.shared("wavefronts").astype(float),
            "l1": self._l1,
            "l2": self._l2,
            "dram": self._l2,
            "latency": lambda: chain_shares(self._run, self._gpu, self._traffic),
            "barriers": lambda: self._issue() + self._l1() + self._tally.shared("wavefronts"),
        }
        return known.get(term, self._issue)()

    def _issue(self) -> np.ndarray:
        return self._run.counters.warp_instructions * np.array([issue_slots(form) for form in self._tally.forms])

    def _l1(self) -> np.ndarray:
        counters = self._run.counters
        passes = np.maximum(counters.wavefronts, counters.requests).astype(float)
        return np.where(self._tally.where(spaces=("global", "local")), passes, 0.0)

    def _l2(self) -> np.ndarray:
        """Sectors that go to L2: those that loads miss, all of stores and atomics."""
        writes = self._tally.where(kinds=("store", *ATOMICS), spaces=("global",))
        return self._traffic.l1_misses + np.where(writes, self._run.counters.sectors, 0.0)
