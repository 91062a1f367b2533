"""Models: from counters and static facts of a kernel to understanding. Pure functions over plain records."""

from __future__ import annotations

from gpulab.models.occupancy import Occupancy, occupancy, occupancy_curve

__all__ = ["Occupancy", "occupancy", "occupancy_curve"]
