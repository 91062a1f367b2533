"""The state of lowering one kernel: registers as variables, operands as values, writes under masks.

A register of uniform shape is one scalar variable, an affine one a base and those strides that are not known, a vector one
``<32 x T>``. LLVM turns the variables into SSA values. An operand is read as a `Value` (scalar or vector) or, where the
reader can use it, as an `Affine`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.emulator import layout
from gpulab.emulator.analysis.shapes import DYNAMIC, UNIFORM, VECTOR, Plan, Shape, special_shape
from gpulab.emulator.llvm.ir import Builder, Value, constant, constants, int_of
from gpulab.emulator.lower.numbers import NAN_BLIND, canonical_nan, immediate, lazy_nan_registers, makes_nans
from gpulab.emulator.lower.table import ELEMENTS
from gpulab.emulator.program import RESERVED_SHARED, Program
from gpulab.errors import UnsupportedInstruction
from gpulab.ptx.cfg import Block
from gpulab.ptx.opcodes import CARRY, Form, Role
from gpulab.ptx.syntax import (
    Address,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
)
from gpulab.ptx.types import is_signed

if TYPE_CHECKING:
    from gpulab.emulator.checking.hooks import Facts

SINK = "_"


@dataclass(frozen=True, slots=True)
class Affine:
    """``base + (lane % w) * strides[0] + (lane // w) * strides[1]`` as scalars; known strides are ints."""

    base: Value
    strides: tuple[Value | int, Value | int]


@dataclass
class Variable:
    """Where a register is kept."""

    shape: Shape
    element: str
    base: Value
    strides: tuple[Value | int, Value | int] = (0, 0)


class State:
    """Everything that lowering functions share for one kernel."""

    def __init__(
        self, builder: Builder, program: Program, plan: Plan, count: bool, symbols: dict[str, int], check: bool = False
    ) -> None:
        self.b = builder
        self.program = program
        self.plan = plan
        self.count = count
        self.check = check
        self.facts: Facts | None = None  # what the check knows of the kernel
        self.symbols = symbols
        self.context = builder.argument("context", "ptr")
        self.frame = builder.argument("frame", "ptr")
        self.active = builder.alloca("i32")
        # Instructions that the warp has executed.
        self.executed = layout.frame_slot(builder, self.frame, "executed") if plan.general else builder.alloca("i64")
        # Of the fast variant; the general one keeps the block of each lane in the frame.
        self.waiting = [] if plan.general else [builder.alloca("i32") for _ in program.graph.blocks]
        self.buffers = {name: builder.alloca("i64", layout.WARP) for name in ("addresses", "hosts")}
        self.buffers["values"] = builder.alloca("i64", layout.WARP, 2)
        self.slots, _ = layout.register_slots(program)
        self.variables = {name: self._variable(name) for name in self.slots}
        # What is being lowered
        self.block: Block = program.graph.blocks[0]
        self.index = 0
        self.guard: Value | None = None
        self.fault_label = builder.fresh("fault")
        self.bail_points: list[int] = []
        self.bail_label: str | None = None
        self.lazy_nans = lazy_nan_registers(program)
        self.yields: set[int] = set()
        self.uses_clock = "%clock" in program.module.text or "%globaltimer" in program.module.text

    def _variable(self, name: str) -> Variable:
        declared = self.program.function.registers.get(name, "pred")
        element, shape = ELEMENTS[declared], VECTOR if name == CARRY else self.plan.shapes[name]
        b = self.b
        if self.plan.general:
            # In the frame: in SSA form, registers would have to come together from everywhere at every block.
            offset = layout.register_offset(len(self.program.graph.blocks), self.slots[name])
            return Variable(VECTOR, element, b.offset(self.frame, offset))
        if shape is VECTOR:
            return Variable(shape, element, b.alloca(element, layout.WARP))
        strides = tuple(b.alloca(element) if s == DYNAMIC else int(s) for s in shape)
        return Variable(shape, element, b.alloca(element), strides)  # type: ignore[arg-type]

    @property
    def instruction(self) -> Instruction:
        """The instruction that is being lowered."""
        return self.program.function.instructions[self.index]

    @property
    def form(self) -> Form:
        """Its form."""
        return self.program.forms[self.index]

    def refuse(self, why: str) -> UnsupportedInstruction:
        """The error for what cannot be lowered."""
        line = self.instruction.span.line
        return UnsupportedInstruction(
            f"PTX line {line}: the emulator does not support '{self.instruction.text}' ({why}).", line
        )

    # Context

    def get(self, name: str, element: str = "i64") -> Value:
        """A word of the context."""
        return layout.get(self.b, self.context, name, element)

    def constant_get(self, name: str, element: str = "i64") -> Value:
        """A word of the context that never changes while the warp runs."""
        return self.b.load(element, layout.slot(self.b, self.context, name), note=", !invariant.load !0")

    def note_progress(self, happened: Value | None = None) -> None:
        """Something happened (if a scalar condition holds) that a thread might wait for."""
        if self.program.spins:
            now = constant("i64", 1)
            if happened is not None:
                now = self.b.or_(self.get("progress"), self.b.resize(happened, "i64"))
            layout.put(self.b, self.context, "progress", now)

    def on(self) -> Value:
        """Mask of the lanes that are active and whose guard holds."""
        active = self.b.load("i32", self.active)
        return active if self.guard is None else self.b.and_(active, self.b.mask_word(self.guard))

    # Reading

    def initialize(self) -> None:
        """Every register is 0 at the start."""
        if not self.plan.general:
            self.b.store(constant("i64", 0), self.executed)
        for variable in self.variables.values():
            lanes = layout.WARP if variable.shape is VECTOR else 1
            self.b.store(constant(variable.element, 0, lanes), variable.base)
            for stride in variable.strides:
                if isinstance(stride, Value):
                    self.b.store(constant(variable.element, 0), stride)

    def read_register(self, name: str) -> Value | Affine:
        """A register in the type that it is declared with."""
        b = self.b
        if name == SINK:
            return constant("i32", 0)
        variable = self.variables[name]
        base = b.load(variable.element, variable.base, layout.WARP if variable.shape is VECTOR else 1)
        if variable.shape is VECTOR or variable.shape == UNIFORM:
            if name in self.lazy_nans and self.form.opcode not in NAN_BLIND:
                return canonical_nan(b, base)
            return base
        strides = tuple(b.load(variable.element, s) if isinstance(s, Value) else s for s in variable.strides)
        return Affine(base, strides)  # type: ignore[arg-type]

    def linear(self, operand: Operand, type_name: str) -> Value | Affine:
        """An operand in the wanted type, affine if it is."""
        if isinstance(operand, Register) and operand.name != SINK:
            found = self.read_register(operand.name)
            if isinstance(found, Affine):
                return found if found.base.type == ELEMENTS[type_name] else self.fitted(self.vector(found), type_name)
            return self.fitted(found, type_name)
        if isinstance(operand, Special):
            return self.special(operand.name, type_name)
        return self.value(operand, type_name)

    def value(self, operand: Operand, type_name: str) -> Value:
        """An operand in the wanted type, as a scalar or vector."""
        b = self.b
        if isinstance(operand, (Register, Special)):
            if isinstance(operand, Register) and operand.name == SINK:
                return constant(ELEMENTS[type_name], 0)
            found = self.linear(operand, type_name)
            return self.vector(found) if isinstance(found, Affine) else found
        if isinstance(operand, Immediate):
            return immediate(operand, type_name)
        if isinstance(operand, Negated):
            return b.not_(self.value(operand.register, "pred"))
        if isinstance(operand, Symbol):
            return b.resize(self.symbol(operand), ELEMENTS[type_name])
        raise self.refuse("an operand of this kind")

    def fitted(self, value: Value, type_name: str) -> Value:
        """A register's value in the type in which an instruction reads it."""
        wanted = ELEMENTS[type_name]
        if value.type == wanted:
            return value
        bits = self.b.bitcast(value, int_of(value.type))
        return self.b.bitcast(self.b.resize(bits, int_of(wanted)), wanted)

    def vector(self, value: Value | Affine) -> Value:
        """All lanes of a value."""
        b = self.b
        if isinstance(value, Value):
            return b.widen(value)
        width = self.plan.block_shape.width
        result = b.widen(value.base)
        lane_factors = [lane % width for lane in range(32)], [lane // width for lane in range(32)]
        known = [0] * 32
        for stride, factors in zip(value.strides, lane_factors, strict=True):
            if isinstance(stride, int):
                known = [k + stride * f for k, f in zip(known, factors, strict=True)]
            else:
                result = b.add(result, b.mul(stride, constants(value.base.type, factors)))
        return b.add(result, constants(value.base.type, known)) if any(known) else result

    def symbol(self, symbol: Symbol) -> Value:
        """The address that a name stands for, as i64."""
        name, program = symbol.name, self.program
        for places in (program.shared, program.local):
            if name in places:
                return constant("i64", places[name] + symbol.offset)
        if name in program.parameters:
            return constant("i64", program.parameters[name][0] + symbol.offset)
        names = sorted(self.symbols)
        if name in names:
            table = self.constant_get("symbols", "ptr")
            return self.b.add(self.b.load("i64", self.b.offset(table, 8 * names.index(name))), symbol.offset)
        raise self.refuse(f"'{name}' has no address")

    def address(self, operand: Operand) -> Value | Affine:
        """A memory operand as i64; registers of 32 bits are zero-extended."""
        assert isinstance(operand, Address)
        b = self.b
        if operand.base is None:
            return constant("i64", operand.offset)
        if isinstance(operand.base, Symbol):
            return b.add(self.symbol(operand.base), operand.offset)
        found = self.read_register(operand.base.name)
        if isinstance(found, Value):
            return b.add(b.resize(found, "i64"), operand.offset)
        if found.base.type != "i64":
            found = Affine(
                b.resize(found.base, "i64"),
                tuple(s if isinstance(s, int) else b.resize(s, "i64", True) for s in found.strides),  # type: ignore[arg-type]
            )
        return Affine(b.add(found.base, operand.offset), found.strides)

    # Special registers

    def special(self, name: str, type_name: str) -> Value | Affine:
        """A special register."""
        b = self.b
        element = ELEMENTS[type_name]
        found = self._special(name)
        if isinstance(found, Affine):
            return found if element == found.base.type else b.resize(self.vector(found), element)
        return b.resize(found, element)

    def _special(self, name: str) -> Value | Affine:
        b, (root, _, axis) = self.b, name.partition(".")
        # A launch without clusters is one of clusters of a single block.
        root = {"%clusterid": "%ctaid", "%nclusterid": "%nctaid"}.get(root, root)
        if root in ("%ntid", "%nctaid", "%ctaid"):
            return self.constant_get(f"{root[1:]}.{axis}", "i32") if axis in ("x", "y", "z") else constant("i32", 0)
        if root == "%tid":
            return self._tid(axis, special_shape(name, self.plan.block_shape))
        lanes = constants("i32", list(range(32)))
        if name == "%laneid":
            shape = self.plan.block_shape.laneid
            return lanes if self.plan.general or shape is VECTOR else Affine(constant("i32", 0), shape)  # type: ignore[arg-type]
        if name.startswith("%lanemask"):
            bit = b.shl(constant("i32", 1, 32), lanes)
            below = b.sub(bit, 1)
            return {
                "%lanemask_eq": lambda: bit,
                "%lanemask_lt": lambda: below,
                "%lanemask_le": lambda: b.or_(bit, below),
                "%lanemask_gt": lambda: b.not_(b.or_(bit, below)),
                "%lanemask_ge": lambda: b.not_(below),
            }[name]()
        return self._scalar_special(name)

    def _scalar_special(self, name: str) -> Value:
        if name == "%warpid":
            return layout.frame_get(self.b, self.frame, "index")
        if name == "%nwarpid":
            return self.constant_get("warps", "i32")
        if name in ("%clock", "%clock64", "%globaltimer", "%clock_hi", "%globaltimer_lo", "%globaltimer_hi"):
            clock = self.get("clock")
            # Who reads a clock may wait for it: the next state in which the warp yields counts as another one.
            if self.program.spins:
                layout.frame_put(self.b, self.frame, "last_yield", constant("i64", 0))
            return self.b.lshr(clock, 32) if name.endswith("_hi") else clock
        if name in ("%nsmid", "%cluster_nctarank") or name.startswith("%cluster_nctaid."):
            return constant("i32", 1)
        if name in ("%envreg1", "%envreg2"):
            workspace = self.constant_get("workspace")
            return self.b.lshr(workspace, 32) if name == "%envreg1" else workspace
        if name == RESERVED_SHARED:
            return constant("i32", self.program.shared[name])
        sizes = {"%dynamic_smem_size": "dynamic_shared", "%total_smem_size": "shared_bytes"}
        if name in sizes:
            return self.constant_get(sizes[name], "i32")
        return constant("i64", 0)

    def _tid(self, axis: str, shape: Shape) -> Value | Affine:
        b = self.b
        if axis not in ("x", "y", "z"):
            return constant("i32", 0)
        warp = layout.frame_get(b, self.frame, "index", "i64")
        table = b.offset(self.constant_get("tids", "ptr"), b.mul(warp, 3 * 32 * 4))
        place = b.offset(table, 32 * 4 * "xyz".index(axis))
        if shape is VECTOR or self.plan.general:
            return b.load("i32", place, 32, note=", !invariant.load !0")
        first = b.load("i32", place, note=", !invariant.load !0")
        return first if shape == UNIFORM else Affine(first, shape)  # type: ignore[arg-type]

    # Writing

    def write(self, operand: Operand | str, value: Value | Affine, type_name: str) -> None:
        """Write a destination: extended to the register's width, under the guard and the mask."""
        name = operand if isinstance(operand, str) else operand.name if isinstance(operand, Register) else None
        if name == SINK:
            return
        if name is None:
            raise self.refuse("a destination of this kind")
        variable = self.variables[name]
        if isinstance(value, Affine):
            if variable.shape is not VECTOR:
                self._write_affine(variable, value)
                return
            value = self.vector(value)
        if value.type in ("float", "double") and name not in self.lazy_nans and makes_nans(self.form):
            value = canonical_nan(self.b, value)
        value = self._extended(value, variable.element, type_name)
        if variable.shape is not VECTOR:
            assert value.lanes == 1, f"{name} is not a vector, but {self.instruction.text} gives one"
            self._write_affine(variable, Affine(value, (0, 0)))
            return
        self._write_vector(name, variable, self.b.widen(value))

    def _extended(self, value: Value, element: str, type_name: str) -> Value:
        if value.type == element:
            return value
        bits = self.b.bitcast(value, int_of(value.type))
        signed = is_signed(type_name)
        return self.b.bitcast(self.b.resize(bits, int_of(element), signed), element)

    def _write_affine(self, variable: Variable, value: Affine) -> None:
        b = self.b
        b.store(value.base, variable.base)
        for place, stride in zip(variable.strides, value.strides, strict=True):
            if isinstance(place, Value):
                b.store(constant(variable.element, stride) if isinstance(stride, int) else stride, place)

    def _write_vector(self, name: str, variable: Variable, value: Value) -> None:
        b = self.b
        condition = self.guard
        if self.plan.masked(self.program, self.block, name):
            condition = b.mask_vector(self.on())
        if condition is not None:
            value = b.select(b.widen(condition), value, b.load(variable.element, variable.base, 32))
        b.store(value, variable.base)

    def write_pair(self, operand: Operand, first: Value, second: Value, first_type: str) -> None:
        """Write ``d|p`` or a plain ``d``."""
        if isinstance(operand, Pair):
            self.write(operand.first, first, first_type)
            self.write(operand.second, second, "pred")
        else:
            self.write(operand, first, first_type)

    def role(self, position: int) -> Role:
        """Role of an operand."""
        return self.form.roles[position]
