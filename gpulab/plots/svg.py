"""`SvgAxes`: axes that answer matplotlib's calls with SVG text.

matplotlib needs 150 to 400 ms for a figure with logarithmic axes. A picture that follows a slider has to be there in a
fraction of that, so panels pass an `SvgAxes` to a plot function, which is then done within a few milliseconds.
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from gpulab.plots.canvas import Numbers
from gpulab.plots.style import CARD, FONT_SIZE, GRID, INK, MUTED

# Ink follows the page's text color, so that live pictures fit light and dark themes without knowing which it is.
_PAINT = {
    INK: ("currentColor", 1.0),
    MUTED: ("currentColor", 0.7),
    GRID: ("currentColor", 0.18),
    CARD: ("var(--jp-layout-color1, var(--vscode-editor-background, transparent))", 1.0),
}
_IMAGE_SCALE = 1.0  # CSS pixels for a point: two images fit side by side
_ANCHORS = {"left": "start", "center": "middle", "right": "end"}
_DASHES = {"-": "", "--": "6 3", ":": "1.5 3", "-.": "6 3 1.5 3"}


class _Axis:
    """One direction: limits, scale, ticks, and the map from data units to points."""

    def __init__(self, start: float, stop: float) -> None:
        self.start, self.stop = start, stop
        self.low, self.high = 0.0, 1.0
        self.log = False
        self.ticks: list[tuple[float, str]] = []
        self.label = ""

    def place(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (value - low) / (high - low) * (self.stop - self.start)


class SvgAxes:
    """Axes that collect SVG; sizes are in points, which are the SVG's user units.

    Parameters
    ----------
    width, height : float
        Of the whole picture, with room for labels.
    left, right, bottom, top : float
        That room.
    """

    def __init__(
        self,
        width: float = 470.0,
        height: float = 280.0,
        *,
        left: float = 54.0,
        right: float = 14.0,
        bottom: float = 40.0,
        top: float = 26.0,
    ) -> None:
        self.width, self.height = width, height
        self._x = _Axis(left, width - right)
        self._y = _Axis(bottom, height - top)
        self._title = ""
        self._framed = True
        self._parts: list[tuple[float, str]] = []
        self.description = ""
        self.figure = SimpleNamespace(dpi=72.0)
        self.transData = SimpleNamespace(transform=lambda point: (self._x.place(point[0]), self._y.place(point[1])))
        self.spines: Mapping[str, Any] = {}

    # The calls of matplotlib's Axes that plots use, with its meaning of every argument.

    def set_xscale(self, value: str) -> None:
        """``"log"`` or ``"linear"``."""
        self._x.log = value == "log"

    def set_yscale(self, value: str) -> None:
        """``"log"`` or ``"linear"``."""
        self._y.log = value == "log"

    def set_xlim(self, low: float, high: float) -> None:
        """What lies at the left and the right edge."""
        self._x.low, self._x.high = low, high

    def set_ylim(self, low: float, high: float) -> None:
        """What lies at the lower and the upper edge."""
        self._y.low, self._y.high = low, high

    def set_xticks(self, ticks: Numbers, labels: Sequence[str] | None = None, *, minor: bool = False) -> None:
        """Where ticks are and what they say; there are no minor ticks."""
        if not minor:
            self._x.ticks = list(zip(ticks, labels or [f"{tick:g}" for tick in ticks], strict=True))

    def set_yticks(self, ticks: Numbers, labels: Sequence[str] | None = None, *, minor: bool = False) -> None:
        """Where ticks are and what they say; there are no minor ticks."""
        if not minor:
            self._y.ticks = list(zip(ticks, labels or [f"{tick:g}" for tick in ticks], strict=True))

    def set_title(self, text: str, **_: Any) -> None:
        """The title, above the axes at the left."""
        self._title = text

    def set_xlabel(self, text: str, **_: Any) -> None:
        """What the x axis shows, with its unit."""
        self._x.label = text

    def set_ylabel(self, text: str, **_: Any) -> None:
        """What the y axis shows, with its unit."""
        self._y.label = text

    def tick_params(self, **_: Any) -> None:
        """Ticks have one look here."""

    def grid(self, visible: bool, **_: Any) -> None:
        """With the grid go the lines of the axes."""
        self._framed = visible

    def set_axisbelow(self, below: bool) -> None:
        """The grid is always below."""

    def plot(self, x: Numbers, y: Numbers, **options: Any) -> None:
        """A line through points, markers at them, or both."""
        spots = [(self._x.place(across), self._flip(self._y.place(up))) for across, up in zip(x, y, strict=True)]
        zorder = options.get("zorder", 2)
        color = options.get("color", INK)
        dash = options.get("linestyle", "-")
        if len(spots) > 1 and dash in _DASHES:
            path = " ".join(f"{across:.1f},{up:.1f}" for across, up in spots)
            extra = f' stroke-dasharray="{_DASHES[dash]}"' if _DASHES[dash] else ""
            width = options.get("linewidth", 1.5)
            self._add(zorder, f'<polyline points="{path}" fill="none" {_stroke(color, width)}{extra}/>')
        if options.get("marker"):
            half = options.get("markersize", 6.0) / 2
            face, edge = options.get("markerfacecolor", color), options.get("markeredgecolor", color)
            look = f"{_fill(face)} {_stroke(edge, options.get('markeredgewidth', 1.0))}"
            for across, up in spots:
                self._add(zorder + 0.1, _marker(options["marker"], across, up, half, look))

    def barh(self, y: Numbers, width: Numbers, height: float = 0.8, left: Any = 0.0, **options: Any) -> None:
        """Bars from `left`, `width` long, centered at `y`."""
        starts = left if isinstance(left, Sequence) else [left] * len(y)
        for middle, size, start in zip(y, width, starts, strict=True):
            x0, x1 = sorted((self._x.place(start), self._x.place(start + size)))
            y0, y1 = sorted(self._flip(self._y.place(middle + side * height / 2)) for side in (-1, 1))
            box = f'x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}"'
            edge = options.get("edgecolor", "none")
            look = f"{_fill(options.get('color', INK))} {_stroke(edge, options.get('linewidth', 0.8))}"
            self._add(options.get("zorder", 2), f"<rect {box} {look}/>")
            if options.get("hatch"):
                self._add(options.get("zorder", 2) + 0.05, f'<rect {box} fill="url(#gpulab-hatch)"/>')

    def annotate(self, text: str, xy: tuple[float, float], **options: Any) -> None:
        """Text at a point in data units, moved by ``xytext`` points."""
        move = options.get("xytext", (0.0, 0.0))
        across = self._x.place(xy[0]) + move[0]
        up = self._flip(self._y.place(xy[1]) + move[1])
        size = options.get("fontsize", FONT_SIZE)
        down = {"center": 0.35, "top": 0.8, "bottom": -0.2}[options.get("va", "center")] * size
        look = {
            "anchor": _ANCHORS[options.get("ha", "left")],
            "weight": options.get("fontweight", "normal"),
            "color": options.get("color", INK),
            "turn": options.get("rotation", 0.0),
            "halo": "bbox" in options,
        }
        self._add(options.get("zorder", 6), _text(text, across, up, size, down, **look))

    def to_image(self) -> str:
        """The picture as an ``<img>`` on a background of its own, for pages that strip SVG elements."""
        card = f'style="background:{CARD};font-family:sans-serif" width="{self.width:g}" height="{self.height:g}"'
        data = base64.b64encode(self._svg(card).encode()).decode()
        width = round(_IMAGE_SCALE * self.width)
        return f'<img alt="{self._name()}" width="{width}" src="data:image/svg+xml;base64,{data}">'

    def to_svg(self) -> str:
        """The picture as an ``<svg>`` element that an HTML page can hold, in the text color of the page."""
        return self._svg(f'style="width:100%;max-width:{1.6 * self.width:g}px;display:block"')

    def _svg(self, look: str) -> str:
        body = "".join(part for _, part in sorted(self._parts, key=lambda item: item[0]))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-label="{self._name()}" {look}>{_HATCH}{self._frame()}{body}</svg>'
        )

    def _name(self) -> str:
        return html.escape(self.description or self._title)

    def _flip(self, up: float) -> float:
        return self.height - up

    def _add(self, zorder: float, part: str) -> None:
        self._parts.append((zorder, part))

    def _frame(self) -> str:
        """Grid, axes, ticks, labels and title."""
        x, y = self._x, self._y
        floor, ceiling = self._flip(y.start), self._flip(y.stop)
        parts = []
        for value, label in x.ticks:
            at = x.place(value)
            parts.append(_line(at, floor, at, ceiling, GRID) if self._framed else "")
            parts.append(_text(label, at, floor, FONT_SIZE - 0.5, 12.5, anchor="middle"))
        for value, label in y.ticks:
            at = self._flip(y.place(value))
            parts.append(_line(x.start, at, x.stop, at, GRID) if self._framed else "")
            parts.append(_text(label, x.start - 5, at, FONT_SIZE - 0.5, 3.0, anchor="end"))
        if self._framed:
            parts.append(_line(x.start, floor, x.stop, floor, MUTED) + _line(x.start, floor, x.start, ceiling, MUTED))
        middle_x, middle_y = (x.start + x.stop) / 2, (floor + ceiling) / 2
        parts.append(_text(x.label, middle_x, self.height - 8, FONT_SIZE, 0.0, anchor="middle"))
        parts.append(_text(y.label, 11, middle_y, FONT_SIZE, 0.0, anchor="middle", turn=90.0))
        parts.append(_text(self._title, x.start, ceiling - 10, FONT_SIZE + 1.5, 0.0, weight="bold"))
        return "".join(parts)


_HATCH = (
    '<defs><pattern id="gpulab-hatch" width="4" height="4" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><path d="M0 0V4" stroke="#00000066" stroke-width="1.4"/></pattern></defs>'
)


def _fill(color: str) -> str:
    paint, opacity = _PAINT.get(color, (color, 1.0))
    return f'fill="{paint}"' + (f' fill-opacity="{opacity}"' if opacity < 1 else "")


def _stroke(color: str, width: float) -> str:
    paint, opacity = _PAINT.get(color, (color, 1.0))
    return f'stroke="{paint}" stroke-width="{width:g}"' + (f' stroke-opacity="{opacity}"' if opacity < 1 else "")


def _line(x0: float, y0: float, x1: float, y1: float, color: str) -> str:
    return f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" {_stroke(color, 1.0)}/>'


def _text(
    text: str,
    x: float,
    y: float,
    size: float,
    down: float,
    *,
    anchor: str = "start",
    weight: str = "normal",
    color: str = INK,
    turn: float = 0.0,
    halo: bool = False,
) -> str:
    """A text element at (x, y), moved `down` in its own direction and turned counter-clockwise by degrees."""
    if not text:
        return ""
    place = (
        f'transform="translate({x:.1f} {y:.1f}) rotate({-turn:g})" y="{down:.1f}"'
        if turn
        else (f'x="{x:.1f}" y="{y + down:.1f}"')
    )
    style = f'font-size="{size:g}" text-anchor="{anchor}" font-weight="{weight}" {_fill(color)}'
    ring = f' paint-order="stroke" {_stroke(CARD, 3)} stroke-linejoin="round"' if halo else ""
    return f"<text {place} {style}{ring}>{html.escape(text)}</text>"


def _marker(kind: str, x: float, y: float, half: float, look: str) -> str:
    if kind == "o":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{half:g}" {look}/>'
    if kind == "|":
        return f'<path d="M{x:.1f} {y - half:.1f}V{y + half:.1f}" {look}/>'
    corners = {
        "s": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "^": ((0, -1), (1, 1), (-1, 1)),
        "v": ((0, 1), (1, -1), (-1, -1)),
        "D": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    }[kind]
    path = " ".join(f"{x + across * half:.1f},{y + down * half:.1f}" for across, down in corners)
    return f'<polygon points="{path}" {look}/>'
