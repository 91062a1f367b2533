"""Calls that are not inlined: recursion, function pointers, virtual functions, from CUDA C++ and from PTX."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from ptx_harness import Run, kernel, new_world, run

from gpulab.emulator import ENGINES, Engine, compiled
from gpulab.errors import KernelFault
from gpulab.toolchain.nvrtc import compile_kernel

SOURCE = (Path(__file__).parent / "calls.cu").read_text()
_random = np.random.default_rng(3)


@functools.cache
def text() -> str:
    return compile_kernel(SOURCE, "fibonacci_kernel", ("-lineinfo",)).text


def launch(engine: str | Engine, entry: str, *arguments: object, threads: int = 45, **more: object) -> Run:
    return run(engine, text(), *arguments, block=threads, entry=entry, **more)


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def is_even(n: int) -> int:
    return 1 if n == 0 else is_odd(n - 1)


def is_odd(n: int) -> int:
    return 0 if n == 0 else is_even(n - 1) + 2 * (n > 15)


@pytest.mark.parametrize(
    ("entry", "truth"),
    [
        ("fibonacci_kernel", lambda t: fibonacci(t % 7) + 2000),
        ("ackermann_kernel", lambda t: ackermann(t % 3, t % 5)),
        ("mutual_kernel", lambda t: is_even(t) * 100 + is_odd(t + 1)),
    ],
)
def test_recursive_functions_of_numbers(engine: str, entry: str, truth) -> None:
    out = np.zeros(20, np.int32)
    launch(engine, entry, out, threads=20)
    assert out.tolist() == [truth(thread) for thread in range(20)]


def test_quicksort_of_a_row_by_each_thread(engine: str) -> None:
    rows = _random.integers(0, 50, (5, 20)).astype(np.int32)
    expected = [sorted(row[: 20 - thread]) + row[20 - thread :].tolist() for thread, row in enumerate(rows)]
    launch(engine, "quicksort_kernel", rows, np.int32(20), threads=5)
    assert rows.tolist() == expected


def test_each_call_has_local_arrays_and_structures_of_its_own(engine: str) -> None:
    graph = _random.integers(1, 100, (3, 5, 5)).astype(np.int32)
    costs, steps = np.zeros(3), np.zeros((3, 5), np.int32)
    launch(engine, "salesman_kernel", graph, costs, steps, threads=3)
    for thread in range(3):
        start, distance = thread % 5, graph[thread]
        others = [node for node in range(5) if node != start]
        lengths = {
            (start, *order): sum(distance[a, b] for a, b in itertools.pairwise((start, *order)))
            for order in itertools.permutations(others)
        }
        assert costs[thread] == min(lengths.values()) + thread * 0.25
        assert lengths[tuple(steps[thread].tolist())] == min(lengths.values())


def test_barriers_and_exits_inside_of_recursive_functions(engine: str) -> None:
    left = np.array([1, 3, -1, -1, 6, -1, -1], np.int32)
    right = np.array([2, 4, 5, -1, -1, -1, -1], np.int32)
    value = np.array([5, 7, 11, 13, 17, 19, 23], np.int32)

    def total(node: int) -> int:
        return 0 if node < 0 else total(left[node]) + int(value[node]) + 3 * total(right[node])

    out = np.zeros(64, np.int32)
    launch(engine, "tree_kernel", value, left, right, out, np.int32(7), threads=64)
    sums = [total(thread % 7) for thread in range(64)]
    assert out.tolist() == [each if each % 7 == 0 else each + 8 for each in sums]


def test_functions_through_pointers(engine: str) -> None:
    operations = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: evaluate(a, b), max]

    def evaluate(a: int, b: int) -> int:
        return a if b <= 0 else operations[b & 3](a + 1, b - 1) + a

    def truth(thread: int) -> int:
        found = operations[thread & 3](thread, 6) + max(thread, 10)
        return found - (0 if thread % 5 else thread + 3 if thread & 1 else thread * 3)

    out = np.zeros(45, np.int32)
    launch(engine, "pointer_kernel", out, np.int32(6))
    assert out.tolist() == [truth(thread) for thread in range(45)]


def test_a_pointer_that_another_kernel_stored(engine: str) -> None:
    place, out = np.zeros(1, np.uint64), np.zeros(45, np.int32)
    for which, truth in ((0, lambda t: t + 7), (1, lambda t: t * 7), (3, lambda t: max(t, 7))):
        launch(engine, "store_pointer", place, np.int32(which), threads=1)
        launch(engine, "call_pointer", place, out)
        assert out.tolist() == [truth(thread) for thread in range(45)]


@pytest.mark.parametrize(
    ("entry", "address", "words"),
    [
        ("call_pointer", 0, r"call of address 0x0, which is no function of this module \(a null pointer"),
        ("call_pointer", 77, "call of address 0x4d, which is no function"),
        ("call_other", None, "call of plus.* through a pointer to a function of other parameters"),
    ],
)
def test_a_call_of_what_is_no_function_is_a_fault(engine: str, entry: str, address: int | None, words: str) -> None:
    place, out = np.zeros(1, np.uint64), np.zeros(45, np.float32)
    if address is None:
        launch(engine, "store_pointer", place, np.int32(0), threads=1)
    else:
        place[0] = address
    with pytest.raises(KernelFault, match=words) as caught:
        launch(engine, entry, place, out)
    line = next(n for n, each in enumerate(SOURCE.splitlines(), 1) if entry in each)
    assert (caught.value.fault.kind, caught.value.fault.line) == ("out-of-bounds", line)


def test_the_code_of_a_function_is_no_memory(engine: str) -> None:
    place = np.zeros(1, np.uint64)
    launch(engine, "store_pointer", place, np.int32(1), threads=1)
    assert place[0] > 0
    body = "ld.param.u64 %rd1, [a]; ld.global.u64 %rd2, [%rd1]; ld.u32 %r1, [%rd2];"
    with pytest.raises(KernelFault, match="where no array is"):
        run(engine, kernel("u64 a", body), place)


def test_an_expression_by_recursive_descent(engine: str) -> None:
    texts = ["1+2*3", "(1+2)*3", "((2))", "2*(3+4*(5+1))*2", "7", "(1+(2+(3+(4+5))))*(1+1)", "10*10+1"]
    given = np.array([each.encode() for each in texts], "S32")
    out = np.zeros(7, np.int32)
    launch(engine, "expression_kernel", given.view(np.uint8), out, np.int32(32), threads=7)
    assert out.tolist() == [eval(each) for each in texts]


def test_virtual_functions_of_objects_that_another_kernel_made(engine: str) -> None:
    def area(t: int) -> float:
        return t * t if t % 3 == 0 else 3 * t * t if t % 3 == 1 else area(t - 1) + area(t // 2)

    storage, out = np.zeros(32 * 30, np.uint8), np.zeros(30, np.float32)
    world = new_world(text())
    launch(engine, "make_shapes", storage, threads=30, world=world)
    launch(engine, "use_shapes", storage, out, threads=30, world=world)
    assert out.tolist() == [area(t) if t & 1 else -1 if t % 3 == 1 else 2 * area(t) for t in range(30)]


def test_endless_recursion_is_a_fault_that_says_how_deep(engine: str) -> None:
    with pytest.raises(KernelFault, match=r"stack overflow: 1,\d\d\d calls.*16 KiB") as caught:
        launch(engine, "endless_kernel", np.zeros(2, np.int32))
    line = next(n for n, each in enumerate(SOURCE.splitlines(), 1) if "int endless(" in each)
    fault = caught.value.fault
    assert (fault.kind, fault.line, fault.thread) == ("out-of-bounds", line, (5, 0, 0))


# ---- PTX

FACTORIAL = """
.func (.param .b32 r) factorial(.param .b32 n)
{
    .reg .b32 %r<6>; .reg .pred %p<2>;
    ld.param.u32 %r1, [n]; setp.lt.u32 %p1, %r1, 2; mov.u32 %r5, 1; @%p1 bra DONE;
    add.u32 %r2, %r1, -1;
    { .param .b32 a; .param .b32 q; st.param.b32 [a], %r2; call.uni (q), factorial, (a); ld.param.b32 %r3, [q]; }
    mul.lo.u32 %r5, %r1, %r3;
DONE:
    st.param.b32 [r], %r5; ret;
}
"""
START = "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd4, %r1, 4, %rd1;\n"
CALL = "{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r1; call (q), factorial, (a); ld.param.b32 %r2, [q]; }\n"


def values(engine: str, body: str, module: str, threads: int = 8, **more: object) -> list[int]:
    out = np.zeros(threads, np.uint32)
    run(engine, kernel("u64 a", START + body + "st.global.u32 [%rd4], %r2;", module=module, **more), out, block=threads)
    return out.tolist()


def test_counters_hold_the_instructions_of_the_ptx_and_no_others(engine: str) -> None:
    out = np.zeros(8, np.uint32)
    found = run(engine, kernel("u64 a", START + CALL + "st.global.u32 [%rd4], %r2;", module=FACTORIAL), out, block=8)
    assert out.tolist() == [1, 1, 2, 6, 24, 120, 720, 5040]
    # Lane n calls factorial once, and from there n - 1 times more. Outside: 3 + st, call, ld + 2; in the function: 4 and
    # 2 at its end, 5 in between if it calls on (st and ld are moves).
    calls = [max(n, 1) for n in range(8)]
    expected = 8 * 8 + sum(calls) * 6 + sum(count - 1 for count in calls) * 5
    counters = found.counters
    assert counters.thread_instructions.sum() == expected
    texts = [each.text for each in found.program.function.instructions if not each.synthetic]
    own = counters.thread_instructions[~found.program.synthetic].tolist()
    assert [n for n, each in zip(own, texts, strict=True) if "call.uni" in each] == [sum(calls) - 8]
    # The warp runs the function for its deepest lane: seven times, once each for lanes of one depth.
    assert [
        n
        for n, each in zip(counters.warp_instructions[~found.program.synthetic], texts, strict=True)
        if "mul.lo" in each
    ] == [6]
    assert counters.requests.sum() == 1


def test_a_guarded_call_is_made_by_the_lanes_whose_guard_holds(engine: str) -> None:
    body = "mov.u32 %r2, 77; setp.gt.u32 %p1, %r1, 4; { .param .b32 a; .param .b32 q; st.param.b32 [a], %r1;\n"
    body += "@!%p1 call (q), factorial, (a); @!%p1 ld.param.b32 %r2, [q]; }\n"
    assert values(engine, body, FACTORIAL) == [1, 1, 2, 6, 24, 77, 77, 77]


def test_registers_of_every_kind_outlive_a_recursive_call(engine: str) -> None:
    module = """
