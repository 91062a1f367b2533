"""f32 and f64 arithmetic: NumPy where it rounds as PTX asks, exact rational numbers elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.emulator import exact
from gpulab.emulator.approximations import NumpyOperations, approximation
from gpulab.emulator.reference.values import DTYPES, UNSIGNED, canonical, defines
from gpulab.ptx.opcodes import Form

SMALLEST_NORMAL = {"f16": 2.0**-14, "f32": 2.0**-126, "f64": 2.0**-1022}
_OPERATIONS = NumpyOperations()


def _is_float(form: Form) -> bool:
    return form.type in ("f32", "f64") and form.source_type is None


def _is_approximate(form: Form) -> bool:
    return _is_float(form) and form.mode in ("approx", "full")


def _is_exact(form: Form) -> bool:
    return _is_float(form) and form.mode is None


def flush(value: np.ndarray, type_name: str) -> np.ndarray:
    """Denormals become zeros of the same sign."""
    is_denormal = np.abs(value) < SMALLEST_NORMAL[type_name]
    return np.where(is_denormal, np.copysign(value.dtype.type(0), value), value)


def saturate(value: np.ndarray) -> np.ndarray:
    """Clamp to [0, 1]; NaN and -0 become +0."""
    one, zero = value.dtype.type(1), value.dtype.type(0)
    return np.where(value > 0, np.minimum(value, one), zero)


def sources_of(form: Form, *sources: np.ndarray) -> list[np.ndarray]:
    """The sources as the operation sees them: flushed if it says ``.ftz``."""
    return [flush(source, "f32") if form.ftz and source.dtype == np.float32 else source for source in sources]


def finish(form: Form, result: np.ndarray) -> np.ndarray:
    """What is done to every arithmetic result: flush, saturate, canonical NaN."""
    assert form.type is not None
    if form.ftz and form.type == "f32":
        result = flush(result, "f32")
    if form.saturate:
        result = saturate(result)
    return canonical(result, form.type)


def rounded(form: Form, function: Callable[..., float], *sources: np.ndarray) -> np.ndarray:
    """Apply an exact function of `gpulab.emulator.exact` to each lane."""
    assert form.type is not None and form.rounding is not None
    target = exact.FORMATS[form.type]
    lanes = zip(*(source.tolist() for source in sources), strict=True)
    return np.array([function(*lane, form.rounding, target) for lane in lanes], DTYPES[form.type])


def _arithmetic(
    form: Form, nearest: Callable[..., np.ndarray], directed: Callable[..., float], *sources: np.ndarray
) -> np.ndarray:
    sources = tuple(sources_of(form, *sources))
    result = nearest(*sources) if form.rounding == "rn" else rounded(form, directed, *sources)
    return finish(form, result)


# ---- the four operations, fma, roots


@defines("add", _is_float)
def add(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _arithmetic(form, np.add, exact.add, a, b)


@defines("sub", _is_float)
def sub(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return add(form, a, -b)


@defines("mul", _is_float)
def mul(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _arithmetic(form, np.multiply, exact.multiply, a, b)


def _fma_nearest(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """One rounding of a * b + c in f32, by way of f64 rounded to odd.

    The product of two f32 is exact in f64. The sum is not, and rounding it twice would be wrong: if anything was lost,
    the last bit of the f64 sum is made odd, which tells the second rounding on which side of a tie it is (S. Boldo and
    G. Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
    """
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    part = total - product
    lost = (product - (total - part)) + (addend - part)
    return _to_odd(total, lost).astype(np.float32)


def _to_odd(total: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Of a sum and what its rounding lost: the neighbour with an odd last bit, if anything was lost."""
    pattern = total.view(np.int64)
    inexact = np.isfinite(total) & (lost != 0) & (pattern & 1 == 0)
    # Away from zero if the lost part has the sign of the sum, else towards zero: a step of one in the pattern.
    step = np.where((lost > 0) == (total > 0), 1, -1)
    return np.where(inexact, pattern + step, pattern).view(np.float64)


@defines("fma", _is_float)
@defines("mad", _is_float)
def fma(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    a, b, c = sources_of(form, a, b, c)
    if form.type == "f32" and form.rounding == "rn":
        return finish(form, _fma_nearest(a, b, c))
    return finish(form, rounded(form, exact.fused_multiply_add, a, b, c))


@defines("div", _is_exact)
def div(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _arithmetic(form, np.divide, exact.divide, a, b)


@defines("rcp", _is_exact)
def rcp(form: Form, a: np.ndarray) -> np.ndarray:
    return div(form, np.ones_like(a), a)


@defines("sqrt", _is_exact)
def sqrt(form: Form, a: np.ndarray) -> np.ndarray:
    return _arithmetic(form, np.sqrt, exact.square_root, a)


def _approximate(form: Form, *sources: np.ndarray) -> np.ndarray:
    assert form.type is not None
    wide = [source.astype(np.float64) for source in sources_of(form, *sources)]
    result = np.broadcast_to(approximation(form)(_OPERATIONS, *wide), wide[0].shape)
    return finish(form, result.astype(DTYPES[form.type]))


for _opcode in ("div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"):
    defines(_opcode, _is_approximate)(_approximate)


# ---- signs, extrema, properties


def _pattern(value: np.ndarray) -> np.ndarray:
    return value.view(UNSIGNED[value.dtype.itemsize])


def _sign_bit(value: np.ndarray) -> np.integer:
    return UNSIGNED[value.dtype.itemsize].type(1 << (8 * value.dtype.itemsize - 1))


@defines("abs", _is_float)
def abs_(form: Form, a: np.ndarray) -> np.ndarray:
    (a,) = sources_of(form, a)
    return (_pattern(a) & ~_sign_bit(a)).view(a.dtype)


@defines("neg", _is_float)
def neg(form: Form, a: np.ndarray) -> np.ndarray:
    (a,) = sources_of(form, a)
    return (_pattern(a) ^ _sign_bit(a)).view(a.dtype)


@defines("copysign")
def copysign(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The magnitude of `b` with the sign of `a`."""
    return (_pattern(b) & ~_sign_bit(b) | _pattern(a) & _sign_bit(a)).view(b.dtype)


def extremum(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`min` or `max`: -0 is below +0; a NaN loses against a number unless the form says ``.NaN``."""
    a_below = np.where(a == b, np.signbit(a), a < b)
    smaller, larger = np.where(a_below, a, b), np.where(a_below, b, a)
    result = smaller if form.opcode == "min" else larger
    result = np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
    return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), result) if form.nan else result


def signed_extremum(form: Form, *sources: np.ndarray) -> np.ndarray:
    """The extremum of two or three; with ``.abs`` of magnitudes, with ``.xorsign`` under the product of the signs."""
    values = [np.abs(source) for source in sources] if form.absolute else list(sources)
    result = values[0]
    for value in values[1:]:
        result = extremum(form, result, value)
    if not form.xor_sign:
        return result
    negative = np.signbit(sources[0]) ^ np.signbit(sources[1])
    return np.copysign(result, np.where(negative, result.dtype.type(-1), result.dtype.type(1)))


@defines("min", _is_float)
@defines("max", _is_float)
def min_max(form: Form, *sources: np.ndarray) -> np.ndarray:
    return finish(form, signed_extremum(form, *sources_of(form, *sources)))


@defines("testp")
def testp(form: Form, a: np.ndarray) -> np.ndarray:
    assert form.type is not None
    is_tiny = np.abs(a) < SMALLEST_NORMAL[form.type]
    return {
        "finite": np.isfinite(a),
        "infinite": np.isinf(a),
        "number": ~np.isnan(a),
        "notanumber": np.isnan(a),
        "normal": np.isfinite(a) & ~is_tiny,
        "subnormal": is_tiny & (a != 0),
    }[form.operation or ""]
