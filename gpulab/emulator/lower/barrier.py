"""Barriers of a block: the warp leaves its state in the frame and returns, and goes on behind the barrier later.

Behind `lower_meet`, all live lanes of the warp are here in the fast variant; in the general one, those that come to a barrier
that isn't aligned wait one by one, and the warp returns when none of its lanes can go on.
"""

from __future__ import annotations

from gpulab.emulator import layout
from gpulab.emulator.analysis.frontier import members
from gpulab.emulator.checking import hooks
from gpulab.emulator.layout import frame_get, frame_put
from gpulab.emulator.llvm.ir import Value, constant
from gpulab.emulator.lower.control import count_on
from gpulab.emulator.lower.meet import lanes_on
from gpulab.emulator.lower.pause import (
    behind_barrier,
    general_mask,
    lanes_at,
    places,
    put_at,
    restore,
    save,
    set_general_mask,
    set_places,
)
from gpulab.emulator.lower.schedule import jump, live_lanes
from gpulab.emulator.lower.table import ELEMENTS
from gpulab.emulator.lower.values import State
from gpulab.ptx.syntax import Operand

_OPENED, _FAULT = 1, 2


def lower_barrier(state: State, cases: list[tuple[int, str]]) -> None:
    """Lower a barrier, which ends its block, and the way to the next block."""
    b, behind = state.b, state.b.fresh("behind")
    arriving = lanes_on(state)
    if state.instruction.guard is not None:
        count_on(state, arriving)
        b.go_if(b.is_("eq", arriving, 0), behind)
    outcome = _arrive(state, arriving)
    if state.form.mode == "arrive":
        _pass(state, outcome)
        b.br(behind)
    elif state.plan.general:
        _wait_by_lanes(state, arriving, outcome)
    else:
        _wait(state, outcome, behind, cases)
    b.label(behind)
    jump(state, state.block.successors[0])


def _wait(state: State, outcome: Value | None, behind: str, cases: list[tuple[int, str]]) -> None:
    """The whole warp waits, unless the barrier has opened."""
    b, plan, blocks = state.b, state.plan, state.program.graph.blocks
    kept = set(blocks[state.block.successors[0]].live_in)
    leaving = [rank for rank in members(plan.waiting[state.block.rank]) if blocks[rank].exits_only]
    opened = b.fresh("opened")
    if outcome is not None:
        b.go_if(b.is_("eq", outcome, _OPENED), opened)
    frame_put(b, state.frame, "resume", constant("i32", behind_barrier(state.block)))
    save(state, kept, leaving)
    b.ret(constant("i32", layout.WAIT))
    entry = b.fresh("resume")
    b.label(entry)
    restore(state, kept, leaving)
    b.br(opened)
    b.label(opened)
    frame_put(b, state.frame, "arrived", constant("i32", 0))
    frame_put(b, state.frame, "opened", constant("i32", 0))
    hooks.leave(state)
    _take_result(state)
    b.br(behind)
    cases.append((behind_barrier(state.block), entry))


def _pass(state: State, outcome: Value | None) -> None:
    """Behind an `arrive`, which waits for nothing; it may have opened the barrier for others of the warp."""
    b = state.b
    if not state.plan.general or outcome is None:
        return
    with b.if_(b.is_("eq", outcome, _OPENED)):
        target = state.block.successors[0]
        active = b.load("i32", state.active)
        put_at(state, active, target)
        set_general_mask(state, "ready", b.or_(general_mask(state, "ready"), active))
        b.br("release")
        b.label(b.fresh("dead"))


def _wait_by_lanes(state: State, arriving: Value, outcome: Value | None) -> None:
    """The arriving lanes wait, the others go on."""
    b = state.b
    rest = b.and_(b.load("i32", state.active), b.not_(arriving))
    put_at(state, arriving, state.block.rank)
    put_at(state, rest, state.block.successors[0])
    set_general_mask(state, "ready", b.or_(general_mask(state, "ready"), rest))
    if outcome is not None:
        b.go_if(b.is_("eq", outcome, _OPENED), "release")
    # Lanes that only exit do it when the others go on.
    others = b.or_(general_mask(state, "blocked"), general_mask(state, "parked"))
    ready = general_mask(state, "ready")
    leaving = [block.rank for block in state.program.graph.blocks if block.exits_only]
    others = b.or_(others, b.and_(ready, b.not_(lanes_at(state, leaving))))
    b.cond(b.is_("eq", others, 0), "idle", "dispatch")


