"""Rows of the table of metrics: global, local and shared memory.

Where hardware counters carry noise (shared memory), the values are those of Nsight Compute's SASS counters, which
derive from addresses as ours do.
"""

from __future__ import annotations

from collections.abc import Callable

from gpulab.models.access import SECTOR_BYTES
from gpulab.models.metric import Metric, Sources, Value, ratio

WAVEFRONT_BYTES = 128
OPERATIONS = {"ld": ("load",), "st": ("store",), "atom": ("atomic",), "red": ("reduction",)}
WORDS = {"ld": "loads", "st": "stores", "atom": "atomics with a result", "red": "atomics without a result"}


def _global_total(op: str) -> Callable[[Sources, str], int]:
    return lambda sources, counter: sources.tally.total(counter, kinds=OPERATIONS[op], spaces=("global",))


def _global_rows(op: str) -> list[Metric]:
    total, where = _global_total(op), f"pipe_lsu_mem_global_op_{op}"
    sectors = f"l1tex__t_sectors_{where}.sum" if op in ("ld", "st") else f"smsp__sass_l1tex_t_sectors_{where}.sum"
    rows = [
        (
            f"l1tex__t_requests_{where}.sum",
            "request",
            "requests of global {}: warp instructions with a lane on",
            "requests",
        ),
        (sectors, "sector", "32-byte sectors that global {} touch", "sectors"),
    ]
    return [
        Metric(name, unit, meaning.format(WORDS[op]), "emulated", lambda s, counter=counter: total(s, counter))
        for name, unit, meaning, counter in rows
    ]


def _efficiency_rows(op: str) -> list[Metric]:
    total, word, where = _global_total(op), WORDS[op], f"pipe_lsu_mem_global_op_{op}"
    used = f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}"
    rows: list[tuple[str, str, str, Callable[[Sources], Value]]] = [
        (
            f"l1tex__average_t_sectors_per_request_{where}.ratio",
            "sector/request",
            f"sectors per request of global {word}; 4 is the best for 4-byte accesses of a full warp",
            lambda s: ratio(total(s, "sectors"), total(s, "requests")),
        ),
        (
            f"l1tex__t_bytes_{where}.sum",
            "byte",
            f"bytes that global {word} move: 32 for each sector",
            lambda s: total(s, "sectors") * SECTOR_BYTES,
        ),
        (
            f"{used}.ratio",
            "byte/sector",
            f"bytes of each sector that global {word} asked for, of 32",
            lambda s: ratio(total(s, "bytes_asked"), total(s, "sectors")),
        ),
        (
            f"{used}.pct",
            "%",
            f"efficiency of global {word}: bytes asked for of bytes moved",
            lambda s: ratio(total(s, "bytes_asked"), total(s, "sectors") * SECTOR_BYTES, 100),
        ),
    ]
    return [Metric(*row[:3], "emulated", row[3], f"there are no global {word}") for row in rows]


def _local_rows(op: str) -> list[Metric]:
    def total(sources: Sources, counter: str) -> Value:
        # ptxas may drop a local array or add spills, so PTX alone can only tell that there is no stack at all.
        if all(run.local_bytes == 0 for run in [sources.run, *(one.run for one in sources.sass)]):
            return 0
        estimates = [one.estimate for one in sources.sass]
        known = [estimate for estimate in estimates if estimate is not None]
        return round(sum(each.local(counter, op) for each in known)) if known and len(known) == len(estimates) else None

    word, why = WORDS[op], "ptxas decides what stays in local memory, and its code for this kernel cannot be read here"
    return [
        Metric(
            f"l1tex__t_{what}s_pipe_lsu_mem_local_op_{op}.sum",
            what,
            f"{what}s of local {word} (spills, local arrays) in ptxas's code",
            "modeled",
            lambda s, counter=f"{what}s": total(s, counter),
            why,
        )
        for what in ("request", "sector")
    ]


def _shared_rows(suffix: str, kinds: tuple[str, ...], word: str) -> list[Metric]:
    def total(sources: Sources, counter: str) -> int:
        return sources.tally.total(counter, kinds=kinds, spaces=("shared",))

    return [
        Metric(
            f"l1tex__data_pipe_lsu_wavefronts_mem_shared{suffix}.sum",
            "wavefront",
            f"passes of the data stage for shared {word}",
            "emulated",
            lambda s: total(s, "wavefronts"),
        ),
        Metric(
            f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared{suffix}.sum",
            "conflict",
            f"extra passes of shared {word} because lanes met in a bank",
            "emulated",
            lambda s: total(s, "wavefronts") - total(s, "wavefronts_ideal"),
        ),
        Metric(
            f"smsp__sass_average_data_bytes_per_wavefront_mem_shared{suffix}.pct",
            "%",
            f"efficiency of shared {word}: bytes asked for of 128 for each pass",
            "emulated",
            lambda s: ratio(total(s, "bytes_asked"), total(s, "wavefronts") * WAVEFRONT_BYTES, 100),
            f"there are no shared {word}",
        ),
    ]


def _shared_instructions(op: str) -> Metric:
    return Metric(
        f"smsp__inst_executed_op_shared_{op}.sum",
        "inst",
        f"warp instructions that are shared {WORDS[op]}",
        "emulated",
        lambda s: s.tally.total("warp_instructions", kinds=OPERATIONS[op], spaces=("shared",)),
    )


def _source_rows() -> list[Metric]:
    """The columns of Nsight Compute's source view; ideal depends on lanes and width only, so broadcasts can beat it."""
    views = {
        "memory_l2_theoretical_sectors_global": ("sector", "sectors of all global accesses", "sectors", "global"),
        "memory_l1_wavefronts_shared": ("wavefront", "passes of all shared accesses", "wavefronts", "shared"),
    }
    rows = []
    for name, (unit, words, counter, space) in views.items():

        def actual(s: Sources, counter: str = counter, space: str = space) -> int:
            return s.tally.total(counter, spaces=(space,))

        def ideal(s: Sources, counter: str = counter, space: str = space) -> int:
            return s.tally.total(f"{counter}_ideal", spaces=(space,))

        rows += [
            Metric(name, unit, words, "emulated", actual),
            Metric(f"{name}_ideal", unit, f"{words}, had each lane its own neighbouring bytes", "emulated", ideal),
            Metric(
                f"derived__{name}_excessive",
                unit,
                f"{words} above the ideal number; negative where broadcasts save some",
                "emulated",
                lambda s, actual=actual, ideal=ideal: actual(s) - ideal(s),
            ),
        ]
    return rows


def _data_stage() -> Metric:
    return Metric(
        "l1tex__data_pipe_lsu_wavefronts.sum",
        "wavefront",
        "passes of the L1 data stage for global, shared and local accesses, by the bank rule",
        "emulated",
        lambda s: s.tally.total("wavefronts"),
    )


def memory_rows() -> list[Metric]:
    """The rows of this module."""
    rows = [row for op in OPERATIONS for row in _global_rows(op)]
    rows += [row for op in ("ld", "st") for row in _efficiency_rows(op)]
    rows += [row for op in ("ld", "st") for row in _local_rows(op)]
    rows += _shared_rows("_op_ld", ("load",), "loads") + _shared_rows("_op_st", ("store",), "stores")
    rows += [*_shared_rows("", (), "accesses"), _data_stage()]
    return [*rows, _shared_instructions("ld"), _shared_instructions("st"), *_source_rows()]
