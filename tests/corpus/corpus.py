"""Loads the kernels of this folder and runs launches of them: on the compiled engine and, small ones, on the interpreter."""

from __future__ import annotations

import copy
import ctypes
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab.devices.protocol import LaunchRecord
from gpulab.launchables.base import BoundLaunch, Launchable
from gpulab.profiling import Profile
from gpulab.profiling.judged import judge

HERE = Path(__file__).parent
INTERPRETED_AT_MOST = 1000
"""Warp instructions that the interpreter repeats in a test; it needs about 0.1 ms for each."""
_profiled: set[str] = set()
"""Digests of the kernels whose profile has been looked at."""


def kernel(file: str, name: str, *, cooperative: bool = False) -> gpulab.RawKernel:
    """A kernel of a ``.cu`` file of this folder."""
    return gpulab.RawKernel.from_file(HERE / file, name, enable_cooperative_groups=cooperative)


class Runner:
    """Launches kernels.

    What a launch does on both engines must be the same to the last bit and count, and the check finds nothing wrong in a kernel.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._twins: dict[Launchable, Launchable | None] = {}
        self._left = INTERPRETED_AT_MOST

    def __call__(self, bound: BoundLaunch, *args: Any) -> LaunchRecord:
        """Launch, compare with the interpreter if the launch is small, and check that the kernel's profile is whole."""
        before, untouched = ([_duplicate(value) for value in args] for _ in range(2))
        record = self._launch("compiled", bound, args)
        assert record.counters is not None
        # A kernel's variables live with the kernel object: its twin has its own, and must see every launch or none.
        twin = self._twins.setdefault(bound.kernel, copy.copy(bound.kernel))
        self._left -= int(record.counters.warp_instructions.sum())
        if twin is not None and self._left >= 0:
            _assert_same(args, before, record, self._launch("reference", BoundLaunch(twin, bound.config), before))
        else:
            self._twins[bound.kernel] = None
        if record.ptx.digest not in _profiled:
            _profiled.add(record.ptx.digest)
            _assert_profile_is_whole(Profile((judge(record, gpulab.current().gpu),)))
            self._assert_check_finds_nothing(bound, untouched)
        return record

    def _assert_check_finds_nothing(self, bound: BoundLaunch, args: Sequence[Any]) -> None:
        self._monkeypatch.setenv("GPULAB_ENGINE", "compiled")
        report = gpulab.check(BoundLaunch(copy.copy(bound.kernel), bound.config), *args)
        assert report.ok, report

    def _launch(self, engine: str, bound: BoundLaunch, args: Sequence[Any]) -> LaunchRecord:
        self._monkeypatch.setenv("GPULAB_ENGINE", engine)
        return gpulab.current().launch(bound, args, count=True)


def _duplicate(value: Any) -> Any:
    """A copy; of an array with the same strides, and with the bytes between its items and fields."""
    if not isinstance(value, np.ndarray):
        return copy.copy(value)
    low, high = np.lib.array_utils.byte_bounds(value)
    held = bytearray((ctypes.c_uint8 * (high - low)).from_address(low))
    made = np.ndarray(value.shape, value.dtype, held, value.ctypes.data - low, value.strides)
    made.flags.writeable = value.flags.writeable
    return made


def _assert_same(mine: Sequence[Any], theirs: Sequence[Any], record: LaunchRecord, other: LaunchRecord) -> None:
    for position, (left, right) in enumerate(zip(mine, theirs, strict=True)):
        if isinstance(left, np.ndarray):
            assert left.tobytes() == right.tobytes(), f"engines differ in argument {position}: {left} and {right}"
    assert record.counters is not None and other.counters is not None
    differences = record.counters.differences(other.counters)
    differences.pop("trace", None)  # its lines are addresses, and copies of arrays have others
    assert differences == {}


def _assert_profile_is_whole(profile: Profile) -> None:
    """Every part of a profile can be had, and its sum over lines is that of the launch."""
    sources = profile.sources
    assert sources is not None
    document = json.loads(json.dumps(profile.to_json(sass=False), allow_nan=False))
    assert document["metrics"]["smsp__inst_executed.sum"] > 0
    assert 0 < profile.time.low <= profile.time.seconds <= profile.time.high
    assert profile.on("H100").time.seconds > 0
    assert len(profile.lines) > 0
    assert all(str(finding) for finding in profile.findings)
    assert repr(profile) and repr(profile.details()) and profile._repr_html_()
