"""Recording of accesses to sampled lines (`gpulab.trace` says what is recorded).

A launch that is traced has one `STATE` for each OS thread, which its contexts share: two streams, near and far, and which
blocks are near. A stream keeps its events merged, in a table in the order in which they came and an index of hashed
places. When there are too many, its limit is halved.

Sampled lines are found where requests come that the table of `native.touch` does not know; so it must not learn them.
"""

from __future__ import annotations

from gpulab.emulator.layout import ATOMIC, INSTRUCTION_SHIFT, STORE, WARP, get, put
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant
from gpulab.trace import EVENT, HASH_FACTOR

# Words of a stream. `used` events, which stand for `raw` requests to lines; the index has `index_mask` + 1 places of four
# bytes, each the number of an event plus 1, or 0. The masks choose what tells events apart besides block, line and window.
STREAM = (
    "limit", "used", "raw", "capacity", "raw_capacity", "events", "index", "index_mask", "window_bits",
    "instruction_mask", "tail_mask",
)  # fmt: skip
# Behind the streams: the near blocks that are left, as a pointer to their numbers and one behind the last.
STATE = (*(f"near.{name}" for name in STREAM), *(f"far.{name}" for name in STREAM), "next_near", "end_near")
STATE_BYTES = 8 * len(STATE)

TAIL_KIND, TAIL_SECTORS = 24, 16
"""Where the last four bytes of an event have kind and sectors; below them is the warp."""

_TAIL = EVENT.fields["warp"][1]  # type: ignore[index]
_SIZE = EVENT.itemsize
_LAST_TIME = (1 << 32) - 1
_SPARSE = 2
"""Places of the index for each event, at least."""

_FACTORS = HASH_FACTOR, 0xC2B2AE3D27D4EB4F, 0xFF51AFD7ED558CCD
_KEY = (("line", "i64"), ("block", "i64"), ("moment", "i64"), ("tail", "i32"))


def define_trace(module: IrModule) -> None:
    """``trace_block``, ``record_line`` and ``record_lanes``."""
    _define_reindex(module)
    _define_halve(module)
    _define_add(module)
    _define_record_line(module)
    _define_record_lanes(module)
    _define_block(module)


# ---- what the rest of the native code asks


def line_hash(b: Builder, line: Value) -> Value:
    """As `gpulab.trace.line_hash`."""
    return b.lshr(b.mul(line, HASH_FACTOR), 32)


def is_sampled(b: Builder, context: Value, line: Value) -> Value:
    """Whether accesses of this block to a line may have to be recorded."""
    return b.compare("ult", line_hash(b, line), get(b, context, "trace_limit"))


def sampled_lanes(b: Builder, context: Value, sectors: Value, lanes: Value) -> Value:
    """Those of some lanes whose sectors are in such lines."""
    found = b.variable(constant("i32", 0))
    limit = get(b, context, "trace_limit")
    with b.if_(b.is_("ne", limit, 0)):
        b.store(b.and_(lanes, b.mask_word(b.compare("ult", line_hash(b, b.lshr(sectors, 2)), limit))), found)
    return b.load("i32", found)


# ---- streams


def _word(b: Builder, stream: Value, name: str) -> Value:
    return b.offset(stream, 8 * STREAM.index(name))


def _get(b: Builder, stream: Value, name: str, element: str = "i64") -> Value:
    return b.load(element, _word(b, stream, name))


def _put(b: Builder, stream: Value, name: str, value: Value) -> None:
    b.store(value, _word(b, stream, name))


def _field(b: Builder, event: Value, name: str) -> Value:
    """Where an event has a field."""
    return b.offset(event, EVENT.fields[name][1])  # type: ignore[index]


def _event(b: Builder, stream: Value, number: Value) -> Value:
    return b.offset(_get(b, stream, "events", "ptr"), b.mul(number, _SIZE))


def _moment(b: Builder, stream: Value, time: Value, instruction: Value) -> Value:
    """The window of a time, and above it the instruction, if events are told apart by it."""
    window = b.binary("lshr", time, _get(b, stream, "window_bits"))
    return b.or_(b.shl(b.and_(instruction, _get(b, stream, "instruction_mask")), 32), window)


