"""The disk cache: same content, same entry; a broken or read-only cache costs time, never an error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpulab.toolchain import cache, nvrtc

KERNEL = 'extern "C" __global__ void k(float* x) { x[0] = 1; }'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.json"))


def test_the_folder_is_the_environments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.folder() == folder
    monkeypatch.delenv("GPULAB_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.folder() == Path("/somewhere/gpulab")


def test_what_decides_the_content_decides_the_entry(folder: Path) -> None:
    nvrtc.compile_kernel(KERNEL, "k")
    assert len(entries(folder)) == 1
    nvrtc.compile_kernel(KERNEL, "k", file="another/name.cu")  # only a label
    assert len(entries(folder)) == 1
    nvrtc.compile_kernel(KERNEL, "k", ("-DA",))
    nvrtc.compile_kernel(KERNEL, "k", (), (9, 0))
    nvrtc.compile_kernel(KERNEL + "\n", "k")
    assert len(entries(folder)) == 4


def test_an_entry_gives_the_same_result_as_the_compiler(folder: Path) -> None:
    made, found = nvrtc.compile_kernel(KERNEL, "k"), nvrtc.compile_kernel(KERNEL, "k")
    assert made is not found
    assert (made.text, made.kernel, made.parameters, made.compiler, made.digest) == (
        found.text, found.kernel, found.parameters, found.compiler, found.digest,
    )  # fmt: skip


def test_a_found_entry_loads_no_compiler(folder: Path) -> None:
    code = (
        "import sys; from gpulab.toolchain import nvrtc; "
        f"nvrtc.compile_kernel({KERNEL!r}, 'k').assembled.registers_per_thread; print('cuda.bindings' in sys.modules)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert [run.stdout.strip() for run in runs] == ["True", "False"]


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"', "\0\0"])
def test_a_broken_entry_is_made_again(folder: Path, content: str) -> None:
    expected = nvrtc.compile_kernel(KERNEL, "k").text
    entries(folder)[0].write_text(content)
    assert nvrtc.compile_kernel(KERNEL, "k").text == expected
    assert nvrtc.compile_kernel(KERNEL, "k").text == expected


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path / "file"))
    assert cache.write("ab" + "0" * 62, {"a": 1}) is False
    assert cache.read("ab" + "0" * 62) is None
    assert nvrtc.compile_kernel(KERNEL, "k").kernel == "k"


def test_no_half_written_file_is_left(folder: Path) -> None:
    with pytest.raises(TypeError):
        cache.write("cd" + "0" * 62, {"not JSON": object()})
    assert [path for path in folder.rglob("*") if path.is_file()] == []
