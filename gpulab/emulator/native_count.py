"""Native helpers that count what memory requests cost.

They hold the rules of `gpulab.models.access` in one place for all compiled kernels: property tests hold them to it. A
request adds one vector of eight words to the counters of its instruction, in the order of `WORDS`.

The general way *peels*: take the first lane that is left, drop every lane in the same sector, count one, repeat. That
meets the sectors in the order in which the lanes touch them first, as the modeled L1 wants it. Accesses are aligned to
their size (the fault check has seen to it), so no access crosses a sector.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpulab.emulator.ir import Builder, IrModule, Value, constant, constants, lane_numbers
from gpulab.emulator.layout import ATOMIC, STORE, WARP, get, put
from gpulab.emulator.memory import WINDOW_BITS
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
WORD_BYTES = 8 * len(WORDS)
L1_ENTRIES = 4096
# Multiplicative hash (2**64 / golden ratio): it spreads strided sectors over the table.
L1_MULTIPLIER = 0x9E3779B97F4A7C15
L1_SHIFT = 52
EPOCH_SHIFT = 56
_PARAMETERS = (("context", "ptr"), ("addresses", "ptr"), ("mask", "i32"), ("counters", "ptr"), ("info", "i64"))


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns their names."""
    _define_touch(module)
    _define_wavefronts(module)
    for space in ("global", "shared", "local"):
        _define_count(module, space)
    _define_contiguous(module)
    _define_uniform(module)
    return tuple(f"count_{what}" for what in ("global", "shared", "local", "contiguous", "uniform"))


def _define_touch(module: IrModule) -> None:
    """``touch(context, sector, info)``: the modeled L1 and the maps of touched sectors; returns 1 for a miss."""
    b = Builder(
        module, "touch", "i64", (("context", "ptr"), ("sector", "i64"), ("info", "i64")), "nounwind alwaysinline",
        "internal",
    )  # fmt: skip
    context, sector, info = b.argument("context", "ptr"), b.argument("sector", "i64"), b.argument("info", "i64")
    address = b.shl(sector, 5)
    with b.if_(b.is_("eq", b.and_(info, STORE | ATOMIC), 0)):
        index = b.lshr(b.mul(sector, L1_MULTIPLIER), L1_SHIFT)
        entry = b.offset(get(b, context, "l1", "ptr"), b.mul(index, 8))
        tag = b.or_(sector, b.shl(get(b, context, "epoch"), EPOCH_SHIFT))
        with b.if_(b.compare("eq", b.load("i64", entry), tag)):
            b.ret(constant("i64", 0))
            b.label(b.fresh("dead"))
        b.store(tag, entry)
        _mark(b, context, address, "read")
        b.ret(constant("i64", 1))
        b.label(b.fresh("dead"))
    with b.if_(b.is_("ne", b.and_(info, ATOMIC), 0)):
        _mark(b, context, address, "read")
    _mark(b, context, address, "written")
    b.ret(constant("i64", 0))
    b.finish()


def _mark(b: Builder, context: Value, address: Value, which: str) -> None:
    row = window_row(b, context, address)
    place = b.add(row_field(b, row, which), b.lshr(b.sub(address, row_field(b, row, "base")), 5))
    b.store(constant("i8", 1), b.cast("inttoptr", place, "ptr"))


@contextmanager
def _peel(b: Builder, keys: Value, mask: Value) -> Iterator[tuple[Value, Value]]:
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


def _increment(b: Builder, where: Value, by: Value | int = 1) -> None:
    b.store(b.add(b.load("i64", where), by), where)


