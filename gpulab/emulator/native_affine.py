"""Native helper that counts requests whose addresses are affine in the lane: most of the cost is looked up, not computed."""

from __future__ import annotations

from collections.abc import Callable

from gpulab.emulator.ir import Builder, IrModule, Value, constant, lane_numbers
from gpulab.emulator.layout import SHARED, SHARED_SHIFT, WARP, get
from gpulab.emulator.native_touch import (
    CACHE_BITS,
    CACHE_ENTRY_BYTES,
    WORDS,
    add_misses,
    increment,
    peel,
    toucher,
)


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
    add_misses(b, counters, b.load("i64", misses))
    total = b.add(b.load("i64", counters, len(WORDS), align=64), b.load("i64", answer, len(WORDS), align=64))
    b.store(total, counters, align=64)
    b.ret()
    b.finish()
    _define_measure_affine(module)


def affine_vector(b: Builder, base: Value, s0: Value, s1: Value, width: Value) -> Value:
    """The addresses of all lanes."""
    lanes, shift = lane_numbers("i64", WARP), b.count_trailing_zeros(width)
    column, row = b.and_(lanes, b.widen(b.sub(width, 1))), b.binary("lshr", lanes, b.widen(shift))
    return b.add(b.add(b.mul(column, s0), b.mul(row, s1)), base)


def _define_measure_affine(module: IrModule) -> None:
    parameters = (
        ("base", "i64"), ("s0", "i64"), ("s1", "i64"), ("width", "i64"), ("mask", "i32"), ("answer", "ptr"), ("info", "i64")
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
    b: Builder, context: Value, base: Value, s0: Value, s1: Value, width: Value, mask: Value, info: Value, misses: Value
) -> None:
    """Touch the sectors of affine addresses in lane order."""
    size = b.and_(info, 255)
    touch = toucher(b, context, base, info)
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
    vector = affine_vector(b, base, s0, s1, width)
    anywhere = toucher(b, context, None, info)
    with peel(b, b.lshr(vector, 5), mask) as (sector, _):
        increment(b, misses, anywhere(sector))
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
        increment(b, misses, touch(now))
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
            increment(b, misses, touch(here))
        b.store(here, previous)
    b.br(after)
    b.label(after)
