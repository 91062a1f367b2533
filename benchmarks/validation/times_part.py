"""The parts of VALIDATION.md on modeled times: microbenchmarks and public ladders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from validation import arithmetic, caches, streams
from validation.judge import (
    Verdict,
    judge_ladder,
    judge_point,
    kendall_tau,
    mean_error,
    share,
    speed_ups,
    typical_factor,
)
from validation.ladders import ladders
from validation.pages import table
from validation.records import Point, PublicLadder

#: A microbenchmark's figure should be met within this, a speed-up within that factor, an order with at least this tau.
CLOSE, WITHIN, ORDERED = 0.10, 1.5, 0.9
WORST = 12
Part = tuple[str, list[Verdict]]


def microbenchmarks_part() -> Part:
    """Every published point of the microbenchmarks beside the model's."""
    points = [point for module in (streams, caches, arithmetic) for point in module.points()]
    verdicts = [verdict for verdict in map(judge_point, points) if verdict is not None]
    missing = sorted({point.gpu for point in points} - {verdict.point.gpu for verdict in verdicts if verdict.point})
    groups = list(dict.fromkeys(verdict.group for verdict in verdicts))
    close = [verdict.error <= CLOSE for verdict in verdicts]
    text = [
        "## Microbenchmarks\n",
        f"**Microbenchmarks: mean error {mean_error(verdicts):.0%} over {len(verdicts)} points; {share(close):.0%} within {CLOSE:.0%}, "
        f"{_range(verdicts)} in range.** The clock is the source's where it states one, else the boost clock.\n",
    ]
    if missing:
        text += [f"Left out, because the catalog does not have them: {', '.join(missing)}.\n"]
    rows = [_summary(name, [verdict for verdict in verdicts if verdict.group == name]) for name in groups]
    text += [
        table(
            ("curve", "points", "mean error", f"within {CLOSE:.0%}", "in range", "worst, modeled / published"), rows, 5
        )
    ]
    text += [f"\n**The {WORST} worst**, modeled / published time\n", table(*_worst(verdicts))]
    text += [_curve(name, [verdict for verdict in verdicts if verdict.group == name]) for name in groups]
    return "\n".join(text), verdicts


def _range(verdicts: Sequence[Verdict]) -> str:
    return f"{share(verdict.in_range for verdict in verdicts):.0%}"


def _summary(name: str, verdicts: list[Verdict]) -> tuple[str, ...]:
    worst = max(verdicts, key=_distance)
    close = share(verdict.error <= CLOSE for verdict in verdicts)
    last = f"{worst.ratio:.2f} ({_where(worst)})"
    return name, str(len(verdicts)), f"{mean_error(verdicts):.0%}", f"{close:.0%}", _range(verdicts), last


def _distance(verdict: Verdict) -> float:
    return max(verdict.ratio, 1 / verdict.ratio)


def _where(verdict: Verdict) -> str:
    return f"{verdict.name}, {verdict.point.gpu if verdict.point else verdict.gpu.name}"


def _worst(verdicts: Iterable[Verdict]) -> tuple[Sequence[str], list[Sequence[str]], int]:
    found = sorted(verdicts, key=_distance, reverse=True)[:WORST]
    rows = [(verdict.group, _where(verdict), verdict.bound_by, f"{verdict.ratio:.2f}") for verdict in found]
    return ("curve", "point", "bound by", "ratio"), rows, 1


def _curve(name: str, verdicts: list[Verdict]) -> str:
    """Points as rows, GPUs as columns: published, modeled, error of the time."""
    points = [verdict.point for verdict in verdicts if verdict.point is not None]
    columns = list(dict.fromkeys((point.gpu, point.source) for point in points))
    names = list(dict.fromkeys(point.name for point in points))
    if all(each[0].isdigit() for each in names):
        names.sort(key=lambda each: int(each.split()[0]))
    cells = {
        (point.name, point.gpu, point.source): _cell(point, verdict)
        for point, verdict in zip(points, verdicts, strict=True)
    }
    rows = [(each, *(cells.get((each, *column), "") for column in columns)) for each in names]
    sources = ", ".join(dict.fromkeys(point.source for point in points))
    unit = {"cycles": "SM cycles", "us": "µs"}.get(points[0].unit, points[0].unit)
    head = ("", *(gpu for gpu, _ in columns))
    return (
        f"\n### {name[0].upper()}{name[1:]}\n\n{unit}: published, modeled (error of the time). {sources}.\n\n"
        + table(head, rows, len(columns))
    )


