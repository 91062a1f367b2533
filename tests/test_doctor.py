"""What the doctor says, for machines of every kind."""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path

import pytest

from gpulab import doctor
from gpulab.cli import show
from gpulab.devices import detect
from gpulab.doctor import Check


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch):
    """Call it to pretend that this driver is here, and that there is this reason not to use it."""

    def pretend(found: detect.Driver | None, reason: str | None = None) -> None:
        monkeypatch.setattr(detect, "find_driver", lambda: found)
        monkeypatch.setattr(detect, "why_no_cuda", lambda: reason)

    return pretend


def test_the_first_line_on_a_laptop_without_a_gpu_says_that_all_labs_work(driver) -> None:
    driver(None)
    report = doctor.examine()
    assert report.works, report.checks
    assert report.summary.startswith("All labs work here")
    assert report.gpu is None
    text = show.doctor(report.to_json())
    assert text.splitlines()[0] == report.summary
    assert max(map(len, text.splitlines())) <= 100
    assert "What to do" not in text


def test_the_report_is_json(driver) -> None:
    driver(None)
    document = doctor.Report("fine", None, (Check("a", "absent", "none", "get it"),)).to_json()
    assert json.loads(show.as_json(document))["checks"] == [
        {"name": "a", "status": "absent", "found": "none", "remedy": "get it"}
    ]


def test_what_is_broken_comes_first_with_its_remedy() -> None:
    checks = (Check("numpy", "ok", "2.4"), Check("ptxas", "broken", "no such file", "pip install it"))
    report = doctor.Report(doctor.summarize(checks, None), None, checks)
    assert not report.works
    text = show.doctor(report.to_json())
    assert text.startswith("Not all labs work here: ptxas must be repaired first")
    assert text.endswith("ptxas: pip install it")


def test_an_absent_extra_is_no_problem() -> None:
    assert doctor.Report("", None, (Check("CuPy", "absent", "none"),)).works


def test_a_gpu_is_named(driver) -> None:
    driver(detect.Driver(12080, ("NVIDIA T4",)))
    name, checks = doctor.examine_gpu()
    assert name == "NVIDIA T4"
    assert "CUDA 12.8; NVIDIA T4" in checks[0].found
    assert doctor.summarize(checks, name).startswith("All labs work here")
    assert "NVIDIA T4" in doctor.summarize(checks, name)


@pytest.mark.parametrize(
    ("found", "reason", "hint"),
    [
        (detect.Driver(11080, ("Tesla K80",)), None, "525"),
        (detect.Driver(12040, ()), None, "CUDA_VISIBLE_DEVICES"),
        (detect.Driver(12040, ("NVIDIA T4",)), "CuPy is not installed.", "CuPy is not installed."),
    ],
)
def test_a_gpu_that_cannot_be_used_is_explained_and_no_problem(driver, found, reason, hint: str) -> None:
    driver(found, reason)
    name, checks = doctor.examine_gpu()
    assert name is None
    assert hint in f"{checks[-1].found} {checks[-1].remedy}"
    assert not any(check.is_problem for check in checks)


def test_a_version_outside_the_range_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        importlib.metadata, "requires", lambda name: ["numpy<2.5,>=2.0", "ghost", 'pytest; extra == "dev"']
    )
    monkeypatch.setattr(importlib.metadata, "version", _version)
    assert list(doctor.check_packages()) == [
        Check("numpy", "broken", "2.5.5, but <2.5,>=2.0 is needed", 'pip install "numpy<2.5,>=2.0"'),
        Check("ghost", "missing", "not installed", 'pip install "ghost"'),
    ]


def _version(name: str) -> str:
    if name == "numpy":
        return "2.5.5"
    raise importlib.metadata.PackageNotFoundError(name)


def test_what_a_compiler_raises_is_the_finding() -> None:
    def fails() -> str:
        raise OSError("libnvvm.so: no such file\nand more")

    assert doctor.attempt("libNVVM", fails, "repair it") == Check(
        "libNVVM", "broken", "OSError: libnvvm.so: no such file", "repair it"
    )


def test_compilers_are_tried_without_what_was_cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path))
    assert [check.status for check in doctor.check_compilers()] == ["ok"] * 5
    assert not list(tmp_path.iterdir())
    assert os.environ["GPULAB_CACHE"] == str(tmp_path)


def test_a_cache_folder_that_cannot_be_made_is_no_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path / "file" / "cache"))
    check = doctor.check_cache()
    assert check.status == "absent"
    assert "GPULAB_CACHE" in check.remedy
