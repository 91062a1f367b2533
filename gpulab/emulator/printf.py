"""What device `printf`, and with it Numba's `print`, writes: C's format strings on a buffer of arguments.

``vprintf(format, arguments)`` gets two generic addresses. The arguments lie one after another with natural alignment:
integers as 4 or 8 bytes, every float as a double, strings as addresses.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

_SPECIFIER = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+)?)?"
    r"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>[a-zA-Z%])"
)
_LONG = ("l", "ll", "j", "z", "t")
_CONVERSIONS = "diuxXofFeEgGcspaA"
MOST_ARGUMENTS = 32
"""CUDA takes no more; it prints further conversions as they stand in the format."""

_WIDEST = 4096

ReadBytes = Callable[[int, int], bytes]
"""Bytes at a generic address: ``read(address, count)``."""


def format_printf(template: str, arguments: int, read: ReadBytes) -> tuple[str, int]:
    """Format a device `printf`; its text, and how many arguments it took.

    Parameters
    ----------
    template : str
        The format string.
    arguments : int
        Generic address of the argument buffer.
    read : callable
        Reads memory as the thread sees it.
    """
    buffer = _Arguments(arguments, read)
    return _SPECIFIER.sub(lambda match: _one(match, buffer), template), buffer.taken


def read_string(address: int, read: ReadBytes, limit: int = 65536) -> str:
    """The zero-terminated string at a generic address."""
    found = bytearray()
    while len(found) < limit:
        byte = read(address + len(found), 1)
        if byte == b"\0":
            break
        found += byte
    return found.decode("utf-8", "replace")


class _Arguments:
    def __init__(self, address: int, read: ReadBytes) -> None:
        self._start = address
        self._offset = 0
        self.taken = 0
        self.read = read

    def take(self, code: str) -> int | float:
        """The next argument, by its `struct` code."""
        size = struct.calcsize(code)
        self._offset = -(-self._offset // size) * size
        raw = self.read(self._start + self._offset, size)
        self._offset += size
        self.taken += 1
        return struct.unpack("<" + code, raw)[0]


@dataclass(frozen=True, slots=True)
class _Layout:
    """What stands between the percent sign and the kind of a conversion."""

    flags: str
    width: int
    precision: int | None

    @classmethod
    def read(cls, match: re.Match[str], buffer: _Arguments) -> _Layout:
        flags = match["flags"]
        width = int(buffer.take("i") if match["width"] == "*" else match["width"] or 0)
        given = int(buffer.take("i") if match["precision"] == "*" else match["precision"] or 0)
        # A negative width means left; a negative precision is none.
        precision = given if "." in match[0] and given >= 0 else None
        return cls(flags + "-" * (width < 0), min(abs(width), _WIDEST), precision and min(precision, _WIDEST))

    def sign(self, negative: bool) -> str:
        """What stands before the digits of a signed number."""
        return "-" if negative else "+" if "+" in self.flags else " " if " " in self.flags else ""

    def padded(self, prefix: str, digits: str, *, zeros: bool) -> str:
        """Prefix and digits, filled up to the width with blanks, or between them with zeros where that is allowed."""
        if "-" in self.flags:
            return (prefix + digits).ljust(self.width)
        if zeros and "0" in self.flags:
            return prefix + digits.rjust(self.width - len(prefix), "0")
        return (prefix + digits).rjust(self.width)


def _one(match: re.Match[str], buffer: _Arguments) -> str:
    kind, length = match["kind"], match["length"] or ""
    if kind == "%":
        return "%"
    if buffer.taken + 1 + match[0].count("*") > MOST_ARGUMENTS or kind not in _CONVERSIONS:
        # C leaves unknown conversions undefined; CUDA prints them as they are.
        return match[0]
    layout = _Layout.read(match, buffer)
    if kind in "diuxXo":
        code = "qQ" if length in _LONG else "iI"
        value = int(buffer.take(code[kind not in "di"]))
        return _integer(_narrowed(value, length, signed=kind in "di"), kind, layout)
    if kind in "fFeEgGaA":
        return _float(float(buffer.take("d")), kind, layout)
    if kind == "c":
        return layout.padded("", chr(int(buffer.take("i")) & 0xFF), zeros=False)
    if kind == "p":
        return layout.padded("", hex(int(buffer.take("Q"))), zeros=False)
    return layout.padded("", read_string(int(buffer.take("Q")), buffer.read)[: layout.precision], zeros=False)


def _integer(value: int, kind: str, layout: _Layout) -> str:
    digits = format(abs(value), {"x": "x", "X": "X", "o": "o"}.get(kind, "d"))
    if layout.precision is not None:
        digits = "" if layout.precision == 0 == value else digits.rjust(layout.precision, "0")
    prefix = layout.sign(value < 0) if kind in "di" else ""
    if "#" in layout.flags and kind in "xX" and value:
        prefix = "0" + kind
    if "#" in layout.flags and kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    return layout.padded(prefix, digits, zeros=layout.precision is None)


def _float(value: float, kind: str, layout: _Layout) -> str:
    sign = layout.sign(math.copysign(1, value) < 0)
    if not math.isfinite(value):
        return layout.padded(sign, format(abs(value), "F" if kind.isupper() else "f"), zeros=False)
    if kind in "aA":
        digits = _hexadecimal(abs(value), layout)
        prefix, digits = sign + digits[:2], digits[2:]
        return layout.padded(*((prefix, digits) if kind == "a" else (prefix.upper(), digits.upper())), zeros=True)
    precision = 6 if layout.precision is None else layout.precision
    return layout.padded(sign, f"%{'#' * ('#' in layout.flags)}.{precision}{kind}" % abs(value), zeros=True)


def _hexadecimal(value: float, layout: _Layout) -> str:
    """``%a``: 13 hexadecimal digits, rounded to the precision, or without the zeros at their end."""
    mantissa, exponent = value.hex().split("p")
    lead, fraction = mantissa[2], mantissa[4:].ljust(13, "0") if "." in mantissa else "0" * 13
    if layout.precision is None:
        fraction = fraction.rstrip("0")
    elif layout.precision >= len(fraction):
        fraction = fraction.ljust(layout.precision, "0")
    else:
        unit = 16 ** (len(fraction) - layout.precision)
        whole = int(lead + fraction, 16)
        rounded = whole // unit + (2 * (whole % unit) + whole // unit % 2 > unit)
        digits = f"{rounded:x}".rjust(layout.precision + 1, "0")
        lead, fraction = digits[: len(digits) - layout.precision], digits[len(digits) - layout.precision :]
    point = "." if fraction or "#" in layout.flags else ""
    return f"0x{lead}{point}{fraction}p{exponent}"


def _narrowed(value: int, length: str, *, signed: bool) -> int:
    bits = {"hh": 8, "h": 16}.get(length)
    if bits is None:
        return value
    low = value & (1 << bits) - 1
    return low - (1 << bits) if signed and low >> (bits - 1) else low
