"""Axes that a plot makes show themselves: a sharp PNG with true colors, an alternative text, a text form."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from gpulab.plots import Request, plot_access_map
from gpulab.plots.figure import new_axes, png
from gpulab.plots.style import BEST, DRAM, axes_or_new, prepare


@pytest.fixture(scope="module")
def axes():
    return plot_access_map(Request.of([4 * lane for lane in range(32)]), title='first & "last"')


def test_the_bundle_has_an_image_with_the_description_as_alternative(axes):
    bundle = axes._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == axes.description
    image = re.fullmatch(r'<img alt="([^"]+)" width="(\d+)" src="data:image/png;base64,([^"]+)">', bundle["text/html"])
    assert image is not None
    assert image[1].startswith("first &amp; &quot;last&quot;: 32 lanes ask for 128 bytes")
    picture = Image.open(io.BytesIO(base64.b64decode(image[3])))
    assert picture.width == pytest.approx(1.5 * int(image[2]), abs=1)  # more pixels than the screen needs


def test_few_bytes_and_true_colors():
    ax = new_axes(2.0)
    prepare(ax, title="", x=(0, 1), y=(0, 1), frame=False)
    ax.plot([0.5], [0.5], marker="o", markersize=20, color=BEST, linestyle="none")
    ax.barh([0.1], [1.0], 0.1, 0.0, color=DRAM)
    data = png(ax.figure)
    pixels = np.array(Image.open(io.BytesIO(data)).convert("RGB")).reshape(-1, 3)
    for color in (BEST, DRAM):
        wanted = [int(color[i : i + 2], 16) for i in (1, 3, 5)]
        assert np.abs(pixels - wanted).sum(axis=1).min() <= 6
    assert len(data) < 8000


def test_axes_that_are_given_are_used_as_they_are():
    given = Figure().add_subplot()
    assert axes_or_new(given) is given
    assert plot_access_map(Request.of([0]), ax=given) is given


def test_pyplot_is_never_imported():
    code = (
        "import sys; from gpulab.plots import Request, SvgAxes, plot_access_map as p; r = Request.of([0]);"
        "p(r, ax=SvgAxes()).to_svg(); print('matplotlib' in sys.modules);"
        "p(r)._repr_mimebundle_(); print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "True", "False"]
