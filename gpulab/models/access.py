"""What one memory request costs: sectors, lines and wavefronts, from the addresses of its lanes.

This is the one definition of these counts. The interpreter calls it; the compiled engine's inlined arithmetic must
equal it under property tests. The rules and their sources: sectors are the distinct 32-byte chunks touched by lanes
that are on (NVIDIA forum 312884; CUDA C++ Best Practices Guide); wavefronts follow the bank rule of 32 banks of 4
bytes, by groups of 32 lanes for accesses up to 32 bits, 16 for 64 and 8 for 128 bits (CUDA C++ Programming Guide;
NVIDIA forum 359822; equal to Nsight Compute's counts for 292 of 292 strided global loads in te42kyfo/gpu-benches).
"""

from __future__ import annotations

import numpy as np

SECTOR_BYTES = 32
LINE_BYTES = 128
BANKS = 32
BANK_BYTES = 4


def chunks(addresses: np.ndarray, size: int, chunk_bytes: int) -> np.ndarray:
    """Distinct aligned chunks touched by a request, in the order in which the lanes touch them first.

    Parameters
    ----------
    addresses : numpy.ndarray
        Byte addresses of the lanes that are on, in lane order; aligned to the element width.
    size : int
        Bytes accessed by each lane (element size times vector width), 1 to 16.
    chunk_bytes : int
        32 for sectors, 128 for lines.

    Returns
    -------
    numpy.ndarray
        Chunk numbers (address // chunk_bytes), int64.
    """
    addresses = np.asarray(addresses, np.int64)
    first, last = addresses // chunk_bytes, (addresses + size - 1) // chunk_bytes
    # Naturally aligned accesses of up to 16 bytes never cross a chunk; vectors of misaligned elements could.
    touched = np.stack([first, last], axis=1).ravel()
    _, where = np.unique(touched, return_index=True)
    return touched[np.sort(where)]


def sectors(addresses: np.ndarray, size: int) -> int:
    """Number of distinct 32-byte sectors of a request; 0 if no lane is on."""
    return len(chunks(addresses, size, SECTOR_BYTES))


def lines(addresses: np.ndarray, size: int) -> int:
    """Number of distinct 128-byte lines of a request; 0 if no lane is on."""
    return len(chunks(addresses, size, LINE_BYTES))


def sectors_ideal(lanes_on: int, size: int) -> int:
    """Sectors needed if each lane that is on accessed its own neighbouring bytes."""
    return -(-lanes_on * size // SECTOR_BYTES)


def lanes_per_wavefront(size: int) -> int:
    """Lanes that the data stage serves together: 32 up to 4 bytes, 16 for 8 bytes, 8 for 16 bytes."""
    return 32 if size <= 4 else 16 if size <= 8 else 8


def wavefronts(addresses: np.ndarray, lanes: np.ndarray, size: int) -> int:
    """Passes of the data stage that a request needs, by the bank rule; 0 if no lane is on.

    Parameters
    ----------
    addresses : numpy.ndarray
        Byte addresses of the lanes that are on, in lane order.
    lanes : numpy.ndarray
        The lane numbers (0 to 31) that belong to `addresses`.
    size : int
        Bytes accessed by each lane, 1 to 16.
    """
    addresses, lanes = np.asarray(addresses, np.int64), np.asarray(lanes)
    group_size = lanes_per_wavefront(size)
    total = 0
    for group in range(0, 32, group_size):
        inside = addresses[(lanes >= group) & (lanes < group + group_size)]
        if len(inside):
            words = np.unique((inside[:, None] + np.arange(0, max(size, 1), BANK_BYTES)) // BANK_BYTES)
            total += int(np.bincount(words % BANKS).max())
    return total


def wavefronts_ideal(lanes: np.ndarray, size: int) -> int:
    """Passes that a conflict-free request with these lanes on needs: one for each lane group with a lane on."""
    return len(np.unique(np.asarray(lanes) // lanes_per_wavefront(size)))
