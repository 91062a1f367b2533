"""The launcher `lab`, run for real with stand-ins for uv, Python, apt-get and Jupyter, so without a network."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HAS_GPU = Path("/proc/driver/nvidia/version").exists() or Path("/usr/lib/wsl/lib/libcuda.so.1").exists()
WITHOUT_EXTRAS = ".[cuda]" if HAS_GPU else "."
pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="the launcher is a POSIX shell script; Windows installs with pip"
)

# Stands for every program that .venv gets: says who it is, its arguments and where it runs.
PROGRAM = """#!/bin/sh
printf '%s|' "$(basename "$0")" "$PWD" "$HOME" "${JUPYTER_CONFIG_PATH:-}" "$@"
exit "${PROGRAM_STATUS:-0}"
"""
UV = """#!/bin/sh
printf '%s|' "$@" >>"$LOG"; echo >>"$LOG"
[ "$1" != "${UV_FAILS_AT:-}" ] || { echo "uv: it went wrong" >&2; exit 2; }
if [ "$1" = venv ]; then
    mkdir -p .venv/bin
    for name in python gpulab jupyter-lab; do cp "$STAND_INS/program" ".venv/bin/$name"; done
fi
"""
LOGGED = """#!/bin/sh
printf '%s|' "$(basename "$0")" "$@" >>"$LOG"; echo >>"$LOG"
exit "${STATUS:-0}"
"""


class Checkout:
    """A copy of the files that the launcher uses, in a folder with a space in its name, and fake programs on PATH."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "my labs"
        self.programs = folder / "bin"
        self.log = folder / "log"
        self.home = folder / "home"
        for path in (self.root / "notebooks" / "data", self.programs, self.home):
            path.mkdir(parents=True)
        for name in ("lab", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.root)
        shutil.copytree(ROOT / "jupyter", self.root / "jupyter")
        (self.root / "notebooks" / "00_start_here.ipynb").write_text("shipped")
        (self.root / "notebooks" / "data" / "numbers.csv").write_text("1,2")
        self.fake("program", PROGRAM)
        self.fake("uv", UV)
        self.fake("uname", 'case "$1" in -m) echo "${MACHINE:-x86_64}" ;; *) echo "${SYSTEM:-Linux}" ;; esac')
        self.fake("id", 'echo "${USER_ID:-1000}"')

    def fake(self, name: str, text: str) -> None:
        path = self.programs / name
        path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def lab(
        self, *arguments: str, cwd: Path | None = None, **variables: str | None
    ) -> subprocess.CompletedProcess[str]:
        environment: dict[str, str | None] = {
            "PATH": f"{self.programs}:{self._system()}",
            "HOME": str(self.home),
            "LOG": str(self.log),
            "STAND_INS": str(self.programs),
            **variables,
        }
        return subprocess.run(
            [str(self.root / "lab"), *arguments],
            cwd=cwd or self.root,
            env={name: value for name, value in environment.items() if value is not None},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def _system(self) -> str:
        """A folder with the basic tools only: this machine's browser, uv and apt-get must not be found."""
        folder = self.programs.parent / "system"
        if not folder.exists():
            folder.mkdir()
            for name in "sh cat cksum sed cp mkdir rm find dirname basename df awk printf".split():
                (folder / name).symlink_to(shutil.which(name))
        return str(folder)

    def calls(self) -> list[list[str]]:
        """The arguments of every logged program, in order."""
        return [line.split("|")[:-1] for line in self.log.read_text().splitlines()] if self.log.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def program(run: subprocess.CompletedProcess[str]) -> Mapping[str, object]:
    """What the started stand-in said of itself."""
    name, folder, home, jupyter, *arguments = run.stdout.split("|")[:-1]
    return {"name": name, "folder": folder, "home": home, "jupyter": jupyter, "arguments": arguments}


def test_it_is_an_executable_posix_script() -> None:
    assert os.stat(ROOT / "lab").st_mode & stat.S_IXUSR
    assert os.stat(ROOT / ".ci" / "run").st_mode & stat.S_IXUSR
    subprocess.run(["sh", "-n", str(ROOT / "lab")], check=True)


def test_the_first_start_sets_up_copies_labs_and_opens_them(checkout: Checkout) -> None:
    run = checkout.lab("--no-browser")
    assert run.returncode == 0, run.stderr
    venv, install = checkout.calls()
    assert venv == ["venv", "--quiet", "--python", ">=3.11,<3.15", ".venv"]
    assert install == [
        "pip",
        "install",
        "--python",
        ".venv/bin/python",
        "--constraints",
        "constraints.txt",
        "--editable",
        WITHOUT_EXTRAS,
    ]
    assert "MB to download" in run.stderr
    assert (checkout.root / "work" / "00_start_here.ipynb").read_text() == "shipped"
    assert (checkout.root / "work" / "data" / "numbers.csv").exists()
    started = program(run)
    assert started["name"] == "jupyter-lab"
    assert f"--ServerApp.root_dir={checkout.root}/work" in started["arguments"]
    assert "--LabApp.default_url=/lab/tree/00_start_here.ipynb" in started["arguments"]
    assert started["arguments"][-1] == "--no-browser"
    assert "--allow-root" not in started["arguments"]


def test_jupyterlab_reads_quiet_defaults(checkout: Checkout) -> None:
    folder = Path(str(program(checkout.lab())["jupyter"]))
    settings = json.loads((folder / "labconfig" / "default_setting_overrides.json").read_text())
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"


def test_the_second_start_is_quick_and_changes_nothing(checkout: Checkout) -> None:
    checkout.lab()
    (checkout.root / "work" / "00_start_here.ipynb").write_text("mine")
    (checkout.root / "notebooks" / "01_new.ipynb").write_text("new")
    before = checkout.calls()
    started = time.perf_counter()
    run = checkout.lab()
    assert time.perf_counter() - started < 3
    assert checkout.calls() == before
    assert (checkout.root / "work" / "00_start_here.ipynb").read_text() == "mine"
    assert (checkout.root / "work" / "01_new.ipynb").read_text() == "new"
    assert "Setting up" not in run.stderr


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_requirements_are_installed(checkout: Checkout, name: str) -> None:
    checkout.lab()
    with (checkout.root / name).open("a") as file:
        file.write("# changed\n")
    checkout.lab()
    assert [call[0] for call in checkout.calls()] == ["venv", "pip", "pip"]


def test_tests_bring_their_own_packages_once_and_labs_need_no_more(checkout: Checkout) -> None:
    run = checkout.lab("test", "tests/ptx", "-k", "a or b")
    assert checkout.calls()[-1][-1] == (".[dev,cuda]" if HAS_GPU else ".[dev]")
    assert program(run)["arguments"][:2] == ["-m", "pytest"]
    assert program(run)["arguments"][-3:] == ["tests/ptx", "-k", "a or b"]
    assert "loadfile" in program(run)["arguments"]
    checkout.lab("test")
    checkout.lab()
    assert len(checkout.calls()) == 2


def test_the_exit_status_is_that_of_the_tests(checkout: Checkout) -> None:
    assert checkout.lab("test", PROGRAM_STATUS="1").returncode == 1


def test_run_is_the_command_line_in_the_callers_folder(checkout: Checkout, tmp_path: Path) -> None:
    run = checkout.lab("run", "profile", "my kernel.cu", cwd=tmp_path, PROGRAM_STATUS="2")
    assert run.returncode == 2
    assert program(run) == {
        "name": "gpulab",
        "folder": str(tmp_path),
        "home": str(checkout.home),
        "jupyter": "",
        "arguments": ["profile", "my kernel.cu"],
    }


@pytest.mark.parametrize("home", [None, "", "/does/not/exist"])
def test_it_works_without_a_home_folder(checkout: Checkout, home: str | None) -> None:
    used = Path(str(program(checkout.lab(HOME=home))["home"]))
    assert used.is_dir()
    assert checkout.root in used.parents


def test_root_may_start_jupyterlab(checkout: Checkout) -> None:
    assert "--allow-root" in program(checkout.lab(USER_ID="0"))["arguments"]


def test_a_set_up_that_fails_says_what_to_do_and_can_be_repeated(checkout: Checkout) -> None:
    run = checkout.lab(UV_FAILS_AT="pip")
    assert run.returncode == 1
    assert "uv: it went wrong" in run.stderr
    assert "network" in run.stderr
    assert "MB of free disk" in run.stderr
    assert checkout.lab().returncode == 0
    assert [call[0] for call in checkout.calls()] == ["venv", "pip", "pip"]


def test_a_missing_python_is_named(checkout: Checkout) -> None:
    checkout.fake("python3", "echo 3.9.2")
    run = checkout.lab(UV_FAILS_AT="venv")
    assert run.returncode == 1
    assert "No Python >=3.11,<3.15 was found" in run.stderr
    assert "3.9.2" in run.stderr


def test_macos_gets_one_clear_sentence(checkout: Checkout) -> None:
    run = checkout.lab(SYSTEM="Darwin")
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert "container" in run.stderr
    assert "Binder" in run.stderr
    assert not checkout.calls()


@pytest.mark.parametrize(
    ("system", "machine", "word"), [("MINGW64_NT", "x86_64", "Windows"), ("Linux", "riscv64", "riscv64")]
)
def test_other_platforms_are_told(checkout: Checkout, system: str, machine: str, word: str) -> None:
    run = checkout.lab(SYSTEM=system, MACHINE=machine)
    assert run.returncode == 1
    assert word in run.stderr


def bare_debian(checkout: Checkout) -> None:
    """No uv, and a Python with neither venv nor pip, as Debian has it."""
    (checkout.programs / "uv").unlink()
    checkout.fake("python3", "exit 1")
    for name in ("sudo", "apt-get"):
        checkout.fake(name, LOGGED)


def test_a_bare_python_is_not_repaired_without_being_root(checkout: Checkout) -> None:
    bare_debian(checkout)
    run = checkout.lab()
    assert run.returncode == 1
    assert "sudo apt-get install python3-venv" in run.stderr
    assert not checkout.calls()


def test_root_gets_the_venv_module_from_debian(checkout: Checkout) -> None:
    bare_debian(checkout)
    run = checkout.lab(USER_ID="0")
    assert run.returncode == 1  # the stand-in of python3 stays broken
    assert [call[:2] for call in checkout.calls()] == [["apt-get", "update"], ["apt-get", "install"]]
    assert checkout.calls()[1][-1] == "python3-venv"
    assert "network" in run.stderr


def test_uv_is_fetched_with_pip_where_there_is_no_venv(checkout: Checkout) -> None:
    (checkout.programs / "uv").rename(checkout.programs / "stored-uv")
    checkout.fake(
        "python3",
        'printf "%s|" "$@" >>"$LOG"; echo >>"$LOG"\n'
        '[ "$2" = pip ] || exit 1\n'
        '[ "$3" != install ] || { mkdir -p .tools/uv/bin; cp "$STAND_INS/stored-uv" .tools/uv/bin/uv; }',
    )
    run = checkout.lab()
    assert run.returncode == 0, run.stderr
    fetched = next(call for call in checkout.calls() if call[:3] == ["-m", "pip", "install"])
    assert fetched[-1].startswith("uv>=")
    assert program(run)["name"] == "jupyter-lab"


def test_a_moved_checkout_is_set_up_anew(checkout: Checkout) -> None:
    checkout.lab()
    moved = checkout.root.parent / "elsewhere"
    checkout.root.rename(moved)
    checkout.root = moved
    assert program(checkout.lab())["folder"] == str(moved)
    assert [call[0] for call in checkout.calls()] == ["venv", "pip", "venv", "pip"]


def test_an_environment_that_others_made_is_kept(checkout: Checkout) -> None:
    (checkout.root / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "jupyter-lab"):
        shutil.copy(checkout.programs / "program", checkout.root / ".venv" / "bin" / name)
    checkout.lab()
    assert [call[0] for call in checkout.calls()] == ["pip"]


def test_a_gpu_brings_cupy(checkout: Checkout) -> None:
    checkout.fake("nvidia-smi", "exit 0")
    run = checkout.lab()
    assert checkout.calls()[-1][-1] == ".[cuda]"
    assert "CuPy" in run.stderr


@pytest.mark.parametrize(("user", "asked"), [("1000", False), ("0", True)])
def test_only_root_gets_a_browser_for_the_tests(checkout: Checkout, user: str, asked: bool) -> None:
    for name in ("sudo", "apt-get"):
        checkout.fake(name, LOGGED)
    assert checkout.lab("test", USER_ID=user, STATUS="100").returncode == 0  # the tests run in any case
    names = [call[0] for call in checkout.calls()]
    assert ("apt-get" in names) == asked
    assert "sudo" not in names


def test_help_and_mistyped_commands(checkout: Checkout) -> None:
    assert "./lab test" in checkout.lab("--help").stdout
    run = checkout.lab("tset")
    assert run.returncode == 1
    assert "'tset'" in run.stderr
    assert not checkout.calls()


def test_ci_runs_what_people_run() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in lines if line and not line.startswith("#")][-1] == "exec ./lab test"
