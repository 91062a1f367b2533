"""The native helpers of the check, compiled once for each machine when the first check needs them."""

from __future__ import annotations

import functools

from gpulab.emulator.llvm import jit


@functools.cache
def helpers() -> jit.Code:
    """The linked helpers; kernels import their addresses."""
    return jit.build(_make, ("check helpers",), {}, (2,))


def _make() -> jit.Source:
    # Loaded only where something must be compiled.
    from gpulab.emulator.checking import (
        native_copies,
        native_extent,
        native_meetings,
        native_order,
        native_shadow,
        native_table,
    )
    from gpulab.emulator.llvm.ir import IrModule

    module = IrModule()
    native_table.define(module)
    exports = (
        native_copies.define(module)
        + native_order.define(module)
        + native_meetings.define(module)
        + native_shadow.define(module)
        + native_table.define_overflow(module)
        + native_table.define_undefined(module)
        + native_extent.define(module)
    )
    return jit.Source(module.text(), exports)
