"""Loads, stores, atomics and address spaces (PTX ISA 9.7.9 and 9.7.13)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.emulator.faults import memory_fault
from gpulab.emulator.memory import FIRST_WINDOW, LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS
from gpulab.emulator.reference_counting import Tally
from gpulab.emulator.reference_values import DTYPES, LANES
from gpulab.emulator.reference_warp import Warp
from gpulab.ptx.opcodes import Form
from gpulab.ptx.syntax import Address, Group, Instruction, Operand

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def load(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``ld``: check all lanes, then read each element of each lane."""
    instruction, form = _at(warp, index)
    destination, source = instruction.operands
    places = _locate(warp, tally, index, source, on)
    size = form.access_bytes // form.vector
    for number, element in enumerate(_elements(destination)):
        raw = np.zeros((LANES, size), np.uint8)
        for lane, place in places.items():
            raw[lane] = place[number * size : (number + 1) * size]
        warp.write(element, raw.view(DTYPES[form.type or ""])[:, 0], form.type or "", on)


def store(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``st``: check all lanes, then store lane after lane, so that the highest one wins at one address."""
    instruction, form = _at(warp, index)
    target, source = instruction.operands
    places = _locate(warp, tally, index, target, on)
    values = [_bytes(warp.read(element, form.roles[1])) for element in _elements(source)]
    if form.space not in ("local", "call"):
        warp.launch.progress = True
    for lane, place in places.items():
        place[:] = np.concatenate([value[lane] for value in values])


def atomic(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``atom`` and ``red``: lane after lane, each on what the one before left."""
    instruction, form = _at(warp, index)
    operands = instruction.operands[1:] if form.opcode == "atom" else instruction.operands
    roles = form.roles[1:] if form.opcode == "atom" else form.roles
    dtype = DTYPES[form.type or ""]
    places = _locate(warp, tally, index, operands[0], on)
    values = [warp.read(operand, role) for operand, role in zip(operands[1:], roles[1:], strict=True)]
    old = np.zeros(LANES, dtype)
    for lane, place in places.items():
        cell = place.view(dtype)
        old[lane] = cell[0]
        cell[0] = _updated(form, cell[0], *(value[lane] for value in values))
        warp.launch.progress |= cell.tobytes() != old[lane].tobytes()
    if form.opcode == "atom":
        warp.write(instruction.operands[0], old, form.type or "", on)


def _updated(form: Form, old: np.generic, value: np.generic, other: np.generic | None = None) -> np.generic:
    if form.operation == "cas":
        assert other is not None
        return other if old == value else old
    return _UPDATES[form.operation or ""](old, value)


def _wrapping_add(old: np.generic, value: np.generic) -> np.generic:
    # Arrays wrap around silently, as hardware does; NumPy's scalars warn.
    return (np.array([old]) + np.array([value]))[0]


_UPDATES: dict[str, Callable[[np.generic, np.generic], np.generic]] = {
    "add": _wrapping_add,
    "min": min,
    "max": max,
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "exch": lambda old, value: value,
    "inc": lambda old, bound: old.dtype.type(0) if old >= bound else old + old.dtype.type(1),
    "dec": lambda old, bound: bound if old == 0 or old > bound else old - old.dtype.type(1),
}


def _at(warp: Warp, index: int) -> tuple[Instruction, Form]:
    program = warp.launch.program
    return program.function.instructions[index], program.forms[index]


def _elements(operand: Operand) -> tuple[Operand, ...]:
    return operand.elements if isinstance(operand, Group) else (operand,)


def _bytes(value: np.ndarray) -> np.ndarray:
    """Lanes as bytes, shape (32, size)."""
    return np.ascontiguousarray(value).view(np.uint8).reshape(LANES, -1)


# ---- where an access goes


def _locate(warp: Warp, tally: Tally, index: int, operand: Operand, on: np.ndarray) -> dict[int, np.ndarray]:
    """The bytes that each lane that is on accesses, by lane in ascending order; all checked, and counted."""
    _, form = _at(warp, index)
    assert isinstance(operand, Address)
    addresses = warp.addresses(operand)
    space = form.space or "generic"
    spaces = _spaces_of(space, addresses)
    lanes = np.flatnonzero(on).tolist()
    places = {lane: _place(warp, index, spaces[lane], int(addresses[lane]), lane) for lane in lanes}
    for part in ("global", "shared", "local"):
        # Lanes of a generic access part by the memory that they hit: each part is a request of its own.
        chosen = np.array([lane for lane in lanes if spaces[lane] == part], np.int64)
        inside = addresses[chosen] - (_WINDOWS.get(part, 0) if space == "generic" else 0)
        tally.request(index, form, part, inside, chosen)
    return places


def _spaces_of(space: str, addresses: np.ndarray) -> list[str]:
    if space != "generic":
        return [space] * LANES
    windows = addresses >> WINDOW_BITS << WINDOW_BITS
    return ["shared" if w == SHARED_WINDOW else "local" if w == LOCAL_WINDOW else "global" for w in windows.tolist()]


def _place(warp: Warp, index: int, space: str, address: int, lane: int) -> np.ndarray:
    """The bytes that a lane accesses; a fault if they are not all inside one object, or not aligned."""
    _, form = _at(warp, index)
    size = form.access_bytes
    store = form.kind != "load"
    window = _WINDOWS.get(space, 0) if form.space == "generic" else 0
    whole, offset = _object(warp, space, address - window, lane, store)
    if not 0 <= offset <= len(whole) - size:
        raise _fault(warp, "out-of-bounds", index, lane, address)
    if address % size:
        raise _fault(warp, "misaligned", index, lane, address)
    return whole[offset : offset + size]


def _object(warp: Warp, space: str, address: int, lane: int, store: bool) -> tuple[np.ndarray, int]:
    """The bytes of the object that an address (in its window) points into, and the offset in it; no bytes if none."""
    if space == "shared":
        return warp.block.shared, address
    if space in ("local", "call"):
        return warp.local[lane], address
    if space == "param":
        return warp.launch.parameters, address
    found = warp.launch.memory.find(address)
    if found is None or (store and not found.writable):
        return np.zeros(0, np.uint8), 0
    return found.host, address - found.address


def _fault(warp: Warp, kind: str, index: int, lane: int, address: int) -> Exception:
    launch = warp.launch
    thread = int(warp.threads[lane])
    return memory_fault(
        launch.program, launch.config, launch.memory, kind, index, warp.block.number, thread, address & (1 << 64) - 1
    )


# ---- addresses as values


def convert_address(warp: Warp, index: int, on: np.ndarray) -> None:
    """``cvta``: an offset in a window to a generic address, or back; global and constant addresses are generic."""
    instruction, form = _at(warp, index)
    address = warp.read(instruction.operands[1], form.roles[1])
    window = np.uint64(_WINDOWS.get(form.space or "", 0))
    converted = address - window if form.mode == "to" else address + window
    warp.write(instruction.operands[0], converted, "u64", on)


def is_in_space(warp: Warp, index: int, on: np.ndarray) -> None:
    """``isspacep``: whether a generic address lies in the window of a space."""
    instruction, form = _at(warp, index)
    windows = warp.read(instruction.operands[1], form.roles[1]) >> np.uint64(WINDOW_BITS)
    if form.space in _WINDOWS:
        inside = windows == _WINDOWS[form.space] >> WINDOW_BITS
    else:
        inside = (windows >= FIRST_WINDOW) & (form.space == "global")
    warp.write(instruction.operands[0], inside, "pred", on)
