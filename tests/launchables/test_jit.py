"""``from gpulab import cuda``: every way to write a kernel and launch it, held to NumPy."""

from __future__ import annotations

import math
import re
from typing import Any

import numba as host_numba
import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.errors import ArgumentError, CompileError, KernelException, KernelFault, LaunchError

RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def emulated_gpu() -> None:
    gpulab.use("A100")


@cuda.jit
def scale(x, y, a):
    """Multiply."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i]


def vector(n: int = 1000, dtype: Any = np.float32) -> np.ndarray:
    return RNG.standard_normal(n).astype(dtype)


# ---- spellings


def test_a_numpy_array_holds_the_result() -> None:
    x, y = vector(), np.zeros(1000, np.float32)
    scale[4, 256](x, y, np.float32(2.5))
    assert np.array_equal(y, np.float32(2.5) * x)


def test_a_kernel_keeps_the_functions_name_and_words() -> None:
    assert (scale.__name__, scale.name, scale.__doc__) == ("scale", "scale", "Multiply.")
    assert scale.source.startswith("@cuda.jit\ndef scale(x, y, a):")


@pytest.mark.parametrize(
    "decorator",
    [
        cuda.jit,
        cuda.jit(),
        cuda.jit(fastmath=True, max_registers=32, lineinfo=True, cache=True),
        cuda.jit("void(float32[:], float32)"),
        cuda.jit("(float32[::1], float64)"),
        cuda.jit(["void(float64[:], float64)", "void(float32[:], float32)"]),
        cuda.jit(host_numba.void(host_numba.float32[:], host_numba.float32)),
        cuda.jit((host_numba.float32[:], host_numba.int32)),
    ],
    ids=range(8),
)
def test_every_form_of_the_decorator(decorator: Any) -> None:
    @decorator
    def fill(x, a):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = a

    x = np.zeros(40, np.float32)
    fill[2, 32](x, 3)
    assert (x == 3).all()


@pytest.mark.parametrize("grid", [4, (4,), (4, 1), (2, 2, 1), np.int64(4), [4]])
def test_every_form_of_the_launch(grid: Any) -> None:
    @cuda.jit
    def number(x):
        block = cuda.blockIdx.x + cuda.blockIdx.y * cuda.gridDim.x
        x[block, cuda.threadIdx.y, cuda.threadIdx.x] = block * 100 + cuda.threadIdx.y * 10 + cuda.threadIdx.x

    expected = (np.arange(4)[:, None, None] * 100 + np.arange(2)[:, None] * 10 + np.arange(8)).astype(np.int32)
    for arguments in ((grid, (8, 2)), (grid, (8, 2), 0), (grid, [8, 2], cuda.stream(), 0)):
        x = np.zeros((4, 2, 8), np.int32)
        number[arguments](x)
        assert np.array_equal(x, expected)


def test_cupys_launch_works_for_python_kernels_too() -> None:
    x, y = vector(), np.zeros(1000, np.float32)
    scale((4,), (256,), (x, y, 2))
    assert np.array_equal(y, 2 * x)
    scale(4, 256, [x, y, 3], shared_mem=64)
    assert np.array_equal(y, 3 * x)


def test_forall_launches_one_thread_for_each_task() -> None:
    x, y = vector(), np.zeros(1000, np.float32)
    scale.forall(1000)(x, y, np.float32(2))
    assert np.array_equal(y, 2 * x)
    scale.forall(0)(x, y, 9)
    assert np.array_equal(y, 2 * x)


def test_dynamic_shared_memory() -> None:
    @cuda.jit
    def reverse(x):
        tile = cuda.shared.array(0, np.float32)
        i = cuda.threadIdx.x
        tile[i] = x[i]
        cuda.syncthreads()
        x[i] = tile[cuda.blockDim.x - 1 - i]

    x = vector(96)
    expected = x[::-1].copy()
    reverse[1, 96, 0, 96 * 4](x)
    assert np.array_equal(x, expected)
    with pytest.raises(KernelFault, match="shared"):
        reverse[1, 96, 0, 95 * 4](x)


def test_device_functions_with_and_without_signature() -> None:
    @cuda.jit(device=True, inline="always")
    def twice(v):
        return 2 * v

    @cuda.jit(device=True, inline=True)
    def same(v):
        return v

    @cuda.jit("float32(float32, float32)", device=True, inline=False)
    def add(a, b):
        return twice(same(a)) + b

    @cuda.jit
    def kernel(x):
        i = cuda.threadIdx.x
        x[i] = add(x[i], 1)

    x = vector(32)
    expected = 2 * x + np.float32(1)
    kernel[1, 32](x)
    assert np.array_equal(x, expected)
    assert twice.py_func(21) == 42
    with pytest.raises(LaunchError, match=r"twice is a device function.*twice.py_func"):
        twice(1)


def test_a_kernel_keeps_the_outside_values_of_its_first_compilation() -> None:
    scope = {"cuda": cuda, "FACTOR": 2}
    exec("def f(x):\n    x[cuda.threadIdx.x] = FACTOR", scope)
    kernel, x = cuda.jit(scope["f"]), np.zeros(4)
    kernel[1, 4](x)
    scope["FACTOR"] = 5
    kernel[1, 4](x)
    assert (x == 2).all()
    again = cuda.jit(scope["f"])
    again[1, 4](x)
    assert (x == 5).all()


# ---- kinds of arguments


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::2],
        lambda x: x[::-1],
        lambda x: x.reshape(20, 50)[:, 7],
        lambda x: x.reshape(20, 50).T[3],
        lambda x: x[10:500],
    ],
)
def test_strided_arrays_are_right_in_and_out(view: Any) -> None:
    source, target = vector(), np.full(1000, -1, np.float32)
    x, y = view(source), view(target)
    scale[4, 256](x, y, 2)
    expected = np.full(1000, -1, np.float32)
    view(expected)[:] = 2 * x
    assert np.array_equal(target, expected)


def test_fortran_order_transposed_and_broadcast_arrays() -> None:
    @cuda.jit
    def add(a, b, c):
        i, j = cuda.grid(2)
        if i < c.shape[0] and j < c.shape[1]:
            c[i, j] = a[i, j] + b[i, j]

    a, b, c = np.asfortranarray(RNG.random((5, 9))), RNG.random((9, 5)).T, np.zeros((10, 18))[::2, ::-2]
    add[(1, 1), (16, 16)](a, b, c)
    assert np.array_equal(c, a + b)
    add[(1, 1), (16, 16)](np.broadcast_to(a[0], (5, 9)), b, c)
    assert np.array_equal(c, a[0] + b)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_every_item_type(dtype: str) -> None:
    @cuda.jit
    def copy(x, y, one):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i]
        elif i == x.size:
            y[i] = one

    x = (RNG.standard_normal(33) * 100).astype(dtype)
    y, one = np.zeros(34, dtype), np.ones(1, dtype)[0]
    copy[2, 32](x, y, one)
    assert np.array_equal(y, np.append(x, one))


def test_structured_arrays_and_records() -> None:
    fields = [("x", np.float32), ("v", np.float64), ("id", np.int16)]
    dtype = np.dtype(fields, align=True)
    particles = np.zeros(10, dtype)
    particles["x"], particles["v"], particles["id"] = vector(10), vector(10), np.arange(10)

    @cuda.jit
    def move(p, step):
        i = cuda.grid(1)
        if i < p.size:
            p[i].x = p[i].x + p[i].v * step.v
            p[i]["id"] += step.id

    step = np.array([(0, 0.5, 3)], dtype)[0]
    expected = particles.copy()
    expected["x"] = (expected["x"] + expected["v"] * 0.5).astype(np.float32)
    expected["id"] += 3
    move[1, 32](particles, step)
    assert np.array_equal(particles, expected)
    with pytest.raises(CompileError, match="align=True"):
        move[1, 32](particles.astype(fields), step)


def test_tuples_zero_dimensional_and_empty_arrays() -> None:
    @cuda.jit
    def kernel(out, shape, pair, scalar, empty):
        if cuda.grid(1) == 0:
            out[0], out[1] = shape[0] * 10 + shape[1], pair[0][0] + pair[1]
            out[2], out[3] = scalar[()], empty.size + len(empty.shape)

    out = np.zeros(4)
    kernel[1, 1](out, (3, 4), (np.array([5.5]), 2), np.array(7.5), np.zeros((0, 3)))
    assert out.tolist() == [34, 7.5, 7.5, 2]


def test_the_same_array_twice_is_one_array() -> None:
    x = vector(100)
    expected = 2 * x
    scale[1, 128](x, x, 2)
    assert np.array_equal(x, expected)


def test_hints_say_which_way_data_goes() -> None:
    @cuda.jit
    def kernel(a, b, c):
        i = cuda.threadIdx.x
        b[i] = a[i]
        c[i] += a[i]
        a[i] = -1

    a, b, c = vector(8), np.zeros(8, np.float32), np.ones(8, np.float32)
    before = a.copy()
    kernel[1, 8](cuda.In(a), cuda.Out(b), cuda.InOut(c))
    assert np.array_equal(a, before)
    assert np.array_equal(b, before)
    assert np.array_equal(c, before + 1)


# ---- mistakes


def test_a_readonly_array_may_be_read_and_is_never_written() -> None:
    x, y = vector(), np.zeros(1000, np.float32)
    x.flags.writeable = False
    scale[4, 256](x, y, 2)
    assert np.array_equal(y, 2 * x)
    with pytest.raises(CompileError, match=r"'y' is read-only.*y\.copy"):
        scale[4, 256](y, x, 2)
    assert np.array_equal(y, 2 * x)


def test_a_float64_array_for_a_declared_float32_is_refused() -> None:
    @cuda.jit("void(float32[:], float32)")
    def fill(x, a):
        x[cuda.grid(1)] = a

    message = (
        r"fill: parameter 1 'x' is float32\[:\], but float64 array \(4,\) came. Convert it, e.g. x.astype\(np.float32\)"
    )
    with pytest.raises(ArgumentError, match=message):
        fill[1, 4](np.zeros(4), 1)
    with pytest.raises(ArgumentError, match="must have 1 dimension"):
        fill[1, 4](np.zeros((2, 2), np.float32), 1)


def test_several_signatures_tell_which_there_are() -> None:
    @cuda.jit(["void(float32[:])", "void(int32[::1])"])
    def zero(x):
        x[cuda.grid(1)] = 0

    x = np.ones(4, np.int32)
    zero[1, 4](x)
    assert (x == 0).all()
    with pytest.raises(
        ArgumentError, match=r"no signature for \(int64\[::1\]\). It has: \(float32\[:\]\); \(int32\[::1\]\)"
    ):
        zero[1, 4](np.zeros(4, np.int64))
    with pytest.raises(ArgumentError, match="no signature for"):
        zero[1, 2](np.zeros(4, np.int32)[::2])


def test_a_call_without_grid_and_block_shows_the_spelling() -> None:
    with pytest.raises(LaunchError, match=r"scale\[grid, block\]\(x, y, a\)"):
        scale(1, 2, 3)
    for wrong in (4, (4,), (1, 2, 3, 4, 5)):
        with pytest.raises(LaunchError, match=r"scale\[grid, block\]"):
            scale[wrong]


def test_the_number_of_arguments_is_checked() -> None:
    with pytest.raises(ArgumentError, match=r"scale takes 3 arguments \(x, y, a\), but 2 came"):
        scale[1, 1](vector(), vector())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fast": True}, "has no option 'fast'. It has: device, "),
        ({"link": ["code.cu"]}, "linking other files is not supported"),
        ({"extensions": [1]}, "argument extensions"),
        ({"inline": "always"}, "kernels are not inlined"),
        ({"argtypes": ["f4"]}, "has no option 'argtypes'"),
    ],
)
def test_options_that_are_not_there_are_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        cuda.jit(**options)


def test_functions_that_cannot_be_kernels_are_refused() -> None:
    def generator(x):
        yield x

    def variadic(*args):
        pass

    for function, message in ((generator, "cannot yield"), (variadic, "fixed number of positional arguments")):
        with pytest.raises(CompileError, match=message):
            cuda.jit(function)
    with pytest.raises(CompileError, match="decorates a Python function, but 3 came"):
        cuda.jit("void()")(3)
    with pytest.raises(CompileError, match=r"decorated with cuda\.jit twice"):
        cuda.jit(scale)
    with pytest.raises(CompileError, match=r"has 1 parameters \(x\), but its signature has 2"):
        cuda.jit("void(float32[:], float32)")(lambda x: None)[1, 1](np.zeros(1, np.float32), 1)
    with pytest.raises(CompileError, match="A signature must look like"):
        cuda.jit("not a type")(lambda x: None)[1, 1](1)


def test_an_exception_in_a_debug_kernel_is_told_with_its_thread() -> None:
    @cuda.jit(debug=True, opt=False)
    def kernel(x):
        if cuda.grid(1) == 37:
            raise ValueError("too warm")

    line = kernel.py_func.__code__.co_firstlineno + 3
    told = rf"kernel raised ValueError: too warm \(line {line}\) in block \(1, 0, 0\), thread \(5, 0, 0\)"
    with pytest.raises(KernelException, match=told):
        kernel[2, 32](np.zeros(4))


def test_a_division_by_zero_in_a_debug_kernel_is_told_with_its_line() -> None:
    @cuda.jit(debug=True, opt=False)
    def kernel(x, n):
        i = cuda.grid(1)
        y = x[i] // (n + 1)
        x[i] = y % n
        x[i] += y // (n + 2)

    first = kernel.py_func.__code__.co_firstlineno
    for n, told, line in ((-1, "division", first + 3), (0, "modulo", first + 4), (-2, "division", first + 5)):
        words = rf"ZeroDivisionError: integer {told} by zero \(line {line}\) in block \(0, 0, 0\), thread"
        with pytest.raises(KernelException, match=words):
            kernel[1, 2](np.ones(2, np.int64), n)


@cuda.jit("int64(int64)", device=True)
def _fibonacci(n):
    return n if n < 2 else _fibonacci(n - 1) + _fibonacci(n - 2)


@cuda.jit(device=True)
def _collatz(n, trace):
    trace[0] += n
    return 0 if n == 1 else 1 + _collatz(n // 2 if n % 2 == 0 else 3 * n + 1, trace)


def test_device_functions_that_call_themselves() -> None:
    @cuda.jit
    def kernel(out, traces):
        i = cuda.threadIdx.x
        out[i] = 1000 * _fibonacci(i) + _collatz(i + 1, traces[i])

    def collatz(n: int) -> list[int]:
        return [n] if n == 1 else [n, *collatz(n // 2 if n % 2 == 0 else 3 * n + 1)]

    out, traces = np.zeros(10, np.int64), np.zeros((10, 1), np.int64)
    kernel[1, 10](out, traces)
    assert out.tolist() == [1000 * f + len(collatz(i + 1)) - 1 for i, f in enumerate([0, 1, 1, 2, 3, 5, 8, 13, 21, 34])]
    assert traces.ravel().tolist() == [sum(collatz(i + 1)) for i in range(10)]


@cuda.jit(device=True)
def _deep(n, one):
    return n if n == 0 else one + _deep(n - one, one)


def test_recursion_that_numba_has_not_says_what_it_has() -> None:
    with pytest.raises(CompileError, match=r"arguments of the very types.*f\(np.int64\(5\)\)"):
        cuda.jit(lambda x: _assign(x, _deep(5, 1)))[1, 1](np.zeros(1, np.int64))


@cuda.jit(device=True)
def _assign(x, value):
    x[0] = value


def test_the_next_launch_works_after_a_fault() -> None:
    @cuda.jit
    def unguarded(x):
        x[cuda.grid(1)] = math.sqrt(2)

    x = np.zeros(100)
    with pytest.raises(KernelFault) as caught:
        unguarded[1, 128](x)
    fault = caught.value.fault
    assert (fault.kind, fault.thread, fault.file) == ("out-of-bounds", (100, 0, 0), __file__)
    assert fault.line == unguarded.py_func.__code__.co_firstlineno + 2
    assert re.search(r"kernel unguarded at .* element 100 of x", str(caught.value))
    unguarded[1, 100](x)
    assert (x == math.sqrt(2)).all()
