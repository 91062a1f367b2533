"""The catalog: GPUs by name, from data files in which every value stands beside its source.

A GPU's file holds what is its own; what all GPUs of its compute capability share is in ``data/architectures``. A value
is written ``field = { value = …, source = "…" }``, with ``doubt = "…"`` where the source is weak.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from gpulab.errors import ArgumentError
from gpulab.gpus.spec import Gpu

DATA = Path(__file__).parent / "data"
_MAKERS = ("nvidia", "geforce", "tesla")
_FIELDS = {item.name for item in dataclasses.fields(Gpu)}
_TEXTS = {"name", "aliases", "compute_capability"}
_LISTS = {"shared_carve_outs_bytes"}


def gpus() -> list[str]:
    """Names of the GPUs in the catalog, by compute capability and speed."""
    return [gpu.name for gpu in sorted(_catalog(), key=lambda gpu: (gpu.compute_capability, gpu.l2_bandwidth_gb_per_s))]


def gpu(which: str | os.PathLike[str] | Gpu) -> Gpu:
    """The GPU of that name.

    Parameters
    ----------
    which : str, path or Gpu
        A name (case, spaces and hyphens don't matter: ``"rtx4090"``), the path of a TOML file with a GPU of your own,
        or a `Gpu`, which is returned as it is.

    Raises
    ------
    ArgumentError
        If there is no such GPU or file, or the file lacks a value.
    """
    if isinstance(which, Gpu):
        return which
    if isinstance(which, os.PathLike) or (isinstance(which, str) and which.endswith(".toml")):
        return load(Path(which))
    if not isinstance(which, str):
        raise ArgumentError(f"A GPU is given by its name, a TOML file or a Gpu, but {which!r} came.")
    wanted = _key(which)
    by_key = {_key(name): entry for entry in _catalog() for name in (*entry.aliases, entry.name)}
    if wanted not in by_key:
        raise ArgumentError(_unknown(which, wanted))
    return by_key[wanted]


def load(path: Path) -> Gpu:
    """Read a GPU from a TOML file; values that it lacks come from the constants of its compute capability.

    Raises
    ------
    ArgumentError
        If the file can't be read, or a value is missing, unknown or of the wrong kind.
    """
    own = _read(path)
    own.setdefault("clock_hz", own.get("boost_clock_hz"))
    major, minor = _capability(own, path)
    shared_path = DATA / "architectures" / f"sm_{major}{minor}.toml"
    entries = {**(_read(shared_path) if shared_path.exists() else {}), **own}
    values = {name: _value(name, entry, path) for name, entry in entries.items()}
    values["compute_capability"] = (major, minor)
    values.setdefault("shared_carve_outs_bytes", ())
    values["aliases"] = tuple(values.get("aliases", ()))
    values["sources"] = {name: _source(entry) for name, entry in entries.items() if name not in _TEXTS}
    _check_complete(values, path)
    return Gpu(**values)


@functools.cache
def _catalog() -> tuple[Gpu, ...]:
    return tuple(load(path) for path in sorted(DATA.glob("*.toml")))


def _key(name: str) -> str:
    words = re.sub(r"[^a-z0-9]", "", name.lower())
    for maker in _MAKERS:
        words = words.removeprefix(maker)
    return words


def _unknown(which: str, wanted: str) -> str:
    keys = {_key(name): entry.name for entry in _catalog() for name in (*entry.aliases, entry.name)}
    near = [keys[key] for key in difflib.get_close_matches(wanted, keys, n=3, cutoff=0.5)]
    hint = f"Did you mean {' or '.join(repr(name) for name in dict.fromkeys(near))}? " if near else ""
    return (
        f"There is no GPU {which!r} in the catalog. {hint}It has {', '.join(gpus())}. "
        f"For another one, give the path of a TOML file, or change one that is there: "
        f'gpulab.gpu("A100").replace(name="mine", sm_count=64).'
    )


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
        raise ArgumentError(f'The GPU file {str(path)!r} must have compute_capability = "major.minor", e.g. "8.0".')
    return int(match[1]), int(match[2])


def _plain(entry: Any) -> Any:
    return entry.get("value") if isinstance(entry, dict) else entry


def _value(name: str, entry: Any, path: Path) -> Any:
    value = _plain(entry)
    if name not in _FIELDS:
        near = difflib.get_close_matches(name, _FIELDS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ArgumentError(f"The GPU file {str(path)!r} has {name!r}, which is no field of a Gpu.{hint}")
    if name in _TEXTS:
        return value
    items = value if name in _LISTS and isinstance(value, list) else [value]
    if any(isinstance(item, bool) or not isinstance(item, (int, float)) or not item >= 0 for item in items):
        many = "a list of numbers" if name in _LISTS else "a number"
        raise ArgumentError(f"{name} in the GPU file {str(path)!r} must be {many} of at least 0, not {value!r}.")
    return tuple(items) if name in _LISTS else value


def _source(entry: Any) -> str:
    if not isinstance(entry, dict):
        return ""
    doubt = f" (doubtful: {entry['doubt']})" if "doubt" in entry else ""
    return f"{entry.get('source', '')}{doubt}"


def _check_complete(values: dict[str, Any], path: Path) -> None:
    missing = [name for name in Gpu.__dataclass_fields__ if name not in values]
    if missing:
        major, minor = values["compute_capability"]
        raise ArgumentError(
            f"The GPU file {str(path)!r} lacks {', '.join(missing)}. "
            f"Only constants of compute capability {major}.{minor} that the catalog has can be left out."
        )
