"""Plain-text tables and numbers for the terminal: the same on every machine, at most 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 100


def table(headers: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int] = (0,)) -> str:
    """Rows under headers, columns two spaces apart. Columns whose number is in `left` are flush left, others right."""
    left = set(left)
    cells = [list(headers), *map(list, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    lines = [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def pairs(items: Iterable[tuple[str, str]], indent: str = "") -> str:
    """One line for each (name, value), values aligned and wrapped to the width."""
    items = list(items)
    width = max((len(name) for name, _ in items), default=0)
    return "\n".join(wrapped(value, first=f"{indent}{name.ljust(width)}  ") for name, value in items)


def wrapped(text: str, first: str = "") -> str:
    """`text` wrapped to the width behind `first`, further lines indented as deep."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )


def seconds(value: float | None) -> str:
    """A time with three digits: ``123 us``, ``4.56 ms``."""
    if value is None:
        return "-"
    for factor, unit in ((1e9, "ns"), (1e6, "us"), (1e3, "ms")):
        scaled = value * factor
        if scaled < 999.5:
            return f"{three_digits(scaled)} {unit}"
    return f"{three_digits(value)} s"


def three_digits(value: float) -> str:
    """Three significant digits without an exponent: ``0.123``, ``4.56``, ``78.9``, ``1230``."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 100:
        return f"{rounded:.0f}"
    return f"{rounded:.{2 if abs(rounded) < 10 else 1}f}" if abs(rounded) >= 1 else f"{rounded:.3g}"


def number(value: float | int | None) -> str:
    """A count with thousands separators; other numbers with three digits; ``-`` for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return three_digits(value)
