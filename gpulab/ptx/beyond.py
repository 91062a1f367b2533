"""What the emulator leaves out on purpose, and what a kernel can use instead."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

from gpulab.ptx.refusal import refusal
from gpulab.ptx.syntax import Function

_CLUSTERS = (
    "It needs clusters of blocks, which GPUs have since Hopper (sm_90), and is not emulated. Exchange data through "
    "global memory, or make the block larger and use its shared memory."
)
_TENSOR_CORES = "Use mma.sync or nvcuda::wmma, which every GPU since Volta has."
LEFT_OUT = (
    (
        "tex tld4 txq suld sust sured suq istypep",
        r"(tex|tld4|txq|suld|sust|sured|suq|istypep)\b",
        "Textures and surfaces are not emulated. Read an ordinary array instead (const T* __restrict__ goes through the "
        "same cache), and clamp or interpolate in the kernel.",
    ),
    ("wgmma", r"wgmma\b", f"It is Hopper-only (sm_90a: wgmma). {_TENSOR_CORES}"),
    ("tcgen05", r"tcgen05\b", f"It is Blackwell-only (sm_100a: tcgen05). {_TENSOR_CORES}"),
    (
        "cp.async.bulk cp.reduce.async.bulk tensormap fence.proxy.tensormap",
        r"(cp\.(reduce\.)?async\.bulk|tensormap|prefetch\.tensor|fence\.proxy\.tensormap)\b",
        "It is of the tensor memory accelerator, which GPUs have since Hopper (sm_90). Copy with cp.async "
        "(cooperative_groups::memcpy_async) or with ordinary loads and stores, which every GPU has.",
    ),
    (
        "mapa getctarank st.async red.async barrier.cluster clusterlaunchcontrol setmaxnreg .shared::cluster .multicast::cluster",
        r"(mapa|getctarank|st\.async|red\.async|barrier\.cluster|clusterlaunchcontrol|setmaxnreg)\b|\S*\.(shared::cluster|multicast::cluster)\b",
        _CLUSTERS,
    ),
    (
        "multimem",
        r"multimem\b",
        "It works on memory of several GPUs (since Hopper, sm_90), and one is emulated. Use atomics on ordinary memory.",
    ),
    (
        "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vavrg vadd2 vadd4",
        r"(vadd|vsub|vabsdiff|vmin|vmax|vshl|vshr|vmad|vset|vavrg)[24]?\b",
        "Video instructions are not emulated: GPUs since Maxwell run them in software. Use ordinary integer instructions.",
    ),
)
"""Names, the pattern of their spellings, and what to use instead."""


def advice(spelling: str) -> str | None:
    """Why an instruction, spelled with its modifiers, is left out, and what to use instead; None for all others."""
    return next((text for _, pattern, text in LEFT_OUT if re.match(pattern, spelling)), None)


_MULTI_GRID = (
    "groups over the grids of several GPUs are not emulated: one GPU is, and CUDA 13 has no such groups. Use "
    "cooperative_groups::this_grid() in a cooperative launch, and one launch for each GPU."
)


def check_function(function: Function) -> None:
    """Refuse a function that needs what is left out, though its instructions could be run.

    Raises
    ------
    UnsupportedInstruction
        For a kernel with clusters of a fixed size, and for functions of multi-device cooperative groups.
    """
    instructions = function.instructions
    if instructions and prod(function.directives.get("reqnctapercluster", ())) > 1:
        size = ", ".join(map(str, function.directives["reqnctapercluster"]))
        located = next((each for each in instructions if each.location), instructions[0])
        raise refusal(replace(located, text=f".reqnctapercluster {size}"), f"what __cluster_dims__ says. {_CLUSTERS}")
    seen: set[int] = set()
    for instruction in instructions:
        place = instruction.location
        while place is not None and id(place) not in seen:
            seen.add(id(place))
            if "multi_grid_group" in (place.function or ""):
                raise refusal(replace(instruction, text="cooperative_groups::this_multi_grid"), _MULTI_GRID)
            place = place.inlined_at
