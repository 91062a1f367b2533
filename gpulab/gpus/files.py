"""GPUs from TOML files: the catalog's own, and those that users write.

A value is written ``field = 108``, or ``field = { value = 108, source = "…" }`` with ``doubt = "…"`` where the source
is weak. What all GPUs of a compute capability share is in ``data/architectures``. A file with ``based_on = "A100"``
has only what differs from that GPU.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpulab.errors import ArgumentError
from gpulab.gpus.spec import Gpu
from gpulab.gpus.values import checked, unknown
from gpulab.gpus.whatif import check_shared

DATA = Path(__file__).parent / "data"
_KINDS = {item.name: str(item.type) for item in dataclasses.fields(Gpu) if item.name != "sources"}
_OPTIONAL = {item.name for item in dataclasses.fields(Gpu) if item.default is not dataclasses.MISSING}
_TEXTS = ("name", "aliases", "compute_capability")
_OF_A_VALUE = ("value", "source", "doubt")
#: Values that are another one's unless they are given.
_DEFAULTS = {"clock_hz": "boost_clock_hz", "tensor_clock_hz": "boost_clock_hz"}


def load(path: Path, find: Callable[[str], Gpu]) -> Gpu:
    """Read a GPU from a TOML file.

    Parameters
    ----------
    path : Path
    find : function
        Finds the GPU that ``based_on`` names.

    Raises
    ------
    ArgumentError
        If the file can't be read, or a value is missing, unknown, of the wrong kind or makes no sense in its unit.
    """
    own = dict(_read(path))
    base = own.pop("based_on", None)
    own.setdefault("name", path.stem)
    if base is not None:
        return _changed(base, own, path, find)
    for name, other in _DEFAULTS.items():
        if other in own:
            own.setdefault(name, own[other])
    capability = _capability(own, path)
    values, sources = _parsed({**_architecture(capability), **own}, path)
    values["compute_capability"] = capability
    missing = [name for name in _KINDS if name not in values and name not in _OPTIONAL]
    if missing:
        raise ArgumentError(
            f"The GPU file {str(path)!r} lacks {', '.join(missing)}. Only what all GPUs of a compute capability of the "
            f'catalog share can be left out; or write based_on = "A100" to take from that GPU what the file lacks.'
        )
    check_shared(values, _where(path))
    return Gpu(**values, sources=sources)


def _changed(base: Any, own: dict[str, Any], path: Path, find: Callable[[str], Gpu]) -> Gpu:
    """The base with what the file has; where that names another compute capability, with that one's constants too."""
    if not isinstance(base, str) or base.endswith(".toml"):
        raise ArgumentError(f"based_on{_where(path)} must name a GPU of the catalog, but it is {base!r}.")
    capability = _capability(own, path) if "compute_capability" in own else None
    shared = _architecture(capability) if capability else {}
    if capability:
        own["compute_capability"] = capability
    values, sources = _parsed({**shared, **own}, path)
    try:
        found = find(base).replace(**values)
    except ArgumentError as error:
        raise ArgumentError(f"In the GPU file {str(path)!r}: {error}") from error
    return dataclasses.replace(found, sources={**found.sources, **sources})


@functools.cache
def _architecture(capability: tuple[int, int]) -> dict[str, Any]:
    """What all GPUs of a compute capability share; nothing if the catalog has none of it."""
    path = DATA / "architectures" / "sm_{}{}.toml".format(*capability)
    return _read(path) if path.exists() else {}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"The GPU file {str(path)!r} can't be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ArgumentError(f"The GPU file {str(path)!r} is not valid TOML: {error}.") from error


def _capability(entries: dict[str, Any], path: Path) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)\.(\d)", str(_plain(entries.get("compute_capability", ""))))
    if match is None:
        raise ArgumentError(
            f'The GPU file {str(path)!r} must have compute_capability = "major.minor", e.g. "8.0", or '
            f'based_on = "A100", which takes what the file lacks from that GPU.'
        )
    return int(match[1]), int(match[2])


def _parsed(entries: dict[str, Any], path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Values and sources by field."""
    values, sources = {}, {}
    for name, entry in entries.items():
        if name not in _KINDS:
            raise unknown(name, (*_KINDS, "based_on"), _where(path))
        _check_entry(name, entry, path)
        plain = _plain(entry)
        values[name] = plain if name == "compute_capability" else checked(name, plain, _KINDS[name], _where(path))
        if name not in _TEXTS:
            sources[name] = _source(entry, path)
    return values, sources


def _check_entry(name: str, entry: Any, path: Path) -> None:
    if not isinstance(entry, dict):
        return
    wrong = [key for key in entry if key not in _OF_A_VALUE]
    if wrong or "value" not in entry:
        near = difflib.get_close_matches(wrong[0], _OF_A_VALUE, n=1) if wrong else []
        came = f"has {wrong[0]!r}" if wrong else "has no value"
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ArgumentError(f"{name}{_where(path)} {came}; a value is {{ value = …, source = …, doubt = … }}.{hint}")


def _plain(entry: Any) -> Any:
    return entry.get("value") if isinstance(entry, dict) else entry


def _source(entry: Any, path: Path) -> str:
    if not isinstance(entry, dict):
        return f"the file {path.name}"
    doubt = f" (doubtful: {entry['doubt']})" if "doubt" in entry else ""
    return f"{entry.get('source', f'the file {path.name}')}{doubt}"


def _where(path: Path) -> str:
    return f" in the GPU file {str(path)!r}"
