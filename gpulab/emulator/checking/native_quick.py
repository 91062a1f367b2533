"""The usual cases of an access, settled for all lanes at once.

A load that is in order behind the last store enters itself as a reader, as `native_cells` would have it lane by lane, and
changes nothing where two readers far apart are known already. Stores to different places that nothing unordered touched
enter themselves as writers. What else may be the case is left to the lane-by-lane way.
"""

from __future__ import annotations

from gpulab.emulator.checking.layout import (
    CELL_BYTES,
    MARKED,
    OTHER_READER,
    READER,
    SHADOW_ROW_BYTES,
    SILENT,
    STRENGTH_SHIFT,
    TIME_SHIFT,
    WRITER,
    ledger_word,
    own_word,
    thread_of,
    time_of,
)
from gpulab.emulator.checking.native_visit import Visit
from gpulab.emulator.layout import WARP, get
from gpulab.emulator.llvm.ir import Builder, Value, constant, lane_numbers
from gpulab.emulator.memory import WINDOW_BITS
from gpulab.emulator.native.address import room_for, row_field, window_row


def settle(visit: Visit) -> Value:
    """Settle what is usual; the mask of the lanes that remain to be looked at one by one."""
    b, done = visit.b, visit.b.fresh("settled")
    mask, hosts = b.argument("mask", "i32"), b.argument("hosts", "ptr")
    left = b.variable(mask)
    addresses = b.load("i64", b.argument("addresses", "ptr"), WARP)
    begin, floor = own_word(b, visit.structure, "begin"), own_word(b, visit.structure, "floor")
    together = b.compare("eq", begin, ledger_word(b, visit.structure, "segment_start"))
    copies = b.is_("ne", own_word(b, visit.structure, "copies"), 0)
    b.go_if(b.or_(b.or_(visit.atomic, copies), b.not_(together)), done)
    after = b.shuffle(addresses, addresses, [*range(1, WARP), WARP - 1])
    rising = b.or_(b.mask_word(b.compare("ugt", after, addresses)), constant("i32", 1 << 31))
    # Lanes that store to one place must come one after another.
    b.go_if(b.and_(visit.stores, b.is_("ne", b.and_(rising, mask), -1)), done)
    offsets, room, delta, cells, shift = _window(visit, addresses, mask, done)
    rest = b.sub(room, visit.size)
    fits = b.and_(b.compare("ule", offsets, rest), b.is_("eq", b.and_(addresses, b.sub(visit.size, 1)), 0))
    good = b.and_(b.is_("sge", rest, 0), b.is_("eq", b.and_(mask, b.not_(b.mask_word(fits))), 0))
    b.go_if(b.not_(good), done)
    b.store(b.add(addresses, delta), hosts)
    first = b.mul(b.binary("lshr", offsets, shift), CELL_BYTES)
    case = _Case(visit, mask, _records(visit), begin, floor)
    none = constant("i32", 0)
    silent = b.select(visit.strong, none, _silent(visit)) if visit.space == "global" else none
    unusual = b.variable(constant("i32", 0))
    for places in _each_piece(b, cells, first, b.binary("lshr", visit.size, shift)):
        loads, looked = b.fresh("loads"), b.fresh("looked")
        b.go_if(b.not_(visit.stores), loads)
        b.store(b.or_(b.load("i32", unusual), case.store(places, silent)), unusual)
        b.br(looked)
        b.label(loads)
        b.store(b.or_(b.load("i32", unusual), case.load(places)), unusual)
        b.br(looked)
        b.label(looked)
    b.store(b.load("i32", unusual), left)
    b.br(done)
    b.label(done)
    return b.load("i32", left)


