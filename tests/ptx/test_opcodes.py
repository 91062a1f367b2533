"""The table of instructions: what a form says, what is refused, and that the table is sound as a whole."""

from __future__ import annotations

import pytest

from gpulab.errors import UnsupportedInstruction
from gpulab.ptx import parse
from gpulab.ptx.opcodes import CARRY, Form, form, read_registers, rows, written_registers
from gpulab.ptx.syntax import Instruction

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"


def instruction(line: str) -> Instruction:
    text = f"""{HEADER}.visible .entry k(.param .u64 a) {{
.reg .pred %p<5>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>;
{line}
L: ret; }}
"""
    return parse(text).functions["k"].instructions[0]


def form_of(line: str) -> Form:
    return form(instruction(line))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("add.s32 %r1, %r2, %r3;", {"type": "s32", "kind": "integer", "pipe": "int", "flops": 0, "rounding": None}),
        ("add.f32 %f1, %f2, %f3;", {"kind": "fadd", "flops": 1, "rounding": "rn", "ftz": False}),
        (
            "fma.rz.ftz.sat.f32 %f1, %f2, %f3, %f4;",
            {"kind": "ffma", "flops": 2, "rounding": "rz", "ftz": True, "saturate": True},
        ),
        ("mul.f64 %fd1, %fd2, %fd3;", {"kind": "dmul", "pipe": "fp64", "flops": 1}),
        ("fma.rn.f16x2 %r1, %r2, %r3, %r4;", {"kind": "hfma", "pipe": "fp16", "flops": 4}),
        ("mad.wide.u16 %r1, %h1, %h2, %r2;", {"mode": "wide", "type": "u16"}),
        (
            "ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];",
            {"space": "global", "vector": 4, "access_bytes": 16, "kind": "load", "non_coherent": True},
        ),
        ("ld.u8 %r1, [%rd1];", {"space": "generic", "access_bytes": 1, "pipe": "lsu"}),
        ("ld.param.u64 %rd1, [a];", {"space": "param", "pipe": "uniform"}),
        (
            "ld.relaxed.gpu.global.L1::no_allocate.u32 %r1, [%rd1];",
            {"semantics": "relaxed", "scope": "gpu", "space": "global"},
        ),
        (
            "st.shared::cta.v2.b64 [%r1], {%rd1, %rd2};",
            {"space": "shared", "vector": 2, "access_bytes": 16, "kind": "store"},
        ),
        (
            "atom.global.sys.add.u32 %r1, [%rd1], 1;",
            {"operation": "add", "scope": "sys", "space": "global", "kind": "atomic", "access_bytes": 4},
        ),
        ("red.add.f64 [%rd1], %fd1;", {"space": "generic", "kind": "reduction", "type": "f64"}),
        ("setp.ltu.and.ftz.f32 %p1|%p2, %f1, %f2, !%p3;", {"comparison": "ltu", "boolean": "and", "ftz": True}),
        ("set.eq.f16.f16 %h1, %h2, %h3;", {"comparison": "eq", "type": "f16", "source_type": "f16"}),
        (
            "cvt.rzi.ftz.s64.f32 %rd1, %f1;",
            {"rounding": "rzi", "type": "s64", "source_type": "f32", "kind": "conversion"},
        ),
        ("cvt.f32.f16 %f1, %h1;", {"rounding": "rn"}),
        ("cvt.u32.u16 %r1, %h1;", {"rounding": None}),
        ("rcp.approx.ftz.f32 %f1, %f2;", {"mode": "approx", "pipe": "sfu", "kind": "special"}),
        ("shf.l.wrap.b32 %r1, %r2, %r3, 5;", {"operation": "l", "mode": "wrap"}),
        ("bfind.shiftamt.u32 %r1, %r2;", {"shift_amount": True}),
        ("barrier.cta.red.popc.aligned.u32 %r1, 0, %p1;", {"mode": "red", "operation": "popc", "kind": "barrier"}),
        ("shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;", {"mode": "bfly", "kind": "shuffle"}),
        ("cvta.to.shared.u64 %rd1, %rd2;", {"mode": "to", "space": "shared", "access_bytes": 0}),
        ("@%p1 bra L;", {"kind": "branch", "pipe": "control"}),
        (
            "madc.hi.cc.u32 %r1, %r2, %r3, %r4;",
            {"mode": "hi", "carry_out": True, "section": "extended-precision-arithmetic-instructions-madc"},
        ),
    ],
)
def test_a_form_says_what_an_instruction_does(line: str, expected: dict[str, object]) -> None:
    found = form_of(line)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("line", "types"),
    [
        ("mad.wide.s32 %rd1, %r1, %r2, %rd2;", ["s64", "s32", "s32", "s64"]),
        ("shl.b64 %rd1, %rd2, %r1;", ["b64", "b64", "u32"]),
        ("popc.b64 %r1, %rd1;", ["u32", "b64"]),
        ("slct.f32.s32 %f1, %f2, %f3, %r1;", ["f32", "f32", "f32", "s32"]),
        ("set.lt.u32.f64 %r1, %fd1, %fd2;", ["u32", "f64", "f64", "pred"]),
        ("match.all.sync.b64 %r1|%p1, %rd1, -1;", ["b32", "b64", "u32"]),
        ("lop3.b32 %r1, %r2, %r3, %r4, 0x96;", ["b32", "b32", "b32", "b32", "imm"]),
        ("vote.sync.all.pred %p1, !%p2, -1;", ["pred", "pred", "u32"]),
    ],
)
def test_roles_have_the_types_of_their_operands(line: str, types: list[str]) -> None:
    assert [role.type for role in form_of(line).roles] == types


