"""Ask NVIDIA's assembler and disassembler: registers, spills, shared memory, stack, SASS text."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gpulab.errors import CompileError, ToolchainError
from gpulab.sass import Code, parse
from gpulab.toolchain import cache, locate
from gpulab.toolchain.records import require_known

_TIMEOUT_S = 300
_NUMBERS = {
    "registers_per_thread": r"Used (\d+) registers",
    "spill_store_bytes": r"(\d+) bytes spill stores",
    "spill_load_bytes": r"(\d+) bytes spill loads",
    "stack_bytes": r"(\d+) bytes stack frame",
    "static_shared_bytes": r"(\d+) bytes smem",
}


@dataclass(frozen=True, eq=False)
class Assembled:
    """What the assembler made of one kernel for one compute capability.

    Attributes
    ----------
    compute_capability : tuple of int
    registers_per_thread : int or None
    spill_store_bytes, spill_load_bytes, stack_bytes : int or None
        Per thread.
    static_shared_bytes : int or None
        Per block.
    reason : str or None
        Why the numbers are None: the assembler is missing.
    cubin : bytes or None
        The machine code of the whole module as an ELF image.
    kernel : str or None
        Name of the kernel in it; None for the only one.
    """

    compute_capability: tuple[int, int]
    registers_per_thread: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    static_shared_bytes: int | None = None
    stack_bytes: int | None = None
    reason: str | None = None
    cubin: bytes | None = None
    kernel: str | None = None

    @property
    def sass(self) -> str | None:
        """SASS of the kernel with source lines as text, or None where it cannot be made; `sass_reason` says why."""
        return self._disassembled[0]

    @property
    def sass_reason(self) -> str | None:
        """Why there is no SASS, or None if there is."""
        return self._disassembled[1]

    @cached_property
    def code(self) -> Code | None:
        """The SASS with its basic blocks and loops, or None where `sass` is."""
        return None if self.sass is None else parse(self.sass)

    @cached_property
    def _disassembled(self) -> tuple[str | None, str | None]:
        if self.cubin is None:
            return None, self.reason
        text, reason = disassemble(self.cubin, self.compute_capability)
        return text and _section(text, self.kernel), reason


def assemble(
    text: str, compute_capability: tuple[int, int], *, kernel: str | None = None, register_limit: int | None = None
) -> Assembled:
    """Assemble a PTX module for a compute capability and read the resources of `kernel` (default: its first entry).

    Without ``ptxas`` on this machine all numbers are None and `Assembled.reason` says what to install.

    Raises
    ------
    CompileError
        If the assembler refuses the PTX; the message has its words.
    """
    capability = require_known(compute_capability)
    try:
        path = locate.tool("ptxas")
    except ToolchainError as error:
        return Assembled(capability, reason=str(error))
    entry = cache.key("ptxas", text=text, capability=capability, limit=register_limit, tool=locate.identity(path))
    stored = cache.read(entry)
    if stored is None:
        stored = _run_ptxas(path, text, capability, register_limit)
        cache.write(entry, stored)
    numbers = _resources(stored["log"], kernel)
    return Assembled(capability, **numbers, cubin=base64.b64decode(stored["cubin"]), kernel=kernel)


def disassemble(cubin: bytes, compute_capability: tuple[int, int]) -> tuple[str | None, str | None]:
    """SASS text with source lines of a machine code image, and None; or None and the reason why not."""
    try:
        path = locate.tool("nvdisasm")
    except ToolchainError as error:
        return None, str(error)
    digest = hashlib.sha256(cubin).hexdigest()
    entry = cache.key("nvdisasm", image=digest, tool=locate.identity(path))
    stored = cache.read(entry)
    if stored is None:
        stored = _run_nvdisasm(path, cubin)
        cache.write(entry, stored)
    if not stored["text"]:
        shown = ".".join(map(str, compute_capability))
        return None, f"nvdisasm cannot show code of compute capability {shown}: {stored['log'][:300]}"
    return stored["text"], None


def _run_nvdisasm(path: Path, cubin: bytes) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="gpulab-") as folder:
        image = Path(folder) / "kernel.cubin"
        image.write_bytes(cubin)
        done = _run([str(path), "-c", "-gi", str(image)])
    return {"text": done.stdout if done.returncode == 0 else "", "log": done.stderr.strip()}


def _section(text: str, kernel: str | None) -> str:
    """The part of a disassembly that is one kernel's code; all of it if there is no such part."""
    found = re.search(rf"^//-+ \.text\.{re.escape(kernel or '')}\s.*?(?=^//-+ |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[0] if kernel and found else text


def _run_ptxas(path: Path, text: str, capability: tuple[int, int], register_limit: int | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="gpulab-") as folder:
        source, image = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text, encoding="utf-8")
        command = [str(path), "-v", f"-arch=sm_{capability[0]}{capability[1]}", "-lineinfo"]
        if register_limit is not None:
            command.append(f"-maxrregcount={register_limit}")
        done = _run([*command, str(source), "-o", str(image)])
        if done.returncode != 0:
            raise CompileError(_refusal(done.stderr, text, source))
        return {"log": done.stderr, "cubin": base64.b64encode(image.read_bytes()).decode()}


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except OSError as error:
        raise ToolchainError(f"{command[0]} does not run on this machine: {error}.") from error
    except subprocess.TimeoutExpired:
        raise ToolchainError(f"{command[0]} did not finish within {_TIMEOUT_S} s.") from None


def _refusal(log: str, text: str, source: Path) -> str:
    """The assembler's words, each complaint with the PTX line that it is about."""
    lines, told = text.splitlines(), []
    for line in log.strip().splitlines():
        told.append(line.replace(str(source), "PTX"))
        number = re.search(r", line (\d+);", line)
        if number and int(number[1]) <= len(lines):
            told.append(f"    {number[1]} | {lines[int(number[1]) - 1].strip()}")
    return "ptxas does not accept the PTX:\n" + "\n".join(told[:20])


def _resources(log: str, kernel: str | None) -> dict[str, int]:
    """The numbers of one kernel from the verbose log, which tells of the module's kernels one after the other."""
    parts = re.split(r"Compiling entry function '([^']*)'", log)
    by_name = dict(zip(parts[1::2], parts[2::2], strict=True))
    told = by_name.get(kernel or "", parts[2] if len(parts) > 2 else "")
    found = {name: re.search(pattern, told) for name, pattern in _NUMBERS.items()}
    return {name: int(match[1]) if match else 0 for name, match in found.items()}
