"""PTX text to records: spelling, scopes, declarations, line information, and errors that show the place."""

from __future__ import annotations

import time

import pytest

from gpulab.errors import PtxSyntaxError
from gpulab.ptx import parse
from gpulab.ptx.syntax import (
    Address,
    Function,
    Group,
    Guard,
    Immediate,
    Location,
    Negated,
    Pair,
    Register,
    Special,
    Symbol,
)

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"


def function(body: str, before: str = "", after: str = "", registers: str = ".reg .b32 %r<9>;") -> Function:
    """The kernel `k` of a module; the body begins on line 6."""
    text = f"{HEADER}{before}.visible .entry k(.param .u64 a) {{ {registers} .reg .pred %p<5>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n\n{body}\n}}\n{after}"
    return parse(text).functions["k"]


def operands(line: str) -> tuple:
    return function(line).instructions[0].operands


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("add.s32 %r1, %r2, -5;", (Register("%r1"), Register("%r2"), Immediate(-5))),
        ("mov.u32 %r1, %tid.x;", (Register("%r1"), Special("%tid.x"))),
        ("mov.f32 %f1, 0f3FC00000;", (Register("%f1"), Immediate(1.5, 0x3FC00000))),
        ("mov.f32 %f1, 0fFF800000;", (Register("%f1"), Immediate(float("-inf"), 0xFF800000))),
        ("mov.f64 %rd1, 0d3FF8000000000000;", (Register("%rd1"), Immediate(1.5, 0x3FF8000000000000))),
        ("mov.f32 %f1, -2.5e3;", (Register("%f1"), Immediate(-2500.0))),
        ("mov.f32 %f1, -0f3FC00000;", (Register("%f1"), Immediate(-1.5, 0xBFC00000))),
        ("mov.u32 %r1, 0xFFU;", (Register("%r1"), Immediate(255))),
        ("mov.u32 %r1, 017;", (Register("%r1"), Immediate(15))),
        ("mov.u32 %r1, 0b101;", (Register("%r1"), Immediate(5))),
        ("mov.u32 %r1, WARP_SZ;", (Register("%r1"), Immediate(32))),
        ("ld.global.u32 %r1, [%rd1+-8];", (Register("%r1"), Address(Register("%rd1"), -8))),
        ("ld.global.u32 %r1, [%rd1-8];", (Register("%r1"), Address(Register("%rd1"), -8))),
        ("ld.param.u64 %rd1, [a];", (Register("%rd1"), Address(Symbol("a")))),
        ("ld.u32 %r1, [64];", (Register("%r1"), Address(None, 64))),
        ("ld.v2.u32 {%r1, _}, [%rd1];", (Group((Register("%r1"), Register("_"))), Address(Register("%rd1")))),
        ("setp.lt.s32 %p1|%p2, %r1, 3;", (Pair(Register("%p1"), Register("%p2")), Register("%r1"), Immediate(3))),
        ("selp.b32 %r1, 1, 0, !%p1;", (Register("%r1"), Immediate(1), Immediate(0), Negated(Register("%p1")))),
        ("mov.b64 %rd1, a+4;", (Register("%rd1"), Symbol("a", 4))),
    ],
)
def test_operands(line: str, expected: tuple) -> None:
    assert operands(line) == expected


def test_instruction_has_opcode_modifiers_guard_span_and_text() -> None:
    found = function("  @!%p1  ld.global.nc.L1::no_allocate.v4.f32  {%f1,%f2,%f3,%f4},\n [%rd1];").instructions[0]
    assert (found.opcode, found.modifiers) == ("ld", ("global", "nc", "L1::no_allocate", "v4", "f32"))
    assert found.guard == Guard(Register("%p1"), negated=True)
    assert (found.span.line, found.span.column) == (6, 3)
    assert found.text == "@!%p1 ld.global.nc.L1::no_allocate.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1]"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("call.uni (a), f, (a, a);", (Group((Symbol("a"),)), Symbol("f"), Group((Symbol("a"), Symbol("a"))))),
        ("call f, (a);", (Group(()), Symbol("f"), Group((Symbol("a"),)))),
        ("call.uni f;", (Group(()), Symbol("f"), Group(()))),
        (
            "call (a), %rd1, (a), proto;",
            (Group((Symbol("a"),)), Register("%rd1"), Group((Symbol("a"),)), Symbol("proto")),
        ),
    ],
)
def test_all_forms_of_a_call_become_one(line: str, expected: tuple) -> None:
    prototype = "proto: .callprototype (.param .b32 _) _ (.param .b32 _);"
    assert function(f"{prototype} {line}", before=".extern .func f;").instructions[0].operands == expected


# ---- scopes


