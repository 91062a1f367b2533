"""Operations on affine values: scalar arithmetic on base and strides in place of 32 lanes.

The rules mirror those of `shapes`, which decides where they apply. Widening and sign shifts are exact only under a
condition on the lanes at the ends; where it fails at run time, the warp bails out to the general variant.
"""

from __future__ import annotations

from collections.abc import Callable

from gpulab.emulator.analysis.intervals import BOUNDED_OPCODES, bounds_of
from gpulab.emulator.analysis.shapes import VECTOR, is_sign_mask, is_sign_shift
from gpulab.emulator.llvm.ir import Builder, Value, bits_of, constant
from gpulab.emulator.lower.pause import bail_unless
from gpulab.emulator.lower.table import ELEMENTS
from gpulab.emulator.lower.values import Affine, State
from gpulab.ptx.syntax import Group, Operand, Register

Stride = Value | int
_OPCODES: dict[str, Callable[[State, list[Value | Affine]], Value | Affine | None]] = {}


def lower_affine(state: State) -> bool:
    """Lower the current instruction on scalars; False if it isn't one of these cases."""
    instruction, form = state.instruction, state.form
    rule = _OPCODES.get(form.opcode)
    destination = instruction.operands[0] if instruction.operands else None
    if rule is None or state.plan.general or not isinstance(destination, Register) or destination.name == "_":
        return False
    if state.variables[destination.name].shape is VECTOR or form.saturate or form.carry_out:
        return False
    pairs = list(zip(instruction.operands, form.roles, strict=False))[1:]
    if any(role.type not in ELEMENTS or isinstance(operand, Group) for operand, role in pairs):
        return False
    sources = [state.linear(operand, role.type) for operand, role in pairs]
    if not any(isinstance(source, Affine) for source in sources):
        return False
    result = rule(state, sources)
    if result is None:
        return False
    state.write(destination, result, form.roles[0].type)
    return True


def lower_constant(state: State) -> bool:
    """Lower an instruction whose destination never holds but one value; False if it isn't one."""
    destination = state.instruction.operands[0] if state.instruction.operands else None
    if not isinstance(destination, Register) or state.form.opcode not in BOUNDED_OPCODES:
        return False
    value = state.plan.constant(destination.name)
    if value is None:
        return False
    type_name = state.form.roles[0].type
    state.write(destination, constant(ELEMENTS[type_name], value), type_name)
    return True


def _rule(*opcodes: str):  # noqa: ANN202
    def enter(function):  # noqa: ANN001, ANN202
        for opcode in opcodes:
            _OPCODES[opcode] = function
        return function

    return enter


def parts(value: Value | Affine) -> tuple[Value, tuple[Stride, Stride]]:
    """Base and strides; a uniform value has strides 0."""
    return (value.base, value.strides) if isinstance(value, Affine) else (value, (0, 0))


def stride_sum(b: Builder, x: Stride, y: Stride, element: str, sign: int = 1) -> Stride:
    """``x + sign * y``."""
    if isinstance(x, int) and isinstance(y, int):
        return x + sign * y
    if isinstance(y, int) and y == 0:
        return x
    left = constant(element, x) if isinstance(x, int) else x
    right = constant(element, y) if isinstance(y, int) else y
    return b.add(left, right) if sign > 0 else b.sub(left, right)


def stride_product(b: Builder, stride: Stride, factor: Value) -> Stride:
    """A stride times a uniform value."""
    if isinstance(stride, int):
        if stride == 0:
            return 0
        if factor.constant:
            return stride * int(factor.text)
        return b.mul(factor, stride)
    return b.mul(stride, factor)


@_rule("mov", "cvta")
def _copy(state: State, sources: list[Value | Affine]) -> Value | Affine | None:
    if state.form.opcode == "cvta":
        return add_cvta(state, sources[0])
    return sources[0]


