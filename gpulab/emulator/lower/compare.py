"""Comparisons and selections as LLVM IR: `setp`, `set`, `selp`, `slct`."""

from __future__ import annotations

from gpulab.emulator.llvm.ir import FLOAT_BITS, Builder, Value, constant
from gpulab.emulator.lower.floats import prepared
from gpulab.emulator.lower.halves import halves, pack, widened
from gpulab.emulator.lower.table import pure
from gpulab.ptx.opcodes import Form

_FLOAT = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq", "neu": "une",
          "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno"}  # fmt: skip
_UNSIGNED = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
_HALF_TYPES = ("f16", "bf16")


def compared(b: Builder, form: Form, type_name: str, a: Value, c: Value) -> Value:
    """The comparison itself, without the boolean operation."""
    if type_name in _HALF_TYPES:
        a, c = widened(b, type_name, a, form.ftz), widened(b, type_name, c, form.ftz)
    if a.type in FLOAT_BITS:
        a, c = prepared(b, form, a, c)
        return b.compare(_FLOAT[form.comparison or ""], a, c)
    name = form.comparison or ""
    if name in ("eq", "ne"):
        return b.compare(name, a, c)
    return b.compare(_UNSIGNED.get(name) or ("s" if type_name[0] == "s" else "u") + name, a, c)


def _combined(b: Builder, form: Form, condition: Value, other: Value | None) -> Value:
    return condition if other is None else b.binary(form.boolean or "and", condition, other)


@pure("setp")
def setp(b: Builder, form: Form, a: Value, c: Value, other: Value | None = None) -> tuple[Value, Value]:
    type_name = form.type or ""
    if type_name.endswith("x2"):
        (a0, a1), (c0, c1) = halves(b, a), halves(b, c)
        pairs = ((a0, c0), (a1, c1))
        low, high = (_combined(b, form, compared(b, form, type_name[:-2], x, y), other) for x, y in pairs)
        return low, high
    condition = compared(b, form, type_name, a, c)
    return _combined(b, form, condition, other), _combined(b, form, b.not_(condition), other)


_TRUE = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f32": 0x3F800000, "u16": 0xFFFF, "s16": 0xFFFF, "f16": 0x3C00,
         "bf16": 0x3F80}  # fmt: skip


@pure("set")
def set_(b: Builder, form: Form, a: Value, c: Value, other: Value | None = None) -> Value:
    source, target = form.source_type or "", form.type or ""
    if source.endswith("x2"):
        (a0, a1), (c0, c1) = halves(b, a), halves(b, c)
        half = target[:-2] if target == source else "u16"
        parts = [_as_number(b, form, source[:-2], half, x, y, other) for x, y in ((a0, c0), (a1, c1))]
        return pack(b, *parts)
    return _as_number(b, form, source, target, a, c, other)


def _as_number(b: Builder, form: Form, source: str, target: str, a: Value, c: Value, other: Value | None) -> Value:
    condition = _combined(b, form, compared(b, form, source, a, c), other)
    element = "float" if target == "f32" else "i32" if target[1:] == "32" else "i16"
    return b.select(condition, constant(element, _TRUE[target]), constant(element, 0))


@pure("selp")
def selp(b: Builder, form: Form, a: Value, c: Value, condition: Value) -> Value:
    return b.select(condition, a, c)


@pure("slct")
def slct(b: Builder, form: Form, a: Value, c: Value, chooser: Value) -> Value:
    if chooser.type in FLOAT_BITS:
        (chooser,) = prepared(b, form, chooser)
        return b.select(b.compare("oge", chooser, constant(chooser.type, 0)), a, c)
    return b.select(b.is_("sge", chooser, 0), a, c)
