"""The native helpers and the driver, compiled once for each machine."""

from __future__ import annotations

import ctypes
import functools

from gpulab.emulator import jit, native_address, native_calls, native_count, native_driver, native_move
from gpulab.emulator.ir import IrModule


@functools.cache
def helpers() -> jit.Code:
    """The linked helpers; kernels import their addresses."""
    module = IrModule()
    exports = native_address.define(module) + native_calls.define(module)
    exports += native_move.define(module) + native_count.define(module) + native_driver.define(module)
    return jit.build(module.text(), exports, {}, level=2)


@functools.cache
def drive() -> ctypes._CFuncPtr:
    """The driver as a function of a context's address; the GIL is released while it runs."""
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(helpers().addresses["drive"])
