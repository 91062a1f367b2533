"""Find NVIDIA's tools and headers: in the Python wheels first, then in an installed CUDA Toolkit."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gpulab.errors import ToolchainError

_WHEEL_OF = {"ptxas": "nvidia-cuda-nvcc-cu12", "nvdisasm": "nvidia-cuda-nvdisasm"}
_SUFFIX = ".exe" if os.name == "nt" else ""


def tool(name: str) -> Path:
    """Path of a command-line tool, e.g. ``ptxas``.

    Raises
    ------
    ToolchainError
        If it is not on this machine; the message says how to get it.
    """
    found = find_tool(name)
    if found is None:
        wheel = _WHEEL_OF.get(name, f"nvidia-cuda-{name}")
        raise ToolchainError(
            f"{name} was not found: it is in no NVIDIA wheel of this Python, not under $CUDA_HOME and not on $PATH. "
            f"Install it with: pip install {wheel}"
        )
    return found


@cache
def find_tool(name: str) -> Path | None:
    """Path of a tool, or None if this machine has none."""
    for root in _roots():
        candidate = root / "bin" / f"{name}{_SUFFIX}"
        if candidate.is_file():
            return candidate
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


@cache
def include_folders() -> tuple[Path, ...]:
    """Folders with the headers of CUDA and of CCCL (``cuda_fp16.h``, ``cub/cub.cuh``, ``cuda/std/…``)."""
    found = {}
    for wanted in ("cuda_fp16.h", "crt/host_defines.h", "cuda/std/type_traits", "cub/cub.cuh"):
        for root in _roots():
            places = (root / "include", root / "include" / "cccl")
            place = next((place for place in places if (place / wanted).is_file()), None)
            if place is not None:
                found[place] = True
                break
    return tuple(found)


@cache
def library(name: str) -> Path | None:
    """The first shared library whose file name has `name` in it (``nvrtc``, ``nvvm``), or None."""
    for root in _roots():
        for sub in ("lib", "lib64", "bin", "nvvm/lib64", "nvvm/bin", "nvvm/lib"):
            matches = sorted(path for path in (root / sub).glob(f"*{name}*") if path.is_file())
            if matches:
                return matches[0]
    return None


def identity(path: Path | None) -> str:
    """What tells two versions of a tool or library apart without running it: name, size and time of its file."""
    if path is None:
        return "none"
    status = path.stat()
    return f"{path.name}:{status.st_size}:{status.st_mtime_ns}"


@cache
def _roots() -> tuple[Path, ...]:
    return tuple(dict.fromkeys(root for root in (*_wheel_roots(), *_toolkit_roots()) if root.is_dir()))


def _wheel_roots() -> Iterator[Path]:
    spec = importlib.util.find_spec("nvidia")
    locations = spec.submodule_search_locations if spec else None
    for location in locations or ():
        # cuda_nvcc, cuda_runtime… are CUDA 12's wheels; cu13 is CUDA 13's, which no longer knows capability 7.0.
        yield from sorted(Path(location).glob("cuda_*"))
        yield from sorted(Path(location).glob("cu[0-9]*"))


def _toolkit_roots() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    yield Path("/usr/local/cuda")
