"""Native helpers that count what memory requests cost.

They hold the rules of `gpulab.models.access` in one place for all compiled kernels: property tests hold them to it. A
request adds one vector of eight words to the counters of its instruction, in the order of `WORDS`.

The general way *peels*: take the first lane that is left, drop every lane in the same sector, count one, repeat. That
meets the sectors in the order in which the lanes touch them first, as the modeled L1 wants it. Accesses are aligned to
their size (the fault check has seen to it), so no access crosses a sector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from gpulab.emulator.ir import Builder, IrModule, Value, constant, constants, lane_numbers
from gpulab.emulator.layout import ATOMIC, SHARED, SHARED_SHIFT, STORE, WARP, get, put
from gpulab.emulator.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS
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
_PARAMETERS = (("context", "ptr"), ("addresses", "ptr"), ("mask", "i32"), ("counters", "ptr"), ("info", "i64"))


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns their names."""
    _define_touch(module)
    _define_wavefronts(module)
    _define_measure(module)
    _define_affine(module)
    for space in ("global", "shared", "local"):
        _define_count(module, space)
    _define_generic(module)
    _define_contiguous(module)
    _define_uniform(module)
    kinds = ("global", "shared", "local", "generic", "contiguous", "uniform", "affine")
    return tuple(f"count_{kind}" for kind in kinds)


# ---- touching sectors


def _define_touch(module: IrModule) -> None:
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


def _toucher(b: Builder, context: Value, address: Value | None, info: Value) -> Callable[[Value], Value]:
    """A function that touches a sector, with what all sectors of a request share looked up once.

    `address` is one of the request's if all of them lie in one window, else None.
    """
    table = get(b, context, "l1", "ptr")
    epoch = b.shl(get(b, context, "epoch"), EPOCH_SHIFT)
    shared = None if address is None else _map_origin(b, context, address, "written")

    def touch(sector: Value) -> Value:
        written = shared or _map_origin(b, context, b.shl(sector, 5), "written")
        return b.call("touch", "i64", context, table, epoch, written, sector, info)

    return touch


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


def _define_measure(module: IrModule) -> None:
    """``measure(addresses, mask, info, sectors, misses, counters)``: lines and wavefronts, and add all to the counters."""
    parameters = (
        ("addresses", "ptr"), ("mask", "i32"), ("info", "i64"), ("sectors", "i64"), ("misses", "i64"), ("counters", "ptr")
    )  # fmt: skip
    b = Builder(module, "measure", "void", parameters, "nounwind", "internal")
    addresses, mask, info, sectors, misses, counters = (b.argument(name, kind) for name, kind in parameters)
    size = b.and_(info, 255)
    asked = b.mul(b.resize(b.popcount(mask), "i64"), size)
    lines, ideal = b.variable(constant("i64", 0)), b.variable(constant("i64", 0))
    with b.if_(b.is_("ne", sectors, 0)):
        b.store(b.lshr(b.add(asked, 31), 5), ideal)
        with _peel(b, b.lshr(b.load("i64", addresses, WARP), 7), mask):
            _increment(b, lines)
    packed = b.call("wavefronts", "i64", addresses, mask, size)
    _add(
        b, counters, constant("i64", 1), asked, sectors, b.load("i64", ideal), b.load("i64", lines),
        b.lshr(packed, 8), b.and_(packed, 255), misses,
    )  # fmt: skip
    b.ret()
    b.finish()


def _define_count(module: IrModule, space: str) -> None:
    """``count_SPACE(context, addresses, mask, counters, info)``: any request with virtual addresses of that space."""
    b = Builder(module, f"count_{space}", "void", _PARAMETERS)
    context, addresses, counters = (b.argument(name, "ptr") for name in ("context", "addresses", "counters"))
    mask, info = b.argument("mask", "i32"), b.argument("info", "i64")
    sectors, misses = b.variable(constant("i64", 0)), b.variable(constant("i64", 0))
    vector = b.load("i64", addresses, WARP)
    if space == "local":
        _count_local(b, vector, addresses, mask, counters, info)
        return
    for width in (32, 16):
        _try_affine(b, context, vector, mask, counters, info, width, space)
    if space == "global":
        touch = _toucher(b, context, None, info)
        with _peel(b, b.lshr(vector, 5), mask) as (sector, _):
            _increment(b, sectors)
            _increment(b, misses, touch(sector))
    b.call("measure", None, addresses, mask, info, b.load("i64", sectors), b.load("i64", misses), counters)
    b.ret()
    b.finish()


