"""What users of other simulators and courses ran into, one test for each: it works, or the error says what to do.

The cases come from public issue trackers; each test names its own.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.errors import CompileError, KernelFault, LaunchError

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def emulated_gpu() -> None:
    gpulab.use("A100")


# ---- gaps of Numba's simulator


def test_shuffles_are_there() -> None:
    """Numba issue 8433: the simulator has no shfl_down_sync."""

    @cuda.jit
    def reduce_warp(x, y):
        value = x[cuda.threadIdx.x]
        for distance in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
        y[cuda.threadIdx.x] = cuda.shfl_xor_sync(0xFFFFFFFF, value, 31) + cuda.shfl_sync(0xFFFFFFFF, value, 0)

    x, y = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    reduce_warp[1, 32](x, y)
    assert y[31] == 2 * x.sum()


def test_shared_memory_is_one_for_the_block_and_new_for_each() -> None:
    """Numba issue 5374: shared memory of the simulator is not consistent between functions and blocks."""

    @cuda.jit(device=True)
    def first(v):
        tile = cuda.shared.array(32, np.int32)
        tile[cuda.threadIdx.x] = v
        cuda.syncthreads()
        return tile[31 - cuda.threadIdx.x]

    @cuda.jit
    def kernel(x):
        own = cuda.shared.array(32, np.int32)
        own[cuda.threadIdx.x] = -1
        x[cuda.grid(1)] = first(cuda.grid(1)) + own[cuda.threadIdx.x] + 1

    x = np.zeros(96, np.int32)
    kernel[3, 32](x)
    assert np.array_equal(x, np.arange(96).reshape(3, 32)[:, ::-1].ravel())


def test_a_vote_and_a_counted_barrier_agree_with_hardware() -> None:
    """Numba issue 9770: syncthreads_or behaved differently in the simulator."""

    @cuda.jit
    def kernel(x, out):
        i = cuda.threadIdx.x
        count = cuda.syncthreads_count(np.int32(x[i] > 0))
        some = cuda.syncthreads_or(np.int32(x[i] > 90))
        every = cuda.syncthreads_and(np.int32(x[i] >= 0))
        if i == 0:
            out[0], out[1], out[2] = count, some, every

    x, out = np.arange(96), np.zeros(3, np.int64)
    kernel[1, 96](x, out)
    assert out.tolist()[0] == 95
    assert [bool(value) for value in out[1:]] == [True, True]


def test_a_grid_barrier_waits_for_all_blocks() -> None:
    """Numba issue 8719: the simulator accepts a cooperative launch of several blocks and computes nonsense."""

    @cuda.jit
    def kernel(x):
        x[cuda.blockIdx.x] = cuda.blockIdx.x + 1
        cuda.cg.this_grid().sync()
        x[4 + cuda.blockIdx.x] = x[3 - cuda.blockIdx.x]

    x = np.zeros(8)
    kernel[4, 32](x)
    assert x.tolist() == [1, 2, 3, 4, 4, 3, 2, 1]


def test_values_of_a_closure_are_frozen_when_the_kernel_is_compiled() -> None:
    """Numba issue 3265: the simulator read the current value, hardware the one at compile time."""

    def make():
        factor = 2

        @cuda.jit
        def kernel(x):
            x[cuda.threadIdx.x] = factor

        def change():
            nonlocal factor
            factor = 3

        return kernel, change

    (kernel, change), x = make(), np.zeros(4)
    kernel[1, 4](x)
    change()
    kernel[1, 4](x)
    assert (x == 2).all()


def test_streams_have_their_defaults() -> None:
    """numba-cuda issue 71: the simulator has no default_stream."""
    for stream in (cuda.default_stream(), cuda.legacy_default_stream(), cuda.per_thread_default_stream()):
        stream.synchronize()


# ---- checks that let wrong kernels pass


def test_a_missing_guard_is_always_reported() -> None:
    """mojo-gpu-puzzles issues 92 and 33: a kernel without its guard passes, out of bounds without a word."""

    @cuda.jit
    def add_ten(out, a):
        i = cuda.threadIdx.x
        out[i] = a[i] + 10

    a, out = np.arange(4.0), np.zeros(4)
    with pytest.raises(KernelFault) as caught:
        add_ten[1, 8](out, a)
    fault = caught.value.fault
    assert (fault.kind, fault.thread) == ("out-of-bounds", (4, 0, 0))
    assert fault.line == add_ten.py_func.__code__.co_firstlineno + 3
    assert "element 4 of a" in fault.message


@pytest.mark.parametrize("offset", [-1, 7])
def test_an_index_error_never_lands_in_a_neighbor(offset: int) -> None:
    """The neighbors of a view are memory that other arrays use; a kernel must not reach them unnoticed."""
    source = 'extern "C" __global__ void k(float* x, int i) { x[i] = 9; }'
    whole = np.zeros(16, np.float32)
    with pytest.raises(KernelFault, match=f"element {offset} of x"):
        gpulab.RawKernel(source, "k")[1, 1](whole[4:11], offset)
    assert (whole == 0).all()


TILE = 8


@cuda.jit
def tiled_matmul(a, b, c):
    """Right for every shape: what lies outside the matrices counts as zero."""
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    column, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for start in range(0, a.shape[1], TILE):
        tile_a[ty, tx] = a[row, start + tx] if row < a.shape[0] and start + tx < a.shape[1] else 0
        tile_b[ty, tx] = b[start + ty, column] if start + ty < b.shape[0] and column < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


@cuda.jit
def careless_matmul(a, b, c):
    """As in a manual that was wrong for years: nothing guards the loads, and bpg = shape / TILE loses the rest."""
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    column, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if row >= c.shape[0] and column >= c.shape[1]:
        return
    total = np.float32(0)
    for step in range(cuda.gridDim.x):
        tile_a[ty, tx] = a[row, tx + step * TILE]
        tile_b[ty, tx] = b[ty + step * TILE, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    c[row, column] = total


def matrices(m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    a, b = RNG.random((m, k), np.float32), RNG.random((k, n), np.float32)
    return a, b, np.zeros((m, n), np.float32), (-(-n // TILE), -(-m // TILE))


@pytest.mark.parametrize("shape", [(16, 16, 16), (9, 13, 21), (1, 7, 3), (17, 8, 31)])
def test_a_tiled_matmul_is_right_off_multiples_of_the_tile(shape: tuple[int, int, int]) -> None:
    """Numba issues 6884, 7324 and 5620: the manual's shared-memory matmul was wrong off multiples of the tile."""
    a, b, c, grid = matrices(*shape)
    tiled_matmul[grid, (TILE, TILE)](a, b, c)
    assert np.allclose(c, a @ b, rtol=1e-5)


