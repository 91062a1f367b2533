"""Modeled beside published times, and what can be said of many of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import gpulab
from gpulab.errors import ArgumentError
from gpulab.gpus import Gpu
from gpulab.models.timing import TimeEstimate
from validation.records import Launch, Point, PublicLadder

#: Published times that differ by less than this are a tie: no order is expected of them.
TIE = 0.02


@dataclass(frozen=True, slots=True)
class Verdict:
    """A published time and ours.

    Attributes
    ----------
    group, name : str
    gpu : Gpu
        With the clock that the source states, or its boost clock.
    published_s, modeled_s, low_s, high_s : float
        Times of one launch; modeled ones without launching where the source has none of it.
    bound_by : str
    terms : dict of str to float
    point : Point or None
        Where the published figure is not a time of its own.
    """

    group: str
    name: str
    gpu: Gpu
    published_s: float
    modeled_s: float
    low_s: float
    high_s: float
    bound_by: str
    terms: dict[str, float]
    point: Point | None = None

    @property
    def ratio(self) -> float:
        """Modeled over published time."""
        return self.modeled_s / self.published_s

    @property
    def error(self) -> float:
        """Distance from the published time, as a share of it."""
        return abs(self.ratio - 1)

    @property
    def in_range(self) -> bool:
        """Whether the published time lies in the model's range."""
        return self.low_s <= self.published_s <= self.high_s

    def to_json(self) -> dict[str, Any]:
        """For other tools."""
        names = (
            "group",
            "name",
            "published_s",
            "modeled_s",
            "low_s",
            "high_s",
            "bound_by",
            "terms",
            "ratio",
            "in_range",
        )
        return {"gpu": self.gpu.name, "clock_hz": self.gpu.clock_hz, **{name: getattr(self, name) for name in names}}


@cache
def gpu_named(name: str) -> Gpu | None:
    """The GPU of the catalog; None if it has none of this name."""
    try:
        return gpulab.gpu(name)
    except ArgumentError:
        return None


def judge_point(point: Point) -> Verdict | None:
    """Model a point; None if its GPU is not in the catalog."""
    gpu = gpu_named(point.gpu)
    if gpu is None:
        return None
    if point.clock_hz is not None:
        gpu = gpu.replace(name=gpu.name, clock_hz=point.clock_hz)
    time = modeled(point.launch(gpu), gpu)
    launching = time.terms["launch"] if point.amortized else 0.0
    times = (seconds - launching for seconds in (time.seconds, time.low, time.high))
    return Verdict(point.group, point.name, gpu, point.seconds(gpu), *times, time.bound_by, time.terms, point)


def judge_ladder(ladder: PublicLadder) -> list[Verdict]:
    """Model each rung; empty if the GPU is not in the catalog."""
    gpu = gpu_named(ladder.gpu)
    if gpu is None:
        return []
    found = [(rung, modeled(rung.launch, gpu)) for rung in ladder.rungs]
    return [
        Verdict(
            ladder.title, rung.name, gpu, rung.seconds, time.seconds, time.low, time.high, time.bound_by, time.terms
        )
        for rung, time in found
    ]


def modeled(launch: Launch, gpu: Gpu) -> TimeEstimate:
    """The model's time of a launch."""
    profile, _ = launch.run(gpu)
    return profile.time


def kendall_tau(published: Sequence[float], ours: Sequence[float]) -> float:
    """Agreement of two orders: 1 if all pairs agree, -1 if none does. Published ties are left out, ties of ours count 0."""
    total = pairs = 0
    for (one, mine), (other, yours) in combinations(zip(published, ours, strict=True), 2):
        if abs(one - other) <= TIE * max(one, other):
            continue
        pairs += 1
        total += (mine > yours) - (mine < yours) if one > other else (mine < yours) - (mine > yours)
    return total / pairs if pairs else 1.0


def mean_error(verdicts: Iterable[Verdict]) -> float:
    """Mean of the errors."""
    errors = [verdict.error for verdict in verdicts]
    return sum(errors) / len(errors)


def typical_factor(verdicts: Iterable[Verdict]) -> float:
    """How many times too long or too short a time typically is: the geometric mean, whichever way."""
    logs = [abs(math.log(verdict.ratio)) for verdict in verdicts]
    return math.exp(sum(logs) / len(logs))


def share(flags: Iterable[bool]) -> float:
    """The share of true ones."""
    values = list(flags)
    return sum(values) / len(values)


def speed_ups(verdicts: Sequence[Verdict]) -> list[tuple[float, float, float, float]]:
    """For each rung but the first: published and modeled speed-up over the first rung, then over the one before."""
    first = verdicts[0]
    return [
        (
            first.published_s / rung.published_s,
            first.modeled_s / rung.modeled_s,
            before.published_s / rung.published_s,
            before.modeled_s / rung.modeled_s,
        )
        for before, rung in pairwise(verdicts)
    ]
