"""Findings: what holds a kernel up, in a sentence with the line, the remedy and the gain.

The gain is the time model's answer to "what if this were repaired": the same launch with the counters of the repaired
access. A finding whose gain is small says what hides it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpulab.gpus import Gpu
from gpulab.launch import WARP_SIZE
from gpulab.models.lines import group_by_line
from gpulab.models.occupancy import Occupancy
from gpulab.models.run import KernelRun
from gpulab.models.tally import FormLike
from gpulab.models.timing import TimeEstimate, estimate, without_tail
from gpulab.models.traffic import Traffic, traffic
from gpulab.units import three_digits

NOTABLE_GAIN = 1.05
EXCESS = 0.1
ENOUGH_OCCUPANCY = 0.5  # above, more warps seldom help
TERM_WORDS = {
    "issue": "the rate of instructions",
    "fma": "FP32 and multiply arithmetic",
    "alu": "integer and logic arithmetic",
    "fp64": "FP64 arithmetic",
    "fp16": "FP16 arithmetic",
    "tensor": "the tensor cores",
    "sfu": "special functions",
    "shared": "shared memory",
    "l1": "the L1 cache",
    "l2": "the L2 cache",
    "dram": "DRAM bandwidth",
    "latency": "latency",
    "barriers": "waiting at barriers",
    "launch": "the launch itself",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at.

    Attributes
    ----------
    kind : str
        ``uncoalesced``, ``bank-conflict``, ``occupancy``, ``divergence``, ``fp64``, ``small-grid`` or ``tail``.
    message : str
        What happens, with its numbers.
    remedy : str
        What usually repairs it.
    file, line : str and int, or None
        Where in the source; None if it is no single line.
    metric : str
        The metric that shows it.
    gain : float or None
        How many times faster the launch would be without it, *modeled*; None if that can't be said.
    hidden_by : str or None
        What limits the launch instead, where the gain is small.
    """

    kind: str
    message: str
    remedy: str
    file: str | None
    line: int | None
    metric: str
    gain: float | None = None
    hidden_by: str | None = None

    def __repr__(self) -> str:
        return f"<{self.kind}: {self}>"

    def __str__(self) -> str:
        place = f"Line {self.line}: " if self.line else ""
        return f"{place}{self.message} {self.remedy} {self.gain_words}".rstrip()

    @property
    def gain_words(self) -> str:
        """The gain as a sentence; empty if it is not known."""
        if self.gain is None:
            return ""
        if self.gain < NOTABLE_GAIN:
            return f"It would hardly be faster here, because {self.hidden_by} limits it (modeled)."
        return f"Up to {self.gain:.1f} times faster (modeled)."


@dataclass(frozen=True)
class Case:
    """What the detectors look at.

    Attributes
    ----------
    run, gpu, occupancy, traffic, time
        The launch and what the models say of it.
    file : str or None
        The user's source file.
    """

    run: KernelRun
    gpu: Gpu
    occupancy: Occupancy
    traffic: Traffic
    time: TimeEstimate
    file: str | None = None

    @cached_property
    def modeled(self) -> TimeEstimate:
        """The modeled time of the launch as it is; a measured one can't be compared with what-ifs."""
        return estimate(self.run, self.gpu, self.occupancy, self.traffic)

    @cached_property
    def lines(self) -> dict[tuple[str, int], np.ndarray]:
        """Instruction masks by file and line."""
        return group_by_line(self.run.program.function.instructions, self.file)

    def gain(self, **changes: np.ndarray) -> dict[str, float | str]:
        """`gain` and `hidden_by` of a finding, for a launch with these counters."""
        run = dataclasses.replace(self.run, counters=dataclasses.replace(self.run.counters, **changes))
        # Which sectors a repaired access finds in L1 is not known. It needs no more of L2 than it did.
        misses = np.minimum(self.traffic.l1_misses, run.counters.sectors)
        moved = traffic(run, self.gpu, self.occupancy, misses)
        return self.gain_of(estimate(run, self.gpu, self.occupancy, moved))

    def gain_of(self, better: TimeEstimate) -> dict[str, float | str]:
        """`gain` and `hidden_by` of a finding, for a launch that would take `better`."""
        return {"gain": max(1.0, self.modeled.seconds / better.seconds), "hidden_by": TERM_WORDS[better.bound_by]}


def findings(
    run: KernelRun, gpu: Gpu, occupancy: Occupancy, traffic: Traffic, time: TimeEstimate, file: str | None = None
) -> list[Finding]:
    """All findings, the largest gain first."""
    case = Case(run, gpu, occupancy, traffic, time, file)
    found = [finding for detect in DETECTORS for finding in detect(case)]
    return sorted(found, key=lambda finding: -(finding.gain or 1.0))


