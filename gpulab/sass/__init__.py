"""SASS, the GPU's own machine code: nvdisasm's text to `Code`, with its basic blocks and loops.

Nothing here runs a tool or executes anything; the models read what this package makes.
"""

from __future__ import annotations

from gpulab.sass.parser import parse
from gpulab.sass.syntax import Block, Code, Instruction

__all__ = ["Block", "Code", "Instruction", "parse"]
