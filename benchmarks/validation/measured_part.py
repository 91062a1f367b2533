"""The part of VALIDATION.md on a CUDA GPU at hand: its times beside the model's. Nothing where there is none."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator

from gpulab.devices import device_for
from gpulab.devices.detect import why_no_cuda
from gpulab.devices.protocol import Device
from gpulab.errors import GpulabError
from validation import arithmetic, caches, streams
from validation.judge import Verdict, kendall_tau, mean_error, modeled, share
from validation.ladders import ladders
from validation.pages import table
from validation.records import Launch

Named = tuple[str, str, Launch]


def measured_part() -> tuple[str, list[Verdict]]:
    """Measured times of all microbenchmarks and ladders; an empty text where there is no CUDA GPU."""
    if why_no_cuda() is not None:
        return "", []
    device = device_for("cuda")
    verdicts, failed = judge_all(device, all_launches(device))
    return page_of(device, verdicts, failed), verdicts


def all_launches(device: Device) -> Iterator[Named]:
    """Group, name and launch of everything, each once, with grids for this GPU."""
    seen = set()
    for module in (streams, caches, arithmetic):
        for point in module.points():
            if (point.group, point.name) not in seen:
                seen.add((point.group, point.name))
                yield point.group, point.name, point.launch(device.gpu)
    yield "launching", "an empty kernel", Launch("streams.cu", "nothing", 1, 32, lambda _: ())
    yield from caches.unpublished()
    for ladder in ladders():
        for rung in ladder.rungs:
            title = f"{ladder.title} ({ladder.gpu}'s kernels)" if ladder.title == "SGEMM 4096" else ladder.title
            yield title, rung.name, rung.launch


def judge_all(device: Device, launches: Iterable[Named]) -> tuple[list[Verdict], list[str]]:
    """Measure and model each; also what could not be run, with the reason."""
    verdicts, failed = [], []
    for group, name, launch in launches:
        try:
            record = device.launch(launch.bound(), launch.arguments(device), count=True)
            time = modeled(launch, device.gpu)
        except GpulabError as error:
            failed.append(f"{group}, {name}: {error}")
            continue
        assert record.seconds is not None
        times = record.seconds, time.seconds, time.low, time.high
        verdicts.append(Verdict(group, name, device.gpu, *times, time.bound_by, time.terms))
    return verdicts, failed


def page_of(device: Device, verdicts: list[Verdict], failed: list[str]) -> str:
    """The text of the part."""
    clock = device.gpu.clock_hz / 1e9
    text = [
        f"## Measured on {device.gpu.name}\n",
        f"Measured on {datetime.date.today():%Y-%m-%d} with CUDA events, cold L2, median of several runs; modeled at {clock:.2f} GHz. "
        f"**{device.gpu.name}, measured: mean error {mean_error(verdicts):.0%} over {len(verdicts)} launches, "
        f"{share(verdict.in_range for verdict in verdicts):.0%} in range.**\n",
    ]
    for group in dict.fromkeys(verdict.group for verdict in verdicts):
        members = [verdict for verdict in verdicts if verdict.group == group]
        tau = kendall_tau([verdict.published_s for verdict in members], [verdict.modeled_s for verdict in members])
        rows = [
            (
                verdict.name,
                f"{verdict.published_s * 1e6:,.2f}",
                f"{verdict.modeled_s * 1e6:,.2f}",
                f"{verdict.ratio - 1:+.0%}",
                verdict.bound_by,
            )
            for verdict in members
        ]
        text += [f"\n**{group}**: mean error {mean_error(members):.0%}, Kendall tau {tau:.2f}\n"]
        text += [table(("launch", "measured µs", "modeled µs", "error", "bound by"), rows, 4)]
    text += ["\nNot run:\n\n" + "".join(f"- {line}\n" for line in failed)] if failed else []
    return "\n".join(text)
