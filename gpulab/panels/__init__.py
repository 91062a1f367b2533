"""Live panels for notebooks: sliders above, pictures and counters below. `explore` makes the one of a ladder."""

from __future__ import annotations

from gpulab.panels.ladder import explore
from gpulab.panels.panel import Panel

__all__ = ["Panel", "explore"]
