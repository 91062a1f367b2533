"""The compiled variants of a program: which there are, how they are made, where they are kept in memory."""

from __future__ import annotations

import functools
import threading
import weakref
from dataclasses import dataclass, field

import numpy as np

from gpulab.emulator import layout
from gpulab.emulator.analysis.block_shape import BlockShape
from gpulab.emulator.analysis.meeting import stuck_kind
from gpulab.emulator.checking.native import helpers as check_helpers
from gpulab.emulator.layout import register_offset, register_slots
from gpulab.emulator.llvm import jit
from gpulab.emulator.native import count as native_count
from gpulab.emulator.native import library
from gpulab.emulator.program import Program

# Above so many instructions the optimizer costs more than it ever wins.
FULL_OPTIMIZATION_LIMIT = 3000
# Optimized code takes so many times as long to make as the first code. When a kernel has run as long, it was worth it.
_COST_OF_OPTIMIZATION = 3.0


@dataclass(frozen=True, slots=True)
class Kind:
    """What tells the variants of a program apart, besides the module variables that it may name."""

    block_shape: BlockShape
    count: bool
    general: bool
    check: bool


@dataclass
class Variant:
    """One compiled kernel: for a block shape, with or without counting, with or without the check.

    Attributes
    ----------
    kind : Kind
    fast : jit.Code
        With the fast plan, or the general one if that was asked for. It notes the instructions before which it may bail
        out to the general variant, which is compiled only then. First it is compiled in a hurry.
    spent : float
        Seconds that launches took with it.
    """

    program: Program
    kind: Kind
    symbols: dict[str, int]
    fast: jit.Code
    spent: float = 0.0
    _general: jit.Code | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @functools.cached_property
    def frame_bytes(self) -> int:
        """Size of a warp's frame."""
        return frame_bytes(self.program)

    @functools.cached_property
    def usual_costs(self) -> np.ndarray:
        """`native.count.usual_costs` of its instructions and, behind them, of the stores of asynchronous copies."""
        tables, copies = self.program.tables, self.program.copies
        sizes = np.concatenate([tables.access_bytes, tables.access_bytes[copies]])
        return native_count.usual_costs(sizes, np.concatenate([tables.is_shared, np.ones(len(copies), bool)]))

    @functools.cached_property
    def block_table(self) -> np.ndarray:
        """First instruction of each basic block, and the fault of lanes that are stuck there: shape (blocks, 2), int64."""
        starts = [block.start for block in self.program.graph.blocks]
        faults = [layout.FAULT_CODES[stuck_kind(self.program.forms[start])] for start in starts]
        return np.array([starts, faults], np.int64).T.copy()

    @property
    def address(self) -> int:
        """Where the fast variant begins."""
        return self.fast.addresses["warp"]

    def optimize_if_due(self) -> None:
        """Compile again, with optimization, once launches have taken as long as that takes."""
        small = len(self.program.forms) <= FULL_OPTIMIZATION_LIMIT
        if small and self.fast.level == 0 and self.spent > _COST_OF_OPTIMIZATION * self.fast.seconds:
            self.fast = _build(self.program, self.kind, self.symbols, levels=(1,))

    def general_address(self) -> int:
        """Where the general variant begins, compiled if need be."""
        with self._lock:
            if self._general is None:
                self._general = _build(self.program, self.kind, self.symbols, self.fast.notes)
            return self._general.addresses["warp"]


def frame_bytes(program: Program) -> int:
    """Size of a warp's frame."""
    end = register_offset(len(program.graph.blocks), register_slots(program)[1])
    return -(-end // 64) * 64


def _build(
    program: Program,
    kind: Kind,
    symbols: dict[str, int],
    bail_points: tuple[int, ...] | None = None,
    levels: tuple[int, ...] = (1, 0),
) -> jit.Code:
    """The code of one kind, or of the general variant that it bails out to at some points."""
    imports = (
        library.helpers().addresses
        | library.products(program.forms)
        | (check_helpers().addresses if kind.check else {})
    )
    names = sorted(symbols)
    parts = (program.module.text, program.function.name, repr(kind), repr(names), repr(bail_points))
    return jit.build(lambda: _lower(program, kind, symbols, bail_points), parts, imports, levels)


def _lower(program: Program, kind: Kind, symbols: dict[str, int], bail_points: tuple[int, ...] | None) -> jit.Source:
    # Loaded only where something must be compiled.
    from gpulab.emulator.analysis.shapes import fast_plan, general_plan
    from gpulab.emulator.llvm.ir import IrModule
    from gpulab.emulator.lower.kernel import lower_kernel

    module, bailed_from = IrModule(), None
    if bail_points is not None:
        bailed_from = fast_plan(program, kind.block_shape)
    general = kind.general or bail_points is not None
    plan = (general_plan if general else fast_plan)(program, kind.block_shape)
    points = lower_kernel(
        module, "warp", program, plan, kind.count, symbols, bailed_from, bail_points or (), kind.check
    )
    return jit.Source(module.text(), ("warp",), points)


_variants: dict[int, dict[tuple[Kind, tuple[str, ...]], Variant]] = {}
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
    kind = Kind(BlockShape.of(block), count, general, check)
    key = kind, tuple(sorted(symbols))
    with _lock:
        if id(program) not in _variants:
            _variants[id(program)] = {}
            weakref.finalize(program, _variants.pop, id(program), None)
        known = _variants[id(program)]
        if key not in known:
            known[key] = Variant(program, kind, symbols, _build(program, kind, symbols))
        known[key].optimize_if_due()
        return known[key]
