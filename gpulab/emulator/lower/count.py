"""Counting of memory requests: which native helper counts an access, by what is known of its addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gpulab.emulator import layout
from gpulab.emulator.llvm.ir import Value, constant, constants
from gpulab.emulator.lower.values import Affine, State
from gpulab.emulator.native import touch as native_touch
from gpulab.models.access import BANK_BYTES, LINE_BYTES, SECTOR_BYTES, sectors_ideal, wavefronts, wavefronts_ideal

if TYPE_CHECKING:
    from gpulab.emulator.lower.access import Access

_COUNTED = ("global", "shared", "local", "generic")


def count_request(state: State, access: Access) -> None:
    """Add what a request costs to the counters of its instruction; its lanes have passed the fault checks."""
    if not state.count or access.space not in _COUNTED:
        return
    b = state.b
    counters = _counters(state, access)
    scalar = isinstance(access.address, Value) and access.address.lanes == 1
    flat = access.space in ("global", "shared") and not state.plan.general
    if flat and access.space == "global" and scalar:
        _count_uniform(state, access, counters)
    elif flat and (scalar or isinstance(access.address, Affine)):
        address = access.address if isinstance(access.address, Affine) else Affine(access.address, (0, 0))
        known = all(isinstance(stride, int) for stride in address.strides) and access.size >= BANK_BYTES
        if access.space == "shared" and (known or _never_conflicts(state, address, access.size)):
            _count_shared(state, access, address, counters)
        elif access.space == "global" and _is_contiguous(state, address, access.size):
            _count_contiguous(state, access, address, counters)
        elif access.space == "global" and _dense_bytes(state, access, address):
            _count_dense(state, access, address, counters)
        elif access.space == "global" and _is_two_rows(state, access, address):
            _count_two_rows(state, access, address, counters)
        else:
            _count_by_memo(state, access, address, counters)
    else:
        addresses = state.buffers["addresses"]
        b.store(state.vector(access.address), addresses, align=64)
        info = access.info(state.index)
        _ask(state, access, f"count_{access.space}", addresses, access.on, counters, info)


def _ask(state: State, access: Access, helper: str, *arguments: Value, result: str | None = None) -> Value:
    """Call a native helper, which may record when the request came: how many instructions the warp executed before."""
    b = state.b
    if access.space in ("global", "generic"):
        behind = state.block.stop - state.index
        layout.put(b, state.context, "time", b.sub(b.load("i64", state.executed), behind))
    return b.call(helper, result, state.context, *arguments)


def _is_contiguous(state: State, address: Affine, size: int) -> bool:
    if address.strides[0] != size:
        return False
    width = state.plan.block_shape.width
    return width == 32 or address.strides[1] == width * size


def _never_conflicts(state: State, address: Affine, size: int) -> bool:
    """Whether a full warp's lanes are neighbors or all access one place."""
    same = address.strides[0] == 0 and (state.plan.block_shape.width == 32 or address.strides[1] == 0)
    return same or _is_contiguous(state, address, size)


def _unless(state: State, usual: Value, count: Callable[[], None], rare: Callable[[], None]) -> None:
    """Do `count` for a usual request, or else `rare`."""
    b = state.b
    yes, no, done = b.fresh("usual"), b.fresh("rare"), b.fresh("counted")
    b.cond(usual, yes, no)
    b.label(yes)
    count()
    b.br(done)
    b.label(no)
    rare()
    b.br(done)
    b.label(done)


def _is_full(state: State, access: Access) -> Value:
    return state.b.is_("eq", access.on, -1)


def _count_word(state: State, counters: Value, word: int) -> None:
    """Count one of the usual requests in a word of its own (`native_count.expand`)."""
    native_touch.increment(state.b, state.b.offset(counters, 8 * word))


def _count_words(state: State, counters: Value, words: Value) -> None:
    b = state.b
    b.store(b.add(b.load("i64", counters, len(native_touch.WORDS), align=64), words), counters, align=64)


