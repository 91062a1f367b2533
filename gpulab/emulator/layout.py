"""Where compiled code finds things: the context of an OS thread and the frame of a warp.

The context is an array of 64-bit words that Python fills before a run and reads after it; each OS thread that runs blocks
has its own. The frame of a warp holds what must outlive a return at a barrier: where to resume, which lanes wait at which
basic block, and the registers.
"""

from __future__ import annotations

from gpulab.emulator.ir import Builder, Value

BARRIERS = 16
WARP = 32

_CONTEXT = (
    # The launch
    "windows", "last_window", "params", "param_bytes", "symbols", "tids",
    "ntid.x", "ntid.y", "ntid.z", "nctaid.x", "nctaid.y", "nctaid.z",
    "threads", "warps", "shared_bytes", "local_bytes", "local_fixed", "local_used", "print",
    # Shared by the OS threads of a launch: pointers
    "stop", "next", "fault_limit", "blocks", "block_count", "turns", "turns_end",
    # This OS thread's own memory: pointers
    "shared", "local", "frames", "frame_bytes", "block_counters", "memory_counters", "branch_counters",
    "l1", "caches", "memos",
    # Code
    "fast", "general",
    # What the check knows (`checking`); 0 in all other runs
    "check",
    # State
    "in_block", "warp", "block", "ctaid.x", "ctaid.y", "ctaid.z", "epoch",
    "l1_version", "l1_version.1", "l1_version.2", "l1_version.3",
    "warp_local", "blocks_run", "clock", "turn", "frame_clear", "dynamic_shared",
    # The fault
    "fault_kind", "fault_instruction", "fault_lane", "fault_address", "fault_block", "fault_warp", "fault_extra",
)  # fmt: skip
SLOTS = {name: index for index, name in enumerate(_CONTEXT)}
ARRIVED = len(SLOTS)  # two words for each barrier: threads arrived, of them with a true predicate
RELEASED = ARRIVED + 2 * BARRIERS  # the same, of the last release
CONTEXT_WORDS = RELEASED + 2 * BARRIERS

# Words of 8 bytes at the start of a frame; then one i32 for each basic block (waiting lanes), then registers.
FRAME = {
    name: index for index, name in enumerate(("resume", "status", "barrier", "active", "mode", "mask", "bail", "index"))
}
REGISTER_BYTES = WARP * 8
FRAME_HEADER_BYTES = 64

# Return values of a warp and of the driver
DONE, WAIT, FAULT, BAIL, STOP = range(5)
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
}

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
