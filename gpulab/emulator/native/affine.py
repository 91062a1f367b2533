"""Native helper that counts requests with addresses affine in the lane: most of the cost is looked up, not computed."""

from __future__ import annotations

from gpulab.emulator.layout import SHARED, SHARED_SHIFT, WARP, get
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant, lane_numbers
from gpulab.emulator.native.touch import (
    CACHE_BITS,
    CACHE_ENTRY_BYTES,
    MEMO_ANSWER,
    WORDS,
    add_misses,
    first_lanes,
    increment,
    l1_place,
    l1_version,
    memo_key,
    peel,
)
from gpulab.models.access import LINE_BYTES


def define_affine(module: IrModule) -> None:
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
    before, traced = b.load("i64", l1_version(b, context, b.lshr(base, 5))), get(b, context, "traced")
    with b.if_(b.is_("eq", b.and_(info, SHARED), 0)):
        b.store(_touch_affine(b, context, base, s0, s1, width, mask, info), misses)
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
    add_misses(b, counters, b.load("i64", misses))
    found = b.load("i64", answer, len(WORDS), align=64)
    # A request that misses brings its sectors into the L1: unless one of them had to leave, the next one like it hits.
    kept = b.compare("eq", before, b.load("i64", l1_version(b, context, b.lshr(base, 5))))
    # A request that was recorded must be recorded the next time as well.
    kept = b.and_(kept, b.compare("eq", traced, get(b, context, "traced")))
    _fill_memo(b, context, (base, s0, s1), width, mask, info, found, kept)
    total = b.add(b.load("i64", counters, len(WORDS), align=64), found)
    b.store(total, counters, align=64)
    b.ret()
    b.finish()
    _define_measure_affine(module)
    _define_spread(module)


def _fill_memo(
    b: Builder, context: Value, address: tuple[Value, Value, Value], width: Value, mask: Value, info: Value,
    answer: Value, kept: Value,
) -> None:  # fmt: skip
    """Remember the answer for the next such request, if it holds for others than this one."""
    is_shared = b.is_("ne", b.and_(info, SHARED), 0)
    whole = b.and_(kept, b.is_("eq", b.and_(b.or_(address[1], address[2]), 127), 0))
    for space, wanted in (("shared", is_shared), ("global", b.and_(whole, b.not_(is_shared)))):
        with b.if_(wanted):
            memo, key = memo_key(b, context, address, width, mask, info, space)
            for number, word in enumerate(key):
                b.store(word, b.offset(memo, 8 * number))
            b.store(answer, b.offset(memo, MEMO_ANSWER), align=64)


def affine_vector(b: Builder, base: Value, s0: Value, s1: Value, width: Value) -> Value:
    """The addresses of all lanes."""
    lanes, shift = lane_numbers("i64", WARP), b.count_trailing_zeros(width)
    column, row = b.and_(lanes, b.widen(b.sub(width, 1))), b.binary("lshr", lanes, b.widen(shift))
    return b.add(b.add(b.mul(column, s0), b.mul(row, s1)), base)


def _define_spread(module: IrModule) -> None:
    """``spread(base, s0, s1, width, where)``: write the addresses of all lanes to `where`."""
    parameters = (("base", "i64"), ("s0", "i64"), ("s1", "i64"), ("width", "i64"), ("where", "ptr"))
    b = Builder(module, "spread", "void", parameters)
    base, s0, s1, width, where = (b.argument(name, kind) for name, kind in parameters)
    b.store(affine_vector(b, base, s0, s1, width), where)
    b.ret()
    b.finish()


def _define_measure_affine(module: IrModule) -> None:
    parameters = (
        ("base", "i64"), ("s0", "i64"), ("s1", "i64"), ("width", "i64"), ("mask", "i32"), ("answer", "ptr"),
        ("info", "i64"),
    )  # fmt: skip
    b = Builder(module, "measure_affine", "void", parameters, "nounwind noinline", "internal")
    base, s0, s1, width, mask, answer, info = (b.argument(name, kind) for name, kind in parameters)
    vector = affine_vector(b, base, s0, s1, width)
    addresses, sectors = b.variable(vector), b.variable(constant("i64", 0))
    with b.if_(b.is_("eq", b.and_(info, SHARED), 0)):
        with peel(b, b.lshr(vector, 5), mask):
            increment(b, sectors)
    b.call("measure", None, addresses, mask, info, b.load("i64", sectors), constant("i64", 0), answer)
    b.ret()
    b.finish()


