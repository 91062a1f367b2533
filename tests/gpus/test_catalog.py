"""The catalog: every value has a source, the values agree with one another and with published tables, names are forgiving."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from gpulab.errors import ArgumentError
from gpulab.gpus import Gpu, gpu, gpus
from gpulab.gpus.catalog import _key
from gpulab.gpus.files import DATA

KIB, MIB = 1024, 1024**2
TEXTS = {"name", "compute_capability", "aliases"}

# Data sheets and white papers: capability, SMs, boost MHz, memory GiB, GB/s, L2 MiB, and TFLOP/s in FP32, FP64, on tensor
# cores with f16 (f32 accumulators) and tf32. None: not stated. TechPowerUp gives an A10 0.98 TFLOP/s of FP64, twice what
# the 2 lanes of its capability can do.
SHEETS = {
    "V100": ("7.0", 80, 1530, 16, 900, 6, 15.7, 7.8, 125, 0),
    "T4": ("7.5", 40, 1590, 16, 320, 4, 8.1, 0.25, 65, 0),
    "RTX 2080 Ti": ("7.5", 68, 1545, 11, 616, 5.5, 13.4, 0.42, 53.8, 0),
    "A30": ("8.0", 56, 1440, 24, 933, 24, 10.3, 5.2, 165, 82),
    "A100": ("8.0", 108, 1410, 40, 1555, 40, 19.5, 9.7, 312, 156),
    "A100-80GB PCIe": ("8.0", 108, 1410, 80, 1935, 40, 19.5, 9.7, 312, 156),
    "A100-80GB": ("8.0", 108, 1410, 80, 2039, 40, 19.5, 9.7, 312, 156),
    "RTX 3060": ("8.6", 28, 1777, 12, 360, 2.25, 12.7, 0.20, 25.5, 12.7),
    "RTX 3080": ("8.6", 68, 1710, 10, 760, 5, 29.8, None, 59.5, 29.8),
    "A10": ("8.6", 72, 1695, 24, 600, 6, 31.2, 0.49, 125, 62.5),
    "RTX 3090": ("8.6", 82, 1695, 24, 936, 6, 35.6, 0.56, 71, 35.6),
    "A40": ("8.6", 84, 1740, 48, 696, 6, 37.4, 0.59, 149.7, 74.8),
    "RTX A6000": ("8.6", 84, 1800, 48, 768, 6, 38.7, 0.60, 154.8, 77.4),
    "Orin Nano": ("8.7", 8, 625, 8, 68, 2, 1.28, None, None, None),
    "Orin NX": ("8.7", 8, 918, 16, 102.4, 2, 1.88, None, None, None),
    "AGX Orin": ("8.7", 16, 1300, 64, 204.8, 4, 5.33, None, 42.6, 21.3),
    "RTX 4060": ("8.9", 24, 2460, 8, 272, 24, 15.1, 0.24, 30, 15),
    "L4": ("8.9", 58, 2040, 24, 300, 48, 30.3, None, 121, 60),
    "RTX 4080": ("8.9", 76, 2505, 16, 716.8, 64, 48.7, None, 97.5, 48.7),
    "RTX 4090": ("8.9", 128, 2520, 24, 1008, 72, 82.6, 1.29, 165.2, 82.6),
    "L40": ("8.9", 142, 2490, 48, 864, 96, 90.5, None, 181, 90.5),
    "L40S": ("8.9", 142, 2520, 48, 864, 96, 91.6, 1.43, 362, 183),
    "H100 PCIe": ("9.0", 114, 1755, 80, 2039, 50, 51.2, 25.6, 756, 378),
    "H100": ("9.0", 132, 1980, 80, 3352, 50, 66.9, 33.5, 989, 494.5),
    "GH200": ("9.0", 132, 1980, 96, 4000, 50, 67, 34, 989, 494.5),
    "H200": ("9.0", 132, 1980, None, 4800, 50, 67, 33.5, 989, 494.5),
    "B200": ("10.0", 148, 1965, None, 7672, 126.5, 74.4, 37.2, 2250, 1125),
    "RTX 5070": ("12.0", 48, 2512, 12, 672, 48, 30.9, 0.48, 61.7, None),
    "RTX 5080": ("12.0", 84, 2617, 16, 960, 64, 56.3, 0.88, 112.6, None),
    "RTX 5090": ("12.0", 170, 2407, 32, 1792, 96, 104.8, 1.64, 209.5, 104.8),
}
NAMES = list(SHEETS)

# CUDA C++ Programming Guide 13.0, Compute Capabilities; the last two of cuda_occupancy.h.
PER_CAPABILITY = {
    "max_warps_per_sm": (64, 32, 64, 48, 48, 48, 64, 64, 48),
    "max_blocks_per_sm": (32, 16, 32, 16, 16, 24, 32, 32, 24),
    "fp32_lanes_per_sm": (64, 64, 64, 128, 128, 128, 128, 128, 128),
    "fp64_lanes_per_sm": (32, 2, 32, 2, 2, 2, 64, 64, 2),
    "int32_lanes_per_sm": (64,) * 9,
    "sfu_lanes_per_sm": (16,) * 9,
    "schedulers_per_sm": (4,) * 9,
    "registers_per_sm": (65_536,) * 9,
    "max_registers_per_thread": (255,) * 9,
    "max_threads_per_block": (1024,) * 9,
    "shared_bytes_per_block": (48 * KIB,) * 9,
    "shared_bytes_per_sm": tuple(size * KIB for size in (96, 64, 164, 100, 164, 100, 228, 228, 100)),
    "shared_bytes_per_block_optin": tuple(size * KIB for size in (96, 64, 163, 99, 163, 99, 227, 227, 99)),
    "reserved_shared_bytes_per_block": (0, 0, *(KIB,) * 7),
    "l1_bytes": tuple(size * KIB for size in (128, 96, 192, 128, 192, 128, 256, 256, 128)),
    "register_allocation_unit": (256,) * 9,
    "warp_allocation_granularity": (4,) * 9,
    "shared_allocation_bytes": (256, 256, *(128,) * 7),
    "barriers_per_sm": (64, 32, 64, 16, 16, 24, 64, 64, 24),
}
CAPABILITIES = [(7, 0), (7, 5), (8, 0), (8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (12, 0)]


def test_the_catalog_is_ordered_by_capability_and_speed() -> None:
    assert gpus() == NAMES


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.toml")), ids=lambda path: path.stem)
def test_every_value_stands_beside_its_source(path: Path) -> None:
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, entry in entries.items():
        if name not in TEXTS:
            assert isinstance(entry, dict), f"{name} has no source"
            assert len(entry["source"]) >= 10, f"{name} has no source"
            assert set(entry) <= {"value", "source", "doubt"}, name


@pytest.mark.parametrize("name", NAMES)
def test_values_of_the_data_sheets(name: str) -> None:
    capability, sms, mhz, memory, bandwidth, l2, *_ = SHEETS[name]
    entry = gpu(name)
    assert (f"{entry.arch}", entry.sm_count) == ("sm_" + capability.replace(".", ""), sms)
    assert entry.boost_clock_hz == entry.clock_hz == mhz * 1e6
    assert entry.l2_bytes == l2 * MIB
    assert entry.dram_bandwidth_gb_per_s == bandwidth
    assert memory is None or entry.memory_bytes == memory * 1024 * MIB


@pytest.mark.parametrize("name", NAMES)
def test_peaks_follow_from_lanes_and_clock(name: str) -> None:
    fp32, fp64, fp16, tf32 = SHEETS[name][6:]
    entry = gpu(name)
    assert entry.peak_fp32_flop_per_s / 1e12 == pytest.approx(fp32, rel=0.02)
    assert entry.sheet_fp32_tflop_per_s == pytest.approx(fp32, rel=0.01)
    assert fp64 is None or entry.peak_fp64_flop_per_s / 1e12 == pytest.approx(fp64, rel=0.04)
    assert fp16 is None or entry.peak_tensor_flop_per_s("fp16") / 1e12 == pytest.approx(fp16, rel=0.02)
    assert tf32 is None or entry.peak_tensor_flop_per_s("tf32") / 1e12 == pytest.approx(tf32, rel=0.02)
    if entry.sheet_tensor_fp16_tflop_per_s is not None:
        assert entry.sheet_tensor_fp16_tflop_per_s == pytest.approx(fp16, rel=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_bandwidth_is_bus_times_rate(name: str) -> None:
    entry = gpu(name)
    by_bus = entry.memory_bus_bits * entry.memory_gbit_per_s_per_pin / 8
    assert by_bus == pytest.approx(entry.dram_bandwidth_gb_per_s, rel=0.005)


@pytest.mark.parametrize("name", NAMES)
def test_shape(name: str) -> None:
    entry = gpu(name)
    assert entry.dram_bandwidth_gb_per_s < entry.l2_bandwidth_gb_per_s
    assert MIB <= entry.l2_bytes < entry.memory_bytes / 100
    assert 0.8 <= entry.dram_efficiency <= 1
    assert 0.8 <= entry.tensor_clock_hz / entry.boost_clock_hz <= 1
    assert entry.shared_bytes_per_sm < entry.l1_bytes
    assert entry.shared_carve_outs_bytes[-1] == entry.shared_bytes_per_sm
    assert list(entry.shared_carve_outs_bytes) == sorted(entry.shared_carve_outs_bytes)
    latencies = (entry.alu_latency_cycles, entry.shared_latency_cycles, entry.l1_latency_cycles)
    assert sorted(latencies) == list(latencies)
    assert entry.l1_latency_cycles < entry.l2_latency_cycles < entry.dram_latency_cycles
    assert 1e-6 < entry.launch_overhead_s < 1e-5
    assert (entry.launch_in_graph_s or 0) < entry.launch_overhead_s
    ns = entry.dram_latency_cycles / entry.clock_hz * 1e9
    assert 230 < ns < 600 or entry.compute_capability == (8, 7), ns
    known = {item.name for item in dataclasses.fields(Gpu) if getattr(entry, item.name) is not None}
    assert set(entry.sources) == known - TEXTS - {"sources"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stream", ["read", "write", "scale", "triad"])
def test_measured_streams_are_near_the_reachable_bandwidth(name: str, stream: str) -> None:
    share = getattr(gpu(name), f"dram_{stream}_efficiency")
    # Loads of H200 and GH200 lack parallelism: 2,760 of 4,800 and 4,000 GB/s.
    low = 0.57 if name in ("H200", "GH200") else 0.83
    assert share is None or low < share <= 1


@pytest.mark.parametrize("field", PER_CAPABILITY)
def test_values_of_the_programming_guide(field: str) -> None:
    by_capability = dict(zip(CAPABILITIES, PER_CAPABILITY[field], strict=True))
    for name in NAMES:
        entry = gpu(name)
        assert getattr(entry, field) == by_capability[entry.compute_capability], name


def test_carve_outs_of_the_programming_guide() -> None:
    assert gpu("T4").shared_carve_outs_bytes == (32 * KIB, 64 * KIB)
    assert gpu("RTX 4090").shared_carve_outs_bytes == tuple(size * KIB for size in (0, 8, 16, 32, 64, 100))
    assert gpu("A100").shared_carve_outs_bytes == tuple(size * KIB for size in (0, 8, 16, 32, 64, 100, 132, 164))
    assert gpu("H100").shared_carve_outs_bytes[-3:] == (164 * KIB, 196 * KIB, 228 * KIB)


def test_all_capabilities_have_a_gpu() -> None:
    assert sorted({gpu(name).compute_capability for name in NAMES}) == CAPABILITIES


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        # What public lists have and data sheets or the devices themselves deny.
        ("H200", {"dram_bandwidth_gb_per_s": 3360}),
        ("V100", {"boost_clock_hz": 1.597e9}),
        ("T4", {"l1_bytes": 64 * KIB}),
        ("L4", {"sm_count": 60}),
        ("L40S", {"l2_bytes": 48 * MIB}),
    ],
)
def test_known_wrong_values_stay_away(name: str, wrong: dict[str, float]) -> None:
    assert all(getattr(gpu(name), field) != value for field, value in wrong.items())


@pytest.mark.parametrize(
    ("name", "kind", "tera_per_s"),
    [
        # Dense peaks of the data sheets, at the clocks that they assume.
        ("T4", "int8", 130),
        ("RTX 2080 Ti", "fp16_accumulated", 107.6),
        ("A100", "fp64", 19.5),
        ("A100", "int8", 624),
        ("RTX 3090", "fp16_accumulated", 142),
        ("RTX 4090", "fp16_accumulated", 330.3),
        ("RTX 4090", "fp8", 330.3),
        ("RTX 4090", "int8", 660.6),
        ("L40S", "fp8", 733),
        ("AGX Orin", "int8", 85),
        ("H100", "fp8", 1979),
        ("B200", "fp8", 4500),
    ],
)
def test_other_tensor_peaks(name: str, kind: str, tera_per_s: float) -> None:
    assert gpu(name).peak_tensor_flop_per_s(kind) / 1e12 == pytest.approx(tera_per_s, rel=0.02)


# ---- names


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a100", "A100"),
        ("rtx-4090", "RTX 4090"),
        ("RTX4090", "RTX 4090"),
        ("geforce rtx 4090", "RTX 4090"),
        ("4090", "RTX 4090"),
        ("a6000", "RTX A6000"),
        ("H100 SXM", "H100"),
        ("a100 80gb", "A100-80GB"),
        ("orin", "AGX Orin"),
        ("Jetson Orin Nano", "Orin Nano"),
        # What drivers call them.
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("NVIDIA A100-SXM4-40GB", "A100"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB PCIe"),
        ("NVIDIA RTX A6000", "RTX A6000"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA B200", "B200"),
    ],
)
def test_names_are_forgiving(written: str, name: str) -> None:
    assert gpu(written).name == name


def test_every_name_is_found_and_no_two_gpus_share_one() -> None:
    keys = Counter()
    for name in NAMES:
        entry = gpu(name)
        assert entry.name == name
        keys.update({_key(word) for word in (name, *entry.aliases)})
    assert keys.most_common(1)[0][1] == 1


def test_files_bear_the_names_of_their_gpus() -> None:
    for path in DATA.glob("*.toml"):
        assert _key(path.stem) == _key(tomllib.loads(path.read_text())["name"])


@pytest.mark.parametrize(
    "other", ["NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA H100 NVL", "Tesla V100-PCIE-16GB", "RTX 4090 D", "A100X"]
)
def test_relatives_are_not_taken_for_the_gpu(other: str) -> None:
    with pytest.raises(ArgumentError, match="There is no GPU"):
        gpu(other)


def test_a_gpu_goes_wherever_a_name_goes() -> None:
    entry = gpu("A100")
    assert gpu(entry) is entry


@pytest.mark.parametrize(
    ("typo", "meant"), [("H10", "H100"), ("RTX 4900", "RTX 4090"), ("rtx5009", "RTX 5090"), ("L4S", "L40S")]
)
def test_unknown_name_suggests_near_ones(typo: str, meant: str) -> None:
    with pytest.raises(ArgumentError, match=rf"no GPU '{typo}' .*Did you mean .*'{re.escape(meant)}'") as caught:
        gpu(typo)
    assert "gpulab.gpus() lists all 30" in str(caught.value)


def test_what_is_near_to_nothing_gets_no_guess() -> None:
    with pytest.raises(ArgumentError, match=r"no GPU 'potato' in the catalog\. gpulab\.gpus\(\) lists"):
        gpu("potato")


def test_what_is_no_name() -> None:
    with pytest.raises(ArgumentError, match="but 4090 came"):
        gpu(4090)  # type: ignore[arg-type]


def test_repr_is_one_short_line() -> None:
    assert repr(gpu("H100")) == "Gpu('H100', compute capability 9.0, 132 SMs at 1.98 GHz, 3,352 GB/s)"
