"""The time model: a soft maximum over what could limit a launch, each limit in seconds.

Every term is the time that one resource needs for the counted work at its full rate; the latency term is the time that
the waves of blocks would take if nothing but their own dependences held them up. The terms join as
``((max of rates)^p + latency^p)^(1/p) + launch`` with p = 3: at a ridge a hard maximum errs by up to half. No constant
is fitted to a run time; rates and latencies come from the catalog.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from gpulab.gpus import Gpu
from gpulab.models.access import SECTOR_BYTES
from gpulab.models.chain import chain_cycles
from gpulab.models.costs import issue_slots, pipe_cycles
from gpulab.models.occupancy import Occupancy
from gpulab.models.run import KernelRun
from gpulab.models.tally import Tally
from gpulab.models.traffic import ATOMICS, Bounded, Traffic, traffic

SOFTNESS = 3.0
#: Relative error of each term: how far off published models of this kind are where that resource limits a kernel.
UNCERTAINTY = {
    "issue": 0.25,
    "fma": 0.25,
    "alu": 0.25,
    "fp16": 0.25,
    "fp64": 0.15,
    "sfu": 0.25,
    "tensor": 0.25,
    "shared": 0.15,
    "l1": 0.2,
    "l2": 0.25,
    "dram": 0.1,
    "latency": 0.3,
    "barriers": 0.3,
    "launch": 0.3,
}
QUEUES = ("issue", "shared", "l1")
PIPES = ("fma", "alu", "fp64", "fp16", "sfu", "tensor")


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """How long a launch takes.

    Attributes
    ----------
    seconds, low, high : float
        The estimate and its honest range, in s.
    source : str
        ``modeled`` or ``measured``.
    bound_by : str
        The largest term: ``dram``, ``l2``, ``l1``, ``shared``, ``issue``, ``fma`` (FP32 and integer multiplication),
        ``alu`` (other integer work, logic, comparisons), ``fp64``, ``fp16``, ``sfu``, ``tensor``,
        ``latency`` or ``launch``.
    terms : dict of str to float
        What each resource alone would take, in s; ``barriers`` is what blocks wait for their own warps between barriers.
    clock_hz : float or None
        SM clock assumed (modeled), Hz; None if it was not recorded.
    """

    seconds: float
    low: float
    high: float
    source: str
    bound_by: str
    terms: dict[str, float]
    clock_hz: float | None


def estimate(
    run: KernelRun, gpu: Gpu, occupancy: Occupancy | None = None, moved: Traffic | None = None
) -> TimeEstimate:
    """Estimate the time of a launch on a GPU.

    Parameters
    ----------
    run : KernelRun
    gpu : Gpu
    occupancy : Occupancy, optional
        Of this launch on this GPU, if it is at hand.
    moved : Traffic, optional
        Likewise.
    """
    occupancy = occupancy or run.occupancy(gpu)
    moved = moved or traffic(run, gpu, occupancy)
    terms = _terms(run, gpu, occupancy, moved)
    seconds = _joined(terms)
    error = _uncertainty(terms)
    dram = moved.dram_likely
    low = _joined(_with_dram(terms, dram, dram.low)) * (1 - error)
    high = _joined(_with_dram(terms, dram, dram.high)) * (1 + error)
    bound_by = _largest(terms)
    return TimeEstimate(seconds, low, high, "modeled", bound_by, terms, gpu.clock_hz)


def without_tail(time: TimeEstimate, blocks: int, gpu: Gpu, occupancy: Occupancy) -> TimeEstimate:
    """A modeled time, were the last wave as full as the others and each SM's share of the blocks the same."""
    waves, each = blocks / (gpu.sm_count * occupancy.blocks_per_sm), blocks / gpu.sm_count
    shares = dict.fromkeys(("latency", "barriers"), waves / math.ceil(waves))
    shares |= dict.fromkeys((*QUEUES, *PIPES), each / math.ceil(each))
    terms = {name: value * shares.get(name, 1.0) for name, value in time.terms.items()}
    seconds = _joined(terms)
    low, high = (bound * seconds / time.seconds for bound in (time.low, time.high))
    return dataclasses.replace(time, seconds=seconds, low=low, high=high, terms=terms, bound_by=_largest(terms))


