"""Write docs/instructions.md anew from the instruction table: ``python tools/refresh_instruction_table.py``."""

from __future__ import annotations

import sys
from pathlib import Path

from gpulab.ptx.beyond import LEFT_OUT
from gpulab.ptx.isa import SETS
from gpulab.ptx.table import Row, rows

PAGE = Path(__file__).resolve().parent.parent / "docs" / "instructions.md"
MANUAL = "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html"
_INTRODUCTION = """# PTX instructions of the emulated GPU

Made from `gpulab/ptx/isa.py` by `tools/refresh_instruction_table.py`; a test keeps both in step. Every form below runs on both
engines; every other one is refused by name, with its line. The emulator runs what NVRTC and Numba compile for compute capabilities
7.5 to 12.0.

How to read a form: `{.x}` may be left out, `<name: a b>` is one of the words, and `<name>` one of the set of that name (at the
end). Modifiers may stand in any order, as in NVIDIA's assembler. `d` is a destination, `p` a predicate; `h` a cache policy.

Where the emulator chooses among what the manual allows, or leaves something out:

- Approximate functions (`.approx`, `div.full`) are as exact as their type, not bit for bit those of a GPU, which differ between
  generations; the manual's error bounds hold.
- A NaN that arithmetic makes is the canonical one. A division of integers by zero gives all ones.
- Atomics of a warp happen lane after lane, in ascending order. `atom.add.f32` keeps subnormal numbers in global memory, too.
- Caches have no effect on values: cache operators, eviction priorities, policies and prefetches are read and change nothing.
- Clocks count the instructions that a block has issued.
- Matrix products are exact and are added up in f64, beginning with C, in ascending order of k; the sum is rounded once, to nearest.
  (Tensor cores add in an order of their own and cut off low bits of the sum, more or fewer by generation.) Those of f64 are
  chains of `fma`; those of integers are exact, then wrapped or clamped; the low 13 bits of a tf32 are ignored.
- The fragments of `wmma` lie in registers as those of `mma` do; each piece of them that lies together in memory is a request.
- An asynchronous copy is done when it is issued, and counts as a global load and a store into shared memory. Waits for groups have
  nothing to wait for. `mbarrier.try_wait` does not sleep.
"""
_NOT_YET = """## Forms that are not there

Refused by name, besides what NVIDIA's assembler refuses, too: conversions of 4- and 6-bit floats and of `ue8m0` (compute capabilities
10.0a and 12.0a only), `fma.oob`, vectors of 32 bytes (`.v8.b32`, `.v4.b64`), `vote` and `shfl` without `.sync`.
"""


def page() -> str:
    """The page's text."""
    families: dict[str, list[Row]] = {}
    for row in (row for entries in rows().values() for row in entries):
        families.setdefault(row.section.rpartition("-")[0], []).append(row)
    parts = [_INTRODUCTION]
    for family, members in families.items():
        title = f"[{family.replace('-', ' ').capitalize()}]({MANUAL}#{family})"
        parts.append(f"## {title}\n\n| form | operands | pipe |\n| - | - | - |\n" + "".join(map(_line, members)))
    parts.append(_NOT_YET)
    left_out = "".join(f"| {_code(names)} | {why} |\n" for names, _, why in LEFT_OUT)
    parts.append(f"## Left out on purpose\n\n| instructions | what to do instead |\n| - | - |\n{left_out}")
    sets = "".join(f"| `{name}` | {_code(words)} |\n" for name, words in sorted(SETS.items()))
    parts.append(f"## Sets of words\n\n| name | words |\n| - | - |\n{sets}")
    return "\n".join(parts)


def _line(row: Row) -> str:
    operands = f"`{row.operands}`".replace("|", "\\|") if row.operands else ""
    return f"| `{row.syntax}` | {operands} | {row.pipe} |\n"


def _code(words: str) -> str:
    return " ".join(f"`{word}`" for word in words.split())


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")


if __name__ == "__main__":
    main()
