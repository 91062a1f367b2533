"""Initial values of variables: constants and addresses, in braces as deep as the variable has dimensions (PTX ISA 5.4.4)."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpulab.ptx.lexer import Tokens
from gpulab.ptx.literals import is_single, negative, number
from gpulab.ptx.syntax import Immediate, Symbol
from gpulab.ptx.types import TYPE_BYTES

_FLOAT_FORMATS = {4: "<f", 8: "<d"}
# What ptxas takes: bits stand for either kind of number, and halves are given as bits.
_TAKE_FLOATS = ("f32", "f64", "b32", "b64")
_TAKE_INTEGERS = tuple(f"{family}{bits}" for family in "usb" for bits in (8, 16, 32, 64)) + ("b128",)
_TAKE_ADDRESSES = ("u32", "b32", "u64", "b64")
_MOST_BITS = 64
_MOST_OFFSET = 1 << 40


@dataclass(slots=True)
class Contents:
    """Initial bytes, where addresses go that are known only when variables are placed, and how many values the braces have."""

    data: bytearray = field(default_factory=bytearray)
    relocations: list[tuple[int, Symbol, bool]] = field(default_factory=list)
    count: int = 0


def read_initial(tokens: Tokens, name: str, type_name: str, shape: Sequence[int]) -> Contents:
    """Read what stands behind the ``=`` of a declaration.

    Parameters
    ----------
    tokens : Tokens
    name : str
        The variable's, for errors.
    type_name : str
        Of one element, e.g. ``f32``.
    shape : sequence of int
        Dimensions, the elements of a vector last; 0 stands for as many as come, empty for a scalar.

    Raises
    ------
    PtxSyntaxError
        If the values do not fit the type or are more than the dimensions hold.
    """
    contents = Contents()
    if not shape:
        _read_element(tokens, name, type_name, contents)
        return contents
    tokens.expect("{")
    while tokens.spelling != "}":
        if shape[0] and contents.count == shape[0]:
            raise tokens.error(f"'{name}' has room for {shape[0]} values here, but more came.")
        part = read_initial(tokens, name, type_name, shape[1:])
        # One behind the other, without gaps where a row has fewer: so ptxas lays them out.
        start = len(contents.data)
        contents.relocations += [(start + offset, symbol, generic) for offset, symbol, generic in part.relocations]
        contents.data += part.data
        contents.count += 1
        if not tokens.accept(","):
            break
    tokens.expect("}")
    return contents


def _read_element(tokens: Tokens, name: str, type_name: str, contents: Contents) -> None:
    if tokens.kind == "word":
        if type_name not in _TAKE_ADDRESSES:
            raise tokens.error(f"'{name}' of type .{type_name} has no room for an address; .u64 has.")
        contents.relocations.append((0, *_read_address(tokens)))
        contents.data += bytes(TYPE_BYTES[type_name])
        return
    first = tokens.index
    minus = tokens.accept("-")
    value = number(tokens.expect_kind("number", "a constant"))
    problem = _problem(value, type_name)
    if problem:
        raise tokens.error(f"'{name}' is of type .{type_name}: {problem}", first)
    contents.data += _encode(negative(value) if minus else value, type_name)


def _read_address(tokens: Tokens) -> tuple[Symbol, bool]:
    """Read ``name``, ``name+4``, ``generic(name)`` or ``generic(name)+4``."""
    name = tokens.take()
    generic = name == "generic" and tokens.accept("(")
    if generic:
        name = tokens.expect_kind("word", "a variable")
    offset = _read_offset(tokens)
    if generic:
        tokens.expect(")")
        offset += _read_offset(tokens)
    return Symbol(name, offset), generic


def _read_offset(tokens: Tokens) -> int:
    if not tokens.accept("+"):
        return 0
    value = number(tokens.expect_kind("number", "an offset")).value
    if not isinstance(value, int) or value > _MOST_OFFSET:
        raise tokens.error(f"Expected an integer from 0 to {_MOST_OFFSET:,}.", tokens.index - 1)
    return value


def _problem(value: Immediate, type_name: str) -> str | None:
    """Why a constant is none of this type, or None; integers that are too wide are cut off, as in C."""
    if isinstance(value.value, float):
        return None if type_name in _TAKE_FLOATS else "expected an integer."
    if type_name not in _TAKE_INTEGERS:
        return "expected a floating-point number, such as 1.0."
    return None if value.value.bit_length() <= _MOST_BITS else f"expected an integer of at most {_MOST_BITS} bits."


def _encode(value: Immediate, type_name: str) -> bytes:
    size = TYPE_BYTES[type_name]
    if isinstance(value.value, int):
        return (value.value & (1 << 8 * size) - 1).to_bytes(size, "little")
    if value.bits is not None and (is_single(value) or size == TYPE_BYTES["f64"]):
        return value.bits.to_bytes(size, "little")
    try:
        return struct.pack(_FLOAT_FORMATS[size], value.value)
    except OverflowError:
        return struct.pack(_FLOAT_FORMATS[size], math.copysign(math.inf, value.value))
