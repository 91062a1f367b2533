"""The CUDA GPU: CuPy holds memory and talks to the driver; PTX and parameter buffer are those of the emulated GPU.

CuPy is imported when the device is made, and only after the driver has said that there is a GPU.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpulab.devices.cuda_memory import CudaBinding, CudaBuffer
from gpulab.devices.cuda_timing import measure
from gpulab.devices.protocol import Bound, Buffer, Device, Kernel, LaunchRecord
from gpulab.errors import DeviceError, KernelException, LaunchError
from gpulab.gpus import Gpu, gpu, gpus, known
from gpulab.launch import LaunchConfig
from gpulab.toolchain import abi
from gpulab.toolchain.records import COMPUTE_CAPABILITIES, PtxText

# Of the driver API (cuda.h): how a launch is given its parameters as one buffer, and the attribute to opt in with.
_PARAM_END, _PARAM_POINTER, _PARAM_SIZE = 0, 1, 2
_ATTRIBUTE_MAX_DYNAMIC_SHARED = 8


def why_unusable() -> str | None:
    """Why the GPU that the driver offers cannot be used, or None if it can."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed. Install it with: pip install cupy-cuda12x"
    if not importlib.import_module("cupy").cuda.is_available():
        return "CuPy cannot use the GPU; the driver may be too old for CUDA 12 (it must be at least 525)."
    return None


class CudaDevice(Device):
    """The first CUDA GPU of this machine."""

    kind = "cuda"

    def __init__(self) -> None:
        self.cupy = importlib.import_module("cupy")
        self._driver = importlib.import_module("cupy.cuda.driver")
        self._function = importlib.import_module("cupy.cuda.function")
        properties = self.cupy.cuda.runtime.getDeviceProperties(0)
        self.gpu = _gpu_like(properties)
        self.l2_bytes = int(properties["l2CacheSize"])
        self._real_capability = (int(properties["major"]), int(properties["minor"]))
        self._loaded: weakref.WeakKeyDictionary[Kernel, dict[str, Any]] = weakref.WeakKeyDictionary()
        self._buffers: weakref.WeakSet[CudaBuffer] = weakref.WeakSet()

    @property
    def compile_capability(self) -> tuple[int, int]:
        """The newest compute capability that the compilers know and the GPU can run."""
        return max(known for known in COMPUTE_CAPABILITIES if known <= self._real_capability)

    def launch(
        self, bound: Bound, args: Sequence[Any], *, count: bool = False, sample_blocks: int | None = None
    ) -> LaunchRecord:
        """Run a kernel once, or with `count` as often as measuring needs, and copy results into NumPy arrays."""
        kernel, config = bound.kernel, bound.config
        ptx = kernel.compile(args, self.compile_capability)
        if kernel.enable_cooperative_groups or "%envreg1" in ptx.text:
            raise DeviceError(
                f"{kernel.name} needs a cooperative launch (this_grid().sync()), which is made on emulated GPUs only: "
                'gpulab.use("A100"). On this GPU, end the kernel there and start a second one.'
            )
        module = self._module(kernel, ptx)
        function = module.get_function(ptx.kernel)
        self._allow_shared(kernel, config, function)
        with CudaBinding(self.cupy) as binding:
            parameters = abi.pack(kernel.name, ptx.parameters, args, binding.bind)
            run = self._runner(kernel.name, function, config, parameters, bound)
            samples = measure(self, binding, run) if count else ()
            if not count:
                run()
            self.synchronize()
            binding.copy_back()
        self._raise_recorded(ptx, module)
        described = tuple(abi.described(value) for value in args)
        seconds = float(np.median(samples)) if samples else None
        return LaunchRecord(ptx, config, self.gpu, self.kind, described, seconds=seconds, samples=samples)

    def allocate(self, nbytes: int, name: str = "device array") -> Buffer:
        """Memory from CuPy's pool."""
        buffer = CudaBuffer(self.cupy, nbytes)
        self._buffers.add(buffer)
        return buffer

    def synchronize(self) -> None:
        """Wait until all launches have finished.

        Raises
        ------
        DeviceError
            If a kernel failed: the GPU reports it when it is waited for.
        """
        try:
            self.cupy.cuda.runtime.deviceSynchronize()
        except Exception as error:  # CuPy's error classes differ between versions
            raise DeviceError(
                f"A kernel failed on the GPU: {error}. This process can no longer use the GPU: restart it. To find the "
                'line, run the same launch on an emulated GPU, which checks every access: gpulab.use("A100").'
            ) from error

    def free_all(self) -> None:
        """Give back the memory of all device arrays."""
        for buffer in list(self._buffers):
            buffer.free()

    def image(self, ptx: PtxText) -> bytes:
        """What the driver loads: machine code where the assembler made it for this GPU, else the PTX itself.

        Machine code works with every driver of the same major CUDA version; PTX needs a driver as new as its compiler.
        """
        same_family = ptx.compute_capability[0] == self._real_capability[0]
        cubin = ptx.assembled.cubin if same_family else None
        return cubin if cubin is not None else ptx.text.encode() + b"\0"

    def _module(self, kernel: Kernel, ptx: PtxText) -> Any:
        """The loaded module; it lives with the kernel object, and so do its variables."""
        of_kernel = self._loaded.setdefault(kernel, {})
        if ptx.digest not in of_kernel:
            module = self._function.Module()
            try:
                module.load(self.image(ptx))
            except Exception as error:
                raise DeviceError(f"The driver does not load {ptx.name}: {error}.") from error
            of_kernel[ptx.digest] = module
        return of_kernel[ptx.digest]

    def _allow_shared(self, kernel: Kernel, config: LaunchConfig, function: Any) -> None:
        opted, asked = kernel.max_dynamic_shared_size_bytes, config.dynamic_shared_bytes
        if opted is None:
            return
        if asked > opted:
            raise LaunchError(
                f"{kernel.name} asks for {asked:,} bytes of dynamic shared memory, but "
                f"{kernel.name}.max_dynamic_shared_size_bytes is {opted:,}."
            )
        try:
            self._driver.funcSetAttribute(function.ptr, _ATTRIBUTE_MAX_DYNAMIC_SHARED, opted)
        except Exception as error:
            raise LaunchError(
                f"The {self.gpu.name} does not allow {opted:,} bytes of shared memory per block: {error}."
            ) from error

    def _runner(self, name: str, function: Any, config: LaunchConfig, parameters: bytes, bound: Bound) -> Any:
        """A function without arguments that launches the kernel."""
        data = ctypes.create_string_buffer(parameters, max(len(parameters), 1))
        size = ctypes.c_size_t(len(parameters))
        extra = (ctypes.c_void_p * 5)(
            _PARAM_POINTER, ctypes.addressof(data), _PARAM_SIZE, ctypes.addressof(size), _PARAM_END
        )
        handle = int(getattr(getattr(bound, "stream", None), "ptr", 0) or 0)

        def run() -> None:
            try:
                self._driver.launchKernel(
                    function.ptr, *config.grid, *config.block, config.dynamic_shared_bytes, handle, 0,
                    ctypes.addressof(extra) if parameters else 0,
                )  # fmt: skip
            except Exception as error:
                raise LaunchError(
                    f"The {self.gpu.name} does not accept {name}[{config.grid}, {config.block}] with "
                    f"{config.dynamic_shared_bytes:,} bytes of dynamic shared memory: {error}. "
                    f'An emulated GPU says why: gpulab.use("{self.gpu.name}").'
                ) from error

        run.keeps = (data, size, extra)  # type: ignore[attr-defined]
        return run

    def _raise_recorded(self, ptx: PtxText, module: Any) -> None:
        """A kernel compiled with ``debug=True`` leaves the exception that it raised in variables of its module."""
        if not ptx.exceptions:
            return

        def word(name: str) -> int:
            value = np.zeros(1, np.int32)
            self.cupy.cuda.runtime.memcpy(value.ctypes.data, module.get_global_var(ptx.kernel + name).ptr, 4, 2)
            return int(value[0])

        code = word("__errcode__")
        if code:
            zero = np.zeros(1, np.int32)
            self.cupy.cuda.runtime.memcpy(module.get_global_var(ptx.kernel + "__errcode__").ptr, zero.ctypes.data, 4, 1)
            block, thread = (tuple(word(f"__{what}{axis}__") for axis in "xyz") for what in ("ctaid", "tid"))
            told = dict(ptx.exceptions).get(code, f"exception number {code}")
            raise KernelException(f"{ptx.name} raised {told} in block {block}, thread {thread}.")

    def __repr__(self) -> str:
        return f"<CUDA GPU {self.gpu.name}>"


