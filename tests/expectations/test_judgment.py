"""How VALIDATION.md judges: orders, speed-ups, units, parts of the page, and times of a CUDA GPU (a stand-in)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from validation import arithmetic, caches, streams
from validation.judge import Verdict, gpu_named, judge_point, kendall_tau, speed_ups
from validation.ladders import ladders
from validation.measured_part import all_launches, judge_all, measured_part, page_of
from validation.pages import assembled, part_of
from validation.records import Launch, Point

import gpulab
from gpulab.devices import device_for

A100 = gpulab.gpu("A100")
POINTS = streams.points() + caches.points() + arithmetic.points()


def verdict(name: str, published: float, modeled: float) -> Verdict:
    return Verdict("group", name, A100, published, modeled, modeled * 0.9, modeled * 1.1, "dram", {})


def test_agreement_of_orders() -> None:
    assert kendall_tau([3, 2, 1], [30, 20, 10]) == 1
    assert kendall_tau([3, 2, 1], [10, 20, 30]) == -1
    assert kendall_tau([3, 2, 1], [30, 10, 20]) == pytest.approx(1 / 3)  # one of three pairs is turned around
    assert kendall_tau([3, 1, 1.01], [30, 10, 9]) == 1  # 1 % apart is no order
    assert kendall_tau([3, 2], [10, 10]) == 0


def test_speed_ups_over_the_first_and_over_the_one_before() -> None:
    rungs = [verdict("a", 8, 6), verdict("b", 4, 3), verdict("c", 1, 2)]
    assert speed_ups(rungs) == [(2, 2, 2, 2), (8, 3, 4, 1.5)]


def test_the_range() -> None:
    assert verdict("a", 1.05, 1).in_range and not verdict("a", 1.2, 1).in_range
    assert verdict("a", 2, 3).error == 0.5


@pytest.mark.parametrize(
    ("unit", "published", "amount", "seconds"), [("GB/s", 100, 2e9, 0.02), ("us", 3, 1, 3e-6), ("cycles", 4, 141, 4e-7)]
)
def test_units(unit: str, published: float, amount: float, seconds: float) -> None:
    point = Point("g", "n", "A100", "s", lambda _: None, published, unit, amount)
    assert point.seconds(A100) == pytest.approx(seconds)
    assert point.in_unit(seconds, A100) == pytest.approx(published)


def test_a_part_of_the_page_is_made_anew_and_the_others_stay() -> None:
    page = assembled("", {"one": "1 is **well**.\n", "two": "2\n"}, ("one", "two"))
    assert "\n- **well**\n" in page
    page = assembled(page, {"two": "new\n"}, ("one", "two"))
    assert (part_of(page, "one"), part_of(page, "two")) == ("1 is **well**.\n", "new\n")
    assert part_of(page, "three") is None
    assert assembled(page, {"one": ""}, ("one", "two")) == page


def test_names_are_clear() -> None:
    assert len({(point.group, point.name, point.gpu, point.source) for point in POINTS}) == len(POINTS)
    assert all(gpu_named(each.gpu) for each in [*POINTS, *ladders()])


def test_a_clock_that_the_source_states_is_the_models() -> None:
    point = next(point for point in POINTS if point.group == "loads that hit L1" and point.gpu == "A100")
    found = judge_point(point)
    assert found is not None
    assert found.gpu.clock_hz == point.clock_hz
    assert found.ratio == pytest.approx(1, abs=0.5)


spec = importlib.util.spec_from_file_location("fake_cupy", Path(__file__).parents[1] / "devices" / "fake_cupy.py")
fake_cupy = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
spec.loader.exec_module(fake_cupy)  # type: ignore[union-attr]


def test_times_of_a_cuda_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = fake_cupy.install(monkeypatch)
    device = device_for("cuda")
    small = [named for named in all_launches(device) if named[0] in ("small launches back to back", "launching")][:2]
    too_large = Launch("streams.cu", "nothing", 1, 2048, lambda _: ())
    verdicts, failed = judge_all(device, [*small, ("too large", "2,048 threads", too_large)])
    assert cupy.calls.count("launch") > 2 * 7
    # The stand-in's clock ticks 2.5 ms with each event.
    assert [found.published_s for found in verdicts] == pytest.approx([2.5e-3, 2.5e-3])
    assert len(failed) == 1 and "1024" in failed[0].replace(",", "")
    page = page_of(device, verdicts, failed)
    assert "Measured on Fake GPU" in page and "2,500.00" in page


def test_nothing_is_measured_without_a_cuda_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.measured_part.why_no_cuda", lambda: "none here")
    assert measured_part() == ("", [])
