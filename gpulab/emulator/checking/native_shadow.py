"""The shadow of memory: bounds, undefined bytes and races, for each lane of an access.

``check_SPACE(context, addresses, hosts, stored, mask, info)`` reads 32 virtual addresses and writes 32 host addresses. A lane
whose access is faulty gets the address of memory that has no meaning, zeroed, so that a load gives 0 and a store is lost.
`stored` points to the values that a plain store is about to put there (element by element, 32 lanes each), or is null: two
threads that store the same value unordered do no harm.
"""

from __future__ import annotations

from gpulab.emulator.checking import native_cells, native_quick
from gpulab.emulator.checking.layout import (
    GIVEN_BACK,
    IN_NO_PIECE,
    KINDS,
    SHADOW_ROW_BYTES,
    STORED,
    TIME_SHIFT,
    ledger_word,
    own_word,
)
from gpulab.emulator.checking.native_extent import left_out
from gpulab.emulator.checking.native_order import arrive_at_grid, take_turn
from gpulab.emulator.checking.native_visit import Visit
from gpulab.emulator.layout import WARP, get
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant
from gpulab.emulator.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS
from gpulab.emulator.native.address import SPACES, place_of

_PARAMETERS = (
    ("context", "ptr"),
    ("addresses", "ptr"),
    ("hosts", "ptr"),
    ("stored", "ptr"),
    ("step", "i64"),
    ("mask", "i32"),
    ("info", "i64"),
)


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns their names."""
    native_cells.define(module)
    for space in SPACES:
        _define(module, space)
    return tuple(f"check_{space}" for space in SPACES)


def _define(module: IrModule, space: str) -> None:
    b = Builder(module, f"check_{space}", "void", _PARAMETERS)
    visit = Visit(b, space)
    with b.if_(b.compare("ne", ledger_word(b, visit.structure, "running", "ptr"), visit.structure)):
        take_turn(b, visit.context, visit.structure)
    addresses, hosts = b.argument("addresses", "ptr"), b.argument("hosts", "ptr")
    mask = native_quick.settle(visit) if space in ("global", "shared") else b.argument("mask", "i32")
    with b.bits(mask) as lane:
        visit.lane = b.resize(lane, "i64")
        at = b.mul(visit.lane, 8)
        visit.address = b.load("i64", b.offset(addresses, at))
        room, visit.offset, start = place_of(b, visit.context, space, visit.address, lane, visit.info)
        visit.host = b.add(start, visit.offset)
        bad, good, done = b.fresh("bad"), b.fresh("good"), b.fresh("done")
        fits = b.and_(b.compare("ule", visit.offset, b.sub(room, visit.size)), b.compare("sge", room, visit.size))
        aligned = b.is_("eq", b.and_(visit.address, b.sub(visit.size, 1)), 0)
        b.cond(b.and_(fits, aligned), good, bad)
        b.label(bad)
        code = b.select(fits, constant("i64", KINDS["misaligned"]), constant("i64", KINDS["out-of-bounds"]))
        visit.note(code)
        left_out(b, visit.structure, b.offset(hosts, at))
        b.br(done)
        b.label(good)
        b.store(visit.host, b.offset(hosts, at))
        _look(visit)
        if space in ("global", "generic"):
            with b.if_(
                b.and_(visit.atomic, b.compare("eq", visit.address, ledger_word(b, visit.structure, "grid_barrier")))
            ):
                arrive_at_grid(b, visit.structure)
        b.br(done)
        b.label(done)
    b.ret()
    b.finish()


def _look(visit: Visit) -> None:
    """Look at the shadow of the place that a lane accesses, whose window a generic address names."""
    b = visit.b
    looks = {"shared": _look_shared, "local": _look_local, "global": _look_global}
    if visit.space in looks:
        looks[visit.space](visit)
    elif visit.space == "generic":
        window, done = b.lshr(visit.address, WINDOW_BITS), b.fresh("looked")
        for name, base in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW)):
            after = b.fresh(f"not_{name}")
            inside = b.fresh(name)
            b.cond(b.is_("eq", window, base >> WINDOW_BITS), inside, after)
            b.label(inside)
            looks[name](visit)
            b.br(done)
            b.label(after)
        _look_global(visit)
        b.br(done)
        b.label(done)


def _look_local(visit: Visit) -> None:
    """Local memory belongs to its thread: only whether it was stored before."""
    b = visit.b
    start = b.sub(visit.host, get(b, visit.context, "local"))
    _look_defined(visit, b.offset(own_word(b, visit.structure, "local_map", "ptr"), start))


def _look_defined(visit: Visit, flags: Value) -> None:
    """Whether any byte was stored before, and whether all are in pieces of the heap; a store marks them all."""
    b = visit.b
    some, index = b.variable(constant("i8", 0)), b.variable(constant("i64", 0))
    with b.loop() as leave:
        now = b.load("i64", index)
        b.go_if(b.compare("uge", now, visit.size), leave)
        b.store(b.add(now, 1), index)
        flag = b.offset(flags, now)
        known = b.load("i8", flag)
        b.store(b.or_(b.load("i8", some), known), some)
        with b.if_(visit.stores):
            b.store(b.or_(known, STORED), flag)
    found, done = b.load("i8", some), b.fresh("defined")
    for kind, bit in (("given back", GIVEN_BACK), ("between pieces", IN_NO_PIECE)):
        with b.if_(b.is_("ne", b.and_(found, bit), 0)):
            visit.note(kind)
            b.br(done)
            b.label(b.fresh("dead"))
    with b.if_(b.and_(visit.reads, b.is_("eq", b.and_(found, STORED), 0))):
        visit.note("uninitialized")
    b.br(done)
    b.label(done)


def _look_global(visit: Visit) -> None:
    b = visit.b
    rows = ledger_word(b, visit.structure, "shadows", "ptr")
    shadow = b.offset(rows, b.mul(b.lshr(visit.address, WINDOW_BITS), SHADOW_ROW_BYTES))
    flags = b.load("i64", b.offset(shadow, 8))
    with b.if_(b.is_("ne", flags, 0)):
        _look_defined(visit, b.offset(b.cast("inttoptr", flags, "ptr"), visit.offset))
    cells = b.load("i64", shadow)
    with b.if_(b.is_("ne", cells, 0)):
        pointer = b.cast("inttoptr", cells, "ptr")
        shift = own_word(b, visit.structure, "global_shift")
        _look_cells(visit, pointer, shift, constant("i64", 1), in_global=True)


def _look_shared(visit: Visit) -> None:
    b = visit.b
    cells, shift = own_word(b, visit.structure, "shared_cells", "ptr"), own_word(b, visit.structure, "shared_shift")
    begin = own_word(b, visit.structure, "begin")
    with b.if_(visit.reads):
        defined = native_cells.any_stored(b, cells, shift, visit.offset, visit.size, begin)
        with b.if_(b.not_(defined)):
            visit.note("uninitialized")
    _look_cells(visit, cells, shift, begin)


def _look_cells(visit: Visit, cells: Value, shift: Value, since: Value, in_global: bool = False) -> None:
    b = visit.b
    me = b.or_(b.or_(visit.who, visit.thread), b.shl(ledger_word(b, visit.structure, "time"), TIME_SHIFT))
    same = b.variable(constant("i1", 0))
    with b.if_(b.is_("ne", b.cast("ptrtoint", b.argument("stored", "ptr"), "i64"), 0)):
        b.store(_put(visit), same)
    arguments = (visit.context, visit.structure, cells, shift, visit.offset, visit.size, me, since)
    unchanged = b.load("i1", same)
    # In shared memory the data of a test, all ones, say, must not hide a missing barrier.
    silent = unchanged if in_global else constant("i1", 0)
    conflict = b.variable(constant("i64", 0))
    reading, writing, done = b.fresh("reading"), b.fresh("writing"), b.fresh("looked")
    b.cond(visit.stores, writing, reading)
    b.label(reading)
    b.store(b.call("read_cells", "i64", *arguments), conflict)
    b.br(done)
    b.label(writing)
    b.store(b.call("write_cells", "i64", *arguments, unchanged, silent), conflict)
    b.br(done)
    b.label(done)
    found = b.load("i64", conflict)
    with b.if_(b.is_("ne", found, 0)):
        kind, together = native_cells.judged(b, visit.context, visit.structure, found, me)
        visit.note(b.select(silent, constant("i64", KINDS["same value"]), kind), found, together)


def _put(visit: Visit) -> Value:
    """Store the lane's values (the scatter behind the check stores the same): whether they were there already."""
    b, step = visit.b, visit.b.argument("step", "i64")
    same, done = b.variable(constant("i1", 1)), b.variable(constant("i64", 0))
    with b.loop() as leave:
        at = b.load("i64", done)
        b.go_if(b.compare("uge", at, visit.size), leave)
        b.store(b.add(at, 1), done)
        element, byte = b.binary("udiv", at, step), b.binary("urem", at, step)
        lane = b.add(b.mul(element, WARP), visit.lane)
        source = b.offset(b.argument("stored", "ptr"), b.add(b.mul(lane, step), byte))
        target = b.offset(b.cast("inttoptr", visit.host, "ptr"), at)
        new, old = b.load("i8", source), b.load("i8", target)
        b.store(b.and_(b.load("i1", same), b.compare("eq", new, old)), same)
        b.store(new, target)
    return b.load("i1", same)
