"""Loops that may wait for something that other threads do: spin locks, flags, grid barriers.

A warp must not run such a loop for ever while those it waits for have no turn. An ordinary loop needs no such care, so
the two are told apart: a loop *spins* if whether it is left depends on a value that other threads change, read in the
loop by an atomic, by a volatile or ordered load, or by a plain load beside a fence; or if nothing leaves it at all.

Such a loop is *steady* if nothing else decides about that which changes in it: no number of tries, no clock, no other lane.
A lane that went round a steady loop will go round for ever, however it counts or sleeps, as long as memory stays the same.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from gpulab.ptx.cfg import Block, FlowGraph, Loop, meets
from gpulab.ptx.opcodes import Form, read_registers, registers_in, written_registers
from gpulab.ptx.syntax import Address, Function, Special

_FENCES = ("membar", "fence", "nanosleep")
_ORDERED = ("volatile", "relaxed", "acquire", "mmio")
_CLOCKS = ("%clock", "%globaltimer", "%pm")
_OWN = ("local", "call")
_PRIVATE = ("local", "call", "param", "const")


def find_spins(function: Function, forms: Sequence[Form], graph: FlowGraph) -> dict[int, int]:
    """Loops that may wait for other threads.

    Returns
    -------
    dict of int to int
        Rank of a loop's head to the index of the instruction whose value the loop waits for (if nothing leaves it, its
        first).
    """
    found = {}
    for loop in graph.loops:
        index = _Slice(function, forms, graph.blocks, loop).awaited()
        if index is not None:
            found[loop.head] = index
    return found


def find_steady(function: Function, forms: Sequence[Form], graph: FlowGraph, spins: Container[int]) -> frozenset[int]:
    """Ranks of the heads of those loops of `find_spins` that nothing but a change of memory can end."""
    return frozenset(
        loop.head
        for loop in graph.loops
        if loop.head in spins and _Slice(function, forms, graph.blocks, loop).is_steady()
    )


class _Slice:
    """What the exits of one loop depend on: the registers, and the blocks that may be passed by."""

    def __init__(self, function: Function, forms: Sequence[Form], blocks: tuple[Block, ...], loop: Loop) -> None:
        self.function, self.forms, self.blocks, self.loop = function, forms, blocks, loop
        self.writers: dict[str, list[tuple[int, int]]] = {}
        for rank, index in self._instructions():
            for name in written_registers(function.instructions[index], forms[index]):
                self.writers.setdefault(name, []).append((rank, index))
        self.has_fence = any(forms[index].opcode in _FENCES for _, index in self._instructions())
        self.registers: list[str] = []
        self.seen: set[str] = set()
        self.controlled: set[int] = set()

    def _instructions(self) -> Iterator[tuple[int, int]]:
        for rank in sorted(self.loop.members):
            for index in range(self.blocks[rank].start, self.blocks[rank].stop):
                yield rank, index

    def awaited(self) -> int | None:
        """The first instruction found that reads what other threads write and decides about an exit."""
        exits = self._exits()
        if not exits:
            return next((i for _, i in self._instructions() if self.forms[i].kind in ("load", "atomic")), self._first())
        if not any(self._reads_others(index) for _, index in self._instructions()):
            return None
        self._add_exits(exits)
        while self.registers:
            for rank, index in self.writers.get(self.registers.pop(), ()):
                if self._reads_others(index):
                    return index
                self._add(*read_registers(self.function.instructions[index], self.forms[index]))
                if self.forms[index].kind == "load" and self.forms[index].space in ("local", "call", "generic"):
                    self._add_stored()
                self._add_control(rank)
        return None

    def is_steady(self) -> bool:
        """Whether memory, and what the loop doesn't change, decides about all exits, and about faults, which end it too."""
        exits = self._exits()
        if not exits:
            return False  # it waits for nobody
        self._add_exits(exits)
        for rank, index in self._instructions():
            form, instruction = self.forms[index], self.function.instructions[index]
            if meets(form) or form.kind == "barrier" or form.opcode == "call":
                return False
            if form.access_bytes:
                self._add(
                    *(name for each in instruction.operands if isinstance(each, Address) for name in registers_in(each))
                )
                self._add(*([instruction.guard.register.name] if instruction.guard else []))
                self._add_control(rank)
        while self.registers:
            name = self.registers.pop()
            writers = self.writers.get(name, ())
            if writers and name in self.blocks[self.loop.head].live_in:
                return False  # it goes from one round into the next
            for rank, index in writers:
                if not self._is_repeatable(index):
                    return False
                self._add(*read_registers(self.function.instructions[index], self.forms[index]))
                self._add_control(rank)
        return True

    def _is_repeatable(self, index: int) -> bool:
        """Whether an instruction gives the same result again from the same registers and the same memory."""
        form = self.forms[index]
        if form.opcode == "activemask":
            return False
        operands = self.function.instructions[index].operands
        if any(isinstance(each, Special) and each.name.startswith(_CLOCKS) for each in operands):
            return False
        # Stores into memory of the thread's own don't count as changes.
        return form.kind != "load" or form.space not in (*_OWN, "generic") or not self._stores_own()

    def _stores_own(self) -> bool:
        return any(self.forms[i].kind == "store" and self.forms[i].space in _OWN for _, i in self._instructions())

    def _exits(self) -> list[int]:
        return sorted(rank for rank in self.loop.members if self._leaves(rank))

    def _add_exits(self, exits: Sequence[int]) -> None:
        for rank in exits:
            self._add_condition(rank)
            self._add_control(rank)

    def _first(self) -> int:
        return self.blocks[self.loop.head].start

    def _leaves(self, rank: int) -> bool:
        block = self.blocks[rank]
        last = self.function.instructions[block.stop - 1]
        return last.opcode in ("ret", "exit", "trap") or any(
            target not in self.loop.members for target in block.successors
        )

    def _reads_others(self, index: int) -> bool:
        form = self.forms[index]
        if form.kind == "atomic" or form.opcode == "mbarrier":
            return True
        if form.kind != "load" or form.space in _PRIVATE or form.non_coherent:
            return False
        return form.semantics in _ORDERED or form.cache == "cv" or self.has_fence

    def _add(self, *names: str) -> None:
        new = [name for name in names if name not in self.seen]
        self.seen.update(new)
        self.registers += new

    def _add_condition(self, rank: int) -> None:
        index = self.blocks[rank].stop - 1
        self._add(*read_registers(self.function.instructions[index], self.forms[index]))

    def _add_stored(self) -> None:
        """A load from memory of the thread's own: it may read what any store of the loop has put there."""
        for _, index in self._instructions():
            if self.forms[index].kind == "store" and self.forms[index].space in ("local", "call", "generic"):
                self._add(*registers_in(self.function.instructions[index].operands[1]))

    def _add_control(self, rank: int) -> None:
        """Conditions on which an iteration passes a block by."""
        if rank in self.controlled:
            return
        self.controlled.add(rank)
        around = self._reaching(self.loop.head, without=rank)
        if self.loop.head not in around:
            return
        before = self._reaching(rank, without=None)
        for other in self.loop.members:
            if len(self.blocks[other].successors) > 1 and other in around and other in before and other != rank:
                self._add_condition(other)

    def _reaching(self, goal: int, without: int | None) -> set[int]:
        """Blocks of the loop from which one step or more, in one iteration, lead to `goal`, and not through `without`."""
        found: set[int] = set()
        changed = True
        while changed:
            changed = False
            for rank in sorted(self.loop.members - found, reverse=True):
                if rank != without and self._steps_to(rank, goal, found):
                    found.add(rank)
                    changed = True
        return found

    def _steps_to(self, rank: int, goal: int, found: set[int]) -> bool:
        onward = found - {self.loop.head}
        return any(target == goal or target in onward for target in self.blocks[rank].successors)
