"""What happens before what, as vector clocks between the lanes of a warp and between the warps of a block.

Every access has a time (`layout.time_of`). For each pair of warps of a block a word says until when the accesses of the one
are before what the other does now; a barrier passes these words on from those that arrive to those that leave. For each
pair of lanes of a warp there is the same, passed on by warp synchronizations. Between blocks nothing is ordered but by
`grid_floor`: what is older than it is before everything. The barrier of a cooperative grid raises it.

``check_begin(context)``, ``check_arrive(context, warp, barrier)``, ``check_leave(context, warp, barrier)``,
``check_warp_sync(context, warp, mask, live)`` and ``check_fence(context, warp, mask)`` are called by compiled kernels; ``ordered`` is for
`native_shadow`. Barriers in shared memory, at which single lanes arrive, are in `native_meetings`.
"""

from __future__ import annotations

from gpulab.emulator.checking.layout import (
    ARRIVING,
    FENCES,
    LANES,
    PHASES,
    RELEASED,
    SEGMENT_BYTES,
    WARP_PHASES,
    WARPS,
    ledger_place,
    ledger_word,
    own,
    own_place,
    own_word,
    row,
    thread_of,
    tick,
    time_of,
)
from gpulab.emulator.checking.native_copies import when_done
from gpulab.emulator.checking.native_meetings import known_of_thread, pass_on_threads
from gpulab.emulator.layout import BARRIERS, FINISHED, WARP, frame_get, get
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant
from gpulab.emulator.native.touch import increment

