"""Where compiled code finds things: the context of an OS thread and the frame of a warp.

The context is an array of 64-bit words that Python fills before a run and reads after it; each OS thread that runs blocks
has its own, one for each block in flight. The frame of a warp holds what must outlive a return at a barrier: where to resume,
which lanes wait at which basic block, and the registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.ptx.opcodes import CARRY

if TYPE_CHECKING:
    from gpulab.emulator.llvm.ir import Builder, Value
    from gpulab.emulator.program import Program

BARRIERS = 16
WARP = 32

_CONTEXT = (
    # The launch
    "windows", "last_window", "params", "param_bytes", "symbols", "tids",
    "ntid.x", "ntid.y", "ntid.z", "nctaid.x", "nctaid.y", "nctaid.z",
    "threads", "warps", "shared_bytes", "local_bytes", "local_fixed", "local_used", "print", "workspace",
    # Shared by the OS threads of a launch: pointers
    "stop", "next", "fault_limit", "blocks", "block_count", "turns", "turns_end",
    # This OS thread's own memory: pointers
    "shared", "local", "frames", "frame_bytes", "block_counters", "memory_counters", "branch_counters",
    "l1", "caches", "memos",
    # What is traced (`native.trace`): its state, whether the block is a near one, below which hash a line is looked at,
    # requests to lines that were recorded, when the request comes, what tells memos of stores from those of other blocks
    "trace", "trace_near", "trace_limit", "traced", "time", "store_version",
    # Code
    "fast", "general",
    # For the general variant, by basic block: its first instruction and the fault of lanes stuck there; `meeting.passes`
    "block_table", "passes", "flow_blocks",
    # What the check knows (`checking`); 0 in all other runs
    "check",
    # State
    "in_block", "warp", "block", "ctaid.x", "ctaid.y", "ctaid.z", "epoch",
    "l1_version", "l1_version.1", "l1_version.2", "l1_version.3",
    "warp_local", "blocks_run", "moved", "progress", "clock", "turn", "begun", "dynamic_shared",
    # The fault
    "fault_kind", "fault_instruction", "fault_lane", "fault_address", "fault_block", "fault_warp", "fault_extra",
)  # fmt: skip
SLOTS = {name: index for index, name in enumerate(_CONTEXT)}
# Four words for each barrier: threads arrived, of them with a true predicate, what counts towards the number of threads that
# it waits for, and that number plus 1 (1 without a number, 0 if nobody has arrived).
BARRIER_WORDS = ("threads", "holding", "credit", "expected")
BARRIER_BYTES = 8 * len(BARRIER_WORDS)
ARRIVED = len(SLOTS)
CONTEXT_WORDS = ARRIVED + len(BARRIER_WORDS) * BARRIERS

# Words of 8 bytes at the start of a frame, zero when a warp begins. Then, for the general variant, the block at which each lane waits and the lanes
# that it waits for; then, for the fast one, one i32 for each basic block (waiting lanes); then registers.
_FRAME = (
    "resume", "status", "barrier", "active", "mode", "mask", "bail", "index", "budget", "arrived", "opened", "threads",
    "holding", "last_yield", "executed", "steady",
    # Masks of the general variant
    "ready", "blocked", "parked", "granted", "awaited", "recheck",
)  # fmt: skip
FRAME = {name: index for index, name in enumerate(_FRAME)}
REGISTER_BYTES = WARP * 8
FRAME_AT = 192
FRAME_WANTED = FRAME_AT + 4 * WARP
FRAME_HEADER_BYTES = FRAME_WANTED + 4 * WARP

# Return values of a warp and of the driver (`YIELD`: no warp of the block got further)
DONE, WAIT, FAULT, BAIL, STOP, YIELD = range(6)
# Resume point of the general variant that runs the lanes that are ready; 0 is the start of the kernel
DISPATCH = -1
# Status of a warp
READY, WAITING, FINISHED = range(3)

FAULT_KINDS = {
    1: "out-of-bounds",
    2: "misaligned",
    3: "barrier",
    4: "deadlock",
    5: "warp-sync",
    6: "trap",
    7: "call",
    8: "barrier/count",
    9: "barrier/mixed",
    10: "barrier/two",
    11: "barrier/mbarrier",
    12: "warp-sync/aligned",
}

FAULT_CODES = {kind: code for code, kind in FAULT_KINDS.items()}

# Bits of the `info` word of a memory access: size in bytes, flags, elements per lane, instruction index above.
STORE = 1 << 8
ATOMIC = 1 << 9
SHARED_SHIFT = 10
SHARED = 1 << SHARED_SHIFT
VECTOR_SHIFT = 12  # two bits: 0, 1, 2 for one, two, four elements per lane
INSTRUCTION_SHIFT = 32


def slot(b: Builder, context: Value, name: str) -> Value:
    """Pointer to a word of the context."""
    return b.offset(context, 8 * SLOTS[name])


def get(b: Builder, context: Value, name: str, element: str = "i64") -> Value:
    """Read a word of the context; narrower types take its low bits."""
    return b.load(element, slot(b, context, name))


def put(b: Builder, context: Value, name: str, value: Value) -> None:
    """Write a word of the context."""
    b.store(b.resize(value, "i64") if value.type != "ptr" else value, slot(b, context, name))


def frame_slot(b: Builder, frame: Value, name: str) -> Value:
    """Pointer to a word of a frame's header."""
    return b.offset(frame, 8 * FRAME[name])


def frame_get(b: Builder, frame: Value, name: str, element: str = "i32") -> Value:
    """Read a word of a frame's header."""
    return b.load(element, frame_slot(b, frame, name))


def frame_put(b: Builder, frame: Value, name: str, value: Value) -> None:
    """Write a word of a frame's header."""
    b.store(b.resize(value, "i64"), frame_slot(b, frame, name))


def register_offset(blocks: int, slot: int) -> int:
    """Where a frame keeps a register, in bytes."""
    masks = -(-4 * blocks // 64) * 64
    return FRAME_HEADER_BYTES + masks + slot * REGISTER_BYTES


def register_slots(program: Program) -> tuple[dict[str, int], int]:
    """Where a frame keeps each register, in units of `REGISTER_BYTES`, and how many units that makes."""
    registers = {**program.function.registers, CARRY: "pred"}
    places, end = {}, 0
    for name, declared in registers.items():
        places[name] = end
        end += 2 if declared == "b128" else 1
    return places, end
