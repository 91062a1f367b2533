"""The records that the SASS parser makes: a `Code` of instructions in basic blocks."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.ptx.syntax import Location

INTERNAL = "__internal_"
"""In the names of ptxas's own subroutines."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One SASS instruction.

    Attributes
    ----------
    address : int
        Byte offset in the kernel's code.
    opcode : str
        Without modifiers, e.g. ``LDG``.
    modifiers : tuple of str
        E.g. ``("E", "64")``.
    operands : tuple of str
        As nvdisasm writes them, e.g. ``("R2", "[R4.64+0x10]")``.
    guard : str
        Its predicate, e.g. ``@!P0``; empty if it always executes. Lanes whose predicate is false do nothing, but the
        instruction takes its issue slot all the same.
    location : Location or None
        In the user's source, with the chain of calls that were inlined.
    text : str
        The whole instruction without its address.
    """

    address: int
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str
    location: Location | None
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block.

    Attributes
    ----------
    start, stop : int
        Range of instruction indices, never empty.
    successors : tuple of int
        Numbers of blocks: the taken targets, then the fall-through. A call falls through to where it returns.
    calls : int or None
        Number of the block where the subroutine begins that its last instruction calls.
    """

    start: int
    stop: int
    successors: tuple[int, ...]
    calls: int | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: its head and all of its blocks, by number; `parent` is the number of the loop around it."""

    head: int
    members: frozenset[int]
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """The SASS of one kernel.

    Attributes
    ----------
    instructions : tuple of Instruction
        In order of address; what no way leads to (padding behind the last exit) is left out.
    blocks : tuple of Block
        In order of address; the entry is the first.
    loops : tuple of Loop
        Outer ones before inner ones.
    slow : frozenset of int
        Blocks on the slow way of a division or a root, which hardly any operand takes: they call a subroutine of ptxas's.
    alike : tuple of int
        For each block the number of the first block that surely runs as often as it does: no way but a slow one leads through
        one of them and not the other.
    chains : tuple of tuple of int
        Blocks in a row that nothing but slow ways cuts apart; each block that is not `slow` is in one.
    """

    instructions: tuple[Instruction, ...]
    blocks: tuple[Block, ...]
    loops: tuple[Loop, ...]
    slow: frozenset[int]
    alike: tuple[int, ...]
    chains: tuple[tuple[int, ...], ...]

    def is_own_call(self, number: int) -> bool:
        """Whether a block ends in a call of a function of the user's, not of a subroutine of ptxas's."""
        block = self.blocks[number]
        return block.calls is not None and INTERNAL not in self.instructions[block.stop - 1].text
