"""`Profile`: everything that is known of a launch, ready to be read, drawn and printed."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

from gpulab.gpus import Gpu
from gpulab.gpus import gpu as find_gpu
from gpulab.launch import Dim3
from gpulab.models.assembled import SassEstimate
from gpulab.models.findings import Finding, findings
from gpulab.models.lines import lines
from gpulab.models.metric import Sources
from gpulab.models.metrics import METRICS, Metrics, bounds, metrics
from gpulab.models.occupancy import Occupancy
from gpulab.models.roofline import Placed, Roofline, roofline
from gpulab.models.timing import TimeEstimate
from gpulab.profiling import documents
from gpulab.profiling.check import CheckReport
from gpulab.profiling.judged import Judged, judge, merged, total_time
from gpulab.profiling.lines import Instructions, Lines
from gpulab.profiling.sass_metrics import SassMetrics, sass_metrics
from gpulab.profiling.source import instructions_of, line_of, line_table, sass_of_lines, shares_of, source_table
from gpulab.profiling.summary import Facts, Row, summary
from gpulab.profiling.table import Table
from gpulab.units import count_text, seconds_text


class Profile:
    """What one launch did (or several that belong together), on one GPU. `gpulab.profile` makes it.

    Attributes
    ----------
    launches : tuple of Judged
        The launches, in order.
    gpu : Gpu
        That it is judged for.
    notes : tuple of str
        What a reader must know: sampling, another GPU's registers, counters that are missing.
    check : CheckReport or None
        What the check found, if it was asked for.
    """

    def __init__(self, launches: tuple[Judged, ...], notes: tuple[str, ...] = ()) -> None:
        self.launches = launches
        self.gpu: Gpu = launches[0].gpu
        self._main = max(launches, key=lambda launch: launch.time.seconds)
        self.remarks = notes
        self.notes = (*notes, *_notes(self._main))
        self.check: CheckReport | None = None

    # ---- what ran

    @property
    def name(self) -> str:
        """The kernel's name; of several launches, that of the longest."""
        return self._main.record.ptx.name

    @property
    def language(self) -> str:
        """``numba``, ``cuda`` or ``ptx``."""
        return self._main.record.ptx.language

    @property
    def grid(self) -> Dim3:
        """Blocks along x, y, z."""
        return self._main.record.config.grid

    @property
    def block(self) -> Dim3:
        """Threads of a block along x, y, z."""
        return self._main.record.config.block

    @property
    def ptx(self) -> str:
        """The PTX text that ran."""
        return self._main.record.ptx.text

    @property
    def sass(self) -> str | None:
        """The SASS that ptxas makes of it, with source lines; None where the tools are missing."""
        return self._main.record.assembled.sass

    @property
    def sass_estimate(self) -> SassEstimate | None:
        """How often each SASS instruction ran, *modeled* from the counts of PTX; None where there is no SASS.

        Of several launches, that of the longest.
        """
        return self._main.sass

    @property
    def sass_metrics(self) -> SassMetrics | None:
        """Metrics that differ between PTX and SASS, *modeled* for SASS: ``smsp__inst_executed.sum`` and its kin.

        None where there is no SASS. As a table it shows them beside those of the PTX.
        """
        return None if self.sources is None else sass_metrics(self.sources, self.metrics)

    @property
    def registers_per_thread(self) -> int | None:
        """As ptxas reports it; None where it is missing."""
        return self._main.record.assembled.registers_per_thread

    # ---- what it did

    @cached_property
    def sources(self) -> Sources | None:
        """The counters and models that everything below derives from; None if nothing was counted."""
        return merged(self.launches)

    @cached_property
    def metrics(self) -> Metrics:
        """Metric values under Nsight Compute's names: known zeros are 0, what is not determined is absent."""
        return metrics(self.sources) if self.sources is not None else Metrics()

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Between which values each metric of the modeled caches lies, whatever the caches do: if all that is used again hits,
        and if nothing does. A metric without an entry is certain, or is not about caches.
        """
        return bounds(self.sources) if self.sources is not None else {}

    @cached_property
    def time(self) -> TimeEstimate:
        """How long it takes, with range, source, what binds it, and the terms."""
        return total_time(self.launches)

    @property
    def occupancy(self) -> Occupancy:
        """Theoretical occupancy, as `gpulab.occupancy` computes it."""
        return self._main.occupancy

    @cached_property
    def findings(self) -> list[Finding]:
        """What holds it up, the largest gain first."""
        found = []
        for launch in self.launches:
            if launch.sources is not None:
                parts = (launch.run, launch.gpu, launch.occupancy, launch.sources.traffic, launch.time)
                found += findings(*parts, launch.record.ptx.file)
        return sorted(found, key=lambda finding: -(finding.gain or 1.0))

    @cached_property
    def lines(self) -> Lines:
        """Counters per source line, in order; `Lines.hottest` are those that the modeled time is spent on."""
        if self.sources is None:
            return Lines()
        instructions = [
            instruction for launch in self.launches for instruction in launch.run.program.function.instructions
        ]
        file, shares = self._main.record.ptx.file, shares_of(self.launches)
        return Lines(lines(self.sources, instructions, file, self._texts(), shares, sass_of_lines(self.launches)))

    @cached_property
    def instructions(self) -> Instructions:
        """Counters per PTX instruction, with the SASS that ptxas made of it."""
        return Instructions() if self.sources is None else Instructions(instructions_of(self.launches))

    def source(self, line: int | None = None) -> Table:
        """The source with what each line costs; or of one line its PTX and its SASS side by side.

        Raises
        ------
        ArgumentError
            If no instruction belongs to that line.
        """
        if line is None:
            return source_table(self.lines, self._texts())
        return line_table(self.launches, line_of(self.lines, line))

    def _texts(self) -> dict[tuple[str, int], str]:
        return {place: text for launch in self.launches for place, text in _source_lines(launch).items()}

    def roofline(self) -> Roofline:
        """Where it stands below the roofs of its GPU, for `gpulab.plots.plot_roofline`."""
        return roofline(self.gpu, self.placed(self.name))

    def placed(self, name: str) -> list[Placed]:
        """Its entry in a roofline under this name; none if nothing was counted."""
        if self.sources is None:
            return []
        return [Placed(name, self.sources.tally, self.sources.traffic, self.time)]

    def on(self, gpu: str | os.PathLike[str] | Gpu) -> Profile:
        """The same launch judged for another GPU; it is not run again, and its code stays as it was compiled.

        Raises
        ------
        ArgumentError
            If there is no such GPU.
        LaunchError
            If that GPU could not hold a block of it.
        """
        other = find_gpu(gpu)
        return Profile(tuple(judge(launch.record, other) for launch in self.launches), self.remarks)

    # ---- how it shows itself

    @cached_property
    def summary(self) -> tuple[Row, ...]:
        """The six lines: name, value, ideal, verdict, why, remedy."""
        return summary(Facts(self.gpu, self.time, self.occupancy, self.sources, self.findings))

    def table(self) -> Table:
        """The six lines as a table; `print(profile)` and a notebook show it."""
        columns = ("", "value", "ideal", "verdict", "why", "remedy")
        notes = (self._provenance(), *self.notes)
        return Table(self._title(), columns, tuple(row.cells for row in self.summary), notes, below=5)

    def _provenance(self) -> str:
        if self.sources is None:
            return f"Nothing was counted; the time is {self.time.source}."
        time = (
            "caches and time are modeled"
            if self.time.source == "modeled"
            else f"caches are modeled, the time is {self.time.source}"
        )
        return f"Counts are emulated, exact for the PTX; {time}."

    def _title(self) -> str:
        clock = f" at {self.time.clock_hz / 1e9:.2f} GHz" if self.time.clock_hz else ""
        several = f", {len(self.launches)} launches" if len(self.launches) > 1 else ""
        return f"{self.name} on {self.gpu.name}{clock}, grid {_dims(self.grid)}, block {_dims(self.block)}{several}"

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def details(self) -> Table:
        """Everything: all metrics with unit, how they are obtained and meaning, the terms of the time, the limits."""
        rows = [
            (
                name,
                count_text(value),
                METRICS[name].unit,
                METRICS[name].how,
                METRICS[name].meaning + _between(self.bounds.get(name)),
            )
            for name, value in self.metrics.items()
        ]
        rows += [
            (f"time.terms[{name!r}]", seconds_text(value), "", "modeled", "time that this resource alone would take")
            for name, value in self.time.terms.items()
        ]
        rows += [
            (f"occupancy.limits[{name!r}]", str(value), "block", "launch", f"blocks per SM that {name} would allow")
            for name, value in self.occupancy.limits.items()
        ]
        notes = (*map(str, self.findings), *self.notes)
        return Table(self._title(), ("name", "value", "unit", "how", "meaning"), tuple(rows), notes, right=(1,))

    def to_json(self, sass: bool = True) -> dict[str, Any]:
        """Plain data: what the command line's ``profile --json`` prints; without `sass` nothing is disassembled."""
        return documents.profile_document(self, sass)


