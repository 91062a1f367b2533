"""Where labels go so that they cover neither each other nor the points and lines of a plot."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.plots.style import text_size

Box = tuple[float, float, float, float]  # left, bottom, right, top, in points
Spot = tuple[float, float]

_GAP = 8.0
# From the most to the least welcome: (side, how many label heights up). Far ones are for when the near ones are taken.
_CANDIDATES = [
    (side, step)
    for step in (0.0, 1.0, -1.0, 1.8, -1.8, 2.8, -2.8, 3.8, -3.8, 4.8, -4.8, 6.0, -6.0)
    for side in ("right", "left", "middle")
    if not (side == "middle" and abs(step) < 1)
]


def place_labels(
    texts: Sequence[str], spots: Sequence[Spot], frame: Box, lines: Sequence[tuple[Spot, Spot]] = ()
) -> list[tuple[Spot, str]]:
    """Choose a place for a label at each spot.

    Parameters
    ----------
    texts : sequence of str
    spots : sequence of (x, y)
        The points that they name, in points.
    frame : (left, bottom, right, top)
        Labels stay inside, in points.
    lines : sequence of pairs of (x, y)
        Straight lines that labels should not cover.

    Returns
    -------
    list of ((dx, dy), ha)
        The move from the spot in points and the horizontal alignment, in the order given.
    """
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in spots]
    obstacles = [spot for line in lines for spot in _along(*line)]
    places = []
    for text, spot in zip(texts, spots, strict=True):
        move, alignment, box = _best_place(text, spot, taken, obstacles, frame)
        taken.append(box)
        places.append((move, alignment))
    return places


def overlap(a: Box, b: Box) -> float:
    """Area that two boxes share."""
    across = min(a[2], b[2]) - max(a[0], b[0])
    up = min(a[3], b[3]) - max(a[1], b[1])
    return max(across, 0.0) * max(up, 0.0)


def label_box(text: str, spot: Spot, move: Spot, alignment: str) -> Box:
    """The box that a label covers, in points."""
    width, height = text_size(text)
    x, y = spot[0] + move[0], spot[1] + move[1]
    left = {"left": x, "right": x - width, "center": x - width / 2}[alignment]
    return left, y - height / 2, left + width, y + height / 2


def _best_place(
    text: str, spot: Spot, taken: Sequence[Box], obstacles: Sequence[Spot], frame: Box
) -> tuple[Spot, str, Box]:
    best, least = None, float("inf")
    for rank, (side, step) in enumerate(_CANDIDATES):
        place = _place(text, spot, side, step)
        cost = _cost(place[2], rank, taken, obstacles, frame)
        if cost < least:
            best, least = place, cost
        if least <= rank:
            break  # nothing is in its way, and the ones to come are less welcome
    assert best is not None
    return best


def _place(text: str, spot: Spot, side: str, step: float) -> tuple[Spot, str, Box]:
    _, height = text_size(text)
    alignment = {"right": "left", "left": "right", "middle": "center"}[side]
    move = ({"right": _GAP, "left": -_GAP, "middle": 0.0}[side], step * height * 1.1)
    return move, alignment, label_box(text, spot, move, alignment)


def _cost(box: Box, rank: int, taken: Sequence[Box], obstacles: Sequence[Spot], frame: Box) -> float:
    outside = (box[2] - box[0]) * (box[3] - box[1]) - overlap(box, frame)
    covered = sum(overlap(box, other) for other in taken)
    crossed = sum(box[0] <= x <= box[2] and box[1] <= y <= box[3] for x, y in obstacles)
    return 50 * outside + 10 * covered + 8 * crossed + rank


def _along(start: Spot, stop: Spot, step: float = 4.0) -> list[Spot]:
    distance = max(abs(stop[0] - start[0]), abs(stop[1] - start[1]))
    count = max(int(distance / step), 1)
    return [
        (start[0] + (stop[0] - start[0]) * i / count, start[1] + (stop[1] - start[1]) * i / count)
        for i in range(count + 1)
    ]
