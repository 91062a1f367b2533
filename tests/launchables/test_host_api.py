"""The host side of ``cuda``: device arrays, streams, events, the current GPU, and what is Numba's alone."""

from __future__ import annotations

import gc
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.devices.emulated import EmulatedDevice
from gpulab.errors import ArgumentError, DeviceError, GpulabError


@pytest.fixture(autouse=True)
def emulated_gpu() -> EmulatedDevice:
    return gpulab.use("A100")


GRID = np.arange(24, dtype=np.float32).reshape(4, 6)


# ---- device arrays


def test_a_copy_goes_to_the_gpu_and_back() -> None:
    device = cuda.to_device(GRID)
    assert (device.shape, device.dtype, device.size, device.ndim, device.nbytes, len(device)) == (
        (4, 6), np.float32, 24, 2, 96, 4,
    )  # fmt: skip
    back = device.copy_to_host()
    assert np.array_equal(back, GRID)
    back[:] = 0
    assert np.array_equal(device.copy_to_host(), GRID)
    target = np.zeros_like(GRID)
    assert device.copy_to_host(target) is target
    assert np.array_equal(target, GRID)
    device.copy_to_device(2 * GRID)
    assert np.array_equal(np.asarray(device), 2 * GRID)


@pytest.mark.parametrize("order", ["C", "F"])
def test_order_and_strides_are_kept(order: str) -> None:
    source = np.array(GRID, order=order)
    device = cuda.to_device(source)
    assert device.strides == source.strides
    assert (device.flags["C_CONTIGUOUS"], device.flags["F_CONTIGUOUS"]) == (order == "C", order == "F")
    like = cuda.device_array_like(device)
    assert (like.shape, like.dtype, like.strides) == (device.shape, device.dtype, device.strides)
    assert np.array_equal(device.copy_to_host(), source)


def test_a_strided_array_is_copied_as_it_looks() -> None:
    for view in (GRID[::2, ::-3], GRID.T, np.broadcast_to(GRID[0], (3, 6)), GRID[:0]):
        assert np.array_equal(cuda.to_device(view).copy_to_host(), view)


@pytest.mark.parametrize(
    "index",
    [0, -1, (1, 2), slice(1, 3), (slice(None), 2), (slice(None, None, -2), slice(1, 5, 2)), (..., 3),
     (2, ...), ..., slice(3, 1)],
)  # fmt: skip
def test_indexing_gives_numpys_views(index: Any) -> None:
    device, host = cuda.to_device(GRID), GRID.copy()
    expected = host[index]
    got = device[index]
    assert np.array_equal(got if np.isscalar(got) else got.copy_to_host(), expected)
    device[index] = -5
    host[index] = -5
    assert np.array_equal(device.copy_to_host(), host)


def test_a_view_is_the_same_memory_for_kernels() -> None:
    @cuda.jit
    def negate(x):
        i, j = cuda.grid(2)
        if i < x.shape[0] and j < x.shape[1]:
            x[i, j] = -x[i, j]

    device, host = cuda.to_device(GRID), GRID.copy()
    negate[(1, 1), (8, 8)](device[1:, ::2].T)
    host[1:, ::2] *= -1
    assert np.array_equal(device.copy_to_host(), host)


def test_reshaping_and_other_views() -> None:
    device = cuda.to_device(GRID)
    assert np.array_equal(device.reshape(2, -1).copy_to_host(), GRID.reshape(2, -1))
    assert np.array_equal(device.ravel().copy_to_host(), GRID.ravel())
    assert np.array_equal(device.T.copy_to_host(), GRID.T)
    assert np.array_equal(device.view(np.int32).copy_to_host(), GRID.view(np.int32))
    assert np.array_equal(cuda.to_device(np.asfortranarray(GRID)).ravel("F").copy_to_host(), GRID.ravel("F"))
    for wrong in (lambda: device.reshape(5, 5), lambda: device.T.ravel(), lambda: device.view(np.float64)):
        with pytest.raises(ArgumentError):
            wrong()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda d: d.copy_to_host(np.zeros(3)),
            r"shape \(4, 6\) and dtype float32, but shape \(3,\) and dtype float64",
        ),
        (lambda d: d.copy_to_device(GRID.astype(int)), "but shape .* dtype int64"),
        (lambda d: d[[1, 2]], "ints and slices only"),
        (lambda d: cuda.device_array(2.5), "Is a `/` there where `//` is meant"),
        (lambda d: cuda.device_array((2, -1)), "lengths >= 0"),
        (lambda d: cuda.to_device([None]), "array of numbers"),
    ],
)
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call(cuda.to_device(GRID))


def test_indices_out_of_range_are_index_errors() -> None:
    device = cuda.to_device(GRID)
    for index in (4, (0, 6), (0, 0, 0)):
        with pytest.raises(IndexError):
            device[index]


def test_memory_is_freed_with_the_last_view(emulated_gpu: EmulatedDevice) -> None:
    gc.collect()
    before = len(emulated_gpu.memory.allocations)
    device = cuda.to_device(GRID)
    view = device[1:]
    assert len(emulated_gpu.memory.allocations) == before + 1
    del device
    gc.collect()
    assert np.array_equal(view.copy_to_host(), GRID[1:])
    del view
    gc.collect()
    assert len(emulated_gpu.memory.allocations) == before


