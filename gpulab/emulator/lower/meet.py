"""Where lanes of a warp wait for each other: the beginning of a block that `meets`.

The fast variant only tests that nobody is missing, and hands over to the general one if somebody is. The general one lets
lanes wait (``blocked``) until all that they want are here.
"""

from __future__ import annotations

from gpulab.emulator import layout
from gpulab.emulator.analysis.meeting import is_aligned, is_warp_barrier, mask_position, stuck_kind
from gpulab.emulator.layout import frame_put
from gpulab.emulator.llvm.ir import Value, constant, constants
from gpulab.emulator.lower.control import fault_if, guard_value
from gpulab.emulator.lower.pause import (
    bail_unless,
    emit_bail,
    general_mask,
    lanes_at,
    put_at,
    set_general_mask,
)
from gpulab.emulator.lower.schedule import live_lanes
from gpulab.emulator.lower.values import State

LANE_BITS = constants("i32", [1 << lane for lane in range(32)])


def lower_meet(state: State) -> None:
    """Let the active lanes go on of which nobody has to wait."""
    if state.plan.general:
        _gather(state)
    if state.form.kind != "barrier":
        _meet_members(state)
    elif not state.plan.general:
        _meet_all_fast(state)
    elif is_aligned(state.instruction):
        _meet_all(state)
    if not state.plan.general:
        emit_bail(state)


def _gather(state: State) -> None:
    """Those that waited here take part again."""
    b = state.b
    blocked = general_mask(state, "blocked")
    here = b.and_(blocked, lanes_at(state, [state.block.rank]))
    b.store(b.or_(b.load("i32", state.active), here), state.active)
    set_general_mask(state, "blocked", b.and_(blocked, b.not_(here)))


def lanes_on(state: State) -> Value:
    """Active lanes whose guard holds."""
    active = state.b.load("i32", state.active)
    if state.instruction.guard is None:
        return active
    return state.b.and_(active, state.b.mask_word(guard_value(state)))


# ---- barriers of the block


def _meet_all_fast(state: State) -> None:
    b, on = state.b, lanes_on(state)
    absent = b.and_(live_lanes(state), b.not_(on))
    missing = b.and_(b.is_("ne", absent, 0), b.is_("ne", on, 0))
    if is_aligned(state.instruction):
        fault_if(state, missing, "barrier", on)
    else:
        bail_unless(state, b.not_(missing))


def _meet_all(state: State) -> None:
    """An aligned barrier: every live lane of the warp must be here, or wait for something first."""
    b, on = state.b, lanes_on(state)
    active, some = b.load("i32", state.active), b.is_("ne", on, 0)
    absent = b.and_(live_lanes(state), b.not_(on))
    free = b.and_(absent, b.or_(active, general_mask(state, "ready")))
    fault_if(state, b.and_(some, b.is_("ne", free, 0)), "barrier", on)
    waits = b.and_(some, b.is_("ne", absent, 0))
    _block(state, b.select(waits, active, constant("i32", 0)), b.widen(absent))


# ---- members of a mask


def _meet_members(state: State) -> None:
    """A ``.sync`` operation: a lane goes on when all live lanes of its member mask are here."""
    b, on = state.b, lanes_on(state)
    active, live = b.load("i32", state.active), live_lanes(state)
    position = mask_position(state.form)
    mask = live if position is None else state.value(state.instruction.operands[position], "u32")
    if not state.plan.general:
        _check_masks(state, mask, on, b.and_(active, b.not_(on)))
        if state.plan.waiting[state.block.rank]:
            absent = b.and_(live, b.not_(on))
            bail_unless(state, b.is_("eq", _wanting(state, b.and_(mask, absent), on), 0))
        return
    elsewhere, released = _elsewhere(state), b.and_(general_mask(state, "granted"), active)
    asking = b.and_(on, b.not_(released))
    _check_masks(state, mask, asking, b.and_(active, b.not_(on)))
    set_general_mask(state, "granted", b.and_(general_mask(state, "granted"), b.not_(released)))
    wanted = b.and_(mask, b.and_(live, b.not_(b.or_(on, elsewhere))))
    waits = _wanting(state, wanted, asking)
    _block(state, waits, b.widen(wanted))
    _release_partners(state, b.widen(mask), b.and_(asking, b.not_(waits)), elsewhere)