def _window(visit: Visit, addresses: Value, mask: Value, slow: str) -> tuple[Value, Value, Value, Value, Value]:
    """Offsets, size of the object, distance to host addresses, cells, and log2 of the bytes of a cell."""
    b, structure = visit.b, visit.structure
    if visit.space == "shared":
        return (
            addresses,
            get(b, visit.context, "shared_bytes"),
            get(b, visit.context, "shared"),
            own_word(b, structure, "shared_cells", "ptr"),
            own_word(b, structure, "shared_shift"),
        )
    lane = b.count_trailing_zeros(b.or_(mask, constant("i32", 1 << 31)))
    address = b.extract(addresses, lane)
    row = window_row(b, visit.context, address)
    room = room_for(b, row, visit.info)
    b.go_if(b.is_("slt", room, 0), slow)
    shadows = ledger_word(b, structure, "shadows", "ptr")
    shadow = b.offset(shadows, b.mul(b.lshr(address, WINDOW_BITS), SHADOW_ROW_BYTES))
    cells, flags = b.load("i64", shadow), b.load("i64", b.offset(shadow, 8))
    b.go_if(b.or_(b.is_("eq", cells, 0), b.is_("ne", flags, 0)), slow)
    offsets = b.sub(addresses, row_field(b, row, "base"))
    pointer = b.cast("inttoptr", cells, "ptr")
    return offsets, room, row_field(b, row, "delta"), pointer, own_word(b, structure, "global_shift")


def _silent(visit: Visit) -> Value:
    """Lanes of a store of four or eight bytes each that store what is there; none of others, whose lanes change things."""
    b, found = visit.b, visit.b.variable(constant("i32", 0))
    stored, hosts = b.argument("stored", "ptr"), b.argument("hosts", "ptr")
    given = b.is_("ne", b.cast("ptrtoint", stored, "i64"), 0)
    for element, size in (("i32", 4), ("i64", 8)):
        fits = b.and_(b.is_("eq", visit.size, size), b.is_("eq", b.argument("step", "i64"), size))
        with b.if_(b.and_(given, fits)):
            pointers = b.cast("inttoptr", b.load("i64", hosts, WARP), "ptr")
            kind, name = f"<32 x {element}>", f"llvm.masked.gather.v32{element}.v32p0"
            b.declare(name, kind, f"<32 x ptr>, <32 x i1>, {kind}")
            on = b.mask_vector(b.argument("mask", "i32"))
            text = f"call {kind} @{name}(<32 x ptr> align {size} {pointers.text}, {on.ir}, {kind} zeroinitializer)"
            old = b.assign(element, WARP, text)
            b.store(b.mask_word(b.compare("eq", old, b.load(element, stored, WARP))), found)
    return b.load("i32", found)


def _records(visit: Visit) -> Value:
    """The records of all lanes."""
    b = visit.b
    now = b.shl(ledger_word(b, visit.structure, "time"), TIME_SHIFT)
    return b.or_(b.or_(visit.who, now), b.add(visit.first, lane_numbers("i64", WARP)))


def _each_piece(b: Builder, cells: Value, first: Value, pieces: Value):  # noqa: ANN202
    number = b.variable(constant("i64", 0))
    with b.loop() as leave:
        now = b.load("i64", number)
        b.go_if(b.compare("uge", now, pieces), leave)
        b.store(b.add(now, 1), number)
        offsets = b.add(first, b.mul(now, CELL_BYTES))
        yield b.assign("ptr", WARP, f"getelementptr i8, {cells.ir}, {offsets.ir}")


