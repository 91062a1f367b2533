"""Results as text for people, and as one JSON document."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from gpulab.cli.tables import cut, fitted, pairs, wrapped
from gpulab.gpus import Gpu
from gpulab.profiling import Comparison, Profile
from gpulab.profiling.table import Table
from gpulab.units import bytes_text

Document = dict[str, Any]
_MARKS = {"ok": "ok", "missing": "MISSING", "broken": "BROKEN", "absent": "-"}


def as_json(document: Any) -> str:
    """One JSON document; what JSON has no word for (NaN, infinity) becomes null."""
    return json.dumps(_plain(document), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def gpu_document(gpu: Gpu) -> Document:
    """All values of a GPU under their names, with their sources."""
    return {item.name: getattr(gpu, item.name) for item in dataclasses.fields(gpu)}


def gpus(documents: list[Document]) -> str:
    """The catalog, one GPU a line."""
    rows = [
        (
            gpu["name"],
            "{}.{}".format(*gpu["compute_capability"]),
            str(gpu["sm_count"]),
            f"{gpu['clock_hz'] / 1e9:.2f} GHz",
            f"{2 * gpu['fp32_lanes_per_sm'] * gpu['sm_count'] * gpu['clock_hz'] / 1e12:.1f} TFLOP/s",
            bytes_text(gpu["memory_bytes"]),
            f"{gpu['dram_bandwidth_gb_per_s']:,.0f} GB/s",
            bytes_text(gpu["l2_bytes"]),
            bytes_text(gpu["shared_bytes_per_sm"]),
        )
        for gpu in documents
    ]
    headers = ("GPU", "capability", "SMs", "clock", "FP32 peak", "memory", "DRAM", "L2", "shared/SM")
    notes = ("", "Every value with its source: gpulab gpus NAME, or --json")
    return fitted(Table("", headers, tuple(rows), notes, right=tuple(range(1, len(headers)))))


def gpu_values(documents: list[Document]) -> str:
    """All values of some GPUs, each with its source; doubt is told there."""
    return "\n\n".join(map(_gpu_values, documents))


def _gpu_values(gpu: Document) -> str:
    values = {name: _gpu_value(gpu[name]) for name in gpu if name in gpu["sources"]}
    names, numbers = (max(map(len, texts)) for texts in (values, values.values()))
    title = "{}, compute capability {}.{}".format(gpu["name"], *gpu["compute_capability"])
    aliases = [wrapped(", ".join(gpu["aliases"]), first="also called ")] if gpu["aliases"] else []
    rows = [
        wrapped(gpu["sources"][name], first=f"{name.ljust(names)}  {value.rjust(numbers)}  ")
        for name, value in values.items()
    ]
    return "\n".join([title, *aliases, *rows])


def _gpu_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"{len(value)} to {max(value, default=0):,}"
    return f"{value:.3g}" if value and value < 1e-3 else f"{value:,.12g}"


def kernels(documents: list[Document]) -> str:
    """The ladders, each with its rungs and parameters."""
    return "\n\n".join(map(_ladder, documents))


def _ladder(ladder: Document) -> str:
    rungs = " -> ".join(rung["name"] for rung in ladder["rungs"])
    parameters = ", ".join(f"{name}={entry['default']}" for name, entry in ladder["parameters"].items())
    lines = [("rungs", rungs), ("parameters", parameters)]
    return f"{wrapped(ladder['technique'], first=ladder['name'] + ': ')}\n{pairs(lines, indent='  ')}"


def doctor(report: Document) -> str:
    """The summary, then a line for each check, with its remedy where there is one."""
    rows = [(_MARKS[check["status"]], check["name"], check["found"]) for check in report["checks"]]
    width = max(len(mark) for mark, _, _ in rows)
    lines = pairs([(f"{mark:{width}}  {name}", found) for mark, name, found in rows])
    remedies = [f"{check['name']}: {check['remedy']}" for check in report["checks"] if check["remedy"]]
    advice = "\n".join(wrapped(remedy, first="  ") for remedy in remedies)
    return f"{report['summary']}\n\n{lines}" + (f"\n\nWhat to do:\n{advice}" if advice else "")


def comparison(result: Comparison) -> str:
    """The rungs side by side."""
    return fitted(result.table())


def profile(result: Profile) -> str:
    """The six lines, then the counters of each source line."""
    return f"{fitted(result.table())}\n\n{fitted(cut(result.lines.table()))}\n\nAll metrics: --json"
