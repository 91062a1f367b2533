"""Matrices between registers and memory: `ldmatrix`, `stmatrix`, `movmatrix`, `wmma`, alone and in whole kernels."""

from __future__ import annotations

import numpy as np
import pytest
from cuda_harness import VARIANTS, launch, launch_on_all, program_of
from ptx_harness import kernel, run

from gpulab.errors import KernelFault

FILE = "matrix_kernels.cu"


def _tables(count: int) -> np.ndarray:
    """Matrices of 8 x 8 halves, all different."""
    return np.arange(64 * count, dtype=np.uint16).reshape(count, 8, 8) * 3 + 1


def _held(matrices: np.ndarray) -> np.ndarray:
    """Registers by the manual: of each matrix, lane l holds elements 2 (l mod 4) and the next of row l / 4."""
    words = np.zeros((len(matrices), 32), np.uint32)
    for number, lane in np.ndindex(words.shape):
        row, column = lane // 4, lane % 4 * 2
        words[number, lane] = int(matrices[number, row, column]) | int(matrices[number, row, column + 1]) << 16
    return words


def _fill(count: int) -> str:
    """Copy the source to shared memory, each row of 16 bytes to one of 20 words; %r3 becomes each lane's row."""
    copies = "".join(
        f"add.u32 %r4, %r1, {32 * n}; mad.wide.u32 %rd3, %r4, 4, %rd1; ld.global.u32 %r5, [%rd3]; shr.u32 %r6, %r4, 2;"
        "and.b32 %r7, %r4, 3; mul.lo.u32 %r6, %r6, 80; mad.lo.u32 %r6, %r7, 4, %r6; add.u32 %r6, %r6, %r2;"
        "st.shared.u32 [%r6], %r5;\n"
        for n in range(count)
    )
    return f"""ld.param.u64 %rd1, [input]; ld.param.u64 %rd2, [output]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
    {copies} bar.warp.sync -1; mad.lo.u32 %r3, %r1, 80, %r2;"""


TILE = ".shared .align 16 .b8 tile[2560];"


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_each_lane_its_pair(engine: str, count: int, trans: str) -> None:
    names = ", ".join(f"%r{10 + n}" for n in range(count))
    body = _fill(count) + f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{names}}}, [%r3];\n"
    for n in range(count):
        body += f"mad.wide.u32 %rd3, %r1, 4, %rd2; st.global.u32 [%rd3+{128 * n}], %r{10 + n};\n"
    matrices, out = _tables(count), np.zeros((count, 32), np.uint32)
    done = run(engine, kernel("u64 input, u64 output", body, variables=TILE), matrices, out)
    assert np.array_equal(out, _held(matrices.transpose(0, 2, 1) if trans else matrices))
    # Rows of 80 bytes: the eight rows of a matrix lie in different banks.
    assert done.count("wavefronts", "ldmatrix") == [count]
    assert done.count("bytes_asked", "ldmatrix") == [128 * count]


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_is_the_opposite(engine: str, count: int, trans: str) -> None:
    body = _fill(0)
    for n in range(count):
        body += f"mad.wide.u32 %rd3, %r1, 4, %rd1; ld.global.u32 %r{10 + n}, [%rd3+{128 * n}];\n"
    names = ", ".join(f"%r{10 + n}" for n in range(count))
    body += f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared::cta.b16 [%r3], {{{names}}}; bar.warp.sync -1;\n"
    body += "mad.wide.u32 %rd3, %r1, 16, %rd2; ld.shared.v4.u32 {%r10,%r11,%r12,%r13}, [%r3]; st.global.v4.u32 [%rd3], {%r10,%r11,%r12,%r13};"
    matrices, out = _tables(count), np.zeros((4, 8, 8), np.uint16)
    done = run(engine, kernel("u64 input, u64 output", body, variables=TILE), _held(matrices), out)
    assert np.array_equal(out[:count], matrices.transpose(0, 2, 1) if trans else matrices)
    assert not out[count:].any()
    assert done.count("wavefronts", "stmatrix") == [count]


def test_ldmatrix_counts_bank_conflicts(engine: str) -> None:
    """All rows 128 bytes apart: eight lanes of each matrix want the same four banks."""
    body = """mov.u32 %r1, %tid.x; mov.u32 %r2, tile; and.b32 %r3, %r1, 15; mad.lo.u32 %r3, %r3, 128, %r2;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%r3];"""
    done = run(engine, kernel("", body, variables=TILE))
    assert (done.count("wavefronts", "ldmatrix"), done.count("wavefronts_ideal", "ldmatrix")) == ([32], [4])


