"""The modeled L1, the maps of touched sectors, and what all native counting shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gpulab.emulator.ir import Builder, IrModule, Value, constant
from gpulab.emulator.layout import ATOMIC, STORE, get, put
from gpulab.emulator.native_address import row_field, window_row

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
WORD_BYTES = 128
L1_ENTRIES = 4096
# Multiplicative hash (2**64 / golden ratio): it spreads strided sectors over the table.
L1_MULTIPLIER = 0x9E3779B97F4A7C15
L1_SHIFT = 52
EPOCH_SHIFT = 56
CACHE_BITS = 10
CACHE_ENTRY_BYTES = 128


# ---- the L1 and the maps


def define_touch(module: IrModule) -> None:
    """``touch(context, table, epoch, map, sector, info)``: the modeled L1 and the maps of touched sectors.

    `table` and `epoch` are the L1's, `map` is where the map of written sectors would have sector 0; a load finds its map
    only when it misses. Returns 1 for a miss.
    """
    parameters = (("context", "ptr"), ("table", "ptr"), ("epoch", "i64"), ("map", "i64"), ("sector", "i64"), ("info", "i64"))
    b = Builder(module, "touch", "i64", parameters, "nounwind alwaysinline", "internal")
    context, table, epoch, written, sector, info = (b.argument(name, kind) for name, kind in parameters)
    with b.if_(b.is_("eq", b.and_(info, STORE), 0)):
        entry = b.offset(table, b.mul(b.lshr(b.mul(sector, L1_MULTIPLIER), L1_SHIFT), 8))
        tag = b.or_(sector, epoch)
        with b.if_(b.compare("eq", b.load("i64", entry), tag)):
            b.ret(constant("i64", 0))
            b.label(b.fresh("dead"))
        b.store(tag, entry)
        _mark(b, _map_origin(b, context, b.shl(sector, 5), "read"), sector)
        b.ret(constant("i64", 1))
        b.label(b.fresh("dead"))
    with b.if_(b.is_("ne", b.and_(info, ATOMIC), 0)):
        _mark(b, _map_origin(b, context, b.shl(sector, 5), "read"), sector)
    _mark(b, written, sector)
    b.ret(constant("i64", 0))
    b.finish()


def _mark(b: Builder, origin: Value, sector: Value) -> None:
    b.store(constant("i8", 1), b.cast("inttoptr", b.add(origin, sector), "ptr"))


def _map_origin(b: Builder, context: Value, address: Value, which: str) -> Value:
    """Where a window's map of touched sectors would have sector 0."""
    row = window_row(b, context, address)
    return b.sub(row_field(b, row, which), b.lshr(row_field(b, row, "base"), 5))


def toucher(b: Builder, context: Value, address: Value | None, info: Value) -> Callable[[Value], Value]:
    """A function that touches a sector, with what all sectors of a request share looked up once.

    `address` is one of the request's if all of them lie in one window, else None.
    """
    table = get(b, context, "l1", "ptr")
    epoch = b.shl(get(b, context, "epoch"), EPOCH_SHIFT)
    shared = b.variable(constant("i64", 0))
    if address is not None:
        with b.if_(b.is_("ne", b.and_(info, STORE), 0)):
            b.store(_map_origin(b, context, address, "written"), shared)

    def touch(sector: Value) -> Value:
        one_window = address is not None
        written = b.load("i64", shared) if one_window else _map_origin(b, context, b.shl(sector, 5), "written")
        return b.call("touch", "i64", context, table, epoch, written, sector, info)

    return touch


def advance_epoch(b: Builder, context: Value) -> None:
    """Empty the modeled L1 for a new block: a new epoch makes all its tags old."""
    epoch = b.add(get(b, context, "epoch"), 1)
    put(b, context, "epoch", epoch)
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
