"""Loads, stores, atomics and state spaces on every engine."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_harness import kernel, run

from gpulab.errors import KernelFault

# %rd1 to %rd3: the parameters as pointers; %r1: the thread; %rd4: its place in an array of 4-byte elements of the first.
POINTERS = """
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd4, %r1, 4, %rd1; mad.wide.u32 %rd5, %r1, 4, %rd2;
"""
TWO = "u64 a, u64 b"


def test_narrow_loads_are_extended_by_their_type(engine: str) -> None:
    source = np.array([0x80, 0x7F, 0xFF, 0x01] * 8, np.uint8)
    found = np.zeros((4, 32), np.uint32)
    body = (
        POINTERS
        + """
    cvt.u64.u32 %rd6, %r1; add.s64 %rd6, %rd1, %rd6; and.b64 %rd7, %rd6, -2;
    ld.global.u8 %r2, [%rd6]; st.global.u32 [%rd5], %r2;
    ld.global.s8 %r3, [%rd6]; st.global.u32 [%rd5+128], %r3;
    ld.global.u16 %r4, [%rd7]; st.global.u32 [%rd5+256], %r4;
    ld.global.s16 %r5, [%rd7]; st.global.u32 [%rd5+384], %r5;
"""
    )
    run(engine, kernel(TWO, body), source, found)
    pairs = np.repeat(source.view(np.uint16), 2)
    assert found[0].tolist() == source.tolist()
    assert found[1].view(np.int32).tolist() == source.view(np.int8).tolist()
    assert found[2].tolist() == pairs.tolist()
    assert found[3].view(np.int32).tolist() == pairs.view(np.int16).tolist()


def test_vectors_move_their_elements_in_order(engine: str) -> None:
    source = np.arange(128, dtype=np.float32)
    found = np.zeros((32, 4), np.float32)
    body = (
        POINTERS
        + """
    mad.wide.u32 %rd4, %r1, 16, %rd1; mad.wide.u32 %rd5, %r1, 16, %rd2;
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd4];
    st.global.v2.f32 [%rd5], {%f4, %f3};
    st.global.v2.b32 [%rd5+8], {%f2, %f1};
"""
    )
    run(engine, kernel(TWO, body), source, found)
    assert np.array_equal(found, source.reshape(32, 4)[:, ::-1])


def test_stores_narrow_and_cut_off_wide_registers(engine: str) -> None:
    found = np.full(32, 0xEE, np.uint8)
    body = (
        POINTERS
        + """
    cvt.u64.u32 %rd6, %r1; add.s64 %rd6, %rd1, %rd6;
    add.u32 %r2, %r1, 0x1240; st.global.u8 [%rd6], %r2;
"""
    )
    run(engine, kernel(TWO, body), found, np.zeros(1))
    assert found.tolist() == [0x40 + lane for lane in range(32)]


def test_the_highest_lane_wins_at_one_address(engine: str) -> None:
    found = np.zeros(2, np.uint32)
    body = (
        POINTERS
        + """
    st.global.u32 [%rd1], %r1;
    setp.lt.u32 %p1, %r1, 20; @%p1 st.global.u32 [%rd1+4], %r1;
"""
    )
    run(engine, kernel(TWO, body), found, np.zeros(1))
    assert found.tolist() == [31, 19]


def test_a_guarded_load_keeps_the_old_value_of_other_lanes(engine: str) -> None:
    source, found = np.arange(100, 132, dtype=np.uint32), np.zeros(32, np.uint32)
    body = (
        POINTERS
        + """
    mov.u32 %r2, 7; and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 1;
    @%p1 ld.global.u32 %r2, [%rd4];
    st.global.u32 [%rd5], %r2;
"""
    )
    run(engine, kernel(TWO, body), source, found)
    assert found.tolist() == [100 + lane if lane % 2 else 7 for lane in range(32)]


def test_lanes_that_are_off_may_have_wild_addresses(engine: str) -> None:
    source, found = np.arange(5, dtype=np.uint32), np.zeros(32, np.uint32)
    body = (
        POINTERS
        + """
    setp.lt.u32 %p1, %r1, 5;
    @%p1 ld.global.u32 %r2, [%rd4];
    @%p1 st.global.u32 [%rd5], %r2;
