"""Counters against values measured with Nsight Compute on real GPUs, at the measured sizes, compared exactly.

Sources: the exercises of OLCF's CUDA training series, homework 8, with the runs posted of them (transposition of
doubles), and D. Deleter's CUDA notes, github.com/Deleter-D/CUDA, on a GPU of compute capability 8.9 (offsets, float
transposition). The kernels are our own. Where a posted hardware value carries arbitration noise, the exact SASS value
is expected.
"""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab.profiler import Profile

LD, ST = "pipe_lsu_mem_global_op_ld", "pipe_lsu_mem_global_op_st"
SHARED = "mem_shared_op"


def efficiency(profile: Profile, op: str) -> float:
    """Global load or store efficiency in %, as ncu rounds it."""
    return round(profile.metrics[f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.pct"], 2)


def per_request(profile: Profile, op: str) -> float:
    """Sectors per request of global loads or stores."""
    return profile.metrics[f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio"]


# ---- transposition of a matrix of 4096 x 4096 doubles, blocks of 32 x 32

TRANSPOSE = """
#define N 4096
#define INDEX int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y

extern "C" __global__ void read_columns(const double *in, double *out) { INDEX; out[y * N + x] = in[x * N + y]; }

extern "C" __global__ void read_rows(const double *in, double *out) { INDEX; out[x * N + y] = in[y * N + x]; }

template <int PITCH> __device__ void through_tile(const double *in, double *out)
{
    __shared__ double tile[32][PITCH];
    INDEX;
    tile[threadIdx.x][threadIdx.y] = in[y * N + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * N + x] = tile[threadIdx.y][threadIdx.x];
}

extern "C" __global__ void tile_of_32(const double *in, double *out) { through_tile<32>(in, out); }
extern "C" __global__ void tile_of_33(const double *in, double *out) { through_tile<33>(in, out); }
"""
REQUESTS = 4096 * 4096 // 32


@pytest.fixture(scope="module")
def matrix() -> np.ndarray:
    return np.arange(4096 * 4096, dtype=np.float64).reshape(4096, 4096)


def transpose(name: str, matrix: np.ndarray) -> Profile:
    out = np.zeros_like(matrix)
    found = gpulab.profile(gpulab.RawKernel(TRANSPOSE, name)[(128, 128), (32, 32)], matrix, out, gpu="A100")
    assert np.array_equal(out, matrix.T)
    return found


def test_row_1_double_transposition_reading_columns(matrix: np.ndarray) -> None:
    found = transpose("read_columns", matrix)
    assert found.metrics[f"l1tex__t_requests_{LD}.sum"] == REQUESTS == 524_288
    assert found.metrics[f"l1tex__t_requests_{ST}.sum"] == 524_288
    assert found.metrics[f"l1tex__t_sectors_{LD}.sum"] == 16_777_216
    assert found.metrics[f"l1tex__t_sectors_{ST}.sum"] == 4_194_304
    assert (per_request(found, "ld"), efficiency(found, "ld")) == (32, 25)
    assert (per_request(found, "st"), efficiency(found, "st")) == (8, 100)


def test_row_2_double_transposition_reading_rows(matrix: np.ndarray) -> None:
    found = transpose("read_rows", matrix)
    assert (per_request(found, "ld"), efficiency(found, "ld")) == (8, 100)
    assert (per_request(found, "st"), efficiency(found, "st")) == (32, 25)


def test_row_3_double_transposition_through_a_tile(matrix: np.ndarray) -> None:
    found = transpose("tile_of_32", matrix)
    assert (per_request(found, "ld"), per_request(found, "st")) == (8, 8)
    assert found.metrics[f"l1tex__data_pipe_lsu_wavefronts_{SHARED}_st.sum"] == 16_777_216
    assert found.metrics[f"l1tex__data_bank_conflicts_pipe_lsu_{SHARED}_st.sum"] == 15_728_640
    assert found.metrics[f"l1tex__data_pipe_lsu_wavefronts_{SHARED}_ld.sum"] == 1_048_576
    assert found.metrics[f"l1tex__data_bank_conflicts_pipe_lsu_{SHARED}_ld.sum"] == 0
    assert round(found.metrics["smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"], 2) == 11.76


def test_row_4_double_transposition_through_a_padded_tile(matrix: np.ndarray) -> None:
    found = transpose("tile_of_33", matrix)
    assert found.metrics[f"l1tex__data_pipe_lsu_wavefronts_{SHARED}_st.sum"] == 1_048_576
    assert found.metrics[f"l1tex__data_pipe_lsu_wavefronts_{SHARED}_ld.sum"] == 1_048_576
    assert found.metrics["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"] == 0
    assert found.metrics["smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"] == 100


# ---- sums of two arrays of 4,194,304 floats, shifted

OFFSET = """
extern "C" __global__ void read_offset(const float *a, const float *b, float *c, int n, int offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = i + offset;
    if (k < n)
        c[i] = a[k] + b[k];
}

extern "C" __global__ void write_offset(const float *a, const float *b, float *c, int n, int offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, k = i + offset;
    if (k < n)
        c[k] = a[i] + b[i];
}
"""
ELEMENTS = 8192 * 512


@pytest.fixture(scope="module")
def addends() -> tuple[np.ndarray, np.ndarray]:
    a = np.arange(ELEMENTS, dtype=np.float32)
    return a, np.ones(ELEMENTS, np.float32)


def shifted(name: str, offset: int, addends: tuple[np.ndarray, np.ndarray]) -> tuple[Profile, np.ndarray]:
    c = np.zeros(ELEMENTS, np.float32)
    kernel = gpulab.RawKernel(OFFSET, name)[8192, 512]
    found = gpulab.profile(kernel, *addends, c, np.int32(ELEMENTS), np.int32(offset), gpu="RTX 4090")
    return found, c


@pytest.mark.parametrize(
    ("offset", "sectors", "percent"), [(0, 1_048_576, 100), (11, 1_310_716, 80), (128, 1_048_544, 100)]
)
def test_rows_7_and_8_loads_at_an_offset(offset: int, sectors: int, percent: float, addends) -> None:
    found, c = shifted("read_offset", offset, addends)
    assert found.metrics[f"l1tex__t_sectors_{LD}.sum"] == sectors
    assert efficiency(found, "ld") == pytest.approx(percent, abs=0.01)
    assert c[1000] == 1001 + offset


@pytest.mark.parametrize(("offset", "sectors", "percent"), [(0, 524_288, 100), (11, 655_358, 80), (128, 524_272, 100)])
def test_row_9_stores_at_an_offset(offset: int, sectors: int, percent: float, addends) -> None:
    found, c = shifted("write_offset", offset, addends)
    assert found.metrics[f"l1tex__t_sectors_{ST}.sum"] == sectors
    assert efficiency(found, "st") == pytest.approx(percent, abs=0.01)
    assert c[1000 + offset] == 1001


# ---- transpositions of floats

FLOATS = """
extern "C" __global__ void read_rows(const float *in, float *out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n)
        out[x * n + y] = in[y * n + x];
}

extern "C" __global__ void read_columns(const float *in, float *out, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n)
        out[y * n + x] = in[x * n + y];
}

extern "C" __global__ void through_tile(const float *in, float *out, int n)
{
    __shared__ float tile[16][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    int i = threadIdx.y * 32 + threadIdx.x, row = i % 16, column = i / 16;
    out[(blockIdx.x * 32 + column) * n + blockIdx.y * 16 + row] = tile[row][column];
}
"""


def transpose_floats(name: str, n: int, block: tuple[int, int]) -> Profile:
    matrix = np.arange(n * n, dtype=np.float32).reshape(n, n)
    out = np.zeros_like(matrix)
    launch = gpulab.RawKernel(FLOATS, name)[(n // block[0], n // block[1]), block]
    found = gpulab.profile(launch, matrix, out, np.int32(n), gpu="RTX 4090")
    assert np.array_equal(out, matrix.T)
    return found


def test_row_12_float_transposition_reading_rows() -> None:
    found = transpose_floats("read_rows", 2048, (16, 16))
    assert efficiency(found, "ld") == 100
    assert (efficiency(found, "st"), per_request(found, "st")) == (25, 16)


def test_row_13_float_transposition_reading_columns() -> None:
    found = transpose_floats("read_columns", 2048, (16, 16))
    assert efficiency(found, "ld") == 25
    assert efficiency(found, "st") == 100


def test_row_22_float_transposition_through_a_tile_of_34() -> None:
    found = transpose_floats("through_tile", 4096, (32, 16))
    assert found.metrics[f"l1tex__data_pipe_lsu_wavefronts_{SHARED}_ld.sum"] == 524_288
    assert found.metrics[f"l1tex__data_pipe_lsu_wavefronts_{SHARED}_st.sum"] == 524_288
    assert found.metrics["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"] == 0


# ---- single requests

ONE_WARP = """
extern "C" __global__ void read(const float *x, float *y, int stride, int offset, int first, int last)
{
    int i = threadIdx.x;
    if (first <= i && i < last)
        y[i] = x[i * stride + offset];
}
"""


def one_warp(stride: int, offset: int = 0, first: int = 0, last: int = 32) -> Profile:
    x, y = np.zeros(1 << 13, np.float32), np.zeros(32, np.float32)
    values = [np.int32(value) for value in (stride, offset, first, last)]
    return gpulab.profile(gpulab.RawKernel(ONE_WARP, "read")[1, 32], x, y, *values, gpu="A100")


def test_row_31_sectors_follow_the_lanes_that_are_on() -> None:
    # NVIDIA forum 312884: all lanes off, one lane, 32 lanes in 32 lines.
    sectors = f"l1tex__t_sectors_{LD}.sum"
    assert one_warp(1, last=0).metrics[sectors] == one_warp(1, last=0).metrics[f"l1tex__t_requests_{LD}.sum"] == 0
    assert one_warp(1, first=7, last=8).metrics[sectors] == 1
    assert one_warp(32).metrics[sectors] == 32


@pytest.mark.parametrize(
    ("stride", "offset", "sectors"), [(1, 0, 4), (1, 1, 5), (2, 0, 8), (8, 0, 32), (11, 3, 32), (0, 0, 1)]
)
def test_row_32_sectors_of_the_best_practices_guide(stride: int, offset: int, sectors: int) -> None:
    assert per_request(one_warp(stride, offset), "ld") == sectors
    if (stride, offset) == (2, 0):
        assert efficiency(one_warp(stride), "ld") == 50


STRIDES = """
template <typename T> __device__ void walk(const T *a, T *out, int stride)
{
    const T *b = a + (threadIdx.x % 64) * stride;
    T sum = b[0] + b[4] + b[8] + b[12] + b[20] + b[16] + b[24] + b[28];
    if (sum == T(0.3))
        *out = sum;
}
extern "C" __global__ void floats(const float *a, float *out, int stride) { walk(a, out, stride); }
extern "C" __global__ void doubles(const double *a, double *out, int stride) { walk(a, out, stride); }
"""


def wavefronts_per_load(name: str, dtype: type, stride: int) -> float:
    a, out = np.zeros(64 * stride + 32, dtype), np.zeros(1, dtype)
    found = gpulab.profile(gpulab.RawKernel(STRIDES, name)[2, 1024], a, out, np.int32(stride), gpu="A100")
    assert found.metrics[f"l1tex__t_requests_{LD}.sum"] == 2 * 32 * 8
    return found.metrics["l1tex__data_pipe_lsu_wavefronts.sum"] / (2 * 32 * 8)


@pytest.mark.parametrize(
    ("stride", "wavefronts"),
    [
        (0, 1),
        (1, 1),
        (3, 1),
        (5, 1),
        (31, 1),
        (33, 1),
        (2, 2),
        (6, 2),
        (4, 4),
        (12, 4),
        (8, 8),
        (24, 8),
        (16, 16),
        (48, 16),
    ]
    + [(32, 32), (64, 32)],
)
def test_row_34_wavefronts_of_strided_float_loads(stride: int, wavefronts: int) -> None:
    assert wavefronts_per_load("floats", np.float32, stride) == wavefronts


@pytest.mark.parametrize(("stride", "wavefronts"), [(1, 2), (2, 4), (3, 2), (4, 8), (8, 16), (16, 32)])
def test_row_35_wavefronts_of_strided_double_loads(stride: int, wavefronts: int) -> None:
    assert wavefronts_per_load("doubles", np.float64, stride) == wavefronts
