"""Asynchronous copies: what arrives, what is filled with zeros, what they cost, and what they must not do."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_harness import VARIANTS, launch, launch_on_all, program_of
from ptx_harness import kernel, run

from gpulab.emulator import load
from gpulab.errors import KernelFault, UnsupportedInstruction
from gpulab.ptx import parse

FILE = "copy_kernels.cu"
_random = np.random.default_rng(13)


def _one_copy(instruction: str, prologue: str = "", stride: int = 16) -> str:
    """Each lane copies 16 bytes or less to shared memory filled with ones, and stores its 16 bytes out."""
    body = f"""ld.param.u64 %rd1, [input]; ld.param.u64 %rd2, [output]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
    mad.lo.u32 %r3, %r1, {stride}, %r2; mad.wide.u32 %rd3, %r1, 16, %rd1; mad.wide.u32 %rd4, %r1, 16, %rd2;
    mov.u32 %r4, -1; st.shared.v4.u32 [%r3], {{%r4,%r4,%r4,%r4}}; {prologue}
    {instruction}
    cp.async.wait_all;
    ld.shared.v4.u32 {{%r5,%r6,%r7,%r8}}, [%r3]; st.global.v4.u32 [%rd4], {{%r5,%r6,%r7,%r8}};"""
    return kernel("u64 input, u64 output", body, variables=".shared .align 16 .b8 tile[1024];")


@pytest.mark.parametrize(
    ("instruction", "copied", "zeros"),
    [
        ("cp.async.ca.shared.global [%r3], [%rd3], 4;", 4, 0),
        ("cp.async.ca.shared::cta.global.L2::64B [%r3], [%rd3], 8;", 8, 0),
        ("cp.async.ca.shared.global [%r3+8], [%rd3+8], 8, 8;", (8, 16), 0),
        ("cp.async.cg.shared.global [%r3], [%rd3], 16;", 16, 0),
        ("cp.async.cg.shared.global [%r3], [%rd3], 16, 13;", 13, 3),
        ("cp.async.cg.shared.global [%r3], [%rd3], 16, 0;", 0, 16),
        ("cp.async.ca.shared.global [%r3], [%rd3], 4, 1;", 1, 3),
        ("cp.async.cg.shared.global.L2::cache_hint [%r3], [%rd3], 16, 5, %rd9;", 5, 11),
        ("cp.async.cg.shared.global.L2::cache_hint [%r3], [%rd3], 16, %rd9;", 16, 0),
        ("setp.ne.u32 %p1, %r2, 77; cp.async.cg.shared.global [%r3], [%rd3], 16, %p1;", 0, 16),
    ],
)
def test_bytes_arrive_and_the_rest_is_zero(engine: str, instruction: str, copied: object, zeros: int) -> None:
    source, out = _random.integers(1, 255, (32, 16)).astype(np.uint8), np.zeros((32, 16), np.uint8)
    run(engine, _one_copy(instruction), source, out)
    start, stop = copied if isinstance(copied, tuple) else (0, copied)
    expected = np.full((32, 16), 255, np.uint8)
    expected[:, start:stop] = source[:, start:stop]
    expected[:, stop : stop + zeros] = 0
    assert np.array_equal(out, expected)


def test_each_lane_has_its_own_length(engine: str) -> None:
    source, out = _random.integers(1, 255, (32, 16)).astype(np.uint8), np.zeros((32, 16), np.uint8)
    text = _one_copy("cp.async.cg.shared.global [%r3], [%rd3], 16, %r9;", "sub.u32 %r9, 20, %r1; max.s32 %r9, %r9, 0;")
    done = run(engine, text, source, out)
    lengths = np.clip(20 - np.arange(32), 0, 16)
    assert np.array_equal(out, np.where(np.arange(16) < lengths[:, None], source, 0))
    # Lanes 0 to 19 read; all 32 write.
    assert (done.count("bytes_asked", "cp")[0], done.count("copied_bytes", "cp")[0]) == (20 * 16, 32 * 16)


def test_a_copy_counts_as_a_load_and_a_store(engine: str) -> None:
    """Rows of 32 bytes in shared memory: of the eight lanes of a pass, two meet in each bank."""
    source, out = np.zeros((32, 16), np.uint8), np.zeros((32, 16), np.uint8)
    done = run(engine, _one_copy("cp.async.cg.shared.global [%r3], [%rd3], 16;", stride=32), source, out)
    names = ("requests", "bytes_asked", "sectors", "wavefronts", "l1_miss_sectors")
    assert [done.count(name, "cp")[0] for name in names] == [1, 512, 16, 4, 16]
    copied = ("requests", "bytes", "wavefronts", "wavefronts_ideal")
    assert [done.count(f"copied_{name}", "cp")[0] for name in copied] == [1, 512, 8, 4]


@pytest.mark.parametrize(
    ("instruction", "kind", "words", "lane"),
    [
        ("cp.async.cg.shared.global [%r3], [%rd3+16], 16;", "out-of-bounds", "loads 16 bytes at element 128 of array 0", 31),
        ("cp.async.cg.shared.global [%r3], [%rd3+16], 16, 1;", "out-of-bounds", "element 128 of array 0", 31),
        ("cp.async.cg.shared.global [%r3+520], [%rd3], 16;", "misaligned", "stores 16 bytes at address 0x208", 0),
        ("cp.async.cg.shared.global [%r3+528], [%rd3], 16;", "out-of-bounds", "stores 16 bytes at byte 1024 of the block's shared", 31),
        ("cp.async.ca.shared.global [%r3], [%rd3+2], 4;", "misaligned", "loads 4 bytes", 0),
        ("cp.async.ca.shared.global [%r3], [%rd3+2], 4, 3;", "misaligned", "loads 4 bytes", 0),
        ("cp.async.ca.shared.global [%r3], [%rd30], 4;", "out-of-bounds", "loads 4 bytes at address 0x0", 0),
    ],
)  # fmt: skip
def test_faults_of_copies(engine: str, instruction: str, kind: str, words: str, lane: int) -> None:
    with pytest.raises(KernelFault, match=words) as caught:
        run(engine, _one_copy(instruction), np.zeros(128, np.float32), np.zeros(128, np.float32))
    assert (caught.value.fault.kind, caught.value.fault.thread) == (kind, (lane, 0, 0))


def test_bytes_that_are_not_read_need_not_be_there(engine: str) -> None:
    source, out = _random.integers(1, 255, 31 * 16 + 5).astype(np.uint8), np.zeros((32, 16), np.uint8)
    prologue = "setp.eq.u32 %p1, %r1, 31; selp.u32 %r9, 5, 16, %p1;"
    run(engine, _one_copy("cp.async.cg.shared.global [%r3], [%rd3], 16, %r9;", prologue), source, out)
    assert np.array_equal(out.ravel(), np.pad(source, (0, 11)))


@pytest.mark.parametrize(
    "line",
    [
        "cp.async.cg.shared.global [%r3], [%rd3], 8;",
        "cp.async.ca.shared.global [%r3], [%rd3], 2;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd3], %r1, [%r2];",
    ],
)
def test_what_is_no_such_copy_is_refused(line: str) -> None:
    with pytest.raises(UnsupportedInstruction, match="cp.async"):
        load(parse(_one_copy(line)), "k")


def test_guards_choose_lanes(engine: str) -> None:
    source, out = _random.integers(1, 255, (32, 16)).astype(np.uint8), np.zeros((32, 16), np.uint8)
    prologue = "setp.lt.u32 %p1, %r1, 7;"
    done = run(engine, _one_copy("@%p1 cp.async.cg.shared.global [%r3], [%rd3], 16;", prologue), source, out)
    assert np.array_equal(out, np.where(np.arange(32)[:, None] < 7, source, 255))
    assert done.count("copied_bytes", "cp")[0] == 7 * 16


# ---- CUDA C++


def test_double_buffering_with_a_ragged_end() -> None:
    n = 5 * 128 - 37
    a = _random.random(n).astype(np.float32)
    found, counters = launch_on_all(program_of(FILE, "double_buffered"), [a, np.zeros(640, np.float32), 5, n], 1, 32)
    padded = np.pad(a, (0, 37)).reshape(5, 128)
    assert np.array_equal(found[1].reshape(5, 128), padded[:, ::-1])
    assert counters.copied_bytes.sum() == 5 * 32 * 16
    # The last but one chunk of 16 bytes has 12 bytes of data; it is asked for as a whole.
    assert counters.bytes_asked[counters.copied_bytes > 0].sum() == -(-n // 4) * 16


@pytest.mark.parametrize("capability", [(8, 0), (9, 0)])
@pytest.mark.parametrize("name", ["with_cooperative_groups", "with_a_pipeline"])
def test_headers_copy(name: str, capability: tuple[int, int]) -> None:
    a = _random.random(512).astype(np.float32)
    threads = 256 if name == "with_cooperative_groups" else 64
    program = program_of(FILE, name, capability)
    found, counters = launch_on_all(program, [a, np.zeros(512, np.float32)], 1, threads)
    expected = a.reshape(2, 256)[:, ::-1].ravel() if threads == 256 else a
    assert np.array_equal(found[1], expected)
    assert counters.copied_bytes.sum() == 2048


def test_pipeline_primitives_fill_with_zeros() -> None:
    a = _random.integers(1, 255, (64, 16)).astype(np.uint8)
    found, _ = launch_on_all(program_of(FILE, "with_primitives"), [a, np.zeros_like(a)], 1, 64)
    lengths = 16 - np.arange(64) % 17
    assert np.array_equal(found[1], np.where(np.arange(16) < lengths[:, None], a, 0))


def test_copying_gemm() -> None:
    n = 64
    a, b = (_random.standard_normal((n, n)).astype(np.float16) for _ in range(2))
    found, counters = launch_on_all(program_of(FILE, "copying_gemm"), [a, b, np.zeros((n, n), np.float32), n], 1, 128)
    assert np.abs(found[2] - a.astype(float) @ b.astype(float)).max() < 1e-4
    assert counters.copied_bytes.sum() == a.nbytes + b.nbytes


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_copy_beyond_an_array_is_found(variant: str) -> None:
    a = np.zeros((128, 128), np.float16)
    with pytest.raises(KernelFault, match="loads 16 bytes at element 16384 of array 8"):
        launch(
            program_of(FILE, "copying_gemm"), variant, [a, a.copy(), np.zeros((128, 128), np.float32), 256], (1, 1), 128
        )