def _count_shared(state: State, access: Access, address: Affine, counters: Value) -> None:
    """Shared memory: with known strides, the requests of full warps cost all the same."""
    word = native_touch.UNIFORM if address.strides[0] == 0 else native_touch.ALIGNED

    def count() -> None:
        if _never_conflicts(state, address, access.size):
            _count_word(state, counters, word)
        else:
            _count_words(state, counters, constants("i64", _full_cost(state, access, address.strides, 0, 0)))

    _unless(state, _is_full(state, access), count, lambda: _count_affine(state, access, address, counters))


def _full_cost(state: State, access: Access, strides: tuple[int, int], sectors: int, lines: int) -> list[int]:
    """What a request of a full warp adds to the counters, in the order of `native_touch.WORDS`."""
    lanes, width = np.arange(layout.WARP), state.plan.block_shape.width
    first, second = strides
    offsets = lanes % width * first + lanes // width * second
    ideal = sectors_ideal(layout.WARP, access.size) if sectors else 0
    passes = wavefronts(offsets, lanes, access.size), wavefronts_ideal(lanes, access.size)
    return [1, layout.WARP * access.size, sectors, ideal, lines, *passes, 0]


def _tag(state: State, sector: Value) -> tuple[Value, Value]:
    """Where the modeled L1 has the set of a sector, and what that holds if the sector is there."""
    b = state.b
    ways = b.offset(state.constant_get("l1", "ptr"), native_touch.l1_place(b, sector))
    return ways, b.or_(sector, b.shl(state.constant_get("epoch"), native_touch.EPOCH_SHIFT))


def _count_uniform(state: State, access: Access, counters: Value) -> None:
    b = state.b
    assert isinstance(access.address, Value)

    def rare() -> None:
        _ask(state, access, "count_uniform", access.address, access.on, counters, access.info(state.index))

    if access.flags:
        rare()
        return
    hit = native_touch.l1_hit(b, *_tag(state, b.lshr(access.address, 5)))
    usual = b.and_(hit, _is_full(state, access))
    _unless(state, usual, lambda: _count_word(state, counters, native_touch.UNIFORM), rare)


def _count_contiguous(state: State, access: Access, address: Affine, counters: Value) -> None:
    b = state.b

    def whole_line() -> None:
        _touch_in_line(state, access, address.base, 4, counters)
        _count_word(state, counters, native_touch.ALIGNED)

    def contiguous() -> None:
        _ask(state, access, "count_contiguous", address.base, counters, access.info(state.index))

    def rare() -> None:
        _unless(state, full, contiguous, lambda: _count_affine(state, access, address, counters))

    full = _is_full(state, access)
    if access.size == 4:
        _unless(state, b.and_(b.is_("eq", b.and_(address.base, LINE_BYTES - 1), 0), full), whole_line, rare)
    else:
        rare()


def _touch_in_line(state: State, access: Access, base: Value, sectors: int, counters: Value) -> None:
    """Look up and mark 1, 2 or 4 sectors of a line, of which `base` is in the first; add the misses."""
    b, first = state.b, state.b.lshr(base, 5)

    def touch() -> None:
        wanted = b.shl(constant("i32", (1 << sectors) - 1), b.and_(b.resize(first, "i32"), 3))
        misses = _ask(state, access, "touch_line", b.lshr(first, 2), wanted, access.info(state.index), result="i64")
        native_touch.increment(b, b.offset(counters, 8 * native_touch.MISSES), misses)

    # What runs once for each warp seldom hits.
    if access.flags or not state.program.graph.in_loop(state.block.rank):
        touch()
        return
    with b.if_(b.not_(native_touch.l1_line_hit(b, *_tag(state, first), sectors))):
        touch()


