"""Asynchronous copies: done when their thread has waited for them, and seen by others behind a barrier after that.

``check_group(context, warp, mask)``: lanes end a group of copies. ``check_copied(context, warp, mask, pending)``: lanes wait
until at most so many of their last groups are under way, or for all copies (-1).
"""

from __future__ import annotations

from gpulab.emulator.checking.layout import (
    COPY_KEPT,
    COPY_WORDS,
    GROUP_ENDS,
    GROUPS,
    SITE_SHIFT,
    SITES,
    WAITED_AT,
    WAITED_FOR,
    WAITS,
    own,
    own_word,
    thread_of,
    tick,
    time_of,
)
from gpulab.emulator.layout import WARP
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant

_LANES = (("context", "ptr"), ("warp", "i64"), ("mask", "i32"))


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns the names that kernels import."""
    _define_group(module)
    _define_copied(module)
    return "check_group", "check_copied"


def _row(b: Builder, structure: Value, thread: Value) -> Value:
    return b.offset(own_word(b, structure, "copies", "ptr"), b.mul(thread, 8 * COPY_WORDS))


def _kept(b: Builder, place: Value, start: int, number: Value) -> Value:
    """Pointer to one of the last few."""
    return b.offset(place, b.mul(b.add(b.and_(number, COPY_KEPT - 1), start), 8))


def _define_group(module: IrModule) -> None:
    b = Builder(module, "check_group", "void", _LANES)
    structure, first = own(b, b.argument("context", "ptr")), b.mul(b.argument("warp", "i64"), WARP)
    now = tick(b, structure)
    with b.bits(b.argument("mask", "i32")) as lane:
        place = _row(b, structure, b.add(first, b.resize(lane, "i64")))
        count = b.load("i64", b.offset(place, 8 * GROUPS))
        b.store(now, _kept(b, place, GROUP_ENDS, count))
        b.store(b.add(count, 1), b.offset(place, 8 * GROUPS))
    b.ret()
    b.finish()


def _define_copied(module: IrModule) -> None:
    b = Builder(module, "check_copied", "void", (*_LANES, ("pending", "i64")))
    structure, first = own(b, b.argument("context", "ptr")), b.mul(b.argument("warp", "i64"), WARP)
    pending, now = b.argument("pending", "i64"), tick(b, structure)
    # Of older groups the time is lost: a later one stands for them.
    back = b.intrinsic("llvm.smin", pending, constant("i64", COPY_KEPT - 1))
    with b.bits(b.argument("mask", "i32")) as lane:
        place = _row(b, structure, b.add(first, b.resize(lane, "i64")))
        group = b.sub(b.sub(b.load("i64", b.offset(place, 8 * GROUPS)), 1), back)
        everything = b.is_("slt", pending, 0)
        with b.if_(b.or_(everything, b.is_("sge", group, 0))):
            done = b.select(everything, now, b.load("i64", _kept(b, place, GROUP_ENDS, group)))
            count = b.load("i64", b.offset(place, 8 * WAITS))
            b.store(done, _kept(b, place, WAITED_FOR, count))
            b.store(now, _kept(b, place, WAITED_AT, count))
            b.store(b.add(count, 1), b.offset(place, 8 * WAITS))
    b.ret()
    b.finish()


def when_done(b: Builder, structure: Value, record: Value) -> Value:
    """When the access of a record of this block was done: of a copy when its thread had waited for it, or 0 if it has not."""
    time = b.variable(time_of(b, record))
    with b.if_(b.is_("ne", own_word(b, structure, "copies"), 0)):
        site = b.and_(b.lshr(record, SITE_SHIFT), SITES - 1)
        is_copy = b.load("i8", b.offset(own_word(b, structure, "copy_sites", "ptr"), site))
        with b.if_(b.is_("ne", is_copy, 0)):
            place = _row(b, structure, thread_of(b, record))
            started = b.widen(time_of(b, record), COPY_KEPT)
            waited = b.compare("uge", b.load("i64", b.offset(place, 8 * WAITED_FOR), COPY_KEPT, align=8), started)
            at = b.load("i64", b.offset(place, 8 * WAITED_AT), COPY_KEPT, align=8)
            never = constant("i64", -1, COPY_KEPT)
            first = b.reduce("umin", b.select(waited, at, never))
            b.store(b.select(b.is_("eq", first, -1), constant("i64", 0), first), time)
    return b.load("i64", time)
