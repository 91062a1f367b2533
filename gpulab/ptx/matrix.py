"""How the lanes of a warp hold a matrix: the fragments of `mma`, `wmma` and `ldmatrix` (PTX ISA 9.7.14).

A fragment is made of *tiles*: eight groups of four lanes, each group with one row of 128 bits (of 256 bits if the elements
are f64). So a register of all 32 lanes, laid down in memory lane after lane, is a tile of A row by row, or a tile of B column
by column; a tile of C or D has eight rows of eight elements. Both engines take every layout from here.

The fragments of `wmma` are opaque in PTX. Here they are those of `mma` for the same elements, whatever the layout in
memory; where `wmma` has more registers than that, the rest are copies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

GROUPS, MEMBERS = 8, 4
"""Rows of a tile, and lanes that share one."""

ELEMENT_BITS = {
    "f64": 64,
    **dict.fromkeys(("f32", "s32", "tf32"), 32),
    **dict.fromkeys(("f16", "bf16", "b16"), 16),
    **dict.fromkeys(("s8", "u8", "e4m3", "e5m2"), 8),
    **dict.fromkeys(("s4", "u4"), 4),
    "b1": 1,
}
FLOAT_KINDS = ("hmma", "dmma")
_COPIED_REGISTERS = 8
Slot = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Fragment:
    """A matrix spread over a warp.

    Attributes
    ----------
    letter : str
        ``a``, ``b``, ``c`` or ``d``.
    type : str
        Of an element.
    rows, columns : int
        Of the matrix.
    registers : int
        Of each lane.
    """

    letter: str
    type: str
    rows: int
    columns: int
    registers: int

    @property
    def register_type(self) -> str:
        """The type as which its registers are read."""
        return "b64" if self.type == "f64" else "b32"

    @property
    def elements(self) -> int:
        """Elements in a register."""
        return 1 if self.type == "f64" else 32 // ELEMENT_BITS[self.type]

    @property
    def width(self) -> int:
        """Elements in a row of a tile."""
        return MEMBERS * (self.elements if self.letter in "ab" else 2)

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return self.rows * self.columns // (GROUPS * self.width)

    def position(self, register: int, lane: int, element: int) -> tuple[int, int]:
        """Row and column of an element, the lowest bits of a register being element 0."""
        group, member = divmod(lane, MEMBERS)
        if self.letter in "ab":
            tile, slot = register % self.tiles, member * self.elements + element
        else:
            tile, half = divmod(register * self.elements + element, 2)
            slot = 2 * member + half
        if self.letter == "b":
            across, along = divmod(tile, self.rows // self.width)
            return along * self.width + slot, across * GROUPS + group
        along, across = divmod(tile, self.rows // GROUPS)
        return across * GROUPS + group, along * self.width + slot

    def accesses(self, layout: str) -> tuple[tuple[Slot, ...], ...]:
        """What a lane loads or stores at once: neighbors in memory, as (register, element); copies are left out.

        Parameters
        ----------
        layout : str
            ``row`` or ``col``: how the matrix lies in memory.
        """
        per_tile = self.elements if self.letter in "ab" else 2
        slots = [divmod(number, self.elements) for number in range(self.tiles * per_tile)]
        run = per_tile if (layout == "col") == (self.letter == "b") else 1
        return tuple(tuple(slots[start : start + run]) for start in range(0, len(slots), run))

    def access_bytes(self, layout: str) -> int:
        """Bytes of each of `accesses`."""
        return len(self.accesses(layout)[0]) * ELEMENT_BITS[self.type] // 8


@dataclass(frozen=True, slots=True)
class Matrix:
    """What a matrix instruction works on.

    Attributes
    ----------
    shape : tuple of int
        m, n and k: A has m rows and k columns, B k rows and n columns, C and D m rows and n columns.
    types : tuple of str
        Element types of A, B, C and D; of a load or store all of them the one that it has.
    fragment : str
        Which matrix is loaded or stored; empty for products.
    layout : str
        ``row`` or ``col``, of what is loaded or stored.
    opaque : bool
        Whether it is a `wmma`, which has more registers for some types.
    """

    shape: tuple[int, int, int]
    types: tuple[str, str, str, str]
    fragment: str
    layout: str
    opaque: bool

    def of(self, letter: str) -> Fragment:
        """The fragment ``a``, ``b``, ``c`` or ``d``."""
        return _fragment(self, letter)

    @property
    def flops(self) -> float:
        """Multiplications and additions of a thread, a 32nd of the warp's."""
        m, n, k = self.shape
        return 2 * m * n * k // 32

    @property
    def access_bytes(self) -> int:
        """Bytes of a lane in each request of a load or store."""
        return self.of(self.fragment).access_bytes(self.layout) if self.fragment else 0


@lru_cache(maxsize=256)
def _fragment(matrix: Matrix, letter: str) -> Fragment:
    m, n, k = matrix.shape
    rows, columns = {"a": (m, k), "b": (k, n)}.get(letter, (m, n))
    kind = matrix.types["abcd".index(letter)]
    bare = Fragment(letter, kind, rows, columns, 0)
    registers = bare.tiles if letter in "ab" else 2 * bare.tiles // bare.elements
    if matrix.opaque and letter in "ab" and kind == "f16":
        registers = _COPIED_REGISTERS
    return Fragment(letter, kind, rows, columns, registers)


def matrix_of(opcode: str, choices: Mapping[str, str | None]) -> Matrix | None:
    """What the choices of a row of the instruction table say of matrices; None if it is not about them."""
    sizes = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", choices.get("shape") or "")
    if sizes is None:
        return None
    m, n, k = (int(size) for size in sizes.groups())
    kind = choices.get("type") or ""
    a, b, c = (choices.get(name) for name in ("atype", "btype", "ctype"))
    if choices.get("fragment"):
        a = b = c = kind
    # `wmma.mma` without types of A and B is one of f16.
    types = (a or "f16", b or "f16", c or kind, kind)
    fragment, layout = choices.get("fragment") or "", choices.get("layout") or ""
    return Matrix((m, n, k), types, fragment, layout, opcode == "wmma")
