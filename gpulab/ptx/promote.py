"""Call variables to registers.

Compilers pass arguments through `.param` variables of the call: stored once, loaded once, whole. Hardware keeps them in
registers, and so does this pass, one `mov` for each store and load: instruction counts stay those of the PTX. Variables
whose address is taken, or that are accessed in pieces, stay in the lane's memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gpulab.ptx.refusal import refusal
from gpulab.ptx.syntax import Address, Group, Immediate, Instruction, Operand, Register, Symbol, Variable
from gpulab.ptx.types import TYPE_BYTES


@dataclass(slots=True)
class _Uses:
    """How a call variable is used: sizes of its accesses by offset, or a use that forbids a register."""

    size: int
    called: bool = False
    sizes: dict[int, set[int]] = field(default_factory=dict)
    hindered: bool = False

    def pieces(self) -> dict[int, int] | None:
        """Offset to size of the registers that can hold it, or None."""
        if self.hindered or any(len(sizes) != 1 for sizes in self.sizes.values()):
            return None
        found = {offset: min(sizes) for offset, sizes in sorted(self.sizes.items())}
        if self.called:
            # A built-in takes it as one scalar.
            return {0: self.size} if found in ({}, {0: self.size}) else None
        ends = [offset + size for offset, size in found.items()]
        overlapping = any(end > start for end, start in zip(ends, list(found)[1:], strict=False))
        return None if overlapping else found


def promote_call_variables(
    registers: dict[str, str], variables: dict[str, Variable], instructions: list[Instruction]
) -> tuple[dict[str, str], dict[str, Variable], list[Instruction]]:
    """Turn call variables into registers where that is exact.

    Returns
    -------
    registers, variables, instructions
        With the new registers, without the variables that became registers, and with moves in place of their accesses.
    """
    uses = {name: _Uses(variable.size) for name, variable in variables.items() if variable.space == "param"}
    for instruction in instructions:
        _note_uses(instruction, uses, registers)
    pieces = {name: found for name, each in uses.items() if (found := each.pieces()) is not None}
    new = {f"{name}+{offset}": f"b{8 * size}" for name, found in pieces.items() for offset, size in found.items()}
    return (
        registers | new,
        {name: variable for name, variable in variables.items() if name not in pieces},
        [_rewrite(instruction, pieces) for instruction in instructions] if pieces else instructions,
    )


def _note_uses(instruction: Instruction, uses: dict[str, _Uses], registers: dict[str, str]) -> None:
    access = _access(instruction)
    for operand in instruction.operands:
        for symbol in _symbols_in(operand):
            use = uses.get(symbol.name)
            if use is None:
                continue
            _check_inside(instruction, symbol, use.size)
            if instruction.opcode == "call":
                use.called = True
            elif access is None or not _is_whole(access, registers):
                use.hindered = True
            else:
                use.sizes.setdefault(symbol.offset, set()).add(access[2])


def _check_inside(instruction: Instruction, symbol: Symbol, size: int) -> None:
    """Refuse a load or store that is not inside the call variable: behind it is another one."""
    words = instruction.modifiers
    if instruction.opcode not in ("ld", "st") or not words or words[-1] not in TYPE_BYTES:
        return
    width = TYPE_BYTES[words[-1]] * next((int(word[1]) for word in words if word in ("v2", "v4", "v8")), 1)
    if not 0 <= symbol.offset <= size - width:
        last = symbol.offset + width - 1
        raise refusal(instruction, f"bytes {symbol.offset} to {last} are not inside '{symbol.name}', which has {size}.")


def _access(instruction: Instruction) -> tuple[Symbol, Operand, int] | None:
    """Symbol with offset, register and bytes of a scalar load or store in param space."""
    modifiers = instruction.modifiers
    if instruction.opcode not in ("ld", "st") or len(modifiers) != 2 or len(instruction.operands) != 2:
        return None
    if not modifiers[0].startswith("param") or modifiers[1] not in TYPE_BYTES:
        return None
    first, second = instruction.operands
    address, value = (second, first) if instruction.opcode == "ld" else (first, second)
    if not isinstance(address, Address) or not isinstance(address.base, Symbol):
        return None
    return Symbol(address.base.name, address.offset), value, TYPE_BYTES[modifiers[1]]


def _is_whole(access: tuple[Symbol, Operand, int], registers: dict[str, str]) -> bool:
    """Whether the access moves a whole register, so that nothing is cut off or extended."""
    _, value, size = access
    if isinstance(value, Immediate):
        return size > 1
    return isinstance(value, Register) and value.name in registers and TYPE_BYTES[registers[value.name]] == size > 1


def _symbols_in(operand: Operand) -> list[Symbol]:
    if isinstance(operand, Symbol):
        return [operand]
    if isinstance(operand, Address):
        return [Symbol(operand.base.name, operand.offset)] if isinstance(operand.base, Symbol) else []
    if isinstance(operand, Group):
        return [symbol for element in operand.elements for symbol in _symbols_in(element)]
    return []


def _rewrite(instruction: Instruction, pieces: dict[str, dict[int, int]]) -> Instruction:
    if instruction.opcode == "call":
        return replace(instruction, operands=tuple(_as_registers(each, pieces) for each in instruction.operands))
    access = _access(instruction)
    if access is None or access[0].name not in pieces:
        return instruction
    symbol, value, size = access
    register = Register(f"{symbol.name}+{symbol.offset}")
    operands = (value, register) if instruction.opcode == "ld" else (register, value)
    return replace(instruction, opcode="mov", modifiers=(f"b{8 * size}",), operands=operands)


def _as_registers(operand: Operand, pieces: dict[str, dict[int, int]]) -> Operand:
    if isinstance(operand, Group):
        return Group(tuple(_as_registers(element, pieces) for element in operand.elements))
    if isinstance(operand, Symbol) and operand.name in pieces:
        return Register(f"{operand.name}+0")
    return operand
