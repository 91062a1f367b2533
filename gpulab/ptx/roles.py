"""What the operands of an instruction are for: the second column of the instruction table, read into `Role`s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpulab.ptx.matrix import Matrix

_WIDER = {"u16": "u32", "u32": "u64", "s16": "s32", "s32": "s64"}


@dataclass(frozen=True, slots=True)
class Role:
    """What one operand is for.

    Attributes
    ----------
    name : str
        Its letter in the table.
    type : str
        Type in which it is read or written; ``imm``, ``label``, ``list``, ``address`` or ``call`` for what has none.
    shape : str
        ``scalar``, ``vector`` (a group if the form has a vector width), ``pack`` (a scalar or a group), ``address``,
        ``pair`` (a destination, perhaps with a predicate beside it), ``fragment`` (a group of `count`), ``label``,
        ``list``, ``call``.
    written : bool
        Whether it is a destination.
    optional : bool
    count : int
        Registers of a fragment.
    """

    name: str
    type: str
    shape: str = "scalar"
    written: bool = False
    optional: bool = False
    count: int = 1


def fragment_registers(choices: Mapping[str, str | None], matrix: Matrix | None) -> dict[str, tuple[str, int]]:
    """Type and number of a fragment's registers, by the letter of its operand."""
    if matrix is None:
        count = int((choices.get("count") or "x1")[1:])
        return dict.fromkeys("db", ("b32", count))
    letters = {letter: letter for letter in "abcd"}
    if matrix.fragment:
        letters = dict.fromkeys("db", matrix.fragment)
    fragments = {name: matrix.of(letter) for name, letter in letters.items()}
    return {name: (fragment.register_type, fragment.registers) for name, fragment in fragments.items()}


def read_roles(
    operands: str, type_name: str | None, source_type: str | None, registers: dict[str, tuple[str, int]]
) -> Iterator[Role]:
    """Read a row's operands.

    Parameters
    ----------
    operands : str
        The second column of the table.
    type_name, source_type : str or None
        Types of the form.
    registers : dict of str to (str, int)
        What `fragment_registers` gives.
    """
    for text in filter(None, (part.strip() for part in operands.split(","))):
        optional = text.endswith("?")
        name, _, note = text.rstrip("?").partition(":")
        letter = name.strip("[](){}<>")
        if letter in ("label", "list"):
            yield Role(letter, letter, letter)
        elif letter in ("returns", "target", "arguments", "prototype"):
            yield Role(letter, "call", "call", letter == "returns", optional)
        elif name[0] == "[":
            yield Role(letter, "address", "address")
        elif name[0] == "<":
            kind, count = registers[letter]
            yield Role(letter, kind, "fragment", letter == "d", False, count)
        else:
            written = letter in ("d", "p", "d|p", "p|q")
            kind = "pred" if letter in ("p", "p|q") else _role_type(note, type_name, source_type)
            shape = {"(": "vector", "{": "pack"}.get(name[0], "pair" if "|" in name else "scalar")
            yield Role(letter, kind, shape, written, optional)


def _role_type(note: str, type_name: str | None, source_type: str | None) -> str:
    if note == "w":
        return _WIDER[type_name]  # type: ignore[index]
    if note == "s":
        return source_type or ""
    return note or type_name or ""
