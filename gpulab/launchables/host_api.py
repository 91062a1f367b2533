"""The host side of ``numba.cuda`` on gpulab's devices: arrays, streams, events, the current GPU."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpulab.devices import DeviceArray, current
from gpulab.errors import DeviceError


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: DeviceArray | None = None) -> DeviceArray:
    """Copy an array to the GPU: to a new device array, or into `to`."""
    if to is None:
        return current().to_device(obj)
    to.copy_to_device(obj)
    return to


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0
) -> DeviceArray:
    """A new array on the GPU; what it holds is undefined."""
    return current().device_array(shape, dtype, order)


def device_array_like(ary: Any, stream: Any = 0) -> DeviceArray:
    """A new array on the GPU with the shape, dtype and order of `ary`."""
    order = "F" if ary.flags["F_CONTIGUOUS"] and not ary.flags["C_CONTIGUOUS"] else "C"
    return current().device_array(ary.shape, ary.dtype, order)


def pinned_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C") -> np.ndarray:
    """A NumPy array in page-locked memory; on an emulated GPU an ordinary one."""
    return np.zeros(shape, dtype, order)  # type: ignore[call-overload]


def pinned_array_like(ary: np.ndarray) -> np.ndarray:
    """A page-locked array with the shape and dtype of `ary`."""
    return np.zeros_like(ary)


def mapped_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", **_: Any) -> np.ndarray:
    """An array that host and GPU both reach; kernels take the NumPy array itself."""
    return pinned_array(shape, dtype, strides, order)


def mapped_array_like(ary: np.ndarray, **_: Any) -> np.ndarray:
    """An array that host and GPU both reach, with the shape and dtype of `ary`."""
    return np.zeros_like(ary)


managed_array = mapped_array


@contextlib.contextmanager
def pinned(*arrays: np.ndarray) -> Iterator[None]:
    """Within the block the arrays are page-locked; on an emulated GPU nothing needs to be done for it."""
    yield


def synchronize() -> None:
    """Wait until all launches have finished."""
    current().synchronize()


class Stream:
    """A queue of work. Launches of gpulab are finished when they return, so its order is always kept."""

    handle = 0

    def synchronize(self) -> None:
        """Wait until all work in the stream has finished."""
        synchronize()

    @contextlib.contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """Synchronize at the end of the block."""
        yield self
        self.synchronize()


def stream() -> Stream:
    """A new stream."""
    return Stream()


def default_stream() -> Stream:
    """The default stream."""
    return Stream()


legacy_default_stream = per_thread_default_stream = default_stream


class Event:
    """A point in time. On an emulated GPU it is the clock of this computer, which says nothing of a GPU's speed."""

    def __init__(self) -> None:
        self._at: float | None = None

    def record(self, stream: Any = 0) -> None:
        """Take the time when all work so far has finished."""
        synchronize()
        self._at = time.perf_counter()

    def synchronize(self) -> None:
        """Wait for the event; it is always over here."""

    def wait(self, stream: Any = 0) -> None:
        """Let a stream wait for the event; it is always over here."""

    def query(self) -> bool:
        """Whether it is over."""
        return self._at is not None

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to `end`.

        Raises
        ------
        DeviceError
            If one of them was not recorded.
        """
        if self._at is None or end._at is None:
            raise DeviceError("elapsed_time needs two recorded events: call start.record() and end.record() before.")
        if current().kind == "emulated":
            warnings.warn(
                "This is the time that the emulation took on this computer, not a GPU's time. "
                "gpulab.profile(kernel[grid, block], …).time estimates that.",
                stacklevel=2,
            )
        return (end._at - self._at) * 1e3


def event(timing: bool = True) -> Event:
    """A new event."""
    return Event()


def event_elapsed_time(start: Event, end: Event) -> float:
    """Milliseconds between two recorded events."""
    return start.elapsed_time(end)


class CudaDeviceFacts:
    """The current GPU with the attribute names of ``numba.cuda``'s devices."""

    id = 0

    @property
    def name(self) -> bytes:
        """As the driver tells it: bytes."""
        return current().gpu.name.encode()

    @property
    def compute_capability(self) -> tuple[int, int]:
        """Major and minor."""
        return current().gpu.compute_capability

    def __getattr__(self, name: str) -> Any:
        gpu = current().gpu
        known = {
            "MULTIPROCESSOR_COUNT": gpu.sm_count, "WARP_SIZE": 32, "MAX_THREADS_PER_BLOCK": gpu.max_threads_per_block,
            "MAX_BLOCK_DIM_X": 1024, "MAX_BLOCK_DIM_Y": 1024, "MAX_BLOCK_DIM_Z": 64, "MAX_GRID_DIM_X": 2**31 - 1,
            "MAX_GRID_DIM_Y": 65535, "MAX_GRID_DIM_Z": 65535, "CLOCK_RATE": int(gpu.boost_clock_hz / 1e3),
            "MAX_SHARED_MEMORY_PER_BLOCK": gpu.shared_bytes_per_block,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": gpu.shared_bytes_per_block_optin,
            "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": gpu.shared_bytes_per_sm,
            "MAX_REGISTERS_PER_BLOCK": gpu.registers_per_sm, "MAX_REGISTERS_PER_MULTIPROCESSOR": gpu.registers_per_sm,
            "MAX_THREADS_PER_MULTI_PROCESSOR": gpu.max_warps_per_sm * 32, "L2_CACHE_SIZE": gpu.l2_bytes,
            "TOTAL_CONSTANT_MEMORY": 65536, "COMPUTE_CAPABILITY_MAJOR": gpu.compute_capability[0],
            "COMPUTE_CAPABILITY_MINOR": gpu.compute_capability[1],
        }  # fmt: skip
        if name in known:
            return known[name]
        raise AttributeError(f"The current GPU has no attribute {name!r} here. It has: {', '.join(sorted(known))}.")

    def reset(self) -> None:
        """Free all memory on the GPU."""
        close()

    def __enter__(self) -> CudaDeviceFacts:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Context:
    """The current context, as far as notebooks use it."""

    device = CudaDeviceFacts()

    def get_memory_info(self) -> tuple[int, int]:
        """Free and total bytes of the GPU's memory; an emulated GPU counts as empty."""
        total = int(current().gpu.memory_bytes)
        return total, total

    def synchronize(self) -> None:
        """Wait until all launches have finished."""
        synchronize()

    def reset(self) -> None:
        """Free all memory on the GPU."""
        close()