def _check_masks(state: State, mask: Value, on: Value, never: Value) -> None:
    """A fault for lanes that are not in their own mask, or whose mask names a lane whose guard is false."""
    b = state.b
    if mask.lanes == 1:
        wrong = b.and_(on, b.or_(b.not_(mask), b.mask_word(b.is_("ne", b.and_(mask, never), 0))))
    else:
        alone = b.is_("eq", b.and_(mask, LANE_BITS), 0)
        wrong = b.and_(on, b.mask_word(b.or_(alone, b.is_("ne", b.and_(mask, never), 0))))
    fault_if(state, b.is_("ne", wrong, 0), stuck_kind(state.form), wrong)


def _wanting(state: State, wanted: Value, on: Value) -> Value:
    """Lanes that want somebody."""
    return state.b.and_(on, state.b.mask_word(state.b.is_("ne", wanted, 0)))


def _elsewhere(state: State) -> Value:
    """Lanes that wait at another ``bar.warp.sync``: they count as here."""
    others = [
        block.rank
        for block in state.program.graph.blocks
        if block is not state.block and is_warp_barrier(state.program.forms[block.start])
    ]
    if not others or not is_warp_barrier(state.form):
        return constant("i32", 0)
    return state.b.and_(general_mask(state, "blocked"), lanes_at(state, others))


def _release_partners(state: State, mask: Value, met: Value, elsewhere: Value) -> None:
    """Lanes at another ``bar.warp.sync`` that were met may pass theirs."""
    if elsewhere.constant:
        return
    b = state.b
    partners = b.and_(_union(state, mask, met), elsewhere)
    set_general_mask(state, "blocked", b.and_(general_mask(state, "blocked"), b.not_(partners)))
    for name in ("ready", "granted"):
        set_general_mask(state, name, b.or_(general_mask(state, name), partners))


def _union(state: State, masks: Value, lanes: Value) -> Value:
    """All lanes that some lanes' masks name."""
    b = state.b
    return b.reduce("or", b.select(b.mask_vector(lanes), masks, constant("i32", 0)))


# ---- waiting


def _block(state: State, lanes: Value, wanted: Value) -> None:
    """Let lanes wait for those that they want; go on with other lanes if no active one is left."""
    b = state.b
    with b.if_(b.is_("ne", lanes, 0)):
        chosen, place = b.mask_vector(lanes), b.offset(state.frame, layout.FRAME_WANTED)
        b.store(b.select(chosen, wanted, b.load("i32", place, layout.WARP)), place)
        put_at(state, lanes, state.block.rank)
        blocked = general_mask(state, "blocked")
        known = b.select(b.is_("eq", blocked, 0), constant("i32", 0), general_mask(state, "awaited"))
        frame_put(b, state.frame, "awaited", b.or_(known, _union(state, wanted, lanes)))
        set_general_mask(state, "blocked", b.or_(blocked, lanes))
        left = b.and_(b.load("i32", state.active), b.not_(lanes))
        b.store(left, state.active)
        here = b.fresh("here")
        b.cond(b.is_("eq", left, 0), "dispatch", here)
        b.label(here)


def check_passing(state: State) -> None:
    """Lanes that others wait for enter this block: a fault if they have passed the place for good."""
    b, rank = state.b, state.block.rank
    if not state.plan.general or not state.program.passes[:, rank].any():
        return
    awaited = b.and_(general_mask(state, "awaited"), b.load("i32", state.active))
    with b.if_(b.and_(b.is_("ne", awaited, 0), b.is_("ne", general_mask(state, "blocked"), 0))):
        missed = b.call("lanes_passed", "i32", state.context, state.frame, constant("i64", rank), awaited)
        with b.if_(b.is_("ne", missed, 0)):
            # For the message, which says where they are.
            active = b.load("i32", state.active)
            put_at(state, active, rank)
            set_general_mask(state, "ready", b.or_(general_mask(state, "ready"), active))
            b.br(state.fault_label)
            b.label(b.fresh("dead"))