def uncoalesced(case: Case) -> Iterator[Finding]:
    """Lines whose global accesses touch more sectors than their bytes need."""
    counters, tally = case.run.counters, case.run.tally()
    for (file, line), mask in case.lines.items():
        for kind, op in (("load", "ld"), ("store", "st")):
            those = mask & tally.where(kinds=(kind,), spaces=("global",))
            sectors, ideal = int(counters.sectors[those].sum()), int(counters.sectors_ideal[those].sum())
            requests = int(counters.requests[those].sum())
            if sectors <= ideal * (1 + EXCESS) or sectors - ideal < EXCESS * _global_sectors(case):
                continue
            used = 100 * counters.bytes_asked[those].sum() / (32 * sectors)
            yield Finding(
                "uncoalesced",
                f"Global {kind}s touch {three_digits(sectors / requests)} sectors per request where "
                f"{three_digits(ideal / requests)} would do; {three_digits(used)} % of the bytes moved are used.",
                "Let neighboring threads access neighboring addresses: threadIdx.x on the last axis, structures of "
                "arrays, or a tile in shared memory where one side must be strided.",
                file,
                line,
                f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio",
                **case.gain(**_coalesced(case, those)),
            )


def _global_sectors(case: Case) -> int:
    counters = case.run.counters
    return int(counters.sectors[case.run.tally().where(spaces=("global",))].sum())


