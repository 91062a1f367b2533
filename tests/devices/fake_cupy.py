"""A stand-in for CuPy whose GPU is the emulator, so that the CUDA path runs from end to end without a GPU.

It has the calls of CuPy that gpulab makes, with CuPy's signatures. A launch reads the parameter buffer through the
driver's ``extra`` list, as the real driver does, and runs the PTX that the module was loaded from.
"""

from __future__ import annotations

import ctypes
import importlib
import types
from typing import Any

import numpy as np
import pytest

from gpulab.devices import cuda as device_module
from gpulab.emulator import Memory, RunOptions, execute, load, place_variables
from gpulab.launch import LaunchConfig
from gpulab.ptx import parse
from gpulab.toolchain.ptxas import Assembled
from gpulab.toolchain.records import PtxText

PROPERTIES = {
    "name": b"Fake GPU", "major": 8, "minor": 6, "multiProcessorCount": 10, "totalGlobalMem": 1 << 30,
    "l2CacheSize": 1 << 16, "memoryClockRate": 1_000_000, "memoryBusWidth": 256,
}  # fmt: skip


def install(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    """Make it CuPy and a GPU, so far as gpulab can tell."""
    fake = FakeCupy()
    modules = {"cupy": fake, "cupy.cuda.driver": fake.driver, "cupy.cuda.function": fake.function}
    real = importlib.import_module
    monkeypatch.setattr(device_module.importlib, "import_module", lambda name: modules.get(name) or real(name))
    current = real("gpulab.devices.current")
    monkeypatch.setattr(current, "why_no_cuda", lambda: None)
    monkeypatch.setattr(current, "_made", {})
    monkeypatch.setattr(current, "_current", None)
    # The stand-in runs PTX, not machine code.
    monkeypatch.setattr(PtxText, "assembled", Assembled((8, 6), reason="not here"))
    monkeypatch.setenv("GPULAB_GPU", "")
    return fake


class FakeCupy:
    """What ``import cupy`` gives, with a record of what was called.

    Attributes
    ----------
    launches : list of (LaunchConfig, bytes)
        Configuration and parameter buffer of each launch.
    calls : list of str
        Names of launches, event records and L2 flushes, in order.
    fail_launch, fail_wait : Exception or None
        Raised by the next launch or wait.
    """

    def __init__(self) -> None:
        self.memory = Memory()
        self.launches: list[tuple[LaunchConfig, bytes]] = []
        self.calls: list[str] = []
        self.attributes: dict[int, int] = {}
        self.loaded: list[bytes] = []
        self.fail_launch: Exception | None = None
        self.fail_wait: Exception | None = None
        self._functions: dict[int, Any] = {}
        runtime = types.SimpleNamespace(
            getDeviceProperties=lambda number: dict(PROPERTIES), memcpy=self._memcpy, memset=self._memset,
            deviceSynchronize=self._wait,
        )  # fmt: skip
        self.driver = types.SimpleNamespace(launchKernel=self._launch, funcSetAttribute=self._set_attribute)
        self.function = types.SimpleNamespace(Module=lambda: FakeModule(self))
        self.cuda = types.SimpleNamespace(
            runtime=runtime, alloc=lambda nbytes: FakePointer(self.memory, nbytes), Event=lambda: FakeEvent(self),
            get_elapsed_time=lambda start, stop: stop.at - start.at, is_available=lambda: True,
        )  # fmt: skip

    def array(self, host: np.ndarray) -> Any:
        """A ``cupy.ndarray`` with these contents."""
        pointer = FakePointer(self.memory, host.nbytes)
        self.memory.view(pointer.ptr, host.nbytes)[:] = np.ascontiguousarray(host).reshape(-1).view(np.uint8)
        interface = {"typestr": host.dtype.str, "shape": host.shape, "strides": None, "data": (pointer.ptr, False)}
        return types.SimpleNamespace(
            __cuda_array_interface__=interface, data=pointer,
            get=lambda: self.memory.view(pointer.ptr, host.nbytes).view(host.dtype).reshape(host.shape).copy(),
        )  # fmt: skip

    def _memcpy(self, to: int, source: int, size: int, kind: int) -> None:
        def host(address: int) -> np.ndarray:
            return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8)

        target = host(to) if kind == 2 else self.memory.view(to, size)
        target[:] = host(source) if kind == 1 else self.memory.view(source, size)

    def _memset(self, pointer: int, value: int, size: int) -> None:
        self.memory.view(pointer, size)[:] = value
        self.calls.append("flush")

    def _set_attribute(self, function: int, attribute: int, value: int) -> None:
        self.attributes[attribute] = value

    def _wait(self) -> None:
        if self.fail_wait is not None:
            raise self.fail_wait

    def _launch(self, function: int, *rest: int) -> None:
        if self.fail_launch is not None:
            raise self.fail_launch
        gx, gy, gz, bx, by, bz, shared, _stream, kernel_params, extra = rest
        assert kernel_params == 0
        parameters = b""
        if extra:
            words = (ctypes.c_size_t * 5).from_address(extra)
            assert (words[0], words[2], words[4]) == (1, 2, 0)
            parameters = ctypes.string_at(words[1], ctypes.c_size_t.from_address(words[3]).value)
        config = LaunchConfig((gx, gy, gz), (bx, by, bz), shared)
        self.launches.append((config, parameters))
        self.calls.append("launch")
        program, symbols = self._functions[function]
        execute(program, config, parameters, self.memory, symbols, RunOptions(count=False))


class FakePointer:
    """``cupy.cuda.MemoryPointer``: frees its memory when it goes."""

    def __init__(self, memory: Memory, nbytes: int) -> None:
        self._memory, self._allocation = memory, memory.allocate(nbytes)
        self.ptr = self._allocation.address

    def __del__(self) -> None:
        self._memory.release(self._allocation)


class FakeModule:
    """``cupy.cuda.function.Module``."""

    def __init__(self, cupy: FakeCupy) -> None:
        self._cupy = cupy

    def load(self, image: bytes) -> None:
        self._cupy.loaded.append(image)
        self._module = parse(image.rstrip(b"\0").decode())
        self._symbols = place_variables(self._module, self._cupy.memory)

    def get_function(self, name: str) -> Any:
        number = len(self._cupy._functions) + 1
        self._cupy._functions[number] = (load(self._module, name), self._symbols)
        return types.SimpleNamespace(ptr=number)

    def get_global_var(self, name: str) -> Any:
        return types.SimpleNamespace(ptr=self._symbols[name])


class FakeEvent:
    """``cupy.cuda.Event``; its clock ticks 2.5 ms with each record."""

    _clock = 0.0

    def __init__(self, cupy: FakeCupy) -> None:
        self._cupy = cupy

    def record(self) -> None:
        FakeEvent._clock += 2.5
        self.at = FakeEvent._clock
        self._cupy.calls.append("record")