def test_freed_memory_is_never_read(emulated_gpu: EmulatedDevice) -> None:
    @cuda.jit
    def touch(x):
        x[0] = 1

    device = cuda.to_device(GRID.ravel())
    cuda.close()
    for use in (
        device.copy_to_host,
        lambda: device[0],
        lambda: touch[1, 1](device),
        lambda: device.copy_to_device(GRID),
    ):
        with pytest.raises((DeviceError, ArgumentError)):
            use()


def test_a_device_array_goes_to_every_emulated_gpu() -> None:
    @cuda.jit
    def increment(x):
        x[cuda.threadIdx.x] += 1

    device = cuda.to_device(np.zeros(4))
    for name in ("T4", "H100"):
        gpulab.use(name)
        increment[1, 4](device)
    assert device.copy_to_host().tolist() == [2, 2, 2, 2]


# ---- the rest


def test_streams_pinned_and_mapped_arrays_work_as_in_notebooks() -> None:
    @cuda.jit
    def double(x):
        x[cuda.threadIdx.x] *= 2

    stream = cuda.stream()
    with stream.auto_synchronize(), cuda.pinned(GRID), cuda.defer_cleanup(), cuda.profiling():
        pinned = cuda.pinned_array(4, dtype=np.float32)
        pinned[:] = 3
        device = cuda.to_device(pinned, stream=stream)
        double[1, 4, stream](device)
    stream.synchronize()
    cuda.synchronize()
    assert device.copy_to_host(stream=stream).tolist() == [6, 6, 6, 6]
    mapped = cuda.mapped_array_like(np.ones(4))
    mapped[:] = 1
    double[1, 4](mapped)
    assert mapped.tolist() == [2, 2, 2, 2]
    for array in (cuda.managed_array((2, 3), np.int8, order="F"), cuda.pinned_array_like(GRID), cuda.mapped_array(3)):
        assert isinstance(array, np.ndarray)


def test_an_events_time_is_said_to_be_the_emulations() -> None:
    start, end = cuda.event(), cuda.event()
    with pytest.raises(DeviceError, match="two recorded events"):
        start.elapsed_time(end)
    start.record()
    end.record()
    end.synchronize()
    with pytest.warns(UserWarning, match="not a GPU's time"):
        assert cuda.event_elapsed_time(start, end) >= 0


def test_the_current_gpu_is_told_as_numba_tells_it(capsys: pytest.CaptureFixture[str]) -> None:
    gpulab.use("T4")
    device = cuda.get_current_device()
    assert (device.name, device.compute_capability, device.MULTIPROCESSOR_COUNT, device.WARP_SIZE) == (
        b"T4", (7, 5), 40, 32,
    )  # fmt: skip
    assert device.MAX_SHARED_MEMORY_PER_BLOCK == 49152
    with pytest.raises(AttributeError, match="It has: "):
        _ = device.NO_SUCH_THING
    assert cuda.is_available()
    assert cuda.detect()
    assert "T4, compute capability 7.5 (emulated on this computer's CPU)" in capsys.readouterr().out
    assert cuda.gpus[0].compute_capability == (7, 5)
    with cuda.gpus[0]:
        assert cuda.select_device(0).id == 0
    free, total = cuda.current_context().get_memory_info()
    assert 0 < free <= total
    with pytest.raises(DeviceError, match="one GPU"):
        cuda.select_device(1)


def test_names_that_only_kernels_use_are_numbas() -> None:
    from numba import cuda as numbas

    for name in ("grid", "threadIdx", "shared", "atomic", "shfl_down_sync", "float32", "laneid", "cg", "compile_ptx"):
        assert getattr(cuda, name) is getattr(numbas, name)


@pytest.mark.parametrize("name", ["reduce", "external_stream", "open_ipc_array", "cudadrv", "declare_device"])
def test_what_needs_the_driver_says_what_to_do_instead(name: str) -> None:
    with pytest.raises(GpulabError, match=rf"cuda\.{name} is not available in gpulab: "):
        getattr(cuda, name)


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no 'no_such_name'"):
        _ = cuda.no_such_name
    assert not hasattr(cuda, "__no_such_name__")


def test_importing_cuda_loads_no_compiler_and_no_gpu_library() -> None:
    code = (
        "import sys, gpulab; from gpulab import cuda; cuda.jit(lambda x: None); gpulab.use('A100'); "
        "print(sorted({'numba', 'cupy', 'llvmlite', 'cuda.bindings', 'matplotlib', 'ipywidgets'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_random_numbers_inside_kernels() -> None:
    from gpulab.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float64

    @cuda.jit
    def draw(states, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = xoroshiro128p_uniform_float64(states, i)

    def numbers(seed: int, start: int = 0) -> np.ndarray:
        out = np.zeros(500)
        draw[4, 128](create_xoroshiro128p_states(500, seed, start), out)
        return out

    first = numbers(1)
    assert np.array_equal(first, numbers(1))
    assert not np.array_equal(first, numbers(2))
    assert np.array_equal(first[10:], numbers(1, start=10)[:-10])
    assert len(np.unique(first)) == 500
    assert 0 <= first.min() < 0.05 < 0.95 < first.max() < 1
    assert cuda.random.create_xoroshiro128p_states is create_xoroshiro128p_states
    assert create_xoroshiro128p_states(0, 1).shape == (0,)
    with pytest.raises(ArgumentError, match="0 or more"):
        create_xoroshiro128p_states(-1, 1)
