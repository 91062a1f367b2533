"""Atomics on halves, vectors and 128 bits, wide loads and stores, cache policies, and windows of generic addresses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from ptx_harness import kernel, run

from gpulab.errors import KernelFault, UnsupportedInstruction

POINTERS = "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd4, %r1, 16, %rd1;"
TWO = "u64 a, u64 b"
WIDE = ".reg .b128 %q<8>;"


def _half_sum(values: list[float], significant: int, start: float = 0.0) -> float:
    """Each step rounded to nearest even with so many significant bits; exact in between."""
    total = Fraction(start)
    for value in values:
        total += Fraction(value)
        scale = Fraction(2) ** (int(total).bit_length() - significant)
        total = round(total / scale) * scale  # Python rounds ties to even
    return float(total)


@pytest.mark.parametrize("space", ["global", "shared", "generic"])
def test_half_atomics_round_each_step_in_lane_order(engine: str, space: str) -> None:
    cells, found = np.zeros(4, np.uint32), np.zeros(32, np.uint32)
    place, dot = {"global": ("%rd2", ".global"), "generic": ("%rd2", ""), "shared": ("cell", ".shared")}[space]
    body = (
        POINTERS
        + f"""
    mad.wide.u32 %rd4, %r1, 4, %rd1; add.u32 %r2, %r1, 100;
    cvt.rn.f16.u32 %rs1, %r2; cvt.rn.bf16.u32 %rs2, %r2; mov.b32 %r3, {{%rs1, %rs1}}; mov.b32 %r4, {{%rs2, %rs2}};
    atom{dot}.add.noftz.f16 %rs3, [{place}], %rs1; cvt.u32.u16 %r5, %rs3; st.global.u32 [%rd4], %r5;
    red{dot}.add.noftz.bf16 [{place}+2], %rs2;
    red{dot}.add.noftz.f16x2 [{place}+4], %r3; red{dot}.gpu.add.noftz.bf16x2 [{place}+8], %r4;
    bar.sync 0; ld.shared.v4.u32 {{%r6, %r7, %r8, %r9}}, [cell]; setp.ne.u32 %p1, %r6, 0; @%p1 st.global.v4.u32 [%rd2], {{%r6, %r7, %r8, %r9}};
"""
    )
    run(engine, kernel(TWO, body, variables=".shared .align 16 .b8 cell[16];"), found, cells)
    values = [100.0 + lane for lane in range(32)]
    f16, bf16 = _half_sum(values, 11), _half_sum(values, 8)
    assert f16 != sum(values) and bf16 != f16
    halves = cells.view(np.float16)
    assert [halves[place] for place in (0, 2, 3)] == [f16] * 3
    brains = (cells.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    assert [brains[place] for place in (1, 4, 5)] == [bf16] * 3
    assert found[:3].astype(np.uint16).view(np.float16).tolist() == [0.0, 100.0, 201.0]


def test_half_atomics_keep_denormals(engine: str) -> None:
    cells = np.array([1, 0], np.uint16)
    body = POINTERS + "setp.eq.u32 %p1, %r1, 0; mov.b16 %rs1, 2; @%p1 red.global.add.noftz.f16 [%rd2], %rs1;"
    run(engine, kernel(TWO, body), np.zeros(1), cells)
    assert cells.tolist() == [3, 0]


def test_vector_atomics_work_on_each_element(engine: str) -> None:
    cells, found = np.zeros(20, np.float32), np.zeros((32, 4), np.float32)
    cells[8:12].view(np.float16)[:] = [9.0, 1.0, -1.0, 40.0, 5.0, np.inf, 7.0, -0.0]
    body = (
        POINTERS
        + """
    cvt.rn.f32.u32 %f1, %r1; neg.f32 %f2, %f1; mov.f32 %f3, 0f3F000000; mov.f32 %f4, 0f00000000;
    atom.global.v4.f32.add {%f5, %f6, %f7, %f8}, [%rd2], {%f1, %f2, %f3, %f4}; st.global.v4.f32 [%rd4], {%f5, %f6, %f7, %f8};
    red.global.add.v2.f32 [%rd2+16], {%f3, %f1};
    cvt.rn.f16.u32 %rs1, %r1; neg.f16 %rs2, %rs1;
    red.global.max.noftz.v8.f16 [%rd2+32], {%rs1, %rs1, %rs1, %rs1, %rs2, %rs2, %rs2, %rs2};
    mov.b32 %r2, {%rs1, %rs2}; red.relaxed.gpu.global.v2.f16x2.min.noftz [%rd2+48], {%r2, %r2};