def _define_wavefronts(module: IrModule) -> None:
    """``wavefronts(addresses, mask, size)``: (wavefronts << 8) | wavefronts_ideal by the bank rule."""
    b = Builder(
        module, "wavefronts", "i64", (("addresses", "ptr"), ("mask", "i32"), ("size", "i64")), "nounwind", "internal"
    )
    addresses, mask = b.argument("addresses", "ptr"), b.argument("mask", "i32")
    size = b.argument("size", "i64")
    # A unit is what one lane takes from one pass: a bank, or 2 or 4 neighbouring ones for 8- and 16-byte accesses.
    unit = b.intrinsic("llvm.umax", size, constant("i64", 4))
    shift = b.count_trailing_zeros(unit)
    group_lanes = b.intrinsic("llvm.umax", b.lshr(constant("i64", 128), shift), constant("i64", 8))
    units = b.binary("lshr", b.load("i64", addresses, WARP), b.widen(shift))
    total, ideal, start = (b.variable(constant("i64", 0)) for _ in range(3))
    filled = b.alloca("i8", WARP)
    with b.loop() as leave:
        begin = b.load("i64", start)
        b.go_if(b.is_("uge", begin, WARP), leave)
        group = b.resize(b.shl(b.sub(b.shl(constant("i64", 1), group_lanes), 1), begin), "i32")
        b.store(b.add(begin, group_lanes), start)
        inside = b.and_(mask, group)
        with b.if_(b.is_("ne", inside, 0)):
            b.store(constant("i8", 0, WARP), filled)
            most = b.variable(constant("i64", 0))
            b.store(constant("i64", 0), most)
            with _peel(b, units, inside) as (key, _):
                bank = b.offset(filled, b.and_(key, b.sub(b.lshr(constant("i64", 128), shift), 1)))
                count = b.add(b.load("i8", bank), 1)
                b.store(count, bank)
                b.store(b.intrinsic("llvm.umax", b.load("i64", most), b.resize(count, "i64")), most)
            _increment(b, total, b.load("i64", most))
            _increment(b, ideal)
    b.ret(b.or_(b.shl(b.load("i64", total), 8), b.load("i64", ideal)))
    b.finish()


def _define_count(module: IrModule, space: str) -> None:
    """``count_SPACE(context, addresses, mask, counters, info)``: any request with virtual addresses of that space."""
    b = Builder(module, f"count_{space}", "void", _PARAMETERS)
    context, addresses, counters = (b.argument(name, "ptr") for name in ("context", "addresses", "counters"))
    mask, info = b.argument("mask", "i32"), b.argument("info", "i64")
    size = b.and_(info, 255)
    lanes = b.resize(b.popcount(mask), "i64")
    sectors, lines, misses = (b.variable(constant("i64", 0)) for _ in range(3))
    asked = b.mul(lanes, size)
    vector = b.load("i64", addresses, WARP)
    if space == "global":
        with _peel(b, b.lshr(vector, 5), mask) as (sector, _):
            _increment(b, sectors)
            _increment(b, misses, b.call("touch", "i64", context, sector, info))
        with _peel(b, b.lshr(vector, 7), mask):
            _increment(b, lines)
    elif space == "local":
        vector = _local_sectors(b, vector, mask, size, sectors, lines)
        b.store(vector, addresses)
    packed = b.call("wavefronts", "i64", addresses, mask, size)
    none = constant("i64", 0)
    ideal = b.lshr(b.add(asked, 31), 5) if space != "shared" else none
    _add(
        b, counters, constant("i64", 1), asked, b.load("i64", sectors), ideal, b.load("i64", lines),
        b.lshr(packed, 8), b.and_(packed, 255), b.load("i64", misses),
    )  # fmt: skip
    b.ret()
    b.finish()


