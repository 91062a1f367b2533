"""Every form of the instruction table, spelled out: opcode times types times modifiers, with operands that fit."""

from __future__ import annotations

import itertools
import math
import random
import re

from gpulab.ptx.isa import SETS
from gpulab.ptx.opcodes import Form, _forms
from gpulab.ptx.table import Row, rows

# Not every combination of a row's words is a form: so many are tried for each one that is wanted.
TRIES = 12
_PART = re.compile(r"\{([^{}]*)\}|<([^<>]*)>|[^{}<>]+")


def _alternatives(syntax: str) -> list[list[str]]:
    found: list[list[str]] = []
    for match in _PART.finditer(syntax):
        optional, choice = match[1], match[2]
        if optional is not None:
            found.append(["", *("".join(parts) for parts in itertools.product(*_alternatives(optional)))])
        elif choice is not None:
            name, _, words = choice.partition(":")
            found.append(" ".join(SETS.get(word, word) for word in (words or name).split()).split())
        else:
            found.append([match[0]])
    return found


def sample(row: Row, limit: int) -> list[str]:
    """At most so many spellings of a row, e.g. ``add.sat.s32``, the same ones each time."""
    chooser, parts = random.Random(row.syntax), _alternatives(row.syntax)
    if math.prod(map(len, parts)) <= TRIES * limit:
        every = ["".join(words) for words in itertools.product(*parts)]
        chooser.shuffle(every)
    else:
        every = ["".join(map(chooser.choice, parts)) for _ in range(TRIES * limit)]
    possible = (spelling for spelling in dict.fromkeys(every) if _find(spelling, row) is not None)
    return list(itertools.islice(possible, limit))


def _find(spelling: str, row: Row) -> Form | None:
    opcode, *modifiers = spelling.split(".")
    return next((each for each in _forms(opcode, tuple(modifiers)) if each.syntax == row.syntax), None)


def form_of(spelling: str, row: Row) -> Form:
    """The form that a row gives a spelling."""
    found = _find(spelling, row)
    assert found is not None, f"the table does not find its own {spelling}"
    return found


def all_rows() -> list[Row]:
    """The rows of the table, in its order."""
    return [row for entries in rows().values() for row in entries]