def _try_affine(
    b: Builder, context: Value, vector: Value, mask: Value, counters: Value, info: Value, width: int, space: str
) -> None:
    """Return by way of the quicker count if the addresses of a full warp turn out to be affine."""
    lane0, lane1, row1 = (b.extract(vector, constant("i32", lane)) for lane in (0, 1, width % 32))
    first, second = b.sub(lane1, lane0), b.sub(row1, lane0)
    steps = b.mul(first, constants("i64", [lane % width for lane in range(WARP)]))
    steps = b.add(steps, b.mul(second, constants("i64", [lane // width for lane in range(WARP)])))
    equal = b.mask_word(b.compare("eq", b.add(steps, lane0), vector))
    with b.if_(b.and_(b.is_("eq", equal, -1), b.is_("eq", mask, -1))):
        flags = b.or_(info, SHARED if space == "shared" else 0)
        b.call("count_affine", None, context, lane0, first, second, constant("i64", width), mask, counters, flags)
        b.ret()
        b.label(b.fresh("dead"))


def _count_local(b: Builder, offsets: Value, addresses: Value, mask: Value, counters: Value, info: Value) -> None:
    size = b.and_(info, 255)
    sectors, lines = b.variable(constant("i64", 0)), b.variable(constant("i64", 0))
    asked = b.mul(b.resize(b.popcount(mask), "i64"), size)
    b.store(_local_sectors(b, offsets, mask, size, sectors, lines), addresses)
    packed = b.variable(b.call("wavefronts", "i64", addresses, mask, b.intrinsic("llvm.umin", size, constant("i64", 4))))
    with b.if_(b.is_("ugt", size, 4)):
        b.store(_local_wavefronts(b, addresses, mask, size), packed)
    packed = b.load("i64", packed)
    _add(
        b, counters, constant("i64", 1), asked, b.load("i64", sectors), b.lshr(b.add(asked, 31), 5), b.load("i64", lines),
        b.lshr(packed, 8), b.and_(packed, 255), constant("i64", 0),
    )  # fmt: skip
    b.ret()
    b.finish()


def _local_wavefronts(b: Builder, addresses: Value, mask: Value, size: Value) -> Value:
    """The bank rule for 8- and 16-byte accesses whose lanes are a word apart, so that their words may coincide."""
    zero = constant("i64", 0)
    group_lanes = b.binary("udiv", constant("i64", 128), size)
    total, ideal, start = b.variable(zero), b.variable(zero), b.variable(zero)
    seen, count, filled, most = b.alloca("i64", 1, 64), b.variable(zero), b.alloca("i8", WARP), b.variable(zero)
    with b.loop() as leave:
        begin = b.load("i64", start)
        b.go_if(b.is_("uge", begin, WARP), leave)
        b.store(b.add(begin, group_lanes), start)
        group = b.resize(b.shl(b.sub(b.shl(constant("i64", 1), group_lanes), 1), begin), "i32")
        inside = b.and_(mask, group)
        b.store(zero, count)
        b.store(zero, most)
        b.store(constant("i8", 0, WARP), filled)
        with b.bits(inside) as lane:
            address = b.load("i64", b.offset(addresses, b.mul(b.resize(lane, "i64"), 8)))
            part = b.variable(zero)
            with b.loop() as done:
                now = b.load("i64", part)
                b.go_if(b.compare("uge", now, b.lshr(size, 2)), done)
                b.store(b.add(now, 1), part)
                _count_word(b, b.add(b.lshr(address, 2), now), seen, count, filled, most)
        _increment(b, total, b.load("i64", most))
        _increment(b, ideal, b.resize(b.is_("ne", inside, 0), "i64"))
    return b.or_(b.shl(b.load("i64", total), 8), b.load("i64", ideal))


def _count_word(b: Builder, word: Value, seen: Value, count: Value, filled: Value, most: Value) -> None:
    """Add a word to its bank unless the list of seen words has it."""
    index, known = b.variable(constant("i64", 0)), b.variable(constant("i64", 0))
    with b.loop() as leave:
        now = b.load("i64", index)
        b.go_if(b.compare("uge", now, b.load("i64", count)), leave)
        b.store(b.add(now, 1), index)
        same = b.compare("eq", b.load("i64", b.offset(seen, b.mul(now, 8))), word)
        b.store(b.or_(b.load("i64", known), b.resize(same, "i64")), known)
    with b.if_(b.is_("eq", b.load("i64", known), 0)):
        b.store(word, b.offset(seen, b.mul(b.load("i64", count), 8)))
        _increment(b, count)
        bank = b.offset(filled, b.and_(word, 31))
        depth = b.add(b.load("i8", bank), 1)
        b.store(depth, bank)
        b.store(b.intrinsic("llvm.umax", b.load("i64", most), b.resize(depth, "i64")), most)


def _define_generic(module: IrModule) -> None:
    """``count_generic``: lanes part by the memory that they hit; each part is a request of its own."""
    b = Builder(module, "count_generic", "void", _PARAMETERS)
    context, addresses, counters = (b.argument(name, "ptr") for name in ("context", "addresses", "counters"))
    mask, info = b.argument("mask", "i32"), b.argument("info", "i64")
    vector = b.load("i64", addresses, WARP)
    window = b.lshr(vector, WINDOW_BITS)
    left = mask
    for space, start in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("global", 0)):
        inside = left
        if start:
            inside = b.and_(mask, b.mask_word(b.is_("eq", window, start >> WINDOW_BITS)))
            left = b.and_(left, b.not_(inside))
        with b.if_(b.is_("ne", inside, 0)):
            b.store(b.sub(vector, start), addresses)
            b.call(f"count_{space}", None, context, addresses, inside, counters, info)
    b.ret()
    b.finish()


# ---- affine addresses


def _define_affine(module: IrModule) -> None:
    """``count_affine(context, base, s0, s1, width, mask, counters, info)``: addresses that are affine in the lane.

    All but the L1 follows from the base modulo 128, the strides and the mask, so it is looked up in a table of earlier
    answers.
    """
    parameters = (
        ("context", "ptr"), ("base", "i64"), ("s0", "i64"), ("s1", "i64"), ("width", "i64"), ("mask", "i32"),
        ("counters", "ptr"), ("info", "i64"),
    )  # fmt: skip
    b = Builder(module, "count_affine", "void", parameters)
    context, base, s0, s1, width, mask, counters, info = (b.argument(name, kind) for name, kind in parameters)
    misses = b.variable(constant("i64", 0))
    with b.if_(b.is_("eq", b.and_(info, SHARED), 0)):
        _touch_affine(b, context, base, s0, s1, width, mask, info, misses)
    size = b.and_(info, 255)
    key = b.or_(b.and_(base, 127), b.or_(b.shl(size, 8), b.shl(width, 16)))
    key = b.or_(b.or_(key, b.shl(b.resize(mask, "i64"), 32)), b.shl(b.and_(info, SHARED), 24 - SHARED_SHIFT))
    mixed = b.mul(b.xor(b.xor(key, b.mul(s0, 0x9E3779B97F4A7C15)), b.mul(s1, 0xC2B2AE3D27D4EB4F)), 0xFF51AFD7ED558CCD)
    entry = b.offset(get(b, context, "caches", "ptr"), b.mul(b.lshr(mixed, 64 - CACHE_BITS), CACHE_ENTRY_BYTES))
    answer = b.offset(entry, 64)
    hit = b.compare("eq", b.load("i64", entry), key)
    for number, word in enumerate((s0, s1), 1):
        hit = b.and_(hit, b.compare("eq", b.load("i64", b.offset(entry, 8 * number)), word))
    with b.if_(b.not_(hit)):
        for number, word in enumerate((key, s0, s1)):
            b.store(word, b.offset(entry, 8 * number))
        b.store(constant("i64", 0, len(WORDS)), answer, align=64)
        b.call("measure_affine", None, base, s0, s1, width, mask, answer, info)
    _add_misses(b, counters, b.load("i64", misses))
    total = b.add(b.load("i64", counters, len(WORDS), align=64), b.load("i64", answer, len(WORDS), align=64))
    b.store(total, counters, align=64)
    b.ret()
    b.finish()
    _define_measure_affine(module)


def _affine_vector(b: Builder, base: Value, s0: Value, s1: Value, width: Value) -> Value:
    lanes, shift = lane_numbers("i64", WARP), b.count_trailing_zeros(width)
    column, row = b.and_(lanes, b.widen(b.sub(width, 1))), b.binary("lshr", lanes, b.widen(shift))
    return b.add(b.add(b.mul(column, s0), b.mul(row, s1)), base)


def _define_measure_affine(module: IrModule) -> None:
    parameters = (
        ("base", "i64"), ("s0", "i64"), ("s1", "i64"), ("width", "i64"), ("mask", "i32"), ("answer", "ptr"), ("info", "i64")
    )  # fmt: skip
    b = Builder(module, "measure_affine", "void", parameters, "nounwind noinline", "internal")
    base, s0, s1, width, mask, answer, info = (b.argument(name, kind) for name, kind in parameters)
    vector = _affine_vector(b, base, s0, s1, width)
    addresses, sectors = b.variable(vector), b.variable(constant("i64", 0))
    with b.if_(b.is_("eq", b.and_(info, SHARED), 0)):
        with _peel(b, b.lshr(vector, 5), mask):
            _increment(b, sectors)
    b.call("measure", None, addresses, mask, info, b.load("i64", sectors), constant("i64", 0), answer)
    b.ret()
    b.finish()


def _touch_affine(
    b: Builder, context: Value, base: Value, s0: Value, s1: Value, width: Value, mask: Value, info: Value, misses: Value
) -> None:
    """Touch the sectors of affine addresses in lane order."""
    size = b.and_(info, 255)
    touch = _toucher(b, context, base, info)
    generic, done = b.fresh("generic"), b.fresh("touched")
    b.go_if(b.is_("ne", mask, -1), generic)
    span = b.add(b.mul(b.intrinsic("llvm.abs", s0, tail=", i1 false"), b.sub(width, 1)), size)
    apart = b.compare("uge", b.intrinsic("llvm.abs", s1, tail=", i1 false"), b.add(span, 32))
    rows = b.select(b.is_("eq", s1, 0), constant("i64", 1), b.binary("udiv", constant("i64", WARP), width))
    # Rows that might share sectors need to be looked at lane by lane.
    b.go_if(b.not_(b.or_(apart, b.is_("eq", rows, 1))), generic)
    row, start = b.variable(constant("i64", 0)), b.variable(base)
    dense = b.compare("ule", s0, constant("i64", 32))
    with b.loop() as leave:
        now, begin = b.load("i64", row), b.load("i64", start)
        b.go_if(b.compare("uge", now, rows), leave)
        b.store(b.add(now, 1), row)
        b.store(b.add(begin, s1), start)
        _touch_row(b, touch, begin, s0, width, size, dense, misses)
    b.br(done)
    b.label(generic)
    vector = _affine_vector(b, base, s0, s1, width)
    anywhere = _toucher(b, context, None, info)
    with _peel(b, b.lshr(vector, 5), mask) as (sector, _):
        _increment(b, misses, anywhere(sector))
    b.br(done)
    b.label(done)


def _touch_row(
    b: Builder, touch: Callable[[Value], Value], begin: Value, s0: Value, width: Value, size: Value, dense: Value, misses: Value
) -> None:
    """A row of lanes: every sector from its first to its last byte if the stride is short, else lane by lane."""
    steps = b.mul(s0, b.sub(width, 1))
    first = b.lshr(begin, 5)
    last = b.lshr(b.add(b.add(begin, steps), b.sub(size, 1)), 5)
    sector, address, lane = b.variable(first), b.variable(begin), b.variable(constant("i64", 0))
    lanes, after = b.fresh("lanes"), b.fresh("row")
    b.go_if(b.not_(dense), lanes)
    with b.loop() as leave:
        now = b.load("i64", sector)
        b.go_if(b.compare("ugt", now, last), leave)
        b.store(b.add(now, 1), sector)
        _increment(b, misses, touch(now))
    b.br(after)
    b.label(lanes)
    previous = b.variable(constant("i64", -1))
    with b.loop() as leave:
        number, place = b.load("i64", lane), b.load("i64", address)
        b.go_if(b.compare("uge", number, width), leave)
        b.store(b.add(number, 1), lane)
        b.store(b.add(place, s0), address)
        here = b.lshr(place, 5)
        with b.if_(b.compare("ne", here, b.load("i64", previous))):
            _increment(b, misses, touch(here))
        b.store(here, previous)
    b.br(after)
    b.label(after)


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


def _add_misses(b: Builder, counters: Value, misses: Value) -> None:
    with b.if_(b.is_("ne", misses, 0)):
        _increment(b, b.offset(counters, 8 * MISSES), misses)


def expand(words: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Counters in the order of `WORDS`, with the two usual requests multiplied out.

    Parameters
    ----------
    words : numpy.ndarray
        Shape (instructions, 16), int64: the raw counters.
    sizes : numpy.ndarray
        Bytes per lane of each instruction.
    """
    total = words[:, : len(WORDS)].copy()
    total[:, WORDS.index("l1_miss_sectors")] += words[:, MISSES]
    passes, one = np.maximum(sizes // 4, 1), np.ones_like(sizes)
    aligned = [one, WARP * sizes, sizes, sizes, passes, passes, passes]
    uniform = [one, WARP * sizes, one, sizes, one, passes, passes]
    for column, (of_aligned, of_uniform) in enumerate(zip(aligned, uniform, strict=True)):
        total[:, column] += words[:, ALIGNED] * of_aligned + words[:, UNIFORM] * of_uniform
    return total


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
    touch = _toucher(b, context, base, info)
    with b.loop() as leave:
        now = b.load("i64", sector)
        b.go_if(b.compare("ugt", now, last), leave)
        b.store(b.add(now, 1), sector)
        _increment(b, misses, touch(now))
    _add_misses(b, counters, b.load("i64", misses))
    with b.if_(b.is_("eq", b.and_(base, 127), 0)):
        _increment(b, b.offset(counters, 8 * ALIGNED))
        b.ret()
        b.label(b.fresh("dead"))
    lines = b.add(b.sub(b.lshr(last, 2), b.lshr(first, 2)), 1)
    passes = b.intrinsic("llvm.umax", b.lshr(size, 2), constant("i64", 1))
    _add(
        b, counters, constant("i64", 1), span, b.add(b.sub(last, first), 1), size, lines, passes, passes,
        constant("i64", 0),
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
    _add_misses(b, counters, _toucher(b, context, base, info)(b.lshr(base, 5)))
    with b.if_(b.is_("eq", mask, -1)):
        _increment(b, b.offset(counters, 8 * UNIFORM))
        b.ret()
        b.label(b.fresh("dead"))
    asked = b.mul(b.resize(b.popcount(mask), "i64"), size)
    passes = b.variable(constant("i64", 1))
    with b.if_(b.is_("ugt", size, 4)):
        halves = [b.cast("zext", b.is_("ne", b.and_(mask, 0xFFFF << s), 0), "i64") for s in (0, 16)]
        quarters = [b.cast("zext", b.is_("ne", b.and_(mask, 0xFF << s), 0), "i64") for s in (0, 8, 16, 24)]
        two, four = b.add(*halves), b.add(b.add(quarters[0], quarters[1]), b.add(quarters[2], quarters[3]))
        b.store(b.select(b.is_("eq", size, 8), two, four), passes)
    one = constant("i64", 1)
    count = b.load("i64", passes)
    _add(b, counters, one, asked, one, b.lshr(b.add(asked, 31), 5), one, count, count, constant("i64", 0))
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
