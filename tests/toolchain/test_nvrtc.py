"""CUDA C++ to PTX: names, parameter types as the compiler knows them, headers, and errors that show the user's line."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from gpulab.errors import CompileError, ToolchainError
from gpulab.toolchain import nvrtc
from gpulab.toolchain.records import COMPUTE_CAPABILITIES

SCALE = """
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""

ALL_TYPES = """
#include <cuda_fp16.h>
typedef float real;
struct Particle { float x, y, z; };
template <class T>
__global__ void every(const T* __restrict__ in, T* out, real a, int n, float2* pairs, Particle one,
                      unsigned long long big, __half h, bool flag, char c, void* any, const Particle* many,
                      unsigned char bytes[], volatile int* counter) {
    if (n) out[0] = in[0] * a;
}
"""


def test_a_name_is_the_sources_name_with_or_without_extern_c() -> None:
    plain = nvrtc.compile_kernel(SCALE, "scale")
    mangled = nvrtc.compile_kernel(SCALE.replace('extern "C"', ""), "scale")
    assert (plain.kernel, mangled.kernel) == ("scale", "_Z5scalePKfPffi")
    assert f".entry {mangled.kernel}(" in mangled.text


def test_a_name_may_be_an_instantiation() -> None:
    source = "namespace lab { template <class T, int N> __global__ void fill(T* x) { x[N] = T(N); } }"
    ptx = nvrtc.compile_kernel(source, "lab::fill<double, 3>")
    assert "fill" in ptx.kernel
    assert re.search(r"st\.global\.(u|b|f)64\s+\[%rd\d+\+24\]", ptx.text)  # 3 doubles on


def test_parameter_types_come_from_the_compiler() -> None:
    parameters = nvrtc.compile_kernel(ALL_TYPES, "every<double>").parameters
    told = [(str(each), each.name, each.kind, each.readonly, each.size) for each in parameters]
    assert told == [
        ("const double*", "in", "pointer", True, 8),
        ("double*", "out", "pointer", False, 8),
        ("float", "a", "scalar", False, 4),
        ("int", "n", "scalar", False, 4),
        ("float2*", "pairs", "pointer", False, 8),
        ("Particle", "one", "struct", False, 12),
        ("unsigned long long", "big", "scalar", False, 8),
        ("__half", "h", "struct", False, 2),
        ("bool", "flag", "scalar", False, 1),
        ("char", "c", "scalar", False, 1),
        ("void*", "any", "pointer", False, 8),
        ("const Particle*", "many", "pointer", True, 8),
        ("unsigned char*", "bytes", "pointer", False, 8),
        ("volatile int*", "counter", "pointer", False, 8),
    ]
    dtypes = {each.name: each.dtype for each in parameters}
    assert dtypes["in"] == np.float64
    assert dtypes["bytes"] == np.uint8
    assert dtypes["pairs"] is None


def test_the_question_for_the_types_leaves_no_trace_in_the_ptx() -> None:
    text = nvrtc.compile_kernel(SCALE, "scale").text
    assert "signature" not in text
    assert len(re.findall(r"^\s*\.file\s", text, re.M)) == 1


def test_lines_are_those_of_the_source() -> None:
    ptx = nvrtc.compile_kernel(SCALE, "scale", file="kernels/scale.cu")
    lines = {int(line) for line in re.findall(r"\.loc\s+1 (\d+) ", ptx.text)}
    assert lines == {2, 3, 4, 5} or lines == {2, 3, 4}
    assert re.search(r'\.file\s+1 "kernels/scale.cu"', ptx.text)


@pytest.mark.parametrize("capability", COMPUTE_CAPABILITIES)
def test_every_capability_from_volta_to_blackwell(capability: tuple[int, int]) -> None:
    assert ".target sm_{}{}".format(*capability) in nvrtc.compile_kernel(SCALE, "scale", (), capability).text


@pytest.mark.parametrize("capability", [(6, 1), (8, 1), (13, 0)])
def test_other_capabilities_are_refused_by_name(capability: tuple[int, int]) -> None:
    with pytest.raises(ToolchainError, match="{}.{}.*7.0, 7.2, 7.5".format(*capability)):
        nvrtc.compile_kernel(SCALE, "scale", (), capability)


@pytest.mark.parametrize("header", ["cuda_fp16.h", "mma.h", "cstdint", "stdio.h", "cmath", "cuda/std/type_traits"])
def test_headers_are_found_without_options(header: str) -> None:
    assert nvrtc.compile_kernel(f"#include <{header}>\n{SCALE}", "scale").kernel == "scale"


@pytest.mark.skipif(sys.platform != "linux", reason="NVRTC has the type on Linux only")
def test_integers_of_128_bits_need_no_option_as_with_nvcc() -> None:
    source = "__global__ void k(unsigned long long* x) { x[0] = (unsigned __int128)x[1] * x[2] >> 64; }"
    assert "mul.hi.u64" in nvrtc.compile_kernel(source, "k").text


