"""What ptxas made of a kernel: which SASS instructions a launch executed, how often, and what they cost (*modeled*)."""

from __future__ import annotations

from gpulab.models.assembled.estimate import LazySass, SassEstimate, estimate_sass

__all__ = ["LazySass", "SassEstimate", "estimate_sass"]
