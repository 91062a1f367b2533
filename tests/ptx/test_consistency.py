"""Declarations and calls that contradict themselves: refused with their line, as ptxas refuses them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpulab.emulator import load
from gpulab.errors import GpulabError, PtxSyntaxError, UnsupportedInstruction
from gpulab.ptx import parse
from gpulab.toolchain import locate

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"
FUNCTIONS = """
.extern .func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y);
.extern .func (.param .b64 r) malloc (.param .b64 x);
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
.func (.param .b32 back) word(.param .b32 x) {
    .reg .b32 %z; ld.param.b32 %z, [x]; st.param.b32 [back], %z; ret;
}
.func pair(.param .align 8 .b8 x[16]) { .reg .b64 %z; ld.param.b64 %z, [x+8]; ret; }
.func register(.reg .b32 x) { ret; }
"""


def with_declaration(declaration: str) -> str:
    return f"{HEADER}{declaration}\n.visible .entry k() {{ ret; }}\n"


def with_body(body: str) -> str:
    return f"""{HEADER}{FUNCTIONS}
.visible .entry k(.param .u64 a) {{
.reg .pred %p<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;
{{ {body} }}
ret;
}}
"""


BODY_LINE = with_body("").split("\n").index("{  }") + 1


def ptxas_takes(text: str, folder: Path) -> bool:
    (folder / "case.ptx").write_text(text)
    command = [locate.tool("ptxas"), "-arch=sm_80", "-O0", folder / "case.ptx", "-o", folder / "case.cubin"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


# ---- declarations

REFUSED = {
    ".global .u32 v[2] = {1, 2, 3};": "'v' has room for 2 values here, but more came",
    ".global .u32 v[2][2] = {{1, 2, 3}, {4}};": "'v' has room for 2 values here",
    ".global .u32 v[2][2] = {1, 2, 3, 4};": "Expected '{'",
    ".global .v2 .f32 v = {1.0, 2.0, 3.0};": "'v' has room for 2 values here",
    ".global .u32 v = {1};": "Expected a constant, but '{' came",
    ".global .u32 v[4] = 7;": "Expected '{'",
    ".global .u32 v = 1.5;": "'v' is of type .u32: expected an integer",
    ".global .u64 v = 0f3F800000;": "expected an integer",
    ".global .u8 v = 1e999;": "expected an integer",
    ".global .f16 v = 1e10;": "expected an integer",
    ".global .f32 v = 3;": "'v' is of type .f32: expected a floating-point number",
    ".global .u64 v = 99999999999999999999999999;": "at most 64 bits",
    ".global .u64 v = nowhere;": "'nowhere' is no function and no variable",
    ".shared .u32 s; .global .u64 v = s;": "'s' is no function and no variable in .global or .const",
    ".global .u32 w; .global .b8 v[8] = {w};": "'v' of type .b8 has no room for an address",
    ".global .u32 w; .global .u64 v = w+99999999999999999999999;": "Expected an integer from 0",
    ".shared .u32 v = 3;": "'v' can have no initial value",
    ".extern .global .u32 v = 3;": "'v' can have no initial value",
    ".global .pred v;": "has no predicates",
    ".global .align 3 .u32 v;": "power of two",
    ".global .align 0 .u32 v;": "power of two",
    ".global .u32 v[-1];": "from 0 to",
    ".global .u32 v[1.5];": "Expected an integer",
    ".global .u32 v[0];": "'v' needs a size",
    ".shared .u32 v[];": "'v' needs a size",
    ".global .u32 v[2][];": "Expected an integer",
    ".global .u32 v; .global .u32 v;": "'v' is declared twice",
    ".extern .global .u64 v; .global .u32 v = 3;": "another space or type",
    ".local .u32 v;": "not known at module level",
    ".const .u32 v[20000];": "at most 64 KiB of constant memory",
    ".func f() { ret; } .func f() { ret; }": "'f' is defined twice",
    ".func f(.param .b32 x, .param .b32 x) { ret; }": "two parameters 'x'",
}
TAKEN = [
    ".global .u32 v[2][2] = {{1}, {2}};",
    ".global .u32 v[][2] = {{1, 2}, {3, 4}, {5, 6}};",
    ".global .v2 .f32 v[2] = {{1.0, 2.0}, {3.0, 4.0}};",
    ".global .f32 v = 1e300;",
    ".global .f32 v = 0d3FF0000000000000;",
    ".global .b32 v = 1.5;",
    ".global .s8 v[2] = {-129, 300};",
    ".global .b16 v[2] = {0x3c00, 2};",
    ".global .u32 w[4]; .global .u64 v[2] = {w, w+8};",
    ".func f() { ret; } .global .u64 v = f;",
    ".extern .shared .align 16 .b8 v[];",
    ".common .global .u32 v;",
    ".global .u32 v = 1, w = 2;",
]


@pytest.mark.parametrize("declaration", REFUSED)
def test_a_declaration_that_contradicts_itself_is_refused(declaration: str, tmp_path: Path) -> None:
    text = with_declaration(declaration)
    with pytest.raises(PtxSyntaxError) as caught:
        parse(text)
    assert caught.value.line == 4
    assert REFUSED[declaration] in str(caught.value)
    assert not ptxas_takes(text, tmp_path)


@pytest.mark.parametrize("declaration", TAKEN)
def test_what_ptxas_takes_is_no_contradiction(declaration: str, tmp_path: Path) -> None:
    parse(with_declaration(declaration))
    assert ptxas_takes(with_declaration(declaration), tmp_path)


@pytest.mark.parametrize(
    ("declaration", "words"),
    [
        (".global .u32 v[1099511627776];", "from 0 to 137,438,953,472"),
        (".global .u32 v[100000000000][100000000000];", "'v' would have more than 137,438,953,472 bytes"),
        (".func f(.param .b8 x[1000000000]) { ret; }", "'x' would have more than 65,536 bytes"),
        (f".global .u32 v{17 * '[1]'};", "at most 16 dimensions"),
        (f".func f() {{ {300 * '{'} {300 * '}'} ret; }}", "nested more than 100 deep"),
        (f".func f() {{ mov.b64 {300 * '{'}{300 * '}'}, 0; }}", "so many braces in braces"),
        (".func f() { .global .u32 v; ret; }", "declared before the functions"),
        (".func f() { T: .branchtargets T; ret; }", "'T' in the list T is no label"),
        (".func f() { .reg .b32 %r; L: brx.idx %r, L; }", "needs a list of labels"),
    ],
)
def test_what_would_end_in_other_errors_is_refused(declaration: str, words: str) -> None:
    with pytest.raises(PtxSyntaxError, match=words) as caught:
        parse(with_declaration(declaration))
    assert caught.value.line == 4


# As nvdisasm shows the section .nv.global.init of what ptxas makes of them.
@pytest.mark.parametrize(
    ("declaration", "initial"),
    [
        (".s16 v[2][2] = {{1}, {2, -1}}", "01000200ffff"),
        (".u8 v[2][2][2] = {{{1}}, {{2, 3}, {4}}}", "01020304"),
        (".f32 v = 1e300", "0000807f"),
        (".f32 v = -1.1", "cdcc8cbf"),
        (".b32 v = 1.5", "0000c03f"),
        (".b64 v = 1.5", "000000000000f83f"),
        (".f32 v = 0d3FF8000000000000", "0000c03f"),
        (".f64 v = 0f3FC00000", "0000c03f00000000"),
        (".u8 v[4] = {-129, 257}", "7f01"),
    ],
)
def test_initial_bytes_are_those_of_the_assembler(declaration: str, initial: str) -> None:
    found = parse(with_declaration(f".global {declaration};")).variables["v"].initial
    assert found == bytes.fromhex(initial)


def test_addresses_among_initial_values() -> None:
    declared = ".global .u32 w[3]; .global .u64 v[][2] = {{w+4, 7}, {6, w+8}};"
    found = parse(with_declaration(declared)).variables["v"]
    assert [(at, symbol.offset) for at, symbol, _ in found.relocations] == [(0, 4), (24, 8)]
    assert (found.count, found.initial) == (4, bytes(8) + b"\7" + bytes(7) + b"\6" + bytes(15))


# ---- calls

PASS = ".param .b64 p; .param .b64 q; .param .b32 r; st.param.b64 [p], %rd1; st.param.b64 [q], %rd2; "
REFUSED_CALLS = {
    PASS.replace("b32 r", "b32 r[2]") + "call (r), vprintf, (p, q);": "a result of 'vprintf' is .b32",
    PASS.replace("b32 r", "b64 r") + "call (r), vprintf, (p, q);": "a result of 'vprintf' is .b32",
    PASS.replace("b64 p;", "b64 p[2];") + "call (r), vprintf, (p, q);": "parameter 1 of 'vprintf' is .b64",
    "call (%rd1), vprintf, (%rd2, %rd3);": "a result of 'vprintf' is .b32",
    "call (%r1), vprintf, (%r2, %rd3);": "parameter 1 of 'vprintf' is .b64",
    "call (%p1), vprintf, (%rd2, %rd3);": "a result of 'vprintf' is .b32",
    "call (%r1), vprintf, (_, %rd3);": "parameter 1 of 'vprintf' is .b64",
    "call (%r1), vprintf, (%rd2, text);": "parameter 2 of 'vprintf' is .b64",
    "call (5), vprintf, (%rd2, %rd3);": "a result of 'vprintf' is .b32",
    "call (%r1), vprintf, (%rd2, %tid.x);": "parameter 2 of 'vprintf' is .b64",
    "call (%rd1), malloc, (%r2);": "parameter 1 of 'malloc' is .b64",
    ".param .b64 p; .param .b32 r; call (r), word, (p);": "p has 8 bytes, but what it is passed for has 4",
    ".param .b32 p; .param .b16 r; call (r), word, (p);": "r has 2 bytes, but what it is passed for has 4",
    ".local .align 8 .b8 p[16]; call pair, (p);": "only .param variables",
    "call pair, (text);": "only .param variables",
    "call pair, (a);": "only .param variables",
    "call register, (%rd1);": "register %rd1 has type .b64, but .b32 is needed",
    "call register, (_);": "only registers and constants",
    "call register, (a);": "only registers and constants",
    "call k, (a);": "'k' is a kernel",
    "st.param.u64 [a], %rd1;": "parameters of a kernel can only be loaded",
    "mov.u32 %r1, _;": "does not fit",
    "neg.f64 %rd1, text;": "operand 'a' is of another kind than a .f64",
    "add.u64 %rd1, text, 4;": "operand 'a' is of another kind than a .u64",
    "mov.u32 %r1, text;": "the address of 'text' has 64 bits",
    "mov.b64 %rd1, {text, %r1};": "operand 'a' is of another kind than a .b32",
    "add.u32 %r1, 1.5, %r2;": "operand 'a' is of another kind than a .u32",
    "add.f32 %f1, %f2, 1;": "operand 'b' is of another kind than a .f32",
    "mov.u64 %rd1, %laneid;": "operand 'a' is of another kind than a .u64",
    "mov.u32 %r1, %clock64;": "operand 'a' is of another kind than a .u32",
    "ld.global.v2.u32 {5, %r1}, [%rd1];": "operand 'd' is of another kind than a register",
    "mov.b64 {%r1, %r2, %r3}, %rd1;": ".b64 is not made of 3 parts",
    "mov.b64 {%r1, %rd2}, %rd1;": "register %rd2 has type .b64, but .b32 is needed",
    "mov.u64 {%r1, %r2}, %rd1;": ".u64 is not made of 2 parts",
    "cp.async.ca.shared.global [%r1], [%rd1], 8, %rd2;": "by a .u32 or a predicate",
    "ld.global.u32 %r1, [%f1];": "register %f1 of type .f32 holds no address",
    "set.eq.u32.u32 %r1, %r2, %r3, %p1;": "needs a predicate to combine with exactly if",
    "setp.eq.and.u32 %p1, %r2, %r3;": "needs a predicate to combine with exactly if",
    "mov.b64 %rd1, {_, %r1};": "does not fit",
}
# Accesses outside a variable: ptxas takes them, and reads or writes something else.
OUTSIDE = {
    ".param .b32 p; st.param.b32 [p+4], %r1;": "bytes 4 to 7 are not inside 'p', which has 4",
    ".param .b32 p; st.param.b64 [p], %rd1;": "bytes 0 to 7 are not inside 'p'",
    ".param .b32 p; ld.param.v2.b32 {%r1, %r2}, [p];": "bytes 0 to 7 are not inside 'p'",
    PASS + "call (r), vprintf, (p, q); ld.param.b32 %r1, [r+1024];": "bytes 1024 to 1027 are not inside 'r'",
    "ld.param.u32 %r1, [a+1024];": "bytes 1024 to 1027 of the kernel's parameters, which have 8",
    "ld.param.v4.u32 {%r1, %r2, %r3, %r4}, [a];": "bytes 0 to 15 of the kernel's parameters",
    PASS.replace("st.param.b64 [p], %rd1", "st.param.b32 [p], %r1") + "call (r), vprintf, (p, q);": "'p' must be stored",
    "L: mov.u64 %rd1, L;": "'L' is not defined in this module, or is of another kind",
}  # fmt: skip
TAKEN_CALLS = [
    PASS + "call (r), vprintf, (p, q);",
    PASS + "call (r), vprintf, (p, q); ld.param.b32 %r1, [r];",
    "call (_), vprintf, (%rd2, %rd3);",
    "call (%f1), vprintf, (%rd2, 0);",
    ".param .align 8 .b8 p[16]; st.param.b64 [p+8], %rd1; call pair, (p);",
    "call register, (5);",
    "@%p1 call register, (%f1);",
    "mov.b32 %r1, 0f3F800000; mov.b64 %rd1, 0d3FF0000000000000; mov.f64 %rd1, 1.5; add.f64 %rd1, %rd1, 0f3F800000;",
    "mov.u64 %rd1, %globaltimer; mov.u32 %r1, %globaltimer_lo; cvt.u64.u32 %rd2, %laneid; mov.b32 %f1, %laneid;",
    "mov.b64 %rd1, {1, %r1}; mov.b64 {%r1, %f2}, %rd1; mov.u64 %rd1, text+2; cvta.global.u64 %rd1, text; mov.b32 %r1, {%r2};",
    "ld.global.v2.f32 {%r1, %f1}, [%rd1]; st.global.v2.u32 [%rd1], {5, 6}; st.global.v4.u16 [%rd1], {%r1, %r2, %r3, %r4};",
    "setp.eq.and.u32 %p1, %r1, %r2, !%p2; set.eq.u32.u32 %r1, %r2, %r3; selp.b32 %r1, 1, 2, !%p1;",
    "setp.eq.u32 _|%p1, %r1, %r2; atom.global.add.u32 _, [%rd1], 1; mov.b64 {_, %r1}, %rd1;",
]


@pytest.mark.parametrize("body", REFUSED_CALLS | OUTSIDE)
def test_an_instruction_that_contradicts_a_declaration_is_refused(body: str, tmp_path: Path) -> None:
    text = with_body(body)
    with pytest.raises(UnsupportedInstruction) as caught:
        load(parse(text), "k")
    assert f"PTX line {BODY_LINE}: " in str(caught.value)
    assert (REFUSED_CALLS | OUTSIDE)[body] in str(caught.value)
    if body in REFUSED_CALLS:
        assert not ptxas_takes(text, tmp_path)


@pytest.mark.parametrize("body", TAKEN_CALLS)
def test_calls_that_ptxas_takes(body: str, tmp_path: Path) -> None:
    load(parse(with_body(body)), "k")
    assert ptxas_takes(with_body(body), tmp_path)


@pytest.mark.parametrize("body", ["mov.pred %p1, !_;", "@_ bra L; L:", "st.global.u32 [_], %r1;"])
def test_the_sink_has_no_value(body: str, tmp_path: Path) -> None:
    with pytest.raises(PtxSyntaxError) as caught:
        parse(with_body(body))
    assert caught.value.line == BODY_LINE
    assert not ptxas_takes(with_body(body), tmp_path)


def test_more_local_memory_than_a_thread_can_have() -> None:
    text = with_body(".local .u32 v[200000]; st.local.u32 [v], %r1;")
    with pytest.raises(GpulabError, match=r"800,000 bytes of local memory, but at most 512 KiB"):
        load(parse(text), "k")
