"""The access map: which sectors of memory the lanes of one warp touch with one request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpulab.errors import ArgumentError
from gpulab.launch import WARP_SIZE
from gpulab.models import access
from gpulab.plots.canvas import Canvas
from gpulab.plots.style import CARD, DRAM, GRID, INK, MUTED, WASTE, axes_or_new, describe, note, prepare

_SECTORS_PER_LINE = access.LINE_BYTES // access.SECTOR_BYTES
_LANE_ROW, _SECTOR_ROW = 1.0, 0.0
_ROWS = [(_LANE_ROW, "lanes"), (_SECTOR_ROW, "memory")]
_MOST_SECTORS_APART = 48  # with more, the lines between sectors would hide what is in them
_GAP = 1.0  # sectors' width that a jump over untouched lines takes


@dataclass(frozen=True, slots=True)
class Request:
    """One memory request of a warp: where each lane reads or writes.

    Attributes
    ----------
    addresses : tuple of int
        Byte address of each lane, in lane order; a lane that is off has -1.
    size : int
        Bytes that each lane asks for.
    """

    addresses: tuple[int, ...]
    size: int

    @classmethod
    def of(cls, addresses: Iterable[int], size: int = 4) -> Request:
        """A request from up to 32 byte addresses.

        Raises
        ------
        ArgumentError
            If there are more than 32 lanes, none is on, or an address is not aligned to `size`.
        """
        lanes = tuple(int(address) for address in addresses)
        if not 1 <= len(lanes) <= WARP_SIZE or max(lanes) < 0:
            raise ArgumentError(f"A request has 1 to {WARP_SIZE} lanes, one of them on, but {len(lanes)} came.")
        if size not in (1, 2, 4, 8, 16):
            raise ArgumentError(f"A lane asks for 1, 2, 4, 8 or 16 bytes, but size={size!r} came.")
        wrong = [address for address in lanes if address >= 0 and address % size]
        if wrong:
            raise ArgumentError(f"Each address must be a multiple of size={size}, but {wrong[0]} came.")
        return cls(lanes, size)

    @property
    def on(self) -> np.ndarray:
        """Addresses of the lanes that are on."""
        return np.array([address for address in self.addresses if address >= 0], np.int64)

    @property
    def sectors(self) -> tuple[int, ...]:
        """Numbers of the 32-byte sectors that are touched, ascending."""
        return tuple(sorted(int(chunk) for chunk in access.chunks(self.on, self.size, access.SECTOR_BYTES)))

    @property
    def bytes_asked(self) -> int:
        """Different bytes that the lanes ask for; lanes that share an address count once."""
        return len({address + offset for address in self.on.tolist() for offset in range(self.size)})

    @property
    def bytes_moved(self) -> int:
        """Bytes of the touched sectors."""
        return len(self.sectors) * access.SECTOR_BYTES

    def sentence(self) -> str:
        """What the request costs."""
        lines = len({sector // _SECTORS_PER_LINE for sector in self.sectors})
        return (
            f"{len(self.on)} lanes ask for {self.bytes_asked:,} bytes: {len(self.sectors)} "
            f"sector{'s' * (len(self.sectors) != 1)} in {lines} line{'s' * (lines != 1)}, "
            f"{self.bytes_moved:,} bytes moved, {100 * self.bytes_asked / self.bytes_moved:.4g}% used"
        )


def plot_access_map(request: Request, *, title: str = "Access map", ax: Canvas | None = None) -> Canvas:
    """Lanes above, the touched 128-byte lines of memory with their 32-byte sectors below, and a line for each lane.

    In a touched sector the bytes that were asked for are blue; the rest, which moves for nothing, is hatched.

    Parameters
    ----------
    request : Request
    title : str
    ax : matplotlib Axes or None
        Where to draw; new axes if None.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax, height=2.5, bottom=0.1, left=0.7)
    places, width = _lay_out(request.sectors)
    prepare(ax, title=title, x=(0, width), y=(-0.75, 1.35), frame=False, yticks=_ROWS)
    _draw_lanes(ax, request, width)
    _draw_lines_of_memory(ax, places)
    _draw_useful_bytes(ax, request, places)
    _draw_wires(ax, request, places, width)
    note(ax, request.sentence(), (0, -0.62), va="bottom", fontweight="bold")
    describe(ax, f"{title}: {request.sentence()}.")
    return ax


