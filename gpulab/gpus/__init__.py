"""The hardware catalog: what a GPU is, and which ones are known."""

from __future__ import annotations

from gpulab.gpus.catalog import gpu, gpus
from gpulab.gpus.spec import Gpu

__all__ = ["Gpu", "gpu", "gpus"]
