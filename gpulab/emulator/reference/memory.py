"""Loads, stores, atomics and address spaces (PTX ISA 9.7.9 and 9.7.13)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.emulator.faults import memory_fault
from gpulab.emulator.memory import CONSTANT_MARK, FIRST_WINDOW, WINDOW_BITS, WINDOWS
from gpulab.emulator.reference.counting import Tally
from gpulab.emulator.reference.values import DTYPES, LANES, pure_function
from gpulab.emulator.reference.warp import Warp
from gpulab.ptx.opcodes import Form, plain_form
from gpulab.ptx.syntax import Address, Group, Instruction, Operand


def load(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``ld``: check all lanes, then read each element of each lane."""
    instruction, form = _at(warp, index)
    destination, source = instruction.operands[:2]
    places = locate(warp, tally, index, source, on)
    size = form.access_bytes // form.vector
    for number, element in enumerate(_elements(destination)):
        raw = np.zeros((LANES, size), np.uint8)
        for lane, place in places.items():
            raw[lane] = place[number * size : (number + 1) * size]
        warp.write(element, raw.view(DTYPES[form.type or ""])[:, 0], form.type or "", on)


def store(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``st``: check all lanes, then store lane after lane, so that the highest one wins at one address."""
    instruction, form = _at(warp, index)
    target, source = instruction.operands[:2]
    places = locate(warp, tally, index, target, on)
    values = [_bytes(warp.read(element, form.roles[1])) for element in _elements(source)]
    for lane, place in places.items():
        place[:] = np.concatenate([value[lane] for value in values])


def atomic(warp: Warp, tally: Tally, index: int, on: np.ndarray) -> None:
    """``atom`` and ``red``: lane after lane, each on what the one before left."""
    instruction, form = _at(warp, index)
    operands = instruction.operands[1:] if form.opcode == "atom" else instruction.operands
    places = locate(warp, tally, index, operands[0], on)
    # Of a vector each element is an operation of its own; a cache policy has no effect.
    sources = [_elements(operand) for operand in operands[1 : 3 if form.operation == "cas" else 2]]
    role = form.roles[-1] if form.roles[-1].name != "h" else form.roles[-2]
    values = [[warp.read(element, role) for element in source] for source in sources]
    old = np.zeros((form.vector, LANES), DTYPES[form.type or ""])
    for lane, place in places.items():
        cells = place.view(old.dtype)
        for number in range(form.vector):
            old[number, lane] = cells[number]
            cells[number] = _updated(form, cells[number], *(each[number][lane] for each in values))
            warp.launch.progress |= cells[number].tobytes() != old[number, lane].tobytes()
    if form.opcode == "atom":
        for element, before in zip(_elements(instruction.operands[0]), old, strict=True):
            warp.write(element, before, form.type or "", on)


def _updated(form: Form, old: np.generic, value: np.generic, other: np.generic | None = None) -> np.generic:
    if form.operation == "cas":
        assert other is not None
        return other if old == value else old
    if (form.type or "").removesuffix("x2") in ("f16", "bf16"):
        plain = plain_form(form.operation or "", form.type or "")
        function = pure_function(plain)
        assert function is not None
        return function(plain, np.array([old]), np.array([value]))[0]
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


def locate(warp: Warp, tally: Tally, index: int, operand: Operand, on: np.ndarray) -> dict[int, np.ndarray]:
    """The bytes that each lane that is on accesses, by lane in ascending order; all checked, and counted."""
    assert isinstance(operand, Address)
    return locate_at(warp, tally, index, warp.addresses(operand), on)


def locate_at(warp: Warp, tally: Tally, index: int, addresses: np.ndarray, on: np.ndarray) -> dict[int, np.ndarray]:
    """The same, with the address of each lane."""
    _, form = _at(warp, index)
    spaces = _spaces_of(form.space or "generic", addresses)
    lanes = np.flatnonzero(on).tolist()
    places = {lane: place(warp, index, spaces[lane], int(addresses[lane]), lane) for lane in lanes}
    for part in ("global", "shared", "local"):
        # Lanes of a generic access part by the memory that they hit: each part is a request of its own.
        chosen = np.array([lane for lane in lanes if spaces[lane] == part], np.int64)
        inside = addresses[chosen] - (WINDOWS.get(part, 0) if form.space == "generic" else 0)
        tally.request(index, form, part, inside, chosen)
    return places


def _spaces_of(space: str, addresses: np.ndarray) -> list[str]:
    if space != "generic":
        return [space] * LANES
    windows = addresses >> WINDOW_BITS << WINDOW_BITS
    names = {start: name for name, start in WINDOWS.items()}
    return [names.get(window, "global") for window in windows.tolist()]


def place(
    warp: Warp, index: int, space: str, address: int, lane: int, size: int | None = None, store: bool | None = None
) -> np.ndarray:
    """The bytes that a lane accesses; a fault if they are not all inside one object, or not aligned.

    By default `size` and `store` are those of the instruction.
    """
    _, form = _at(warp, index)
    size = form.access_bytes if size is None else size
    store = form.kind != "load" if store is None else store
    window = WINDOWS.get(space, 0) if form.space == "generic" else 0
    whole, offset = _object(warp, space, address - window, lane, store)
    if not 0 <= offset <= len(whole) - size:
        raise fault(warp, "out-of-bounds", index, lane, address)
    if address % size:
        raise fault(warp, "misaligned", index, lane, address)
    return whole[offset : offset + size]


def _object(warp: Warp, space: str, address: int, lane: int, store: bool) -> tuple[np.ndarray, int]:
    """The bytes of the object that an address (in its window) points into, and the offset in it; no bytes if none."""
    if space == "shared":
        return warp.block.shared, address
    if space in ("local", "call"):
        return warp.local[lane], address
    if space == "param":
        return warp.launch.parameters[: 0 if store else None], address
    found = warp.launch.memory.find(address)
    if found is None or (store and not found.writable):
        return np.zeros(0, np.uint8), 0
    return found.host, address - found.address


def fault(warp: Warp, kind: str, index: int, lane: int, address: int) -> Exception:
    """The error for an access of a lane."""
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
    window = np.uint64(WINDOWS.get(form.space or "", 0))
    converted = address - window if form.mode == "to" else address + window
    warp.write(instruction.operands[0], converted, "u64", on)


def is_in_space(warp: Warp, index: int, on: np.ndarray) -> None:
    """``isspacep``: whether a generic address lies in the window of a space."""
    instruction, form = _at(warp, index)
    addresses = warp.read(instruction.operands[1], form.roles[1])
    windows = addresses >> np.uint64(WINDOW_BITS)
    if form.space in WINDOWS:
        inside = windows == WINDOWS[form.space] >> WINDOW_BITS
    else:
        is_constant = addresses & np.uint64(CONSTANT_MARK) != 0
        inside = (windows >= FIRST_WINDOW) & (is_constant == (form.space == "const"))
    warp.write(instruction.operands[0], inside, "pred", on)


def make_policy(warp: Warp, index: int, on: np.ndarray) -> None:
    """``createpolicy``: a cache policy is a number that nothing reads."""
    instruction, _ = _at(warp, index)
    warp.write(instruction.operands[0], np.zeros(LANES, np.uint64), "b64", on)
