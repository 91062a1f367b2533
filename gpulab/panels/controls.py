"""The sliders of a panel: one for each parameter, with only those values that fit the others."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import ipywidgets

Value = Any
Values = Mapping[str, Value]
_MOST_STOPS = 128
_LOG2_STEPS_DOWN = 6


class ParameterLike(Protocol):
    """What a slider needs of `gpulab.kernels.Parameter`."""

    name: str
    default: Value
    meaning: str
    values: tuple[Value, ...]
    range: tuple[float, float] | None
    scale: str
    follows: str | None


def stops(parameter: ParameterLike, also: Value) -> list[Value]:
    """The values that a slider of this parameter offers, ascending, `also` among them.

    A size on a logarithmic scale is offered from 1/64 of its default up to it: below, only the launch is to be seen;
    above, the pictures would not follow the hand.
    """
    if parameter.values:
        return [*parameter.values]
    low, high = parameter.range or (parameter.default, parameter.default)
    if parameter.scale == "log2":
        low = max(low, parameter.default / 2**_LOG2_STEPS_DOWN)
        found = {2**power for power in range(64) if low <= 2**power <= parameter.default}
    else:
        step = max(int(high - low) // (_MOST_STOPS - 1), 1)
        found = set(range(int(low), int(high) + 1, step))
    return sorted(found | {parameter.default, also})


class Sliders:
    """A slider for each parameter; `values` is always allowed, because each offers only what fits the others.

    Parameters
    ----------
    parameters : sequence of Parameter
    values : mapping
        The values to start with, of all parameters.
    objections : callable
        ``objections(**values)`` gives the reasons against complete values, as sentences; empty if they are fine.
    changed : callable
        Called without arguments after the user moved a slider.
    """

    def __init__(
        self,
        parameters: Sequence[ParameterLike],
        values: Values,
        objections: Callable[..., Sequence[str]],
        changed: Callable[[], None],
    ) -> None:
        self._objections = objections
        self._changed = changed
        self._quiet = False
        self._stops = {parameter.name: stops(parameter, values[parameter.name]) for parameter in parameters}
        self._followers = [(parameter.name, parameter.follows) for parameter in parameters if parameter.follows]
        self._meanings = {parameter.name: parameter.meaning for parameter in parameters}
        # In units of the letter size, a little more than the longest name needs: else it would be cut off.
        self._label_width = f"{0.65 * max(map(len, self._stops)) + 0.5:g}em"
        self._hints = {parameter.name: ipywidgets.HTML() for parameter in parameters}
        self.by_name = {name: self._slider(name, values[name]) for name in self._stops}
        self._offer()
        for slider in self.by_name.values():
            slider.observe(self._moved, names="value")

    @property
    def values(self) -> dict[str, Value]:
        """The value of every parameter."""
        return {name: slider.value for name, slider in self.by_name.items()}

    @property
    def widgets(self) -> list[ipywidgets.Widget]:
        """A box for each slider, with its explanation below."""
        return [ipywidgets.VBox([slider, self._hints[name]]) for name, slider in self.by_name.items()]

    def _slider(self, name: str, value: Value) -> ipywidgets.SelectionSlider:
        options = [(shown(stop), stop) for stop in self._stops[name]]
        style = {"description_width": self._label_width}
        layout = ipywidgets.Layout(width="98%")
        return ipywidgets.SelectionSlider(options=options, value=value, description=name, style=style, layout=layout)

    def _moved(self, change: Mapping[str, Any]) -> None:
        if self._quiet:
            return
        self._follow(change["owner"].description, change["old"])
        self._offer()
        self._changed()

    def _follow(self, moved: str, old: Value) -> None:
        """Take along what follows the moved parameter, unless the user has set the two apart."""
        self._quiet = True
        for name, leader in self._followers:
            if leader == moved and self.by_name[name].value == old and self.values[leader] in self._stops[name]:
                self.by_name[name].value = self.values[leader]
        self._quiet = False

    def _offer(self) -> None:
        """Offer what fits; set without a callback, since the chosen values stay as they are."""
        self._quiet = True
        for name, slider in self.by_name.items():
            fitting, reason = self._fitting(name)
            options = tuple((shown(stop), stop) for stop in fitting)
            if options != slider.options:
                value = slider.value
                slider.options = options
                slider.value = value
            self._hints[name].value = self._hint(self._meanings[name] + (f". {reason}" if reason else ""))
        self._quiet = False

    def _hint(self, text: str) -> str:
        """An explanation, set below the slider rather than below its name."""
        plain = html.escape(text).replace("`", "")
        return (
            f'<div style="padding-left:calc({self._label_width} + 12px)"><div class="gpulab-hint">{plain}</div></div>'
        )

    def _fitting(self, name: str) -> tuple[list[Value], str]:
        """The stops that fit the other values, and why the first of the others does not."""
        values = self.values
        reasons = {stop: self._objections(**{**values, name: stop}) for stop in self._stops[name]}
        fitting = [stop for stop, why in reasons.items() if not why]
        refused = [why[0] for why in reasons.values() if why]
        return fitting, refused[0] if refused else ""


def shown(value: Value) -> str:
    """A value as a slider shows it."""
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)
