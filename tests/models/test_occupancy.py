"""Occupancy against worked values of cuda_occupancy.h, Nsight Compute and the CUDA occupancy calculator."""

from __future__ import annotations

import re
import time

import pytest

import gpulab
from gpulab.errors import ArgumentError, LaunchError
from gpulab.gpus import gpu
from gpulab.models.occupancy import occupancy, occupancy_curve, resident


def test_public_name_is_the_same_function() -> None:
    found = gpulab.occupancy("H100", block=256, registers_per_thread=40, shared_bytes=0)
    # 40 registers make 1,280 a warp: 12 warps in each of 4 sub-partitions, 48 of 64; 228 KiB of shared / 1 KiB = 228.
    assert (found.theoretical, found.blocks_per_sm, found.active_warps_per_sm) == (0.75, 6, 48)
    assert found.limits == {"warps": 8, "registers": 6, "shared": 228, "blocks": 32}
    assert found.limited_by == "registers"


def test_ada_24_registers_as_nsight_compute_prints() -> None:
    found = occupancy("RTX 4090", block=256, registers_per_thread=24)
    assert (found.limits["warps"], found.limits["registers"], found.theoretical) == (6, 10, 1.0)


def test_ampere_1024_threads_40_registers() -> None:
    found = occupancy("A100", block=1024, registers_per_thread=40)
    assert (found.limits["registers"], found.limits["warps"], found.theoretical) == (1, 2, 0.5)


def test_ga102_1024_threads_waste_a_third() -> None:
    found = occupancy("RTX 3090", block=(32, 32), registers_per_thread=32)
    assert found.blocks_per_sm == 1
    assert found.theoretical == pytest.approx(0.6667, abs=1e-4)
    assert found.limited_by == "warps"


def test_turing_1024_threads_64_registers() -> None:
    found = occupancy("T4", block=1024, registers_per_thread=64)
    assert (found.blocks_per_sm, found.theoretical) == (1, 1.0)


def test_hopper_48_kib_static() -> None:
    found = occupancy("H100", block=128, registers_per_thread=32, shared_bytes=48 * 1024)
    assert (found.blocks_per_sm, found.limited_by, found.theoretical) == (4, "shared", 0.25)


def test_a_partial_warp_takes_a_whole_one() -> None:
    assert occupancy("A100", block=33, registers_per_thread=16).active_warps_per_sm == 64
    assert occupancy("A100", block=32, registers_per_thread=16).limited_by == "blocks"


def test_registers_are_given_in_units_of_256_a_warp() -> None:
    # 33 to 40 registers all take 1,280 a warp; 41 takes 1,536: 10 warps in a sub-partition instead of 12.
    by_registers = {n: occupancy("A100", block=128, registers_per_thread=n).blocks_per_sm for n in (33, 40, 41)}
    assert by_registers == {33: 12, 40: 12, 41: 10}


def test_sub_partitions_do_not_share_registers() -> None:
    # 72 registers: 2,304 a warp. 65,536 // 2,304 is 28 warps, and 7 in each sub-partition is 28 too; 3-warp blocks: 9.
    assert occupancy("A100", block=96, registers_per_thread=72).limits["registers"] == 9
    # 80 registers: 2,560 a warp. 65,536 // 2,560 is 25, but 16,384 // 2,560 = 6 in each of four: 24.
    assert occupancy("A100", block=32, registers_per_thread=80).limits["registers"] == 24


def test_shared_memory_granularity_and_reserve() -> None:
    # Ampere: 1 + 1,024 reserved -> 1,152 bytes by 128: 145 blocks. Turing: 1 -> 256 bytes: 256 blocks.
    assert occupancy("A100", block=64, registers_per_thread=32, shared_bytes=1).limits["shared"] == 145
    assert occupancy("T4", block=64, registers_per_thread=32, shared_bytes=1).limits["shared"] == 256
    assert occupancy("T4", block=64, registers_per_thread=32).limits["shared"] == 16


def test_the_largest_block_of_shared_memory_fits_once() -> None:
    assert occupancy("A100", block=64, registers_per_thread=32, shared_bytes=163 * 1024).blocks_per_sm == 1
    assert occupancy("T4", block=64, registers_per_thread=32, shared_bytes=64 * 1024).blocks_per_sm == 1


def test_unknown_registers_limit_nothing() -> None:
    assert occupancy("A100", block=256, registers_per_thread=None).theoretical == 1.0


