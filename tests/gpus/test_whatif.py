"""GPUs that differ from the catalog's in some values: what follows, what they are called, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from gpulab.errors import ArgumentError
from gpulab.gpus import gpu

KIB = 1024
A100 = gpu("A100")


def test_replace_makes_another_gpu_and_says_so() -> None:
    entry = A100.replace(dram_bandwidth_gb_per_s=2000)
    assert entry.name == "A100 (dram_bandwidth 2,000 GB/s)"
    assert entry.reachable_dram_bytes_per_s == pytest.approx(2000e9 * 0.92)
    assert entry.sources["dram_bandwidth_gb_per_s"] == "replaced by the user"
    assert A100.dram_bandwidth_gb_per_s == 1555
    assert A100.replace(name="mine", sm_count=64).name == "mine"
    assert entry.aliases == ()  # no driver calls it so


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"sm_count": 54}, "A100 (sm_count 54)"),
        ({"clock_hz": 1.2e9}, "A100 (clock 1.2 GHz)"),
        ({"l2_bytes": 8 * 2**20}, "A100 (l2 8 MiB)"),
        ({"shared_bytes_per_sm": 64 * KIB}, "A100 (shared_per_sm 64 KiB)"),
        ({"dram_latency_cycles": 400}, "A100 (dram_latency 400 cycles)"),
        ({"launch_overhead_s": 1e-6}, "A100 (launch_overhead 1 µs)"),
        ({"l2_bytes": 8 * 2**20, "sm_count": 54}, "A100 (sm_count 54, l2 8 MiB)"),
    ],
)
def test_the_name_tells_what_was_changed(changes: dict[str, Any], name: str) -> None:
    assert A100.replace(**changes).name == name


def test_changes_add_up_in_the_name() -> None:
    once = A100.replace(sm_count=54)
    assert once.replace(dram_bandwidth_gb_per_s=800).name == "A100 (sm_count 54, dram_bandwidth 800 GB/s)"
    assert once.replace(sm_count=27).name == "A100 (sm_count 27)"
    assert A100.replace(name="mine").replace(sm_count=27).name == "mine (sm_count 27)"


def test_peaks_follow_sms_and_clock() -> None:
    half = A100.replace(sm_count=54, clock_hz=0.705e9)
    assert half.peak_fp32_flop_per_s == pytest.approx(A100.peak_fp32_flop_per_s / 4)
    assert half.peak_fp64_flop_per_s == pytest.approx(A100.peak_fp64_flop_per_s / 4)
    assert half.boost_clock_hz == 1.41e9
    assert half.sheet_fp32_tflop_per_s == pytest.approx(19.5 / 2)


def test_the_clock_follows_the_boost_clock() -> None:
    entry = gpu("H100").replace(boost_clock_hz=0.99e9)
    assert (entry.clock_hz, entry.tensor_clock_hz) == (0.99e9, pytest.approx(0.915e9))
    assert entry.peak_tensor_flop_per_s("fp16") / 1e12 == pytest.approx(989 / 2, rel=0.01)
    slow = gpu("H100").replace(clock_hz=1.5e9)
    assert slow.replace(boost_clock_hz=1.8e9).clock_hz == 1.5e9  # it was chosen


def test_bandwidth_follows_bus_and_data_rate() -> None:
    assert gpu("RTX 4090").replace(memory_bus_bits=192).dram_bandwidth_gb_per_s == pytest.approx(504)
    assert gpu("RTX 4090").replace(memory_gbit_per_s_per_pin=24).dram_bandwidth_gb_per_s == pytest.approx(1152)
    both = gpu("RTX 4090").replace(memory_bus_bits=512, dram_bandwidth_gb_per_s=1792)
    assert (both.dram_bandwidth_gb_per_s, both.memory_gbit_per_s_per_pin) == (1792, pytest.approx(28))


def test_shared_memory_of_a_block_follows_that_of_the_sm() -> None:
    small = A100.replace(shared_bytes_per_sm=32 * KIB)
    assert (small.shared_bytes_per_block_optin, small.shared_bytes_per_block) == (31 * KIB, 31 * KIB)
    assert small.shared_carve_outs_bytes == (0, 8 * KIB, 16 * KIB, 32 * KIB)
    large = A100.replace(shared_bytes_per_sm=256 * KIB)
    assert (large.shared_bytes_per_block_optin, large.l1_bytes) == (255 * KIB, 256 * KIB)
    assert large.sources["l1_bytes"].startswith("follows")


def test_measured_values_stay() -> None:
    entry = A100.replace(dram_bandwidth_gb_per_s=2000, sm_count=54)
    for name in ("l2_bandwidth_gb_per_s", "dram_latency_cycles", "dram_read_efficiency", "launch_overhead_s"):
        assert getattr(entry, name) == getattr(A100, name)


def test_what_may_be_taken_away() -> None:
    assert A100.replace(launch_overhead_s=0, tensor_fp16_flop_per_cycle=0).launch_overhead_s == 0
    assert A100.replace(host_bandwidth_gb_per_s=None).host_bandwidth_gb_per_s is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bandwidth": 1}, "no 'bandwidth'.*Did you mean .*'dram_bandwidth_gb_per_s'"),
        ({"sms": 1}, r"no 'sms'.*help\(gpulab.Gpu\)"),
        ({"sm_counts": 1}, "no 'sm_counts'. Did you mean 'sm_count'"),
        ({"sources": {}}, "no 'sources'"),
        ({"sm_count": 0}, "sm_count must be above 0, but 0 came"),
        ({"sm_count": -3}, "above 0, but -3 came"),
        ({"sm_count": 10.5}, "sm_count must be a whole number, but 10.5 came"),
        ({"sm_count": True}, "sm_count must be a number, but True came"),
        ({"clock_hz": float("nan")}, "must be a number, but nan came"),
        ({"clock_hz": "fast"}, "must be a number, but 'fast' came"),
        ({"clock_hz": 1.41}, "clock_hz is in Hz: 1.41 GHz is 1.41e9, but 1.41 came"),
        ({"clock_hz": 1410}, "clock_hz is in Hz"),
        ({"dram_bandwidth_gb_per_s": 2e12}, "is in GB/s .1e9 byte/s., but 2000000000000.0 came"),
        ({"dram_bandwidth_gb_per_s": -1}, "above 0, but -1 came"),
        ({"l2_bytes": 40}, "l2_bytes is in bytes: 40 MiB is 41_943_040, but 40 came"),
        ({"memory_bytes": 80}, "memory_bytes is in bytes"),
        ({"launch_overhead_s": 2.6}, "launch_overhead_s is in seconds: 2.6 µs is 2.6e-6, but 2.6 came"),
        ({"dram_efficiency": 92}, "a share from 0 to 1, but 92 came"),
        ({"name": ""}, "name must be a text, but '' came"),
        ({"compute_capability": "Ampere"}, "compute_capability must be"),
        ({"shared_carve_outs_bytes": [1.5]}, "list of whole numbers"),
        ({"shared_bytes_per_block_optin": 165 * KIB}, "optin can be at most .* 166,912 bytes, but it is 168,960"),
        ({"l1_bytes": 96 * KIB}, r"shared_bytes_per_sm \(167,936\) is a part of l1_bytes, but that is only 98,304"),
    ],
)
def test_replace_refuses_nonsense(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        A100.replace(**changes)
