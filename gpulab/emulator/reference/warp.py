"""A warp of the interpreter: its lanes, its registers, and how operands are read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from gpulab.emulator.faults import make_fault, position
from gpulab.emulator.memory import Memory
from gpulab.emulator.program import RESERVED_SHARED, SPIN_BUDGET, Program
from gpulab.emulator.reference.counting import L1
from gpulab.emulator.reference.values import (
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
EXITED = -1


def nobody() -> np.ndarray:
    """No lane."""
    return np.zeros(LANES, bool)


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
    workspace : int
        Address of the workspace of a cooperative launch.
    progress : bool
        Whether anything happened that a thread might wait for.
    """

    program: Program
    config: LaunchConfig
    parameters: np.ndarray
    memory: Memory
    symbols: dict[str, int]
    workspace: int = 0
    progress: bool = False

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return self.program.shared_bytes(self.config.dynamic_shared_bytes)


@dataclass(slots=True)
class Barrier:
    """A barrier at which threads have arrived.

    Attributes
    ----------
    expected : int or None
        Threads for which it opens; None for all that have not exited.
    threads, holding : int
        Threads that arrived, and of them those with a true predicate.
    credit : int
        What counts towards `expected`.
    """

    expected: int | None
    threads: int = 0
    holding: int = 0
    credit: int = 0


class Status(Enum):
    """What a warp does when it doesn't run."""

    READY = "ready"
    WAITING = "waiting"
    FINISHED = "finished"


@dataclass(slots=True)
class ThreadBlock:
    """A block while it runs: its number, modeled L1, shared memory, barriers, and instructions issued (the clock)."""

    launch: Launch
    number: int
    l1: L1
    shared: np.ndarray = field(init=False)
    warps: list[Warp] = field(init=False)
    barriers: dict[int, Barrier] = field(default_factory=dict)
    clock: int = 0

    def __post_init__(self) -> None:
        self.shared = np.zeros(self.launch.shared_bytes, np.uint8)
        self.warps = [Warp(self, number) for number in range(self.launch.config.warps_per_block)]


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
    blocked, parked, arrived : numpy.ndarray
        Lanes that wait for others of the warp where lanes meet, that wait in a loop, that wait at a barrier of the block.
    wanted : numpy.ndarray
        The lanes that each blocked lane waits for, as a mask.
    granted : numpy.ndarray
        Lanes that met others which stood at another ``bar.warp.sync``, and may pass theirs.
    recheck : bool
        Whether lanes exited since the blocked ones were last told to wait.
    barrier : int
        Number of the barrier at which lanes have arrived.
    budget : int
        How often a loop that may wait for other threads may still be run before its lanes are parked.
    executed : int
        Instructions that it has executed, whatever lanes were active.
    registers : dict of str to numpy.ndarray
        Patterns by name, 32 lanes each.
    local : numpy.ndarray
        Local memory, shape (32, local bytes), uint8.
    """

    block: ThreadBlock
    number: int
    at: np.ndarray = field(init=False)
    active: np.ndarray = field(default_factory=nobody)
    blocked: np.ndarray = field(default_factory=nobody)
    parked: np.ndarray = field(default_factory=nobody)
    arrived: np.ndarray = field(default_factory=nobody)
    wanted: np.ndarray = field(default_factory=lambda: np.zeros(LANES, np.int64))
    granted: np.ndarray = field(default_factory=nobody)
    recheck: bool = False
    barrier: int = 0
    budget: int = SPIN_BUDGET
    status: Status = Status.READY
    executed: int = 0
    registers: dict[str, np.ndarray] = field(init=False)
    local: np.ndarray = field(init=False)
    _last_yield: bytes = b""

    def __post_init__(self) -> None:
        program = self.launch.program
        self.at = np.where(self.threads < self.launch.config.threads_per_block, 0, EXITED)
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

    @property
    def ready(self) -> np.ndarray:
        """Lanes that wait for nothing but their turn."""
        return (self.at >= 0) & ~(self.blocked | self.parked | self.arrived)

    @property
    def waits_whole(self) -> bool:
        """Whether all its live lanes wait at a barrier; those that only exit do it when the others go on."""
        return bool(self.arrived.any()) and not (self.live & ~self.arrived).any()

    def has_changed(self, parked: np.ndarray) -> bool:
        """Whether the warp yields in another state than the last time, of that which may end a loop of its parked lanes."""
        if self.launch.program.steady.issuperset(self.at[parked].tolist()):
            self._last_yield = b""
            return False
        blocks = self.launch.program.graph.blocks
        names = sorted(set().union(*(blocks[rank].live_in for rank in set(self.at[self.at >= 0].tolist()))))
        parts = [self.at, self.blocked, self.arrived, self.local, *(self.registers[name] for name in names)]
        state = b"".join(part.tobytes() for part in parts)
        changed, self._last_yield = state != self._last_yield, state
        return changed

    def forget_yield(self) -> None:
        """Take the state in which the warp yields next for another one."""
        self._last_yield = b""

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
        if type_name == "b128":
            total = np.zeros(LANES, DTYPES["b128"])
            for word, element in zip(("low", "high"), group.elements, strict=True):
                total[word] = self.read(element, Role("a", "b64"))
            return total
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
        if type_name == "b128":
            for word, element in zip(("low", "high"), group.elements, strict=True):
                self.write(element, value[word], "b64", lanes)
            return
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


def _time(warp: Warp) -> int:
    # Who reads a clock may wait for it: the next state counts as another one.
    warp.forget_yield()
    return warp.block.clock


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
    "%clock": lambda warp: _same(_time(warp)),
    "%clock_hi": lambda warp: _same(_time(warp) >> 32),
    "%clock64": lambda warp: np.full(LANES, _time(warp), np.uint64),
    "%globaltimer": lambda warp: np.full(LANES, _time(warp), np.uint64),
    "%globaltimer_lo": lambda warp: _same(_time(warp)),
    "%globaltimer_hi": lambda warp: _same(_time(warp) >> 32),
    "%envreg1": lambda warp: _same(warp.launch.workspace >> 32),
    "%envreg2": lambda warp: _same(warp.launch.workspace),
    RESERVED_SHARED: lambda warp: _same(warp.launch.program.shared[RESERVED_SHARED]),
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
