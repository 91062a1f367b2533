"""Which GPU launches go to: the argument, the environment, what is there."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import gpulab
from gpulab.errors import ArgumentError, DeviceError

# By its full name: the package has the function `current` under the same one.
module = importlib.import_module("gpulab.devices.current")


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_current", None)
    monkeypatch.setattr(module, "why_no_cuda", lambda: "this machine has none.")
    monkeypatch.delenv("GPULAB_GPU", raising=False)


def test_the_default_without_a_gpu_is_an_emulated_a100() -> None:
    assert (gpulab.current().kind, gpulab.current().gpu.name) == ("emulated", "A100")
    assert gpulab.use() is gpulab.current()


def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULAB_GPU", "rtx-4090")
    assert gpulab.current().gpu.name == "RTX 4090"
    assert gpulab.use("H100").gpu.name == "H100"
    assert gpulab.current().gpu.name == "H100"
    assert gpulab.use().gpu.name == "RTX 4090"


def test_a_gpu_of_ones_own_goes_wherever_a_name_goes() -> None:
    mine = gpulab.gpu("T4").replace(sm_count=10, name="half a T4")
    assert gpulab.use(mine).gpu == mine
    assert gpulab.use(gpulab.current()).gpu == mine


def test_a_wrong_name_is_refused_and_changes_nothing() -> None:
    gpulab.use("T4")
    with pytest.raises(ArgumentError, match="H10"):
        gpulab.use("H10")
    assert gpulab.current().gpu.name == "T4"


def test_a_missing_cuda_gpu_says_why() -> None:
    with pytest.raises(DeviceError, match="needs a CUDA GPU that can be used here, but this machine has none"):
        gpulab.use("cuda")


def test_the_time_limit_is_settable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gpulab.use("T4", time_limit_s=3).time_limit_s == 3  # type: ignore[attr-defined]
    with pytest.raises(DeviceError, match="must be above 0"):
        gpulab.use("T4", time_limit_s=0)
    monkeypatch.setenv("GPULAB_TIME_LIMIT_S", "2.5")
    assert gpulab.use(gpulab.gpu("T4").replace(name="fresh")).time_limit_s == 2.5  # type: ignore[attr-defined]
    for wrong in ("soon", "0", "-1", "nan"):
        monkeypatch.setenv("GPULAB_TIME_LIMIT_S", wrong)
        with pytest.raises(DeviceError, match=f"must be a number of seconds above 0, but '{wrong}' is set"):
            gpulab.use(gpulab.gpu("T4").replace(name="fresher"))


def test_a_file_can_describe_the_gpu(tmp_path: Path) -> None:
    text = next((Path(gpulab.__file__).parent / "gpus" / "data").glob("t4.toml")).read_text()
    (tmp_path / "mine.toml").write_text(text.replace('"T4"', '"Mine"', 1))
    assert gpulab.use(tmp_path / "mine.toml").gpu.name == "Mine"
