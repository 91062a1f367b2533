"""Labels are placed inside the frame, off each other, off the points and off the lines."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.plots.labels import label_box, overlap, place_labels

FRAME = (0.0, 0.0, 450.0, 260.0)


def boxes_of(texts, spots, lines=()):
    places = place_labels(texts, spots, FRAME, lines)
    return [label_box(text, spot, *place) for text, spot, place in zip(texts, spots, places, strict=True)]


def test_a_lonely_label_stands_to_the_right_of_its_point():
    [box] = boxes_of(["coalesced"], [(100.0, 100.0)])
    assert box[0] > 100
    assert box[1] < 100 < box[3]


def test_at_the_right_edge_it_stands_to_the_left():
    [box] = boxes_of(["coalesced"], [(445.0, 100.0)])
    assert box[2] < 445


def test_points_on_top_of_each_other_get_labels_apart():
    boxes = boxes_of([f"rung {i}" for i in range(6)], [(200.0, 130.0)] * 6)
    assert all(overlap(a, b) == 0 for a, b in itertools.combinations(boxes, 2))


def test_a_label_leaves_a_line_free():
    line = ((0.0, 100.0), (450.0, 100.0))
    [box] = boxes_of(["on the roof"], [(200.0, 100.0)], [line])
    assert not box[1] <= 100 <= box[3]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(60, 390), st.floats(40, 220)), min_size=1, max_size=6))
def test_up_to_six_labels_never_overlap_and_stay_inside(spots):
    boxes = boxes_of([f"rung {i}" for i in range(len(spots))], spots)
    assert all(overlap(a, b) == 0 for a, b in itertools.combinations(boxes, 2))
    for box in boxes:
        assert overlap(box, FRAME) >= 0.999 * (box[2] - box[0]) * (box[3] - box[1])
