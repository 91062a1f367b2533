"""Matrix products of a warp, and matrices between registers and memory; `reference.matrix` says what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gpulab.emulator import layout
from gpulab.emulator.llvm.ir import Value, constant, constants
from gpulab.emulator.lower.access import Access, copy_in, copy_out, resolve
from gpulab.emulator.lower.control import fault_if
from gpulab.emulator.lower.count import count_affine_request, count_request
from gpulab.emulator.lower.table import lowers
from gpulab.emulator.lower.values import State
from gpulab.emulator.native.library import product_name
from gpulab.ptx.matrix import ELEMENT_BITS, GROUPS, MEMBERS, Fragment, Slot
from gpulab.ptx.opcodes import Role
from gpulab.ptx.syntax import Group, Operand

_ROW_BYTES = 16
_MATRIX_BYTES = 128
_MOST_MATRICES = 4
_TRANSPOSED = [8 * column + row for row in range(8) for column in range(8)]


@contextmanager
def whole_warp(state: State) -> Iterator[None]:
    """Code of an ``.aligned`` instruction: it faults if only some lanes are on, and is skipped if none is."""
    b, on = state.b, state.on()
    if state.guard is None:
        fault_if(state, b.is_("ne", on, -1), "warp-sync/aligned", on)
        yield
        return
    with b.if_(b.is_("ne", on, 0)):
        fault_if(state, b.is_("ne", on, -1), "warp-sync/aligned", on)
        yield


# ---- registers


def _registers(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Group) else (operand,)


def _element(role: Role) -> str:
    return "i64" if role.type == "b64" else "i32"


def _bytes(role: Role) -> int:
    return layout.WARP * (8 if role.type == "b64" else 4)


def _space_for(state: State, role: Role) -> Value:
    return state.b.alloca(_element(role), layout.WARP, max(role.count, _MOST_MATRICES))


def _zeros(state: State, role: Role) -> Value:
    b, place = state.b, _space_for(state, role)
    for number in range(role.count):
        b.store(constant(_element(role), 0, layout.WARP), b.offset(place, number * _bytes(role)))
    return place


def _laid_down(state: State, operand: Operand, role: Role) -> Value:
    """The registers of a fragment in memory, one after the other."""
    b, place = state.b, _space_for(state, role)
    for number, register in enumerate(_registers(operand)):
        b.store(b.widen(state.value(register, role.type)), b.offset(place, number * _bytes(role)))
    return place


def _taken_up(state: State, operand: Operand, role: Role, place: Value) -> None:
    """Write a fragment's registers from memory."""
    b = state.b
    for number, register in enumerate(_registers(operand)):
        state.write(register, b.load(_element(role), b.offset(place, number * _bytes(role)), layout.WARP), role.type)


# ---- products


@lowers("mma")
def multiply(state: State) -> None:
    operands, roles = state.instruction.operands, state.form.roles
    with whole_warp(state):
        sources = [_laid_down(state, *pair) for pair in zip(operands[1:], roles[1:], strict=True)]
        result = _space_for(state, roles[0])
        state.b.call(product_name(state.form), None, *sources, result)
        _taken_up(state, operands[0], roles[0], result)


@lowers("movmatrix")
def transpose(state: State) -> None:
    b = state.b
    destination, source = state.instruction.operands
    with whole_warp(state):
        halves = b.assign("i16", 64, f"bitcast {b.widen(state.value(source, 'b32')).ir} to <64 x i16>")
        turned = b.shuffle(halves, halves, _TRANSPOSED)
        state.write(destination, b.assign("i32", 32, f"bitcast {turned.ir} to <32 x i32>"), "b32")


# ---- matrices of eight rows, addressed by lanes


