"""Integer arithmetic, logic and shifts: exact on Python's integers, then cut to the width of the type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.emulator.reference.values import DTYPES, UNSIGNED, defines, lanewise, wrap
from gpulab.ptx.opcodes import Form
from gpulab.ptx.types import bits_of, is_float

ALL_32 = 0xFFFFFFFF


def _is_integer(form: Form) -> bool:
    return form.type is not None and not is_float(form.type) and not form.type.endswith("x2")


def _width(form: Form) -> int:
    assert form.type is not None
    return bits_of(form.type)


def _dtype(form: Form) -> np.dtype:
    assert form.type is not None
    return DTYPES[form.type]


def _unsigned(value: np.ndarray) -> np.ndarray:
    return value.view(UNSIGNED[value.dtype.itemsize])


def _is_signed(form: Form) -> bool:
    return form.type is not None and form.type[0] == "s"


def _saturated(value: int) -> int:
    return min(max(value, -(2**31)), 2**31 - 1)


# ---- sums and products (PTX ISA 9.7.1)


@defines("add", _is_integer)
def add(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return lanewise(lambda x, y: _saturated(x + y) if form.saturate else x + y, _dtype(form), a, b)


@defines("sub", _is_integer)
def sub(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return lanewise(lambda x, y: _saturated(x - y) if form.saturate else x - y, _dtype(form), a, b)


def product(form: Form, x: int, y: int) -> int:
    """The exact product, or its upper half for ``.hi``."""
    return x * y >> _width(form) if form.mode == "hi" else x * y


def _product_dtype(form: Form) -> np.dtype:
    size = _dtype(form).itemsize * (2 if form.mode == "wide" else 1)
    return np.dtype(f"{'i' if _is_signed(form) else 'u'}{size}")


@defines("mul", _is_integer)
def mul(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return lanewise(lambda x, y: product(form, x, y), _product_dtype(form), a, b)


@defines("mad", _is_integer)
def mad(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    def one(x: int, y: int, z: int) -> int:
        total = product(form, x, y) + z
        return _saturated(total) if form.saturate else total

    return lanewise(one, _product_dtype(form), a, b, c)


def _product24(form: Form, x: int, y: int) -> int:
    """Product of the low 24 bits; ``.hi`` is its bits 16 to 47."""
    factors = [(value & 0xFFFFFF) - (value & 0x800000) * 2 * _is_signed(form) for value in (x, y)]
    return factors[0] * factors[1] >> (16 if form.mode == "hi" else 0)


@defines("mul24")
def mul24(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return lanewise(lambda x, y: _product24(form, x, y), _dtype(form), a, b)


@defines("mad24")
def mad24(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    def one(x: int, y: int, z: int) -> int:
        whole = _wrapped(_product24(form, x, y), form)
        return _saturated(whole + z) if form.saturate else whole + z

    return lanewise(one, _dtype(form), a, b, c)


def _wrapped(value: int, form: Form) -> int:
    width = _width(form)
    value &= (1 << width) - 1
    return value - (1 << width) if _is_signed(form) and value >> (width - 1) else value


@defines("sad")
def sad(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return lanewise(lambda x, y, z: abs(x - y) + z, _dtype(form), a, b, c)


def quotient(x: int, y: int) -> int:
    """Rounded to zero; a division by zero gives all ones, as hardware does."""
    if y == 0:
        return -1
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


@defines("div", _is_integer)
def div(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return lanewise(quotient, _dtype(form), a, b)


@defines("rem")
def rem(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return lanewise(lambda x, y: x - y * quotient(x, y), _dtype(form), a, b)


@defines("abs", _is_integer)
def abs_(form: Form, a: np.ndarray) -> np.ndarray:
    return lanewise(abs, _dtype(form), a)


@defines("neg", _is_integer)
def neg(form: Form, a: np.ndarray) -> np.ndarray:
    return lanewise(lambda x: -x, _dtype(form), a)


@defines("min", _is_integer)
@defines("max", _is_integer)
def min_max(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller or larger one; with ``.relu`` at least 0."""
    better = min if form.opcode == "min" else max
    return lanewise(lambda x, y: max(better(x, y), 0) if form.relu else better(x, y), _dtype(form), a, b)


# ---- bits


@defines("popc")
def popc(form: Form, a: np.ndarray) -> np.ndarray:
    return lanewise(int.bit_count, DTYPES["u32"], a)


