"""Every command as a person and as a program uses it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpulab
from gpulab import doctor
from gpulab.cli import main
from gpulab.doctor import Check, Report

ROOT = Path(__file__).parents[2]
SCALE = """#include <cstdio>
extern "C" __global__ void scale(const float *x, float *y, float a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 7) printf("seven\\n");
    y[i] = a * x[i];
}
"""
ARRAYS = ("--arg", "in:float32:512:random", "--arg", "out:float32:512", "--arg", "float32=2")
LAUNCH = ("--grid", "2", "--block", "256", *ARRAYS)


@pytest.fixture
def scale(tmp_path: Path) -> str:
    path = tmp_path / "scale.cu"
    path.write_text(SCALE)
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Run a command in this process: exit code, stdout, stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def run_json(run):
    """Run a command with ``--json`` and read its document."""

    def call(*arguments: str):
        code, out, err = run(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return call


def test_gpus(run, run_json) -> None:
    documents = run_json("gpus")
    assert [entry["name"] for entry in documents] == gpulab.gpus()
    a100 = next(entry for entry in documents if entry["name"] == "A100")
    assert (a100["compute_capability"], a100["sm_count"]) == ([8, 0], 108)
    assert a100["sources"]["sm_count"]
    lines = run("gpus")[1].splitlines()
    assert len(lines) == len(documents) + 4
    assert max(map(len, lines)) <= 100
    assert "1,555 GB/s" in next(line for line in lines if line.startswith("A100 "))


def test_gpus_as_programs_read_them(run_json) -> None:
    kinds = {"name": str, "compute_capability": list, "sm_count": int, "clock_hz": (int, float), "l2_bytes": int}
    for entry in run_json("gpus"):
        assert all(isinstance(entry[name], kind) for name, kind in kinds.items())
        assert len(entry["compute_capability"]) == 2
        numbers = {name: entry[name] for name in entry if name not in ("name", "aliases", "sources")}
        assert {name for name, value in numbers.items() if value is not None} - {"compute_capability"} == set(
            entry["sources"]
        )


def test_all_values_of_some_gpus(run, run_json, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('based_on = "T4"\nsm_count = 20\n')
    assert [(entry["name"], entry["sm_count"]) for entry in run_json("gpus", "b200", str(mine))] == [
        ("B200", 148),
        ("mine", 20),
    ]
    text = run("gpus", "b200", str(mine))[1]
    assert "B200, compute capability 10.0\nalso called " in text
    assert "(doubtful: the data sheet says 8000)" in text
    assert re.search(r"sm_count +20  the file mine.toml", text)
    code, _, err = run("gpus", "B20")
    assert (code, "Did you mean 'B200'" in err) == (2, True)


def test_a_gpu_of_ones_own(run_json, run, scale: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('based_on = "H100"\nname = "my H100"\nclock_hz = 1.5e9\n')
    document = run_json("profile", scale, *LAUNCH, "--gpu", str(mine))
    assert (document["gpu"], document["clock_hz"]) == ("my H100", 1.5e9)
    mine.write_text('based_on = "H100"\nclock = 1.5e9\n')
    code, _, err = run("profile", scale, *LAUNCH, "--gpu", str(mine))
    assert (code, "Did you mean 'clock_hz'" in err) == (2, True)


def test_kernels(run, run_json) -> None:
    transpose = next(entry for entry in run_json("kernels") if entry["name"] == "transpose")
    assert set(transpose) >= {"name", "technique", "rungs", "parameters"}
    assert all(set(rung) >= {"name", "languages", "claim"} for rung in transpose["rungs"])
    assert all(
        "default" in entry and ("values" in entry or "range" in entry) for entry in transpose["parameters"].values()
    )
    assert "naive -> tiled -> padded" in run("kernels")[1]


def test_compare(run, run_json) -> None:
    document = run_json("compare", "transpose", "--gpu", "rtx 4090", "--set", "n=64", "--language", "cuda")
    assert set(document) == {"ladder", "gpu", "clock_hz", "parameters", "rungs"}
    assert (document["ladder"], document["gpu"], document["parameters"]["n"]) == ("transpose", "RTX 4090", 64)
    for rung in document["rungs"]:
        assert set(rung) >= {
            "name", "language", "correct", "max_error", "grid", "block", "registers_per_thread", "occupancy", "time", "metrics",
        }  # fmt: skip
        assert set(rung["time"]) == {"seconds", "low", "high", "source", "bound_by", "terms"}
        assert (rung["language"], rung["correct"], rung["time"]["source"]) == ("cuda", True, "modeled")
    # 64 rows of 64 floats written column by column: each warp's store touches 32 sectors.
    naive = document["rungs"][0]["metrics"]
    assert naive["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == 64 * 64
    text = run("compare", "transpose", "--gpu", "rtx 4090", "--set", "n=64", "--language", "cuda")[1]
    assert text.startswith("transpose on RTX 4090")
    assert max(map(len, text.splitlines())) <= 100


def test_the_text_is_the_same_every_time(run) -> None:
    arguments = ("compare", "transpose", "--set", "n=32")
    assert run(*arguments)[1] == run(*arguments)[1]


def test_profile_of_a_cuda_file(run, run_json, scale: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept.npz"
    document = run_json("profile", scale, *LAUNCH, "--gpu", "H100", "--save", str(kept))
    assert (document["name"], document["language"], document["gpu"]) == ("scale", "cuda", "H100")
    assert (document["grid"], document["block"]) == ([2, 1, 1], [256, 1, 1])
    assert document["metrics"]["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 512 // 32
    assert {"lines", "findings"} <= set(document)
    loading = next(line for line in document["lines"] if line["line"] == 5)
    assert loading["metrics"]["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 512 * 4 // 32
    with np.load(kept) as arrays:
        np.testing.assert_array_equal(arrays["arg1"], 2 * arrays["arg0"])
    text = run("profile", scale, *LAUNCH, "--gpu", "H100")[1]
    assert "scale on H100" in text
    assert "scale.cu:5" in text
    assert max(map(len, text.splitlines())) <= 100


def test_shared_bytes_and_shapes_reach_the_launch(run_json, tmp_path: Path) -> None:
    path = tmp_path / "flip.py"
    path.write_text(
        "from numba import cuda\n"
        "@cuda.jit\n"
        "def flip(x):\n"
        "    s = cuda.shared.array(0, 'float64')\n"
        "    i, j = cuda.grid(2)\n"
        "    s[cuda.threadIdx.x] = x[j, i]\n"
        "    x[j, i] = -s[cuda.threadIdx.x]\n"
    )
    document = run_json(
        "profile", str(path), "--grid", "1x4", "--block", "32,1", "--shared-bytes", "256", "--arg", "inout:float64:4x32:ones",
        "--save", str(tmp_path / "x.npz"),
    )  # fmt: skip
    assert (document["grid"], document["block"]) == ([1, 4, 1], [32, 1, 1])
    assert document["metrics"]["launch__shared_mem_per_block_dynamic"] == 256
    with np.load(tmp_path / "x.npz") as arrays:
        np.testing.assert_array_equal(arrays["arg0"], -np.ones((4, 32)))


def test_stdout_holds_one_document_and_nothing_else(scale: str) -> None:
    command = [sys.executable, "-m", "gpulab", "profile", scale, *LAUNCH, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert json.loads(done.stdout)["name"] == "scale"
    assert done.stderr == "seven\n"


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("compare", "transposed"), "Did you mean 'transpose'?"),
        (("compare", "transpose", "--gpu", "A10O"), "A100"),
        (("compare", "transpose", "--set", "n=0"), "n"),
        (("compare", "transpose", "--set", "n"), "NAME=VALUE"),
        (("profile", "missing.cu", "--grid", "1", "--block", "32"), "missing.cu"),
        (("profile", "missing.cu", "--grid", "1", "--block", "big"), "16x16"),
    ],
)
def test_a_users_error_goes_to_stderr_and_exits_2(run, arguments: tuple[str, ...], hint: str) -> None:
    for form in ((), ("--json",)):
        code, out, err = run(*arguments, *form)
        assert (code, out) == (2, "")
        assert err.startswith("gpulab: ")
        assert hint in err


def test_a_kernels_fault_is_an_error_with_its_line(run, scale: str) -> None:
    code, out, err = run("profile", scale, "--grid", "3", *LAUNCH[2:], "--json")
    assert (code, out) == (2, "")
    assert "scale.cu" in err
    assert "5" in err


def test_arrays_that_no_memory_holds_are_an_error(run, scale: str) -> None:
    code, out, err = run(
        "profile", scale, "--grid", "1", "--block", "1", "--arg", "in:float32:" + "x".join(["100000"] * 3)
    )
    assert (code, out) == (2, "")
    assert "memory" in err


@pytest.mark.parametrize("arguments", [(), ("transpose",), ("compare",), ("profile", "x.cu")])
def test_a_wrong_command_line_exits_2(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert capsys.readouterr().out == ""


def test_doctor_exits_with_1_where_something_must_be_repaired(run, monkeypatch: pytest.MonkeyPatch) -> None:
    for status, code in (("ok", 0), ("absent", 0), ("broken", 1)):
        monkeypatch.setattr(doctor, "examine", lambda status=status: Report("Well.", None, (Check("x", status, "y"),)))
        assert run("doctor")[0] == code
        assert json.loads(run("doctor", "--json")[1])["summary"] == "Well."


def test_ctrl_c_ends_a_command_without_a_traceback(run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "examine", interrupted)
    assert run("doctor", "--json") == (130, "", "gpulab: interrupted.\n")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"gpulab {gpulab.__version__}\n"


@pytest.mark.skipif(os.name == "nt", reason="pipes close differently on Windows")
def test_a_reader_that_leaves_early_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "gpulab", "gpus"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")
