"""PTX that is damaged in ways that once ended in other errors than a `GpulabError`."""

import numpy as np
import pytest
from ptx_harness import ENGINE_NAMES, HEADER, kernel, run

import gpulab
from gpulab.errors import CompileError, DeviceError, UnsupportedInstruction
from gpulab.ptx import parse


@pytest.mark.parametrize(
    "line", ["ld;", "ld.param %r1, [a];", "ld.param.u33 %r1, [a];", "ld.param.u32 %r1;", "st.param;"]
)
def test_accesses_of_parameters_that_are_none(line: str) -> None:
    with pytest.raises(UnsupportedInstruction, match="PTX line 15"):
        gpulab.emulator.load(parse(kernel("u64 a", line)), "k")


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_a_sum_that_begins_with_a_register_that_nothing_sets(engine: str) -> None:
    # %r2 is set by itself alone, so it begins as 0; what is added to it differs from lane to lane.
    body = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %laneid; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
    ld.global.u32 %r1, [%rd1];
L:  add.u32 %r2, %r2, %r1; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 5; @%p1 bra L;
    st.global.u32 [%rd1], %r2;
"""
    found = np.arange(32, dtype=np.uint32)
    run(engine, kernel("u64 a", body), found)
    assert found.tolist() == [5 * lane for lane in range(32)]


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_a_register_that_is_set_only_where_nothing_comes(engine: str) -> None:
    body = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %laneid; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
    bra L; ld.global.u32 %r2, [%rd1];
L:  ld.global.u32 %r3, [%rd1]; add.u32 %r4, %r3, %r2; st.global.u32 [%rd1], %r4;
"""
    found = np.arange(32, dtype=np.uint32)
    run(engine, kernel("u64 a", body), found)
    assert found.tolist() == list(range(32))


@pytest.mark.parametrize(
    "call", ["call (r), vprintf, (p);", "call (r), vprintf, (p, p, p);", "call free, (p, p);", "call malloc, (p);"]
)
def test_built_in_functions_with_other_parameters(call: str) -> None:
    body = f".param .b64 p; .param .b32 r; st.param.b64 [p], %rd1; {call}"
    head = "".join(f".extern .func {name}; " for name in ("vprintf", "malloc", "free"))
    with pytest.raises(UnsupportedInstruction, match=r"PTX line 15: .* results and \d parameters, but"):
        gpulab.emulator.load(parse(kernel("u64 a", body, module=head)), "k")


def test_a_name_in_debug_information_that_is_no_text() -> None:
    section = "\n.section .debug_str\n{\n$L__info_string0:\n.b8 1077\n.b8 2147483648\n.b8 0\n}\n"
    assert parse(kernel("u64 a", "") + section).entries == ("k",)


def test_a_parameter_without_a_type() -> None:
    text = HEADER + ".visible .entry k(.param .u64\u00e9 a) { ret; }"
    with pytest.raises(CompileError, match=r"Expected a parameter like '\.param \.u64 name'"):
        gpulab.PtxKernel(text)[1, 1](np.ones(1, np.float32))


FORMAT = ".extern .func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y); .global .align 1 .b8 f[4] = {104, 105, 10, 0};\n"
PASSED = ".param .b64 p; .param .b64 q; .param .b32 r; mov.u64 %rd1, f; st.param.b64 [p], %rd1; st.param.b64 [q], 0;"


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@pytest.mark.parametrize(
    "call",
    [
        f"{PASSED} call (r), vprintf, (p, q);",
        "mov.u64 %rd1, f; call (_), vprintf, (%rd1, 0);",
        "setp.eq.u32 %p1, %r9, 0; mov.u64 %rd1, f; @%p1 call (%r1), vprintf, (%rd1, 0);",
    ],
)
def test_a_printf_whose_result_nobody_reads(engine: str, call: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(engine, kernel("", call, module=FORMAT), block=3)
    assert capsys.readouterr().out == "hi\n" * 3


@pytest.mark.parametrize("engine", ENGINE_NAMES)
def test_two_lists_of_labels_in_scopes_of_their_own(engine: str) -> None:
    """Both scopes call their labels the same, and each jumps to its own."""
    scope = (
        "{{ T: .branchtargets A, B; brx.idx %r1, T; A: add.u32 %r2, %r2, {}; bra END; B: add.u32 %r2, %r2, {}; END: }}"
    )
    body = f"""
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %laneid; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
    {scope.format(1, 10)} {scope.format(100, 1000)}
    st.global.u32 [%rd1], %r2;
"""
    found = np.zeros(2, np.uint32)
    run(engine, kernel("u64 a", body), found, block=2)
    assert found.tolist() == [101, 1010]


def test_a_variable_larger_than_this_computer() -> None:
    module = parse(kernel("", "", module=".global .b8 v[137438953472];"))
    resource = pytest.importorskip("resource")
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (64 << 30, limit[1]))
    try:
        with pytest.raises(DeviceError, match=r"Variable 'v' of 137,438,953,472 bytes does not fit"):
            gpulab.emulator.place_variables(module, gpulab.emulator.Memory())
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@pytest.mark.parametrize(("predicate", "chosen"), [("0", 5), ("1", 3), ("7", 3), ("-1", 3)])
def test_a_constant_in_the_place_of_a_predicate(engine: str, predicate: str, chosen: int) -> None:
    body = (
        f"ld.param.u64 %rd1, [a]; selp.u32 %r1, 3, 5, {predicate}; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;"
    )
    found = np.zeros(8, np.uint32)
    run(engine, kernel("u64 a", f"{body} st.global.u32 [%rd1], %r1;"), found, block=1)
    assert found.tolist() == [chosen if place == chosen else 0 for place in range(8)]


@pytest.mark.parametrize("what", ["wait_all", "commit_group", "wait_group 0", "mbarrier.arrive.shared.b64 [bar]"])
def test_the_check_of_a_kernel_that_waits_for_copies_and_makes_none(what: str) -> None:
    text = kernel("u64 a", f"cp.async.{what};", variables=".shared .align 8 .b64 bar;")
    assert gpulab.check(gpulab.PtxKernel(text)[2, 64], np.zeros(1)).ok


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@pytest.mark.parametrize("guard", ["", "@!%p4", "@%p3"])
def test_parameters_by_an_address_that_is_the_same_for_all_lanes(engine: str, guard: str) -> None:
    """As arrays in a kernel's parameters are read in a loop: the index is in a register."""
    body = f"""
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; setp.ne.u32 %p3, %r1, 1;
    mov.b64 %rd3, b; mov.u32 %r2, 0;
L:  {guard} ld.param.u32 %r3, [%rd3+4]; add.u32 %r4, %r4, %r3; add.u64 %rd3, %rd3, 4; add.u32 %r2, %r2, 1;
    setp.lt.u32 %p1, %r2, 2; @%p1 bra L;
    st.global.u32 [%rd1], %r4;
"""
    found = np.zeros(3, np.uint32)
    text = kernel("u64 a, align 4 .b8 b[12]", body)
    run(engine, text, found, np.array([(1, 20, 300)], "u4,u4,u4")[0], block=3)
    assert found.tolist() == ([320, 0, 320] if guard == "@%p3" else [320] * 3)


@pytest.mark.parametrize("destination", ["_", "_|%p1", "%r1|_", "%r1|%p1"])
def test_the_check_of_a_shuffle_whose_result_nobody_wants(destination: str) -> None:
    text = kernel("u64 a", f"shfl.sync.up.b32 {destination}, %r2, 1, 0, -1;")
    assert gpulab.check(gpulab.PtxKernel(text)[1, 32], np.zeros(1)).ok