def test_registers_of_inner_scopes_hide_outer_ones() -> None:
    found = function("{ .reg .b64 %r1; mov.b64 %r1, 1; } mov.b32 %r1, 2; { .reg .f32 %r1; mov.f32 %r1, 0f00000000; }")
    names = [instruction.operands[0].name for instruction in found.instructions]
    assert names[1] == "%r1"
    assert len(set(names)) == 3
    assert [found.registers[name] for name in names] == ["b64", "b32", "f32"]


def test_labels_of_inner_scopes_are_their_own() -> None:
    body = "L: add.s32 %r1, %r1, 1; { @%p1 bra L; L: add.s32 %r2, %r2, 1; } { L: bra L; } bra L;"
    found = function(body)
    targets = [i.operands[0].name for i in found.instructions if i.opcode == "bra"]
    assert [found.labels[name] for name in targets] == [2, 3, 0]


def test_call_variables_of_each_call_are_apart() -> None:
    found = function("{ .param .b32 p0; st.param.b32 [p0], %r1; } { .param .b64 p0; st.param.b64 [p0], %rd1; }")
    names = [instruction.operands[0].base.name for instruction in found.instructions]
    assert [found.variables[name].size for name in names] == [4, 8]


# ---- declarations


def test_parameters_of_every_spelling() -> None:
    text = (
        HEADER
        + ".entry k(.param .u64 .ptr .global .align 4 a, .param .u64 .ptr .align 1 b, .param .align 16 .b8 c[32], .param .f32 d) { ret; }"
    )
    found = parse(text).functions["k"].parameters
    assert [(p.name, p.type, p.size, p.align) for p in found] == [
        ("a", "u64", 8, 8),
        ("b", "u64", 8, 8),
        ("c", "b8", 32, 16),
        ("d", "f32", 4, 4),
    ]


def test_directives_of_a_kernel() -> None:
    text = HEADER + ".visible .entry k() .maxntid 256, 1, 1 .minnctapersm 2 .reqntid 32 { ret; }"
    assert parse(text).functions["k"].directives == {"maxntid": (256, 1, 1), "minnctapersm": (2,), "reqntid": (32,)}


def test_initial_values_and_relocations() -> None:
    module = parse(
        HEADER
        + """
.visible .global .align 4 .u32 one = 7;
.const .align 8 .f64 tenth[3] = {0d3FB999999999999A, 1.5};
.global .align 2 .b8 bytes[] = {1, 2, 255};
.global .align 4 .s16 nested[2][2] = {{1, -1}, {2}};
.global .align 8 .u64 places[3] = {one, generic(bytes)+1, 0};
.common .global .align 8 .u64 shared_by_modules;
.extern .shared .align 16 .b8 dynamic[];
.weak .global .attribute(.managed) .b32 managed;
"""
    )
    found = module.variables
    assert found["one"].initial == b"\7\0\0\0"
    assert found["tenth"].initial == bytes.fromhex("9a9999999999b93f000000000000f83f")
    assert found["tenth"].size == 24
    assert (found["bytes"].count, found["bytes"].initial) == (3, b"\1\2\xff")
    assert found["nested"].initial == b"\1\0\xff\xff\2\0"
    assert found["nested"].size == 8
    assert found["places"].relocations == ((0, Symbol("one"), False), (8, Symbol("bytes", 1), True))
    assert found["shared_by_modules"].initial is None
    assert (found["dynamic"].count, found["dynamic"].extern) == (0, True)


def test_branch_targets_and_prototypes_are_kept() -> None:
    text = "T: .branchtargets A, B; brx.idx %r1, T; A: ret; B: ret;"
    found = function(text)
    assert found.branch_targets == {"T": ("A", "B")}
    assert found.labels == {"A": 1, "B": 2}


def test_functions_may_be_declared_before_and_used_before_they_stand() -> None:
    text = (
        HEADER
        + ".func (.param .b32 r) f(.param .b32 x)\n;\n.entry k() { .reg .b32 %r1; call f, (); ret; }\n.func (.param .b32 r) f(.param .b32 x) { ret; }"
    )
    module = parse(text)
    assert module.entries == ("k",)
    assert len(module.functions["f"].instructions) == 1


# ---- line information


