"""Barriers of a block: the warp leaves its state in the frame and returns, and goes on behind the barrier later."""

from __future__ import annotations

from gpulab.emulator import layout
from gpulab.emulator.checking import hooks
from gpulab.emulator.frontier import members
from gpulab.emulator.ir import Value, constant
from gpulab.emulator.layout import frame_get, frame_put
from gpulab.emulator.lower_control import count_on, fault_if, guard_value, jump, restore, save
from gpulab.emulator.lower_table import ELEMENTS
from gpulab.emulator.lower_values import State


def lower_barrier(state: State, cases: list[tuple[int, str]]) -> None:
    """Lower a barrier, which ends its block, and the way to the next block."""
    b, block, plan = state.b, state.block, state.plan
    blocks = state.program.graph.blocks
    (target,) = block.successors
    guarded = state.instruction.guard is not None
    active = b.load("i32", state.active)
    arriving = active
    skip = b.fresh("behind")
    if guarded:
        condition = guard_value(state)
        arriving = b.and_(active, b.mask_word(condition))
        count_on(state, arriving)
        b.go_if(b.is_("eq", arriving, 0), skip)
    elsewhere = b.and_(active, b.not_(arriving))
    for rank in members(plan.waiting[block.rank]):
        if not blocks[rank].exits_only:
            elsewhere = b.or_(elsewhere, b.load("i32", state.waiting[rank]))
    if not elsewhere.constant:
        fault_if(state, b.is_("ne", elsewhere, 0), "barrier", arriving)
    number = _arrive(state, arriving)
    hooks.arrive(state, number)
    frame_put(b, state.frame, "barrier", number)
    frame_put(b, state.frame, "resume", constant("i32", 1 + block.rank))
    kept = set(blocks[target].live_in)
    leaving = [rank for rank in members(plan.waiting[block.rank]) if blocks[rank].exits_only]
    save(state, kept, leaving)
    b.ret(constant("i32", layout.WAIT))
    entry = b.fresh("resume")
    b.label(entry)
    restore(state, kept, leaving)
    hooks.leave(state)
    _take_result(state)
    b.br(skip)
    b.label(skip)
    cases.append((1 + block.rank, entry))
    jump(state, target)


def _operands(state: State) -> tuple[Value, Value | None]:
    """Number of the barrier, and the predicate of a reducing one."""
    b, operands = state.b, state.instruction.operands
    is_reduction = state.form.mode == "red"
    number = state.value(operands[1 if is_reduction else 0], "u32")
    if number.lanes > 1:
        # All lanes must name the same barrier (PTX ISA, bar): the first one's counts.
        first = b.count_trailing_zeros(b.or_(b.load("i32", state.active), constant("i32", 1 << 31)))
        number = b.extract(number, first)
    predicate = state.value(operands[2], "pred") if is_reduction else None
    return b.and_(number, layout.BARRIERS - 1), predicate


def _arrive(state: State, arriving: Value) -> Value:
    """Add the warp's threads, and those of them whose predicate holds, to the barrier."""
    b = state.b
    number, predicate = _operands(state)
    if predicate is None:
        return number
    place = b.offset(state.context, b.add(b.mul(b.resize(number, "i64"), 16), 8 * layout.ARRIVED))
    holding = b.and_(arriving, b.mask_word(predicate))
    for offset, mask in ((0, arriving), (8, holding)):
        where = b.offset(place, offset)
        b.store(b.add(b.load("i64", where), b.resize(b.popcount(mask), "i64")), where)
    return number


def _take_result(state: State) -> None:
    """Behind a reducing barrier: the number of threads, or whether all or any held."""
    if state.form.mode != "red":
        return
    b = state.b
    number = frame_get(b, state.frame, "barrier", "i64")
    place = b.offset(state.context, b.add(b.mul(number, 16), 8 * layout.RELEASED))
    threads, holding = b.load("i64", place), b.load("i64", b.offset(place, 8))
    type_name = state.form.roles[0].type
    if state.form.operation == "popc":
        result = b.resize(holding, ELEMENTS[type_name])
    elif state.form.operation == "and":
        result = b.compare("eq", threads, holding)
    else:
        result = b.is_("ne", holding, 0)
    state.guard = None
    state.write(state.instruction.operands[0], result, type_name)
