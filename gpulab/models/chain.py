"""How long one warp takes when it is alone: a walk over its instructions with the dependences between them.

An instruction issues when the one before it has and when all that it reads is there. What a warp waits for here is what
other warps can hide, so this is where instruction-level parallelism shows: four independent loads wait once.
"""

from __future__ import annotations

import numpy as np

from gpulab.gpus import Gpu
from gpulab.models.costs import BRANCH_CYCLES, issue_slots, result_latency
from gpulab.models.run import BlockLike, KernelRun
from gpulab.models.traffic import Traffic
from gpulab.ptx.opcodes import read_registers, written_registers


def chain_cycles(run: KernelRun, gpu: Gpu, traffic: Traffic) -> float:
    """Mean cycles from a warp's first instruction to its last, were it alone on its SM.

    Loops are walked twice and the second pass counts, so that what one iteration hands to the next is waited for.
    """
    walk = _Walk(run, memory_latencies(run, gpu, traffic), gpu)
    walk.blocks(0, len(walk.graph))
    entries = np.array([run.counters.warp_instructions[block.start] for block in walk.graph], float)
    return float(entries @ walk.cost / max(1, run.counters.warps))


def memory_latencies(run: KernelRun, gpu: Gpu, traffic: Traffic) -> np.ndarray:
    """Cycles until the result of each memory instruction is there; 0 for all else. Float64, one per instruction."""
    counters, tally = run.counters, run.tally()
    requests = np.maximum(counters.requests, 1)
    passes = np.maximum(counters.wavefronts / requests - 1, 0)
    # A request waits for its slowest sector, so one miss among its sectors makes it late.
    misses = np.minimum(counters.l1_miss_sectors / requests, 1)
    missing = float(np.minimum(counters.l1_miss_sectors, counters.requests).sum()) * tally.scale
    from_dram = min(1.0, traffic.dram_read.value / missing) if missing else 0.0
    behind_l1 = from_dram * gpu.dram_latency_cycles + (1 - from_dram) * gpu.l2_latency_cycles
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


class _Walk:
    """The state of the walk: the time, when each register is ready, and what each block cost when last walked."""

    def __init__(self, run: KernelRun, memory: np.ndarray, gpu: Gpu) -> None:
        self.graph = run.program.graph.blocks
        self.cost = np.zeros(len(self.graph))
        self._ran = run.counters.warp_instructions
        self._steps = [
            (
                issue_slots(form),
                memory[index] or result_latency(form, gpu),
                tuple(read_registers(instruction, form)),
                tuple(written_registers(instruction, form)),
                BRANCH_CYCLES if form.kind == "branch" else 0.0,
                form.kind == "barrier",
            )
            for index, (instruction, form) in enumerate(
                zip(run.program.function.instructions, run.program.forms, strict=True)
            )
        ]
        self._loop_end = _loop_ends(self.graph)
        self._now = 0.0
        self._ready: dict[str, float] = {}

    def blocks(self, start: int, stop: int, inside: int | None = None) -> None:
        """Walk the blocks of ranks `start` to `stop`; `inside` is the loop that we are in already."""
        rank = start
        while rank < stop:
            end = self._loop_end.get(rank)
            if end is not None and rank != inside:
                self.blocks(rank, end, inside=rank)
                self.blocks(rank, end, inside=rank)
                rank = end
            else:
                self._block(self.graph[rank])
                rank += 1

    def _block(self, block: BlockLike) -> None:
        if not self._ran[block.start]:
            return
        begin, now, ready = self._now, self._now, self._ready
        for slots, latency, reads, writes, after, is_barrier in self._steps[block.start : block.stop]:
            now = max([now, *(ready.get(name, 0.0) for name in reads)])
            for name in writes:
                ready[name] = now + latency
            now += latency if is_barrier else slots + after
        self._now = now
        self.cost[block.rank] = now - begin


def _loop_ends(blocks: tuple[BlockLike, ...]) -> dict[int, int]:
    """For each loop head the rank behind its last block; bodies are contiguous in rank order."""
    ends: dict[int, int] = {}
    for block in blocks:
        for target in block.successors:
            if target <= block.rank:
                ends[target] = max(ends.get(target, 0), block.rank + 1)
    return ends
