"""The errors that a user can meet.

Every message says what must hold, what came, where, and what to do next. A subclass exists where a caller may want to
tell the cases apart; `KernelFault` carries the fault itself as data.
"""

from __future__ import annotations

import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path

_NOT_THE_READERS = (str(Path(__file__).parent), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))


class GpulabError(Exception):
    """A user's mistake, or something that this machine lacks. The message is meant to be read by a learner."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: the reader's own lines and the message, none of gpulab's frames."""
        frames = [
            frame
            for frame in traceback.extract_tb(self.__traceback__)
            if not frame.filename.startswith(_NOT_THE_READERS)
        ]
        places = [f"{shown_file(frame.filename)}, line {frame.lineno}: {frame.line}" for frame in frames]
        message = "".join(traceback.format_exception_only(self)).replace(f"{type(self).__module__}.", "", 1)
        return [*places, "", message.rstrip()]


class CompileError(GpulabError):
    """A kernel does not compile. The message shows the user's own line."""


class PtxSyntaxError(GpulabError):
    """PTX text that cannot be read; the message shows the line and a caret. `line` and `column` are 1-based."""

    def __init__(self, message: str, line: int, column: int) -> None:
        self.line = line
        self.column = column
        super().__init__(message)


class UnsupportedInstruction(GpulabError):
    """A PTX instruction form that the emulator refuses by name, with its line. Nothing is ever skipped silently."""

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


class LaunchError(GpulabError):
    """A launch that no GPU would accept: block size, grid size, shared memory, number of arguments."""


class ArgumentError(GpulabError):
    """An argument that does not fit its parameter: dtype, layout, read-only, count."""


class ToolchainError(GpulabError):
    """A compiler or tool is missing or does not run on this machine."""


class KernelException(GpulabError):
    """A kernel compiled with ``debug=True`` raised a Python exception; the message has it and the thread."""


class TimeLimitError(GpulabError):
    """A launch ran longer than its time limit and was stopped."""


class DeviceError(GpulabError):
    """A device that was asked for is not there or failed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that a kernel did wrong while it ran.

    Attributes
    ----------
    kind : str
        One of ``out-of-bounds``, ``misaligned``, ``uninitialized``, ``use-after-free``, ``race``, ``barrier``,
        ``warp-sync``, ``deadlock``; ``assert``, ``trap`` for what the kernel itself gave up on; in a check's report also
        ``launch``, for a launch that the GPU would refuse.
    message : str
        One or two sentences for a learner: what happened, what usually fixes it.
    file : str or None
        Source file of the instruction, where line information is there.
    line : int or None
        Source line (1-based).
    block : tuple of int
        ``blockIdx`` (x, y, z) of the first thread that did it.
    thread : tuple of int or None
        ``threadIdx`` (x, y, z) of the first thread that did it.
    count : int
        How many threads did it, as far as known; at least 1.
    ptx_line : int or None
        Line in the PTX text (1-based).
    """

    kind: str
    message: str
    file: str | None = None
    line: int | None = None
    block: tuple[int, int, int] = (0, 0, 0)
    thread: tuple[int, int, int] | None = None
    count: int = 1
    ptx_line: int | None = None


class KernelFault(GpulabError):
    """A kernel did something that hardware forbids or leaves undefined; `fault` has it as data."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


def shown_file(file: str) -> str:
    """A source file as a reader knows it: Jupyter compiles cells under made-up names in a temporary folder."""
    return "this notebook's cell" if "ipykernel_" in file else file