"""
    )
    run(engine, kernel(TWO, body), source, found)
    assert found[:6].tolist() == [0, 1, 2, 3, 4, 0]


def test_shared_memory_is_zero_at_first_and_each_block_has_its_own(engine: str) -> None:
    found = np.full((3, 32), -1, np.int32)
    body = (
        POINTERS
        + """
    mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 4, %r2; mov.u32 %r4, %ctaid.x;
    ld.shared.u32 %r5, [%r3];
    mad.lo.u32 %r6, %r4, 100, %r1; st.shared.u32 [%r3], %r6;
    bar.sync 0;
    xor.b32 %r7, %r1, 31; mad.lo.u32 %r8, %r7, 4, %r2; ld.shared.u32 %r9, [%r8];
    add.u32 %r9, %r9, %r5;
    mad.lo.u32 %r10, %r4, 32, %r1; mad.wide.u32 %rd5, %r10, 4, %rd1; st.global.u32 [%rd5], %r9;
"""
    )
    run(engine, kernel(TWO, body, variables=".shared .align 4 .b8 tile[128];"), found, np.zeros(1), grid=3)
    assert found.tolist() == [[100 * block + 31 - lane for lane in range(32)] for block in range(3)]


def test_dynamic_shared_memory_lies_behind_the_static_arrays(engine: str) -> None:
    found = np.zeros(4, np.uint64)
    body = (
        POINTERS
        + """
    mov.u64 %rd6, first; mov.u64 %rd7, second; mov.u64 %rd8, dynamic;
    st.global.v2.u64 [%rd1], {%rd6, %rd7}; st.global.u64 [%rd1+16], %rd8;
    setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u64 [dynamic+8], 5;
    ld.shared.u64 %rd9, [%rd8+8]; st.global.u64 [%rd1+24], %rd9;
"""
    )
    text = kernel(
        TWO,
        body,
        variables=".shared .b8 first[3]; .shared .align 8 .b8 second[17];",
        module=".extern .shared .align 16 .b8 dynamic[];",
    )
    ran = run(engine, text, found, np.zeros(1), shared=16)
    assert found.tolist() == [0, 8, 32, 5]
    assert ran.program.static_shared_bytes == 25


def test_generic_addresses_reach_every_space(engine: str) -> None:
    found = np.zeros((3, 32), np.uint32)
    body = (
        POINTERS
        + """
    mov.u64 %rd6, tile; cvta.shared.u64 %rd7, %rd6;
    mov.u64 %rd8, mine; cvta.local.u64 %rd9, %rd8; cvta.global.u64 %rd10, %rd1;
    mad.wide.u32 %rd7, %r1, 4, %rd7;
    st.u32 [%rd7], %r1; add.u32 %r2, %r1, 1000; st.u32 [%rd9+4], %r2;
    cvta.to.shared.u64 %rd11, %rd7; ld.shared.u32 %r3, [%rd11]; ld.local.u32 %r4, [mine+4];
    mad.wide.u32 %rd10, %r1, 4, %rd10; st.u32 [%rd10], %r3; st.u32 [%rd10+128], %r4;
    isspacep.shared %p1, %rd7; isspacep.local %p2, %rd9; isspacep.global %p3, %rd10; isspacep.global %p4, %rd7;
    selp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 2, 0, %p2; selp.u32 %r7, 4, 0, %p3; selp.u32 %r8, 8, 0, %p4;
    or.b32 %r5, %r5, %r6; or.b32 %r5, %r5, %r7; or.b32 %r5, %r5, %r8; st.global.u32 [%rd10+256], %r5;
"""
    )
    variables = ".shared .align 4 .b8 tile[128]; .local .align 4 .b8 mine[8];"
    run(engine, kernel(TWO, body, variables=variables), found, np.zeros(1))
    assert found[0].tolist() == list(range(32))
    assert found[1].tolist() == list(range(1000, 1032))
    assert set(found[2].tolist()) == {7}


def test_lanes_of_one_generic_access_may_hit_different_spaces(engine: str) -> None:
    found = np.zeros(32, np.uint32)
    body = (
        POINTERS
        + """
    mov.u64 %rd6, tile; cvta.shared.u64 %rd7, %rd6; mad.wide.u32 %rd7, %r1, 4, %rd7;
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; selp.b64 %rd8, %rd4, %rd7, %p1;
    add.u32 %r3, %r1, 5; st.u32 [%rd8], %r3;
    @!%p1 ld.shared.u32 %r4, [tile+4]; @!%p1 st.global.u32 [%rd4], %r4;
