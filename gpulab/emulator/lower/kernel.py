"""A program to the native function of a warp: ``i32 warp(context, frame)``.

It begins at the entry block, or where the frame says (behind a barrier, at a loop that waits; in the general variant also in
the middle of a block, where the fast variant bailed out), and returns when the warp is finished, waits at a barrier, yields,
bails out, faults or is told to stop.
"""

from __future__ import annotations

from gpulab.emulator import layout
from gpulab.emulator.analysis.shapes import DYNAMIC, UNIFORM, VECTOR, Plan
from gpulab.emulator.checking import hooks
from gpulab.emulator.llvm.ir import Builder, IrModule, constant, constants
from gpulab.emulator.lower import approx, atomics, compare, copies, matrix, memory, packed, warp
from gpulab.emulator.lower.affine import lower_affine, lower_constant
from gpulab.emulator.lower.barrier import lower_barrier, lower_release
from gpulab.emulator.lower.control import count_block, count_on, end_block, guard_value
from gpulab.emulator.lower.frames import note_depth
from gpulab.emulator.lower.meet import check_passing, lower_meet
from gpulab.emulator.lower.other import carry, uses_carry
from gpulab.emulator.lower.pause import bail_resume, emit_bail, live_at, restore
from gpulab.emulator.lower.schedule import block_label, general_dispatch, resume_yields, take_label
from gpulab.emulator.lower.table import STATEFUL, pure_function
from gpulab.emulator.lower.values import State
from gpulab.emulator.program import Program
from gpulab.ptx.syntax import Pair

# Imported for what they enter into the tables.
_TABLES = (approx, atomics, compare, copies, matrix, memory, packed, warp)
_BRANCHES = ("bra", "brx", "ret", "exit")


def lower_kernel(
    module: IrModule,
    name: str,
    program: Program,
    plan: Plan,
    count: bool,
    symbols: dict[str, int],
    bailed_from: Plan | None = None,
    bail_points: tuple[int, ...] = (),
    check: bool = False,
) -> tuple[int, ...]:
    """Put a variant of the kernel into a module.

    Parameters
    ----------
    plan : Plan
        Of the fast or the general variant.
    count : bool
        Whether to count.
    bailed_from, bail_points
        For the general variant: the plan of the fast one and the instructions before which it may bail out.
    check : bool
        Whether every access and synchronization is told to the check (`checking`).

    Returns
    -------
    tuple of int
        Instructions before which this variant may bail out.
    """
    b = Builder(module, name, "i32", (("context", "ptr"), ("frame", "ptr")))
    state = State(b, program, plan, count, symbols, check)
    if not plan.general:
        state.initialize()
    for place in state.waiting:
        b.store(constant("i32", 0), place)
    resume = layout.frame_get(b, state.frame, "resume")
    switch = len(b.lines)
    b.emit("")
    cases: list[tuple[int, str]] = []
    b.label("start")
    if plan.general:
        state.initialize()
    hooks.begin(state)
    b.store(layout.frame_get(b, state.frame, "mask"), state.active)
    b.br(block_label(0))
    for block in program.graph.blocks:
        state.block = block
        _lower_block(state, cases, bail_points)
    if plan.general:
        general_dispatch(state, cases)
        lower_release(state)
    resume_yields(state, cases)
    b.label("nowhere")
    b.emit("unreachable")
    b.label(state.fault_label)
    b.ret(constant("i32", layout.FAULT))
    listed = " ".join(f"i32 {number}, label %{label}" for number, label in [(0, "start"), *cases])
    if bailed_from is not None:
        b.lines[switch] = "br label %converted"
        _convert_entry(state, bailed_from, bail_points)
        b.emit(f"switch i32 {resume.text}, label %nowhere [ {listed} ]")
    else:
        b.lines[switch] = f"switch i32 {resume.text}, label %nowhere [ {listed} ]"
    b.finish()
    module.functions[name] += "\n!0 = !{}"
    return tuple(state.bail_points)


