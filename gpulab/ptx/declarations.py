"""Variable declarations with alignment, dimensions and initial values (PTX ISA 5.4)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from math import prod

from gpulab.ptx.lexer import Tokens
from gpulab.ptx.literals import negative, number
from gpulab.ptx.syntax import Immediate, Symbol, Variable
from gpulab.ptx.types import TYPE_BYTES

LINKING = ("extern", "visible", "weak", "common")
# Far above what compilers write; without a limit a typing error would fill the computer's memory.
MOST_COPIES = 1_000_000
MOST_BYTES = 1 << 40
MOST_ALIGNED = 1 << 16
_FLOAT_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}


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
    name = tokens.expect_kind("word", "a name")
    copies = 0
    if tokens.accept("<"):
        copies = _size(tokens, MOST_COPIES)
        tokens.expect(">")
    dimensions = _read_dimensions(tokens)
    contents = _read_initial(tokens, declarator.type) if tokens.accept("=") else None
    names = [f"{name}{index}" for index in range(copies)] if copies else [name]
    return [_variable(declarator, each, dimensions, contents) for each in names]


def _read_dimensions(tokens: Tokens) -> list[int]:
    dimensions = []
    while tokens.accept("["):
        dimensions.append(0 if tokens.spelling == "]" else _size(tokens, MOST_BYTES))
        tokens.expect("]")
    return dimensions


def _variable(declarator: _Declarator, name: str, dimensions: list[int], contents: _Contents | None) -> Variable:
    element = TYPE_BYTES[declarator.type] * declarator.vector
    count = prod(dimensions)
    if contents is not None and count == 0:
        count = -(-len(contents.data) // element)
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


@dataclass(slots=True)
class _Contents:
    """Initial bytes, and where addresses go that are known only when variables are placed."""

    data: bytearray = field(default_factory=bytearray)
    relocations: list[tuple[int, Symbol, bool]] = field(default_factory=list)


def _read_initial(tokens: Tokens, type_name: str) -> _Contents:
    contents = _Contents()
    _read_elements(tokens, type_name, contents)
    return contents


def _read_elements(tokens: Tokens, type_name: str, contents: _Contents) -> None:
    if not tokens.accept("{"):
        _read_element(tokens, type_name, contents)
        return
    while tokens.spelling != "}":
        _read_elements(tokens, type_name, contents)
        if not tokens.accept(","):
            break
    tokens.expect("}")


def _read_element(tokens: Tokens, type_name: str, contents: _Contents) -> None:
    if tokens.kind == "word":
        symbol, generic = _read_address(tokens)
        contents.relocations.append((len(contents.data), symbol, generic))
        contents.data += bytes(TYPE_BYTES[type_name])
        return
    minus = tokens.accept("-")
    value = number(tokens.expect_kind("number", "a constant"))
    contents.data += _encode(negative(value) if minus else value, type_name)


def _read_address(tokens: Tokens) -> tuple[Symbol, bool]:
    """Read ``name``, ``name+4``, ``generic(name)`` or ``generic(name)+4``."""
    name = tokens.take()
    generic = name == "generic" and tokens.accept("(")
    if generic:
        name = tokens.expect_kind("word", "a variable")
    offset = integer(tokens) if tokens.accept("+") else 0
    if generic:
        tokens.expect(")")
        offset += integer(tokens) if tokens.accept("+") else 0
    return Symbol(name, offset), generic


def _encode(value: Immediate, type_name: str) -> bytes:
    size = TYPE_BYTES[type_name]
    if type_name in _FLOAT_FORMATS and value.bits is None:
        return struct.pack(_FLOAT_FORMATS[type_name], value.value)
    bits = value.value if value.bits is None else value.bits
    return (int(bits) & (1 << 8 * size) - 1).to_bytes(size, "little")
