"""Barriers in shared memory (`mbarrier`): what was before the arrivals of a phase is before all that is behind its end.

Lanes arrive one by one. What a lane passes on is its own accesses, those of other lanes that a warp synchronization has put
before it, and what its warp knows of others. That it saw a phase end counts for its whole warp.

``check_meet(context, warp, lane, address, completes)`` and ``check_met(context, warp, address)`` are called by compiled kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpulab.emulator.checking.layout import (
    LANES,
    MEETING_SLOTS,
    MEETINGS,
    THREADS,
    WARPS,
    own,
    own_word,
    row,
    tick,
)
from gpulab.emulator.layout import WARP, get
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant

_CONTEXT = ("context", "ptr")


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns the names that kernels import."""
    _define_meet(module)
    _define_met(module)
    return "check_meet", "check_met"


def _slot(b: Builder, address: Value) -> Value:
    return b.mul(b.and_(b.lshr(address, 3), MEETING_SLOTS - 1), 2)


def _threads(b: Builder, structure: Value, number: Value) -> Value:
    """A row of words for the threads of the block: of a warp, or behind these of a slot."""
    return b.offset(own_word(b, structure, "threads", "ptr"), b.mul(number, 8 * THREADS))


def _raise(b: Builder, target: Value, source: Value) -> None:
    """Take the later of two rows of 32 words."""
    b.store(b.intrinsic("llvm.umax", b.load("i64", target, WARP), b.load("i64", source, WARP)), target)


def _parts(b: Builder, warps: Value) -> Iterator[Value]:
    """Where the 32 words of each warp of the block begin in a row for threads; the code runs once for each."""
    index = b.variable(constant("i64", 0))
    with b.loop() as leave:
        now = b.load("i64", index)
        b.go_if(b.compare("uge", now, warps), leave)
        b.store(b.add(now, 1), index)
        yield b.mul(now, 8 * WARP)


def _define_meet(module: IrModule) -> None:
    """A lane arrives, which may complete the phase."""
    parameters = (_CONTEXT, ("warp", "i64"), ("lane", "i64"), ("address", "i64"), ("completes", "i32"))
    b = Builder(module, "check_meet", "void", parameters)
    context, warp, lane = (b.argument(name, kind) for name, kind in parameters[:3])
    structure, slot, warps = own(b, context), _slot(b, b.argument("address", "i64")), get(b, context, "warps")
    gathered, released = (row(b, structure, MEETINGS, b.add(slot, number)) for number in (0, 1))
    _raise(b, gathered, row(b, structure, WARPS, warp))
    mine = _threads(b, structure, warp)
    all_gathered, all_released = (_threads(b, structure, b.add(slot, WARP + number)) for number in (0, 1))
    for part in _parts(b, warps):
        _raise(b, b.offset(all_gathered, part), b.offset(mine, part))
    thread = b.add(b.mul(warp, WARP), lane)
    _raise(b, b.offset(all_gathered, b.mul(warp, 8 * WARP)), row(b, structure, LANES, thread))
    b.store(tick(b, structure), b.offset(all_gathered, b.mul(thread, 8)))
    with b.if_(b.is_("ne", b.argument("completes", "i32"), 0)):
        b.store(b.load("i64", gathered, WARP), released)
        for part in _parts(b, warps):
            b.store(b.load("i64", b.offset(all_gathered, part), WARP), b.offset(all_released, part))
    b.ret()
    b.finish()


def _define_met(module: IrModule) -> None:
    """A lane has seen that a phase is complete."""
    b = Builder(module, "check_met", "void", (_CONTEXT, ("warp", "i64"), ("address", "i64")))
    context, warp = b.argument("context", "ptr"), b.argument("warp", "i64")
    structure, slot = own(b, context), _slot(b, b.argument("address", "i64"))
    _raise(b, row(b, structure, WARPS, warp), row(b, structure, MEETINGS, b.add(slot, 1)))
    mine, released = (_threads(b, structure, number) for number in (warp, b.add(slot, WARP + 1)))
    for part in _parts(b, get(b, context, "warps")):
        _raise(b, b.offset(mine, part), b.offset(released, part))
    b.ret()
    b.finish()


def known_of_thread(b: Builder, structure: Value, warp: Value, thread: Value) -> Value:
    """Until when the accesses of a thread are before what a warp does, by barriers in shared memory alone."""
    known = b.variable(constant("i64", 0))
    with b.if_(b.is_("ne", own_word(b, structure, "threads"), 0)):
        b.store(b.load("i64", b.offset(_threads(b, structure, warp), b.mul(thread, 8))), known)
    return b.load("i64", known)


def pass_on_threads(b: Builder, structure: Value, warp: Value, gathered: Value) -> None:
    """At a barrier of the block, what a warp knows of one lane of another warp is passed on as if it knew it of all of them."""
    with b.if_(b.is_("ne", own_word(b, structure, "threads"), 0)):
        mine = _threads(b, structure, warp)
        for number in range(WARP):
            latest = b.reduce("umax", b.load("i64", b.offset(mine, 8 * WARP * number), WARP))
            place = b.offset(gathered, 8 * number)
            b.store(b.intrinsic("llvm.umax", b.load("i64", place), latest), place)
