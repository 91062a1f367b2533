"""`SvgAxes` draws what matplotlib's axes draw: the same texts, the same places, in valid XML."""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET

import pytest

from gpulab.plots import Request, SvgAxes, occupancy_by_block, plot_access_map, plot_occupancy
from gpulab.plots.figure import new_axes
from gpulab.plots.style import points, prepare

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def pair():
    """The same plot on both kinds of axes."""
    curve = occupancy_by_block("A100", registers_per_thread=40)
    return plot_occupancy(curve, block=256), plot_occupancy(curve, block=256, ax=SvgAxes())


def test_both_renderers_say_the_same(pair):
    figure, live = pair
    drawn = {element.text for element in ET.fromstring(live.to_svg()).iter(f"{SVG}text")}
    labels = {text.get_text() for text in (*figure.texts, *figure.get_xticklabels(), *figure.get_yticklabels())}
    assert drawn == labels | {figure.get_xlabel(), figure.get_ylabel(), figure.get_title(loc="left")}


def test_the_description_is_the_accessible_name(pair):
    figure, live = pair
    root = ET.fromstring(live.to_svg())
    assert root.get("role") == "img"
    assert root.get("aria-label") == figure.description


def test_points_map_as_in_matplotlib_on_log_axes():
    figure = new_axes(height=280 / 72, width=470 / 72, left=54 / 72, right=14 / 72, bottom=40 / 72, top=26 / 72)
    live = SvgAxes(470, 280)
    for ax in (figure, live):
        prepare(ax, title="", x=(0.01, 100), y=(1, 1e4), log=True)
    for spot in ((0.01, 1), (0.5, 33), (100, 1e4)):
        assert points(live, *spot) == pytest.approx(points(figure, *spot))


def test_a_bar_lies_where_its_numbers_say():
    ax = SvgAxes(200, 100, left=20, right=30, bottom=10, top=10)
    prepare(ax, title="", x=(0, 10), y=(0, 4), frame=False)
    ax.barh([1], [4.0], 2.0, 2.0, color="#123456")
    found = ET.fromstring(ax.to_svg()).findall(f"{SVG}rect")
    assert [{name: float(box.get(name)) for name in ("x", "y", "width", "height")} for box in found] == [
        {"x": 50.0, "y": 50.0, "width": 60.0, "height": 40.0}
    ]


def test_text_is_escaped():
    ax = SvgAxes()
    prepare(ax, title='a < b & "c"', x=(0, 1), y=(0, 1))
    texts = [element.text for element in ET.fromstring(ax.to_svg()).iter(f"{SVG}text")]
    assert 'a < b & "c"' in texts


def test_ink_follows_the_page_in_live_pictures_and_is_dark_on_a_card_in_images():
    ax = plot_access_map(Request.of([0, 4]), ax=SvgAxes())
    assert "currentColor" in ax.to_svg()
    image = re.fullmatch(r'<img alt="([^"]+)" width="\d+" src="data:image/svg\+xml;base64,([^"]+)">', ax.to_image())
    assert image is not None
    assert image[1] == ax.description
    assert "background:#ffffff" in ET.fromstring(base64.b64decode(image[2])).get("style")


def test_later_things_lie_above_earlier_ones_of_the_same_height():
    ax = SvgAxes()
    prepare(ax, title="", x=(0, 1), y=(0, 1), frame=False)
    ax.plot([0, 1], [0, 1], color="#aaaaaa", zorder=5)
    ax.plot([0, 1], [1, 0], color="#bbbbbb", zorder=1)
    ax.plot([0, 1], [1, 1], color="#cccccc", zorder=5)
    assert re.findall(r'stroke="#(\w)', ax.to_svg())[-3:] == ["b", "a", "c"]
