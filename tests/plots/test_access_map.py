"""The access map draws the sectors that a request touches, and says what they cost."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from gpulab.errors import ArgumentError
from gpulab.plots import Request, plot_access_map
from gpulab.plots.style import DRAM, WASTE


def boxes(ax, color):
    """(left, width) of the filled rectangles of a color, in drawing order."""
    found = [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_facecolor()[3] > 0]
    return [(p.get_x(), p.get_width()) for p in found if to_hex(p.get_facecolor()) == color]


# The CUDA C++ Best Practices Guide: 32 neighbors of 4 bytes 4 sectors, off the boundary 5, stride 2 half used.
@pytest.mark.parametrize(
    ("addresses", "size", "sectors", "used"),
    [
        ([4 * lane for lane in range(32)], 4, 4, "100%"),
        ([4 * (lane + 11) for lane in range(32)], 4, 5, "80%"),
        ([8 * lane for lane in range(32)], 4, 8, "50%"),
        ([128 * lane for lane in range(32)], 4, 32, "12.5%"),
        ([64] * 32, 4, 1, "12.5%"),
        ([4 * (31 - lane) for lane in range(32)], 4, 4, "100%"),
        ([16 * lane for lane in range(32)], 16, 16, "100%"),
        ([0, -1, -1, 96], 4, 2, "12.5%"),
    ],
)
def test_the_sentence_counts_sectors_and_the_part_of_them_that_is_used(addresses, size, sectors, used):
    request = Request.of(addresses, size)
    assert f": {sectors} sector{'s' if sectors != 1 else ''} in" in request.sentence()
    assert request.sentence().endswith(f"{used} used")
    assert f"{32 * sectors:,} bytes moved" in request.sentence()


def test_bytes_asked_for_stand_where_they_are_in_their_sector():
    ax = plot_access_map(Request.of([4 * (lane + 11) for lane in range(32)]))
    # Sectors 1 to 5 of two lines; the first 12 bytes of sector 1 and the last 20 of sector 5 move for nothing.
    assert [left for left, _ in boxes(ax, WASTE)] == [1.0, 2.0, 3.0, 4.0, 5.0]
    useful = boxes(ax, DRAM)
    assert useful[0] == (pytest.approx(1 + 12 / 32), pytest.approx(20 / 32))
    assert sum(width for _, width in useful) == pytest.approx(4.0)


def test_a_jump_over_untouched_lines_leaves_a_gap():
    ax = plot_access_map(Request.of([0, 4096]))
    assert [left for left, _ in boxes(ax, WASTE)] == [0.0, 5.0]


def test_each_lane_that_is_on_has_a_wire_to_its_bytes():
    ax = plot_access_map(Request.of([0, -1, 36, 64]))
    wires = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) == 2 and line.get_ydata()[0] > 0.5]
    assert [wire[1] for wire in wires] == [pytest.approx(2 / 32), pytest.approx(1 + 6 / 32), pytest.approx(2 + 2 / 32)]


def test_the_picture_says_itself_in_words():
    ax = plot_access_map(Request.of([0]), title="one lane")
    expected = "one lane: 1 lanes ask for 4 bytes: 1 sector in 1 line, 32 bytes moved, 12.5% used."
    assert ax._repr_mimebundle_()["text/plain"] == expected


@pytest.mark.parametrize(
    ("addresses", "size", "says"),
    [([], 4, "1 to 32 lanes"), ([0] * 33, 4, "33 came"), ([2], 4, "multiple of size=4"), ([0], 3, "size=3")],
)
def test_an_impossible_request_is_refused_with_its_reason(addresses, size, says):
    with pytest.raises(ArgumentError, match=says):
        Request.of(addresses, size)