"""
    )
    ran = run(engine, kernel(TWO, body, variables=".shared .align 4 .b8 tile[128];"), found, np.zeros(1))
    assert found.tolist() == [lane + 5 if lane % 2 == 0 else 6 for lane in range(32)]
    # Each space gets a request of its own: 16 lanes in 4 sectors of global memory, 16 in shared memory.
    assert ran.count("requests", "st")[0] == 2
    assert ran.count("sectors", "st")[0] == 4


def test_local_memory_belongs_to_its_lane(engine: str) -> None:
    found = np.zeros(64, np.uint32)
    body = (
        POINTERS
        + """
    and.b32 %r2, %r1, 3; mov.u64 %rd6, mine; mad.wide.u32 %rd7, %r2, 4, %rd6;
    st.local.u32 [%rd7], %r1; mov.u32 %r3, 0; bar.sync 0;
    ld.local.v4.u32 {%r4, %r5, %r6, %r7}, [mine];
    add.u32 %r3, %r4, %r5; add.u32 %r3, %r3, %r6; add.u32 %r3, %r3, %r7; st.global.u32 [%rd4], %r3;
"""
    )
    run(engine, kernel(TWO, body, variables=".local .align 16 .b8 mine[16];"), found, np.zeros(1), block=64)
    assert found.tolist() == list(range(64))


def test_constants_and_module_variables_have_their_initial_values(engine: str) -> None:
    found = np.zeros(32, np.uint32)
    module = """
.const .align 4 .b8 table[16] = {1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 255, 255, 255, 255};
.global .align 4 .u32 counter = 7;
.global .align 8 .u64 pointer = generic(counter);
.global .f32 half = 0f3F000000;
.visible .global .align 4 .u32 row[2][2] = {{1, 2}, {3}};
"""
    body = (
        POINTERS
        + """
    and.b32 %r2, %r1, 3; mov.u64 %rd6, table; mad.wide.u32 %rd6, %r2, 4, %rd6; ld.const.u32 %r3, [%rd6];
    ld.global.u64 %rd7, [pointer]; ld.u32 %r4, [%rd7]; ld.global.b32 %r5, [half]; ld.global.u32 %r6, [row+8];
    mad.lo.u32 %r3, %r4, 100, %r3; shr.u32 %r5, %r5, 24; mad.lo.u32 %r3, %r5, 1000, %r3; mad.lo.u32 %r3, %r6, 1000000, %r3;
    st.global.u32 [%rd4], %r3;
"""
    )
    run(engine, kernel(TWO, body, module=module), found, np.zeros(1))
    expected = [3063700 + value for value in (1, 2, 3, -1)]
    assert found.tolist() == expected * 8


def test_parameters_are_laid_out_with_natural_alignment(engine: str) -> None:
    found = np.zeros(4, np.float64)
    body = """
    ld.param.u64 %rd1, [out]; ld.param.u8 %r1, [small]; ld.param.f64 %fd1, [wide]; ld.param.v2.f32 {%f1, %f2}, [pair];
    cvt.rn.f64.u32 %fd2, %r1; cvt.f64.f32 %fd3, %f1; cvt.f64.f32 %fd4, %f2;
    st.global.v2.f64 [%rd1], {%fd1, %fd2}; st.global.v2.f64 [%rd1+16], {%fd3, %fd4};
