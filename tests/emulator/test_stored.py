"""Programs from disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ptx_harness import kernel

from gpulab.emulator import load, stored
from gpulab.emulator.llvm import cache
from gpulab.ptx import parse

TEXT = kernel("u64 out", "add.u32 %r1, %r2, %r3;")


def test_a_program_from_disk_is_the_one_that_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path))
    made = stored.program(TEXT, "k")
    assert made == load(parse(TEXT), "k")
    assert stored.program(TEXT.replace("add.u32", "sub.u32"), "k") != made
    monkeypatch.setattr(stored, "parse", None)
    assert stored.program(TEXT, "k") == made
    assert stored.program(TEXT, "k").parameters == {"out": (0, 8)}


def test_a_damaged_program_on_disk_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path))
    made = stored.program(TEXT, "k")
    for path in cache.folder().iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert stored.program(TEXT, "k") == made


def test_what_is_on_disk_depends_on_the_sources_that_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path))
    package = tmp_path / "package"
    monkeypatch.setattr(cache, "__file__", str(package / "emulator" / "llvm" / "cache.py"))
    source = package / "emulator" / "a.py"
    for folder in ("emulator", "models", "ptx"):
        (package / folder).mkdir(parents=True)
        (package / folder / "access.py").write_text("")
    digests = []
    for text in ("x = 1", "x = 2", "x = 1"):
        source.write_text(text)
        os.utime(source, ns=(len(digests), len(digests)))
        cache.generators.cache_clear()
        digests.append(cache.generators())
        cache.generators.cache_clear()
        assert cache.generators() == digests[-1]
    monkeypatch.undo()
    cache.generators.cache_clear()
    assert digests[0] == digests[2] != digests[1]
