"""How an instruction is refused: with its place in the PTX, in the reader's source, and its text."""

from __future__ import annotations

import re

from gpulab.errors import UnsupportedInstruction
from gpulab.ptx.names import plain_name
from gpulab.ptx.syntax import Instruction


def place_of(instruction: Instruction) -> str:
    """Say where an instruction stands, e.g. ``PTX line 12 (scale.cu, line 3)``."""
    place = f"PTX line {instruction.span.line}"
    if instruction.location is not None:
        own = instruction.location.own
        place += f" ({own.file}, line {own.line})"
    return place


def refusal(instruction: Instruction, message: str) -> UnsupportedInstruction:
    """Make the error that an instruction cannot be run; names are told as the reader wrote them."""
    told = re.sub(r"\b_Z\w+", lambda found: plain_name(found[0]), f"'{instruction.text}': {message}")
    return UnsupportedInstruction(f"{place_of(instruction)}: {told}", instruction.span.line)
