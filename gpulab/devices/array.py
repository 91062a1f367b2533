"""`DeviceArray`: an array in the memory of a GPU, emulated or real, with the methods of Numba's device arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.errors import ArgumentError
from gpulab.toolchain.argument_types import ArrayFacts, GpuArray, contiguous_strides

if TYPE_CHECKING:
    from gpulab.devices.protocol import Buffer


class DeviceArray(GpuArray):
    """An array in a GPU's memory; views of it share the memory, which is freed with the last of them.

    Make one with ``cuda.to_device`` or ``cuda.device_array``.

    Attributes
    ----------
    shape, strides : tuple of int
        In items and in bytes.
    dtype : numpy.dtype
    address : int
        Of the first item, in the GPU's address space.
    """

    def __init__(
        self,
        buffer: Buffer,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
    ) -> None:
        self.buffer, self.shape, self.dtype, self.offset = buffer, shape, dtype, offset
        self.strides = contiguous_strides(shape, dtype.itemsize) if strides is None else strides
        self.readonly = False

    @property
    def address(self) -> int:  # type: ignore[override]
        """Of the first item, in the GPU's address space; a `DeviceError` after the memory was freed."""
        self.buffer.require_alive()
        return self.buffer.address + self.offset

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of items."""
        return self._facts.size

    @property
    def nbytes(self) -> int:
        """Bytes of its items."""
        return self.size * self.dtype.itemsize

    @property
    def flags(self) -> dict[str, bool]:
        """``C_CONTIGUOUS`` and ``F_CONTIGUOUS``, as Numba has them."""
        return {
            "C_CONTIGUOUS": self.is_c_contiguous(),
            "F_CONTIGUOUS": self._facts.layout == "F" or (self.is_c_contiguous() and self.ndim <= 1),
        }

    def is_c_contiguous(self) -> bool:
        """Whether the items lie one after the other, the last axis fastest."""
        return self._facts.layout == "C"

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Any = 0) -> np.ndarray:
        """Copy into a NumPy array: a new one, or `ary`, which must have the same shape and dtype.

        Raises
        ------
        ArgumentError
            If `ary` does not fit.
        DeviceError
            If the memory was freed.
        """
        if ary is None:
            return self._read()
        if ary.shape != self.shape or ary.dtype != self.dtype:
            raise ArgumentError(
                f"copy_to_host needs an array of shape {self.shape} and dtype {self.dtype}, "
                f"but shape {ary.shape} and dtype {ary.dtype} came."
            )
        ary[...] = self._read()
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Fill from a NumPy array or another device array of the same shape and dtype.

        Raises
        ------
        ArgumentError
            If `ary` does not fit.
        DeviceError
            If the memory was freed.
        """
        source = ary._read() if isinstance(ary, DeviceArray) else np.asarray(ary)
        if source.shape != self.shape or source.dtype != self.dtype:
            raise ArgumentError(
                f"copy_to_device needs an array of shape {self.shape} and dtype {self.dtype}, "
                f"but shape {source.shape} and dtype {source.dtype} came."
            )
        self._write(source)

    def reshape(self, *shape: Any, order: str = "C") -> DeviceArray:
        """A view with another shape; -1 stands for what is left.

        Raises
        ------
        ArgumentError
            If the number of items differs, or the array is not contiguous in that order.
        """
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        try:
            example = np.broadcast_to(np.empty(1, np.uint8), self.shape).reshape(tuple(wanted))
        except ValueError as error:
            raise ArgumentError(
                f"A device array of shape {self.shape} cannot be reshaped to {wanted}: {error}."
            ) from None
        strides = contiguous_strides(example.shape[::-1] if order == "F" else example.shape, self.dtype.itemsize)
        self._require_contiguous("reshape", order)
        return DeviceArray(
            self.buffer, example.shape, self.dtype, strides[::-1] if order == "F" else strides, self.offset
        )

    def ravel(self, order: str = "C", stream: Any = 0) -> DeviceArray:
        """A one-dimensional view of a contiguous array."""
        return self.reshape(-1, order=order)

    def view(self, dtype: Any) -> DeviceArray:
        """The same bytes read as another dtype of the same item size."""
        wanted = np.dtype(dtype)
        if wanted.itemsize != self.dtype.itemsize:
            raise ArgumentError(
                f"view needs a dtype of {self.dtype.itemsize} bytes, but {wanted} has {wanted.itemsize}."
            )
        return DeviceArray(self.buffer, self.shape, wanted, self.strides, self.offset)

    def transpose(self, axes: tuple[int, ...] | None = None) -> DeviceArray:
        """A view with the axes permuted; reversed by default. Nothing moves in memory."""
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        shape, strides = (tuple(values[axis] for axis in order) for values in (self.shape, self.strides))
        return DeviceArray(self.buffer, shape, self.dtype, strides, self.offset)

    @property
    def T(self) -> DeviceArray:  # noqa: N802 - NumPy's name
        """The transposed view."""
        return self.transpose()

    def __getitem__(self, index: Any) -> Any:
        view = self._select(index)
        return view._read()[()] if view.shape == () else view

    def __setitem__(self, index: Any, value: Any) -> None:
        view = self._select(index)
        source = value.copy_to_host() if isinstance(value, DeviceArray) else np.asarray(value)
        view._write(np.broadcast_to(source.astype(self.dtype, copy=False), view.shape))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("A device array without dimensions has no length.")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("An array on a GPU can only become a NumPy array by a copy.")
        return self._read().astype(dtype or self.dtype, copy=False)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        # Other libraries would follow the address: only one of a real GPU may be offered.
        if not self.buffer.on_cuda:
            raise AttributeError("An array of an emulated GPU has no address that other libraries could use.")
        return {
            "typestr": self.dtype.str,
            "shape": self.shape,
            "strides": None if self.is_c_contiguous() else self.strides,
            "data": (self.address, self.readonly),
            "version": 3,
        }

    def __repr__(self) -> str:
        return f"<DeviceArray {self.dtype} {self.shape} on {self.buffer.device}>"

    @property
    def _facts(self) -> ArrayFacts:
        return ArrayFacts(self.dtype, self.shape, self.strides, self.readonly)

    def _require_contiguous(self, what: str, order: str) -> None:
        layout = self._facts.layout
        if layout != order and not (layout == "C" and self.ndim <= 1):
            raise ArgumentError(
                f"{what} needs an array that is contiguous in {order} order; this one is a strided view. "
                "Copy it first: cuda.to_device(x.copy_to_host())."
            )

    def _select(self, index: Any) -> DeviceArray:
        """The view that basic indexing (ints, slices, an ellipsis) gives."""
        parts = list(index) if isinstance(index, tuple) else [index]
        if any(not isinstance(part, (int, np.integer, slice, type(Ellipsis))) for part in parts):
            raise ArgumentError(
                "A device array can be indexed with ints and slices only; copy it to the host for more."
            )
        if Ellipsis not in parts:
            parts.append(Ellipsis)
        where = parts.index(Ellipsis)
        missing = self.ndim - (len(parts) - 1)
        if missing < 0:
            raise IndexError(f"{len(parts) - 1} indices came for a device array with {self.ndim} dimensions.")
        parts[where : where + 1] = [slice(None)] * missing
        shape, strides, offset = [], [], self.offset
        for part, length, stride in zip(parts, self.shape, self.strides, strict=True):
            if isinstance(part, slice):
                chosen = range(length)[part]
                offset += chosen.start * stride if len(chosen) else 0
                shape.append(len(chosen))
                strides.append(chosen.step * stride)
            else:
                offset += range(length)[part] * stride
        return DeviceArray(self.buffer, tuple(shape), self.dtype, tuple(strides), offset)

    def _read(self) -> np.ndarray:
        if self.size == 0:
            self.buffer.require_alive()
            return np.empty(self.shape, self.dtype)
        low, high = _extent(self.shape, self.strides, self.dtype.itemsize)
        data = self.buffer.read(self.offset + low, high - low)
        return np.ndarray(self.shape, self.dtype, data, -low, self.strides).copy()

    def _write(self, source: np.ndarray) -> None:
        low, high = _extent(self.shape, self.strides, self.dtype.itemsize)
        if self.size == 0:
            return
        if self._facts.layout == "A":
            data = self.buffer.read(self.offset + low, high - low)
        else:
            data = np.empty(high - low, np.uint8)
        np.ndarray(self.shape, self.dtype, data, -low, self.strides)[...] = source
        self.buffer.write(self.offset + low, data)


def _extent(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, int]:
    """First and one past the last byte that an array touches, from its first item."""
    if 0 in shape:
        return 0, 0
    spans = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    return sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans) + itemsize
