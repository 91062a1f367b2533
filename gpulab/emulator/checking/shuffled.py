"""Values that a shuffle got from a lane that takes no part in it, followed to where they are used.

Such a value is undefined, but many right kernels get one and never look at it. Each register that may hold one has a word for
every lane in memory of the check: 0, or which shuffle the value came from and which lane that read. The words go along with
arithmetic, choices and shuffles; what is stored to memory that others see, is an address or decides a branch has been used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.emulator import layout
from gpulab.emulator.checking.layout import EXITED, FROM_LANE_SHIFT, own, own_word
from gpulab.emulator.llvm.ir import Value, constant
from gpulab.emulator.llvm.permute import permuted
from gpulab.ptx.opcodes import Form, read_registers, registers_in, written_registers
from gpulab.ptx.syntax import Group, Instruction, Operand, Pair, Register

if TYPE_CHECKING:
    from gpulab.emulator.lower.values import State
    from gpulab.emulator.program import Program

ORIGIN_BYTES = 4 * layout.WARP
"""Of one register of one warp."""

_OWN_SPACES = ("local", "call", "param")
_ENDING = ("vote", "match", "redux", "elect", "mma", "wmma", "call")


def followed(program: Program) -> dict[str, int]:
    """The registers that may hold what a shuffle got, numbered."""
    pairs = list(zip(program.function.instructions, program.forms, strict=True))
    found: dict[str, int] = {}
    grown = True
    while grown:
        grown = False
        for instruction, form in pairs:
            if form.opcode == "shfl" or (_goes_on(form) and any(n in found for n in read_registers(instruction, form))):
                for name in written_registers(instruction, form):
                    grown |= name not in found
                    found.setdefault(name, len(found))
    return found


def _goes_on(form: Form) -> bool:
    """Whether an instruction's result is undefined if a source is."""
    return not form.access_bytes and form.opcode not in _ENDING


def before(state: State, registers: dict[str, int]) -> None:
    """An instruction is about to be executed: what it makes of values that are followed."""
    instruction, form = state.instruction, state.form
    written = [name for name in written_registers(instruction, form) if name in registers]
    if form.access_bytes and (form.space or "generic").partition("::")[0] not in _OWN_SPACES:
        _used(state, registers, _uses(instruction, form), state.on())
        if form.kind != "load":
            _used(state, registers, _guard(instruction), state.b.load("i32", state.active))
    if form.opcode == "shfl":
        return
    origins = _result(state, registers) if _goes_on(form) else None
    for name in written:
        _put(state, registers[name], origins or constant("i32", 0))
        if instruction.guard is not None and instruction.guard.register.name in registers:
            _put_guard(state, registers[name], registers[instruction.guard.register.name])


def branch(state: State, registers: dict[str, int]) -> None:
    """A branch, a return or a jump by table is about to be taken."""
    names = list(read_registers(state.instruction, state.form))
    _used(state, registers, names, state.b.load("i32", state.active))


def shuffle(state: State, registers: dict[str, int], sources: Value, mask: Value) -> None:
    """A shuffle is about to write what each lane gets from the lane that `sources` says.

    All lanes of its mask that run have come here: one that is missing has exited, or never was.
    """
    b = state.b
    here, named = (b.is_("ne", b.and_(b.binary("lshr", word, sources), 1), 0) for word in (state.on(), mask))
    missing = b.select(named, constant("i32", EXITED), constant("i32", 0))
    undefined = b.or_(b.or_(b.shl(sources, FROM_LANE_SHIFT), state.index + 1), missing)
    value = state.instruction.operands[1]
    carried: Value = constant("i32", 0)
    if isinstance(value, Register) and value.name in registers:
        carried = permuted(b, _get(state, registers[value.name]), sources)
    origins = b.select(here, b.widen(carried), undefined)
    destination = state.instruction.operands[0]
    received = destination.first if isinstance(destination, Pair) else destination
    for name in written_registers(state.instruction, state.form):
        _put(state, registers[name], origins if Register(name) == received else constant("i32", 0))


# ---- what is used, and how


def _uses(instruction: Instruction, form: Form) -> list[str]:
    """Registers whose values matter to others: of a memory access the address, and what is stored."""
    return [
        name
        for operand, role in zip(instruction.operands, form.roles, strict=False)
        if not role.written
        for name in registers_in(operand)
    ]


def _guard(instruction: Instruction) -> list[str]:
    return [] if instruction.guard is None else [instruction.guard.register.name]


