"""Programs from disk: what `program.load` makes of a PTX text is kept, so that a new process need not read that again."""

from __future__ import annotations

import pickle
import sys

from gpulab.emulator.llvm import cache
from gpulab.emulator.program import Program, load
from gpulab.ptx import parse


def program(text: str, entry: str) -> Program:
    """The kernel of a PTX module.

    Parameters
    ----------
    text : str
        The module.
    entry : str
        Name of the kernel.

    Raises
    ------
    PtxSyntaxError, UnsupportedInstruction
        As by `parse` and `load`.
    """
    name = cache.key("program", cache.generators(), sys.version, text, entry)
    stored = cache.load(name)
    if stored is not None:
        found: Program = pickle.loads(stored)
        return found
    made = load(parse(text), entry)
    cache.save(name, pickle.dumps(made, pickle.HIGHEST_PROTOCOL))
    return made
