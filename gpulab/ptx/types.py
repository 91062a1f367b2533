"""PTX types: sizes and families (PTX ISA 5.2)."""

from __future__ import annotations

TYPE_BYTES = {
    **{f"{family}{bits}": bits // 8 for family in "usb" for bits in (8, 16, 32, 64)},
    "b128": 16,
    "f16": 2,
    "bf16": 2,
    "f16x2": 4,
    "bf16x2": 4,
    "u16x2": 4,
    "s16x2": 4,
    "f32x2": 8,
    "e4m3x2": 2,
    "e5m2x2": 2,
    "tf32": 4,
    "f32": 4,
    "f64": 8,
    "pred": 1,
}
"""Bytes of a value of each type; a predicate counts as one, it is never in memory."""

SPACES = ("global", "shared", "local", "param", "const", "reg")
"""State spaces in which a variable can be declared."""


def bits_of(type_name: str) -> int:
    """Width of a type in bits."""
    return 8 * TYPE_BYTES[type_name]


def is_float(type_name: str) -> bool:
    """Whether a type holds one floating-point value or a pair of them."""
    return type_name.lstrip("b").startswith(("f", "tf"))


def is_signed(type_name: str) -> bool:
    """Whether a type is a signed integer."""
    return type_name[0] == "s"
