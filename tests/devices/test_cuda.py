"""The CUDA path from end to end against a stand-in for CuPy (`fake_cupy`), and why there is no CUDA GPU here."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.devices import cuda as device_module
from gpulab.devices import cuda_timing, detect
from gpulab.errors import ArgumentError, DeviceError, KernelException, LaunchError
from gpulab.toolchain.ptxas import Assembled
from gpulab.toolchain.records import PtxText

spec = importlib.util.spec_from_file_location("fake_cupy", Path(__file__).with_name("fake_cupy.py"))
fake_cupy = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
spec.loader.exec_module(fake_cupy)  # type: ignore[union-attr]

current_module = importlib.import_module("gpulab.devices.current")
X = np.arange(100, dtype=np.float32)
SCALE = """
__device__ int launches;
extern "C" __global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """CuPy and a GPU, so far as gpulab can tell."""
    return fake_cupy.install(monkeypatch)


@pytest.fixture
def scale() -> gpulab.RawKernel:
    return gpulab.RawKernel(SCALE, "scale")


def test_a_gpu_that_is_there_is_the_default(cupy: Any) -> None:
    device = gpulab.current()
    assert device.kind == "cuda"
    assert device is gpulab.use("cuda")
    assert gpulab.use("T4").kind == "emulated"


def test_a_gpu_outside_the_catalog_has_what_its_driver_tells(cupy: Any) -> None:
    gpu = gpulab.use("cuda").gpu
    assert (gpu.name, gpu.compute_capability, gpu.sm_count, gpu.l2_bytes) == ("Fake GPU", (8, 6), 10, 1 << 16)
    assert gpu.dram_bandwidth_gb_per_s == pytest.approx(64)  # 1 GHz, two transfers, 32 bytes


@pytest.mark.parametrize("known", gpulab.gpus())
def test_a_gpu_of_the_catalog_is_known_by_the_drivers_name(known: str) -> None:
    gpu = gpulab.gpu(known)
    properties = {**fake_cupy.PROPERTIES, "name": gpu.aliases[0].encode(), "multiProcessorCount": gpu.sm_count}
    assert device_module._gpu_like(properties) == gpu


def test_a_part_of_a_gpu_is_not_taken_for_the_whole(cupy: Any) -> None:
    properties = {**fake_cupy.PROPERTIES, "name": b"Orin", "major": 8, "minor": 7, "multiProcessorCount": 4}
    gpu = device_module._gpu_like(properties)
    assert (gpu.name, gpu.sm_count, gpu.arch, gpu.fp32_lanes_per_sm) == ("Orin", 4, "sm_87", 128)


def test_numpy_arrays_hold_the_results_of_both_languages(cupy: Any, scale: gpulab.RawKernel) -> None:
    @cuda.jit
    def add(x, y, a):
        i = cuda.grid(1)
        if i < x.size:
            y[i] += a * x[i]

    y = np.ones_like(X)
    scale[4, 32](X, y, 2.5, 100)
    assert np.array_equal(y, 1 + np.float32(2.5) * X)
    add[4, 32](X, y, 1.5)
    assert np.array_equal(y, 1 + 4 * X)
    wide = np.zeros(200, np.float32)
    add[4, 32](X[::-1], wide[::2], 1)
    assert np.array_equal(wide[::2], X[::-1])
    assert (wide[1::2] == 0).all()
    scale((4,), (32,), (X, y, 1, 100))
    assert np.array_equal(y, 1 + 5 * X)


def test_code_is_made_for_the_real_capability(cupy: Any, scale: gpulab.RawKernel) -> None:
    record = gpulab.use("cuda").launch(scale[1, 32], (X, X.copy(), 1, 32))
    assert record.ptx.compute_capability == (8, 6)
    assert record.kind == "cuda"
    assert cupy.loaded[0].decode().rstrip("\0") == record.ptx.text


