"""Pairs in one register (u16x2, s16x2, f32x2) and f32 arithmetic on half sources: by the definitions of plain types."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpulab.emulator.reference.halves import HALVES, widen
from gpulab.emulator.reference.values import DTYPES, defines, pure_function
from gpulab.ptx.opcodes import Form

PAIRS = ("u16x2", "s16x2", "f32x2")


def _is_pair(form: Form) -> bool:
    return form.type in PAIRS


def _is_mixed(form: Form) -> bool:
    return form.type == "f32" and form.source_type in HALVES


def _define(form: Form, *sources: np.ndarray) -> np.ndarray:
    function = pure_function(form)
    assert function is not None, f"{form.opcode} is not defined for {form.type}"
    return function(form, *sources)


def _by_element(form: Form, *sources: np.ndarray) -> np.ndarray:
    """Each half by the scalar definition, the lower one first."""
    kind = (form.type or "").removesuffix("x2")
    single = replace(form, type=kind)
    parts = [np.ascontiguousarray(source).view(DTYPES[kind]).reshape(-1, 2) for source in sources]
    halves = [_define(single, *(part[:, place].copy() for part in parts)) for place in (0, 1)]
    return np.stack(halves, axis=1).view(DTYPES[form.type or ""])[:, 0]


def _widened(form: Form, *sources: np.ndarray) -> np.ndarray:
    """The half sources as f32, exactly; then f32 arithmetic."""
    kind = form.source_type or ""
    wide = [
        widen(source, kind).astype(np.float32) if role.type == kind else source
        for source, role in zip(sources, form.roles[1:], strict=True)
    ]
    return _define(replace(form, source_type=None), *wide)


for _opcode in ("add", "sub", "mul", "fma", "min", "max"):
    defines(_opcode, _is_pair)(_by_element)
for _opcode in ("add", "sub", "fma"):
    defines(_opcode, _is_mixed)(_widened)
