"""Source to PTX to what the assembler says: Numba and NVRTC, ``ptxas``, ``nvdisasm``, arguments, disk cache."""

from __future__ import annotations

from gpulab.toolchain.ptxas import Assembled, assemble
from gpulab.toolchain.records import ParameterType, PtxText

__all__ = ["Assembled", "ParameterType", "PtxText", "assemble"]
