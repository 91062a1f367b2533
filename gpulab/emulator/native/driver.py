"""The native driver: runs blocks, and the warps of each block in turn, until the launch is done or something stops it.

One call of ``drive(context)`` serves one OS thread. Blocks are taken from a counter that all OS threads of the launch
share. The warps of a block run in order, each until it returns: finished, waiting at a barrier, yielding, in need of the
general variant, faulting, or stopped. All state is in the context and the frames, so a driver that returned `BAIL` because
the general variant was not compiled yet goes on where it was when it is called again; so does one that returned `YIELD`
because in a whole round no warp of its block got any further.
"""

from __future__ import annotations

from gpulab.emulator import layout
from gpulab.emulator.layout import frame_get, frame_put, get, put
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant
from gpulab.emulator.native import touch
from gpulab.emulator.native.address import record_fault
from gpulab.emulator.native.waiting import barrier_place, barrier_word, each_frame, frame_of
from gpulab.emulator.program import SPIN_BUDGET


def define(module: IrModule) -> tuple[str, ...]:
    """Put the driver into a module; returns its name."""
    b = Builder(module, "drive", "i32", (("context", "ptr"),))
    context = b.argument("context", "ptr")
    rounds, blocks, out = b.fresh("rounds"), b.fresh("blocks"), b.fresh("out")
    result = b.variable(constant("i32", layout.DONE))
    # Whether a warp of the block has returned before its end.
    pending = b.variable(constant("i64", 1))
    b.cond(b.is_("ne", get(b, context, "in_block"), 0), rounds, blocks)
    b.label(blocks)
    _take_block(b, context, result, out)
    _enter_block(b, context)
    b.store(constant("i64", 0), pending)
    b.br(rounds)
    b.label(rounds)
    _run_warps(b, context, result, pending, out)
    with b.if_(b.is_("eq", b.load("i64", pending), 0)):
        put(b, context, "in_block", constant("i64", 0))
        b.br(blocks)
        b.label(b.fresh("dead"))
    b.store(constant("i64", 1), pending)
    _end_round(b, context, result, rounds, blocks, out)
    b.label(out)
    b.ret(b.load("i32", result))
    b.finish()
    return ("drive",)


def _leave_if(b: Builder, condition: Value, result: Value, code: int, out: str) -> None:
    with b.if_(condition):
        b.store(constant("i32", code), result)
        b.br(out)
        b.label(b.fresh("dead"))


def _take_block(b: Builder, context: Value, result: Value, out: str) -> None:
    """Next block of the launch, in order; a block behind one that faulted is not begun."""
    stop = b.load("i64", get(b, context, "stop", "ptr"))
    _leave_if(b, b.is_("ne", stop, 0), result, layout.STOP, out)
    turn = _next_turn(b, context)
    _leave_if(b, b.compare("uge", turn, get(b, context, "block_count")), result, layout.DONE, out)
    block = b.variable(turn)
    chosen = get(b, context, "blocks")
    with b.if_(b.is_("ne", chosen, 0)):
        b.store(b.load("i64", b.offset(b.cast("inttoptr", chosen, "ptr"), b.mul(turn, 8))), block)
    # Limit by turn, not number: blocks are begun in turn order, so every earlier one gets to its own end.
    limit = b.load("i64", get(b, context, "fault_limit", "ptr"))
    _leave_if(b, b.compare("ugt", turn, limit), result, layout.DONE, out)
    _place_block(b, context, b.load("i64", block))
    put(b, context, "turn", turn)


def _place_block(b: Builder, context: Value, linear: Value) -> None:
    """Where a block is in the grid; most follow the last one in its row, and divisions take long."""
    before, nx = get(b, context, "ctaid.x"), get(b, context, "nctaid.x")
    follows = b.compare("eq", linear, b.add(get(b, context, "block"), 1))
    beside = b.and_(follows, b.compare("ult", b.add(before, 1), nx))
    put(b, context, "block", linear)
    put(b, context, "ctaid.x", b.add(before, 1))
    with b.if_(b.not_(beside)):
        ny, rows = get(b, context, "nctaid.y"), b.binary("udiv", linear, nx)
        put(b, context, "ctaid.x", b.sub(linear, b.mul(rows, nx)))
        planes = b.binary("udiv", rows, ny)
        put(b, context, "ctaid.y", b.sub(rows, b.mul(planes, ny)))
        put(b, context, "ctaid.z", planes)


def _next_turn(b: Builder, context: Value) -> Value:
    """The next of the turns that this OS thread took; some more if there is none left."""
    turn = b.variable(b.add(get(b, context, "turn"), 1))
    with b.if_(b.compare("uge", b.load("i64", turn), get(b, context, "turns_end"))):
        # Several at once: each time waits until all stores so far are through.
        counter, some = get(b, context, "next", "ptr"), get(b, context, "turns")
        first = b.assign("i64", 1, f"atomicrmw add {counter.ir}, {some.ir} monotonic")
        b.store(first, turn)
        put(b, context, "turns_end", b.add(first, some))
    return b.load("i64", turn)