_CONTEXT = ("context", "ptr")
_WARP_AND_BARRIER = (_CONTEXT, ("warp", "i64"), ("barrier", "i64"))


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns the names that kernels import."""
    _define_segment(module)
    _define_ordered(module)
    _define_begin(module)
    _define_arrive(module)
    _define_leave(module)
    _define_warp_sync(module)
    _define_fence(module)
    return ("check_begin", "check_arrive", "check_leave", "check_warp_sync", "check_fence")


# ---- asking


def _define_segment(module: IrModule) -> None:
    """``ptr segment(structure, time)``: the segment in which a time lies, found by halving."""
    b = Builder(module, "segment", "ptr", (("structure", "ptr"), ("time", "i64")), "nounwind noinline", "internal")
    structure, time = b.argument("structure", "ptr"), b.argument("time", "i64")
    segments = ledger_word(b, structure, "segments", "ptr")
    low, high = b.variable(constant("i64", 0)), b.variable(ledger_word(b, structure, "segment_count"))
    with b.loop() as leave:
        left, right = b.load("i64", low), b.load("i64", high)
        b.go_if(b.compare("ule", b.sub(right, left), constant("i64", 1)), leave)
        middle = b.lshr(b.add(left, right), 1)
        begins = b.load("i64", b.offset(segments, b.mul(middle, SEGMENT_BYTES)))
        after = b.compare("ugt", begins, time)
        b.store(b.select(after, left, middle), low)
        b.store(b.select(after, middle, right), high)
    b.ret(b.offset(segments, b.mul(b.load("i64", low), SEGMENT_BYTES)))
    b.finish()


def in_this_block(b: Builder, context: Value, structure: Value, record: Value) -> Value:
    """Whether the access of a record was one of the block that runs now."""
    time = time_of(b, record)
    here = b.variable(b.compare("uge", time, ledger_word(b, structure, "segment_start")))
    mine = b.compare("uge", time, own_word(b, structure, "begin"))
    # Blocks in flight take turns: then what is older than this turn may be of this block or of another.
    with b.if_(b.and_(mine, b.not_(b.load("i1", here)))):
        segment = b.call("segment", "ptr", structure, time)
        block = b.load("i64", b.offset(segment, 8))
        b.store(b.compare("eq", block, get(b, context, "block")), here)
    return b.load("i1", here)


def _define_ordered(module: IrModule) -> None:
    """``i1 ordered(context, structure, record, me)``: whether an access is before the one that `me` records."""
    parameters = (_CONTEXT, ("structure", "ptr"), ("record", "i64"), ("me", "i64"))
    b = Builder(module, "ordered", "i1", parameters, "nounwind alwaysinline", "internal")
    context, structure = b.argument("context", "ptr"), b.argument("structure", "ptr")
    record, me = b.argument("record", "i64"), b.argument("me", "i64")
    other = b.fresh("other")
    b.go_if(b.not_(in_this_block(b, context, structure, record)), other)
    theirs, mine = thread_of(b, record), thread_of(b, me)
    time = when_done(b, structure, record)
    with b.if_(b.is_("eq", time, 0)):
        b.ret(constant("i1", 0))
        b.label(b.fresh("dead"))
    with b.if_(b.compare("eq", theirs, mine)):
        b.ret(constant("i1", 1))
        b.label(b.fresh("dead"))
    with b.if_(b.compare("ule", time, own_word(b, structure, "floor"))):
        b.ret(constant("i1", 1))
        b.label(b.fresh("dead"))
    their_warp, my_warp = b.lshr(theirs, 5), b.lshr(mine, 5)
    known = b.load("i64", b.offset(row(b, structure, WARPS, my_warp), b.mul(their_warp, 8)))
    met = known_of_thread(b, structure, my_warp, theirs)
    with b.if_(b.compare("ule", time, b.intrinsic("llvm.umax", known, met))):
        b.ret(constant("i1", 1))
        b.label(b.fresh("dead"))
    with b.if_(b.compare("ne", their_warp, my_warp)):
        b.ret(constant("i1", 0))
        b.label(b.fresh("dead"))
    between = b.load("i64", b.offset(row(b, structure, LANES, mine), b.mul(b.and_(theirs, WARP - 1), 8)))
    b.ret(b.compare("ule", time, between))
    b.label(other)
    b.ret(b.compare("ule", time_of(b, record), ledger_word(b, structure, "grid_floor")))
    b.finish()


# ---- blocks


def _define_begin(module: IrModule) -> None:
    b = Builder(module, "check_begin", "void", (_CONTEXT,))
    context = b.argument("context", "ptr")
    structure, run = own(b, context), get(b, context, "blocks_run")
    with b.if_(b.compare("ne", run, own_word(b, structure, "block_run"))):
        b.store(run, own_place(b, structure, "block_run"))
        b.store(constant("i64", 0), own_place(b, structure, "observed"))
        take_turn(b, context, structure)
        for name in ("begin", "floor"):
            b.store(ledger_word(b, structure, "segment_start"), own_place(b, structure, name))
        b.declare("llvm.memset.p0.i64", "void", "ptr, i8, i64, i1")
        for name, length in (("local_map", "local_map_bytes"), ("origins", "origin_bytes")):
            start, size = own_word(b, structure, name, "ptr"), own_word(b, structure, length)
            b.emit(f"call void @llvm.memset.p0.i64({start.ir}, i8 0, {size.ir}, i1 false)")
    b.ret()
    b.finish()


def take_turn(b: Builder, context: Value, structure: Value) -> None:
    """Begin a segment: from now on another block runs."""
    b.store(structure, ledger_place(b, structure, "running"))
    # No access has the time of the start itself, neither of this block nor of the one before.
    tick(b, structure)
    start = tick(b, structure)
    b.store(start, ledger_place(b, structure, "segment_start"))
    count = ledger_word(b, structure, "segment_count")
    with b.if_(b.compare("ult", count, ledger_word(b, structure, "segments_most"))):
        place = b.offset(ledger_word(b, structure, "segments", "ptr"), b.mul(count, SEGMENT_BYTES))
        b.store(start, place)
        b.store(get(b, context, "block"), b.offset(place, 8))
        b.store(b.add(count, 1), ledger_place(b, structure, "segment_count"))


def _define_fence(module: IrModule) -> None:
    """A fence: what this block did until now may be seen by who reads a flag that it sets from now on."""
    b = Builder(module, "check_fence", "void", (_CONTEXT, ("warp", "i64"), ("mask", "i32")))
    structure = own(b, b.argument("context", "ptr"))
    last = b.sub(ledger_word(b, structure, "segment_count"), 1)
    place = b.offset(ledger_word(b, structure, "segments", "ptr"), b.mul(last, SEGMENT_BYTES))
    now, threads = tick(b, structure), row(b, structure, FENCES, b.argument("warp", "i64"))
    b.store(now, b.offset(place, 16))
    b.store(b.select(b.mask_vector(b.argument("mask", "i32")), b.widen(now), _vector(b, threads)), threads)
    b.ret()
    b.finish()


def fence_of(b: Builder, structure: Value, record: Value, me: Value, here: Value) -> Value:
    """When who did the access of a record last executed a fence: its block, or in this one its warp, in this warp itself."""
    segment = b.call("segment", "ptr", structure, time_of(b, record))
    fence = b.variable(b.load("i64", b.offset(segment, 16)))
    theirs, mine = thread_of(b, record), thread_of(b, me)
    with b.if_(here):
        threads = row(b, structure, FENCES, b.lshr(theirs, 5))
        latest = b.reduce("umax", _vector(b, threads))
        own_fence = b.load("i64", b.offset(threads, b.mul(b.and_(theirs, WARP - 1), 8)))
        one_warp = b.compare("eq", b.lshr(theirs, 5), b.lshr(mine, 5))
        b.store(b.select(one_warp, own_fence, latest), fence)
    return b.load("i64", fence)


def arrive_at_grid(b: Builder, structure: Value) -> None:
    """A block arrives at the barrier of the grid: when all have, all that was done so far is before all that comes."""
    place = ledger_place(b, structure, "grid_arrivals")
    count = b.add(b.load("i64", place), 1)
    every = b.compare("eq", count, ledger_word(b, structure, "grid_blocks"))
    b.store(b.select(every, constant("i64", 0), count), place)
    with b.if_(every):
        b.store(tick(b, structure), ledger_place(b, structure, "grid_floor"))


# ---- barriers


def _vector(b: Builder, place: Value) -> Value:
    return b.load("i64", place, WARP)


def _phase(b: Builder, structure: Value, start: int, index: Value) -> Value:
    return b.offset(structure, b.add(b.mul(index, 8), 8 * start))


def _define_arrive(module: IrModule) -> None:
    b = Builder(module, "check_arrive", "void", _WARP_AND_BARRIER)
    structure = own(b, b.argument("context", "ptr"))
    warp, barrier = b.argument("warp", "i64"), b.argument("barrier", "i64")
    gathered = row(b, structure, ARRIVING, barrier)
    known = _vector(b, row(b, structure, WARPS, warp))
    b.store(b.intrinsic("llvm.umax", _vector(b, gathered), known), gathered)
    pass_on_threads(b, structure, warp, gathered)
    b.store(tick(b, structure), b.offset(gathered, b.mul(warp, 8)))
    mine = b.add(b.mul(warp, BARRIERS), barrier)
    b.store(
        b.load("i64", _phase(b, structure, PHASES, barrier)),
        _phase(b, structure, WARP_PHASES, mine),
    )
    b.ret()
    b.finish()


def _define_leave(module: IrModule) -> None:
    """Behind a barrier. The first to leave it closes the phase: who arrives from then on is in the next one."""
    b = Builder(module, "check_leave", "void", _WARP_AND_BARRIER)
    structure = own(b, b.argument("context", "ptr"))
    warp, barrier = b.argument("warp", "i64"), b.argument("barrier", "i64")
    gathered, released = row(b, structure, ARRIVING, barrier), row(b, structure, RELEASED, barrier)
    phase_place = _phase(b, structure, PHASES, barrier)
    phase = b.load("i64", phase_place)
    mine = _phase(b, structure, WARP_PHASES, b.add(b.mul(warp, BARRIERS), barrier))
    with b.if_(b.compare("eq", b.load("i64", mine), phase)):
        _raise_floor(b, b.argument("context", "ptr"), structure, gathered)
        b.store(_vector(b, gathered), released)
        b.store(constant("i64", 0, WARP), gathered)
        increment(b, phase_place)
    known = row(b, structure, WARPS, warp)
    b.store(b.intrinsic("llvm.umax", _vector(b, released), _vector(b, known)), known)
    b.ret()
    b.finish()


def _raise_floor(b: Builder, context: Value, structure: Value, gathered: Value) -> None:
    """If every warp has arrived since the last time, all that the block did so far is before all that comes.

    A warp that has finished counts as arrived, as it does for the barrier.
    """
    now, floor = tick(b, structure), own_word(b, structure, "floor")
    frames, size = get(b, context, "frames", "ptr"), get(b, context, "frame_bytes")
    index, every = b.variable(constant("i64", 0)), b.variable(constant("i1", 1))
    with b.loop() as leave:
        warp = b.load("i64", index)
        b.go_if(b.compare("uge", warp, get(b, context, "warps")), leave)
        b.store(b.add(warp, 1), index)
        place = b.offset(gathered, b.mul(warp, 8))
        status = frame_get(b, b.offset(frames, b.mul(warp, size)), "status")
        with b.if_(b.is_("eq", status, FINISHED)):
            b.store(now, place)
        arrived = b.compare("ugt", b.load("i64", place), floor)
        b.store(b.and_(b.load("i1", every), arrived), every)
    b.store(b.select(b.load("i1", every), now, floor), own_place(b, structure, "floor"))


# ---- warps


def _define_warp_sync(module: IrModule) -> None:
    """Lanes of one warp have waited for each other. If these are all live ones, a single word says so."""
    parameters = (_CONTEXT, ("warp", "i64"), ("mask", "i32"), ("live", "i32"))
    b = Builder(module, "check_warp_sync", "void", parameters)
    structure, warp = own(b, b.argument("context", "ptr")), b.argument("warp", "i64")
    mask, live = b.argument("mask", "i32"), b.argument("live", "i32")
    now = tick(b, structure)
    with b.if_(b.is_("eq", b.and_(live, b.not_(mask)), 0)):
        b.store(now, b.offset(row(b, structure, WARPS, warp), b.mul(warp, 8)))
        b.ret()
        b.label(b.fresh("dead"))
    first = b.mul(warp, WARP)
    gathered = b.variable(constant("i64", 0, WARP))
    with b.bits(mask) as lane:
        known = _vector(b, row(b, structure, LANES, b.add(first, b.resize(lane, "i64"))))
        b.store(b.intrinsic("llvm.umax", _vector(b, gathered), known), gathered)
    whole = b.select(b.mask_vector(mask), b.widen(now), _vector(b, gathered))
    with b.bits(mask) as lane:
        b.store(whole, row(b, structure, LANES, b.add(first, b.resize(lane, "i64"))))
    b.ret()
    b.finish()