"""
    text = kernel("u64 out, u8 small, f64 wide, align 8 .b8 pair[8]", body)
    pair = np.array([1.5, -3.0], np.float32).view(np.float64)[0]
    ran = run(engine, text, found, np.uint8(200), np.float64(2.5), pair)
    assert found.tolist() == [2.5, 200.0, 1.5, -3.0]
    assert [offset for offset, _ in ran.program.parameters.values()] == [0, 8, 16, 24]


# ---- atomics: one lane after another, in ascending order

_ATOMICS = {
    "add.u32": (5, 5 + sum(range(32)), 5 + 31 * 30 // 2),
    "min.u32": (5, 0, 0),
    "max.u32": (5, 31, 30),
    "and.b32": (0xFF, 0, 0),
    "or.b32": (0x40, 0x5F, 0x5F),
    "xor.b32": (1, 1, 30),
    "exch.b32": (9, 31, 30),
}


@pytest.mark.parametrize("operation", _ATOMICS)
@pytest.mark.parametrize("space", ["global", "shared", "generic"])
def test_atomics_work_lane_after_lane(engine: str, operation: str, space: str) -> None:
    start, end, last_old = _ATOMICS[operation]
    found = np.zeros(32, np.uint32)
    cell = np.array([start], np.uint32)
    # Lane 31 gets what the 31 lanes below it left.
    place = {"global": "%rd2", "generic": "%rd2", "shared": "cell"}[space]
    dot = "" if space == "generic" else f".{space}"
    body = (
        POINTERS
        + f"""
    setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [cell], {start}; bar.sync 0;
    atom{dot}.{operation} %r2, [{place}], %r1; st.global.u32 [%rd4], %r2;
    bar.sync 0; ld.shared.u32 %r3, [cell]; setp.ne.u32 %p2, %r3, {start}; @%p2 st.global.u32 [%rd2], %r3;
"""
    )
    run(engine, kernel(TWO, body, variables=".shared .u32 cell;"), found, cell)
    assert found[0] == start
    assert found[31] == last_old
    assert cell[0] == end


def test_atomic_inc_and_dec_wrap_at_their_bound(engine: str) -> None:
    cells = np.array([0, 2, 9], np.uint32)
    found = np.zeros((3, 32), np.uint32)
    body = (
        POINTERS
        + """
    atom.global.inc.u32 %r2, [%rd2], 4; st.global.u32 [%rd4], %r2;
    atom.global.dec.u32 %r3, [%rd2+4], 4; st.global.u32 [%rd4+128], %r3;
    atom.global.dec.u32 %r4, [%rd2+8], 4; st.global.u32 [%rd4+256], %r4;
"""
    )
    run(engine, kernel(TWO, body), found, cells)
    assert found[0].tolist() == [lane % 5 for lane in range(32)]
    assert found[1].tolist() == [(2 - lane) % 5 for lane in range(32)]
    # A value above the bound falls to the bound.
    assert found[2].tolist() == [9, *[(4 - lane) % 5 for lane in range(31)]]


def test_compare_and_swap_gives_the_old_value(engine: str) -> None:
    found, cell = np.zeros(32, np.uint32), np.array([3], np.uint32)
    body = POINTERS + "add.u32 %r2, %r1, 1; atom.global.cas.b32 %r3, [%rd2], %r1, %r2; st.global.u32 [%rd4], %r3;"
    run(engine, kernel(TWO, body), found, cell)
    # Lanes 0 to 2 compare in vain; from lane 3 on each finds what the one before put there.
    assert found.tolist() == [3, 3, 3, *range(3, 32)]
    assert cell[0] == 32


def test_atomics_on_other_types(engine: str) -> None:
    cells = np.zeros(6, np.uint64)
    cells[3] = 2**63
    cells[5:6].view(np.uint16)[0] = 7
    body = (
        POINTERS
        + """
    cvt.rn.f32.u32 %f1, %r1; cvt.rn.f64.u32 %fd1, %r1; cvt.u64.u32 %rd6, %r1;
    red.global.add.f32 [%rd2], %f1; red.global.add.f64 [%rd2+8], %fd1;
    red.global.add.u64 [%rd2+16], 4294967295; red.global.min.s64 [%rd2+24], %rd6;
    neg.s32 %r2, %r1; red.global.min.s32 [%rd2+32], %r2;
    atom.global.cas.b16 %rs1, [%rd2+40], 7, 8;
