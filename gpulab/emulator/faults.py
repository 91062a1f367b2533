"""What a kernel did wrong, said to a learner: the faults of both engines are worded here."""

from __future__ import annotations

import re

from gpulab.emulator.memory import CONSTANT_MARK, FIRST_WINDOW, WINDOW_BITS, WINDOWS, Memory
from gpulab.emulator.program import Program
from gpulab.errors import Fault, KernelFault, TimeLimitError, shown_file
from gpulab.launch import Dim3, LaunchConfig

_ADVICE = {
    "barrier": (
        "A barrier was reached by some threads of a warp while others of it were elsewhere. Every thread of the block "
        "must reach the same __syncthreads() / cuda.syncthreads(): move it out of the if, or out of the loop that some "
        "leave early."
    ),
    "barrier/count": (
        "A barrier is for a number of threads that is a multiple of 32, at least 32 and at most the threads of the block "
        "(rounded up to whole warps). Pass such a number."
    ),
    "barrier/mixed": (
        "Threads arrive at one barrier with different numbers of threads to wait for. Give a barrier one number, or "
        "let each group of warps use a barrier of its own (1 to 15)."
    ),
    "barrier/two": (
        "Threads of one warp wait at two different barriers at once. Let all threads of a warp use the same barrier."
    ),
    "warp-sync": (
        "A warp operation named lanes in its mask that do not take part in it. The mask must hold exactly the lanes "
        "that reach the operation together, the calling lane among them: take it from __ballot_sync before the branch."
    ),
    "barrier/mbarrier": (
        "A barrier in shared memory (mbarrier, cuda::barrier) was used before it was initialized, or a phase of it got more "
        "arrivals than it expects. Let one thread initialize it, with the number of threads that arrive in each phase, and "
        "let the block pass __syncthreads() before anybody uses it."
    ),
    "warp-sync/aligned": (
        "All 32 lanes of a warp must execute this instruction together, but some were elsewhere, had exited, or were never "
        "launched. Move it out of the branch, and launch blocks of a multiple of 32 threads."
    ),
    "trap": "The kernel executed a trap.",
}


def make_fault(
    program: Program,
    launch: LaunchConfig,
    kind: str,
    instruction: int,
    block: int,
    thread: int | None,
    message: str = "",
) -> KernelFault:
    """Make the error for something that went wrong.

    Parameters
    ----------
    kind : str
        One of the fault kinds, or ``trap`` or ``assert``; what follows a slash tells cases apart.
    instruction : int
        Index of the instruction.
    block, thread : int
        Linear numbers; thread is None where no single thread is to blame.
    message : str
        What happened; the standing advice of the kind by default.
    """
    source = program.function.instructions[instruction]
    location = source.location and source.location.own
    at_block = position(block, launch.grid)
    at_thread = None if thread is None else position(thread, launch.block)
    where = place(program, instruction)
    who = f"block {at_block}" if at_thread is None else f"block {at_block}, thread {at_thread}"
    message = message or _ADVICE[kind]
    kind = kind.partition("/")[0]
    return KernelFault(
        Fault(
            kind=kind,
            message=f"{kind} in kernel {kernel_name(program)} at {where} ({who}): {message}",
            file=None if location is None else location.file,
            line=None if location is None else location.line,
            block=at_block,
            thread=at_thread,
            ptx_line=source.span.line,
        )
    )


def explained(kind: str, detail: str) -> str:
    """The standing advice of a kind, with a detail behind its first sentence."""
    first, _, rest = _ADVICE[kind].partition(". ")
    return f"{first}: {detail}. {rest}"


def kernel_name(program: Program) -> str:
    """The kernel's name as its author wrote it: of a mangled name (``_Z5scalePf``, ``_ZN1a5scaleE…``) the last part."""
    name = program.function.name
    parts, at = [], 3 if name.startswith("_ZN") else 2
    while name.startswith("_Z") and (digits := re.match(r"\d+", name[at:])):
        at += digits.end()
        parts.append(name[at : at + int(digits[0])])
        at += int(digits[0])
    return parts[-1] if parts else name


def time_limit_error(
    program: Program, launch: LaunchConfig, limit_s: float, instruction: int, block: int, warp: int, others: str = ""
) -> TimeLimitError:
    """Make the error for a launch that ran longer than `limit_s` seconds.

    `instruction` is where one of its warps was then, -1 if that is not known; `others` says where others waited.
    """
    where = ""
    if instruction >= 0:
        where = f" at {place(program, instruction)} (block {position(block, launch.grid)}, warp {warp})"
    waiting = f" Meanwhile waited: {others}." if others else ""
    return TimeLimitError(
        f"The kernel {kernel_name(program)} did not end within {limit_s:g} s and was stopped{where}.{waiting} Look for a loop "
        f"that never ends; if it only needs longer, raise the time limit or launch fewer blocks."
    )


