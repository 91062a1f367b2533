"""Plots: records in, axes out. Each takes `ax=` and returns axes that show themselves in a notebook.

matplotlib loads when a plot makes axes of its own.
"""

from __future__ import annotations

from gpulab.plots.access_map import Request, plot_access_map
from gpulab.plots.bars import plot_bars
from gpulab.plots.occupancy import occupancy_by_block, plot_occupancy
from gpulab.plots.roofline import plot_roofline
from gpulab.plots.svg import SvgAxes

__all__ = [
    "Request",
    "SvgAxes",
    "occupancy_by_block",
    "plot_access_map",
    "plot_bars",
    "plot_occupancy",
    "plot_roofline",
]
