"""The flow graph of a function, its blocks ranked in the order in which warps execute them.

A warp always runs the lowest-ranked block at which lanes wait. For lanes that parted to meet again, a block must rank
after everything that leads to it, and what follows a loop after the whole loop. That is a weak topological order
(F. Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993): the strongly connected components in
topological order, and inside each the same again without the edges back to its head.

A block also begins before each instruction at which lanes of a warp wait for each other (`meets`), so that where a lane
waits is always the beginning of a block.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpulab.ptx.opcodes import Form, form, read_registers, written_registers
from gpulab.ptx.syntax import Function, Instruction, Symbol

_LEAVES = ("ret", "exit", "trap")
_BRANCHES = ("bra", "brx")
_WARP_WIDE = ("shfl", "vote", "match", "redux", "elect", "mma", "wmma", "ldmatrix", "stmatrix", "movmatrix")
Graph = dict[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block.

    Attributes
    ----------
    rank : int
        Its place in `FlowGraph.blocks`.
    start, stop : int
        Range of instruction indices, never empty.
    successors : tuple of int
        Ranks: the taken targets, then the fall-through; empty behind `ret`, `exit` and `trap`.
    live_in : frozenset of str
        Registers whose value at its start may still be read.
    exits_only : bool
        Whether every path from here holds nothing but branches, `ret` and `exit`.
    meets : bool
        Whether it begins with an instruction at which lanes wait for each other.
    """

    rank: int
    start: int
    stop: int
    successors: tuple[int, ...]
    live_in: frozenset[str]
    exits_only: bool
    meets: bool = False


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: the rank of its head, and the ranks of all its blocks, none of them below the head's."""

    head: int
    members: frozenset[int]


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """Blocks that the entry reaches, in rank order; the entry has rank 0. Loops, outer ones first."""

    blocks: tuple[Block, ...]
    loops: tuple[Loop, ...] = ()

    def in_loop(self, rank: int) -> bool:
        """Whether a block belongs to a loop."""
        return any(rank in loop.members for loop in self.loops)


def flow(function: Function, forms: Sequence[Form] | None = None) -> FlowGraph:
    """Build the flow graph of a function whose calls are inlined and which ends in a jump or a `ret`.

    Parameters
    ----------
    function : Function
    forms : sequence of Form, optional
        The forms of its instructions, if they are at hand.

    Raises
    ------
    UnsupportedInstruction
        If an instruction has no form.
    """
    if forms is None:
        forms = [form(instruction) for instruction in function.instructions]
    starts = _leaders(function, forms)
    ranges = dict(zip(starts, [*starts[1:], len(function.instructions)], strict=True))
    edges = {start: _successors(function, start, ranges[start]) for start in starts}
    reached = _reachable(edges, 0)
    loops: list[tuple[int, list[int]]] = []
    order = _weak_topological_order(sorted(reached), {start: edges[start] for start in reached}, loops)
    rank_of = {start: rank for rank, start in enumerate(order)}
    leaving = _exits_only(function, ranges, edges, order)
    blocks = tuple(
        Block(
            rank=rank_of[start],
            start=start,
            stop=ranges[start],
            successors=tuple(rank_of[target] for target in edges[start]),
            live_in=frozenset(),
            exits_only=start in leaving,
            meets=meets(forms[start]),
        )
        for start in order
    )
    ranked = tuple(Loop(rank_of[head], frozenset(rank_of[start] for start in members)) for head, members in loops)
    return FlowGraph(_with_liveness(function, forms, blocks), ranked)


def meets(form: Form) -> bool:
    """Whether lanes of a warp wait for each other at an instruction: barriers and ``.sync`` operations."""
    return form.kind == "barrier" or form.opcode in _WARP_WIDE or form.opcode == "bar"


def branch_targets(function: Function, instruction: Instruction) -> tuple[int, ...]:
    """Instruction indices to which a `bra` or `brx` can jump, in the order of its list."""
    target = instruction.operands[-1]
    assert isinstance(target, Symbol)
    names = function.branch_targets[target.name] if instruction.opcode == "brx" else (target.name,)
    return tuple(function.labels[name] for name in names)


def live_before(function: Function, forms: Sequence[Form], graph: FlowGraph, block: Block, index: int) -> set[str]:
    """Registers whose value before an instruction of a block may still be read (its end is ``block.stop``)."""
    live: set[str] = set().union(*(graph.blocks[rank].live_in for rank in block.successors))
    for at in range(block.stop - 1, index - 1, -1):
        instruction, its_form = function.instructions[at], forms[at]
        written = set(written_registers(instruction, its_form))
        # Lanes whose guard is false keep the old value.
        live = live - written if instruction.guard is None else live | written
        live |= set(read_registers(instruction, its_form))
    return live


# ---- blocks and edges


def _leaders(function: Function, forms: Sequence[Form]) -> list[int]:
    """Where blocks begin: the entry, branch targets, where lanes meet, and behind branches, exits and barriers."""
    found = {0}
    for index, instruction in enumerate(function.instructions):
        if instruction.opcode in _BRANCHES:
            found.update(branch_targets(function, instruction))
        if instruction.opcode in _BRANCHES + _LEAVES or forms[index].kind == "barrier":
            found.add(index + 1)
        if meets(forms[index]):
            found.add(index)
    return sorted(index for index in found if index < len(function.instructions))


