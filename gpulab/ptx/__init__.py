"""PTX: text to `Module`, the table of instructions, and the flow graph.

Nothing here executes anything; the emulator and the models read what this package makes.
"""

from __future__ import annotations

from gpulab.ptx.parser import parse
from gpulab.ptx.syntax import Function, Instruction, Location, Module, Span

__all__ = ["Function", "Instruction", "Location", "Module", "Span", "parse"]
