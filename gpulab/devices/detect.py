"""Is there a CUDA GPU? Asked of the driver itself, so that no large library is imported where there is none."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from functools import cache


@cache
def driver_gpu_count() -> int:
    """Number of GPUs that the CUDA driver offers; 0 without a driver."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        count = ctypes.c_int(0)
        if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
            return 0
    except (OSError, AttributeError):  # no driver library, or one without these functions
        return 0
    return count.value


def why_no_cuda() -> str | None:
    """Why kernels cannot run on a CUDA GPU here, or None if they can."""
    if driver_gpu_count() == 0:
        return "this machine has no NVIDIA driver with a GPU. All of gpulab works on an emulated GPU: gpulab.use()."
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed. Install it with: pip install cupy-cuda12x"
    import cupy

    if not cupy.cuda.is_available():
        return "CuPy cannot use the GPU; the driver may be too old for CUDA 12 (it must be at least 525)."
    return None
