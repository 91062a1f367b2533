"""`explore`: the panel of a ladder. Sliders for its parameters; roofline, occupancy and counters follow."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from gpulab.errors import GpulabError
from gpulab.gpus import Gpu, gpus
from gpulab.gpus import gpu as find_gpu
from gpulab.kernels import Ladder
from gpulab.kernels import ladder as find_ladder
from gpulab.models.roofline import Roofline
from gpulab.panels.controls import Sliders, shown
from gpulab.panels.panel import Panel, View
from gpulab.panels.table import counter_table
from gpulab.plots import SvgAxes, occupancy_by_block, plot_occupancy, plot_roofline
from gpulab.plots.bars import speedup_text
from gpulab.profiler import Comparison, Profile, RungResult, compare
from gpulab.units import seconds_text, three_digits

_LOAD_RATIO = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
_STORE_RATIO = _LOAD_RATIO.replace("op_ld", "op_st")
Setting = tuple[Gpu, str, str, tuple[tuple[str, Any], ...]]


def explore(
    ladder: str | Ladder,
    gpu: str | os.PathLike[str] | Gpu | None = None,
    language: str | None = None,
    **parameters: Any,
) -> Panel:
    """The panel of a ladder: move a slider, and every rung runs again on the same data.

    Parameters
    ----------
    ladder : str or Ladder
        As in `gpulab.kernels()`.
    gpu : str, Gpu or None
        The GPU to start with; that of the current device if None.
    language : str or None
        ``"numba"`` or ``"cuda"``; the first that the ladder has if None.
    **parameters
        Values to start with; the ladder's defaults for the others.

    Returns
    -------
    Panel
        A widget: the last value of a cell, or anywhere in a layout.

    Raises
    ------
    GpulabError
        If the ladder or GPU is unknown, or a parameter is not allowed.
    """
    found = find_ladder(ladder) if isinstance(ladder, str) else ladder
    return _Explorer(found, _gpu(gpu), language or found.languages[0], parameters, compare).panel


def _gpu(gpu: str | os.PathLike[str] | Gpu | None) -> Gpu:
    if gpu is not None:
        return find_gpu(gpu)
    from gpulab.devices import current

    return current().gpu


class _Explorer:
    """The controls of one panel, and how a setting becomes a view."""

    def __init__(
        self, ladder: Ladder, gpu: Gpu, language: str, parameters: dict[str, Any], compare: Callable[..., Any]
    ) -> None:
        self.ladder, self.language, self.compare = ladder, language, compare
        values = ladder.at(**parameters).parameters
        self.sliders = Sliders(ladder.parameters, values, ladder.objections, self._refresh)
        names = [rung.name for rung in ladder.rungs if language in rung.languages]
        layout = ipywidgets.Layout(width="98%")  # their own width is fixed, and more than a narrow column has
        self.rung = ipywidgets.Dropdown(options=names, description="rung", layout=layout)
        known = {name: find_gpu(name) for name in gpus()}
        self.gpu = ipywidgets.Dropdown(options={gpu.name: gpu, **known}, value=gpu, description="GPU", layout=layout)
        for choice in (self.gpu, self.rung):
            choice.observe(lambda _: self._refresh(), names="value")
        title = f"{ladder.name}: {ladder.technique}"
        controls = [*self.sliders.widgets, self.rung, self.gpu]
        self.panel = Panel(title, controls, self._setting, self._look)

    def _refresh(self) -> None:
        self.panel.refresh()

    def _setting(self) -> Setting:
        return self.gpu.value, self.language, self.rung.value, tuple(self.sliders.values.items())

    def _look(self, setting: Setting) -> View:
        gpu, language, rung, parameters = setting
        comparison = self.compare(self.ladder.name, gpu=gpu, language=language, **dict(parameters))
        return view_of(comparison, rung)


def view_of(comparison: Comparison, chosen: str) -> View:
    """What the panel shows of a comparison, with one rung looked at more closely.

    Raises
    ------
    GpulabError
        If that rung could not be run; it says why.
    """
    ran = [rung for rung in comparison.rungs if rung.profile is not None]
    picked = next(rung for rung in comparison.rungs if rung.name == chosen)
    if picked.profile is None:
        raise GpulabError(f"{chosen} did not run. {picked.message}")
    caption = f"Counters of every rung on {comparison.gpu.name}; the change is against {ran[0].name}"
    return View(
        status=_status(comparison, ran, picked),
        pictures=(_roofline(comparison.roofline(), chosen), _occupancy(picked.profile, chosen)),
        table=counter_table(ran, chosen, caption),
    )


def _roofline(record: Roofline, chosen: str) -> SvgAxes:
    ax = SvgAxes()
    plot_roofline(record, chosen=chosen, ax=ax)
    return ax


def _occupancy(profile: Profile, chosen: str) -> SvgAxes:
    """The curve of the chosen rung's registers and shared memory, at its block size."""
    ax = SvgAxes()
    registers = profile.registers_per_thread
    shared = sum(profile.metrics[f"launch__shared_mem_per_block_{kind}"] for kind in ("static", "dynamic"))
    curve = occupancy_by_block(profile.gpu, registers_per_thread=registers, shared_bytes=int(shared))
    title = f"Occupancy of {chosen} on {profile.gpu.name} ({registers} registers per thread)"
    plot_occupancy(curve, block=math.prod(profile.block), title=title, ax=ax)
    return ax


def _status(comparison: Comparison, ran: Sequence[RungResult], picked: RungResult) -> str:
    """The result in a line: the best rung against the first, what the chosen one does here, and what is wrong."""
    speedup = speedup_text(ran[-1].profile.time, ran[0].profile.time)
    setting = ", ".join(f"{name} {shown(value)}" for name, value in comparison.parameters.items())
    parts = [
        f"{ran[-1].name} against {ran[0].name}: {speedup} ({picked.profile.time.source})." if speedup else "",
        f"{picked.name} at {setting}: {', '.join(_facts(picked.profile))}.",
        *(f"{rung.name}: {rung.message}" for rung in comparison.rungs if not rung.correct),
    ]
    return " ".join(filter(None, parts))


def _facts(profile: Profile) -> list[str]:
    facts = [seconds_text(profile.time.seconds)]
    loads, stores = (profile.metrics.get(name) for name in (_LOAD_RATIO, _STORE_RATIO))
    if loads is not None:
        facts.append(f"{three_digits(loads)} sectors per load request")
    if stores is not None and stores > (loads or 0):
        facts.append(f"{three_digits(stores)} sectors per store request")
    return [*facts, f"occupancy {profile.occupancy.theoretical:.0%}"]