def _dims(dims: Dim3) -> str:
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]  # type: ignore[assignment]
    return " x ".join(f"{size:,}" for size in dims)


def _between(bounds: tuple[float, float] | None) -> str:
    return f" (at least {count_text(bounds[0])}, at most {count_text(bounds[1])})" if bounds else ""


def _notes(launch: Judged) -> tuple[str, ...]:
    record, found = launch.record, []
    counters = record.counters
    if counters is not None and counters.sampled_blocks:
        found.append(
            f"Counted in {counters.sampled_blocks:,} of {record.config.blocks:,} blocks and extrapolated to the grid."
        )
    if record.incomplete:
        names = ", ".join(record.incomplete)
        found.append(f"Incomplete, because only these blocks ran: {names}.")
    if launch.gpu.compute_capability != record.ptx.compute_capability:
        major, minor = record.ptx.compute_capability
        found.append(f"Registers and instructions are those of code compiled for compute capability {major}.{minor}.")
    if record.assembled.registers_per_thread is None:
        found.append(f"Registers are unknown and limit nothing here: {record.assembled.reason}")
    return tuple(found)


def _source_lines(launch: Judged) -> dict[tuple[str, int], str]:
    ptx = launch.record.ptx
    if ptx.source is None or ptx.file is None:
        return {}
    texts = enumerate(ptx.source.splitlines(), ptx.source_line)
    return {(ptx.file, number): text.rstrip() for number, text in texts}
