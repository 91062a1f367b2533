"""The bars show every time with its range, and a speed-up only where the ranges are apart."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from matplotlib.colors import to_hex

from gpulab.plots import plot_bars
from gpulab.plots.bars import round_ticks, time_unit
from gpulab.plots.style import BEST, MUTED


def time(seconds, low, high, source="modeled"):
    return SimpleNamespace(seconds=seconds, low=low, high=high, source=source)


TIMES = {
    "strided": time(84e-6, 70e-6, 101e-6),
    "aos": time(61e-6, 51e-6, 73e-6),
    "soa": time(24.5e-6, 20e-6, 29e-6),
    "coalesced": time(23e-6, 19e-6, 28e-6),
}


@pytest.fixture(scope="module")
def axes():
    return plot_bars(TIMES, title="copy on A100")


def notes(ax):
    return [text.get_text() for text in ax.texts]


def test_bars_are_as_long_as_the_times_and_the_first_rung_is_on_top(axes):
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([84, 61, 24.5, 23])
    assert [bar.get_y() for bar in axes.patches] == sorted((bar.get_y() for bar in axes.patches), reverse=True)
    labels = dict(zip(axes.get_yticks(), (label.get_text() for label in axes.get_yticklabels()), strict=True))
    assert [labels[round(bar.get_y() + bar.get_height() / 2)] for bar in axes.patches] == list(TIMES)


def test_whiskers_span_the_range(axes):
    assert [tuple(line.get_xdata()) for line in axes.lines] == [
        pytest.approx((1e6 * item.low, 1e6 * item.high)) for item in TIMES.values()
    ]


def test_a_speedup_is_claimed_only_where_the_ranges_are_apart(axes):
    assert notes(axes) == [
        "84 µs (70 to 101 µs)",
        "61 µs (51 to 73 µs), no clear difference",
        "24.5 µs (20 to 29 µs), 3.4 times faster",
        "23 µs (19 to 28 µs), 3.7 times faster",
    ]


def test_rungs_that_cannot_be_told_from_the_fastest_share_its_color(axes):
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [MUTED, MUTED, BEST, BEST]


def test_the_axis_names_unit_and_kind_of_time(axes):
    assert axes.get_xlabel() == "time, µs (modeled; the whisker is its range)"
    assert axes.get_title(loc="left") == "copy on A100"


def test_a_slower_rung_says_so():
    ax = plot_bars({"first": time(1e-3, 0.9e-3, 1.1e-3), "worse": time(2e-3, 1.8e-3, 2.2e-3)})
    assert notes(ax)[1].endswith("2.0 times slower")


def test_times_of_different_kinds_are_not_compared():
    ax = plot_bars({"first": time(1e-3, 0.9e-3, 1.1e-3), "best": time(1e-4, 0.9e-4, 1.1e-4, "measured")})
    assert notes(ax)[1] == "100 µs (90 to 110 µs)"
    assert ax.get_xlabel().startswith("time, ms (modeled and measured;")


@pytest.mark.parametrize("rungs", [TIMES, {"a": TIMES["strided"], "b": time(84e-6, 70e-6, 101e-6)}], ids=["4", "2"])
def test_labels_stay_inside_the_picture_and_bars_use_the_rest(rungs):
    ax = plot_bars(rungs)
    ax.figure.draw_without_rendering()
    ends = [text.get_window_extent().x1 for text in ax.texts]
    assert max(ends) <= ax.figure.bbox.x1
    assert max(ends) >= 0.85 * ax.get_window_extent().x1


@pytest.mark.parametrize(
    ("seconds", "unit"), [(3e-9, "ns"), (2.5e-7, "ns"), (1e-6, "µs"), (9.9e-4, "µs"), (1e-3, "ms"), (70.0, "s")]
)
def test_time_unit_keeps_numbers_short(seconds, unit):
    assert time_unit(seconds)[1] == unit


@pytest.mark.parametrize("high", [0.3, 1.0, 1.2, 7, 10, 33, 101, 487, 999, 1000])
def test_ticks_are_round_few_and_inside(high):
    ticks = round_ticks(high)
    assert ticks[0] == 0
    assert 3 <= len(ticks) <= 7
    assert ticks[-1] <= high
    assert float(f"{ticks[1]:.0e}") == ticks[1]
