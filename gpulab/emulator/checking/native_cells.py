"""The cells of the shadow: who stored a piece of memory last, and who read it since.

Of the readers since the last store two are kept, and these as far apart as can be: in two blocks, else in two warps, else two
lanes. A later store that is not ordered after all readers of a piece is then not ordered after one of the two, as long as
only barriers of the whole block and warp synchronizations of whole warps order things. Of several unordered atomics the last
is the store, and one before it is kept among the readers, marked; a plain store before an atomic is kept there too.
"""

from __future__ import annotations

from gpulab.emulator.checking.layout import (
    CELL_BYTES,
    KINDS,
    MARKED,
    OTHER_READER,
    READER,
    SILENT,
    STRENGTH_SHIFT,
    STRONG,
    TIME_SHIFT,
    WRITER,
    own_word,
    thread_of,
    time_of,
)
from gpulab.emulator.checking.native_order import fence_of, in_this_block
from gpulab.emulator.layout import WARP
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant

_PARAMETERS = (
    ("context", "ptr"),
    ("structure", "ptr"),
    ("cells", "ptr"),
    ("shift", "i64"),
    ("offset", "i64"),
    ("size", "i64"),
    ("me", "i64"),
    ("since", "i64"),
)
# Time and thread of a record: all but how and where.
_WHO_AND_WHEN = -1 << TIME_SHIFT | (1 << STRENGTH_SHIFT) - 1


def define(module: IrModule) -> None:
    """Put ``read_cells`` and ``write_cells`` into a module: they give the record of a conflicting access, or 0."""
    for name, extra, visit in (("read_cells", (), _read), ("write_cells", (("same", "i1"), ("silent", "i1")), _write)):
        b = Builder(module, name, "i64", (*_PARAMETERS, *extra), "nounwind", "internal")
        conflict = b.variable(constant("i64", 0))
        for cell in _each(b, *(b.argument(n, t) for n, t in _PARAMETERS[2:6])):
            visit(b, cell, conflict)
        b.ret(b.load("i64", conflict))
        b.finish()


def _each(b: Builder, cells: Value, shift: Value, offset: Value, size: Value):  # noqa: ANN202
    index = b.variable(b.binary("lshr", offset, shift))
    end = b.binary("lshr", b.sub(b.add(offset, size), 1), shift)
    with b.loop() as leave:
        now = b.load("i64", index)
        b.go_if(b.compare("ugt", now, end), leave)
        b.store(b.add(now, 1), index)
        yield b.offset(cells, b.mul(now, CELL_BYTES))


def any_stored(b: Builder, cells: Value, shift: Value, offset: Value, size: Value, since: Value) -> Value:
    """Whether any piece was stored since a time."""
    some = b.variable(constant("i1", 0))
    for cell in _each(b, cells, shift, offset, size):
        stored = b.compare("uge", time_of(b, b.load("i64", b.offset(cell, WRITER))), since)
        b.store(b.or_(b.load("i1", some), stored), some)
    return b.load("i1", some)


def _live(b: Builder, record: Value) -> Value:
    """Whether a record counts and its access is not before this one."""
    context, structure = b.argument("context", "ptr"), b.argument("structure", "ptr")
    live = b.variable(constant("i1", 0))
    with b.if_(b.compare("uge", time_of(b, record), b.argument("since", "i64"))):
        before = b.call("ordered", "i1", context, structure, record, b.argument("me", "i64"))
        b.store(b.not_(before), live)
    return b.load("i1", live)


def _strength(b: Builder, record: Value) -> Value:
    return b.and_(b.lshr(record, STRENGTH_SHIFT), 3)


def _conflicts(b: Builder, record: Value, live: Value) -> Value:
    """Whether it is a race: not if both are atomic, or the one is and the other volatile."""
    both = b.add(_strength(b, record), _strength(b, b.argument("me", "i64")))
    return b.and_(live, b.is_("ule", both, STRONG))


def _keep_first(b: Builder, conflict: Value, found: Value, record: Value) -> None:
    first = b.and_(found, b.is_("eq", b.load("i64", conflict), 0))
    b.store(b.select(first, record, b.load("i64", conflict)), conflict)


def _read(b: Builder, cell: Value, conflict: Value) -> None:
    """A load: is it after the last store? And keep it as a reader, if it adds something."""
    me = b.argument("me", "i64")
    writer = b.load("i64", b.offset(cell, WRITER))
    _keep_first(b, conflict, _conflicts(b, writer, _live(b, writer)), writer)
    last, other = b.load("i64", b.offset(cell, READER)), b.load("i64", b.offset(cell, OTHER_READER))
    marked = b.and_(_live(b, last), b.and_(b.is_("eq", _strength(b, last), MARKED), b.is_("eq", _strength(b, me), 0)))
    _keep_first(b, conflict, marked, last)
    again = b.is_("eq", b.and_(b.xor(last, me), _WHO_AND_WHEN), 0)
    done = b.fresh("kept")
    b.go_if(again, done)
    last_lives, other_lives = _live(b, last), _live(b, other)
    both = b.and_(last_lives, other_lives)
    b.go_if(b.and_(both, _apart(b, last, other)), done)
    kept = b.select(last_lives, last, b.select(other_lives, other, constant("i64", 0)))
    b.store(me, b.offset(cell, READER))
    b.store(kept, b.offset(cell, OTHER_READER))
    b.br(done)
    b.label(done)


