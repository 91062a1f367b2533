"""The time model: terms by hand, published measurements as plausibility, and the directions that must show."""

from __future__ import annotations

import dataclasses
import time

import pytest

from gpulab.gpus import gpu
from gpulab.models.chain import chain_cycles
from gpulab.models.run import KernelRun
from gpulab.models.timing import estimate
from gpulab.models.traffic import traffic

A100 = gpu("A100")

COPY = """
    ld.param.u64 %rd1, [a];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.s32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    st.global.f32 [%rd3+256], %f1;
    ret;
"""


def streaming(make_run, *, grid: int, block: int = 256, stride_sectors: int = 4, **launch: int) -> KernelRun:
    """One load and one store per thread; `stride_sectors` are the sectors of each request."""
    warps = grid * block // 32
    access = {
        "requests": warps,
        "bytes_asked": warps * 128,
        "sectors": warps * stride_sectors,
        "sectors_ideal": warps * 4,
        "lines": warps * max(1, stride_sectors // 4),
        "wavefronts": warps * max(1, stride_sectors // 4),
        "wavefronts_ideal": warps,
    }
    touched = warps * stride_sectors
    return make_run(
        COPY,
        {7: access, 8: access},
        grid=grid,
        block=block,
        distinct_sectors_read=touched,
        distinct_sectors_written=touched,
        footprint_sectors=2 * touched,
        **launch,
    )


def test_terms_by_hand(make_run) -> None:
    run = streaming(make_run, grid=108 * 8 * 10)
    found = estimate(run, A100)
    warps = 108 * 8 * 10 * 8
    # A parameter is an operand, a move half an instruction, a 64-bit addition two: 0+3*0.5+1+1+2+1+1+1 = 8.5 slots.
    assert found.terms["issue"] == pytest.approx(warps * 8.5 / 4 / 108 / 1.41e9)
    # 64 lanes: half a cycle each; mad, mul.wide and the upper half of the addition run on the FMA pipe.
    assert found.terms["fma"] == pytest.approx(warps * 1.5 / 108 / 1.41e9)
    assert found.terms["alu"] == pytest.approx(warps * 0.5 / 108 / 1.41e9)
    assert found.terms["l2"] == pytest.approx(warps * 8 * 32 / 4900e9)
    assert found.terms["dram"] == pytest.approx(warps * 8 * 32 / (1555e9 * 0.92))
    # One line per request: the tag stage's 0.95 + 0.224 cycles, twice.
    assert found.terms["l1"] == pytest.approx(warps * 2 * 1.174 / 108 / 1.41e9)
    assert found.terms["fp64"] == found.terms["shared"] == 0
    assert found.terms["launch"] == 2.62e-6
    assert (found.source, found.clock_hz, found.bound_by) == ("modeled", 1.41e9, "dram")


def test_soft_maximum_by_hand(make_run) -> None:
    found = estimate(streaming(make_run, grid=108 * 8 * 10), A100)
    joined = (found.terms["dram"] ** 3 + found.terms["latency"] ** 3) ** (1 / 3) + found.terms["launch"]
    assert found.seconds == pytest.approx(joined)


def test_chain_by_hand(make_run) -> None:
    run = streaming(make_run, grid=1)
    cycles = chain_cycles(run, A100, traffic(run, A100, run.occupancy(A100)))
    # The third move issues at 1.0 and takes 2; mad waits for it, its result 4 later; mul.wide 4 more, the 64-bit addition
    # 8, the load 570 from DRAM; then the store, and 8 for leaving.
    assert cycles == pytest.approx(3 + 4 + 4 + 8 + 570 + 1 + 8)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    # Scale and read of float64 in te42kyfo/gpu-benches lie in these ranges, % of the data sheet.
    [("T4", 75, 90), ("A100", 82, 93), ("RTX 4090", 85, 93), ("H100", 73, 91), ("H200", 57, 80)],
)
def test_a_large_copy_reaches_what_streams_reach(make_run, name: str, low: float, high: float) -> None:
    run = streaming(make_run, grid=1 << 18)
    spec = gpu(name)
    percent = 100 * 2 * (1 << 26) * 4 / estimate(run, spec).seconds / (spec.dram_bandwidth_gb_per_s * 1e9)
    assert low < percent < high


def test_range_encloses_the_estimate(make_run) -> None:
    found = estimate(streaming(make_run, grid=1 << 16), A100)
    assert 0.8 * found.seconds < found.low < 0.95 * found.seconds
    assert 1.05 * found.seconds < found.high < 1.2 * found.seconds


def test_strided_copies_cost_their_sectors(make_run) -> None:
    dense = estimate(streaming(make_run, grid=1 << 16), A100)
    strided = estimate(streaming(make_run, grid=1 << 16, stride_sectors=32), A100)
    assert 6.5 < strided.seconds / dense.seconds < 8.5


def test_a_tiny_launch_is_bound_by_the_launch(make_run) -> None:
    found = estimate(streaming(make_run, grid=4), A100)
    assert found.bound_by == "launch"
    assert 2.6e-6 < found.seconds < 4e-6


def test_low_occupancy_shows(make_run) -> None:
    times = [
        estimate(streaming(make_run, grid=1 << 16, registers=registers), A100).seconds for registers in (32, 128, 255)
    ]
    # 2,048, 512 and 256 threads on an SM: fewer loads in flight.
    assert times[1] > 1.8 * times[0]
    assert times[2] > 1.6 * times[1]


LOADS_IN_TURN = """
    ld.global.f32 %f1, [%rd1];    add.f32 %f9, %f9, %f1;
    ld.global.f32 %f2, [%rd1+4];  add.f32 %f9, %f9, %f2;
    ret;
"""
LOADS_BEHIND_A_STORE = """
    ld.global.f32 %f1, [%rd1];    st.global.f32 [%rd2], %f1;
    ld.global.f32 %f2, [%rd1+4];  st.global.f32 [%rd2+4], %f2;
    ret;
"""


def loads_alone(make_run, body: str) -> float:
    """Chain cycles of a body whose first and third instruction load from DRAM."""
    load = {"requests": 1, "sectors": 4, "lines": 1, "wavefronts": 1}
    run = make_run(body, {0: load, 2: load}, distinct_sectors_read=8, footprint_sectors=8)
    return chain_cycles(run, A100, traffic(run, A100, run.occupancy(A100)))


def test_independent_loads_wait_once(make_run) -> None:
    # Both loads are on their way before the first addition, which issues at 570; the second waits 4 for the first.
    assert loads_alone(make_run, LOADS_IN_TURN) == pytest.approx(570 + 4 + 1 + 8)


def test_chains_of_one_warp_share_the_pipe_of_its_sub_partition(make_run) -> None:
    # 16 FP64 products, two in each of 8 chains: V100 has 8 FP64 lanes in a sub-partition, so each holds them for 4 cycles
    # (te42kyfo/gpu-benches, cuda-incore: 4.97 for each). The last one's result is not waited for; 8 for leaving.
    body = "\n".join(
        [f"fma.rn.f64 %fd{chain}, %fd{chain}, %fd9, %fd9;" for _ in range(2) for chain in range(1, 9)] + ["ret;"]
    )
    v100, run = gpu("V100"), make_run(body)
    assert chain_cycles(run, v100, traffic(run, v100, run.occupancy(v100))) == pytest.approx(15 * 4 + 1 + 8)


def test_a_store_that_may_alias_holds_up_the_next_load(make_run) -> None:
    waiting = loads_alone(make_run, LOADS_BEHIND_A_STORE)
    assert waiting == pytest.approx(570 + 570 + 1 + 8)
    # What __restrict__ gives: loads that no store can change.
    free = loads_alone(make_run, LOADS_BEHIND_A_STORE.replace("ld.global.f32", "ld.global.nc.f32"))
    assert free == pytest.approx(2 + 570 + 1 + 8)


def test_a_dependent_load_waits_for_its_address(make_run) -> None:
    chase = "ld.global.u64 %rd1, [%rd1]; mov.u32 %r1, %r2; ld.global.u64 %rd1, [%rd1]; ret;"
    assert loads_alone(make_run, chase) == pytest.approx(570 + 1 + 8)
    twice = chase.replace("ret", "st.global.u64 [%rd2], %rd1; ret")
    assert loads_alone(make_run, twice) == pytest.approx(2 * 570 + 1 + 8)


SHORT_BRANCHES = """
    @%p1 bra NEXT;
    ld.global.f32 %f1, [%rd1];
NEXT:
    @%p2 bra DONE;
    ld.global.f32 %f2, [%rd2];
DONE:
    st.shared.f32 [%r1], %f1;
    st.shared.f32 [%r1+4], %f2;
    ret;
"""


def test_short_branches_become_predicates(make_run) -> None:
    load = {"requests": 1, "sectors": 4, "lines": 1, "wavefronts": 1}
    run = make_run(SHORT_BRANCHES, {1: load, 3: load}, distinct_sectors_read=8, footprint_sectors=8)
    cycles = chain_cycles(run, A100, traffic(run, A100, run.occupancy(A100)))
    assert 570 < cycles < 590


LOOP = """
LOOP:
    fma.rn.f32 %f1, %f1, %f2, %f3;
    add.s32 %r1, %r1, 1;
    setp.lt.s32 %p1, %r1, %r2;
    @%p1 bra LOOP;
    ret;
"""


def test_a_loop_costs_its_steady_iteration(make_run) -> None:
    run = make_run(LOOP)
    run.counters.warp_instructions[:4] = 100
    # fma, add and setp issue after one another, setp waits 4 for add, the branch 4 for setp, and a jump takes 8 + 1.
    per_iteration = 1 + 4 + 4 + 9
    cycles = chain_cycles(run, A100, traffic(run, A100, run.occupancy(A100)))
    assert cycles == pytest.approx(100 * per_iteration + 9)


def test_loops_nested_forty_deep_take_no_time_to_model(make_run) -> None:
    heads = "".join(f"L{level}: add.s32 %r1, %r1, 1;\n" for level in range(40))
    ends = "".join(f"@%p1 bra L{level};\n" for level in reversed(range(40)))
    run = make_run(f"{heads}{ends}ret;")
    start = time.process_time()
    cycles = chain_cycles(run, A100, traffic(run, A100, run.occupancy(A100)))
    assert time.process_time() - start < 5
    # The outer four loops begin a second pass with an addition that waits for nothing, the others' wait 4 for the one
    # before. Behind the last addition the first jump needs no slot of its own: 8; the others and ret take 8 + 1.
    assert cycles == pytest.approx(4 * 1 + 36 * 4 + 8 + 40 * 9)


def test_fp64_is_slow_where_lanes_are_few(make_run) -> None:
    body = "fma.rn.f64 %fd1, %fd1, %fd2, %fd3;" * 64 + "ret;"
    run = make_run(body, grid=1 << 14, block=256)
    rates = {name: estimate(run, gpu(name)) for name in ("A100", "RTX 4090")}
    assert {found.bound_by for found in rates.values()} == {"fp64"}
    # 32 lanes at 1.41 GHz on 108 SMs against 2 at 2.52 GHz on 128.
    ratio = rates["RTX 4090"].terms["fp64"] / rates["A100"].terms["fp64"]
    assert ratio == pytest.approx(32 * 1.41 * 108 / (2 * 2.52 * 128), rel=0.01)


def test_bank_conflicts_slow_a_block_with_barriers(make_run) -> None:
    body = "st.shared.f32 [%r1], %f1; bar.sync 0; ld.shared.f32 %f2, [%r2]; st.global.f32 [%rd1], %f2; ret;"
    warps = 8192 * 32
    shared = {"requests": warps, "wavefronts": warps, "wavefronts_ideal": warps}
    store = {"requests": warps, "bytes_asked": warps * 128, "sectors": warps * 4, "lines": warps, "wavefronts": warps}
    times = {}
    for way in (1, 32):
        load = {**shared, "wavefronts": warps * way}
        counts = {0: shared, 2: load, 3: store}
        run = make_run(body, counts, grid=8192, block=1024, distinct_sectors_written=warps * 4)
        times[way] = estimate(run, A100)
    assert times[32].bound_by == "shared"
    assert times[32].seconds > 2 * times[1].seconds


def test_more_of_everything_is_never_faster(make_run) -> None:
    base = streaming(make_run, grid=1 << 12)
    counters = base.counters
    for name in ("warp_instructions", "sectors", "lines", "wavefronts"):
        more = dataclasses.replace(counters, **{name: 3 * getattr(counters, name)})
        assert estimate(dataclasses.replace(base, counters=more), A100).seconds >= estimate(base, A100).seconds