def _gpu_like(properties: dict[str, Any]) -> Gpu:
    """The catalog's record of this GPU, or the nearest one with what the driver tells of this one."""
    name = properties["name"].decode() if isinstance(properties["name"], bytes) else str(properties["name"])
    sms, capability = int(properties["multiProcessorCount"]), (int(properties["major"]), int(properties["minor"]))
    same = known(name)
    # Different Jetsons have one name, and a part of a GPU that is shared out (MIG) may keep the name of the whole.
    if same is not None and same.sm_count == sms:
        return same
    catalog = [gpu(each) for each in gpus()]
    older = [entry for entry in catalog if entry.compute_capability <= capability] or catalog
    return max(older, key=lambda entry: (entry.compute_capability, -abs(entry.sm_count - sms))).replace(
        name=name,
        compute_capability=capability,
        sm_count=sms,
        memory_bytes=int(properties["totalGlobalMem"]),
        l2_bytes=int(properties["l2CacheSize"]),
        dram_bandwidth_gb_per_s=_bandwidth(properties),
    )


def _bandwidth(properties: dict[str, Any]) -> float:
    """Peak of device memory, 1e9 byte/s: clock (kHz) times two transfers times bus width (bits)."""
    clock, bus = float(properties.get("memoryClockRate", 0)), float(properties.get("memoryBusWidth", 0))
    return max(clock * 1e3 * 2 * bus / 8 / 1e9, 1.0)
