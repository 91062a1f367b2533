"""What README.md shows is what happens."""

from __future__ import annotations

import importlib.util
import re
import struct
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def refresh_module():
    """The tool that makes the outputs, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("refresh_readme", ROOT / "tools" / "refresh_readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_output_is_real() -> None:
    tool = refresh_module()
    assert tool.examples(README) == 2
    assert tool.refreshed(README) == README, "run tools/refresh_readme.py"


def test_the_picture_is_there() -> None:
    data = (ROOT / "docs" / "matmul.png").read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert data.startswith(b"\x89PNG")
    assert width > 600
    assert height > 300


def test_links_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", _prose(name)):
            assert (ROOT / target).exists(), f"{name} links to {target}"


def _prose(name: str) -> str:
    """A page without its code."""
    return re.sub(r"```.*?```|`[^`]*`", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_gpus_are_those_of_the_catalog() -> None:
    import gpulab

    assert ", ".join(gpulab.gpus()) in " ".join(README.split())
