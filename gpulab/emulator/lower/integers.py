"""Integer arithmetic, logic and shifts, as LLVM IR.

Each function takes the builder, the form and the sources in their roles' types and returns the result. Values may be
scalars or vectors: the same code serves uniform and per-lane registers. Lanes that are not active hold anything, so
nothing here may be undefined for any input: divisors are made safe, shift amounts are clamped.
"""

from __future__ import annotations

from gpulab.emulator.llvm.ir import Builder, Value, bits_of, constant
from gpulab.emulator.lower.table import pure
from gpulab.ptx.opcodes import Form


def signed(form: Form) -> bool:
    """Whether the operation's type is a signed integer."""
    return (form.type or "")[0] == "s"


def integer(form: Form) -> bool:
    """Whether the operation's type is an integer or bit type."""
    return (form.type or "")[0] in "usbp" and form.type != "bf16" and not (form.type or "").endswith("x2")


def shift_left(b: Builder, a: Value, amount: Value) -> Value:
    """Shift as PTX clamps it: 0 for amounts of at least the width; `amount` is unsigned, of any width."""
    return _clamped(b, "shl", a, amount, constant(a.type, 0))


def shift_right(b: Builder, a: Value, amount: Value, arithmetic: bool = False) -> Value:
    """Shift as PTX clamps it: 0, or copies of the sign, for amounts of at least the width."""
    if not arithmetic:
        return _clamped(b, "lshr", a, amount, constant(a.type, 0))
    width = bits_of(a.type)
    most = b.intrinsic("llvm.umin", amount, constant(amount.type, width - 1))
    return b.binary("ashr", a, b.resize(most, a.type))


def _clamped(b: Builder, op: str, a: Value, amount: Value, beyond: Value) -> Value:
    width = bits_of(a.type)
    inside = b.resize(b.and_(amount, width - 1), a.type)
    return b.select(b.is_("ult", amount, width), b.binary(op, a, inside), beyond)


def low_bits(b: Builder, element: str, count: Value) -> Value:
    """A mask of the lowest `count` bits, all for counts of at least the width."""
    return b.not_(shift_left(b, constant(element, -1, count.lanes), count))


def high_half(b: Builder, a: Value, c: Value, is_signed: bool) -> Value:
    """Upper half of a product."""
    width = bits_of(a.type)
    wide = b.mul(b.resize(a, f"i{2 * width}", is_signed), b.resize(c, f"i{2 * width}", is_signed))
    return b.resize(b.lshr(wide, width), a.type)


def product(b: Builder, form: Form, a: Value, c: Value) -> Value:
    """``mul`` and the first half of ``mad``, by mode."""
    if form.mode == "wide":
        element = f"i{2 * bits_of(a.type)}"
        return b.mul(b.resize(a, element, signed(form)), b.resize(c, element, signed(form)))
    return high_half(b, a, c, signed(form)) if form.mode == "hi" else b.mul(a, c)


