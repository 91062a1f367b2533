"""The approximate functions as LLVM IR: `approximations` evaluated with these operations."""

from __future__ import annotations

import struct

from gpulab.emulator.approximations import approximation
from gpulab.emulator.llvm.ir import Builder, Value, constant
from gpulab.emulator.lower.convert import to_integer
from gpulab.emulator.lower.floats import flush, is_float, prepared
from gpulab.emulator.lower.halves import flush_half, halves, is_half, narrowed, pack, to_odd, widened
from gpulab.emulator.lower.table import pure
from gpulab.ptx.opcodes import Form


class IrOperations:
    """The operations that an algorithm may use, as instructions; see `approximations.Operations`."""

    def __init__(self, builder: Builder) -> None:
        self._b = builder

    def real(self, value: float) -> Value:
        return constant("double", struct.unpack("<Q", struct.pack("<d", value))[0])

    def integer(self, value: int) -> Value:
        return constant("i64", value)

    def add(self, a: Value, b: Value) -> Value:
        return self._b.binary("fadd", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self._b.binary("fsub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self._b.binary("fmul", a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self._b.binary("fdiv", a, b)

    def sqrt(self, a: Value) -> Value:
        return self._b.intrinsic("llvm.sqrt", a)

    def floor(self, a: Value) -> Value:
        return self._b.intrinsic("llvm.floor", a)

    def less(self, a: Value, b: Value) -> Value:
        return self._b.compare("olt", a, b)

    def equal(self, a: Value, b: Value) -> Value:
        return self._b.compare("oeq", a, b)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self._b.select(condition, a, b)

    def bits(self, a: Value) -> Value:
        return self._b.bitcast(a, "i64")

    def from_bits(self, a: Value) -> Value:
        return self._b.bitcast(a, "double")

    def to_integer(self, a: Value) -> Value:
        # Saturating, because lanes that are not active may hold anything, and nothing may be undefined.
        return to_integer(self._b, "llvm.fptosi.sat", a, "i64")

    def to_real(self, a: Value) -> Value:
        return self._b.cast("sitofp", a, "double")

    def iadd(self, a: Value, b: Value) -> Value:
        return self._b.add(a, b)

    def iand(self, a: Value, b: Value) -> Value:
        return self._b.and_(a, b)

    def ior(self, a: Value, b: Value) -> Value:
        return self._b.or_(a, b)

    def shift_left(self, a: Value, count: int) -> Value:
        return self._b.shl(a, count)

    def shift_right(self, a: Value, count: int) -> Value:
        return self._b.lshr(a, count)


def _approximate(b: Builder, form: Form, *values: Value) -> Value:
    wide = [b.cast("fpext", v, "double") if v.type == "float" else v for v in prepared(b, form, *values)]
    result = approximation(form)(IrOperations(b), *wide)
    if form.type == "f64":
        return result
    rounded = b.cast("fptrunc", result, "float")
    return flush(b, rounded) if form.ftz else rounded


def _approximate_half(b: Builder, form: Form, a: Value) -> Value:
    kind = (form.type or "").removesuffix("x2")

    def one(bits: Value) -> Value:
        wide = b.cast("fpext", widened(b, kind, bits, form.ftz), "double")
        result = narrowed(b, kind, to_odd(b, approximation(form)(IrOperations(b), wide)))
        return flush_half(b, result) if form.ftz and kind == "f16" else result

    if (form.type or "").endswith("x2"):
        low, high = halves(b, a)
        return pack(b, one(low), one(high))
    return one(a)


def _approximates(form: Form) -> bool:
    return form.mode in ("approx", "full") and is_float(form)


for _opcode in ("rcp", "sqrt", "rsqrt", "div", "ex2", "lg2", "sin", "cos", "tanh"):
    pure(_opcode, _approximates)(_approximate)
for _opcode in ("ex2", "tanh"):
    pure(_opcode, is_half)(_approximate_half)
