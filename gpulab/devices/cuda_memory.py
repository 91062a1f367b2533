"""Memory of the CUDA GPU, through CuPy: buffers of device arrays, and the host arrays of one launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab.devices.array import DeviceArray
from gpulab.devices.protocol import Buffer
from gpulab.errors import ArgumentError
from gpulab.toolchain.argument_types import ArrayFacts

# Directions of a copy (cudaMemcpyKind).
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3


class CudaBuffer(Buffer):
    """Memory of the CUDA GPU, from CuPy's pool."""

    device = "the CUDA GPU"
    on_cuda = True

    def __init__(self, cupy: Any, nbytes: int) -> None:
        self._cupy, self.nbytes = cupy, nbytes
        self._memory = cupy.cuda.alloc(max(nbytes, 1))
        self.address = int(self._memory.ptr)

    @property
    def alive(self) -> bool:
        """False after `free`."""
        return self._memory is not None

    def free(self) -> None:
        """Give the memory back."""
        self._memory = None

    def read(self, offset: int, nbytes: int) -> np.ndarray:
        """A copy of some bytes on the host."""
        self.require_alive()
        data = np.empty(nbytes, np.uint8)
        if nbytes:
            self._cupy.cuda.runtime.memcpy(data.ctypes.data, self.address + offset, nbytes, TO_HOST)
        return data

    def write(self, offset: int, data: np.ndarray) -> None:
        """Copy bytes from the host."""
        self.require_alive()
        data = np.ascontiguousarray(data)
        if data.size:
            self._cupy.cuda.runtime.memcpy(self.address + offset, data.ctypes.data, data.nbytes, TO_DEVICE)


class CudaBinding:
    """The array arguments of one launch: host arrays are copied to the GPU, and back when it is over."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._host: dict[tuple[int, int], tuple[np.ndarray, CudaBuffer]] = {}
        #: Address and bytes of all that the kernel may write, for `restore`.
        self.ranges: dict[int, int] = {}
        self._saved: list[tuple[int, CudaBuffer]] = []

    def __enter__(self) -> CudaBinding:
        return self

    def __exit__(self, *_: object) -> None:
        self._host.clear()
        self._saved.clear()

    def bind(self, array: Any, facts: ArrayFacts, name: str) -> int:
        """Address of the first item of an array argument."""
        if isinstance(array, np.ndarray):
            return self._copy_in(array)
        if isinstance(array, DeviceArray) and not isinstance(array.buffer, CudaBuffer):
            raise ArgumentError(
                f"Parameter '{name}' is a device array of an emulated GPU, but the kernel runs on the CUDA GPU. "
                f'Copy it: cuda.to_device({name}.copy_to_host()) after gpulab.use("cuda").'
            )
        address = int(array.address if isinstance(array, DeviceArray) else array.__cuda_array_interface__["data"][0])
        low, high = _extent(facts)
        self.ranges[address + low] = max(high - low, self.ranges.get(address + low, 0))
        return address

    def save(self) -> None:
        """Remember what all arrays hold."""
        for address, nbytes in self.ranges.items():
            copy = CudaBuffer(self._cupy, nbytes)
            self._copy(copy.address, address, nbytes, ON_DEVICE)
            self._saved.append((address, copy))

    def restore(self) -> None:
        """Give all arrays the contents that `save` remembered."""
        for address, copy in self._saved:
            self._copy(address, copy.address, copy.nbytes, ON_DEVICE)

    def copy_back(self) -> None:
        """Copy the results into the host arrays; read-only ones stay as they are."""
        for array, buffer in self._host.values():
            if array.flags.writeable:
                low, _ = np.lib.array_utils.byte_bounds(array)
                data = buffer.read(0, buffer.nbytes)
                array[...] = np.ndarray(array.shape, array.dtype, data, array.ctypes.data - low, array.strides)

    def _copy_in(self, array: np.ndarray) -> int:
        if array.size == 0:
            buffer = CudaBuffer(self._cupy, 0)
            self._host[id(buffer), 0] = (array, buffer)
            return buffer.address
        low, high = np.lib.array_utils.byte_bounds(array)
        if (low, high) not in self._host:
            buffer = CudaBuffer(self._cupy, high - low)
            image = np.zeros(high - low, np.uint8)
            np.ndarray(array.shape, array.dtype, image, array.ctypes.data - low, array.strides)[...] = array
            buffer.write(0, image)
            self._host[low, high] = (array, buffer)
            self.ranges[buffer.address] = buffer.nbytes
        return self._host[low, high][1].address + array.ctypes.data - low

    def _copy(self, to: int, source: int, nbytes: int, direction: int) -> None:
        if nbytes:
            self._cupy.cuda.runtime.memcpy(to, source, nbytes, direction)


def _extent(facts: ArrayFacts) -> tuple[int, int]:
    if facts.size == 0:
        return 0, 0
    spans = [(length - 1) * stride for length, stride in zip(facts.shape, facts.strides, strict=True)]
    low, high = sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans)
    return low, high + facts.dtype.itemsize
