"""Occupancy against worked values of cuda_occupancy.h, Nsight Compute and the CUDA occupancy calculator."""

from __future__ import annotations

import pytest

import gpulab
from gpulab.errors import LaunchError
from gpulab.gpus import Gpu, gpu
from gpulab.gpus.catalog import load
from gpulab.models.occupancy import occupancy

GA102 = """
name = "GA102"
compute_capability = "8.6"
sm_count = 82
boost_clock_hz = 1.695e9
sheet_fp32_tflop_per_s = 35.6
memory_bytes = 25_769_803_776
memory_bus_bits = 384
memory_gbit_per_s_per_pin = 19.5
dram_bandwidth_gb_per_s = 936
dram_efficiency = 0.92
l2_bytes = 6_291_456
l2_bandwidth_gb_per_s = 2400
"""


@pytest.fixture(scope="module")
def ga102(tmp_path_factory: pytest.TempPathFactory) -> Gpu:
    path = tmp_path_factory.mktemp("gpu") / "ga102.toml"
    path.write_text(GA102)
    return load(path)


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


def test_ga102_1024_threads_waste_a_third(ga102: Gpu) -> None:
    found = occupancy(ga102, block=(32, 32), registers_per_thread=32)
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
    ("arguments", "message"),
    [
        ({"block": 0}, "at least 1 thread, but block=0"),
        ({"block": -32}, "at least 1 thread, but block=-32"),
        ({"block": (32, 0)}, r"at least 1 thread, but block=\(32, 0\)"),
        ({"block": 2048}, "at most 1,024 threads, but block=2048 has 2,048"),
        ({"block": (64, 32)}, "has 2,048"),
        ({"block": 256.0}, "block must be an int"),
        ({"registers_per_thread": 256}, "at most 255 registers, but registers_per_thread=256"),
        ({"block": 1024, "registers_per_thread": 65}, "1,024 threads on A100 may use at most 64 registers per thread"),
        ({"block": 768, "registers_per_thread": 96}, "768 threads on A100 may use at most 80 registers"),
        ({"registers_per_thread": -1}, "0 or more, but -1"),
        ({"shared_bytes": 166_913}, "at most 166,912 bytes of shared memory .*but shared_bytes=166,913"),
        ({"shared_bytes": 1.5}, "shared_bytes must be an int"),
    ],
)
def test_a_block_that_does_not_fit_names_the_limit(arguments: dict[str, object], message: str) -> None:
    given = {"block": 128, "registers_per_thread": 32, **arguments}
    with pytest.raises(LaunchError, match=message):
        occupancy("A100", **given)


def test_most_registers_named_in_the_message_fit() -> None:
    assert occupancy("A100", block=1024, registers_per_thread=64).blocks_per_sm == 1
    assert occupancy("A100", block=768, registers_per_thread=80).blocks_per_sm == 1


def test_what_if_hardware() -> None:
    wide = gpu("A100").replace(registers_per_sm=131_072)
    assert occupancy(wide, block=1024, registers_per_thread=40).theoretical == 1.0
