"""The axes that a plot makes for itself: matplotlib's, without pyplot, that show themselves in a notebook."""

from __future__ import annotations

import base64
import html
import io
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from gpulab.plots.style import CARD

PNG_DPI = 144  # twice a screen's pixels: sharp on high-density displays and on a lecture hall's wall
SCREEN_DPI = 96
WIDTH = 7.0  # inches; fills the column of a notebook
# Room around the axes in inches, for tick labels, axis labels and the title. Fixed rather than fitted: a layout engine
# moves the axes when the figure is drawn, after the labels have been placed.
MARGINS = {"left": 0.85, "right": 0.25, "bottom": 0.6, "top": 0.4}


class LabAxes(Axes):
    """Axes that display as their picture when they are the last value of a cell.

    Attributes
    ----------
    description : str
        What the picture says, as text; the plot function sets it.
    """

    name = "gpulab"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.description = ""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        text = self.description or repr(self)
        return {"text/plain": text, "text/html": picture_html(self.figure, text)}


def new_axes(height: float, width: float = WIDTH, **margins: float) -> LabAxes:
    """Axes that fill a new figure, all in inches; no pyplot state is touched."""
    room = {**MARGINS, **margins}
    figure = Figure(figsize=(width, height), facecolor=CARD)
    box = (
        room["left"] / width,
        room["bottom"] / height,
        1 - (room["left"] + room["right"]) / width,
        1 - (room["bottom"] + room["top"]) / height,
    )
    axes = LabAxes(figure, box)
    figure.add_axes(axes)
    return axes


def png(figure: Figure, dpi: int = PNG_DPI) -> bytes:
    """The figure as a PNG file with a palette: a third of the size, no color off by more than a few of 255 steps."""
    drawn, packed = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi, facecolor=figure.get_facecolor())
    # The other methods merge rare colors: a green point became teal.
    palette = Image.open(drawn).convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE)
    palette.save(packed, "PNG", optimize=True)
    return packed.getvalue()


def picture_html(figure: Figure, alternative: str) -> str:
    """An ``<img>`` with the figure inside and an alternative text, which Jupyter's own PNG output cannot carry."""
    data = base64.b64encode(png(figure)).decode()
    width = round(figure.get_figwidth() * SCREEN_DPI)
    return f'<img alt="{html.escape(alternative)}" width="{width}" src="data:image/png;base64,{data}">'
