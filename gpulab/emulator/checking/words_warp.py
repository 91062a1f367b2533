"""The words for shuffles that read from a lane which takes no part in them."""

from __future__ import annotations

from collections import defaultdict

from gpulab.emulator.checking.findings import Finding
from gpulab.emulator.checking.layout import EXITED, FROM_LANE_SHIFT
from gpulab.emulator.checking.places import Places
from gpulab.errors import Fault

_WHOLE = {"numba": "0xffffffff", "cuda": "0xffffffff", "ptx": "-1"}


def undefined_lanes(findings: list[Finding], places: Places, language: str) -> list[tuple[int, Fault]]:
    """One fault for each line with such shuffles whose values are used, with its place in the order of findings."""
    lines: dict[object, list[tuple[int, Finding]]] = defaultdict(list)
    for order, finding in enumerate(findings):
        if finding.kind == "undefined lane":
            lines[places.line_key(finding.site)].append((order, finding))
    told = []
    for group in lines.values():
        order, first = group[0]
        count = max(finding.count for _, finding in group)
        told.append((order, places.fault("warp-sync", _message(first, places, language), first, count)))
    return told


def _message(finding: Finding, places: Places, language: str) -> str:
    lane, exited = finding.address & 31, bool(finding.address & EXITED >> FROM_LANE_SHIFT)
    whole = _WHOLE.get(language, _WHOLE["cuda"])
    why, remedy = (
        (
            "has returned or was never launched",
            "Keep all threads of the warp until the last shuffle (no early return; a block of a multiple of 32 threads) and give "
            "those without data a neutral value, or leave the value out where the other lane has none",
        )
        if exited
        else (
            "is not in its mask, or is in another branch",
            f"Let all lanes that are read take part: the shuffle outside of the branch, with a mask that has them all ({whole} for "
            "a whole warp); or leave the value out where the other lane has none",
        )
    )
    thread = places.thread(finding.block, finding.thread)
    used = places.where(finding.other, beside=finding.site)
    where = "at the same line" if used == places.where(finding.site) else f"at {used}"
    return (
        f"{thread[0].upper()}{thread[1:]}, lane {finding.thread % 32}, gets the value of lane {lane}, which takes no part in the "
        f"shuffle: it {why}. The value is undefined, and {where} it is used. {remedy}: if (lane + offset < n)."
    )
