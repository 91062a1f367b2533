"""Approximate instructions within the errors that the PTX manual, or exhaustive public tests on hardware, allow."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from ptx_harness import kernel, run

THREADS = 1024


def evaluate(engine: str, instruction: str, *sources: np.ndarray, kind: str = "f32") -> np.ndarray:
    """Apply an instruction to 1,024 values."""
    size, letter = (4, "f") if kind == "f32" else (8, "fd")
    names = "abc"[: len(sources)]
    body = "mov.u32 %r1, %tid.x; ld.param.u64 %rd9, [out];\n"
    for number, name in enumerate(names, 1):
        body += f"ld.param.u64 %rd{number}, [{name}]; mad.wide.u32 %rd{number}, %r1, {size}, %rd{number}; ld.global.{kind} %{letter}{number}, [%rd{number}];\n"
    operands = ", ".join(f"%{letter}{number}" for number in range(1, len(sources) + 1))
    body += f"{instruction} %{letter}9, {operands}; mad.wide.u32 %rd9, %r1, {size}, %rd9; st.global.{kind} [%rd9], %{letter}9;"
    result = np.zeros(THREADS, sources[0].dtype)
    parameters = ", ".join(f"u64 {name}" for name in [*names, "out"])
    run(engine, kernel(parameters, body), *sources, result, block=THREADS)
    return result


def spread(low: float, high: float, *, logarithmic: bool = False) -> np.ndarray:
    """1,024 float32 over a range, not evenly spaced in their bits."""
    values = np.random.default_rng(7).uniform(
        math.log2(low) if logarithmic else low, math.log2(high) if logarithmic else high, THREADS
    )
    return (np.exp2(values) if logarithmic else values).astype(np.float32)


def ulps(found: np.ndarray, true: np.ndarray) -> float:
    """Largest error in units of the last place of the true result."""
    unit = np.spacing(np.maximum(np.abs(true), 2.0**-126).astype(np.float32)).astype(np.float64)
    return float(np.max(np.abs(found.astype(np.float64) - true) / unit))


@pytest.mark.parametrize(
    ("instruction", "truth", "values", "limit"),
    [
        ("ex2.approx.f32", np.exp2, spread(-149, 128), 2.0),
        ("lg2.approx.f32", np.log2, spread(1e-38, 1e38, logarithmic=True), 2.0),
        ("rcp.approx.f32", np.reciprocal, spread(1e-37, 1e37, logarithmic=True), 1.0),
        ("rsqrt.approx.f32", lambda x: 1 / np.sqrt(x), spread(1e-38, 1e38, logarithmic=True), 2.0),
        ("sqrt.approx.f32", np.sqrt, spread(1e-38, 1e38, logarithmic=True), 2.0),
    ],
)
def test_errors_in_the_last_place(
    engine: str, instruction: str, truth: Callable[[np.ndarray], np.ndarray], values: np.ndarray, limit: float
) -> None:
    assert ulps(evaluate(engine, instruction, values), truth(values.astype(np.float64))) <= limit


@pytest.mark.parametrize(("instruction", "truth"), [("sin.approx.f32", np.sin), ("cos.approx.f32", np.cos)])
@pytest.mark.parametrize(("reach", "limit"), [(2 * math.pi, 2.0**-20.5), (100 * math.pi, 2.0**-14.7)])
def test_sine_and_cosine_have_an_absolute_error(
    engine: str, instruction: str, truth: Callable[[np.ndarray], np.ndarray], reach: float, limit: float
) -> None:
    values = spread(-reach, reach)
    error = np.abs(evaluate(engine, instruction, values).astype(np.float64) - truth(values.astype(np.float64)))
    assert error.max() <= limit


def test_sine_of_huge_arguments_stays_a_sine(engine: str) -> None:
    values = spread(1e10, 3e38, logarithmic=True)
    assert np.abs(evaluate(engine, "sin.approx.f32", values)).max() <= 1.0


def test_hyperbolic_tangent_has_a_relative_error(engine: str) -> None:
    values = np.concatenate([spread(-9, 9)[:512], spread(1e-38, 1, logarithmic=True)[:512]])
    true = np.tanh(values.astype(np.float64))
    assert np.max(np.abs(evaluate(engine, "tanh.approx.f32", values) / true - 1)) <= 2.0**-11


def test_divisions(engine: str) -> None:
    numerators, denominators = spread(-1e10, 1e10), spread(2.0**-60, 2.0**90, logarithmic=True)
    true = numerators.astype(np.float64) / denominators
    for mode in ("approx", "full"):
        assert ulps(evaluate(engine, f"div.{mode}.f32", numerators, denominators), true) <= 2.0


@pytest.mark.parametrize(
    ("instruction", "value", "expected"),
    [
        ("ex2.approx.f32", -math.inf, 0.0), ("ex2.approx.f32", 128.0, math.inf), ("ex2.approx.f32", -0.0, 1.0), ("ex2.approx.f32", -149.0, 2.0**-149),
        ("ex2.approx.ftz.f32", -127.0, 0.0), ("lg2.approx.f32", 0.0, -math.inf), ("lg2.approx.f32", -1.0, math.nan), ("lg2.approx.f32", 2.0**-140, -140.0),
        ("lg2.approx.ftz.f32", 2.0**-140, -math.inf), ("lg2.approx.f32", math.inf, math.inf), ("lg2.approx.f32", 1.0, 0.0),
        ("sin.approx.f32", -0.0, -0.0), ("sin.approx.f32", math.inf, math.nan), ("cos.approx.f32", 0.0, 1.0), ("cos.approx.ftz.f32", -math.inf, math.nan),
        ("rcp.approx.f32", -0.0, -math.inf), ("rcp.approx.ftz.f32", 2.0**-130, math.inf), ("rcp.approx.f32", -math.inf, -0.0),
        ("rsqrt.approx.f32", -0.0, -math.inf), ("rsqrt.approx.f32", -1.0, math.nan), ("sqrt.approx.ftz.f32", -(2.0**-130), -0.0),
        ("tanh.approx.f32", -math.inf, -1.0), ("tanh.approx.f32", -0.0, -0.0), ("tanh.approx.f32", math.nan, math.nan),
    ],
)  # fmt: skip
def test_special_values(engine: str, instruction: str, value: float, expected: float) -> None:
    found = evaluate(engine, instruction, np.full(THREADS, value, np.float32))[0]
    assert np.array_equal(found, np.float32(expected), equal_nan=True)
    assert math.isnan(expected) or np.signbit(found) == np.signbit(np.float32(expected))


def test_fast_division_by_a_large_number_gives_zero(engine: str) -> None:
    numerators = np.resize(np.array([1.0, -1.0, math.inf, 3.0], np.float32), THREADS)
    denominators = np.resize(np.array([2.0**127, 2.0**127, 2.0**127, 2.0**126], np.float32), THREADS)
    found = evaluate(engine, "div.approx.f32", numerators, denominators)[:4]
    assert np.array_equal(found, np.array([0.0, -0.0, math.nan, 3 * 2.0**-126], np.float32), equal_nan=True)
    assert np.signbit(found).tolist()[:2] == [False, True]


def test_coarse_reciprocals_of_doubles_have_their_upper_word(engine: str) -> None:
    values = spread(1e-30, 1e30, logarithmic=True).astype(np.float64)
    for instruction, truth in (("rcp.approx.ftz.f64", 1 / values), ("rsqrt.approx.ftz.f64", 1 / np.sqrt(values))):
        found = evaluate(engine, instruction, values, kind="f64")
        assert not (found.view(np.uint64) & 0xFFFFFFFF).any()
        assert np.max(np.abs(found / truth - 1)) < 2.0**-19
    found = evaluate(engine, "rsqrt.approx.f64", values, kind="f64")
    assert np.max(np.abs(found * np.sqrt(values) - 1)) < 2.0**-50
