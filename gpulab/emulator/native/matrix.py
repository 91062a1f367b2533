"""Native code for matrix products of a warp, one function for each form that a kernel uses.

``product(a, b, c, d)`` takes the registers of A, B and C laid down one after the other, 32 lanes each, and writes those of
D. As a register is a tile (`gpulab.ptx.matrix`), nothing is gathered: A is widened to numbers where it lies, the tiles of B
are transposed, and each row of a tile of D is one vector, to which a number of A times a row of B is added for each k.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpulab.emulator.layout import WARP
from gpulab.emulator.llvm.ir import Builder, IrModule, Value, bits_of, constant
from gpulab.emulator.lower.halves import narrowed, to_odd, widened
from gpulab.emulator.lower.numbers import canonical_nan
from gpulab.ptx.matrix import GROUPS, Fragment, Matrix

_TILE = 64
_ROWS_AT_ONCE = 4
_NAN = constant("float", 0x7FFFFFFF)


def define(module: IrModule, matrix: Matrix, operation: str | None, saturate: bool, name: str) -> None:
    """Put the function for a form into a module."""
    b = Builder(module, name, "void", tuple((letter, "ptr") for letter in "abcd"))
    a, right, target = (matrix.of(letter) for letter in "abd")
    kind = _arithmetic(a.type)
    lines = bits_of(kind) // 8
    width = _columns(a)
    rows, depth, columns = a.rows // GROUPS, a.tiles * GROUPS // a.rows, right.columns // GROUPS
    left_place = b.alloca(kind, 1, a.tiles * GROUPS * width)
    right_place = b.alloca(kind, 1, right.tiles * GROUPS * width)
    _widen(b, a, b.argument("a", "ptr"), left_place, transposed=False)
    _widen(b, right, b.argument("b", "ptr"), right_place, transposed=True)
    sums = b.alloca(kind, _TILE)
    with _times(b, rows * columns) as tile:
        before = _accumulator(b, matrix.of("c"), b.argument("c", "ptr"), tile)
        b.store(constant(kind, 0, _TILE) if kind == "i32" else before, sums)
        row, column = b.binary("urem", tile, constant("i64", rows)), b.binary("udiv", tile, constant("i64", rows))
        with _times(b, GROUPS // _ROWS_AT_ONCE) as part:
            place = b.offset(sums, b.mul(part, _ROWS_AT_ONCE * GROUPS * lines))
            totals = [
                b.variable(b.load(kind, b.offset(place, n * GROUPS * lines), GROUPS)) for n in range(_ROWS_AT_ONCE)
            ]
            with _times(b, depth) as step:
                tile_of_a = b.add(b.mul(step, rows), row)
                first = b.add(b.mul(tile_of_a, GROUPS), b.mul(part, _ROWS_AT_ONCE))
                from_a = b.offset(left_place, b.mul(first, width * lines))
                from_b = b.offset(right_place, b.mul(b.add(b.mul(column, depth), step), GROUPS * width * lines))
                for k in range(width):
                    other = b.load(kind, b.offset(from_b, k * GROUPS * lines), GROUPS)
                    for n, total in enumerate(totals):
                        one = b.widen(b.load(kind, b.offset(from_a, (n * width + k) * lines)), GROUPS)
                        b.store(_added(b, a.type, operation, one, other, b.load(kind, total, GROUPS)), total)
            for n, total in enumerate(totals):
                b.store(b.load(kind, total, GROUPS), b.offset(place, n * GROUPS * lines))
        after = b.load(kind, sums, _TILE)
        if kind == "i32":
            after = b.intrinsic("llvm.sadd.sat", before, after) if saturate else b.add(before, after)
        _finish(b, target, after, b.argument("d", "ptr"), tile)
    b.ret()
    b.finish()


@contextmanager
def _times(b: Builder, count: int) -> Iterator[Value]:
    """A loop that runs so many times; yields the number of the turn, i64."""
    place = b.variable(constant("i64", 0))
    with b.loop() as leave:
        turn = b.load("i64", place)
        b.go_if(b.is_("uge", turn, count), leave)
        b.store(b.add(turn, 1), place)
        yield turn


# ---- elements


def _arithmetic(kind: str) -> str:
    """The type in which elements are multiplied and added; bits go by words of 32."""
    return "i32" if kind[0] in "su" or kind == "b1" else "double"


def _columns(fragment: Fragment) -> int:
    """Numbers in a row of a tile."""
    return fragment.width // 32 if fragment.type == "b1" else fragment.width


def _widen(b: Builder, fragment: Fragment, source: Value, target: Value, transposed: bool) -> None:
    """Tiles to numbers: row after row, or column after column."""
    kind, count = _arithmetic(fragment.type), GROUPS * _columns(fragment)
    tile_bytes = WARP * (8 if fragment.type == "f64" else 4)
    with _times(b, fragment.tiles) as tile:
        values = _numbers(b, fragment.type, b.offset(source, b.mul(tile, tile_bytes)), count)
        if transposed:
            width = _columns(fragment)
            values = b.shuffle(values, values, [group * width + k for k in range(width) for group in range(GROUPS)])
        b.store(_converted(b, fragment.type, values), b.offset(target, b.mul(tile, count * bits_of(kind) // 8)))


def _numbers(b: Builder, kind: str, source: Value, count: int) -> Value:
    """Elements as they lie in memory; those of four bits in bytes."""
    if kind in ("s4", "u4"):
        pairs = b.load("i8", source, count // 2)
        shift = "ashr" if kind == "s4" else "lshr"
        four = constant("i8", 4, count // 2)
        low, high = b.binary(shift, b.shl(pairs, 4), four), b.binary(shift, pairs, four)
        return b.shuffle(low, high, [number // 2 + number % 2 * (count // 2) for number in range(count)])
    elements = {"f64": "double", "f16": "i16", "bf16": "i16", "tf32": "i32", "b1": "i32"}
    return b.load(elements.get(kind, "i8"), source, count)


def _converted(b: Builder, kind: str, values: Value) -> Value:
    if kind in ("f64", "b1"):
        return values
    if kind[0] in "su":
        return b.resize(values, "i32", signed=kind[0] == "s")
    if kind == "tf32":
        single = b.bitcast(b.and_(values, 0xFFFFE000), "float")
    elif kind == "e5m2":
        single = widened(b, "f16", b.shl(b.resize(values, "i16"), 8))
    elif kind == "e4m3":
        single = _e4m3(b, b.resize(values, "i16"))
    else:
        single = widened(b, kind, values)
    return b.cast("fpext", single, "double")


def _e4m3(b: Builder, values: Value) -> Value:
    """Shifted by seven bits they are f16 that are too small by 2**8."""
    magnitude = b.and_(values, 0x7F)
    bits = b.or_(b.shl(magnitude, 7), b.shl(b.and_(values, 0x80), 8))
    scaled = b.binary("fmul", widened(b, "f16", bits), constant("float", 0x43800000))
    return b.select(b.is_("eq", magnitude, 0x7F), _NAN, scaled)


def _added(b: Builder, kind: str, operation: str | None, one: Value, other: Value, total: Value) -> Value:
    if kind == "b1":
        combined = b.xor(one, other) if operation == "xor" else b.and_(one, other)
        return b.add(total, b.popcount(combined))
    if total.type == "i32":
        return b.add(total, b.mul(one, other))
    # Products of all but f64 are exact, so whether the processor fuses makes no difference to them.
    return b.intrinsic("llvm.fma" if kind == "f64" else "llvm.fmuladd", one, other, total)


# ---- accumulators


def _pair(b: Builder, source: Value, tile: Value, element: str) -> tuple[Value, Value]:
    """Pointers to the two registers of a tile whose elements fill a register each."""
    step = WARP * bits_of(element) // 8
    first = b.offset(source, b.mul(tile, 2 * step))
    return first, b.offset(first, step)


_ELEMENTS = {"f32": "float", "f64": "double", "s32": "i32"}


def _accumulator(b: Builder, fragment: Fragment, source: Value, tile: Value) -> Value:
    """A tile of C as 64 numbers, row after row."""
    if fragment.type == "f16":
        halves = b.load("i16", b.offset(source, b.mul(tile, 2 * _TILE)), _TILE)
        return b.cast("fpext", widened(b, "f16", halves), "double")
    element = _ELEMENTS[fragment.type]
    even, odd = (b.load(element, place, WARP) for place in _pair(b, source, tile, element))
    whole = b.shuffle(even, odd, [number // 2 + number % 2 * WARP for number in range(_TILE)])
    return b.cast("fpext", whole, "double") if element == "float" else whole


def _finish(b: Builder, fragment: Fragment, sums: Value, target: Value, tile: Value) -> None:
    """Round a tile of D and put it into its registers."""
    if fragment.type == "f16":
        b.store(narrowed(b, "f16", to_odd(b, sums)), b.offset(target, b.mul(tile, 2 * _TILE)))
        return
    element = _ELEMENTS[fragment.type]
    if element == "float":
        sums = b.cast("fptrunc", sums, "float")
    if element != "i32":
        sums = canonical_nan(b, sums)
    for half, place in enumerate(_pair(b, target, tile, element)):
        b.store(b.shuffle(sums, sums, list(range(half, _TILE, 2))), place)
