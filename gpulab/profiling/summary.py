"""The six lines that a profile shows: name, value, ideal, verdict, why, remedy."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.gpus import Gpu
from gpulab.models.access import SECTOR_BYTES
from gpulab.models.costs import tensor_rates
from gpulab.models.findings import NOTABLE_GAIN, TERM_WORDS, Finding
from gpulab.models.metric import Sources
from gpulab.models.occupancy import Occupancy
from gpulab.models.timing import TimeEstimate
from gpulab.units import range_text, seconds_text, three_digits

GOOD, FAIR, POOR, NONE = "good", "fair", "poor", ""


@dataclass(frozen=True, slots=True)
class Row:
    """One of the six lines.

    Attributes
    ----------
    name, value, ideal : str
    verdict : str
        ``good``, ``fair``, ``poor``, or empty where there is nothing to judge.
    why, remedy : str
    """

    name: str
    value: str
    ideal: str
    verdict: str
    why: str
    remedy: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts in order."""
        return self.name, self.value, self.ideal, self.verdict, self.why, self.remedy


@dataclass(frozen=True, slots=True)
class Facts:
    """What the six lines are made of; `sources` is None if nothing was counted."""

    gpu: Gpu
    time: TimeEstimate
    occupancy: Occupancy
    sources: Sources | None
    findings: list[Finding]


def summary(facts: Facts) -> tuple[Row, ...]:
    """The six lines of a profile."""
    return (
        _time(facts),
        _global(facts, "global loads", "load"),
        _global(facts, "global stores", "store"),
        _shared(facts),
        _lanes(facts),
        _occupancy(facts),
    )


def _remedy(facts: Facts, *kinds: str, word: str = "") -> str:
    for finding in facts.findings:
        if finding.kind in kinds and word in finding.message:
            place = f"Line {finding.line}: " if finding.line else ""
            return f"{place}{finding.remedy} {finding.gain_words}".rstrip()
    return ""


def _verdict(share: float, good: float, fair: float) -> str:
    return GOOD if share >= good else FAIR if share >= fair else POOR


def _time(facts: Facts) -> Row:
    time = facts.time
    value = f"{seconds_text(time.seconds)} ({range_text(time.low, time.high)}, {time.source})"
    why = f"{TERM_WORDS.get(time.bound_by, 'nothing was counted, so it is unknown what')} sets the pace"
    if facts.sources is None:
        return Row("time", value, "", NONE, why)
    best = _least_seconds(facts.sources, facts.gpu)
    helpful = [finding for finding in facts.findings if finding.gain and finding.gain >= NOTABLE_GAIN]
    remedy = f"First: {helpful[0].kind}, up to {helpful[0].gain:.1f} times faster (modeled)." if helpful else ""
    if time.bound_by == "launch":
        remedy = "Give a launch more work: a larger problem, or several steps in one kernel."
    return Row("time", value, f"{seconds_text(best)}", _verdict(best / time.seconds, 0.7, 0.35), why, remedy)


def _least_seconds(sources: Sources, gpu: Gpu) -> float:
    """What the GPU needs at its full rates to move each byte once and to do the arithmetic."""
    lanes = {"fp32": gpu.fp32_lanes_per_sm, "fp64": gpu.fp64_lanes_per_sm, "fp16": gpu.fp16_lanes_per_sm}
    arithmetic = max(
        sources.tally.flop((pipe,)) / (2 * count * gpu.sm_count * gpu.clock_hz) for pipe, count in lanes.items()
    )
    tensor = tensor_rates(sources.tally, gpu)
    if tensor:
        fastest = max(tensor.values()) * gpu.sm_count * gpu.clock_hz
        arithmetic = max(arithmetic, sources.tally.flop(("tensor",)) / fastest)
    moving = sources.traffic.dram.low * SECTOR_BYTES / (gpu.dram_bandwidth_gb_per_s * 1e9)
    return max(arithmetic, moving)


def _global(facts: Facts, name: str, kind: str) -> Row:
    counts = _counts(facts, "global", kind, "sectors", "sectors_ideal", "requests", "bytes_asked")
    if counts is None:
        return Row(name, "not counted", "", NONE, "")
    sectors, ideal, requests, asked = counts
    if not requests:
        return Row(name, "none", "", NONE, "")
    used = 100 * asked / (SECTOR_BYTES * sectors)
    return Row(
        name,
        f"{three_digits(sectors / requests)} sectors/request",
        three_digits(ideal / requests),
        _verdict(ideal / sectors, 0.9, 0.5),
        f"{three_digits(min(used, 100))} % of the bytes moved are used"
        if used <= 100
        else "lanes share sectors, so less is moved than asked for",
        _remedy(facts, "uncoalesced", word=f"Global {kind}s"),
    )


def _shared(facts: Facts) -> Row:
    counts = _counts(facts, "shared", None, "wavefronts", "wavefronts_ideal", "requests")
    if counts is None:
        return Row("shared memory", "not counted", "", NONE, "")
    passes, ideal, requests = counts
    if not requests:
        return Row("shared memory", "none", "", NONE, "")
    return Row(
        "shared memory",
        f"{three_digits(passes / requests)} wavefronts/request",
        three_digits(ideal / requests),
        _verdict(ideal / passes, 0.9, 0.5),
        f"{passes - ideal:,} bank conflicts" if passes > ideal else "no bank conflicts",
        _remedy(facts, "bank-conflict"),
    )


def _lanes(facts: Facts) -> Row:
    if facts.sources is None:
        return Row("active lanes", "not counted", "", NONE, "")
    tally = facts.sources.tally
    executed, active = tally.total("warp_instructions"), tally.total("thread_instructions")
    parted = tally.total("divergent_branches")
    if not executed:
        return Row("active lanes", "none", "", NONE, "")
    return Row(
        "active lanes",
        f"{three_digits(active / executed)} of 32",
        "32",
        _verdict(active / executed / 32, 0.9, 0.6),
        f"{parted:,} divergent branch{'es' * (parted != 1)}" if parted else "no divergent branches",
        _remedy(facts, "divergence"),
    )


def _occupancy(facts: Facts) -> Row:
    held = facts.occupancy
    verdict = _verdict(held.theoretical, 0.5, 0.25)
    if verdict == GOOD and any(finding.kind == "occupancy" for finding in facts.findings):
        verdict = FAIR  # half is enough for most kernels, but this one waits
    return Row(
        "occupancy",
        f"{three_digits(100 * held.theoretical)} %",
        "100 %",
        verdict,
        f"{held.active_warps_per_sm} of {held.max_warps_per_sm} warps per SM, limited by {held.limited_by}",
        _remedy(facts, "occupancy", "small-grid", "tail"),
    )


def _counts(facts: Facts, space: str, kind: str | None, *counters: str) -> list[int] | None:
    if facts.sources is None:
        return None
    kinds = (kind,) if kind else ()
    return [facts.sources.tally.total(counter, kinds=kinds, spaces=(space,)) for counter in counters]