def _terms(run: KernelRun, gpu: Gpu, occupancy: Occupancy, moved: Traffic) -> dict[str, float]:
    cycles = _cycles(run, gpu)
    # The SM with the most blocks ends last; with few blocks that is more than its fair share.
    share = -(-run.config.blocks // gpu.sm_count) / run.config.blocks
    terms = {name: value * share / gpu.clock_hz for name, value in cycles.items()}
    terms["l2"] = _l2_sectors(run, gpu, moved) * SECTOR_BYTES / (gpu.l2_bandwidth_gb_per_s * 1e9)
    terms["dram"] = moved.dram.value * SECTOR_BYTES / gpu.reachable_dram_bytes_per_s
    waves = -(-run.config.blocks // (gpu.sm_count * occupancy.blocks_per_sm))
    terms["latency"] = waves * (chain_cycles(run, gpu, moved) / gpu.clock_hz + gpu.block_turnaround_s)
    has_barriers = run.tally().total("warp_instructions", kinds=("barrier",)) > 0
    # Between barriers a block does one thing at a time: what its own warps queue for, they do not hide from each other.
    queue = max(cycles["issue"], cycles["shared"] + cycles["l1"]) / run.config.blocks if has_barriers else 0.0
    terms["barriers"] = waves * queue / gpu.clock_hz
    terms["launch"] = gpu.launch_overhead_s
    return terms


def _largest(terms: dict[str, float]) -> str:
    """The name of the largest term; blocks that mostly queue between barriers are bound by what they queue for."""
    alone = terms["latency"] + terms["barriers"]
    rates = {name: value for name, value in terms.items() if name not in ("latency", "barriers")}
    if alone > max(rates.values()) and terms["barriers"] > terms["latency"]:
        return max(QUEUES, key=lambda name: terms[name])
    return max({**rates, "latency": alone}, key=lambda name: {**rates, "latency": alone}[name])


def _cycles(run: KernelRun, gpu: Gpu) -> dict[str, float]:
    """SM cycles that the whole grid needs of each resource of an SM, were there only one SM."""
    tally = run.tally()
    work = run.counters.warp_instructions
    slots = np.array([issue_slots(form) for form in tally.forms])
    pipes = [pipe_cycles(form, gpu) for form in tally.forms]
    cycles = {"issue": float(work @ slots) / gpu.schedulers_per_sm}
    for name in PIPES:
        cycles[name] = float(work @ np.array([pipe.get(name, 0.0) for pipe in pipes]))
    cycles["shared"] = _shared_cycles(tally, gpu)
    cycles["l1"] = _l1_cycles(tally, gpu)
    return cycles


def _l2_sectors(run: KernelRun, gpu: Gpu, moved: Traffic) -> float:
    """Sectors that L2 is busy for: partial stores cost more, atomics to one sector come one after another."""
    partial = moved.l2_write_partial * (gpu.partial_store_cost - 1)
    serial = run.tally().total("thread_instructions_pred_on", kinds=ATOMICS, spaces=("global",))
    return moved.l2_read + moved.l2_write + partial + max(serial, moved.l2_atomic)


def _shared_cycles(tally: Tally, gpu: Gpu) -> float:
    narrow = np.array([form.access_bytes <= 4 for form in tally.forms])
    least = np.where(narrow, gpu.lsu_cycles_per_request, 1.0) * tally.shared("requests")
    passes = np.where(narrow, gpu.shared_cycles_per_wavefront, 1.0) * tally.shared("wavefronts")
    return float(np.maximum(passes, least).sum())


def _l1_cycles(tally: Tally, gpu: Gpu) -> float:
    counters, mask = tally.counters, tally.where(spaces=("global", "local"))
    narrow = np.array([form.access_bytes <= 4 for form in tally.forms])
    least = np.where(narrow, gpu.lsu_cycles_per_request, 1.0) * counters.requests
    tags = gpu.l1_tag_cycles * counters.requests + gpu.l1_tag_cycles_per_line * counters.lines
    return float(np.maximum.reduce([counters.wavefronts, tags, least])[mask].sum())


def _joined(terms: dict[str, float]) -> float:
    # Shared memory and L1 are one data stage, so their times add up.
    stage = terms["shared"] + terms["l1"]
    others = max(value for name, value in terms.items() if name not in (*QUEUES, "latency", "barriers", "launch"))
    overlapped = _soft_maximum(max(others, stage, terms["issue"]), terms["latency"])
    in_phases = _soft_maximum(others, terms["latency"] + terms["barriers"])
    return max(overlapped, in_phases) + terms["launch"]


def _soft_maximum(one: float, other: float) -> float:
    return (one**SOFTNESS + other**SOFTNESS) ** (1 / SOFTNESS)


def _with_dram(terms: dict[str, float], dram: Bounded, sectors: float) -> dict[str, float]:
    return {**terms, "dram": terms["dram"] * sectors / dram.value} if dram.value else terms


def _uncertainty(terms: dict[str, float]) -> float:
    """Mean of the terms' errors, weighted by what each contributes."""
    weights = {name: value**SOFTNESS for name, value in terms.items()}
    total = sum(weights.values())
    return sum(weight * UNCERTAINTY[name] for name, weight in weights.items()) / total
