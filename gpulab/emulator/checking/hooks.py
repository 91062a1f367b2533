"""What the lowering of a kernel tells the check, in its variant of the code; in all others these functions emit nothing."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from gpulab.emulator import layout
from gpulab.emulator.checking import shuffled
from gpulab.emulator.checking.arithmetic import Indices, indices
from gpulab.emulator.checking.extents import Extent, extents
from gpulab.emulator.checking.layout import NO_FLAG, NO_READ, STRENGTH_AT, own, own_word
from gpulab.emulator.checking.strength import is_barrier_in_memory, is_fence, strengths
from gpulab.emulator.llvm.ir import Value, bits_of, constant
from gpulab.emulator.memory import SHARED_WINDOW
from gpulab.ptx.syntax import Immediate

if TYPE_CHECKING:
    from gpulab.emulator.lower.access import Access
    from gpulab.emulator.lower.values import State
    from gpulab.emulator.program import Program

LARGEST_ACCESS_BYTES = 16
# Where shared memory begins, as the addresses of a space have it.
_SHARED = {"shared": 0, "generic": SHARED_WINDOW}


class Facts:
    """What the check knows of a kernel before it runs; kept by the lowering state."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @cached_property
    def indices(self) -> Indices:
        """The arithmetic behind addresses."""
        return indices(self._program)

    @cached_property
    def extents(self) -> dict[int, Extent]:
        """The shared array that each access is meant for, where that can be told."""
        return extents(self._program)

    @cached_property
    def followed(self) -> dict[str, int]:
        """The registers that may hold what a shuffle got from a lane that takes no part."""
        return shuffled.followed(self._program)

    @cached_property
    def strengths(self) -> tuple[int, ...]:
        """The strength of each access."""
        return strengths(self._program)


def _facts(state: State) -> Facts:
    if state.facts is None:
        state.facts = Facts(state.program)
    return state.facts


def begin(state: State) -> None:
    """A warp begins; the first one of a block begins the block."""
    if state.check:
        state.b.call("check_begin", None, state.context)


def before(state: State) -> None:
    """An instruction is about to be executed by the lanes that are on."""
    if not state.check:
        return
    if is_fence(state.program, state.index):
        state.b.call("check_fence", None, state.context, _warp(state), state.on())
    if state.form.opcode == "cp" and not state.form.is_copy and state.program.copies:
        _follow_copies(state)
    if state.index in _facts(state).indices.arithmetic:
        _watch_overflow(state)
    if _facts(state).followed:
        shuffled.before(state, _facts(state).followed)


def branch(state: State) -> None:
    """A block ends in a branch, a return or a jump by table."""
    if state.check and _facts(state).followed:
        shuffled.branch(state, _facts(state).followed)


def shuffle(state: State, sources: Value, mask: Value) -> None:
    """A shuffle of the lanes of a mask is about to write what each lane gets from the lane that `sources` says."""
    if state.check:
        shuffled.shuffle(state, _facts(state).followed, sources, mask)


def _follow_copies(state: State) -> None:
    """Copies are grouped, or waited for; what is told to a barrier in memory is done for those that pass it."""
    b, mode, on = state.b, state.form.mode, state.on()
    if mode == "commit_group":
        b.call("check_group", None, state.context, _warp(state), on)
        return
    pending = -1
    if mode == "wait_group":
        (given,) = state.instruction.operands
        assert isinstance(given, Immediate)
        pending = int(given.value)
    b.call("check_copied", None, state.context, _warp(state), on, constant("i64", pending))


def meet(state: State, lane: Value, completes: Value) -> None:
    """A lane arrives at a barrier in memory."""
    if state.check:
        b = state.b
        flag = b.cast("zext", completes, "i32")
        b.call("check_meet", None, state.context, _warp(state), lane, _address(state, lane), flag)


def met(state: State, lane: Value, complete: Value) -> None:
    """A lane sees whether a phase of a barrier in memory is complete."""
    if state.check:
        with state.b.if_(complete):
            state.b.call("check_met", None, state.context, _warp(state), _address(state, lane))


def _address(state: State, lane: Value) -> Value:
    return state.b.load("i64", state.b.offset(state.buffers["addresses"], state.b.mul(lane, 8)))


