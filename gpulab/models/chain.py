"""How long one warp takes when it is alone: a walk over its instructions with the dependences between them.

Hardware issues in order, but ptxas has put independent instructions first: loads move up to where their address is known,
short branches become predicates. So an instruction issues here when all that it reads is there, whatever waits before it;
the walk stands still only where ptxas can't move code: at barriers, loop ends and long branches, and for loads behind a
store that might write what they read. What a warp waits for is what other warps can hide, so this is where
instruction-level parallelism shows: four independent loads wait once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.gpus import Gpu
from gpulab.models.costs import BRANCH_CYCLES, issue_slots, pipe_cycles, result_latency
from gpulab.models.run import BlockLike, KernelRun
from gpulab.models.tally import FormLike
from gpulab.models.traffic import Traffic
from gpulab.ptx.opcodes import read_registers, written_registers
from gpulab.ptx.syntax import Immediate, Instruction

#: ptxas turns branches around so few instructions into predicates.
PREDICATED_INSTRUCTIONS = 10
#: Loops nested deeper than so many are walked once in each pass of the outer ones: 2**4 passes settle them, and without a
#: bound the time doubles with each level (calls through pointers and recursion nest dozens).
LOOPS_WALKED_TWICE = 4


def chain_cycles(run: KernelRun, gpu: Gpu, traffic: Traffic) -> float:
    """Mean cycles from a warp's first instruction to its last, were it alone on its SM.

    Loops are walked twice and the second pass counts, so that what one iteration hands to the next is waited for.
    """
    return float(chain_shares(run, gpu, traffic).sum())


def chain_shares(run: KernelRun, gpu: Gpu, traffic: Traffic) -> np.ndarray:
    """What each instruction adds to `chain_cycles`, float64: the cycles by which it ends later than all before it.

    What it waits for its operands belongs to the instruction that makes the last of them, mostly a load. (Nsight Compute's
    samples lie on the instruction that waits.)
    """
    walk = _Walk(run, memory_latencies(run, gpu, traffic), gpu)
    walk.blocks(0, len(walk.graph))
    entries = np.zeros(len(walk.cost))
    for block in walk.graph:
        entries[block.start : block.stop] = run.counters.warp_instructions[block.start]
    shares = entries * (walk.cost - walk.waited)
    np.add.at(shares, walk.awaited, entries * walk.waited)
    return shares / max(1, run.counters.warps)


def memory_latencies(run: KernelRun, gpu: Gpu, traffic: Traffic) -> np.ndarray:
    """Cycles until the result of each memory instruction is there; 0 for all else. Float64, one per instruction."""
    counters, tally = run.counters, run.tally()
    requests = np.maximum(counters.requests, 1)
    passes = np.maximum(counters.wavefronts / requests - 1, 0)
    # A request waits for its slowest sector, so one miss among its sectors makes it late.
    missing = np.minimum(traffic.l1_misses, counters.requests)
    all_missing = float(missing.sum())
    from_dram = min(1.0, traffic.dram_read.value / all_missing) if all_missing else 0.0
    behind_l1 = from_dram * gpu.dram_latency_cycles + (1 - from_dram) * gpu.l2_latency_cycles
    misses = missing / requests
    global_load = (1 - misses) * gpu.l1_latency_cycles + misses * behind_l1 + passes
    shared = gpu.shared_latency_cycles + passes * gpu.shared_cycles_per_wavefront
    latencies = np.zeros(len(tally.forms))
    for mask, values in (
        (tally.where(kinds=("load",), spaces=("global",)), global_load),
        (tally.where(kinds=("load",), spaces=("local",)), np.full(len(latencies), gpu.l1_latency_cycles)),
        (tally.where(kinds=("load", "atomic"), spaces=("shared",)), shared),
        (tally.where(kinds=("atomic",), spaces=("global",)), gpu.l2_latency_cycles + passes),
    ):
        latencies[mask] = values[mask]
    return latencies


@dataclass(frozen=True, slots=True)
class _Step:
    """An instruction as the walk sees it; `interval` is how long it holds its pipe (`pipe`) in the warp's sub-partition."""

    slots: float
    pipe: str
    interval: float
    latency: float
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    stores_to: str
    loads_from: str
    is_barrier: bool
    is_branch: bool
    copying: str = ""
    groups: int = 0


