"""What a warp keeps in its frame while others run, and how the fast variant hands over to the general one.

The fast variant has the lanes that wait at each basic block in masks of its own. The general one keeps, in the frame, the
block at which each lane waits and masks of what the lanes wait for: their turn (``ready``), others of the warp (``blocked``),
a loop's next round (``parked``), a barrier of the block (``arrived``). Its registers are in the frame all the time.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpulab.emulator import layout
from gpulab.emulator.analysis.frontier import members
from gpulab.emulator.analysis.shapes import VECTOR
from gpulab.emulator.layout import frame_get, frame_put, register_offset
from gpulab.emulator.llvm.ir import Value, constant
from gpulab.emulator.lower.values import State
from gpulab.ptx.cfg import Block, live_before

# ---- bail-outs


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
    save(state, live_at(state, state.index))
    waiting = [(rank, b.load("i32", state.waiting[rank])) for rank in members(state.plan.waiting[state.block.rank])]
    bail(state, waiting, bail_resume(state, state.index))
    b.label(after)
    state.bail_label = None


def bail(
    state: State, waiting: list[tuple[int, Value]], resume: int, parked: list[tuple[int, Value]] | None = None
) -> None:
    """Return to go on in the general variant; the registers are saved already.

    Parameters
    ----------
    waiting : list of (int, Value)
        Blocks and the lanes that wait at them.
    resume : int
        Where it goes on with the active lanes.
    parked : list of (int, Value), optional
        Blocks and the lanes that wait there for their next round.
    """
    b, ready, at = state.b, constant("i32", 0), constant("i32", 0, layout.WARP)
    for _, lanes in waiting:
        ready = b.or_(ready, lanes)
    for rank, lanes in [*waiting, *(parked or [])]:
        at = b.select(b.mask_vector(lanes), constant("i32", rank), at)
    set_general_mask(state, "ready", ready)
    set_places(state, at)
    frame_put(b, state.frame, "resume", constant("i32", resume))
    frame_put(b, state.frame, "bail", constant("i32", 1))
    b.ret(constant("i32", layout.BAIL))


# ---- where a warp goes on


def behind_barrier(block: Block) -> int:
    """Resume point of the fast variant behind the barrier that ends a block."""
    return 1 + block.rank


def bail_resume(state: State, index: int) -> int:
    """Resume point of the general variant before an instruction."""
    return 1 + len(state.program.graph.blocks) + index


def yield_resume(state: State, rank: int) -> int:
    """Resume point of the fast variant at the beginning of a loop that waits."""
    return 1 + len(state.program.graph.blocks) + len(state.program.forms) + rank


def live_at(state: State, index: int) -> set[str]:
    """Registers whose value before an instruction of the current block may still be read."""
    program, block = state.program, state.block
    live = live_before(program.function, program.forms, program.graph, block, index)
    for rank in members(state.plan.waiting[block.rank]):
        live |= program.graph.blocks[rank].live_in
    return live


def general_mask(state: State, name: str) -> Value:
    """One of the general variant's masks, which are kept in the frame."""
    return frame_get(state.b, state.frame, name)


def set_general_mask(state: State, name: str, lanes: Value) -> None:
    """Change one of them."""
    frame_put(state.b, state.frame, name, lanes)


def places(state: State) -> Value:
    """The rank of the block at which each lane waits, in the general variant."""
    return state.b.load("i32", state.b.offset(state.frame, layout.FRAME_AT), layout.WARP)


def set_places(state: State, ranks: Value) -> None:
    """Change them."""
    state.b.store(state.b.widen(ranks), state.b.offset(state.frame, layout.FRAME_AT))


def lanes_at(state: State, ranks: Iterable[int]) -> Value:
    """Lanes whose place is one of some blocks, whatever they do there."""
    b, at, found = state.b, places(state), constant("i32", 0)
    for rank in ranks:
        found = b.or_(found, b.mask_word(b.is_("eq", at, rank)))
    return found


def put_at(state: State, lanes: Value, rank: int) -> None:
    """Give lanes a place."""
    b = state.b
    set_places(state, b.select(b.mask_vector(lanes), constant("i32", rank), places(state)))


def mask_place(state: State, rank: int) -> Value:
    """Where a frame keeps the lanes that wait at a block."""
    return state.b.offset(state.frame, layout.FRAME_HEADER_BYTES + 4 * rank)


def save(state: State, names: Iterable[str], ranks: Iterable[int] = ()) -> None:
    """Put registers, the active mask and (in the fast variant) the masks of some blocks into the frame."""
    b = state.b
    frame_put(b, state.frame, "active", b.load("i32", state.active))
    for rank in ranks:
        b.store(b.load("i32", state.waiting[rank]), mask_place(state, rank))
    if state.plan.general:
        return
    if state.count:
        frame_put(b, state.frame, "executed", b.load("i64", state.executed))
    for name in sorted(names):
        variable = state.variables[name]
        place = b.offset(state.frame, register_offset(len(state.program.graph.blocks), state.slots[name]))
        value = b.load(variable.element, variable.base, layout.WARP if variable.shape is VECTOR else 1)
        # Predicates are kept as lane masks, whatever their shape.
        b.store(b.mask_word(value) if variable.element == "i1" else value, place)
        for number, stride in enumerate(variable.strides, 1):
            if isinstance(stride, Value):
                b.store(b.load(variable.element, stride), b.offset(place, 8 * number))


def restore(state: State, names: Iterable[str], ranks: Iterable[int] = ()) -> None:
    """Take them back."""
    b = state.b
    b.store(layout.frame_get(b, state.frame, "active"), state.active)
    for rank in ranks:
        b.store(b.load("i32", mask_place(state, rank)), state.waiting[rank])
    if state.plan.general:
        return
    if state.count:
        b.store(frame_get(b, state.frame, "executed", "i64"), state.executed)
    for name in sorted(names):
        variable = state.variables[name]
        place = b.offset(state.frame, register_offset(len(state.program.graph.blocks), state.slots[name]))
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
