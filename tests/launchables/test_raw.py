"""`RawKernel` and `PtxKernel`: CuPy's spelling and the brackets, variables of the module, shared memory, mistakes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.errors import ArgumentError, CompileError, KernelFault, LaunchError

SOURCE = """
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
template <class T> __global__ void fill(T* x, T value) { x[threadIdx.x] = value; }
"""
X = np.arange(100, dtype=np.float32)


@pytest.fixture(autouse=True)
def emulated_gpu() -> None:
    gpulab.use("A100")


@pytest.fixture
def scale() -> gpulab.RawKernel:
    return gpulab.RawKernel(SOURCE, "scale")


def test_cupys_launch_and_the_brackets_do_the_same(scale: gpulab.RawKernel) -> None:
    for launch in (
        lambda *args: scale((4,), (32,), args),
        lambda *args: scale(4, 32, list(args), shared_mem=16),
        lambda *args: scale[4, 32](*args),
        lambda *args: scale[(4, 1, 1), (32,), None, 16](*args),
    ):
        y = np.zeros_like(X)
        launch(X, y, 2.5, 100)
        assert np.array_equal(y, np.float32(2.5) * X)


def test_an_instantiation_is_launched_with_its_own_types() -> None:
    for spelled, dtype in (("float", np.float32), ("double", np.float64), ("unsigned char", np.uint8)):
        x = np.zeros(5, dtype)
        gpulab.RawKernel(SOURCE, f"fill<{spelled}>")[1, 5](x, 7)
        assert (x == 7).all()


def test_a_file_is_read_and_named(tmp_path: Path) -> None:
    path = tmp_path / "scale.cu"
    path.write_text(SOURCE.replace("i < n", "i < 2 * n"))
    (tmp_path / "copy.ptx").write_text(gpulab.RawKernel(SOURCE, "scale").compile(compute_capability=(8, 0)).text)
    with pytest.raises(KernelFault) as caught:
        gpulab.RawKernel.from_file(path, "scale")[4, 32](X, X.copy(), 1, 100)
    assert (caught.value.fault.file, caught.value.fault.line) == (str(path), 4)
    y = np.zeros_like(X)
    gpulab.PtxKernel.from_file(tmp_path / "copy.ptx")[4, 32](X, y, 3, 100)
    assert np.array_equal(y, 3 * X)


def test_pointers_to_vectors_structs_and_halves_take_arrays_of_plain_items() -> None:
    source = """
    #include <cuda_fp16.h>
    struct Pair { float a; int b; };
    extern "C" __global__ void k(float4* v, Pair* p, __half* h, half2* hh, void* raw, Pair one) {
        int i = threadIdx.x;
        v[i].w = 4; p[i].b += one.b; h[i] = __float2half(1.5f); hh[i].y = __float2half(2.5f); ((char*)raw)[i] = 'a' + i;
    }"""
    v, p = np.zeros((3, 4), np.float32), np.zeros(3, [("a", np.float32), ("b", np.int32)])
    h, hh, raw = np.zeros(3, np.float16), np.zeros(6, np.float16), np.zeros(3, np.uint8)
    gpulab.RawKernel(source, "k")[1, 3](v, p, h, hh, raw, np.array((0.5, 6), p.dtype))
    assert v[:, 3].tolist() == [4, 4, 4]
    assert p["b"].tolist() == [6, 6, 6]
    assert h.tolist() == [1.5, 1.5, 1.5]
    assert hh.tolist() == [0, 2.5] * 3
    assert raw.tobytes() == b"abc"


def test_variables_of_the_module_live_with_the_kernel_object() -> None:
    source = """
    __device__ int launches = 40;
    __constant__ float table[2] = {1.5f, 2.5f};
    extern "C" __global__ void k(float* x) { x[0] = ++launches; x[1] = table[threadIdx.x + 1]; }"""
    x, kernel = np.zeros(2, np.float32), gpulab.RawKernel(source, "k")
    for expected in (41, 42):
        kernel[1, 1](x)
        assert x.tolist() == [expected, 2.5]
    gpulab.RawKernel(source, "k")[1, 1](x)
    assert x.tolist() == [41, 2.5]


def test_more_than_48_kib_of_shared_memory_must_be_asked_for() -> None:
    source = """
    extern "C" __global__ void k(float* x) {
        extern __shared__ float tile[];
        __shared__ float fixed[256];
        int n = 24 * 1024;
        tile[n - 1] = 3; fixed[threadIdx.x] = 4; __syncthreads(); x[0] = tile[n - 1] + fixed[0];
    }"""
    x, kernel = np.zeros(1, np.float32), gpulab.RawKernel(source, "k")
    kernel[1, 1, None, 47 * 1024]  # a launch is only judged when it is called
    with pytest.raises(LaunchError, match=r"k.max_dynamic_shared_size_bytes = 98304"):
        kernel[1, 1, None, 96 * 1024](x)
    kernel.max_dynamic_shared_size_bytes = 96 * 1024
    kernel[1, 1, None, 96 * 1024](x)
    assert x[0] == 7
    kernel.max_dynamic_shared_size_bytes = 200 * 1024
    with pytest.raises(LaunchError, match=r"A100 has at most 166,912 bytes \(163 KiB\)"):
        kernel[1, 1, None, 163 * 1024](x)
    for wrong in (-1, 2.5):
        with pytest.raises(LaunchError, match="max_dynamic_shared_size_bytes must be"):
            kernel.max_dynamic_shared_size_bytes = wrong


def test_static_and_dynamic_shared_memory_count_together() -> None:
    source = 'extern "C" __global__ void k(float* x) { __shared__ float t[512]; t[threadIdx.x] = 1; x[0] = t[0]; }'
    kernel, x = gpulab.RawKernel(source, "k"), np.zeros(1, np.float32)
    kernel[1, 1, 0, 46 * 1024](x)  # 2 KiB static and 46 KiB dynamic
    with pytest.raises(LaunchError, match=re.escape("49,153 bytes (2,048 static + 47,105 dynamic)")):
        kernel[1, 1, 0, 46 * 1024 + 1](x)


def test_launch_bounds_and_registers_limit_the_block() -> None:
    bounded = 'extern "C" __global__ void __launch_bounds__(64) k(float* x) { x[threadIdx.x] = 1; }'
    with pytest.raises(LaunchError, match="at most 64 threads per block"):
        gpulab.RawKernel(bounded, "k")[1, 96](np.zeros(96, np.float32))
    lines = "\n".join(f"float v{i} = x[{i} * n];" for i in range(90))
    total = " + ".join(f"v{i} * v{(i * 7) % 90}" for i in range(90))
    hungry = f'extern "C" __global__ void k(float* x, int n) {{ {lines} __syncthreads(); x[n] = {total}; }}'
    kernel, x = gpulab.RawKernel(hungry, "k"), np.zeros(2048, np.float32)
    assert kernel.num_regs > 64
    with pytest.raises(LaunchError, match="registers per thread, so a block of 1,024 threads needs"):
        kernel[1, 1024](x, 1)
    kernel[1, 256](x, 1)
    # 105 to 120 registers are 3,840 a warp: 17 warps have room, but the hardware asks for it as if there were 20.
    assert 104 < kernel.num_regs <= 120
    kernel[1, 16 * 32](x, 1)
    with pytest.raises(LaunchError, match="a block of 544 threads needs 76,800, but an SM of the A100 has 65,536"):
        kernel[1, 17 * 32](x, 1)


def test_a_readonly_array_is_never_written(scale: gpulab.RawKernel) -> None:
    y = np.full(100, 5, np.float32)
    y.flags.writeable = False
    with pytest.raises(KernelFault, match="y, which is read-only"):
        scale[4, 32](X, y, 2, 100)
    assert (y == 5).all()
    with pytest.raises(KernelFault, match="y, which is read-only"):
        scale[1, 1](X, np.broadcast_to(np.float32(1), (1,)), 2, 1)


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((X.astype(np.float64), X.copy(), 1, 100), ArgumentError, "'x' is const float*, but float64 array (100,) came"),
        ((X[::2], X.copy(), 1, 50), ArgumentError, "pass np.ascontiguousarray(x)"),
        ((X, X.copy(), 1), ArgumentError, "scale takes 4 arguments (const float* x, float* y, float a, int n)"),
        ((X, 2.0, 1, 5), ArgumentError, "'y' is float*, but float 2.0 came. Pass an array."),
    ],
)
def test_arguments_that_do_not_fit(
    scale: gpulab.RawKernel, args: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        scale[4, 32](*args)


def test_a_wrong_call_shows_the_spelling(scale: gpulab.RawKernel) -> None:
    with pytest.raises(
        LaunchError, match=re.escape("scale(grid, block, (arguments…)) or as scale[grid, block](arguments…)")
    ):
        scale(X, X, 1.0)
    with pytest.raises(CompileError, match="takes the source and a name"):
        gpulab.RawKernel(SOURCE, None)  # type: ignore[arg-type]
    with pytest.raises(CompileError, match='backend="nvrtc"'):
        gpulab.RawKernel(SOURCE, "scale", backend="nvcc")


def test_resources_are_told_in_cupys_words(scale: gpulab.RawKernel) -> None:
    assert 4 < scale.num_regs < 64
    assert (scale.shared_size_bytes, scale.local_size_bytes) == (0, 0)


# ---- PTX


def test_ptx_runs_as_it_is(scale: gpulab.RawKernel) -> None:
    kernel = gpulab.PtxKernel(scale.compile(compute_capability=(7, 5)).text, "scale")
    y = np.zeros_like(X)
    kernel[4, 32](X, y, np.float32(3), np.int32(100))
    assert np.array_equal(y, 3 * X)
    kernel((4,), (32,), (cuda.to_device(X), y, 4.0, 100))
    assert np.array_equal(y, 4 * X)
    assert (kernel.language, kernel.name) == ("ptx", "scale")


def test_ptx_for_newer_gpus_and_missing_entries_are_refused(scale: gpulab.RawKernel) -> None:
    text = scale.compile(compute_capability=(9, 0)).text
    with pytest.raises(CompileError, match=r"compute capability 9.0 and newer \(.target\), but the GPU has 8.0"):
        gpulab.PtxKernel(text)[1, 1](X, X, 1, 1)
    with pytest.raises(ArgumentError, match=r'no kernel named "scales"\. It has: scale'):
        gpulab.PtxKernel(text, "scales")
    with pytest.raises(ArgumentError, match="no kernel"):
        gpulab.PtxKernel(".version 8.0\n.target sm_80\n", "k")
    two = text + text[text.index(".visible .entry") :].replace("scale", "other")
    with pytest.raises(ArgumentError, match=r"several kernels; name one\. It has: scale, other"):
        gpulab.PtxKernel(two)