def _coalesced(case: Case, those: np.ndarray) -> dict[str, np.ndarray]:
    counters = case.run.counters
    sectors = np.where(those, counters.sectors_ideal, counters.sectors)
    return {
        "sectors": sectors,
        "lines": np.where(those, np.minimum(counters.lines, -(-sectors // 4)), counters.lines),
        "wavefronts": np.where(those, np.minimum(counters.wavefronts, counters.wavefronts_ideal), counters.wavefronts),
    }


def bank_conflicts(case: Case) -> Iterator[Finding]:
    """Lines whose shared accesses need more passes than their width."""
    counters, tally = case.run.counters, case.run.tally()
    shared = tally.where(spaces=("shared",))
    all_passes, all_ideal, all_requests = (
        tally.shared(name) for name in ("wavefronts", "wavefronts_ideal", "requests")
    )
    total = int(all_passes.sum())
    for (file, line), mask in case.lines.items():
        those = mask & shared
        passes, ideal = int(all_passes[mask].sum()), int(all_ideal[mask].sum())
        if passes <= ideal * (1 + EXCESS) or passes - ideal < EXCESS * total:
            continue
        requests = int(all_requests[mask].sum())
        copied = np.where(mask, counters.copied_wavefronts_ideal, counters.copied_wavefronts)
        better = np.where(those, counters.wavefronts_ideal, counters.wavefronts)
        yield Finding(
            "bank-conflict",
            f"Shared accesses take {three_digits(passes / requests)} wavefronts per request where "
            f"{three_digits(ideal / requests)} would do: lanes meet in the same bank.",
            "Pad the rows of the tile by one element, or swizzle the column index, so that lanes of a warp fall in "
            "different banks.",
            file,
            line,
            "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
            **case.gain(wavefronts=better, copied_wavefronts=copied),
        )


def low_occupancy(case: Case) -> Iterator[Finding]:
    """Too few warps per SM where latency is what the launch waits for."""
    occupancy, gpu = case.occupancy, case.gpu
    if occupancy.theoretical > ENOUGH_OCCUPANCY or case.run.config.blocks < gpu.sm_count:
        return
    warps = case.run.config.warps_per_block
    full = gpu.max_warps_per_sm // warps
    better = dataclasses.replace(occupancy, theoretical=1.0, blocks_per_sm=full, active_warps_per_sm=full * warps)
    gain = case.gain_of(estimate(case.run, gpu, better, case.traffic))
    if float(gain["gain"]) < NOTABLE_GAIN:
        return
    yield Finding(
        "occupancy",
        f"Only {occupancy.active_warps_per_sm} of {occupancy.max_warps_per_sm} warps fit on an SM, limited by "
        f"{_limiter(case)}.",
        _OCCUPANCY_REMEDIES[occupancy.limited_by],
        None,
        None,
        "sm__maximum_warps_per_active_cycle_pct",
        **gain,
    )


_OCCUPANCY_REMEDIES = {
    "warps": "Choose a block size that divides the warps of an SM.",
    "registers": "Use a smaller block, or fewer registers (max_registers= in Numba, __launch_bounds__ in CUDA C++).",
    "shared": "Use a smaller tile, or a larger block for the same tile.",
    "blocks": "Use larger blocks: the number of blocks per SM is limited too.",
}


def _limiter(case: Case) -> str:
    run = case.run
    return {
        "warps": f"the block size ({run.config.threads_per_block} threads)",
        "registers": f"registers ({run.registers_per_thread} per thread)",
        "shared": f"shared memory ({run.shared_bytes:,} bytes per block)",
        "blocks": f"the blocks per SM ({case.gpu.max_blocks_per_sm})",
    }[case.occupancy.limited_by]


def divergence(case: Case) -> Iterator[Finding]:
    """Branches that part the lanes of a warp, where idle lanes cost much."""
    counters = case.run.counters
    executed = int(counters.warp_instructions.sum())
    active = int(counters.thread_instructions.sum())
    parted = int(counters.divergent_branches.sum())
    if not parted or active >= 0.8 * WARP_SIZE * executed:
        return
    worst = max(case.lines.items(), key=lambda item: counters.divergent_branches[item[1]].sum(), default=None)
    place = worst[0] if worst and counters.divergent_branches[worst[1]].any() else (None, None)
    packed = -(-counters.thread_instructions // WARP_SIZE)
    yield Finding(
        "divergence",
        f"On average {active / executed:.1f} of 32 lanes are active, because lanes of a warp take different branches "
        f"({parted:,} divergent branches).",
        "Let the condition be the same for all lanes of a warp: sort or group the work, or number the threads so that "
        "the active ones are neighbors.",
        *place,
        "smsp__sass_average_branch_targets_threads_uniform.pct",
        **case.gain(warp_instructions=np.minimum(packed, counters.warp_instructions)),
    )


def double_precision(case: Case) -> Iterator[Finding]:
    """Lines that turn FP32 values into FP64 and compute there."""
    forms, work = case.run.program.forms, case.run.counters.warp_instructions
    promoted = np.array([form.opcode == "cvt" and (form.type, form.source_type) == ("f64", "f32") for form in forms])
    double = np.array([form.pipe == "fp64" for form in forms])
    for (file, line), mask in case.lines.items():
        if not (promoted & mask & (work > 0)).any() or not (double & mask & (work > 0)).any():
            continue
        single = tuple(_as_single(form) if mask[index] and double[index] else form for index, form in enumerate(forms))
        program = dataclasses.replace(case.run.program, forms=single)  # type: ignore[type-var]
        yield Finding(
            "fp64",
            "FP32 values are turned into FP64 and computed there.",
            "Write constants as 0.5f in CUDA C++, np.float32(0.5) in Numba, if FP32 is precise enough.",
            file,
            line,
            "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum",
            **case.gain_of(estimate(dataclasses.replace(case.run, program=program), case.gpu)),
        )


def _as_single(form: FormLike) -> FormLike:
    """The same operation in FP32."""
    kind = "f" + form.kind[1:] if form.kind in ("dadd", "dmul", "dfma") else form.kind
    return dataclasses.replace(form, pipe="fp32", type="f32", kind=kind)  # type: ignore[type-var]


def small_grid(case: Case) -> Iterator[Finding]:
    """Fewer blocks than SMs, or a last wave that leaves most of the GPU idle."""
    blocks, gpu = case.run.config.blocks, case.gpu
    if blocks < gpu.sm_count:
        yield Finding(
            "small-grid",
            f"The grid has {blocks:,} block{'s' * (blocks > 1)}, but {gpu.name} has {gpu.sm_count} SMs: "
            f"{gpu.sm_count - blocks} of them have nothing to do.",
            "Use smaller blocks and more of them, give each thread less work, or solve a larger problem.",
            None,
            None,
            "launch__waves_per_multiprocessor",
        )
        return
    yield from _tail(case)


def _tail(case: Case) -> Iterator[Finding]:
    """A last wave that leaves most of the GPU idle, where that costs time."""
    blocks, per_wave = case.run.config.blocks, case.gpu.sm_count * case.occupancy.blocks_per_sm
    gain = case.gain_of(without_tail(case.modeled, blocks, case.gpu, case.occupancy))
    if blocks <= per_wave or float(gain["gain"]) < NOTABLE_GAIN:
        return
    yield Finding(
        "tail",
        f"{blocks:,} blocks are {blocks / per_wave:.2f} waves of {per_wave:,}: the last one fills only "
        f"{100 * (blocks % per_wave) / per_wave:.0f} % of the GPU.",
        "Choose the grid so that it fills whole waves, or let threads take several elements (a grid-stride loop).",
        None,
        None,
        "launch__waves_per_multiprocessor",
        **gain,
    )


DETECTORS = (uncoalesced, bank_conflicts, low_occupancy, divergence, double_precision, small_grid)
