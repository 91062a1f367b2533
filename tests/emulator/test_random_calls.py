"""Random functions that call each other, by name and through pointers, on every engine against Python's own calls."""

from __future__ import annotations

import functools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from ptx_harness import ENGINES, kernel, run

from gpulab.emulator import compiled

FUNCTIONS = 3
MASK = 0xFFFFFFFF
_numbers = st.integers(0, 2**32 - 1)
_simple = st.one_of(
    st.tuples(st.sampled_from(["add", "xor", "mul"]), _numbers),
    st.tuples(st.sampled_from(["keep", "recall"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["call", "point"]), st.integers(0, FUNCTIONS - 1)),
)
_branches = st.tuples(st.just("if"), st.integers(0, 3), st.lists(_simple, max_size=3))
_bodies = st.lists(st.one_of(_simple, _branches), max_size=5)
_programs = st.lists(_bodies, min_size=FUNCTIONS, max_size=FUNCTIONS)


class _Text:
    """One function ``f(depth, x)`` as PTX: four words of local memory, and calls with a depth less by one."""

    def __init__(self, number: int, body: list) -> None:
        self.labels, self.lines = 0, []
        self.statements(body)
        self.text = f"""
.func (.param .b32 r) f{number}(.param .b32 depth, .param .b32 x)
{{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<9>; .local .align 16 .b32 kept[4];
    ld.param.u32 %r1, [depth]; ld.param.u32 %r2, [x]; mov.u64 %rd1, kept;
    st.local.v4.u32 [%rd1], {{%r2, %r1, %r2, %r1}};
    setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE;
    sub.u32 %r3, %r1, 1;
    {" ".join(self.lines)}
DONE:
    st.param.b32 [r], %r2; ret;
}}
"""

    def statements(self, body: list) -> None:
        for kind, value, *inner in body:
            self.labels += 1
            if kind in ("add", "xor", "mul"):
                self.lines.append(
                    {"add": "add.u32", "xor": "xor.b32", "mul": "mul.lo.u32"}[kind] + f" %r2, %r2, {value};"
                )
            elif kind == "keep":
                self.lines.append(f"st.local.u32 [%rd1+{4 * value}], %r2;")
            elif kind == "recall":
                self.lines.append(f"ld.local.u32 %r4, [kept+{4 * value}]; add.u32 %r2, %r2, %r4;")
            elif kind == "if":
                label = f"L{self.labels}"
                self.lines.append(
                    f"shr.u32 %r5, %r2, {value}; and.b32 %r5, %r5, 1; setp.eq.u32 %p2, %r5, 0; @%p2 bra {label};"
                )
                self.statements(inner[0])
                self.lines.append(f"{label}:")
            else:
                target, proto = f"f{value}", ""
                if kind == "point":
                    # The lowest two bits choose, so that lanes call different functions.
                    pick = f"add.u32 %r6, %r2, {value}; and.b32 %r6, %r6, 1; mul.wide.u32 %rd2, %r6, 8; mov.u64 %rd3, table;"
                    self.lines.append(f"{pick} add.u64 %rd2, %rd2, %rd3; ld.global.u64 %rd4, [%rd2];")
                    self.lines.append(
                        f"P{self.labels}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);"
                    )
                    target, proto = "%rd4", f", P{self.labels}"
                self.lines.append(
                    "{ .param .b32 a; .param .b32 b; .param .b32 q; st.param.b32 [a], %r3; st.param.b32 [b], %r2; "
                    f"call (q), {target}, (a, b){proto}; ld.param.b32 %r7, [q]; add.u32 %r2, %r2, %r7; }}"
                )


def truth(program: list, number: int, depth: int, x: int) -> int:
    kept = [x, depth, x, depth]

    def go(body: list, x: int) -> int:
        for kind, value, *inner in body:
            if kind in ("add", "xor", "mul"):
                x = {"add": x + value, "xor": x ^ value, "mul": x * value}[kind] & MASK
            elif kind == "keep":
                kept[value] = x
            elif kind == "recall":
                x = x + kept[value] & MASK
            elif kind == "if":
                x = go(inner[0], x) if x >> value & 1 else x
            else:
                target = value if kind == "call" else x + value & 1
                x = x + truth(program, target, depth - 1, x) & MASK
        return x

    return go(program[number], x) if depth else x


@settings(max_examples=10, deadline=None, derandomize=True)
@given(_programs, st.integers(1, 3))
def test_random_functions_give_what_python_gives(program: list, depth: int) -> None:
    module = "".join(_Text(number, body).text for number, body in enumerate(program))
    module += ".global .u64 table[2] = {f0, f1};\n"
    body = """
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd4, %r1, 4, %rd1; and.b32 %r5, %r1, 1; add.u32 %r2, %r5, DEPTH;
    { .param .b32 a; .param .b32 b; .param .b32 q; st.param.b32 [a], %r2; st.param.b32 [b], %r1; call (q), f0, (a, b); ld.param.b32 %r3, [q]; }
    st.global.u32 [%rd4], %r3;
""".replace("DEPTH", str(depth - 1))
    text = kernel("u64 a", body, module=module)
    expected = [truth(program, 0, depth - 1 + (lane & 1), lane) for lane in range(20)]
    counters = []
    for engine in (*ENGINES.values(), functools.partial(compiled.execute, general=True)):
        out = np.zeros(20, np.uint32)
        counters.append(run(engine, text, out, block=20).counters)
        assert out.tolist() == expected
    assert [each.differences(counters[0]) for each in counters[1:]] == [{}, {}]
