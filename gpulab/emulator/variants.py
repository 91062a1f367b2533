"""The compiled variants of a program: which there are, how they are made, where they are kept in memory."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field

from gpulab.emulator import jit, layout, native
from gpulab.emulator.checking.native import helpers as check_helpers
from gpulab.emulator.ir import IrModule
from gpulab.emulator.lower_control import register_offset
from gpulab.emulator.lower_kernel import lower_kernel
from gpulab.emulator.program import Program
from gpulab.emulator.shapes import BlockShape, Plan, fast_plan, general_plan

# Above so many instructions the optimizer costs more than it wins on the first launch.
FULL_OPTIMIZATION_LIMIT = 3000


@dataclass
class Variant:
    """One compiled kernel: for a block shape, with or without counting, with or without the check.

    Attributes
    ----------
    fast : jit.Code
        With the fast plan, or the general one if that was asked for.
    bail_points : tuple of int
        Instructions before which it may bail out to the general variant, which is compiled only then.
    """

    program: Program
    plan: Plan
    count: bool
    symbols: dict[str, int]
    fast: jit.Code
    bail_points: tuple[int, ...]
    check: bool = False
    _general: jit.Code | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def address(self) -> int:
        """Where the fast variant begins."""
        return self.fast.addresses["warp"]

    def general_address(self) -> int:
        """Where the general variant begins, compiled if need be."""
        with self._lock:
            if self._general is None:
                plan = general_plan(self.program, self.plan.block_shape)
                module = IrModule()
                points = self.bail_points
                lower_kernel(
                    module, "warp", self.program, plan, self.count, self.symbols, self.plan, points, self.check
                )
                self._general = _build(module, self.program, self.check)
            return self._general.addresses["warp"]


def frame_bytes(program: Program) -> int:
    """Size of a warp's frame."""
    # One more register than declared: the carry.
    end = register_offset(len(program.graph.blocks), len(program.function.registers) + 1)
    return -(-end // 64) * 64


def masks_end(program: Program) -> int:
    """Bytes at the start of a frame that are zero when a warp begins."""
    return layout.FRAME_HEADER_BYTES + 4 * len(program.graph.blocks)


def _build(module: IrModule, program: Program, check: bool) -> jit.Code:
    level = 1 if len(program.forms) <= FULL_OPTIMIZATION_LIMIT else 0
    imports = native.helpers().addresses | (check_helpers().addresses if check else {})
    return jit.build(module.text(), ("warp",), imports, level)


Key = tuple[BlockShape, bool, bool, bool, tuple[str, ...]]
_variants: dict[int, dict[Key, Variant]] = {}
_lock = threading.Lock()


def variant(
    program: Program,
    block: tuple[int, int, int],
    count: bool,
    symbols: dict[str, int],
    general: bool,
    check: bool = False,
) -> Variant:
    """The variant for a launch, from memory or newly compiled."""
    key = (BlockShape.of(block), count, general, check, tuple(sorted(symbols)))
    with _lock:
        if id(program) not in _variants:
            _variants[id(program)] = {}
            weakref.finalize(program, _variants.pop, id(program), None)
        known = _variants[id(program)]
        if key not in known:
            known[key] = _compile(program, *key[:4], symbols)
        return known[key]


def _compile(
    program: Program, shape: BlockShape, count: bool, general: bool, check: bool, symbols: dict[str, int]
) -> Variant:
    plan = general_plan(program, shape) if general else fast_plan(program, shape)
    module = IrModule()
    bail_points = lower_kernel(module, "warp", program, plan, count, symbols, check=check)
    return Variant(program, plan, count, symbols, _build(module, program, check), bail_points, check)
