"""Native counting of local memory, which hardware interleaves by lane in words of four bytes."""

from __future__ import annotations

from gpulab.emulator.layout import WARP
from gpulab.emulator.llvm.ir import Builder, Value, constant, constants, lane_numbers
from gpulab.emulator.native.touch import add_words, increment, peel


def count_local(b: Builder, offsets: Value, addresses: Value, mask: Value, counters: Value, info: Value) -> None:
    """Count a request with these offsets and return from the function."""
    size = b.and_(info, 255)
    sectors, lines = b.variable(constant("i64", 0)), b.variable(constant("i64", 0))
    asked = b.mul(b.resize(b.popcount(mask), "i64"), size)
    b.store(_local_sectors(b, offsets, mask, size, sectors, lines), addresses)
    packed = b.variable(
        b.call("wavefronts", "i64", addresses, mask, b.intrinsic("llvm.umin", size, constant("i64", 4)))
    )
    with b.if_(b.is_("ugt", size, 4)):
        b.store(_local_wavefronts(b, addresses, mask, size), packed)
    packed = b.load("i64", packed)
    add_words(
        b, counters, constant("i64", 1), asked, b.load("i64", sectors), b.lshr(b.add(asked, 31), 5), b.load("i64", lines),
        b.lshr(packed, 8), b.and_(packed, 255), constant("i64", 0),
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
        with peel(b, b.or_(b.shl(row, 2), lane_sector), mask):
            increment(b, sectors)
        # Rows of an aligned vector don't overlap those of its other words unless they are equal for all of them.
        with peel(b, row, mask):
            increment(b, lines)
    return b.add(b.shl(rows, 7), b.mul(lane_numbers("i64", WARP), 4))


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
        increment(b, total, b.load("i64", most))
        increment(b, ideal, b.resize(b.is_("ne", inside, 0), "i64"))
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
        increment(b, count)
        bank = b.offset(filled, b.and_(word, 31))
        depth = b.add(b.load("i8", bank), 1)
        b.store(depth, bank)
        b.store(b.intrinsic("llvm.umax", b.load("i64", most), b.resize(depth, "i64")), most)
