"""A warp of the interpreter: its lanes, its registers, and how operands are read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gpulab.emulator.faults import make_fault, position
from gpulab.emulator.memory import Memory
from gpulab.emulator.program import Program
from gpulab.emulator.reference_values import (
    DTYPES,
    LANES,
    UNSIGNED,
    from_register,
    register_dtype,
    to_register,
)
from gpulab.errors import KernelFault
from gpulab.launch import LaunchConfig
from gpulab.ptx.opcodes import Role
from gpulab.ptx.syntax import (
    Address,
    Group,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
)
from gpulab.ptx.types import TYPE_BYTES

LANE_NUMBERS = np.arange(LANES)


@dataclass(slots=True)
class Launch:
    """What all warps of a launch share.

    Attributes
    ----------
    program : Program
    config : LaunchConfig
    parameters : numpy.ndarray
        The parameter buffer, uint8.
    memory : Memory
    symbols : dict of str to int
        Value of each name used as an operand: addresses of module variables, offsets of shared and local arrays.
    """

    program: Program
    config: LaunchConfig
    parameters: np.ndarray
    memory: Memory
    symbols: dict[str, int]

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return self.program.shared_bytes(self.config.dynamic_shared_bytes)


@dataclass(slots=True)
class ThreadBlock:
    """A block while it runs: its number, its shared memory, and how many instructions its warps issued (the clock)."""

    launch: Launch
    number: int
    shared: np.ndarray = field(init=False)
    clock: int = 0

    def __post_init__(self) -> None:
        self.shared = np.zeros(self.launch.shared_bytes, np.uint8)


@dataclass(slots=True)
class Warp:
    """32 lanes in lockstep.

    Attributes
    ----------
    block : ThreadBlock
    number : int
        Of the warp in its block.
    at : numpy.ndarray
        Rank of the basic block at which each lane waits; -1 for lanes that exited or were never launched.
    active : numpy.ndarray
        Lanes that execute now.
    registers : dict of str to numpy.ndarray
        Patterns by name, 32 lanes each.
    local : numpy.ndarray
        Local memory, shape (32, local bytes), uint8.
    """

    block: ThreadBlock
    number: int
    at: np.ndarray = field(init=False)
    active: np.ndarray = field(init=False)
    registers: dict[str, np.ndarray] = field(init=False)
    local: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        program = self.launch.program
        self.at = np.where(self.threads < self.launch.config.threads_per_block, 0, -1)
        self.active = np.zeros(LANES, bool)
        self.registers = {
            name: np.zeros(LANES, register_dtype(type_name)) for name, type_name in program.function.registers.items()
        }
        self.local = np.zeros((LANES, program.local_bytes), np.uint8)

    @property
    def launch(self) -> Launch:
        """The launch that it belongs to."""
        return self.block.launch

    @property
    def threads(self) -> np.ndarray:
        """Linear number of each lane's thread in its block."""
        return self.number * LANES + LANE_NUMBERS

    @property
    def live(self) -> np.ndarray:
        """Lanes that may still do something: launched, not exited, and not on a path that holds only `ret`."""
        leaving = np.array([block.exits_only for block in self.launch.program.graph.blocks])
        return (self.at >= 0) & ~leaving[self.at]

    def fault(self, kind: str, instruction: int, lane: int | None, message: str = "") -> KernelFault:
        """The error for something that a lane, or the warp, did wrong."""
        thread = None if lane is None else int(self.threads[lane])
        launch = self.launch
        return make_fault(launch.program, launch.config, kind, instruction, self.block.number, thread, message)

    # ---- reading

    def guard(self, instruction: Instruction) -> np.ndarray:
        """Active lanes whose guard is true."""
        if instruction.guard is None:
            return self.active
        condition = self.registers[instruction.guard.register.name]
        return self.active & (~condition if instruction.guard.negated else condition)

    def read(self, operand: Operand, role: Role) -> np.ndarray:
        """A source operand as its role's type."""
        if isinstance(operand, Register):
            return from_register(self.registers[operand.name], role.type)
        if isinstance(operand, Immediate):
            return np.full(LANES, constant(operand, role.type if role.type != "imm" else "u32"))
        if isinstance(operand, Negated):
            return ~self.registers[operand.register.name]
        if isinstance(operand, Special):
            return from_register(self.special(operand.name), role.type)
        if isinstance(operand, Symbol):
            return np.full(LANES, self.launch.symbols[operand.name] + operand.offset, DTYPES[role.type])
        assert isinstance(operand, Group)
        return self._packed(operand, role.type)

    def _packed(self, group: Group, type_name: str) -> np.ndarray:
        """Registers side by side, the first one lowest."""
        part = Role("a", f"b{8 * TYPE_BYTES[type_name] // len(group.elements)}")
        unsigned = UNSIGNED[TYPE_BYTES[type_name]]
        total = np.zeros(LANES, unsigned)
        for index, element in enumerate(group.elements):
            pattern = self.read(element, part).astype(unsigned)
            total |= pattern << unsigned.type(index * 8 * TYPE_BYTES[part.type])
        return total.view(DTYPES[type_name])

    def addresses(self, address: Address) -> np.ndarray:
        """Address of each lane, int64 (as a pattern: windows lie below 2**63)."""
        if address.base is None:
            base = np.zeros(LANES, np.int64)
        elif isinstance(address.base, Symbol):
            base = np.full(LANES, self.launch.symbols[address.base.name] + address.base.offset)
        else:
            pattern = self.registers[address.base.name]
            base = pattern.astype(np.uint64).view(np.int64)
        return base + address.offset

    # ---- writing

    def write(self, operand: Operand, value: np.ndarray, type_name: str, lanes: np.ndarray) -> None:
        """Write a destination in the lanes that are on; the others keep their value."""
        if isinstance(operand, Group):
            self._unpack(operand, value, type_name, lanes)
        elif isinstance(operand, Register) and operand.name != "_":
            register_type = self.launch.program.function.registers[operand.name]
            pattern = to_register(np.broadcast_to(value, LANES), type_name, register_type)
            self.registers[operand.name] = np.where(lanes, pattern, self.registers[operand.name])

    def write_pair(
        self, operand: Operand, first: np.ndarray, type_name: str, second: np.ndarray, lanes: np.ndarray
    ) -> None:
        """Write ``d|p``, or ``d`` alone."""
        if isinstance(operand, Pair):
            self.write(operand.first, first, type_name, lanes)
            self.write(operand.second, second, "pred", lanes)
        else:
            self.write(operand, first, type_name, lanes)

    def _unpack(self, group: Group, value: np.ndarray, type_name: str, lanes: np.ndarray) -> None:
        bits = 8 * TYPE_BYTES[type_name] // len(group.elements)
        pattern = value.view(UNSIGNED[TYPE_BYTES[type_name]])
        for index, element in enumerate(group.elements):
            part = (pattern >> pattern.dtype.type(index * bits)).astype(DTYPES[f"b{bits}"])
            self.write(element, part, f"b{bits}", lanes)

    # ---- special registers (PTX ISA 10)

    def special(self, name: str) -> np.ndarray:
        """A special register as a pattern of its own width."""
        base, _, axis = name.partition(".")
        if axis:
            return self._by_axis(base, "xyz".index(axis))
        return _SPECIALS[base](self) if base in _SPECIALS else np.zeros(LANES, np.uint32)

    def _by_axis(self, base: str, axis: int) -> np.ndarray:
        config = self.launch.config
        if base == "%tid":
            return np.array([position(thread, config.block)[axis] for thread in self.threads.tolist()], np.uint32)
        if base in ("%ctaid", "%clusterid"):
            return _same(position(self.block.number, config.grid)[axis])
        # A launch without clusters is one of clusters of a single block.
        sizes = {"%ntid": config.block, "%nctaid": config.grid, "%nclusterid": config.grid}
        sizes["%cluster_nctaid"] = (1, 1, 1)
        return _same(sizes[base][axis] if base in sizes else 0)


