"""Native helpers for threads that wait: barriers with their counts, lanes that are missed, warps that yield.

- ``barrier_arrive(context, frame, number, count, lanes, holding, credit, info)``: lanes of a warp arrive at a barrier for
  `count` threads (-1: for all). 0: they wait or go on; 1: the barrier has opened; 2: a fault is recorded. `info` is the
  instruction, doubled, plus 1 if the lanes wait.
- ``barrier_open(context, number)``: all that wait at a barrier may go on.
- ``lanes_missed(context, frame, lanes)``: record the fault of blocked lanes that wait for others in vain.
- ``lanes_passed(context, frame, rank, active)``: lanes that others wait for enter a block; 1 if they are missed now.
- ``yield_changed(context, frame)``: whether a warp yields in another state than the last time, of that which may end the loops
  in which its lanes wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpulab.emulator import layout
from gpulab.emulator.layout import BARRIER_WORDS, frame_get, frame_put, get
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant, constants
from gpulab.emulator.native.address import record_fault

_FRAME = (("context", "ptr"), ("frame", "ptr"))


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns their names."""
    _define_open(module)
    _define_arrive(module)
    _define_missed(module)
    _define_passed(module)
    _define_changed(module)
    return "barrier_arrive", "barrier_open", "lanes_missed", "lanes_passed", "yield_changed"


def frame_of(b: Builder, context: Value, warp: Value) -> Value:
    """The frame of a warp of the block."""
    return b.offset(get(b, context, "frames", "ptr"), b.mul(warp, get(b, context, "frame_bytes")))


def each_frame(b: Builder, context: Value) -> Iterator[Value]:
    """Code for the frame of each warp of the block."""
    index = b.variable(constant("i64", 0))
    with b.loop() as leave:
        warp = b.load("i64", index)
        b.go_if(b.compare("uge", warp, get(b, context, "warps")), leave)
        b.store(b.add(warp, 1), index)
        yield frame_of(b, context, warp)


def barrier_place(b: Builder, context: Value, number: Value) -> Value:
    """Where the words of a barrier are."""
    return b.offset(b.offset(context, 8 * layout.ARRIVED), b.mul(number, layout.BARRIER_BYTES))


def barrier_word(b: Builder, place: Value, name: str) -> Value:
    """Where a barrier has one of `BARRIER_WORDS`."""
    return b.offset(place, 8 * BARRIER_WORDS.index(name))


def _define_open(module: IrModule) -> None:
    b = Builder(module, "barrier_open", "void", (("context", "ptr"), ("number", "i64")))
    context, number = b.argument("context", "ptr"), b.argument("number", "i64")
    place = barrier_place(b, context, number)
    threads, holding = (b.load("i64", barrier_word(b, place, name)) for name in ("threads", "holding"))
    b.store(constant("i64", 0, len(BARRIER_WORDS)), place)
    for frame in each_frame(b, context):
        here = b.compare("eq", frame_get(b, frame, "barrier", "i64"), number)
        with b.if_(b.and_(here, b.is_("ne", frame_get(b, frame, "arrived"), 0))):
            frame_put(b, frame, "opened", constant("i64", 1))
            frame_put(b, frame, "threads", threads)
            frame_put(b, frame, "holding", holding)
            status = frame_get(b, frame, "status")
            waits = b.is_("eq", status, layout.WAITING)
            frame_put(b, frame, "status", b.select(waits, constant("i32", layout.READY), status))
    b.ret()
    b.finish()


def _define_arrive(module: IrModule) -> None:
    words = (
        ("number", "i64"),
        ("count", "i64"),
        ("lanes", "i32"),
        ("holding", "i32"),
        ("credit", "i32"),
        ("info", "i64"),
    )
    b = Builder(module, "barrier_arrive", "i32", (*_FRAME, *words))
    context, frame = b.argument("context", "ptr"), b.argument("frame", "ptr")
    number, count, lanes, holding, credit, info = (b.argument(name, kind) for name, kind in words)
    place, expected = (
        barrier_place(b, context, number),
        b.select(b.is_("eq", count, -1), constant("i64", 1), b.add(count, 1)),
    )
    _check_arrival(b, context, frame, number, count, expected, place, lanes, info)
    b.store(expected, barrier_word(b, place, "expected"))
    for name, mask in (("threads", lanes), ("holding", holding), ("credit", credit)):
        where = barrier_word(b, place, name)
        b.store(b.add(b.load("i64", where), b.resize(b.popcount(mask), "i64")), where)
    with b.if_(b.is_("ne", b.and_(info, 1), 0)):
        frame_put(b, frame, "barrier", number)
        frame_put(b, frame, "arrived", b.or_(frame_get(b, frame, "arrived"), lanes))
    enough = b.compare("sge", b.load("i64", barrier_word(b, place, "credit")), count)
    with b.if_(b.and_(enough, b.is_("ne", count, -1))):
        b.call("barrier_open", None, context, number)
        b.ret(constant("i32", 1))
        b.label(b.fresh("dead"))
    b.ret(constant("i32", 0))
    b.finish()


