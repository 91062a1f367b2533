"""Data, reference and verdict of a ladder at given parameters."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.errors import ArgumentError, GpulabError
from gpulab.kernels import ladder
from gpulab.kernels.problem import absolute_errors


def test_data_are_the_same_each_time() -> None:
    first, second = (ladder("copy").at(n=100).data["x"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first)) == 100


def test_each_attempt_has_outputs_of_its_own_and_shares_the_inputs() -> None:
    problem = ladder("copy").at(n=100)
    first, second = (problem.attempt("coalesced", "numba").arrays for _ in range(2))
    first["y"][:] = 5.0
    assert first["x"] is second["x"] and second["y"][0] == -1.0


def test_an_output_that_nobody_wrote_is_wrong_in_every_ladder() -> None:
    for name in ("copy", "transpose", "reduction", "matmul"):
        problem = ladder(name).at(n=64)
        assert not problem.judge(problem.data).correct


def test_the_verdict_names_the_first_wrong_element() -> None:
    problem = ladder("transpose").at(n=4, m=3)
    right = problem.data["a"].T.copy()
    assert problem.judge({"out": right}).correct
    wrong = right.copy()
    wrong[1, 2] += 1.0
    verdict = problem.judge({"out": wrong})
    assert not verdict.correct and verdict.max_error == pytest.approx(1.0)
    assert "out[1, 2] must be" in verdict.message and "1 of 12 wrong" in verdict.message


def test_a_result_of_another_shape_is_wrong() -> None:
    verdict = ladder("transpose").at(n=4, m=3).judge({"out": np.zeros((4, 3), np.float32)})
    assert not verdict.correct and "(3, 4)" in verdict.message


@pytest.mark.parametrize(
    ("got", "expected", "error"),
    [
        (np.nan, np.nan, 0.0),
        (np.inf, np.inf, 0.0),
        (np.inf, -np.inf, np.inf),
        (np.nan, 1.0, np.inf),
        (1.0, np.nan, np.inf),
        (3.0, 1.0, 2.0),
        (-0.0, 0.0, 0.0),
    ],
)
def test_errors_of_special_values(got: float, expected: float, error: float) -> None:
    assert absolute_errors(np.array([got]), np.array([expected]))[0] == error


def test_a_lost_element_is_outside_the_tolerance_of_a_sum() -> None:
    problem = ladder("reduction").at(n=5003, block=64)
    sums = [chunk.sum(dtype=np.float64) for chunk in np.split(problem.data["x"], range(64, 5003, 64))]
    partial = np.array(sums, np.float32)
    assert problem.judge({"partial": partial}).correct
    partial[3] -= problem.data["x"][3 * 64]
    assert not problem.judge({"partial": partial}).correct


def test_a_lost_product_is_outside_the_tolerance_of_a_matmul() -> None:
    problem = ladder("matmul").at(n=37, m=70, k=45)
    c = problem.data["a"] @ problem.data["b"]
    assert problem.judge({"c": c}).correct
    c[36, 69] -= problem.data["a"][36, 44] * problem.data["b"][44, 69]
    assert not problem.judge({"c": c}).correct


def test_unknown_kinds_rungs_and_languages_are_refused() -> None:
    with pytest.raises(ArgumentError, match="kinds random, special, but 'odd' came"):
        ladder("copy").at("odd")
    with pytest.raises(GpulabError, match="has the rungs strided, aos, soa, offset, coalesced, but 'fast' came"):
        ladder("copy").at(n=32).attempt("fast", "numba")
    with pytest.raises(GpulabError, match="written in numba, cuda, but 'opencl' was asked for"):
        ladder("copy").at(n=32).attempt("aos", "opencl")


def test_useful_work() -> None:
    problem = ladder("matmul").at(n=2, m=3, k=5)
    assert problem.useful_flop == 60
    assert problem.useful_bytes == 4 * (10 + 15 + 6)
    assert ladder("transpose").at(n=3, m=5).useful_bytes == 120
