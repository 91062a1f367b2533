"""`mbarrier`: phases, counts, transactions, states and parities, by hand; and the barriers of libcu++."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_harness import kernel, run

from gpulab.emulator import load
from gpulab.errors import KernelFault, UnsupportedInstruction
from gpulab.ptx import parse

PENDING, EXPECTED = 0xFFFFF, 20


def _words(engine: str, body: str, count: int, block: int = 1) -> np.ndarray:
    """What a kernel stores to ``[%rd1]``: 64-bit words; %r1 is the barrier, %r2 the thread."""
    out = np.zeros(count, np.uint64)
    prologue = "ld.param.u64 %rd1, [out]; mov.u32 %r1, bar; mov.u32 %r2, %tid.x;"
    run(engine, kernel("u64 out", prologue + body, variables=".shared .align 8 .b64 bar[2];"), out, block=block)
    return out


def _stored(*instructions: str) -> str:
    """Instructions with a result in %rd2, each stored in turn."""
    return "".join(f"{text} st.global.u64 [%rd1+{8 * n}], %rd2;\n" for n, text in enumerate(instructions))


INIT = "mbarrier.init.shared.b64 [%r1], 3;"
ARRIVE = "mbarrier.arrive.shared.b64 %rd2, [%r1];"
COUNT = "mbarrier.pending_count.b64 %r3, %rd2; cvt.u64.u32 %rd2, %r3;"


def test_states_count_down_and_the_phase_turns(engine: str) -> None:
    body = INIT + _stored(*[ARRIVE + COUNT] * 4)
    # Each state has the arrivals that were missing before; the fourth arrival is the first of the next phase.
    assert _words(engine, body, 4).tolist() == [3, 2, 1, 3]


def test_waits_tell_phases_apart(engine: str) -> None:
    test = "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd3; selp.u64 %rd2, 1, 0, %p1;"
    even, odd = (
        f"mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], {parity}, 1000; selp.u64 %rd2, 1, 0, %p1;"
        for parity in (0, 1)
    )
    arrive = ARRIVE.replace("%rd2", "%rd3")
    body = INIT + arrive + _stored(test, even, odd, arrive + test, arrive + test, even, odd)
    # Before: the phase of parity 0 runs, the one before (parity 1) is complete. After three arrivals: the other way round.
    assert _words(engine, body, 7).tolist() == [0, 0, 1, 0, 1, 1, 0]


def test_arrivals_in_numbers_and_drops(engine: str) -> None:
    body = INIT + _stored(
        "mbarrier.arrive.release.cta.shared::cta.b64 %rd2, [%r1], 2;" + COUNT,
        "mbarrier.arrive_drop.shared.b64 %rd2, [%r1];" + COUNT,
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1]; mov.u64 %rd2, 1;",
        "mbarrier.arrive.noComplete.release.cta.shared.b64 %rd2, [%r1], 0;" + COUNT,
    )
    # The next phase expects one less.
    assert _words(engine, body, 4).tolist() == [3, 1, 1, 1]


def test_transactions_hold_a_phase(engine: str) -> None:
    done = "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; selp.u64 %rd2, 1, 0, %p1;"
    body = "mbarrier.init.shared::cta.b64 [%r1], 1;" + _stored(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 100;" + done,
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], 60;" + done,
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 8;" + done,
        "mbarrier.complete_tx.shared::cta.b64 [%r1], 40;" + done,
        "mbarrier.complete_tx.shared::cta.b64 [%r1], 8;" + done,
    )
    assert _words(engine, body, 5).tolist() == [0, 0, 0, 0, 1]


def test_lanes_arrive_one_after_the_other(engine: str) -> None:
    body = f"""setp.eq.u32 %p1, %r2, 0; @%p1 mbarrier.init.shared.b64 [%r1], 20; bar.warp.sync -1;
    setp.lt.u32 %p2, %r2, 25; mov.u64 %rd2, 0; @%p2 {ARRIVE} {COUNT} mad.wide.u32 %rd1, %r2, 8, %rd1; st.global.u64 [%rd1], %rd2;"""
    expected = [20 - lane if lane < 20 else 40 - lane for lane in range(25)] + [0] * 7
    assert _words(engine, body, 32, block=32).tolist() == expected


def test_generic_addresses_and_arrivals_of_copies(engine: str) -> None:
    generic = "mov.u64 %rd4, bar; cvta.shared.u64 %rd4, %rd4; mbarrier.init.b64 [%rd4], 2;"
    body = generic + _stored(
        "cp.async.mbarrier.arrive.shared.b64 [%r1]; mbarrier.arrive.noComplete.b64 %rd2, [%rd4], 0;" + COUNT,
        "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1]; mbarrier.arrive.b64 %rd2, [%rd4];" + COUNT,
    )
    assert _words(engine, body, 2).tolist() == [2, 1]


def test_fences_and_policies_are_accepted(engine: str) -> None:
    body = """createpolicy.fractional.L2::evict_last.b64 %rd2, 0f3F800000; fence.mbarrier_init.release.cluster;
    fence.proxy.async; fence.proxy.async.shared::cta; fence.proxy.alias; st.global.u64 [%rd1], %rd2;"""
    assert _words(engine, body, 1).tolist() == [0]


@pytest.mark.parametrize(
    "body",
    [
        ARRIVE,
        "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;",
        "mbarrier.init.shared.b64 [%r1], 0;",
        INIT + "mbarrier.inval.shared.b64 [%r1];" + ARRIVE,
        INIT + "mbarrier.arrive.shared.b64 %rd2, [%r1], 4;",
        INIT + "mbarrier.arrive.noComplete.shared.b64 %rd2, [%r1], 3;",
    ],
    ids=["not initialized", "wait, not initialized", "of nobody", "invalidated", "too many", "completes"],
)
def test_misuse_is_a_fault(engine: str, body: str) -> None:
    with pytest.raises(KernelFault, match="used before it was initialized, or a phase of it got more") as caught:
        _words(engine, body, 1)
    assert caught.value.fault.kind == "barrier"


def test_accesses_are_counted(engine: str) -> None:
    body = INIT + ARRIVE + "mbarrier.test_wait.shared.b64 %p1, [%r1], %rd2;"
    text = kernel("", "mov.u32 %r1, bar;" + body, variables=".shared .align 8 .b64 bar;")
    done = run(engine, text, block=1)
    assert done.count("requests", "mbarrier") == [1, 1, 1]
    assert done.count("bytes_asked", "mbarrier") == [8, 8, 8]


def test_a_misaligned_barrier_is_a_fault(engine: str) -> None:
    with pytest.raises(KernelFault, match="multiple of 8"):
        _words(engine, "mbarrier.init.shared.b64 [%r1+4], 1;", 1)


def test_other_forms_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedInstruction, match="mbarrier.arrive.shared::global"):
        load(parse(kernel("", "mbarrier.arrive.shared::global.b64 %rd2, [%r1];")), "k")
