"""``from gpulab import cuda``: the spelling of ``from numba import cuda``, on an emulated GPU or a real one.

What runs on the host (``jit``, ``to_device``, ``synchronize``, …) is gpulab's own. What is only used inside kernels
(``grid``, ``threadIdx``, ``shared``, ``atomic``, ``shfl_sync``, …) is Numba's, loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from gpulab.errors import GpulabError, ToolchainError
from gpulab.launchables import DeviceFunction, In, InOut, Out, jit
from gpulab.launchables.host_api import (
    close,
    current_context,
    default_stream,
    defer_cleanup,
    detect,
    device_array,
    device_array_like,
    event,
    event_elapsed_time,
    get_current_device,
    is_available,
    is_cuda_array,
    legacy_default_stream,
    list_devices,
    managed_array,
    mapped_array,
    mapped_array_like,
    per_thread_default_stream,
    pinned,
    pinned_array,
    pinned_array_like,
    profile_start,
    profile_stop,
    profiling,
    select_device,
    stream,
    synchronize,
    to_device,
)

_NEEDS_DRIVER = {
    "reduce": 'write the reduction as a kernel; the ladder "reduction" shows how',
    "Reduce": 'write the reduction as a kernel; the ladder "reduction" shows how',
    "from_cuda_array_interface": "pass the array itself to the kernel",
    "as_cuda_array": "pass the array itself to the kernel",
    "external_stream": "use cuda.stream()",
    "open_ipc_array": "arrays of other processes cannot be shared here",
    "mapped": "use cuda.mapped_array(…)",
    "cudadrv": "it is the driver's own interface",
    "declare_device": "put the function into Python or into a RawKernel",
}

__all__ = [
    "DeviceFunction", "In", "InOut", "Out", "close", "current_context", "default_stream", "defer_cleanup", "detect",
    "device_array", "device_array_like", "event", "event_elapsed_time", "get_current_device", "is_available",
    "is_cuda_array", "jit", "legacy_default_stream", "list_devices", "managed_array", "mapped_array",
    "mapped_array_like", "per_thread_default_stream", "pinned", "pinned_array", "pinned_array_like", "profile_start",
    "profile_stop", "profiling", "select_device", "stream", "synchronize", "to_device",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "gpus":
        return list_devices()
    if name == "random":
        return importlib.import_module("gpulab.cuda.random")
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _NEEDS_DRIVER:
        raise GpulabError(f"cuda.{name} is not available in gpulab: {_NEEDS_DRIVER[name]}.")
    try:
        numbas = importlib.import_module("numba.cuda")
    except ImportError as error:
        raise ToolchainError(
            f'cuda.{name} is Numba\'s, which is not on this machine. Install it: pip install "numba-cuda[cu12]"'
        ) from error
    if not hasattr(numbas, name):
        raise AttributeError(f"cuda has no {name!r}, neither in gpulab nor in numba.cuda.")
    return getattr(numbas, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "gpus", "random"])
