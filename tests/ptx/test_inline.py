"""Calls inlined: names kept apart, call variables in registers, and what can't be inlined refused by name."""

from __future__ import annotations

import pytest

from gpulab.errors import UnsupportedInstruction
from gpulab.ptx import parse
from gpulab.ptx.inline import inline_calls
from gpulab.ptx.syntax import Function, Group, Register

HEADER = ".version 8.8\n.target sm_80\n.address_size 64\n"
ADD = ".func (.param .b32 r) add(.param .b32 x, .param .b32 y) { .reg .b32 %r<4>; .reg .pred %p<2>; .shared .b32 s[4]; .local .b32 l[4];\n" \
      "ld.param.u32 %r1, [x]; ld.param.u32 %r2, [y]; add.s32 %r3, %r1, %r2; st.param.b32 [r], %r3; ret; }\n"  # fmt: skip
CALL = "{ .param .b32 p0; st.param.b32 [p0], %r1; .param .b32 p1; st.param.b32 [p1], %r2; .param .b32 q; call (q), add, (p0, p1); ld.param.b32 %r3, [q]; }\n"


def inlined(module: str, body: str) -> Function:
    text = f"{HEADER}{module}.entry k(.param .u64 a) {{ .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<2>;\n{body} ret; }}"
    return inline_calls(parse(text), "k")


def test_a_call_becomes_the_body_of_the_function() -> None:
    found = inlined(ADD, CALL)
    assert [instruction.opcode for instruction in found.instructions] == ["mov"] * 4 + [
        "add",
        "mov",
        "bra",
        "mov",
        "ret",
    ]
    assert found.labels[found.instructions[6].operands[0].name] == 7
    assert not [variable for variable in found.variables.values() if variable.space == "param"]


def test_registers_of_two_copies_are_apart_and_shared_arrays_are_one() -> None:
    found = inlined(ADD, CALL + CALL)
    sums = [instruction.operands[0].name for instruction in found.instructions if instruction.opcode == "add"]
    assert len(set(sums)) == 2
    spaces = [variable.space for variable in found.variables.values()]
    assert sorted(spaces) == ["local", "local", "shared"]


def test_nested_calls_are_inlined() -> None:
    outer = (
        ".func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<4>; ld.param.u32 %r1, [x]; mov.u32 %r2, %r1;\n"
        + CALL
        + "st.param.b32 [r], %r3; ret; }\n"
    )
    body = "{ .param .b32 p0; st.param.b32 [p0], %r1; .param .b32 q; call (q), twice, (p0); ld.param.b32 %r3, [q]; }"
    found = inlined(ADD + outer, body)
    assert [instruction.opcode for instruction in found.instructions].count("add") == 1
    assert "call" not in [instruction.opcode for instruction in found.instructions]


def test_a_guarded_call_is_jumped_over() -> None:
    found = inlined(".func f() { ret; }\n", "@!%p1 call f;")
    first = found.instructions[0]
    assert (first.opcode, first.guard.negated) == ("bra", False)
    assert found.labels[first.operands[0].name] == 2


def test_variables_accessed_in_pieces_stay_in_memory() -> None:
    body = "{ .param .align 8 .b8 p[8]; st.param.b64 [p], %rd1; ld.param.b32 %r1, [p+4]; }"
    found = inlined("", body)
    assert [instruction.opcode for instruction in found.instructions] == ["st", "ld", "ret"]
    assert [variable.space for variable in found.variables.values()] == ["param"]


def test_narrow_values_are_not_moved_through_registers() -> None:
    found = inlined("", "{ .param .b32 p; st.param.b8 [p], %r1; ld.param.b8 %r2, [p]; }")
    assert [instruction.opcode for instruction in found.instructions] == ["st", "ld", "ret"]


def test_structures_become_a_register_for_each_member() -> None:
    found = inlined(
        "",
        "{ .param .align 8 .b8 p[16]; st.param.b64 [p], %rd1; st.param.b32 [p+8], %r1; ld.param.b32 %r2, [p+8]; ld.param.b64 %rd2, [p]; }",
    )
    assert [instruction.opcode for instruction in found.instructions] == ["mov"] * 4 + ["ret"]
    assert found.instructions[0].operands[0] == found.instructions[3].operands[1]


def test_built_ins_stay_as_calls_with_registers() -> None:
    module = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    body = "{ .param .b64 p0; st.param.b64 [p0], %rd1; .param .b64 p1; st.param.b64 [p1], %rd2; .param .b32 q; call (q), vprintf, (p0, p1); }"
    call = next(each for each in inlined(module, body).instructions if each.opcode == "call")
    returns, _, arguments = call.operands
    assert isinstance(arguments, Group)
    assert all(isinstance(each, Register) for each in (*returns.elements, *arguments.elements))


@pytest.mark.parametrize(
    ("module", "body", "words"),
    [
        (".func f();\n", "call f;", "'f' has no body"),
        (".func _ZN2ns3fibB2v1Ex();\n", "call _ZN2ns3fibB2v1Ex;", "'call fib;?': function 'fib' has no body"),
        ("", "{ .param .b32 q; call (q), %rd1, (), P; P: }", "needs a .callprototype"),
        (".func f(.param .b32 x) { ret; }\n", "call f;", "has 1 parameters here, but 0 came"),
        (".func f(.param .b32 x) { ret; }\n", "call f, (%r1);", r"only \.param variables"),
    ],
)
def test_what_can_not_be_inlined_is_refused(module: str, body: str, words: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=words) as caught:
        inlined(module, body)
    assert caught.value.line is not None


def test_functions_whose_copies_would_be_too_many_have_one_body() -> None:
    filling = "add.s32 %r1, %r1, 1; " * 50
    text = f".func f0() {{ .reg .b32 %r<2>; {filling} ret; }}\n"
    for number in range(1, 20):
        text += f".func f{number}() {{ .reg .b32 %r<2>; {filling} call f{number - 1}; call f{number - 1}; ret; }}\n"
    found = inlined(text, "call f19;")
    assert len(found.instructions) < 20 * 80
    assert len(inlined(text, "call f3;").instructions) > 15 * 50
