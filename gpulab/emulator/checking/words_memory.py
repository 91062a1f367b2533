"""The words for accesses that go wrong by themselves: where they should not be, or to what holds nothing yet."""

from __future__ import annotations

from gpulab.emulator.checking.findings import Finding
from gpulab.emulator.checking.places import Places
from gpulab.emulator.faults import GUARD, access_message, position, signed
from gpulab.emulator.memory import SHARED_WINDOW, Allocation


def kind_of(finding: Finding, places: Places) -> str:
    """The kind that the report gives it."""
    if finding.kind in ("overflow", "between pieces", "beyond its array"):
        return "out-of-bounds"
    if finding.kind == "given back":
        return "use-after-free"
    if finding.kind == "out-of-bounds" and _freed(finding, places) is not None:
        return "use-after-free"
    return finding.kind


def _freed(finding: Finding, places: Places) -> Allocation | None:
    """The array that was at an address before it was freed."""
    if places.space(finding.site, finding.address) not in ("global", "const"):
        return None
    return places.memory.freed_at(finding.address)


def access(finding: Finding, places: Places, overflow: Finding | None) -> str:
    """An access out of bounds, misaligned, or to memory that was freed."""
    freed = _freed(finding, places)
    if freed is not None:
        return (
            f"The kernel {places.verb(finding.site)[:-1]}s memory of {freed.name} ({freed.size:,} bytes), which was freed: "
            f"its device array was deleted, or nothing referred to it any more. Keep the array (a variable, a list) as "
            f"long as kernels use its address."
        )
    parts = [_beyond_its_array(finding, places) or _beyond_all(finding, places)]
    if overflow is not None:
        parts.append(_why_overflow(overflow, places, "The cause"))
    return " ".join(parts)


def _beyond_all(finding: Finding, places: Places) -> str:
    """An access misaligned, or outside of all memory of its space."""
    message = access_message(places.program, places.launch, places.memory, finding.kind, finding.site, finding.address)
    guard = _guard(finding, places) if finding.kind == "out-of-bounds" else None
    return message if guard is None else f"{message.removesuffix(GUARD)} {guard}"


def _beyond_its_array(finding: Finding, places: Places) -> str | None:
    """An access outside of the shared array that it is meant for."""
    extent = places.extents.get(finding.site)
    form = places.program.forms[finding.site]
    if finding.kind == "misaligned" or extent is None:
        return None
    if form.is_copy and places.space(finding.site, finding.address) != "shared":
        return None
    size, room = form.access_bytes, extent.size
    if room is None:
        room = places.program.shared_bytes(places.launch.dynamic_shared_bytes) - extent.start
    generic = (form.space or "generic") == "generic" and not form.is_copy
    at = (finding.address - SHARED_WINDOW if generic else signed(finding.address)) - extent.start
    where = f"element {at // size}" if at % size == 0 else f"byte {at}"
    message = (
        f"The thread {places.verb(finding.site, finding.address)} {where} of shared array {places.shared_name(extent.name)}, "
        f"which has {_elements(room, size)}"
    )
    if finding.kind == "beyond its array":
        other = places.element(finding.site, finding.address).removeprefix("shared array ")
        message += f": it is in fact {other}"
    return f"{message}. Check the index against the array's size, as it was declared or given to the launch."


def _elements(room: int, size: int) -> str:
    count = room // size
    return f"{count:,} of {size} byte{'s' * (size > 1)}" if room % size == 0 else f"{room:,} bytes"


def _guard(finding: Finding, places: Places) -> str | None:
    """What to say if threads beyond the end of an array each access the element of their own number."""
    found = places.memory.find(finding.address)
    if found is None or places.space(finding.site, finding.address) != "global":
        return None
    element = (finding.address - found.address) // max(found.dtype.itemsize, 1)
    size = found.size // max(found.dtype.itemsize, 1)
    launch = places.launch
    block, thread = position(finding.block, launch.grid), position(finding.thread, launch.block)
    x, y = (block[axis] * launch.block[axis] + thread[axis] for axis in (0, 1))
    threads = launch.blocks * launch.threads_per_block
    if element >= size and element in (x, y * launch.grid[0] * launch.block[0] + x) and threads > size:
        return (
            f"The launch has {threads:,} threads, but the array has only {size:,} elements: the threads beyond its end "
            f"must do nothing. Add a bounds guard around the access: if i < n."
        )
    return None


def undefined(finding: Finding, places: Places, language: str) -> str:
    """A load of what was never stored."""
    space = places.space(finding.site, finding.address)
    where = places.element(finding.site, finding.address)
    done = {"atomic": "updates", "reduction": "updates"}.get(places.program.forms[finding.site].kind, "reads")
    barrier = {"numba": "cuda.syncthreads()", "cuda": "__syncthreads()"}.get(language, "a barrier")
    heap = places.memory.find(finding.address) if space == "global" and places.program.takes_from_heap else None
    if heap is not None and heap is places.memory.heap.allocation:
        return (
            f"The thread {done} {where}, in a piece that nothing was stored to since malloc or new gave it. Such memory holds "
            f"anything: store first."
        )
    remedy = {
        "shared": f"Shared memory holds anything when a block begins: store to it first, then {barrier}, then read.",
        "local": "Give the array's elements values before they are read.",
    }.get(space, "A new device array holds anything: fill it first (cuda.to_device of zeros), or store before reading.")
    return f"The thread {done} {where}, which nothing was stored to before. {remedy}"


def piece(finding: Finding, places: Places) -> str:
    """An access to memory of the heap that is in no piece of it."""
    access = f"The thread {places.verb(finding.site)} {places.element(finding.site, finding.address)}"
    if finding.kind == "given back":
        return f"{access}, in a piece that was given back. Do not use a pointer after free or delete."
    return (
        f"{access}, which is in no piece that malloc or new gave: the index runs beyond its piece, or before it. Check the index "
        f"against the size that was asked for."
    )


def overflow(finding: Finding, places: Places) -> str:
    """An index that wrapped around, though it hit something."""
    return _why_overflow(finding, places, f"The address that the thread {places.verb(finding.site)[:-1]}s is wrong") + (
        " It lies in some array by chance."
    )


def _why_overflow(finding: Finding, places: Places, begin: str) -> str:
    where = places.where(finding.other, beside=finding.site)
    return (
        f"{begin}: integer overflow in the index. The arithmetic at {where} does not fit into 32 bits and wraps around. "
        f"Compute it in 64 bits: (size_t)row * width + column in CUDA C++, np.int64(row) * width + column in Python."
    )
