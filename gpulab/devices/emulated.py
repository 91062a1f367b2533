"""The emulated GPU: kernels run on the CPU, NumPy arrays are used where they are, everything is checked."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpulab.devices import checked, cooperative, limits
from gpulab.devices.array import DeviceArray
from gpulab.devices.checked import CheckRecord, Prepared
from gpulab.devices.protocol import Bound, Buffer, Device, Kernel, LaunchRecord
from gpulab.devices.tracing import blocks_per_sm, tracing_of
from gpulab.emulator import Allocation, Memory, Program, RunOptions, execute, place_variables, stored
from gpulab.emulator.sampling import Sample, choose, execute_sample
from gpulab.errors import ArgumentError, DeviceError, KernelFault, LaunchError, TimeLimitError
from gpulab.gpus import Gpu
from gpulab.launch import LaunchConfig
from gpulab.models.access import LINE_BYTES
from gpulab.toolchain import abi
from gpulab.toolchain.argument_types import ArrayFacts
from gpulab.toolchain.records import PtxText

_PROGRAMS_KEPT = 256
_DEFAULT_TIME_LIMIT_S = 60.0


class EmulatedDevice(Device):
    """A GPU of the catalog, stood in for by this computer's CPU.

    All emulated GPUs of a process share one memory, so that a device array goes to any of them.

    Parameters
    ----------
    gpu : Gpu
    time_limit_s : float, optional
        Seconds after which a launch ends with a `TimeLimitError`; default ``$GPULAB_TIME_LIMIT_S``, else 60.
    """

    kind = "emulated"

    def __init__(self, gpu: Gpu, time_limit_s: float | None = None) -> None:
        self.gpu = gpu
        self.memory = _MEMORY
        self.time_limit_s = _time_limit() if time_limit_s is None else time_limit_s

    def launch(
        self, bound: Bound, args: Sequence[Any], *, count: bool = False, sample_blocks: int | None = None
    ) -> LaunchRecord:
        """Run a kernel once; errors are raised here."""
        # One launch at a time: each uses all cores, and the address space is shared.
        with _LAUNCHING:
            return self._launch(bound, args, count, sample_blocks)

    def _launch(self, bound: Bound, args: Sequence[Any], count: bool, sample_blocks: int | None) -> LaunchRecord:
        with self._prepared(bound, args, count=count) as (ptx, launch, options):
            program, config, *_, symbols = launch
            sample = _sample(self.gpu, config, program, sample_blocks)
            cooperative.check_sample(ptx, options, sample is not None)
            with _named(ptx), cooperative.explained(bound.kernel, program, options.workspace != 0):
                counters, incomplete = (
                    (execute(*launch, options), ()) if sample is None else execute_sample(*launch, options, sample)
                )
        if ptx.exceptions:
            limits.raise_recorded(ptx, self.memory, symbols)
        described = tuple(abi.described(value) for value in args)
        counted = counters if count else None
        return LaunchRecord(ptx, config, self.gpu, self.kind, described, program, counted, incomplete=incomplete)

    @contextlib.contextmanager
    def _prepared(
        self,
        bound: Bound,
        args: Sequence[Any],
        *,
        count: bool = False,
        watched: bool = False,
    ) -> Iterator[tuple[PtxText, Prepared, RunOptions]]:
        """The kernel compiled and its arguments bound: what an engine takes."""
        kernel, config = bound.kernel, bound.config
        ptx = kernel.compile(args, self.gpu.compute_capability)
        program = program_of(ptx)
        limits.check(self.gpu, kernel, config, ptx, program)
        together = cooperative.is_cooperative(kernel, program)
        in_flight = cooperative.blocks_in_flight(self.gpu, config, ptx, program, together)
        symbols = _variables_of(kernel, ptx, program)
        with _Binding(self.memory, watched) as binding:
            parameters = abi.pack(kernel.name, ptx.parameters, args, binding.bind)
            if len(parameters) != program.parameter_bytes:
                raise LaunchError(
                    f"{kernel.name} has {program.parameter_bytes} bytes of parameters in its PTX, but its arguments "
                    f"make {len(parameters)}. Check the parameter list."
                )
            workspace = binding.add(cooperative.workspace(), "the grid's workspace") if together else 0
            options = RunOptions(
                count=count,
                time_limit_s=self.time_limit_s,
                resident_blocks=in_flight,
                workspace=workspace,
                tracing=tracing_of(self.gpu, config, program, binding.lines) if count else None,
            )
            yield ptx, (program, config, parameters, self.memory, symbols), options

    def check(self, bound: Bound, args: Sequence[Any]) -> CheckRecord:
        """Run a kernel once under the check. What it does wrong is in the record, and nothing of that is raised.

        Raises
        ------
        GpulabError
            `CompileError` or `ArgumentError`, as for a launch.
        """
        with _LAUNCHING:
            try:
                with self._prepared(bound, args, watched=True) as (ptx, launch, options):
                    return checked.run(self.gpu, ptx, launch, options)
            except LaunchError as error:
                return checked.refused(self.gpu, bound, error)

    def allocate(self, nbytes: int, name: str = "device array") -> Buffer:
        """Memory of the address space that all emulated GPUs share.

        Raises
        ------
        DeviceError
            If this computer has not as much.
        """
        try:
            allocation = self.memory.allocate(nbytes, name)
            # Untouched pages of zeros take no memory.
            allocation.defined = np.zeros(nbytes, np.uint8)
            return EmulatedBuffer(self.memory, allocation)
        except (MemoryError, ValueError) as error:  # NumPy raises the latter for sizes that no address space holds
            raise DeviceError(
                f"An array of {nbytes:,} bytes does not fit into this computer's memory, which stands in for that of "
                "the GPU. Use a smaller one."
            ) from error

    def to_device(self, array: Any) -> DeviceArray:
        """A copy of an array, in its memory order; items of a device array that were never stored are so in the copy."""
        made = super().to_device(array)
        theirs = _defined(array)
        if theirs is not None and isinstance(made.buffer, EmulatedBuffer):
            made.buffer.forget()
            mine = _defined(made)
            assert mine is not None
            mine[...] = theirs
        return made

    def synchronize(self) -> None:
        """Nothing to wait for: a launch is finished when it returns."""

    def free_all(self) -> None:
        """Free the memory of all device arrays."""
        for buffer in list(_BUFFERS):
            buffer.free()

    def __repr__(self) -> str:
        return f"<emulated {self.gpu.name}>"


class EmulatedBuffer(Buffer):
    """Memory of the emulated GPU."""

    device = "the emulated GPU"

    def __init__(self, memory: Memory, allocation: Allocation) -> None:
        self.address, self.nbytes = allocation.address, allocation.size
        self._allocation = allocation
        self.free = weakref.finalize(self, memory.release, allocation)
        self.free.atexit = False
        _BUFFERS.add(self)

    @property
    def alive(self) -> bool:
        """False after the memory was freed."""
        return not self._allocation.freed

    def read(self, offset: int, nbytes: int) -> np.ndarray:
        """A copy of some bytes."""
        self.require_alive()
        return self._allocation.host[offset : offset + nbytes].copy()

    def write(self, offset: int, data: np.ndarray) -> None:
        """Store bytes."""
        self.require_alive()
        self._allocation.host[offset : offset + len(data)] = data
        if len(data) == self.nbytes:
            self._allocation.defined = None
        elif self._allocation.defined is not None:
            self._allocation.defined[offset : offset + len(data)] = 1

    def forget(self) -> None:
        """Take it as memory that was never stored to."""
        self._allocation.defined = np.zeros(self.nbytes, np.uint8)

    @property
    def defined(self) -> np.ndarray | None:
        """For each byte whether it was ever stored, uint8; None if all count as stored."""
        return self._allocation.defined

    def introduce(self, array: DeviceArray, name: str, checked: bool) -> None:
        """A launch gets the array: messages call it by the parameter's name, and what only a plain launch stores is unknown."""
        whole = array.size * array.dtype.itemsize == self.nbytes
        self._allocation.name = name
        self._allocation.dtype = array.dtype
        self._allocation.shape = array.shape if whole else (self.nbytes // max(array.dtype.itemsize, 1),)
        if not checked:
            self._allocation.defined = None


def _defined(array: Any) -> np.ndarray | None:
    """For each byte of each item of a device array whether it was ever stored; None if that is not known."""
    buffer = getattr(array, "buffer", None)
    if not isinstance(buffer, EmulatedBuffer) or buffer.defined is None or array.size == 0:
        return None
    shape, strides = (*array.shape, array.dtype.itemsize), (*array.strides, 1)
    return np.lib.stride_tricks.as_strided(buffer.defined[array.offset :], shape, strides)


class _Binding:
    """The host arrays of one launch as part of the address space; they leave it when the launch is over."""

    def __init__(self, memory: Memory, checked: bool) -> None:
        self._memory = memory
        self._checked = checked
        self._adopted: dict[tuple[int, int, bool], Allocation] = {}
        self._sizes: dict[int, int] = {}

    @property
    def lines(self) -> int:
        """Lines of all arrays."""
        return sum(-(-size // LINE_BYTES) for size in self._sizes.values())

    def __enter__(self) -> _Binding:
        self._memory.keeps_freed = self._checked
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.keeps_freed = False
        for allocation in self._adopted.values():
            self._memory.release(allocation)

    def bind(self, array: Any, facts: ArrayFacts, name: str) -> int:
        """Address of the first item of an array argument."""
        if not isinstance(array, np.ndarray):
            if isinstance(getattr(array, "buffer", None), EmulatedBuffer):
                array.buffer.introduce(array, name, self._checked)
                self._sizes[array.buffer.address] = array.buffer.nbytes
                return int(array.address)
            raise ArgumentError(
                f"Parameter '{name}' is an array in the memory of a real GPU ({type(array).__name__}), but the kernel "
                'runs on an emulated one. Pass a NumPy array, or choose the real GPU: gpulab.use("cuda").'
            )
        if facts.layout != "A":
            return self._adopt(array, name, array.ctypes.data, array.dtype, array.shape).address
        low, span = _bytes_of(array)
        return self._adopt(span, name, low, array.dtype, array.shape).address + array.ctypes.data - low

    def add(self, array: np.ndarray, name: str) -> int:
        """Address of memory of the launch's own."""
        return self._adopt(array, name, array.ctypes.data, array.dtype, array.shape).address

    def _adopt(self, array: np.ndarray, name: str, start: int, dtype: np.dtype, shape: tuple[int, ...]) -> Allocation:
        # The same array passed twice has one address, as a device array has.
        key = (start, array.nbytes, array.flags.writeable)
        if key not in self._adopted or array.nbytes == 0:
            allocation = self._memory.adopt(array, name)
            allocation.dtype, allocation.shape = dtype, shape
            self._sizes[allocation.address] = allocation.size
            self._adopted[key if array.nbytes else (id(allocation), 0, False)] = allocation
            return allocation
        return self._adopted[key]


def _bytes_of(array: np.ndarray) -> tuple[int, np.ndarray]:
    """Host address and bytes of the whole range that a strided array reaches over; not a copy."""
    low, high = np.lib.array_utils.byte_bounds(array)
    span = np.frombuffer((ctypes.c_uint8 * (high - low)).from_address(low), np.uint8)
    span.flags.writeable = array.flags.writeable
    return low, span


def program_of(ptx: PtxText) -> Program:
    """The kernel as the emulator runs it; the last ones are kept.

    Raises
    ------
    PtxSyntaxError, UnsupportedInstruction
        If the emulator cannot run it.
    """
    program = _PROGRAMS.get(ptx.digest)
    if program is None:
        program = stored.program(ptx.text, ptx.kernel)
        _PROGRAMS[ptx.digest] = program
        if len(_PROGRAMS) > _PROGRAMS_KEPT:
            _PROGRAMS.popitem(last=False)
    _PROGRAMS.move_to_end(ptx.digest)
    return program


def _variables_of(kernel: Kernel, ptx: PtxText, program: Program) -> dict[str, int]:
    """Addresses of the module's variables: they live as long as the kernel object and keep what launches store."""
    of_kernel = _VARIABLES.setdefault(kernel, {})
    if ptx.digest not in of_kernel:
        before = set(_MEMORY.allocations)
        of_kernel[ptx.digest] = place_variables(program.module, _MEMORY)
        placed = [_MEMORY.allocations[window] for window in set(_MEMORY.allocations) - before]
        weakref.finalize(kernel, _release, placed).atexit = False
    return of_kernel[ptx.digest]


@contextlib.contextmanager
def _named(ptx: PtxText) -> Iterator[None]:
    """Errors call the kernel by the user's name, not by the one that a compiler made of it and its types."""
    try:
        yield
    except KernelFault as error:
        told = error.fault.message.replace(ptx.kernel, ptx.name)
        raise KernelFault(dataclasses.replace(error.fault, message=told)) from None
    except TimeLimitError as error:
        raise TimeLimitError(str(error).replace(ptx.kernel, ptx.name)) from None


def _release(allocations: list[Allocation]) -> None:
    for allocation in allocations:
        _MEMORY.release(allocation)


def _sample(gpu: Gpu, config: LaunchConfig, program: Program, blocks: int | None) -> Sample | None:
    """Which blocks run; None for all."""
    if blocks is None:
        return None
    if not isinstance(blocks, (int, np.integer)) or blocks < 1:
        raise LaunchError(f"sample_blocks must be a whole number of at least 1, but {blocks!r} came.")
    if blocks >= config.blocks:
        return None
    return choose(config, int(blocks), apart=gpu.sm_count, together=2 * blocks_per_sm(gpu, config, program))


def _time_limit() -> float:
    text = os.environ.get("GPULAB_TIME_LIMIT_S", "")
    try:
        seconds = float(text) if text else _DEFAULT_TIME_LIMIT_S
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise DeviceError(f"$GPULAB_TIME_LIMIT_S must be a number of seconds above 0, but {text!r} is set.")
    return seconds


_LAUNCHING = threading.RLock()
_MEMORY = Memory()
_BUFFERS: weakref.WeakSet[EmulatedBuffer] = weakref.WeakSet()
_PROGRAMS: OrderedDict[str, Program] = OrderedDict()
_VARIABLES: weakref.WeakKeyDictionary[Kernel, dict[str, dict[str, int]]] = weakref.WeakKeyDictionary()
