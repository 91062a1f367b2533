"""Control flow of a warp: masks, branches, barriers, counting of blocks, bail-outs and faults.

At run time a warp has an *active* mask and, for each basic block, the mask of lanes that wait there. A transition adds
lanes to blocks and then runs the lowest-ranked block at which lanes wait; what can be known before (`Plan.waiting`) is not
tested.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpulab.emulator import layout
from gpulab.emulator.frontier import members
from gpulab.emulator.ir import Value, constant
from gpulab.emulator.layout import frame_put, register_offset
from gpulab.emulator.lower_values import State
from gpulab.emulator.native_address import record_fault, record_place
from gpulab.emulator.shapes import VECTOR
from gpulab.ptx.cfg import branch_targets, live_before


def block_label(rank: int) -> str:
    """Where a block begins, its active lanes known."""
    return f"block{rank}"


def take_label(rank: int) -> str:
    """Where a block is entered by the lanes that wait at it."""
    return f"take{rank}"


# ---- transitions


def jump(state: State, target: int) -> None:
    """All active lanes go to one block."""
    b, waiting = state.b, _waiting_after(state)
    _check_stop(state, (target,))
    before = [rank for rank in members(waiting) if rank <= target]
    if not before:
        b.br(block_label(target))
        return
    _add_waiting(state, target, b.load("i32", state.active))
    if before[0] == target:
        b.br(take_label(target))
    else:
        dispatch(state, waiting | 1 << target)


def part(state: State, goals: list[tuple[int, Value]]) -> None:
    """Active lanes go to several blocks (rank, mask); lanes in none of the masks have exited."""
    possible = _waiting_after(state)
    _check_stop(state, [rank for rank, _ in goals])
    for rank, mask in goals:
        _add_waiting(state, rank, mask)
        possible |= 1 << rank
    dispatch(state, possible)


def dispatch(state: State, possible: int) -> None:
    """Run the lowest block at which lanes wait; the warp is done if there is none."""
    b = state.b
    for rank in members(possible):
        after = b.fresh("try")
        b.cond(b.is_("ne", b.load("i32", state.waiting[rank]), 0), take_label(rank), after)
        b.label(after)
    b.ret(constant("i32", layout.DONE))


def _waiting_after(state: State) -> int:
    """Blocks at which lanes may wait when the current block ends."""
    waiting = state.plan.waiting[state.block.rank]
    if state.program.forms[state.block.stop - 1].kind == "barrier":
        waiting &= sum(1 << block.rank for block in state.program.graph.blocks if block.exits_only)
    return waiting


def _add_waiting(state: State, rank: int, mask: Value) -> None:
    place = state.waiting[rank]
    state.b.store(state.b.or_(state.b.load("i32", place), mask), place)


def _check_stop(state: State, targets: Iterable[int]) -> None:
    """At jumps back, see whether the launch is to stop."""
    if all(target > state.block.rank for target in targets):
        return
    b = state.b
    pointer = state.constant_get("stop", "ptr")
    stop = b.assign("i64", 1, f"load atomic i64, {pointer.ir} monotonic, align 8")
    with b.if_(b.is_("ne", stop, 0)):
        record_place(b, state.context, constant("i64", state.index))
        b.ret(constant("i32", layout.STOP))
        b.label(b.fresh("dead"))


# ---- the end of a block


def end_block(state: State) -> None:
    """Lower the way out of a block."""
    block = state.block
    state.index = block.stop - 1
    last = state.instruction
    if last.opcode in ("bra", "brx", "ret", "exit"):
        _leave(state, last.opcode)
    elif block.successors:
        jump(state, block.successors[-1])
    else:
        dispatch(state, _waiting_after(state))


def _leave(state: State, opcode: str) -> None:
    b, block, guard = state.b, state.block, state.instruction.guard
    if opcode == "brx":
        _leave_by_table(state)
        return
    targets = (
        [_rank_of(state, index) for index in branch_targets(state.program.function, state.instruction)]
        if opcode == "bra"
        else []
    )
    if guard is None:
        jump(state, targets[0]) if targets else dispatch(state, _waiting_after(state))
        return
    fall = block.successors[-1]
    condition = guard_value(state)
    active = b.load("i32", state.active)
    if block.rank not in state.plan.divergent:
        count_on(state, b.select(condition, active, constant("i32", 0)))
        yes, no = b.fresh("taken"), b.fresh("fall")
        b.cond(condition, yes, no)
        b.label(yes)
        jump(state, targets[0]) if targets else dispatch(state, _waiting_after(state))
        b.label(no)
        jump(state, fall)
        return
    taken = b.and_(active, b.mask_word(condition))
    rest = b.and_(active, b.not_(taken))
    count_on(state, taken)
    if targets != [fall]:
        _count_divergence(state, b.and_(b.is_("ne", taken, 0), b.is_("ne", rest, 0)))
    part(state, [*((target, taken) for target in targets), (fall, rest)])


def _rank_of(state: State, index: int) -> int:
    return next(block.rank for block in state.program.graph.blocks if block.start == index)


def _leave_by_table(state: State) -> None:
    """``brx.idx``: each lane goes to the target that its index names; an index behind the list takes the last."""
    b, block = state.b, state.block
    active = b.load("i32", state.active)
    on = active if state.instruction.guard is None else b.and_(active, b.mask_word(guard_value(state)))
    targets = [_rank_of(state, index) for index in branch_targets(state.program.function, state.instruction)]
    index = b.widen(state.value(state.instruction.operands[0], "u32"))
    goals: dict[int, Value] = {}
    for number, target in enumerate(targets):
        last = number == len(targets) - 1
        chosen = b.and_(on, b.mask_word(b.is_("uge" if last else "eq", index, number)))
        goals[target] = b.or_(goals[target], chosen) if target in goals else chosen
    if state.instruction.guard is not None:
        count_on(state, on)
        rest, fall = b.and_(active, b.not_(on)), block.successors[-1]
        goals[fall] = b.or_(goals[fall], rest) if fall in goals else rest
    filled = constant("i32", 0)
    for mask in goals.values():
        filled = b.add(filled, b.cast("zext", b.is_("ne", mask, 0), "i32"))
    _count_divergence(state, b.is_("ugt", filled, 1))
    part(state, list(goals.items()))


def guard_value(state: State) -> Value:
    """The guard of the current instruction as a condition, scalar if it is uniform."""
    guard = state.instruction.guard
    assert guard is not None
    condition = state.value(guard.register, "pred")
    return state.b.not_(condition) if guard.negated else condition


# ---- counting


def count_block(state: State) -> None:
    """Count an entry of the current block and its active lanes."""
    if state.uses_clock:
        layout.put(state.b, state.context, "clock", state.b.add(state.get("clock"), 1))
    if not state.count:
        return
    b = state.b
    place = b.offset(state.constant_get("block_counters", "ptr"), 16 * state.block.rank)
    lanes = b.resize(b.popcount(b.load("i32", state.active)), "i64")
    pair = Value("i64", 2, "<i64 1, i64 0>", True)
    pair = b.assign("i64", 2, f"insertelement {pair.ir}, {lanes.ir}, i32 1")
    b.store(b.add(b.load("i64", place, 2), pair), place)


def count_on(state: State, on: Value) -> None:
    """Count the lanes of a guarded instruction whose guard holds."""
    if state.count:
        _increase(state, 0, state.b.resize(state.b.popcount(on), "i64"))


def _count_divergence(state: State, condition: Value) -> None:
    if state.count:
        _increase(state, 8, state.b.resize(condition, "i64"))


def _increase(state: State, offset: int, amount: Value) -> None:
    b = state.b
    place = b.offset(state.constant_get("branch_counters", "ptr"), 16 * state.index + offset)
    b.store(b.add(b.load("i64", place), amount), place)


# ---- faults and bail-outs


def fault(state: State, kind: str, lanes: Value) -> None:
    """Record a fault of the lowest of some lanes and return."""
    b = state.b
    lane = b.count_trailing_zeros(b.or_(lanes, constant("i32", 1 << 31)))
    record_fault(b, state.context, kind, constant("i64", state.index), lane, constant("i64", 0))
    b.br(state.fault_label)


def fault_if(state: State, condition: Value, kind: str, lanes: Value) -> None:
    """Fault when a scalar condition holds."""
    b = state.b
    with b.if_(condition):
        fault(state, kind, lanes)
        b.label(b.fresh("dead"))


def bail_unless(state: State, condition: Value) -> None:
    """Leave for the general variant, at the start of the current instruction, unless a scalar condition holds."""
    b = state.b
    assert not state.plan.general
    point = state.index
    if state.bail_label is None:
        state.bail_label = b.fresh("bail")
        state.bail_points.append(point)
    after = b.fresh("holds")
    b.cond(condition, after, state.bail_label)
    b.label(after)


def emit_bail(state: State) -> None:
    """The code behind `bail_unless` of the current instruction, if it was used."""
    if state.bail_label is None:
        return
    b = state.b
    after = b.fresh("after")
    b.br(after)
    b.label(state.bail_label)
    save(state, live_at(state, state.index), members(state.plan.waiting[state.block.rank]))
    frame_put(b, state.frame, "resume", constant("i32", bail_resume(state, state.index)))
    frame_put(b, state.frame, "bail", constant("i32", 1))
    b.ret(constant("i32", layout.BAIL))
    b.label(after)
    state.bail_label = None


def bail_resume(state: State, index: int) -> int:
    """Number of the resume point before an instruction."""
    return 1 + len(state.program.graph.blocks) + index


def live_at(state: State, index: int) -> set[str]:
    """Registers whose value before an instruction of the current block may still be read."""
    program, block = state.program, state.block
    live = live_before(program.function, program.forms, program.graph, block, index)
    for rank in members(state.plan.waiting[block.rank]):
        live |= program.graph.blocks[rank].live_in
    return live


# ---- frames


def mask_place(state: State, rank: int) -> Value:
    """Where a frame keeps the lanes that wait at a block."""
    return state.b.offset(state.frame, layout.FRAME_HEADER_BYTES + 4 * rank)


def save(state: State, names: Iterable[str], ranks: Iterable[int]) -> None:
    """Put registers, the active mask and the masks of some blocks into the frame."""
    b = state.b
    frame_put(b, state.frame, "active", b.load("i32", state.active))
    for rank in ranks:
        b.store(b.load("i32", state.waiting[rank]), mask_place(state, rank))
    for name in sorted(names):
        variable = state.variables[name]
        place = b.offset(state.frame, register_offset(len(state.waiting), state.slots[name]))
        value = b.load(variable.element, variable.base, layout.WARP if variable.shape is VECTOR else 1)
        # Predicates are kept as lane masks, whatever their shape.
        b.store(b.mask_word(value) if variable.element == "i1" else value, place)
        for number, stride in enumerate(variable.strides, 1):
            if isinstance(stride, Value):
                b.store(b.load(variable.element, stride), b.offset(place, 8 * number))


def restore(state: State, names: Iterable[str], ranks: Iterable[int]) -> None:
    """Take them back."""
    b = state.b
    b.store(layout.frame_get(b, state.frame, "active"), state.active)
    for rank in ranks:
        b.store(b.load("i32", mask_place(state, rank)), state.waiting[rank])
    for name in sorted(names):
        variable = state.variables[name]
        place = b.offset(state.frame, register_offset(len(state.waiting), state.slots[name]))
        lanes = layout.WARP if variable.shape is VECTOR else 1
        if variable.element == "i1":
            word = b.load("i32", place)
            value = b.mask_vector(word) if lanes > 1 else b.is_("ne", word, 0)
        else:
            value = b.load(variable.element, place, lanes)
        b.store(value, variable.base)
        for number, stride in enumerate(variable.strides, 1):
            if isinstance(stride, Value):
                b.store(b.load(variable.element, b.offset(place, 8 * number)), stride)
