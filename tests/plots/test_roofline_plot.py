"""The roofline draws its limits where the arithmetic puts them, every rung in place, and labels that can be read."""

from __future__ import annotations

import itertools
import math

import pytest

from gpulab.models.roofline import Ceiling, Point, Roof, Roofline
from gpulab.plots import SvgAxes, plot_roofline
from gpulab.plots.labels import overlap
from gpulab.plots.roofline import decade_ticks, decades

ROOFS = (Roof("dram", "DRAM 1,555 GB/s", 1555e9), Roof("l2", "L2 4,900 GB/s", 4900e9))


def kernel(name, rate, dram, l2):
    """The two points of one kernel whose time is known to 25 %."""
    return [
        Point(name, level, x, rate, rate * 0.8, rate * 1.25, "modeled") for level, x in (("dram", dram), ("l2", l2))
    ]


def record(unit, ceiling, *kernels):
    return Roofline("A100", 1.41e9, unit, ROOFS, (ceiling,), tuple(point for points in kernels for point in points))


MATMUL = record(
    "FLOP",
    Ceiling("FP32 19.5 TFLOP/s", 19.5e12),
    kernel("naive", 278e9, 0.8, 0.25),
    kernel("coalesced", 1722e9, 21, 2),
    kernel("tiled", 2660e9, 30, 8),
)
COPY = record(
    "warp instruction",
    Ceiling("issue 609 billion warp instructions/s", 609e9),
    kernel("strided", 10e9, 0.045, 0.006),
    kernel("soa", 43e9, 0.05, 0.05),
    kernel("offset", 42e9, 0.049, 0.042),
    kernel("coalesced", 44e9, 0.05, 0.05),
)


@pytest.fixture(scope="module", params=[MATMUL, COPY], ids=["matmul", "copy"])
def axes(request):
    return plot_roofline(request.param, chosen=request.param.points[0].name)


def lines_with(ax, **wanted):
    return [line for line in ax.lines if all(getattr(line, f"get_{name}")() == value for name, value in wanted.items())]


def test_roofs_rise_with_the_bandwidth_and_end_at_the_ceiling():
    ax = plot_roofline(MATMUL)
    dram, l2 = (line.get_xydata() for line in (lines_with(ax, linewidth=2.0))[-2:])
    for line, bandwidth in ((dram, 1555), (l2, 4900)):
        assert line[:, 1] / line[:, 0] == pytest.approx([bandwidth, bandwidth])
        assert line[1, 1] == pytest.approx(19_500)
    assert dram[1, 0] == pytest.approx(19_500 / 1555)  # the ridge point, about 12.5 FLOP per byte


def test_the_ceiling_goes_on_from_the_fastest_roof_to_the_right_edge():
    ax = plot_roofline(MATMUL)
    ceiling = lines_with(ax, linewidth=2.0)[0].get_xydata()
    assert ceiling.tolist() == [[pytest.approx(19_500 / 4900), 19_500], [ax.get_xlim()[1], 19_500]]


def test_each_kernel_has_a_filled_point_at_dram_and_a_hollow_one_at_l2():
    ax = plot_roofline(MATMUL)
    filled = [line.get_xydata()[0].tolist() for line in lines_with(ax, marker="o", markersize=7.0)]
    hollow = [line.get_xydata()[0].tolist() for line in lines_with(ax, marker="D")]
    assert filled == [[0.8, 278], [21, 1722], [30, 2660]]
    assert hollow == [[0.25, 278], [2, 1722], [8, 2660]]
    assert {line.get_markerfacecolor() for line in lines_with(ax, marker="D")} == {"none"}


def test_a_path_joins_the_rungs_in_order():
    path = [line.get_xydata().tolist() for line in lines_with(plot_roofline(MATMUL), linestyle=":")]
    assert path == [[[0.8, 278], [21, 1722]], [[21, 1722], [30, 2660]]]


def test_the_range_of_the_time_is_a_whisker():
    whiskers = [line.get_ydata() for line in lines_with(plot_roofline(MATMUL), linewidth=1.0, linestyle="-")]
    assert [tuple(ends) for ends in whiskers] == [
        pytest.approx((rate * 0.8, rate * 1.25)) for rate in (278, 1722, 2660)
    ]


def test_only_the_chosen_kernel_has_a_ring():
    [ring] = lines_with(plot_roofline(MATMUL, chosen="coalesced"), markersize=13.0)
    assert ring.get_xydata().tolist() == [[21, 1722]]


def test_axes_are_logarithmic_with_units_and_plain_ticks(axes):
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlabel().endswith("per byte moved (filled: DRAM, hollow: L2)")
    assert axes.get_ylabel() in ("GFLOP/s", "billion warp instructions/s")
    assert all("10^" not in label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels()))


def test_everything_drawn_lies_inside_the_limits(axes):
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for line in axes.lines:
        for x, y in line.get_xydata():
            assert left * 0.999 <= x <= right * 1.001
            assert low * 0.999 <= y <= high * 1.001


def test_no_two_labels_overlap(axes):
    axes.figure.draw_without_rendering()
    level = [text for text in axes.texts if not text.get_rotation()]
    boxes = [text.get_window_extent().extents for text in level]
    assert [overlap(a, b) for a, b in itertools.combinations(boxes, 2)] == [0.0] * math.comb(len(boxes), 2)


def test_names_of_roofs_run_along_them(axes):
    turned = {text.get_text(): text.get_rotation() for text in axes.texts if text.get_rotation()}
    assert set(turned) == {roof.label for roof in ROOFS}
    assert all(15 < angle < 75 for angle in turned.values())


def test_the_text_form_names_limits_rates_and_intensities():
    words = plot_roofline(MATMUL).description
    assert words.startswith("Roofline, A100: DRAM 1,555 GB/s, L2 4,900 GB/s, FP32 19.5 TFLOP/s.")
    assert "coalesced 1,722 GFLOP/s at 21 per DRAM byte, 2 per L2 byte" in words


def test_a_kernel_without_dram_traffic_stands_at_its_l2_intensity():
    only_l2 = record("FLOP", MATMUL.ceilings[0], [kernel("cached", 500e9, 1, 4)[1]])
    [point] = lines_with(plot_roofline(only_l2), marker="o", markersize=7.0)
    assert point.get_xydata().tolist() == [[4, 500]]


def test_it_draws_on_axes_that_are_given():
    ax = SvgAxes()
    assert plot_roofline(COPY, ax=ax) is ax
    assert "strided" in ax.to_svg()


@pytest.mark.parametrize(
    ("values", "span"), [([0.5, 30], (0.1, 100)), ([1, 10], (0.1, 100)), ([3], (0.1, 10)), ([0.125, 1.0], (0.1, 10))]
)
def test_spans_are_whole_decades_with_room(values, span):
    assert decades(values) == pytest.approx(span)


def test_ticks_are_plain_numbers():
    assert [label for _, label in decade_ticks((0.01, 10_000))] == ["0.01", "0.1", "1", "10", "100", "1,000", "10,000"]


def test_names_of_roofs_do_not_stick_out_of_short_roofs():
    steep = record("FLOP", MATMUL.ceilings[0], kernel("naive", 150e9, 40, 2.5), kernel("tiled", 1700e9, 42, 7.5))
    ax = plot_roofline(steep)
    ax.figure.draw_without_rendering()
    frame = ax.get_window_extent()
    for text in ax.texts:
        assert text.get_window_extent().x0 >= frame.x0 - 1, text.get_text()
