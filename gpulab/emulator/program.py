"""`Program`: one kernel, made ready for either engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpulab.emulator.analysis.meeting import is_aligned, passes
from gpulab.emulator.analysis.touched import Touched
from gpulab.emulator.memory import Memory
from gpulab.errors import DeviceError, GpulabError
from gpulab.ptx.callgraph import function_addresses
from gpulab.ptx.cfg import FlowGraph, flow
from gpulab.ptx.consistency import LOCAL_BYTES, check
from gpulab.ptx.inline import inline_calls
from gpulab.ptx.opcodes import Form, form, read_registers
from gpulab.ptx.spins import find_spins, find_steady
from gpulab.ptx.stack import ALLOCA_AREA, FRAME, STACK, STACK_BYTES
from gpulab.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Module,
    Register,
    Special,
    Symbol,
    Variable,
    symbols_in,
)
from gpulab.ptx.types import is_float
from gpulab.trace import Tracing

DYNAMIC_SHARED_ALIGN = 16

RESERVED_SHARED = "%reserved_smem_offset_1"
RESERVED_SHARED_BYTES = 1024
"""Shared memory of cooperative groups' own, which the system reserves since compute capability 8.0."""

SPIN_BUDGET = 32
"""How often a warp runs loops that may wait for other threads before it gives others a turn."""


@dataclass(frozen=True, slots=True)
class Tables:
    """What counters need to know of each instruction: arrays as long as there are instructions.

    Attributes
    ----------
    block : numpy.ndarray
        Rank of its basic block.
    guarded : numpy.ndarray
        Whether it has a guard.
    access_bytes : numpy.ndarray
        Bytes per lane that it accesses, 0 for most.
    is_shared : numpy.ndarray
        Whether that is shared memory.
    """

    block: np.ndarray
    guarded: np.ndarray
    access_bytes: np.ndarray
    is_shared: np.ndarray


@dataclass(frozen=True)
class Program:
    """One kernel of a module, made flat with all that it calls, variables laid out.

    Attributes
    ----------
    function : Function
        The kernel; its instructions are what `Counters` count.
    forms : tuple of Form
        One for each instruction; accesses of call variables in local memory have the space ``call``.
    graph : FlowGraph
    parameters : dict of str to (int, int)
        Parameter name to byte offset and size in the parameter buffer: declared order, natural alignment.
    parameter_bytes : int
    shared : dict of str to int
        Shared array to its offset in the block's shared memory. Dynamic arrays begin behind the static ones.
    static_shared_bytes : int
    local : dict of str to int
        Local array to its offset in a lane's local memory.
    local_bytes : int
        Of each lane.
    module : Module
    order_sensitive : bool
        Whether results may depend on the order of blocks: float atomics, atomics whose result is used, exchanges,
        `printf`, loops that wait for other blocks.
    spins : dict of int to int
        Loops that may wait for other threads (`gpulab.ptx.spins`): rank of the head to the awaited instruction.
    steady : frozenset of int
        Heads of those of them that only a change of memory can end.
    """

    function: Function
    forms: tuple[Form, ...]
    graph: FlowGraph
    parameters: dict[str, tuple[int, int]]
    parameter_bytes: int
    shared: dict[str, int]
    static_shared_bytes: int
    local: dict[str, int]
    local_bytes: int
    module: Module
    order_sensitive: bool
    spins: dict[int, int]
    steady: frozenset[int]

    @property
    def local_fixed_bytes(self) -> int:
        """Of `local_bytes` those that every thread may use; the rest is of the stack, for deep calls and `alloca`."""
        if STACK in self.local:
            return self.local[STACK] + self.function.variables[STACK].size - STACK_BYTES
        return self.local.get(ALLOCA_AREA.name, self.local_bytes)

    @cached_property
    def synthetic(self) -> np.ndarray:
        """Which instructions are not the PTX's own and are not counted, shape (instructions,), bool."""
        return np.array([instruction.synthetic for instruction in self.function.instructions], bool)

    @cached_property
    def reads_workspace(self) -> bool:
        """Whether it asks for the workspace of a cooperative launch, which holds the barrier of the grid."""
        return _reads_special(self.function, "%envreg1", "%envreg2")

    @cached_property
    def passes(self) -> np.ndarray:
        """Which blocks lanes have passed for good, by the block they are in (`gpulab.emulator.analysis.meeting.passes`)."""
        return passes(self.graph)

    @cached_property
    def has_plain_barriers(self) -> bool:
        """Whether no barrier needs more than that all threads wait at it: nothing has to be counted then."""
        return not any(
            its_form.mode != "sync" or len(instruction.operands) > 1 or not is_aligned(instruction)
            for instruction, its_form in zip(self.function.instructions, self.forms, strict=True)
            if its_form.kind == "barrier"
        )

    @cached_property
    def takes_from_heap(self) -> bool:
        """Whether it calls malloc or new."""
        calls = (each.operands[1] for each in self.function.instructions if each.opcode == "call")
        return Symbol("malloc") in calls

    def prepare(self, memory: Memory) -> None:
        """Make the heap if the kernel may take from it: engines look at what memory there is before they run."""
        if self.takes_from_heap:
            memory.heap  # noqa: B018 (it takes its place now)

    @cached_property
    def tables(self) -> Tables:
        """What counters need to know of each instruction."""
        block = np.zeros(len(self.forms), np.int64)
        for each in self.graph.blocks:
            block[each.start : each.stop] = each.rank
        return Tables(
            block,
            np.array([each.guard is not None for each in self.function.instructions], bool),
            np.array([form.access_bytes for form in self.forms], np.int64),
            np.array([(form.space or "").startswith("shared") for form in self.forms], bool),
        )

    @cached_property
    def copies(self) -> list[int]:
        """Indices of the asynchronous copies, which count twice: as a global load and as a store into shared memory."""
        return [index for index, its_form in enumerate(self.forms) if its_form.is_copy]

    def shared_bytes(self, dynamic: int) -> int:
        """Shared memory of a block in bytes: the static part, and `dynamic` bytes behind it."""
        if not dynamic:
            return self.static_shared_bytes
        return _aligned(self.static_shared_bytes, DYNAMIC_SHARED_ALIGN) + dynamic


