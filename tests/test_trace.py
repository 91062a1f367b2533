"""The record of sampled lines, by hand and against a plain list of all requests."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gpulab import trace
from gpulab.trace import ALL_LINES, ATOMIC, EVENT, LOAD, STORE, Recorder, Tracing, joined, line_hash, near_blocks


def rows(stream: trace.Stream) -> list[tuple[int, ...]]:
    """(block, time, warp, instruction, line, sectors, kind, count) of each event."""
    names = ("block", "time", "warp", "instruction", "line", "sectors", "kind", "count")
    return [tuple(int(event[name]) for name in names) for event in stream.events]


def test_hashes_are_the_upper_half_of_a_product() -> None:
    lines = [0, 1, 2, 3, (16 << 33) + (1 << 31), 2**57 - 1]
    expected = [(line * 0x9E3779B97F4A7C15 & 2**64 - 1) >> 32 for line in lines]
    assert line_hash(np.array(lines)).tolist() == expected


def test_near_events_of_one_window_become_one() -> None:
    recorder = Recorder(Tracing(near=(2,)))
    for time in (70, 64, 127, 128):
        recorder.request([4, 5, 8], kind=LOAD, block=2, warp=1, instruction=9, time=time)
    recorder.request([4], kind=LOAD, block=2, warp=1, instruction=9, time=66)
    recorder.request([4, 5], kind=LOAD, block=2, warp=0, instruction=9, time=66)
    recorder.request([4, 5], kind=LOAD, block=3, warp=0, instruction=9, time=66)
    found = recorder.finish()
    assert rows(found.near) == [
        (2, 64, 1, 9, 1, 0b0011, LOAD, 3),
        (2, 64, 1, 9, 2, 0b0001, LOAD, 3),
        (2, 66, 0, 9, 1, 0b0011, LOAD, 1),
        (2, 66, 1, 9, 1, 0b0001, LOAD, 1),
        (2, 128, 1, 9, 1, 0b0011, LOAD, 1),
        (2, 128, 1, 9, 2, 0b0001, LOAD, 1),
    ]
    assert found.near.rate == found.far.rate == 1.0
    assert found.near.blocks is not None and found.near.blocks.tolist() == [2] and found.far.blocks is None


def test_far_events_of_one_kind_become_one_with_the_sectors_of_all() -> None:
    recorder = Recorder(Tracing())
    recorder.request([4], kind=LOAD, block=0, warp=3, instruction=8, time=255)
    recorder.request([5], kind=LOAD, block=0, warp=2, instruction=7, time=20)
    recorder.request([7], kind=LOAD, block=0, warp=1, instruction=7, time=20)
    recorder.request([7], kind=LOAD, block=0, warp=1, instruction=7, time=256)
    recorder.request([6], kind=STORE, block=0, warp=0, instruction=1, time=20)
    recorder.request([6], kind=ATOMIC, block=0, warp=0, instruction=2, time=20)
    recorder.request([4], kind=LOAD, block=1, warp=0, instruction=7, time=20)
    assert rows(recorder.finish().far) == [
        (0, 20, 0, 1, 1, 0b0100, STORE, 1),
        (0, 20, 0, 2, 1, 0b0100, ATOMIC, 1),
        (0, 20, 1, 7, 1, 0b1011, LOAD, 3),
        (0, 256, 1, 7, 1, 0b1000, LOAD, 1),
        (1, 20, 0, 7, 1, 0b0001, LOAD, 1),
    ]
    assert len(recorder.finish().near.events) == 0


@pytest.mark.parametrize(("lines", "rate"), [(0, 1), (8192, 1), (8193, 1 / 2), (16384, 1 / 2), (3_000_000, 1 / 512)])
def test_the_far_sample_begins_with_8192_lines_at_most(lines: int, rate: float) -> None:
    assert Tracing(lines=lines).far_limit / ALL_LINES == rate


def test_lines_of_an_array_are_sampled_evenly() -> None:
    for count in (1000, 30_000):
        lines = (17 << 33) + (1 << 31) + np.arange(count)
        assert abs(np.count_nonzero(line_hash(lines) < ALL_LINES >> 4) - count / 16) < 3


@pytest.mark.parametrize(("capacity", "raw"), [(100, 10**9), (10**9, 150)])
def test_samples_are_halved_until_they_fit_and_stay_complete(
    monkeypatch: pytest.MonkeyPatch, capacity: int, raw: int
) -> None:
    monkeypatch.setattr(trace, "CAPACITY", capacity)
    monkeypatch.setattr(trace, "RAW_CAPACITY", raw)
    choose, recorder, requests = random.Random(1), Recorder(Tracing(near=(0,))), []
    for time in range(3000):
        line = choose.randrange(1000)
        requests.append((line, time))
        recorder.request([4 * line], kind=LOAD, block=0, warp=0, instruction=0, time=time)
    stream = recorder.finish().near

    def events(limit: int) -> list[tuple[int, int]]:
        return [(line, time) for line, time in requests if int(line_hash(np.array([line]))[0]) < limit]

    merged = {(line, time >> 6): time for line, time in reversed(events(stream.limit))}
    assert sorted((line, time) for (line, _), time in merged.items()) == sorted(
        (int(event["line"]), int(event["time"])) for event in stream.events
    )
    assert stream.events["count"].sum() == len(events(stream.limit))
    twice = events(2 * stream.limit)
    assert len(merged) <= capacity and len(events(stream.limit)) <= raw
    assert len({(line, time >> 6) for line, time in twice}) > capacity or len(twice) > raw
    assert 0 < stream.limit < ALL_LINES


def test_traces_of_parts_join_to_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "CAPACITY", 300)
    tracing = Tracing(near=(1, 4), lines=20_000)
    whole, parts = Recorder(tracing), [Recorder(tracing), Recorder(tracing)]
    choose = random.Random(2)
    for time in range(4000):
        block = choose.randrange(6)
        request = {"kind": choose.randrange(3), "block": block, "warp": choose.randrange(4), "instruction": 1}
        line = choose.randrange(1000)
        for each in (whole, parts[block % 2]):
            each.request([4 * line + time % 4], time=time, **request)
    blocks = [0, 1, 2, 3, 4, 5]
    found = joined([each.finish(blocks[number::2]) for number, each in enumerate(parts)])
    assert found == whole.finish(blocks)
    assert found.near.blocks is not None and found.near.blocks.tolist() == [1, 4]
    assert 0 < found.far.limit < tracing.far_limit and len(found.far.events) > 100


def test_near_blocks_are_those_of_two_multiprocessors_in_two_waves() -> None:
    assert near_blocks(range(1000), 10, 3) == (0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55)
    assert near_blocks(range(100, 116), 10, 3) == (100, 105, 110, 115)
    assert near_blocks(np.arange(5), 1, 2) == (0, 1, 2, 3)


def test_the_record_has_the_layout_that_native_code_writes() -> None:
    assert EVENT.itemsize == 32
    offsets = [EVENT.fields[name][1] for name in ("line", "block", "time", "instruction", "count", "warp")]  # type: ignore[index]
    assert offsets == [0, 8, 16, 20, 24, 28]