# ---- arriving


def _arrive(state: State, arriving: Value) -> Value | None:
    """Lanes arrive; returns what `barrier_arrive` says, None where nobody asked it."""
    b = state.b
    operands = {role.name: each for each, role in zip(state.instruction.operands, state.form.roles, strict=False)}
    number = b.and_(_of_first(state, operands["a"]), layout.BARRIERS - 1)
    hooks.arrive(state, number)
    waits = state.form.mode != "arrive"
    if state.program.has_plain_barriers:
        frame_put(b, state.frame, "barrier", number)
        frame_put(b, state.frame, "arrived", arriving)
        return None
    count = b.resize(_of_first(state, operands["b"]), "i64") if "b" in operands else constant("i64", -1)
    holding = constant("i32", 0)
    if "c" in operands:
        holding = b.and_(arriving, b.mask_word(state.value(operands["c"], "pred")))
    info = constant("i64", state.index << 1 | waits)
    words = b.resize(number, "i64"), count, arriving, holding, _credit(state, arriving), info
    outcome = b.call("barrier_arrive", "i32", state.context, state.frame, *words)
    with b.if_(b.is_("eq", outcome, _FAULT)):
        b.br(state.fault_label)
        b.label(b.fresh("dead"))
    return outcome


def _of_first(state: State, operand: Operand) -> Value:
    """An operand that is the same for all lanes (PTX ISA, bar): that of the first one that is on."""
    value = state.value(operand, "u32")
    if value.lanes == 1:
        return value
    b = state.b
    return b.extract(value, b.count_trailing_zeros(b.or_(lanes_on(state), constant("i32", 1 << 31))))


def _credit(state: State, arriving: Value) -> Value:
    """Lanes that count towards a number of threads: with the last live ones those that have exited."""
    if not state.plan.general:
        return constant("i32", -1)
    b, live = state.b, live_lanes(state)
    if state.program.graph.blocks[state.block.successors[0]].exits_only:
        # Active lanes whose guard is false have gone on, and there they only exit.
        live = b.and_(live, b.or_(arriving, b.not_(b.load("i32", state.active))))
    missing = b.and_(live, b.not_(b.or_(arriving, general_mask(state, "arrived"))))
    return b.or_(arriving, b.select(b.is_("eq", missing, 0), b.not_(live), constant("i32", 0)))


# ---- going on


def lower_release(state: State) -> None:
    """In the general variant: lanes that waited at a barrier which has opened are ready behind it."""
    b = state.b
    b.label("release")
    arrived = general_mask(state, "arrived")
    hooks.leave(state)
    for block in state.program.graph.blocks:
        form = state.program.forms[block.stop - 1]
        if form.kind != "barrier" or form.mode == "arrive":
            continue
        state.block, state.index = block, block.stop - 1
        lanes = b.and_(arrived, lanes_at(state, [block.rank]))
        b.store(lanes, state.active)
        _take_result(state)
        set_places(state, b.select(b.mask_vector(lanes), constant("i32", block.successors[0]), places(state)))
    set_general_mask(state, "ready", b.or_(general_mask(state, "ready"), arrived))
    set_general_mask(state, "arrived", constant("i32", 0))
    frame_put(b, state.frame, "opened", constant("i32", 0))
    b.br("dispatch")


def _take_result(state: State) -> None:
    """Behind a reducing barrier: the number of threads, or whether all or any held."""
    if state.form.mode != "red":
        return
    b = state.b
    threads, holding = (frame_get(b, state.frame, name, "i64") for name in ("threads", "holding"))
    type_name = state.form.roles[0].type
    if state.form.operation == "popc":
        result = b.resize(holding, ELEMENTS[type_name])
    elif state.form.operation == "and":
        result = b.compare("eq", threads, holding)
    else:
        result = b.is_("ne", holding, 0)
    state.guard = None
    state.write(state.instruction.operands[0], result, type_name)
