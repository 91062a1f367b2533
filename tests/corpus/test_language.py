"""What the languages offer: templates, unions, cases, variables, tuples, records, printing."""

from __future__ import annotations

import collections
import math

import numba
import numpy as np
import pytest
from corpus import Runner, kernel

import gpulab
from gpulab import cuda

Box = collections.namedtuple("Box", "low high")
PARTICLE = np.dtype([("place", np.float32, 3), ("charge", np.int16), ("weight", np.float64)], align=True)


def test_a_functor_as_an_argument(run: Runner, random: np.random.Generator) -> None:
    x = random.integers(-100, 100, 45).astype(np.int32)
    out = np.zeros_like(x)
    clamp = np.void((-20, 30), np.dtype([("low", np.int32), ("high", np.int32)]))
    run(kernel("language.cu", "transform<int, Clamp<int>>")[2, 32], x, out, 45, clamp)
    assert (out == np.clip(x, -20, 30)).all()


def test_a_functor_with_an_array(run: Runner, random: np.random.Generator) -> None:
    x, out = random.random(33), np.zeros(33)
    cubic = np.array([((0.5, -1, 2, 3),)], [("c", np.float64, 4)])[0]
    run(kernel("language.cu", "transform<double, Polynomial<double>>")[1, 64], x, out, 33, cubic)
    np.testing.assert_allclose(out, 0.5 - x + 2 * x**2 + 3 * x**3, rtol=1e-12)


def test_templates_computed_by_the_compiler(run: Runner) -> None:
    out = np.zeros(4, np.int64)
    run(kernel("language.cu", "folds")[1, 1], out)
    assert out.tolist() == [math.factorial(15), 10, 1, 64]


def test_classes_and_operators(run: Runner, random: np.random.Generator) -> None:
    points = random.random((21, 2)).astype(np.float32)
    z = points.astype(np.float64) @ [1, 1j]
    run(kernel("language.cu", "rotate")[1, 32], points, 21, 0.1)
    turned = z * np.exp(2j * np.pi * 0.1 * (1 + np.arange(21) % 2))
    np.testing.assert_allclose(points @ [1, 1j], turned, atol=1e-6)


def test_unions_and_bit_fields(run: Runner, random: np.random.Generator) -> None:
    x = (np.ldexp(random.random(25) + 1, random.integers(-50, 50, 25)) * random.choice([-1, 1], 25)).astype(np.float32)
    exponent, fraction = np.zeros(25, np.int32), np.zeros(25, np.uint32)
    swapped, packed = np.zeros(25, np.float32), random.integers(0, 2**32, 25, np.uint32)
    a, b, c = packed & 31, (packed >> 5 & 127).astype(int), packed >> 12
    run(kernel("language.cu", "take_apart")[2, 20], x, exponent, fraction, swapped, packed, 25)
    mantissa, power = np.frexp(np.abs(x.astype(np.float64)))
    assert (exponent == power - 1).all() and (fraction == (2 * mantissa - 1) * 2**23).all()
    assert swapped.tobytes() == x.byteswap().tobytes()
    wanted = ((a + 3) % 32) | ((b - 40) % 128 << 5) | ((c ^ 0xFFFFF).astype(int) << 12)
    assert (packed == wanted).all()


def test_a_small_machine(run: Runner, random: np.random.Generator) -> None:
    inputs, outputs = random.integers(-5, 12, 40).astype(np.int32), np.zeros(40, np.int32)
    # total = 0, count = input; total = total * 3 % 1000 and count -= 1 until count is 0 or less; each thread its own number
    program = [1, 1, 2, 7, 1, 3, 4, 8, 7, 1, 255, 3, 5, 6, 256 - 11, 7, 0]
    run(kernel("language.cu", "run_program")[2, 32], np.array(program, np.uint8), inputs, outputs, 40)
    assert outputs.tolist() == [machine(program, int(x)) for x in inputs]


def machine(code: list[int], given: int) -> int:
    """The same machine in Python; C's remainder has the sign of the dividend."""
    stack, pc = [], 0
    while True:
        op, pc = code[pc], pc + 1
        if op == 0:
            return stack[0]
        if op == 1:
            stack.append((code[pc] + 128) % 256 - 128)
            pc += 1
        elif op == 2:
            stack.append(given)
        elif op in (3, 4):
            last = stack.pop()
            stack[-1] = stack[-1] + last if op == 3 else stack[-1] * last
        elif op == 5:
            stack.append(stack[-1])
        elif op == 6:
            pc += (code[pc] + 128) % 256 - 128 if stack.pop() > 0 else 1
        elif op == 7:
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif op == 8:
            stack[-1] = int(math.fmod(stack[-1], 1000))
        elif op == 9:
            stack[-1] = -stack[-1]


def test_variables_of_the_module(run: Runner) -> None:
    remember, out = kernel("language.cu", "remember"), np.zeros(5)
    run(remember[1, 32], out)
    assert out.tolist() == [6, 20, -1.5, 11, 2]
    run(remember[1, 32], out)
    assert out.tolist() == [7, 20, -1.5, 11, 4]


@pytest.mark.parametrize("n", [13, 32])
def test_several_arrays_in_dynamic_shared_memory(run: Runner, random: np.random.Generator, n: int) -> None:
    x, order, sums = random.integers(0, 9, n).astype(np.float64), np.zeros(n, np.int16), np.zeros(n)
    run(kernel("language.cu", "share_parts")[1, 40, 0, 15 * n], x, order, sums, n)
    assert (order == np.argsort(x, kind="stable")).all()
    assert (sums[1:] == np.diff(np.sort(x))).all() and sums[0] == 0


