"""The part of VALIDATION.md on counters."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import gpulab
from validation.counters import expectations
from validation.pages import table
from validation.records import Count, Expectation

HEAD = ("kernel", "GPU", "metric", "expected", "gpulab", "")


@cache
def found(expectation: Expectation) -> tuple[tuple[float | None, ...], bool]:
    """Our counts, and whether the kernel's results are right; run once."""
    profile, arguments = expectation.launch.run(gpulab.gpu(expectation.gpu))
    is_right = expectation.right is None or expectation.right(arguments)
    return tuple(count.found(profile) for count in expectation.counts), is_right


def counters_part() -> str:
    """Every expected count beside ours."""
    every = expectations()
    exact = [row for row in every if not row.compiler]
    counts = [(count, ours) for row in exact for count, ours in zip(row.counts, found(row)[0], strict=True)]
    equal = sum(count.agrees(ours) for count, ours in counts)
    wrong = [row for row in exact if not _agrees(row)]
    text = [
        "## Counters\n",
        f"**Counters: {equal} of {len(counts)} with a source are equal**, over {len(exact)} launches. Kernels are in",
        "`benchmarks/validation/`; the tests hold the same table.\n",
    ]
    text += [f"\nNot equal: {row.title} ({row.gpu}); {row.known or 'the reason is not known'}.\n" for row in wrong]
    for source in dict.fromkeys(row.source for row in exact):
        text += [f"\n**{source[0].upper()}{source[1:]}**\n", table(HEAD, _rows(exact, source), right=3)]
    text += [
        "\n**For orientation: values that depend on the machine code of the source's compiler**\n",
        "gpulab counts PTX instructions and branches, Nsight Compute those of SASS. All from D. Deleter's CUDA notes.\n",
        table(HEAD[:-1], [row[:-1] for row in _rows([row for row in every if row.compiler])], right=2),
    ]
    return "\n".join(text)


def _agrees(row: Expectation) -> bool:
    ours, is_right = found(row)
    return is_right and all(count.agrees(value) for count, value in zip(row.counts, ours, strict=True))


def _rows(rows: Iterable[Expectation], source: str | None = None) -> list[tuple[str, ...]]:
    cells = []
    for row in rows:
        if source not in (None, row.source):
            continue
        for number, (count, ours) in enumerate(zip(row.counts, found(row)[0], strict=True)):
            first = (row.title, row.gpu) if number == 0 else ("", "")
            verdict = "equal" if count.agrees(ours) else "**not equal**"
            cells.append((*first, _metric(count), _number(count.value), _number(ours), verdict))
    return cells


def _metric(count: Count) -> str:
    return f"`{count.metric}`" + (" per request" if count.per else "")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
