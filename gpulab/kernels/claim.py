"""`Claim`: what a rung of a ladder moves, and by how much at least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TIME_PREFIX = "time:"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a rung moves: a metric, which way, and by at least which factor against a named rung.

    Metrics are totals of a launch, so that idle lanes or useless loads can't buy a better ratio.

    Attributes
    ----------
    metric : str
        An ncu name, several joined by ``" + "``, or ``"time:<term>"`` for a term of the time estimate.
    direction : str
        ``"lower"``, ``"higher"`` or ``"same"``.
    factor : float
        The least factor, above 1; for ``"same"`` the most by which the two may differ.
    against : str
        Name of the rung compared with.
    """

    metric: str
    direction: str
    factor: float
    against: str

    def value(self, metrics: Mapping[str, float | None], terms: Mapping[str, float] | None = None) -> float:
        """The claimed quantity of one rung, from its metrics and, for a time claim, its time terms in seconds.

        Raises
        ------
        KeyError
            If a metric is not there, or is None (not known).
        """
        total = 0.0
        for name in self.metric.split(" + "):
            found = (terms or {})[name[len(TIME_PREFIX) :]] if name.startswith(TIME_PREFIX) else metrics[name]
            if found is None:
                raise KeyError(name)
            total += found
        return total

    def holds(self, value: float, base: float) -> bool:
        """Whether a rung with `value` keeps the claim against a rung with `base`."""
        if self.direction == "lower":
            return base > 0 and value * self.factor <= base
        if self.direction == "higher":
            return value >= base * self.factor and value > 0
        return value <= base * self.factor and base <= value * self.factor

    def sentence(self) -> str:
        """The claim in words."""
        if self.direction == "same":
            return f"{self.metric} stays within a factor of {self.factor:g} of {self.against}"
        return f"{self.metric} at least {self.factor:g} times {self.direction} than {self.against}"

    def to_json(self) -> dict[str, object]:
        """The claim as plain data."""
        return {
            "metric": self.metric,
            "direction": self.direction,
            "factor": self.factor,
            "against": self.against,
        }