.func (.reg .b64 r) mix(.reg .b32 n, .reg .f32 x)
{
    .reg .b32 %m; .reg .b16 %h<4>; .reg .b64 %d; .reg .f64 %f; .reg .f32 %y; .reg .pred %p<4>; .reg .b64 %q; .reg .b64 %t;
    cvt.u16.u32 %h1, n; mul.wide.u32 %d, n, 1000003; cvt.rn.f64.u32 %f, n; setp.eq.u32 %p1, n, 0; setp.eq.u32 %p2, n, 2;
    mov.u64 r, 7; @%p1 ret;
    sub.u32 %m, n, 1; add.f32 %y, x, 0f3F800000;
    call (%q), mix, (%m, %y);
    cvt.u64.u16 %t, %h1; add.u64 r, %q, %t; add.u64 r, r, %d; cvt.rzi.u64.f64 %t, %f; mad.lo.u64 r, %t, 3, r;
    cvt.rzi.u64.f32 %t, x; mad.lo.u64 r, %t, 100, r; @%p2 add.u64 r, r, 5; not.pred %p2, %p1; @!%p2 mov.u64 r, 0;
    ret;
}
"""

    def mix(n: int, x: int) -> int:
        return 7 if n == 0 else mix(n - 1, x + 1) + n + n * 1000003 + 3 * n + 100 * x + (5 if n == 2 else 0)

    body = "mov.f32 %f1, 0f40400000; call (%rd5), mix, (%r1, %f1); cvt.u32.u64 %r2, %rd5;\n"
    assert values(engine, body, module) == [mix(n, 3) for n in range(8)]


@pytest.mark.parametrize("how", ["list", "table", "prototype"])
def test_three_ways_to_say_what_a_pointer_calls(engine: str, how: str) -> None:
    one = ".func (.param .b32 r) {}(.param .b32 x) {{ .reg .b32 %r<2>; ld.param.u32 %r1, [x]; {} st.param.b32 [r], %r1; ret; }}\n"
    module = one.format("twice", "add.u32 %r1, %r1, %r1;") + one.format("square", "mul.lo.u32 %r1, %r1, %r1;")
    module += ".global .u64 table[2] = {twice, square};\n"
    last = {
        "list": "L: .calltargets twice, square;",
        "table": "",
        "prototype": "L: .callprototype (.param .b32 _) _ (.param .b32 _);",
    }
    body = f"""
    and.b32 %r3, %r1, 1; mul.wide.u32 %rd5, %r3, 8; mov.u64 %rd6, table; add.u64 %rd5, %rd5, %rd6; ld.global.u64 %rd7, [%rd5];
    {last[how]}
    {{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r1; call (q), %rd7, (a), {"table" if how == "table" else "L"}; ld.param.b32 %r2, [q]; }}
