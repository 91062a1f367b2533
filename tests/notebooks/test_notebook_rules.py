"""Rules that every committed notebook keeps, so that strict output comparison and every viewer can live with it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SHORTEST_DESCRIPTION = 40  # characters; below, a picture's text form is a mere label


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def refresh_module():
    tool = FOLDER.parent / "tools" / "refresh_notebooks.py"
    spec = importlib.util.spec_from_file_location("refresh_notebooks", tool)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} >= {"00_start_here", "03_coalescing"}


def test_it_is_valid_and_in_canonical_form(path, notebook):
    nbformat.validate(notebook)
    assert path.read_text(encoding="utf-8") == refresh_module().canonical(notebook), "run tools/refresh_notebooks.py"


def test_all_cells_were_executed_in_order(notebook):
    assert [cell.execution_count for cell in code_cells(notebook)] == list(range(1, len(code_cells(notebook)) + 1))


def test_no_cell_ends_in_a_semicolon(notebook):
    # The test runner keeps no history, in which case IPython ignores the semicolon and shows the value after all.
    assert [cell.source for cell in code_cells(notebook) if cell.source.rstrip().endswith(";")] == []


def test_it_starts_with_the_same_gpu_for_everyone(notebook):
    assert 'gpulab.use("A100")' in code_cells(notebook)[0].source


def test_nothing_of_this_machine_is_in_it(path):
    found = re.findall(r"/(?:home|root|tmp|work|Users|usr|var)/[^\"\s]*|ipykernel_\d+|0x[0-9a-f]{8,}", path.read_text())
    assert found == []


def test_no_output_is_an_error_or_a_warning(notebook):
    assert [output for output in outputs(notebook) if output.output_type == "error"] == []
    assert [output for output in outputs(notebook) if output.get("name") == "stderr"] == []


def test_every_picture_has_a_text_form(notebook):
    for output in outputs(notebook):
        page = "".join(output.get("data", {}).get("text/html", ""))
        for tag in re.findall(r"<img [^>]*>", page):
            alternative = re.search(r'alt="([^"]*)"', tag)
            assert alternative is not None
            assert len(alternative[1]) >= SHORTEST_DESCRIPTION
        if "<img" in page or "image/png" in output.get("data", {}):
            assert len(output.data["text/plain"]) >= SHORTEST_DESCRIPTION


def test_committed_images_have_alternative_texts(notebook):
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert [image for text in prose for image in re.findall(r"!\[\s*\]\([^)]*\)", text)] == []


def test_links_to_other_notebooks_lead_somewhere(notebook):
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", prose) if "://" not in target]
    assert [target for target in targets if not (FOLDER / target).exists()] == []


def test_a_live_panel_keeps_no_state_in_the_file(notebook):
    assert "widgets" not in notebook.metadata
    live = [
        output.data
        for output in outputs(notebook)
        if "application/vnd.jupyter.widget-view+json" in output.get("data", {})
    ]
    assert all("picture: run the cell to make it live" in "".join(data["text/html"]) for data in live)