def _local_sectors(b: Builder, offsets: Value, mask: Value, size: Value, sectors: Value, lines: Value) -> Value:
    """Count sectors and lines of local memory, which hardware interleaves by lane in words of four bytes."""
    words = b.intrinsic("llvm.umax", b.lshr(size, 2), constant("i64", 1))
    word = b.variable(constant("i64", 0))
    lane_sector = constants("i64", [lane // 8 for lane in range(WARP)])
    rows = b.lshr(offsets, 2)
    with b.loop() as leave:
        now = b.load("i64", word)
        b.go_if(b.compare("uge", now, words), leave)
        b.store(b.add(now, 1), word)
        row = b.add(rows, now)
        with _peel(b, b.or_(b.shl(row, 2), lane_sector), mask):
            _increment(b, sectors)
        # Rows of an aligned vector don't overlap those of its other words unless they are equal for all of them.
        with _peel(b, row, mask):
            _increment(b, lines)
    return b.add(b.shl(rows, 7), b.mul(lane_numbers("i64", WARP), 4))


def _add(b: Builder, counters: Value, *words: Value) -> None:
    vector = Value("i64", len(words), "zeroinitializer", True)
    for index, word in enumerate(words):
        vector = b.assign("i64", len(words), f"insertelement {vector.ir}, {word.ir}, i32 {index}")
    b.store(b.add(b.load("i64", counters, len(words), align=64), vector), counters, align=64)


def _define_contiguous(module: IrModule) -> None:
    """``count_contiguous(context, base, counters, info)``: 32 lanes that are all on and access neighbouring elements."""
    b = Builder(
        module, "count_contiguous", "void",
        (("context", "ptr"), ("base", "i64"), ("counters", "ptr"), ("info", "i64")),
    )  # fmt: skip
    context, base, counters, info = (
        b.argument(name, kind) for name, kind in (("context", "ptr"), ("base", "i64"), ("counters", "ptr"), ("info", "i64"))
    )
    size = b.and_(info, 255)
    span = b.shl(size, 5)
    first, last = b.lshr(base, 5), b.lshr(b.add(base, b.sub(span, 1)), 5)
    misses, sector = b.variable(constant("i64", 0)), b.variable(first)
    with b.loop() as leave:
        now = b.load("i64", sector)
        b.go_if(b.compare("ugt", now, last), leave)
        b.store(b.add(now, 1), sector)
        _increment(b, misses, b.call("touch", "i64", context, now, info))
    lines = b.add(b.sub(b.lshr(last, 2), b.lshr(first, 2)), 1)
    passes = b.intrinsic("llvm.umax", b.lshr(size, 2), constant("i64", 1))
    _add(
        b, counters, constant("i64", 1), span, b.add(b.sub(last, first), 1), size, lines, passes, passes,
        b.load("i64", misses),
    )  # fmt: skip
    b.ret()
    b.finish()


def _define_uniform(module: IrModule) -> None:
    """``count_uniform(context, base, mask, counters, info)``: all lanes of `mask` access the same address."""
    b = Builder(
        module, "count_uniform", "void",
        (("context", "ptr"), ("base", "i64"), ("mask", "i32"), ("counters", "ptr"), ("info", "i64")),
    )  # fmt: skip
    context, base, counters = b.argument("context", "ptr"), b.argument("base", "i64"), b.argument("counters", "ptr")
    mask, info = b.argument("mask", "i32"), b.argument("info", "i64")
    size = b.and_(info, 255)
    missed = b.call("touch", "i64", context, b.lshr(base, 5), info)
    asked = b.mul(b.resize(b.popcount(mask), "i64"), size)
    passes = b.variable(constant("i64", 1))
    with b.if_(b.is_("ugt", size, 4)):
        halves = [b.cast("zext", b.is_("ne", b.and_(mask, 0xFFFF << s), 0), "i64") for s in (0, 16)]
        quarters = [b.cast("zext", b.is_("ne", b.and_(mask, 0xFF << s), 0), "i64") for s in (0, 8, 16, 24)]
        two, four = b.add(*halves), b.add(b.add(quarters[0], quarters[1]), b.add(quarters[2], quarters[3]))
        b.store(b.select(b.is_("eq", size, 8), two, four), passes)
    one = constant("i64", 1)
    count = b.load("i64", passes)
    _add(b, counters, one, asked, one, b.lshr(b.add(asked, 31), 5), one, count, count, missed)
    b.ret()
    b.finish()


def advance_epoch(b: Builder, context: Value) -> None:
    """Empty the modeled L1 for a new block: a new epoch makes all its tags old."""
    epoch = b.add(get(b, context, "epoch"), 1)
    put(b, context, "epoch", epoch)
    with b.if_(b.is_("ugt", epoch, 255)):
        table = get(b, context, "l1", "ptr")
        b.declare("llvm.memset.p0.i64", "void", "ptr, i8, i64, i1")
        b.emit(f"call void @llvm.memset.p0.i64({table.ir}, i8 0, i64 {8 * L1_ENTRIES}, i1 false)")
        put(b, context, "epoch", constant("i64", 1))


WINDOW_OF_SECTOR = WINDOW_BITS - 5