"""
    assert values(engine, body, module) == [n * n if n & 1 else 2 * n for n in range(8)]


def test_alloca_gives_each_lane_memory_until_its_function_returns(engine: str) -> None:
    module = """
.func (.param .b32 r) sum(.param .b32 n)
{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
    ld.param.u32 %r1, [n]; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd7, %rd1, 1000; alloca.u64 %rd2, %rd7, 32; and.b64 %rd3, %rd2, 31; cvt.u32.u64 %r5, %rd3;
    mov.u32 %r2, 0; mov.u64 %rd4, %rd2;
FILL:
    setp.ge.u32 %p1, %r2, %r1; @%p1 bra NEXT; mad.lo.u32 %r3, %r1, 10, %r2; st.local.u32 [%rd4], %r3;
    add.u32 %r2, %r2, 1; add.u64 %rd4, %rd4, 4; bra.uni FILL;
NEXT:
    setp.eq.u32 %p2, %r1, 0; mov.u32 %r4, 0; @%p2 bra DONE; add.u32 %r6, %r1, -1;
    { .param .b32 a; .param .b32 q; st.param.b32 [a], %r6; call (q), sum, (a); ld.param.b32 %r4, [q]; }
    cvta.local.u64 %rd5, %rd2;
    ld.u32 %r7, [%rd5]; add.u32 %r4, %r4, %r7; add.u64 %rd6, %rd5, %rd1; ld.u32 %r7, [%rd6+-4]; add.u32 %r4, %r4, %r7;
DONE:
    mad.lo.u32 %r4, %r5, 1000, %r4; st.param.b32 [r], %r4; ret;
}
"""
    body = """
    mov.u32 %r6, 0; mov.u32 %r2, 0;