def test_locations_follow_loc_lines_with_their_inline_chain() -> None:
    body = """
.loc 1 10 5
mov.u32 %r1, 1;
.loc 2 20 3, function_name $L__info_string0, inlined_at 1 10 5
mov.u32 %r1, 2;
.loc 2 30 1, function_name $L__info_string1, inlined_at 2 20 3
mov.u32 %r1, 3;
.loc 1 0 5
mov.u32 %r1, 4;
"""
    after = """
.file 1 "/home/me/kernel.cu"
.file 2 "/home/me/device.cuh", 1700000000, 1234
.section .debug_str
{
$L__info_string0:
.b8 105,110,110,101,114,0
$L__info_string1:
.b8 109,111
.b8 115,116,0
}
.section .debug_info { .b32 .debug_abbrev .b64 $L__func_begin0 .b8 1 }
"""
    locations = [instruction.location for instruction in function(body, after=after).instructions]
    call = Location("/home/me/kernel.cu", 10, 5)
    inner = Location("/home/me/device.cuh", 20, 3, "inner", call)
    assert locations == [call, inner, Location("/home/me/device.cuh", 30, 1, "most", inner), None]


# ---- errors


@pytest.mark.parametrize(
    ("body", "line", "column", "words"),
    [
        ("add.s32 %r1, %r2, %r99;", 6, 19, "'%r99' is not declared"),
        ("add.s32 %r1 %r2;", 6, 13, "Expected ';'"),
        ("mov.u32 %r1, ?;", 6, 14, "'?' begins no PTX token"),
        ("\n  bra NOWHERE;", 7, 3, "needs a label"),
        ("ld.global.u32 %r1, [%rd1;", 6, 25, "Expected ']'"),
        ("mov.u32 %r1, missing;", 6, 14, "'missing' is not declared"),
        ("@%q1 bra L; L: ret;", 6, 2, "'%q1' is not declared"),
        (".reg .b32 %r1;", 6, 11, "declared twice"),
        ("L: ret; L: ret;", 6, 9, "declared twice"),
        (".reg .b31 %z;", 6, 6, "'.b31' is not known"),
        (".frob 3;", 6, 1, "'.frob' is not known inside a function"),
        ("call;", 6, 5, "Expected 'call (returns), target, (arguments)'"),
        ("add.s32 %r1, %r2, ", 7, 1, "Expected an operand"),
        ("mov.u32\t%r1, %r2 %r3;", 6, 18, "Expected ';'"),
        (".reg .v2 .f32 %z;", 6, 6, "Vector registers are not supported"),
        (".loc 1 2 x", 6, 10, "Expected an integer"),
        (".reg .b32 %q<2147483648>;", 6, 14, "Expected an integer from 0 to 1,000,000"),
        (".shared .b8 s[-4];", 6, 16, "Expected an integer from 0 to"),
        (".local .align 3 .b8 s[4];", 6, 15, "Expected a power of two"),
    ],
)
def test_errors_show_line_column_and_caret(body: str, line: int, column: int, words: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        function(body)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in str(caught.value)
    assert f"PTX line {line}, column {column}" in str(caught.value)
    shown, caret = str(caught.value).split("\n")[-2:]
    source = body.split("\n")[line - 6] if line - 6 < len(body.split("\n")) else "}"
    assert shown.strip() == source.expandtabs(4).strip()
    assert caret.index("^") - 4 == len(source[: column - 1].expandtabs(4))


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, 1, ".version"),
        (HEADER + ".entry k(", 4, 10, "Expected .param, but the end of the text came"),
        (HEADER + ".entry k() {", 4, 13, "Expected an instruction"),
        (HEADER + ".global .u32 x[2] = {1, 2", 4, 26, "Expected '}'"),
        (HEADER + "add.s32 %r1, %r2;", 4, 1, "Expected a directive"),
        (HEADER + ".pragma", 4, 8, "Expected ';'"),
        (".version 8.8\n.target sm_80\n.address_size 32", 3, 15, "64-bit"),
        (HEADER + ".entry k() .frob { ret; }", 4, 12, "'.frob' is not known for a function"),
    ],
)
def test_errors_at_module_level(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in str(caught.value)


def test_ten_thousand_instructions_are_read_in_a_second() -> None:
    name = "_ZN8__main__" + "2mmB2v1B106cw51cXTLSUwv1sDUaKthoaNgoKmjgMVuW1AiA8rAEg2Uj" * 4
    lines = [".loc 1 12 3\n", f"ld.param.u64 %rd1, [{name}];\n", "ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+128];\n",
             "@%p1 fma.rn.ftz.f32 %f3, %f1, %f2, 0f3F800000;\n", "setp.ge.and.s32 %p1, %r1, 77, %p2;\n"]  # fmt: skip
    text = f"{HEADER}.entry k(.param .u64 {name}) {{ .reg .b32 %r<9>; .reg .pred %p<5>; .reg .b64 %rd<9>; .reg .f32 %f<9>;\n{''.join(lines) * 2500} ret; }}"
    start = time.process_time()
    module = parse(text)
    assert time.process_time() - start < 1.0
    assert len(module.functions["k"].instructions) == 10001
