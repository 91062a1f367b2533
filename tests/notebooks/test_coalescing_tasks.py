"""The tasks of 03_coalescing: right answers are accepted, usual wrong ones are not, and the counter-example holds."""

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path

import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "03_coalescing.ipynb"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A function that runs the lab's code with some lines exchanged; gives what it prints and its variables."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    source = "\n\n".join(cell.source for cell in cells if cell.cell_type == "code")
    folder = tmp_path_factory.mktemp("lab")

    def run(**lines):
        code = source
        for name, (before, after) in lines.items():
            assert code.count(before) == 1, name
            code = code.replace(before, after)
        path = folder / "lab.py"
        path.write_text(code, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            variables = runpy.run_path(str(path))
        return printed.getvalue().splitlines(), variables

    return run


def verdicts(lines):
    """The last words of the lines that judge a task."""
    return [line.rsplit(". ", 1)[1] for line in lines if line.endswith(("found", "not yet", "coalesced"))]


def test_right_answers_are_accepted(lab):
    lines, variables = lab(
        stride=("my_stride = 2", "my_stride = 8"),
        offset=("my_offset = 1", "my_offset = 24"),
        kernel=("def add(a, b, c):\n    row, column", "def add(a, b, c):\n    column, row"),
    )
    assert verdicts(lines) == ["found", "found", "coalesced"]
    assert "right: True" in lines
    times = variables["times"]
    # The counter-example: eight times the sectors, and the modeled times can't be told apart.
    slow, fast = (variables["profiles"][name].metrics[variables["LOAD_SECTORS"]] for name in ("stride 32", "stride 1"))
    assert slow == 8 * fast
    assert times["stride 32"].low <= times["stride 1"].high


def test_usual_wrong_answers_are_not(lab):
    lines, _ = lab(
        stride=("my_stride = 2", "my_stride = 32"),  # as bad, but not the smallest
        offset=("my_offset = 1", "my_offset = 4"),
        kernel=("if row < c.shape[0] and column < c.shape[1]:", "if row < 128 and column < c.shape[1]:"),
    )
    assert verdicts(lines) == ["not yet"] * 3
    assert "right: False" in lines