LOOP:
    { .param .b32 a; .param .b32 q; st.param.b32 [a], %r1; call (q), sum, (a); ld.param.b32 %r5, [q]; }
    add.u32 %r2, %r2, %r5; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 5; @%p1 bra LOOP;
"""
    # The first and the last of n numbers from 10 n; five times over, so that memory that is not freed runs out.
    assert values(engine, body, module) == [5 * sum(21 * n - 1 for n in range(1, lane + 1)) for lane in range(8)]


def test_stackrestore_frees_and_too_large_an_alloca_is_a_fault(engine: str) -> None:
    loop = """
    mov.u32 %r6, 0; mul.wide.u32 %rd8, %r1, 100; add.u64 %rd8, %rd8, 300;
LOOP:
    stacksave.u64 %rd5; alloca.u64 %rd6, %rd8; st.local.u32 [%rd6], %r6; ld.local.u32 %r2, [%rd6]; stackrestore.u64 %rd5;
    add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 100; @%p1 bra LOOP;
"""
    assert values(engine, loop, "") == [99] * 8
    with pytest.raises(KernelFault, match="alloca gives a thread at most 16 KiB") as caught:
        values(engine, loop.replace("stackrestore.u64 %rd5;", ""), "")
    assert caught.value.fault.thread == (7, 0, 0)
    with pytest.raises(KernelFault, match="alloca"):
        values(engine, "alloca.u64 %rd5, 0xFFFFFFFFFFFFFFF0; mov.u32 %r2, 0;", "")


def test_the_general_variant_equals_the_interpreter() -> None:
    rows = _random.integers(0, 50, (5, 20)).astype(np.int32)
    found = {}
    for name in ("reference", "compiled", "general"):
        engine = functools.partial(compiled.execute, general=True) if name == "general" else ENGINES[name]
        arrays = [rows.copy(), np.zeros(45, np.int32)]
        one = launch(engine, "quicksort_kernel", arrays[0], np.int32(20), threads=5)
        two = launch(engine, "pointer_kernel", arrays[1], np.int32(6))
        found[name] = arrays, one.counters, two.counters
    for name in ("compiled", "general"):
        assert all(map(np.array_equal, found[name][0], found["reference"][0]))
        assert [found[name][n].differences(found["reference"][n]) for n in (1, 2)] == [{}, {}]


def test_functions_that_are_not_copied_for_their_size_run_as_well(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ".func (.param .b32 r) f0(.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; add.u32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }\n"
    for number in range(1, 4):
        call = f"{{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r1; call (q), f{number - 1}, (a); ld.param.b32 %r1, [q]; }}\n"
        module += f".func (.param .b32 r) f{number}(.param .b32 x) {{ .reg .b32 %r<3>; ld.param.u32 %r1, [x]; {call} mul.lo.u32 %r1, %r1, 3; {call} st.param.b32 [r], %r1; ret; }}\n"

    def truth(number: int, x: int) -> int:
        return x + 1 if number == 0 else truth(number - 1, 3 * truth(number - 1, x))

    body = "{ .param .b32 a; .param .b32 q; st.param.b32 [a], %r1; call (q), f3, (a); ld.param.b32 %r2, [q]; }\n"
    for limit in (20_000, 20):
        monkeypatch.setattr("gpulab.ptx.callgraph.FLAT_LIMIT", limit)
        monkeypatch.setattr("gpulab.ptx.callgraph.SMALL", 4)
        # Compiled code is found by its PTX, so that of each limit needs a text of its own.
        assert values(engine, body, f"// {limit}\n{module}") == [truth(3, lane) for lane in range(8)]


LLVM_IR = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare ptr @llvm.stacksave()
declare void @llvm.stackrestore(ptr)
define ptx_kernel void @k(ptr addrspace(1) %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %place = getelementptr i32, ptr addrspace(1) %out, i32 %t
  switch i32 %t, label %other [ i32 0, label %a  i32 1, label %b  i32 2, label %c  i32 3, label %a  i32 4, label %d  i32 5, label %e ]
a:
  store volatile i32 10, ptr addrspace(1) %place
  br label %other
b:
  store volatile i32 20, ptr addrspace(1) %place
  ret void
c:
  store volatile i32 30, ptr addrspace(1) %place
  br label %other
d:
  store volatile i32 40, ptr addrspace(1) %place
  br label %b
e:
  store volatile i32 50, ptr addrspace(1) %place
  br label %other
other:
  %saved = call ptr @llvm.stacksave()
  %n = add i32 %t, 1
  %array = alloca i32, i32 %n, align 4
  %last = getelementptr i32, ptr %array, i32 %t
  store volatile i32 7, ptr %array
  store volatile i32 %t, ptr %last
  %first = load volatile i32, ptr %array
  %before = load volatile i32, ptr addrspace(1) %place
  %sum = add i32 %first, %before
  store volatile i32 %sum, ptr addrspace(1) %place
  call void @llvm.stackrestore(ptr %saved)
  ret void
}
"""


def test_a_switch_and_a_dynamic_array_as_llvm_writes_them(engine: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine("sm_80", "+ptx78", 2)
    written = machine.emit_assembly(llvm.parse_assembly(LLVM_IR))
    assert "brx.idx" in written
    assert "alloca.u64" in written
    out = np.full(9, 100, np.uint32)
    run(engine, written, out, block=9)
    assert out.tolist() == [10, 20, 37, 17, 20, 57, 107, 107, 107]


def test_an_alias_is_called_as_the_function_that_it_names(engine: str) -> None:
    module = ".func (.param .b32 r) other(.param .b32 n);\n" + FACTORIAL + ".alias other, factorial;\n"
    assert values(engine, CALL.replace("factorial", "other"), module) == [1, 1, 2, 6, 24, 120, 720, 5040]
