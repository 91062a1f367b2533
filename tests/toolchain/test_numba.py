"""Python kernels to PTX: every capability, what may stand inside, options, errors with the user's line, the cache."""

from __future__ import annotations

import inspect
import math
import operator
import re
import runpy
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba as host_numba
import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.errors import CompileError, ToolchainError
from gpulab.toolchain import numba as compiler
from gpulab.toolchain.argument_types import numba_type
from gpulab.toolchain.records import COMPUTE_CAPABILITIES, PtxText

X = np.zeros(8, np.float32)
READONLY = np.zeros(8, np.float32)
READONLY.flags.writeable = False
TILE = 16
WEIGHTS = np.array([1.5, 2.5, 3.5], np.float32)


def compiled(function: Callable[..., None], *args: Any, cc: tuple[int, int] = (8, 0), **options: Any) -> PtxText:
    """PTX of a plain Python function for these arguments."""
    names = inspect.signature(function).parameters
    return compiler.compile_kernel(
        function, tuple(numba_type(value, name) for value, name in zip(args, names, strict=True)), cc, **options
    )


def scale(x, y, a):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * x[i]


@pytest.mark.parametrize("capability", COMPUTE_CAPABILITIES)
def test_every_capability_from_volta_to_blackwell(capability: tuple[int, int]) -> None:
    ptx = compiled(scale, X, X, 2.0, cc=capability)
    assert ".target sm_{}{}".format(*capability) in ptx.text
    assert f".entry {ptx.kernel}(" in ptx.text


def test_atomics_on_floats_compile_for_blackwell() -> None:
    def add(total, x):
        cuda.atomic.add(total, 0, x[cuda.threadIdx.x])

    for array in (np.zeros(1, np.float32), np.zeros(1)):
        ptx = compiled(add, array, array, cc=(12, 0))
        assert ptx.compute_capability == (12, 0) and "atom.global.add.f" in ptx.text
        assert ptx.assembled.registers_per_thread


def test_an_unknown_capability_is_refused_by_name() -> None:
    with pytest.raises(ToolchainError, match=r"9\.5"):
        compiled(scale, X, X, 2.0, cc=(9, 5))


def test_the_record_says_where_it_came_from() -> None:
    ptx = compiled(scale, X, X, 2.0)
    first = scale.__code__.co_firstlineno
    assert (ptx.name, ptx.language, ptx.file, ptx.source_line) == ("scale", "numba", __file__, first)
    assert ptx.source == inspect.getsource(scale)
    assert re.fullmatch(r"numba-cuda \S+ / libNVVM 12\.9", ptx.compiler)
    assert [str(parameter) for parameter in ptx.parameters] == ["float32[::1]", "float32[::1]", "float64"]
    assert f'"{__file__}"' in ptx.text
    lines = {int(line) for line in re.findall(r"\.loc\s+\d+ (\d+) ", ptx.text)}
    assert {first + 1, first + 2, first + 3} <= lines


def test_attributes_of_gpulab_cuda_work_inside_a_kernel() -> None:
    def kernel(x):
        tile = cuda.shared.array(TILE, np.float32)
        mine = cuda.local.array(4, host_numba.float32)
        weights = cuda.const.array_like(WEIGHTS)
        dynamic = cuda.shared.array(0, np.float32)
        i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x + gpulab.cuda.gridDim.y
        tile[i] = x[i] + weights[i % 3] + dynamic[0]
        mine[i % 4] = math.sqrt(tile[i])
        cuda.syncthreads()
        mine[(i + 1) % 4] += cuda.shfl_down_sync(0xFFFFFFFF, tile[i], 1) + cuda.laneid
        cuda.atomic.add(x, 0, mine[i % 4])
        if cuda.any_sync(0xFFFFFFFF, x[i] > 1):
            x[i] = cuda.gridsize(1)

    text = compiled(kernel, X).text
    for sign in (".shared", ".local", ".const", ".extern .shared", "bar.sync", "shfl.sync.down", "atom", "vote.sync"):
        assert sign in text, sign


def test_device_functions_may_be_nested_and_live_anywhere() -> None:
    @cuda.jit(device=True)
    def inner(v):
        return v * 3.5

    @cuda.jit(device=True)
    def outer(v):
        return inner(v) + cuda.threadIdx.x

    class Namespace:
        pass

    def kernel(x):
        x[0] = outer(x[1])

    assert "0f40600000" in compiled(kernel, X).text or "0d400C000000000000" in compiled(kernel, X).text