def _touch_affine(
    b: Builder, context: Value, base: Value, s0: Value, s1: Value, width: Value, mask: Value, info: Value
) -> Value:
    """Touch the sectors of affine addresses; returns the misses."""
    quick = b.variable(constant("i64", 0))
    slow, done = b.fresh("slow"), b.fresh("touched")
    _touch_two_rows(b, context, base, s0, s1, width, mask, info, quick, slow, done)
    b.label(slow)
    sectors = b.lshr(affine_vector(b, base, s0, s1, width), 5)
    first = b.variable(constant("i32", 0))
    generic, ready = b.fresh("generic"), b.fresh("ready")
    starts = _row_starts(b, s0, s1, width, b.and_(info, 255))
    # Equal rows: the first one tells all.
    row = b.sub(b.shl(constant("i64", 1), width), 1)
    equal = b.and_(b.is_("eq", s1, 0), b.is_("eq", mask, -1))
    mask = b.select(equal, b.resize(row, "i32"), mask)
    starts = b.select(equal, constant("i32", 1), starts)
    # Lanes that are on must be neighbors, so that the lane before tells whether a sector is new.
    run = b.add(mask, b.and_(mask, b.sub(constant("i32", 0), mask)))
    b.go_if(b.or_(b.is_("eq", starts, 0), b.is_("ne", b.and_(run, b.sub(run, 1)), 0)), generic)
    before = b.shuffle(sectors, sectors, [WARP - 1, *range(WARP - 1)])
    starts = b.or_(starts, b.and_(mask, b.sub(constant("i32", 0), mask)))
    b.store(b.and_(mask, b.or_(starts, b.mask_word(b.compare("ne", sectors, before)))), first)
    b.br(ready)
    b.label(generic)
    b.store(first_lanes(b, sectors, mask), first)
    b.br(ready)
    b.label(ready)
    b.store(b.call("touch", "i64", context, sectors, b.load("i32", first), info), quick)
    b.br(done)
    b.label(done)
    return b.load("i64", quick)


def _touch_two_rows(
    b: Builder, context: Value, base: Value, s0: Value, s1: Value, width: Value, mask: Value, info: Value,
    misses: Value, slow: str, done: str,
) -> None:  # fmt: skip
    """Two rows of 16 lanes that each read one place, or 64 aligned bytes: in two lines with places of their own."""
    size = b.and_(info, 255)
    one_place = b.is_("eq", s0, 0)
    halves = b.and_(b.is_("eq", b.and_(b.or_(base, s1), 63), 0), b.is_("eq", b.or_(b.xor(s0, 4), b.xor(size, 4)), 0))
    full = b.and_(b.is_("eq", width, 16), b.is_("eq", mask, -1))
    b.go_if(b.not_(b.and_(full, b.or_(one_place, halves))), slow)
    rows = b.lshr(base, 5), b.lshr(b.add(base, s1), 5)
    places = [b.and_(l1_place(b, sector), -LINE_BYTES) for sector in rows]
    b.go_if(b.compare("eq", *places), slow)
    found = constant("i64", 0)
    bits = b.select(one_place, constant("i32", 1), constant("i32", 3))
    for sector in rows:
        wanted = b.shl(bits, b.resize(b.and_(sector, 3), "i32"))
        found = b.add(b.call("touch_line", "i64", context, b.lshr(sector, 2), wanted, info), found)
    b.store(found, misses)
    b.br(done)


def _row_starts(b: Builder, s0: Value, s1: Value, width: Value, size: Value) -> Value:
    """First lanes of rows of lanes that share no sectors with other rows; 0 if rows might.

    Inside a row sectors only ascend or only descend.
    """
    one_row = b.or_(b.is_("eq", width, WARP), b.compare("eq", s1, b.mul(s0, width)))
    span = b.add(b.mul(b.intrinsic("llvm.abs", s0, tail=", i1 false"), b.sub(width, 1)), size)
    apart = b.compare("uge", b.intrinsic("llvm.abs", s1, tail=", i1 false"), b.add(span, 32))
    # A 1 in every lane that `width` divides.
    ones = b.shl(constant("i32", 1), b.and_(b.resize(width, "i32"), WARP - 1))
    rows = b.intrinsic("llvm.umax", b.sub(ones, 1), constant("i32", 1))
    pattern = b.binary("udiv", constant("i32", -1), rows)
    return b.select(one_row, constant("i32", 1), b.select(apart, pattern, constant("i32", 0)))
