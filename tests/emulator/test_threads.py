"""How many OS threads a launch uses: what the process may use, and what the user says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpulab.emulator import RunOptions, compiled
from gpulab.errors import GpulabError


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight CPUs, of which this process may use the first six, and no quota."""
    monkeypatch.delenv("GPULAB_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    _quota_is(monkeypatch, "max 100000\n")


def _quota_is(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    compiled._quota.cache_clear()
    monkeypatch.setattr(Path, "read_text", lambda path: text)


@pytest.fixture(autouse=True)
def forget_quota() -> object:
    yield
    compiled._quota.cache_clear()


def test_the_cpus_that_the_process_may_use() -> None:
    assert compiled.thread_count(RunOptions(), 100, False) == 6


@pytest.mark.parametrize(
    ("quota", "threads"), [("200000 100000", 2), ("150000 100000", 2), ("50000 100000", 1), ("900000 100000", 6)]
)
def test_a_containers_quota(monkeypatch: pytest.MonkeyPatch, quota: str, threads: int) -> None:
    _quota_is(monkeypatch, quota)
    assert compiled.thread_count(RunOptions(), 100, False) == threads


def test_the_user_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULAB_THREADS", "3")
    assert compiled.thread_count(RunOptions(), 100, False) == 3
    assert compiled.thread_count(RunOptions(threads=5), 100, False) == 5


def test_no_more_than_blocks_and_one_where_their_order_matters() -> None:
    assert compiled.thread_count(RunOptions(), 4, False) == 4
    assert compiled.thread_count(RunOptions(), 100, True) == 1


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5"])
def test_what_is_no_number_of_threads(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("GPULAB_THREADS", text)
    with pytest.raises(GpulabError, match=f"GPULAB_THREADS .*'{text}'"):
        compiled.thread_count(RunOptions(), 100, False)


def test_a_forked_process_has_threads_of_its_own() -> None:
    code = (
        "import os, numpy as np, gpulab; gpulab.use('A100'); x = np.ones(64, np.float32)\n"
        "k = gpulab.RawKernel('extern \"C\" __global__ void k(float *x) { x[blockIdx.x * 32 + threadIdx.x] *= 2; }', 'k')\n"
        "k[2, 32](x)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    k[2, 32](x); os._exit(int(x[0]))\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    # Doubled once in the parent, and once more in the child, which has none of the parent's waiting threads.
    assert done.stdout.strip() == "4"
