"""Native helpers that count what memory requests cost.

They hold the rules of `gpulab.models.access` in one place for all compiled kernels: property tests hold them to it. A
request adds one vector of eight words to the counters of its instruction, in the order of `WORDS`.

The general way *peels*: take the first lane that is left, drop every lane in the same sector, count one, repeat. That
meets the sectors in the order in which the lanes touch them first, as the modeled L1 wants it. Accesses are aligned to
their size (the fault check has seen to it), so no access crosses a sector.
"""

from __future__ import annotations

import numpy as np

from gpulab.emulator.layout import SHARED, WARP
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, constant, constants
from gpulab.emulator.memory import LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW, WINDOW_BITS
from gpulab.emulator.native.affine import define_affine
from gpulab.emulator.native.local import count_local
from gpulab.emulator.native.touch import (
    ALIGNED,
    MISSES,
    UNIFORM,
    WORDS,
    add_misses,
    add_words,
    define_touch,
    first_lanes,
    increment,
    peel,
)

_PARAMETERS = (("context", "ptr"), ("addresses", "ptr"), ("mask", "i32"), ("counters", "ptr"), ("info", "i64"))


def define(module: IrModule) -> tuple[str, ...]:
    """Put the helpers into a module; returns their names."""
    define_touch(module)
    _define_wavefronts(module)
    _define_measure(module)
    define_affine(module)
    for space in ("global", "shared", "local"):
        _define_count(module, space)
    _define_generic(module)
    _define_contiguous(module)
    _define_uniform(module)
    kinds = ("global", "shared", "local", "generic", "contiguous", "uniform", "affine")
    return ("spread", "touch_line", *(f"count_{kind}" for kind in kinds))


def _define_wavefronts(module: IrModule) -> None:
    """``wavefronts(addresses, mask, size)``: (wavefronts << 8) | wavefronts_ideal by the bank rule."""
    b = Builder(
        module, "wavefronts", "i64", (("addresses", "ptr"), ("mask", "i32"), ("size", "i64")), "nounwind", "internal"
    )
    addresses, mask = b.argument("addresses", "ptr"), b.argument("mask", "i32")
    size = b.argument("size", "i64")
    # A unit is what one lane takes from one pass: a bank, or 2 or 4 neighbouring ones for 8- and 16-byte accesses.
    unit = b.intrinsic("llvm.umax", size, constant("i64", 4))
    shift = b.count_trailing_zeros(unit)
    group_lanes = b.intrinsic("llvm.umax", b.lshr(constant("i64", 128), shift), constant("i64", 8))
    units = b.binary("lshr", b.load("i64", addresses, WARP), b.widen(shift))
    total, ideal, start = (b.variable(constant("i64", 0)) for _ in range(3))
    filled = b.alloca("i8", WARP)
    with b.loop() as leave:
        begin = b.load("i64", start)
        b.go_if(b.is_("uge", begin, WARP), leave)
        group = b.resize(b.shl(b.sub(b.shl(constant("i64", 1), group_lanes), 1), begin), "i32")
        b.store(b.add(begin, group_lanes), start)
        inside = b.and_(mask, group)
        with b.if_(b.is_("ne", inside, 0)):
            b.store(constant("i8", 0, WARP), filled)
            most = b.variable(constant("i64", 0))
            b.store(constant("i64", 0), most)
            with peel(b, units, inside) as (key, _):
                bank = b.offset(filled, b.and_(key, b.sub(b.lshr(constant("i64", 128), shift), 1)))
                count = b.add(b.load("i8", bank), 1)
                b.store(count, bank)
                b.store(b.intrinsic("llvm.umax", b.load("i64", most), b.resize(count, "i64")), most)
            increment(b, total, b.load("i64", most))
            increment(b, ideal)
    b.ret(b.or_(b.shl(b.load("i64", total), 8), b.load("i64", ideal)))
    b.finish()


def _define_measure(module: IrModule) -> None:
    """``measure(addresses, mask, info, sectors, misses, counters)``: lines and wavefronts, and add all to the counters."""
    parameters = (
        ("addresses", "ptr"), ("mask", "i32"), ("info", "i64"), ("sectors", "i64"), ("misses", "i64"), ("counters", "ptr")
    )  # fmt: skip
    b = Builder(module, "measure", "void", parameters, "nounwind", "internal")
    addresses, mask, info, sectors, misses, counters = (b.argument(name, kind) for name, kind in parameters)
    size = b.and_(info, 255)
    asked = b.mul(b.resize(b.popcount(mask), "i64"), size)
    lines, ideal = b.variable(constant("i64", 0)), b.variable(constant("i64", 0))
    with b.if_(b.is_("ne", sectors, 0)):
        b.store(b.lshr(b.add(asked, 31), 5), ideal)
        with peel(b, b.lshr(b.load("i64", addresses, WARP), 7), mask):
            increment(b, lines)
    packed = b.call("wavefronts", "i64", addresses, mask, size)
    add_words(
        b, counters, constant("i64", 1), asked, sectors, b.load("i64", ideal), b.load("i64", lines),
        b.lshr(packed, 8), b.and_(packed, 255), misses,
    )  # fmt: skip
    b.ret()
    b.finish()


