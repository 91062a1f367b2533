"""Which lanes of a warp run next.

A warp has an *active* mask. A transition sends the active lanes on and then runs the lowest-ranked block at which lanes
are ready (`reference.schedule` says it all). In the fast variant the lanes that wait at a block are a mask of that block, and
what can be known before (`Plan.waiting`) is not tested; lanes that have to wait for something else than their turn make
it hand over to the general variant, which has the place of each lane.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpulab.emulator import layout
from gpulab.emulator.analysis.frontier import members
from gpulab.emulator.layout import DISPATCH, frame_get, frame_put
from gpulab.emulator.llvm.ir import Value, constant
from gpulab.emulator.lower.pause import (
    bail,
    general_mask,
    lanes_at,
    places,
    restore,
    save,
    set_general_mask,
    set_places,
    yield_resume,
)
from gpulab.emulator.lower.values import State
from gpulab.emulator.native.address import record_place
from gpulab.emulator.program import SPIN_BUDGET

Goals = list[tuple[int, Value]]


def block_label(rank: int) -> str:
    """Where a block begins, its active lanes known."""
    return f"block{rank}"


def take_label(rank: int) -> str:
    """Where a block is entered by the lanes that wait at it."""
    return f"take{rank}"


# ---- transitions


def jump(state: State, target: int) -> None:
    """All active lanes go to one block."""
    active = state.b.load("i32", state.active)
    _check_stop(state, (target,))
    if state.plan.general:
        _move(state, [(target, active)])
        return
    _spend(state, [(target, active)])
    waiting = _waiting_after(state)
    before = [rank for rank in members(waiting) if rank <= target]
    if not before:
        state.b.br(block_label(target))
        return
    _add_waiting(state, target, active)
    if before[0] == target:
        state.b.br(take_label(target))
    else:
        _dispatch_fast(state, waiting | 1 << target)


def part(state: State, goals: Goals) -> None:
    """Active lanes go to several blocks (rank, mask); lanes in none of the masks have exited."""
    _check_stop(state, [rank for rank, _ in goals])
    if state.plan.general:
        _move(state, goals)
        return
    _spend(state, goals)
    possible = _waiting_after(state)
    for rank, mask in goals:
        _add_waiting(state, rank, mask)
        possible |= 1 << rank
    _dispatch_fast(state, possible)


def leave(state: State) -> None:
    """All active lanes have exited."""
    if state.plan.general:
        _move(state, [])
    else:
        _dispatch_fast(state, _waiting_after(state))


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


# ---- the fast variant


def _dispatch_fast(state: State, possible: int) -> None:
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


# ---- loops that may wait for other threads


def _spins(state: State, goals: Goals) -> Goals:
    """Those goals that go round such a loop once more."""
    return sorted(
        (goal for goal in goals if goal[0] in state.program.spins and goal[0] <= state.block.rank),
        key=lambda goal: goal[0],
    )


def _tired(state: State, spins: Goals) -> Value:
    """Count the rounds; the lanes for which it was the last one for now."""
    b = state.b
    budget, tired = frame_get(b, state.frame, "budget"), constant("i32", 0)
    for _, mask in spins:
        some = b.is_("ne", mask, 0)
        budget = b.sub(budget, b.cast("zext", some, "i32"))
        last = b.and_(some, b.is_("eq", budget, 0))
        budget = b.select(last, constant("i32", SPIN_BUDGET), budget)
        tired = b.or_(tired, b.select(last, mask, constant("i32", 0)))
    frame_put(b, state.frame, "budget", budget)
    return tired


def _spend(state: State, goals: Goals) -> None:
    """In the fast variant: when a loop has had its rounds, yield, or let the general variant run other lanes of the warp."""
    spins = _spins(state, goals)
    if not spins:
        return
    b = state.b
    tired = _tired(state, spins)
    with b.if_(b.is_("ne", tired, 0)):
        _give_way(state, goals, spins, tired)
        b.label(b.fresh("dead"))


def _give_way(state: State, goals: Goals, spins: Goals, tired: Value) -> None:
    b, blocks = state.b, state.program.graph.blocks
    waiting = [(rank, b.load("i32", state.waiting[rank])) for rank in members(_waiting_after(state))]
    others = constant("i32", 0)
    for _, mask in [*waiting, *goals]:
        others = b.or_(others, b.and_(mask, b.not_(tired)))
    if len(spins) == 1:
        ((target, _),) = spins
        with b.if_(b.is_("eq", others, 0)):
            b.store(tired, state.active)
            save(state, blocks[target].live_in)
            frame_put(b, state.frame, "resume", constant("i32", yield_resume(state, target)))
            frame_put(b, state.frame, "steady", constant("i32", int(target in state.program.steady)))
            b.ret(constant("i32", layout.YIELD))
            b.label(b.fresh("dead"))
        state.yields.add(target)
    save(state, set().union(*(blocks[rank].live_in for rank, _ in [*waiting, *goals])))
    set_general_mask(state, "parked", tired)
    placed = [(rank, b.and_(mask, b.not_(tired))) for rank, mask in [*waiting, *goals]]
    bail(state, placed, DISPATCH, [(rank, b.and_(mask, tired)) for rank, mask in spins])


def resume_yields(state: State, cases: list[tuple[int, str]]) -> None:
    """Where the fast variant goes on after it has yielded."""
    b = state.b
    for rank in sorted(state.yields):
        entry = b.fresh("resume")
        b.label(entry)
        restore(state, state.program.graph.blocks[rank].live_in)
        b.br(block_label(rank))
        cases.append((yield_resume(state, rank), entry))


# ---- the general variant


def _move(state: State, goals: Goals) -> None:
    """Send the active lanes to their places; go on at once if there is only one."""
    b = state.b
    sent = constant("i32", 0)
    for _, mask in goals:
        sent = b.or_(sent, mask)
    _note_exits(state, sent)
    spins = _spins(state, goals)
    tired = _tired(state, spins) if spins else constant("i32", 0)
    set_general_mask(state, "parked", b.or_(general_mask(state, "parked"), tired))
    ready = general_mask(state, "ready")
    alone = b.is_("eq", b.or_(ready, tired), 0)
    for rank, mask in goals:
        only, after = b.fresh("only"), b.fresh("more")
        b.cond(b.and_(alone, b.and_(b.compare("eq", mask, sent), b.is_("ne", mask, 0))), only, after)
        b.label(only)
        b.store(mask, state.active)
        b.br(block_label(rank))
        b.label(after)
    at = places(state)
    for rank, mask in goals:
        at = b.select(b.mask_vector(mask), constant("i32", rank), at)
    set_places(state, at)
    set_general_mask(state, "ready", b.or_(ready, b.and_(sent, b.not_(tired))))
    b.br("dispatch")


def _note_exits(state: State, sent: Value) -> None:
    """Lanes that exit may be those that others wait for."""
    b = state.b
    gone = b.is_("ne", b.and_(b.load("i32", state.active), b.not_(sent)), 0)
    set_general_mask(state, "recheck", b.or_(general_mask(state, "recheck"), b.cast("zext", gone, "i32")))


def general_dispatch(state: State, cases: list[tuple[int, str]]) -> None:
    """The code of the general variant that all transitions share."""
    b, blocks = state.b, state.program.graph.blocks
    everything = set().union(*(block.live_in for block in blocks))
    idle, some = "idle", b.fresh("some")
    b.label("dispatch")
    ready = general_mask(state, "ready")
    b.cond(b.is_("eq", ready, 0), idle, some)
    b.label(some)
    at = places(state)
    rank = _least(state, at, ready)
    active = b.and_(ready, b.mask_word(b.compare("eq", at, rank)))
    b.store(active, state.active)
    set_general_mask(state, "ready", b.and_(ready, b.not_(active)))
    listed = " ".join(f"i32 {block.rank}, label %{block_label(block.rank)}" for block in blocks)
    b.emit(f"switch {rank.ir}, label %nowhere [ {listed} ]")
    b.label(idle)
    _idle(state, everything)
    entry = b.fresh("resume")
    b.label(entry)
    restore(state, everything)
    opened = frame_get(b, state.frame, "opened")
    b.cond(b.is_("ne", opened, 0), "release", "dispatch")
    cases.append((DISPATCH, entry))


def _least(state: State, ranks: Value, lanes: Value) -> Value:
    """The least rank of some lanes."""
    b = state.b
    return b.reduce("umin", b.select(b.mask_vector(lanes), ranks, constant("i32", 0x7FFFFFFF)))


def _idle(state: State, names: set[str]) -> None:
    """No lane is ready: let waiting ones try again, or return."""
    b = state.b
    blocked, parked = general_mask(state, "blocked"), general_mask(state, "parked")
    again = b.and_(b.is_("ne", general_mask(state, "recheck"), 0), b.is_("ne", blocked, 0))
    with b.if_(again):
        # Lanes that the blocked ones wait for may have exited.
        set_general_mask(state, "ready", blocked)
        set_general_mask(state, "blocked", constant("i32", 0))
        set_general_mask(state, "recheck", constant("i32", 0))
        b.br("dispatch")
        b.label(b.fresh("dead"))
    with b.if_(b.is_("ne", parked, 0)):
        set_general_mask(state, "ready", parked)
        set_general_mask(state, "parked", constant("i32", 0))
        frame_put(b, state.frame, "budget", constant("i32", SPIN_BUDGET))
        others = b.and_(parked, b.not_(lanes_at(state, state.program.steady)))
        frame_put(b, state.frame, "steady", b.cast("zext", b.is_("eq", others, 0), "i32"))
        _pause(state, names, layout.YIELD)
    with b.if_(b.is_("ne", general_mask(state, "arrived"), 0)):
        _pause(state, names, layout.WAIT)
    with b.if_(b.is_("ne", blocked, 0)):
        b.call("lanes_missed", None, state.context, state.frame, blocked)
        b.br(state.fault_label)
        b.label(b.fresh("dead"))
    b.ret(constant("i32", layout.DONE))


def _pause(state: State, names: set[str], code: int) -> None:
    save(state, names)
    frame_put(state.b, state.frame, "resume", constant("i32", DISPATCH))
    state.b.ret(constant("i32", code))
    state.b.label(state.b.fresh("dead"))


def live_lanes(state: State) -> Value:
    """Lanes that have not exited, nor wait at a block that does nothing else."""
    b, blocks = state.b, state.program.graph.blocks
    leaving = [block.rank for block in blocks if block.exits_only]
    live = b.load("i32", state.active)
    if not state.plan.general:
        for rank in members(state.plan.waiting[state.block.rank]):
            if rank not in leaving:
                live = b.or_(live, b.load("i32", state.waiting[rank]))
        return live
    waiting = general_mask(state, "ready")
    for name in ("blocked", "parked", "arrived"):
        waiting = b.or_(waiting, general_mask(state, name))
    return b.or_(live, b.and_(waiting, b.not_(lanes_at(state, leaving))))