"""
    )
    run(engine, kernel(TWO, body), np.zeros(1), cells)
    assert cells[0:1].view(np.float32)[0] == 496.0
    assert cells[1:2].view(np.float64)[0] == 496.0
    assert cells[2] == 32 * 4294967295
    assert cells[3:4].view(np.int64)[0] == -(2**63)
    assert cells[4:5].view(np.int32)[0] == -31
    assert cells[5] == 8


def test_float_atomics_add_in_lane_order(engine: str) -> None:
    cell = np.array([2.0**24], np.float32)
    # 1.0 is lost beside 2**24 each time; added up first, it would not be.
    run(engine, kernel(TWO, POINTERS + "red.global.add.f32 [%rd2], 0f3F800000;"), np.zeros(1), cell)
    assert cell[0] == 2.0**24


# ---- faults

_GUARD = "setp.eq.u32 %p1, %r1, 9;"


@pytest.mark.parametrize(
    ("access", "words"),
    [
        ("@%p1 ld.global.u32 %r2, [%rd4+128];", ["element 41 of y", "41"]),
        ("@%p1 st.global.u32 [%rd4+-64], %r1;", ["element -7 of y"]),
        ("@%p1 red.global.add.u32 [%rd4+4096], 1;", ["element 1033 of y"]),
        ("@%p1 ld.shared.u32 %r2, [tile+128];", ["byte 128 of the block's shared memory"]),
        ("@%p1 st.shared.u32 [%r5+-12], %r1;", ["byte -12 of the block's shared memory, before its beginning"]),
        ("@%p1 st.local.u32 [%rd9+-4], %r1;", ["byte -4 of its local memory, before its beginning"]),
        ("@%p1 ld.local.u32 %r2, [mine+8];", ["byte 8 of its local memory"]),
        ("@%p1 ld.global.u32 %r2, [0];", ["where no array is"]),
        ("@%p1 st.global.v4.u32 [%rd4+88], {%r1, %r1, %r1, %r1};", ["of y"]),
    ],
)
def test_out_of_bounds_names_array_element_and_thread(engine: str, access: str, words: list[str]) -> None:
    variables = ".shared .align 4 .b8 tile[128]; .local .align 4 .b8 mine[8];"
    body = POINTERS + _GUARD + "mov.u32 %r5, tile; mov.u64 %rd9, mine;" + access
    with pytest.raises(KernelFault) as caught:
        run(engine, kernel(TWO, body, variables=variables), np.zeros(32, np.uint32), np.zeros(1), grid=2, names=("y",))
    fault = caught.value.fault
    assert (fault.kind, fault.block, fault.thread) == ("out-of-bounds", (0, 0, 0), (9, 0, 0))
    assert all(word in fault.message for word in words), fault.message
    assert fault.ptx_line is not None


def test_misaligned_access_is_a_fault_of_its_own(engine: str) -> None:
    body = POINTERS + _GUARD + "@%p1 ld.global.v2.u32 {%r2, %r3}, [%rd4];"
    with pytest.raises(KernelFault, match="not a multiple of 8") as caught:
        run(engine, kernel(TWO, body), np.zeros(32, np.uint32), np.zeros(1))
    assert caught.value.fault.kind == "misaligned"


def test_a_read_only_array_can_not_be_stored_to(engine: str) -> None:
    frozen = np.zeros(32, np.uint32)
    frozen.flags.writeable = False
    with pytest.raises(KernelFault, match="read-only"):
        run(engine, kernel(TWO, POINTERS + "st.global.u32 [%rd4], %r1;"), frozen, np.zeros(1))


def test_a_faulting_instruction_stores_nothing(engine: str) -> None:
    found = np.zeros(16, np.uint32)
    with pytest.raises(KernelFault) as caught:
        run(engine, kernel(TWO, POINTERS + "add.u32 %r2, %r1, 1; st.global.u32 [%rd4], %r2;"), found, np.zeros(1))
    assert caught.value.fault.thread == (16, 0, 0)
    assert not found.any()


def test_the_first_fault_in_block_order_is_reported(engine: str) -> None:
    body = (
        POINTERS
        + """
    mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 32, %r1; mad.wide.u32 %rd4, %r3, 4, %rd1;
    st.global.u32 [%rd4], %r1;
"""
    )
    with pytest.raises(KernelFault) as caught:
        run(engine, kernel(TWO, body), np.zeros(100, np.uint32), np.zeros(1), grid=64)
    assert (caught.value.fault.block, caught.value.fault.thread) == ((3, 0, 0), (4, 0, 0))