def _define_count(module: IrModule, space: str) -> None:
    """``count_SPACE(context, addresses, mask, counters, info)``: any request with virtual addresses of that space."""
    b = Builder(module, f"count_{space}", "void", _PARAMETERS)
    context, addresses, counters = (b.argument(name, "ptr") for name in ("context", "addresses", "counters"))
    mask, info = b.argument("mask", "i32"), b.argument("info", "i64")
    sectors, misses = b.variable(constant("i64", 0)), b.variable(constant("i64", 0))
    vector = b.load("i64", addresses, WARP)
    if space == "local":
        count_local(b, vector, addresses, mask, counters, info)
        return
    _try_contiguous(b, context, vector, mask, counters, info, space)
    for width in (32, 16):
        _try_affine(b, context, vector, mask, counters, info, width, space)
    if space == "global":
        touched = b.lshr(vector, 5)
        first = first_lanes(b, touched, mask)
        b.store(b.resize(b.popcount(first), "i64"), sectors)
        b.store(b.call("touch", "i64", context, touched, first, info), misses)
    b.call("measure", None, addresses, mask, info, b.load("i64", sectors), b.load("i64", misses), counters)
    b.ret()
    b.finish()


def _try_contiguous(
    b: Builder, context: Value, vector: Value, mask: Value, counters: Value, info: Value, space: str
) -> None:
    """Return by way of the quickest count if the lanes of a full warp turn out to be neighbors."""
    first, size = b.extract(vector, constant("i32", 0)), b.and_(info, 255)
    steps = b.mul(constants("i64", list(range(WARP))), b.widen(size))
    equal = b.mask_word(b.compare("eq", b.add(steps, first), vector))
    with b.if_(b.is_("eq", b.and_(equal, mask), -1)):
        if space == "shared":
            increment(b, b.offset(counters, 8 * ALIGNED))
        else:
            b.call("count_contiguous", None, context, first, counters, info)
        b.ret()
        b.label(b.fresh("dead"))


