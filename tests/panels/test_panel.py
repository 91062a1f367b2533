"""The rules that every panel keeps: last result stays, newest wins, results are remembered, errors show inside."""

from __future__ import annotations

import re

import ipywidgets
import pytest

from gpulab.errors import GpulabError
from gpulab.panels.panel import Panel, View
from gpulab.plots import SvgAxes
from gpulab.plots.style import describe, prepare


def view(text):
    ax = SvgAxes()
    prepare(ax, title=text, x=(0, 1), y=(0, 1))
    describe(ax, f"picture of {text}")
    return View(status=f"result {text}", pictures=(ax,), table=f"<table><tr><td>{text}</td></tr></table>")


class Lab:
    """A panel with one slider and a look that can be watched."""

    def __init__(self, look=None):
        self.looked_at = []
        self.slider = ipywidgets.IntSlider(value=1, min=0, max=9)
        self.panel = Panel("a <title>", [self.slider], lambda: self.slider.value, look or self.look)
        self.slider.observe(lambda _: self.panel.refresh(), names="value")

    def look(self, setting):
        self.looked_at.append(setting)
        if setting == 7:
            raise GpulabError("7 <threads> do not fit")
        return view(str(setting))


def test_the_first_result_is_there_at_once():
    lab = Lab()
    assert lab.panel.view.status == "result 1"
    assert "<td>1</td>" in lab.panel.table.value
    assert 'aria-label="picture of 1"' in lab.panel.pictures.value


def test_moving_the_slider_redraws_everything():
    lab = Lab()
    lab.slider.value = 3
    assert "<td>3</td>" in lab.panel.table.value
    assert 'aria-label="picture of 3"' in lab.panel.pictures.value
    assert lab.panel.status.value.endswith(">result 3</p>")


def test_the_result_is_announced():
    assert re.match(r'<p class="\S+" role="status" aria-live="polite">', Lab().panel.status.value)


def test_results_are_remembered():
    lab = Lab()
    for value in (2, 1, 2, 3):
        lab.slider.value = value
    assert lab.looked_at == [1, 2, 3]
    assert lab.panel.status.value.endswith(">result 3</p>")


def test_an_error_shows_inside_and_the_last_result_stays():
    lab = Lab()
    lab.slider.value = 7
    assert 'role="alert">7 &lt;threads&gt; do not fit' in lab.panel.error.value
    assert "<td>1</td>" in lab.panel.table.value
    lab.slider.value = 2
    assert lab.panel.error.value == ""
    assert "<td>2</td>" in lab.panel.table.value


def test_an_error_is_not_remembered():
    lab = Lab()
    for value in (7, 1, 7):
        lab.slider.value = value
    assert lab.looked_at == [1, 7, 7]


def test_an_unexpected_error_names_its_kind():
    def look(setting):
        return view("1") if setting == 1 else {}["missing"]

    lab = Lab(look)
    lab.slider.value = 2
    assert "KeyError" in lab.panel.error.value


def test_a_first_setting_that_fails_raises_where_the_panel_is_made():
    def look(setting):
        raise GpulabError("no such ladder")

    with pytest.raises(GpulabError, match="no such ladder"):
        Lab(look)


def test_the_newest_setting_wins():
    """While 4 is computed, 5 comes and is done first; 4 must not overwrite it."""

    def look(setting):
        if setting == 4:
            lab.slider.value = 5
        return view(str(setting))

    lab = Lab(look)
    lab.slider.value = 4
    assert lab.panel.view.status == "result 5"
    assert "<td>5</td>" in lab.panel.table.value


def test_it_says_that_it_computes_while_it_does():
    seen = []

    def look(setting):
        if setting > 1:
            seen.append(lab.panel.busy.value)
        return view(str(setting))

    lab = Lab(look)
    lab.slider.value = 2
    assert "computing" in seen[0]
    assert lab.panel.busy.value == ""


def test_the_static_form_has_picture_table_and_result():
    bundle = Lab().panel._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"] == "a <title>: result 1"
    page = bundle["text/html"]
    assert '<img alt="picture of 1"' in page
    assert "<td>1</td>" in page
    assert "<p>result 1</p>" in page
    assert "picture: run the cell to make it live" in page


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr("gpulab.panels.panel._REMEMBERED", 2)
    lab = Lab()
    for value in (2, 3, 1):
        lab.slider.value = value
    assert lab.looked_at == [1, 2, 3, 1]
