"""f16 and bf16, single and in pairs: exact in rational numbers, rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.emulator import exact
from gpulab.emulator.approximations import NumpyOperations, approximation
from gpulab.emulator.reference.floats import flush, saturate, signed_extremum
from gpulab.emulator.reference.values import CANONICAL_NAN, defines
from gpulab.ptx.opcodes import Form

HALVES = ("f16", "bf16")
_OPERATIONS = NumpyOperations()


def is_half(form: Form) -> bool:
    """Whether a form computes on halves, single or in pairs."""
    return form.type is not None and form.type.removesuffix("x2") in HALVES


def widen(value: np.ndarray, kind: str) -> np.ndarray:
    """Halves as float64; bf16 comes as patterns, which are the upper halves of f32."""
    if kind == "bf16":
        return (value.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return value.view(np.float16).astype(np.float64)


def narrow(value: np.ndarray, kind: str, mode: str = "rn") -> np.ndarray:
    """Float64 rounded once to halves, as patterns (uint16), NaN canonical."""
    rounded = np.array([exact.round_to(x, mode, exact.FORMATS[kind]) for x in value.tolist()])
    if kind == "bf16":
        pattern = (rounded.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        pattern = rounded.astype(np.float16).view(np.uint16)
    return np.where(np.isnan(value), np.uint16(CANONICAL_NAN[kind]), pattern)


def unpack(pair: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Low and high half of a packed pair, as patterns."""
    return (pair & 0xFFFF).astype(np.uint16), (pair >> 16).astype(np.uint16)


def pack(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A pair from the patterns of its halves."""
    return low.astype(np.uint32) | high.astype(np.uint32) << 16


def by_halves(form: Form, function: Callable[..., np.ndarray], *sources: np.ndarray) -> np.ndarray:
    """Apply ``function(kind, *patterns)`` to single halves, or to both halves of pairs."""
    kind = (form.type or "").removesuffix("x2")
    if not (form.type or "").endswith("x2"):
        return function(kind, *(source.view(np.uint16) for source in sources)).view(sources[0].dtype)
    lows, highs = zip(*(unpack(source) for source in sources), strict=True)
    return pack(function(kind, *lows), function(kind, *highs))


def _values(form: Form, kind: str, *patterns: np.ndarray) -> list[np.ndarray]:
    values = [widen(pattern, kind) for pattern in patterns]
    return [flush(value, "f16") for value in values] if form.ftz and kind == "f16" else values


def _finish(form: Form, kind: str, value: np.ndarray) -> np.ndarray:
    """Round, then flush, saturate or clip as the form says; as patterns."""
    pattern = narrow(value, kind)
    if not (form.ftz or form.saturate or form.relu):
        return pattern
    value = widen(pattern, kind)
    if form.ftz and kind == "f16":
        value = flush(value, "f16")
    if form.saturate:
        value = saturate(value)
    if form.relu:
        value = np.where(value < 0, 0.0, value)
    return narrow(value, kind)


def _rounded(form: Form, function: Callable[..., float], *sources: np.ndarray) -> np.ndarray:
    def one(kind: str, *patterns: np.ndarray) -> np.ndarray:
        values = _values(form, kind, *patterns)
        lanes = zip(*(value.tolist() for value in values), strict=True)
        results = [function(*lane, "rn", exact.FORMATS[kind]) for lane in lanes]
        return _finish(form, kind, np.array(results))

    return by_halves(form, one, *sources)


@defines("add", is_half)
def add(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _rounded(form, exact.add, a, b)


@defines("sub", is_half)
def sub(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _rounded(form, lambda x, y, mode, target: exact.add(x, -y, mode, target), a, b)


@defines("mul", is_half)
def mul(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return _rounded(form, exact.multiply, a, b)


@defines("fma", is_half)
def fma(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return _rounded(form, exact.fused_multiply_add, a, b, c)


@defines("min", is_half)
@defines("max", is_half)
def min_max(form: Form, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    def one(kind: str, *patterns: np.ndarray) -> np.ndarray:
        return _finish(form, kind, signed_extremum(form, *_values(form, kind, *patterns)))

    return by_halves(form, one, a, b)


@defines("neg", is_half)
def neg(form: Form, a: np.ndarray) -> np.ndarray:
    return by_halves(form, lambda kind, x: _flushed(form, kind, x) ^ np.uint16(0x8000), a)


@defines("abs", is_half)
def abs_(form: Form, a: np.ndarray) -> np.ndarray:
    return by_halves(form, lambda kind, x: _flushed(form, kind, x) & np.uint16(0x7FFF), a)


def _flushed(form: Form, kind: str, pattern: np.ndarray) -> np.ndarray:
    is_denormal = pattern & 0x7C00 == 0
    return np.where(is_denormal, pattern & np.uint16(0x8000), pattern) if form.ftz and kind == "f16" else pattern


def _approximate(form: Form, a: np.ndarray) -> np.ndarray:
    def one(kind: str, pattern: np.ndarray) -> np.ndarray:
        (value,) = _values(form, kind, pattern)
        return _finish(form, kind, approximation(form)(_OPERATIONS, value))

    return by_halves(form, one, a)


for _opcode in ("ex2", "tanh"):
    defines(_opcode, is_half)(_approximate)