def test_machine_code_is_loaded_where_the_assembler_made_it(
    cupy: Any, scale: gpulab.RawKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = gpulab.use("cuda")
    ptx = scale.compile((), (8, 6))
    monkeypatch.setattr(PtxText, "assembled", Assembled((8, 6), cubin=b"machine code"))
    assert device.image(ptx) == b"machine code"
    older = scale.compile((), (7, 5))
    assert device.image(older) == older.text.encode() + b"\0"


def test_arrays_on_the_gpu_are_used_where_they_are(cupy: Any, scale: gpulab.RawKernel) -> None:
    gpulab.use("cuda")
    x, y = cupy.array(X), cuda.to_device(np.zeros_like(X))
    scale[4, 32](x, y, 3, 100)
    assert np.array_equal(y.copy_to_host(), 3 * X)
    (_, parameters) = cupy.launches[0]
    addresses = np.frombuffer(parameters[:16], np.uint64).tolist()
    assert addresses == [x.data.ptr, y.address]
    assert y.__cuda_array_interface__["data"] == (y.address, False)
    scale[1, 32](y[50:], x, 1, 32)
    assert np.array_equal(x.get()[:32], X[:32] + 3 * X[50:82])


def test_arrays_of_the_emulated_gpu_are_refused(cupy: Any, scale: gpulab.RawKernel) -> None:
    gpulab.use("A100")
    emulated = cuda.to_device(X)
    gpulab.use("cuda")
    with pytest.raises(ArgumentError, match="'x' is a device array of an emulated GPU"):
        scale[1, 32](emulated, X.copy(), 1, 32)


def test_a_readonly_array_stays_as_it_is(cupy: Any, scale: gpulab.RawKernel) -> None:
    gpulab.use("cuda")
    y = np.ones_like(X)
    y.flags.writeable = False
    scale[4, 32](X, y, 3, 100)
    assert (y == 1).all()


def test_measuring_leaves_the_arrays_as_one_launch_does(
    cupy: Any, scale: gpulab.RawKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_timing, "_MOST_RUNS", 8)
    y, z = np.ones_like(X), cuda_ones(cupy)
    record = gpulab.use("cuda").launch(scale[4, 32], (X, y, 2, 100), count=True)
    assert np.array_equal(y, 1 + 2 * X)
    gpulab.current().launch(scale[4, 32], (X, z, 2, 100), count=True)
    assert np.array_equal(z.copy_to_host(), 1 + 2 * X)
    assert len(record.samples) == 8
    assert record.seconds == pytest.approx(2.5e-3)
    assert record.samples == pytest.approx([2.5e-3] * len(record.samples))
    # Every run meets a cold cache, and only the launch is between the two events.
    first = cupy.calls[:4]
    assert first == ["flush", "record", "launch", "record"]
    assert cupy.calls[4:8] == first


def cuda_ones(cupy: Any) -> Any:
    gpulab.use("cuda")
    return cuda.to_device(np.ones_like(X))


def test_shared_memory_is_asked_for(cupy: Any, scale: gpulab.RawKernel) -> None:
    gpulab.use("cuda")
    scale.max_dynamic_shared_size_bytes = 65536
    scale[1, 32, 0, 65536](X, X.copy(), 1, 32)
    assert cupy.attributes == {8: 65536}
    assert cupy.launches[0][0].dynamic_shared_bytes == 65536
    with pytest.raises(LaunchError, match="asks for 65,537 bytes"):
        scale[1, 32, 0, 65537](X, X.copy(), 1, 32)


def test_failures_say_what_to_do(cupy: Any, scale: gpulab.RawKernel) -> None:
    gpulab.use("cuda")
    cupy.fail_launch = RuntimeError("CUDA_ERROR_INVALID_VALUE")
    with pytest.raises(LaunchError, match=r"Fake GPU does not accept scale.*INVALID_VALUE.*An emulated GPU says why"):
        scale[1, 32](X, X.copy(), 1, 32)
    cupy.fail_launch, cupy.fail_wait = None, RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
    with pytest.raises(DeviceError, match=r"ILLEGAL_ADDRESS.*restart it.*gpulab.use\(\"A100\"\)"):
        scale[1, 32](X, X.copy(), 1, 32)


def test_an_exception_in_a_debug_kernel_is_told(cupy: Any) -> None:
    @cuda.jit(debug=True, opt=False)
    def kernel(x):
        if cuda.grid(1) == 37:
            raise ValueError

    gpulab.use("cuda")
    with pytest.raises(
        KernelException, match=r"raised ValueError \(line \d+\) in block \(1, 0, 0\), thread \(5, 0, 0\)"
    ):
        kernel[2, 32](X.copy())


def test_freed_memory_is_never_used(cupy: Any) -> None:
    gpulab.use("cuda")
    device = cuda.to_device(X)
    cuda.close()
    with pytest.raises(DeviceError, match="was freed"):
        device.copy_to_host()


# ---- without a GPU


def test_without_a_driver_nothing_of_cupy_is_imported() -> None:
    code = (
        "import sys, gpulab\n"
        "gpulab.use()\n"
        "try: gpulab.use('cuda')\n"
        "except gpulab.GpulabError as error: print(error)\n"
        "print('cupy' in sys.modules)"
    )
    if detect.driver_gpu_count():
        pytest.skip("this machine has a CUDA GPU, so its CuPy is imported")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PATH": ""})
    message, imported = done.stdout.strip().rsplit("\n", 1)
    assert "no NVIDIA driver with a GPU. All of gpulab works on an emulated GPU" in message
    assert imported == "False"


def test_a_driver_without_cupy_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect, "driver_gpu_count", lambda: 1)
    monkeypatch.setattr(device_module.importlib.util, "find_spec", lambda name: None)
    assert "pip install cupy-cuda12x" in detect.why_no_cuda()
