"""Rows of the table of metrics: what the modeled caches make of the counted accesses.

Beside each value stand its bounds, which hold whatever the caches do: all that is used again hits, or nothing does.
"""

from __future__ import annotations

from collections.abc import Callable

from gpulab.models.access import SECTOR_BYTES
from gpulab.models.metric import Metric, Sources
from gpulab.models.traffic import Bounded

LOADS = "pipe_lsu_mem_global_op_ld"
Bounds = Callable[[Sources], Bounded]


def cache_rows() -> list[Metric]:
    """The rows of this module."""
    return [*_l1_rows(), *_l2_rows(), *_dram_rows()]


def _row(name: str, unit: str, meaning: str, bounds: Bounds, absent: str = "") -> Metric:
    return Metric(name, unit, meaning, "modeled", lambda s: round(bounds(s).value), absent, bounds)


def _rate(name: str, meaning: str, missed: Bounds, of_all: Callable[[Sources], int], absent: str) -> Metric:
    """The share of sectors that a cache has, from those that it has not."""

    def bounds(s: Sources) -> Bounded | None:
        whole, missing = of_all(s), missed(s)
        if not whole:
            return None
        return Bounded(*(100 * (1 - part / whole) for part in (missing.high, missing.value, missing.low)))

    def value(s: Sources) -> float | None:
        found = bounds(s)
        return None if found is None else found.value

    return Metric(name, "%", meaning, "modeled", value, absent, bounds)


# ---- L1


def _loads(s: Sources) -> int:
    return s.tally.total("sectors", kinds=("load",), spaces=("global",))


def _l1_missed(s: Sources) -> Bounded:
    low = min(s.traffic.dram_read.low, s.traffic.l2_read)
    return Bounded(low, s.traffic.l2_read, _loads(s))


def _l1_hit(s: Sources) -> Bounded:
    missed, loads = _l1_missed(s), _loads(s)
    return Bounded(loads - missed.high, loads - missed.value, loads - missed.low)


def _all_of_l1(s: Sources) -> int:
    return s.tally.total("sectors", spaces=("global",))


def _not_from_l1(s: Sources) -> Bounded:
    missed, others = _l1_missed(s), _all_of_l1(s) - _loads(s)
    return Bounded(missed.low + others, missed.value + others, missed.high + others)


def _l1_rows() -> list[Metric]:
    none = "there are no global loads"
    return [
        _row(f"l1tex__t_sectors_{LOADS}_lookup_hit.sum", "sector", "global load sectors that L1 serves", _l1_hit),
        _row(
            f"l1tex__t_sectors_{LOADS}_lookup_miss.sum", "sector", "global load sectors that L1 asks of L2", _l1_missed
        ),
        _rate(
            f"l1tex__t_sector_{LOADS}_hit_rate.pct",
            "share of global load sectors that L1 serves",
            _l1_missed,
            _loads,
            none,
        ),
        _rate(
            "l1tex__t_sector_hit_rate.pct",
            "share of all global sectors that L1 serves; stores and atomics pass through to L2",
            _not_from_l1,
            _all_of_l1,
            "there are no global accesses",
        ),
    ]


# ---- L2


def _exactly(count: Callable[[Sources], int]) -> Bounds:
    return lambda s: Bounded(count(s), count(s), count(s))


def _atomics(*kinds: str) -> Bounds:
    return _exactly(lambda s: s.tally.total("sectors", kinds=kinds, spaces=("global",)))


def _l2_rows() -> list[Metric]:
    return [
        _row("lts__t_sectors_op_read.sum", "sector", "sectors that SMs read from L2", _l1_missed),
        _row("lts__t_sectors_srcunit_tex_op_read.sum", "sector", "sectors that L1 reads from L2", _l1_missed),
        _row(
            "lts__t_sectors_op_write.sum",
            "sector",
            "sectors that SMs write to L2",
            _exactly(lambda s: s.traffic.l2_write),
        ),
        _row("lts__t_sectors_op_atom.sum", "sector", "sectors of atomics with a result in L2", _atomics("atomic")),
        _row("lts__t_sectors_op_red.sum", "sector", "sectors of atomics without a result in L2", _atomics("reduction")),
        _rate(
            "lts__t_sector_hit_rate.pct",
            "share of the sectors asked of L2 that need nothing from DRAM; a store never does",
            lambda s: s.traffic.dram_read,
            lambda s: s.traffic.l2,
            "nothing is asked of L2",
        ),
    ]


# ---- DRAM


def _bytes(sectors: Bounds) -> Bounds:
    def of(s: Sources) -> Bounded:
        found = sectors(s)
        return Bounded(*(round(each) * SECTOR_BYTES for each in (found.low, found.value, found.high)))

    return of


def _dram_rows() -> list[Metric]:
    ways: dict[str, tuple[str, Bounds]] = {
        "_read": ("read from DRAM, L2 being empty before", lambda s: s.traffic.dram_read),
        "_write": ("written to DRAM, what stays in L2 included", lambda s: s.traffic.dram_write),
        "": ("between L2 and DRAM", lambda s: s.traffic.dram),
    }
    rows = []
    for way, (meaning, sectors) in ways.items():
        rows += [
            _row(f"dram__bytes{way}.sum", "byte", f"bytes {meaning}", _bytes(sectors)),
            _row(f"dram__sectors{way}.sum", "sector", f"sectors {meaning}", sectors),
        ]
    return [row for row in rows if row.name != "dram__sectors.sum"]
