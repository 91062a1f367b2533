"""What device `printf`, and with it Numba's `print`, writes: C's format strings on a buffer of arguments.

``vprintf(format, arguments)`` gets two generic addresses. The arguments lie one after another with natural alignment:
integers as 4 or 8 bytes, every float as a double, strings as addresses.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

_SPECIFIER = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d+)?)?"
    r"(?P<length>hh|h|ll|l|j|z|t|L)?(?P<kind>[a-zA-Z%])"
)
_LONG = ("l", "ll", "j", "z", "t")
_CONVERSIONS = "diuxXofFeEgGcspaA"
MOST_ARGUMENTS = 32
"""CUDA takes no more; it prints further conversions as they stand in the format."""

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


def _one(match: re.Match[str], buffer: _Arguments) -> str:
    kind = match["kind"]
    if kind == "%":
        return "%"
    if buffer.taken + 1 + match[0].count("*") > MOST_ARGUMENTS or kind not in _CONVERSIONS:
        # C leaves unknown conversions undefined; CUDA prints them as they are.
        return match[0]
    width = str(buffer.take("i")) if match["width"] == "*" else match["width"] or ""
    precision = str(buffer.take("i")) if match["precision"] == "*" else match["precision"]
    has_precision = "." in match[0]
    layout = match["flags"] + width + (f".{precision or 0}" if has_precision else "")
    return _formatted(kind, match["length"] or "", layout, buffer)


def _formatted(kind: str, length: str, layout: str, buffer: _Arguments) -> str:
    if kind in "di":
        return f"%{layout}d" % _narrowed(buffer.take("q" if length in _LONG else "i"), length, signed=True)
    if kind in "uxXo":
        value = _narrowed(buffer.take("Q" if length in _LONG else "I"), length, signed=False)
        return f"%{layout}{'d' if kind == 'u' else kind}" % value
    if kind in "fFeEgG":
        return f"%{layout}{kind}" % buffer.take("d")
    if kind == "c":
        return f"%{layout}c" % chr(int(buffer.take("i")) & 0xFF)
    if kind == "s":
        return f"%{layout}s" % read_string(int(buffer.take("Q")), buffer.read)
    if kind == "p":
        return f"%{layout}s" % hex(int(buffer.take("Q")))
    digits = float(buffer.take("d")).hex()
    return f"%{layout.partition('.')[0]}s" % (digits.upper() if kind == "A" else digits)


def _narrowed(value: int | float, length: str, *, signed: bool) -> int:
    bits = {"hh": 8, "h": 16}.get(length)
    if bits is None:
        return int(value)
    low = int(value) & (1 << bits) - 1
    return low - (1 << bits) if signed and low >> (bits - 1) else low
