"""Values of the interpreter: NumPy arrays of 32 lanes, one dtype for each PTX type; and the table of its instructions.

bf16 has no dtype: its patterns travel as uint16. So do packed values, each in the unsigned integer of its width, and b128
as two words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpulab.ptx.opcodes import Form
from gpulab.ptx.types import TYPE_BYTES

LANES = 32

DTYPES: dict[str, np.dtype] = {
    "pred": np.dtype(bool),
    **{f"{family}{bits}": np.dtype(f"u{bits // 8}") for family in "ub" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(np.uint16),
    "f16x2": np.dtype(np.uint32),
    "bf16x2": np.dtype(np.uint32),
    "tf32": np.dtype(np.uint32),
    "u16x2": np.dtype(np.uint32),
    "s16x2": np.dtype(np.uint32),
    "f32x2": np.dtype(np.uint64),
    "e4m3x2": np.dtype(np.uint16),
    "e5m2x2": np.dtype(np.uint16),
    "b128": np.dtype([("low", np.uint64), ("high", np.uint64)]),
}
UNSIGNED = {1: np.dtype("u1"), 2: np.dtype("u2"), 4: np.dtype("u4"), 8: np.dtype("u8"), 16: DTYPES["b128"]}

CANONICAL_NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FFFFFFFFFFFFFFF}
"""The NaN that arithmetic gives: hardware does not hand payloads on."""

PureFunction = Callable[..., Any]
_PURE: dict[str, list[tuple[Callable[[Form], bool], PureFunction]]] = {}


def defines(opcode: str, when: Callable[[Form], bool] = lambda form: True) -> Callable[[PureFunction], PureFunction]:
    """Enter a function of sources alone into the table: ``function(form, *sources)`` gives the destination's lanes."""

    def enter(function: PureFunction) -> PureFunction:
        _PURE.setdefault(opcode, []).append((when, function))
        return function

    return enter


def pure_function(form: Form) -> PureFunction | None:
    """The function that defines a form, or None if it needs more than its sources."""
    return next((function for when, function in _PURE.get(form.opcode, ()) if when(form)), None)


def register_dtype(type_name: str) -> np.dtype:
    """How a register of a type is stored: as a pattern, whatever is written into it."""
    return DTYPES["pred"] if type_name == "pred" else UNSIGNED[TYPE_BYTES[type_name]]


def from_register(pattern: np.ndarray, type_name: str) -> np.ndarray:
    """Read a register's pattern as a type, cutting off upper bits."""
    if type_name == "pred" or pattern.dtype == bool:
        return pattern
    return pattern.astype(UNSIGNED[TYPE_BYTES[type_name]]).view(DTYPES[type_name])


def to_register(value: np.ndarray, type_name: str, register_type: str) -> np.ndarray:
    """The pattern that a register gets from a value: extended by its sign if the type is signed, else by zeros."""
    stored = register_dtype(register_type)
    if register_type == "pred":
        return value.astype(bool)
    signed_view = value.view(DTYPES[type_name])
    if type_name[0] == "s":
        return signed_view.astype(f"i{stored.itemsize}").view(stored)
    return signed_view.view(UNSIGNED[signed_view.dtype.itemsize]).astype(stored)


def lanewise(function: Callable[..., int], dtype: np.dtype, *sources: np.ndarray) -> np.ndarray:
    """Apply a function of Python numbers to each lane; integers are exact and wrap into the dtype."""
    results = [function(*lane) for lane in zip(*(source.tolist() for source in sources), strict=True)]
    return wrap(results, dtype)


def wrap(exact: list[int], dtype: np.dtype) -> np.ndarray:
    """Cut exact integers to the bits of an integer dtype."""
    mask = (1 << 8 * dtype.itemsize) - 1
    return np.array([value & mask for value in exact], UNSIGNED[dtype.itemsize]).view(dtype)


def canonical(value: np.ndarray, type_name: str) -> np.ndarray:
    """Replace every NaN by the canonical one."""
    is_nan = np.isnan(value)
    if not is_nan.any():
        return value
    pattern = UNSIGNED[value.dtype.itemsize].type(CANONICAL_NAN[type_name])
    return np.where(is_nan, pattern.view(value.dtype), value)