@pytest.mark.parametrize(
    ("line", "written", "read"),
    [
        ("@!%p1 add.s32 %r1, %r2, %r3;", ["%r1"], ["%p1", "%r2", "%r3"]),
        ("setp.lt.and.s32 %p1|%p2, %r1, 5, !%p3;", ["%p1", "%p2"], ["%r1", "%p3"]),
        ("ld.v2.u32 {%r1, _}, [%rd1+4];", ["%r1"], ["%rd1"]),
        ("st.v2.u32 [%rd1], {%r1, %r2};", [], ["%rd1", "%r1", "%r2"]),
        ("mov.b64 {%r1, %r2}, %rd1;", ["%r1", "%r2"], ["%rd1"]),
        ("atom.add.u32 _, [%rd1], %r1;", [], ["%rd1", "%r1"]),
        ("add.cc.u32 %r1, %r2, 1;", ["%r1", CARRY], ["%r2"]),
        ("subc.u32 %r1, %r2, 1;", ["%r1"], ["%r2", CARRY]),
        ("bar.red.or.pred %p1, 0, %p2;", ["%p1"], ["%p2"]),
    ],
)
def test_registers_written_and_read(line: str, written: list[str], read: list[str]) -> None:
    found = instruction(line)
    assert list(written_registers(found, form(found))) == written
    assert list(read_registers(found, form(found))) == read


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("wgmma.fence.sync.aligned;", ["does not support", "wgmma.fence"]),
        ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1}, [%rd1], %r2;", ["wmma.load.a", "takes 8 registers"]),
        ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [a, {%f1, %f2}];", ["tex.2d.v4.f32.f32"]),
        ("add.rn.s32 %r1, %r2, %r3;", ["add.rn.s32", "Supported forms: add."]),
        ("mul.wide.s64 %rd1, %rd2, %rd3;", ["mul.wide.s64"]),
        ("min.relu.u32 %r1, %r2, %r3;", ["min.relu.u32"]),
        ("addd.s32 %r1, %r2, %r3;", ["Near names", "add"]),
        ("cvt.f32.s32 %f1, %r1;", ["cvt.f32.s32"]),
        ("setp.lt.b32 %p1, %r1, %r2;", ["setp.lt.b32"]),
        ("neg.ftz.bf16 %h1, %h2;", ["neg.ftz.bf16"]),
        ("add.s32 %r1, %r2;", ["has 2 operands", "takes 3"]),
        ("add.s32 %r1;", ["has 1 operand, but", "takes 3"]),
        ("add.s32 {%r1, %r2}, %r2, %r3;", ["Operand 'd'"]),
        ("ld.v4.u32 {%r1, %r2}, [%rd1];", ["Operand 'd'"]),
        ("ld.u32 %r1, %rd1;", ["Operand 'a'"]),
        ("lop3.b32 %r1, %r2, %r3, %r4, %r5;", ["Operand 'e'"]),
        ("setp.lt.and.s32 %p1, %r1, 5;", ["needs a predicate"]),
        ("cvt.f16.f32 %h1, %f1;", ["cvt.f16.f32"]),
    ],
)
def test_what_the_table_does_not_have_is_refused_by_name_and_line(line: str, words: list[str]) -> None:
    with pytest.raises(UnsupportedInstruction) as caught:
        form_of(line)
    assert caught.value.line == 6
    assert "PTX line 6" in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_refusal_names_the_users_line_too() -> None:
    text = (
        f'{HEADER}.entry k() {{ .reg .b32 %r<2>;\n.loc 1 33 1\nfrobnicate %r1; ret; }}\n.file 1 "/home/me/kernel.cu"\n'
    )
    with pytest.raises(UnsupportedInstruction, match=r"kernel\.cu, line 33"):
        form(parse(text).functions["k"].instructions[0])


# ---- the table as a whole


def test_every_row_names_its_section_pipe_and_kind() -> None:
    pipes = {"fp32", "fp64", "fp16", "int", "sfu", "lsu", "uniform", "control", "barrier", "move", "convert", "tensor"}
    kinds = {
        "fadd", "fmul", "ffma", "dadd", "dmul", "dfma", "hadd", "hmul", "hfma", "integer", "conversion", "load", "store",
        "atomic", "reduction", "branch", "barrier", "shuffle", "vote", "move", "special", "other", "hmma", "dmma", "imma", "bmma",
    }  # fmt: skip
    for opcode, entries in rows().items():
        for row in entries:
            assert row.section.endswith(f"-instructions-{opcode}")
            assert row.pipe in pipes
            assert row.kind in kinds