@defines("clz")
def clz(form: Form, a: np.ndarray) -> np.ndarray:
    return lanewise(lambda x: _width(form) - x.bit_length(), DTYPES["u32"], a)


@defines("bfind")
def bfind(form: Form, a: np.ndarray) -> np.ndarray:
    """Place of the highest bit that differs from the sign, all ones if none; ``.shiftamt`` counts from the top."""

    def one(x: int) -> int:
        place = (~x if x < 0 else x).bit_length() - 1
        return place if place < 0 or not form.shift_amount else _width(form) - 1 - place

    return lanewise(one, DTYPES["u32"], a)


@defines("fns")
def fns(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Place of the n-th set bit of `a` from bit `b` on, upwards for n > 0 and downwards for n < 0; all ones if none.

    n = 0 asks for bit `b` itself.
    """

    def one(mask: int, base: int, count: int) -> int:
        if base > 31:
            return ALL_32
        places = range(base, 32) if count > 0 else range(base, -1, -1) if count < 0 else (base,)
        found = [place for place in places if mask >> place & 1]
        wanted = max(abs(count), 1) - 1
        return found[wanted] if wanted < len(found) else ALL_32

    return lanewise(one, DTYPES["u32"], a, b, c)


@defines("brev")
def brev(form: Form, a: np.ndarray) -> np.ndarray:
    width = _width(form)
    return lanewise(lambda x: int(f"{x:0{width}b}"[::-1], 2), _dtype(form), a)


def _place_and_length(form: Form, position: int, length: int) -> tuple[int, int]:
    # 32-bit forms look at the low bytes only (PTX ISA); for 64 bits ptxas emits shifts, which take all of them.
    return (position & 0xFF, length & 0xFF) if _width(form) == 32 else (position, length)


@defines("bfe")
def bfe(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Bits `b` to `b + c - 1` of `a`; signed forms extend the field by its own, or the last existing, bit."""

    def one(x: int, position: int, length: int) -> int:
        position, length = _place_and_length(form, position, length)
        width = _width(form)
        pattern = x & (1 << width) - 1
        existing = max(min(length, width - position), 0)
        field = pattern >> position & (1 << existing) - 1
        sign_at = min(position + length - 1, width - 1)
        if _is_signed(form) and length and pattern >> sign_at & 1:
            field -= 1 << existing
        return field

    return lanewise(one, _dtype(form), a, b, c)


@defines("bfi")
def bfi(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """`b` with its bits `c` to `c + d - 1` replaced by the lowest bits of `a`."""

    def one(field: int, base: int, position: int, length: int) -> int:
        position, length = _place_and_length(form, position, length)
        if position >= _width(form):
            return base
        mask = (1 << min(length, _width(form))) - 1 << position
        return (base & ~mask) | (field << position & mask)

    return lanewise(one, _dtype(form), a, b, c, d)


@defines("szext")
def szext(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The lowest `b` bits of `a`, extended by sign or zeros."""

    def one(x: int, count: int) -> int:
        count = count & 31 if form.mode == "wrap" else min(count, 32)
        field = x & (1 << count) - 1
        return field - (1 << count) if _is_signed(form) and count and field >> (count - 1) else field

    return lanewise(one, _dtype(form), a, b)


@defines("bmsk")
def bmsk(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A mask of `b` ones from bit `a` on."""

    def one(start: int, count: int) -> int:
        if form.mode == "wrap":
            start, count = start & 31, count & 31
        return (1 << min(count, 32)) - 1 << min(start, 32)

    return lanewise(one, _dtype(form), a, b)


def _parts(word: int, width: int, signed: bool) -> list[int]:
    """The parts of a 32-bit word, lowest first."""
    parts = [word >> shift & (1 << width) - 1 for shift in range(0, 32, width)]
    return [part - (1 << width) if signed and part >> (width - 1) else part for part in parts]


@defines("dp4a")
def dp4a(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    def one(x: int, y: int, total: int) -> int:
        pairs = zip(_parts(x, 8, form.type == "s32"), _parts(y, 8, form.source_type == "s32"), strict=True)
        return total + sum(left * right for left, right in pairs)

    return lanewise(one, DTYPES["b32"], a, b, c)


@defines("dp2a")
def dp2a(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    def one(x: int, y: int, total: int) -> int:
        halves, quarters = _parts(x, 16, form.type == "s32"), _parts(y, 8, form.source_type == "s32")
        chosen = quarters[2:] if form.mode == "hi" else quarters[:2]
        return total + sum(left * right for left, right in zip(halves, chosen, strict=True))

    return lanewise(one, DTYPES["b32"], a, b, c)


# ---- logic and shifts (PTX ISA 9.7.8)


@defines("and")
def and_(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a & b


@defines("or")
def or_(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a | b


@defines("xor")
def xor(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a ^ b


@defines("not")
def not_(form: Form, a: np.ndarray) -> np.ndarray:
    return ~a


@defines("cnot")
def cnot(form: Form, a: np.ndarray) -> np.ndarray:
    return (a == 0).astype(_dtype(form))


@defines("lop3")
def lop3(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Any function of three bits: bit 4x + 2y + z of the table is the result for bits x, y, z."""

    def one(x: int, y: int, z: int, lookup: int) -> int:
        rows = (4 * (x >> bit & 1) + 2 * (y >> bit & 1) + (z >> bit & 1) for bit in range(32))
        return sum((lookup >> row & 1) << bit for bit, row in enumerate(rows))

    return lanewise(one, DTYPES["b32"], a, b, c, table)


@defines("shf")
def shf(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Shift the pair b:a; ``.l`` keeps the upper word, ``.r`` the lower."""

    def one(low: int, high: int, count: int) -> int:
        count = min(count, 32) if form.mode == "clamp" else count & 31
        pair = high << 32 | low
        return pair << count >> 32 if form.operation == "l" else pair >> count

    return lanewise(one, DTYPES["b32"], a, b, c)


@defines("shl")
def shl(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return lanewise(lambda x, count: x << min(count, _width(form)), _dtype(form), a, b)


@defines("shr")
def shr(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # Python shifts negative numbers arithmetically, and by any count, which is what PTX's clamping comes to.
    return lanewise(lambda x, count: x >> count, _dtype(form), a, b)


@defines("prmt")
def prmt(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Any four of the eight bytes b:a; a selector's bit 3 spreads the byte's sign instead."""

    def one(low: int, high: int, selector: int) -> int:
        pair = high << 32 | low
        if form.mode is not None:
            selector = _PERMUTATIONS[form.mode][selector & 3]
        picked = [_selected_byte(pair, selector >> 4 * place & 0xF) for place in range(4)]
        return sum(byte << 8 * place for place, byte in enumerate(picked))

    return lanewise(one, DTYPES["b32"], a, b, c)


def _selected_byte(pair: int, selector: int) -> int:
    byte = pair >> 8 * (selector & 7) & 0xFF
    return byte if selector < 8 else 0xFF * (byte >> 7)


# Selectors of the special modes, for the values 0 to 3 of the third operand (PTX ISA, prmt).
_PERMUTATIONS = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


# ---- carry chains (PTX ISA 9.7.2): these take and give the carry flag beside their operands


def add_with_carry(form: Form, carry: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``add.cc`` and ``addc``: the sum and the carry out."""
    return _chained(form, lambda x, y, flag: x + y + flag, _unsigned(a), _unsigned(b), carry)


def subtract_with_borrow(form: Form, carry: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``sub.cc`` and ``subc``: the sum with the complement, as the hardware does it: a carry out means no borrow.

    The manual calls the flag a borrow. The difference shows where ``addc`` follows ``sub.cc``, as in NVIDIA's own division
    of 128 bits; ptxas hands the flag over as it is.
    """
    ones = (1 << _width(form)) - 1
    return _chained(form, lambda x, y, flag: x + (y ^ ones) + flag, _unsigned(a), _unsigned(b), carry)


def multiply_add_with_carry(
    form: Form, carry: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``mad.cc`` and ``madc``: the half product plus `c`, and the carry out of that addition."""
    half = mul(form, a, b)
    return _chained(form, lambda x, y, flag: x + y + flag, _unsigned(half), _unsigned(c), carry)


def _chained(form: Form, function: Callable[..., int], *sources: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lanes = zip(*(source.tolist() for source in sources), strict=True)
    exact = [function(*lane) for lane in lanes]
    return wrap(exact, _dtype(form)), np.array([not 0 <= value < 1 << _width(form) for value in exact])
