"""Built-in functions that compiled kernels call back into Python for: `vprintf` and `__assertfail`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np

from gpulab.emulator.layout import SLOTS, WARP
from gpulab.emulator.memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BITS, Memory
from gpulab.emulator.printf import format_printf, read_string
from gpulab.emulator.program import Program
from gpulab.ptx.syntax import Group, Symbol

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32, ctypes.c_void_p)


class BuiltIns:
    """The functions for one launch.

    Attributes
    ----------
    address : int
        Of the native entry: ``i32 (context, instruction, mask, arguments)``; 1 means that an assertion failed.
    message : str
        What failed.
    error : BaseException or None
        What Python raised on the way.
    """

    def __init__(self, program: Program, memory: Memory) -> None:
        self._program = program
        self._memory = memory
        self._callback = _SIGNATURE(self._call)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        self.message = ""
        self.error: BaseException | None = None

    def _call(self, context: int, instruction: int, mask: int, arguments: int) -> int:
        # An exception cannot pass through native code: it is kept, and raised when the launch has ended.
        try:
            return self._run(context, instruction, mask, arguments)
        except BaseException as error:  # noqa: BLE001
            self.error = error
            return 1

    def _run(self, context: int, instruction: int, mask: int, arguments: int) -> int:
        _, target, listed = self._program.function.instructions[instruction].operands[:3]
        assert isinstance(listed, Group)
        values = _words(arguments, len(listed.elements) * WARP).reshape(-1, WARP)
        lanes = [lane for lane in range(WARP) if mask >> lane & 1]
        if target == Symbol("__assertfail"):
            read = self._reader(context, lanes[0])
            condition, file = (read_string(int(values[place][lanes[0]]), read) for place in (0, 1))
            self.message = f"the assertion '{condition}' failed ({file}, line {int(values[2][lanes[0]])})."
            return 1
        for lane in lanes:
            read = self._reader(context, lane)
            template = read_string(int(values[0][lane]), read)
            sys.stdout.write(format_printf(template, int(values[1][lane]), read))
        return 0

    def _reader(self, context: int, lane: int) -> Callable[[int, int], bytes]:
        """Reads memory as a lane sees it, by generic address."""
        words = _words(context, len(SLOTS))

        def read(address: int, count: int) -> bytes:
            window = address >> WINDOW_BITS << WINDOW_BITS
            if window == SHARED_WINDOW:
                return ctypes.string_at(int(words[SLOTS["shared"]]) + address - window, count)
            if window == LOCAL_WINDOW:
                start = int(words[SLOTS["warp_local"]]) + lane * int(words[SLOTS["local_bytes"]])
                return ctypes.string_at(start + address - window, count)
            return self._memory.view(address, count).tobytes()

        return read


def _words(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_uint64)), (count,))
