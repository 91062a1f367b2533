"""Basic blocks and natural loops of SASS."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from gpulab.sass.syntax import INTERNAL, Block, Code, Instruction, Loop

_JUMPS = ("BRA", "JMP", "BRX", "JMX", "BRXU")
_CALLS = ("CALL",)
_ENDS = ("EXIT", "RET", "KILL")
_TARGET = re.compile(r"`\(([^)]*)\)")
_TARGETS = re.compile(r'"BRANCH_TARGETS ([^"]*)"')
Edges = list[tuple[int, ...]]


def with_flow(instructions: Sequence[Instruction], labels: dict[str, int]) -> Code:
    """Cut instructions into basic blocks; `labels` are the indices of the instructions behind them."""
    targets = [_targets(instruction, labels) for instruction in instructions]
    starts = _starts(instructions, targets)
    number_of = {start: number for number, start in enumerate(starts)}
    blocks = []
    for start, stop in pairwise([*starts, len(instructions)]):
        last, to = instructions[stop - 1], targets[stop - 1]
        jumps = [] if _is_call(last) else to
        after = [stop] if stop < len(instructions) and not _leaves_for_good(last) else []
        calls = number_of[to[0]] if _is_call(last) and to else None
        blocks.append(Block(start, stop, tuple(dict.fromkeys(number_of[at] for at in [*jumps, *after])), calls))
    return _reached(tuple(instructions), blocks)


def _targets(instruction: Instruction, labels: dict[str, int]) -> list[int]:
    if instruction.opcode not in _JUMPS + _CALLS:
        return []
    names = _TARGET.findall(instruction.text)
    if listed := _TARGETS.search(instruction.text):
        names = listed[1].split(",")
    return [labels[name] for name in names if name in labels]


def _starts(instructions: Sequence[Instruction], targets: Sequence[list[int]]) -> list[int]:
    found = {0} if instructions else set()
    for index, instruction in enumerate(instructions):
        found.update(targets[index])
        if instruction.opcode in _JUMPS + _CALLS + _ENDS:
            found.add(index + 1)
    return sorted(index for index in found if index < len(instructions))


def _is_call(last: Instruction) -> bool:
    """Whether it comes back: ptxas writes some jumps out of loops as calls of a label of its own."""
    return last.opcode in _CALLS and not any(name.startswith(".L") for name in _TARGET.findall(last.text))


def _leaves_for_good(last: Instruction) -> bool:
    """Whether nothing falls through: a jump or an exit without a predicate (which may be the first operand)."""
    conditional = bool(last.guard) or (bool(last.operands) and re.match(r"!?U?P\d", last.operands[0]) is not None)
    return (last.opcode in _JUMPS + _ENDS + _CALLS and not _is_call(last)) and not conditional


def _reached(instructions: tuple[Instruction, ...], blocks: list[Block]) -> Code:
    """The code without what no way leads to."""
    reached, waiting = set(), [0] if blocks else []
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            block = blocks[number]
            waiting += [*block.successors, *([] if block.calls is None else [block.calls])]
    kept = sorted(reached)
    renumbered = {old: new for new, old in enumerate(kept)}
    listed: list[Instruction] = []
    found = []
    for old in kept:
        block, start = blocks[old], len(listed)
        listed += instructions[block.start : block.stop]
        successors = tuple(renumbered[each] for each in block.successors)
        calls = None if block.calls is None else renumbered[block.calls]
        found.append(Block(start, len(listed), successors, calls))
    loops, slow = _loops(found), _slow(listed, found)
    fast = [
        tuple(each for each in block.successors if each not in slow) if number not in slow else ()
        for number, block in enumerate(found)
    ]
    ends = {number for number, block in enumerate(found) if listed[block.stop - 1].opcode in _ENDS}
    alike = _alike(fast, ends, _entries(found), loops)
    return Code(tuple(listed), tuple(found), loops, slow, alike, _chains(fast, ends, slow))


def _entries(blocks: Sequence[Block]) -> set[int]:
    """Where the kernel and each subroutine begin."""
    return {0, *(block.calls for block in blocks if block.calls is not None)}


def _slow(instructions: Sequence[Instruction], blocks: Sequence[Block]) -> frozenset[int]:
    """Blocks that are skipped at times and call a subroutine of ptxas's, and those behind them until the ways meet again."""
    before = _reversed([block.successors for block in blocks])
    found: set[int] = set()
    for number, block in enumerate(blocks):
        is_choice = len(before[number]) == 1 and len(blocks[before[number][0]].successors) > 1
        if block.calls is not None and INTERNAL in instructions[block.stop - 1].text and is_choice:
            found |= {number, *(after for after in block.successors if before[after] == (number,))}
    return frozenset(found)


