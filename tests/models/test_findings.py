"""Findings: each appears where it should, at its line, with a gain that the model can defend, and nowhere else."""

from __future__ import annotations

import pytest

from gpulab.gpus import gpu
from gpulab.models.findings import Finding, findings
from gpulab.models.run import KernelRun
from gpulab.models.timing import estimate
from gpulab.models.traffic import traffic

FILE = '.file 1 "mine.cu"\n'
WARPS = (1 << 14) * 8
CLEAN = {
    "requests": WARPS,
    "bytes_asked": WARPS * 128,
    "sectors": WARPS * 4,
    "sectors_ideal": WARPS * 4,
    "lines": WARPS,
    "wavefronts": WARPS,
    "wavefronts_ideal": WARPS,
}
SCATTERED = {**CLEAN, "sectors": WARPS * 32, "lines": WARPS * 32, "wavefronts": WARPS * 32}
CONFLICTS = {"requests": WARPS, "wavefronts": WARPS * 32, "wavefronts_ideal": WARPS}
COPY = "mov.u32 %r9, %tid.x;\nmul.wide.u32 %rd1, %r9, 4;\n.loc 1 5 1\nld.global.f32 %f1, [%rd1];\n.loc 1 6 1\nst.global.f32 [%rd2], %f1;\nret;"
STREAM = {"distinct_sectors_read": WARPS * 4, "distinct_sectors_written": WARPS * 4, "footprint_sectors": WARPS * 8}


def found_in(run: KernelRun, name: str = "A100") -> list[Finding]:
    spec = gpu(name)
    occupancy = run.occupancy(spec)
    moved = traffic(run, spec, occupancy)
    return findings(run, spec, occupancy, moved, estimate(run, spec), "mine.cu")


@pytest.fixture
def launch(make_run):
    def make(body: str, counts: dict[int, dict[str, int]], **changes: int) -> KernelRun:
        return make_run(body, counts, head=FILE, **{"grid": 1 << 14, "block": 256, **STREAM, **changes})

    return make


def test_a_clean_copy_has_none(launch) -> None:
    assert found_in(launch(COPY, {2: CLEAN, 3: CLEAN})) == []


def test_scattered_stores(launch) -> None:
    (finding,) = found_in(launch(COPY, {2: CLEAN, 3: SCATTERED}))
    assert (finding.kind, finding.file, finding.line) == ("uncoalesced", "mine.cu", 6)
    assert "Global stores touch 32 sectors per request where 4 would do; 12.5 % of the bytes" in finding.message
    assert finding.gain == pytest.approx(2.7, abs=0.6)
    assert str(finding).startswith("Line 6: Global stores")
    assert str(finding).endswith("times faster (modeled).")
    assert repr(finding) == f"<uncoalesced: {finding}>"


def test_a_gain_that_another_limit_hides_is_not_promised(launch) -> None:
    # Loads that only L1 serves: the tags are busy, but DRAM decides.
    loads = {**SCATTERED, "sectors": WARPS * 6, "wavefronts": WARPS, "lines": WARPS * 2}
    (finding,) = found_in(launch(COPY, {2: loads, 3: CLEAN}))
    assert finding.line == 5
    assert "hardly be faster here, because DRAM bandwidth limits it (modeled)" in str(finding)


SHARED = ".loc 1 8 1\nld.shared.f32 %f1, [%r1];\n.loc 1 9 1\nst.global.f32 [%rd2], %f1;\nret;"


def test_bank_conflicts(launch) -> None:
    (finding,) = found_in(launch(SHARED, {0: CONFLICTS, 1: CLEAN}))
    assert (finding.kind, finding.line) == ("bank-conflict", 8)
    assert "32 wavefronts per request where 1 would do" in finding.message
    assert "Pad the rows" in finding.remedy
    assert finding.gain > 1.5


