"""`Table`: rows of text that show themselves in a terminal and in a notebook, in light and dark themes alike."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

# No colors of its own: text and lines take the notebook's, so that contrast is right in every theme.
_STYLE = "border-collapse:collapse;text-align:left;color:inherit;background:transparent"
_CELL = "padding:2px 12px 2px 0;border-bottom:1px solid rgba(128,128,128,.4);text-align:left;vertical-align:top"
_UNBROKEN = 20  # letters: numbers keep their units, names stay on one line; sentences may wrap


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text.

    Attributes
    ----------
    title : str
    columns : tuple of str
    rows : tuple of tuple of str
        One text for each column; the first names the row.
    notes : tuple of str
        Sentences below the table.
    right : tuple of int
        Numbers of the columns that are flush right.
    below : int or None
        The last column, where plain text shows it on a line of its own below its row. HTML leaves it out where no
        row has anything in it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    right: tuple[int, ...] = ()
    below: int | None = None

    def __repr__(self) -> str:
        across = [number for number in range(len(self.columns)) if number != self.below]
        widths = {number: max(len(row[number]) for row in (self.columns, *self.rows)) for number in across}
        lines = [self.title, self._line(self.columns, widths)]
        for row in self.rows:
            lines.append(self._line(row, widths))
            if self.below is not None and row[self.below]:
                lines.append(f"    {row[self.below]}")
        return "\n".join([*lines, *self.notes])

    def _line(self, row: Sequence[str], widths: dict[int, int]) -> str:
        cells = (
            row[number].rjust(width) if number in self.right else row[number].ljust(width)
            for number, width in widths.items()
        )
        return "  ".join(cells).rstrip()

    def _repr_html_(self) -> str:
        if self.below is not None and not any(row[self.below] for row in self.rows):
            return self._without(self.below)._repr_html_()
        head = "".join(self._cell("th", "col", number, text) for number, text in enumerate(self.columns))
        body = "".join(f"<tr>{self._html_row(row)}</tr>" for row in self.rows)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        caption = f'<caption style="text-align:left;color:inherit"><b>{html.escape(self.title)}</b></caption>'
        return (
            f'<table class="gpulab" style="{_STYLE}">{caption}<thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table>{notes}"
        )

    def _without(self, column: int) -> Table:
        """The table less its last column."""
        rows = tuple(row[:column] for row in self.rows)
        return Table(self.title, self.columns[:column], rows, self.notes, self.right)

    def _html_row(self, row: Sequence[str]) -> str:
        first = self._cell("th", "row", 0, row[0])
        return first + "".join(self._cell("td", None, number, text) for number, text in enumerate(row) if number)

    def _cell(self, tag: str, scope: str | None, number: int, text: str) -> str:
        align = _CELL.replace("text-align:left", "text-align:right") if number in self.right else _CELL
        if len(text) <= _UNBROKEN:
            align += ";white-space:nowrap"
        attribute = f' scope="{scope}"' if scope else ""
        return f'<{tag}{attribute} style="{align}">{html.escape(text)}</{tag}>'
