"""Numbers as people read them: three significant digits, SI prefixes for time and rates, binary ones for capacities.

The texts are the same on every machine, so that they can stand in notebooks that are compared.
"""

from __future__ import annotations

_TIMES = ((1e9, "ns"), (1e6, "µs"), (1e3, "ms"))
_SIZES = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def three_digits(value: float) -> str:
    """Three significant digits without an exponent: ``0.123``, ``4.56``, ``78.9``, ``1,230``."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    decimals = 2 if abs(rounded) >= 1 else 1
    while abs(rounded) < 10**-decimals * 100 and decimals < 12 and abs(rounded) < 1:
        decimals += 1
    text = f"{rounded:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds_text(seconds: float) -> str:
    """A time: ``123 µs``, ``4.56 ms``."""
    for factor, unit in _TIMES:
        if seconds * factor < 999.5:
            return f"{three_digits(seconds * factor)} {unit}"
    return f"{three_digits(seconds)} s"


def range_text(low: float, high: float) -> str:
    """A range of times in one unit: ``89.7 to 112 µs``."""
    for factor, unit in _TIMES:
        if high * factor < 999.5:
            return f"{three_digits(low * factor)} to {three_digits(high * factor)} {unit}"
    return f"{three_digits(low)} to {three_digits(high)} s"


def bytes_text(count: float) -> str:
    """A capacity: ``48 KiB``, ``1.5 MiB``, ``100 bytes``."""
    for size, unit in _SIZES:
        if count >= size:
            return f"{three_digits(count / size)} {unit}"
    return f"{count:,.0f} bytes"


def count_text(value: float) -> str:
    """A count in full (``1,048,576``), or three digits if it is no whole number."""
    return f"{value:,.0f}" if float(value).is_integer() else three_digits(value)