def add_cvta(state: State, value: Value | Affine) -> Value | Affine:
    """`cvta`: to or from the generic address of a space."""
    from gpulab.emulator.memory import WINDOWS

    window = WINDOWS.get(state.form.space or "", 0)
    distance = -window if state.form.mode == "to" else window
    if isinstance(value, Affine):
        return Affine(state.b.add(value.base, distance), value.strides)
    return state.b.add(value, distance)


def affine_sum(b: Builder, x: Value | Affine, y: Value | Affine, sign: int = 1) -> Affine:
    """Sum or difference of affine or uniform values."""
    (base_x, strides_x), (base_y, strides_y) = parts(x), parts(y)
    base = b.add(base_x, base_y) if sign > 0 else b.sub(base_x, base_y)
    pairs = zip(strides_x, strides_y, strict=True)
    return Affine(base, tuple(stride_sum(b, p, q, base.type, sign) for p, q in pairs))  # type: ignore[arg-type]


@_rule("add")
def _add(state: State, sources: list[Value | Affine]) -> Affine:
    return affine_sum(state.b, *sources)


@_rule("sub")
def _sub(state: State, sources: list[Value | Affine]) -> Affine:
    return affine_sum(state.b, *sources, sign=-1)


@_rule("neg")
def _neg(state: State, sources: list[Value | Affine]) -> Affine:
    return affine_sum(state.b, constant(parts(sources[0])[0].type, 0), sources[0], sign=-1)


def _times(b: Builder, value: Affine, factor: Value) -> Affine:
    strides = tuple(stride_product(b, s, factor) for s in value.strides)
    return Affine(b.mul(value.base, factor), strides)  # type: ignore[arg-type]


@_rule("mul")
def _mul(state: State, sources: list[Value | Affine]) -> Affine | None:
    if state.form.mode == "wide":
        operands = state.instruction.operands[1:]
        signed = (state.form.type or "")[0] == "s"
        sources = [widened(state, x, signed, operand) for x, operand in zip(sources, operands, strict=False)]
    first, second = sources
    if isinstance(first, Affine) and isinstance(second, Value):
        return _times(state.b, first, second)
    return _times(state.b, second, first) if isinstance(second, Affine) and isinstance(first, Value) else None


@_rule("mad")
def _mad(state: State, sources: list[Value | Affine]) -> Affine | None:
    first, second, third = sources
    if isinstance(first, Value) and isinstance(second, Value):
        signed = (state.form.type or "")[0] == "s"
        if state.form.mode == "wide":
            first, second = (state.b.resize(v, third_type(third), signed) for v in (first, second))
        return affine_sum(state.b, state.b.mul(first, second), third)
    product = _mul(state, [first, second])
    return None if product is None else affine_sum(state.b, product, third)


def third_type(value: Value | Affine) -> str:
    """Element type of a value's base."""
    return parts(value)[0].type


@_rule("shl")
def _shl(state: State, sources: list[Value | Affine]) -> Affine | None:
    value, amount = sources
    if not isinstance(value, Affine) or not isinstance(amount, Value):
        return None
    b, element = state.b, value.base.type
    width = bits_of(element)
    if amount.constant:
        shift = int(amount.text) & 0xFFFFFFFF
        return _times(b, value, constant(element, 1 << shift if shift < width else 0))
    inside = b.is_("ult", amount, width)
    factor = b.shl(constant(element, 1), b.resize(b.and_(amount, width - 1), element))
    return _times(b, value, b.select(inside, factor, constant(element, 0)))


@_rule("selp")
def _selp(state: State, sources: list[Value | Affine]) -> Affine | None:
    first, second, condition = sources
    if not isinstance(condition, Value) or condition.lanes != 1:
        return None
    b = state.b
    (base_x, strides_x), (base_y, strides_y) = parts(first), parts(second)
    strides = []
    for x, y in zip(strides_x, strides_y, strict=True):
        if isinstance(x, int) and x == y:
            strides.append(x)
            continue
        x, y = (constant(base_x.type, s) if isinstance(s, int) else s for s in (x, y))
        strides.append(b.select(condition, x, y))
    return Affine(b.select(condition, base_x, base_y), tuple(strides))  # type: ignore[arg-type]


