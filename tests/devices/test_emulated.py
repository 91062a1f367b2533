"""The emulated device: what a launch records, sampling, time limits, memory that comes and goes, threads."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.devices import DeviceArray, device_for
from gpulab.devices.emulated import EmulatedDevice
from gpulab.errors import ArgumentError, DeviceError, KernelFault, LaunchError, TimeLimitError

SCALE = """
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""
X = np.arange(1000, dtype=np.float32)


@pytest.fixture
def device() -> EmulatedDevice:
    return gpulab.use("A100")


@pytest.fixture
def scale() -> gpulab.RawKernel:
    return gpulab.RawKernel(SCALE, "scale")


def test_a_record_has_all_that_a_profile_needs(device: EmulatedDevice, scale: gpulab.RawKernel) -> None:
    y = np.zeros_like(X)
    record = device.launch(scale[4, 256], (X, y, 2, 1000), count=True)
    assert np.array_equal(y, 2 * X)
    assert (record.kind, record.gpu.name, record.seconds, record.samples) == ("emulated", "A100", None, ())
    assert (record.config.grid, record.config.block) == ((4, 1, 1), (256, 1, 1))
    assert record.arguments == ("float32 array (1000,)", "float32 array (1000,)", "int 2", "int 1000")
    assert record.ptx.compute_capability == (8, 0)
    assert record.assembled.registers_per_thread > 0
    loads = [index for index, form in enumerate(record.program.forms) if form.kind == "load" and form.space == "global"]
    # 1,000 floats: 31 full warps with 4 sectors each, and one with 8 lanes: 1 sector.
    assert record.counters.sectors[loads].tolist() == [125]
    assert record.counters.requests[loads].tolist() == [32]
    assert record.counters.blocks == 4


def test_a_plain_launch_does_not_count(device: EmulatedDevice, scale: gpulab.RawKernel) -> None:
    assert device.launch(scale[4, 256], (X, X.copy(), 2, 1000)).counters is None


def test_code_is_made_for_the_gpu_that_it_runs_on(scale: gpulab.RawKernel) -> None:
    capabilities = [
        gpulab.use(name).launch(scale[1, 1], (X, X.copy(), 1, 1)).ptx.compute_capability
        for name in ("T4", "A100", "H100")
    ]
    assert capabilities == [(7, 5), (8, 0), (9, 0)]


@pytest.mark.parametrize(
    ("blocks", "expected"), [(1, [2]), (2, [1, 2]), (3, [0, 2, 3]), (4, [0, 1, 2, 3]), (99, [0, 1, 2, 3])]
)
def test_a_sample_runs_few_blocks_and_counts_for_all(
    device: EmulatedDevice, scale: gpulab.RawKernel, blocks: int, expected: list[int]
) -> None:
    y = np.zeros_like(X)
    record = device.launch(scale[4, 256], (X + 1, y, 1, 1000), count=True, sample_blocks=blocks)
    assert np.unique(np.nonzero(y)[0] // 256).tolist() == expected
    assert record.counters.warps == 8 * 4
    assert record.incomplete == (("y",) if blocks < 4 else ())
    for wrong in (0, "2", 1.5):
        with pytest.raises(LaunchError, match="sample_blocks must be a whole number of at least 1"):
            device.launch(scale[4, 256], (X, y, 1, 1000), sample_blocks=wrong)  # type: ignore[arg-type]


def test_an_endless_kernel_ends_and_the_next_one_runs(scale: gpulab.RawKernel) -> None:
    endless = gpulab.RawKernel('extern "C" __global__ void k(volatile int* x) { while (x[0] == 0) {} }', "k")
    device = EmulatedDevice(gpulab.gpu("A100"), time_limit_s=0.2)
    start = time.perf_counter()
    with pytest.raises((TimeLimitError, KernelFault)):
        device.launch(endless[1, 32], (np.zeros(1, np.int32),))
    assert time.perf_counter() - start < 20  # 0.2 s and what compiling takes on a busy machine
    y = np.zeros_like(X)
    gpulab.use("A100").launch(scale[4, 256], (X, y, 2, 1000))
    assert np.array_equal(y, 2 * X)


def test_host_arrays_leave_the_address_space_after_a_launch(device: EmulatedDevice, scale: gpulab.RawKernel) -> None:
    device.launch(scale[4, 256], (X, X.copy(), 2, 1000))
    before = set(device.memory.allocations)
    device.launch(scale[4, 256], (X, X.copy(), 2, 1000))
    with pytest.raises(KernelFault):
        device.launch(scale[8, 256], (X, X.copy(), 2, 2000))
    with pytest.raises(ArgumentError):
        device.launch(scale[8, 256], (X, X.astype(int), 2, 2000))
    assert set(device.memory.allocations) == before


def test_a_fault_names_the_array_by_its_parameter(device: EmulatedDevice, scale: gpulab.RawKernel) -> None:
    with pytest.raises(KernelFault, match=r"element 1000 of x.*float32") as caught:
        device.launch(scale[4, 256], (X, np.zeros(2000, np.float32), 1, 2000))
    assert caught.value.fault.block == (3, 0, 0)
    assert caught.value.fault.thread == (1000 - 768, 0, 0)
    assert caught.value.fault.line == 4


def test_arrays_of_a_real_gpu_are_refused(device: EmulatedDevice, scale: gpulab.RawKernel) -> None:
    class Foreign:
        @property
        def __cuda_array_interface__(self) -> dict[str, object]:
            return {"typestr": "<f4", "shape": (4,), "strides": None, "data": (1 << 33, False), "version": 3}

    with pytest.raises(ArgumentError, match="'y' is an array in the memory of a real GPU"):
        device.launch(scale[1, 4], (X, Foreign(), 1, 4))


def test_a_device_array_offers_no_pointer_to_other_libraries(device: EmulatedDevice) -> None:
    assert isinstance(device.to_device(X), DeviceArray)
    assert not hasattr(device.to_device(X), "__cuda_array_interface__")


def test_threads_may_launch_at_the_same_time(device: EmulatedDevice, scale: gpulab.RawKernel) -> None:
    results = [np.zeros_like(X) for _ in range(4)]

    def work(number: int) -> None:
        for _ in range(10):
            scale[4, 256](X, results[number], number, 1000)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [np.array_equal(result, number * X) for number, result in enumerate(results)] == [True] * 4


def test_the_same_kernel_is_prepared_once(device: EmulatedDevice) -> None:
    @cuda.jit
    def fill(x, a):
        x[cuda.threadIdx.x] = a

    x = np.zeros(4)
    programs = {id(device.launch(fill[1, 4], (x, value)).program) for value in (1.0, 2.0, 3.0)}
    assert len(programs) == 1
    assert device.launch(fill[1, 4], (x, 1)).program.function.name != ""
    assert len(fill.signatures) == 2


@pytest.mark.parametrize("length", [2**50, 2**61, 2**70])
def test_an_array_that_is_too_large_is_told_so(device: EmulatedDevice, length: int) -> None:
    with pytest.raises(DeviceError, match=f"{8 * length:,} bytes does not fit"):
        device.device_array(length)


def test_devices_are_made_once(device: EmulatedDevice) -> None:
    assert device_for("a100") is device
    changed = device.gpu.replace(dram_bandwidth_gb_per_s=2000)
    assert device_for(changed) is device_for(changed)
    assert device_for(changed) is not device
    assert device_for(device) is device
