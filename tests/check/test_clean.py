"""Kernels in which nothing is wrong: no faults, and notes only where an order is made by what the check does not follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gpulab

FILE = Path(__file__).parent / "clean.cu"
RANDOM = np.random.default_rng(3)


def check(name: str, grid: int, block: int, *args: object) -> gpulab.profiler.CheckReport:
    """The report on a kernel of `clean.cu`."""
    return gpulab.check(gpulab.RawKernel.from_file(FILE, name)[grid, block], *args)


def floats(count: int = 64) -> np.ndarray:
    """Values that differ."""
    return np.arange(1, count + 1, dtype=np.float32)


CASES = {
    "barrier": (1, 64, floats(), floats()),
    "two_buffers": (1, 64, floats(320), floats(), np.int32(5)),
    "warp_barriers": (1, 64, floats(), floats()),
    "half_warps": (1, 32, floats()),
    "histogram": (3, 64, RANDOM.integers(0, 8, 150).astype(np.int32), np.zeros(8, np.int32), np.int32(150)),
    "same_value": (3, 64, np.arange(180, dtype=np.int32) % 5, np.zeros(1, np.int32), np.int32(180)),
    "early_return": (1, 64, floats(), floats(), np.int32(20)),
    "greatest": (3, 64, np.zeros(1), RANDOM.random(192)),
    "halves_with_barriers_of_their_own": (1, 128, floats(128), floats(128)),
    "pieces_of_the_heap": (1, 64, np.zeros(64, np.int32)),
    "sum_of_what_is_there": (1, 32, floats(), floats(), np.int32(20)),
    "last_lane_of_a_branch": (1, 32, floats(), floats()),
    "scan_of_half_a_warp": (2, 16, np.arange(64, dtype=np.int32), np.zeros(64, np.int32)),
    "hash": (1, 64, RANDOM.integers(0, 2**32, 64).astype(np.uint32), np.zeros(64, np.int32), np.int32(61)),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_found(name: str) -> None:
    report = check(name, *CASES[name])
    assert report.ok and not report.notes, report


def test_shared_arrays_side_by_side() -> None:
    kernel = gpulab.RawKernel.from_file(FILE, "arrays_side_by_side")
    report = gpulab.check(kernel[1, 64, 0, 512], floats(), floats())
    assert report.ok and not report.notes, report


def test_the_place_of_a_piece_is_given_out_again_when_the_heap_is_full() -> None:
    out = np.zeros(1, np.int32)
    report = check("more_pieces_than_the_heap_holds", 1, 1, out)
    assert report.ok and not report.notes and out[0] == 19, report


@pytest.mark.parametrize("block", [32, 96])
def test_atomic_stores_of_different_values(block: int) -> None:
    # The first stores what is there already.
    text = ".visible .entry k(.param .u64 a) { .reg .b64 %rd1; .reg .b32 %r1; ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; "
    kernel = gpulab.PtxKernel(
        f".version 8.8\n.target sm_80\n.address_size 64\n{text} st.relaxed.gpu.global.u32 [%rd1], %r1; ret; }}"
    )
    assert gpulab.check(kernel[2, block], np.zeros(1, np.int32)).ok


def test_the_last_block_reads_what_all_left() -> None:
    x, total = floats(256), np.zeros(1, np.float32)
    report = check("last_block", 4, 64, x, np.zeros(4, np.float32), np.zeros(1, np.uint32), total)
    assert report.ok and total[0] == x.sum()
    (note,) = report.notes
    assert "partial[" in note and "fence" in note and "cannot decide" in note


def test_a_lock_and_a_flag_between_blocks() -> None:
    value, out = np.zeros(1, np.int32), np.zeros(1, np.int32)
    report = check("lock", 3, 32, np.zeros(1, np.int32), value)
    assert report.ok and value[0] == 3 and "value[0]" in report.notes[0], report
    report = check("flag", 2, 32, np.zeros(1, np.int32), np.zeros(1, np.int32), out)
    assert report.ok and out[0] == 7 and "cannot decide" in report.notes[0], report


def test_the_last_block_sets_a_counter_back() -> None:
    done, total = np.zeros(1, np.uint32), np.zeros(1, np.int32)
    report = check("counter_set_back", 3, 32, done, np.arange(3, dtype=np.int32), total)
    assert report.ok and done[0] == 0 and total[0] == 3, report
    assert any("done[0]" in note and "cannot decide" in note for note in report.notes), report


def test_a_glance_beside_an_atomic_minimum() -> None:
    start = np.array([0, 1, 2, 3] * 32, np.int32)
    report = check("relax", 2, 64, start, start + 1, np.array([0, 9, 9, 9, 9], np.int32), np.int32(128))
    assert report.ok and len(report.notes) == 1 and "minimum" in report.notes[0], report


def test_stores_that_change_nothing() -> None:
    # Row k and column k stay as they are in step k, but all threads read them and their own threads store them.
    way = RANDOM.integers(1, 9, (20, 20)).astype(np.int32)
    np.fill_diagonal(way, 0)
    expected = np.minimum(way, way[:, 7:8] + way[7:8, :])
    report = check("shortest_ways", 20, 32, way, np.int32(20), np.int32(7))
    assert report.ok and all("left the value as it was" in note for note in report.notes), report
    np.testing.assert_array_equal(way, expected)


def test_a_search_level_by_level() -> None:
    start, end = np.arange(128, dtype=np.int32), np.arange(1, 129, dtype=np.int32)
    level = np.full(129, -1, np.int32)
    level[::3] = 0
    report = check("next_level", 2, 64, start, end, level, np.int32(128), np.int32(0))
    assert report.ok and all("compare-and-swap" in note for note in report.notes), report


@pytest.mark.parametrize(
    ("ladder", "language", "rung"),
    [(ladder, language, rung) for ladder in gpulab.kernels() for language in ladder.languages for rung in ladder.rungs],
    ids=lambda each: getattr(each, "name", each),
)
def test_every_rung_of_every_ladder(ladder: gpulab.kernels.Ladder, language: str, rung: gpulab.kernels.Rung) -> None:
    (ragged,) = [case for case in ladder.cases if case.name == "ragged"]
    problem = ladder.at(**ragged.parameters)
    if language not in rung.languages:
        pytest.skip(f"{rung.name} is not written in {language}")
    attempt = problem.attempt(rung, language)
    for bound, arguments in attempt.launches:
        report = gpulab.check(bound, *arguments)
        assert report.ok and not report.notes, report
    assert problem.judge(attempt.arrays).correct
