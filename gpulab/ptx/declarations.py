"""Variable declarations with alignment, dimensions and initial values (PTX ISA 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from gpulab.ptx.initial import Contents, read_initial
from gpulab.ptx.lexer import Tokens
from gpulab.ptx.literals import number
from gpulab.ptx.syntax import Variable
from gpulab.ptx.types import TYPE_BYTES

LINKING = ("extern", "visible", "weak", "common")
# Far above what compilers write; without a limit a typing error would fill the computer's memory.
MOST_COPIES = 1_000_000
MOST_BYTES = 1 << 37
MOST_ALIGNED = 1 << 16
MOST_DIMENSIONS = 16
MOST_PARAMETER_BYTES = 1 << 16
_NEED_SIZES = ("global", "const", "shared", "local")


def integer(tokens: Tokens) -> int:
    """Read an integer constant, perhaps with a minus sign."""
    sign = -1 if tokens.accept("-") else 1
    value = number(tokens.expect_kind("number", "an integer")).value
    if not isinstance(value, int):
        raise tokens.error("Expected an integer.", tokens.index - 1)
    return sign * value


def _size(tokens: Tokens, most: int) -> int:
    value = integer(tokens)
    if not 0 <= value <= most:
        raise tokens.error(f"Expected an integer from 0 to {most:,}.", tokens.index - 1)
    return value


@dataclass(slots=True)
class _Declarator:
    """What stands before the names of a declaration."""

    space: str
    type: str = ""
    align: int = 0
    vector: int = 1
    extern: bool = False


def read_variables(tokens: Tokens, space: str, *, extern: bool = False) -> list[Variable]:
    """Read a declaration behind its state space up to and with the ``;``."""
    declarator = _read_declarator(tokens, space, extern)
    found = [*_read_names(tokens, declarator)]
    while tokens.accept(","):
        found += _read_names(tokens, declarator)
    tokens.expect(";")
    return found


def read_parameters(tokens: Tokens) -> tuple[Variable, ...]:
    """Read a parenthesized parameter list, e.g. ``(.param .u64 .ptr .align 1 a, .param .b32 b)``."""
    tokens.expect("(")
    found: list[Variable] = []
    while tokens.spelling != ")":
        space = tokens.expect_kind("directive", ".param")[1:]
        if space not in ("param", "reg"):
            raise tokens.error("Expected .param.", tokens.index - 1)
        found += _read_names(tokens, _read_declarator(tokens, space, extern=False))
        if not tokens.accept(","):
            break
    tokens.expect(")")
    return tuple(found)


def _read_declarator(tokens: Tokens, space: str, extern: bool) -> _Declarator:
    declarator = _Declarator(space, extern=extern)
    while tokens.kind == "directive":
        word = tokens.take()[1:]
        if word == "align":
            declarator.align = _size(tokens, MOST_ALIGNED)
            if declarator.align.bit_count() != 1:
                raise tokens.error("Expected a power of two.", tokens.index - 1)
        elif word in ("v2", "v4"):
            declarator.vector = int(word[1])
        elif word in TYPE_BYTES:
            declarator.type = word
        elif word == "ptr":
            _skip_pointer_attributes(tokens)
        elif word == "attribute":
            _skip_parenthesized(tokens)
        else:
            raise tokens.error(f"'.{word}' is not known in a declaration.", tokens.index - 1)
    if not declarator.type:
        raise tokens.error("Expected a type.")
    if declarator.type == "pred" and space != "reg":
        raise tokens.error(f"A .pred variable is a register; .{space} has no predicates.", tokens.index - 1)
    return declarator


def _skip_pointer_attributes(tokens: Tokens) -> None:
    """Move past the space and alignment of what a pointer parameter points to; they promise, they change nothing."""
    while tokens.spelling in (".global", ".shared", ".const", ".local", ".align"):
        if tokens.take() == ".align":
            integer(tokens)


def _skip_parenthesized(tokens: Tokens) -> None:
    tokens.expect("(")
    while tokens.kind not in (")", "end"):
        tokens.take()
    tokens.expect(")")


def _read_names(tokens: Tokens, declarator: _Declarator) -> list[Variable]:
    """Read one name with its dimensions and initial value; ``name<4>`` makes name0 to name3."""
    first = tokens.index
    name = tokens.expect_kind("word", "a name")
    copies = 0
    if tokens.accept("<"):
        copies = _size(tokens, MOST_COPIES)
        tokens.expect(">")
    dimensions = _read_dimensions(tokens)
    most = MOST_PARAMETER_BYTES if declarator.space == "param" else MOST_BYTES
    if prod(dimensions) * TYPE_BYTES[declarator.type] * declarator.vector > most:
        raise tokens.error(f"'{name}' would have more than {most:,} bytes.", first)
    contents = _read_initial(tokens, name, declarator, dimensions)
    if contents is None and not prod(dimensions) and not declarator.extern and declarator.space in _NEED_SIZES:
        raise tokens.error(f"'{name}' needs a size: only .extern variables come without one.", first)
    names = [f"{name}{index}" for index in range(copies)] if copies else [name]
    return [_variable(declarator, each, dimensions, contents) for each in names]


def _read_dimensions(tokens: Tokens) -> list[int]:
    dimensions: list[int] = []
    while tokens.accept("["):
        if len(dimensions) == MOST_DIMENSIONS:
            raise tokens.error(f"Expected at most {MOST_DIMENSIONS} dimensions.", tokens.index - 1)
        unknown = not dimensions and tokens.spelling == "]"
        dimensions.append(0 if unknown else _size(tokens, MOST_BYTES))
        tokens.expect("]")
    return dimensions


def _read_initial(tokens: Tokens, name: str, declarator: _Declarator, dimensions: list[int]) -> Contents | None:
    if not tokens.accept("="):
        return None
    if declarator.space not in ("global", "const") or declarator.extern:
        raise tokens.error(
            f"'{name}' can have no initial value: only variables in .global and .const that are no .extern can.",
            tokens.index - 1,
        )
    return read_initial(tokens, name, declarator.type, [*dimensions, *[declarator.vector] * (declarator.vector > 1)])


def _variable(declarator: _Declarator, name: str, dimensions: list[int], contents: Contents | None) -> Variable:
    element = TYPE_BYTES[declarator.type] * declarator.vector
    count = prod(dimensions)
    if contents is not None and count == 0:
        count = contents.count * prod(dimensions[1:])
    return Variable(
        name=name,
        space=declarator.space,
        type=declarator.type,
        count=count,
        align=declarator.align or element,
        size=count * element,
        initial=None if contents is None else bytes(contents.data),
        relocations=() if contents is None else tuple(contents.relocations),
        extern=declarator.extern,
    )
