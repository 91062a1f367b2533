"""The roofline: what a GPU can reach at each arithmetic intensity, and where the rungs of a ladder stand below it.

A kernel has a point at every level of memory: the same rate, over the work for each byte that this level moves. The
point at DRAM is filled and named, the one at L2 hollow. A path joins the rungs in their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from gpulab.models.roofline import Point, Roofline
from gpulab.plots.canvas import Canvas
from gpulab.plots.labels import Box, Spot, label_box, place_labels
from gpulab.plots.style import (
    BEST,
    COMPUTE,
    DRAM,
    INK,
    L2,
    MUTED,
    axes_or_new,
    describe,
    note,
    points,
    prepare,
    text_size,
)

Span = tuple[float, float]
_GIGA = 1e9
_ROOF_LOOKS = {"dram": (DRAM, "-"), "l2": (L2, "--")}
_LEVEL_NAMES = {"dram": "DRAM", "l2": "L2"}
_RATE_LABELS = {"FLOP": "GFLOP/s", "warp instruction": "billion warp instructions/s"}


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The points of one kernel: its rate with its range in 1e9 work/s, and its intensity by level."""

    name: str
    rate: float
    low: float
    high: float
    intensity: dict[str, float]

    @property
    def spot(self) -> Spot:
        """Where its filled point stands: at DRAM, or at the only level that it moves bytes at."""
        return self.intensity.get("dram", next(iter(self.intensity.values()))), self.rate


@dataclass(frozen=True, slots=True)
class _Slope:
    """A bandwidth roof: 1e9 byte/s, the intensities at its ends, and the line in points."""

    label: str
    level: str
    rate: float
    ends: Span
    line: tuple[Spot, Spot]


def plot_roofline(
    roofline: Roofline, *, chosen: str | None = None, title: str | None = None, ax: Canvas | None = None
) -> Canvas:
    """Roofs for DRAM and L2, ceilings of the arithmetic units, and a point for each rung, joined by a path.

    Parameters
    ----------
    roofline : Roofline
        Its last point is drawn as the best rung.
    chosen : str or None
        Name of a point to ring.
    title : str or None
    ax : matplotlib Axes or None
        Where to draw; new axes if None.

    Returns
    -------
    matplotlib Axes
        With logarithmic axes, in work per byte and in 1e9 work per second.
    """
    ax = axes_or_new(ax)
    kernels = _kernels(roofline.points)
    x, y = _spans(roofline, kernels)
    prepare(
        ax,
        title=title or f"Roofline, {roofline.gpu}",
        x=x,
        y=y,
        xlabel=f"{roofline.unit}s per byte moved (filled: DRAM, hollow: L2)".replace("FLOPs", "FLOP"),
        ylabel=_RATE_LABELS[roofline.unit],
        xticks=decade_ticks(x),
        yticks=decade_ticks(y),
        log=True,
    )
    roofs = _roofs(ax, roofline, x, y)
    lines = [roof.line for roof in roofs] + _draw_ceilings(ax, roofline, x)
    _draw_kernels(ax, kernels, chosen)
    taken = _name_kernels(ax, kernels, x, y, lines)
    for roof in roofs:
        _draw_roof(ax, roof, taken)
    describe(ax, roofline_text(roofline, title))
    return ax


def roofline_text(roofline: Roofline, title: str | None = None) -> str:
    """The roofline in words: its limits, then rate and intensities of every kernel."""
    limits = ", ".join(item.label for item in (*roofline.roofs, *roofline.ceilings))
    rates = _RATE_LABELS[roofline.unit]
    parts = []
    for kernel in _kernels(roofline.points):
        places = [f"{value:.3g} per {_LEVEL_NAMES[level]} byte" for level, value in kernel.intensity.items()]
        parts.append(f"{kernel.name} {rate_text(kernel.rate)} {rates} at {', '.join(places)}")
    return f"{title or f'Roofline, {roofline.gpu}'}: {limits}. {'; '.join(parts)}."


def _kernels(points_of_all: Iterable[Point]) -> list[_Kernel]:
    found: dict[str, list[Point]] = {}
    for point in points_of_all:
        found.setdefault(point.name, []).append(point)
    return [
        _Kernel(
            name,
            levels[0].work_per_s / _GIGA,
            levels[0].low_per_s / _GIGA,
            levels[0].high_per_s / _GIGA,
            {point.level: point.work_per_byte for point in levels},
        )
        for name, levels in found.items()
    ]


