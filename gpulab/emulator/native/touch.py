"""The modeled L1, the maps of touched sectors, and what all native counting shares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpulab.emulator.layout import ATOMIC, INSTRUCTION_SHIFT, STORE, WARP, get, put, slot
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant, constants
from gpulab.emulator.memory import WINDOW_BITS
from gpulab.emulator.native.address import row_field, row_place, window_row
from gpulab.emulator.native.trace import define_trace, is_sampled, sampled_lanes

WORDS = (
    "requests",
    "bytes_asked",
    "sectors",
    "sectors_ideal",
    "lines",
    "wavefronts",
    "wavefronts_ideal",
    "l1_miss_sectors",
)
# Behind them: how often the two usual requests came, whose cost follows from the width alone (`expand`), and misses.
ALIGNED, UNIFORM, MISSES = 8, 9, 10
# Not counters: where the first warp of the last block was, and how far that is from where it was in the block before.
LAST, MOVED = 11, 12
WORD_BYTES = 128
# Memos of affine requests: the key (`memo_key`) and, from word 8 on, what such a request adds to the counters. Behind
# those for global memory, which all instructions share, each instruction has one for shared memory.
MEMO_BITS = 6
MEMO_BYTES = 128
MEMO_ANSWER = 64
# As in `reference.counting`.
L1_ENTRIES, L1_WAYS = 4096, 4
L1_FACTOR, L1_SHIFT = (1 << 33) + (3 << 25) + 97, 33
EPOCH_SHIFT = 56
CACHE_BITS = 10
_MANY = 14  # lanes with sectors of their own
CACHE_ENTRY_BYTES = 128


# ---- the L1 and the maps


def define_touch(module: IrModule) -> None:
    """``touch(context, sectors, mask, info)``: the modeled L1 and the maps of touched sectors, for a whole request.

    `mask` names lanes with distinct sectors; all are looked up before any is replaced. A load marks its sectors as read
    only when they miss. Returns the number of misses. Sampled lines always miss, and each access to them is recorded.
    """
    define_trace(module)
    _define_mark(module)
    _define_touch_one(module)
    _define_touch_line(module)
    parameters = (("context", "ptr"), ("sectors", "<32 x i64>"), ("mask", "i32"), ("info", "i64"))
    b = Builder(module, "touch", "i64", parameters, "nounwind noinline", "internal")
    context, sectors = b.argument("context", "ptr"), b.argument("sectors", "i64", WARP)
    mask, info = b.argument("mask", "i32"), b.argument("info", "i64")
    where = b.variable(sectors)
    with b.if_(b.is_("eq", b.and_(info, STORE), 0)):
        missing = _look_up(b, context, sectors, where, mask)
        with b.if_(b.is_("ne", missing, 0)):
            with b.bits(b.and_(missing, b.not_(_record_lanes(b, context, sectors, missing, info)))) as lane:
                sector = _at(b, where, lane)
                l1_insert(b, context, _ways(b, context, sector), sector)
            b.call("mark", None, context, where, missing, constant("i64", row_place("read")))
        b.ret(b.resize(b.popcount(missing), "i64"))
        b.label(b.fresh("dead"))
    with b.if_(b.is_("ne", b.and_(info, ATOMIC), 0)):
        b.call("mark", None, context, where, mask, constant("i64", row_place("read")))
    b.call("mark", None, context, where, mask, constant("i64", row_place("written")))
    _record_lanes(b, context, sectors, mask, info)
    b.ret(constant("i64", 0))
    b.finish()


def _record_lanes(b: Builder, context: Value, sectors: Value, lanes: Value, info: Value) -> Value:
    """Record the request to those lanes' sectors that are in sampled lines; returns these lanes."""
    sampled = sampled_lanes(b, context, sectors, lanes)
    with b.if_(b.is_("ne", sampled, 0)):
        b.call("record_lanes", None, context, sectors, sampled, info)
    return sampled


def l1_place(b: Builder, sector: Value) -> Value:
    """Where the modeled L1 has the set of a sector (or of each of a vector of sectors), in bytes."""
    # 128 bytes for the four sets of a line.
    row = b.and_(b.lshr(b.mul(b.lshr(sector, 2), L1_FACTOR), L1_SHIFT - 7), 8 * L1_ENTRIES - 128)
    return b.or_(row, b.shl(b.and_(sector, 3), 5))


