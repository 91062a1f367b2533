"""The table of what was found: one entry for each kind, instruction and (of races) other instruction.

``note(context, kind, site, other, thread, address, record, same_block)`` counts a finding. An entry keeps the first
example, and counts each thread of a block once.
"""

from __future__ import annotations

from gpulab.emulator.checking.layout import (
    ENTRIES,
    ENTRY,
    ENTRY_THREADS,
    ENTRY_WORDS,
    FROM_LANE_SHIFT,
    KEY_OTHER_SHIFT,
    KEY_SITE_SHIFT,
    KINDS,
    ORIGIN_SITE,
    ledger_place,
    ledger_word,
    own,
    own_word,
)
from gpulab.emulator.layout import WARP, get
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant
from gpulab.emulator.native.touch import increment

_EXAMPLE = ("thread", "address", "record", "same_block")
_PARAMETERS = (("context", "ptr"), *((name, "i64") for name in ("kind", "site", "other", *_EXAMPLE)))


def define(module: IrModule) -> None:
    """Put ``note`` into a module."""
    b = Builder(module, "note", "void", _PARAMETERS, "nounwind noinline", "internal")
    context = b.argument("context", "ptr")
    kind, site, other = (b.argument(name, "i64") for name in ("kind", "site", "other"))
    structure = own(b, context)
    key = b.or_(b.or_(kind, b.shl(site, KEY_SITE_SHIFT)), b.shl(other, KEY_OTHER_SHIFT))
    entry = _find(b, structure, key)
    with b.if_(b.is_("eq", b.load("i64", _word(b, entry, "key")), 0)):
        b.store(key, _word(b, entry, "key"))
        b.store(get(b, context, "block"), _word(b, entry, "block"))
        for name in _EXAMPLE:
            b.store(b.argument(name, "i64"), _word(b, entry, name))
    _count_thread(b, entry, own_word(b, structure, "begin"), b.argument("thread", "i64"))
    b.ret()
    b.finish()


def define_overflow(module: IrModule) -> tuple[str, ...]:
    """``check_overflow(context, lanes, access, arithmetic)``: lanes access memory at an index that wrapped around."""
    parameters = (("context", "ptr"), ("lanes", "i32"), ("access", "i64"), ("arithmetic", "i64"))
    b = Builder(module, "check_overflow", "void", parameters)
    context, zero = b.argument("context", "ptr"), constant("i64", 0)
    first = b.mul(get(b, context, "warp"), WARP)
    kind, sites = constant("i64", KINDS["overflow"]), [b.argument(name, "i64") for name in ("access", "arithmetic")]
    with b.bits(b.argument("lanes", "i32")) as lane:
        b.call("note", None, context, kind, *sites, b.add(first, b.resize(lane, "i64")), zero, zero, zero)
    b.ret()
    b.finish()
    return ("check_overflow",)


def define_undefined(module: IrModule) -> tuple[str, ...]:
    """``check_undefined(context, origins, lanes, site)``: lanes use values, of which those with an origin are undefined."""
    parameters = (("context", "ptr"), ("origins", "ptr"), ("lanes", "i32"), ("site", "i64"))
    b = Builder(module, "check_undefined", "void", parameters)
    context, zero = b.argument("context", "ptr"), constant("i64", 0)
    first, kind = b.mul(get(b, context, "warp"), WARP), constant("i64", KINDS["undefined lane"])
    origins = b.load("i32", b.argument("origins", "ptr"), WARP)
    found = b.and_(b.argument("lanes", "i32"), b.mask_word(b.is_("ne", origins, 0)))
    with b.bits(found) as lane:
        wide = b.resize(lane, "i64")
        origin = b.resize(b.load("i32", b.offset(b.argument("origins", "ptr"), b.mul(wide, 4))), "i64")
        site = b.sub(b.and_(origin, ORIGIN_SITE), 1)
        where = b.lshr(origin, FROM_LANE_SHIFT)
        b.call("note", None, context, kind, site, b.argument("site", "i64"), b.add(first, wide), where, zero, zero)
    b.ret()
    b.finish()
    return ("check_undefined",)


def _word(b: Builder, entry: Value, name: str) -> Value:
    return b.offset(entry, 8 * ENTRY[name])


def _find(b: Builder, structure: Value, key: Value) -> Value:
    """The entry of a key, or a new one; leaves the function if the table is full."""
    entries, count = ledger_word(b, structure, "entries", "ptr"), ledger_word(b, structure, "entry_count")
    index, found = b.variable(constant("i64", 0)), b.fresh("found")
    with b.loop() as leave:
        now = b.load("i64", index)
        b.go_if(b.compare("uge", now, count), leave)
        there = b.load("i64", b.offset(entries, b.mul(now, 8 * ENTRY_WORDS)))
        b.go_if(b.compare("eq", there, key), found)
        b.store(b.add(now, 1), index)
    with b.if_(b.is_("uge", count, ENTRIES)):
        increment(b, ledger_place(b, structure, "entries_lost"))
        b.ret()
        b.label(b.fresh("dead"))
    b.store(b.add(count, 1), ledger_place(b, structure, "entry_count"))
    b.br(found)
    b.label(found)
    return b.offset(entries, b.mul(b.load("i64", index), 8 * ENTRY_WORDS))


def _count_thread(b: Builder, entry: Value, run: Value, thread: Value) -> None:
    """Count a thread, unless it was counted in this block already."""
    with b.if_(b.compare("ne", b.load("i64", _word(b, entry, "last_run")), run)):
        b.store(run, _word(b, entry, "last_run"))
        b.store(constant("i64", 0, 16), b.offset(entry, 8 * ENTRY_THREADS))
    place = b.offset(entry, b.add(b.mul(b.lshr(thread, 6), 8), 8 * ENTRY_THREADS))
    seen, bit = b.load("i64", place), b.shl(constant("i64", 1), b.and_(thread, 63))
    b.store(b.or_(seen, bit), place)
    new = b.is_("eq", b.and_(seen, bit), 0)
    increment(b, _word(b, entry, "count"), b.resize(new, "i64"))
