"""How registers vary over the lanes of a warp: uniform, affine or vector, by a static analysis.

`block_shape` says what a shape is.

The analysis is optimistic: it starts with nothing known and joins over all writes until nothing changes, together with the
thread frontiers (a divergent branch makes some writes masked, and a register with a masked write is a vector).

Widening an affine value (`cvt.s64.s32`, `mul.wide`) is exact only if no lane wraps, and ``shr x, 63`` of one is uniform
only if all lanes have one sign. Both are assumed here and checked by the compiled code, which bails out to the general
variant otherwise. In the general variant every register is a vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpulab.emulator.analysis.block_shape import DYNAMIC, UNIFORM, VECTOR, BlockShape, Shape
from gpulab.emulator.analysis.frontier import frontiers, members
from gpulab.emulator.analysis.intervals import BOTH, Interval, intervals
from gpulab.emulator.lower.table import ELEMENTS
from gpulab.emulator.program import Program
from gpulab.ptx.cfg import Block
from gpulab.ptx.opcodes import CARRY, Form, read_registers, written_registers
from gpulab.ptx.syntax import Address, Group, Immediate, Instruction, Negated, Operand, Pair, Register, Special
from gpulab.ptx.types import TYPE_BYTES, is_float

_UNIFORM_RESULTS = ("activemask", "bar", "barrier")
_UNIFORM_IF_SOURCES = ("vote", "redux")
_NEVER_UNIFORM = (
    "atom", "shfl", "match", "elect", "call", "addc", "subc", "madc", "mma", "wmma", "ldmatrix", "movmatrix", "mbarrier"
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What the analysis found: shape and bounds of each register, W(b) and divergence of each block."""

    shapes: dict[str, Shape]
    waiting: list[int]
    divergent: frozenset[int]
    block_shape: BlockShape
    general: bool
    bounds: dict[str, Interval] = field(default_factory=dict)

    def constant(self, register: str) -> int | None:
        """The one value that a register ever holds, if there is one."""
        low, high = self.bounds.get(register, BOTH)
        return low if low == high else None

    def masked(self, program: Program, block: Block, register: str) -> bool:
        """Whether a write in `block` must spare the lanes that are not active."""
        blocks = program.graph.blocks
        return any(register in blocks[rank].live_in for rank in members(self.waiting[block.rank]))


def branches(program: Program, block: Block) -> bool:
    """Whether the lanes that run a block may leave it in different ways."""
    last = program.function.instructions[block.stop - 1]
    return last.opcode in ("bra", "brx", "ret", "exit") and (last.guard is not None or last.opcode == "brx")


def is_barrier(program: Program, block: Block) -> bool:
    """Whether a block ends behind a block-wide barrier."""
    return program.forms[block.stop - 1].kind == "barrier"


def general_plan(program: Program, block_shape: BlockShape) -> Plan:
    """The plan of the general variant: all registers vectors, all conditional branches divergent.

    Where lanes may have to wait for each other, others may be anywhere meanwhile.
    """
    blocks = program.graph.blocks
    divergent = frozenset(block.rank for block in blocks if branches(program, block))
    if program.spins or any(block.meets for block in blocks):
        waiting = [(1 << len(blocks)) - 1] * len(blocks)
    else:
        waiting = frontiers(blocks, lambda block: block.rank in divergent, lambda block: is_barrier(program, block))
    return Plan(dict.fromkeys(program.function.registers, VECTOR), waiting, divergent, block_shape, True)


def fast_plan(program: Program, block_shape: BlockShape) -> Plan:
    """The plan of the fast variant."""
    return _Analysis(program, block_shape).run()


