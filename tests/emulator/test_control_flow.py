"""Divergence, loops, calls, barriers and exits on every engine."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_harness import HEADER, kernel, run

from gpulab.emulator import RunOptions
from gpulab.errors import KernelFault, TimeLimitError

START = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd4, %r1, 4, %rd1;
"""


def result(engine: str, body: str, threads: int = 32, **more: object) -> list[int]:
    """Run a body that stores at ``[%rd4]``, the thread's own place."""
    found = np.zeros(threads, np.uint32)
    run(engine, kernel("u64 a", START + body, **more), found, block=threads)
    return found.tolist()


def test_lanes_that_parted_meet_again(engine: str) -> None:
    body = """
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; mov.u32 %r3, 100; @%p1 bra EVEN;
    add.u32 %r3, %r1, 1000; bra.uni JOIN;
EVEN:
    setp.lt.u32 %p2, %r1, 10; @%p2 bra JOIN;
    add.u32 %r3, %r1, 2000;
JOIN:
    activemask.b32 %r4; setp.eq.u32 %p3, %r4, -1; selp.u32 %r5, 1, 0, %p3; mad.lo.u32 %r3, %r5, 10000, %r3;
    st.global.u32 [%rd4], %r3;
"""
    expected = [10000 + (1000 + lane if lane % 2 else 100 if lane < 10 else 2000 + lane) for lane in range(32)]
    assert result(engine, body) == expected


def test_lanes_that_exit_leave_the_waiting_ones_their_turn(engine: str) -> None:
    body = """
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;
    setp.ne.u32 %p2, %r1, 99; st.global.u32 [%rd4], 1; @%p2 ret;
    st.global.u32 [%rd4], 2; bra.uni DONE;
EVEN:
    setp.ne.u32 %p3, %r1, 99; st.global.u32 [%rd4], 3; @%p3 ret;
    st.global.u32 [%rd4], 4;
DONE:
"""
    assert result(engine, body) == [3, 1] * 16


def test_a_loop_runs_as_often_as_each_lane_needs(engine: str) -> None:
    body = """
    mov.u32 %r2, 0; mov.u32 %r3, 0;
LOOP:
    setp.ge.u32 %p1, %r2, %r1; @%p1 bra OUT;
    add.u32 %r2, %r2, 1; and.b32 %r4, %r2, 1; setp.eq.u32 %p2, %r4, 0; @%p2 bra LOOP;
    setp.gt.u32 %p3, %r2, 20; @%p3 bra OUT;
    add.u32 %r3, %r3, %r2; bra.uni LOOP;
OUT:
    activemask.b32 %r5; popc.b32 %r5, %r5; mad.lo.u32 %r3, %r5, 1000, %r3; st.global.u32 [%rd4], %r3;
"""

    def one(lane: int) -> int:
        total = 0
        for step in range(1, lane + 1):
            if step % 2 == 0:
                continue
            if step > 20:
                break
            total += step
        return 32000 + total

    assert result(engine, body) == [one(lane) for lane in range(32)]


