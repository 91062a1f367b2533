"""What an address means to a reader: an array by its name, an element of it, a thread of a block."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gpulab.emulator.checking.extents import Extent, extents
from gpulab.emulator.checking.findings import Finding
from gpulab.emulator.faults import position
from gpulab.emulator.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS, Memory
from gpulab.emulator.program import Program
from gpulab.errors import Fault, shown_file
from gpulab.launch import LaunchConfig
from gpulab.ptx.syntax import Location
from gpulab.ptx.types import TYPE_BYTES

_LAST_NAME = re.compile(r"E(\d+)(\w+)$")


@dataclass(frozen=True)
class Places:
    """The words for places of one launch.

    Attributes
    ----------
    shared_names : dict of str to str
        What to call shared arrays that the compiler named.
    """

    program: Program
    launch: LaunchConfig
    memory: Memory
    shared_names: dict[str, str] = field(default_factory=dict)

    @cached_property
    def extents(self) -> dict[int, Extent]:
        """The shared array that each access is meant for, where that can be told."""
        return extents(self.program)

    # ---- lines

    def line(self, index: int) -> int | None:
        """Source line of an instruction, None without line information."""
        location = self._location(index)
        return None if location is None else location.line

    def file(self, index: int) -> str | None:
        """Source file of an instruction."""
        location = self._location(index)
        return None if location is None else location.file

    def _location(self, index: int) -> Location | None:
        location = self.program.function.instructions[index].location
        return location and location.own

    def line_key(self, index: int) -> object:
        """What is the same for instructions of one source line, or for one instruction without lines."""
        line = self.line(index)
        return (None, index) if line is None else (self.file(index), line)

    def where(self, index: int, beside: int | None = None) -> str:
        """``line 12``, with the file where it is another one than that of `beside`."""
        line, file = self.line(index), self.file(index)
        if line is None:
            return f"PTX line {self.program.function.instructions[index].span.line}"
        if beside is not None and file == self.file(beside):
            return f"line {line}"
        return f"{shown_file(file or '')}, line {line}" if beside is not None else f"line {line}"

    def reaches(self, first: int, second: int, past_barriers: bool = True) -> bool:
        """Whether a thread that executed one instruction can come to another one afterwards, maybe without a barrier."""
        blocks = self.program.graph.blocks
        start, goal = (next(b for b in blocks if b.start <= index < b.stop) for index in (first, second))

        def passable(begin: int, end: int) -> bool:
            return past_barriers or not any(self._is_barrier(index) for index in range(begin, end))

        if start is goal and first < second:
            return passable(first, second)
        seen: set[int] = set()
        ahead = list(start.successors) if passable(first, start.stop) else []
        while ahead:
            block = blocks[ahead.pop()]
            if block.rank in seen:
                continue
            seen.add(block.rank)
            if block is goal:
                return passable(goal.start, second)
            if passable(block.start, block.stop):
                ahead += block.successors
        return False

    def _is_barrier(self, index: int) -> bool:
        form = self.program.forms[index]
        return form.kind == "barrier" or form.opcode in ("bar", "barrier")

    # ---- threads

    def thread(self, block: int, thread: int, beside: int | None = None) -> str:
        """``thread 3 of block 0``; without the block where it is that of `beside`."""
        who = f"thread {_plain(position(thread, self.launch.block), self.launch.block)}"
        if block == beside:
            return who
        return f"{who} of block {_plain(position(block, self.launch.grid), self.launch.grid)}"

    # ---- memory

    def space(self, index: int, address: int) -> str:
        """``shared``, ``local``, ``global``, ``param`` or ``const``."""
        if self.program.forms[index].is_copy:
            return "global" if address >> WINDOW_BITS else "shared"
        space = (self.program.forms[index].space or "generic").partition("::")[0]
        if space != "generic":
            return space
        return {SHARED_WINDOW: "shared", LOCAL_WINDOW: "local"}.get(address >> WINDOW_BITS << WINDOW_BITS, "global")

    def element(self, index: int, address: int) -> str:
        """What an access in bounds goes to: ``x[5]``, ``shared array tile, element 5``."""
        space = self.space(index, address)
        if space == "shared":
            return self._shared_element(index, address & (1 << WINDOW_BITS) - 1)
        if space == "local":
            return "local memory (an array of the thread's own)"
        found = self.memory.find(address)
        if found is None:
            return f"address {address:#x}"
        number = (address - found.address) // max(found.dtype.itemsize, 1)
        if len(found.shape) > 1 and number < int(np.prod(found.shape)):
            listed = ", ".join(str(int(part)) for part in np.unravel_index(number, found.shape))
            return f"{found.name}[{listed}]"
        return f"{found.name}[{number}]"

    def _shared_element(self, index: int, offset: int) -> str:
        size = TYPE_BYTES.get(self.program.forms[index].type or "", 1) or 1
        places = sorted((at, name) for name, at in self.program.shared.items() if at <= offset)
        if not places:
            return f"shared memory, byte {offset}"
        at, name = places[-1]
        if self.program.forms[index].is_copy:
            return f"shared array {self.shared_name(name)}, byte {offset - at}"
        return f"shared array {self.shared_name(name)}, element {(offset - at) // size}"

    def shared_name(self, name: str) -> str:
        """A shared array's name in the source: of a mangled name the last part."""
        if name in self.shared_names:
            return self.shared_names[name]
        found = _LAST_NAME.search(name)
        if name.startswith("_Z") and found and len(found[2]) >= int(found[1]):
            return found[2][: int(found[1])]
        return name

    def fault(self, kind: str, message: str, finding: Finding, count: int) -> Fault:
        """A fault at the instruction of a finding, first done by its thread."""
        return Fault(
            kind=kind,
            message=message,
            file=self.file(finding.site),
            line=self.line(finding.site),
            block=position(finding.block, self.launch.grid),
            thread=position(finding.thread, self.launch.block),
            count=count,
            ptx_line=self.program.function.instructions[finding.site].span.line,
        )

    def verb(self, index: int, address: int = 0) -> str:
        """``reads``, ``writes`` or ``updates``; of an asynchronous copy what it does to the address."""
        if self.program.forms[index].is_copy and self.space(index, address) == "shared":
            return "copies into"
        return {"load": "reads", "store": "writes"}.get(self.program.forms[index].kind, "updates")


def _plain(where: tuple[int, int, int], dims: tuple[int, int, int]) -> str:
    return str(where[0]) if dims[1:] == (1, 1) else str(where)
