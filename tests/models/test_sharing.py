"""Loads that all warps of a block do alike miss L1 once for all of them."""

from __future__ import annotations

import pytest

from gpulab.models.sharing import l1_misses, shared_by_warps

# One element of a row of a (by the block's y), and neighbors of a row of b (by x), as in a matrix multiplication.
BODY = """
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mul.wide.u32 %rd1, %r2, 4096;
    mul.wide.u32 %rd2, %r1, 4;
LOOP:
    ld.global.f32 %f1, [%rd1];
    ld.global.f32 %f2, [%rd2];
    add.s64 %rd1, %rd1, 4;
    add.s64 %rd2, %rd2, 4096;
    @%p1 bra LOOP;
    ret;
"""


@pytest.mark.parametrize(
    ("block", "shared"),
    [((32, 8), (False, True)), ((16, 16), (False, True)), ((64, 4), (False, False)), ((24, 4), (False, False))],
)
def test_which_loads_are_shared(make_run, block: tuple[int, int], shared: tuple[bool, bool]) -> None:
    found = shared_by_warps(make_run(BODY, block=block))
    assert (found[4], found[5]) == shared
    assert found.sum() == sum(shared)


def test_a_shared_walk_is_missed_once(make_run) -> None:
    load = {"requests": 8000, "sectors": 32_000, "l1_miss_sectors": 32_000}
    assert l1_misses(make_run(BODY, {5: load}, block=(32, 8)))[5] == 4000
    assert l1_misses(make_run(BODY, {4: load}, block=(32, 8)))[4] == 32_000


def test_what_l1_kept_already_is_not_saved_twice(make_run) -> None:
    load = {"requests": 8000, "sectors": 32_000, "l1_miss_sectors": 500}
    assert l1_misses(make_run(BODY, {5: load}, block=(32, 8)))[5] == 500


def test_what_a_warp_found_in_shared_memory_is_its_own(make_run) -> None:
    body = "ld.shared.u64 %rd1, [%r1]; ld.global.f32 %f1, [%rd1]; ret;"
    assert not shared_by_warps(make_run(body, block=(32, 8))).any()