@pytest.mark.parametrize(("offset", "kind"), [(8, "misaligned"), (2560, "out-of-bounds")])
def test_ldmatrix_checks_the_rows(engine: str, offset: int, kind: str) -> None:
    body = f"mov.u32 %r2, tile; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r4}}, [%r2+{offset}];"
    with pytest.raises(KernelFault) as caught:
        run(engine, kernel("", body, variables=TILE))
    assert caught.value.fault.kind == kind


def test_ldmatrix_ignores_addresses_of_other_lanes(engine: str) -> None:
    body = """mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 7; mov.u32 %r2, tile; selp.b32 %r2, 99999, %r2, %p1;
    ldmatrix.sync.aligned.m8n8.x1.b16 %r4, [%rd1]; ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r4, [%r2];"""
    generic = "mov.u64 %rd1, tile; cvta.shared.u64 %rd1, %rd1;"
    run(engine, kernel("", generic + body, variables=TILE))


def test_movmatrix_transposes_across_lanes(engine: str) -> None:
    body = """ld.param.u64 %rd1, [input]; ld.param.u64 %rd2, [output]; mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd1, %r1, 4, %rd1; mad.wide.u32 %rd2, %r1, 4, %rd2; ld.global.u32 %r2, [%rd1];
    movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r2; st.global.u32 [%rd2], %r2;"""
    matrices, out = _tables(1), np.zeros((1, 32), np.uint32)
    run(engine, kernel("u64 input, u64 output", body), _held(matrices), out)
    assert np.array_equal(out, _held(matrices.transpose(0, 2, 1)))


# ---- wmma

ROW, COLUMN = "nvcuda::wmma::row_major", "nvcuda::wmma::col_major"
SHAPES = [(16, 16, 16), (32, 8, 16), (8, 32, 16)]
CASES = [
    *(("__half", "float", (16, 16, 16), a, b) for a in (ROW, COLUMN) for b in (ROW, COLUMN)),
    *(("__half", "float", shape, COLUMN, ROW) for shape in SHAPES[1:]),
    *(("__half", "__half", shape, ROW, COLUMN) for shape in SHAPES),
    *(("__nv_bfloat16", "float", shape, COLUMN, ROW) for shape in SHAPES),
    *(("signed char", "int", shape, ROW, COLUMN) for shape in SHAPES),
    *(("unsigned char", "int", shape, COLUMN, ROW) for shape in SHAPES),
    ("nvcuda::wmma::precision::tf32", "float", (16, 16, 8), ROW, COLUMN),
    ("nvcuda::wmma::precision::tf32", "float", (16, 16, 8), COLUMN, ROW),
    ("double", "double", (8, 8, 4), ROW, ROW),
    ("double", "double", (8, 8, 4), COLUMN, COLUMN),
    ("nvcuda::wmma::experimental::precision::s4", "int", (8, 8, 32), ROW, COLUMN),
    ("nvcuda::wmma::experimental::precision::u4", "int", (8, 8, 32), ROW, COLUMN),
]
DTYPES = {
    "__half": "f2",
    "float": "f4",
    "tf32": "f4",
    "double": "f8",
    "int": "i4",
    "signed char": "i1",
    "unsigned char": "u1",
}


