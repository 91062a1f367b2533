"""The catalog: GPUs by name, from data files in which every value stands beside its source (see `gpulab.gpus.files`).

A file of ``data`` bears its GPU's name, so that one GPU can be found without reading all.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
from pathlib import Path

from gpulab.errors import ArgumentError
from gpulab.gpus.files import DATA, load
from gpulab.gpus.spec import Gpu

_MAKERS = ("nvidia", "tesla", "jetson", "geforce", "quadro", "rtx")


def gpus() -> list[str]:
    """Names of the GPUs in the catalog, by compute capability and speed."""
    entries = (_loaded(path) for path in _files().values())
    return [
        entry.name
        for entry in sorted(
            entries,
            key=lambda entry: (entry.compute_capability, entry.peak_fp32_flop_per_s, entry.dram_bandwidth_gb_per_s),
        )
    ]


def gpu(which: str | os.PathLike[str] | Gpu) -> Gpu:
    """The GPU of that name.

    Parameters
    ----------
    which : str, path or Gpu
        A name (case, spaces and hyphens don't matter: ``"rtx4090"``; what drivers call it does too, ``"NVIDIA
        A100-SXM4-40GB"``), the path of a TOML file with a GPU of your own, or a `Gpu`, which is returned as it is.

    Raises
    ------
    ArgumentError
        If there is no such GPU or file, or the file has a mistake.
    """
    if isinstance(which, Gpu):
        return which
    if isinstance(which, os.PathLike) or (isinstance(which, str) and which.endswith(".toml")):
        return load(Path(which), gpu)
    if not isinstance(which, str):
        raise ArgumentError(f"A GPU is given by its name, a TOML file or a Gpu, but {which!r} came.")
    found = known(which)
    if found is None:
        raise ArgumentError(_unknown(which))
    return found


def known(name: str) -> Gpu | None:
    """The GPU of the catalog that has this name or bears it as a driver's name; None if there is none."""
    key = _key(name)
    if key in _files():
        return _loaded(_files()[key])
    return _by_alias().get(key)


@functools.cache
def _files() -> dict[str, Path]:
    """The catalog's files by the key of their GPU."""
    return {_key(path.stem): path for path in sorted(DATA.glob("*.toml"))}


@functools.cache
def _loaded(path: Path) -> Gpu:
    return load(path, gpu)


@functools.cache
def _by_alias() -> dict[str, Gpu]:
    entries = [_loaded(path) for path in _files().values()]
    return {_key(name): entry for entry in entries for name in (*entry.aliases, entry.name)}


@functools.cache
def _key(name: str) -> str:
    words = re.sub(r"[^a-z0-9]", "", name.lower())
    for maker in _MAKERS:
        words = words.removeprefix(maker)
    return words


def _unknown(which: str) -> str:
    keys = _by_alias()
    # The longest names are those of drivers, and near to everything that is long.
    near = [keys[key].name for key in difflib.get_close_matches(_key(which), keys, n=5, cutoff=0.6)]
    hint = f"Did you mean {' or '.join(repr(name) for name in list(dict.fromkeys(near))[:3])}? " if near else ""
    return (
        f"There is no GPU {which!r} in the catalog. {hint}gpulab.gpus() lists all {len(_files())} (on the command line: "
        f"gpulab gpus). For another one, give the path of a TOML file that says what it is (docs/gpus.md), or change one "
        f'that is there: gpulab.gpu("A100").replace(name="mine", sm_count=64).'
    )
