"""`Judged`: one launch, and what the models say of it on one GPU."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from gpulab.counters import Counters
from gpulab.devices.protocol import LaunchRecord
from gpulab.gpus import Gpu
from gpulab.models.assembled import LazySass, SassEstimate
from gpulab.models.metric import Sources
from gpulab.models.occupancy import Occupancy, resident
from gpulab.models.run import KernelRun
from gpulab.models.timing import TimeEstimate, estimate
from gpulab.models.traffic import Traffic, traffic


@dataclass(frozen=True)
class Judged:
    """One launch judged for one GPU.

    Attributes
    ----------
    record : LaunchRecord
    gpu : Gpu
    occupancy : Occupancy
    time : TimeEstimate
    sources : Sources or None
        What metrics, lines and findings derive from; None if nothing was counted.
    """

    record: LaunchRecord
    gpu: Gpu
    occupancy: Occupancy
    time: TimeEstimate
    sources: Sources | None

    @property
    def run(self) -> KernelRun:
        """The launch as the models see it.

        Raises
        ------
        AttributeError
            If nothing was counted.
        """
        return self.sources.run  # type: ignore[union-attr]

    @property
    def sass(self) -> SassEstimate | None:
        """The SASS that it executed, *modeled*; None if nothing was counted, or where there is no SASS."""
        return None if self.sources is None else self.sources.sass[0].estimate


def judge(record: LaunchRecord, gpu: Gpu) -> Judged:
    """Judge a launch for a GPU; the launch is not run again.

    Raises
    ------
    LaunchError
        If this GPU could not hold a block of the launch.
    """
    if record.counters is None or record.program is None:
        held = _occupancy(record, gpu)
        return Judged(record, gpu, held, _measured(record, None), None)
    run = run_of(record, record.counters)
    held = run.occupancy(gpu)
    moved = traffic(run, gpu, held)
    modeled = estimate(run, gpu, held, moved)
    is_measured = record.seconds is not None and gpu == record.gpu
    time = _measured(record, modeled) if is_measured else modeled
    sass = LazySass(run, lambda: record.assembled.code)
    return Judged(record, gpu, held, time, Sources(run, run.tally(), gpu, held, moved, (sass,)))


def run_of(record: LaunchRecord, counters: Counters) -> KernelRun:
    """What the models need of a launch."""
    assembled, program = record.assembled, record.program
    assert program is not None
    static = assembled.static_shared_bytes
    return KernelRun(
        program,
        counters,
        record.config,
        assembled.registers_per_thread,
        program.static_shared_bytes if static is None else static,
        assembled.stack_bytes,
    )


def merged(launches: tuple[Judged, ...]) -> Sources | None:
    """The sources of several launches together; None if one of them was not counted."""
    sources = [launch.sources for launch in launches if launch.sources is not None]
    if len(sources) < len(launches):
        return None
    longest = max(launches, key=lambda launch: launch.time.seconds)
    together: Traffic = sources[0].traffic
    for other in sources[1:]:
        together = together + other.traffic
    tally = sources[0].tally.merged([one.tally for one in sources])
    sass = tuple(lazy for one in sources for lazy in one.sass)
    return dataclasses.replace(longest.sources, tally=tally, traffic=together, sass=sass)  # type: ignore[type-var]


def total_time(launches: tuple[Judged, ...]) -> TimeEstimate:
    """The times of launches that run one after the other, added up."""
    times = [launch.time for launch in launches]
    if len(times) == 1:
        return times[0]
    names = dict.fromkeys(name for time in times for name in time.terms)
    terms = {name: sum(time.terms.get(name, 0.0) for time in times) for name in names}
    return TimeEstimate(
        sum(time.seconds for time in times),
        sum(time.low for time in times),
        sum(time.high for time in times),
        times[0].source,
        max(times, key=lambda time: time.seconds).bound_by,
        terms,
        times[0].clock_hz,
    )


def _occupancy(record: LaunchRecord, gpu: Gpu) -> Occupancy:
    assembled = record.assembled
    shared = (assembled.static_shared_bytes or 0) + record.config.dynamic_shared_bytes
    threads = record.config.threads_per_block
    return resident(gpu, block=threads, registers_per_thread=assembled.registers_per_thread, shared_bytes=shared)


def _measured(record: LaunchRecord, modeled: TimeEstimate | None) -> TimeEstimate:
    """The measured time with the spread of its samples; terms and what binds it stay modeled."""
    seconds = record.seconds if record.seconds is not None else float("nan")
    samples = sorted(record.samples) or [seconds]
    last = len(samples) - 1
    low, high = samples[round(0.05 * last)], samples[round(0.95 * last)]
    bound_by, terms = (modeled.bound_by, modeled.terms) if modeled else ("unknown", {})
    return TimeEstimate(seconds, low, high, "measured", bound_by, terms, None)