def _used(state: State, registers: dict[str, int], names: list[str], lanes: Value) -> None:
    b, found = state.b, None
    for name in dict.fromkeys(names):
        if name in registers:
            found = _first(state, found, _get(state, registers[name]))
    if found is not None:
        kept, site = b.variable(found), constant("i64", state.index)
        b.call("check_undefined", None, state.context, kept, lanes, site)


# ---- results


def _result(state: State, registers: dict[str, int]) -> Value | None:
    """The words of an instruction's result, None if no source is followed."""
    instruction, form = state.instruction, state.form
    sources = [operand for operand, role in zip(instruction.operands, form.roles, strict=False) if not role.written]
    if form.opcode == "selp":
        return _chosen(state, registers, sources)
    if form.opcode in ("and", "or", "mul") and len(sources) == 2:
        return _absorbed(state, registers, sources, [form.roles[1].type] * 2)
    if form.opcode == "setp" and len(sources) == 3 and form.boolean == "and":
        compared = _origins(state, registers, Group(tuple(sources[:2])))
        return _both(state, (compared, None), (_origins(state, registers, sources[2]), _is_false(state, sources[2])))
    found = None
    for operand in sources:
        found = _first(state, found, _origins(state, registers, operand))
    return found


def _chosen(state: State, registers: dict[str, int], sources: list[Operand]) -> Value | None:
    """Of a choice: what is chosen, and the condition."""
    b, zero = state.b, constant("i32", 0)
    yes, no, condition = (_origins(state, registers, operand) for operand in sources)
    if yes is None and no is None:
        return condition
    holds = state.value(sources[2], "pred")
    return _first(state, condition, b.select(holds, b.widen(yes or zero), b.widen(no or zero)))


def _absorbed(state: State, registers: dict[str, int], sources: list[Operand], types: list[str]) -> Value | None:
    """Of `and`, `or` and a product: a defined source that settles the result alone leaves nothing undefined."""
    b, settles = state.b, -1 if state.form.opcode == "or" else 0
    parts = []
    for operand, kind in zip(sources, types, strict=True):
        origins = _origins(state, registers, operand)
        is_number = kind == "pred" or kind[0] in "bsu"
        parts.append((origins, b.is_("eq", state.value(operand, kind), settles) if is_number else None))
    return _both(state, *parts)


def _both(
    state: State, one: tuple[Value | None, Value | None], other: tuple[Value | None, Value | None]
) -> Value | None:
    """The words of two sources together; of each its words, and whether it settles the result."""
    b, found = state.b, _first(state, one[0], other[0])
    if found is None:
        return None
    for origins, settles in (one, other):
        if settles is not None:
            alone = b.and_(settles, _is_defined(state, origins))
            found = b.select(b.widen(alone), constant("i32", 0, layout.WARP), b.widen(found))
    return found


def _is_false(state: State, operand: Operand) -> Value:
    return state.b.not_(state.value(operand, "pred"))


def _is_defined(state: State, origins: Value | None) -> Value:
    return constant("i1", 1) if origins is None else state.b.is_("eq", origins, 0)


def _origins(state: State, registers: dict[str, int], operand: Operand) -> Value | None:
    found = None
    for name in registers_in(operand):
        if name in registers:
            found = _first(state, found, _get(state, registers[name]))
    return found


def _first(state: State, one: Value | None, other: Value | None) -> Value | None:
    if one is None or other is None:
        return other if one is None else one
    return state.b.select(state.b.is_("ne", one, 0), one, other)


# ---- the words


def _place(state: State, number: int) -> Value:
    b, structure = state.b, own(state.b, state.context)
    warp = layout.frame_get(b, state.frame, "index", "i64")
    start = b.mul(warp, own_word(b, structure, "origin_stride"))
    return b.offset(b.offset(own_word(b, structure, "origins", "ptr"), start), ORIGIN_BYTES * number)


def _get(state: State, number: int) -> Value:
    return state.b.load("i32", _place(state, number), layout.WARP)


def _put(state: State, number: int, origins: Value) -> None:
    """Lanes that are off keep what they have."""
    b, place = state.b, _place(state, number)
    on = b.mask_vector(state.on())
    b.store(b.select(on, b.widen(origins), b.load("i32", place, layout.WARP)), place)


def _put_guard(state: State, number: int, guard: int) -> None:
    """Where the guard itself is undefined, so is whether anything was written."""
    b, place, origins = state.b, _place(state, number), _get(state, guard)
    undefined = b.and_(b.mask_vector(b.load("i32", state.active)), b.is_("ne", origins, 0))
    b.store(b.select(undefined, origins, b.load("i32", place, layout.WARP)), place)
