"""The roofline as plain records: ceilings of work, roofs of bandwidth at DRAM and L2, a point per kernel and level.

The x axis is arithmetic intensity (work per byte *at a named level*), the y axis the rate of work. Kernels without
floating-point work (copies, transpositions) are set against the rate of instructions instead, as N. Ding and
S. Williams do ("An Instruction Roofline Model for GPUs", 2019), so that they too have a place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpulab.gpus import Gpu
from gpulab.models.access import SECTOR_BYTES
from gpulab.models.costs import tensor_rates
from gpulab.models.tally import Tally
from gpulab.models.timing import TimeEstimate
from gpulab.models.traffic import Traffic

LEVELS = ("dram", "l2")


@dataclass(frozen=True, slots=True)
class Roof:
    """A bandwidth limit: `level` is ``dram`` or ``l2``, `label` for a legend."""

    level: str
    label: str
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A limit of work per second."""

    label: str
    work_per_s: float


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel at one level.

    Attributes
    ----------
    name, level : str
    work_per_byte : float
        Arithmetic intensity at this level.
    work_per_s, low_per_s, high_per_s : float
        The rate of work, and its range from the range of the time.
    source : str
        Where the time comes from: ``modeled`` or ``measured``. Bytes are modeled.
    """

    name: str
    level: str
    work_per_byte: float
    work_per_s: float
    low_per_s: float
    high_per_s: float
    source: str


@dataclass(frozen=True, slots=True)
class Roofline:
    """Everything that a roofline plot shows.

    Attributes
    ----------
    gpu : str
    clock_hz : float
        SM clock of the ceilings, Hz.
    unit : str
        What is work: ``FLOP`` or ``warp instruction``.
    roofs : tuple of Roof
    ceilings : tuple of Ceiling
        Highest first.
    points : tuple of Point
    """

    gpu: str
    clock_hz: float
    unit: str
    roofs: tuple[Roof, ...]
    ceilings: tuple[Ceiling, ...]
    points: tuple[Point, ...]

    def ridge(self, level: str = "dram") -> float:
        """Arithmetic intensity at which the highest ceiling meets the roof of a level."""
        roof = next(roof for roof in self.roofs if roof.level == level)
        return self.ceilings[0].work_per_s / roof.bytes_per_s

    def attainable(self, work_per_byte: float, level: str = "dram") -> float:
        """Highest rate of work at this intensity."""
        roof = next(roof for roof in self.roofs if roof.level == level)
        return min(self.ceilings[0].work_per_s, work_per_byte * roof.bytes_per_s)


@dataclass(frozen=True, slots=True)
class Placed:
    """One kernel (or several launches that belong together) to be placed on a roofline."""

    name: str
    tally: Tally
    traffic: Traffic
    time: TimeEstimate


def roofline(gpu: Gpu, kernels: Sequence[Placed], unit: str | None = None) -> Roofline:
    """Place kernels on the roofline of a GPU.

    Parameters
    ----------
    gpu : Gpu
    kernels : sequence of Placed
    unit : str, optional
        ``FLOP`` or ``warp instruction``; FLOP if all of them have floating-point work.
    """
    if unit is None:
        unit = "FLOP" if kernels and all(kernel.tally.flop() for kernel in kernels) else "warp instruction"
    points = tuple(point for kernel in kernels for point in _points(kernel, unit))
    roofs = (
        Roof("dram", f"DRAM {gpu.dram_bandwidth_gb_per_s:,.0f} GB/s", gpu.dram_bandwidth_gb_per_s * 1e9),
        Roof("l2", f"L2 {gpu.l2_bandwidth_gb_per_s:,.0f} GB/s", gpu.l2_bandwidth_gb_per_s * 1e9),
    )
    return Roofline(gpu.name, gpu.clock_hz, unit, roofs, _ceilings(gpu, kernels, unit), points)


def _ceilings(gpu: Gpu, kernels: Sequence[Placed], unit: str) -> tuple[Ceiling, ...]:
    if unit != "FLOP":
        rate = gpu.sm_count * gpu.schedulers_per_sm * gpu.clock_hz
        return (Ceiling(f"issue {rate / 1e9:,.0f} billion warp instructions/s", rate),)
    lanes = {"fp16": gpu.fp16_lanes_per_sm, "fp32": gpu.fp32_lanes_per_sm, "fp64": gpu.fp64_lanes_per_sm}
    used = {pipe for pipe in lanes for kernel in kernels if kernel.tally.flop((pipe,))}
    rates = {pipe.upper(): 2 * lanes[pipe] * gpu.clock_hz for pipe in used}
    # Where a GPU does not hold its boost clock with all tensor cores at work, its data sheet says so.
    tensor_hz = min(gpu.clock_hz, gpu.tensor_clock_hz)
    for kernel in kernels:
        rates |= {f"{kind.upper()} tensor": rate * tensor_hz for kind, rate in tensor_rates(kernel.tally, gpu).items()}
    ceilings = []
    for name, per_s in sorted((rates or {"FP32": 2 * lanes["fp32"] * gpu.clock_hz}).items(), key=lambda item: -item[1]):
        rate = gpu.sm_count * per_s
        ceilings.append(Ceiling(f"{name} {rate / 1e12:,.1f} TFLOP/s", rate))
    return tuple(ceilings)


def _points(kernel: Placed, unit: str) -> list[Point]:
    tally = kernel.tally
    work = tally.flop() if unit == "FLOP" else tally.total("warp_instructions")
    sectors = {"dram": kernel.traffic.dram.value, "l2": float(kernel.traffic.l2)}
    time = kernel.time
    return [
        Point(
            kernel.name,
            level,
            work / (sectors[level] * SECTOR_BYTES),
            work / time.seconds,
            work / time.high,
            work / time.low,
            time.source,
        )
        for level in LEVELS
        if sectors[level] and work
    ]
