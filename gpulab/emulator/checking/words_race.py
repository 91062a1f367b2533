"""The words for races: two threads access one place, one of them stores, and nothing orders the two."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from gpulab.emulator.checking.findings import Finding
from gpulab.emulator.checking.layout import VOLATILE
from gpulab.emulator.checking.places import Places
from gpulab.emulator.checking.strength import has_flags, is_fence, is_monotone, strengths
from gpulab.errors import Fault
from gpulab.ptx.syntax import Address

_RACES = ("race between blocks", "race in a block", "race in a warp")
_ATOMICS = ("atomic", "reduction")
_NAMES = {
    "numba": ("cuda.syncthreads()", "cuda.syncwarp()", "cuda.atomic.add, cuda.atomic.max", "cuda.threadfence()"),
    "cuda": ("__syncthreads()", "__syncwarp()", "atomicAdd, atomicMax", "__threadfence()"),
    "ptx": ("bar.sync 0", "bar.warp.sync", "atom.add, atom.max", "membar.gl"),
}


@dataclass(frozen=True)
class Race:
    """One mistake: the instructions that take part, its place in the order of findings, and its words."""

    sites: frozenset[int]
    others: frozenset[int]
    order: int
    fault: Fault


@dataclass(frozen=True)
class _Pair:
    """All findings between two source lines (or instructions, without lines), the first one leading."""

    findings: tuple[Finding, ...]
    order: int

    @property
    def first(self) -> Finding:
        return self.findings[0]


def races(findings: list[Finding], places: Places, language: str) -> tuple[list[Race], list[str]]:
    """Faults for what is a race, and notes for what may be ordered in a way that the check does not see."""
    undefined = {finding.site for finding in findings if finding.kind == "uninitialized"}
    told, notes = [], []
    for pair in _pairs(findings, places):
        undecided = _undecided(pair, places)
        if undecided is not None:
            notes.append(undecided)
        else:
            told.append(_race(pair, places, language, undefined))
    return told, list(dict.fromkeys(notes))


def _pairs(findings: list[Finding], places: Places) -> list[_Pair]:
    """The races, those between the same two lines together, whichever came first."""
    groups: dict[frozenset[object], list[tuple[int, Finding]]] = defaultdict(list)
    for order, finding in enumerate(findings):
        if finding.kind in (*_RACES, "ordered by flags", "same value"):
            sites = finding.site, finding.other
            groups[frozenset(places.line_key(site) for site in sites)].append((order, finding))
    return [_Pair(tuple(f for _, f in group), group[0][0]) for group in groups.values()]


# ---- what cannot be decided


def _undecided(pair: _Pair, places: Places) -> str | None:
    """A note, if all of it may be in order."""
    program = places.program
    fenced = any(is_fence(program, index) for index in range(len(program.forms)))
    reasons = {_reason(finding, places, fenced) for finding in pair.findings}
    if None in reasons:
        return None
    first = pair.first
    lines = places.where(first.other, beside=first.site), places.where(first.site)
    both = f"{lines[0]} and {lines[1]}" if lines[0] != lines[1] else lines[0]
    where = places.element(first.site, first.address)
    return (
        f"Different threads access {where} and others at {both}, and no barrier orders them. {reasons.pop()} "
        f"The check cannot decide whether that always holds."
    )


def _reason(finding: Finding, places: Places, fenced: bool) -> str | None:
    program, sites = places.program, (finding.site, finding.other)
    if finding.kind == "ordered by flags":
        return "A fence and an atomic or volatile flag seem to order them."
    if finding.kind == "same value":
        return "The store left the value as it was, this time."
    kinds = {program.forms[site].kind for site in sites}
    in_global = places.space(finding.site, finding.address) == "global"
    if in_global and "load" in kinds and any(is_monotone(program, site) for site in sites):
        return (
            "A plain load beside an atomic minimum, maximum or compare-and-swap gives a value from before or after it; that "
            "is in order if it is only a bound, or if the kernel is launched until nothing changes."
        )
    volatile = all(strengths(program)[site] == VOLATILE for site in sites)
    if volatile and fenced and finding.kind != "race in a warp":
        return "Both are volatile, and the kernel has fences: it may be a flag."
    return None


# ---- faults


def _race(pair: _Pair, places: Places, language: str, undefined: set[int]) -> Race:
    findings = [f for f in pair.findings if f.kind in _RACES] or list(pair.findings)
    # Between warps it is a race, whatever happens inside of them: the wider remedy covers both.
    widest = min(_RACES.index(f.kind) for f in findings)
    lead = next(f for f in findings if _RACES.index(f.kind) == widest)
    within = lead.kind == "race in a warp" and not _is_update(lead, places) and _copied(lead, places) is None
    kind = "warp-sync" if within else "race"
    by_sites: dict[tuple[int, int], int] = defaultdict(int)
    for finding in findings:
        by_sites[finding.site, finding.other] += finding.count
    message = f"{_what(lead, places)} {_remedy(lead, places, language, undefined)}"
    made = places.fault(kind, message, lead, max(by_sites.values()))
    sites, others = (frozenset(getattr(f, name) for f in pair.findings) for name in ("site", "other"))
    return Race(sites, others, pair.order, made)


def _is_update(finding: Finding, places: Places) -> bool:
    """Whether one line reads an element and stores it again (or only stores it), so that no barrier can help."""
    instructions = places.program.function.instructions
    addresses = [
        next((operand for operand in instructions[site].operands if isinstance(operand, Address)), None)
        for site in (finding.site, finding.other)
    ]
    return _one_line(finding, places) and addresses[0] == addresses[1]


def _one_line(finding: Finding, places: Places) -> bool:
    return places.line_key(finding.site) == places.line_key(finding.other)


def _copied(finding: Finding, places: Places) -> int | None:
    """The asynchronous copy that another access comes too early after, or before its end."""
    if places.space(finding.site, finding.address) != "shared":
        return None
    copies = places.program.copies
    if finding.other in copies:
        return finding.other
    reads = places.program.forms[finding.other].kind == "load" and not places.reaches(finding.other, finding.site)
    return finding.site if finding.site in copies and reads else None


def _what(finding: Finding, places: Places) -> str:
    """Both threads, both lines, and the place."""
    where = places.element(finding.site, finding.address)
    me = places.thread(finding.block, finding.thread)
    them = places.thread(finding.other_block, finding.other_thread, beside=finding.block)
    here, there = places.where(finding.site), places.where(finding.other, beside=finding.site)
    mine, theirs = (places.verb(site, finding.address) for site in (finding.site, finding.other))
    same = there == here
    second = "at the same line" if same else f"at {there}"
    if _copied(finding, places) is not None and finding.kind != "race between blocks":
        return (
            f"{me[0].upper()}{me[1:]} {mine} {where} at {here}, which {them} {theirs} {second}, and nothing makes sure that "
            f"the copy is done."
        )
    between = {
        "race in a warp": "Both are lanes of one warp, which need not run in step, and nothing makes one wait",
        "race in a block": "Nothing makes one wait",
        "race between blocks": "Blocks run in any order",
    }[finding.kind]
    return (
        f"{me[0].upper()}{me[1:]} {mine} {where} at {here}, which {them} {theirs} {second}. {between}: the result "
        f"depends on which comes first."
    )


def _remedy(finding: Finding, places: Places, language: str, undefined: set[int]) -> str:
    barrier, warp_barrier, atomic, fence = _NAMES.get(language, _NAMES["cuda"])
    if _copied(finding, places) is not None:
        waits = "__pipeline_wait_prior(0), or the wait of the cuda::pipeline or cuda::barrier"
        wait = "cp.async.wait_all" if language == "ptx" else waits
        return (
            f"The copy is asynchronous: its thread must wait for it ({wait}), and a {barrier} behind that wait shows it to the "
            f"other threads. Put both, in this order, before what reads the copy."
        )
    forms, sites = places.program.forms, (finding.other, finding.site)
    kinds = [forms[site].kind for site in sites]
    flag = (
        f" If a flag or a lock orders them, put a {fence} between the data and it, on both sides."
        if has_flags(places.program)
        else ""
    )
    if finding.site == finding.other and kinds[0] == "store":
        return f"They store different values. Give each thread an element of its own, or combine them with an atomic ({atomic} …)."
    if _is_update(finding, places) and "store" in kinds:
        return (
            f"If several threads update one element, use an atomic ({atomic} …); else give each thread its own.{flag}"
        )
    if finding.kind == "race between blocks":
        return (
            "Nothing in a launch orders blocks: let each block use elements of its own, combine with an atomic "
            f"({atomic} …), or split the kernel into two launches.{flag}"
        )
    call = warp_barrier if finding.kind == "race in a warp" else barrier
    again = places.reaches(*sites, past_barriers=False) and places.reaches(*sites[::-1], past_barriers=False)
    if _one_line(finding, places) and not again:
        who = "lanes" if finding.kind == "race in a warp" else "threads"
        return (
            f"Read into a variable first, put a {call} behind that, and store on a line of its own; or let only those {who} "
            f"do it whose elements no other one reads: in a reduction the lower half, if t < step."
        )
    volatile = any(strengths(places.program)[site] == VOLATILE for site in sites)
    tail = " volatile orders nothing between threads." if volatile else ""
    wider = f" ({barrier} does it as well)" if finding.kind == "race in a warp" else ""
    return f"Put a {call} {_gap(finding, places, undefined)}{wider}.{tail}"


def _gap(finding: Finding, places: Places, undefined: set[int]) -> str:
    """Where a barrier is missing: on the ways from one access to the other that pass none."""
    first, second = finding.other, finding.site
    if places.reaches(second, first) and (not places.reaches(first, second) or first in undefined):
        # Seen in the other order because the warps of a block run one after another here.
        first, second = second, first
    forward, backward = places.reaches(first, second, past_barriers=False), places.reaches(second, first, False)
    if (backward and not forward) or (forward and backward and not _before(places, first, second)):
        first, second = second, first
    here, there = places.where(first), places.where(second, beside=first)
    if forward != backward and not _before(places, first, second):
        return f"after {here}, before the loop comes to {there} again"
    again = f", and another one before the loop comes to {here} again" if forward and backward else ""
    return f"between {here} and {there}{again}"


def _before(places: Places, first: int, second: int) -> bool:
    """Whether one instruction stands before another one in the source, or in the code where that has no lines."""
    lines = places.line(first), places.line(second)
    return lines[0] < lines[1] if None not in lines else first < second  # type: ignore[operator]
