"""Profiles and comparisons as plain data: what ``--json`` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gpulab.models.lines import Line
from gpulab.models.metrics import METRICS, Metrics
from gpulab.models.timing import TimeEstimate

if TYPE_CHECKING:
    from gpulab.profiling.comparison import Comparison, RungResult
    from gpulab.profiling.profile import Profile

Document = dict[str, Any]


def profile_document(profile: Profile, sass: bool = True) -> Document:
    """One rung, with lines, findings and notes; without `sass` nothing is disassembled."""
    return {
        "name": profile.name,
        "language": profile.language,
        "gpu": profile.gpu.name,
        "clock_hz": profile.time.clock_hz,
        "correct": None,
        "max_error": None,
        **_launch(profile),
        "sass_metrics": dict(profile.sass_metrics or {}) if sass else {},
        "lines": [_line(line, sass) for line in profile.lines],
        "findings": [
            {
                "kind": finding.kind,
                "message": str(finding),
                "remedy": finding.remedy,
                "file": finding.file,
                "line": finding.line,
                "metric": finding.metric,
                "gain": finding.gain,
            }
            for finding in profile.findings
        ],
        "notes": list(profile.notes),
    }


def _line(line: Line, sass: bool) -> Document:
    return {
        "file": line.file,
        "line": line.line,
        "text": line.text,
        "metrics": _nonzero(line.metrics),
        "time_share": line.time_share,
        "atomics": line.atomics,
        "sass_instructions": line.sass_instructions if sass else None,
    }


def comparison_document(comparison: Comparison) -> Document:
    """A ladder with its rungs."""
    return {
        "ladder": comparison.ladder,
        "gpu": comparison.gpu.name,
        "clock_hz": comparison.gpu.clock_hz,
        "parameters": dict(comparison.parameters),
        "rungs": [_rung(rung) for rung in comparison.rungs],
    }


def _rung(rung: RungResult) -> Document:
    head = {
        "name": rung.name,
        "language": rung.language,
        "correct": rung.correct,
        "max_error": rung.max_error if math.isfinite(rung.max_error) else None,
    }
    if rung.message:
        head["message"] = rung.message
    return {**head, **(_launch(rung.profile) if rung.profile is not None else _NOT_RUN)}


def _launch(profile: Profile) -> Document:
    return {
        "grid": list(profile.grid),
        "block": list(profile.block),
        "registers_per_thread": profile.registers_per_thread,
        "occupancy": profile.occupancy.theoretical,
        "time": _time(profile.time),
        "metrics": dict(profile.metrics),
        "metric_sources": {name: METRICS[name].how for name in profile.metrics},
        "metric_bounds": {name: list(found) for name, found in profile.bounds.items()},
    }


_NOT_RUN: Document = {
    "grid": None,
    "block": None,
    "registers_per_thread": None,
    "occupancy": None,
    "time": None,
    "metrics": {},
    "metric_sources": {},
    "metric_bounds": {},
}


def _time(time: TimeEstimate) -> Document:
    return {
        "seconds": time.seconds,
        "low": time.low,
        "high": time.high,
        "source": time.source,
        "bound_by": time.bound_by,
        "terms": dict(time.terms),
    }


def _nonzero(metrics: Metrics) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if value}