def _same(value: int) -> np.ndarray:
    return np.full(LANES, value & 0xFFFFFFFF, np.uint32)


def _lane_masks(condition: Callable[[int, int], bool]) -> np.ndarray:
    masks = [sum(1 << other for other in range(LANES) if condition(other, lane)) for lane in range(LANES)]
    return np.array(masks, np.uint32)


_SPECIALS: dict[str, Callable[[Warp], np.ndarray]] = {
    "%laneid": lambda warp: LANE_NUMBERS.astype(np.uint32),
    "%warpid": lambda warp: _same(warp.number),
    "%nwarpid": lambda warp: _same(warp.launch.config.warps_per_block),
    "%nsmid": lambda warp: _same(1),
    "%lanemask_eq": lambda warp: _lane_masks(lambda other, lane: other == lane),
    "%lanemask_le": lambda warp: _lane_masks(lambda other, lane: other <= lane),
    "%lanemask_lt": lambda warp: _lane_masks(lambda other, lane: other < lane),
    "%lanemask_ge": lambda warp: _lane_masks(lambda other, lane: other >= lane),
    "%lanemask_gt": lambda warp: _lane_masks(lambda other, lane: other > lane),
    "%clock": lambda warp: _same(warp.block.clock),
    "%clock64": lambda warp: np.full(LANES, warp.block.clock, np.uint64),
    "%globaltimer": lambda warp: np.full(LANES, warp.block.clock, np.uint64),
    "%globaltimer_lo": lambda warp: _same(warp.block.clock),
    "%dynamic_smem_size": lambda warp: _same(warp.launch.config.dynamic_shared_bytes),
    "%total_smem_size": lambda warp: _same(warp.launch.shared_bytes),
    "%cluster_nctarank": lambda warp: _same(1),
    "%is_explicit_cluster": lambda warp: np.zeros(LANES, bool),
}


def constant(immediate: Immediate, type_name: str) -> np.generic:
    """A constant operand as a type: its exact pattern if it has one."""
    dtype = DTYPES[type_name]
    if type_name == "pred":
        return dtype.type(immediate.value != 0)
    if immediate.bits is not None:
        if dtype.kind == "f" and dtype.itemsize != (4 if immediate.bits < 2**32 else 8):
            return dtype.type(immediate.value)
        return UNSIGNED[dtype.itemsize].type(immediate.bits & (1 << 8 * dtype.itemsize) - 1).view(dtype)
    if dtype.kind == "f":
        return dtype.type(immediate.value)
    return UNSIGNED[dtype.itemsize].type(int(immediate.value) & (1 << 8 * dtype.itemsize) - 1).view(dtype)
