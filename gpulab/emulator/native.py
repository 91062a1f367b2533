"""The native helpers and the driver, compiled once for each machine."""

from __future__ import annotations

import ctypes
import functools

from gpulab.emulator import jit


@functools.cache
def helpers() -> jit.Code:
    """The linked helpers; kernels import their addresses."""
    return jit.build(_make, ("helpers",), {}, (2,))


def _make() -> jit.Source:
    # Loaded only where something must be compiled.
    from gpulab.emulator import native_address, native_calls, native_count, native_driver, native_move, native_waiting
    from gpulab.emulator.ir import IrModule

    module, names = IrModule(), ()
    for part in (native_address, native_calls, native_move, native_count, native_waiting, native_driver):
        names += part.define(module)
    return jit.Source(module.text(), names)


@functools.cache
def drive() -> ctypes._CFuncPtr:
    """The driver as a function of a context's address; the GIL is released while it runs."""
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(helpers().addresses["drive"])
