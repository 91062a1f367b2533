"""e4m3 and e5m2, the 8-bit floats, in pairs; by their value tables (PTX ISA 5.2.3, alternate floating-point formats)."""

from __future__ import annotations

from functools import cache
from math import copysign, inf, nan

import numpy as np

from gpulab.emulator import exact

FORMATS = {"e4m3": exact.Format(4, -9, 9), "e5m2": exact.Format(3, -16, 16)}
LARGEST = {"e4m3": 0x7E, "e5m2": 0x7B}
CANONICAL_NAN = 0x7F


@cache
def values(kind: str) -> tuple[float, ...]:
    """The numbers of the codes 0 to 127; those of the other 128 are the same with a minus sign."""
    fraction_bits = FORMATS[kind].precision - 1
    found = []
    for code in range(128):
        exponent, fraction = code >> fraction_bits, code & (1 << fraction_bits) - 1
        scale = 2.0 ** (max(exponent, 1) - 1 + FORMATS[kind].lowest)
        found.append((fraction + ((exponent > 0) << fraction_bits)) * scale)
    # e4m3 has no infinity and one NaN; e5m2 has both, as IEEE 754 does.
    return (*found[:127], nan) if kind == "e4m3" else (*found[:124], inf, nan, nan, nan)


def encode(kind: str, value: np.ndarray) -> np.ndarray:
    """Float64 rounded to nearest and kept finite, as codes (uint16); every NaN becomes the canonical one."""
    table = {number: code for code, number in enumerate(values(kind)[: LARGEST[kind] + 1])}
    largest = values(kind)[LARGEST[kind]]

    def one(x: float) -> int:
        if x != x:
            return CANONICAL_NAN
        magnitude = min(exact.round_to(abs(x), "rn", FORMATS[kind]), largest)
        return table[magnitude] | (0x80 if copysign(1.0, x) < 0 else 0)

    return np.array([one(x) for x in value.tolist()], np.uint16)


def decode(kind: str, code: np.ndarray) -> np.ndarray:
    """The numbers of codes, as float64."""
    table = np.array(values(kind))
    return np.where(code & 0x80, -1.0, 1.0) * table[code & 0x7F]