def test_low_occupancy_names_what_limits_it(launch) -> None:
    counts = {2: CLEAN, 3: CLEAN}
    (finding,) = found_in(launch(COPY, counts, registers=200))
    assert (finding.kind, finding.line) == ("occupancy", None)
    assert "Only 8 of 64 warps fit on an SM, limited by registers (200 per thread)." in finding.message
    assert finding.gain > 1.5


def test_half_of_the_warps_is_too_few_for_a_launch_that_waits(launch) -> None:
    # One warp a block: 32 blocks of an A100's SM hold 32 of its 64 warps. The same blocks of 64 threads hold them all.
    counts = {2: CLEAN, 3: CLEAN}
    (finding,) = found_in(launch(COPY, counts, grid=1 << 17, block=32))
    assert (finding.kind, finding.message) == (
        "occupancy",
        "Only 32 of 64 warps fit on an SM, limited by the blocks per SM (32).",
    )
    assert finding.gain > 1.05


def test_divergence_points_at_the_branch(launch) -> None:
    body = ".loc 1 3 1\n@%p1 bra ELSE;\n.loc 1 4 1\n" + "fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 40 + "ELSE: ret;"
    counts = {index: {"thread_instructions": WARPS * 8} for index in range(1, 41)}
    (finding,) = found_in(launch(body, {0: {"divergent_branches": WARPS}, **counts}))
    assert (finding.kind, finding.line) == ("divergence", 3)
    assert "9.1 of 32 lanes are active" in finding.message
    assert finding.gain > 2


def test_a_guard_at_the_end_of_the_grid_is_no_divergence(launch) -> None:
    assert found_in(launch(".loc 1 3 1\n@%p1 bra DONE;\nDONE: ret;", {0: {"divergent_branches": 1}})) == []


DOUBLE = (
    ".loc 1 4 1\ncvt.f64.f32 %fd1, %f1;\n"
    + "mul.f64 %fd1, %fd1, 0d3FB999999999999A;\n" * 8
    + "cvt.rn.f32.f64 %f1, %fd1;\nret;"
)


def test_a_double_literal_among_floats(launch) -> None:
    (finding,) = found_in(launch(DOUBLE, {}), "T4")
    assert (finding.kind, finding.line) == ("fp64", 4)
    assert "0.5f in CUDA C++, np.float32(0.5) in Numba" in finding.remedy
    assert finding.gain > 2


def test_wanted_doubles_are_no_finding(launch) -> None:
    assert found_in(launch(".loc 1 4 1\nmul.f64 %fd1, %fd1, %fd1;\nret;", {}), "T4") == []


def test_a_grid_smaller_than_the_gpu(launch) -> None:
    (finding,) = found_in(launch("ret;", {}, grid=12))
    assert finding.kind == "small-grid"
    assert "12 blocks, but A100 has 108 SMs: 96 of them have nothing to do" in finding.message


def test_a_tail_that_costs_nothing_is_no_finding(launch) -> None:
    # The same partly filled wave, but stores of whole lines in every instruction: DRAM sets the pace.
    store = {
        "requests": 8 * 1024,
        "bytes_asked": 128 * 8 * 1024,
        "sectors": 32 * 8 * 1024,
        "sectors_ideal": 4 * 8 * 1024,
    }
    body = "st.global.f32 [%rd1], %f1;\n" * 50 + "ret;"
    counts = dict.fromkeys(range(50), store)
    found = found_in(launch(body, counts, grid=1024, block=256))
    assert "tail" not in {finding.kind for finding in found}


def test_a_tail(launch) -> None:
    body = "fma.rn.f32 %f1, %f1, %f1, %f1;\n" * 2000 + "ret;"
    (finding,) = found_in(launch(body, {}, grid=108 * 8 + 1))
    assert finding.kind == "tail"
    assert "865 blocks are 1.00 waves of 864" in finding.message
    # One SM has 9 blocks where 8 and a bit would be its share: whole waves would save a ninth of the arithmetic.
    assert finding.gain == pytest.approx(9 / (865 / 108), rel=0.03)
    assert found_in(launch(body, {}, grid=108 * 8)) == []