def _lower_block(state: State, cases: list[tuple[int, str]], bail_points: tuple[int, ...]) -> None:
    b, block = state.b, state.block
    if not state.plan.general:
        b.label(take_label(block.rank))
        b.store(b.load("i32", state.waiting[block.rank]), state.active)
        b.store(constant("i32", 0), state.waiting[block.rank])
        b.br(block_label(block.rank))
    b.label(block_label(block.rank))
    points = set(bail_points)
    state.index = block.start
    if block.meets:
        if block.start in points:
            _resume_point(state, cases)
        lower_meet(state)
    check_passing(state)
    count_block(state)
    for index in range(block.start, block.stop):
        state.index = index
        if index in points and not (block.meets and index == block.start):
            _resume_point(state, cases)
        if state.program.forms[index].kind == "barrier":
            lower_barrier(state, cases)
        elif state.instruction.opcode not in _BRANCHES:
            _lower_instruction(state)
    if state.instruction.opcode in _BRANCHES or state.program.forms[block.stop - 1].kind != "barrier":
        end_block(state)


def _resume_point(state: State, cases: list[tuple[int, str]]) -> None:
    """A place in the middle of a block where a warp that bailed out goes on."""
    b, index = state.b, state.index
    here, entry = b.fresh("at"), b.fresh("resume")
    b.br(here)
    b.label(entry)
    restore(state, live_at(state, index))
    b.br(here)
    b.label(here)
    cases.append((bail_resume(state, index), entry))


def _convert_entry(state: State, fast: Plan, bail_points: tuple[int, ...]) -> None:
    """The first entry after a bail-out: turn the fast variant's registers in the frame into vectors."""
    b = state.b
    b.label("converted")
    bailed = b.is_("ne", layout.frame_get(b, state.frame, "bail"), 0)
    with b.if_(bailed):
        layout.frame_put(b, state.frame, "bail", constant("i32", 0))
        width = fast.block_shape.width
        factors = [lane % width for lane in range(32)], [lane // width for lane in range(32)]
        for name, shape in sorted(fast.shapes.items()):
            variable = state.variables[name]
            # Predicates are kept as lane masks in both variants.
            if shape is VECTOR or variable.element == "i1":
                continue
            place = b.offset(state.frame, layout.register_offset(len(state.program.graph.blocks), state.slots[name]))
            value = b.widen(b.load(variable.element, place))
            for number, (stride, factor) in enumerate(zip(shape, factors, strict=True), 1):
                if stride == DYNAMIC:
                    scalar = b.load(variable.element, b.offset(place, 8 * number))
                    value = b.add(value, b.mul(scalar, constants(variable.element, factor)))
                elif shape != UNIFORM and stride:
                    value = b.add(value, constants(variable.element, [int(stride) * f for f in factor]))
            b.store(value, place)


# ---- one instruction


def _lower_instruction(state: State) -> None:
    b = state.b
    if state.instruction.guard is None:
        state.guard = None
        _lower_unguarded(state)
        emit_bail(state)
        return
    condition = guard_value(state)
    active = b.load("i32", state.active)
    if condition.lanes == 1:
        count_on(state, b.select(condition, active, constant("i32", 0)))
        with b.if_(condition):
            state.guard = None
            _lower_unguarded(state)
        emit_bail(state)
        return
    count_on(state, b.and_(active, b.mask_word(condition)))
    state.guard = condition
    _lower_unguarded(state)
    state.guard = None
    emit_bail(state)


def _lower_unguarded(state: State) -> None:
    _lower_operation(state)
    if state.instruction.synthetic:
        note_depth(state)


def _lower_operation(state: State) -> None:
    form = state.form
    hooks.before(state)
    if uses_carry(state):
        carry(state)
        return
    if lower_constant(state) or lower_affine(state):
        return
    special = STATEFUL.get(form.opcode)
    if special is not None:
        if form.changes_memory:
            state.note_progress(state.b.is_("ne", state.on(), 0))
        special(state)
        return
    function = pure_function(form)
    if function is None:
        raise state.refuse("this form has no compiled code")
    _lower_pure(state, function)


def _lower_pure(state: State, function) -> None:  # noqa: ANN001
    form, operands = state.form, state.instruction.operands
    sources = []
    for operand, role in zip(operands, form.roles, strict=False):
        if not role.written:
            sources.append(state.value(operand, "u32" if role.type == "imm" else role.type))
    result = function(state.b, form, *sources)
    destination, role = operands[0], form.roles[0]
    if isinstance(result, tuple):
        state.write_pair(destination, *result, role.type)
    elif isinstance(destination, Pair):
        raise state.refuse("it gives no predicate")
    else:
        state.write(destination, result, role.type)
