"""Each kind of fault, from CUDA C++: its kind, line, first thread and count, worked out by hand, and the words that help."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.profiling import CheckReport

FILE = Path(__file__).parent / "faulty.cu"


def line(mark: str) -> int:
    """The line of `faulty.cu` with this mark."""
    (found,) = [n for n, text in enumerate(FILE.read_text().splitlines(), 1) if text.endswith(f"// {mark}")]
    return found


def check(name: str, grid: int, block: int, *args: object) -> CheckReport:
    """The report on a kernel of `faulty.cu`."""
    return gpulab.check(gpulab.RawKernel.from_file(FILE, name)[grid, block], *args)


def floats(count: int = 64) -> np.ndarray:
    """Values that differ."""
    return np.arange(1, count + 1, dtype=np.float32)


def ints(count: int = 64) -> np.ndarray:
    """Zeros."""
    return np.zeros(count, np.int32)


class Case(NamedTuple):
    kernel: str
    grid: int
    block: int
    args: tuple
    kind: str
    mark: str
    first: tuple[int, int | None]
    count: int
    words: tuple[str, ...]


CASES = (
    # Warp 0 reads elements 63 to 32 before warp 1 stores them (32 stores too late), and 32 loads of warp 1 come too early
    # for all that the code orders.
    Case("no_barrier", 1, 64, (floats(), floats()), "race", "no_barrier: store", (0, 32), 32,
         ("shared array tile, element 32", "thread 31", "__syncthreads() between line {no_barrier: store} and line {no_barrier: load}")),
    Case("fresh_piece", 1, 64, (ints(),), "uninitialized", "fresh_piece", (0, 0), 64, ("malloc or new", "store first")),
    Case("piece_given_back", 1, 64, (ints(),), "use-after-free", "piece_given_back", (0, 0), 64, ("given back", "free or delete")),
    Case("place_given_out_again", 1, 64, (ints(),), "use-after-free", "place_given_out_again", (0, 0), 64, ("given back",)),
    # The second time round each lane stores to what lane 31 - t, never itself, has read.
    Case("rows_of_a_warp", 1, 32, (floats(96), floats(), np.int32(3)), "warp-sync", "rows_of_a_warp: store", (0, 0), 32,
         ("__syncwarp() after line {rows_of_a_warp: load}, before the loop comes to line {rows_of_a_warp: store} again",)),
    Case("store_after_free", 1, 32, (ints(),), "use-after-free", "store_after_free", (0, 0), 32, ("writes", "given back")),
    Case("beyond_a_piece", 1, 64, (ints(),), "out-of-bounds", "beyond_a_piece", (0, 0), 64, ("no piece", "Check the index")),
    Case("wide", 1, 64, (floats(256), floats(256)), "race", "wide: store", (0, 32), 32,
         ("thread 31", "__syncthreads() between line {wide: store} and line {wide: load}")),
    # Behind the barrier warp 0 goes round and stores its half again, before warp 1 has read it.
    Case("loop_without_second_barrier", 1, 64, (floats(192), floats(), np.int32(3)), "race", "loop: load", (0, 32), 32,
         ("element 31", "after line {loop: load}, before the loop comes to line {loop: store} again")),
    Case("lockstep", 1, 32, (floats(), floats()), "warp-sync", "lockstep: load", (0, 0), 32,
         ("element 1", "lanes of one warp", "__syncwarp() between line {lockstep: store} and line {lockstep: load}", "volatile orders nothing")),
    # Of block 1 all 32 threads read what block 0 stored.
    Case("increments", 2, 32, (ints(), ints(4), np.int32(64)), "race", "increments", (1, 0), 32, ("histogram[0]", "atomicAdd")),
    Case("different_values", 1, 64, (ints(),), "race", "different_values", (0, 1), 32, ("x[0]", "different values")),
    Case("no_guard", 2, 32, (floats(50), floats(50), np.int32(50)), "out-of-bounds", "no_guard", (1, 18), 14,
         ("(50,)). The launch has 64 threads", "only 50 elements", "if i < n")),
    Case("negative", 1, 32, (floats(), floats()), "out-of-bounds", "negative", (0, 0), 3, ("element -3 of x",)),
    Case("misaligned", 1, 32, (np.zeros(256, np.int8), ints()), "misaligned", "misaligned", (0, 1), 16, ("multiple of 4",)),
    Case("shared_never_stored", 1, 64, (floats(),), "uninitialized", "shared_never_stored", (0, 40), 24, ("shared array s, element 40",)),
    # The first addition finds what nobody stored; from then on it is defined.
    Case("shared_counter_never_zeroed", 1, 64, (ints(),), "uninitialized", "never_zeroed", (0, 0), 1, ("counter",)),
    Case("local_never_stored", 1, 32, (floats(), np.int32(4), np.int32(9)), "uninitialized", "local_never_stored", (0, 0), 32, ("local memory",)),
    Case("barrier_for_some", 2, 64, (floats(),), "barrier", "barrier_for_some", (0, 1), 2, ("Every thread of the block",)),
    Case("wrong_mask", 1, 32, (ints(),), "warp-sync", "wrong_mask", (0, 0), 1, ("mask",)),
    # 16 * 2**27 is the first product that wraps; from the second row on all are behind the array anyway.
    Case("overflow", 1, 32, (floats(), np.int32(2**27)), "out-of-bounds", "overflow: store", (0, 1), 31,
         ("integer overflow", "line {overflow: product}", "64 bits")),
    # 31 lanes of each warp read what another lane added; thread 32 adds behind readers of warp 0.
    Case("sum_without_barrier", 1, 64, (ints(), ints()), "race", "sum: atomic", (0, 32), 62,
         ("total", "__syncthreads() between line {sum: atomic} and line {sum: load}")),
    # Each half waits for itself: the second one stores 64 elements that the first has read already.
    Case("barrier_of_the_wrong_half", 1, 128, (floats(128), floats(128)), "race", "wrong half: store", (0, 64), 64,
         ("element 64", "between line {wrong half: store} and line {wrong half: load}")),
    # Only the last thread reads beyond: the first element of what follows.
    Case("beyond_one_array", 1, 64, (floats(), floats()), "out-of-bounds", "beyond_one_array", (0, 63), 1,
         ("reads element 64 of shared array first, which has 64 of 4 bytes", "in fact second, element 0")),
    Case("pointer_beyond_one_array", 1, 64, (floats(), floats(), np.int32(66)), "out-of-bounds", "pointer_beyond_one_array", (0, 0), 64,
         ("reads element 64 of shared array first", "in fact second, element 0")),
    Case("negative_shared", 1, 64, (floats(), floats()), "out-of-bounds", "negative_shared", (0, 0), 2, ("element -2 of shared array s",)),
    # The second warp has 16 lanes: its lane 0 gets nothing from lane 16, and stores the sum.
    Case("sum_of_too_few_lanes", 1, 48, (floats(), floats()), "warp-sync", "too_few_lanes: shuffle", (0, 32), 1,
         ("lane 0, gets the value of lane 16", "never launched", "line {too_few_lanes: store} it is used", "neutral value")),
    Case("neighbor_has_returned", 1, 32, (floats(), floats(), np.int32(20)), "warp-sync", "neighbor_has_returned: shuffle", (0, 19), 1,
         ("lane 19, gets the value of lane 20", "has returned", "line {neighbor_has_returned: store} it is used")),
    Case("shuffle_in_a_branch", 1, 32, (floats(), floats()), "warp-sync", "in_a_branch: shuffle", (0, 0), 16,
         ("lane 0, gets the value of lane 1", "not in its mask", "line {in_a_branch: store} it is used", "outside of the branch")),
    Case("branch_on_nothing", 1, 32, (ints(), ints()), "warp-sync", "branch_on_nothing: shuffle", (0, 0), 20,
         ("the value of lane 24", "not in its mask", "line {branch_on_nothing: branch} it is used")),
    Case("lock_without_fence", 2, 32, (ints(), ints()), "race", "lock_without_fence", (1, 0), 1, ("value[0]", "__threadfence()")),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel)
def test_one_fault(case: Case) -> None:
    report = check(case.kernel, case.grid, case.block, *case.args)
    assert [fault.kind for fault in report.faults] == [case.kind], report
    (fault,) = report.faults
    thread = None if case.first[1] is None else (case.first[1], 0, 0)
    found = fault.line, fault.block, fault.thread, fault.count
    assert found == (line(case.mark), (case.first[0], 0, 0), thread, case.count), report
    assert fault.file == str(FILE)
    for words in case.words:
        marked = words
        while "{" in marked:
            mark = marked[marked.index("{") + 1 : marked.index("}")]
            marked = marked.replace("{" + mark + "}", str(line(mark)))
        assert marked in fault.message
    assert not report.ok and case.mark.split(":")[0] in repr(report)


def test_a_reduction_that_needs_lockstep() -> None:
    # At the second line lanes 0 to 7 read what lanes 8 to 15 stored at the first, and store again at once.
    report = check("warp_reduction", 1, 32, floats(), floats())
    found = [(fault.kind, fault.line, fault.thread, fault.count) for fault in report.faults]
    second = line("reduction: 8")
    assert found == [("warp-sync", second, (0, 0, 0), 8), ("warp-sync", second, (8, 0, 0), 8)]
    assert f"__syncwarp() between line {line('reduction: 16')} and line {second}" in report.faults[0].message
    assert "Read into a variable first, put a __syncwarp()" in report.faults[1].message
    assert "or let only those lanes do it whose elements no other one reads" in report.faults[1].message


def test_dynamic_shared_memory_goes_from_its_beginning_to_the_end() -> None:
    kernel = gpulab.RawKernel.from_file(FILE, "before_dynamic_memory")
    (fault,) = gpulab.check(kernel[1, 64, 0, 240], floats(), floats()).faults
    found = fault.kind, fault.line, fault.thread, fault.count
    assert found == ("out-of-bounds", line("before_dynamic_memory"), (0, 0, 0), 4), fault
    assert (
        "element -4 of shared array dynamic, which has 60 of 4 bytes: it is in fact fixed, element 60" in fault.message
    )


def test_a_store_to_what_is_read_only() -> None:
    x = floats()
    x.flags.writeable = False
    (fault,) = check("into_constant", 1, 32, x, floats()).faults
    assert (fault.kind, fault.line, fault.count) == ("out-of-bounds", line("into_constant"), 32)
    assert "x, which is read-only. The index is right" in fault.message and "if i < n" not in fault.message


@pytest.mark.parametrize(("pointer", "words"), [(0, "null pointer"), (0x7FFF12345678, "address of the host")])
def test_what_is_no_pointer_needs_no_guard(pointer: int, words: str) -> None:
    (fault,) = check("through_a_table", 1, 32, np.full(1, pointer), floats()).faults
    assert (fault.kind, fault.line, fault.count) == ("out-of-bounds", line("through_a_table"), 32)
    assert words in fault.message and "if i < n" not in fault.message


def test_device_memory_that_nothing_was_stored_to() -> None:
    x = cuda.device_array(64, np.float32)
    x[:10] = 1
    (fault,) = check("never_stored", 1, 64, x, floats()).faults
    assert (fault.kind, fault.line, fault.thread, fault.count) == (
        "uninitialized",
        line("never_stored"),
        (10, 0, 0),
        54,
    )
    assert check("never_stored", 1, 64, cuda.to_device(floats()), floats()).ok


def test_a_profile_checks_what_was_never_stored_to() -> None:
    x = cuda.device_array(64, np.float32)
    x[:10] = 1
    kernel = gpulab.RawKernel.from_file(FILE, "never_stored")
    checked = gpulab.profile(kernel[1, 64], x, floats(), check=True).check
    assert checked is not None
    (fault,) = checked.faults
    assert (fault.kind, fault.thread, fault.count) == ("uninitialized", (10, 0, 0), 54)


def test_a_copy_is_defined_where_its_original_is() -> None:
    x = cuda.device_array((2, 64), np.float32)
    x[0, :32] = 1
    (fault,) = check("never_stored", 1, 64, cuda.to_device(x[0, ::-1]), floats()).faults
    assert (fault.kind, fault.thread, fault.count) == ("uninitialized", (0, 0, 0), 32)


def test_what_a_launch_stored_is_defined() -> None:
    x = cuda.device_array(64, np.float32)
    assert check("never_stored", 1, 64, floats(), x).ok
    assert check("never_stored", 1, 64, x, floats()).ok
    y = cuda.device_array(64, np.float32)
    gpulab.RawKernel.from_file(FILE, "never_stored")[1, 64](floats(), y)
    assert check("never_stored", 1, 64, y, floats()).ok


def test_memory_that_was_freed() -> None:
    x = cuda.to_device(floats())
    table = np.array([x.address], np.int64)
    assert check("through_a_table", 1, 32, table, floats()).ok
    del x
    (fault,) = check("through_a_table", 1, 32, table, floats()).faults
    assert (fault.kind, fault.line, fault.count) == ("use-after-free", line("through_a_table"), 32)
    assert "256 bytes" in fault.message and "Keep the array" in fault.message


def test_an_endless_loop() -> None:
    gpulab.use("A100", time_limit_s=0.5)
    (fault,) = check("endless", 1, 32, ints()).faults
    assert fault.kind == "deadlock" and fault.line in (line("endless"), line("endless") + 1)


def test_refused_launches_are_faults_that_name_the_limit() -> None:
    for grid, block, limit in (
        (1, 2048, "at most 1,024 threads"),
        (0, 32, "grid.x must be 1"),
        (1, (1, 1, 65), "block.z must be 1 to 64"),
    ):
        report = gpulab.check(gpulab.RawKernel.from_file(FILE, "never_stored")[grid, block], floats(), floats())
        (fault,) = report.faults
        assert fault.kind == "launch" and limit in fault.message
    dynamic = gpulab.RawKernel.from_file(FILE, "never_stored")[1, 32, 0, 200_000]
    assert "166,912 bytes" in gpulab.check(dynamic, floats(), floats()).faults[0].message


def test_the_run_goes_on_behind_a_fault() -> None:
    # A faulty load gives 0, a faulty store is left out, and everything else is as in a launch.
    y = floats(50)
    check("no_guard", 2, 32, floats(40), y, np.int32(50))
    np.testing.assert_array_equal(y, [*(2 * floats(40)), *[0] * 10])


@pytest.mark.parametrize("name", ["no_guard", "negative", "misaligned"])
def test_the_first_fault_is_the_one_that_the_interpreter_meets(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in CASES if case.kernel == name)
    (found,) = check(name, case.grid, case.block, *case.args).faults
    monkeypatch.setenv("GPULAB_ENGINE", "reference")
    with pytest.raises(gpulab.KernelFault) as caught:
        gpulab.RawKernel.from_file(FILE, name)[case.grid, case.block](*case.args)
    raised = caught.value.fault
    assert (found.kind, found.line, found.block, found.thread, found.ptx_line) == (
        raised.kind, raised.line, raised.block, raised.thread, raised.ptx_line
    )  # fmt: skip
