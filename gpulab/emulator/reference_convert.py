"""Conversions between types: `cvt` (PTX ISA 9.7.9, cvt)."""

from __future__ import annotations

import numpy as np

from gpulab.emulator import exact
from gpulab.emulator.reference_float import flush, saturate
from gpulab.emulator.reference_half import HALVES, narrow, pack, widen
from gpulab.emulator.reference_values import CANONICAL_NAN, DTYPES, canonical, defines, lanewise, wrap
from gpulab.ptx.opcodes import Form
from gpulab.ptx.types import bits_of, is_signed

_FLOATS = ("f16", "bf16", "f32", "f64")
_TF32_HIDDEN_BITS = 13


@defines("cvt")
def cvt(form: Form, a: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    """Convert by the families of source and destination."""
    source, target = form.source_type or "", form.type or ""
    if b is not None:
        # The first source becomes the high half.
        return pack(_to_half(form, b, target[:-2]), _to_half(form, a, target[:-2]))
    if target == "tf32":
        return _to_tf32(a)
    if source in _FLOATS:
        value = _as_float64(form, a, source)
        return _float_to_float(form, value) if target in _FLOATS else _float_to_integer(form, value, source)
    return _integer_to_float(form, a) if target in _FLOATS else _integer_to_integer(form, a)


def _as_float64(form: Form, a: np.ndarray, source: str) -> np.ndarray:
    if source in HALVES:
        return widen(a, source)
    return (flush(a, "f32") if form.ftz and source == "f32" else a).astype(np.float64)


# ---- to integers


def integer_range(type_name: str) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = bits_of(type_name)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed(type_name) else (0, (1 << bits) - 1)


def _integer_to_integer(form: Form, a: np.ndarray) -> np.ndarray:
    target = form.type or ""
    low, high = integer_range(target)
    return lanewise(lambda x: min(max(x, low), high) if form.saturate else x, DTYPES[target], a)


def _float_to_integer(form: Form, value: np.ndarray, source: str) -> np.ndarray:
    """Round to an integral value, clamp to the type's range; NaN has a value of its own."""
    target = form.type or ""
    low, high = integer_range(target)
    of_nan = 1 << (bits_of(target) - 1) if source == "f64" or bits_of(target) == 64 else 0

    def one(x: float) -> int:
        if x != x:
            return of_nan
        if abs(x) == np.inf:
            return high if x > 0 else low
        return min(max(int(exact.round_to_integral(x, _mode(form))), low), high)

    return wrap([one(x) for x in value.tolist()], DTYPES[target])


def _mode(form: Form) -> str:
    """The mode of ``rni`` and its kin without the ``i``."""
    return (form.rounding or "rn")[:2]


# ---- to floats


def _integer_to_float(form: Form, a: np.ndarray) -> np.ndarray:
    target = form.type or ""
    values = [exact.round_ratio(x, 1, _mode(form), exact.FORMATS[target]) for x in a.tolist()]
    return _stored(form, np.array(values, np.float64))


def _float_to_float(form: Form, value: np.ndarray) -> np.ndarray:
    target = form.type or ""
    if form.rounding is not None and form.rounding.endswith("i"):
        value = np.array([exact.round_to_integral(x, _mode(form)) for x in value.tolist()])
    value = np.array([exact.round_to(x, _mode(form), exact.FORMATS[target]) for x in value.tolist()])
    if form.ftz and target == "f32":
        value = flush(value, "f32")
    if form.relu:
        value = np.where(value > 0, value, np.where(np.isnan(value), value, 0.0))
    return _stored(form, value)


def _stored(form: Form, value: np.ndarray) -> np.ndarray:
    """Numbers that the type holds exactly, in its dtype."""
    target = form.type or ""
    if form.saturate:
        value = saturate(value)
    if target in HALVES:
        return narrow(value, target).view(DTYPES[target])
    return canonical(value.astype(DTYPES[target]), target)


def _to_half(form: Form, a: np.ndarray, kind: str) -> np.ndarray:
    value = a.astype(np.float64)
    if form.relu:
        value = np.where(value < 0, 0.0, value)
    return narrow(value, kind, form.rounding or "rn")


def _to_tf32(a: np.ndarray) -> np.ndarray:
    """Round to nearest, ties away, to ten bits behind the point; the rest of the word is zero."""
    pattern = a.view(np.uint32)
    mask = np.uint32((1 << _TF32_HIDDEN_BITS) - 1)
    rounded = (pattern + np.uint32(1 << (_TF32_HIDDEN_BITS - 1))) & ~mask
    special = np.where(np.isnan(a), np.uint32(CANONICAL_NAN["f32"]), pattern)
    return np.where(np.isfinite(a), rounded, special)