def _successors(function: Function, start: int, stop: int) -> tuple[int, ...]:
    last = function.instructions[stop - 1]
    targets = branch_targets(function, last) if last.opcode in _BRANCHES else ()
    if last.opcode in _BRANCHES + _LEAVES and last.guard is None:
        return tuple(dict.fromkeys(targets))
    return tuple(dict.fromkeys((*targets, stop)))


def _reachable(edges: Graph, entry: int) -> set[int]:
    found, waiting = {entry}, [entry]
    while waiting:
        for target in edges[waiting.pop()]:
            if target not in found:
                found.add(target)
                waiting.append(target)
    return found


def _exits_only(function: Function, ranges: dict[int, int], edges: Graph, order: list[int]) -> set[int]:
    found: set[int] = set()
    for start in reversed(order):
        body = function.instructions[start : ranges[start]]
        leaves = all(each.opcode in ("ret", "exit", "bra") and each.guard is None for each in body)
        if leaves and all(target in found for target in edges[start]):
            found.add(start)
    return found


# ---- order


def _weak_topological_order(nodes: Iterable[int], edges: Graph, loops: list[tuple[int, list[int]]]) -> list[int]:
    """The order; loops are added to `loops` as head and members."""
    order: list[int] = []
    for component in _components_in_order(list(nodes), edges):
        if len(component) == 1:
            order += component
            if component[0] in edges[component[0]]:
                loops.append((component[0], component))
            continue
        head = _head(component, nodes, edges)
        loops.append((head, component))
        inside = set(component)
        inner = {
            node: tuple(target for target in edges[node] if target in inside and target != head) for node in component
        }
        order += [head, *_weak_topological_order([node for node in component if node != head], inner, loops)]
    return order


def _head(component: list[int], nodes: Iterable[int], edges: Graph) -> int:
    """The block through which a loop is entered; of several (irreducible code), the first in the text."""
    inside = set(component)
    entered = {target for node in nodes if node not in inside for target in edges[node] if target in inside}
    return min(entered or component)


def _components_in_order(nodes: list[int], edges: Graph) -> list[list[int]]:
    """Strongly connected components in topological order, ties by place in the text."""
    component_of: dict[int, int] = {}
    components = _components(nodes, edges)
    for number, members in enumerate(components):
        component_of.update(dict.fromkeys(members, number))
    follows: list[set[int]] = [set() for _ in components]
    for node in nodes:
        for target in edges[node]:
            if target in component_of and component_of[target] != component_of[node]:
                follows[component_of[node]].add(component_of[target])
    pending = [0] * len(components)
    for targets in follows:
        for target in targets:
            pending[target] += 1
    ready = [(components[number][0], number) for number, count in enumerate(pending) if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        _, number = heapq.heappop(ready)
        order.append(components[number])
        for target in follows[number]:
            pending[target] -= 1
            if pending[target] == 0:
                heapq.heappush(ready, (components[target][0], target))
    return order


def _components(nodes: list[int], edges: Graph) -> list[list[int]]:
    """Strongly connected components by Kosaraju's two searches, members sorted."""
    known = set(nodes)
    finished = _post_order(nodes, {node: tuple(each for each in edges[node] if each in known) for node in nodes})
    backwards: dict[int, list[int]] = {node: [] for node in nodes}
    for node in nodes:
        for target in edges[node]:
            if target in known:
                backwards[target].append(node)
    found, seen = [], set()
    for root in reversed(finished):
        if root not in seen:
            members, waiting = [], [root]
            seen.add(root)
            while waiting:
                node = waiting.pop()
                members.append(node)
                new = [each for each in backwards[node] if each not in seen]
                seen.update(new)
                waiting += new
            found.append(sorted(members))
    return found


def _post_order(nodes: list[int], edges: Graph) -> list[int]:
    finished, seen = [], set()
    for root in nodes:
        if root in seen:
            continue
        seen.add(root)
        path = [(root, iter(edges[root]))]
        while path:
            _, targets = path[-1]
            target = next((each for each in targets if each not in seen), None)
            if target is None:
                finished.append(path.pop()[0])
            else:
                seen.add(target)
                path.append((target, iter(edges[target])))
    return finished


# ---- liveness


def _with_liveness(function: Function, forms: Sequence[Form], blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    effects = [_reads_and_writes(function, forms, block) for block in blocks]
    live: list[set[str]] = [set() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            reads, writes = effects[block.rank]
            after = set().union(*(live[rank] for rank in block.successors))
            before = reads | (after - writes)
            if before != live[block.rank]:
                live[block.rank] = before
                changed = True
    return tuple(replace(block, live_in=frozenset(live[block.rank])) for block in blocks)


def _reads_and_writes(function: Function, forms: Sequence[Form], block: Block) -> tuple[set[str], set[str]]:
    """Registers read before they are surely written, and registers surely written."""
    reads: set[str] = set()
    writes: set[str] = set()
    for index in range(block.start, block.stop):
        instruction, its_form = function.instructions[index], forms[index]
        reads.update(name for name in read_registers(instruction, its_form) if name not in writes)
        written = set(written_registers(instruction, its_form))
        if instruction.guard is None:
            writes |= written
        else:
            # Lanes whose guard is false keep the old value, so it is read as well.
            reads |= written - writes
    return reads, writes
