"""The Python exceptions that a kernel compiled with ``debug=True`` may raise: a number in its PTX, a text for its reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_PASSED = re.compile(r"\s*st\.param\.b32\s+\[param0\+0\],\s*(\d+);")
_RECORDER = "__exc_helper__"


def described(exceptions: Mapping[int, Any], ptx: str) -> list[list[Any]]:
    """Code and text of each exception.

    Parameters
    ----------
    exceptions : mapping of int to tuple
        What Numba knows of each: its class, its arguments and, mostly, function, file and line.
    ptx : str
        The kernel.

    Returns
    -------
    list of [int, str]
        The text as in ``ZeroDivisionError: integer division by zero (line 9)``.
    """
    lines = _raising_lines(ptx) if exceptions else {}
    return [[code, _text(raised, lines.get(code))] for code, raised in exceptions.items()]


def _text(raised: Any, line: int | None) -> str:
    kind, arguments, *place = raised
    text = f"{kind.__name__}: {', '.join(map(str, arguments or ()))}".rstrip(": ")
    # Numba doesn't know the place of what it raises of itself, such as a division by zero.
    known = place[0][2] if place and place[0] else line
    return f"{text} (line {known})" if known else text


def _raising_lines(ptx: str) -> dict[int, int]:
    """Source line at which the kernel passes a code, as a constant, to the function that records it."""
    found: dict[int, int] = {}
    line = code = 0
    for row in ptx.split("\n"):
        if located := _LOCATION.match(row):
            line = int(located[1])
        elif passed := _PASSED.match(row):
            code = int(passed[1])
        elif _RECORDER in row and code and line:
            found.setdefault(code, line)
            code = 0
    return found
