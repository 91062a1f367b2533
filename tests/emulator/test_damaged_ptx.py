"""PTX that is damaged in ways that once ended in other errors than a `GpulabError`."""

import numpy as np
import pytest
from ptx_harness import ENGINE_NAMES, HEADER, kernel, run

import gpulab
from gpulab.errors import CompileError, UnsupportedInstruction
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
