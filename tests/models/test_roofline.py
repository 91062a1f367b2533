"""The roofline records: intensities, ceilings and the instruction roofline by hand."""

from __future__ import annotations

import pytest

from gpulab.gpus import gpu
from gpulab.models.roofline import Placed, roofline
from gpulab.models.run import KernelRun
from gpulab.models.timing import TimeEstimate
from gpulab.models.traffic import traffic

A100 = gpu("A100")
TIME = TimeEstimate(2e-6, 1e-6, 4e-6, "modeled", "dram", {}, 1.41e9)


def placed(run: KernelRun, name: str = "k") -> Placed:
    return Placed(name, run.tally(), traffic(run, A100, run.occupancy(A100)), TIME)


@pytest.fixture
def fused(make_run) -> Placed:
    """32 threads, an FMA each, 8 sectors from L2, 4 of them from DRAM."""
    body = "ld.global.f32 %f1, [%rd1]; fma.rn.f32 %f2, %f1, %f1, %f1; ret;"
    return placed(make_run(body, {0: {"sectors": 8}}, distinct_sectors_read=4, footprint_sectors=4))


def test_points_by_hand(fused: Placed) -> None:
    record = roofline(A100, [fused])
    dram, l2 = record.points
    assert (record.unit, record.gpu, record.clock_hz) == ("FLOP", "A100", 1.41e9)
    assert (dram.level, dram.work_per_byte) == ("dram", 64 / 128)
    assert (l2.level, l2.work_per_byte) == ("l2", 64 / 256)
    assert (dram.work_per_s, dram.low_per_s, dram.high_per_s) == (32e6, 16e6, 64e6)
    assert dram.source == "modeled"


def test_ceilings_and_roofs(fused: Placed) -> None:
    record = roofline(A100, [fused])
    assert [ceiling.label for ceiling in record.ceilings] == ["FP32 19.5 TFLOP/s"]
    assert [roof.bytes_per_s for roof in record.roofs] == [1555e9, 4900e9]
    assert record.ridge() == pytest.approx(19.49e12 / 1555e9, rel=1e-3)
    assert record.attainable(1.0) == 1555e9
    assert record.attainable(1.0, "l2") == 4900e9
    assert record.attainable(1e6) == pytest.approx(19.49e12, rel=1e-3)


def test_precisions_that_are_used_have_ceilings(make_run) -> None:
    run = make_run("fma.rn.f64 %fd1, %fd1, %fd1, %fd1; add.f32 %f1, %f1, %f1; ret;")
    labels = [ceiling.label for ceiling in roofline(A100, [placed(run)]).ceilings]
    assert labels == ["FP32 19.5 TFLOP/s", "FP64 9.7 TFLOP/s"]


def test_a_kernel_without_flop_is_set_against_instructions(make_run, fused: Placed) -> None:
    copy = placed(
        make_run("ld.global.f32 %f1, [%rd1]; ret;", {0: {"sectors": 4}}, distinct_sectors_read=4),
        "copy",
    )
    record = roofline(A100, [copy, fused])
    assert record.unit == "warp instruction"
    assert record.ceilings[0].work_per_s == pytest.approx(108 * 4 * 1.41e9)
    assert {(point.name, point.level): point.work_per_byte for point in record.points} == {
        ("copy", "dram"): 2 / 128,
        ("copy", "l2"): 2 / 128,
        ("k", "dram"): 3 / 128,
        ("k", "l2"): 3 / 256,
    }


def test_no_traffic_no_point(make_run) -> None:
    assert roofline(A100, [placed(make_run("add.f32 %f1, %f1, %f1; ret;"))]).points == ()
