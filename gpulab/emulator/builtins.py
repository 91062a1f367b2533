"""Built-in functions of kernels, done in Python for both engines: printf, assert, malloc and free, and how calls fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpulab.emulator.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS, Memory
from gpulab.emulator.printf import ReadBytes, format_printf, read_string
from gpulab.emulator.program import Program
from gpulab.errors import shown_file
from gpulab.ptx import stack
from gpulab.ptx.callgraph import function_addresses
from gpulab.ptx.names import plain_name
from gpulab.ptx.syntax import Symbol

Spaces = Callable[[int], tuple[np.ndarray, np.ndarray]]
"""Shared memory and local memory as a lane sees them, uint8."""

_KIB = 1024


class CallError(Exception):
    """A built-in that ends the launch with a fault."""

    def __init__(self, kind: str, lane: int, message: str) -> None:
        super().__init__(message)
        self.kind, self.lane, self.message = kind, lane, message


@dataclass(frozen=True)
class BuiltInCall:
    """One call of a built-in by a warp.

    Attributes
    ----------
    instruction : int
        Its index.
    lanes : sequence of int
        The lanes that call, ascending.
    values : numpy.ndarray
        The arguments as patterns, shape (arguments, 32), uint64.
    spaces : callable
    write : callable
        Takes what is printed.
    """

    program: Program
    memory: Memory
    instruction: int
    lanes: Sequence[int]
    values: np.ndarray
    spaces: Spaces
    write: Callable[[str], object]

    def run(self) -> np.ndarray:
        """Do what the function does; its results, shape (32,), uint64.

        Raises
        ------
        CallError
            If the launch ends here.
        """
        target = self.program.function.instructions[self.instruction].operands[1]
        assert isinstance(target, Symbol)
        return _FUNCTIONS[target.name](self)

    def argument(self, number: int, lane: int) -> int:
        """An argument of a lane as an unsigned integer."""
        return int(self.values[number][lane])

    def reader(self, lane: int) -> ReadBytes:
        """Reads memory as a lane sees it, by generic address."""
        shared, local = self.spaces(lane)
        windows = {SHARED_WINDOW: shared, LOCAL_WINDOW: local}

        def read(address: int, count: int) -> bytes:
            start = address >> WINDOW_BITS << WINDOW_BITS
            try:
                if start in windows:
                    found = windows[start][address - start : address - start + count]
                else:
                    found = self.memory.view(address, count)
            except IndexError:
                found = windows[SHARED_WINDOW][:0]
            if len(found) < count:
                raise CallError(
                    "out-of-bounds", lane,
                    f"The function reads {count} bytes at address {address:#x}, where no array has them. Does the format "
                    "have as many conversions as there are arguments, and is each %s a string of the GPU's memory?",
                )  # fmt: skip
            return found.tobytes()

        return read


def _printf(call: BuiltInCall) -> np.ndarray:
    counts = np.zeros(call.values.shape[1], np.uint64)
    for lane in call.lanes:
        read = call.reader(lane)
        text, taken = format_printf(read_string(call.argument(0, lane), read), call.argument(1, lane), read)
        call.write(text)
        counts[lane] = taken
    return counts


def _assertion(call: BuiltInCall) -> np.ndarray:
    lane = call.lanes[0]
    read = call.reader(lane)
    condition, file = (read_string(call.argument(place, lane), read) for place in (0, 1))
    line = call.argument(2, lane) & 0xFFFFFFFF
    # The place in the line information has the name that the reader's file has by now.
    place = call.program.function.instructions[call.instruction].location
    shown = shown_file(place.file if place is not None else file)
    raise CallError("assert", lane, f"the assertion '{condition}' failed ({shown}, line {line}).")


def _overflow(call: BuiltInCall) -> np.ndarray:
    lane = call.lanes[0]
    if len(call.values) == 0:
        message = f"stack overflow: alloca gives a thread at most {stack.ALLOCA_BYTES // _KIB} KiB at a time."
    else:
        message = (
            f"stack overflow: {call.argument(0, lane):,} calls of functions that call themselves wait for each other here, "
            f"and the {stack.STACK_BYTES // _KIB} KiB for them are full. Does the recursion test for its end before it "
            "calls on? If it is only deep, keep local arrays out of the function, or make it a loop."
        )
    raise CallError("out-of-bounds", lane, message)


def _no_function(call: BuiltInCall) -> np.ndarray:
    lane = call.lanes[0]
    address = call.argument(0, lane)
    names = {at: name for name, at in function_addresses(call.program.module).items()}
    if address in names:
        message = f"call of {plain_name(names[address])} through a pointer to a function of other parameters or another result."
    else:
        null = " (a null pointer: nothing has set it)" if address == 0 else ""
        message = f"call of address {address:#x}, which is no function of this module{null}."
    raise CallError("out-of-bounds", lane, message)


def _malloc(call: BuiltInCall) -> np.ndarray:
    results = np.zeros(call.values.shape[1], np.uint64)
    for lane in call.lanes:
        results[lane] = call.memory.heap.take(call.argument(0, lane))
    return results


def _free(call: BuiltInCall) -> np.ndarray:
    for lane in call.lanes:
        address = call.argument(0, lane)
        problem = call.memory.heap.give_back(address)
        if problem:
            kind = "use-after-free" if "before" in problem else "out-of-bounds"
            message = f"free or delete of address {address:#x}, which {problem}."
            raise CallError(kind, lane, message)
    return np.zeros(call.values.shape[1], np.uint64)


_FUNCTIONS: dict[str, Callable[[BuiltInCall], np.ndarray]] = {
    "vprintf": _printf,
    "__assertfail": _assertion,
    "malloc": _malloc,
    "free": _free,
    stack.OVERFLOW: _overflow,
    stack.NO_FUNCTION: _no_function,
}