def _check_arrival(
    b: Builder,
    context: Value,
    frame: Value,
    number: Value,
    count: Value,
    expected: Value,
    place: Value,
    lanes: Value,
    info: Value,
) -> None:
    """Refuse a number of threads that no barrier can have, two at a time, and lanes of a warp at two barriers."""
    most = b.mul(get(b, context, "warps"), layout.WARP)
    odd = b.or_(b.is_("ne", b.and_(count, layout.WARP - 1), 0), b.compare("ugt", b.sub(count, 1), b.sub(most, 1)))
    known = b.load("i64", barrier_word(b, place, "expected"))
    differs = b.and_(b.is_("ne", known, 0), b.compare("ne", known, expected))
    elsewhere = b.compare("ne", frame_get(b, frame, "barrier", "i64"), number)
    two = b.and_(elsewhere, b.is_("ne", frame_get(b, frame, "arrived"), 0))
    checks = {"barrier/count": b.and_(b.is_("ne", count, -1), odd), "barrier/mixed": differs, "barrier/two": two}
    lane = b.count_trailing_zeros(b.or_(lanes, constant("i32", 1 << 31)))
    for kind, wrong in checks.items():
        with b.if_(wrong):
            record_fault(b, context, kind, b.lshr(info, 1), lane, constant("i64", 0))
            b.ret(constant("i32", 2))
            b.label(b.fresh("dead"))


# ---- lanes that others wait for


def _lane_word(b: Builder, frame: Value, start: int, lane: Value) -> Value:
    return b.load("i32", b.offset(b.offset(frame, start), b.mul(b.resize(lane, "i64"), 4)))


def _define_missed(module: IrModule) -> None:
    b = Builder(module, "lanes_missed", "void", (*_FRAME, ("lanes", "i32")))
    context, frame = b.argument("context", "ptr"), b.argument("frame", "ptr")
    least, first = b.variable(constant("i32", 0x7FFFFFFF)), b.variable(constant("i32", 0))
    with b.bits(b.argument("lanes", "i32")) as lane:
        at, known = _lane_word(b, frame, layout.FRAME_AT, lane), b.load("i32", least)
        lower = b.compare("slt", at, known)
        b.store(b.select(lower, at, known), least)
        b.store(b.select(lower, lane, b.load("i32", first)), first)
    row = b.offset(get(b, context, "block_table", "ptr"), b.mul(b.resize(b.load("i32", least), "i64"), 16))
    instruction, kind = b.load("i64", row), b.load("i64", b.offset(row, 8))
    record_fault(b, context, kind, instruction, b.load("i32", first), constant("i64", 0))
    b.ret()
    b.finish()


def _define_passed(module: IrModule) -> None:
    b = Builder(module, "lanes_passed", "i32", (*_FRAME, ("rank", "i64"), ("active", "i32")))
    context, frame = b.argument("context", "ptr"), b.argument("frame", "ptr")
    rank, active = b.argument("rank", "i64"), b.argument("active", "i32")
    blocks, table = get(b, context, "flow_blocks"), get(b, context, "passes", "ptr")
    missed = b.variable(constant("i32", 0))
    with b.bits(frame_get(b, frame, "blocked")) as lane:
        at = b.resize(_lane_word(b, frame, layout.FRAME_AT, lane), "i64")
        gone = b.is_("ne", b.load("i8", b.offset(table, b.add(b.mul(at, blocks), rank))), 0)
        wants = b.is_("ne", b.and_(_lane_word(b, frame, layout.FRAME_WANTED, lane), active), 0)
        bit = b.select(b.and_(gone, wants), b.shl(constant("i32", 1), lane), constant("i32", 0))
        b.store(b.or_(b.load("i32", missed), bit), missed)
    with b.if_(b.is_("ne", b.load("i32", missed), 0)):
        b.call("lanes_missed", None, context, frame, b.load("i32", missed))
        b.ret(constant("i32", 1))
        b.label(b.fresh("dead"))
    b.ret(constant("i32", 0))
    b.finish()


# ---- yields


_MIX = 0x9E3779B97F4A7C15


def _define_changed(module: IrModule) -> None:
    b = Builder(module, "yield_changed", "i32", _FRAME)
    context, frame = b.argument("context", "ptr"), b.argument("frame", "ptr")
    last = frame_get(b, frame, "last_yield", "i64")
    with b.if_(b.is_("ne", frame_get(b, frame, "steady"), 0)):
        frame_put(b, frame, "last_yield", constant("i64", 0))
        b.ret(constant("i32", 0))
        b.label(b.fresh("dead"))
    # What the warp can't know is no part of its state.
    executed = frame_get(b, frame, "executed", "i64")
    for name in ("last_yield", "executed"):
        frame_put(b, frame, name, constant("i64", 0))
    local_bytes = b.mul(get(b, context, "local_bytes"), layout.WARP)
    state = b.variable(constants("i64", list(range(8))))
    _mix(b, state, frame, get(b, context, "frame_bytes"))
    # The last piece may reach into the next warp's local memory, or the padding behind the last one's.
    _mix(b, state, get(b, context, "warp_local", "ptr"), local_bytes)
    now = b.reduce("xor", b.load("i64", state, 8))
    frame_put(b, frame, "last_yield", now)
    frame_put(b, frame, "executed", executed)
    b.ret(b.cast("zext", b.compare("ne", now, last), "i32"))
    b.finish()


def _mix(b: Builder, state: Value, start: Value, size: Value) -> None:
    """Mix memory, 64 bytes at a time, into eight words."""
    index = b.variable(constant("i64", 0))
    with b.loop() as leave:
        at = b.load("i64", index)
        b.go_if(b.compare("uge", at, size), leave)
        b.store(b.add(at, 64), index)
        mixed = b.mul(b.xor(b.load("i64", state, 8), b.load("i64", b.offset(start, at), 8)), constant("i64", _MIX))
        b.store(b.xor(mixed, b.lshr(mixed, 29)), state)
