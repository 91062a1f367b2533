"""The command line: ``gpulab doctor | gpus | kernels | compare | profile``."""

from __future__ import annotations

from gpulab.cli.main import main

__all__ = ["main"]
