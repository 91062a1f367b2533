"""Metrics under Nsight Compute's names: the table, and the values of one launch.

Counts are exact for the PTX. The names are those that OLCF's CUDA training and NERSC's timemory map to nvprof's
metrics; the Nsight Compute Profiling Guide defines them.
"""

from __future__ import annotations

import difflib
from typing import NoReturn

from gpulab.errors import GpulabError
from gpulab.models.metric import Metric, Sources
from gpulab.models.metrics_caches import cache_rows
from gpulab.models.metrics_memory import memory_rows
from gpulab.models.metrics_work import work_rows

__all__ = ["METRICS", "Metric", "Metrics", "Sources", "UnknownMetricError", "bounds", "metrics"]

METRICS: dict[str, Metric] = {row.name: row for row in (*memory_rows(), *cache_rows(), *work_rows())}


class UnknownMetricError(GpulabError, KeyError):
    """A metric that does not exist, or that this run does not determine."""

    def __str__(self) -> str:
        return str(self.args[0])


class Metrics(dict[str, "int | float"]):
    """Metric values by name. A known zero is 0; what the run does not determine is absent, and asking says why."""

    def __missing__(self, name: str) -> NoReturn:
        if name in METRICS:
            raise UnknownMetricError(
                f"This run does not determine {name} ({METRICS[name].meaning}): "
                f"{METRICS[name].absent or 'nothing happened that it could be computed from'}."
            )
        near = difflib.get_close_matches(name, METRICS, n=3, cutoff=0.6)
        hint = f"Did you mean {' or '.join(near)}?" if near else "profile.details() lists all of them."
        raise UnknownMetricError(f"There is no metric {name!r}. {hint}")


def metrics(sources: Sources) -> Metrics:
    """All metrics that a launch (or several together) determines.

    Counters are the same on every GPU; the occupancy and the modeled L2 and DRAM metrics are not.
    """
    values = {name: metric.value(sources) for name, metric in METRICS.items()}
    return Metrics({name: value for name, value in values.items() if value is not None})


def bounds(sources: Sources) -> dict[str, tuple[float, float]]:
    """Lowest and highest value of each metric of the modeled caches, whatever the caches do; without those that are certain."""
    found = {name: metric.bounds(sources) for name, metric in METRICS.items() if metric.bounds is not None}
    return {name: (each.low, each.high) for name, each in found.items() if each is not None and each.low < each.high}