class _Analysis:
    def __init__(self, program: Program, block_shape: BlockShape) -> None:
        self.program = program
        self.block_shape = block_shape
        function = program.function
        written = {
            name
            for instruction, its_form in zip(function.instructions, program.forms, strict=True)
            for name in written_registers(instruction, its_form)
        }
        # A register that nothing writes holds 0 in every lane.
        self.shapes: dict[str, Shape] = {name: UNIFORM for name in function.registers if name not in written}
        self.shapes[CARRY] = VECTOR
        self.bounds = intervals(program)

    def run(self) -> Plan:
        program, divergent, waiting = self.program, frozenset[int](), [0] * len(self.program.graph.blocks)
        while True:
            self._flow_shapes(waiting)
            now = frozenset(b.rank for b in program.graph.blocks if self._diverges(b))
            if now == divergent:
                break
            divergent = now
            waiting = frontiers(
                program.graph.blocks, lambda b, now=now: b.rank in now, lambda b: is_barrier(program, b)
            )
        shapes = {name: self.shapes.get(name, UNIFORM) for name in program.function.registers}
        return Plan(shapes, waiting, divergent, self.block_shape, False, self.bounds)

    def _diverges(self, block: Block) -> bool:
        if not branches(self.program, block):
            return False
        last = self.program.function.instructions[block.stop - 1]
        names = read_registers(last, self.program.forms[block.stop - 1])
        return any(self.shapes.get(name, UNIFORM) != UNIFORM for name in names)

    def _flow_shapes(self, waiting: list[int]) -> None:
        plan = Plan(self.shapes, waiting, frozenset(), self.block_shape, False, self.bounds)
        changed = True
        while changed:
            changed = False
            for block in self.program.graph.blocks:
                for index in range(block.start, block.stop):
                    for name, shape in self._results(block, index, plan):
                        joined = shape if name not in self.shapes else join(self.shapes[name], shape)
                        if name not in self.shapes or joined != self.shapes[name]:
                            self.shapes[name] = joined
                            changed = True
            unknown = [name for name in self.program.function.registers if name not in self.shapes]
            if not changed and unknown:
                # Nothing that runs writes them before they are read, so they begin as 0 in every lane.
                self.shapes.update(dict.fromkeys(unknown, UNIFORM))
                changed = True

    def _results(self, block: Block, index: int, plan: Plan) -> Iterator[tuple[str, Shape]]:
        instruction, its_form = self.program.function.instructions[index], self.program.forms[index]
        written = list(written_registers(instruction, its_form))
        if its_form.opcode in _NEVER_UNIFORM:
            # Whatever they read, which may be nothing but what they wrote before.
            yield from ((name, VECTOR) for name in written)
            return
        if not written or any(name not in self.shapes for name in read_registers(instruction, its_form)):
            return
        guarded = instruction.guard is not None and self.shapes[instruction.guard.register.name] != UNIFORM
        shape = VECTOR if guarded else result_shape(self, instruction, its_form)
        for name in written:
            plain = (
                shape if _holds_strides(self.program.function.registers.get(name, "b32")) else _all_or_nothing(shape)
            )
            if plan.constant(name) is not None:
                plain = UNIFORM
            elif plan.masked(self.program, block, name):
                plain = VECTOR
            yield name, plain

    def shape_of(self, operand: Operand) -> Shape:
        """Shape of a source operand."""
        if isinstance(operand, Register):
            return self.shapes.get(operand.name, UNIFORM)
        if isinstance(operand, Negated):
            return self.shapes[operand.register.name]
        if isinstance(operand, Special):
            return special_shape(operand.name, self.block_shape)
        if isinstance(operand, Address):
            return self.shape_of(operand.base) if isinstance(operand.base, Register) else UNIFORM
        if isinstance(operand, Group):
            return UNIFORM if all(self.shape_of(e) == UNIFORM for e in operand.elements) else VECTOR
        return UNIFORM


def _holds_strides(declared: str) -> bool:
    return declared != "pred" and not is_float(declared) and TYPE_BYTES[declared] in (4, 8)


def _all_or_nothing(shape: Shape) -> Shape:
    return UNIFORM if shape == UNIFORM else VECTOR


def join(a: Shape, b: Shape) -> Shape:
    """The least shape that holds both."""
    if a is VECTOR or b is VECTOR:
        return VECTOR
    return tuple(x if x == y else DYNAMIC for x, y in zip(a, b, strict=True))  # type: ignore[return-value]


def special_shape(name: str, block_shape: BlockShape) -> Shape:
    """Shape of a special register."""
    if name.startswith("%tid."):
        return block_shape.tid["xyz".index(name[-1])]
    if name == "%laneid":
        return block_shape.laneid
    return VECTOR if name.startswith("%lanemask") else UNIFORM


def result_shape(analysis: _Analysis, instruction: Instruction, form: Form) -> Shape:
    """Shape of what an instruction writes, from the shapes of its sources."""
    sources = [operand for operand, role in zip(instruction.operands, form.roles, strict=False) if not role.written]
    shapes = [analysis.shape_of(operand) for operand in sources]
    uniform = all(shape == UNIFORM for shape in shapes)
    if form.opcode in _UNIFORM_RESULTS or (form.opcode in _UNIFORM_IF_SOURCES and shapes[-1] == UNIFORM):
        return UNIFORM
    if form.opcode in ("ld", "ldu"):
        return UNIFORM if uniform and form.space not in ("local", "generic", "call") else VECTOR
    if uniform:
        return UNIFORM
    if any(shape is VECTOR for shape in shapes) or _is_cut(analysis, form, sources):
        return VECTOR
    return affine_shape(instruction, form, sources, shapes)


def _is_cut(analysis: _Analysis, form: Form, sources: list[Operand]) -> bool:
    """Whether a conversion reads less than the whole register."""
    if form.opcode != "cvt" or not isinstance(sources[0], Register):
        return False
    declared = analysis.program.function.registers[sources[0].name]
    return TYPE_BYTES[declared] != TYPE_BYTES[form.source_type or ""]


