"""`Parameter`: a size or launch knob of a ladder, with what it may be and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpulab.errors import ArgumentError

Value = int | float | str
Values = Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One knob: what a slider moves and a sweep walks.

    Attributes
    ----------
    name : str
        Python name, as given to `gpulab.compare`.
    default : int, float or str
        The value that shows the point of the ladder.
    meaning : str
        What it is, with its unit, in a few words.
    values : tuple
        The values it may take; or empty, and `range` counts.
    range : tuple of two numbers or None
        Lowest and highest value, both included.
    scale : str
        ``"linear"`` or ``"log2"``: how a slider and a sweep step through `range`.
    follows : str or None
        The parameter whose value this one takes where it is not given itself (a square matrix by default).
    constraint : callable or None
        ``constraint(parameters) -> bool`` for what depends on the other parameters.
    why : str
        The reason of the limits, as a sentence; part of the error message.
    """

    name: str
    default: Value
    meaning: str
    values: tuple[Value, ...] = ()
    range: tuple[int | float, int | float] | None = None
    scale: str = "linear"
    follows: str | None = None
    constraint: Callable[[Values], bool] | None = None
    why: str = ""

    def objection(self, value: Value) -> str | None:
        """Why `value` alone is not allowed, as a sentence; None if it is."""
        kind = type(self.default)
        if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
            return f"{self.name} must be {_KINDS[kind]}, but {value!r} came."
        if self.values and value not in self.values:
            return self._says(f"must be one of {', '.join(map(_shown, self.values))}", value)
        if self.range and not self.range[0] <= value <= self.range[1]:
            return self._says(f"must be {_shown(self.range[0])} to {_shown(self.range[1])}", value)
        return None

    def misfit(self, values: Values) -> str | None:
        """Why its value does not fit the other parameters, as a sentence; None if it does."""
        if self.constraint is None or self.constraint(values):
            return None
        return self._says("does not fit the other parameters", values[self.name])

    def _says(self, must: str, value: Value) -> str:
        return f"{self.name} ({self.meaning}) {must}, but {value!r} came. {self.why}".rstrip()

    def to_json(self) -> dict[str, object]:
        """``{"default", "values" or "range", …}``, ready for `json.dumps`."""
        found: dict[str, object] = {"default": self.default, "meaning": self.meaning}
        if self.values:
            found["values"] = list(self.values)
        else:
            found["range"] = list(self.range or (self.default, self.default))
            found["scale"] = self.scale
        return found


_KINDS = {int: "an integer", float: "a number", str: "a string"}


def _shown(value: Value) -> str:
    return f"{value:,}" if isinstance(value, (int, float)) else repr(value)


def objections(parameters: tuple[Parameter, ...], values: Values) -> list[str]:
    """Why these complete `values` can't be used, a sentence each; empty if they can."""
    alone = [sentence for one in parameters if (sentence := one.objection(values[one.name]))]
    # What is wrong by itself would only make misfits of the others.
    return alone or [sentence for one in parameters if (sentence := one.misfit(values))]


def resolve(parameters: tuple[Parameter, ...], given: Values) -> dict[str, Value]:
    """All parameters by name: as given, else what they follow, else their default. Nothing is checked.

    NumPy integers and floats become Python numbers.
    """
    given = {name: value.item() if hasattr(value, "item") else value for name, value in given.items()}
    values: dict[str, Value] = {}
    for parameter in parameters:
        fallback = values[parameter.follows] if parameter.follows else parameter.default
        values[parameter.name] = given.get(parameter.name, fallback)
    return values


def checked(owner: str, parameters: tuple[Parameter, ...], given: Values) -> dict[str, Value]:
    """`resolve`, and refuse what is not allowed.

    Raises
    ------
    ArgumentError
        If a name is unknown or a value is not allowed; all reasons in one message.
    """
    known = [parameter.name for parameter in parameters]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ArgumentError(f"{owner} has the parameters {', '.join(known)}, but {', '.join(map(repr, unknown))} came.")
    values = resolve(parameters, given)
    reasons = objections(parameters, values)
    if reasons:
        raise ArgumentError(f"{owner}: " + " ".join(reasons))
    return values
