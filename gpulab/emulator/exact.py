"""Correct rounding, from first principles: exact rational numbers of Python integers, rounded once.

NumPy rounds to nearest only and has no fused multiply-add. Where PTX asks for another rounding mode, for an `fma`, or
for a conversion, the interpreter computes the exact result as a ratio of integers and rounds it here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, inf, isfinite, isqrt, ldexp, nan


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format.

    Attributes
    ----------
    precision : int
        Significant bits, the hidden one included.
    lowest : int
        Exponent of the last bit of denormals: the smallest positive number is 2**lowest.
    highest : int
        The largest finite number is below 2**highest.
    """

    precision: int
    lowest: int
    highest: int


FORMATS = {
    "f16": Format(11, -24, 16),
    "bf16": Format(8, -133, 128),
    "f32": Format(24, -149, 128),
    "f64": Format(53, -1074, 1024),
}


def round_ratio(numerator: int, denominator: int, mode: str, target: Format) -> float:
    """The number of a format nearest to a ratio, by a rounding mode.

    Parameters
    ----------
    numerator, denominator : int
        The exact value; the denominator is positive.
    mode : str
        ``rn`` (to nearest, ties to even), ``rz`` (to zero), ``rm`` (down), ``rp`` (up), ``rna`` (to nearest, ties
        away).
    target : Format

    Returns
    -------
    float
        Exact in float64. Only a ratio of exactly 0 has no sign of its own: it gives +0.
    """
    negative, magnitude = numerator < 0, abs(numerator)
    if magnitude == 0:
        return 0.0
    last = max(_exponent(magnitude, denominator) - target.precision + 1, target.lowest)
    scaled, unit = (magnitude, denominator << last) if last >= 0 else (magnitude << -last, denominator)
    whole = round_quotient(scaled, unit, mode, negative)
    if whole.bit_length() + last > target.highest:
        to_infinity = mode in ("rn", "rna") or mode == ("rm" if negative else "rp")
        result = inf if to_infinity else ldexp(2**target.precision - 1, target.highest - target.precision)
    else:
        result = ldexp(whole, last)
    return -result if negative else result


def round_quotient(numerator: int, denominator: int, mode: str, negative: bool = False) -> int:
    """A quotient of non-negative integers rounded to an integer; `negative` tells the sign that it will get."""
    whole, rest = divmod(numerator, denominator)
    if rest == 0:
        return whole
    if mode in ("rn", "rna"):
        above = 2 * rest > denominator
        tie = 2 * rest == denominator
        return whole + (above or (tie and (mode == "rna" or whole % 2 == 1)))
    return whole + (mode == ("rm" if negative else "rp"))


def _exponent(numerator: int, denominator: int) -> int:
    """The integer e with 2**e <= numerator / denominator < 2**(e+1)."""
    guess = numerator.bit_length() - denominator.bit_length()
    reached = numerator >= denominator << guess if guess >= 0 else numerator << -guess >= denominator
    return guess if reached else guess - 1


def add(a: float, b: float, mode: str, target: Format) -> float:
    """a + b, rounded once."""
    if not (isfinite(a) and isfinite(b)):
        return a + b
    (na, da), (nb, db) = a.as_integer_ratio(), b.as_integer_ratio()
    numerator = na * db + nb * da
    return round_ratio(numerator, da * db, mode, target) if numerator else _zero_sum(a, b, mode)


def multiply(a: float, b: float, mode: str, target: Format) -> float:
    """a * b, rounded once."""
    if not (isfinite(a) and isfinite(b)):
        return a * b
    (na, da), (nb, db) = a.as_integer_ratio(), b.as_integer_ratio()
    return copysign(round_ratio(na * nb, da * db, mode, target), _product_sign(a, b))


def fused_multiply_add(a: float, b: float, c: float, mode: str, target: Format) -> float:
    """a * b + c, rounded once."""
    if not (isfinite(a) and isfinite(b) and isfinite(c)):
        # A finite product must not overflow on the way to an infinite c.
        product = a * b if not (isfinite(a) and isfinite(b)) else _product_sign(a, b)
        return product + c
    (na, da), (nb, db), (nc, dc) = a.as_integer_ratio(), b.as_integer_ratio(), c.as_integer_ratio()
    numerator = na * nb * dc + nc * da * db
    if numerator == 0:
        return _zero_sum(_product_sign(a, b), c if c == 0 else -_product_sign(a, b), mode)
    return round_ratio(numerator, da * db * dc, mode, target)


def divide(a: float, b: float, mode: str, target: Format) -> float:
    """a / b, rounded once."""
    if b == 0 or not (isfinite(a) and isfinite(b)):
        return _divide_special(a, b)
    (na, da), (nb, db) = a.as_integer_ratio(), b.as_integer_ratio()
    numerator, denominator = (na * db, da * nb) if nb > 0 else (-na * db, -da * nb)
    return copysign(round_ratio(numerator, denominator, mode, target), _product_sign(a, b))


def square_root(a: float, mode: str, target: Format) -> float:
    """The square root, rounded once."""
    if a == 0 or a == inf or a != a:
        return a
    if a < 0:
        return nan
    numerator, denominator = a.as_integer_ratio()
    # Enough bits that the integer root and a sticky bit below it decide every rounding.
    shift = 2 * (target.precision + 2 + denominator.bit_length())
    root = isqrt((numerator << shift) // denominator)
    sticky = root * root * denominator != numerator << shift
    return round_ratio(2 * root + sticky, 2 << (shift // 2), mode, target)


def round_to(a: float, mode: str, target: Format) -> float:
    """A number in another format."""
    if a == 0 or not isfinite(a):
        return a
    return copysign(round_ratio(*a.as_integer_ratio(), mode, target), a)


def round_to_integral(a: float, mode: str) -> float:
    """The integral number nearest to a finite number, with its sign even if zero."""
    if not isfinite(a):
        return a
    numerator, denominator = abs(a).as_integer_ratio()
    return copysign(float(round_quotient(numerator, denominator, mode, a < 0)), a)


def _product_sign(a: float, b: float) -> float:
    return copysign(1.0, a) * copysign(1.0, b)


def _zero_sum(a: float, b: float, mode: str) -> float:
    """A sum that is exactly zero: -0 + -0 is -0, and of opposite signs + except when rounding down (IEEE 754, 6.3)."""
    if copysign(1.0, a) == copysign(1.0, b):
        return copysign(0.0, a)
    return -0.0 if mode == "rm" else 0.0


def _divide_special(a: float, b: float) -> float:
    if a != a or b != b or (a == 0 and b == 0) or (abs(a) == inf and abs(b) == inf):
        return nan
    return copysign(inf if b == 0 or abs(a) == inf else 0.0, _product_sign(a, b))