def _try_affine(
    b: Builder, context: Value, vector: Value, mask: Value, counters: Value, info: Value, width: int, space: str
) -> None:
    """Return by way of the quicker count if the addresses of a full warp turn out to be affine."""
    lane0, lane1, row1 = (b.extract(vector, constant("i32", lane)) for lane in (0, 1, width % 32))
    first, second = b.sub(lane1, lane0), b.sub(row1, lane0)
    steps = b.mul(first, constants("i64", [lane % width for lane in range(WARP)]))
    steps = b.add(steps, b.mul(second, constants("i64", [lane // width for lane in range(WARP)])))
    equal = b.mask_word(b.compare("eq", b.add(steps, lane0), vector))
    with b.if_(b.and_(b.is_("eq", equal, -1), b.is_("eq", mask, -1))):
        flags = b.or_(info, SHARED if space == "shared" else 0)
        b.call("count_affine", None, context, lane0, first, second, constant("i64", width), mask, counters, flags)
        b.ret()
        b.label(b.fresh("dead"))


def _define_generic(module: IrModule) -> None:
    """``count_generic``: lanes part by the memory that they hit; each part is a request of its own."""
    b = Builder(module, "count_generic", "void", _PARAMETERS)
    context, addresses, counters = (b.argument(name, "ptr") for name in ("context", "addresses", "counters"))
    mask, info = b.argument("mask", "i32"), b.argument("info", "i64")
    vector = b.load("i64", addresses, WARP)
    window = b.lshr(vector, WINDOW_BITS)
    # Parameters come from the constant cache: no request.
    left = b.and_(mask, b.mask_word(b.is_("ne", window, PARAMETER_WINDOW >> WINDOW_BITS)))
    for space, start in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("global", 0)):
        inside = left
        if start:
            inside = b.and_(mask, b.mask_word(b.is_("eq", window, start >> WINDOW_BITS)))
            left = b.and_(left, b.not_(inside))
        with b.if_(b.is_("ne", inside, 0)):
            b.store(b.sub(vector, start), addresses)
            b.call(f"count_{space}", None, context, addresses, inside, counters, info)
    b.ret()
    b.finish()


def usual_costs(sizes: np.ndarray, is_shared: np.ndarray) -> np.ndarray:
    """What one of the two usual requests adds to the counters, by `ALIGNED` and `UNIFORM`.

    Parameters
    ----------
    sizes : numpy.ndarray
        Bytes per lane of each instruction.
    is_shared : numpy.ndarray
        Boolean: which instructions access shared memory, where there are no sectors.

    Returns
    -------
    numpy.ndarray
        Shape (2, instructions, words), int64, in the order of `WORDS`.
    """
    passes, one, none = np.maximum(sizes // 4, 1), np.ones_like(sizes), np.zeros_like(sizes)
    sectors, single = np.where(is_shared, 0, (sizes, one))
    lines = np.where(is_shared, 0, passes)
    aligned = [one, WARP * sizes, sectors, sectors, lines, passes, passes, none]
    uniform = [one, WARP * sizes, single, sectors, single, passes, passes, none]
    return np.array([aligned, uniform], np.int64).transpose(0, 2, 1)


def expand(words: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Counters in the order of `WORDS`, with the two usual requests multiplied out.

    Parameters
    ----------
    words : numpy.ndarray
        Shape (instructions, `WORD_BYTES` // 8), int64: the raw counters.
    costs : numpy.ndarray
        From `usual_costs`.
    """
    aligned, uniform = words[:, ALIGNED, None] * costs[0], words[:, UNIFORM, None] * costs[1]
    total = words[:, : len(WORDS)] + aligned + uniform
    total[:, WORDS.index("l1_miss_sectors")] += words[:, MISSES]
    return total


def _define_contiguous(module: IrModule) -> None:
    """``count_contiguous(context, base, counters, info)``: 32 lanes that are all on and access neighbouring elements."""
    parameters = (("context", "ptr"), ("base", "i64"), ("counters", "ptr"), ("info", "i64"))
    b = Builder(module, "count_contiguous", "void", parameters)
    context, base, counters, info = (b.argument(name, kind) for name, kind in parameters)
    size = b.and_(info, 255)
    span = b.shl(size, 5)
    first, last = b.lshr(base, 5), b.lshr(b.add(base, b.sub(span, 1)), 5)
    line, last_line = b.variable(b.lshr(first, 2)), b.lshr(last, 2)
    misses = b.variable(constant("i64", 0))
    # Neighboring lines have places of their own in the L1, so that none replaces another of this request.
    with b.loop() as leave:
        now = b.load("i64", line)
        b.go_if(b.compare("ugt", now, last_line), leave)
        b.store(b.add(now, 1), line)
        start = b.shl(now, 2)
        low = b.intrinsic("llvm.usub.sat", first, start)
        high = b.intrinsic("llvm.umin", b.sub(last, start), constant("i64", 3))
        wanted = b.and_(b.shl(constant("i64", -1), low), b.lshr(constant("i64", 15), b.sub(constant("i64", 3), high)))
        increment(b, misses, b.call("touch_line", "i64", context, now, b.resize(wanted, "i32"), info))
    add_misses(b, counters, b.load("i64", misses))
    with b.if_(b.is_("eq", b.and_(base, 127), 0)):
        increment(b, b.offset(counters, 8 * ALIGNED))
        b.ret()
        b.label(b.fresh("dead"))
    lines = b.add(b.sub(last_line, b.lshr(first, 2)), 1)
    passes = b.intrinsic("llvm.umax", b.lshr(size, 2), constant("i64", 1))
    add_words(
        b, counters, constant("i64", 1), span, b.add(b.sub(last, first), 1), size, lines, passes, passes,
        constant("i64", 0),
    )  # fmt: skip
    b.ret()
    b.finish()


def _define_uniform(module: IrModule) -> None:
    """``count_uniform(context, base, mask, counters, info)``: all lanes of `mask` access the same address."""
    b = Builder(
        module, "count_uniform", "void",
        (("context", "ptr"), ("base", "i64"), ("mask", "i32"), ("counters", "ptr"), ("info", "i64")),
    )  # fmt: skip
    context, base, counters = b.argument("context", "ptr"), b.argument("base", "i64"), b.argument("counters", "ptr")
    mask, info = b.argument("mask", "i32"), b.argument("info", "i64")
    size = b.and_(info, 255)
    add_misses(b, counters, b.call("touch_one", "i64", context, b.lshr(base, 5), info))
    with b.if_(b.is_("eq", mask, -1)):
        increment(b, b.offset(counters, 8 * UNIFORM))
        b.ret()
        b.label(b.fresh("dead"))
    asked = b.mul(b.resize(b.popcount(mask), "i64"), size)
    passes = b.variable(constant("i64", 1))
    with b.if_(b.is_("ugt", size, 4)):
        halves = [b.cast("zext", b.is_("ne", b.and_(mask, 0xFFFF << s), 0), "i64") for s in (0, 16)]
        quarters = [b.cast("zext", b.is_("ne", b.and_(mask, 0xFF << s), 0), "i64") for s in (0, 8, 16, 24)]
        two, four = b.add(*halves), b.add(b.add(quarters[0], quarters[1]), b.add(quarters[2], quarters[3]))
        b.store(b.select(b.is_("eq", size, 8), two, four), passes)
    one = constant("i64", 1)
    count = b.load("i64", passes)
    add_words(b, counters, one, asked, one, b.lshr(b.add(asked, 31), 5), one, count, count, constant("i64", 0))
    b.ret()
    b.finish()
