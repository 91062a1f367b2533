"""How much of an SM's unified memory is left to L1 once the blocks have their shared memory.

The part for shared memory (the carve-out) is one of a few sizes. The driver takes the smallest that does not lower the
occupancy, so L1 gets all the rest.
"""

from __future__ import annotations

from gpulab.gpus import Gpu
from gpulab.models.occupancy import Occupancy


def l1_bytes(gpu: Gpu, occupancy: Occupancy, shared_bytes: int) -> int:
    """Bytes of L1 that an SM has beside its resident blocks.

    Parameters
    ----------
    gpu : Gpu
    occupancy : Occupancy
        Of the launch on this GPU.
    shared_bytes : int
        Static and dynamic shared memory of a block.
    """
    unit = max(1, gpu.shared_allocation_bytes)
    taken = -(-(shared_bytes + gpu.reserved_shared_bytes_per_block) // unit) * unit
    wanted = taken * occupancy.blocks_per_sm
    sizes = [size for size in gpu.shared_carve_outs_bytes if size >= wanted]
    return max(0, gpu.l1_bytes - min(sizes, default=wanted))
