"""Calls that are not inlined: recursion, function pointers, virtual functions, from CUDA C++ and from PTX."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path

import numpy as np
import pytest
from ptx_harness import Run, kernel, new_world, run

from gpulab.errors import KernelFault
from gpulab.toolchain.nvrtc import compile_kernel

SOURCE = (Path(__file__).parent / "calls.cu").read_text()
_random = np.random.default_rng(3)


@functools.cache
def text() -> str:
    return compile_kernel(SOURCE, "fibonacci_kernel", ("-lineinfo",)).text


def launch(engine: str, entry: str, *arguments: object, threads: int = 45, **more: object) -> Run:
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
    return 0 if n == 0 else is_even(n - 1) + 2 * (n > 40)


@pytest.mark.parametrize(
    ("entry", "truth"),
    [
        ("fibonacci_kernel", lambda t: fibonacci(t % 11) + 2000),
        ("ackermann_kernel", lambda t: ackermann(t % 3, t % 7)),
        ("mutual_kernel", lambda t: is_even(t) * 100 + is_odd(t + 1)),
    ],
)
def test_recursive_functions_of_numbers(engine: str, entry: str, truth) -> None:
    out = np.zeros(45, np.int32)
    launch(engine, entry, out)
    assert out.tolist() == [truth(thread) for thread in range(45)]


def test_quicksort_of_a_row_by_each_thread(engine: str) -> None:
    rows = _random.integers(0, 50, (8, 30)).astype(np.int32)
    expected = [sorted(row[: 30 - thread]) + row[30 - thread :].tolist() for thread, row in enumerate(rows)]
    launch(engine, "quicksort_kernel", rows, np.int32(30), threads=8)
    assert rows.tolist() == expected


def test_each_call_has_local_arrays_and_structures_of_its_own(engine: str) -> None:
    graph = _random.integers(1, 100, (12, 5, 5)).astype(np.int32)
    costs, steps = np.zeros(12), np.zeros((12, 5), np.int32)
    launch(engine, "salesman_kernel", graph, costs, steps, threads=12)
    for thread in range(12):
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