def _key_of(b: Builder, stream: Value, event: Value) -> tuple[Value, Value, Value, Value]:
    """What tells an event from others: `_KEY`."""
    time, instruction = (b.resize(b.load("i32", _field(b, event, name)), "i64") for name in ("time", "instruction"))
    tail = b.and_(b.load("i32", b.offset(event, _TAIL)), _get(b, stream, "tail_mask", "i32"))
    line, block = (b.load("i64", _field(b, event, name)) for name in ("line", "block"))
    return line, block, _moment(b, stream, time, instruction), tail


def _place(b: Builder, stream: Value, key: tuple[Value, ...]) -> Value:
    """Where the index is searched first for a key."""
    line, block, moment, tail = key
    first, second, third = _FACTORS
    mixed = b.mul(b.xor(b.mul(line, first), b.mul(block, second)), third)
    mixed = b.xor(b.xor(mixed, b.lshr(mixed, 32)), b.mul(moment, first))
    mixed = b.mul(b.xor(mixed, b.mul(b.resize(tail, "i64"), second)), third)
    return b.and_(b.lshr(mixed, 40), _get(b, stream, "index_mask"))


def _slot(b: Builder, stream: Value, place: Value) -> Value:
    return b.offset(_get(b, stream, "index", "ptr"), b.mul(place, 4))


def _after(b: Builder, stream: Value, place: Value) -> Value:
    return b.and_(b.add(place, 1), _get(b, stream, "index_mask"))


def _define_reindex(module: IrModule) -> None:
    """``trace_reindex(stream)``: make the index anew."""
    b = Builder(module, "trace_reindex", "void", (("stream", "ptr"),), "nounwind noinline", "internal")
    stream = b.argument("stream", "ptr")
    b.declare("llvm.memset.p0.i64", "void", "ptr, i8, i64, i1")
    size = b.mul(b.add(_get(b, stream, "index_mask"), 1), 4)
    b.emit(f"call void @llvm.memset.p0.i64({_get(b, stream, 'index', 'ptr').ir}, i8 0, {size.ir}, i1 false)")
    number = b.variable(constant("i64", 0))
    with b.loop() as leave:
        now = b.load("i64", number)
        b.go_if(b.compare("uge", now, _get(b, stream, "used")), leave)
        b.store(b.add(now, 1), number)
        place = b.variable(_place(b, stream, _key_of(b, stream, _event(b, stream, now))))
        with b.loop() as found:
            b.go_if(b.is_("eq", b.load("i32", _slot(b, stream, b.load("i64", place))), 0), found)
            b.store(_after(b, stream, b.load("i64", place)), place)
        b.store(b.resize(b.add(now, 1), "i32"), _slot(b, stream, b.load("i64", place)))
    b.ret()
    b.finish()


def _is_full(b: Builder, stream: Value) -> Value:
    many = b.compare("ugt", _get(b, stream, "used"), _get(b, stream, "capacity"))
    return b.or_(many, b.compare("ugt", _get(b, stream, "raw"), _get(b, stream, "raw_capacity")))


