"""The hardware catalog: what a GPU is, and which ones are known. ``gpulab.gpus()`` lists their names."""

from __future__ import annotations

from gpulab.callable_package import make_callable
from gpulab.gpus.catalog import gpu, gpus, known
from gpulab.gpus.spec import Gpu

__all__ = ["Gpu", "gpu", "gpus", "known"]

make_callable(__name__, gpus)
