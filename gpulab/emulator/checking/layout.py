"""Where the check keeps what it knows: a record of an access, the cells of the shadow, the words of its two structures.

A *record* is one word: who (thread of the block, 10 bits), how (2 bits: plain, volatile, strong, or a store
that changed nothing), which instruction (18 bits) and when (34 bits). Time is a count of synchronizations; it only grows, so what is left of an earlier
block is older than all that counts, and nothing needs to be cleared.

A *cell* of the shadow stands for as many bytes as the smallest access of the kernel to that space has: the record of the
last store, and those of two readers since.
"""

from __future__ import annotations

from gpulab.emulator.layout import BARRIERS, WARP, get
from gpulab.emulator.llvm.ir import Builder, Value, constant

THREAD_BITS, STRENGTH_SHIFT, SITE_SHIFT, TIME_SHIFT = 10, 10, 12, 30
SITES = 1 << (TIME_SHIFT - SITE_SHIFT)
PLAIN, VOLATILE, STRONG, SILENT = range(4)
MARKED = 3  # of a reader: an atomic that another one followed unordered

WRITER, READER, OTHER_READER, CELL_BYTES = 0, 8, 16, 24

# Bits of the `info` word of an access, beside those of `emulator.layout`: strength, and that an atomic reads nothing.
STRENGTH_AT = 16
NO_READ = 1 << 18
# Of a barrier in shared memory: it orders by itself, so that to see it is to see no flag.
NO_FLAG = 1 << 19

_LEDGER = (
    "time", "grid_floor", "running", "segment_start", "segments", "segment_count", "segments_most",
    "entries", "entry_count", "entries_lost", "shadows", "grid_barrier", "grid_arrivals", "grid_blocks",
)  # fmt: skip
LEDGER = {name: index for index, name in enumerate(_LEDGER)}
"""What all blocks in flight share, in 64-bit words."""

_OWN = (
    "ledger", "block_run", "begin", "floor", "observed", "shared_cells", "shared_shift", "global_shift",
    "local_map", "local_map_bytes", "overflows", "overflow_stride", "nowhere", "copies", "copy_sites",
    "origins", "origin_stride", "origin_bytes", "threads",
)  # fmt: skip
OWN = {name: index for index, name in enumerate(_OWN)}
"""What belongs to one block in flight, in 64-bit words; the arrays below follow."""

# Until when the accesses of one warp (column) are before what another one (row) does now; the same gathered at barriers.
WARPS = 32
assert len(OWN) <= WARPS
ARRIVING = WARPS + WARP * WARP
RELEASED = ARRIVING + BARRIERS * WARP
PHASES = RELEASED + BARRIERS * WARP
WARP_PHASES = PHASES + BARRIERS
# The same between the lanes of each warp.
LANES = WARP_PHASES + WARP * BARRIERS
# When each thread last executed a fence.
FENCES = LANES + WARP * WARP * WARP
# Barriers in shared memory, by a few bits of their addresses: what is known to those that arrive, and to those that pass.
MEETINGS = FENCES + WARP * WARP
MEETING_SLOTS = 64
OWN_WORDS = MEETINGS + 2 * MEETING_SLOTS * WARP

# The same for single threads, for lanes arrive at such barriers one by one: rows of a word for each thread of the block, of what
# each warp knows, and for each slot of what is known to those that arrive and to those that pass.
THREADS = WARP * WARP
THREAD_ROWS = WARP + 2 * MEETING_SLOTS

# What is known of the asynchronous copies of one thread: the last groups, and the last waits: for what until when, and when.
COPY_KEPT = 8
GROUPS, WAITS = 0, 1
GROUP_ENDS = 2
WAITED_FOR = GROUP_ENDS + COPY_KEPT
WAITED_AT = WAITED_FOR + COPY_KEPT
COPY_WORDS = WAITED_AT + COPY_KEPT

# The barrier of the grid in the workspace of a cooperative launch: each block adds to it once, behind a barrier of its own.
GRID_BARRIER_AT = 4

# Where an undefined value came from (`shuffled`), in 32 bits: the shuffle's number plus 1, the lane that it read, and whether
# that lane had exited.
ORIGIN_SITE, FROM_LANE_SHIFT, EXITED = (1 << 20) - 1, 20, 1 << 25

# A row of `shadows`, one for each window: host addresses of its cells and of its map of defined bytes, 0 for none.
SHADOW_ROW_BYTES = 16
# A segment: from when on which block ran, and when a thread of it last executed a fence.
SEGMENT_BYTES = 24

# An entry of the table: what, how often, the first example, the threads of the block that was last to do it.
_ENTRY = ("key", "count", "block", "thread", "address", "record", "same_block", "last_run")
ENTRY = {name: index for index, name in enumerate(_ENTRY)}
ENTRY_THREADS = len(ENTRY)
ENTRY_WORDS = 24
ENTRIES = 256

KINDS = {
    "out-of-bounds": 1,
    "misaligned": 2,
    "uninitialized": 3,
    "race between blocks": 4,
    "race in a block": 5,
    "race in a warp": 6,
    "ordered by flags": 7,
    "overflow": 8,
    "same value": 9,
    "given back": 10,
    "between pieces": 11,
    "beyond its array": 12,
    "undefined lane": 13,
}
# What a byte of a map of defined bytes says: that it was stored; and of the heap, that its piece was given back, or that it is
# in none.
STORED, GIVEN_BACK, IN_NO_PIECE = 1, 2, 4
KIND_BITS = 4
KEY_SITE_SHIFT, KEY_OTHER_SHIFT = KIND_BITS, KIND_BITS + 24


def own(b: Builder, context: Value) -> Value:
    """The structure of the block that runs."""
    return get(b, context, "check", "ptr")


def own_place(b: Builder, structure: Value, name: str) -> Value:
    """Pointer to a word of it."""
    return b.offset(structure, 8 * OWN[name])


def own_word(b: Builder, structure: Value, name: str, element: str = "i64") -> Value:
    """A word of it."""
    return b.load(element, own_place(b, structure, name))


def ledger_place(b: Builder, structure: Value, name: str) -> Value:
    """Pointer to a word of the ledger."""
    return b.offset(own_word(b, structure, "ledger", "ptr"), 8 * LEDGER[name])


def ledger_word(b: Builder, structure: Value, name: str, element: str = "i64") -> Value:
    """A word of the ledger."""
    return b.load(element, ledger_place(b, structure, name))


def tick(b: Builder, structure: Value) -> Value:
    """The time now; from here on it is one later."""
    place = ledger_place(b, structure, "time")
    now = b.load("i64", place)
    b.store(b.add(now, 1), place)
    return now


def time_of(b: Builder, record: Value) -> Value:
    """When the access of a record happened."""
    return b.lshr(record, TIME_SHIFT)


def thread_of(b: Builder, record: Value) -> Value:
    """The thread of the block that did it."""
    return b.and_(record, (1 << THREAD_BITS) - 1)


def row(b: Builder, structure: Value, start: int, number: Value) -> Value:
    """Pointer to a row of 32 words of one of the arrays."""
    return b.offset(structure, b.add(b.mul(number, 8 * WARP), 8 * start))


NONE = constant("i64", 0)
