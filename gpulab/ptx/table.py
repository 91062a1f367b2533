"""The instruction table read: its rows, and which spellings of an instruction they are for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from gpulab.ptx.isa import SETS, TABLE
from gpulab.ptx.types import TYPE_BYTES


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    syntax: str
    operands: str
    pipe: str
    kind: str
    section: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """What spellings of an instruction it is for, made when it is first asked: most rows never are."""
        return _pattern(self.syntax)

    def match(self, opcode: str, modifiers: tuple[str, ...]) -> re.Match[str] | None:
        """The choices that a spelling makes, its modifiers in any order; None if the row is not for it."""
        spelling = ".".join((opcode, *modifiers))
        return self.pattern.fullmatch(spelling) or self.pattern.fullmatch(self._arranged(opcode, modifiers))

    def _arranged(self, opcode: str, modifiers: tuple[str, ...]) -> str:
        """The modifiers in the row's order, those that it does not have at the end; types keep theirs."""
        left, found = list(modifiers), [opcode]
        for words in _slots(self.syntax):
            place = next((place for place, word in enumerate(left) if word in words), None)
            if place is not None:
                found.append(left.pop(place))
        found += left
        types, wanted = ([word for word in words if word in TYPE_BYTES] for words in (found, modifiers))
        return ".".join(found) if types == wanted else ""


@lru_cache(maxsize=1)
def rows() -> dict[str, tuple[Row, ...]]:
    """The table's rows by opcode, in its order."""
    found: dict[str, list[Row]] = {}
    for row in _read_table():
        found.setdefault(re.match(r"\w+", row.syntax)[0], []).append(row)  # type: ignore[index]
    return {opcode: tuple(entries) for opcode, entries in found.items()}


def _read_table() -> Iterator[Row]:
    family, defaults = "", ""
    for line in filter(None, TABLE.splitlines()):
        if line.startswith("=="):
            family, defaults = (part.strip() for part in line[2:].split("|"))
            continue
        # A single | separates columns only with blanks around it; d|p has none.
        syntax, operands, *rest = (part.strip() for part in re.split(r"\s\|(?:\s|$)", line))
        pipe, kind = (rest[0] if rest else defaults).split()
        opcode = re.match(r"\w+", syntax)[0]  # type: ignore[index]
        yield Row(syntax, operands, pipe, kind, f"{family}-{opcode}")


@cache
def _pattern(syntax: str) -> re.Pattern[str]:
    """The regular expression of a row: a named group for each ``<choice>``, an optional one for each ``{}``."""
    pieces = re.split(r"<([^>]*)>", syntax)
    literals = [re.escape(piece).replace(r"\{", "(?:").replace(r"\}", ")?") for piece in pieces[::2]]
    choices = [_choice(piece) for piece in pieces[1::2]]
    return re.compile("".join(piece for pair in zip(literals, [*choices, ""], strict=True) for piece in pair))


def _choice(text: str) -> str:
    return f"(?P<{text.partition(':')[0]}>{'|'.join(re.escape(word) for word in _words(text))})"


def _words(choice: str) -> tuple[str, ...]:
    """The alternatives of ``name: words``, sets spelled out."""
    name, _, words = choice.partition(":")
    return tuple(" ".join(SETS.get(word, word) for word in (words or name).split()).split())


@cache
def _slots(syntax: str) -> tuple[tuple[str, ...], ...]:
    """The words that may stand at each place behind the opcode."""
    found = re.findall(r"\.(?:<([^>]*)>|([\w:]+))", syntax)
    return tuple(_words(choice) if choice else (literal,) for choice, literal in found)
