"""Take over what was launched with Numba's own decorator, so that profiling needs no change of a user's file."""

from __future__ import annotations

import types
import weakref
from typing import Any

from gpulab.errors import ArgumentError
from gpulab.launch import LaunchConfig
from gpulab.launchables.base import BoundLaunch, Launchable
from gpulab.launchables.jit import NumbaKernel
from gpulab.toolchain.numba import OPTIONS

_adopted: weakref.WeakKeyDictionary[Any, NumbaKernel] = weakref.WeakKeyDictionary()


def as_bound(value: Any) -> BoundLaunch:
    """The launch that `value` stands for: ``kernel[grid, block]`` of this package, or of Numba's ``cuda.jit``.

    Raises
    ------
    ArgumentError
        If it is something else; the message shows the spelling.
    """
    if isinstance(value, BoundLaunch):
        return value
    dispatcher = getattr(value, "dispatcher", None)
    if isinstance(getattr(dispatcher, "py_func", None), types.FunctionType) and hasattr(value, "griddim"):
        config = LaunchConfig.of(value.griddim, value.blockdim, value.sharedmem)
        return BoundLaunch(_kernel_of(dispatcher), config)
    if isinstance(value, Launchable) or hasattr(value, "py_func"):
        name = getattr(value, "name", None) or value.py_func.__name__
        raise ArgumentError(f"A launch is needed, with grid and block: {name}[grid, block], but the kernel alone came.")
    hint = " Leave the parentheses out: the arguments come after it." if value is None else ""
    raise ArgumentError(f"A launch is needed, kernel[grid, block], but {value!r} came.{hint}")


def _kernel_of(dispatcher: Any) -> NumbaKernel:
    if dispatcher not in _adopted:
        given = dispatcher.targetoptions
        options = {name: given[name] for name in OPTIONS if given.get(name) is not None}
        _adopted[dispatcher] = NumbaKernel(dispatcher.py_func, None, options)
    return _adopted[dispatcher]
