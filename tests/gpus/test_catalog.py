"""The catalog: every value has a source, the values agree with one another, names are forgiving, errors help."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from gpulab.errors import ArgumentError
from gpulab.gpus import Gpu, gpu, gpus
from gpulab.gpus.catalog import DATA

NAMES = ["T4", "A100", "RTX 4090", "H100", "H200"]
TEXTS = {"name", "compute_capability", "aliases"}


def test_the_five_are_there() -> None:
    assert gpus() == NAMES


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.toml")), ids=lambda path: path.stem)
def test_every_value_stands_beside_its_source(path: Path) -> None:
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, entry in entries.items():
        if name not in TEXTS:
            assert isinstance(entry, dict), f"{name} has no source"
            assert len(entry["source"]) >= 10, f"{name} has no source"


@pytest.mark.parametrize("name", NAMES)
def test_peak_is_lanes_times_clock(name: str) -> None:
    entry = gpu(name)
    assert entry.peak_fp32_flop_per_s / 1e12 == pytest.approx(entry.sheet_fp32_tflop_per_s, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_bandwidth_is_bus_times_rate(name: str) -> None:
    entry = gpu(name)
    by_bus = entry.memory_bus_bits * entry.memory_gbit_per_s_per_pin / 8
    assert by_bus == pytest.approx(entry.dram_bandwidth_gb_per_s, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_shape(name: str) -> None:
    entry = gpu(name)
    assert entry.dram_bandwidth_gb_per_s < entry.l2_bandwidth_gb_per_s
    assert 0.5 < entry.dram_efficiency <= 1
    assert entry.shared_bytes_per_block <= entry.shared_bytes_per_block_optin <= entry.shared_bytes_per_sm
    assert entry.shared_bytes_per_block_optin + entry.reserved_shared_bytes_per_block <= entry.shared_bytes_per_sm
    assert entry.shared_bytes_per_sm < entry.l1_bytes
    assert entry.shared_carve_outs_bytes[-1] == entry.shared_bytes_per_sm
    assert list(entry.shared_carve_outs_bytes) == sorted(set(entry.shared_carve_outs_bytes))
    latencies = (entry.alu_latency_cycles, entry.shared_latency_cycles, entry.l1_latency_cycles)
    assert sorted(latencies) == list(latencies)
    assert entry.l1_latency_cycles < entry.l2_latency_cycles < entry.dram_latency_cycles
    assert 1e-6 < entry.launch_overhead_s < 1e-5
    assert set(entry.sources) == {item.name for item in dataclasses.fields(Gpu)} - TEXTS - {"sources"}


PER_CAPABILITY = (
    "max_warps_per_sm",
    "max_blocks_per_sm",
    "shared_bytes_per_sm",
    "shared_bytes_per_block_optin",
    "shared_allocation_bytes",
    "reserved_shared_bytes_per_block",
    "l1_bytes",
    "fp32_lanes_per_sm",
    "fp64_lanes_per_sm",
    "int32_lanes_per_sm",
    "sfu_lanes_per_sm",
)
KIB = 1024


@pytest.mark.parametrize(
    ("name", "sms", "values"),
    [
        ("T4", 40, (32, 16, 64 * KIB, 64 * KIB, 256, 0, 96 * KIB, 64, 2, 64, 16)),
        ("A100", 108, (64, 32, 164 * KIB, 163 * KIB, 128, KIB, 192 * KIB, 64, 32, 64, 16)),
        ("RTX 4090", 128, (48, 24, 100 * KIB, 99 * KIB, 128, KIB, 128 * KIB, 128, 2, 64, 16)),
        ("H100", 132, (64, 32, 228 * KIB, 227 * KIB, 128, KIB, 256 * KIB, 128, 64, 64, 16)),
        ("H200", 132, (64, 32, 228 * KIB, 227 * KIB, 128, KIB, 256 * KIB, 128, 64, 64, 16)),
    ],
)
def test_values_of_the_programming_guide(name: str, sms: int, values: tuple[int, ...]) -> None:
    entry = gpu(name)
    assert entry.sm_count == sms
    assert tuple(getattr(entry, field) for field in PER_CAPABILITY) == values


def test_carve_outs_of_the_programming_guide() -> None:
    assert gpu("T4").shared_carve_outs_bytes == (32 * KIB, 64 * KIB)
    assert gpu("RTX 4090").shared_carve_outs_bytes == tuple(size * KIB for size in (0, 8, 16, 32, 64, 100))
    assert gpu("A100").shared_carve_outs_bytes == tuple(size * KIB for size in (0, 8, 16, 32, 64, 100, 132, 164))
    assert gpu("H100").shared_carve_outs_bytes[-3:] == (164 * KIB, 196 * KIB, 228 * KIB)


@pytest.mark.parametrize("name", NAMES)
def test_what_all_capabilities_have_in_common(name: str) -> None:
    entry = gpu(name)
    assert (entry.registers_per_sm, entry.max_registers_per_thread, entry.max_threads_per_block) == (65_536, 255, 1024)
    assert (entry.register_allocation_unit, entry.warp_allocation_granularity, entry.schedulers_per_sm) == (256, 4, 4)
    assert entry.shared_bytes_per_block == 48 * KIB


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a100", "A100"),
        ("rtx-4090", "RTX 4090"),
        ("RTX4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("Tesla T4", "T4"),
        ("NVIDIA A100-SXM4-40GB", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
    ],
)
def test_names_are_forgiving(written: str, name: str) -> None:
    assert gpu(written).name == name


def test_a_gpu_goes_wherever_a_name_goes() -> None:
    entry = gpu("A100")
    assert gpu(entry) is entry


def test_unknown_name_suggests_near_ones() -> None:
    with pytest.raises(ArgumentError, match=r"no GPU 'H10'.*Did you mean 'H100'") as caught:
        gpu("H10")
    assert "T4, A100, RTX 4090, H100, H200" in str(caught.value)


def test_what_is_no_name() -> None:
    with pytest.raises(ArgumentError, match="but 4090 came"):
        gpu(4090)  # type: ignore[arg-type]


def test_replace_makes_another_gpu_and_says_so() -> None:
    entry = gpu("A100").replace(dram_bandwidth_gb_per_s=2000)
    assert entry.name == "A100 (dram_bandwidth_gb_per_s=2000)"
    assert entry.reachable_dram_bytes_per_s == pytest.approx(2000e9 * 0.92)
    assert entry.sources["dram_bandwidth_gb_per_s"] == "replaced by the user"
    assert gpu("A100").dram_bandwidth_gb_per_s == 1555
    assert gpu("A100").replace(name="mine", sm_count=64).name == "mine"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bandwidth": 1}, "no 'bandwidth'; it has.*dram_bandwidth_gb_per_s"),
        ({"sm_count": 0}, "sm_count must be above 0"),
        ({"sm_count": -3}, "at least 0, but -3 came"),
        ({"clock_hz": float("nan")}, "at least 0, but nan came"),
        ({"clock_hz": "fast"}, "must be a number of at least 0, but 'fast' came"),
    ],
)
def test_replace_refuses_nonsense(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        gpu("A100").replace(**changes)


def test_repr_is_one_short_line() -> None:
    assert repr(gpu("H100")) == "Gpu('H100', compute capability 9.0, 132 SMs at 1.98 GHz, 3,352 GB/s)"


MINE = """
name = "mine"
compute_capability = "8.6"
sm_count = 28
boost_clock_hz = 1.777e9
sheet_fp32_tflop_per_s = 12.7
memory_bytes = 12_884_901_888
memory_bus_bits = 192
memory_gbit_per_s_per_pin = 15
dram_bandwidth_gb_per_s = 360
dram_efficiency = { value = 0.91, source = "measured by me" }
l2_bytes = 2_359_296
l2_bandwidth_gb_per_s = 1280
"""


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    for entry in (gpu(path), gpu(str(path))):
        assert (entry.name, entry.compute_capability, entry.arch) == ("mine", (8, 6), "sm_86")
        assert (entry.max_warps_per_sm, entry.clock_hz) == (48, 1.777e9)
        assert entry.sources["dram_efficiency"] == "measured by me"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sm_count = 28", "", "lacks sm_count"),
        ("sm_count = 28", "sm_counts = 28", "'sm_counts', which is no field.*mean 'sm_count'"),
        ("sm_count = 28", 'sm_count = "28"', "sm_count .* must be a number of at least 0, not '28'"),
        (
            "sm_count = 28",
            "sm_count = 28\nshared_carve_outs_bytes = [1, -2]",
            "must be a list of numbers of at least 0",
        ),
        ('"8.6"', '"Ampere"', "major.minor"),
        ('"8.6"', '"9.9"', "lacks fp32_lanes_per_sm.*capability 9.9"),
        ('name = "mine"', "name = mine", "not valid TOML"),
    ],
)
def test_a_file_with_a_mistake(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE.replace(old, new))
    with pytest.raises(ArgumentError, match=message):
        gpu(path)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ArgumentError, match="can't be read: No such file"):
        gpu("nowhere.toml")


@pytest.mark.parametrize(
    ("name", "field", "tera_per_s"),
    [
        # Dense peaks of the data sheets, at their boost clocks.
        ("T4", "tensor_fp16_flop_per_cycle", 65),
        ("T4", "tensor_int8_op_per_cycle", 130),
        ("A100", "tensor_fp16_flop_per_cycle", 312),
        ("A100", "tensor_tf32_flop_per_cycle", 156),
        ("A100", "tensor_fp64_flop_per_cycle", 19.5),
        ("A100", "tensor_int8_op_per_cycle", 624),
        ("RTX 4090", "tensor_fp16_flop_per_cycle", 165.2),
        ("RTX 4090", "tensor_fp16_accumulated_flop_per_cycle", 330.3),
        ("RTX 4090", "tensor_tf32_flop_per_cycle", 82.6),
        ("RTX 4090", "tensor_fp8_flop_per_cycle", 330.3),
        ("RTX 4090", "tensor_int8_op_per_cycle", 660.6),
    ],
)
def test_tensor_peaks_are_those_of_the_data_sheets(name: str, field: str, tera_per_s: float) -> None:
    entry = gpu(name)
    assert getattr(entry, field) * entry.sm_count * entry.boost_clock_hz / 1e12 == pytest.approx(tera_per_s, rel=0.02)


def test_hopper_tensor_peaks() -> None:
    """The data sheet's 989 TFLOP/s of the H100 SXM are for a boost clock of 1.83 GHz, not 1.98."""
    entry = gpu("H100")
    assert entry.tensor_fp16_flop_per_cycle * entry.sm_count * 1.83e9 / 1e12 == pytest.approx(989, rel=0.01)
    assert entry.tensor_fp8_flop_per_cycle == 2 * entry.tensor_fp16_flop_per_cycle
