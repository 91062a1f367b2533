"""GPUs that differ from one of the catalog in some values: what follows from a change, and what to call the result."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpulab.errors import ArgumentError
from gpulab.gpus.values import checked, unknown
from gpulab.units import bytes_text, seconds_text

if TYPE_CHECKING:
    from gpulab.gpus.spec import Gpu

CHANGED = "replaced by the user"
FOLLOWS = "follows from what the user replaced"
_NOT_CHANGED = ("sources",)
_TEXTS = ("name", "aliases", "compute_capability")
#: How the end of a field's name is told: (ending, unit, how the value is written).
_ENDINGS = (
    ("_gb_per_s", " GB/s", lambda value: f"{value:,.6g}" if value < 1 else f"{value:,.0f}"),
    ("_hz", " GHz", lambda value: f"{value / 1e9:.4g}"),
    ("_cycles", " cycles", lambda value: f"{value:,.4g}"),
    ("_s", "", seconds_text),
    ("", "", lambda value: f"{value:,}"),
)


def changed(gpu: Gpu, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Every value that becomes another one when these are changed, the name and the sources among them.

    Raises
    ------
    ArgumentError
        If a name is no field, or a value is of the wrong kind or makes no sense.
    """
    kinds = {item.name: str(item.type) for item in dataclasses.fields(gpu) if item.name not in _NOT_CHANGED}
    given: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in kinds:
            raise unknown(name, kinds)
        given[name] = _capability(value) if name == "compute_capability" else checked(name, value, kinds[name])
    followed = {name: value for name, value in _following(gpu, given).items() if name not in given}
    sources = {**gpu.sources, **dict.fromkeys(set(given) - set(_TEXTS), CHANGED)}
    sources |= dict.fromkeys(followed, FOLLOWS)
    values = {**followed, **given}
    check_shared({**{name: getattr(gpu, name) for name in kinds}, **values})
    # What is made up is not what the driver knows by the aliases.
    aliases = {} if "aliases" in given else {"aliases": ()}
    return {**values, **aliases, "name": given.get("name") or _name(gpu, given, kinds), "sources": sources}


def check_shared(values: Mapping[str, Any], where: str = "") -> None:
    """Raise an `ArgumentError` if a block could have more shared memory than an SM, or shared memory exceeds L1."""
    most = values["shared_bytes_per_sm"] - values["reserved_shared_bytes_per_block"]
    for name in ("shared_bytes_per_block_optin", "shared_bytes_per_block"):
        if values[name] > most:
            raise ArgumentError(
                f"{name} can be at most shared_bytes_per_sm less what is reserved for a block, {most:,} bytes, but it is "
                f"{values[name]:,}{where}."
            )
    if values["shared_bytes_per_sm"] > values["l1_bytes"]:
        raise ArgumentError(
            f"shared_bytes_per_sm ({values['shared_bytes_per_sm']:,}) is a part of l1_bytes, but that is only "
            f"{values['l1_bytes']:,}{where}."
        )


def _capability(value: Any) -> tuple[int, int]:
    parts = value.split(".") if isinstance(value, str) else value
    try:
        major, minor = (int(part) for part in parts)
    except (TypeError, ValueError):
        raise ArgumentError(f'compute_capability must be (major, minor) or "8.0", but {value!r} came.') from None
    return major, minor


def _following(gpu: Gpu, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values that are what others make them."""

    def new(name: str) -> Any:
        return given.get(name, getattr(gpu, name))

    def ratio(*names: str) -> float:
        whole = 1.0
        for name in names:
            whole *= new(name) / getattr(gpu, name)
        return whole

    follows: dict[str, Any] = {}
    if "boost_clock_hz" in given:
        follows["tensor_clock_hz"] = gpu.tensor_clock_hz * ratio("boost_clock_hz")
        if gpu.clock_hz == gpu.boost_clock_hz:
            follows["clock_hz"] = given["boost_clock_hz"]
    if (peak := ratio("sm_count", "fp32_lanes_per_sm", "boost_clock_hz")) != 1:
        follows["sheet_fp32_tflop_per_s"] = gpu.sheet_fp32_tflop_per_s * peak
    tensor = ratio("sm_count", "boost_clock_hz", "tensor_fp16_flop_per_cycle") if gpu.tensor_fp16_flop_per_cycle else 1
    if gpu.sheet_tensor_fp16_tflop_per_s and tensor != 1:
        follows["sheet_tensor_fp16_tflop_per_s"] = gpu.sheet_tensor_fp16_tflop_per_s * tensor
    if "dram_bandwidth_gb_per_s" in given:
        follows["memory_gbit_per_s_per_pin"] = new("dram_bandwidth_gb_per_s") * 8 / new("memory_bus_bits")
    elif (wider := ratio("memory_bus_bits", "memory_gbit_per_s_per_pin")) != 1:
        follows["dram_bandwidth_gb_per_s"] = gpu.dram_bandwidth_gb_per_s * wider
    return follows | _shared_following(gpu, given) if "shared_bytes_per_sm" in given else follows


def _shared_following(gpu: Gpu, given: Mapping[str, Any]) -> dict[str, Any]:
    """What follows from the largest shared memory of an SM."""
    most = given["shared_bytes_per_sm"]
    block = most - given.get("reserved_shared_bytes_per_block", gpu.reserved_shared_bytes_per_block)
    sizes = gpu.shared_carve_outs_bytes
    return {
        "shared_bytes_per_block_optin": block,
        "shared_bytes_per_block": min(gpu.shared_bytes_per_block, block),
        "shared_carve_outs_bytes": (*(size for size in sizes if size < most), most) if sizes else (),
        "l1_bytes": max(gpu.l1_bytes, most),
    }


def _name(gpu: Gpu, given: Mapping[str, Any], kinds: Mapping[str, str]) -> str:
    """The GPU's own name and everything that was changed, in the order of the fields."""
    before = {name: getattr(gpu, name) for name in kinds if gpu.sources.get(name) == CHANGED}
    now = {**before, **{name: value for name, value in given.items() if name not in _TEXTS}}
    root = gpu.name.removesuffix(f" ({_told(before, kinds)})")
    return f"{root} ({_told(now, kinds)})" if now else root


def _told(values: Mapping[str, Any], kinds: Mapping[str, str]) -> str:
    return ", ".join(_told_one(name, values[name]) for name in kinds if name in values)


def _told_one(name: str, value: Any) -> str:
    if not isinstance(value, (int, float)):
        return name
    if "bytes" in name:
        return f"{name.replace('_bytes', '')} {bytes_text(value)}"
    ending, unit, written = next(entry for entry in _ENDINGS if name.endswith(entry[0]))
    return f"{name.removesuffix(ending)} {written(value)}{unit}"
