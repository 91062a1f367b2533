"""`Comparison`: the rungs of a ladder on the same data, checked, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpulab.gpus import Gpu
from gpulab.models.findings import TERM_WORDS
from gpulab.models.roofline import Roofline, roofline
from gpulab.models.timing import TimeEstimate
from gpulab.profiling import documents
from gpulab.profiling.profile import Profile
from gpulab.profiling.table import Table
from gpulab.units import range_text, seconds_text, three_digits

NO_DIFFERENCE = "no clear difference"


@dataclass(frozen=True)
class RungResult:
    """One rung of a comparison.

    Attributes
    ----------
    name, language : str
    correct : bool
        Whether every element lies within the error that rounding explains.
    max_error : float
        Largest absolute difference from the reference.
    message : str
        Empty if correct; else the first wrong element, or the error that ended it.
    profile : Profile or None
        None if the kernel could not be run.
    """

    name: str
    language: str
    correct: bool
    max_error: float
    message: str
    profile: Profile | None


@dataclass(frozen=True, repr=False)
class Comparison:
    """What `gpulab.compare` returns.

    Attributes
    ----------
    ladder : str
    gpu : Gpu
    parameters : mapping
        All parameters of the ladder, the defaults included.
    rungs : tuple of RungResult
        From naive to best.
    """

    ladder: str
    gpu: Gpu
    parameters: Mapping[str, Any]
    rungs: tuple[RungResult, ...]

    def roofline(self) -> Roofline:
        """All rungs on one roofline, as records; `gpulab.plots.plot_roofline` draws it."""
        return roofline(
            self.gpu, [place for rung in self.rungs if rung.profile for place in rung.profile.placed(rung.name)]
        )

    def table(self) -> Table:
        """The rungs side by side: result, time with its range, speed-up over the first, and what decides it."""
        columns = ("rung", "result", "time", "range", "speed-up", "limited by", "ld", "st", "conflicts", "occupancy")
        rows = tuple(self._row(rung) for rung in self.rungs)
        settings = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        notes = (
            f"Times are {self._sources()}, counts emulated; a speed-up divides two times of the same kind. "
            "ld and st: sectors per request of global memory.",
            *(f"{rung.name}: {rung.message}" for rung in self.rungs if rung.message),
        )
        title = f"{self.ladder} on {self.gpu.name} at {self.gpu.clock_hz / 1e9:.2f} GHz, {settings}"
        return Table(title, columns, rows, notes, right=(2, 3, 4, 6, 7, 8, 9))

    def speedup(self, rung: RungResult) -> float | None:
        """How many times faster than the first rung; None where the ranges overlap or the times are not of one kind."""
        first = self.rungs[0].profile
        if first is None or rung.profile is None or not clearly_differ(first.time, rung.profile.time):
            return None
        return first.time.seconds / rung.profile.time.seconds

    def _sources(self) -> str:
        return " and ".join(dict.fromkeys(rung.profile.time.source for rung in self.rungs if rung.profile)) or "unknown"

    def _row(self, rung: RungResult) -> tuple[str, ...]:
        result = "right" if rung.correct else "WRONG"
        if rung.profile is None:
            return (rung.name, result, *("",) * 8)
        time, metrics = rung.profile.time, rung.profile.metrics
        gain = self.speedup(rung)
        speedup = "" if rung is self.rungs[0] else NO_DIFFERENCE if gain is None else f"{gain:.1f}"
        per_request = (
            metrics.get(f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio")
            for op in ("ld", "st")
        )
        conflicts = metrics.get("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum")
        return (
            rung.name,
            result,
            seconds_text(time.seconds),
            range_text(time.low, time.high),
            speedup,
            TERM_WORDS.get(time.bound_by, time.bound_by),
            *("-" if value is None else three_digits(value) for value in per_request),
            "-" if conflicts is None else f"{conflicts:,}",
            f"{three_digits(100 * rung.profile.occupancy.theoretical)} %",
        )

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """Plain data: what the command line's ``compare --json`` prints."""
        return documents.comparison_document(self)


def clearly_differ(one: TimeEstimate, other: TimeEstimate) -> bool:
    """Whether two times of the same kind have ranges that do not overlap."""
    return one.source == other.source and (one.high < other.low or other.high < one.low)
