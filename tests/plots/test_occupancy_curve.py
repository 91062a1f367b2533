"""The occupancy curve: heights from the calculation, a marker for each limit, the chosen block pointed out."""

from __future__ import annotations

import pytest

from gpulab.plots import occupancy_by_block, plot_occupancy
from gpulab.plots.occupancy import LIMIT_LOOKS


@pytest.fixture(scope="module")
def curve():
    return occupancy_by_block("A100", registers_per_thread=40)


def test_the_curve_covers_all_whole_warps(curve):
    assert list(curve) == list(range(32, 1025, 32))


def test_the_curve_ends_where_no_block_fits():
    # 65,536 registers: 255 of them (given out in units of 8, so 256) for at most 256 threads.
    assert max(occupancy_by_block("A100", registers_per_thread=255)) == 256


def test_points_stand_at_the_calculated_heights_with_the_marker_of_their_limit(curve):
    ax = plot_occupancy(curve)
    drawn = {}
    for line in ax.lines:
        if line.get_linestyle() == "None" and min(line.get_ydata()) <= 100:  # the legend stands above
            drawn.update({x: (y, line.get_marker()) for x, y in zip(*line.get_data(), strict=True)})
    assert drawn[1024] == (50.0, LIMIT_LOOKS["registers"][0])  # hand-worked: 1024 x 40 registers, one block
    assert drawn[32] == (50.0, LIMIT_LOOKS["blocks"][0])  # 32 blocks of one warp
    assert drawn[768] == (75.0, LIMIT_LOOKS["warps"][0])
    assert len({marker for _, marker in drawn.values()}) == 3


def test_the_chosen_block_is_named_with_its_limit(curve):
    ax = plot_occupancy(curve, block=1024)
    assert "1024 threads: 50%, 1 block per SM, limited by registers" in [text.get_text() for text in ax.texts]
    assert ax.description.startswith(
        "Occupancy: 1024 threads: 50%, 1 block per SM, limited by registers. Highest 75% at"
    )


@pytest.mark.parametrize("block", [32, 256])
def test_the_dashed_line_does_not_strike_through_the_sentence(curve, block):
    ax = plot_occupancy(curve, block=block)
    (dashed,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    (sentence,) = [text for text in ax.texts if text.get_text().startswith(f"{block} threads")]
    assert dashed.get_ydata()[0] > sentence.xy[1] + 5


def test_the_legend_names_only_limits_that_occur(curve):
    texts = [text.get_text() for text in plot_occupancy(curve).texts]
    assert texts == ["limited by", "warps", "registers", "blocks"]


def test_axes_carry_units(curve):
    ax = plot_occupancy(curve)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("block size, threads", "theoretical occupancy, %")


@pytest.mark.parametrize("block", [32, 256, 544, 1024])
@pytest.mark.parametrize("registers", [32, 128])
def test_no_text_leaves_the_picture(block, registers):
    curve = occupancy_by_block("A100", registers_per_thread=registers)
    ax = plot_occupancy(curve, block=min(block, max(curve)))
    ax.figure.draw_without_rendering()
    frame = ax.figure.bbox
    for text in ax.texts:
        box = text.get_window_extent()
        assert box.x0 >= frame.x0
        assert box.x1 <= frame.x1