def test_a_device_function_of_numba_itself_works_too() -> None:
    from numba import cuda as numbas

    @numbas.jit(device=True)
    def double(v):
        return v + v

    def kernel(x):
        x[numbas.grid(1)] = double(x[0])

    assert "add.f32" in compiled(kernel, X).text


def test_what_a_closure_holds_is_a_constant_of_the_kernel() -> None:
    def make(size: int) -> Callable[..., None]:
        def kernel(x):
            tile = cuda.shared.array(size, np.float32)
            tile[0] = x[0]
            cuda.syncthreads()
            x[1] = tile[0]

        return kernel

    small, large = compiled(make(64), X), compiled(make(128), X)
    assert [ptx.assembled.static_shared_bytes for ptx in (small, large)] == [256, 512]


def test_a_function_typed_in_a_console_compiles_without_a_warning(recwarn: pytest.WarningsRecorder) -> None:
    scope = {"cuda": cuda}
    exec("def typed(x):\n    x[cuda.threadIdx.x] = 1", scope)
    ptx = compiled(scope["typed"], X)
    assert ptx.source is None
    assert len(recwarn) == 0


def test_fastmath_and_opt_reach_the_compiler() -> None:
    def divide(x):
        x[0] = x[1] / x[2]

    assert "div.approx.ftz.f32" in compiled(divide, X, fastmath=True).text
    assert "div.rn.f32" in compiled(divide, X).text
    assert len(compiled(divide, X, opt=False).text) > 2 * len(compiled(divide, X).text)


def test_launch_bounds_and_max_registers_reach_the_assembler() -> None:
    bounded = compiled(scale, X, X, 2.0, launch_bounds=(128, 2))
    assert re.search(r"\.maxntid\s+128", bounded.text)
    assert compiled(scale, X, X, 2.0, max_registers=16).register_limit == 16


# ---- errors


def unknown_name(x):
    i = cuda.grid(1)
    x[i] = missing  # here  # noqa: F821


def no_such_operation(x):
    a = x[0]
    a = "text" + a  # here


def imports(x):
    import os  # here

    x[0] = os


def returns(x):
    if x[0] > 1:
        return None
    return x[0]  # here


def varying_shared_size(x):
    tile = cuda.shared.array(x.size, np.float32)  # here
    x[0] = tile[0]


def two_types(x):
    v = x[0] if x[1] > 0 else x  # here
    x[1] = v


def opens_a_file(x):
    with open("x") as _file:  # here
        x[0] = 1


@cuda.jit(device=True)
def wrong_index(x):
    return x[1.5]  # here


def calls_a_wrong_one(x):
    x[0] = wrong_index(x)


def writes_readonly(data):
    data[0] = 1  # here


def makes_a_new_array(x):
    x = x + 1  # here


@cuda.jit(device=True)
def calls_itself_for_ever(n):
    return calls_itself_for_ever(n - 1)  # here


def unpacks_one_number(x):
    i, j = cuda.grid(1)  # here
    x[i] = j


def calls_the_endless_one(x):
    x[0] = calls_itself_for_ever(x[1])


BROKEN = [
    (unknown_name, X, "'missing' is not defined"),
    (no_such_operation, X, "Numba has no add(str text, float32)"),
    (imports, X, "A kernel cannot import"),
    (returns, X, "a kernel cannot return a value"),
    (varying_shared_size, X, "The shape of cuda.shared.array must be a constant"),
    (two_types, X, "A variable must keep one type"),
    (opens_a_file, X, "The 'with (context manager) as (variable):' construct is not supported"),
    (calls_a_wrong_one, X, "Unsupported array index type float64"),
    (makes_a_new_array, X, "it makes a new array"),
    (makes_a_new_array, X, "A kernel cannot make arrays as it runs"),
    (unpacks_one_number, X, "i = cuda.grid(1); i, j = cuda.grid(2)"),
    (calls_the_endless_one, X, "Rewrite the function as a loop."),
    (writes_readonly, READONLY, "'data' is read-only, so a kernel must not write to it. Pass a writable one"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "argument", "message"), BROKEN, ids=lambda value: getattr(value, "__name__", ""))
