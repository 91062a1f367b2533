"""The GPU's heap: `malloc`, `free`, `new`, `delete` in kernels."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from ptx_harness import new_world, run

from gpulab.emulator.heap import HEAP_BYTES
from gpulab.errors import KernelFault
from gpulab.toolchain.nvrtc import compile_kernel

SOURCE = (Path(__file__).parent / "heap.cu").read_text()


@functools.cache
def text() -> str:
    return compile_kernel(SOURCE, "lists", ("-lineinfo",)).text


def test_linked_lists_are_built_and_freed(engine: str) -> None:
    out, world = np.zeros(80, np.int32), new_world(text())
    run(engine, text(), out, np.int32(9), block=40, grid=2, entry="lists", world=world)
    lane = [sum(place * (t % 9 - place) * t for place in range(1, t % 9 + 1)) for t in range(40)]
    assert out.tolist() == lane * 2
    assert world[1].heap.sizes == {}


def test_objects_outlive_the_kernel_that_makes_them(engine: str) -> None:
    world, shapes, count, out = (
        new_world(text()),
        np.zeros(12, np.uint64),
        np.zeros(1, np.int32),
        np.zeros(12, np.int32),
    )
    run(engine, text(), shapes, count, block=12, entry="make", world=world)
    assert len(world[1].heap.sizes) == 6 + 6 + 5  # objects, and arrays, of which one has no element
    run(engine, text(), shapes, out, block=12, entry="use", world=world)
    assert out.tolist() == [t * t if t & 1 else -(t * (t - 1) // 2) for t in range(12)]
    assert count[0] == 6  # squares destroyed
    assert world[1].heap.sizes == {}


def test_pieces_are_apart_and_a_full_heap_gives_null(engine: str) -> None:
    world, out = new_world(text()), np.zeros(40, np.uint64)
    run(engine, text(), out, np.uint64(100), block=40, entry="pieces", world=world)
    addresses = sorted(out.tolist())
    assert all(address % 16 == 0 for address in addresses)
    assert min(np.diff(addresses)) >= 100
    run(engine, text(), out, np.uint64(HEAP_BYTES // 4), block=40, entry="pieces", world=world)
    given = out[out > 0]
    assert len(given) == 3
    run(engine, text(), given[:1].copy(), block=1, entry="release", world=world)
    run(engine, text(), out, np.uint64(HEAP_BYTES // 4), block=1, entry="pieces", world=world)
    assert out[0] == given[0]
    for nothing in (0, HEAP_BYTES + 1, 2**64 - 1):
        run(engine, text(), out, np.uint64(nothing), block=2, entry="pieces", world=world)
        assert out[:2].tolist() == [0, 0]


def test_freeing_the_null_pointer_does_nothing(engine: str) -> None:
    run(engine, text(), np.zeros(3, np.uint64), block=3, entry="release")


@pytest.mark.parametrize(
    ("which", "kind", "words"),
    [
        ("twice", "use-after-free", "free or delete of address 0x[0-9a-f]+, which was freed before"),
        ("inside", "out-of-bounds", "which is not what malloc or new gave"),
    ],
)
def test_freeing_what_is_no_piece_is_a_fault(engine: str, which: str, kind: str, words: str) -> None:
    world, out = new_world(text()), np.zeros(2, np.uint64)
    run(engine, text(), out, np.uint64(64), block=2, entry="pieces", world=world)
    out[1] = out[0] + np.uint64(0 if which == "twice" else 8)
    with pytest.raises(KernelFault, match=words) as caught:
        run(engine, text(), out, block=2, entry="release", world=world)
    line = next(n for n, each in enumerate(SOURCE.splitlines(), 1) if "release" in each)
    fault = caught.value.fault
    assert (fault.kind, fault.line, fault.thread) == (kind, line, (1, 0, 0))


def test_an_index_beyond_the_heap_is_a_fault(engine: str) -> None:
    run(engine, text(), np.int32(15), block=1, entry="overrun")
    with pytest.raises(KernelFault, match="GPU's heap"):
        run(engine, text(), np.int32(HEAP_BYTES), block=1, entry="overrun")
