"""The house rules that a newcomer relies on, read from the source: who imports whom, sizes, where printing happens."""

from __future__ import annotations

import ast
import functools
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpulab

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gpulab"
MODULES = sorted(PACKAGE.rglob("*.py"))

# From the ground up. A module imports from its own layer or from lower ones, lazily or not.
LAYERS = (
    {"errors", "units", "callable_package"},
    {"launch", "counters", "trace", "ptx", "sass", "gpus"},
    {"models"},
    {"emulator", "toolchain", "plots"},
    {"launchables", "devices", "kernels", "cuda"},
    {"profiler", "profiling"},
    {"panels", "labs", "doctor"},
    {"cli", "__main__"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

# Third-party packages that only some parts may know, so that each can be exchanged, and none makes an import slow.
HOMES = {
    "llvmlite": {"emulator"},
    "numba": {"toolchain", "devices", "kernels", "cuda"},
    "numba_cuda": {"toolchain", "devices", "kernels", "cuda"},
    "cuda": {"toolchain", "devices", "kernels", "cuda"},
    "cupy": {"devices"},
    "cupyx": {"devices"},
    "matplotlib": {"plots"},
    "ipywidgets": {"panels"},
    "anywidget": {"panels"},
    "IPython": {"panels"},
}


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def part(path: Path) -> str:
    """The part of the package that a file belongs to: the first name below ``gpulab``."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[str]:
    """Full names of the modules that a file imports, and ``gpulab.x`` for each use of that attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where a thing comes from"
            yield from (
                [f"gpulab.{alias.name}" for alias in node.names] if node.module == "gpulab" else [node.module or ""]
            )
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gpulab":
            yield f"gpulab.{node.attr}"


def target(name: str) -> str | None:
    """The part that an imported ``gpulab.…`` name comes from; None for the package's own facts and other packages."""
    if not name.startswith("gpulab."):
        return None
    first = name.split(".")[1]
    home = gpulab._HOME_OF.get(first)
    return (home.split(".")[1] if home else first) if not first.startswith("__version") else None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_downwards(path: Path) -> None:
    if path == PACKAGE / "__init__.py":
        return  # the lazy exports name every layer
    mine = part(path)
    assert mine in LEVEL, f"gpulab/{mine} is new: give it a layer in this test"
    names = set(map(target, imported(parsed(path)))) - {None}
    upwards = sorted(name for name in names if LEVEL[name] > LEVEL[mine])
    assert not upwards, f"gpulab/{mine} is below {', '.join(upwards)} and must not import from there"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_third_party_packages_stay_in_their_homes(path: Path) -> None:
    names = {name.split(".")[0] for name in imported(parsed(path))}
    strangers = sorted(name for name in names if name in HOMES and part(path) not in HOMES[name])
    assert not strangers


def test_cupy_is_imported_inside_functions_of_the_cuda_device_only() -> None:
    for path in MODULES:
        tree = parsed(path)
        if not {"cupy", "cupyx"} & {name.split(".")[0] for name in imported(tree)}:
            continue
        assert path.name.startswith("cuda"), path
        at_top = {
            name for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) for name in imported(node)
        }
        assert not {"cupy", "cupyx"} & {name.split(".")[0] for name in at_top}, path


def run_python(code: str, *arguments: str) -> str:
    """What a new interpreter prints."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def test_importing_the_package_is_cheap() -> None:
    # NVIDIA's wheels install start-up hooks, so that some names are there before anything is imported.
    code = "import sys; before = set(sys.modules); import gpulab; print(set(sys.argv[1:]) & set(sys.modules) - before)"
    assert run_python(code, *HOMES) == "set()"


@pytest.mark.parametrize("name", gpulab.__all__)
def test_every_export_is_there(name: str) -> None:
    assert getattr(gpulab, name) is not None


@pytest.mark.parametrize("name", ["gpus", "kernels"])
def test_a_package_does_not_hide_the_function_of_its_name(name: str) -> None:
    assert (
        run_python(f"from gpulab.{name} import __name__ as _; import gpulab; print(len(gpulab.{name}()) > 0)") == "True"
    )


def test_modules_are_small() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert not {path.relative_to(ROOT).as_posix(): length for path, length in lengths.items() if length > 400}
    assert statistics.median(lengths.values()) < 250


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    tree = parsed(path)
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def body_lines(function: ast.FunctionDef) -> int:
    """Lines of code: without the signature and the docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_functions_are_short() -> None:
    lengths = sorted(body_lines(function) for path in MODULES for function in functions(path))
    assert statistics.median(lengths) <= 10
    assert lengths[len(lengths) * 9 // 10] < 40


def public_definitions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """Functions, classes and their methods that a reader meets by name; a method of one line is its own explanation."""
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    methods = (item for cls in classes for item in cls.body if isinstance(item, ast.FunctionDef) and len(item.body) > 1)
    for node in (*tree.body, *methods):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node


def speaks_for_itself(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Rows of a table (registered by a decorator) and members of a protocol are explained where the table is."""
    plain = {"property", "cached_property", "staticmethod", "classmethod", "contextmanager", "cache", "dataclass"}
    decorators = {ast.unparse(decorator).split("(")[0].split(".")[-1] for decorator in node.decorator_list}
    is_stub = [ast.unparse(item) for item in node.body] == ["..."]
    return is_stub or bool(decorators - plain)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_public_names_have_docstrings(path: Path) -> None:
    tree = parsed(path)
    assert ast.get_docstring(tree), "the module itself"
    nodes = [node for node in public_definitions(tree) if not speaks_for_itself(node)]
    assert not [f"{node.name} (line {node.lineno})" for node in nodes if not ast.get_docstring(node)]


def test_only_the_command_line_prints() -> None:
    for path in MODULES:
        if part(path) in ("cli", "__main__"):
            continue
        calls = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call))
        lines = [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
        assert not lines, f"{path}: print in line {lines}"


def test_nothing_is_left_unfinished() -> None:
    mark = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|NotImplemented" + r"Error)\b")
    found = [path for path in (*MODULES, ROOT / "lab") if mark.search(path.read_text(encoding="utf-8"))]
    assert not found


def test_no_exception_is_swallowed() -> None:
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ExceptHandler) and all(isinstance(item, ast.Pass) for item in node.body):
                pytest.fail(f"{path}:{node.lineno} drops an exception without a word")
