"""Kernels out of files, and the arrays of a launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpulab.cli import files
from gpulab.cli.arguments import parse_argument
from gpulab.errors import ArgumentError, CompileError
from gpulab.launchables import NumbaKernel, PtxKernel, RawKernel

SCALE_CU = """
// extern "C" __global__ void commented_out(float *x) {}
#include "factor.h"
extern "C" __global__ void __launch_bounds__(256) scale(const float *x, float *y, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = FACTOR * a * x[i];
}
"""
TWO_CU = """
__global__ void first(int *x) { x[0] = 1; }
template <typename T> __global__
void second(T *x) { x[0] = 2; }
"""
KERNELS_PY = """
from {module} import cuda
import neighbor

@cuda.jit(device=True)
def helper(x):
    return x * neighbor.FACTOR

@cuda.jit
def scale(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = helper(x[i])
"""
NOTHING_PTX = """
.version 8.0
.target sm_80
.address_size 64
// .entry ghost
.visible .entry nothing(.param .u64 p) { ret; }
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def run(path: Path, kernel: str | None, *arguments: str, **launch: object) -> list[np.ndarray]:
    """Prepare a request and launch it."""
    request = files.Request(str(path), kernel, (2,), (32,), tuple(map(parse_argument, arguments)), **launch)
    bound, values = files.prepare(request)
    bound(*values)
    return values


def test_the_only_kernel_of_a_cuda_file_needs_no_name(tmp_path: Path) -> None:
    write(tmp_path, "factor.h", "#define FACTOR 3.0f\n")
    path = write(tmp_path, "scale.cu", SCALE_CU)
    x, y, _ = run(path, None, "in:float32:64:random", "out:float32:64", "float32=2")
    np.testing.assert_array_equal(y, np.float32(6) * x)


def test_one_of_several_kernels_is_chosen_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, "two.cu", TWO_CU)
    with pytest.raises(ArgumentError, match=r"several kernels \(first, second\).*--kernel"):
        files.load(path, None)
    assert isinstance(files.load(path, "first"), RawKernel)
    (x,) = run(path, "second<short>", "inout:int16:4:ones")
    np.testing.assert_array_equal(x, np.array([2, 1, 1, 1], np.int16))


def test_compiler_options_reach_the_compiler(tmp_path: Path) -> None:
    path = write(tmp_path, "set.cu", "__global__ void set(int *x) { x[threadIdx.x] = VALUE; }")
    (x,) = run(path, None, "out:int32:32", options=("-DVALUE=7",))
    np.testing.assert_array_equal(x, np.full(32, 7, np.int32))


@pytest.mark.parametrize("module", ["gpulab", "numba"])
def test_python_kernels_of_each_package(tmp_path: Path, module: str) -> None:
    write(tmp_path, "neighbor.py", "FACTOR = 5\n")
    path = write(tmp_path, "kernels.py", KERNELS_PY.format(module=module))
    x, y = run(path, None, "in:int32:40:random", "out:int32:40")
    np.testing.assert_array_equal(y, 5 * x)
    assert isinstance(files.load(path, "scale"), NumbaKernel)


def test_a_python_file_that_stops_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"line 2.*ZeroDivisionError"):
        files.load(write(tmp_path, "wrong.py", "x = 1\ny = x / 0\n"), None)
    with pytest.raises(CompileError, match=r"line 1.*SyntaxError"):
        files.load(write(tmp_path, "worse.py", "def\n"), None)


def test_a_device_function_is_no_kernel(tmp_path: Path) -> None:
    text = "from numba import cuda\n@cuda.jit(device=True)\ndef helper(x):\n    return x\n"
    with pytest.raises(ArgumentError, match="no kernel"):
        files.load(write(tmp_path, "device.py", text), None)


def test_ptx_files(tmp_path: Path) -> None:
    path = write(tmp_path, "nothing.ptx", NOTHING_PTX)
    assert isinstance(files.load(path, None), PtxKernel)
    with pytest.raises(ArgumentError, match="Did you mean 'nothing'"):
        files.load(path, "nothin")


def test_much_dynamic_shared_memory_is_asked_for(tmp_path: Path) -> None:
    text = "extern __shared__ int s[]; __global__ void last(int *x, int n) { s[n] = 4; x[0] = s[n]; }"
    path = write(tmp_path, "shared.cu", text)
    x, _ = run(path, None, "out:int32:1", "int32=15999", shared_bytes=64_000)
    assert x[0] == 4


@pytest.mark.parametrize(
    ("name", "options", "hint"),
    [
        ("missing.cu", (), "can't be read"),
        ("kernel.cpp", (), ".cu, .py or .ptx"),
        ("empty.cu", (), "no kernel"),
        ("empty.py", ("-O3",), "--option"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, name: str, options: tuple[str, ...], hint: str) -> None:
    write(tmp_path, "empty.cu", "")
    write(tmp_path, "empty.py", "")
    with pytest.raises(ArgumentError, match=hint):
        files.load(tmp_path / name, None, options)


def test_arrays_are_saved_by_position(tmp_path: Path) -> None:
    x = np.arange(6.0).reshape(2, 3)
    files.save(str(tmp_path / "kept.npz"), [np.float32(1), x])
    with np.load(tmp_path / "kept.npz") as kept:
        assert kept.files == ["arg1"]
        np.testing.assert_array_equal(kept["arg1"], x)
    with pytest.raises(ArgumentError, match="can't be written"):
        files.save(str(tmp_path / "no" / "kept.npz"), [x])