def _apart(b: Builder, one: Value, two: Value) -> Value:
    """Whether two records are of different warps or blocks."""
    warps = b.is_("ne", b.and_(b.xor(one, two), (1 << STRENGTH_SHIFT) - WARP), 0)
    begin = own_word(b, b.argument("structure", "ptr"), "begin")
    blocks = (b.compare("uge", time_of(b, record), begin) for record in (one, two))
    return b.or_(warps, b.xor(*blocks))


def _write(b: Builder, cell: Value, conflict: Value) -> None:
    """A store or an atomic: is it after the last store, unless that stored the same, and after all readers?

    One that changes nothing does no harm to readers, who get the same value with and without it: it keeps an earlier
    store in its place, and is entered as silent where there is none, for a store of something else after it.
    """
    me = b.argument("me", "i64")
    writer = b.load("i64", b.offset(cell, WRITER))
    differs = b.not_(b.argument("same", "i1"))
    loud = b.and_(writer, ~(SILENT << STRENGTH_SHIFT))
    was_silent = b.is_("eq", _strength(b, writer), SILENT)
    judged_as = b.select(was_silent, loud, writer)
    live = b.and_(differs, _live(b, writer))
    _keep_first(b, conflict, _conflicts(b, judged_as, live), writer)
    for place in (READER, OTHER_READER):
        reader = b.load("i64", b.offset(cell, place))
        strong = b.and_(reader, ~(1 << STRENGTH_SHIFT))
        known = b.select(b.is_("eq", _strength(b, reader), MARKED), strong, reader)
        _keep_first(b, conflict, _conflicts(b, known, _live(b, reader)), reader)
    # An atomic one is entered as what it is, for others like it are no race.
    atomic, nothing = b.is_("eq", _strength(b, me), STRONG), constant("i64", 0)
    silent = b.and_(b.argument("silent", "i1"), b.not_(atomic))
    is_new = b.or_(was_silent, b.compare("ult", time_of(b, writer), b.argument("since", "i64")))
    quietly = b.select(is_new, b.or_(me, SILENT << STRENGTH_SHIFT), writer)
    b.store(b.select(silent, quietly, me), b.offset(cell, WRITER))
    first, second = (b.load("i64", b.offset(cell, place)) for place in (READER, OTHER_READER))
    kept, both = _beside_atomic(b, writer, live, first, second)
    for place, after_atomic, before in ((READER, kept, first), (OTHER_READER, both, second)):
        b.store(b.select(silent, before, b.select(atomic, after_atomic, nothing)), b.offset(cell, place))


def _beside_atomic(b: Builder, writer: Value, live: Value, first: Value, second: Value) -> tuple[Value, Value]:
    """The two readers to keep when an atomic becomes the writer.

    For another atomic the one before is no race, so that it tells nothing of what came earlier: those that read before, and
    a plain store, are kept for it, and so is an unordered atomic, for a plain access.
    """
    is_atomic = b.is_("eq", _strength(b, writer), STRONG)
    unordered = b.and_(is_atomic, live)
    is_plain = b.is_("eq", _strength(b, writer), 0)
    plain = b.and_(is_plain, b.compare("uge", time_of(b, writer), b.argument("since", "i64")))
    earlier = b.select(unordered, b.or_(writer, MARKED << STRENGTH_SHIFT), writer)
    new = b.or_(unordered, plain)
    # A reader that is no longer of interest makes room.
    rest = b.select(_live(b, first), first, second)
    return b.select(new, earlier, first), b.select(new, rest, second)


def judged(b: Builder, context: Value, structure: Value, record: Value, me: Value) -> tuple[Value, Value]:
    """What kind of race two accesses make, and whether both are of this block."""
    here = in_this_block(b, context, structure, record)
    one_warp = b.compare("eq", b.lshr(thread_of(b, record), 5), b.lshr(thread_of(b, me), 5))
    codes = {name: constant("i64", KINDS[name]) for name in KINDS}
    inside = b.select(one_warp, codes["race in a warp"], codes["race in a block"])
    kind = b.select(here, inside, codes["race between blocks"])
    # The other executed a fence since, and this block has read a flag after the access: they may well be ordered. An
    # atomic is a flag itself: of the last block to count, say, that sets the counter back.
    fence, time = fence_of(b, structure, record, me, here), time_of(b, record)
    counts = b.and_(b.is_("uge", _strength(b, record), STRONG), b.is_("ne", fence, 0))
    published = b.or_(b.compare("uge", fence, time), counts)
    observed = b.compare("ugt", own_word(b, structure, "observed"), time)
    kind = b.select(b.and_(published, observed), codes["ordered by flags"], kind)
    return kind, b.resize(here, "i64")
