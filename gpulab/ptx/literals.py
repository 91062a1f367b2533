"""Numbers as PTX spells them (PTX ISA 4.5, Constants)."""

from __future__ import annotations

import struct

from gpulab.ptx.syntax import Immediate


def number(spelling: str) -> Immediate:
    """Read a numeric token: decimal, hexadecimal, octal, binary, float, or the exact ``0f``/``0d`` patterns."""
    prefix = spelling[:2].lower()
    if prefix == "0f":
        return _pattern(spelling, ">I", ">f")
    if prefix == "0d":
        return _pattern(spelling, ">Q", ">d")
    if prefix in ("0x", "0b"):
        return Immediate(int(spelling.rstrip("U"), 0))
    if "." in spelling or "e" in spelling.lower():
        return Immediate(float(spelling))
    digits = spelling.rstrip("U")
    return Immediate(int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10))


def negative(value: Immediate) -> Immediate:
    """The value with a minus sign before it; of an exact pattern the sign bit is turned."""
    if value.bits is None:
        return Immediate(-value.value)
    width = 32 if is_single(value) else 64
    return Immediate(-value.value, value.bits ^ (1 << (width - 1)))


def _pattern(spelling: str, integer: str, floating: str) -> Immediate:
    bits = int(spelling[2:], 16)
    return Immediate(struct.unpack(floating, struct.pack(integer, bits))[0], bits)


def is_single(value: Immediate) -> bool:
    """Whether an exact pattern has 32 bits, as ``0f`` has, and not 64."""
    # A 0d pattern below 2**32 is a denormal double; as a 0f pattern it would have another value.
    return value.bits < 2**32 and struct.pack(">d", value.value) != struct.pack(">Q", value.bits)
