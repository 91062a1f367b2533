"""The native helpers and the driver, compiled once for each machine."""

from __future__ import annotations

import ctypes
import functools

from gpulab.emulator.llvm import jit
from gpulab.ptx.matrix import Matrix
from gpulab.ptx.opcodes import Form


@functools.cache
def helpers() -> jit.Code:
    """The linked helpers; kernels import their addresses."""
    return jit.build(_make, ("helpers",), {}, (2,))


def _make() -> jit.Source:
    # Loaded only where something must be compiled.
    from gpulab.emulator.llvm.ir import IrModule
    from gpulab.emulator.native import address, calls, count, driver, move, waiting

    module, names = IrModule(), ()
    for part in (address, calls, move, count, waiting, driver):
        names += part.define(module)
    return jit.Source(module.text(), names)


def product_name(form: Form) -> str:
    """The name of the function that multiplies matrices for a form."""
    matrix = form.matrix
    assert matrix is not None
    rule = (form.operation or "") + ("sat" if form.finite else "")
    return "_".join(["product", *map(str, matrix.shape), *matrix.types, *filter(None, [rule])])


def products(forms: tuple[Form, ...]) -> dict[str, int]:
    """Addresses of the functions that the products among some forms need, by name."""
    found = {}
    for form in {product_name(form): form for form in forms if form.pipe == "tensor"}.values():
        assert form.matrix is not None
        found |= _product(form.matrix, form.operation, form.finite, product_name(form)).addresses
    return found


@functools.cache
def _product(matrix: Matrix, operation: str | None, saturate: bool, name: str) -> jit.Code:
    def make() -> jit.Source:
        from gpulab.emulator.llvm.ir import IrModule
        from gpulab.emulator.native import matrix as native_matrix

        module = IrModule()
        native_matrix.define(module, matrix, operation, saturate, name)
        return jit.Source(module.text(), (name,))

    return jit.build(make, (name,), {}, (2,))


@functools.cache
def drive() -> ctypes._CFuncPtr:
    """The driver as a function of a context's address; the GIL is released while it runs."""
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(helpers().addresses["drive"])
