"""What a check run found, in a learner's words: one fault for each mistake, with what usually repairs it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpulab.emulator.checking import words_memory, words_race, words_warp
from gpulab.emulator.checking.places import Places
from gpulab.emulator.checking.run import CheckResult
from gpulab.errors import Fault


@dataclass(frozen=True)
class Said:
    """Faults in the order in which they were met, and notes: what could not be decided, what was not looked at."""

    faults: tuple[Fault, ...]
    notes: tuple[str, ...]


def say(result: CheckResult, places: Places, language: str) -> Said:
    """Word everything that was found.

    Parameters
    ----------
    result : CheckResult
    places : Places
    language : str
        ``numba``, ``cuda`` or ``ptx``: what remedies are called.
    """
    races, notes = words_race.races(result.findings, places, language)
    racing = {index for race in races for index in (*race.sites, *race.others)}
    overflows = {f.site: f for f in reversed(result.findings) if f.kind == "overflow"}
    told: list[tuple[int, Fault]] = [(race.order, race.fault) for race in races]
    outside = {f.site for f in result.findings if f.kind in ("out-of-bounds", "beyond its array")}
    for order, finding in enumerate(result.findings):
        message = None
        if finding.kind in ("out-of-bounds", "misaligned", "beyond its array"):
            message = words_memory.access(finding, places, overflows.get(finding.site))
        elif finding.kind == "uninitialized" and finding.site not in racing:
            # A load that races finds nothing because the store comes too late: one mistake.
            message = words_memory.undefined(finding, places, language)
        elif finding.kind in ("given back", "between pieces"):
            message = words_memory.piece(finding, places)
        elif finding.kind == "overflow" and finding.site not in outside:
            message = words_memory.overflow(finding, places)
        if message is not None:
            kind = words_memory.kind_of(finding, places)
            told.append((order, places.fault(kind, message, finding, finding.count)))
    told += words_warp.undefined_lanes(result.findings, places, language)
    told += [(order, _without_place(broken)) for broken, order in result.broken]
    ordered = [one for _, one in sorted(told, key=lambda pair: pair[0])]
    return Said(tuple(_merged(ordered)), (*notes, *result.notes))


def _without_place(broken: Fault) -> Fault:
    """A fault that ended a block: its message less the place, which the report has beside it."""
    told = broken.message.partition("): ")[2] or broken.message
    return replace(broken, message=told[0].upper() + told[1:])


def _merged(faults: Iterable[Fault]) -> list[Fault]:
    """Faults of one kind at one line are one: compilers unroll loops and split accesses."""
    kept: dict[tuple[object, ...], Fault] = {}
    broken = ("barrier", "deadlock", "warp-sync", "trap", "assert")
    for each in faults:
        place = (each.file, each.line) if each.line is not None else each.ptx_line
        key = (each.kind, place, each.message if each.kind in ("race", "warp-sync") else "")
        if key not in kept:
            kept[key] = each
        else:
            count = kept[key].count + each.count if each.kind in broken else max(kept[key].count, each.count)
            kept[key] = replace(kept[key], count=count)
    return list(kept.values())