def access(state: State, space: str, what: Access, stored: list[Value] | None) -> None:
    """Lanes access memory at the addresses in the state's buffer; their host addresses go into the other one."""
    b, facts = state.b, _facts(state)
    flags = facts.strengths[state.index] << STRENGTH_AT
    if state.form.operation == "exch" or (state.form.opcode, state.form.mode) == ("mbarrier", "init"):
        flags |= NO_READ
    if is_barrier_in_memory(state.form):
        flags |= NO_FLAG
    info = b.or_(what.info(state.index), flags)
    _report_overflows(state, what.on)
    values = constant("ptr", 0)
    step = bits_of(what.element) // 8
    if stored is not None:
        values = b.alloca("i8", layout.WARP, LARGEST_ACCESS_BYTES)
        for number, value in enumerate(stored):
            b.store(b.widen(value), b.offset(values, number * layout.WARP * step))
    places = state.buffers["addresses"], state.buffers["hosts"]
    beyond = _beyond_its_array(state, space, what)
    inside = b.and_(what.on, b.not_(beyond))
    b.call(f"check_{space}", None, state.context, *places, values, constant("i64", step), inside, info)
    if space in _SHARED:
        b.call("check_left_out", None, state.context, state.buffers["hosts"], beyond)


def _beyond_its_array(state: State, space: str, what: Access) -> Value:
    """Lanes whose address is one of shared memory, but not in the array whose name it was computed from."""
    b, extent = state.b, _facts(state).extents.get(state.index)
    if extent is None or space not in _SHARED:
        return constant("i32", 0)
    room = -1 if extent.size is None else extent.size
    places = (constant("i64", each) for each in (_SHARED[space], extent.start, room))
    info = what.info(state.index)
    return b.call("check_extent", "i32", state.context, state.buffers["addresses"], what.on, info, *places)


def arrive(state: State, barrier: Value) -> None:
    """A warp arrives at a barrier."""
    if state.check:
        number = state.b.resize(barrier, "i64")
        state.b.call("check_arrive", None, state.context, _warp(state), number)


def leave(state: State) -> None:
    """A warp goes on behind the barrier that its frame names."""
    if state.check:
        number = layout.frame_get(state.b, state.frame, "barrier", "i64")
        state.b.call("check_leave", None, state.context, _warp(state), number)


def warp_sync(state: State, mask: Value, live: Value) -> None:
    """The lanes of a mask, a word or one for each lane, have waited for each other."""
    if not state.check:
        return
    b = state.b
    if mask.lanes == 1:
        b.call("check_warp_sync", None, state.context, _warp(state), b.and_(mask, live), live)
        return
    kept, left = b.variable(mask), b.variable(state.on())
    with b.loop() as done:
        now = b.load("i32", left)
        b.go_if(b.is_("eq", now, 0), done)
        lane = b.resize(b.count_trailing_zeros(now), "i64")
        group = b.and_(b.load("i32", b.offset(kept, b.mul(lane, 4))), live)
        b.call("check_warp_sync", None, state.context, _warp(state), group, live)
        rest = b.and_(now, b.not_(group))
        b.store(b.and_(rest, b.sub(now, 1)), left)


def _warp(state: State) -> Value:
    return layout.frame_get(state.b, state.frame, "index", "i64")


# ---- integer overflow


def _overflow_place(state: State, number: int) -> Value:
    """Where the lanes of the warp are kept whose last result of this arithmetic wrapped around."""
    b, structure = state.b, own(state.b, state.context)
    start = b.mul(_warp(state), own_word(b, structure, "overflow_stride"))
    return b.offset(b.offset(own_word(b, structure, "overflows", "ptr"), start), 4 * number)


def _watch_overflow(state: State) -> None:
    b, what = state.b, _facts(state).indices.arithmetic[state.index]
    wrapped = _wrapped(state, signed=True)
    if not what.signed:
        wrapped = b.and_(wrapped, _wrapped(state, signed=False))
    on, place = state.on(), _overflow_place(state, what.number)
    kept = b.and_(b.load("i32", place), b.not_(on))
    b.store(b.or_(kept, b.and_(b.mask_word(wrapped), on)), place)


def _wrapped(state: State, signed: bool) -> Value:
    """Whether the result does not fit into 32 bits, all operands taken as signed or as unsigned."""
    b, form = state.b, state.form
    operands = state.instruction.operands[1:]
    if form.opcode == "shl":
        assert isinstance(operands[1], Immediate)
        result = b.shl(b.resize(state.value(operands[0], "u32"), "i64", signed), int(operands[1].value))
    else:
        first, second, *rest = (b.resize(state.value(each, "u32"), "i64", signed) for each in operands)
        result = b.binary({"add": "add", "sub": "sub"}.get(form.opcode, "mul"), first, second)
        if rest:
            result = b.add(result, rest[0])
    return b.compare("ne", b.resize(b.resize(result, "i32"), "i64", signed), result)


def _report_overflows(state: State, on: Value) -> None:
    b, found = state.b, _facts(state).indices
    for arithmetic in found.behind.get(state.index, ()):
        place = _overflow_place(state, found.arithmetic[arithmetic].number)
        lanes = b.and_(b.load("i32", place), on)
        with b.if_(b.is_("ne", lanes, 0)):
            sites = constant("i64", state.index), constant("i64", arithmetic)
            b.call("check_overflow", None, state.context, lanes, *sites)
