"""`SassMetrics`: what Nsight Compute would count in SASS, beside what was counted in PTX."""

from __future__ import annotations

from gpulab.models.metric import Sources
from gpulab.models.metrics import METRICS, Metrics
from gpulab.profiling.lines import whole
from gpulab.profiling.table import Table


class SassMetrics(dict[str, float]):
    """Metrics by name, *modeled* for SASS; in a notebook a table with the PTX's beside them.

    Attributes
    ----------
    ptx : Metrics
        The *emulated* ones, exact for the PTX.
    agreement : float
        The part of the PTX's accesses and arithmetic that was found again in SASS, 0 to 1.
    """

    def __init__(self, values: dict[str, float], ptx: Metrics, agreement: float) -> None:
        super().__init__(values)
        self.ptx = ptx
        self.agreement = agreement

    def table(self) -> Table:
        """The metrics as a table."""
        rows = tuple(
            (name, METRICS[name].unit, whole(self.ptx[name]) if name in self.ptx else "", whole(value))
            for name, value in self.items()
            if value or self.ptx.get(name)
        )
        note = f"{self.agreement:.0%} of what the PTX accesses and computes was found again in SASS (docs/sass.md)."
        columns = ("name", "unit", "PTX (emulated)", "SASS (modeled)")
        return Table("Counted in PTX, and estimated for SASS", columns, rows, (note,), right=(2, 3))

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def sass_metrics(sources: Sources, ptx: Metrics) -> SassMetrics | None:
    """The metrics of all launches together; None where one has no SASS."""
    estimates = [one.estimate for one in sources.sass if one.estimate is not None]
    if not estimates or len(estimates) < len(sources.sass):
        return None
    each = [estimate.metrics() for estimate in estimates]
    sums = {name: sum(one[name] for one in each) for name in each[0]}
    return SassMetrics(sums, ptx, min(estimate.agreement for estimate in estimates))