class _Walk:
    """The state of the walk: the next free issue slot, the latest issue so far, and when each register is ready."""

    def __init__(self, run: KernelRun, memory: np.ndarray, gpu: Gpu) -> None:
        self.graph = run.program.graph.blocks
        self.cost = np.zeros(len(run.program.forms))
        #: Of `cost` the cycles until the operands were there, and the instruction that made the last of them.
        self.waited = np.zeros(len(self.cost))
        self.awaited = np.arange(len(self.cost))
        self._ran = run.counters.warp_instructions
        self._steps = _steps(run, memory, gpu)
        self._loop_end = _loop_ends(self.graph)
        self._slot = self._latest = 0.0
        self._ready: dict[str, float] = {}
        self._maker: dict[str, int] = {}
        self._stored: dict[str, float] = {}
        self._held: dict[str, float] = {}
        self._copied = 0.0
        self._groups: list[float] = []

    def blocks(self, start: int, stop: int, inside: int | None = None, depth: int = 0) -> None:
        """Walk the blocks of ranks `start` to `stop`; `inside` is the loop that we are in already, the `depth`-th."""
        rank = start
        while rank < stop:
            end = self._loop_end.get(rank)
            if end is not None and rank != inside:
                for _ in range(2 if depth < LOOPS_WALKED_TWICE else 1):
                    self.blocks(rank, end, rank, depth + 1)
                rank = end
            else:
                self._block(self.graph[rank])
                rank += 1

    def _block(self, block: BlockLike) -> None:
        if not self._ran[block.start]:
            return
        for index in range(block.start, block.stop):
            begin, step = self._latest, self._steps[index]
            slowest = max(step.reads, key=lambda name: self._ready.get(name, 0.0), default="")
            there = self._ready.get(slowest, 0.0)
            self.awaited[index] = self._maker.get(slowest, index)
            self._issue(step, block)
            self.cost[index] = self._latest - begin
            self.waited[index] = min(self.cost[index], max(0.0, there - begin))
            self._maker.update(dict.fromkeys(step.writes, index))

    def _issue(self, step: _Step, block: BlockLike) -> None:
        held = max(self._slot, self._held.get(step.pipe, 0.0))
        now = max([held, *(self._ready.get(name, 0.0) for name in step.reads)])
        # As with issue slots, an instruction that waits for its operands keeps none from the pipe that is ready.
        self._held[step.pipe] = held + step.interval
        if step.loads_from:
            now = max(now, self._stored.get(step.loads_from, 0.0))
        if step.stores_to:
            self._stored[step.stores_to] = now
        for name in step.writes:
            self._ready[name] = now + step.latency
        self._slot += step.slots
        self._latest = max(self._latest, now + step.slots, self._slot)
        if step.copying:
            self._copy(step, now)
        if step.is_barrier:
            self._slot = self._latest = self._latest + step.latency
        elif step.is_branch and self._is_long(block):
            self._slot = self._latest = self._latest + BRANCH_CYCLES
        elif step.is_branch:
            self._slot = max(self._slot, now)

    def _copy(self, step: _Step, now: float) -> None:
        """Asynchronous copies: nobody waits for them until a wait leaves no more than so many of their groups open."""
        if step.copying == "copy":
            self._copied = max(self._copied, now + step.latency)
        elif step.copying == "commit_group":
            self._groups.append(self._copied)
        else:
            done = self._groups[: len(self._groups) - step.groups]
            everything = [self._copied] if step.copying == "wait_all" else []
            self._slot = self._latest = max([self._latest, *done, *everything])

    def _is_long(self, block: BlockLike) -> bool:
        """Whether a branch at the end of this block stays a branch: back, out, or over many instructions."""
        if len(block.successors) < 2 or min(block.successors) <= block.rank:
            return True
        nearest, farthest = min(block.successors), max(block.successors)
        skipped = sum(self.graph[rank].stop - self.graph[rank].start for rank in range(nearest, farthest))
        return skipped > PREDICATED_INSTRUCTIONS


def _steps(run: KernelRun, memory: np.ndarray, gpu: Gpu) -> list[_Step]:
    steps = []
    for index, (instruction, form) in enumerate(zip(run.program.function.instructions, run.program.forms, strict=True)):
        space = form.space or ""
        writes_memory = form.kind in ("store", "atomic", "reduction")
        steps.append(
            _Step(
                0.0 if instruction.synthetic else issue_slots(form),
                *(("", 0.0) if instruction.synthetic else _pipe(form, gpu)),
                0.0 if instruction.synthetic else memory[index] or result_latency(form, gpu),
                tuple(read_registers(instruction, form)),
                tuple(written_registers(instruction, form)),
                space if writes_memory else "",
                space if form.kind == "load" and "nc" not in instruction.modifiers else "",
                form.kind == "barrier",
                form.kind == "branch",
                *_copying(instruction, form),
            )
        )
    return steps


def _pipe(form: FormLike, gpu: Gpu) -> tuple[str, float]:
    """The pipe that an instruction holds longest, and for how many cycles, of the sub-partition that its warp is on."""
    held = pipe_cycles(form, gpu) or {"": 0.0}
    pipe = max(held, key=lambda name: held[name])
    return pipe, held[pipe] * gpu.schedulers_per_sm


def _copying(instruction: Instruction, form: FormLike) -> tuple[str, int]:
    """What an instruction does with asynchronous copies, and how many groups a wait leaves open."""
    if form.opcode == "mbarrier":
        return ("wait_group", 0) if form.mode in ("test_wait", "try_wait") else ("", 0)
    if form.opcode != "cp":
        return "", 0
    if form.mode == "mbarrier":
        return "commit_group", 0
    count = instruction.operands[0] if form.mode == "wait_group" else None
    return form.mode or "copy", int(count.value) if isinstance(count, Immediate) else 0


def _loop_ends(blocks: tuple[BlockLike, ...]) -> dict[int, int]:
    """For each loop head the rank behind its last block; bodies are contiguous in rank order."""
    ends: dict[int, int] = {}
    for block in blocks:
        for target in block.successors:
            if target <= block.rank:
                ends[target] = max(ends.get(target, 0), block.rank + 1)
    return ends
