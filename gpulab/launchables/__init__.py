"""Kernels that can be launched: Python (``cuda.jit``), CUDA C++ (`RawKernel`), PTX (`PtxKernel`)."""

from __future__ import annotations

from gpulab.launchables.adopt import as_bound
from gpulab.launchables.base import BoundLaunch, In, InOut, Launchable, Out, plain_arguments
from gpulab.launchables.jit import DeviceFunction, NumbaKernel, jit
from gpulab.launchables.raw import PtxKernel, RawKernel

__all__ = [
    "BoundLaunch",
    "DeviceFunction",
    "In",
    "InOut",
    "Launchable",
    "NumbaKernel",
    "Out",
    "PtxKernel",
    "RawKernel",
    "as_bound",
    "jit",
    "plain_arguments",
]
