"""Run notebooks and write them back as the tests want them: ``python tools/refresh_notebooks.py [NOTEBOOK …]``.

Edit a notebook in JupyterLab, then run this. It executes all cells in a fresh kernel and writes canonical JSON: stable
cell ids, no widget state, no times, no metadata that differs between machines, so that a difference in git is a
difference in the notebook. Without arguments all of notebooks/ is refreshed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
CELL_TIME_LIMIT_S = 60
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def canonical(notebook: nbformat.NotebookNode) -> str:
    """The notebook as the one text that is committed for it."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"{cell.cell_type}-{number:02}"
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        cell.source = cell.source.strip("\n")
    return nbformat.writes(notebook) + "\n"


def refresh(path: Path) -> None:
    """Execute one notebook in its own folder and write it back."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIME_LIMIT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,
    )
    client.execute()
    path.write_text(canonical(notebook), encoding="utf-8")


def main(arguments: list[str]) -> None:
    os.environ["GPULAB_GPU"] = "A100"  # the same outputs on a machine that has a GPU
    for path in map(Path, arguments or sorted(map(str, FOLDER.glob("*.ipynb")))):
        refresh(path)
        sys.stdout.write(f"refreshed {path.name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
