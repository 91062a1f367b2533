"""Line information: `.file`, `.loc` and the strings of the `.debug_str` section that `.loc` names (PTX ISA 11.5)."""

from __future__ import annotations

import re
from collections.abc import Callable

from gpulab.ptx.lexer import Tokens
from gpulab.ptx.syntax import Location

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"\n]*)"', re.MULTILINE)
_STRINGS = re.compile(r"^\s*\.section\s+\.debug_str\s*\{(.*?)\}", re.MULTILINE | re.DOTALL)
_STRING = re.compile(r"^([\w$]+):\s*((?:\.b8[ \t]+[\d, \t]+\s*)+)", re.MULTILINE)


class LineTable:
    """Turns `.loc` lines into `Location` records.

    Files and function names stand at the end of the text, after the lines that use them, so they are collected first.
    """

    def __init__(self, text: str) -> None:
        self._files = {int(number): name for number, name in _FILE.findall(text)}
        self._names = {label: name for body in _STRINGS.findall(text) for label, name in _strings(body)}
        # An inlined_at names only file, line and column of the call; its own inline chain is that of the last
        # .loc there.
        self._latest: dict[tuple[int, int, int], Location] = {}

    def read(self, tokens: Tokens, integer: Callable[[], int]) -> Location | None:
        """Read what follows ``.loc``. Line 0 marks code of no source line: None."""
        place = integer(), integer(), integer()
        function, call_site = None, None
        while tokens.accept(","):
            attribute = tokens.expect_kind("word", "function_name or inlined_at")
            if attribute == "function_name":
                function = self._names.get(tokens.expect_kind("word", "a label"))
                if tokens.accept("+"):
                    integer()
            elif attribute == "inlined_at":
                call_site = self._call_site((integer(), integer(), integer()))
            else:
                raise tokens.error("Expected function_name or inlined_at.", tokens.index - 1)
        if place[1] == 0:
            return None
        location = Location(self._file(place[0]), place[1], place[2], function, call_site)
        self._latest[place] = location
        return location

    def _call_site(self, place: tuple[int, int, int]) -> Location:
        return self._latest.get(place) or Location(self._file(place[0]), place[1], place[2])

    def _file(self, number: int) -> str:
        return self._files.get(number, f"file {number}")


def _strings(section: str) -> list[tuple[str, str]]:
    """Labels of a `.debug_str` section with their zero-terminated strings."""
    found = []
    for label, data in _STRING.findall(section):
        # Of a constant that is too large for its type the low bits count.
        values = bytes(int(value) & 0xFF for value in re.findall(r"\d+", data.replace(".b8", "")))
        found.append((label, values.split(b"\0")[0].decode("utf-8", "replace")))
    return found


def skip_section(tokens: Tokens) -> None:
    """Move past the name and the braces of a DWARF `.section`; `.loc` and `.file` have all that is used of it."""
    while tokens.kind not in ("{", "end"):
        tokens.take()
    tokens.expect("{")
    while tokens.kind not in ("}", "end"):
        tokens.take()
    tokens.expect("}")
