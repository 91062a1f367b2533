"""Is there a CUDA GPU? Asked of the driver itself, so that no large library is imported where there is none."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Driver:
    """The CUDA driver of this machine.

    Attributes
    ----------
    version : int
        The newest CUDA that it runs: 12080 is 12.8.
    gpus : tuple of str
        Names of the GPUs that it offers.
    """

    version: int
    gpus: tuple[str, ...]


@cache
def find_driver() -> Driver | None:
    """The CUDA driver, or None without one."""
    try:
        library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        version = ctypes.c_int(0)
        if library.cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
        return Driver(version.value, tuple(_gpu_names(library)))
    except (OSError, AttributeError):  # no driver library, or one without these functions
        return None


def _gpu_names(library: ctypes.CDLL) -> Iterator[str]:
    count = ctypes.c_int(0)
    if library.cuInit(0) != 0 or library.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return
    for ordinal in range(count.value):
        name = ctypes.create_string_buffer(128)
        known = library.cuDeviceGetName(name, len(name), ordinal) == 0
        yield name.value.decode(errors="replace") if known else f"GPU {ordinal}"


def driver_gpu_count() -> int:
    """Number of GPUs that the CUDA driver offers; 0 without a driver."""
    driver = find_driver()
    return len(driver.gpus) if driver else 0


def why_no_cuda() -> str | None:
    """Why kernels cannot run on a CUDA GPU here, or None if they can."""
    if driver_gpu_count() == 0:
        return "this machine has no NVIDIA driver with a GPU. All of gpulab works on an emulated GPU: gpulab.use()."
    from gpulab.devices.cuda import why_unusable

    return why_unusable()
