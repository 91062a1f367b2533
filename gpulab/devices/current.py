"""Which GPU launches go to: `use` chooses it, `current` has it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpulab.devices.detect import why_no_cuda
from gpulab.devices.protocol import Device
from gpulab.errors import DeviceError

if TYPE_CHECKING:
    from gpulab.gpus import Gpu

_DEFAULT = "A100"
_current: Device | None = None
_made: dict[object, Device] = {}


def use(which: str | os.PathLike[str] | Gpu | Device | None = None, *, time_limit_s: float | None = None) -> Device:
    """Choose the GPU of this process.

    Parameters
    ----------
    which : str, path, Gpu or Device, optional
        A name of the catalog, the path of a TOML file or a `Gpu` for an emulated GPU; ``"cuda"`` for this machine's
        CUDA GPU. Default: ``$GPULAB_GPU``, else the CUDA GPU if there is one, else an emulated A100.
    time_limit_s : float, optional
        Seconds after which a launch on an emulated GPU is stopped.

    Returns
    -------
    Device

    Raises
    ------
    ArgumentError
        If the catalog has no such GPU.
    DeviceError
        If ``"cuda"`` is asked for and this machine has none that can be used; the message says why.
    """
    global _current
    _current = device_for(which)
    if time_limit_s is not None:
        if not time_limit_s > 0:
            raise DeviceError(f"time_limit_s must be above 0, but {time_limit_s!r} came.")
        _current.time_limit_s = time_limit_s  # type: ignore[attr-defined]
    return _current


def current() -> Device:
    """The GPU of this process; the default of `use` if none was chosen."""
    return _current if _current is not None else use()


def device_for(which: str | os.PathLike[str] | Gpu | Device | None = None) -> Device:
    """The device that `use` would choose, without choosing it."""
    if isinstance(which, Device):
        return which
    if which is None:
        which = os.environ.get("GPULAB_GPU") or ("cuda" if why_no_cuda() is None else _DEFAULT)
    if isinstance(which, str) and which.strip().lower() == "cuda":
        return _cuda_device()
    from gpulab.devices.emulated import EmulatedDevice
    from gpulab.gpus import gpu

    found = gpu(which)
    return _made.setdefault(found, EmulatedDevice(found))


def _cuda_device() -> Device:
    reason = why_no_cuda()
    if reason is not None:
        raise DeviceError(f'use("cuda") needs a CUDA GPU that can be used here, but {reason}')
    from gpulab.devices.cuda import CudaDevice

    if "cuda" not in _made:
        _made["cuda"] = CudaDevice()
    return _made["cuda"]
