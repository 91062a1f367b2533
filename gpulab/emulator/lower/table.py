"""The table of lowering functions, by opcode.

`PURE` functions compute results from sources alone (builder, form, sources -> result or results); the engine reads the
sources, applies guard and masks and writes the destinations. Everything else (memory, control flow, warp operations) is
lowered by functions that get the whole state of the lowering.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulab.ptx.opcodes import Form

PureFunction = Callable[..., Any]
Condition = Callable[[Form], bool]

PURE: dict[str, list[tuple[Condition, PureFunction]]] = {}

ELEMENTS = {
    **{f"{family}{bits}": f"i{bits}" for family in "usb" for bits in (8, 16, 32, 64, 128)},
    "pred": "i1",
    "f32": "float",
    "f64": "double",
    # Halves are kept as bits and computed in wider types.
    "f16": "i16",
    "bf16": "i16",
    "f16x2": "i32",
    "bf16x2": "i32",
    "tf32": "i32",
    "u16x2": "i32",
    "s16x2": "i32",
    "f32x2": "i64",
    "e4m3x2": "i16",
    "e5m2x2": "i16",
}
"""LLVM element type of each PTX type."""


def pure(opcode: str, condition: Condition = lambda form: True) -> Callable[[PureFunction], PureFunction]:
    """Enter a function into the table, for the forms that meet `condition`."""

    def enter(function: PureFunction) -> PureFunction:
        PURE.setdefault(opcode, []).append((condition, function))
        return function

    return enter


def pure_function(form: Form) -> PureFunction | None:
    """The function for a form, or None."""
    return next((function for condition, function in PURE.get(form.opcode, ()) if condition(form)), None)


STATEFUL: dict[str, Callable[[Any], None]] = {}


def lowers(*opcodes: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Enter a function of the whole state into the table, for some opcodes."""

    def enter(function: Callable[[Any], None]) -> Callable[[Any], None]:
        STATEFUL.update(dict.fromkeys(opcodes, function))
        return function

    return enter
