"""The records that the SASS parser makes: a `Code` of instructions in basic blocks."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.ptx.syntax import Location


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
    alike : tuple of int
        For each block the number of the first block that surely runs as often as it does: no way leads through one of
        them but not the other.
    """

    instructions: tuple[Instruction, ...]
    blocks: tuple[Block, ...]
    loops: tuple[Loop, ...]
    alike: tuple[int, ...]