def _define_halve(module: IrModule) -> None:
    """``trace_halve(stream)``: halve the limit until the events below it are few enough."""
    b = Builder(module, "trace_halve", "void", (("stream", "ptr"),), "nounwind noinline", "internal")
    stream = b.argument("stream", "ptr")
    number, kept, raw = (b.variable(constant("i64", 0)) for _ in range(3))
    with b.loop() as done:
        b.go_if(b.not_(_is_full(b, stream)), done)
        _put(b, stream, "limit", b.lshr(_get(b, stream, "limit"), 1))
        for variable in (number, kept, raw):
            b.store(constant("i64", 0), variable)
        with b.loop() as leave:
            now = b.load("i64", number)
            b.go_if(b.compare("uge", now, _get(b, stream, "used")), leave)
            b.store(b.add(now, 1), number)
            event = _event(b, stream, now)
            hashed = line_hash(b, b.load("i64", _field(b, event, "line")))
            with b.if_(b.compare("ult", hashed, _get(b, stream, "limit"))):
                place = b.load("i64", kept)
                b.store(b.load("i64", event, _SIZE // 8), _event(b, stream, place))
                b.store(b.add(place, 1), kept)
                count = b.resize(b.load("i32", _field(b, event, "count")), "i64")
                b.store(b.add(b.load("i64", raw), count), raw)
        _put(b, stream, "used", b.load("i64", kept))
        _put(b, stream, "raw", b.load("i64", raw))
    b.call("trace_reindex", None, stream)
    b.ret()
    b.finish()


def _define_add(module: IrModule) -> None:
    """``trace_add(stream, line, block, time, instruction, tail)``: merge an event into a stream."""
    parameters = (
        ("stream", "ptr"), ("line", "i64"), ("block", "i64"), ("time", "i64"), ("instruction", "i64"), ("tail", "i32")
    )  # fmt: skip
    b = Builder(module, "trace_add", "void", parameters, "nounwind noinline", "internal")
    stream, line, block, time, instruction, tail = (b.argument(name, kind) for name, kind in parameters)
    _put(b, stream, "raw", b.add(_get(b, stream, "raw"), 1))
    distinct = b.and_(tail, _get(b, stream, "tail_mask", "i32"))
    key = line, block, _moment(b, stream, time, instruction), distinct
    place = b.variable(_place(b, stream, key))
    known, new, checked = b.fresh("known"), b.fresh("new"), b.fresh("checked")
    event = b.variable(constant("i64", 0))
    with b.loop():
        slot = b.load("i64", place)
        held = b.resize(b.load("i32", _slot(b, stream, slot)), "i64")
        b.go_if(b.is_("eq", held, 0), new)
        candidate = _event(b, stream, b.sub(held, 1))
        b.store(candidate, event)
        equal = [b.compare("eq", *pair) for pair in zip(key, _key_of(b, stream, candidate), strict=True)]
        b.go_if(b.and_(b.and_(equal[0], equal[1]), b.and_(equal[2], equal[3])), known)
        b.store(_after(b, stream, slot), place)
    b.br(checked)
    b.label(known)
    _merge(b, b.load("ptr", event), time, instruction, tail)
    b.br(checked)
    b.label(new)
    _append(b, stream, b.load("i64", place), (line, block, time, instruction, tail))
    b.br(checked)
    b.label(checked)
    with b.if_(_is_full(b, stream)):
        b.call("trace_halve", None, stream)
    b.ret()
    b.finish()


def _merge(b: Builder, event: Value, time: Value, instruction: Value, tail: Value) -> None:
    """Put an event into an equal one: the sectors of both, and the first by time, instruction and warp."""
    count = _field(b, event, "count")
    b.store(b.add(b.load("i32", count), 1), count)
    was = b.load("i32", b.offset(event, _TAIL))
    when, what = _field(b, event, "time"), _field(b, event, "instruction")
    before = _ranked(b, b.load("i32", when), b.load("i32", what))
    mine = _ranked(b, time, instruction)
    lower = b.compare("ult", b.and_(tail, 0xFFFF), b.and_(was, 0xFFFF))
    first = b.or_(b.compare("ult", mine, before), b.and_(b.compare("eq", mine, before), lower))
    with b.if_(first):
        b.store(b.resize(time, "i32"), when)
        b.store(b.resize(instruction, "i32"), what)
    warp = b.and_(b.select(first, tail, was), 0xFFFF)
    b.store(b.or_(warp, b.and_(b.or_(tail, was), -0x10000)), b.offset(event, _TAIL))


def _ranked(b: Builder, time: Value, instruction: Value) -> Value:
    return b.or_(b.shl(b.resize(time, "i64"), 32), b.resize(instruction, "i64"))


def _append(b: Builder, stream: Value, place: Value, values: tuple[Value, ...]) -> None:
    """A new event, at a free place of the index, which grows with the number of events."""
    line, block, time, instruction, tail = values
    used = _get(b, stream, "used")
    event = _event(b, stream, used)
    for name, value in (("line", line), ("block", block)):
        b.store(value, _field(b, event, name))
    for name, value in (("time", time), ("instruction", instruction), ("count", constant("i64", 1))):
        b.store(b.resize(value, "i32"), _field(b, event, name))
    b.store(tail, b.offset(event, _TAIL))
    used = b.add(used, 1)
    _put(b, stream, "used", used)
    b.store(b.resize(used, "i32"), _slot(b, stream, place))
    mask = _get(b, stream, "index_mask")
    with b.if_(b.compare("ugt", b.mul(used, _SPARSE), mask)):
        _put(b, stream, "index_mask", b.add(b.mul(mask, 2), 1))
        b.call("trace_reindex", None, stream)


# ---- requests


def _streams(b: Builder, state: Value) -> list[tuple[str, Value]]:
    return [(name, b.offset(state, 8 * STATE.index(f"{name}.{STREAM[0]}"))) for name in ("near", "far")]


def _set_limit(b: Builder, context: Value, state: Value) -> None:
    """Tell the context below which hash a line must be looked at."""
    (_, near), (_, far) = _streams(b, state)
    is_near = b.is_("ne", get(b, context, "trace_near"), 0)
    limit = b.select(is_near, _get(b, near, "limit"), constant("i64", 0))
    put(b, context, "trace_limit", b.intrinsic("llvm.umax", limit, _get(b, far, "limit")))


def _define_record_line(module: IrModule) -> None:
    """``record_line(context, line, sectors, info)``: a request to some sectors of a line that may be sampled."""
    parameters = (("context", "ptr"), ("line", "i64"), ("sectors", "i32"), ("info", "i64"))
    b = Builder(module, "record_line", "void", parameters, "nounwind noinline", "internal")
    context, line, sectors, info = (b.argument(name, kind) for name, kind in parameters)
    state, hashed = get(b, context, "trace", "ptr"), line_hash(b, line)
    put(b, context, "traced", b.add(get(b, context, "traced"), 1))
    time = b.intrinsic("llvm.umin", get(b, context, "time"), constant("i64", _LAST_TIME))
    stores, atomics = (b.cast("zext", b.is_("ne", b.and_(info, flag), 0), "i32") for flag in (STORE, ATOMIC))
    tail = b.or_(b.shl(b.add(stores, atomics), TAIL_KIND), b.shl(sectors, TAIL_SECTORS))
    tail = b.or_(tail, get(b, context, "warp", "i32"))
    for name, stream in _streams(b, state):
        wanted = b.compare("ult", hashed, _get(b, stream, "limit"))
        if name == "near":
            wanted = b.and_(wanted, b.is_("ne", get(b, context, "trace_near"), 0))
        with b.if_(wanted):
            block, instruction = get(b, context, "block"), b.lshr(info, INSTRUCTION_SHIFT)
            b.call("trace_add", None, stream, line, block, time, instruction, tail)
    _set_limit(b, context, state)
    b.ret()
    b.finish()


def _define_record_lanes(module: IrModule) -> None:
    """``record_lanes(context, sectors, lanes, info)``: a request to the sectors of some lanes, each once."""
    parameters = (("context", "ptr"), ("sectors", "<32 x i64>"), ("lanes", "i32"), ("info", "i64"))
    b = Builder(module, "record_lanes", "void", parameters, "nounwind noinline", "internal")
    context, sectors = b.argument("context", "ptr"), b.argument("sectors", "i64", WARP)
    lanes, info = b.argument("lanes", "i32"), b.argument("info", "i64")
    lines, number = b.lshr(sectors, 2), b.and_(sectors, 3)
    where, left = b.variable(lines), b.variable(lanes)
    quarters = [b.and_(lanes, b.mask_word(b.is_("eq", number, sector))) for sector in range(4)]
    with b.loop() as leave:
        now = b.load("i32", left)
        b.go_if(b.is_("eq", now, 0), leave)
        line = b.load("i64", b.offset(where, b.mul(b.resize(b.count_trailing_zeros(now), "i64"), 8)))
        same = b.mask_word(b.compare("eq", lines, line))
        b.store(b.and_(now, b.not_(same)), left)
        mask = constant("i32", 0)
        for sector, quarter in enumerate(quarters):
            there = b.cast("zext", b.is_("ne", b.and_(quarter, same), 0), "i32")
            mask = b.or_(mask, b.shl(there, sector))
        b.call("record_line", None, context, line, mask, info)
    b.ret()
    b.finish()


def _define_block(module: IrModule) -> None:
    """``trace_block(context)``: a block begins. Those of an OS thread begin in ascending order, and so do near ones."""
    b = Builder(module, "trace_block", "void", (("context", "ptr"),), "nounwind noinline", "internal")
    context = b.argument("context", "ptr")
    state, block = get(b, context, "trace", "ptr"), get(b, context, "block")
    position, end = (b.offset(state, 8 * STATE.index(name)) for name in ("next_near", "end_near"))
    put(b, context, "trace_near", constant("i64", 0))
    with b.loop() as leave:
        now = b.load("i64", position)
        b.go_if(b.compare("uge", now, b.load("i64", end)), leave)
        near = b.load("i64", b.cast("inttoptr", now, "ptr"))
        put(b, context, "trace_near", b.cast("zext", b.compare("eq", near, block), "i64"))
        b.go_if(b.compare("uge", near, block), leave)
        b.store(b.add(now, 8), position)
    _set_limit(b, context, state)
    put(b, context, "store_version", get(b, context, "blocks_run"))
    b.ret()
    b.finish()