def _dense_bytes(state: State, access: Access, address: Affine) -> int:
    """For a load whose lanes read the same short piece row by row, or one element a row: its length, else 0.

    If the piece is aligned to its length, it is a part of one sector or some whole ones of one line.
    """
    width = state.plan.block_shape.width
    shapes = {(access.size, 0): width * access.size, (0, access.size): layout.WARP // width * access.size}
    length = 0 if access.flags else shapes.get(address.strides, 0)  # type: ignore[call-overload]
    return length if length <= LINE_BYTES else 0


def _count_dense(state: State, access: Access, address: Affine, counters: Value) -> None:
    b, length = state.b, _dense_bytes(state, access, address)
    sectors = max(length // SECTOR_BYTES, 1)
    words = constants("i64", _full_cost(state, access, address.strides, sectors, 1))

    def count() -> None:
        _touch_in_line(state, access, address.base, sectors, counters)
        _count_words(state, counters, words)

    usual = b.and_(b.is_("eq", b.and_(address.base, length - 1), 0), _is_full(state, access))
    _unless(state, usual, count, lambda: _count_affine(state, access, address, counters))


def count_affine_request(state: State, access: Access, base: Value, strides: tuple[Value, Value], width: int) -> None:
    """Count a request whose addresses are affine in the lane, with a width of its own (see `shapes`)."""
    if state.count:
        _count_by_memo(state, access, Affine(base, strides), _counters(state, access), width)


def _counters(state: State, access: Access) -> Value:
    """The raw counters of an access."""
    row = state.index if access.row is None else access.row
    return state.b.offset(state.constant_get("memory_counters", "ptr"), native_touch.WORD_BYTES * row)


def _is_two_rows(state: State, access: Access, address: Affine) -> bool:
    """Whether the lanes are two rows of neighbors that fill half a line or a whole one."""
    width = state.plan.block_shape.width
    length = width * access.size
    return 2 * width == layout.WARP and address.strides[0] == access.size and length in (LINE_BYTES // 2, LINE_BYTES)


def _count_two_rows(state: State, access: Access, address: Affine, counters: Value) -> None:
    """Rows that are aligned to their length, in two lines with places of their own in the L1."""
    b, length, second = state.b, state.plan.block_shape.width * access.size, address.strides[1]
    stride = constant("i64", second) if isinstance(second, int) else second
    rows, sectors = (address.base, b.add(address.base, stride)), length // SECTOR_BYTES
    # Which banks the second row is in, seen from the first.
    same, other = (
        constants("i64", _full_cost(state, access, (access.size, LINE_BYTES + shift), 2 * sectors, 2))
        for shift in (0, LINE_BYTES // 2)
    )

    def count() -> None:
        for row in rows:
            _touch_in_line(state, access, row, sectors, counters)
        is_same = b.is_("eq", b.and_(stride, LINE_BYTES - 1), 0)
        _count_words(state, counters, b.select(is_same, same, other))

    lines = [b.and_(native_touch.l1_place(b, b.lshr(row, 5)), -LINE_BYTES) for row in rows]
    aligned = b.is_("eq", b.and_(b.or_(address.base, stride), length - 1), 0)
    usual = b.and_(b.and_(aligned, b.compare("ne", *lines)), _is_full(state, access))
    _unless(state, usual, count, lambda: _count_affine(state, access, address, counters))


def _count_affine(state: State, access: Access, address: Affine, counters: Value, lanes: int = 0) -> None:
    b, info = state.b, access.info(state.index)
    s0, s1 = (constant("i64", s) if isinstance(s, int) else s for s in address.strides)
    width = constant("i64", lanes or state.plan.block_shape.width)
    flagged = b.or_(info, layout.SHARED) if access.space == "shared" else info
    _ask(state, access, "count_affine", address.base, s0, s1, width, access.on, counters, flagged)


def _count_by_memo(state: State, access: Access, address: Affine, counters: Value, lanes: int = 0) -> None:
    """Add the answer of a memo, if it is for a request like this one."""
    b, info = state.b, access.info(state.index)
    s0, s1 = (constant("i64", s) if isinstance(s, int) else s for s in address.strides)
    width = constant("i64", lanes or state.plan.block_shape.width)
    memo, key = native_touch.memo_key(b, state.context, (address.base, s0, s1), width, access.on, info, access.space)
    differs = constant("i64", 0)
    for number, word in enumerate(key):
        differs = b.or_(differs, b.xor(word, b.load("i64", b.offset(memo, 8 * number))))
    _unless(
        state,
        b.is_("eq", differs, 0),
        lambda: _count_words(state, counters, b.load("i64", b.offset(memo, native_touch.MEMO_ANSWER), 8, align=64)),
        lambda: _count_affine(state, access, address, counters, lanes),
    )
