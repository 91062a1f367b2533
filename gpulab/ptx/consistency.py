"""What must hold of a flat kernel before it runs: names are defined, registers fit, parameters are read where they are."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.ptx.builtins import BUILT_INS
from gpulab.ptx.opcodes import Form
from gpulab.ptx.refusal import refusal
from gpulab.ptx.syntax import Address, Function, Group, Instruction, Module, Register, Symbol, symbols_in
from gpulab.ptx.types import TYPE_BYTES, is_float

LOCAL_BYTES = 512 << 10
"""Most local memory of a thread (CUDA C++ Programming Guide, technical specifications)."""


def check(module: Module, function: Function, forms: Sequence[Form], parameters: dict[str, tuple[int, int]]) -> None:
    """Refuse the first instruction of a flat kernel that can't be meant.

    Parameters
    ----------
    module : Module
    function : Function
    forms : sequence of Form
        One for each instruction.
    parameters : dict of str to (int, int)
        Offset and size of each of the kernel's parameters, in bytes.

    Raises
    ------
    UnsupportedInstruction
    """
    known, labels = _known_names(module, function), {*function.labels, *function.branch_targets}
    for instruction, form in zip(function.instructions, forms, strict=True):
        _check_symbols(instruction, labels if instruction.opcode in ("bra", "brx") else known)
        _check_registers(instruction, form, function.registers)
        if form.space == "param":
            _check_parameters(instruction, form, parameters)


# ---- names


def _known_names(module: Module, function: Function) -> set[str]:
    """What an instruction that doesn't jump can name."""
    own = {*function.variables, *BUILT_INS, *(parameter.name for parameter in function.parameters)}
    return own | {name for name, each in module.variables.items() if not each.extern or each.space == "shared"}


def _check_symbols(instruction: Instruction, known: set[str]) -> None:
    for operand in instruction.operands:
        for symbol in symbols_in(operand):
            if symbol.name not in known:
                raise refusal(instruction, f"'{symbol.name}' is not defined in this module, or is of another kind.")
            if instruction.opcode == "call" and symbol.name not in BUILT_INS:
                message = f"'{symbol.name}' must be stored and loaded whole: a built-in function takes it as a scalar."
                raise refusal(instruction, message)


# ---- registers


def _check_registers(instruction: Instruction, form: Form, registers: dict[str, str]) -> None:
    for operand, role in zip(instruction.operands, form.roles, strict=False):
        is_fragment = role.shape == "fragment" and isinstance(operand, Group)
        for register in operand.elements if is_fragment else (operand,):
            if isinstance(register, Register) and register.name != "_" and role.type in TYPE_BYTES:
                _check_register(instruction, form, register, role.type, registers[register.name])


def _check_register(instruction: Instruction, form: Form, register: Register, type_name: str, declared: str) -> None:
    fits = TYPE_BYTES[declared] == TYPE_BYTES[type_name] and (declared == "pred") == (type_name == "pred")
    # Loads, stores and conversions take registers wider than the type (PTX ISA 9.4.1).
    if form.opcode in ("ld", "ldu", "st", "cvt") and declared != "pred" and not is_float(type_name):
        fits = TYPE_BYTES[declared] >= TYPE_BYTES[type_name]
    if not fits:
        raise refusal(instruction, f"register {register.name} has type .{declared}, but .{type_name} is needed.")


# ---- parameters of the kernel


def _check_parameters(instruction: Instruction, form: Form, parameters: dict[str, tuple[int, int]]) -> None:
    end = max((offset + size for offset, size in parameters.values()), default=0)
    for operand in instruction.operands:
        if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
            continue
        if operand.base.name not in parameters:
            continue
        if form.opcode != "ld":
            raise refusal(instruction, "parameters of a kernel can only be loaded.")
        first = parameters[operand.base.name][0] + operand.base.offset + operand.offset
        if not 0 <= first <= end - form.access_bytes:
            message = f"it loads bytes {first} to {first + form.access_bytes - 1} of the kernel's parameters, which have {end}."
            raise refusal(instruction, message)
