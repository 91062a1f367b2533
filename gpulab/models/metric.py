"""`Metric`: a row of the table of metrics, and what its value is computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gpulab.gpus import Gpu
from gpulab.models.assembled import LazySass
from gpulab.models.occupancy import Occupancy
from gpulab.models.run import KernelRun
from gpulab.models.tally import Tally
from gpulab.models.traffic import Bounded, Traffic

Value = int | float | None


@dataclass(frozen=True, slots=True)
class Sources:
    """What metrics are computed from: one launch, or several that belong together.

    Attributes
    ----------
    run : KernelRun
        The launch that launch facts are taken from; of several, the one that takes longest.
    tally, traffic : Tally and Traffic
        Of all launches.
    gpu : Gpu
    occupancy : Occupancy
        Of `run`.
    sass : tuple of LazySass
        Of all launches.
    """

    run: KernelRun
    tally: Tally
    gpu: Gpu
    occupancy: Occupancy
    traffic: Traffic
    sass: tuple[LazySass, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the table.

    Attributes
    ----------
    name, unit, meaning : str
    how : str
        ``emulated`` (exact for the PTX), ``modeled`` (an estimate) or ``launch`` (a fact of the launch and ptxas).
    value : callable
        Computes it from `Sources`; None where the run does not determine it.
    absent : str
        Why it may be missing.
    bounds : callable, optional
        Computes the value with its bounds, which hold whatever the caches do; None where there is no value.
    """

    name: str
    unit: str
    meaning: str
    how: str
    value: Callable[[Sources], Value] = field(compare=False, repr=False)
    absent: str = ""
    bounds: Callable[[Sources], Bounded | None] | None = field(default=None, compare=False, repr=False)


def ratio(part: float, whole: float, factor: float = 1.0) -> float | None:
    """``factor * part / whole``, or None if there is no whole."""
    return factor * part / whole if whole else None
