"""How compiled kernels call back into Python for their built-in functions."""

from __future__ import annotations

import ctypes
import sys

import numpy as np

from gpulab.emulator.builtins import BuiltInCall, CallError
from gpulab.emulator.layout import SLOTS, WARP
from gpulab.emulator.memory import Memory
from gpulab.emulator.program import Program
from gpulab.ptx.syntax import Group

_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint32, ctypes.c_void_p)


class Callback:
    """The native entry to the built-in functions of one launch.

    Attributes
    ----------
    address : int
        Of the function ``i32 (context, instruction, mask, arguments)``, which puts the results in the place of the first
        argument; 1 means that the launch ends here.
    failures : dict of int to CallError
        What ended it, by the linear number of the block.
    error : BaseException or None
        What Python raised on the way.
    """

    def __init__(self, program: Program, memory: Memory) -> None:
        self._program = program
        self._memory = memory
        self._callback = _SIGNATURE(self._call)
        self.address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        self.failures: dict[int, CallError] = {}
        self.error: BaseException | None = None

    def _call(self, context: int, instruction: int, mask: int, arguments: int) -> int:
        words = _array(context, len(SLOTS), np.uint64)
        # An exception cannot pass through native code: it is kept, and raised when the launch has ended.
        try:
            self._run(words, instruction, mask, arguments)
        except CallError as failure:
            self.failures[int(words[SLOTS["block"]])] = failure
            return 1
        except BaseException as error:  # noqa: BLE001
            self.error = error
            return 1
        return 0

    def _run(self, words: np.ndarray, instruction: int, mask: int, arguments: int) -> None:
        listed = self._program.function.instructions[instruction].operands[2]
        assert isinstance(listed, Group)
        values = _array(arguments, len(listed.elements) * WARP, np.uint64).reshape(-1, WARP)

        def spaces(lane: int) -> tuple[np.ndarray, np.ndarray]:
            size = int(words[SLOTS["local_bytes"]])
            local = int(words[SLOTS["warp_local"]]) + lane * size
            shared = _array(int(words[SLOTS["shared"]]), int(words[SLOTS["shared_bytes"]]), np.uint8)
            return shared, _array(local, size, np.uint8)

        lanes = [lane for lane in range(WARP) if mask >> lane & 1]
        results = BuiltInCall(self._program, self._memory, instruction, lanes, values, spaces, sys.stdout.write).run()
        _array(arguments, WARP, np.uint64)[:] = results


def _array(address: int, count: int, dtype: type) -> np.ndarray:
    """Memory of the process as an array; not a copy."""
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype) if size else np.zeros(0, dtype)
