"""The occupancy curve: how many warps an SM holds for each block size, and which resource is the limit."""

from __future__ import annotations

from collections.abc import Mapping

from gpulab.gpus import Gpu
from gpulab.models.occupancy import Occupancy, occupancy_curve
from gpulab.plots.canvas import Canvas
from gpulab.plots.style import BEST, COMPUTE, DRAM, INK, MUTED, WASTE, axes_or_new, describe, note, prepare

# One marker and color for each limit, so that neither is needed alone.
LIMIT_LOOKS = {
    "warps": ("o", BEST, "warps"),
    "registers": ("s", COMPUTE, "registers"),
    "shared": ("^", DRAM, "shared memory"),
    "blocks": ("D", WASTE, "blocks"),
    "barriers": ("v", MUTED, "barriers"),
}
_TOP = 122.0  # per cent; the legend stands above 100 %
_FOOT, _HEAD = 10.0, 92.0  # per cent; where the sentence may stand


def occupancy_by_block(
    gpu: str | Gpu, *, registers_per_thread: int | None, shared_bytes: int = 0, limit: int = 1024
) -> dict[int, Occupancy]:
    """The occupancy of each block size in whole warps up to `limit` threads, as far as the GPU can hold one block."""
    curve = occupancy_curve(gpu, registers_per_thread=registers_per_thread, shared_bytes=shared_bytes)
    return {block: held for block, held in curve.items() if block <= limit and held.blocks_per_sm}


def plot_occupancy(
    curve: Mapping[int, Occupancy], *, block: int | None = None, title: str = "Occupancy", ax: Canvas | None = None
) -> Canvas:
    """Theoretical occupancy over block size, each point marked by what limits it.

    Parameters
    ----------
    curve : mapping of int to Occupancy
        Threads per block to the result of `gpulab.occupancy`; `occupancy_by_block` makes one.
    block : int or None
        The block size to point out; it must be in `curve`.
    title : str
    ax : matplotlib Axes or None
        Where to draw; new axes if None.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax, height=3.0)
    largest = max(curve)
    prepare(
        ax,
        title=title,
        x=(0, largest * 1.03),
        y=(0, _TOP),
        xlabel="block size, threads",
        ylabel="theoretical occupancy, %",
        xticks=[(value, str(value)) for value in range(0, largest + 1, 128 if largest > 512 else 64)],
        yticks=[(value, str(value)) for value in (0, 25, 50, 75, 100)],
    )
    sizes = sorted(curve)
    ax.plot(sizes, [100 * curve[size].theoretical for size in sizes], color=MUTED, linewidth=1.0, zorder=2)
    _draw_points(ax, curve)
    _draw_legend(ax, [name for name in LIMIT_LOOKS if any(item.limited_by == name for item in curve.values())], largest)
    if block is not None:
        _point_out(ax, curve, block)
    describe(ax, occupancy_text(curve, block, title))
    return ax


def occupancy_text(curve: Mapping[int, Occupancy], block: int | None, title: str) -> str:
    """The curve in words: the setting that is pointed out, and the best block sizes."""
    best = max(item.theoretical for item in curve.values())
    sizes = ", ".join(str(size) for size in sorted(curve) if curve[size].theoretical == best)
    lines = [f"{title}: highest {best:.0%} at {sizes} threads per block."]
    if block is not None:
        lines.insert(0, f"{title}: {_sentence(curve[block], block)}.")
        lines[1] = f"Highest {best:.0%} at {sizes} threads per block."
    return " ".join(lines)


def _draw_points(ax: Canvas, curve: Mapping[int, Occupancy]) -> None:
    for name, (marker, color, _) in LIMIT_LOOKS.items():
        sizes = [size for size in sorted(curve) if curve[size].limited_by == name]
        if sizes:
            heights = [100 * curve[size].theoretical for size in sizes]
            ax.plot(sizes, heights, linestyle="none", marker=marker, markersize=5.0, color=color, zorder=3)


def _draw_legend(ax: Canvas, limits: list[str], largest: int) -> None:
    across = 0.02 * largest
    note(ax, "limited by", (across, 113))
    across += 0.145 * largest
    for name in limits:
        marker, color, words = LIMIT_LOOKS[name]
        ax.plot([across], [113], linestyle="none", marker=marker, markersize=6.0, color=color, zorder=7)
        note(ax, words, (across, 113), (7, 0))
        across += (0.06 + 0.0145 * len(words)) * largest


def _point_out(ax: Canvas, curve: Mapping[int, Occupancy], block: int) -> None:
    height = 100 * curve[block].theoretical
    ring = {"markerfacecolor": "none", "markeredgecolor": INK, "markeredgewidth": 1.8}
    ax.plot([block], [height], linestyle="none", marker="o", markersize=11.0, color=INK, zorder=5, **ring)
    # The curve leaves either the foot or the head of the picture free; beside the point there is no room.
    at_foot = min(item.theoretical for item in curve.values()) > 0.2
    free = _FOOT if at_foot else _HEAD
    # The line ends above the sentence at the foot, else it would strike through it.
    ends = [free + 7.0 if at_foot else 0, height]
    ax.plot([block, block], ends, color=INK, linewidth=1.2, linestyle="--", zorder=2)
    note(ax, _sentence(curve[block], block), (0.02 * max(curve), free), fontweight="bold")


def _sentence(item: Occupancy, block: int) -> str:
    blocks = f"{item.blocks_per_sm} block{'s' if item.blocks_per_sm != 1 else ''} per SM"
    limit = LIMIT_LOOKS[item.limited_by][2]
    return f"{block} threads: {item.theoretical:.0%}, {blocks}, limited by {limit}"