def l1_hit(b: Builder, ways: Value, tag: Value) -> Value:
    """Whether a set has a tag."""
    equal = b.compare("eq", b.load("i64", ways, L1_WAYS, align=32), b.widen(tag, L1_WAYS))
    return b.is_("ne", b.assign(f"i{L1_WAYS}", 1, f"bitcast {equal.ir} to i{L1_WAYS}"), 0)


def l1_line_hit(b: Builder, ways: Value, tag: Value, sectors: int = 4) -> Value:
    """Whether the sets of 1, 2 or 4 neighboring sectors of a line have the first one's tag and those after it."""
    found = _equal_entries(b, b.load("i64", ways, sectors * L1_WAYS, align=32), _line_tags(b, tag, sectors))
    # No two entries are equal, so that as many as sets means one in each.
    return b.is_("eq", b.popcount(b.resize(found, "i32")), sectors)


def _line_tags(b: Builder, tag: Value, sectors: int = 4) -> Value:
    """What the sets of neighboring sectors hold if they have them: each tag once for each way."""
    entries = sectors * L1_WAYS
    return b.add(b.widen(tag, entries), constants("i64", [entry // L1_WAYS for entry in range(entries)]))


def _equal_entries(b: Builder, held: Value, tags: Value) -> Value:
    """One bit for each entry that holds its tag."""
    equal = b.compare("eq", held, tags)
    return b.assign(f"i{tags.lanes}", 1, f"bitcast {equal.ir} to i{tags.lanes}")


def l1_insert(b: Builder, context: Value, ways: Value, sector: Value) -> None:
    """Put a sector into its set; the one that has been there longest goes."""
    old = b.load("i64", ways, L1_WAYS, align=32)
    order = [L1_WAYS, *range(L1_WAYS - 1)]
    b.store(b.shuffle(old, b.widen(l1_tag(b, context, sector), L1_WAYS), order), ways, align=32)
    last = b.extract(old, constant("i32", L1_WAYS - 1))
    with b.if_(b.compare("eq", b.lshr(last, EPOCH_SHIFT), get(b, context, "epoch"))):
        increment(b, l1_version(b, context, sector))


def l1_tag(b: Builder, context: Value, sector: Value) -> Value:
    """What an entry holds that has a sector: entries of earlier blocks are of another epoch."""
    return b.or_(sector, b.shl(get(b, context, "epoch"), EPOCH_SHIFT))


def l1_version(b: Builder, context: Value, sector: Value) -> Value:
    """Where is counted how often a sector had to leave the quarter of the table that a sector belongs to."""
    return b.offset(slot(b, context, "l1_version"), b.shl(b.and_(sector, 3), 3))


def _ways(b: Builder, context: Value, sector: Value) -> Value:
    return b.offset(get(b, context, "l1", "ptr"), l1_place(b, sector))


def _at(b: Builder, where: Value, lane: Value) -> Value:
    return b.load("i64", b.offset(where, b.mul(b.resize(lane, "i64"), 8)))


def _look_up(b: Builder, context: Value, sectors: Value, where: Value, mask: Value) -> Value:
    """Lanes whose sectors, kept at `where` too, the table has not."""
    missing = b.variable(constant("i32", 0))
    few, many, done = b.fresh("few"), b.fresh("many"), b.fresh("looked_up")
    b.cond(b.is_("ult", b.popcount(mask), _MANY), few, many)
    b.label(many)
    b.store(b.and_(mask, b.not_(_hits_of_all(b, context, sectors))), missing)
    b.br(done)
    b.label(few)
    with b.bits(mask) as lane:
        sector = _at(b, where, lane)
        miss = b.resize(b.not_(l1_hit(b, _ways(b, context, sector), l1_tag(b, context, sector))), "i32")
        b.store(b.or_(b.load("i32", missing), b.shl(miss, lane)), missing)
    b.br(done)
    b.label(done)
    return b.load("i32", missing)


def _hits_of_all(b: Builder, context: Value, sectors: Value) -> Value:
    """Lanes whose sectors the table has, without a loop: quicker than one for many lanes."""
    table = get(b, context, "l1", "ptr")
    places, tags = b.hidden(l1_place(b, sectors)), b.hidden(l1_tag(b, context, sectors))
    hits = constant("i32", 0)
    for lane in range(WARP):
        ways = b.offset(table, b.load("i64", b.offset(places, 8 * lane)))
        hit = l1_hit(b, ways, b.load("i64", b.offset(tags, 8 * lane)))
        hits = b.or_(hits, b.shl(b.resize(hit, "i32"), lane))
    return hits


def advance_versions(b: Builder, context: Value) -> None:
    """Note that any sector may have left."""
    for quarter in range(4):
        increment(b, l1_version(b, context, constant("i64", quarter)))


def _define_mark(module: IrModule) -> None:
    """``mark(context, sectors, lanes, place)``: mark sectors in the maps at a place of the window rows."""
    parameters = (("context", "ptr"), ("sectors", "ptr"), ("lanes", "i32"), ("place", "i64"))
    b = Builder(module, "mark", "void", parameters, "nounwind noinline", "internal")
    context, sectors, lanes, place = (b.argument(name, kind) for name, kind in parameters)
    origin = b.variable(constant("i64", 0))
    window = b.variable(constant("i64", -1))
    with b.bits(lanes) as lane:
        sector = _at(b, sectors, lane)
        here = b.lshr(sector, WINDOW_BITS - 5)
        with b.if_(b.compare("ne", here, b.load("i64", window))):
            b.store(here, window)
            b.store(map_origin(b, context, b.shl(sector, 5), place), origin)
        b.store(constant("i8", 1), b.cast("inttoptr", b.add(b.load("i64", origin), sector), "ptr"))
    b.ret()
    b.finish()


def _define_touch_one(module: IrModule) -> None:
    """``touch_one(context, sector, info)``: `touch` of a single sector."""
    parameters = (("context", "ptr"), ("sector", "i64"), ("info", "i64"))
    b = Builder(module, "touch_one", "i64", parameters, "nounwind", "internal")
    context, sector, info = (b.argument(name, kind) for name, kind in parameters)
    lanes = constant("i32", 1)
    with b.if_(b.is_("eq", b.and_(info, STORE), 0)):
        ways = _ways(b, context, sector)
        missing = b.not_(l1_hit(b, ways, l1_tag(b, context, sector)))
        with b.if_(missing):
            sampled, unknown = b.fresh("sampled"), b.fresh("unknown")
            marked = b.fresh("marked")
            b.cond(is_sampled(b, context, b.lshr(sector, 2)), sampled, unknown)
            b.label(sampled)
            bit = b.shl(constant("i32", 1), b.resize(b.and_(sector, 3), "i32"))
            b.call("record_line", None, context, b.lshr(sector, 2), bit, info)
            b.br(marked)
            b.label(unknown)
            l1_insert(b, context, ways, sector)
            b.br(marked)
            b.label(marked)
            origin = map_origin(b, context, b.shl(sector, 5), constant("i64", row_place("read")))
            b.store(constant("i8", 1), b.cast("inttoptr", b.add(origin, sector), "ptr"))
        b.ret(b.resize(missing, "i64"))
        b.label(b.fresh("dead"))
    b.ret(b.call("touch", "i64", context, b.widen(sector), lanes, info))
    b.finish()


def _define_touch_line(module: IrModule) -> None:
    """``touch_line(context, line, wanted, info)``: `touch` of the sectors of one line whose bits are set in `wanted`."""
    parameters = (("context", "ptr"), ("line", "i64"), ("wanted", "i32"), ("info", "i64"))
    b = Builder(module, "touch_line", "i64", parameters)
    context, line, wanted, info = (b.argument(name, kind) for name, kind in parameters)
    first = b.shl(line, 2)
    with b.if_(is_sampled(b, context, line)):
        b.call("record_line", None, context, line, wanted, info)
        with b.if_(b.is_("eq", b.and_(info, STORE), 0)):
            _mark_line(b, context, first, _spread(b, wanted), "read")
            b.ret(constant("i64", 0))
            b.label(b.fresh("dead"))
    with b.if_(b.is_("ne", b.and_(info, STORE), 0)):
        with b.if_(b.is_("ne", b.and_(info, ATOMIC), 0)):
            _mark_line(b, context, first, _spread(b, wanted), "read")
        _mark_line(b, context, first, _spread(b, wanted), "written")
        b.ret(constant("i64", 0))
        b.label(b.fresh("dead"))
    ways = _ways(b, context, first)
    entries = 4 * L1_WAYS
    held = b.load("i64", ways, entries, align=32)
    tags = _line_tags(b, l1_tag(b, context, first))
    order = [entries + index if index % L1_WAYS == 0 else index - 1 for index in range(entries)]
    moved = b.shuffle(held, tags, order)
    # From here on one bit for each way of each set, of four the lowest for a set.
    equal = b.resize(_equal_entries(b, held, tags), "i32")
    with b.if_(b.and_(b.is_("eq", equal, 0), b.is_("eq", wanted, 0b1111))):
        b.store(moved, ways, align=32)
        _note_losses(b, context, held, None)
        _mark_line(b, context, first, constant("i32", 0x1111), "read")
        b.ret(constant("i64", 4))
        b.label(b.fresh("dead"))
    for distance in (1, 2):
        equal = b.or_(equal, b.lshr(equal, distance))
    missing = b.and_(_spread(b, wanted), b.not_(equal))
    with b.if_(b.is_("ne", missing, 0)):
        replaced = b.resize(b.mul(missing, (1 << L1_WAYS) - 1), f"i{entries}")
        replaced = b.assign("i1", entries, f"bitcast {replaced.ir} to <{entries} x i1>")
        b.store(b.select(replaced, moved, held), ways, align=32)
        _note_losses(b, context, held, replaced)
        _mark_line(b, context, first, missing, "read")
    b.ret(b.resize(b.popcount(missing), "i64"))
    b.finish()


def _note_losses(b: Builder, context: Value, held: Value, replaced: Value | None) -> None:
    """Note that sectors left if the oldest entry of a set (of those in `replaced`) was of this block."""
    leaving = constants("i1", [index % L1_WAYS == L1_WAYS - 1 for index in range(held.lanes)])
    leaving = leaving if replaced is None else b.and_(replaced, leaving)
    epoch = b.widen(get(b, context, "epoch"), held.lanes)
    lost = b.and_(leaving, b.compare("eq", b.lshr(held, EPOCH_SHIFT), epoch))
    with b.if_(b.is_("ne", b.assign(f"i{held.lanes}", 1, f"bitcast {lost.ir} to i{held.lanes}"), 0)):
        advance_versions(b, context)


def _spread(b: Builder, sectors: Value) -> Value:
    """Four bits, one for each sector of a line, three places apart."""
    apart = sectors
    for number in range(1, 4):
        apart = b.or_(apart, b.shl(sectors, (L1_WAYS - 1) * number))
    return b.and_(apart, 0x1111)


def _mark_line(b: Builder, context: Value, first: Value, wanted: Value, name: str) -> None:
    """Mark sectors of a line, given as by `_spread`. Each is written alone: other OS threads may write to the others."""
    origin = map_origin(b, context, b.shl(first, 5), constant("i64", row_place(name)))
    place = b.cast("inttoptr", b.add(origin, first), "ptr")
    done = b.fresh("marked")
    for element, ones, start, bits in (
        ("i32", 0x01010101, 0, 0x1111),
        ("i16", 0x0101, 0, 0x11),
        ("i16", 0x0101, 2, 0x1100),
    ):
        with b.if_(b.is_("eq", wanted, bits)):
            b.store(constant(element, ones), b.offset(place, start), align=1)
            b.br(done)
            b.label(b.fresh("dead"))
    with b.bits(wanted) as bit:
        b.store(constant("i8", 1), b.offset(place, b.lshr(b.resize(bit, "i64"), 2)))
    b.br(done)
    b.label(done)


def map_origin(b: Builder, context: Value, address: Value, place: Value) -> Value:
    """Where a window's map of touched sectors would have sector 0."""
    row = window_row(b, context, address)
    return b.sub(b.load("i64", b.offset(row, place)), b.lshr(row_field(b, row, "base"), 5))


def advance_epoch(b: Builder, context: Value) -> None:
    """Empty the modeled L1 for a new block: a new epoch makes all its tags old."""
    epoch = b.add(get(b, context, "epoch"), 1)
    put(b, context, "epoch", epoch)
    advance_versions(b, context)
    with b.if_(b.is_("ugt", epoch, 255)):
        table = get(b, context, "l1", "ptr")
        b.declare("llvm.memset.p0.i64", "void", "ptr, i8, i64, i1")
        b.emit(f"call void @llvm.memset.p0.i64({table.ir}, i8 0, i64 {8 * L1_ENTRIES}, i1 false)")
        put(b, context, "epoch", constant("i64", 1))


# ---- counting


@contextmanager
def peel(b: Builder, keys: Value, mask: Value) -> Iterator[tuple[Value, Value]]:
    """Run for each distinct key of the lanes in `mask`, in the order of first lanes; yields the key and its lane."""
    where = b.variable(keys)
    left = b.variable(mask)
    with b.loop() as leave:
        now = b.load("i32", left)
        b.go_if(b.is_("eq", now, 0), leave)
        lane = b.count_trailing_zeros(now)
        key = b.load("i64", b.offset(where, b.mul(b.resize(lane, "i64"), 8)))
        same = b.mask_word(b.compare("eq", keys, key))
        b.store(b.and_(now, b.not_(same)), left)
        yield key, lane


def first_lanes(b: Builder, keys: Value, mask: Value) -> Value:
    """Of the lanes in `mask`, those that have no lower one with the same key."""
    first = b.variable(constant("i32", 0))
    with peel(b, keys, mask) as (_, lane):
        b.store(b.or_(b.load("i32", first), b.shl(constant("i32", 1), lane)), first)
    return b.load("i32", first)


def increment(b: Builder, where: Value, by: Value | int = 1) -> None:
    """Add to a word in memory."""
    b.store(b.add(b.load("i64", where), by), where)


def add_misses(b: Builder, counters: Value, misses: Value) -> None:
    """Add to an instruction's misses."""
    with b.if_(b.is_("ne", misses, 0)):
        increment(b, b.offset(counters, 8 * MISSES), misses)


def add_words(b: Builder, counters: Value, *words: Value) -> None:
    """Add one request's words, in the order of `WORDS`, to an instruction's counters."""
    vector = Value("i64", len(words), "zeroinitializer", True)
    for index, word in enumerate(words):
        vector = b.assign("i64", len(words), f"insertelement {vector.ir}, {word.ir}, i32 {index}")
    b.store(b.add(b.load("i64", counters, len(words), align=64), vector), counters, align=64)


def memo_key(
    b: Builder, context: Value, address: tuple[Value, Value, Value], width: Value, mask: Value, info: Value, space: str
) -> tuple[Value, list[Value]]:
    """The memo for an affine request, and what it has at its beginning if it is for a request of the same cost.

    In global memory that follows from the sector of lane 0, if all strides are multiples of a line, and for loads from
    whether anything in these sectors' quarter of the L1 was replaced. In shared memory a shift by whole banks changes
    nothing. (The mask is never 0, so a memo that was never filled is for no request.)
    """
    (base, s0, s1), zero = address, constant("i64", 0)
    sector = b.lshr(base, 5)
    number, place, version = b.and_(b.xor(sector, b.lshr(base, WINDOW_BITS)), (1 << MEMO_BITS) - 1), sector, zero
    if space == "shared":
        number, place = b.add(b.lshr(info, INSTRUCTION_SHIFT), 1 << MEMO_BITS), b.and_(base, 3)
    else:
        is_load = b.is_("eq", b.and_(info, STORE), 0)
        known = b.load("i64", l1_version(b, context, sector))
        version = b.select(is_load, known, get(b, context, "store_version"))
    memo = b.offset(get(b, context, "memos", "ptr"), b.mul(number, MEMO_BYTES))
    kind = b.or_(b.shl(b.resize(mask, "i64"), 32), b.or_(b.shl(width, 16), b.and_(info, STORE | ATOMIC | 255)))
    return memo, [place, s0, s1, kind, version]
