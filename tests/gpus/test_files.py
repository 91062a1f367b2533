"""GPUs of one's own in TOML files: complete ones, ones that say what differs, and every mistake."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import gpulab
from gpulab.errors import ArgumentError
from gpulab.gpus import gpu

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
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def call(text: str) -> Path:
        path = tmp_path / "my-gpu.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return call


def test_a_whole_gpu(write: Write) -> None:
    path = write(MINE)
    for entry in (gpu(path), gpu(str(path))):
        assert (entry.name, entry.compute_capability, entry.arch) == ("mine", (8, 6), "sm_86")
        assert (entry.max_warps_per_sm, entry.clock_hz, entry.tensor_clock_hz) == (48, 1.777e9, 1.777e9)
        assert entry.sources["dram_efficiency"] == "measured by me"
        assert entry.sources["sm_count"] == "the file my-gpu.toml"


def test_only_what_differs(write: Write) -> None:
    entry = gpu(
        write('based_on = "A100"\nsm_count = 98\ndram_bandwidth_gb_per_s = { value = 1200, source = "my vendor" }')
    )
    assert (entry.name, entry.sm_count, entry.dram_bandwidth_gb_per_s) == ("my-gpu", 98, 1200)
    assert entry.l2_bytes == gpu("A100").l2_bytes
    assert entry.peak_fp32_flop_per_s == pytest.approx(gpu("A100").peak_fp32_flop_per_s * 98 / 108)
    assert entry.sources["dram_bandwidth_gb_per_s"] == "my vendor"
    assert entry.sources["sm_count"] == "the file my-gpu.toml"
    assert entry.sources["l2_bytes"] == gpu("A100").sources["l2_bytes"]


def test_another_capability_brings_its_constants(write: Write) -> None:
    entry = gpu(write('based_on = "rtx 3090"\nname = "next"\ncompute_capability = "8.9"\nl1_latency_cycles = 31'))
    assert (entry.arch, entry.max_blocks_per_sm, entry.l1_latency_cycles) == ("sm_89", 24, 31)
    assert (entry.sm_count, entry.dram_bandwidth_gb_per_s) == (82, 936)


def test_the_file_goes_wherever_a_name_goes(write: Write) -> None:
    path = str(write('based_on = "T4"\nname = "half"\nsm_count = 20'))
    assert gpulab.use(path).gpu.name == "half"
    assert gpulab.occupancy(path, block=1024, registers_per_thread=64).theoretical == 1.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sm_count = 28", "", "lacks sm_count.*or write based_on"),
        ("sm_count = 28", "sm_counts = 28", "no 'sm_counts' in the GPU file.*mean 'sm_count'"),
        ("sm_count = 28", 'based_no = "A100"', "no 'based_no' in the GPU file.*mean 'based_on'"),
        ("sm_count = 28", 'sm_count = "28"', "sm_count must be a number, but '28' came in the GPU file"),
        ("sm_count = 28", "sm_count = 0", "sm_count must be above 0, but 0 came in the GPU file"),
        ("sm_count = 28", "sm_count = 28.5", "sm_count must be a whole number, but 28.5 came"),
        ("sm_count = 28", 'sm_count = { value = 28, sourc = "me" }', "has 'sourc'; a value is .*mean 'source'"),
        ("sm_count = 28", 'sm_count = { source = "me" }', "sm_count in the GPU file .* has no value"),
        (
            "sm_count = 28",
            "sm_count = 28\nshared_carve_outs_bytes = [1, -2]",
            "must be a list of whole numbers of at least 0",
        ),
        ("dram_bandwidth_gb_per_s = 360", "dram_bandwidth_gb_per_s = -360", "above 0, but -360 came"),
        ("boost_clock_hz = 1.777e9", "boost_clock_hz = 1777", "in Hz: 1.41 GHz is 1.41e9, but 1777 came"),
        ("l2_bytes = 2_359_296", "l2_bytes = 2.25", "l2_bytes is in bytes"),
        ("l2_bytes = 2_359_296", "l2_bytes = 2_359_296\nl1_bytes = 65_536", "is a part of l1_bytes"),
        ('name = "mine"', "name = 3", "name must be a text, but 3 came"),
        ('"8.6"', '"Ampere"', "major.minor"),
        ('"8.6"', '"9.9"', "lacks .*fp32_lanes_per_sm"),
        ('compute_capability = "8.6"', "", 'must have compute_capability = .* or based_on = "A100"'),
        ('name = "mine"', "name = mine", "not valid TOML"),
    ],
)
def test_a_mistake(write: Write, old: str, new: str, message: str) -> None:
    assert old in MINE
    with pytest.raises(ArgumentError, match=message) as caught:
        gpu(write(MINE.replace(old, new)))
    assert "my-gpu.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('based_on = "A10O"', "In the GPU file .*no GPU 'A10O'.*Did you mean .*'A100'"),
        ("based_on = 100", "based_on in the GPU file .* must name a GPU of the catalog, but it is 100"),
        ('based_on = "my-gpu.toml"', "must name a GPU of the catalog, but it is 'my-gpu.toml'"),
        ('based_on = "A100"\nsm_cuont = 5', "no 'sm_cuont' in the GPU file .*mean 'sm_count'"),
        ('based_on = "A100"\nclock_hz = 1.2', "clock_hz is in Hz.* in the GPU file"),
        ('based_on = "A100"\nl1_bytes = 98_304', "In the GPU file .*is a part of l1_bytes"),
        ('based_on = "A100"\ncompute_capability = "x"', "major.minor"),
    ],
)
def test_a_mistake_in_what_differs(write: Write, text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        gpu(write(text))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ArgumentError, match="can't be read: No such file"):
        gpu("nowhere.toml")


# ---- docs/gpus.md

DOCS = (Path(__file__).parents[2] / "docs" / "gpus.md").read_text(encoding="utf-8")


def test_the_example_of_a_file_works(write: Write) -> None:
    entry = gpu(write(re.search(r"```toml\n(.*?)```", DOCS, re.DOTALL)[1]))
    assert (entry.name, entry.clock_hz, entry.boost_clock_hz) == ("A100 of our cluster", 1.2e9, 1.41e9)
    assert entry.sources["dram_bandwidth_gb_per_s"] == "our own measurement"


def test_the_example_of_what_if_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", DOCS, re.DOTALL).groups()
    exec(code, {})
    assert capsys.readouterr().out == printed