def _rows(state: State, address: Operand, count: int, stored: Value | None = None) -> list[Value]:
    """Host pointers of the rows of `count` matrices, checked and counted as one request; `stored` is what goes there."""
    b = state.b
    lanes = constant("i32", (1 << GROUPS * count) - 1)
    flags = layout.STORE if stored else 0
    access = Access(state.form.space or "", "i64", 2, _ROW_BYTES, state.address(address), lanes, flags)
    resolve(state, access, [_every_other(state, stored, half) for half in (0, 1)] if stored else None)
    count_request(state, access)
    hosts = [b.load("i64", b.offset(state.buffers["hosts"], 8 * lane)) for lane in range(GROUPS * count)]
    return [b.cast("inttoptr", host, "ptr") for host in hosts]


def _every_other(state: State, place: Value, half: int) -> Value:
    """One half of each row of four matrices in memory."""
    whole = state.b.load("i64", place, 2 * layout.WARP)
    return state.b.shuffle(whole, whole, list(range(half, 2 * layout.WARP, 2)))


def _turned(state: State, place: Value, count: int) -> None:
    """Transpose matrices in memory if the form says so."""
    b = state.b
    for number in range(count if state.form.mode == "trans" else 0):
        matrix = b.offset(place, number * _MATRIX_BYTES)
        halves = b.load("i16", matrix, 64)
        b.store(b.shuffle(halves, halves, _TRANSPOSED), matrix)


@lowers("ldmatrix")
def load_rows(state: State) -> None:
    b, role = state.b, state.form.roles[0]
    destination, address = state.instruction.operands
    with whole_warp(state):
        place = _space_for(state, role)
        for number, host in enumerate(_rows(state, address, role.count)):
            b.store(b.load("i32", host, 4, align=1), b.offset(place, number * _ROW_BYTES))
        _turned(state, place, role.count)
        _taken_up(state, destination, role, place)


@lowers("stmatrix")
def store_rows(state: State) -> None:
    b, role = state.b, state.form.roles[1]
    address, source = state.instruction.operands
    with whole_warp(state):
        place = _laid_down(state, source, role)
        _turned(state, place, role.count)
        for number, host in enumerate(_rows(state, address, role.count, place)):
            b.store(b.load("i32", b.offset(place, number * _ROW_BYTES), 4), host, align=1)


# ---- fragments in memory


@lowers("wmma")
def load_store(state: State) -> None:
    form, operands = state.form, state.instruction.operands
    if form.mode == "mma":
        multiply(state)
        return
    is_load = form.mode == "load"
    register_role = form.roles[0 if is_load else 1]
    target, address = (operands[0], operands[1]) if is_load else (operands[1], operands[0])
    assert form.matrix is not None
    fragment = form.matrix.of(form.matrix.fragment)
    with whole_warp(state):
        place = _zeros(state, register_role) if is_load else _laid_down(state, target, register_role)
        walk = _Walk(state, fragment, address)
        for slots in fragment.accesses(form.matrix.layout):
            stored = None if is_load else walk.get(place, slots)
            access = walk.access(slots, stored)
            if stored is not None:
                copy_out(state, access, stored)
            else:
                walk.put(place, slots, copy_in(state, access))
        if is_load:
            _copy(state, fragment, place, _bytes(register_role))
            _taken_up(state, target, register_role, place)


def _copy(state: State, fragment: Fragment, place: Value, step: int) -> None:
    """Fill the registers that are copies of others."""
    b = state.b
    for number in range(fragment.tiles, fragment.registers if fragment.letter in "ab" else 0):
        original = b.load("i32", b.offset(place, number % fragment.tiles * step), layout.WARP)
        b.store(original, b.offset(place, number * step))


