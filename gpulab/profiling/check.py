"""`CheckReport`: what a check found, ready to be read, in a terminal and in a notebook."""

from __future__ import annotations

import dataclasses
import html
import textwrap
from collections.abc import Iterator
from typing import Any

from gpulab.devices.checked import CheckRecord
from gpulab.errors import Fault, shown_file
from gpulab.gpus import Gpu
from gpulab.launch import Dim3

_WIDTH = 100
_TITLES = {
    "race": "data race",
    "barrier": "barrier misuse",
    "warp-sync": "missing or wrong warp synchronization",
    "deadlock": "or endless loop",
    "launch": "refused by the GPU",
}
# No colors of its own but the bar, which is told apart from light and dark backgrounds; the text says it all.
_BOX = "border-left:4px solid {};padding:2px 0 2px 10px;margin:8px 0;color:inherit;background:transparent"
_FAULT_BAR, _NOTE_BAR = "#d0453c", "#8a8a8a"
_CODE = "margin:2px 0;padding:0;color:inherit;background:transparent;white-space:pre-wrap"


class CheckReport:
    """What `gpulab.check` found in one launch.

    Attributes
    ----------
    name : str
        The kernel's name.
    gpu : Gpu
    grid, block : tuple of int or None
        None if the launch is none that a GPU could have.
    faults : tuple of Fault
        In the order in which the run met them: kind, message, file, line, block, thread, count.
    notes : tuple of str
        What the check could not decide, such as an order made by atomics and fences; no faults.
    """

    def __init__(self, record: CheckRecord) -> None:
        self._record = record
        self.name: str = record.name
        self.gpu: Gpu = record.gpu
        self.grid: Dim3 | None = record.config.grid if record.config else None
        self.block: Dim3 | None = record.config.block if record.config else None
        self.faults: tuple[Fault, ...] = record.faults
        self.notes: tuple[str, ...] = record.notes

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def source_line(self, fault: Fault) -> str | None:
        """The text of the line at which a fault was met, where the source is known."""
        ptx = self._record.ptx
        if ptx is None or ptx.source is None or fault.line is None or fault.file != ptx.file:
            return None
        lines = ptx.source.splitlines()
        number = fault.line - ptx.source_line
        return lines[number].strip() if 0 <= number < len(lines) else None

    def to_json(self) -> dict[str, Any]:
        """Plain data: what the command line's ``check --json`` prints."""
        return {
            "kernel": self.name,
            "gpu": self.gpu.name,
            "grid": self.grid and list(self.grid),
            "block": self.block and list(self.block),
            "ok": self.ok,
            "faults": [dataclasses.asdict(fault) | {"source": self.source_line(fault)} for fault in self.faults],
            "notes": list(self.notes),
        }

    # ---- how it shows itself

    def _title(self) -> str:
        found = "no faults" if self.ok else f"{len(self.faults)} fault{'s' if len(self.faults) > 1 else ''}"
        launch = f"[{_dims(self.grid)}, {_dims(self.block)}]" if self.grid and self.block else ""
        return f"Check of {self.name}{launch} on an emulated {self.gpu.name}: {found}"

    def _where(self, fault: Fault) -> Iterator[str]:
        if fault.line is not None:
            yield f"{shown_file(fault.file or '')}, line {fault.line}"
        elif fault.ptx_line is not None:
            yield f"PTX line {fault.ptx_line}"
        if fault.kind == "launch":
            return
        if fault.thread is not None:
            yield f"first by thread {fault.thread} of block {fault.block}"
        elif fault.kind != "deadlock":
            yield f"first in block {fault.block}"
        if fault.count > 1:
            yield f"{fault.count:,} {'threads' if fault.thread is not None else 'blocks'}"

    def __repr__(self) -> str:
        parts = [self._title()]
        for number, fault in enumerate(self.faults, 1):
            parts.append(f"\n{number}. {_headline(fault)}")
            parts.append(f"   {'; '.join(self._where(fault))}".rstrip())
            source = self.source_line(fault)
            if source:
                parts.append(f"     {fault.line}: {source}")
            parts.append(_wrapped(fault.message))
        parts += [f"\nNote: {_wrapped(note).lstrip()}" for note in self.notes]
        return "\n".join(part for part in parts if part.strip())

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{html.escape(self._title())}</b></p>"]
        for fault in self.faults:
            source = self.source_line(fault)
            code = f'<pre style="{_CODE}">{fault.line}: {html.escape(source)}</pre>' if source else ""
            place = html.escape("; ".join(self._where(fault)))
            parts.append(
                f'<div style="{_BOX.format(_FAULT_BAR)}"><b>{html.escape(_headline(fault))}</b><br>{place}{code}'
                f"<div>{html.escape(fault.message)}</div></div>"
            )
        parts += [f'<div style="{_BOX.format(_NOTE_BAR)}">Note: {html.escape(note)}</div>' for note in self.notes]
        return f'<div class="gpulab">{"".join(parts)}</div>'


def _headline(fault: Fault) -> str:
    return f"{fault.kind} ({_TITLES[fault.kind]})" if fault.kind in _TITLES else fault.kind


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="   ", subsequent_indent="   ", break_long_words=False)


def _dims(dims: Dim3) -> str:
    return str(dims[0]) if dims[1:] == (1, 1) else str(dims)
