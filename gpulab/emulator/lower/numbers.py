"""Constant operands, and where NaNs are made canonical."""

from __future__ import annotations

import struct

import numpy as np

from gpulab.emulator.llvm.ir import Builder, Value, bits_of, constant
from gpulab.emulator.lower.floats import CANONICAL_NAN
from gpulab.emulator.lower.table import ELEMENTS
from gpulab.emulator.program import Program
from gpulab.ptx.opcodes import Form, written_registers
from gpulab.ptx.syntax import Immediate

# Hardware gives one NaN from arithmetic, CPUs hand payloads on. What only arithmetic writes and only arithmetic reads is
# left as it is, and made canonical where anything else reads it: sums in loops cost nothing more.
_NAN_MAKERS = (
    "add",
    "sub",
    "mul",
    "fma",
    "mad",
    "div",
    "rcp",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "lg2",
    "ex2",
    "tanh",
    "cvt",
)
NAN_BLIND = (*_NAN_MAKERS, "setp", "set", "min", "max")


def makes_nans(form: Form) -> bool:
    """Whether an instruction may give a NaN that is not the canonical one."""
    return form.opcode in _NAN_MAKERS and form.type in ("f32", "f64")


def canonical_nan(b: Builder, value: Value) -> Value:
    """Any NaN becomes the canonical one."""
    return b.select(b.compare("uno", value, value), constant(value.type, CANONICAL_NAN[value.type]), value)


def lazy_nan_registers(program: Program) -> set[str]:
    """Float registers that only arithmetic and moves of numbers write."""
    lazy = {name for name, kind in program.function.registers.items() if kind in ("f32", "f64")}
    for instruction, form in zip(program.function.instructions, program.forms, strict=True):
        number = (
            form.opcode == "mov"
            and isinstance(instruction.operands[1], Immediate)
            and instruction.operands[1].value == instruction.operands[1].value
        )
        if not makes_nans(form) and not number:
            lazy -= set(written_registers(instruction, form))
    return lazy


def immediate(operand: Immediate, type_name: str) -> Value:
    """A constant operand in a type: its exact pattern if it has one of that width."""
    element = ELEMENTS.get(type_name, "i32")
    if type_name == "pred":
        return constant(element, int(operand.value != 0))
    floating = type_name in ("f16", "f32", "f64")
    if operand.bits is not None and not (floating and bits_of(element) != (32 if operand.bits < 1 << 32 else 64)):
        return constant(element, operand.bits)
    return constant(element, _float_bits(operand.value, type_name) if floating else int(operand.value))


def _float_bits(value: float, type_name: str) -> int:
    if type_name == "f64":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    with np.errstate(over="ignore"):
        if type_name == "f16":
            return int(np.float16(value).view(np.uint16))
        return int(np.float32(value).view(np.uint32))
