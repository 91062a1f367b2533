"""PTX that a user brings along, as a `PtxText`."""

from __future__ import annotations

import re

from gpulab.errors import CompileError
from gpulab.toolchain.records import PtxText, require_known
from gpulab.toolchain.signature import entry_parameters


def entries(text: str) -> list[str]:
    """Names of the kernels of a PTX module, in order, found without parsing it."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    return re.findall(r"\.entry\s+([A-Za-z_$%][\w$]*)", plain)


def as_ptx_text(text: str, name: str, compute_capability: tuple[int, int], file: str | None = None) -> PtxText:
    """The kernel `name` of a PTX module, to run on a GPU of that compute capability.

    Raises
    ------
    CompileError
        If the module is made for newer GPUs.
    """
    capability = require_known(compute_capability)
    target = re.search(r"^\s*\.target\s+sm_(\d+)(\d)", text, re.M)
    if target and (int(target[1]), int(target[2])) > capability:
        needed, there = f"{target[1]}.{target[2]}", ".".join(map(str, capability))
        raise CompileError(
            f"The PTX of {name} is for compute capability {needed} and newer (.target), but the GPU has {there}. "
            "Choose a newer GPU with gpulab.use(…), or lower .target."
        )
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    return PtxText(
        text=text, kernel=name, name=name, compiler="PTX", compute_capability=capability, language="ptx",
        parameters=entry_parameters(plain, name), source=text, file=file,
    )  # fmt: skip
