"""Tensor cores and asynchronous copies in the models: FLOP, pipes, ceilings, times and waits, by hand."""

from __future__ import annotations

import pytest

from gpulab.gpus import gpu
from gpulab.models.chain import chain_cycles
from gpulab.models.metric import Sources
from gpulab.models.metrics import metrics
from gpulab.models.roofline import Placed, roofline
from gpulab.models.run import KernelRun
from gpulab.models.timing import estimate
from gpulab.models.traffic import traffic

A100, RTX4090 = gpu("A100"), gpu("RTX 4090")
HALF = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};"
BYTES = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1,%r2,%r3,%r4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%r1,%r2,%r3,%r4};"
DOUBLE = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1,%fd2}, {%fd3}, {%fd4}, {%fd1,%fd2};"


def evaluate(run: KernelRun) -> dict[str, float]:
    occupancy = run.occupancy(A100)
    return metrics(Sources(run, run.tally(), A100, occupancy, traffic(run, A100, occupancy)))


def test_products_are_counted_by_kind(make_run) -> None:
    found = evaluate(make_run(f"{HALF} {HALF} {BYTES} {DOUBLE} ret;"))
    tensor = "sm__inst_executed_pipe_tensor"
    names = (".sum", "_op_hmma.sum", "_op_imma.sum", "_op_dmma.sum", "_op_bmma.sum")
    assert [found[f"{tensor}{name}"] for name in names] == [4, 2, 1, 1, 0]


def test_flop_of_products(make_run) -> None:
    run = make_run(f"{HALF} {BYTES} {DOUBLE} ret;")
    # Integers are no FLOP.
    assert run.tally().flop() == 2 * 16 * 8 * 16 + 2 * 8 * 8 * 4
    assert run.tally().flop(("fp16",)) == 0


def test_tensor_cores_bound_a_launch_of_products(make_run) -> None:
    """108 blocks of a million products each: 4096 FLOP at 2048 a cycle are 2 cycles."""
    run = make_run(f"{HALF} ret;", {0: {"warp_instructions": 108 * 10**6}}, grid=108, block=1024)
    time = estimate(run, A100)
    assert time.bound_by == "tensor"
    assert time.terms["tensor"] == pytest.approx(2 * 10**6 / 1.41e9)
    halved = estimate(run, A100.replace(tensor_fp16_flop_per_cycle=1024))
    assert halved.terms["tensor"] == pytest.approx(2 * time.terms["tensor"])


@pytest.mark.parametrize(
    ("device", "ceiling"), [(A100, "F16 tensor 311.9 TFLOP/s"), (RTX4090, "F16 tensor 165.2 TFLOP/s")]
)
def test_the_roofline_has_the_tensor_ceiling(make_run, device, ceiling: str) -> None:
    run = make_run(f"{HALF} ret;", {0: {"warp_instructions": 10**6}}, grid=108)
    occupancy = run.occupancy(device)
    moved = traffic(run, device, occupancy)
    record = roofline(device, [Placed("k", run.tally(), moved, estimate(run, device))])
    assert (record.unit, record.ceilings[0].label) == ("FLOP", ceiling)


COPY = "cp.async.ca.shared.global [%r1], [%rd1], 4;"


def test_a_copy_is_a_load_and_a_store(make_run) -> None:
    copied = {"copied_requests": 1, "copied_bytes": 128, "copied_wavefronts": 7, "copied_wavefronts_ideal": 1}
    run = make_run(f"{COPY} ret;", {0: {"requests": 1, "sectors": 4, "bytes_asked": 128, "wavefronts": 1, **copied}})
    found = evaluate(run)
    assert found["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 1
    assert found["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 4
    assert found["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"] == 7
    assert found["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 0
    assert found["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"] == 6
    assert found["l1tex__data_pipe_lsu_wavefronts.sum"] == 8
    assert found["memory_l1_wavefronts_shared"] == 7


def _cycles(make_run, body: str) -> float:
    counts = {0: {"requests": 1, "sectors": 4, "bytes_asked": 128, "wavefronts": 1}}
    run = make_run(body, counts)
    return chain_cycles(run, A100, traffic(run, A100, run.occupancy(A100)))


def test_only_a_wait_waits_for_copies(make_run) -> None:
    commit, latency = "cp.async.commit_group;", A100.l2_latency_cycles
    alone = _cycles(make_run, f"{COPY} {commit} ret;")
    assert alone < 20
    assert _cycles(make_run, f"{COPY} {commit} cp.async.wait_group 0; ret;") > latency
    assert _cycles(make_run, f"{COPY} cp.async.wait_all; ret;") > latency
    # One group may stay open: the first one of two is waited for, the only one is not.
    assert _cycles(make_run, f"{COPY} {commit} cp.async.wait_group 1; ret;") < 20
    assert _cycles(make_run, f"{COPY} {commit} {commit} cp.async.wait_group 1; ret;") > latency
