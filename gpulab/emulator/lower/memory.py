"""Loads and stores.

The fast ways need one check of the whole warp and one vector access: a uniform address, neighbouring elements, or (for
blocks narrower than a warp) rows of neighbouring elements. Everything else goes through ``resolve_SPACE``, which checks
lane by lane and gives host addresses for a gather or scatter. So does a fast access whose check fails: inactive lanes may
be out of bounds, and a real fault is found there with its lane.
"""

from __future__ import annotations

from gpulab.emulator import layout
from gpulab.emulator.llvm.ir import Value, bits_of, constant, mangled, type_text
from gpulab.emulator.lower.access import Access, copy_in, copy_out, resolve
from gpulab.emulator.lower.affine import row_pointer
from gpulab.emulator.lower.count import count_request
from gpulab.emulator.lower.frames import move_lanes
from gpulab.emulator.lower.interleave import joined, split, whole, words
from gpulab.emulator.lower.prefetch import prefetch
from gpulab.emulator.lower.table import ELEMENTS, lowers
from gpulab.emulator.lower.values import Affine, State
from gpulab.emulator.native.address import row_field, window_row
from gpulab.ptx.syntax import Group, Operand

FULL = constant("i32", -1)


@lowers("ld", "ldu")
def load(state: State) -> None:
    destination, source = state.instruction.operands[:2]
    destinations = list(destination.elements) if isinstance(destination, Group) else [destination]
    access = make_access(state, source)
    if access.space == "param":
        _load_parameter(state, access, destinations)
        return
    with_lanes(state, access, destinations, lambda: whole(state.b, state.form.type, read_elements(state, access)))


@lowers("st")
def store(state: State) -> None:
    target, source = state.instruction.operands[:2]
    sources = list(source.elements) if isinstance(source, Group) else [source]
    access = make_access(state, target, layout.STORE)
    values = words(state.b, state.form.type, [state.value(each, state.form.type or "") for each in sources])
    if state.guard is None:
        store_elements(state, access, values)
        return
    with state.b.if_(state.b.is_("ne", access.on, 0)):
        store_elements(state, access, values)


def make_access(state: State, operand: Operand, flags: int = 0) -> Access:
    """What a memory instruction accesses. Parameters and constants have spaces of their own for counting only."""
    form = state.form
    space = (form.space or "generic").partition("::")[0]
    element, vector = (ELEMENTS[form.type or ""], form.vector) if form.type != "b128" else ("i64", 2)
    return Access(space, element, vector, form.access_bytes, state.address(operand), state.on(), flags)


def with_lanes(state: State, access: Access, destinations: list[Operand], read) -> None:  # noqa: ANN001
    """Read and write back; skip the access when no lane's guard holds."""
    b, type_name = state.b, state.form.type or ""
    if state.guard is None:
        for destination, value in zip(destinations, read(), strict=True):
            state.write(destination, value, type_name)
        return
    places = [b.variable(constant(ELEMENTS[type_name], 0, 32)) for _ in destinations]
    with b.if_(b.is_("ne", access.on, 0)):
        for place, value in zip(places, read(), strict=True):
            b.store(b.widen(value), place)
    for destination, place in zip(destinations, places, strict=True):
        state.write(destination, b.load(ELEMENTS[type_name], place, 32), type_name)


