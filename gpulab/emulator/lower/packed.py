"""Pairs in one register (u16x2, s16x2, f32x2) and f32 arithmetic on half sources, as LLVM IR."""

from __future__ import annotations

from dataclasses import replace

from gpulab.emulator.llvm.ir import Builder, Value, bits_of, int_of
from gpulab.emulator.lower.halves import widened
from gpulab.emulator.lower.numbers import canonical_nan
from gpulab.emulator.lower.table import ELEMENTS, pure, pure_function
from gpulab.ptx.opcodes import Form


def _is_pair(form: Form) -> bool:
    return form.type in ("u16x2", "s16x2", "f32x2")


def _is_mixed(form: Form) -> bool:
    return form.type == "f32" and form.source_type in ("f16", "bf16")


def _lower(b: Builder, form: Form, *sources: Value) -> Value:
    function = pure_function(form)
    assert function is not None, f"{form.opcode} has no code for {form.type}"
    return function(b, form, *sources)


def _by_element(b: Builder, form: Form, *sources: Value) -> Value:
    """Each half by the code of its own type, the lower one first."""
    kind, whole = (form.type or "").removesuffix("x2"), ELEMENTS[form.type or ""]
    width, single = bits_of(whole) // 2, replace(form, type=kind)
    halves = []
    for place in (0, 1):
        parts = [b.resize(b.lshr(source, width * place) if place else source, f"i{width}") for source in sources]
        result = _lower(b, single, *(b.bitcast(part, ELEMENTS[kind]) for part in parts))
        if kind == "f32":
            result = canonical_nan(b, result)
        halves.append(b.resize(b.bitcast(result, int_of(result.type)), whole))
    return b.or_(halves[0], b.shl(halves[1], width))


def _widened(b: Builder, form: Form, *sources: Value) -> Value:
    """The half sources as f32, exactly; then f32 arithmetic."""
    kind = form.source_type or ""
    wide = [
        widened(b, kind, source) if role.type == kind else source
        for source, role in zip(sources, form.roles[1:], strict=True)
    ]
    return _lower(b, replace(form, source_type=None), *wide)


for _opcode in ("add", "sub", "mul", "fma", "min", "max"):
    pure(_opcode, _is_pair)(_by_element)
for _opcode in ("add", "sub", "fma"):
    pure(_opcode, _is_mixed)(_widened)
