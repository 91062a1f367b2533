"""Tables for the terminal: the same on every machine, at most 100 columns, long texts wrapped inside their column."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterable, Sequence

from gpulab.profiling.table import Table

WIDTH = 100
_GAP = 2
_NARROWEST = 12  # a column of text is not squeezed below this


def fitted(table: Table) -> str:
    """The table as text: title, header, rows with their lines below, notes."""
    across = [number for number in range(len(table.columns)) if number != table.below]
    widths = _widths(table, across)
    lines = [*_wrap(table.title, "")] if table.title else []
    lines += _row([table.columns[number] for number in across], widths, across, table.right)
    lines.append("  ".join("-" * width for width in widths))
    for row in table.rows:
        lines += _row([row[number] for number in across], widths, across, table.right)
        if table.below is not None and row[table.below]:
            lines += _wrap(row[table.below], "    ")
    for note in table.notes:
        lines += _wrap(note, "")
    return "\n".join(lines)


def _widths(table: Table, across: list[int]) -> list[int]:
    """Widths of the columns: as wide as their widest cell; if that is too much, texts give way before numbers."""
    widths = [max(len(row[number]) for row in (table.columns, *table.rows)) for number in across]
    texts = [place for place, number in enumerate(across) if number not in table.right]
    while _excess(widths) > 0 and any(widths[place] > _NARROWEST for place in texts):
        widths[max(texts, key=lambda place: widths[place])] -= 1
    # Of the others the widest goes first, down to its longest word: "no clear difference" breaks before "3 to 4 ms".
    for place in sorted(range(len(widths)), key=lambda place: -widths[place]):
        words = " ".join(row[across[place]] for row in (table.columns, *table.rows)).split()
        longest = max(map(len, words), default=0)
        widths[place] = max(widths[place] - max(_excess(widths), 0), min(widths[place], longest))
    return widths


def _excess(widths: list[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1) - WIDTH


def cut(table: Table) -> Table:
    """The same table with its last column cut to what is left of the width: for source lines, which wrap badly."""
    others = [max(len(row[number]) for row in (table.columns, *table.rows)) for number in range(len(table.columns) - 1)]
    room = max(WIDTH - sum(others) - _GAP * len(others), _NARROWEST)
    rows = tuple((*row[:-1], row[-1] if len(row[-1]) <= room else f"{row[-1][: room - 2]}..") for row in table.rows)
    return dataclasses.replace(table, rows=rows)


def _row(cells: Sequence[str], widths: list[int], across: list[int], right: Iterable[int]) -> list[str]:
    columns = [textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, columns))
    lines = []
    for line in range(height):
        texts = [column[line] if line < len(column) else "" for column in columns]
        padded = (
            text.rjust(width) if number in right else text.ljust(width)
            for text, width, number in zip(texts, widths, across, strict=True)
        )
        lines.append("  ".join(padded).rstrip())
    return lines


def pairs(items: Iterable[tuple[str, str]], indent: str = "") -> str:
    """One line for each (name, value), values aligned and wrapped to the width."""
    items = list(items)
    width = max((len(name) for name, _ in items), default=0)
    return "\n".join(wrapped(value, first=f"{indent}{name.ljust(width)}  ") for name, value in items)


def wrapped(text: str, first: str = "") -> str:
    """`text` wrapped to the width behind `first`, further lines indented as deep."""
    return "\n".join(_wrap(text, first))


def _wrap(text: str, first: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first]
