"""`mma`: fragments as the PTX manual writes them down, results against NumPy, and values that bite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from form_matrix import all_rows, form_of, sample
from ptx_harness import ENGINE_NAMES, Run, kernel, run

from gpulab.emulator import load
from gpulab.errors import KernelFault, UnsupportedInstruction
from gpulab.ptx import parse
from gpulab.ptx.table import Row

Place = Callable[[int, int, int], tuple[int, int]]


@dataclass(frozen=True)
class Layout:
    """How a lane holds a matrix: registers, elements in each, and (group, member, element) to row and column."""

    registers: int
    elements: int
    place: Place


def _low(i: int, *ranges: range) -> bool:
    return any(i in each for each in ranges)


def _rows(upper: range | tuple[int, ...], *more: range) -> Callable[[int, int], int]:
    """Row ``groupID`` for these elements, ``groupID + 8`` for the others."""
    return lambda g, i: g if i in upper or _low(i, *more) else g + 8


def _a16(k: int) -> Layout:
    if k == 8:
        return Layout(2, 2, lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)))
    row = _rows(range(2), range(4, 6))
    return Layout(4, 2, lambda g, t, i: (row(g, i), t * 2 + (i & 1) + (8 if i >= 4 else 0)))


def _b16(k: int) -> Layout:
    if k == 8:
        return Layout(1, 2, lambda g, t, i: (t * 2 + i, g))
    return Layout(2, 2, lambda g, t, i: (t * 2 + (i & 1) + (8 if i >= 2 else 0), g))


def _packed_a(rows: int, k: int, bits: int) -> Layout:
    """Elements of 8, 4 or 1 bits."""
    per = 32 // bits
    if rows == 8:
        return Layout(1, per, lambda g, t, i: (g, t * per + i))
    if k == 4 * per:
        return Layout(2, per, lambda g, t, i: (g if i < per else g + 8, t * per + i % per))
    row = _rows(range(per), range(2 * per, 3 * per))
    return Layout(4, per, lambda g, t, i: (row(g, i), t * per + i % per + (k // 2 if i >= 2 * per else 0)))


def _packed_b(k: int, bits: int) -> Layout:
    per = 32 // bits
    return Layout(k // (4 * per), per, lambda g, t, i: (t * per + i % per + (k // 2 if i >= per else 0), g))


def _wide_a(rows: int, k: int) -> Layout:
    """tf32 and f64: one element a register."""
    if rows == 8:
        return Layout(1, 1, lambda g, t, i: (g, t))
    return Layout(k // 2, 1, lambda g, t, i: (g if i % 2 == 0 else g + 8, i // 2 * 4 + t))


def _wide_b(k: int) -> Layout:
    return Layout(k // 4, 1, lambda g, t, i: (t + 4 * i, g))


def _accumulators(rows: int, per: int) -> Layout:
    return Layout(rows // 4 // per, per, lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)))


def _a(kind: str, m: int, k: int) -> Layout:
    if BITS[kind] == 16:
        return _a16(k)
    return _wide_a(m, k) if BITS[kind] >= 32 else _packed_a(m, k, BITS[kind])


def _b(kind: str, k: int) -> Layout:
    if BITS[kind] == 16:
        return _b16(k)
    return _wide_b(k) if BITS[kind] >= 32 else _packed_b(k, BITS[kind])


BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16}
BITS |= {"s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8, "s4": 4, "u4": 4, "b1": 1}
REGISTER = {64: "b64"}

# ---- one instruction on matrices


def _patterns(kind: str, matrix: np.ndarray) -> np.ndarray:
    """A matrix of numbers as the patterns of its elements; fp8 and bits are patterns already."""
    if kind in ("bf16", "tf32", "f32"):
        return matrix.astype(np.float32).view(np.uint32).astype(np.uint64) >> np.uint64(16 if kind == "bf16" else 0)
    if kind in ("f16", "f64"):
        dtype = np.dtype(f"f{BITS[kind] // 8}")
        return matrix.astype(dtype).view(f"u{dtype.itemsize}").astype(np.uint64)
    return matrix.astype(np.int64).astype(np.uint64) & np.uint64((1 << BITS[kind]) - 1)


def _registers(layout: Layout, kind: str, matrix: np.ndarray) -> np.ndarray:
    """Registers of all lanes, shape (registers, 32)."""
    bits, patterns = BITS[kind], _patterns(kind, matrix)
    words = np.zeros((layout.registers, 32), np.uint64)
    for lane in range(32):
        for i in range(layout.registers * layout.elements):
            value = patterns[layout.place(lane // 4, lane % 4, i)]
            words[i // layout.elements, lane] |= value << np.uint64(i % layout.elements * bits)
    return words.astype(f"u{_bytes(kind)}")


def _bytes(kind: str) -> int:
    return 8 if kind == "f64" else 4


def _matrix(layout: Layout, kind: str, words: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The matrix that registers hold, in its own dtype."""
    found = np.zeros(shape, {"f16": "f2", "f32": "f4", "f64": "f8", "s32": "i4"}[kind])
    elements = words.view(found.dtype).reshape(layout.registers, 32, layout.elements)
    for lane in range(32):
        for i in range(layout.registers * layout.elements):
            found[layout.place(lane // 4, lane % 4, i)] = elements[i // layout.elements, lane, i % layout.elements]
    return found


def _text(spelling: str, registers: dict[str, tuple[int, int]]) -> str:
    """A kernel that loads A, B and C as registers, (number, bytes) by letter, and stores those of D."""
    lines = ["ld.param.u64 %rd1, [input]; ld.param.u64 %rd2, [output]; mov.u32 %r1, %tid.x;"]
    offset, declared = 0, []
    for letter in "abc":
        count, size = registers[letter]
        declared.append(f".reg .b{8 * size} %{letter}<{count}>;")
        for number in range(count):
            lines.append(f"mad.wide.u32 %rd3, %r1, {size}, %rd1;")
            lines.append(f"ld.global.b{8 * size} %{letter}{number}, [%rd3+{offset}];")
            offset += 32 * size
    groups = ("{" + ", ".join(f"%{x}{n}" for n in range(registers[x][0])) + "}" for x in "dabc")
    count, size = registers["d"]
    declared.append(f".reg .b{8 * size} %d<{count}>;")
    lines += [f"{spelling} {', '.join(groups)};", f"mad.wide.u32 %rd3, %r1, {size}, %rd2;"]
    lines += [f"st.global.b{8 * size} [%rd3+{n * 32 * size}], %d{n};" for n in range(count)]
    return kernel("u64 input, u64 output", "\n".join(lines), " ".join(declared))


def multiply(engine: str, spelling: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, Run]:
    """Run one `mma` on matrices; gives D and the run."""
    (m, k), n = a.shape, b.shape[1]
    names = [part for part in spelling.split(".") if part in BITS]
    kinds = dict(zip("dabc", names, strict=True))
    layouts = {"a": _a(kinds["a"], m, k), "b": _b(kinds["b"], k)}
    layouts |= {letter: _accumulators(m, 2 if kinds[letter] == "f16" else 1) for letter in "cd"}
    words = [
        _registers(layouts[x], kinds[x], matrix).view(np.uint8).ravel()
        for x, matrix in zip("abc", (a, b, c), strict=True)
    ]
    output = np.zeros((layouts["d"].registers, 32), f"u{_bytes(kinds['d'])}")
    registers = {letter: (layout.registers, _bytes(kinds[letter])) for letter, layout in layouts.items()}
    done = run(engine, _text(spelling, registers), np.concatenate(words), output)
    return _matrix(layouts["d"], kinds["d"], output, (m, n)), done


FLOATS = [
    *(("f16", f"m16n8k{k}", kind) for k in (8, 16) for kind in ("f16", "f32")),
    *(("bf16", f"m16n8k{k}", "f32") for k in (8, 16)),
    *(("tf32", f"m16n8k{k}", "f32") for k in (4, 8)),
    ("f64", "m8n8k4", "f64"),
    *(("f64", f"m16n8k{k}", "f64") for k in (4, 8, 16)),
]
INTEGERS = [
    *(("8", shape) for shape in ("m8n8k16", "m16n8k16", "m16n8k32")),
    *(("4", shape) for shape in ("m8n8k32", "m16n8k32", "m16n8k64")),
]


def sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


@pytest.mark.parametrize(("kind", "shape", "sum_kind"), FLOATS)
def test_products_of_floats_equal_numpy(engine: str, kind: str, shape: str, sum_kind: str) -> None:
    (m, n, k), random = sizes(shape), np.random.default_rng(3)
    # Numbers of few bits: all sums are exact, so that any wrong place shows and no order matters.
    a, b, c = (random.integers(-15, 16, size).astype(float) for size in ((m, k), (k, n), (m, n)))
    spelling = f"mma.sync.aligned.{shape}.row.col.{sum_kind}.{kind}.{kind}.{sum_kind}"
    found, done = multiply(engine, spelling, a, b, c)
    assert np.array_equal(found, a @ b + c)
    assert done.count("warp_instructions", "mma") == [1]
    assert [form.flops * 32 for form in done.program.forms if form.opcode == "mma"] == [2 * m * n * k]


@pytest.mark.parametrize(("bits", "shape"), INTEGERS)
@pytest.mark.parametrize("signs", ["ss", "su", "us", "uu"])
def test_products_of_integers_equal_numpy(engine: str, bits: str, shape: str, signs: str) -> None:
    (m, n, k), random = sizes(shape), np.random.default_rng(4)
    top = 1 << int(bits)
    a, b = (
        random.integers(-top // 2 if sign == "s" else 0, top // 2 if sign == "s" else top, size)
        for sign, size in zip(signs, ((m, k), (k, n)), strict=True)
    )
    c = random.integers(-(2**20), 2**20, (m, n))
    kinds = ".".join(sign + bits for sign in signs)
    found, done = multiply(engine, f"mma.sync.aligned.{shape}.row.col.s32.{kinds}.s32", a, b, c)
    assert np.array_equal(found, a @ b + c)
    assert {form.flops for form in done.program.forms} == {0}


@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
@pytest.mark.parametrize("operation", ["xor", "and"])
def test_products_of_bits_count_bits(engine: str, shape: str, operation: str) -> None:
    (m, n, k), random = sizes(shape), np.random.default_rng(5)
    a, b, c = random.integers(0, 2, (m, k)), random.integers(0, 2, (k, n)), random.integers(-9, 9, (m, n))
    found, _ = multiply(engine, f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc", a, b, c)
    both = a @ b
    differ = a.sum(1)[:, None] + b.sum(0) - 2 * both
    assert np.array_equal(found, c + (both if operation == "and" else differ))


F16_F32 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
F16_F16 = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"


def row_times_column(engine: str, spelling: str, left: list[float], right: list[float], start: float) -> float:
    """The element (3, 5) of a product in which only one row and one column are not zero."""
    m, n, k = sizes(spelling.split(".")[3])
    a, b, c = np.zeros((m, k)), np.zeros((k, n)), np.zeros((m, n))
    a[3, : len(left)], b[: len(right), 5], c[3, 5] = left, right, start
    return multiply(engine, spelling, a, b, c)[0][3, 5]


@pytest.mark.parametrize(
    ("spelling", "left", "right", "start", "expected"),
    [
        # One rounding at the end: a chain of halves would stay at 2048, one of floats at 2**24.
        (F16_F16, [1, 1], [1, 1], 2048, 2050),
        (F16_F16, [1], [1], 2048, 2048),
        (F16_F16, [3], [1], 2048, 2052),
        (F16_F32, [1, 1], [1, 1], 2**24, 2**24 + 2),
        # What cancels leaves what is small: 2**32 - 2**32 + 2**-28.
        (F16_F32, [2**15, 2**15, 2**-14], [2**15, -(2**15), 2**-14], 0, 2.0**-28),
        # Denormal sources and results.
        (F16_F32, [2**-24], [2**-24], 0, 2.0**-48),
        (F16_F16, [2**-24], [0.5], 0, 0),
        (F16_F16, [3 * 2**-24], [0.5], 0, 2 * 2.0**-24),
        # Beyond the largest half and the largest float.
        (F16_F16, [256], [255.875], 0, 65504),
        (F16_F16, [256], [256], 0, np.inf),
        (F16_F32, [np.inf], [-2], 1, -np.inf),
        (F16_F32, [np.inf], [0], 1, np.nan),
        (F16_F32, [np.inf, 1], [1, 1], -np.inf, np.nan),
        (F16_F16, [np.nan], [1], 1, np.nan),
        ("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", [2.0**100], [2.0**100], 0, np.inf),
        ("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", [2.0**-133], [2.0], 0, 2.0**-132),
        # Only ten bits of a fraction count: 1 + 2**-10 + 2**-11 is read as 1 + 2**-10.
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", [1 + 2**-10 + 2**-11], [1], 0, 1 + 2**-10),
        # Each step of f64 is fused and rounded: 1 + 2**-53 stays 1, twice, in a chain.
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", [2.0**-53, 2.0**-53], [1, 1], 1, 1),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", [1 + 2.0**-52], [1 - 2.0**-52], -1, -(2.0**-104)),
    ],
)
def test_floats_that_bite(
    engine: str, spelling: str, left: list[float], right: list[float], start: float, expected: float
) -> None:
    found = row_times_column(engine, spelling, left, right, start)
    assert found == expected or (np.isnan(found) and np.isnan(expected))
    if np.isnan(expected):
        assert found.tobytes() in (b"\xff\xff\xff\x7f", b"\xff\x7f")


E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
E5M2 = "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32"


@pytest.mark.parametrize(
    ("spelling", "pattern", "expected"),
    [
        (E4M3, 0x38, 1), (E4M3, 0x7E, 448), (E4M3, 0x01, 2.0**-9), (E4M3, 0x08, 2.0**-6), (E4M3, 0xBC, -1.5),
        (E4M3, 0x7F, np.nan), (E4M3, 0xFF, np.nan), (E4M3, 0x78, 256),
        (E5M2, 0x3C, 1), (E5M2, 0x7B, 57344), (E5M2, 0x01, 2.0**-16), (E5M2, 0x7C, np.inf), (E5M2, 0x7D, np.nan),
        ("mma.sync.aligned.m16n8k16.row.col.f16.e5m2.e4m3.f16", 0x3C, 1.5),
    ],
)  # fmt: skip
def test_fp8_patterns(engine: str, spelling: str, pattern: int, expected: float) -> None:
    one = {"e4m3": 0x38, "e5m2": 0x3C}[spelling.split(".")[8]]
    found = row_times_column(engine, spelling, [pattern], [one], 0 if "f16" not in spelling else 0.5)
    assert found == expected or (np.isnan(found) and np.isnan(expected))


@pytest.mark.parametrize(("suffix", "expected"), [("", -(2**31) + 9), (".satfinite", 2**31 - 1)])
def test_integer_sums_wrap_or_saturate(engine: str, suffix: str, expected: int) -> None:
    spelling = f"mma.sync.aligned.m16n8k32.row.col{suffix}.s32.s8.u8.s32"
    assert row_times_column(engine, spelling, [10], [1], 2**31 - 1) == expected
    # Sums that leave the range and come back are exact.
    assert row_times_column(engine, spelling, [100, -100], [200, 200], 2**31 - 1) == 2**31 - 1


def test_random_halves_round_once(engine: str) -> None:
    """Against exact fractions: where the sum is an f64, NumPy rounds it once."""
    random = np.random.default_rng(6)
    a, b, c = (random.standard_normal(size).astype(np.float16) for size in ((16, 16), (16, 8), (16, 8)))
    found, _ = multiply(engine, F16_F16, a, b, c)
    left, right, start = (np.vectorize(Fraction, otypes=[object])(matrix.astype(float)) for matrix in (a, b, c))
    exact = left @ right + start
    sums = exact.astype(float)
    assert all(Fraction(value) == fraction for value, fraction in zip(sums.ravel(), exact.ravel(), strict=True))
    assert np.array_equal(found, sums.astype(np.float16))


PRODUCTS = [row for row in all_rows() if row.pipe == "tensor"]


@pytest.mark.parametrize(("row", "spelling"), [(row, spelling) for row in PRODUCTS for spelling in sample(row, 2)])
def test_engines_agree_on_any_patterns(row: Row, spelling: str) -> None:
    form = form_of(spelling, row)
    registers = {x: (role.count, 8 if role.type == "b64" else 4) for x, role in zip("dabc", form.roles, strict=True)}
    size = 32 * sum(registers[letter][0] * registers[letter][1] for letter in "abc")
    source = np.random.default_rng(12).integers(0, 256, size).astype(np.uint8)
    # Mostly small numbers, so that not every sum is a NaN.
    source[source > 0xC0] &= 0x3F
    results = []
    for engine in ENGINE_NAMES:
        output = np.zeros(32 * registers["d"][0] * registers["d"][1], np.uint8)
        counters = run(engine, _text(spelling, registers), source, output).counters
        results.append((output.tobytes(), counters))
    assert results[0][0] == results[1][0]
    assert results[0][1].differences(results[1][1]) == {}


@pytest.mark.parametrize(
    ("guard", "block", "lane"), [("", 16, 0), ("@%p1 ", 32, 8)], ids=["half a warp", "some lanes off"]
)
def test_a_part_of_a_warp_is_a_fault(engine: str, guard: str, block: int, lane: int) -> None:
    body = f"""mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 8;
    {guard}mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{%f1,%f2,%f3,%f4}}, {{%r1,%r1,%r1,%r1}}, {{%r1,%r1}}, {{%f1,%f1,%f1,%f1}};"""
    with pytest.raises(KernelFault, match="All 32 lanes") as caught:
        run(engine, kernel("", body), block=block)
    assert (caught.value.fault.kind, caught.value.fault.thread) == ("warp-sync", (lane, 0, 0))


def test_a_guard_that_holds_nowhere_skips(engine: str) -> None:
    body = """ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 99; mov.f32 %f1, 0f40000000;
    @%p1 mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r1}, {%r1}, {%f1,%f1,%f1,%f1};
    mad.wide.u32 %rd1, %r1, 4, %rd1; st.global.f32 [%rd1], %f1;"""
    out = np.zeros(32, np.float32)
    run(engine, kernel("u64 out", body), out)
    assert (out == 2).all()


@pytest.mark.parametrize(
    "line",
    [
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%f1,%f2,%f3,%f4}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%r1,%r1};",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r1}, {%r1,%r1}, {%f1,%f1,%f1,%f1}, %r1, 0;",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r1}, {%r1,%r1}, {%f1,%f1,%f1,%f1};",
        "wgmma.fence.sync.aligned;",
    ],
)
def test_other_forms_are_refused_by_name(line: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=line.split(".")[0]):
        load(parse(kernel("", line)), "k")