def _load_parameter(state: State, access: Access, destinations: list[Operand]) -> None:
    b, type_name, element = state.b, state.form.type or "", ELEMENTS[state.form.type or ""]
    if isinstance(access.address, Value) and access.address.constant:
        offset = int(access.address.text)
        if not 0 <= offset <= state.program.parameter_bytes - access.size:
            raise state.refuse("it reads behind the kernel's parameters")
        base = state.constant_get("params", "ptr")
        for number, destination in enumerate(destinations):
            place = b.offset(base, offset + number * bits_of(element) // 8)
            state.write(destination, b.load(element, place, align=1, note=", !invariant.load !0"), type_name)
        return
    with_lanes(
        state, access, destinations, lambda: whole(b, type_name, _uniform_values(state, access, _gather(state, access)))
    )


# ---- reading


def read_elements(state: State, access: Access) -> list[Value]:
    """Check and load; one value for each element of the vector, scalar if the address is uniform."""
    b = state.b
    fast = _fast_kind(state, access)
    if fast is None:
        values = _gather(state, access)
        return _uniform_values(state, access, values)
    lanes = 1 if fast == "uniform" else 32
    places = [b.variable(constant(access.element, 0, lanes)) for _ in range(access.vector)]
    slow, join = b.fresh("slow"), b.fresh("join")
    pointer = _check(state, access, slow)
    prefetch(state, access, fast, pointer)
    for place, value in zip(places, _read_fast(state, access, fast, pointer), strict=True):
        b.store(value, place)
    b.br(join)
    b.label(slow)
    for place, value in zip(places, _gather(state, access, count=False), strict=True):
        b.store(_first(state, access, value) if lanes == 1 else value, place)
    b.br(join)
    b.label(join)
    count_request(state, access)
    return [b.load(access.element, place, lanes) for place in places]


def _uniform_values(state: State, access: Access, values: list[Value]) -> list[Value]:
    if state.plan.general or not isinstance(access.address, Value) or access.address.lanes > 1:
        return values
    kept = access.space in ("local", "call", "generic")
    return values if kept else [_first(state, access, value) for value in values]


def _first(state: State, access: Access, value: Value) -> Value:
    return state.b.extract(value, state.b.count_trailing_zeros(access.on))


def _fast_kind(state: State, access: Access) -> str | None:
    """``uniform``, ``contiguous``, ``rows``, ``steps`` (one address a row), ``strided`` or None, by the strides."""
    if access.space not in ("global", "shared", "const") or state.plan.general or state.check:
        return None
    if isinstance(access.address, Value):
        return "uniform" if access.address.lanes == 1 else None
    width = state.plan.block_shape.width
    first, second = access.address.strides
    if width < 32 and isinstance(first, int) and first == 0:
        return "steps"
    if first != access.size or not isinstance(first, int):
        return "strided"
    if width == 32 or second == width * access.size:
        return "contiguous"
    return "rows"


def _check(state: State, access: Access, slow: str) -> Value:
    """Host pointer of lane 0 if every lane is in bounds and aligned; else jump to `slow`."""
    b, size = state.b, access.size
    base = access.address.base if isinstance(access.address, Affine) else access.address
    low, span, aligned = _extent(state, access, base)
    if access.space == "shared":
        room, offset = state.constant_get("shared_bytes"), low
        origin = b.add(base, state.constant_get("shared"))
    else:
        row = window_row(b, state.context, low)
        room = row_field(b, row, "store_room" if access.flags & layout.STORE else "room")
        offset = b.sub(low, row_field(b, row, "base"))
        origin = b.add(base, row_field(b, row, "delta"))
    rest = b.sub(room, span)
    inside = b.and_(b.compare("ule", offset, rest), b.is_("sge", rest, 0))
    if size > 1:
        inside = b.and_(inside, b.is_("eq", b.and_(aligned, size - 1), 0))
    after = b.fresh("inside")
    b.cond(inside, after, slow)
    b.label(after)
    return b.cast("inttoptr", origin, "ptr")


def _extent(state: State, access: Access, base: Value) -> tuple[Value, Value, Value]:
    """Lowest address of the warp's lanes, bytes from there to the end, and what must be aligned."""
    b, size, width = state.b, access.size, state.plan.block_shape.width
    low, span, aligned = base, constant("i64", size), base
    if not isinstance(access.address, Affine):
        return low, span, aligned
    for stride, steps in zip(access.address.strides, (width - 1, 32 // width - 1), strict=True):
        if isinstance(stride, int):
            low = b.add(low, min(0, stride * steps)) if stride < 0 else low
            span = b.add(span, abs(stride) * steps)
            aligned = b.or_(aligned, stride) if stride % size else aligned
        elif steps:
            reach = b.mul(stride, steps)
            low = b.add(low, b.intrinsic("llvm.smin", reach, constant("i64", 0)))
            # A stride so large that its product wraps gives an extent that no allocation has, or fails per lane.
            length = b.intrinsic("llvm.abs", reach, tail=", i1 false")
            span = b.add(span, b.intrinsic("llvm.umin", length, constant("i64", 1 << 60)))
            aligned = b.or_(aligned, stride)
    return low, span, aligned


def _read_fast(state: State, access: Access, kind: str, pointer: Value) -> list[Value]:
    b, element, vector = state.b, access.element, access.vector
    step = bits_of(element) // 8
    if kind == "uniform":
        return [b.load(element, b.offset(pointer, number * step), align=step) for number in range(vector)]
    if kind == "contiguous":
        return split(b, b.load(element, pointer, 32 * vector, align=step), vector)
    if kind == "strided":
        return [_read_strided(state, access, pointer, number * step) for number in range(vector)]
    width, rows = state.plan.block_shape.width, []
    if kind == "steps":
        return [_read_steps(state, access, pointer, number * step) for number in range(vector)]
    for row in range(32 // width):
        rows.append(b.load(element, row_pointer(state, access.address, pointer, row), width * vector, align=step))
    while len(rows) > 1:
        rows = [b.shuffle(x, y, list(range(2 * x.lanes))) for x, y in zip(rows[::2], rows[1::2], strict=True)]
    return split(b, rows[0], vector)


def _read_strided(state: State, access: Access, pointer: Value, offset: int) -> Value:
    """One load for each lane, also of those that are off, for all are in bounds. Chains of additions are short."""
    b, width = state.b, state.plan.block_shape.width
    assert isinstance(access.address, Affine)
    stride = access.address.strides[0]
    steps = [b.mul(constant("i64", stride) if isinstance(stride, int) else stride, number) for number in range(5)]
    places: list[Value] = []
    for lane in range(32):
        column = lane % width
        if column == 0:
            places.append(b.offset(row_pointer(state, access.address, pointer, lane // width), offset))
        else:
            near = column % 4 or 4
            places.append(b.offset(places[lane - near], steps[near]))
    return b.load_each(access.element, places)


def _lane_pointers(state: State, access: Access, pointer: Value) -> Value:
    """Host pointers of all lanes, from that of lane 0."""
    assert isinstance(access.address, Affine)
    distances = state.vector(Affine(constant("i64", 0), access.address.strides))
    return state.b.assign("ptr", 32, f"getelementptr i8, {pointer.ir}, {distances.ir}")


def _read_steps(state: State, access: Access, pointer: Value, offset: int) -> Value:
    """One load for each row of lanes, whose lanes all read the same address."""
    b, width = state.b, state.plan.block_shape.width
    align = bits_of(access.element) // 8
    result = Value(access.element, 32, "poison")
    values = [
        b.load(access.element, b.offset(row_pointer(state, access.address, pointer, row), offset), align=align)
        for row in range(32 // width)
    ]
    for row, value in enumerate(values):
        result = b.assign(access.element, 32, f"insertelement {result.ir}, {value.ir}, i32 {row}")
    return b.shuffle(result, result, [lane // width for lane in range(32)])


# ---- any addresses


def _gather(state: State, access: Access, count: bool = True) -> list[Value]:
    if access.space == "call" and not state.check:
        return move_lanes(state, access, None)
    resolve(state, access)
    if count:
        count_request(state, access)
    return copy_in(state, access)


def _moved(state: State, pointers: Value, distance: int) -> Value:
    if distance == 0:
        return pointers
    return state.b.assign("ptr", 32, f"getelementptr i8, {pointers.ir}, i64 {distance}")


def _scatter(state: State, access: Access, values: list[Value]) -> None:
    """Store lane by lane, ascending, so that the highest lane wins at one address."""
    if access.space == "call" and not state.check:
        move_lanes(state, access, values)
    else:
        resolve(state, access, values)
        copy_out(state, access, values)


def _scatter_to(state: State, access: Access, pointers: Value, values: list[Value]) -> None:
    b, step = state.b, bits_of(access.element) // 8
    name = f"llvm.masked.scatter.{mangled(access.element, 32)}.v32p0"
    kind = type_text(access.element, 32)
    b.declare(name, "void", f"{kind}, <32 x ptr>, <32 x i1>")
    mask = b.mask_vector(access.on)
    for number, value in enumerate(values):
        places = _moved(state, pointers, number * step)
        b.emit(f"call void @{name}({b.widen(value).ir}, <32 x ptr> align {step} {places.text}, {mask.ir})")


# ---- writing


def store_elements(state: State, access: Access, values: list[Value]) -> None:
    """Check, store and count; one value for each element of the vector."""
    b = state.b
    fast = _fast_kind(state, access)
    if fast is None or fast == "steps":
        _scatter(state, access, values)
        count_request(state, access)
        return
    slow, join = b.fresh("slow"), b.fresh("join")
    if fast == "rows" or (fast == "contiguous" and access.vector > 1):
        b.go_if(b.is_("ne", access.on, -1), slow)
    pointer = _check(state, access, slow)
    prefetch(state, access, fast, pointer)
    _write_fast(state, access, fast, pointer, values)
    b.br(join)
    b.label(slow)
    _scatter(state, access, values)
    b.br(join)
    b.label(join)
    count_request(state, access)


def _write_fast(state: State, access: Access, kind: str, pointer: Value, values: list[Value]) -> None:
    b, element = state.b, access.element
    step = bits_of(element) // 8
    if kind == "uniform":
        last = b.sub(constant("i32", 31), b.count_leading_zeros(access.on))
        for number, value in enumerate(values):
            b.store(b.extract(value, last), b.offset(pointer, number * step), align=step)
        return
    if kind == "strided":
        _scatter_to(state, access, _lane_pointers(state, access, pointer), values)
        return
    whole = joined(b, [b.widen(value) for value in values])
    if kind == "rows":
        width = state.plan.block_shape.width * access.vector
        for row in range(32 // state.plan.block_shape.width):
            piece = b.shuffle(whole, whole, list(range(row * width, (row + 1) * width)))
            b.store(piece, row_pointer(state, access.address, pointer, row), align=step)
        return
    full, partial, done = b.fresh("full"), b.fresh("partial"), b.fresh("done")
    if access.vector > 1:
        b.store(whole, pointer, align=step)
        return
    b.cond(b.compare("eq", access.on, FULL), full, partial)
    b.label(full)
    b.store(whole, pointer, align=step)
    b.br(done)
    b.label(partial)
    name = f"llvm.masked.store.{mangled(element, 32)}.p0"
    b.declare(name, "void", f"{type_text(element, 32)}, ptr, <32 x i1>")
    b.emit(f"call void @{name}({whole.ir}, ptr align {step} {pointer.text}, {b.mask_vector(access.on).ir})")
    b.br(done)
    b.label(done)
