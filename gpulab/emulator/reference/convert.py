"""Conversions between types: `cvt` (PTX ISA 9.7.9, cvt)."""

from __future__ import annotations

import numpy as np

from gpulab.emulator import exact
from gpulab.emulator.reference import fp8
from gpulab.emulator.reference.floats import flush, saturate
from gpulab.emulator.reference.halves import HALVES, narrow, pack, unpack, widen
from gpulab.emulator.reference.values import DTYPES, canonical, defines, lanewise, wrap
from gpulab.ptx.opcodes import Form
from gpulab.ptx.types import bits_of, is_signed

_FLOATS = ("f16", "bf16", "f32", "f64")
_TF32 = exact.Format(11, -136, 128)
_LARGEST_HALF = {"f16": 65504.0, "bf16": (2.0 - 2.0**-7) * 2.0**127}


@defines("cvt")
def cvt(form: Form, a: np.ndarray, b: np.ndarray | None = None, c: np.ndarray | None = None) -> np.ndarray:
    """Convert by the families of source and destination."""
    source, target = form.source_type or "", form.type or ""
    if form.mode == "pack":
        return _packed_integers(form, a, b, c)
    if target[:-2] in fp8.FORMATS:
        return _to_fp8(form, a, b)
    if source[:-2] in fp8.FORMATS:
        return _from_fp8(form, a)
    if b is not None:
        # The first source becomes the high half.
        return pack(_to_half(form, b, target[:-2]), _to_half(form, a, target[:-2]))
    if target == "tf32":
        return _to_tf32(form, a)
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
    return _stored(form, _kept_finite(form, value, target))


def _kept_finite(form: Form, value: np.ndarray, kind: str) -> np.ndarray:
    """With ``.satfinite`` the largest number in place of infinity."""
    return np.clip(value, -_LARGEST_HALF[kind], _LARGEST_HALF[kind]) if form.finite else value


def _stored(form: Form, value: np.ndarray) -> np.ndarray:
    """Numbers that the type holds exactly, in its dtype."""
    target = form.type or ""
    if form.saturate:
        value = saturate(value)
    if target in HALVES:
        return narrow(value, target).view(DTYPES[target])
    return canonical(value.astype(DTYPES[target]), target)


def _to_half(form: Form, a: np.ndarray, kind: str) -> np.ndarray:
    return narrow(_kept_finite(form, _clipped(form, a.astype(np.float64)), kind), kind, form.rounding or "rn")


def _clipped(form: Form, value: np.ndarray) -> np.ndarray:
    """With ``.relu`` 0 in place of numbers below zero."""
    return np.where(value < 0, 0.0, value) if form.relu else value


def _to_tf32(form: Form, a: np.ndarray) -> np.ndarray:
    """Round to ten bits behind the point; the rest of the word is zero."""
    value = _clipped(form, a.astype(np.float64))
    rounded = np.array([exact.round_to(x, form.rounding or "rn", _TF32) for x in value.tolist()])
    if form.finite:
        largest = (2.0 - 2.0**-10) * 2.0**127
        rounded = np.clip(rounded, -largest, largest)
    return canonical(rounded.astype(np.float32), "f32").view(np.uint32)


# ---- pairs of 8-bit floats, packed integers


def _to_fp8(form: Form, a: np.ndarray, b: np.ndarray | None) -> np.ndarray:
    """The first source, or the upper half of the only one, becomes the high byte."""
    kind = (form.type or "")[:-2]
    if b is None:
        low, high = (widen(half, "f16") for half in unpack(a))
    else:
        high, low = a.astype(np.float64), b.astype(np.float64)
    codes = [fp8.encode(kind, _clipped(form, value)) for value in (low, high)]
    return codes[0] | codes[1] << np.uint16(8)


def _from_fp8(form: Form, a: np.ndarray) -> np.ndarray:
    kind = (form.source_type or "")[:-2]
    parts = [fp8.decode(kind, code) for code in (a & 0xFF, a >> 8)]
    return pack(*(narrow(_clipped(form, part), "f16") for part in parts))


def _packed_integers(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    """``cvt.pack``: both sources saturated, the second one lowest; above them the low bits of `c`."""
    target = form.type or ""
    bits = int(target[1:])
    low = -(1 << (bits - 1)) if is_signed(target) else 0
    high = low + (1 << bits) - 1

    def one(x: int, y: int, rest: int) -> int:
        upper, lower = (min(max(value, low), high) & (1 << bits) - 1 for value in (x, y))
        return (rest << 2 * bits) | upper << bits | lower

    return lanewise(one, DTYPES["b32"], a, b, np.zeros_like(a) if c is None else c)
