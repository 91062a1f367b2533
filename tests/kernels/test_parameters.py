"""What a ladder's parameters accept, refuse and offer to sliders."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.errors import ArgumentError
from gpulab.kernels.parameters import Parameter, checked, objections, resolve

N = Parameter(name="n", default=1000, meaning="rows", range=(1, 4096), scale="log2")
M = Parameter(name="m", default=1000, meaning="columns", range=(1, 4096), follows="n")
BLOCK = Parameter(name="block", default=64, meaning="threads", values=(32, 64), why="Whole warps.")
SHIFT = Parameter(
    name="shift",
    default=1,
    meaning="elements",
    range=(0, 64),
    constraint=lambda p: p["shift"] <= p["n"],
    why="At most n.",
)
ALL = (N, M, BLOCK, SHIFT)


def test_a_parameter_that_follows_takes_the_others_value_unless_it_is_given() -> None:
    assert resolve(ALL, {"n": 7})["m"] == 7
    assert resolve(ALL, {"n": 7, "m": 9})["m"] == 9
    assert resolve(ALL, {})["m"] == 1000


def test_numpy_integers_become_python_integers() -> None:
    assert type(resolve(ALL, {"n": np.int64(7)})["n"]) is int


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n": 0}, "n (rows) must be 1 to 4,096, but 0 came"),
        ({"n": 4097}, "but 4097 came"),
        ({"n": 2.5}, "n must be an integer, but 2.5 came"),
        ({"n": True}, "n must be an integer, but True came"),
        ({"block": 48}, "must be one of 32, 64, but 48 came. Whole warps."),
        ({"n": 3, "shift": 4}, "shift (elements) does not fit the other parameters, but 4 came. At most n."),
        ({"blok": 32}, "has the parameters n, m, block, shift, but 'blok' came"),
    ],
)
def test_what_is_not_allowed_is_refused_with_the_reason(given: dict[str, object], words: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        checked("The ladder", ALL, given)
    assert words in str(caught.value)


def test_all_reasons_are_told_at_once_but_no_consequences_of_them() -> None:
    reasons = objections(ALL, {"n": 0, "m": 1, "block": 48, "shift": 1})
    assert len(reasons) == 2 and not any("shift" in reason for reason in reasons)
    assert objections(ALL, {"n": 1, "m": 1, "block": 32, "shift": 1}) == []


def test_json_has_the_default_and_the_choices() -> None:
    assert BLOCK.to_json()["values"] == [32, 64] and "range" not in BLOCK.to_json()
    assert N.to_json() == {"default": 1000, "meaning": "rows", "range": [1, 4096], "scale": "log2"}