def get_current_device() -> CudaDeviceFacts:
    """The current GPU."""
    return CudaDeviceFacts()


def current_context(devnum: int | None = None) -> Context:
    """The current context."""
    return Context()


def list_devices() -> list[CudaDeviceFacts]:
    """The GPUs that can be selected: the current one; `gpulab.use` chooses it."""
    return [CudaDeviceFacts()]


def select_device(device_id: int) -> CudaDeviceFacts:
    """Select a GPU by number; only 0 is there, the one that `gpulab.use` chose."""
    if device_id != 0:
        raise DeviceError(f"There is one GPU, number 0, but {device_id} came. gpulab.use(…) chooses which one it is.")
    return CudaDeviceFacts()


def close() -> None:
    """Free all memory that device arrays hold."""
    current().free_all()


@contextlib.contextmanager
def defer_cleanup() -> Iterator[None]:
    """Within the block no memory is freed by Numba; here memory is freed with its last reference anyway."""
    yield


@contextlib.contextmanager
def profiling() -> Iterator[None]:
    """Mark a region for the vendor's profiler; use `gpulab.profile` here."""
    yield


def profile_start() -> None:
    """Start of a region for the vendor's profiler; use `gpulab.profile` here."""


profile_stop = profile_start


def is_available() -> bool:
    """Whether kernels can run: always, since an emulated GPU needs no hardware."""
    return True


def detect() -> bool:
    """Tell which GPU kernels run on, and return True."""
    device = current()
    major, minor = device.gpu.compute_capability
    kind = "emulated on this computer's CPU" if device.kind == "emulated" else "CUDA GPU"
    sys.stdout.write(f"Found 1 GPU:\nid 0    {device.gpu.name}, compute capability {major}.{minor} ({kind})\n")
    return True


def is_cuda_array(obj: Any) -> bool:
    """Whether an object is an array on a GPU."""
    return isinstance(obj, DeviceArray) or hasattr(obj, "__cuda_array_interface__")
