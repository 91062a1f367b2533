"""PTX text to tokens, in one pass of one regular expression.

A dotted word such as ``ld.global.v4.f32`` or ``%tid.x`` is one token: kernels have ten thousand instructions, and the
parser looks at an opcode with its modifiers as a whole. Each token keeps its offset; line and column are worked out
only when a span or an error asks for them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from gpulab.errors import PtxSyntaxError
from gpulab.ptx.syntax import Span

END = "end"

_TOKEN = re.compile(
    r"""(?:\s+|//[^\n]*|/\*.*?\*/)*               # blanks and comments before a token
    (?:(?P<word>[A-Za-z_$%][\w$]*(?:\.\w+(?:::\w+)*)*)
      |(?P<directive>\.[A-Za-z_][\w$]*)
      |(?P<number>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]+U?\b|0[bB][01]+U?\b
                 |\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+U?\b)
      |(?P<string>"[^"\n]*")
      |(?P<punctuation>[{}()\[\];,:|<>=+\-!~@])
      |(?P<end>\Z)
      |(?P<stray>.))""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(slots=True)
class Tokens:
    """A cursor over the tokens of a PTX text.

    Attributes
    ----------
    text : str
        The PTX text.
    kinds, texts : list of str
        For each token its kind (``word``, ``directive``, ``number``, ``string``, ``end``, or the punctuation itself)
        and its spelling.
    starts : list of int
        Offset of each token in the text.
    index : int
        The token that comes next.
    """

    text: str
    kinds: list[str]
    texts: list[str]
    starts: list[int]
    index: int = 0
    _lines: list[int] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Kind of the next token."""
        return self.kinds[self.index]

    @property
    def spelling(self) -> str:
        """Spelling of the next token."""
        return self.texts[self.index]

    def take(self) -> str:
        """Move past the next token and return its spelling."""
        spelling = self.texts[self.index]
        self.index += 1
        return spelling

    def accept(self, spelling: str) -> bool:
        """Move past the next token if it is spelled so; tell whether it was."""
        found = self.texts[self.index] == spelling
        self.index += found
        return found

    def expect(self, spelling: str) -> None:
        """Move past the next token, which must be spelled so."""
        if self.texts[self.index] != spelling:
            raise self.error(f"Expected '{spelling}', but {self._shown()} came.")
        self.index += 1

    def expect_kind(self, kind: str, what: str) -> str:
        """Move past the next token, which must be of this kind, and return its spelling."""
        if self.kinds[self.index] != kind:
            raise self.error(f"Expected {what}, but {self._shown()} came.")
        return self.take()

    def skip_statement(self) -> None:
        """Move past the next ``;``."""
        while self.kinds[self.index] not in (";", END):
            self.index += 1
        self.expect(";")

    def span(self, index: int | None = None) -> Span:
        """Line and column of a token; of the next one by default."""
        return self.span_at(self.starts[self.index if index is None else index])

    def span_at(self, offset: int) -> Span:
        """Line and column of an offset in the text."""
        if not self._lines:
            self._lines = [0, *(match.end() for match in re.finditer("\n", self.text))]
        line = bisect_right(self._lines, offset)
        return Span(line, offset - self._lines[line - 1] + 1)

    def error(self, message: str, index: int | None = None) -> PtxSyntaxError:
        """Make the error that shows a token's line with a caret below it; the next token by default."""
        return syntax_error(self.text, self.span(index), message)

    def _shown(self) -> str:
        return "the end of the text" if self.kind == END else f"'{self.spelling}'"


def syntax_error(text: str, span: Span, message: str) -> PtxSyntaxError:
    """Make a `PtxSyntaxError` that names the place and shows the source line with a caret."""
    line = text.split("\n")[span.line - 1].rstrip("\r")
    shown, column = line.expandtabs(4), len(line[: span.column - 1].expandtabs(4))
    place = f"PTX line {span.line}, column {span.column}"
    return PtxSyntaxError(f"{place}: {message}\n    {shown}\n    {' ' * column}^", span.line, span.column)


def tokenize(text: str) -> Tokens:
    """Split PTX text into tokens, the last of which has the kind ``end``.

    Raises
    ------
    PtxSyntaxError
        At a character that begins no PTX token.
    """
    kinds: list[str] = []
    texts: list[str] = []
    starts: list[int] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or END
        spelling = match[kind]
        kinds.append(spelling if kind == "punctuation" else kind)
        texts.append(spelling)
        starts.append(match.start(kind))
        if kind == "stray":
            raise Tokens(text, kinds, texts, starts).error(f"'{spelling}' begins no PTX token.", len(kinds) - 1)
        if kind == END:
            break
    return Tokens(text, kinds, texts, starts)
