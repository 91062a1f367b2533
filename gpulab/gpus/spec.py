"""`Gpu`: the facts about one GPU that the models use, each with its unit and its source."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpulab.gpus import whatif


@dataclass(frozen=True, slots=True, repr=False)
class Gpu:
    """One GPU, or one that you make up with `replace`.

    Attributes
    ----------
    name : str
    compute_capability : tuple of int
        Major and minor, e.g. ``(8, 0)``.
    sm_count : int
        Multiprocessors (SMs).
    boost_clock_hz : float
        SM clock of the data sheet, Hz.
    clock_hz : float
        SM clock that the models use, Hz. The boost clock unless replaced.
    sheet_fp32_tflop_per_s : float
        FP32 peak of the data sheet, 1e12 FLOP/s; only a check of the other values.
    memory_bytes : int
        Capacity of device memory.
    memory_bus_bits, memory_gbit_per_s_per_pin : float
        Width of the memory bus, and its data rate for each of its pins in 1e9 bit/s.
    dram_bandwidth_gb_per_s : float
        Peak of the data sheet, 1e9 byte/s.
    dram_efficiency : float
        Share of that peak (0 to 1) that streaming kernels reach.
    l2_bytes : int
        Capacity of the L2 cache.
    l2_bandwidth_gb_per_s : float
        Bandwidth between L2 and the SMs as measured, 1e9 byte/s.
    fp32_lanes_per_sm, fp64_lanes_per_sm, fp16_lanes_per_sm, int32_lanes_per_sm, sfu_lanes_per_sm : int
        Results per cycle of an SM; an FMA is one result.
    tensor_fp16_flop_per_cycle, tensor_fp16_accumulated_flop_per_cycle : int
        FLOP of an SM's tensor cores per cycle, dense, for f16 and bf16 with f32 and with f16 accumulators.
    tensor_tf32_flop_per_cycle, tensor_fp64_flop_per_cycle, tensor_fp8_flop_per_cycle, tensor_int8_op_per_cycle : int
        The same for other types; 0 where there is none.
    schedulers_per_sm : int
        Warp schedulers of an SM; each issues one warp instruction per cycle.
    max_warps_per_sm, max_blocks_per_sm, max_threads_per_block : int
        Residency limits.
    registers_per_sm, max_registers_per_thread : int
        32-bit registers.
    register_allocation_unit : int
        Registers are given to a warp in multiples of this.
    warp_allocation_granularity : int
        Registers are shared out among this many sub-partitions.
    shared_bytes_per_sm : int
        Largest part of L1 that can be shared memory.
    shared_bytes_per_block, shared_bytes_per_block_optin : int
        Limit of shared memory per block as is, and after a kernel opted in to more.
    reserved_shared_bytes_per_block : int
        Shared memory that the system takes in every block.
    shared_allocation_bytes : int
        Shared memory is given to a block in multiples of this.
    shared_carve_outs_bytes : tuple of int
        Sizes that the part of `l1_bytes` for shared memory can have; empty if they are not known: any size then.
    barriers_per_sm : int
        Barriers (``bar.sync``) that the blocks of an SM have together; they limit occupancy from capability 9.0.
    l1_bytes : int
        L1 cache and shared memory of an SM together.
    alu_latency_cycles, sfu_latency_cycles, fp64_latency_cycles : float
        From issue until a dependent instruction can issue, SM cycles.
    shared_latency_cycles, l1_latency_cycles, l2_latency_cycles, dram_latency_cycles : float
        Of a load that is served there, by pointer chase, SM cycles.
    shared_cycles_per_wavefront : float
        SM cycles that the data stage takes for each wavefront of shared memory.
    lsu_cycles_per_request : float
        Least SM cycles of a request of up to 32 bits per lane: 2 where an SM has 16 load/store lanes.
    l1_tag_cycles, l1_tag_cycles_per_line : float
        The tag stage takes the first plus the second times the lines of a request, SM cycles.
    partial_store_cost : float
        A sector that is stored only in part costs L2 this many times a full one.
    block_turnaround_s : float
        Time from the end of a block until the first load of the next one in its place, s.
    launch_overhead_s : float
        Time between back-to-back launches of an empty kernel, s.
    tensor_clock_hz : float
        SM clock for which the data sheet states tensor peaks, Hz; the boost clock unless it is known to be lower.
    sheet_tensor_fp16_tflop_per_s : float or None
        Dense f16 tensor peak (f32 accumulators) of the data sheet, 1e12 FLOP/s; only a check.
    dram_read_efficiency, dram_write_efficiency, dram_scale_efficiency, dram_triad_efficiency : float or None
        Shares of `dram_bandwidth_gb_per_s` (0 to 1) that four streaming kernels reached at full occupancy, as measured.
    l1_bytes_per_cycle : float or None
        Bytes that 32-bit loads get from L1 per SM cycle, as measured.
    l2_far_latency_cycles : float or None
        `l2_latency_cycles` for the half of L2 that is farther away, SM cycles.
    ffma_efficiency : float or None
        Share of the FP32 peak (0 to 1) that FMAs of three distinct registers reach, as measured.
    launch_in_graph_s : float or None
        `launch_overhead_s` for launches in a CUDA graph, s.
    host_bandwidth_gb_per_s : float or None
        Copies from pinned host memory, 1e9 byte/s; None where the GPU shares the CPU's memory.
    aliases : tuple of str
        Other names, among them the name that the driver reports.
    sources : mapping of str to str
        Where each value comes from, with any doubt.
    """

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    boost_clock_hz: float
    clock_hz: float
    sheet_fp32_tflop_per_s: float
    memory_bytes: int
    memory_bus_bits: int
    memory_gbit_per_s_per_pin: float
    dram_bandwidth_gb_per_s: float
    dram_efficiency: float
    l2_bytes: int
    l2_bandwidth_gb_per_s: float
    fp32_lanes_per_sm: int
    fp64_lanes_per_sm: int
    fp16_lanes_per_sm: int
    int32_lanes_per_sm: int
    sfu_lanes_per_sm: int
    tensor_fp16_flop_per_cycle: int
    tensor_fp16_accumulated_flop_per_cycle: int
    tensor_tf32_flop_per_cycle: int
    tensor_fp64_flop_per_cycle: int
    tensor_fp8_flop_per_cycle: int
    tensor_int8_op_per_cycle: int
    schedulers_per_sm: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    max_threads_per_block: int
    registers_per_sm: int
    max_registers_per_thread: int
    register_allocation_unit: int
    warp_allocation_granularity: int
    shared_bytes_per_sm: int
    shared_bytes_per_block: int
    shared_bytes_per_block_optin: int
    reserved_shared_bytes_per_block: int
    shared_allocation_bytes: int
    barriers_per_sm: int
    l1_bytes: int
    alu_latency_cycles: float
    sfu_latency_cycles: float
    fp64_latency_cycles: float
    shared_latency_cycles: float
    l1_latency_cycles: float
    l2_latency_cycles: float
    dram_latency_cycles: float
    shared_cycles_per_wavefront: float
    lsu_cycles_per_request: float
    l1_tag_cycles: float
    l1_tag_cycles_per_line: float
    partial_store_cost: float
    block_turnaround_s: float
    launch_overhead_s: float
    tensor_clock_hz: float
    sheet_tensor_fp16_tflop_per_s: float | None = None
    dram_read_efficiency: float | None = None
    dram_write_efficiency: float | None = None
    dram_scale_efficiency: float | None = None
    dram_triad_efficiency: float | None = None
    l1_bytes_per_cycle: float | None = None
    l2_far_latency_cycles: float | None = None
    ffma_efficiency: float | None = None
    launch_in_graph_s: float | None = None
    host_bandwidth_gb_per_s: float | None = None
    shared_carve_outs_bytes: tuple[int, ...] = ()
    aliases: tuple[str, ...] = field(default=(), compare=False)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, hash=False)

    def __repr__(self) -> str:
        major, minor = self.compute_capability
        return (
            f"Gpu({self.name!r}, compute capability {major}.{minor}, {self.sm_count} SMs at "
            f"{self.clock_hz / 1e9:.2f} GHz, {self.dram_bandwidth_gb_per_s:,.0f} GB/s)"
        )

    def replace(self, **changes: Any) -> Gpu:
        """A GPU that differs in some values: what if this one had twice the bandwidth?

        The name says what was changed, ``A100 (dram_bandwidth 2,000 GB/s)``, unless `name` is among the changes. What
        follows from a changed value changes with it: peaks, the clock with `boost_clock_hz`, the bandwidth with
        bus and data rate, a block's shared memory with the SM's. What was measured (latencies, L2 bandwidth) stays.

        Raises
        ------
        ArgumentError
            If a name is no field, or a value is of the wrong kind or makes no sense in its unit.
        """
        return dataclasses.replace(self, **whatif.changed(self, changes))

    @property
    def arch(self) -> str:
        """The architecture as the compilers spell it, e.g. ``sm_80``."""
        return "sm_{}{}".format(*self.compute_capability)

    @property
    def peak_fp32_flop_per_s(self) -> float:
        """FP32 peak at `clock_hz`, FLOP/s; an FMA is 2 FLOP."""
        return self.sm_count * self.fp32_lanes_per_sm * 2 * self.clock_hz

    @property
    def peak_fp64_flop_per_s(self) -> float:
        """FP64 peak at `clock_hz` (without tensor cores), FLOP/s; an FMA is 2 FLOP."""
        return self.sm_count * self.fp64_lanes_per_sm * 2 * self.clock_hz

    def peak_tensor_flop_per_s(self, kind: str) -> float:
        """Dense peak of the tensor cores at the clock that data sheets state it for, FLOP/s (OP/s for ``"int8"``).

        Parameters
        ----------
        kind : str
            ``"fp16"``, ``"fp16_accumulated"``, ``"tf32"``, ``"fp64"``, ``"fp8"`` or ``"int8"``.
        """
        per_cycle = getattr(self, f"tensor_{kind}_{'op' if kind == 'int8' else 'flop'}_per_cycle")
        return self.sm_count * per_cycle * self.tensor_clock_hz

    @property
    def reachable_dram_bytes_per_s(self) -> float:
        """DRAM bandwidth that a streaming kernel reaches, byte/s."""
        return self.dram_bandwidth_gb_per_s * 1e9 * self.dram_efficiency