def place(program: Program, instruction: int) -> str:
    """Where an instruction stands in the source."""
    source = program.function.instructions[instruction]
    if source.location is None:
        return f"PTX line {source.span.line}"
    location = source.location.own
    return f"{shown_file(location.file)}, line {location.line}"


def memory_fault(
    program: Program,
    launch: LaunchConfig,
    memory: Memory,
    kind: str,
    instruction: int,
    block: int,
    thread: int,
    address: int,
) -> KernelFault:
    """Make the error for an access out of bounds or misaligned; the address is that of the first thread that did it."""
    message = access_message(program, launch, memory, kind, instruction, address)
    return make_fault(program, launch, kind, instruction, block, thread, message)


def access_message(
    program: Program, launch: LaunchConfig, memory: Memory, kind: str, instruction: int, address: int
) -> str:
    """What is wrong with an access that is out of bounds or misaligned."""
    form = program.forms[instruction]
    size, access, space = form.access_bytes, form.kind, form.space or ""
    if form.is_copy and _is_in_shared(program, launch, kind, size, address):
        access, space = "store", "shared"
    verb = {"store": "stores", "load": "loads"}.get(access, "updates")
    if kind == "misaligned":
        return (
            f"The thread {verb} {size} bytes at address {address:#x}, which is not a multiple of {size}. "
            f"Vector types need pointers aligned to their size."
        )
    return f"The thread {verb} {size} bytes {_object(program, memory, space, address, access)}"


def _is_in_shared(program: Program, launch: LaunchConfig, kind: str, size: int, address: int) -> bool:
    """Whether it is the store of an asynchronous copy that failed: its address is no global one, but an offset."""
    if FIRST_WINDOW <= address >> WINDOW_BITS < 1 << 63 - WINDOW_BITS:
        return False
    # The load through a null pointer fails too, with an address that would be inside.
    return kind == "misaligned" or address + size > program.shared_bytes(launch.dynamic_shared_bytes)


def _object(program: Program, memory: Memory, space: str, address: int, kind: str) -> str:
    """Say where an address lies, relative to the object that was meant."""
    # A negative index leads out of a window, to shortly before it.
    window = address + (1 << WINDOW_BITS - 1) >> WINDOW_BITS << WINDOW_BITS
    in_window = next((name for name, start in WINDOWS.items() if start == window), None)
    if space in ("shared", "local", "param", "call") or (space == "generic" and in_window):
        offset = signed(address) if space != "generic" else address - window
        name = {"shared": "the block's shared memory", "param": "the kernel's parameters"}.get(
            in_window or space, "its local memory"
        )
        where = "before its beginning" if offset < 0 else "beyond its end"
        return f"at byte {offset} of {name}, {where}. Check the index against the array's size."
    found = memory.find(address)
    if found is None:
        return f"at address {address:#x}, where no array is. {_no_array(address)}"
    offset, element = address - found.address, max(found.dtype.itemsize, 1)
    if kind != "load" and not found.writable and 0 <= offset < found.size:
        return f"into {found.name}, {_READ_ONLY[bool(address & CONSTANT_MARK)]}"
    where = (
        f"at element {offset // element} of {found.name}, which has {found.size // element} ({found.dtype}, shape "
        f"{found.shape})"
    )
    if offset < 0:
        return f"{where}. The index is negative: check how it is computed, and leave out the elements before the first one."
    return f"{where}.{GUARD}"


GUARD = " Guard the access: if i < n."
_READ_ONLY = {
    False: "which is read-only. The index is right: pass a writable array, or a copy of this one.",
    True: "which is constant memory: kernels only read it. Let the host fill it, or use global memory.",
}


def _no_array(address: int) -> str:
    """What kind of wrong pointer it is."""
    if address >> WINDOW_BITS == 0:
        return "It is a null pointer, or an index into one. Set the pointer first; malloc gives null when the heap is full."
    return (
        "The pointer leads to no array of this launch: it was never set, or is an address of the host. No guard of the index "
        "helps: pass the array itself to the kernel."
    )


def signed(address: int) -> int:
    """An address of a small space as a distance: kernels compute it in 32 or in 64 bits, and it may be negative."""
    for bits in (32, 64):
        if 1 << (bits - 1) <= address < 1 << bits:
            return address - (1 << bits)
    return address


def position(linear: int, dims: Dim3) -> Dim3:
    """Linear number to (x, y, z), x fastest."""
    return linear % dims[0], linear // dims[0] % dims[1], linear // (dims[0] * dims[1])
