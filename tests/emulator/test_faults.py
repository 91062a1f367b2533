"""Messages of faults: whose mistake, where, what to do."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_harness import HEADER, run

import gpulab
from gpulab.errors import KernelFault, TimeLimitError

LINES = """
.visible .entry {name}(.param .u64 a)
{{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    .loc 1 12 5
    ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mad.lo.u32 %r1, %r2, 8, %r1; mad.wide.u32 %rd2, %r1, 4, %rd1;
    .loc 1 13 9
    st.global.u32 [%rd2], %r1;
    ret;
}}
.file 1 "/home/me/kernel.cu"
"""


@pytest.mark.parametrize(
    ("mangled", "shown"),
    [
        ("scale", "scale"),
        ("_Z5scalePfi", "scale"),
        ("_ZN3lab5scaleEPf", "scale"),
        (
            "_ZN8__main__5scaleB2v1B106cw51cXTLSUwv1sDUaKthoaNgoKmjgMVuW1AiA8rAEg2E5ArrayIfLi1E1C7mutable7alignedE",
            "scale",
        ),
        ("_Z", "_Z"),
    ],
)
def test_a_fault_names_kernel_line_block_thread_and_array(engine: str, mangled: str, shown: str) -> None:
    with pytest.raises(KernelFault) as caught:
        run(
            engine,
            HEADER + LINES.format(name=mangled),
            np.zeros((4, 5), np.int32),
            block=(8, 4),
            grid=(2, 2),
            names=("grid",),
        )
    fault = caught.value.fault
    assert (fault.file, fault.line, fault.ptx_line) == ("/home/me/kernel.cu", 13, 11)
    assert (fault.kind, fault.block, fault.thread) == ("out-of-bounds", (0, 0, 0), (4, 2, 0))
    assert fault.message == str(caught.value)
    for words in (
        f"in kernel {shown} at",
        "kernel.cu, line 13",
        "thread (4, 2, 0)",
        "element 20 of grid, which has 20 (int32, shape (4, 5))",
        "Guard",
    ):
        assert words in fault.message


def test_a_fault_in_a_header_is_told_where_the_reader_called_it() -> None:
    source = '#include <cuda/atomic>\nextern "C" __global__ void k(int* x) {\n  cuda::atomic_ref<int> a(x[1 << 20]);\n  a.fetch_add(1);\n}'
    with pytest.raises(KernelFault, match=r"at k\.cu, line 4") as caught:
        gpulab.RawKernel(source, "k")[1, 1](np.zeros(4, np.int32))
    assert (caught.value.fault.file, caught.value.fault.line) == ("k.cu", 4)


def test_a_stopped_launch_says_where_the_other_warps_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULAB_TIME_LIMIT_S", "0.5")
    gpulab.use("A100")
    source = """extern "C" __global__ void k(volatile int* flag, int* out) {
  if (threadIdx.x < 32) { int n = 0; while (flag[0] == 0 && n < 2000000000) n++; out[0] = n; }
  __syncthreads();
}"""
    with pytest.raises(
        TimeLimitError, match=r"k\.cu, line 2 .*warps 1-2 of block .* at k\.cu, line 3 \(barrier 0, 64 of all"
    ):
        gpulab.RawKernel(source, "k")[1, 96](np.zeros(1, np.int32), np.zeros(1, np.int32))
