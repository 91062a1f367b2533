"""What a reader sees of an error in a notebook."""

from __future__ import annotations

import re

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

import gpulab

KERNEL = 'extern "C" __global__ void write(float *y) { y[threadIdx.x] = 1; }'


@pytest.fixture
def shell() -> InteractiveShell:
    gpulab.use("A100")
    made = InteractiveShell()
    made.user_ns.update(gpulab=gpulab, kernel=gpulab.RawKernel(KERNEL, "write"), y=np.zeros(4, np.float32))
    return made


@pytest.mark.parametrize(
    ("cell", "line", "message"),
    [
        ("block = 8\nkernel[1, block](y)", "kernel[1, block](y)", "KernelFault: out-of-bounds in kernel write"),
        ("kernel[1, 4](y.astype(float))", "kernel[1, 4](y.astype(float))", "ArgumentError: "),
        ("kernel[1, 2048](y)", "kernel[1, 2048](y)", "LaunchError: A block may have at most 1,024 threads"),
        ("gpulab.gpu('H10O')", "gpulab.gpu('H10O')", "H100"),
    ],
)
def test_a_cell_shows_its_own_line_and_the_message(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str], cell: str, line: str, message: str
) -> None:
    result = shell.run_cell(cell)
    assert isinstance(result.error_in_exec, gpulab.GpulabError)
    shown = capsys.readouterr().out
    assert line in shown
    assert message in shown
    assert "site-packages" not in shown
    assert not re.search(r"gpulab/\w+.*\.py", shown)


def test_lines_between_the_cell_and_the_launch_are_shown(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("def run(threads):\n    kernel[1, threads](y)\nrun(8)")
    shown = capsys.readouterr().out
    assert shown.index("line 3: run(8)") < shown.index("line 2: kernel[1, threads](y)")


def test_an_error_that_is_not_the_readers_keeps_its_traceback(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("1 / 0")
    assert "ZeroDivisionError" in capsys.readouterr().out
