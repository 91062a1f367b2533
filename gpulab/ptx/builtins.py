"""Functions that CUDA brings along, which have no body in a module: `printf`, `assert`, `malloc` and `free`."""

from __future__ import annotations

from dataclasses import replace

from gpulab.ptx import stack
from gpulab.ptx.refusal import refusal
from gpulab.ptx.syntax import Group, Immediate, Instruction, Operand, Register, Symbol, Variable
from gpulab.ptx.types import TYPE_BYTES

SIGNATURES = {
    "vprintf": (("b32",), ("b64", "b64")),
    "__assertfail": ((), ("b64", "b64", "b32", "b64", "b64")),
    "malloc": (("b64",), ("b64",)),
    "free": ((), ("b64",)),
}
"""Types of their results and parameters."""

BUILT_INS = (*SIGNATURES, stack.OVERFLOW, stack.NO_FUNCTION)


class BuiltInCall:
    """A call of a built-in, made ready: all that it passes is in registers or in call variables of the right size.

    Parameters
    ----------
    call : Instruction
    name : str
    registers : dict of str to str
        Of the kernel; the call adds those that it needs.
    variables : dict of str to Variable

    Attributes
    ----------
    before : list of Instruction
        What must come first: moves of constants into registers.
    call : Instruction

    Raises
    ------
    UnsupportedInstruction
        If the call doesn't have the function's results and parameters.
    """

    def __init__(self, call: Instruction, name: str, registers: dict[str, str], variables: dict[str, Variable]) -> None:
        self.before: list[Instruction] = []
        self._source, self._name = call, name
        self._registers, self._variables = registers, variables
        returns, target, arguments = call.operands[:3]
        assert isinstance(returns, Group) and isinstance(arguments, Group)
        came, wanted = (len(returns.elements), len(arguments.elements)), tuple(map(len, SIGNATURES[name]))
        if came != wanted:
            message = "'{}' has {} results and {} parameters, but {} and {} came.".format(name, *wanted, *came)
            raise refusal(call, message)
        groups = []
        for group, types, is_result in zip((returns, arguments), SIGNATURES[name], (True, False), strict=True):
            pairs = enumerate(zip(group.elements, types, strict=True))
            groups.append(Group(tuple(self._passed(*pair, number, is_result) for number, pair in pairs)))
        self.call = replace(call, operands=(groups[0], target, groups[1], *call.operands[3:]))

    def _passed(self, element: Operand, type_name: str, number: int, is_result: bool) -> Operand:
        if isinstance(element, Symbol):
            variable = self._variables.get(element.name)
            if variable is not None and variable.space == "param" and variable.size == TYPE_BYTES[type_name]:
                return Symbol(element.name)
        elif isinstance(element, Register) and element.name in self._registers:
            declared = self._registers[element.name]
            if declared != "pred" and TYPE_BYTES[declared] == TYPE_BYTES[type_name]:
                return element
        elif isinstance(element, Register) if is_result else isinstance(element, Immediate):
            return self._own_register(element, type_name, number)
        what = "a result" if is_result else f"parameter {number + 1}"
        raise refusal(
            self._source,
            f"{what} of '{self._name}' is .{type_name}: only a .param variable or a register of this type fits.",
        )

    def _own_register(self, element: Operand, type_name: str, number: int) -> Register:
        """A register in the place of a result that nobody wants, or of a constant."""
        register = Register(f"{type_name} passed{number}@")
        self._registers[register.name] = type_name
        if isinstance(element, Immediate):
            operands = (register, element)
            self.before.append(
                replace(self._source, opcode="mov", modifiers=(type_name,), operands=operands, synthetic=True)
            )
        return register
