"""The files that describe the environment agree with each other."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import gpulab

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BASE = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = {name: list(map(Requirement, lines)) for name, lines in PROJECT["optional-dependencies"].items()}
PINS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
# conda-forge's name where it is another one. matplotlib-base is matplotlib without a GUI toolkit.
CONDA_NAMES = {"matplotlib": "matplotlib-base"}


def test_the_version_is_said_once() -> None:
    assert gpulab.__version__ == PROJECT["version"]
    assert gpulab.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_script_beside_a_folder_named_gpulab_gets_the_package(tmp_path: Path) -> None:
    # Where learners keep their scripts: beside the clone.
    (tmp_path / "gpulab").mkdir()
    script = tmp_path / "mine.py"
    script.write_text("import gpulab; print(gpulab.__version__)")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == gpulab.__version__, done.stderr


def test_constraints_pin_exactly_and_hold_no_addresses() -> None:
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert not re.search(r"://|@|--hash|--index|/", text.replace("-o constraints.txt", ""))
    assert all([clause.operator for clause in pin.specifier] == ["=="] for pin in PINS)


@pytest.mark.parametrize("requirement", [*BASE, *(item for items in EXTRAS.values() for item in items)], ids=str)
def test_every_dependency_is_pinned_inside_its_range(requirement: Requirement) -> None:
    pins = [pin for pin in PINS if pin.name == requirement.name]
    assert pins, "constraints.txt is old: CONTRIBUTING.md says how to make it anew"
    for pin in pins:
        version = next(iter(pin.specifier)).version
        assert requirement.specifier.contains(version), f"{version} is pinned, but {requirement} is asked for"


def test_what_is_installed_here_is_what_is_pinned() -> None:
    for pin in PINS:
        if pin.name in {requirement.name for requirement in BASE} and (pin.marker is None or pin.marker.evaluate()):
            assert pin.specifier.contains(importlib.metadata.version(pin.name)), pin


def test_every_dependency_says_why() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    start = lines.index("dependencies = [")
    for number in range(start, lines.index("]", start)):
        is_first_of_group = lines[number].strip().startswith('"') and not lines[number - 1].strip().startswith('"')
        assert not is_first_of_group or lines[number - 1].strip().startswith("#"), lines[number]


def test_nvidia_wheels_are_not_asked_for_on_macos() -> None:
    for requirement in BASE:
        if re.match(r"nvidia-|cuda-|numba-cuda", requirement.name):
            assert requirement.marker is not None, requirement
            assert not requirement.marker.evaluate({"sys_platform": "darwin"})
            assert requirement.marker.evaluate({"sys_platform": "win32"})


def test_environment_yml_asks_for_the_same_ranges() -> None:
    conda = {Requirement(line) for line in CONDA["dependencies"] if isinstance(line, str) and line not in ("pip",)}
    expected = {Requirement(f"python{PROJECT['requires-python']}")}
    expected |= {
        Requirement(f"{CONDA_NAMES.get(item.name, item.name)}{item.specifier}") for item in BASE if not item.marker
    }
    assert conda == expected


def test_environment_yml_leaves_the_rest_to_the_package_itself() -> None:
    assert CONDA["channels"] == ["conda-forge"]
    assert "pip" in CONDA["dependencies"]
    assert {"pip": ["-e ."]} in CONDA["dependencies"]


def test_this_python_is_in_the_range() -> None:
    from packaging.specifiers import SpecifierSet

    version = Version(".".join(map(str, sys.version_info[:3])))
    assert SpecifierSet(PROJECT["requires-python"]).contains(version)


def test_data_files_are_packaged() -> None:
    globs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"][
        "gpulab"
    ]
    packaged = {path for pattern in globs for path in (ROOT / "gpulab").glob(pattern)}
    others = {path for path in (ROOT / "gpulab").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert not others - packaged