"""
    )
    run(engine, kernel(TWO, body), found, cells)
    assert cells[:6].tolist() == [496.0, -496.0, 16.0, 0.0, 16.0, 496.0]
    assert found[31].tolist() == [465.0, -465.0, 15.5, 0.0]
    assert cells[8:12].view(np.float16).tolist() == [31.0, 31.0, 31.0, 40.0, 5.0, np.inf, 7.0, 0.0]
    assert cells[12:14].view(np.float16).tolist() == [0.0, -31.0, 0.0, -31.0]


def test_modifiers_may_stand_in_any_order(engine: str) -> None:
    # As libcu++ writes them.
    cells = np.zeros(2, np.uint32)
    body = (
        POINTERS
        + "atom.add.acq_rel.cta.u32 %r2, [%rd2], %r1; fence.gpu.sc; red.max.relaxed.sys.global.u32 [%rd2+4], %r1;"
    )
    run(engine, kernel(TWO, body), np.zeros(1), cells)
    assert cells.tolist() == [496, 31]


def test_128_bits_move_whole(engine: str) -> None:
    source = np.arange(64, dtype=np.uint64) * np.uint64(0x123456789ABCDEF)
    found = np.zeros(64, np.uint64)
    body = (
        POINTERS
        + """
    mad.wide.u32 %rd5, %r1, 16, %rd2; ld.global.b128 %q1, [%rd4]; bar.sync 0; mov.b128 %q2, %q1;
    mov.b128 {%rd6, %rd7}, %q2; mov.b128 %q3, {%rd7, %rd6}; st.shared.b128 [tile], %q3; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
    @%p1 ld.global.b128 %q3, [%rd4]; st.global.b128 [%rd5], %q3;
"""
    )
    text = kernel(TWO, body, WIDE, ".shared .align 16 .b8 tile[16];")
    run(engine, text, source, found)
    pairs = source.reshape(32, 2)
    expected = [pair if lane % 2 == 0 else pair[::-1] for lane, pair in enumerate(pairs.tolist())]
    assert found.reshape(32, 2).tolist() == expected


def test_128_bits_need_no_aligned_host_memory(engine: str) -> None:
    backing = np.zeros(2 * 33, np.uint64)
    for start in (0, 1):
        array = backing[start : start + 64]
        array[:] = np.arange(64)
        body = (
            POINTERS
            + "ld.global.b128 %q1, [%rd4]; mov.b128 {%rd6, %rd7}, %q1; add.u64 %rd6, %rd6, 100; mov.b128 %q1, {%rd6, %rd7}; st.global.b128 [%rd4], %q1; atom.global.exch.b128 %q2, [%rd1], %q1;"
        )
        run(engine, kernel(TWO, body, WIDE), array, np.zeros(1))
        assert array[2:].tolist() == [100 * (1 - place % 2) + place for place in range(2, 64)]
        assert array[:2].tolist() == [162, 63]


def test_128_bit_exchange_and_compare_and_swap(engine: str) -> None:
    cells, found = np.array([5, 7, 5, 8], np.uint64), np.zeros(64, np.uint64)
    body = (
        POINTERS
        + """
    cvt.u64.u32 %rd6, %r1; mov.b128 %q1, {%rd6, %rd6}; atom.global.exch.b128 %q2, [%rd2], %q1; st.global.b128 [%rd4], %q2;
    mov.u64 %rd7, 5; mov.u64 %rd8, 8; mov.b128 %q3, {%rd7, %rd8}; atom.global.cas.b128 %q4, [%rd2+16], %q3, %q1;
"""
    )
    run(engine, kernel(TWO, body, WIDE), found, cells)
    assert cells.tolist() == [31, 31, 0, 0]
    assert found[:4].tolist() == [5, 7, 0, 0] and found[62:].tolist() == [30, 30]


def test_every_cache_operator_and_policy_leaves_the_value_alone(engine: str) -> None:
    source, found = np.arange(32, dtype=np.uint32), np.zeros((12, 32), np.uint32)
    loads = (
        "ld.global.ca", "ld.global.cg", "ld.global.cs", "ld.global.lu", "ld.global.cv", "ld.volatile.global", "ld.mmio.relaxed.sys.global",
        "ld.acquire.gpu.global", "ld.global.L1::evict_last.L2::256B", "ld.global.nc.L1::no_allocate",
    )  # fmt: skip
    stores = ("st.global.wb", "st.global.cg", "st.global.cs", "st.global.wt", "st.volatile.global", "st.mmio.relaxed.sys.global",
              "st.release.gpu.global", "st.global.L1::evict_first", "st.weak.global", "st.relaxed.cta.global")  # fmt: skip
    lines = "".join(
        f"{load}.u32 %r2, [%rd5]; add.u32 %r2, %r2, {number}; {store}.u32 [%rd4+{128 * number}], %r2;\n"
        for number, (load, store) in enumerate(zip(loads, stores, strict=True))
    )
    body = f"""{POINTERS}
    mad.wide.u32 %rd4, %r1, 4, %rd1; mad.wide.u32 %rd5, %r1, 4, %rd2;
    createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %rd6, 0f3F000000; createpolicy.fractional.L2::evict_first.b64 %rd7;
    createpolicy.range.global.L2::evict_last.b64 %rd8, [%rd2], 64, 128; createpolicy.cvt.L2.b64 %rd9, 0x10F0000000000000;
    prefetch.global.L2 [%rd5]; prefetch.L1 [%rd5]; prefetch.global.L2::evict_last [%rd5]; prefetchu.L1 [%rd5];
    applypriority.global.L2::evict_normal [%rd2], 128; {lines}
    ld.global.L1::no_allocate.L2::cache_hint.u32 %r3, [%rd5], %rd6; st.global.L2::cache_hint.u32 [%rd4+1280], %r3, %rd7;
    red.global.add.L2::cache_hint.u32 [%rd4+1408], %r3, %rd8; atom.global.add.L2::cache_hint.u32 %r4, [%rd4+1408], %r3, %rd9;
    griddepcontrol.wait; griddepcontrol.launch_dependents; fence.proxy.alias; fence.acquire.gpu; discard.global.L2 [%rd2], 128;
