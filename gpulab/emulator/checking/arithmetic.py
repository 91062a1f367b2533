"""Which 32-bit arithmetic makes the index of which memory access.

Found by walking from the register of an address back through what keeps an index an index: sums, products, shifts, moves,
choices, and the step from 32 to 64 bits. Anything else (a remainder, an `and`, a hash's exclusive or) makes a new number
of it, whose wrapping around before is nobody's mistake.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from gpulab.emulator.program import Program
from gpulab.ptx.opcodes import Form, written_registers
from gpulab.ptx.syntax import Address, Immediate, Instruction, Operand, Register

_SPACES = ("global", "shared", "generic")
_WRAPPING = {("add", None), ("sub", None), ("mul", "lo"), ("mad", "lo")}
_KEEPING = ("mov", "add", "sub", "mul", "mad", "shl", "selp", "min", "max", "neg", "cvta")


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One instruction that may wrap around: a number of its own, and whether all that reads its result takes it as signed."""

    number: int
    signed: bool


@dataclass(frozen=True)
class Indices:
    """The arithmetic by instruction, and for each access the arithmetic that its address depends on."""

    arithmetic: dict[int, Arithmetic]
    behind: dict[int, tuple[int, ...]]


def indices(program: Program) -> Indices:
    """Find the arithmetic behind the addresses of a kernel."""
    walk = _Walk(program)
    behind = {}
    for index, (instruction, form) in enumerate(zip(program.function.instructions, program.forms, strict=True)):
        base = _address_register(instruction, form)
        if base is not None:
            found = walk.back(base, signed=False)
            if found:
                behind[index] = tuple(sorted(found))
    wrapping = sorted({index for found in behind.values() for index in found})
    return Indices(
        {index: Arithmetic(number, index not in walk.unsigned) for number, index in enumerate(wrapping)}, behind
    )


def _address_register(instruction: Instruction, form: Form) -> str | None:
    if not form.access_bytes or (form.space or "generic").partition("::")[0] not in _SPACES:
        return None
    found = [o.base.name for o in instruction.operands if isinstance(o, Address) and isinstance(o.base, Register)]
    return found[0] if found else None


class _Walk:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.unsigned: set[int] = set()
        self._definitions: dict[str, list[int]] = defaultdict(list)
        for index, (instruction, form) in enumerate(zip(program.function.instructions, program.forms, strict=True)):
            for name in written_registers(instruction, form):
                self._definitions[name].append(index)

    def back(self, register: str, signed: bool) -> set[int]:
        """The wrapping instructions that a register depends on; `signed` says how it is widened."""
        found: set[int] = set()
        seen: set[tuple[str, bool]] = set()
        ahead = [(register, signed)]
        while ahead:
            here = ahead.pop()
            if here in seen:
                continue
            seen.add(here)
            for index in self._definitions[here[0]]:
                ahead += self._step(index, here[1], found)
        return found

    def _step(self, index: int, signed: bool, found: set[int]) -> list[tuple[str, bool]]:
        """What the result of an instruction is made of."""
        instruction, form = self.program.function.instructions[index], self.program.forms[index]
        sources = instruction.operands[1:]
        if form.mode == "wide":
            widened = (
                [(name, form.type == "s32") for name in _names(sources[:2])] if form.type in ("s32", "u32") else []
            )
            return widened + [(name, signed) for name in _names(sources[2:])]
        if form.opcode == "cvt":
            kept = form.source_type in ("s32", "u32") and form.type in ("s64", "u64")
            return [(name, form.source_type == "s32") for name in _names(sources)] if kept else []
        if form.opcode not in _KEEPING or form.carry_out or form.type not in ("b32", "s32", "u32", "b64", "s64", "u64"):
            return []
        if wraps(instruction, form):
            found.add(index)
            if not signed:
                self.unsigned.add(index)
        return [(name, signed) for name in _names(sources)]


def wraps(instruction: Instruction, form: Form) -> bool:
    """Whether an instruction is 32-bit arithmetic that may wrap around."""
    if form.type not in ("b32", "s32", "u32") or form.saturate:
        return False
    if form.opcode == "shl":
        amount = instruction.operands[2]
        return isinstance(amount, Immediate) and 0 < int(amount.value) < 32
    return (form.opcode, form.mode) in _WRAPPING


def _names(operands: tuple[Operand, ...]) -> list[str]:
    return [operand.name for operand in operands if isinstance(operand, Register)]
