"""What the emulator leaves out on purpose, and what a kernel can use instead."""

from __future__ import annotations

import re

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
        "It needs clusters of blocks, which GPUs have since Hopper (sm_90), and is not emulated. Exchange data through "
        "global memory, or make the block larger and use its shared memory.",
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