def test_nested_loops_with_different_trip_counts(engine: str) -> None:
    body = """
    mov.u32 %r2, 0; mov.u32 %r3, 0;
OUTER:
    mov.u32 %r4, 0; and.b32 %r5, %r1, 3;
INNER:
    setp.ge.u32 %p1, %r4, %r5; @%p1 bra NEXT;
    mad.lo.u32 %r3, %r2, 7, %r3; add.u32 %r3, %r3, 1; add.u32 %r4, %r4, 1; bra.uni INNER;
NEXT:
    add.u32 %r2, %r2, 1; shr.u32 %r6, %r1, 3; setp.le.u32 %p2, %r2, %r6; @%p2 bra OUTER;
    st.global.u32 [%rd4], %r3;
"""
    expected = [sum(7 * outer + 1 for outer in range(lane // 8 + 1) for _ in range(lane % 4)) for lane in range(32)]
    assert result(engine, body) == expected


def test_brx_jumps_by_a_table(engine: str) -> None:
    body = """
    and.b32 %r2, %r1, 3; mov.u32 %r3, 0;
TABLE: .branchtargets A, B, C, A;
    brx.idx %r2, TABLE;
A:  add.u32 %r3, %r3, 1;
B:  add.u32 %r3, %r3, 10;
C:  add.u32 %r3, %r3, 100; st.global.u32 [%rd4], %r3;
"""
    assert result(engine, body) == [111, 110, 100, 111] * 8


def test_an_irreducible_loop_still_gives_each_lane_its_own_path(engine: str) -> None:
    body = """
    mov.u32 %r2, %r1; mov.u32 %r3, 0; and.b32 %r4, %r1, 1; setp.eq.u32 %p1, %r4, 1; @%p1 bra SECOND;
FIRST:
    add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r2, 4; @%p2 bra OUT; sub.u32 %r2, %r2, 4;
SECOND:
    add.u32 %r3, %r3, 100; setp.lt.u32 %p2, %r2, 3; @%p2 bra OUT; sub.u32 %r2, %r2, 3; bra.uni FIRST;
OUT:
    st.global.u32 [%rd4], %r3;
"""

    def one(lane: int) -> int:
        left, total, second = lane, 0, lane % 2 == 1
        while True:
            total += 100 if second else 1
            if left < (3 if second else 4):
                return total
            left -= 3 if second else 4
            second = not second

    assert result(engine, body) == [one(lane) for lane in range(32)]


def test_exit_and_guarded_return_end_single_lanes(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 4; @%p1 ret;
    setp.gt.u32 %p2, %r1, 27; st.global.u32 [%rd4], 1; @%p2 exit;
    st.global.u32 [%rd4], 2;
"""
    assert result(engine, body) == [0] * 4 + [2] * 24 + [1] * 4


def test_a_partly_filled_last_warp(engine: str) -> None:
    body = """
    activemask.b32 %r2; popc.b32 %r2, %r2; st.global.u32 [%rd4], %r2; bar.sync 0;
"""
    assert result(engine, body, threads=40) == [32] * 32 + [8] * 8


@pytest.mark.parametrize("block", [(5, 3, 4), (16, 4, 1), (64, 1, 1), (2, 2, 32), (1, 1, 1)])
def test_thread_and_block_indices(engine: str, block: tuple[int, int, int]) -> None:
    grid = (3, 2, 2)
    x, y, z = block
    found = np.zeros((12, x * y * z, 7), np.uint32)
    body = """
    ld.param.u64 %rd1, [a];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;
    mov.u32 %r7, %ntid.x; mov.u32 %r8, %ntid.y; mov.u32 %r9, %ntid.z; mov.u32 %r10, %nctaid.x; mov.u32 %r11, %nctaid.y;
    mov.u32 %r15, %laneid; mad.lo.u32 %r12, %r3, %r8, %r2; mad.lo.u32 %r12, %r12, %r7, %r1;
    mad.lo.u32 %r13, %r6, %r11, %r5; mad.lo.u32 %r13, %r13, %r10, %r4;
    mul.lo.u32 %r14, %r7, %r8; mul.lo.u32 %r14, %r14, %r9; mad.lo.u32 %r12, %r13, %r14, %r12; mad.wide.u32 %rd4, %r12, 28, %rd1;
    st.global.u32 [%rd4], %r1; st.global.u32 [%rd4+4], %r2; st.global.u32 [%rd4+8], %r3;
    st.global.u32 [%rd4+12], %r4; st.global.u32 [%rd4+16], %r5; st.global.u32 [%rd4+20], %r6; st.global.u32 [%rd4+24], %r15;
"""
    run(engine, kernel("u64 a", body), found, grid=grid, block=block)
    threads = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    blocks = [(i, j, k) for k in range(2) for j in range(2) for i in range(3)]
    expected = [[(*thread, *place, lane % 32) for lane, thread in enumerate(threads)] for place in blocks]
    assert found.tolist() == [[list(row) for row in rows] for rows in expected]


# ---- functions


FUNCTIONS = """
.func (.param .b32 result) triple(.param .b32 value)
{
    .reg .b32 %r<4>;
    ld.param.u32 %r1, [value]; mul.lo.u32 %r2, %r1, 3; st.param.b32 [result+0], %r2; ret;
}
.func (.param .align 8 .b8 result[8]) swap(.param .align 8 .b8 pair[8])
{
    .reg .b32 %r<4>;
    ld.param.v2.u32 {%r1, %r2}, [pair]; st.param.v2.b32 [result+0], {%r2, %r1}; ret;
}
.func (.reg .b32 out) clamp(.reg .b32 in)
{
    .reg .pred %p;
    mov.u32 out, 5; setp.gt.u32 %p, in, 5; @%p ret;
    mov.u32 out, in; ret;
}
.func leave(.param .b32 value)
{
    .reg .b32 %r<4>; .reg .pred %p<3>;
    ld.param.u32 %r1, [value]; setp.lt.u32 %p1, %r1, 8; @%p1 exit; ret;
}
"""


def test_functions_are_called_with_their_own_registers(engine: str) -> None:
    body = (
        START
        + """
    {
    .param .b32 param0; st.param.b32 [param0+0], %r1; .param .b32 retval0;
    call.uni (retval0), triple, (param0);
    ld.param.b32 %r2, [retval0+0];
    }
    {
    .param .b32 param0; st.param.b32 [param0+0], %r2; .param .b32 retval0;
    call.uni (retval0), triple, (param0);
    ld.param.b32 %r2, [retval0+0];
    }
    {
    .param .align 8 .b8 param0[8]; st.param.v2.b32 [param0+0], {%r1, %r2}; .param .align 8 .b8 retval0[8];
    call.uni (retval0), swap, (param0);
    ld.param.b32 %r3, [retval0+0]; ld.param.b32 %r4, [retval0+4];
    }
    call (%r5), clamp, (%r1);
    mad.lo.u32 %r3, %r4, 1000, %r3; mad.lo.u32 %r3, %r5, 100000, %r3; st.global.u32 [%rd4], %r3;
"""
    )
    found = np.zeros(32, np.uint32)
    run(engine, kernel("u64 a", body, module=FUNCTIONS), found)
    assert found.tolist() == [100000 * min(lane, 5) + 1000 * lane + 9 * lane for lane in range(32)]


def test_exit_in_a_function_ends_the_thread_not_the_function(engine: str) -> None:
    body = (
        START
        + """
    st.global.u32 [%rd4], 1;
    { .param .b32 param0; st.param.b32 [param0+0], %r1; call.uni leave, (param0); }
    st.global.u32 [%rd4], 2;
"""
    )
    found = np.zeros(32, np.uint32)
    run(engine, kernel("u64 a", body, module=FUNCTIONS), found)
    assert found.tolist() == [1] * 8 + [2] * 24


def test_call_variables_are_no_memory_requests(engine: str) -> None:
    body = (
        START
        + """
    { .param .align 8 .b8 param0[8]; st.param.v2.b32 [param0+0], {%r1, %r1}; .param .align 8 .b8 retval0[8];
    call.uni (retval0), swap, (param0); ld.param.b32 %r3, [retval0+0]; }
    st.global.u32 [%rd4], %r3;
"""
    )
    ran = run(engine, kernel("u64 a", body, module=FUNCTIONS), np.zeros(32, np.uint32))
    assert ran.counters.requests.sum() == 1


# ---- barriers


def test_a_barrier_orders_the_warps_of_a_block(engine: str) -> None:
    body = """
    mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; mul.lo.u32 %r5, %r1, %r1; st.shared.u32 [%r3], %r5;
    bar.sync 0;
    sub.u32 %r4, 95, %r1; mad.lo.u32 %r4, %r4, 4, %r2; ld.shared.u32 %r6, [%r4];
    barrier.sync.aligned 1;
    st.shared.u32 [%r3], 0; st.global.u32 [%rd4], %r6;
"""
    found = result(engine, body, threads=96, variables=".shared .align 4 .b8 tile[384];")
    assert found == [(95 - thread) ** 2 for thread in range(96)]


def test_reducing_barriers_count_all_threads(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 40; bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;
    bar.red.and.pred %p4, 1, !%p5; barrier.cta.red.popc.aligned.u32 %r6, 0, !%p1;
    selp.u32 %r3, 100, 0, %p2; selp.u32 %r4, 1000, 0, %p3; selp.u32 %r5, 10000, 0, %p4;
    add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r5; mad.lo.u32 %r2, %r6, 100000, %r2;
    st.global.u32 [%rd4], %r2;
"""
    assert set(result(engine, body, threads=64)) == {40 + 1000 + 10000 + 2400000}


def test_warps_that_returned_hold_nobody_up(engine: str) -> None:
    body = """
    setp.ge.u32 %p1, %r1, 40; @%p1 bra DONE;
    bar.red.popc.u32 %r2, 0, 1; st.global.u32 [%rd4], %r2;
DONE:
"""
    assert result(engine, body.replace("0, 1;", "0, !%p1;"), threads=96) == [40] * 40 + [0] * 56


def test_a_barrier_in_a_loop_is_passed_each_time(engine: str) -> None:
    body = """
    mov.u32 %r2, 0; mov.u32 %r5, cell; mad.lo.u32 %r6, %r1, 4, %r5; st.shared.u32 [%r6], %r1;
LOOP:
    bar.sync 0;
    add.u32 %r3, %r1, 1; rem.u32 %r3, %r3, 64; mad.lo.u32 %r3, %r3, 4, %r5; ld.shared.u32 %r4, [%r3];
    bar.sync 0;
    st.shared.u32 [%r6], %r4; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 10; @%p1 bra LOOP;
    st.global.u32 [%rd4], %r4;
"""
    found = result(engine, body, threads=64, variables=".shared .align 4 .b8 cell[256];")
    assert found == [(thread + 10) % 64 for thread in range(64)]


@pytest.mark.parametrize(
    "body",
    [
        "setp.lt.u32 %p1, %r1, 7; @%p1 bra SKIP; bar.sync 0; SKIP: st.global.u32 [%rd4], %r1;",
        "setp.lt.u32 %p1, %r1, 7; @%p1 bar.sync 0; st.global.u32 [%rd4], %r1;",
        # Two barriers, one on each side: on hardware since Volta both would be waited for.
        "setp.lt.u32 %p1, %r1, 7; @%p1 bra LEFT; bar.sync 0; bra.uni JOIN; LEFT: bar.sync 0; JOIN: st.global.u32 [%rd4], %r1;",
        # A loop that some lanes leave early (pocl#1167; numba#9770).
        "mov.u32 %r2, 0; LOOP: bar.sync 0; add.u32 %r2, %r2, 1; setp.le.u32 %p1, %r2, %r1; @%p1 bra LOOP; st.global.u32 [%rd4], %r1;",
    ],
)
def test_a_barrier_that_part_of_a_warp_reaches_is_a_fault(engine: str, body: str) -> None:
    with pytest.raises(KernelFault, match="Every thread of the block") as caught:
        result(engine, body)
    assert caught.value.fault.kind == "barrier"
    assert caught.value.fault.thread is not None


def test_warps_that_wait_at_different_barriers_are_a_deadlock(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 32; @%p1 bra FIRST; bar.sync 1; bra.uni DONE;
FIRST:
    bar.sync 0;
DONE:
"""
    with pytest.raises(KernelFault) as caught:
        result(engine, body, threads=64)
    assert caught.value.fault.kind == "deadlock"


def test_warps_may_pass_the_same_barrier_at_different_places(engine: str) -> None:
    body = """
    setp.lt.u32 %p1, %r1, 32; @%p1 bra FIRST;
    bar.sync 0; st.global.u32 [%rd4], 1; bra.uni DONE;
FIRST:
    bar.sync 0; st.global.u32 [%rd4], 2;
DONE:
"""
    assert result(engine, body, threads=64) == [2] * 32 + [1] * 32


def test_an_endless_loop_ends_with_the_time_limit(engine: str) -> None:
    text = kernel("u64 a", START + "LOOP: add.u32 %r1, %r1, 1; bra.uni LOOP;")
    with pytest.raises(TimeLimitError, match=r"stopped at PTX line \d+ \(block \(0, 0, 0\), warp 0\).*never ends"):
        run(engine, text, np.zeros(32, np.uint32), options=RunOptions(time_limit_s=0.3))


def test_trap_stops_the_kernel_and_names_the_thread(engine: str) -> None:
    with pytest.raises(KernelFault, match="trap") as caught:
        result(engine, "setp.eq.u32 %p1, %r1, 11; @%p1 trap;")
    assert caught.value.fault.thread == (11, 0, 0)


# ---- built-ins


def test_printf_writes_lane_after_lane(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = """
.extern .func (.param .b32 func_retval0) vprintf(.param .b64 p0, .param .b64 p1);
.global .align 1 .b8 format[24] = {37, 100, 32, 37, 46, 50, 102, 32, 37, 115, 32, 37, 108, 108, 120, 37, 37, 10};
.global .align 1 .b8 word[3] = {104, 105};
"""
    body = """
    mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 2; @%p1 bra DONE;
    mov.b64 %SPL, depot; cvta.local.u64 %SP, %SPL;
    st.local.u32 [%SPL], %r1; cvt.rn.f64.u32 %fd1, %r1; add.f64 %fd1, %fd1, 0d3FF4000000000000; st.local.f64 [%SPL+8], %fd1;
    mov.u64 %rd2, word; cvta.global.u64 %rd3, %rd2; st.local.u64 [%SPL+16], %rd3; st.local.u64 [%SPL+24], 0xFFFFFFFFFF;
    mov.u64 %rd4, format; cvta.global.u64 %rd5, %rd4;
    {
    .param .b64 param0; st.param.b64 [param0+0], %rd5; .param .b64 param1; st.param.b64 [param1+0], %SP; .param .b32 retval0;
    call.uni (retval0), vprintf, (param0, param1);
    ld.param.b32 %r2, [retval0+0];
    }
DONE:
"""
    text = kernel(
        "u64 a",
        body,
        registers=".reg .b64 %SP; .reg .b64 %SPL;",
        variables=".local .align 8 .b8 depot[32];",
        module=module,
    )
    run(engine, text, np.zeros(1), grid=2)
    assert capsys.readouterr().out == "0 1.25 hi ffffffffff%\n1 2.25 hi ffffffffff%\n" * 2


def test_a_failed_assertion_is_a_fault_with_its_text(engine: str) -> None:
    module = """
.extern .func __assertfail(.param .b64 p0, .param .b64 p1, .param .b32 p2, .param .b64 p3, .param .b64 p4);
.global .align 1 .b8 text[6] = {105, 32, 60, 32, 110};
"""
    body = """
    mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 6; @%p1 bra DONE; mov.u64 %rd2, text; cvta.global.u64 %rd3, %rd2;
    { .param .b64 param0; st.param.b64 [param0+0], %rd3; .param .b64 param1; st.param.b64 [param1+0], %rd3;
    .param .b32 param2; st.param.b32 [param2+0], 17; .param .b64 param3; st.param.b64 [param3+0], %rd3;
    .param .b64 param4; st.param.b64 [param4+0], 1;
    call.uni __assertfail, (param0, param1, param2, param3, param4); }
DONE:
"""
    with pytest.raises(KernelFault, match="i < n") as caught:
        run(engine, kernel("u64 a", body, module=module), np.zeros(1))
    assert (caught.value.fault.kind, caught.value.fault.thread) == ("assert", (6, 0, 0))


def test_a_kernel_without_a_return_ends_at_its_brace(engine: str) -> None:
    text = (
        HEADER
        + ".visible .entry k(.param .u64 a) { .reg .b64 %rd<3>; ld.param.u64 %rd1, [a]; st.global.u32 [%rd1], 5; }"
    )
    found = np.zeros(1, np.uint32)
    run(engine, text, found)
    assert found[0] == 5