@dataclass(frozen=True)
class RunOptions:
    """How a launch is run.

    Attributes
    ----------
    count : bool
        Fill the counters; without, they stay zero except for blocks, warps and threads.
    blocks : sequence of int, optional
        Linear numbers of the blocks to run, ascending; all of them if None.
    time_limit_s : float
        Seconds after which the launch ends with a `TimeLimitError`.
    threads : int, optional
        CPU threads that the compiled engine may use.
    touched : Touched, optional
        Maps of touched sectors to go on with; those of this launch alone if None.
    resident_blocks : int, optional
        How many blocks may be in flight at once, as on a GPU that holds so many; no limit if None.
    workspace : int
        Address of the workspace of a cooperative launch; 0 for all others.
    tracing : Tracing, optional
        What to trace besides counting; nothing if None. `Counters.l1_miss_sectors` stays 0 while it is not None.
    """

    count: bool = True
    blocks: Sequence[int] | None = None
    time_limit_s: float = 60.0
    threads: int | None = None
    touched: Touched | None = None
    resident_blocks: int | None = None
    workspace: int = 0
    tracing: Tracing | None = None

    def in_flight(self, program: Program, blocks: int) -> int:
        """How many blocks of a launch of so many can help each other; 1 where a block never waits for another."""
        return min(blocks, self.resident_blocks or blocks) if program.order_sensitive else 1


def load(module: Module, entry: str) -> Program:
    """Prepare a kernel of a module.

    Raises
    ------
    GpulabError
        If the module has no such kernel.
    UnsupportedInstruction
        For the first instruction that the emulator does not have.
    """
    found = module.functions.get(entry)
    if found is None or not found.is_entry:
        raise GpulabError(f"The PTX has no kernel '{entry}'. It has: {', '.join(module.entries) or 'none'}.")
    function = inline_calls(module, entry)
    forms = tuple(form(instruction) for instruction in function.instructions)
    parameters, parameter_bytes = _lay_out(function.parameters)
    check(module, function, forms, parameters)
    shared_variables = _used_shared(module, function)
    static, static_bytes = _lay_out(v for v in shared_variables if not v.extern)
    reserved = _aligned(static_bytes, DYNAMIC_SHARED_ALIGN)
    if _reads_special(function, RESERVED_SHARED):
        static_bytes = reserved + RESERVED_SHARED_BYTES
    dynamic_start = _aligned(static_bytes, DYNAMIC_SHARED_ALIGN)
    local, local_bytes = _lay_out(v for v in function.variables.values() if v.space in ("local", "param"))
    if local_bytes > LOCAL_BYTES:
        raise GpulabError(
            f"A thread of {entry} has {local_bytes:,} bytes of local memory, but at most {LOCAL_BYTES >> 10} KiB are possible "
            f"(PTX line {function.span.line}). Make its local arrays smaller, or keep them in global memory."
        )
    graph = flow(function, forms)
    spins = find_spins(function, forms, graph)
    steady = find_steady(function, forms, graph, spins)
    names = {FRAME, *local}
    forms = tuple(_placed(*pair, names) for pair in zip(function.instructions, forms, strict=True))
    return Program(
        function=function,
        forms=forms,
        graph=graph,
        parameters=parameters,
        parameter_bytes=parameter_bytes,
        shared={name: offset for name, (offset, _) in static.items()}
        | {variable.name: dynamic_start for variable in shared_variables if variable.extern}
        | {RESERVED_SHARED: reserved},
        static_shared_bytes=static_bytes,
        local={name: offset for name, (offset, _) in local.items()},
        local_bytes=local_bytes,
        module=module,
        order_sensitive=any(forms[index].space != "shared" for index in spins.values())
        or _is_order_sensitive(function, forms),
        spins=spins,
        steady=steady,
    )