@pytest.mark.parametrize(
    ("arguments", "limited_by", "message"),
    [
        ({"block": 2048}, "warps", "at most 1,024 threads, but this one has 2,048"),
        ({"block": (64, 32)}, "warps", "has 2,048"),
        ({"registers_per_thread": 256}, "registers", "at most 255 registers, but registers_per_thread=256"),
        (
            {"block": 1024, "registers_per_thread": 65},
            "registers",
            "1,024 threads on A100 may use at most 64 registers per thread",
        ),
        (
            {"block": 768, "registers_per_thread": 96},
            "registers",
            "768 threads on A100 may use at most 80 registers",
        ),
        ({"shared_bytes": 166_913}, "shared", "at most 166,912 bytes of shared memory .*but shared_bytes=166,913"),
    ],
)
def test_a_block_that_does_not_fit_names_the_limit(arguments: dict[str, object], limited_by: str, message: str) -> None:
    given = {"block": 128, "registers_per_thread": 32, **arguments}
    found = occupancy("A100", **given)
    assert (found.blocks_per_sm, found.active_warps_per_sm, found.theoretical) == (0, 0, 0)
    assert (found.limited_by, found.limits[limited_by]) == (limited_by, 0)
    assert re.search(message, found.reason)


def test_a_launch_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(LaunchError, match="1,024 threads on A100 may use at most 64 registers"):
        resident(gpu("A100"), block=1024, registers_per_thread=65, shared_bytes=0)
    held = resident(gpu("A100"), block=1024, registers_per_thread=64, shared_bytes=0)
    assert (held.blocks_per_sm, held.reason) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"block": 0}, "at least 1 thread, but block=0"),
        ({"block": -32}, "at least 1 thread, but block=-32"),
        ({"block": (32, 0)}, r"at least 1 thread, but block=\(32, 0\)"),
        ({"block": 256.0}, "block must be an int"),
        ({"registers_per_thread": -1}, "0 or more, but -1"),
        ({"shared_bytes": 1.5}, "shared_bytes must be an int"),
        ({"barriers": -1}, "barriers must be 0 or more"),
    ],
)
def test_what_no_kernel_can_have(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(LaunchError, match=message):
        occupancy("A100", **{"block": 128, "registers_per_thread": 32, **arguments})


# Worked by hand from the documented algorithm: threads, registers, shared bytes, then blocks by warps, registers and
# shared memory, and those that fit.
HAND_WORKED = [
    # 64 warps of 8: 8. 32 registers: 1,024 a warp, 16 in each quarter, 64 // 8. No reserve: 96 KiB // 12 KiB.
    ("V100", 256, 32, 12 * 1024, 8, 8, 8, 8),
    # 255 registers: 8,160 are given out as 8,192; 2 warps in each quarter, 8 // 1. 96 KiB // 256 bytes.
    ("V100", 1, 255, 1, 64, 8, 384, 8),
    # 32 // 4. 63 registers: 2,016 -> 2,048: 8 in a quarter, 32 // 4. 64 KiB // (10,000 -> 10,240).
    ("T4", 128, 63, 10_000, 8, 8, 6, 6),
    # 33 threads are 2 warps: 64 // 2. 17 registers: 544 -> 768: 21 in a quarter, 84 // 2. 164 KiB // 1 KiB.
    ("A100", 33, 17, 0, 32, 42, 164, 32),
    # The most that a block can have: 163 KiB + 1 KiB of 164.
    ("A100-80GB", 1024, 64, 163 * 1024, 2, 1, 1, 1),
    # 48 // 24. 40 registers: 1,280: 12 in a quarter, 48 // 24. 100 KiB // (20,000 + 1,024 -> 21,120).
    ("RTX 3090", 768, 40, 20_000, 2, 2, 4, 2),
    # 48 // 1, but 16 blocks at most.
    ("A40", 32, 16, 0, 48, 128, 100, 16),
    # 8.7 has the shared memory of 8.0 and the warps of 8.6: 164 KiB // (48 + 1 KiB).
    ("AGX Orin", 192, 48, 48 * 1024, 8, 6, 3, 3),
    # 48 // 1, but 24 blocks at most.
    ("RTX 4090", 1, 0, 0, 48, 24, 100, 24),
    # 24 registers: 768: 21 in a quarter, 84 // 8.
    ("L40S", 256, 24, 99 * 1024, 6, 10, 1, 1),
    # 168 registers: 5,376: 3 in a quarter, 12 // 12. 228 KiB // (100,000 + 1,024 -> 101,120).
    ("H100", 384, 168, 100_000, 5, 1, 2, 1),
    # 227 KiB + 1 KiB of 228.
    ("B200", 128, 128, 227 * 1024, 16, 4, 1, 1),
    # 48 // 32. 32 registers: 64 // 32.
    ("RTX 5090", 1024, 32, 48 * 1024, 1, 2, 2, 1),
]


@pytest.mark.parametrize(
    ("name", "block", "registers", "shared", "warps", "by_registers", "by_shared", "fit"), HAND_WORKED
)
def test_hand_worked(
    name: str, block: int, registers: int, shared: int, warps: int, by_registers: int, by_shared: int, fit: int
) -> None:
    found = occupancy(name, block=block, registers_per_thread=registers, shared_bytes=shared)
    assert (found.limits["warps"], found.limits["registers"], found.limits["shared"]) == (
        warps,
        by_registers,
        by_shared,
    )
    assert found.blocks_per_sm == fit
    assert found.theoretical == fit * -(-block // 32) / gpu(name).max_warps_per_sm


def test_barriers_limit_from_hopper_on() -> None:
    # 64 barriers of an SM, 16 used by each block: 4 blocks.
    found = occupancy("H100", block=128, registers_per_thread=32, barriers=16)
    assert (found.blocks_per_sm, found.limited_by, found.limits["barriers"]) == (4, "barriers", 4)
    assert occupancy("RTX 5090", block=128, registers_per_thread=32, barriers=3).limits["barriers"] == 8
    assert "barriers" not in occupancy("A100", block=128, registers_per_thread=32, barriers=16).limits
    assert (
        "A block has 16 barriers, but barriers=17"
        in occupancy("H100", block=128, registers_per_thread=32, barriers=17).reason
    )


def test_doubt_is_told() -> None:
    for name in gpulab.gpus():
        assert occupancy(name, block=128, registers_per_thread=32).note == ""
    assert "registers are not known" in occupancy("A100", block=128, registers_per_thread=None).note
    wide = gpu("A100").replace(registers_per_sm=131_072)
    note = occupancy(wide, block=128, registers_per_thread=32).note
    assert note == "registers_per_sm is 131,072: replaced by the user."


def test_most_registers_named_in_the_message_fit() -> None:
    assert occupancy("A100", block=1024, registers_per_thread=64).blocks_per_sm == 1
    assert occupancy("A100", block=768, registers_per_thread=80).blocks_per_sm == 1


def test_what_if_hardware() -> None:
    wide = gpu("A100").replace(registers_per_sm=131_072)
    assert occupancy(wide, block=1024, registers_per_thread=40).theoretical == 1.0


# ---- curves


def test_the_curve_over_registers_falls_in_steps() -> None:
    curve = occupancy_curve("A100", "registers", block=128)
    assert list(curve) == [*range(8, 255, 8), 255]
    blocks = [held.blocks_per_sm for held in curve.values()]
    assert blocks == sorted(blocks, reverse=True)
    # 32 registers: 64 warps. 64: 8 in a quarter, 32 warps. 128: 16. 255 (256): 8.
    assert [curve[count].blocks_per_sm for count in (32, 64, 128, 255)] == [16, 8, 4, 2]


def test_the_curve_over_shared_memory_ends_at_the_most() -> None:
    curve = gpulab.occupancy_curve("H100", "shared", block=1024, registers_per_thread=32)
    assert (min(curve), max(curve), curve[0].blocks_per_sm) == (0, 227 * 1024, 2)
    # Two blocks of 112 + 1 KiB fit in 228; of 116 + 1 KiB only one does.
    assert (curve[112 * 1024].blocks_per_sm, curve[116 * 1024].blocks_per_sm) == (2, 1)


def test_the_curve_over_blocks_has_those_that_do_not_fit() -> None:
    curve = occupancy_curve("A100", registers_per_thread=255)
    assert list(curve) == list(range(32, 1025, 32))
    assert [curve[block].blocks_per_sm for block in (256, 288, 1024)] == [1, 0, 0]
    assert "288 threads on A100 may use at most 168 registers" in curve[288].reason


def test_there_is_no_other_curve() -> None:
    with pytest.raises(ArgumentError, match="'block', 'registers' or 'shared', but 'warps' came"):
        occupancy_curve("A100", "warps")


def test_a_curve_is_fast_enough_for_a_slider() -> None:
    gpulab.gpus()
    started = time.perf_counter()
    for _ in range(10):
        occupancy_curve("RTX 4090", registers_per_thread=40)
    assert (time.perf_counter() - started) / 10 < 5e-3