def test_what_does_not_compile_is_said_with_the_users_line(function: Any, argument: np.ndarray, message: str) -> None:
    inner = {calls_a_wrong_one: wrong_index, calls_the_endless_one: calls_itself_for_ever}
    where = inner[function].py_func if function in inner else function
    lines, first = inspect.getsourcelines(where)
    offset = next(number for number, line in enumerate(lines) if "# here" in line)
    with pytest.raises(CompileError) as caught:
        compiled(function, argument)
    text = str(caught.value)
    assert message in text
    assert f"{__file__}, line {first + offset}:\n      {lines[offset].strip()}" in text
    assert text.startswith(f"{function.__name__} does not compile: ")


@pytest.mark.parametrize("body", ["i, j = cuda.grid(1)", "i = missing"])
def test_a_cell_of_a_notebook_is_not_called_by_its_made_up_name(body: str) -> None:
    scope = {"cuda": cuda}
    exec(compile(f"def f(x):\n    {body}\n    x[i] = 1", "/any/ipykernel_1/23.py", "exec"), scope)
    with pytest.raises(CompileError, match=r"\n  this notebook's cell, line 2") as caught:
        compiled(scope["f"], X)
    assert "ipykernel" not in str(caught.value)


# ---- the disk cache


SCRIPT = """
import sys, numpy as np
from gpulab import cuda
FACTOR = 2
@cuda.jit(device=True)
def times(v):
    return v * 3
@cuda.jit
def kernel(x):
    x[cuda.grid(1)] = times(x[0]) + FACTOR
ptx = kernel.compile((np.zeros(4, np.float32),), (8, 0))
print("numba" in sys.modules, ptx.digest, ptx.file)
"""


def script(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text(SCRIPT)
    return path


def test_a_kernel_of_an_earlier_process_is_found_without_numba(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path / "cache"))
    runpy.run_path(str(script(tmp_path, "first.py")), run_name="__main__")
    _, digest, file = capsys.readouterr().out.split()
    assert file.endswith("first.py")
    # A notebook's cell has another file name in every process; the PTX names the right one.
    for name in ("first.py", "second.py"):
        done = subprocess.run([sys.executable, script(tmp_path, name)], capture_output=True, text=True, check=True)
        loaded, its_digest, its_file = done.stdout.split()
        assert loaded == "False"
        assert its_file.endswith(name)
        assert (its_digest == digest) == (name == "first.py")


def fingerprint_of(function: Any) -> Any:
    from gpulab.toolchain import fingerprint

    told = fingerprint.of_function(function)
    return None if told is None else told[0]


def make_function(body: str, **outside: Any) -> Any:
    scope = {"cuda": cuda, "np": np, "math": math, "operator": operator, **outside}
    exec(compile(textwrap.dedent(body), "<cell>", "exec"), scope)
    return scope["f"]


BODY = "def f(x):\n    x[0] = G"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, 1.0),
        (0.0, -0.0),
        (True, 1),
        (np.float32(1), np.float64(1)),
        (np.arange(4), np.arange(4)[::-1].copy()),
        (np.zeros(4, np.float32), np.zeros(4, np.int32)),
        ((1, 2), (2, 1)),
        (host_numba.float32, host_numba.float64),
    ],
)
def test_values_from_outside_change_the_fingerprint(one: Any, other: Any) -> None:
    assert fingerprint_of(make_function(BODY, G=one)) == fingerprint_of(make_function(BODY, G=one))
    assert fingerprint_of(make_function(BODY, G=one)) != fingerprint_of(make_function(BODY, G=other))


def test_a_value_that_cannot_be_told_has_no_fingerprint() -> None:
    assert fingerprint_of(make_function(BODY, G=object())) is None
    assert fingerprint_of(make_function(BODY, G=lambda v: v)) is None


def test_constants_in_nested_code_and_other_modules_count() -> None:
    import types

    helper = types.ModuleType("helper")
    body = "def f(x):\n    x[0] = helper.limit"
    helper.limit = 1
    before = fingerprint_of(make_function(body, helper=helper))
    helper.limit = 2
    assert before is not None
    assert fingerprint_of(make_function(body, helper=helper)) != before
