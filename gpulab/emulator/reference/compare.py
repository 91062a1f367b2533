"""Comparisons and selections: `setp`, `set`, `selp`, `slct` (PTX ISA 9.7.6 and 9.7.7)."""

from __future__ import annotations

import operator

import numpy as np

from gpulab.emulator.reference.floats import flush, sources_of
from gpulab.emulator.reference.halves import HALVES, pack, unpack, widen
from gpulab.emulator.reference.values import DTYPES, UNSIGNED, defines
from gpulab.ptx.opcodes import Form

_ORDERED = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
_UNSIGNED = {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
_BOOLEAN = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _compare(form: Form, type_name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if type_name in HALVES:
        a, b = widen(a, type_name), widen(b, type_name)
        if form.ftz and type_name == "f16":
            a, b = flush(a, "f16"), flush(b, "f16")
    if a.dtype.kind == "f":
        return _compare_floats(form.comparison or "", *sources_of(form, a, b))
    name = form.comparison or ""
    if name in _UNSIGNED:
        unsigned = UNSIGNED[a.dtype.itemsize]
        return _UNSIGNED[name](a.view(unsigned), b.view(unsigned))
    return _ORDERED[name](a, b)


def _compare_floats(name: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Ordered comparisons are false if either is NaN, unordered ones (``equ``, …) true."""
    unordered = np.isnan(a) | np.isnan(b)
    if name in ("num", "nan"):
        return ~unordered if name == "num" else unordered
    if name.endswith("u") and name[:2] in _ORDERED:
        return unordered | _ORDERED[name[:2]](a, b)
    return ~unordered & _ORDERED[name](a, b)


def _combine(form: Form, condition: np.ndarray, other: np.ndarray | None) -> np.ndarray:
    return condition if other is None else _BOOLEAN[form.boolean or ""](condition, other)


@defines("setp")
def setp(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The comparison and its complement, each combined with `c`; of pairs, the comparison of either half."""
    type_name = form.type or ""
    if type_name.endswith("x2"):
        halves = zip(unpack(a), unpack(b), strict=True)
        low, high = (_combine(form, _compare(form, type_name[:-2], x, y), c) for x, y in halves)
        return low, high
    condition = _compare(form, type_name, a, b)
    return _combine(form, condition, c), _combine(form, ~condition, c)


_ONE = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}


@defines("set")
def set_(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
    """All ones, or 1.0 for a float type, where the comparison holds, else 0; of pairs in each half."""
    source, target = form.source_type or "", form.type or ""
    if source.endswith("x2"):
        halves = zip(unpack(a), unpack(b), strict=True)
        conditions = [_combine(form, _compare(form, source[:-2], x, y), c) for x, y in halves]
        one = np.uint16(_ONE[source[:-2]] if target == source else 0xFFFF)
        return pack(*(np.where(each, one, np.uint16(0)) for each in conditions)).view(DTYPES[target])
    condition = _combine(form, _compare(form, source, a, b), c)
    unsigned = UNSIGNED[DTYPES[target].itemsize]
    truth = unsigned.type(_ONE.get(target, (1 << 8 * unsigned.itemsize) - 1))
    return np.where(condition, truth, unsigned.type(0)).view(DTYPES[target])


@defines("selp")
def selp(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.where(c, a, b)


@defines("slct")
def slct(form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """`a` where `c` is not negative; NaN chooses `b`, -0 chooses `a`."""
    (chooser,) = sources_of(form, c)
    return np.where(chooser >= 0, a, b)