def test_stand_in_headers_bring_what_kernels_want_of_them() -> None:
    source = """
    #include <cstdint>
    #include <cfloat>
    #include <climits>
    #include <cmath>
    #include <cassert>
    __global__ void k(std::int64_t* big, uint8_t* small, float* x, size_t n) {
        assert(n > 1); big[0] = INT64_MAX; small[0] = UINT8_MAX; big[1] = INT_MIN; x[0] = FLT_MAX;
        x[1] = INFINITY; x[2] = std::sqrt(x[3]) + M_PI; printf("%d", 1);
    }"""
    parameters = nvrtc.compile_kernel(source, "k").parameters
    assert [str(each) for each in parameters][:2] == ["std::int64_t*", "uint8_t*"]
    assert [each.dtype for each in parameters] == [np.int64, np.uint8, np.float32, np.uint64]


def test_headers_of_the_cpp_library_are_those_of_libcudacxx() -> None:
    names = "array bit functional iterator limits numeric optional span tuple type_traits utility".split()
    source = (
        "".join(f"#include <{name}>\n" for name in names)
        + """
    extern "C" __global__ void k(int* x) {
        std::array<int, 3> a{1, 2, 3}; std::optional<int> o; std::swap(a[0], a[1]);
        x[0] = a[x[1]] + std::numeric_limits<int>::max() + std::is_same_v<int, float> + std::get<0>(std::make_tuple(3, 4)) + o.value_or(x[2]);
    }"""
    )
    assert nvrtc.compile_kernel(source, "k").kernel == "k"


def test_options_reach_the_compiler() -> None:
    source = '#ifndef N\n#error "N is needed"\n#endif\nextern "C" __global__ void k(float* x) { x[N] = 1.f / x[0]; }'
    exact = nvrtc.compile_kernel(source, "k", ("-DN=2",))
    fast = nvrtc.compile_kernel(source, "k", ("-DN=2", "--use_fast_math"))
    assert "rcp.rn.f32" in exact.text
    assert "rcp.approx.ftz.f32" in fast.text
    assert nvrtc.compile_kernel(source, "k", ("-DN=2", "--maxrregcount=24")).register_limit == 24


def test_an_included_file_of_the_user_is_read_anew(tmp_path: Path) -> None:
    source = '#include "width.cuh"\nextern "C" __global__ void k(int* x) { x[0] = WIDTH; }'
    for width in (11, 22):  # the second must not come from the cache
        (tmp_path / "width.cuh").write_text(f"#define WIDTH {width}\n")
        assert re.search(
            rf"mov\.u32\s+\S+ {width};", nvrtc.compile_kernel(source, "k", file=str(tmp_path / "k.cu")).text
        )


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        (
            "__global__ void k(float* x) {\n  x[0] = foo;\n}", "k",
            'k.cu, line 2: identifier "foo" is undefined\n    x[0] = foo;\n           ^',
        ),
        ("__global__ void scale(float* x) {}", "scal", 'no kernel named "scal"; it has scale. Did you mean "scale"?'),
        ("__device__ float f(float x) { return x; }", "k", "no kernel at all"),
        ("template <class T> __global__ void k(T* x) {}", "k", 'a template. Name an instantiation of it, e.g. "k<fl'),
        ("__global__ void k(int* x) {}\n__global__ void k(float* x) {}", "k", 'several functions named "k"'),
        ("__device__ void k(int* x) {}", "k", '"k" is not a kernel. Put __global__ before it'),
        ("void k(int* x) {}", "k", '"k" is not a kernel. Put __global__ before it'),
        ("#include <iostream>\n__global__ void k() {}", "k", 'line 1: cannot open source file "iostream": a header'),
        ("__global__ void k(float* x) { x[0] = INFINITY; }", "k", "undefined. It comes with #include <math.h>\n"),
        ("__global__ void k(uint8_t* x) {}", "k", "undefined. It comes with #include <stdint.h>\n"),
        ("__global__ void k() {}\nint main() { return 0; }", "k", "line 2: a host function: only device code"),
    ],
)  # fmt: skip
def test_what_does_not_compile_is_said_with_the_users_line(source: str, name: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        nvrtc.compile_kernel(source, name)
    assert message in str(caught.value)
    assert "nv_name_map" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-std=c++17", "must be a tuple of strings"),
        ((3,), "must be a tuple of strings"),
        (("-arch=sm_90",), "comes from the GPU"),
        (("--no-such-thing",), "--no-such-thing"),
    ],
)
def test_bad_options_are_named(options: object, message: str) -> None:
    with pytest.raises(CompileError, match=re.escape(message)):
        nvrtc.compile_kernel(SCALE, "scale", options)  # type: ignore[arg-type]


def test_without_the_table_types_come_from_the_text() -> None:
    # C++03 cannot compile the question, so the spelling in the source is all there is.
    parameters = nvrtc.compile_kernel(SCALE, "scale", ("-std=c++03",)).parameters
    assert [str(each) for each in parameters] == ["const float*", "float*", "float", "int"]
    assert [each.kind for each in parameters] == ["pointer", "pointer", "scalar", "scalar"]
