"""The bars of a comparison: the time of every rung with its range, and the speed-up over the first."""

from __future__ import annotations

from typing import Any, Protocol

from gpulab.plots.canvas import Canvas
from gpulab.plots.style import BEST, INK, MUTED, axes_or_new, describe, note, points, prepare, text_size
from gpulab.units import range_text, seconds_text

_GAP = 6.0  # points between a whisker and the text beside it
_UNITS = ((1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))


class Timed(Protocol):
    """What the bars need of a time estimate or a measurement."""

    seconds: float
    low: float
    high: float
    source: str


def plot_bars(rungs: dict[str, Timed], *, title: str = "Time of each rung", ax: Canvas | None = None) -> Canvas:
    """A horizontal bar for each rung, in order; the range is a whisker, the speed-up over the first stands beside it.

    Where the range of a rung overlaps with that of the first, it says "no clear difference" instead of a speed-up.

    Parameters
    ----------
    rungs : dict of str to time
        Rung name to a time with ``seconds``, ``low``, ``high`` in s and ``source`` ("modeled", "measured", …).
    title : str
    ax : matplotlib Axes or None
        Where to draw; new axes if None.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax, height=1.1 + 0.36 * len(rungs), left=1.35)
    unit, name = time_unit(max(time.seconds for time in rungs.values()))
    first = next(iter(rungs.values()))
    longest = max(time.high for time in rungs.values()) / unit
    edge = max(_edge(ax, time.high / unit, _beside(time, first)) for time in rungs.values())
    rows = range(len(rungs) - 1, -1, -1)  # the first on top
    sources = " and ".join(dict.fromkeys(time.source for time in rungs.values()))
    prepare(
        ax,
        title=title,
        x=(0, max(edge, 1.05 * longest)),
        y=(-0.6, len(rungs) - 0.4),
        xlabel=f"time, {name} ({sources}; the whisker is its range)",
        xticks=[(tick, f"{tick:g}") for tick in round_ticks(longest)],
        yticks=[(row, rung) for row, rung in zip(rows, rungs, strict=True)],
    )
    fastest = min(rungs.values(), key=lambda time: time.seconds)
    for row, time in zip(rows, rungs.values(), strict=True):
        # Those that can't be told from the fastest are as good; none is marked where the first is among them.
        best = time.low <= fastest.high and time.high < first.low
        _draw_bar(ax, row, time, unit, BEST if best else MUTED)
        note(ax, _beside(time, first), (time.high / unit, row), (_GAP, 0))
    describe(ax, bars_text(rungs, title))
    return ax


def bars_text(rungs: dict[str, Timed], title: str) -> str:
    """The bars in words."""
    first = next(iter(rungs.values()))
    parts = [f"{rung} {_beside(time, first)}" for rung, time in rungs.items()]
    return f"{title}: {'; '.join(parts)} ({first.source})."


def speedup_text(time: Timed, first: Timed) -> str:
    """How much faster than the first; nothing for the first itself, and no number where the ranges overlap.

    Times of different kinds (one modeled, one measured) are not compared.
    """
    if time is first or time.source != first.source:
        return ""
    if time.low <= first.high and first.low <= time.high:
        return "no clear difference"
    factor = first.seconds / time.seconds
    return f"{factor:.1f} times faster" if factor >= 1 else f"{1 / factor:.1f} times slower"


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit in which `seconds` is a number from 1 to 1000: its size in s, and its name."""
    fitting = [(size, name) for size, name in _UNITS if seconds >= size]
    return fitting[-1] if fitting else _UNITS[0]


def round_ticks(high: float, count: int = 5) -> list[float]:
    """About `count` round numbers from 0 to `high`: steps of 1, 2 or 5 times a power of ten."""
    rough = high / count
    power = 10.0 ** len(str(int(rough))) / 10 if rough >= 1 else 0.1
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power >= rough * 0.99)
    return [step * i for i in range(int(high / step) + 1)]


def _edge(ax: Canvas, high: float, text: str) -> float:
    """Where the x axis must end so that `text` has room right of `high`; data units."""
    ax.set_xlim(0, 1)
    width = points(ax, 1, 0)[0] - points(ax, 0, 0)[0]
    return high / max(1 - (text_size(text)[0] + _GAP) / width, 0.1)


def _draw_bar(ax: Canvas, row: int, time: Timed, unit: float, color: str) -> None:
    ax.barh([row], [time.seconds / unit], 0.56, 0.0, color=color, zorder=3)
    ends = [time.low / unit, time.high / unit]
    whisker: dict[str, Any] = {"color": INK, "linewidth": 1.4, "marker": "|", "markersize": 8.0, "zorder": 4}
    ax.plot(ends, [row, row], **whisker)


def _beside(time: Timed, first: Timed) -> str:
    """``84 µs (70 to 101 µs)``, and the speed-up."""
    speedup = speedup_text(time, first)
    return f"{seconds_text(time.seconds)} ({range_text(time.low, time.high)})" + (f", {speedup}" if speedup else "")
