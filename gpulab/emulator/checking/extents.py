"""Which shared array an access is meant for: the one whose name its address is computed from.

An index beyond one shared array usually lands in the next one, inside the block's shared memory. The PTX has the names: an
address that is the name of one array plus something is an address of that array, whatever the something is. What mixes two
names, or may come from a name or from elsewhere, is not judged.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from gpulab.emulator.program import Program
from gpulab.ptx.opcodes import Form, written_registers
from gpulab.ptx.syntax import Address, Instruction, Operand, Register, Symbol

_INDEX, _MIXED = "", "?"
"""Of a register: no address of a shared array, or one that cannot be told."""

_MEMORY = ("load", "store", "atomic", "reduction")


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a shared array lies in the block's shared memory.

    Attributes
    ----------
    name : str
        As in the PTX.
    start : int
        In bytes.
    size : int or None
        In bytes; None for dynamic shared memory, which goes to the end.
    """

    name: str
    start: int
    size: int | None


def extents(program: Program) -> dict[int, Extent]:
    """The array of each access whose address is computed from the name of exactly one shared array."""
    variables = program.module.variables | program.function.variables
    known = {
        name: Extent(name, start, None if variables[name].extern else variables[name].size)
        for name, start in program.shared.items()
        if name in variables
    }
    if not known:
        return {}
    bases, found = _bases(program, set(known)), {}
    for index, (instruction, form) in enumerate(zip(program.function.instructions, program.forms, strict=True)):
        base = _base(instruction, form)
        name = None if base is None else base.name
        if isinstance(base, Register):
            name = bases.get(base.name)
        if name in known:
            found[index] = known[name]
    return found


def _base(instruction: Instruction, form: Form) -> Register | Symbol | None:
    """The base of the address that may be in shared memory; of a copy it is the first."""
    space = (form.space or "generic").partition("::")[0]
    if not form.access_bytes or not (form.is_copy or space in ("shared", "generic")):
        return None
    return next((operand.base for operand in instruction.operands if isinstance(operand, Address)), None)


def _bases(program: Program, names: set[str]) -> dict[str, str]:
    """For each register that gets a value which of the arrays it is an address of, if any.

    A register is of one array only if all that is ever put into it is: the code is gone through until nothing changes.
    """
    states: dict[str, str] = {}
    made: dict[str, dict[int, str]] = defaultdict(dict)
    changed = True
    while changed:
        changed = False
        for index, (instruction, form) in enumerate(zip(program.function.instructions, program.forms, strict=True)):
            result = _result(instruction, form, names, states)
            if result is None:
                continue
            for name in written_registers(instruction, form):
                made[name][index] = result
                joined = _joined(list(made[name].values()))
                changed |= states.get(name) != joined
                states[name] = joined
    return states


def _joined(results: list[str]) -> str:
    return results[0] if all(each == results[0] for each in results) else _MIXED


def _result(instruction: Instruction, form: Form, names: set[str], states: dict[str, str]) -> str | None:
    """What an instruction makes of its sources; None as long as nothing is known of them: on the first way round a loop."""
    if form.kind in _MEMORY or form.opcode == "call":
        return _INDEX
    sources = [_state(operand, names, states) for operand in instruction.operands[1:]]
    if form.opcode in ("mad", "mul"):
        if None in sources[:2]:
            return None
        sources = [_INDEX if sources[:2] == [_INDEX, _INDEX] else _MIXED, *sources[2:]]
    if form.opcode == "selp":
        chosen = [each for each in sources[:2] if each is not None]
        return _joined(chosen) if chosen else None
    given = [each for each in sources if each is not None and each != _INDEX]
    if not given:
        return None if None in sources else _INDEX
    carries = form.opcode in ("mov", "add", "or", "mad", "cvta", "cvt") or (
        form.opcode == "sub" and sources[1] == _INDEX
    )
    return given[0] if carries and len(given) == 1 else _MIXED


def _state(operand: Operand, names: set[str], states: dict[str, str]) -> str | None:
    if isinstance(operand, Register):
        return states.get(operand.name)
    if isinstance(operand, Symbol):
        return operand.name if operand.name in names else _INDEX
    return _INDEX
