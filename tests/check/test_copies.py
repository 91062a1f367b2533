"""Asynchronous copies are done when they were waited for, and barriers in shared memory order those that pass them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpulab

FILE = Path(__file__).parent / "copies.cu"
X = np.arange(1, 257, dtype=np.float32)


def line(mark: str) -> int:
    """The line of `copies.cu` with this mark."""
    (found,) = [n for n, text in enumerate(FILE.read_text().splitlines(), 1) if text.endswith(f"// {mark}")]
    return found


def check(name: str) -> tuple[gpulab.profiler.CheckReport, np.ndarray]:
    """The report on a kernel of `copies.cu`, and what it left."""
    y = np.zeros(64, np.float32)
    return gpulab.check(gpulab.RawKernel.from_file(FILE, name)[1, 64], X.copy(), y), y


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("two_stages", X.reshape(4, 64).sum(0)[::-1]),
        ("own_copy", X[:64]),
        ("barrier_object", X[63::-1] + 2),
        ("copied_to_barrier", X[63::-1]),
        ("one_lane_arrives", X[63::-1]),
        ("pipeline_object", X.reshape(4, 64).sum(0)[::-1]),
    ],
)
def test_what_was_waited_for_is_there(name: str, wanted: np.ndarray) -> None:
    report, y = check(name)
    assert report.ok, report
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("name", ["no_wait", "no_wait_for_own_copy", "wait_behind_barrier", "waits_for_too_few"])
def test_a_copy_that_nobody_waited_for(name: str) -> None:
    report, _ = check(name)
    (fault,) = report.faults
    assert (fault.kind, fault.line, fault.count) == ("race", line(f"{name}: load"), 64), report
    assert f"line {line(f'{name}: copy')}" in fault.message and "copies into" in fault.message
    assert "__pipeline_wait_prior(0)" in fault.message and "__syncthreads() behind that wait" in fault.message


def test_a_barrier_in_memory_orders_no_more_than_its_phases() -> None:
    report, _ = check("barrier_object_once")
    (fault,) = report.faults
    assert fault.kind == "race" and f"line {line('barrier_object_once: store')}" in fault.message, report


def test_a_lane_arrives_for_itself_alone() -> None:
    report, _ = check("one_lane_arrives_for_others")
    (fault,) = report.faults
    places = (line(f"one_lane_arrives_for_others: {mark}") for mark in ("store", "load"))
    # Of each warp 31 lanes store without arriving; what lanes 0 and 32 stored is there.
    assert (fault.kind, fault.count) == ("race", 62), report
    assert all(f"line {place}" in fault.message for place in places), report