class _Case:
    """Vectors of cells, one for each lane."""

    def __init__(self, visit: Visit, mask: Value, me: Value, begin: Value, floor: Value) -> None:
        self.visit, self.b, self.mask, self.me = visit, visit.b, mask, me
        self.begin, self.span = begin, self.b.sub(floor, begin)
        # Of shared memory, what is older than the block does not count; of global memory it is another block's.
        grid = ledger_word(self.b, visit.structure, "grid_floor")
        self.ended = self.b.sub(begin, 1) if visit.space == "shared" else grid

    def load(self, places: Value) -> Value:
        """Enter the lanes as readers; the lanes left are those that are not in order behind the last store."""
        b = self.b
        records = self._gather(places)
        (stored, _, behind), (_, one_live, _), (_, two_live, _) = map(self._state, records)
        if self.visit.space == "shared":
            behind = b.and_(behind, stored)
        _, reader, other = records
        marked = b.is_("eq", b.and_(b.lshr(reader, STRENGTH_SHIFT), MARKED), MARKED)
        behind = b.and_(behind, b.not_(b.and_(marked, one_live)))
        warps = b.is_("ne", b.and_(b.xor(reader, other), (1 << STRENGTH_SHIFT) - WARP), 0)
        begins = (b.compare("uge", time_of(b, record), b.widen(self.begin)) for record in (reader, other))
        known = b.and_(b.and_(one_live, two_live), b.or_(warps, b.xor(*begins)))
        fine = b.and_(self.mask, b.mask_word(behind))
        entered = b.and_(fine, b.not_(b.mask_word(known)))
        with b.if_(b.is_("ne", entered, 0)):
            # Of lanes that read one place the highest is the last reader, and the lowest the other one.
            kept = b.select(one_live, reader, b.select(two_live, other, self.me))
            self._scatter(self.me, places, READER, entered)
            backward = list(range(WARP - 1, -1, -1))
            turned = b.assign("ptr", WARP, f"shufflevector {places.ir}, {places.ir}, {_order(backward)}")
            lanes = b.intrinsic("llvm.bitreverse", entered)
            self._scatter(b.shuffle(kept, kept, backward), turned, OTHER_READER, lanes)
        return b.and_(self.mask, b.not_(fine))

    def store(self, places: Value, silent: Value) -> Value:
        """Enter the lanes as writers, as `native_cells` does; the lanes left are those that something is not in order with."""
        b = self.b
        calm, records = constant("i1", 1), self._gather(places)
        for record in records:
            calm = b.and_(calm, b.not_(self._state(record)[1]))
        settled = b.and_(self.mask, b.mask_word(calm))
        entered = b.and_(settled, b.not_(silent))
        first = b.and_(b.and_(settled, silent), b.not_(b.mask_word(self._state(records[0])[0])))
        self._scatter(b.or_(self.me, SILENT << STRENGTH_SHIFT), places, WRITER, first)
        self._scatter(self.me, places, WRITER, entered)
        for offset in (READER, OTHER_READER):
            self._scatter(constant("i64", 0), places, offset, entered)
        return b.and_(self.mask, b.not_(settled))

    def _state(self, record: Value) -> tuple[Value, Value, Value]:
        """Of records: which count, which of these are not in order by barriers of the block, and which are in order."""
        b, time = self.b, time_of(self.b, record)
        counts = b.compare("ugt", time, self.ended)
        passed = b.compare("ule", b.sub(time, self.begin), self.span)
        mine = b.and_(b.is_("eq", thread_of(b, b.xor(record, self.me)), 0), b.compare("uge", time, b.widen(self.begin)))
        live = b.and_(counts, b.not_(b.or_(passed, mine)))
        return counts, live, b.not_(live)

    def _gather(self, places: Value) -> list[Value]:
        """The records of writer, reader and other reader."""
        b, name = self.b, "llvm.masked.gather.v32i64.v32p0"
        b.declare(name, "<32 x i64>", "<32 x ptr>, <32 x i1>, <32 x i64>")
        on, found = b.mask_vector(self.mask), []
        for offset in (WRITER, READER, OTHER_READER):
            moved = self._moved(places, offset)
            text = f"call <32 x i64> @{name}(<32 x ptr> align 8 {moved.text}, {on.ir}, <32 x i64> zeroinitializer)"
            found.append(b.assign("i64", WARP, text))
        return found

    def _scatter(self, value: Value, places: Value, offset: int, lanes: Value) -> None:
        b, name, moved = self.b, "llvm.masked.scatter.v32i64.v32p0", self._moved(places, offset)
        b.declare(name, "void", "<32 x i64>, <32 x ptr>, <32 x i1>")
        b.emit(f"call void @{name}({b.widen(value).ir}, <32 x ptr> align 8 {moved.text}, {b.mask_vector(lanes).ir})")

    def _moved(self, places: Value, offset: int) -> Value:
        return self.b.assign("ptr", WARP, f"getelementptr i8, {places.ir}, i64 {offset}") if offset else places


def _order(lanes: list[int]) -> str:
    return f"<{WARP} x i32> <" + ", ".join(f"i32 {lane}" for lane in lanes) + ">"
