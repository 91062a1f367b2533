"""What `gpulab.profiler` hands out: profiles, comparisons, and how they show themselves."""

from __future__ import annotations

from gpulab.profiling.check import CheckReport
from gpulab.profiling.comparison import Comparison, RungResult
from gpulab.profiling.profile import Profile

__all__ = ["CheckReport", "Comparison", "Profile", "RungResult"]
