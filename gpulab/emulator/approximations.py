"""The approximate functions of PTX (``ex2.approx``, ``sin.approx``, ``div.full``, …), defined once for both engines.

PTX gives only error bounds. Each function here is a short algorithm over IEEE float64 operations that are exact to the
last bit everywhere: no library functions, no fused multiply-add. The interpreter evaluates it with NumPy and the
compiled engine emits it as LLVM vectors, so that both agree bit for bit. Arguments are float64; the result is rounded
once to the type of the instruction, which leaves an error far below the documented bounds (PTX ISA, floating-point
instructions).
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, log, pi
from typing import Any, Protocol

import numpy as np

from gpulab.ptx.opcodes import Form

Value = Any
"""A vector of 32 float64, int64 or booleans, in whatever form the operations have it."""


class Operations(Protocol):
    """What an algorithm may use. `real` and `integer` make constants; integers have 64 bits and wrap."""

    def real(self, value: float) -> Value: ...
    def integer(self, value: int) -> Value: ...
    def add(self, a: Value, b: Value) -> Value: ...
    def sub(self, a: Value, b: Value) -> Value: ...
    def mul(self, a: Value, b: Value) -> Value: ...
    def div(self, a: Value, b: Value) -> Value: ...
    def sqrt(self, a: Value) -> Value: ...
    def floor(self, a: Value) -> Value: ...
    def less(self, a: Value, b: Value) -> Value:
        """False if either is NaN."""

    def equal(self, a: Value, b: Value) -> Value:
        """False if either is NaN."""

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """`a` where the condition holds, else `b`; for reals and for integers."""

    def bits(self, a: Value) -> Value:
        """The pattern of a real as an integer."""

    def from_bits(self, a: Value) -> Value: ...
    def to_integer(self, a: Value) -> Value:
        """A real that is integral and small, as an integer."""

    def to_real(self, a: Value) -> Value: ...
    def iadd(self, a: Value, b: Value) -> Value: ...
    def iand(self, a: Value, b: Value) -> Value: ...
    def ior(self, a: Value, b: Value) -> Value: ...
    def shift_left(self, a: Value, count: int) -> Value: ...
    def shift_right(self, a: Value, count: int) -> Value:
        """Logical."""


Function = Callable[..., Value]

MANTISSA_BITS = 52
EXPONENT_BIAS = 1023
MANTISSA_MASK = (1 << MANTISSA_BITS) - 1
SIGN_MASK = 1 << 63
# As int64 constants, for engines whose integers are signed.
ALL_BUT_SIGN = SIGN_MASK - 1
HIGH_WORD = -(1 << 32)
SMALLEST_NORMAL_F32 = 2.0**-126
SMALLEST_NORMAL_F64 = 2.0**-1022


# ---- exact operations that hardware only approximates


def reciprocal(ops: Operations, x: Value) -> Value:
    """1 / x."""
    return ops.div(ops.real(1.0), x)


def square_root(ops: Operations, x: Value) -> Value:
    """The square root; NaN below -0."""
    return ops.sqrt(x)


def reciprocal_square_root(ops: Operations, x: Value) -> Value:
    """1 / sqrt(x)."""
    return ops.div(ops.real(1.0), ops.sqrt(x))


def divide_full(ops: Operations, a: Value, b: Value) -> Value:
    """a / b over the full range."""
    return ops.div(a, b)


def divide_fast(ops: Operations, a: Value, b: Value) -> Value:
    """a * (1 / b); 1 / b is flushed to zero for |b| above 2**126, so that 0 results, and NaN for an infinite `a`."""
    return ops.mul(a, _flush(ops, reciprocal(ops, b), SMALLEST_NORMAL_F32))


def reciprocal_coarse(ops: Operations, x: Value) -> Value:
    """``rcp.approx.ftz.f64``: only the high words of argument and result count."""
    x = _flush(ops, _high_word(ops, x), SMALLEST_NORMAL_F64)
    return _high_word(ops, _flush(ops, reciprocal(ops, x), SMALLEST_NORMAL_F64))


def reciprocal_square_root_coarse(ops: Operations, x: Value) -> Value:
    """``rsqrt.approx.ftz.f64``: only the high words of argument and result count."""
    x = _flush(ops, _high_word(ops, x), SMALLEST_NORMAL_F64)
    return _high_word(ops, reciprocal_square_root(ops, x))


# ---- exponential and logarithm


def exp2(ops: Operations, x: Value) -> Value:
    """2**x: a power of two by its bits, times a Taylor polynomial on [-1/2, 1/2]."""
    # Beyond 200 every 32-bit result is 0 or infinite; in between the power of two is a normal float64.
    inside = _clamp(ops, ops.select(ops.equal(x, x), x, ops.real(0.0)), 200.0)
    whole = ops.floor(ops.add(inside, ops.real(0.5)))
    power = _polynomial(ops, ops.sub(inside, whole), [log(2.0) ** k / factorial(k) for k in range(13)])
    scale = ops.shift_left(ops.iadd(ops.to_integer(whole), ops.integer(EXPONENT_BIAS)), MANTISSA_BITS)
    return ops.select(ops.equal(x, x), ops.mul(power, ops.from_bits(scale)), x)


def log2(ops: Operations, x: Value) -> Value:
    """The logarithm to base 2: the exponent, and the series of the inverse hyperbolic tangent for the mantissa."""
    pattern = ops.bits(x)
    exponent = ops.to_real(ops.iadd(ops.shift_right(pattern, MANTISSA_BITS), ops.integer(-EXPONENT_BIAS)))
    mantissa = ops.from_bits(
        ops.ior(ops.iand(pattern, ops.integer(MANTISSA_MASK)), ops.integer(EXPONENT_BIAS << MANTISSA_BITS))
    )
    is_large = ops.less(ops.real(2.0**0.5), mantissa)
    mantissa = ops.select(is_large, ops.mul(mantissa, ops.real(0.5)), mantissa)
    exponent = ops.select(is_large, ops.add(exponent, ops.real(1.0)), exponent)
    ratio = ops.div(ops.sub(mantissa, ops.real(1.0)), ops.add(mantissa, ops.real(1.0)))
    series = _polynomial(ops, ops.mul(ratio, ratio), [2.0 / ((2 * k + 1) * log(2.0)) for k in range(11)])
    result = ops.add(exponent, ops.mul(ratio, series))
    infinity = ops.real(float("inf"))
    result = ops.select(ops.less(x, infinity), result, x)
    result = ops.select(ops.equal(x, ops.real(0.0)), ops.real(float("-inf")), result)
    return ops.select(ops.less(x, ops.real(0.0)), ops.real(float("nan")), result)


def hyperbolic_tangent(ops: Operations, x: Value) -> Value:
    """1 - 2 / (e**(2x) + 1), by its series near zero."""
    power = exp2(ops, ops.mul(x, ops.real(2.0 / log(2.0))))
    far = ops.sub(ops.real(1.0), ops.div(ops.real(2.0), ops.add(power, ops.real(1.0))))
    square = ops.mul(x, x)
    near = ops.mul(x, _polynomial(ops, square, [1.0, -1.0 / 3.0, 2.0 / 15.0]))
    return ops.select(ops.less(square, ops.real(2.0**-20)), near, far)


# ---- sine and cosine


def sine(ops: Operations, x: Value) -> Value:
    """The sine; NaN for infinities. Arguments so large that a turn is less than their spacing give 0."""
    quarter, angle = _quarter_turn(ops, x)
    return _by_quarter(ops, quarter, _sine_series(ops, angle), _cosine_series(ops, angle))


def cosine(ops: Operations, x: Value) -> Value:
    """The cosine; NaN for infinities. Arguments so large that a turn is less than their spacing give 1."""
    quarter, angle = _quarter_turn(ops, x)
    return _by_quarter(ops, quarter, _cosine_series(ops, angle), _negative(ops, _sine_series(ops, angle)))


def _quarter_turn(ops: Operations, x: Value) -> tuple[Value, Value]:
    """The nearest quarter of a turn, -2 to 2, and the rest as an angle within 1/8 turn."""
    turns = ops.mul(x, ops.real(0.5 / pi))
    turns = ops.sub(turns, ops.floor(ops.add(turns, ops.real(0.5))))
    quarter = ops.floor(ops.add(ops.mul(turns, ops.real(4.0)), ops.real(0.5)))
    return quarter, ops.mul(ops.sub(turns, ops.mul(quarter, ops.real(0.25))), ops.real(2.0 * pi))


def _by_quarter(ops: Operations, quarter: Value, even: Value, odd: Value) -> Value:
    """f(q * pi/2 + angle) from f(angle) and f(pi/2 + angle): the sign turns every half turn."""
    result = ops.select(ops.equal(quarter, ops.real(1.0)), odd, even)
    result = ops.select(ops.equal(quarter, ops.real(-1.0)), _negative(ops, odd), result)
    is_half = ops.equal(ops.mul(quarter, quarter), ops.real(4.0))
    return ops.select(is_half, _negative(ops, even), result)


def _sine_series(ops: Operations, angle: Value) -> Value:
    terms = [(-1.0) ** k / factorial(2 * k + 1) for k in range(8)]
    return ops.mul(angle, _polynomial(ops, ops.mul(angle, angle), terms))


def _cosine_series(ops: Operations, angle: Value) -> Value:
    return _polynomial(ops, ops.mul(angle, angle), [(-1.0) ** k / factorial(2 * k) for k in range(8)])


# ---- parts


def _polynomial(ops: Operations, x: Value, coefficients: list[float]) -> Value:
    """Horner's scheme; coefficients by rising power."""
    result = ops.real(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = ops.add(ops.mul(result, x), ops.real(coefficient))
    return result


def _clamp(ops: Operations, x: Value, limit: float) -> Value:
    high, low = ops.real(limit), ops.real(-limit)
    x = ops.select(ops.less(high, x), high, x)
    return ops.select(ops.less(x, low), low, x)


def _negative(ops: Operations, x: Value) -> Value:
    return ops.mul(x, ops.real(-1.0))


def _flush(ops: Operations, x: Value, smallest: float) -> Value:
    """Zero with the sign of `x` where its magnitude is below the smallest normal number."""
    magnitude = ops.from_bits(ops.iand(ops.bits(x), ops.integer(ALL_BUT_SIGN)))
    return ops.select(ops.less(magnitude, ops.real(smallest)), ops.mul(x, ops.real(0.0)), x)


def _high_word(ops: Operations, x: Value) -> Value:
    return ops.from_bits(ops.iand(ops.bits(x), ops.integer(HIGH_WORD)))


_FUNCTIONS: dict[tuple[str, str | None], Function] = {
    ("rcp", "approx"): reciprocal,
    ("sqrt", "approx"): square_root,
    ("rsqrt", "approx"): reciprocal_square_root,
    ("div", "approx"): divide_fast,
    ("div", "full"): divide_full,
    ("ex2", "approx"): exp2,
    ("lg2", "approx"): log2,
    ("tanh", "approx"): hyperbolic_tangent,
    ("sin", "approx"): sine,
    ("cos", "approx"): cosine,
}


def approximation(form: Form) -> Function:
    """The algorithm of an approximate instruction: called with the operations and its float64 arguments."""
    if form.type == "f64" and form.ftz:
        return reciprocal_coarse if form.opcode == "rcp" else reciprocal_square_root_coarse
    return _FUNCTIONS[form.opcode, form.mode]


class NumpyOperations:
    """The operations on NumPy arrays."""

    def real(self, value: float) -> np.float64:
        return np.float64(value)

    def integer(self, value: int) -> np.int64:
        return np.int64(value)

    def add(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.add(a, b)

    def sub(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.subtract(a, b)

    def mul(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.multiply(a, b)

    def div(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.divide(a, b)

    def sqrt(self, a: np.ndarray) -> np.ndarray:
        return np.sqrt(a)

    def floor(self, a: np.ndarray) -> np.ndarray:
        return np.floor(a)

    def less(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.less(a, b)

    def equal(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.equal(a, b)

    def select(self, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.where(condition, a, b)

    def bits(self, a: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(a, np.float64).view(np.int64)

    def from_bits(self, a: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(a, np.int64).view(np.float64)

    def to_integer(self, a: np.ndarray) -> np.ndarray:
        return np.asarray(a).astype(np.int64)

    def to_real(self, a: np.ndarray) -> np.ndarray:
        return np.asarray(a).astype(np.float64)

    def iadd(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.add(a, b)

    def iand(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.bitwise_and(a, b)

    def ior(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.bitwise_or(a, b)

    def shift_left(self, a: np.ndarray, count: int) -> np.ndarray:
        return np.left_shift(a, count)

    def shift_right(self, a: np.ndarray, count: int) -> np.ndarray:
        return (np.ascontiguousarray(a, np.int64).view(np.uint64) >> np.uint64(count)).view(np.int64)
