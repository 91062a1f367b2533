"""What it takes to keep a claim."""

from __future__ import annotations

import pytest

from gpulab.kernels import Claim


@pytest.mark.parametrize(
    ("direction", "value", "base", "kept"),
    [
        ("lower", 10, 40, True),
        ("lower", 11, 40, False),
        ("lower", 0, 40, True),
        ("lower", 0, 0, False),  # nothing was there to be lowered
        ("higher", 40, 10, True),
        ("higher", 39, 10, False),
        ("higher", 0, 0, False),
        ("same", 39, 10, True),
        ("same", 41, 10, False),
        ("same", 2, 10, False),
    ],
)
def test_a_claim_of_factor_four(direction: str, value: float, base: float, kept: bool) -> None:
    assert Claim("sectors", direction, 4.0, "naive").holds(value, base) is kept


def test_several_metrics_are_added_and_time_terms_are_looked_up() -> None:
    claim = Claim("loads + stores", "lower", 2.0, "naive")
    assert claim.value({"loads": 3, "stores": 4, "other": 100}) == 7
    assert Claim("time:latency", "lower", 2.0, "naive").value({}, {"latency": 1e-6}) == 1e-6


def test_an_unknown_value_is_no_zero() -> None:
    with pytest.raises(KeyError, match="loads"):
        Claim("loads", "lower", 2.0, "naive").value({"loads": None})


def test_the_sentence_names_everything() -> None:
    sentence = Claim("sectors", "lower", 7.9, "naive").sentence()
    assert sentence == "sectors at least 7.9 times lower than naive"