@_rule("cvt")
def _cvt(state: State, sources: list[Value | Affine]) -> Affine | None:
    value, form, b = sources[0], state.form, state.b
    element, old = ELEMENTS[form.type or ""], ELEMENTS[form.source_type or ""]
    if not isinstance(value, Affine):
        return None
    if bits_of(element) > bits_of(old):
        signed = (form.source_type or "")[0] == "s"
        return widened(state, value, signed, state.instruction.operands[1])  # type: ignore[return-value]
    strides = tuple(s if isinstance(s, int) else b.resize(s, element) for s in value.strides)
    return Affine(b.resize(value.base, element), strides)  # type: ignore[arg-type]


def widened(state: State, value: Value | Affine, signed: bool, operand: Operand) -> Value | Affine:
    """An affine value of 32 bits as one of 64, if no lane wraps; bails out if one does."""
    b = state.b
    if isinstance(value, Value):
        return b.resize(value, "i64", signed)
    base = b.resize(value.base, "i64", signed)
    strides = tuple(s if isinstance(s, int) else b.resize(s, "i64", True) for s in value.strides)
    wide = Affine(base, strides)  # type: ignore[arg-type]
    low, high = bounds_of(operand, state.plan.bounds) or (-1, 1 << 31)
    if high - low < 1 << 31 and (signed or low >= 0):
        # Lanes so near to each other differ by the stride itself, not by what is left of it after wrapping.
        return wide
    for corner in corners(state, wide):
        if signed:
            fits = b.compare("eq", b.resize(b.resize(corner, "i32"), "i64", True), corner)
        else:
            fits = b.is_("eq", b.lshr(corner, 32), 0)
        bail_unless(state, fits)
    return wide


def corners(state: State, value: Affine) -> list[Value]:
    """Values at the lanes where an affine function has its extremes, without lane 0."""
    b, width = state.b, state.plan.block_shape.width
    element = value.base.type
    far = (width - 1, 32 // width - 1)
    steps = []
    for stride, count in zip(value.strides, far, strict=True):
        if count == 0 or (isinstance(stride, int) and stride == 0):
            continue
        steps.append(constant(element, stride * count) if isinstance(stride, int) else b.mul(stride, count))
    found = [b.add(value.base, step) for step in steps]
    return [*found, b.add(found[0], steps[1])] if len(steps) == 2 else found


@_rule("shr")
def _shr(state: State, sources: list[Value | Affine]) -> Value | None:
    value = sources[0]
    if not isinstance(value, Affine) or not is_sign_shift(state.form, state.instruction.operands[2]):
        return None
    _require_one_sign(state, value)
    return state.b.ashr(value.base, bits_of(value.base.type) - 1)


@_rule("and")
def _and(state: State, sources: list[Value | Affine]) -> Value | None:
    value = sources[0]
    if not isinstance(value, Affine) or not is_sign_mask(state.form, state.instruction.operands[2]):
        return None
    _require_one_sign(state, value)
    return state.b.and_(value.base, -(1 << (bits_of(value.base.type) - 1)))


def _require_one_sign(state: State, value: Affine) -> None:
    """Bail out unless all lanes have the sign of lane 0."""
    b, bits = state.b, bits_of(value.base.type)
    for stride in value.strides:
        # So small that 31 steps cannot go round and come back to the same sign.
        if isinstance(stride, Value):
            small = b.is_("ult", b.add(stride, 1 << (bits - 8)), 1 << (bits - 7))
            bail_unless(state, small)
    for corner in corners(state, value):
        bail_unless(state, b.is_("sge", b.xor(corner, value.base), 0))


def row_pointer(state: State, address: Affine, pointer: Value, row: int) -> Value:
    """Host address of the first lane of a row of lanes, from that of lane 0."""
    stride = address.strides[1]
    if row == 0:
        return pointer
    return state.b.offset(pointer, stride * row if isinstance(stride, int) else state.b.mul(stride, row))
