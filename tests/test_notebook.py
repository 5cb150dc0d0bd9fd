"""The researcher's notebook is its page, cell by cell, and each cell prints what is saved below it."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "tutorial-research.ipynb"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("notebook_page", ROOT / "scripts" / "notebook_page.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_notebook_is_made_from_the_page(script):
    page = (ROOT / "docs" / "tutorial-research.md").read_text(encoding="utf-8")
    assert NOTEBOOK.read_text(encoding="utf-8") == script.notebook(page), "run python scripts/notebook_page.py"
    assert "(tutorial-research.ipynb)" in page


def test_the_notebook_has_the_form_that_jupyter_reads():
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    kinds = [cell["cell_type"] for cell in found["cells"]]
    assert kinds[0] == "markdown" and kinds.count("code") >= 8
    assert len({cell["id"] for cell in found["cells"]}) == len(kinds)
    for cell in found["cells"]:
        more = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert {*cell} == {"id", "cell_type", "metadata", "source", *more}


def test_a_block_without_a_place_in_a_notebook_is_refused(script):
    with pytest.raises(ValueError, match="this block of toml"):
        script.cells("# Title\n\n```toml\nrate = 1\n```\n")


def test_every_cell_runs_and_prints_what_is_saved(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    compared = 0
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            code = "".join(cell["source"])
            last = ast.parse(code).body[-1]  # a notebook would show the value of a last expression
            assert not isinstance(last, ast.Expr) or ast.unparse(last).startswith("print("), cell["id"]
            exec(compile(code, cell["id"], "exec"), names)
            saved = "".join(line for output in cell["outputs"] for line in output["text"])
            assert capsys.readouterr().out.rstrip("\n") == saved.rstrip("\n"), cell["id"]
            compared += bool(saved)
    assert compared >= 7 and Path("table.csv").exists() and list(Path("figures").glob("*.svg"))