def _clear(b: Builder, start: Value, size: Value) -> None:
    b.declare("llvm.memset.p0.i64", "void", "ptr, i8, i64, i1")
    with b.if_(b.is_("ne", size, 0)):
        b.emit(f"call void @llvm.memset.p0.i64({start.ir}, i8 0, {size.ir}, i1 false)")


def _clear_local(b: Builder, context: Value, lanes: Value) -> None:
    """Clear local memory; of the stacks, which are large, only as much as the last block may have used."""
    size, used = get(b, context, "local_bytes"), get(b, context, "local_used")
    whole, each, done = b.fresh("whole"), b.fresh("each"), b.fresh("cleared")
    b.cond(b.compare("eq", size, used), whole, each)
    b.label(whole)
    _clear(b, get(b, context, "local", "ptr"), b.mul(size, lanes))
    b.br(done)
    b.label(each)
    number = b.variable(constant("i64", 0))
    with b.loop() as leave:
        lane = b.load("i64", number)
        b.go_if(b.compare("uge", lane, lanes), leave)
        b.store(b.add(lane, 1), number)
        _clear(b, b.offset(get(b, context, "local", "ptr"), b.mul(lane, size)), used)
    put(b, context, "local_used", get(b, context, "local_fixed"))
    b.br(done)
    b.label(done)