def _chains(fast: Edges, ends: set[int], slow: frozenset[int]) -> tuple[tuple[int, ...], ...]:
    """Blocks each of which has but one way to the next, which has no other way to it."""
    before = _reversed(fast)
    following = {
        number: targets[0]
        for number, targets in enumerate(fast)
        if len(targets) == 1 and before[targets[0]] == (number,) and number not in ends
    }
    later = set(following.values())
    found = []
    for number in range(len(fast)):
        if number not in later and number not in slow:
            chain = [number]
            while chain[-1] in following:
                chain.append(following[chain[-1]])
            found.append(tuple(chain))
    return tuple(found)


def _loops(blocks: Sequence[Block]) -> tuple[Loop, ...]:
    """Natural loops by their back edges, outer ones first. Subroutines are graphs of their own."""
    edges = [block.successors for block in blocks]
    dominators = _dominators(edges, _entries(blocks))
    before = _reversed(edges)
    members: dict[int, set[int]] = {}
    for number, targets in enumerate(edges):
        for head in targets:
            if dominators[number] >> head & 1:
                members.setdefault(head, set()).update(_leading(head, [number], before))
    loops: list[Loop] = []
    for head, body in sorted(members.items(), key=lambda item: (-len(item[1]), item[0])):
        around = [number for number, loop in enumerate(loops) if head in loop.members]
        loops.append(Loop(head, frozenset(body), around[-1] if around else None))
    return tuple(loops)


def _alike(edges: Edges, ends: set[int], entries: set[int], loops: Sequence[Loop]) -> tuple[int, ...]:
    """For each block the first in whose wake it always runs, and which never runs without it, in the same loop."""
    outside = len(edges)
    dominators = _dominators(edges, entries)
    leaving = [(*targets, outside) if number in ends else targets for number, targets in enumerate(edges)]
    back = _reversed([*leaving, ()])
    # From an endless loop nothing is surely reached: such a block is like no other.
    ending = _leading(outside, back[outside], back)
    followers = _dominators(back, {outside, *(set(range(outside)) - ending)})
    inside = [frozenset(n for n, loop in enumerate(loops) if number in loop.members) for number in range(outside)]
    found = []
    for number in range(outside):
        before = dominators[number]
        alike = (each for each in _bits(before) if followers[each] >> number & 1 and inside[each] == inside[number])
        found.append(next(alike, number))
    return tuple(found)


def _bits(value: int) -> Iterator[int]:
    """The places of the bits that are set, from the lowest on."""
    while value:
        lowest = value & -value
        yield lowest.bit_length() - 1
        value ^= lowest


def _reversed(edges: Sequence[Sequence[int]]) -> Edges:
    """The blocks before each block."""
    before: list[list[int]] = [[] for _ in edges]
    for number, targets in enumerate(edges):
        for target in targets:
            before[target].append(number)
    return [tuple(each) for each in before]


def _leading(end: int, begin: Iterable[int], before: Edges) -> set[int]:
    """A block and those from which one comes to `begin` without passing it: the body of a loop from its last blocks."""
    found, waiting = {end}, list(begin)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += before[number]
    return found


def _dominators(edges: Sequence[Sequence[int]], entries: set[int]) -> list[int]:
    """For each block the set of blocks, as bits, without which no way leads to it."""
    everything = (1 << len(edges)) - 1
    found = [1 << number if number in entries else everything for number in range(len(edges))]
    before = _reversed(edges)
    changed = True
    while changed:
        changed = False
        for number in range(len(edges)):
            if number in entries:
                continue
            common = everything
            for each in before[number]:
                common &= found[each]
            common |= 1 << number
            if common != found[number]:
                found[number], changed = common, True
    return found
