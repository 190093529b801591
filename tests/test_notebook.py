"""The notebook in docs/ runs from top to bottom, and is stored without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "docs" / "measure.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
    """The notebook after running it in an empty folder; a cell that fails raises."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    assert (folder / "measure.png").stat().st_size > 10_000
    return notebook


def test_it_is_stored_without_outputs() -> None:
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert len(code) >= 4
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_it_runs_and_shows_collapse(executed: nbformat.NotebookNode) -> None:
    outputs = [output for cell in executed.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type in ("error", "stream")]
    tables = [output.data["text/plain"] for output in outputs if "text/html" in output.get("data", {})]
    assert ["pcmd" in table for table in tables] == [True, True]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
