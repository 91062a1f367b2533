"""How every plot looks: one color a meaning, the axes, the notes, and the axes that are made when none are given.

The colors are those of Okabe and Ito (2008) that keep a contrast of 3:1 on white and on a notebook's dark background,
so that color-blind readers can tell them apart; no plot relies on color alone. Pictures have an opaque background of
their own, because a saved notebook cannot know the theme of its reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpulab.plots.canvas import Canvas

INK = "#24292f"  # text, axes, markers of what is looked at
MUTED = "#6a727b"  # secondary text; the naive or any other rung
GRID = "#d8dee4"
CARD = "#ffffff"  # background of a picture

DRAM = "#0072b2"  # device memory; bytes that were asked for
L2 = "#3f94cc"  # the same family of blue, lighter, and dashed where it is a line
COMPUTE = "#d55e00"  # arithmetic
BEST = "#009e73"  # the best rung; the setting that is chosen
WASTE = "#cc79a7"  # moved and not asked for

FONT_SIZE = 9.0
NOTE_SIZE = 8.5
# Mean width of a character of a sans-serif font, in units of its size. Too wide is safe: labels keep a distance then.
CHARACTER_WIDTH = 0.56


def text_size(text: str, font_size: float = NOTE_SIZE) -> tuple[float, float]:
    """About how wide and high a line of text is, in points."""
    return len(text) * font_size * CHARACTER_WIDTH, font_size * 1.2


def axes_or_new(ax: Canvas | None, *, height: float = 3.9, **margins: float) -> Canvas:
    """`ax`, or new axes of a figure of that height in inches; those show themselves in a notebook."""
    if ax is not None:
        return ax
    from gpulab.plots.figure import new_axes  # matplotlib loads here, not when a panel draws SVG

    return new_axes(height, **margins)


def prepare(
    ax: Canvas,
    *,
    title: str,
    x: Sequence[float],
    y: Sequence[float],
    xlabel: str = "",
    ylabel: str = "",
    xticks: Iterable[tuple[float, str]] = (),
    yticks: Iterable[tuple[float, str]] = (),
    log: bool = False,
    frame: bool = True,
) -> None:
    """Set up axes: limits `x` and `y`, labels, ticks as (value, label), a grid at the ticks. No `frame`: no lines.

    Limits come first because labels are placed by them, and ticks are given because a plot knows its round numbers.
    """
    if log:
        ax.set_xscale("log")
        ax.set_yscale("log")
    ax.set_xlim(*x)
    ax.set_ylim(*y)
    ax.set_title(title, fontsize=FONT_SIZE + 1.5, color=INK, loc="left")
    ax.set_xlabel(xlabel, fontsize=FONT_SIZE, color=INK)
    ax.set_ylabel(ylabel, fontsize=FONT_SIZE, color=INK)
    for set_ticks, ticks in ((ax.set_xticks, xticks), (ax.set_yticks, yticks)):
        pairs = list(ticks)
        set_ticks([value for value, _ in pairs], [label for _, label in pairs])
        set_ticks([], minor=True)
    ax.tick_params(labelsize=NOTE_SIZE, color=GRID, labelcolor=INK, length=3 if frame else 0)
    for side, spine in ax.spines.items():
        spine.set_visible(frame and side in ("left", "bottom"))
        spine.set_color(MUTED)
    if frame:
        ax.grid(True, color=GRID, linewidth=0.7, zorder=0)
    else:
        ax.grid(False)
    ax.set_axisbelow(True)


def note(
    ax: Canvas,
    text: str,
    at: tuple[float, float],
    offset: tuple[float, float] = (0.0, 0.0),
    **options: Any,
) -> None:
    """Write `text` at a point in data units, moved by `offset` points; lines behind it stay readable around it."""
    settings: dict[str, Any] = {"ha": "left", "va": "center", "color": INK, "fontsize": NOTE_SIZE, "zorder": 6}
    settings["bbox"] = {"facecolor": CARD, "edgecolor": "none", "alpha": 0.8, "pad": 0.8}
    ax.annotate(text, at, xytext=offset, textcoords="offset points", **{**settings, **options})


def describe(ax: Canvas, text: str) -> None:
    """Keep the text form of the picture: it becomes the alternative text, and the output where no picture shows."""
    if hasattr(ax, "description"):
        ax.description = text


def points(ax: Canvas, x: float, y: float) -> tuple[float, float]:
    """Where a point in data units lies, in points (1/72 inch) from the lower left corner of the picture."""
    across, up = ax.transData.transform((x, y))
    scale = 72.0 / ax.figure.dpi
    return float(across) * scale, float(up) * scale