def _placed(instruction: Instruction, its_form: Form, local: set[str]) -> Form:
    """Call variables that are in memory lie with local memory, but hardware has them in registers: no request."""
    if its_form.space != "param" or not its_form.access_bytes:
        return its_form
    bases = (getattr(operand, "base", None) for operand in instruction.operands if isinstance(operand, Address))
    return replace(its_form, space="call") if any(getattr(base, "name", None) in local for base in bases) else its_form


def _reads_special(function: Function, *names: str) -> bool:
    operands = (operand for instruction in function.instructions for operand in instruction.operands)
    return any(isinstance(each, Special) and each.name in names for each in operands)


def _lay_out(variables: Iterable[Variable]) -> tuple[dict[str, tuple[int, int]], int]:
    """Offset and size of each variable, one after another with natural alignment, and the total size."""
    places: dict[str, tuple[int, int]] = {}
    end = 0
    for variable in variables:
        start = _aligned(end, variable.align)
        places[variable.name] = (start, variable.size)
        end = start + variable.size
    return places, end


def _aligned(offset: int, align: int) -> int:
    return -(-offset // align) * align


# ---- names


def _used_shared(module: Module, function: Function) -> list[Variable]:
    """Shared arrays that the kernel uses, those of the module first, in declared order."""
    operands = [operand for instruction in function.instructions for operand in instruction.operands]
    used = {symbol.name for operand in operands for symbol in symbols_in(operand)}
    candidates = [*module.variables.values(), *function.variables.values()]
    return [variable for variable in candidates if variable.space == "shared" and variable.name in used]


# ---- order of blocks


def _is_order_sensitive(function: Function, forms: Sequence[Form]) -> bool:
    read = {name for pair in zip(function.instructions, forms, strict=True) for name in read_registers(*pair)}
    return any(
        _depends_on_order(instruction, its_form, read)
        for instruction, its_form in zip(function.instructions, forms, strict=True)
    )


def _depends_on_order(instruction: Instruction, its_form: Form, read: set[str]) -> bool:
    if its_form.opcode == "call":
        return instruction.operands[1] in map(Symbol, ("vprintf", "malloc", "free"))
    in_shared = its_form.space == "shared" or its_form.opcode == "mbarrier"
    if its_form.kind not in ("atomic", "reduction") or in_shared:
        return False
    destination = instruction.operands[0]
    result_used = its_form.kind == "atomic" and isinstance(destination, Register) and destination.name in read
    return result_used or its_form.operation in ("exch", "cas") or is_float(its_form.type or "")


# ---- module variables


def place_variables(module: Module, memory: Memory) -> dict[str, int]:
    """Put the module's global and constant variables into memory, with their initial values.

    Returns
    -------
    dict of str to int
        Virtual address by name.

    Raises
    ------
    DeviceError
        If this computer has not as much memory.
    """
    variables = [v for v in module.variables.values() if v.space in ("global", "const") and not v.extern]
    contents = {v.name: _zeros(v) for v in variables}
    symbols = {v.name: memory.adopt(contents[v.name], v.name, v.space == "global", v.space == "const").address
               for v in variables}  # fmt: skip
    functions = function_addresses(module)
    for variable in variables:
        host = contents[variable.name]
        if variable.initial:
            host[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
        for offset, symbol, _ in variable.relocations:
            address = symbols.get(symbol.name, functions.get(symbol.name, 0)) + symbol.offset
            width = variable.size // max(variable.count, 1)
            host[offset : offset + width] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)[:width]
    return symbols


def _zeros(variable: Variable) -> np.ndarray:
    try:
        return np.zeros(variable.size, np.uint8)
    except MemoryError as error:
        raise DeviceError(
            f"Variable '{variable.name}' of {variable.size:,} bytes does not fit into this computer's memory, which stands "
            "in for that of the GPU. Make it smaller."
        ) from error