@pure("mul", integer)
def mul(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return product(b, form, a, c)


@pure("mad", integer)
def mad(b: Builder, form: Form, a: Value, c: Value, d: Value) -> Value:
    whole = product(b, form, a, c)
    return b.intrinsic("llvm.sadd.sat", whole, d) if form.saturate else b.add(whole, d)


@pure("add", integer)
def add(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return b.intrinsic("llvm.sadd.sat", a, c) if form.saturate else b.add(a, c)


@pure("sub", integer)
def sub(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return b.intrinsic("llvm.ssub.sat", a, c) if form.saturate else b.sub(a, c)


def _product24(b: Builder, form: Form, a: Value, c: Value) -> Value:
    factors = []
    for value in (a, c):
        high = b.shl(value, 8)
        factors.append(b.resize(b.ashr(high, 8) if signed(form) else b.lshr(high, 8), "i64", signed(form)))
    whole = b.mul(*factors)
    return b.resize(b.lshr(whole, 16) if form.mode == "hi" else whole, "i32")


@pure("mul24")
def mul24(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return _product24(b, form, a, c)


@pure("mad24")
def mad24(b: Builder, form: Form, a: Value, c: Value, d: Value) -> Value:
    whole = _product24(b, form, a, c)
    return b.intrinsic("llvm.sadd.sat", whole, d) if form.saturate else b.add(whole, d)


@pure("sad")
def sad(b: Builder, form: Form, a: Value, c: Value, d: Value) -> Value:
    kind = "s" if signed(form) else "u"
    return b.add(b.sub(b.intrinsic(f"llvm.{kind}max", a, c), b.intrinsic(f"llvm.{kind}min", a, c)), d)


def quotient(b: Builder, a: Value, c: Value, is_signed: bool) -> Value:
    """Quotient as hardware gives it: all ones for a zero divisor; the most negative number divided by -1 is itself."""
    zero = b.is_("eq", c, 0)
    minus = b.is_("eq", c, -1)
    safe = b.select(b.or_(zero, minus) if is_signed else zero, constant(c.type, 1), c)
    whole = _divide(b, a, safe, is_signed)
    if is_signed:
        whole = b.select(minus, b.sub(constant(a.type, 0), a), whole)
    return b.select(zero, constant(a.type, -1), whole)


def _divide(b: Builder, a: Value, c: Value, is_signed: bool) -> Value:
    if bits_of(a.type) > 32 or max(a.lanes, c.lanes) == 1:
        return b.binary("sdiv" if is_signed else "udiv", a, c)
    # CPUs divide vectors of doubles, not of integers. The quotient of 32-bit integers is at least 1 / divisor below the
    # next integer, and half an ulp of it is less than that: rounding never reaches it.
    to_float, to_int = ("sitofp", "fptosi") if is_signed else ("uitofp", "fptoui")
    exact = b.binary("fdiv", b.cast(to_float, a, "double"), b.cast(to_float, c, "double"))
    return b.cast(to_int, exact, a.type)


@pure("div", integer)
def div(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return quotient(b, a, c, signed(form))


@pure("rem")
def rem(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return b.sub(a, b.mul(quotient(b, a, c, signed(form)), c))


@pure("abs", integer)
def abs_(b: Builder, form: Form, a: Value) -> Value:
    return b.select(b.is_("slt", a, 0), b.sub(constant(a.type, 0), a), a)


@pure("neg", integer)
def neg(b: Builder, form: Form, a: Value) -> Value:
    return b.sub(constant(a.type, 0), a)


@pure("min", integer)
def min_(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return _clipped(b, form, b.intrinsic("llvm.smin" if signed(form) else "llvm.umin", a, c))


@pure("max", integer)
def max_(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return _clipped(b, form, b.intrinsic("llvm.smax" if signed(form) else "llvm.umax", a, c))


def _clipped(b: Builder, form: Form, a: Value) -> Value:
    return b.intrinsic("llvm.smax", a, constant(a.type, 0)) if form.relu else a


@pure("popc")
def popc(b: Builder, form: Form, a: Value) -> Value:
    return b.resize(b.popcount(a), "i32")


@pure("clz")
def clz(b: Builder, form: Form, a: Value) -> Value:
    return b.resize(b.count_leading_zeros(a), "i32")


@pure("brev")
def brev(b: Builder, form: Form, a: Value) -> Value:
    return b.intrinsic("llvm.bitreverse", a)


@pure("bfind")
def bfind(b: Builder, form: Form, a: Value) -> Value:
    if signed(form):
        a = b.select(b.is_("slt", a, 0), b.not_(a), a)
    zeros = b.resize(b.count_leading_zeros(a), "i32")
    if not form.shift_amount:
        return b.sub(constant("i32", bits_of(a.type) - 1), zeros)
    return b.select(b.is_("eq", a, 0), constant("i32", -1), zeros)


@pure("fns")
def fns(b: Builder, form: Form, mask: Value, base: Value, count: Value) -> Value:
    """Downwards is upwards in the mirrored word; then a binary search by counting bits."""
    down = b.is_("slt", count, 0)
    start = b.select(down, b.sub(constant("i32", 31), base), base)
    searched = b.select(down, b.intrinsic("llvm.bitreverse", mask), mask)
    searched = b.and_(searched, shift_left(b, constant("i32", -1), start))
    here = b.and_(searched, shift_left(b, constant("i32", 1), start))
    searched = b.select(b.is_("eq", count, 0), here, searched)
    magnitude = b.select(down, b.sub(constant("i32", 0), count), count)
    left = b.select(b.is_("eq", count, 0), magnitude, b.sub(magnitude, 1))
    missing = b.or_(b.compare("uge", left, b.popcount(searched)), b.is_("ugt", base, 31))
    place = constant("i32", 0)
    for width in (16, 8, 4, 2, 1):
        below = b.popcount(b.and_(shift_right(b, searched, place), (1 << width) - 1))
        above = b.compare("uge", left, below)
        place = b.select(above, b.add(place, width), place)
        left = b.select(above, b.sub(left, below), left)
    place = b.select(down, b.sub(constant("i32", 31), place), place)
    return b.select(missing, constant("i32", -1), place)


def _place_and_length(b: Builder, width: int, position: Value, length: Value) -> tuple[Value, Value]:
    # 32-bit forms look at the low bytes only (PTX ISA); for 64 bits ptxas emits shifts, which take all of them.
    return (b.and_(position, 0xFF), b.and_(length, 0xFF)) if width == 32 else (position, length)


@pure("bfe")
def bfe(b: Builder, form: Form, a: Value, position: Value, length: Value) -> Value:
    width = bits_of(a.type)
    position, length = _place_and_length(b, width, position, length)
    room = b.sub(constant("i32", width), b.intrinsic("llvm.umin", position, constant("i32", width)))
    mask = low_bits(b, a.type, b.intrinsic("llvm.umin", length, room))
    field = b.and_(shift_right(b, a, position), mask)
    if not signed(form):
        return field
    last = b.intrinsic(
        "llvm.umin", b.sub(b.intrinsic("llvm.uadd.sat", position, length), 1), constant("i32", width - 1)
    )
    sign = b.and_(shift_right(b, a, last), 1)
    fill = b.and_(b.sub(constant(a.type, 0), sign), b.not_(mask))
    return b.select(b.is_("eq", length, 0), constant(a.type, 0), b.or_(field, fill))


@pure("bfi")
def bfi(b: Builder, form: Form, a: Value, base: Value, position: Value, length: Value) -> Value:
    position, length = _place_and_length(b, bits_of(a.type), position, length)
    mask = shift_left(b, low_bits(b, a.type, length), position)
    return b.or_(b.and_(shift_left(b, a, position), mask), b.and_(base, b.not_(mask)))


@pure("szext")
def szext(b: Builder, form: Form, a: Value, count: Value) -> Value:
    width = b.and_(count, 31) if form.mode == "wrap" else b.intrinsic("llvm.umin", count, constant("i32", 32))
    mask = low_bits(b, "i32", width)
    field = b.and_(a, mask)
    if not signed(form):
        return field
    last = b.intrinsic("llvm.umin", b.sub(width, 1), constant("i32", 31))
    negative = b.is_("ne", b.and_(shift_right(b, a, last), 1), 0)
    negative = b.and_(negative, b.is_("ne", width, 0))
    return b.select(negative, b.or_(field, b.not_(mask)), field)


@pure("bmsk")
def bmsk(b: Builder, form: Form, start: Value, count: Value) -> Value:
    if form.mode == "wrap":
        start, count = b.and_(start, 31), b.and_(count, 31)
    return shift_left(b, low_bits(b, "i32", count), start)


@pure("dp4a")
def dp4a(b: Builder, form: Form, a: Value, c: Value, d: Value) -> Value:
    total = d
    for byte in range(4):
        total = b.add(total, b.mul(_part(b, a, 8, byte, signed(form)), _part(b, c, 8, byte, form.source_type == "s32")))
    return total


@pure("dp2a")
def dp2a(b: Builder, form: Form, a: Value, c: Value, d: Value) -> Value:
    total, first = d, 2 if form.mode == "hi" else 0
    for half in range(2):
        left = _part(b, a, 16, half, signed(form))
        total = b.add(total, b.mul(left, _part(b, c, 8, first + half, form.source_type == "s32")))
    return total


def _part(b: Builder, a: Value, width: int, index: int, is_signed: bool) -> Value:
    top = b.shl(a, 32 - width * (index + 1))
    return b.ashr(top, 32 - width) if is_signed else b.lshr(top, 32 - width)


@pure("and")
def and_(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return b.and_(a, c)


@pure("or")
def or_(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return b.or_(a, c)


@pure("xor")
def xor(b: Builder, form: Form, a: Value, c: Value) -> Value:
    return b.xor(a, c)


@pure("not")
def not_(b: Builder, form: Form, a: Value) -> Value:
    return b.not_(a)


@pure("cnot")
def cnot(b: Builder, form: Form, a: Value) -> Value:
    return b.cast("zext", b.is_("eq", a, 0), a.type)


@pure("lop3")
def lop3(b: Builder, form: Form, a: Value, c: Value, d: Value, table: Value) -> Value:
    lookup = int(table.text) & 0xFF
    result = constant("i32", 0)
    for row in range(8):
        if lookup >> row & 1:
            x, y, z = (v if row >> s & 1 else b.not_(v) for v, s in ((a, 2), (c, 1), (d, 0)))
            result = b.or_(result, b.and_(b.and_(x, y), z))
    return result


@pure("shl")
def shl(b: Builder, form: Form, a: Value, amount: Value) -> Value:
    return shift_left(b, a, amount)


@pure("shr")
def shr(b: Builder, form: Form, a: Value, amount: Value) -> Value:
    return shift_right(b, a, amount, signed(form))


@pure("shf")
def shf(b: Builder, form: Form, low: Value, high: Value, amount: Value) -> Value:
    clamp = form.mode == "clamp"
    count = b.intrinsic("llvm.umin", amount, constant("i32", 32)) if clamp else b.and_(amount, 31)
    both = b.or_(b.resize(low, "i64"), b.shl(b.resize(high, "i64"), 32))
    wide = b.resize(count, "i64")
    return b.resize(b.lshr(both, wide) if form.operation == "r" else b.lshr(b.shl(both, wide), 32), "i32")


@pure("prmt")
def prmt(b: Builder, form: Form, a: Value, c: Value, selector: Value) -> Value:
    both = b.or_(b.resize(a, "i64"), b.shl(b.resize(c, "i64"), 32))
    result = constant("i32", 0)
    for byte in range(4):
        index, replicate = _prmt_index(b, form.mode, selector, byte)
        picked = b.and_(b.resize(b.lshr(both, b.shl(b.resize(index, "i64"), 3)), "i32"), 0xFF)
        if replicate is not None:
            sign = b.ashr(b.shl(picked, 24), 31)
            picked = b.select(b.is_("ne", replicate, 0), b.and_(sign, 0xFF), picked)
        result = b.or_(result, b.shl(picked, 8 * byte))
    return result


def _prmt_index(b: Builder, mode: str | None, selector: Value, byte: int) -> tuple[Value, Value | None]:
    """Which of the eight bytes goes to byte `byte`, and the bit that asks for its sign instead."""
    if mode is None:
        nibble = b.lshr(selector, 4 * byte)
        return b.and_(nibble, 7), b.and_(nibble, 8)
    start = b.and_(selector, 3)
    if mode == "f4e":
        return b.add(start, byte), None
    if mode == "b4e":
        return b.and_(b.sub(start, byte), 7), None
    if mode == "rc8":
        return start, None
    if mode == "rc16":
        return b.add(b.shl(b.and_(selector, 1), 1), byte & 1), None
    clamp = "llvm.umax" if mode == "ecl" else "llvm.umin"
    return b.intrinsic(clamp, start, constant("i32", byte)), None
