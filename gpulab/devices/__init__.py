"""Where a launch runs: an emulated GPU or a CUDA GPU, behind one protocol."""

from __future__ import annotations

from gpulab.devices.array import DeviceArray
from gpulab.devices.current import current, device_for, use
from gpulab.devices.protocol import Device, LaunchRecord

__all__ = ["Device", "DeviceArray", "LaunchRecord", "current", "device_for", "use"]