class _Walk:
    """The accesses of a fragment, one after the other."""

    def __init__(self, state: State, fragment: Fragment, address: Operand) -> None:
        assert state.form.matrix is not None
        self.state, self.fragment = state, fragment
        self.by_row = state.form.matrix.layout == "row"
        base = state.address(address)
        self.base = base if isinstance(base, Value) else state.vector(base)
        self.stride = self._stride()
        self.bits = ELEMENT_BITS[fragment.type]
        self.bytes = state.form.access_bytes
        self.element = f"i{8 * min(self.bytes, 8)}"

    def _stride(self) -> Value:
        operands, fragment = self.state.instruction.operands, self.fragment
        if len(operands) < len(self.state.form.roles):
            return constant("i64", fragment.columns if self.by_row else fragment.rows)
        return self.state.b.resize(self.state.value(operands[2], "u32"), "i64")

    def _offset(self, major: Value, minor: Value) -> Value:
        b = self.state.b
        bits = b.mul(b.add(b.mul(self.stride, major), minor), self.bits)
        return b.binary("ashr", bits, constant("i64", 3))

    def _place(self, slot: Slot, lane: int) -> tuple[int, int]:
        row, column = self.fragment.position(slot[0], lane, slot[1])
        return (row, column) if self.by_row else (column, row)

    def access(self, slots: tuple[Slot, ...], stored: list[Value] | None) -> Access:
        """Check and count an access of all lanes."""
        state, b = self.state, self.state.b
        places = [self._place(slots[0], lane) for lane in range(layout.WARP)]
        major, minor = (constants("i64", list(numbers)) for numbers in zip(*places, strict=True))
        address = b.add(self.base, self._offset(major, minor))
        flags = layout.STORE if state.form.mode == "store" else 0
        space, vector = state.form.space or "", max(self.bytes // 8, 1)
        access = Access(space, self.element, vector, self.bytes, address, constant("i32", -1), flags)
        resolve(state, access, stored)
        if space in ("global", "shared") and self.base.lanes == self.stride.lanes == 1 and self.bits >= 8:
            first, member, group = (self._offset_of(places[lane]) for lane in (0, 1, MEMBERS))
            strides = b.sub(member, first), b.sub(group, first)
            count_affine_request(state, access, b.add(self.base, first), strides, MEMBERS)
        else:
            count_request(state, access)
        return access

    def _offset_of(self, place: tuple[int, int]) -> Value:
        return self._offset(constant("i64", place[0]), constant("i64", place[1]))

    def put(self, place: Value, slots: tuple[Slot, ...], values: list[Value]) -> None:
        """Put what an access loaded into the registers in memory."""
        b, (register, element) = self.state.b, slots[0]
        if len(slots) == 1 and self.fragment.elements > 1:
            word = b.offset(place, register * self._register_bytes)
            part = b.shl(b.resize(values[0], "i32"), element * self.bits)
            b.store(b.or_(b.load("i32", word, layout.WARP), part), word)
            return
        for number, value in enumerate(self._split(slots, values)):
            b.store(value, b.offset(place, (register + number) * self._register_bytes))

    @property
    def _register_bytes(self) -> int:
        return layout.WARP * (8 if self.fragment.register_type == "b64" else 4)

    def _split(self, slots: tuple[Slot, ...], values: list[Value]) -> list[Value]:
        """One value for each register of an access: two registers of 32 bits come as one of 64."""
        b = self.state.b
        if self.bytes == 8 and self.fragment.register_type == "b32":
            return [b.resize(values[0], "i32"), b.resize(b.lshr(values[0], 32), "i32")]
        return values

    def get(self, place: Value, slots: tuple[Slot, ...]) -> list[Value]:
        """What an access stores."""
        b, (register, element) = self.state.b, slots[0]
        element_type = "i64" if self.fragment.register_type == "b64" else "i32"
        count = len({slot[0] for slot in slots})
        words = [
            b.load(element_type, b.offset(place, (register + n) * self._register_bytes), layout.WARP)
            for n in range(count)
        ]
        if len(slots) == 1 and self.fragment.elements > 1:
            return [b.resize(b.lshr(words[0], element * self.bits), self.element)]
        if self.bytes == 8 and element_type == "i32":
            low, high = (b.resize(word, "i64") for word in words)
            return [b.or_(low, b.shl(high, 32))]
        return words