def affine_shape(instruction: Instruction, form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    """Shape of the result of an operation on affine sources, `VECTOR` if it isn't affine."""
    rule = _RULES.get(form.opcode)
    if rule is None or form.saturate or form.carry_out:
        return VECTOR
    found = rule(form, sources, shapes)
    if found is VECTOR:
        return VECTOR
    bits = _result_bits(form)
    return tuple(s if isinstance(s, str) else _signed(s, bits) for s in found)  # type: ignore[return-value]


def _result_bits(form: Form) -> int:
    written = form.roles[0].type
    return 8 * TYPE_BYTES.get(written, 8)


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _map(shapes: list[Shape], combine) -> Shape:  # noqa: ANN001
    """Combine strides: exactly where all are known; 0 with DYNAMIC stays DYNAMIC."""
    pairs = list(zip(*shapes, strict=True))  # type: ignore[arg-type]
    return tuple(DYNAMIC if DYNAMIC in pair else combine(*pair) for pair in pairs)  # type: ignore[return-value]


def _integral(form: Form) -> bool:
    kind = form.type or "f"
    return ELEMENTS.get(kind, "").startswith("i") and kind[0] in "usb" and "f" not in kind and "x2" not in kind


def _copy(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    return shapes[0] if _integral(form) and TYPE_BYTES[form.type or "b8"] >= 4 and len(shapes) == 1 else VECTOR


def _add(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    return _map(shapes, lambda a, b: a + b) if _integral(form) else VECTOR


def _sub(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    return _map(shapes, lambda a, b: a - b) if _integral(form) else VECTOR


def _neg(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    return _map(shapes, lambda a: -a) if _integral(form) else VECTOR


def scaled(operand: Operand, shape: Shape) -> Shape:
    """Strides times a uniform factor."""
    if isinstance(operand, Immediate) and isinstance(operand.value, int):
        return tuple(DYNAMIC if s == DYNAMIC else s * operand.value for s in shape)  # type: ignore[union-attr,operator,return-value]
    return tuple(0 if s == 0 else DYNAMIC for s in shape)  # type: ignore[union-attr,return-value]


def _mul(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    if not _integral(form) or form.mode not in ("lo", "wide") or TYPE_BYTES[form.type or "b8"] < 4:
        return VECTOR
    if shapes[0] == UNIFORM:
        return scaled(_as_read(sources[0], form), shapes[1])
    return scaled(_as_read(sources[1], form), shapes[0]) if shapes[1] == UNIFORM else VECTOR


def _as_read(operand: Operand, form: Form) -> Operand:
    """A constant as the operation reads it: -1 is 2**32 - 1 to ``mul.wide.u32``."""
    if not isinstance(operand, Immediate) or not isinstance(operand.value, int):
        return operand
    bits = 8 * TYPE_BYTES[form.type or ""]
    return Immediate(_signed(operand.value, bits) if (form.type or "")[0] == "s" else operand.value % (1 << bits))


def _mad(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    product = UNIFORM if shapes[0] == shapes[1] == UNIFORM else _mul(form, sources, shapes)
    if product is VECTOR or form.mode not in ("lo", "wide") or not _integral(form):
        return VECTOR
    return _map([product, shapes[2]], lambda a, b: a + b)


def _shl(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    amount = sources[1]
    if shapes[1] != UNIFORM:
        return VECTOR
    if isinstance(amount, Immediate):
        return scaled(Immediate(1 << int(amount.value) if amount.value < 64 else 0), shapes[0])
    return scaled(Register("_"), shapes[0])


def is_sign_shift(form: Form, amount: Operand) -> bool:
    """Whether a `shr` spreads the sign over the whole register."""
    bits = 8 * TYPE_BYTES[form.type or "b8"]
    return form.type in ("s32", "s64") and isinstance(amount, Immediate) and amount.value >= bits - 1


def is_sign_mask(form: Form, mask: Operand) -> bool:
    """Whether an `and` leaves nothing but the sign (Numba's wrap-around of indices into shared arrays)."""
    bits = 8 * TYPE_BYTES[form.type or "b8"]
    return bits >= 32 and isinstance(mask, Immediate) and int(mask.value) % (1 << bits) == 1 << (bits - 1)


def _and(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    return UNIFORM if is_sign_mask(form, sources[1]) else VECTOR


def _shr(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    return UNIFORM if is_sign_shift(form, sources[1]) else VECTOR


def _cvt(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    kinds = (form.type or "", form.source_type or "")
    if len(shapes) != 1 or any(is_float(kind) or TYPE_BYTES[kind] < 4 for kind in kinds):
        return VECTOR
    return shapes[0]


def _selp(form: Form, sources: list[Operand], shapes: list[Shape]) -> Shape:
    return join(shapes[0], shapes[1]) if shapes[2] == UNIFORM and _integral(form) else VECTOR


_RULES = {
    "mov": _copy,
    "cvta": _copy,
    "add": _add,
    "sub": _sub,
    "neg": _neg,
    "mul": _mul,
    "mad": _mad,
    "shl": _shl,
    "shr": _shr,
    "and": _and,
    "cvt": _cvt,
    "selp": _selp,
}

__all__ = ["DYNAMIC", "UNIFORM", "VECTOR", "BlockShape", "Pair", "Plan", "Shape", "fast_plan", "general_plan"]