def test_atomics_of_64_bits(run: Runner) -> None:
    n = 40
    u, s, d = np.array([0, 0, 2**64 - 1, 0, 0], np.uint64), np.array([0, -99], np.int64), np.array([1.0, 2.0])
    run(kernel("language.cu", "atomics_64")[2, 24], u, s, d, n)
    big = [0x123456789ABCDEF * (i + 1) % 2**64 for i in range(n)]
    signed = [-(x - 2**64 if x >= 2**63 else x) for x in big]
    folded = 0
    for value in big:
        folded ^= value
    wanted = [sum(big) % 2**64, folded, 2**64 - 2**n, (2**n - 1) << 20, max(big)]
    assert u.tolist() == wanted
    assert s.tolist() == [min(0, *signed), n - 8]
    assert d.tolist() == [1 + 0.25 * sum(range(n)), 2 * 1.5**n]


def test_complex_numbers_of_the_library(run: Runner, random: np.random.Generator) -> None:
    z, root = random.random(40) * 4 - 2 + 1j * (random.random(40) * 4 - 2), np.zeros(40, np.int32)
    run(kernel("library.cu", "roots")[2, 32], z, root, 40)
    for _ in range(30):
        z = z - (z**3 - 1) / (3 * z**2)
    assert (root == np.where(z.real > 0, 0, np.where(z.imag > 0, 1, 2))).all()


def test_printf(run: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    x, names = np.array([0, 1.5, 2, -0.0375, 4], np.float32), np.frombuffer(b"abcde", np.int8)
    gpulab.current().launch(kernel("talking.cu", "report")[1, 32], (x, names, 5))
    lines = sorted(capsys.readouterr().out.splitlines())
    assert lines == [
        "early 1:   1.50|1.500e+00|b|    7|0xff|-2199023255552|%",
        *["even"] * 3,
        "late 3:  -0.04|-3.750e-02|d|   21|0x2fd|-8796093022208|%",
    ]


def test_assert() -> None:
    x, insist = np.arange(70, dtype=np.int32), kernel("talking.cu", "insist")
    insist[3, 32](x, 70, 70)
    with pytest.raises(gpulab.errors.KernelFault, match="limit") as caught:
        insist[3, 32](x, 69, 70)
    assert (caught.value.fault.block[0], caught.value.fault.thread[0]) == (2, 5)


@cuda.jit
def records_python(particles, out, box):
    i = cuda.grid(1)
    if i < particles.size:
        inside = True
        for k in range(3):
            inside = inside and box.low <= particles[i].place[k] < box.high
        out[i] = particles[i].weight * particles[i].charge if inside else -1.0
        particles[i].charge += 1


@cuda.jit
def views_python(x, out, pair):
    """Slices, strides, tuples, a nested function and unpacking."""
    i = cuda.grid(1)

    def weighted(a, b):
        return pair[0] * a + pair[1] * b

    if i < out.size:
        column = x[::2, i]
        total = 0.0
        for value in column:
            total += value
        first, last = column[0], column[-1]
        out[i] = total + weighted(first, last)


@cuda.jit
def many_types_python(a, b, c, d, e):
    i = cuda.grid(1)
    if i < a.size:
        a[i] = np.int8(a[i] * 3)
        b[i] = b[i] >> 3 | numba.uint16(a[i] & 7)
        c[i] = np.float16(math.sqrt(float(c[i])))
        d[i] = d[i].conjugate() * 1j
        e[i] = (a[i] > 0) ^ e[i]


@cuda.jit
def report_python(x):
    if x[cuda.threadIdx.x] > 1:
        print("big", cuda.threadIdx.x, x[cuda.threadIdx.x])  # noqa: T201 (the kernel's)


def test_records_and_named_tuples_in_python(run: Runner, random: np.random.Generator) -> None:
    particles = np.zeros(37, PARTICLE)
    particles["place"], particles["weight"] = random.random((37, 3)) * 2, random.random(37)
    particles["charge"] = random.integers(-5, 5, 37)
    before, out = particles.copy(), np.zeros(37)
    run(records_python[2, 32], particles, out, Box(0.25, 1.75))
    inside = ((before["place"] >= 0.25) & (before["place"] < 1.75)).all(1)
    assert (out == np.where(inside, before["weight"] * before["charge"], -1)).all()
    assert (particles["charge"] == before["charge"] + 1).all()


def test_views_in_python(run: Runner, random: np.random.Generator) -> None:
    x = random.random((9, 44))[:, ::2]
    out = np.zeros(22)
    run(views_python[1, 32], x, out, (2.0, -1))
    np.testing.assert_allclose(out, x[::2].sum(0) + 2 * x[0] - x[8], rtol=1e-13)


def test_many_types_in_python(run: Runner, random: np.random.Generator) -> None:
    a, b = random.integers(-128, 128, 40).astype(np.int8), random.integers(0, 2**16, 40).astype(np.uint16)
    c, d = random.random(40).astype(np.float16), (random.random(40) + 1j * random.random(40)).astype(np.complex64)
    e = random.random(40) < 0.5
    wanted_a = (a.astype(int) * 3).astype(np.int8)
    wanted = [wanted_a, b >> 3 | (wanted_a & 7).astype(np.uint16), np.sqrt(c), d.conjugate() * 1j, (wanted_a > 0) ^ e]
    run(many_types_python[2, 32], a, b, c, d, e)
    for mine, theirs in zip((a, b, c, d, e), wanted, strict=True):
        assert (mine == theirs).all()


def test_print_in_python(run: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    report_python[1, 4](np.array([0, 2.5, 1, 7]))
    assert sorted(capsys.readouterr().out.splitlines()) == ["big 1 2.500000", "big 3 7.000000"]