"""
    run(engine, kernel(TWO, body), found, source)
    lane = np.arange(32)
    assert found.tolist() == [*((lane + number).tolist() for number in range(10)), lane.tolist(), (2 * lane).tolist()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ld.global.L2::cache_hint.u32 %r2, [%rd1];", "needs a cache policy"),
        ("ld.global.u32 %r2, [%rd1], %rd2;", "needs a cache policy"),
        ("atom.global.min.noftz.f16 %rs1, [%rd1], %rs2;", "does not support"),
        ("red.shared.add.v2.f32 [%rd1], {%f1, %f2};", "does not support"),
        ("atom.global.add.noftz.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1], {%f1, %f2, %f3, %f4};", "does not support"),
        ("cvt.f64.f32.rn %fd1, %f1;", "does not support"),
        ("vote.all.pred %p1, %p2;", "does not support"),
    ],
)
def test_what_ptxas_refuses_is_refused(engine: str, line: str, words: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=words):
        run(engine, kernel(TWO, POINTERS + line), np.zeros(1), np.zeros(1))


def test_windows_tell_where_a_generic_address_points(engine: str) -> None:
    found = np.zeros(32, np.uint32)
    names = ("global", "shared", "local", "const", "param")
    addresses = {"global": "%rd1", "shared": "tile", "local": "mine", "const": "table", "param": "b"}
    body, bit = POINTERS, 0
    for name in names:
        body += f"mov.u64 %rd6, {addresses[name]}; cvta.{name}.u64 %rd7, %rd6;\n"
        for other in (*names, "shared::cta", "shared::cluster", "param::entry"):
            body += f"isspacep.{other} %p1, %rd7; @%p1 or.b32 %r2, %r2, {1 << bit};\n"
            bit = (bit + 1) % 32
        if bit == 0 or name == "param":
            body += f"st.global.u32 [%rd1+{4 * (name == 'param')}], %r2; mov.u32 %r2, 0;\n"
    text = kernel(TWO, body, variables=".shared .b32 tile; .local .b32 mine;", module=".const .u32 table = 7;")
    run(engine, text, found, np.zeros(1))
    rows = [0b00000001, 0b01100010, 0b00000100, 0b00001000]
    assert found[0] == sum(row << 8 * place for place, row in enumerate(rows))
    assert found[1] == 0b10010000


def test_generic_loads_reach_constants_and_parameters_but_stores_do_not(engine: str) -> None:
    found = np.zeros(32, np.uint32)
    body = (
        POINTERS
        + "mad.wide.u32 %rd4, %r1, 4, %rd1; mov.u64 %rd6, c; cvta.param.u64 %rd6, %rd6; mov.u64 %rd7, table; cvta.const.u64 %rd7, %rd7;"
    )
    loads = body + "ld.u32 %r2, [%rd6]; ld.u32 %r3, [%rd7]; mad.lo.u32 %r2, %r2, 100, %r3; st.global.u32 [%rd4], %r2;"
    module = ".const .u32 table = 7;"
    run(engine, kernel("u64 a, u64 b, u32 c", loads, module=module), found, np.zeros(1), np.uint32(5))
    assert found.tolist() == [507] * 32
    for place in ("%rd6", "%rd7"):
        text = kernel("u64 a, u64 b, u32 c", body + f"st.u32 [{place}], %r1;", module=module)
        with pytest.raises(KernelFault, match="parameters|kernels only read it"):
            run(engine, text, found, np.zeros(1), np.uint32(5))


def test_a_launch_without_clusters_is_one_of_single_blocks(engine: str) -> None:
    found = np.ones(6, np.uint32)
    body = (
        POINTERS
        + """
    mov.u32 %r3, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank; mov.u32 %r5, %nclusterid.x; mov.pred %p1, %is_explicit_cluster;
    selp.u32 %r6, 1, 0, %p1; mov.u32 %r7, %cluster_nctaid.y; mov.u32 %r8, %clusterid.x; st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};
    setp.eq.u32 %p2, %r8, 2; @%p2 st.global.v2.u32 [%rd1+16], {%r7, %r8};
"""
    )
    run(engine, kernel(TWO, body), found, np.zeros(1), grid=3)
    assert found.tolist() == [0, 1, 3, 0, 1, 2]
