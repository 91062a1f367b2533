"""The records: a launch, an expected count, a published time, a ladder of published times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import gpulab
from gpulab.devices import device_for
from gpulab.devices.protocol import Device
from gpulab.gpus import Gpu
from gpulab.launchables.base import BoundLaunch
from gpulab.profiling import Profile

HERE = Path(__file__).parent
GIGA = 1e9
#: SM clocks of the GPUs of te42kyfo/gpu-benches, as its files state them.
BENCH_CLOCKS_HZ = {"V100": 1.38e9, "A100": 1.41e9, "A40": 1.74e9, "L40": 2.49e9, "H100 PCIe": 1.755e9, "H200": 1.98e9}
Dims = int | tuple[int, ...]


def zeros(size: int | tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """An array of zeros. Untouched pages of it take no memory, so that sampled launches may have large ones."""
    return np.zeros(size, dtype)


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch of one of our kernels.

    Attributes
    ----------
    file : str
        CUDA C++ file in this folder.
    kernel : str
        Its name there, or an instantiation.
    grid, block : int or tuple of int
    arguments : callable
        ``arguments(device) -> sequence`` of what the kernel takes; NumPy arrays, NumPy scalars, or arrays of the device.
    dynamic_shared_bytes : int
    options : tuple of str
        NVRTC's.
    sample_blocks : int or None
        How many blocks run; None for all.
    """

    file: str
    kernel: str
    grid: Dims
    block: Dims
    arguments: Callable[[Device], Sequence[Any]]
    dynamic_shared_bytes: int = 0
    options: tuple[str, ...] = ()
    sample_blocks: int | None = None

    def bound(self) -> BoundLaunch:
        """The kernel with its launch configuration."""
        kernel = _kernel(self.file, self.kernel, self.options)
        if self.dynamic_shared_bytes > (kernel.max_dynamic_shared_size_bytes or 0):
            kernel.max_dynamic_shared_size_bytes = self.dynamic_shared_bytes
        return kernel[self.grid, self.block, 0, self.dynamic_shared_bytes]

    def run(self, gpu: Gpu | Device) -> tuple[Profile, Sequence[Any]]:
        """Profile it on an emulated GPU or a CUDA device; also gives its arguments, which hold the results."""
        device = device_for(gpu)
        values = self.arguments(device)
        return gpulab.profile(self.bound(), *values, gpu=device, sample_blocks=self.sample_blocks), values


@cache
def _kernel(file: str, name: str, options: tuple[str, ...]) -> gpulab.RawKernel:
    return gpulab.RawKernel.from_file(HERE / file, name, options)


@dataclass(frozen=True, slots=True)
class Count:
    """A count that a source gives.

    Attributes
    ----------
    metric : str
        Nsight Compute's name.
    value : float
    per : str or None
        The metric by which it is divided, if the source gives a ratio of two.
    """

    metric: str
    value: float
    per: str | None = None

    def found(self, profile: Profile) -> float | None:
        """Ours, rounded to two decimals as Nsight Compute shows it; None if gpulab has no such value."""
        value = profile.metrics[self.metric]
        if value is None:
            return None
        return round(value / profile.metrics[self.per] if self.per else value, 2)

    def agrees(self, found: float | None) -> bool:
        """Whether ours is the same: counts exactly, ratios to the last digit that Nsight Compute shows."""
        return found is not None and (
            abs(found - self.value) <= 0.01 if isinstance(self.value, float) else found == self.value
        )


@dataclass(frozen=True, slots=True)
class Expectation:
    """Counts of one launch, with their source.

    Attributes
    ----------
    title : str
        What the kernel does.
    source : str
    gpu : str
        Name of the catalog; the source's GPU, or one of its compute capability.
    launch : Launch
    counts : tuple of Count
    right : callable or None
        ``right(arguments) -> bool``: whether the kernel's results are right.
    known : str
        Why our counts differ, where we know that they do; empty if they must agree.
    compiler : bool
        The value depends on the machine code that a compiler made: for orientation only.
    """

    title: str
    source: str
    gpu: str
    launch: Launch
    counts: tuple[Count, ...]
    right: Callable[[Sequence[Any]], bool] | None = None
    known: str = ""
    compiler: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A published time, or a figure that is a time in another unit.

    Attributes
    ----------
    group : str
        The curve that it is on.
    name : str
        The kernel and where on the curve: ``read, 64 threads``.
    gpu : str
    source : str
    launch : callable
        ``launch(gpu) -> Launch``: grids may depend on the number of SMs.
    published : float
    unit : str
        ``GB/s`` (`amount` in bytes), ``cycles`` (SM cycles for each of `amount`), or ``us``.
    amount : float or callable
        What one launch does, in the unit's terms; ``amount(gpu)`` if that depends on the GPU.
    clock_hz : float or None
        SM clock that the source states; None if it does not: the boost clock then.
    amortized : bool
        The source repeated the work inside the launch so often that launching took no time.
    """

    group: str
    name: str
    gpu: str
    source: str
    launch: Callable[[Gpu], Launch]
    published: float
    unit: str
    amount: float | Callable[[Gpu], float] = 1.0
    clock_hz: float | None = None
    amortized: bool = False

    def in_unit(self, seconds: float, gpu: Gpu) -> float:
        """A time in the unit of the source."""
        amount = self.amount(gpu) if callable(self.amount) else self.amount
        if self.unit == "GB/s":
            return amount / seconds / GIGA
        return seconds * 1e6 if self.unit == "us" else seconds * gpu.clock_hz / amount

    def seconds(self, gpu: Gpu) -> float:
        """The published time, s."""
        amount = self.amount(gpu) if callable(self.amount) else self.amount
        if self.unit == "GB/s":
            return amount / self.published / GIGA
        return self.published / 1e6 if self.unit == "us" else self.published * amount / gpu.clock_hz


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung of a public ladder: its name and kernel, and the published time in s."""

    name: str
    launch: Launch
    seconds: float


@dataclass(frozen=True, slots=True)
class PublicLadder:
    """A ladder whose times somebody measured and published.

    Attributes
    ----------
    title, gpu, source : str
    rungs : tuple of Rung
        In the order of the source.
    """

    title: str
    gpu: str
    source: str
    rungs: tuple[Rung, ...]