def test_a_careless_matmul_is_found_out() -> None:
    """The same issues: what was wrong there is a fault with its line here, not a wrong number."""
    a, b, c, grid = matrices(9, 13, 21)
    with pytest.raises(KernelFault) as caught:
        careless_matmul[grid, (TILE, TILE)](a, b, c)
    assert caught.value.fault.kind == "out-of-bounds"
    first = careless_matmul.py_func.__code__.co_firstlineno
    assert caught.value.fault.line in range(first + 10, first + 13)
    a, b, c, grid = matrices(16, 16, 16)
    careless_matmul[grid, (TILE, TILE)](a, b, c)
    assert np.allclose(c, a @ b, rtol=1e-5)


# ---- error messages


@cuda.jit
def nothing(x):
    """Do nothing."""


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (1, 2048, "at most 1,024 threads, but block=2048 has 2,048"),
        (1, (64, 32), "at most 1,024 threads, but block=(64, 32, 1) has 2,048"),
        (1, (1, 1, 65), "block.z must be 1 to 64 threads, but block=(1, 1, 65) came"),
        ((1, 65536), 32, "grid.y must be 1 to 65,535 blocks, but grid=(1, 65536, 1) came"),
        (0, 32, "Is the problem size 0?"),
        (1000 / 256, 256, "A common cause is `/` where `//` is meant"),
        (1, (8, 8, 8, 8), "one to three dimensions"),
        ("4", 4, "must be an int or a tuple"),
        (-3, 4, "grid.x must be 1 to"),
    ],
)
def test_a_bad_launch_names_the_limit_and_what_came(grid: object, block: object, message: str) -> None:
    """Numba issue 1055: a bad configuration was CUDA_ERROR_INVALID_VALUE; beginners want the limit named."""
    with pytest.raises(LaunchError, match=re.escape(message)):
        nothing[grid, block](np.zeros(4))


def test_allocating_in_a_kernel_names_what_to_do() -> None:
    """Numba issue 3430: np.zeros in a kernel gave an incomprehensible error."""

    @cuda.jit
    def kernel(x):
        scratch = np.zeros(8)  # here
        x[0] = scratch[0]

    with pytest.raises(CompileError) as caught:
        kernel[1, 1](np.zeros(1))
    assert f"line {kernel.py_func.__code__.co_firstlineno + 2}" in str(caught.value)
    assert "cuda.local.array" in str(caught.value)
