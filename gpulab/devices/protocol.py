"""What every device can do, and the record of one launch."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gpulab.devices.array import DeviceArray
from gpulab.errors import ArgumentError, DeviceError
from gpulab.launch import LaunchConfig
from gpulab.toolchain.argument_types import array_facts, contiguous_strides
from gpulab.toolchain.records import PtxText

if TYPE_CHECKING:
    from gpulab.counters import Counters
    from gpulab.emulator import Program
    from gpulab.gpus import Gpu
    from gpulab.toolchain import Assembled


class Kernel(Protocol):
    """What a device needs of a kernel; `gpulab.launchables` has them."""

    name: str
    language: str
    max_dynamic_shared_size_bytes: int | None
    enable_cooperative_groups: bool | None

    def compile(self, args: Sequence[Any], compute_capability: tuple[int, int]) -> PtxText:
        """PTX for arguments of these types."""


class Bound(Protocol):
    """A kernel with its launch configuration: ``kernel[grid, block]``."""

    kernel: Kernel
    config: LaunchConfig


@dataclass(frozen=True, eq=False)
class LaunchRecord:
    """What is known of one launch.

    Attributes
    ----------
    ptx : PtxText
        What ran.
    config : LaunchConfig
    gpu : Gpu
        That it ran on (emulated: the one it stood for).
    kind : str
        ``emulated`` or ``cuda``.
    arguments : tuple of str
        How the arguments are described in reports.
    program : Program or None
        The kernel as the emulator knows it.
    counters : Counters or None
        *Emulated* counts, if asked for.
    seconds : float or None
        *Measured* time on the GPU, the median of `samples`; None on an emulated GPU.
    samples : tuple of float
        All measured times, s.
    incomplete : tuple of str
        Names of the arrays that hold the results of some blocks alone, because the launch was sampled.
    """

    ptx: PtxText
    config: LaunchConfig
    gpu: Gpu
    kind: str
    arguments: tuple[str, ...] = ()
    program: Program | None = None
    counters: Counters | None = None
    seconds: float | None = None
    samples: tuple[float, ...] = ()
    incomplete: tuple[str, ...] = ()

    @property
    def assembled(self) -> Assembled:
        """Registers, spills, shared memory and SASS of what ran."""
        return self.ptx.assembled


class Buffer(ABC):
    """A piece of a GPU's memory; freed when the last reference to it goes.

    Attributes
    ----------
    address : int
    nbytes : int
    device : str
        How messages call the GPU that it is on.
    on_cuda : bool
        Whether the address is one of a real GPU.
    """

    address: int
    nbytes: int
    device: str
    on_cuda = False

    @property
    @abstractmethod
    def alive(self) -> bool:
        """False after the memory was freed."""

    @abstractmethod
    def read(self, offset: int, nbytes: int) -> np.ndarray:
        """A copy of some bytes, shape (nbytes,), dtype uint8."""

    @abstractmethod
    def write(self, offset: int, data: np.ndarray) -> None:
        """Store bytes (uint8) at an offset."""

    def require_alive(self) -> None:
        """Raise a `DeviceError` if the memory was freed."""
        if not self.alive:
            raise DeviceError(
                "This device array's memory was freed (cuda.close() or a reset frees all). Make a new one."
            )


class Device(ABC):
    """A GPU that kernels are launched on.

    Attributes
    ----------
    kind : str
        ``emulated`` or ``cuda``.
    gpu : Gpu
    """

    kind: str
    gpu: Gpu

    @abstractmethod
    def launch(
        self, bound: Bound, args: Sequence[Any], *, count: bool = False, sample_blocks: int | None = None
    ) -> LaunchRecord:
        """Run a kernel once and return when it has finished.

        Parameters
        ----------
        bound : Bound
        args : sequence
            NumPy arrays hold the results afterwards.
        count : bool
            Also count (emulated GPU), or also measure the time (CUDA GPU).
        sample_blocks : int, optional
            Run only so many blocks, evenly spread over the grid (emulated GPU).

        Raises
        ------
        GpulabError
            `CompileError`, `ArgumentError`, `LaunchError`, `KernelFault` or `TimeLimitError`.
        """

    @abstractmethod
    def allocate(self, nbytes: int, name: str = "device array") -> Buffer:
        """Memory on the GPU."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all launches have finished."""

    @abstractmethod
    def free_all(self) -> None:
        """Free all memory that device arrays hold."""

    def device_array(self, shape: int | Sequence[int], dtype: Any = np.float64, order: str = "C") -> DeviceArray:
        """An array on the GPU; what it holds is undefined."""
        sizes = (shape,) if np.ndim(shape) == 0 else tuple(shape)  # type: ignore[arg-type]
        try:
            lengths = tuple(operator.index(length) for length in sizes)  # type: ignore[arg-type]
        except TypeError:
            raise ArgumentError(
                f"A shape is made of ints, but {shape!r} came. Is a `/` there where `//` is meant?"
            ) from None
        if any(length < 0 for length in lengths) or order not in ("C", "F"):
            raise ArgumentError(f'A device array needs lengths >= 0 and order "C" or "F", but {shape}, {order!r} came.')
        kind = np.dtype(dtype)
        strides = contiguous_strides(lengths[:: 1 if order == "C" else -1], kind.itemsize)[:: 1 if order == "C" else -1]
        return DeviceArray(self.allocate(math.prod(lengths) * kind.itemsize), lengths, kind, strides)

    def to_device(self, array: Any) -> DeviceArray:
        """A copy of an array on the GPU, in its memory order."""
        source = array.copy_to_host() if isinstance(array, DeviceArray) else np.asarray(array)
        if source.dtype.hasobject:
            raise ArgumentError(f"to_device needs an array of numbers, but dtype {source.dtype} came.")
        facts = array_facts(source)
        order = "F" if facts is not None and facts.layout == "F" else "C"
        made = self.device_array(source.shape, source.dtype, order)
        made.copy_to_device(source)
        return made
