"""What must hold of a flat kernel before it runs: names are defined, operands fit, parameters are read where they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpulab.ptx.builtins import BUILT_INS
from gpulab.ptx.opcodes import Form
from gpulab.ptx.refusal import refusal
from gpulab.ptx.roles import Role
from gpulab.ptx.syntax import (
    SINK,
    Address,
    Function,
    Group,
    Immediate,
    Instruction,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    symbols_in,
)
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
    wide = {name for name, each in module.variables.items() if each.space in ("global", "const")}
    for instruction, form in zip(function.instructions, forms, strict=True):
        _check_symbols(instruction, labels if instruction.opcode in ("bra", "brx") else known)
        _check_operands(instruction, form, function.registers)
        if instruction.opcode == "mov" and TYPE_BYTES[form.type or ""] < TYPE_BYTES["u64"]:
            _check_narrow(instruction, wide)
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


def _check_narrow(instruction: Instruction, wide: set[str]) -> None:
    for operand in instruction.operands:
        if isinstance(operand, Symbol) and operand.name in wide:
            raise refusal(instruction, f"the address of '{operand.name}' has 64 bits.")


# ---- operands

_INTEGERS = tuple(f"{family}{bits}" for family in "usb" for bits in (16, 32, 64)) + ("u8", "s8", "b8", "b128")
_ADDRESSES = ("u32", "s32", "b32", "u64", "s64", "b64")
_WIDE_SPECIALS = ("%clock64", "%globaltimer", "%current_graph_exec", *(f"%pm{number}_64" for number in range(8)))
_REALS = ("f32", "f64")
_PATTERNS = ("b32", "b64")


def _check_operands(instruction: Instruction, form: Form, registers: dict[str, str]) -> None:
    for operand, role in zip(instruction.operands, form.roles, strict=False):
        if isinstance(operand, Address) and isinstance(operand.base, Register):
            declared = registers[operand.base.name]
            if declared not in _ADDRESSES:
                raise refusal(instruction, f"register {operand.base.name} of type .{declared} holds no address.")
        if role.type == "size":
            _check_size(instruction, operand, registers)
        if role.type not in TYPE_BYTES:
            continue
        for element, type_name in _elements(instruction, operand, role):
            if isinstance(element, Register):
                if element != SINK:
                    _check_register(instruction, form, element, type_name, registers[element.name])
            elif isinstance(element, Pair):
                _check_register(instruction, form, element.second, "pred", registers.get(element.second.name, "pred"))
                if element.first != SINK:
                    _check_register(instruction, form, element.first, type_name, registers[element.first.name])
            elif role.written or not _can_be_read(element, instruction, type_name):
                what = "a register" if role.written else f"a .{type_name}"
                raise refusal(instruction, f"operand '{role.name}' is of another kind than {what}.")


def _check_size(instruction: Instruction, operand: Operand, registers: dict[str, str]) -> None:
    """What an asynchronous copy reads: a number of bytes, or a predicate that it reads nothing."""
    if isinstance(operand, Immediate) and isinstance(operand.value, int):
        return
    if not isinstance(operand, Register) or registers[operand.name] not in ("pred", "u32", "s32", "b32"):
        raise refusal(instruction, "what it reads is said by a .u32 or a predicate.")


def _elements(instruction: Instruction, operand: Operand, role: Role) -> Iterator[tuple[Operand, str]]:
    """The scalars of an operand, and the type that each must have."""
    if not isinstance(operand, Group):
        yield operand, role.type
        return
    type_name, count = role.type, len(operand.elements)
    if role.shape == "pack" and count != 1:
        bits = 8 * TYPE_BYTES[type_name] // count if count in (2, 4, 8) else 0
        type_name = f"b{bits}"
        if role.type[0] != "b" or type_name not in _INTEGERS:
            raise refusal(instruction, f".{role.type} is not made of {count} parts.")
    for element in operand.elements:
        yield element, type_name


def _can_be_read(element: Operand, instruction: Instruction, type_name: str) -> bool:
    """Whether what is no register can be a source of this type."""
    if isinstance(element, Symbol):
        moved = instruction.opcode in ("mov", "cvta") and element in instruction.operands
        return instruction.synthetic or (moved and type_name in _ADDRESSES)
    if isinstance(element, Special):
        return _fits_special(element.name, type_name)
    if isinstance(element, Immediate):
        if isinstance(element.value, float):
            return type_name in _REALS or (type_name in _PATTERNS and element.bits is not None)
        return type_name not in (*_REALS, "b128")
    return isinstance(element, Negated) and type_name == "pred"


def _fits_special(name: str, type_name: str) -> bool:
    if name == "%is_explicit_cluster":
        return type_name == "pred"
    bits = 64 if name in _WIDE_SPECIALS else 32
    return type_name in _ADDRESSES and (name == "%gridid" or 8 * TYPE_BYTES[type_name] == bits)


def _check_register(instruction: Instruction, form: Form, register: Register, type_name: str, declared: str) -> None:
    fits = TYPE_BYTES[declared] == TYPE_BYTES[type_name] and (declared == "pred") == (type_name == "pred")
    # Loads, stores and conversions take registers wider than the type (PTX ISA 9.4.1).
    if form.opcode in ("ld", "ldu", "st", "cvt") and declared not in ("pred", "b128") and not is_float(type_name):
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