def rate_text(rate: float) -> str:
    """A rate with at least three significant digits, without an exponent."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def decades(values: Iterable[float], *, least: int = 2) -> Span:
    """Whole powers of ten around all positive values, with some room, at least `least` decades apart."""
    found = [math.log10(value) for value in values if value > 0]
    low, high = math.floor(min(found) - 0.08), math.ceil(max(found) + 0.08)
    return 10.0 ** min(low, high - least), 10.0**high


def decade_ticks(span: Span) -> list[tuple[float, str]]:
    """A tick for each power of ten in the span, as a plain number; every second one where there are many."""
    low, high = (round(math.log10(edge)) for edge in span)
    step = 1 if high - low <= 7 else 2
    return [(10.0**power, f"{10.0**power:,.{max(-power, 0)}f}") for power in range(low, high + 1, step)]


def _spans(roofline: Roofline, kernels: list[_Kernel]) -> tuple[Span, Span]:
    ridges = [ceiling.work_per_s / roof.bytes_per_s for ceiling in roofline.ceilings for roof in roofline.roofs]
    x = decades([*ridges, *(value for kernel in kernels for value in kernel.intensity.values())])
    top = max(ceiling.work_per_s for ceiling in roofline.ceilings) / _GIGA
    return x, decades([top, *(kernel.low for kernel in kernels)])


def _roofs(ax: Canvas, roofline: Roofline, x: Span, y: Span) -> list[_Slope]:
    top = max(ceiling.work_per_s for ceiling in roofline.ceilings) / _GIGA
    found = []
    for roof in roofline.roofs:
        rate = roof.bytes_per_s / _GIGA
        left, right = max(x[0], y[0] / rate), min(x[1], top / rate)
        line = points(ax, left, left * rate), points(ax, right, right * rate)
        found.append(_Slope(roof.label, roof.level, rate, (left, right), line))
    return found


def _draw_roof(ax: Canvas, roof: _Slope, taken: list[Spot]) -> None:
    """A slanted roof with its name along it, where that is farthest from everything else."""
    color, dash = _ROOF_LOOKS[roof.level]
    heights = [end * roof.rate for end in roof.ends]
    ax.plot(list(roof.ends), heights, color=color, linestyle=dash, linewidth=2.0, zorder=2)
    (x0, y0), (x1, y1) = roof.line
    angle = math.atan2(y1 - y0, x1 - x0)
    side = 8.0 if roof.level == "l2" else -8.0  # above the upper roof, below the lower one
    offset = (-side * math.sin(angle), side * math.cos(angle))
    half = text_size(roof.label)[0] / 2
    reach = [(step * half * math.cos(angle), step * half * math.sin(angle)) for step in (-1, -0.5, 0, 0.5, 1)]

    def room(part: float) -> float:
        middle = x0 + part * (x1 - x0) + offset[0], y0 + part * (y1 - y0) + offset[1]
        return min(
            (math.dist((middle[0] + dx, middle[1] + dy), other) for dx, dy in reach for other in taken),
            default=math.inf,
        )

    margin = half / math.dist(*roof.line)  # the name must not stick out at either end
    fitting = [part for part in (0.5, 0.6, 0.4, 0.7, 0.3, 0.8, 0.2) if margin <= part <= 1 - margin]
    part = max(fitting or [0.5], key=room)
    at = roof.ends[0] * (roof.ends[1] / roof.ends[0]) ** part
    turn = math.degrees(angle)
    note(ax, roof.label, (at, at * roof.rate), offset, ha="center", rotation=turn, fontweight="bold")


def _draw_ceilings(ax: Canvas, roofline: Roofline, x: Span) -> list[tuple[Spot, Spot]]:
    """The level ceilings, each from the roof of the fastest memory on, with its name at the right end."""
    fastest = max(roof.bytes_per_s for roof in roofline.roofs)
    drawn = []
    for ceiling in roofline.ceilings:
        height, start = ceiling.work_per_s / _GIGA, ceiling.work_per_s / fastest
        ax.plot([start, x[1]], [height, height], color=COMPUTE, linewidth=2.0, zorder=2)
        drawn.append((points(ax, start, height), points(ax, x[1], height)))
        note(ax, ceiling.label, (x[1], height), (-2, 8), ha="right", fontweight="bold")
    return drawn


def _draw_kernels(ax: Canvas, kernels: list[_Kernel], chosen: str | None) -> None:
    for before, after in pairwise(kernels):
        (x0, y0), (x1, y1) = before.spot, after.spot
        ax.plot([x0, x1], [y0, y1], color=MUTED, linewidth=1.0, linestyle=":", zorder=3)
    for kernel in kernels:
        color = BEST if kernel is kernels[-1] else INK
        across, up = kernel.spot
        ax.plot([across, across], [kernel.low, kernel.high], color=color, linewidth=1.0, zorder=3)
        _draw_l2_point(ax, kernel, color)
        ax.plot([across], [up], linestyle="none", marker="o", markersize=7.0, color=color, zorder=5)
        if kernel.name == chosen:
            ring = {"markerfacecolor": "none", "markeredgecolor": INK, "markeredgewidth": 1.6}
            ax.plot([across], [up], linestyle="none", marker="o", markersize=13.0, color=INK, zorder=5, **ring)


def _draw_l2_point(ax: Canvas, kernel: _Kernel, color: str) -> None:
    if "l2" not in kernel.intensity:
        return
    across = kernel.intensity["l2"]
    ax.plot([across, kernel.spot[0]], [kernel.rate, kernel.rate], color=MUTED, linewidth=0.8, zorder=3)
    hollow = {"markerfacecolor": "none", "markeredgecolor": color, "markeredgewidth": 1.4}
    ax.plot([across], [kernel.rate], linestyle="none", marker="D", markersize=6.0, color=color, zorder=4, **hollow)


def _name_kernels(ax: Canvas, kernels: list[_Kernel], x: Span, y: Span, lines: list[tuple[Spot, Spot]]) -> list[Spot]:
    """Write the names beside the points; returns what is taken now, as spots that other text should keep away from."""
    spots = [points(ax, *kernel.spot) for kernel in kernels]
    (left, bottom), (right, top) = points(ax, x[0], y[0]), points(ax, x[1], y[1])
    frame: Box = (left, bottom, right, top)
    names = [kernel.name for kernel in kernels]
    lines = [*lines, *pairwise(spots)]
    lines += [
        (points(ax, kernel.intensity["l2"], kernel.rate), spot)
        for kernel, spot in zip(kernels, spots, strict=True)
        if "l2" in kernel.intensity
    ]
    taken = [points(ax, value, kernel.rate) for kernel in kernels for value in kernel.intensity.values()]
    for kernel, spot, place in zip(kernels, spots, place_labels(names, spots, frame, lines), strict=True):
        note(ax, kernel.name, kernel.spot, place[0], ha=place[1])
        box = label_box(kernel.name, spot, *place)
        taken += [(box[0] + part * (box[2] - box[0]), (box[1] + box[3]) / 2) for part in (0.0, 0.5, 1.0)]
    return taken