def _stored(kind: str, matrix: np.ndarray) -> np.ndarray:
    """A matrix's bytes as the kernel's type has them."""
    if kind == "__nv_bfloat16":
        return (matrix.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if kind in ("s4", "u4"):
        nibbles = matrix.astype(np.int64).reshape(len(matrix), -1, 2) & 15
        return (nibbles[..., 0] | nibbles[..., 1] << 4).astype(np.uint8)
    return matrix.astype(DTYPES[kind])


def _spread(matrix: np.ndarray, by_row: bool, pad: int) -> np.ndarray:
    """A matrix as it lies in memory, rows (or columns) padded."""
    lines = matrix if by_row else matrix.T
    return np.pad(lines, ((0, 0), (0, pad)))


@pytest.mark.parametrize("number", range(len(CASES)))
def test_wmma_equals_numpy(number: int) -> None:
    kind, sum_kind, shape, a_layout, b_layout = CASES[number]
    by_row = number % 2 == 0
    (m, n, k), random, short = shape, np.random.default_rng(8), kind.rsplit("::", 1)[-1]
    low, high = (0, 16) if short[0] == "u" else (-8, 8)
    a, b, c = (random.integers(low, high, size) for size in ((m, k), (k, n), (m, n)))
    pad = 32 if short in ("s4", "u4") else 16
    arrays = [
        _stored(short, _spread(a, a_layout == ROW, pad)),
        _stored(short, _spread(b, b_layout == ROW, pad)),
        _stored(sum_kind, _spread(c, by_row, 8)),
    ]
    target = np.zeros_like(arrays[2])
    strides = [(k if a_layout == ROW else m) + pad, (n if b_layout == ROW else k) + pad, (n if by_row else m) + 8]
    name = f"product<{kind}, {sum_kind}, {m}, {n}, {k}, {a_layout}, {b_layout}, {str(by_row).lower()}>"
    found, counters = launch_on_all(program_of(FILE, name), [*arrays, target, *strides], 1, 32)
    result = found[3][:, : n if by_row else m]
    assert np.array_equal(result if by_row else result.T, 2 * (a @ b + c))
    assert not found[3][:, n if by_row else m :].any()
    assert counters.requests.sum() > 0


@pytest.mark.parametrize("exclusive", [True, False])
def test_wmma_of_bits(exclusive: bool) -> None:
    random = np.random.default_rng(9)
    a, b = (random.integers(0, 2**32, (8, 4), dtype=np.uint32) for _ in range(2))
    program = program_of(FILE, f"bits<{str(exclusive).lower()}>")
    found, _ = launch_on_all(program, [a, b, np.zeros((8, 8), np.int32)], 1, 32)
    combined = a[:, None] ^ b[None] if exclusive else a[:, None] & b[None]
    assert np.array_equal(found[2], 5 + np.bitwise_count(combined).sum(2))


def test_wmma_through_shared_and_generic_pointers() -> None:
    a = np.random.default_rng(10).integers(-8, 8, (16, 16)).astype(np.float16)
    found, _ = launch_on_all(program_of(FILE, "through_shared"), [a, np.zeros_like(a)], 1, 32)
    # B is the transposed tile, and the sum comes back by columns.
    assert np.array_equal(found[1].T, a.astype(float) @ a.T.astype(float))


@pytest.mark.parametrize("variant", VARIANTS)
def test_wmma_out_of_bounds_is_found_with_its_lane(variant: str) -> None:
    name = f"product<__half, float, 16, 16, 16, {ROW}, {COLUMN}, true>"
    arrays = [np.zeros((15, 16), np.float16), np.zeros((16, 16), np.float16), *(np.zeros((16, 16), np.float32),) * 2]
    with pytest.raises(KernelFault, match="element 240 of array 0, which has 240") as caught:
        launch(program_of(FILE, name), variant, [*arrays, 16, 16, 16], 1, 32)
    # Row 15 is the last of the second tile: group 7, member 0.
    assert (caught.value.fault.kind, caught.value.fault.thread) == ("out-of-bounds", (28, 0, 0))


def test_a_row_of_a_fragment_is_one_request_of_neighbors() -> None:
    """A 16 x 16 tile of halves by rows is four requests of eight sectors; by columns eight of four."""
    arrays = [np.zeros((16, 32), np.float16), np.zeros((16, 32), np.float16), *(np.zeros((16, 16), np.float32),) * 2]
    counts = {}
    for layout in (ROW, COLUMN):
        program = program_of(FILE, f"product<__half, float, 16, 16, 16, {layout}, {COLUMN}, true>")
        _, counters = launch_on_all(program, [*arrays, 32, 32, 16], 1, 32)
        (index,) = (i for i, each in enumerate(program.function.instructions) if each.modifiers[:2] == ("load", "a"))
        counts[layout] = counters.requests[index], counters.bytes_asked[index], counters.sectors[index]
    assert counts == {ROW: (4, 512, 32), COLUMN: (8, 512, 32)}


def test_swizzled_gemm_is_right_and_free_of_conflicts() -> None:
    random, n = np.random.default_rng(11), 64
    a, b = (random.standard_normal((n, n)).astype(np.float16) for _ in range(2))
    program = program_of(FILE, "swizzled_gemm")
    found, counters = launch_on_all(program, [a, b, np.zeros((n, n), np.float32), n], (2, 2), 64)
    expected = a.astype(float) @ b.astype(float)
    assert np.abs(found[2] - expected).max() < 1e-5
    is_load = np.array([each.opcode == "ldmatrix" for each in program.function.instructions])
    assert counters.wavefronts[is_load].sum() == counters.wavefronts_ideal[is_load].sum() > 0
    flop = sum(form.flops * int(count) for form, count in zip(program.forms, counters.thread_instructions, strict=True))
    assert flop == 2 * n**3
