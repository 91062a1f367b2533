"""Read the text that ``nvdisasm -c -gi`` prints for one kernel.

A line is a label (``.L_x_1:``), an instruction (``/*0040*/  @!P0 BRA `(.L_x_1) ;``), or says where the instructions after
it come from (``//## File "k.cu", line 2 inlined at "k.cu", line 7``): innermost place first, then its callers.
"""

from __future__ import annotations

import re

from gpulab.ptx.syntax import Location
from gpulab.sass.flow import with_flow
from gpulab.sass.syntax import Code, Instruction

_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_LABEL = re.compile(r"([.$\w]+):\s*$")
_PLACE = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
_PARTS = re.compile(r"(@!?U?P\w+)?\s*([A-Z][\w]*)((?:\.\w+)*)\s*(.*)")
_BETWEEN_OPERANDS = re.compile(r",\s*(?![^\[`]*[\])])")


def parse(text: str) -> Code:
    """Read the disassembly of one kernel.

    Parameters
    ----------
    text : str
        Its section of nvdisasm's output.

    Returns
    -------
    Code
        Without instructions if there are none in the text.
    """
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    chain: list[tuple[str, int]] = []
    places: dict[tuple[tuple[str, int], ...], Location | None] = {}
    told = False  # whether the line before this one told a place as well
    for line in text.splitlines():
        if place := _PLACE.match(line):
            chain = [*(chain if told else []), (place[1], int(place[2]))]
            told = True
            continue
        told = False
        if found := _INSTRUCTION.match(line):
            key = tuple(chain)
            if key not in places:
                places[key] = _location(chain)
            instructions.append(_instruction(int(found[1], 16), found[2], places[key]))
        elif found := _LABEL.match(line):
            labels[found[1]] = len(instructions)
    return with_flow(instructions, labels)


def _location(chain: list[tuple[str, int]]) -> Location | None:
    where: Location | None = None
    for file, line in reversed(chain):
        where = Location(file, line, inlined_at=where)
    return where


def _instruction(address: int, text: str, location: Location | None) -> Instruction:
    found = _PARTS.match(text)
    if found is None:
        return Instruction(address, text.split()[0] if text else "", (), (), "", location, text)
    guard, opcode, modifiers, rest = found.groups()
    operands = tuple(operand.strip() for operand in _BETWEEN_OPERANDS.split(rest)) if rest else ()
    return Instruction(
        address, opcode, tuple(modifiers.split(".")[1:]), operands, guard or "", location, " ".join(text.split())
    )
