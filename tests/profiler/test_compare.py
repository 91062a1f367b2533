"""`compare`: every rung on the same data, checked, side by side; one wrong rung spoils nothing."""

from __future__ import annotations

import dataclasses
import json

import pytest

import gpulab
from gpulab.errors import ArgumentError
from gpulab.kernels import Ladder, Rung, ladder
from gpulab.models.timing import TimeEstimate
from gpulab.profiler import Comparison
from gpulab.profiling.comparison import clearly_differ

STORES = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"


@pytest.fixture(scope="module")
def transposed() -> Comparison:
    return gpulab.compare("transpose", gpu="A100", language="cuda", n=256)


def test_every_rung_is_right_and_judged(transposed: Comparison) -> None:
    assert [rung.name for rung in transposed.rungs] == ["naive", "tiled", "padded"]
    assert all(rung.correct and rung.max_error == 0 and not rung.message for rung in transposed.rungs)
    assert [rung.profile.metrics[STORES] for rung in transposed.rungs] == [32, 4, 4]
    assert transposed.parameters["n"] == transposed.parameters["m"] == 256


def test_the_language_is_numba_where_there_is_one() -> None:
    found = gpulab.compare("transpose", gpu="T4", n=32)
    assert {rung.language for rung in found.rungs} == {"numba"}
    assert found.gpu.name == "T4"


def test_roofline_has_a_point_for_each_rung_and_level(transposed: Comparison) -> None:
    record = transposed.roofline()
    assert [(point.name, point.level) for point in record.points] == [
        (name, level) for name in ("naive", "tiled", "padded") for level in ("dram", "l2")
    ]


def test_table(transposed: Comparison) -> None:
    text = repr(transposed)
    assert text.splitlines()[0] == "transpose on A100 at 1.41 GHz, n=256, m=256, block_rows=8"
    naive = next(line for line in text.splitlines() if line.startswith("naive"))
    assert naive.split()[:2] == ["naive", "right"]
    assert "modeled" in text
    assert transposed._repr_html_().count("<tr>") == 4


def test_json_document(transposed: Comparison) -> None:
    document = json.loads(json.dumps(transposed.to_json(), allow_nan=False))
    assert set(document) == {"ladder", "gpu", "clock_hz", "parameters", "rungs"}
    assert (document["ladder"], document["gpu"], document["parameters"]["n"]) == ("transpose", "A100", 256)
    rung = document["rungs"][2]
    assert {"name", "language", "correct", "max_error", "grid", "block", "registers_per_thread"} <= set(rung)
    assert rung["time"]["source"] == "modeled"
    assert (rung["grid"], rung["block"], rung["occupancy"]) == ([8, 8, 1], [32, 8, 1], 1.0)
    assert rung["metrics"][STORES] == 4


@pytest.fixture(scope="module")
def broken() -> Ladder:
    """The transposition with a rung that launches too few blocks, and one that reads far outside."""
    whole = ladder("transpose")
    naive = whole.rung("naive")

    def half(parameters):
        step = naive.steps(parameters)[0]
        return dataclasses.replace(step, grid=(step.grid[0] // 2, step.grid[1]), kernel="naive")

    def swapped(parameters):
        return dataclasses.replace(
            naive.steps(parameters)[0], kernel="naive", arguments={"cuda": ("a", "out", "big", "m")}
        )

    rungs = (
        naive,
        Rung(name="half", paragraph="", launch=half),
        Rung(name="outside", paragraph="", launch=swapped),
    )
    return dataclasses.replace(whole, rungs=rungs, make_data=lambda *args: {**whole.make_data(*args), "big": 1 << 20})


@pytest.fixture(scope="module")
def spoiled(broken: Ladder) -> Comparison:
    return gpulab.compare(broken, gpu="A100", language="cuda", n=64)


def test_a_wrong_rung_is_marked_with_its_first_mismatch(spoiled: Comparison) -> None:
    right, wrong, _ = spoiled.rungs
    assert right.correct
    assert not wrong.correct
    assert wrong.profile is not None
    assert "out[32, 0] must be" in wrong.message
    assert "WRONG" in repr(spoiled)


def test_a_rung_that_faults_is_marked_too(spoiled: Comparison) -> None:
    fault = spoiled.rungs[2]
    assert (fault.correct, fault.profile, fault.max_error) == (False, None, float("inf"))
    assert "out" in fault.message
    document = json.loads(json.dumps(spoiled.to_json(), allow_nan=False))
    assert (document["rungs"][2]["max_error"], document["rungs"][2]["time"]) == (None, None)
    assert len({point.name for point in spoiled.roofline().points}) == 2


def test_several_launches_of_a_rung_add_up() -> None:
    whole = ladder("transpose")
    naive = whole.rung("naive")
    twice = Rung(
        name="twice", paragraph="", launch=lambda p: (dataclasses.replace(naive.steps(p)[0], kernel="naive"),) * 2
    )
    found = gpulab.compare(dataclasses.replace(whole, rungs=(naive, twice)), gpu="A100", language="cuda", n=64)
    once, both = (rung.profile for rung in found.rungs)
    assert both.metrics["smsp__inst_executed.sum"] == 2 * once.metrics["smsp__inst_executed.sum"]
    assert both.metrics[STORES] == once.metrics[STORES] == 32
    assert both.time.seconds == pytest.approx(2 * once.time.seconds)
    assert both.time.terms["launch"] == 2 * once.time.terms["launch"]
    assert "2 launches" in repr(both)


def estimate(low: float, high: float, source: str = "modeled") -> TimeEstimate:
    return TimeEstimate((low + high) / 2, low, high, source, "dram", {}, None)


def test_overlapping_ranges_are_no_clear_difference() -> None:
    assert clearly_differ(estimate(1, 2), estimate(2.1, 3))
    assert clearly_differ(estimate(2.1, 3), estimate(1, 2))
    assert not clearly_differ(estimate(1, 2), estimate(1.9, 3))
    assert not clearly_differ(estimate(1, 2), estimate(5, 6, "measured"))


def test_the_table_says_so() -> None:
    found = gpulab.compare("copy", gpu="A100", language="cuda", n=1 << 12)
    coalesced = next(line for line in repr(found).splitlines() if line.startswith("coalesced"))
    assert "no clear difference" in coalesced
    assert found.speedup(found.rungs[-1]) is None


def test_errors_name_what_there_is() -> None:
    with pytest.raises(gpulab.GpulabError, match=r"no ladder 'transpos'.*Did you mean 'transpose'"):
        gpulab.compare("transpos")
    with pytest.raises(ArgumentError, match="written in numba, cuda, but language='fortran'"):
        gpulab.compare("transpose", language="fortran")
    with pytest.raises(ArgumentError, match="but 'size' came"):
        gpulab.compare("transpose", size=3)
    with pytest.raises(ArgumentError, match="no GPU 'B9'"):
        gpulab.compare("transpose", gpu="B9")