def _cell(point: Point, verdict: Verdict) -> str:
    ours = point.in_unit(verdict.modeled_s, verdict.gpu)
    text = f"{_figure(point.published)}, {_figure(ours)} ({verdict.ratio - 1:+.0%})"
    return text if verdict.error <= CLOSE else f"**{text}**"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ladders_part() -> Part:
    """Order of the rungs and speed-ups of public ladders, beside the model's."""
    found = [(ladder, verdicts) for ladder in ladders() if (verdicts := judge_ladder(ladder))]
    every = [verdict for _, verdicts in found for verdict in verdicts]
    taus = [_tau(verdicts) for _, verdicts in found]
    good = [flag for _, verdicts in found for flag in _steps_met(verdicts)]
    text = [
        "## Public ladders\n",
        f"**Ladders: Kendall tau is at least {ORDERED} in {sum(tau >= ORDERED for tau in taus)} of {len(taus)}; {sum(good)} of "
        f"{len(good)} speed-ups are within a factor of {WITHIN}. Single times: mean error {mean_error(every):.0%}, typical factor "
        f"{typical_factor(every):.2f}, {_range(every)} in range.**\n",
        "Kernels of our own for the steps that the sources describe. No source states its clock, and details of their kernels are "
        "not ours, so what counts are order and speed-ups; errors of single times are information.\n",
        table(
            (
                "ladder",
                "GPU",
                "rungs",
                "Kendall tau",
                f"speed-ups within {WITHIN}",
                "mean error",
                "typical factor",
                "in range",
            ),
            [_ladder_summary(ladder, verdicts) for ladder, verdicts in found],
            6,
        ),
    ]
    text += [f"\nSpeed-ups that are off by more than a factor of {WITHIN}, modeled / published:\n"]
    text += [table(("ladder", "step", "over the first rung", "over the one before"), _failures(found), 2)]
    text += [_ladder(ladder, verdicts) for ladder, verdicts in found]
    return "\n".join(text), every


def _off(published: float, ours: float) -> bool:
    return not 1 / WITHIN <= ours / published <= WITHIN


def _tau(verdicts: Sequence[Verdict]) -> float:
    return kendall_tau([verdict.published_s for verdict in verdicts], [verdict.modeled_s for verdict in verdicts])


def _steps_met(verdicts: Sequence[Verdict]) -> list[bool]:
    return [not _off(one, two) and not _off(three, four) for one, two, three, four in speed_ups(verdicts)]


def _ladder_summary(ladder: PublicLadder, verdicts: list[Verdict]) -> tuple[str, ...]:
    tau, good = _tau(verdicts), _steps_met(verdicts)
    shares = f"{sum(good)} of {len(good)}", f"{mean_error(verdicts):.0%}", f"{typical_factor(verdicts):.2f}"
    return ladder.title, ladder.gpu, str(len(verdicts)), f"{tau:.2f}", *shares, _range(verdicts)


def _failures(found: list[tuple[PublicLadder, list[Verdict]]]) -> list[tuple[str, ...]]:
    rows = []
    for ladder, verdicts in found:
        for verdict, (one, two, three, four) in zip(verdicts[1:], speed_ups(verdicts), strict=True):
            if _off(one, two) or _off(three, four):
                rows.append((f"{ladder.title}, {ladder.gpu}", verdict.name, f"{two / one:.2f}", f"{four / three:.2f}"))
    return rows


def _ladder(ladder: PublicLadder, verdicts: list[Verdict]) -> str:
    head = (
        "rung",
        "published ms",
        "modeled ms",
        "range",
        "modeled / published",
        "speed-up published",
        "modeled",
        "over the one before, published",
        "modeled",
        "bound by",
    )
    blank = [("", "", "", "")]
    steps = [tuple(f"{value:.2f}" for value in row) for row in speed_ups(verdicts)]
    rows = [
        (
            verdict.name,
            _figure(verdict.published_s * 1e3),
            _figure(verdict.modeled_s * 1e3),
            f"{_figure(verdict.low_s * 1e3)} to {_figure(verdict.high_s * 1e3)}{'' if verdict.in_range else ' (outside)'}",
            f"{verdict.ratio:.2f}",
            *step,
            verdict.bound_by,
        )
        for verdict, step in zip(verdicts, blank + steps, strict=True)
    ]
    clock = verdicts[0].gpu.clock_hz / 1e9
    return f"\n### {ladder.title}, {ladder.gpu}\n\n{ladder.source}; modeled at {clock:.2f} GHz.\n\n" + table(
        head, rows, 9
    )