def _lay_out(sectors: tuple[int, ...]) -> tuple[dict[int, float], float]:
    """Left edge of every sector of the touched lines, in sectors' widths, and the width of all."""
    places: dict[int, float] = {}
    across, previous = 0.0, None
    for line in sorted({sector // _SECTORS_PER_LINE for sector in sectors}):
        if previous is not None and line != previous + 1:
            across += _GAP
        for sector in range(line * _SECTORS_PER_LINE, (line + 1) * _SECTORS_PER_LINE):
            places[sector] = across
            across += 1.0
        previous = line
    return places, across


def _lane_middle(lane: int, count: int, width: float) -> float:
    return (lane + 0.5) * width / count


def _draw_lanes(ax: Canvas, request: Request, width: float) -> None:
    count = len(request.addresses)
    cell = width / count
    for lane, address in enumerate(request.addresses):
        color = INK if address >= 0 else CARD
        ax.barh([_LANE_ROW], [cell * 0.8], 0.22, lane * cell + cell * 0.1, color=color, edgecolor=MUTED, zorder=3)
    for lane in sorted({0, *range(7, count, 8), count - 1}):
        note(ax, str(lane), (_lane_middle(lane, count, width), _LANE_ROW), (0, 15), ha="center", fontsize=7.5)


def _draw_lines_of_memory(ax: Canvas, places: dict[int, float]) -> None:
    for sector, left in places.items():
        ax.barh([_SECTOR_ROW], [1.0], 0.3, left, color=CARD, edgecolor=GRID, linewidth=0.8, zorder=2)
        if len(places) <= _MOST_SECTORS_APART:
            ax.plot([left, left], [_SECTOR_ROW - 0.15, _SECTOR_ROW + 0.15], color=INK, linewidth=0.7, zorder=3.5)
        if sector % _SECTORS_PER_LINE == 0:
            ax.barh([_SECTOR_ROW], [4.0], 0.3, left, color="none", edgecolor=MUTED, linewidth=1.2, zorder=4)
    firsts = [sector for sector in places if sector % _SECTORS_PER_LINE == 0]
    shown = firsts if len(firsts) <= 5 else [firsts[0], firsts[-1]]
    for sector in shown:
        last = len(firsts) > 5 and sector == firsts[-1]
        edge = places[sector] + (4.0 if last else 0.0)
        text = f"byte {sector * access.SECTOR_BYTES:,}"
        note(ax, text, (edge, _SECTOR_ROW), (0, -17), ha="right" if last else "left", fontsize=7.5, color=MUTED)


def _draw_useful_bytes(ax: Canvas, request: Request, places: dict[int, float]) -> None:
    for sector in request.sectors:
        ax.barh([_SECTOR_ROW], [1.0], 0.3, places[sector], color=WASTE, hatch="////", edgecolor=GRID, zorder=2.5)
    for start, stop in _runs(request):
        left = places[start // access.SECTOR_BYTES] + start % access.SECTOR_BYTES / access.SECTOR_BYTES
        ax.barh([_SECTOR_ROW], [(stop - start) / access.SECTOR_BYTES], 0.3, left, color=DRAM, zorder=3)


def _runs(request: Request) -> list[tuple[int, int]]:
    """Bytes asked for, as (first, one past the last), joined within each sector."""
    runs: list[tuple[int, int]] = []
    for address in sorted(set(request.on.tolist())):
        joins = runs and runs[-1][1] >= address and address % access.SECTOR_BYTES
        if joins:
            runs[-1] = (runs[-1][0], address + request.size)
        else:
            runs.append((address, address + request.size))
    return runs


def _draw_wires(ax: Canvas, request: Request, places: dict[int, float], width: float) -> None:
    count = len(request.addresses)
    for lane, address in enumerate(request.addresses):
        if address >= 0:
            middle = address % access.SECTOR_BYTES + request.size / 2
            target = places[address // access.SECTOR_BYTES] + middle / access.SECTOR_BYTES
            start = _lane_middle(lane, count, width)
            ax.plot([start, target], [_LANE_ROW - 0.11, _SECTOR_ROW + 0.15], color=MUTED, linewidth=0.8, zorder=1.5)
