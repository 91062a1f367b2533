"""The end of a basic block, counting, and faults."""

from __future__ import annotations

from gpulab.emulator import layout
from gpulab.emulator.checking import hooks
from gpulab.emulator.llvm.ir import Value, constant
from gpulab.emulator.lower.schedule import jump, leave, part
from gpulab.emulator.lower.values import State
from gpulab.emulator.native.address import record_fault
from gpulab.ptx.cfg import branch_targets

# ---- the end of a block


def end_block(state: State) -> None:
    """Lower the way out of a block."""
    block = state.block
    state.index = block.stop - 1
    last = state.instruction
    if last.opcode in ("bra", "brx", "ret", "exit"):
        hooks.branch(state)
        _branch(state, last.opcode)
    elif block.successors:
        jump(state, block.successors[-1])
    else:
        leave(state)


def _branch(state: State, opcode: str) -> None:
    b, block, guard = state.b, state.block, state.instruction.guard
    if opcode == "brx":
        _branch_by_table(state)
        return
    targets = (
        [_rank_of(state, index) for index in branch_targets(state.program.function, state.instruction)]
        if opcode == "bra"
        else []
    )
    if guard is None:
        jump(state, targets[0]) if targets else leave(state)
        return
    fall = block.successors[-1]
    condition = guard_value(state)
    active = b.load("i32", state.active)
    if block.rank not in state.plan.divergent:
        count_on(state, b.select(condition, active, constant("i32", 0)))
        yes, no = b.fresh("taken"), b.fresh("fall")
        b.cond(condition, yes, no)
        b.label(yes)
        jump(state, targets[0]) if targets else leave(state)
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


def _branch_by_table(state: State) -> None:
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
        layout.put(
            state.b, state.context, "clock", state.b.add(state.get("clock"), state.block.stop - state.block.start)
        )
    if not state.count:
        return
    b = state.b
    b.store(b.add(b.load("i64", state.executed), state.block.stop - state.block.start), state.executed)
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
