"""Run the examples of README.md, put what they print where it stands, and draw the picture anew.

    .venv/bin/python tools/refresh_readme.py

In README.md a ``console`` block starts with the command, and a ``python`` block is followed by a ``text`` block with what it
prints. A test runs the same and compares, so that no output in README.md is ever made up.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "matmul.png"
_CONSOLE = re.compile(r"(```console\n\$ \./lab run ([^\n]*)\n)(.*?)(```)", re.DOTALL)
_PYTHON = re.compile(r"(```python\n(.*?)```\n\n```text\n)(.*?)(```)", re.DOTALL)


def refreshed(text: str) -> str:
    """The text with every example's output as it is now."""
    text = _CONSOLE.sub(lambda match: match[1] + _output(lambda: _run_command(match[2])) + match[4], text)
    return _PYTHON.sub(lambda match: match[1] + _output(lambda: _run_python(match[2])) + match[4], text)


def examples(text: str) -> int:
    """How many examples the text has."""
    return len(_CONSOLE.findall(text)) + len(_PYTHON.findall(text))


def draw(path: Path) -> None:
    """A roofline as a PNG."""
    import gpulab
    from gpulab.plots import plot_roofline
    from gpulab.plots.figure import png

    axes = plot_roofline(gpulab.compare("matmul", gpu="A100", tile=32).roofline())
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(png(axes.figure))


def _output(action: Callable[[], None]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        action()
    return printed.getvalue()


def _run_command(arguments: str) -> None:
    from gpulab.cli import main

    if main(shlex.split(arguments)) != 0:
        raise SystemExit(f"./lab run {arguments} failed")


def _run_python(code: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scale.py")
        path.write_text(code, encoding="utf-8")
        runpy.run_path(str(path))


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
    draw(PICTURE)
