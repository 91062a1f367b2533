"""gpulab: learn to make GPU kernels fast, with or without a GPU.

Importing the package is cheap: compilers, the emulator, plots and panels load when they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "gpulab.errors": ("GpulabError", "KernelFault", "CompileError", "LaunchError", "ArgumentError"),
    "gpulab.gpus": ("gpus", "gpu", "Gpu"),
    "gpulab.devices": ("use", "current"),
    "gpulab.launchables": ("RawKernel", "PtxKernel"),
    "gpulab.models": ("occupancy", "occupancy_curve"),
    "gpulab.profiler": ("profile", "compare", "check"),
    "gpulab.panels": ("explore",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
# `gpulab.kernels` is a package that can be called: gpulab.kernels() lists the ladders.
_SUBMODULES = ("cuda", "kernels")

__all__ = ["__version__", *_HOME_OF, *_SUBMODULES]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
