"""Operations across the lanes of a warp: shuffles, votes, matches, reductions, and the check of their member masks."""

from __future__ import annotations

from gpulab.emulator.checking import hooks
from gpulab.emulator.llvm.ir import Value, constant, constants, lane_numbers
from gpulab.emulator.llvm.permute import permuted
from gpulab.emulator.lower.schedule import live_lanes
from gpulab.emulator.lower.table import lowers
from gpulab.emulator.lower.values import State
from gpulab.ptx.syntax import Immediate, Pair


def member_mask(state: State, position: int) -> Value:
    """The member mask; `lower_meet` has seen to it that every live lane in it is here, and every lane here is in it."""
    mask = state.value(state.instruction.operands[position], "u32")
    hooks.warp_sync(state, mask, live_lanes(state))
    return mask


@lowers("bar", "barrier")
def synchronize(state: State) -> None:
    """``bar.warp.sync``: `lower_meet` has done all there is to do, as the lanes of a warp run in lockstep."""
    member_mask(state, 0)


@lowers("activemask")
def activemask(state: State) -> None:
    state.write(state.instruction.operands[0], state.on(), "b32")


@lowers("vote")
def vote(state: State) -> None:
    b, form = state.b, state.form
    destination, source = state.instruction.operands[:2]
    member = b.and_(member_mask(state, 2), state.on())
    true = b.and_(b.mask_word(state.value(source, "pred")), member)
    if form.mode == "ballot":
        state.write(destination, true, "b32")
        return
    every, some = b.compare("eq", true, member), b.is_("ne", true, 0)
    result = {"all": every, "any": some}.get(form.mode or "") or b.or_(every, b.not_(some))
    state.write(destination, result, "pred")


@lowers("match")
def match(state: State) -> None:
    b, form = state.b, state.form
    destination, source = state.instruction.operands[:2]
    member = b.widen(b.and_(member_mask(state, 2), state.on()))
    values = b.widen(state.value(source, form.type or ""))
    kept = b.variable(values)
    result = b.variable(constant("i32", 0, 32))
    with b.bits(state.on()) as lane:
        wide = b.resize(lane, "i64")
        mine = b.load(values.type, b.offset(kept, b.mul(wide, _bytes(values))))
        equal = b.mask_word(b.compare("eq", values, mine))
        b.store(equal, b.offset(result, b.mul(wide, 4)))
    found = b.and_(b.load("i32", result, 32), member)
    if form.mode == "any":
        state.write(destination, found, "b32")
        return
    every = b.compare("eq", found, member)
    state.write_pair(destination, b.select(every, member, constant("i32", 0, 32)), every, "b32")


def _bytes(value: Value) -> int:
    return int(value.type[1:]) // 8


_REDUCTIONS = {"add": ("add", 0), "and": ("and", -1), "or": ("or", 0), "xor": ("xor", 0)}


@lowers("redux")
def redux(state: State) -> None:
    b, form = state.b, state.form
    destination, source = state.instruction.operands[:2]
    member, on = member_mask(state, 2), state.on()
    values = b.widen(state.value(source, form.type or ""))
    name, identity = _REDUCTIONS.get(form.operation or "") or _extreme(form.operation or "", form.type or "")
    if member.lanes == 1:
        state.write(destination, _reduced(state, name, identity, values, b.and_(member, on)), form.type or "")
        return
    masks, result = b.variable(b.and_(member, on)), b.variable(constant("i32", 0, 32))
    with b.bits(on) as lane:
        place = b.mul(b.resize(lane, "i64"), 4)
        group = b.load("i32", b.offset(masks, place))
        b.store(_reduced(state, name, identity, values, group), b.offset(result, place))
    state.write(destination, b.load("i32", result, 32), form.type or "")


def _extreme(operation: str, type_name: str) -> tuple[str, int]:
    if type_name[0] == "s":
        return f"s{operation}", 0x7FFFFFFF if operation == "min" else 0x80000000
    return f"u{operation}", 0xFFFFFFFF if operation == "min" else 0


def _reduced(state: State, name: str, identity: int, values: Value, lanes: Value) -> Value:
    b = state.b
    return b.reduce(name, b.select(b.mask_vector(lanes), values, constant("i32", identity, 32)))


@lowers("elect")
def elect(state: State) -> None:
    b = state.b
    member = b.and_(member_mask(state, 1), state.on())
    leader = b.count_trailing_zeros(b.or_(member, constant("i32", 1 << 31)))
    chosen = b.compare("eq", lane_numbers(), b.widen(leader))
    destination = state.instruction.operands[0]
    if isinstance(destination, Pair):
        state.write(destination.first, leader, "b32")
        state.write(destination.second, chosen, "pred")
    else:
        state.write(destination, leader, "b32")


# ---- shuffles


@lowers("shfl")
def shuffle(state: State) -> None:
    b, form = state.b, state.form
    destination, source, distance, clamp = state.instruction.operands[:4]
    mask = member_mask(state, 4)
    values = b.widen(state.value(source, "b32"))
    if isinstance(distance, Immediate) and isinstance(clamp, Immediate):
        lanes, inside = _known_lanes(form.mode or "", int(distance.value), int(clamp.value))
        result = b.shuffle(values, values, lanes)
        valid: Value = constants("i1", inside)
        sources = constants("i32", lanes)
    else:
        sources, valid = _lanes(state, b.widen(state.value(distance, "u32")), b.widen(state.value(clamp, "u32")))
        result = permuted(b, values, sources)
    result = _from_active(state, result, values, sources)
    hooks.shuffle(state, sources, mask)
    state.write_pair(destination, result, valid, "b32")


def _from_active(state: State, result: Value, own: Value, sources: Value) -> Value:
    """What a lane gets from a lane that doesn't take part: its own value."""
    b, on = state.b, state.on()
    here = b.is_("ne", b.and_(b.binary("lshr", b.widen(on), sources), 1), 0)
    return b.select(b.compare("eq", on, constant("i32", -1)), result, b.select(here, result, own))


def _known_lanes(mode: str, distance: int, clamp: int) -> tuple[list[int], list[int]]:
    lanes, inside = [], []
    for lane in range(32):
        segment, bound = clamp >> 8 & 31, clamp & 31
        low, most = lane & segment, (lane & segment) | (bound & ~segment & 31)
        step = distance & 31
        target = {"up": lane - step, "down": lane + step, "bfly": lane ^ step, "idx": low | (step & ~segment & 31)}[
            mode
        ]
        valid = target >= most if mode == "up" else target <= most
        lanes.append(target if valid else lane)
        inside.append(int(valid))
    return lanes, inside


def _lanes(state: State, distance: Value, clamp: Value) -> tuple[Value, Value]:
    b, mode, lane = state.b, state.form.mode, lane_numbers()
    step, bound = b.and_(distance, 31), b.and_(clamp, 31)
    segment = b.and_(b.lshr(clamp, 8), 31)
    outside = b.not_(segment)
    low = b.and_(lane, segment)
    most = b.or_(low, b.and_(bound, outside))
    if mode == "idx":
        target = b.or_(low, b.and_(step, outside))
    else:
        target = b.binary({"up": "sub", "down": "add", "bfly": "xor"}[mode or ""], lane, step)
    valid = b.compare("sge" if mode == "up" else "sle", target, most)
    return b.select(valid, target, lane), valid
