"""Sliders offer only what fits the other sliders, say why the rest does not, and take along what follows them."""

from __future__ import annotations

import pytest

from gpulab.kernels import Parameter
from gpulab.panels.controls import Sliders, stops

SIZE = Parameter(name="n", default=1 << 20, meaning="elements", range=(1, 1 << 26), scale="log2")
STRIDE = Parameter(name="stride", default=32, meaning="elements between neighbors, in `strided`", range=(1, 64))
BLOCK = Parameter(name="block", default=256, meaning="threads per block", values=(32, 64, 128, 256, 512, 1024))
ROWS = Parameter(name="rows", default=64, meaning="rows", range=(1, 4096), scale="log2")
COLUMNS = Parameter(name="columns", default=64, meaning="columns", range=(1, 4096), scale="log2", follows="rows")


def sliders_of(*parameters, objections=lambda **values: [], **values):
    calls = []
    start = {parameter.name: parameter.default for parameter in parameters} | values
    sliders = Sliders(parameters, start, objections, lambda: calls.append(dict(sliders.values)))
    return sliders, calls


@pytest.mark.parametrize(
    ("parameter", "also", "expected"),
    [
        (BLOCK, 256, [32, 64, 128, 256, 512, 1024]),
        (STRIDE, 7, list(range(1, 65))),
        (SIZE, 1 << 20, [2**power for power in range(14, 21)]),
        (SIZE, 100_000, [2**14, 2**15, 2**16, 100_000, 2**17, 2**18, 2**19, 2**20]),
        (ROWS, 64, [1, 2, 4, 8, 16, 32, 64]),
    ],
)
def test_stops(parameter, also, expected):
    assert stops(parameter, also) == expected


def test_a_long_linear_range_is_thinned_out_but_keeps_its_default():
    wide = Parameter(name="pitch", default=501, meaning="elements", range=(1, 5000))
    offered = stops(wide, 501)
    assert len(offered) <= 131
    assert 501 in offered


def test_a_slider_shows_the_values_and_the_meaning_beneath():
    sliders, _ = sliders_of(SIZE, STRIDE)
    assert sliders.by_name["n"].options[-1] == ("1,048,576", 1 << 20)
    assert sliders.by_name["n"].description == "n"
    hint = sliders.widgets[1].children[1].value
    assert "elements between neighbors, in strided" in hint


def test_moving_a_slider_calls_back_once_with_the_new_values():
    sliders, calls = sliders_of(STRIDE, BLOCK)
    sliders.by_name["stride"].value = 8
    assert calls == [{"stride": 8, "block": 256}]


def test_only_fitting_values_are_offered_and_the_reason_is_given():
    def objections(n, stride):
        return [f"stride must be at most n. {stride} came."] if stride > n else []

    sizes = Parameter(name="n", default=64, meaning="elements", values=(16, 64))
    sliders, calls = sliders_of(sizes, STRIDE, objections=objections, stride=8)
    sliders.by_name["n"].value = 16
    assert [value for _, value in sliders.by_name["stride"].options] == list(range(1, 17))
    assert "stride must be at most n. 17 came." in sliders.widgets[1].children[1].value
    sliders.by_name["stride"].value = 16
    assert [value for _, value in sliders.by_name["n"].options] == [16, 64]
    assert calls == [{"n": 16, "stride": 8}, {"n": 16, "stride": 16}]


def test_a_following_parameter_goes_along_until_it_is_set_apart():
    sliders, calls = sliders_of(ROWS, COLUMNS)
    sliders.by_name["rows"].value = 32
    assert calls[-1] == {"rows": 32, "columns": 32}
    sliders.by_name["columns"].value = 8
    sliders.by_name["rows"].value = 16
    assert calls[-1] == {"rows": 16, "columns": 8}
    assert len(calls) == 3
