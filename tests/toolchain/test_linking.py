"""CUDA C++ that a Python kernel calls, joined to its PTX."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.errors import CompileError
from gpulab.toolchain import linking

KERNEL = """.version 8.8
.target sm_80
.address_size 64

.extern .func  (.param .b32 func_retval0) twice
(
\t.param .b64 twice_param_0
)
;
.extern .func other(.param .b32 other_param_0);
.visible .entry k() { ret; }
"""


@cuda.jit
def halves(x, out):
    i = cuda.threadIdx.x
    out[i] = cuda.fp16.hfma(x[i], x[i], x[i]) if x[i] < np.float16(3) else x[i] / np.float16(7)


@cuda.jit
def bfloats(x, out):
    i = cuda.threadIdx.x
    value = cuda.bf16.bfloat16(x[i])
    out[i] = numba.float32(value * value + value)


def test_only_what_the_kernel_declares_is_joined() -> None:
    sources = [
        'extern "C" __device__ int twice(int* x) { asm("{.reg .b32 t;\\n}"); return 2 * *x; }\n__device__ int hidden;'
    ]
    sources[0] += 'extern "C" __device__ void unused() {}'
    text = linking.joined(KERNEL, sources, (8, 0))
    assert text.count(" twice(") == 1 and text.index(" twice(") < text.index(".entry")
    assert ".extern .func other" in text and ".func unused" not in text and "hidden" in text
    assert text.count(".version") == 1


def test_what_does_not_compile_is_said() -> None:
    with pytest.raises(CompileError, match="nonsense"):
        linking.joined(KERNEL, ["nonsense"], (8, 0))


def test_half_precision_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    gpulab.use("A100")
    x = np.array([1, 2.5, 3, 60000], np.float16)
    for engine in ("compiled", "reference"):
        monkeypatch.setenv("GPULAB_ENGINE", engine)
        out = np.zeros_like(x)
        profile = gpulab.profile(halves[1, 4], x, out)
        assert out.tolist() == [2, 8.75, *np.float16([3 / 7, 60000 / 7]).tolist()]
        assert profile.registers_per_thread


def test_bfloat_of_numba() -> None:
    gpulab.use("A100")
    out = np.zeros(3, np.float32)
    bfloats[1, 3](np.array([1, 3, 1.001953125], np.float32), out)
    assert out.tolist() == [2, 12, 2]
