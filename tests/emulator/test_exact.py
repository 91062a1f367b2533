"""Correct rounding, held to IEEE hardware where that rounds alike, and to rational arithmetic elsewhere."""

from __future__ import annotations

from fractions import Fraction
from math import copysign, inf, isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.emulator import exact
from gpulab.emulator.exact import FORMATS

TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
FLOATS = st.one_of(
    st.floats(), st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.0, 2.0**-1022, 1.7976931348623157e308, inf, -inf, nan])
)


def same(a: float, b: float) -> bool:
    return (isnan(a) and isnan(b)) or (a == b and copysign(1, a) == copysign(1, b))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(FLOATS, FLOATS, st.sampled_from(sorted(TYPES)))
def test_rounding_to_nearest_equals_the_hardware_of_this_machine(a: float, b: float, kind: str) -> None:
    with np.errstate(all="ignore"):
        x, y = TYPES[kind](a), TYPES[kind](b)
        target = FORMATS[kind]
        assert same(exact.add(float(x), float(y), "rn", target), float(x + y))
        assert same(exact.multiply(float(x), float(y), "rn", target), float(x * y))
        assert same(exact.divide(float(x), float(y), "rn", target), float(x / y))
        assert same(exact.square_root(float(x), "rn", target), float(np.sqrt(x)))
        assert same(exact.round_to(a, "rn", target), float(x))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e100, 1e100),
    st.floats(-1e100, 1e100),
    st.sampled_from(sorted(FORMATS)),
)
def test_directed_results_enclose_the_exact_one_tightly(a: float, b: float, c: float, kind: str) -> None:
    target = FORMATS[kind]
    true = Fraction(a) * Fraction(b) + Fraction(c)
    down, up, nearest, cut = (exact.fused_multiply_add(a, b, c, mode, target) for mode in ("rm", "rp", "rn", "rz"))
    assert down <= true <= up
    assert nearest in (down, up)
    assert same(cut, up if true < 0 else down) or true == 0
    if down != up and abs(down) != inf and abs(up) != inf:
        middle = (Fraction(down) + Fraction(up)) / 2
        assert exact.round_ratio(*middle.as_integer_ratio(), "rm", target) == down, (
            "a number of the format lies between"
        )
        assert abs(true - Fraction(nearest)) <= abs(true - Fraction(down if nearest == up else up))


@pytest.mark.parametrize(
    ("value", "mode", "expected"),
    [(2.5, "rn", 2.0), (3.5, "rn", 4.0), (2.5, "rna", 3.0), (-2.5, "rna", -3.0), (-0.5, "rm", -1.0), (-0.5, "rp", -0.0), (0.5, "rn", 0.0), (-inf, "rz", -inf)],
)  # fmt: skip
def test_rounding_to_integral_values(value: float, mode: str, expected: float) -> None:
    assert same(exact.round_to_integral(value, mode), expected)


@pytest.mark.parametrize(("mode", "expected"), [("rn", inf), ("rz", 65504.0), ("rm", 65504.0), ("rp", inf)])
def test_overflow_goes_where_the_mode_points(mode: str, expected: float) -> None:
    assert exact.round_to(65520.0, mode, FORMATS["f16"]) == expected
    assert exact.round_to(-65520.0, {"rm": "rp", "rp": "rm"}.get(mode, mode), FORMATS["f16"]) == -expected