def _enter_block(b: Builder, context: Value) -> None:
    put(b, context, "blocks_run", b.add(get(b, context, "blocks_run"), 1))
    for name in ("in_block", "progress"):
        put(b, context, name, constant("i64", 1))
    for name in ("warp", "begun", "moved", "clock"):
        put(b, context, name, constant("i64", 0))
    touch.advance_epoch(b, context)
    with b.if_(b.is_("ne", get(b, context, "trace"), 0)):
        b.call("trace_block", None, context)
    _clear(b, get(b, context, "shared", "ptr"), get(b, context, "shared_bytes"))
    _clear_local(b, context, b.mul(get(b, context, "warps"), layout.WARP))
    b.store(constant("i64", 0, layout.BARRIER_BYTES * layout.BARRIERS // 8), b.offset(context, 8 * layout.ARRIVED))


def _begin_warp(b: Builder, context: Value, frame: Value, warp: Value) -> None:
    """Make a frame ready when its warp's first turn comes; until then it is that of a warp of the last block that finished."""
    put(b, context, "begun", b.add(warp, 1))
    for start in range(0, layout.FRAME_AT, 64):
        b.store(constant("i64", 0, 8), b.offset(frame, start), align=64)
    lanes = b.sub(get(b, context, "threads"), b.mul(warp, layout.WARP))
    some = b.resize(b.sub(b.shl(constant("i64", 1), b.and_(lanes, 63)), 1), "i32")
    frame_put(b, frame, "mask", b.select(b.is_("uge", lanes, layout.WARP), constant("i32", -1), some))
    frame_put(b, frame, "index", warp)
    # Again, in a store of its own: a load of a part of a wider one waits until that is through.
    frame_put(b, frame, "resume", constant("i64", 0))
    frame_put(b, frame, "budget", constant("i64", SPIN_BUDGET))


def _run_warps(b: Builder, context: Value, result: Value, pending: Value, out: str) -> None:
    """Run each warp that is ready until it returns; most often that is its end."""
    with b.loop() as leave:
        warp = get(b, context, "warp")
        b.go_if(b.compare("uge", warp, get(b, context, "warps")), leave)
        frame, noted = frame_of(b, context, warp), b.fresh("noted")
        local = b.mul(b.mul(warp, layout.WARP), get(b, context, "local_bytes"))
        put(b, context, "warp_local", b.add(get(b, context, "local"), local))
        code = _call_warp(b, context, frame, warp, noted, result, out)
        finished, other = b.fresh("finished"), b.fresh("other")
        b.cond(b.is_("eq", code, layout.DONE), finished, other)
        b.label(finished)
        frame_put(b, frame, "status", constant("i32", layout.FINISHED))
        for name in ("moved", "progress"):
            put(b, context, name, constant("i64", 1))
        b.br(noted)
        b.label(other)
        _leave_if(b, b.is_("eq", code, layout.STOP), result, layout.STOP, out)
        with b.if_(b.is_("eq", code, layout.FAULT)):
            _lower_limit(b, context)
            b.store(constant("i32", layout.FAULT), result)
            b.br(out)
            b.label(b.fresh("dead"))
        b.store(constant("i64", 1), pending)
        _note_return(b, context, frame, code)
        b.br(noted)
        b.label(noted)
        put(b, context, "warp", b.add(get(b, context, "warp"), 1))


def _call_warp(
    b: Builder, context: Value, frame: Value, warp: Value, noted: str, result: Value, out: str
) -> Value:  # fmt: skip
    """Call the variant that the warp is in if it is ready; a bail-out goes on in the general one.

    A frame that has just been cleared is not asked: such a load waits until the wide stores are through.
    """
    code = b.variable(constant("i32", layout.BAIL))
    names = ("fresh", "known", "ready", "fast", "bailed", "general", "returned")
    fresh, known, ready, fast, bailed, general, returned = (b.fresh(name) for name in names)
    b.cond(b.compare("uge", warp, get(b, context, "begun")), fresh, known)
    b.label(known)
    b.cond(b.is_("eq", frame_get(b, frame, "status"), layout.READY), ready, noted)
    b.label(ready)
    b.cond(b.is_("eq", frame_get(b, frame, "mode"), 0), fast, general)
    b.label(fresh)
    _begin_warp(b, context, frame, warp)
    b.br(fast)
    b.label(fast)
    function = get(b, context, "fast", "ptr")
    b.store(b.assign("i32", 1, f"call i32 {function.text}({context.ir}, {frame.ir})"), code)
    b.cond(b.is_("eq", b.load("i32", code), layout.BAIL), bailed, returned)
    b.label(bailed)
    frame_put(b, frame, "mode", constant("i32", 1))
    b.br(general)
    b.label(general)
    address = get(b, context, "general")
    _leave_if(b, b.is_("eq", address, 0), result, layout.BAIL, out)
    function = b.cast("inttoptr", address, "ptr")
    b.store(b.assign("i32", 1, f"call i32 {function.text}({context.ir}, {frame.ir})"), code)
    b.br(returned)
    b.label(returned)
    return b.load("i32", code)


def _lower_limit(b: Builder, context: Value) -> None:
    limit = get(b, context, "fault_limit", "ptr")
    turn = get(b, context, "turn")
    b.assign("i64", 1, f"atomicrmw umin {limit.ir}, {turn.ir} seq_cst")


def _note_return(b: Builder, context: Value, frame: Value, code: Value) -> None:
    """What a warp does that returned before its end: it waits, or yields and stays ready."""
    yields, got_on = b.is_("eq", code, layout.YIELD), b.is_("ne", code, layout.YIELD)
    frame_put(b, frame, "status", b.select(yields, constant("i32", layout.READY), constant("i32", layout.WAITING)))
    put(b, context, "moved", b.or_(get(b, context, "moved"), b.cast("zext", got_on, "i64")))
    changed = b.variable(b.cast("zext", got_on, "i32"))
    with b.if_(yields):
        b.store(b.call("yield_changed", "i32", context, frame), changed)
    put(b, context, "progress", b.or_(get(b, context, "progress"), b.resize(b.load("i32", changed), "i64")))


def _end_round(b: Builder, context: Value, result: Value, rounds: str, blocks: str, out: str) -> None:
    """After all warps returned: next round or next block; or open the barrier at which all unfinished warps wait."""
    put(b, context, "warp", constant("i64", 0))
    left, ready, barrier, unlike = (b.variable(constant("i64", 0)) for _ in range(4))
    for frame in each_frame(b, context):
        status = frame_get(b, frame, "status")
        with b.if_(b.is_("ne", status, layout.FINISHED)):
            number, first = frame_get(b, frame, "barrier", "i64"), b.is_("eq", b.load("i64", left), 0)
            b.store(b.select(first, number, b.load("i64", barrier)), barrier)
            other = b.compare("ne", number, b.load("i64", barrier))
            # Lanes that wait for others of the warp are not at the barrier.
            other = b.or_(other, b.is_("ne", frame_get(b, frame, "blocked"), 0))
            b.store(b.or_(b.load("i64", unlike), b.cast("zext", other, "i64")), unlike)
            runs = b.is_("eq", status, layout.READY)
            b.store(b.or_(b.load("i64", ready), b.cast("zext", runs, "i64")), ready)
            b.store(b.add(b.load("i64", left), 1), left)
    with b.if_(b.is_("eq", b.load("i64", left), 0)):
        put(b, context, "in_block", constant("i64", 0))
        b.br(blocks)
        b.label(b.fresh("dead"))
    moved = get(b, context, "moved")
    put(b, context, "moved", constant("i64", 0))
    with b.if_(b.is_("ne", b.load("i64", ready), 0)):
        _leave_if(b, b.is_("eq", moved, 0), result, layout.YIELD, out)
        b.br(rounds)
        b.label(b.fresh("dead"))
    expected = b.load("i64", barrier_word(b, barrier_place(b, context, b.load("i64", barrier)), "expected"))
    with b.if_(b.or_(b.is_("ne", b.load("i64", unlike), 0), b.is_("ugt", expected, 1))):
        zero = constant("i64", 0)
        record_fault(b, context, "deadlock", zero, zero, zero)
        _lower_limit(b, context)
        b.store(constant("i32", layout.FAULT), result)
        b.br(out)
        b.label(b.fresh("dead"))
    b.call("barrier_open", None, context, b.load("i64", barrier))
    b.br(rounds)
