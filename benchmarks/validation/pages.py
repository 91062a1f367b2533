"""VALIDATION.md: its parts, each of which can be made anew without the others, and tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[2] / "VALIDATION.md"
HEAD = """# Validation

Made by `benchmarks/validate.py`; edits are lost. It sets gpulab's numbers beside numbers that others measured and published.
Counters are *emulated* and must be equal. Times are *modeled*; no constant of the model is fitted to a time of an application
kernel. *Error* is the distance of a modeled time from the published one, in percent of the published one. *In range* says whether the
published time lies between the model's `low` and `high`, which are meant to hold 80 % of cases.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: int = 0) -> str:
    """A table in Markdown; its last `right` columns are aligned right."""
    rules = ["-"] * (len(head) - right) + ["-:"] * right
    lines = [f"| {' | '.join(cells)} |" for cells in (head, rules, *rows)]
    return "\n".join(lines) + "\n"


def part_of(page: str, name: str) -> str | None:
    """The text of a part of the page; None if it has no such part."""
    found = re.search(_pattern(name), page, re.DOTALL)
    return found[1] if found else None


def assembled(old: str, parts: dict[str, str], names: Sequence[str]) -> str:
    """The page with these parts made anew, in the order of `names`; the others stay as they were.

    It begins with what each part says of itself: its first bold sentences.
    """
    sections = []
    for name in names:
        text = parts.get(name) or part_of(old, name)
        if text:
            sections.append(f"<!-- {name}: begin -->\n{text}<!-- {name}: end -->\n")
    verdicts = [found[0] for section in sections if (found := re.search(r"\*\*.+?\*\*", section, re.DOTALL))]
    return "\n".join([HEAD, "".join(f"- {verdict}\n" for verdict in verdicts), *sections])


def _pattern(name: str) -> str:
    return rf"<!-- {re.escape(name)}: begin -->\n(.*?)<!-- {re.escape(name)}: end -->"
