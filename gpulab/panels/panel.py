"""`Panel`: controls above, what they lead to below, and the rules that every panel keeps.

The last result stays until the next is there, results are remembered, the newest setting wins, an error shows inside
the panel, and one line says the result in words, for screen readers too. Pictures are values of `HTML` widgets: output
widgets would flicker, and notebook tests can't run them.
"""

from __future__ import annotations

import html
import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ipywidgets

from gpulab.errors import GpulabError
from gpulab.panels.names import SliderNames
from gpulab.plots.svg import SvgAxes

_STYLE = f"<style>{Path(__file__).with_name('panel.css').read_text(encoding='utf-8')}</style>"
_BUSY = '<span class="gpulab-busy" aria-hidden="true">computing …</span>'
_STILL_NOTE = "(picture: run the cell to make it live)"
_REMEMBERED = 128


@dataclass(frozen=True, slots=True)
class View:
    """What a panel shows for one setting.

    Attributes
    ----------
    status : str
        The result in one line.
    pictures : tuple of SvgAxes
    table : str
        An HTML table.
    """

    status: str
    pictures: tuple[SvgAxes, ...]
    table: str


class Panel(ipywidgets.VBox):
    """A live panel.

    Parameters
    ----------
    title : str
    controls : sequence of Widget
    settings : callable
        ``settings()`` gives the present setting, hashable.
    look : callable
        ``look(setting) -> View``; what it raises shows inside the panel.
    """

    def __init__(
        self,
        title: str,
        controls: Sequence[ipywidgets.Widget],
        settings: Callable[[], Hashable],
        look: Callable[[Any], View],
    ) -> None:
        self.title = title
        self.view: View | None = None
        self._settings, self._look = settings, look
        self._tickets = itertools.count()
        self._newest = -1
        self._memory: OrderedDict[Hashable, View] = OrderedDict()
        self.status, self.busy, self.error, self.pictures, self.table = (ipywidgets.HTML() for _ in range(5))
        box = ipywidgets.Box(list(controls))
        box.add_class("gpulab-controls")
        line = ipywidgets.HBox([self.status, self.busy])
        head = ipywidgets.HTML(f"{_STYLE}<strong>{html.escape(title)}</strong>")
        super().__init__([head, box, line, self.error, self.pictures, self.table, SliderNames()])
        self.add_class("gpulab-panel")
        self.refresh()
        if self.view is None:
            raise self._failure

    def refresh(self) -> None:
        """Show what the present setting leads to. The last result stays where that fails."""
        ticket = self._newest = next(self._tickets)
        setting = self._settings()
        try:
            view = self._recall(setting)
        except Exception as error:  # noqa: BLE001 (whatever a kernel raises belongs to the user, who sees only the panel)
            if ticket == self._newest:
                self._fail(error)
            return
        if ticket == self._newest:  # else a newer setting came while this one was computed
            self._show(view)

    def _recall(self, setting: Hashable) -> View:
        if setting in self._memory:
            self._memory.move_to_end(setting)
            return self._memory[setting]
        self.busy.value = _BUSY
        try:
            view = self._memory[setting] = self._look(setting)
        finally:
            self.busy.value = ""
        if len(self._memory) > _REMEMBERED:
            self._memory.popitem(last=False)
        return view

    def _show(self, view: View) -> None:
        self.view = view
        self.error.value = ""
        pictures = "".join(picture.to_svg() for picture in view.pictures)
        self.pictures.value = f'<div class="gpulab-pictures">{pictures}</div>'
        self.table.value = view.table
        # Last, so that whoever hears the line finds the pictures that belong to it.
        self.status.value = f'<p class="gpulab-status" role="status" aria-live="polite">{html.escape(view.status)}</p>'

    def _fail(self, error: Exception) -> None:
        self._failure = error
        kind = "" if isinstance(error, GpulabError) else f"{type(error).__name__}: "
        kept = "\nThe result of the last setting that worked stays below." if self.view else ""
        self.error.value = f'<div class="gpulab-error" role="alert">{html.escape(f"{kind}{error}{kept}")}</div>'

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The live widget, and for a reader without Python its picture and table."""
        bundle = dict(super()._repr_mimebundle_(**options) or {})
        view = self.view
        assert view is not None  # the constructor raises otherwise
        bundle["text/plain"] = f"{self.title}: {view.status}"
        head = f"<p><strong>{html.escape(self.title)}</strong> <em>{_STILL_NOTE}</em></p>"
        pictures = "".join(picture.to_image() for picture in view.pictures)
        bundle["text/html"] = f"{head}<p>{html.escape(view.status)}</p>{pictures}{view.table}"
        return bundle
