"""Texts of errors, read from the source: no riddles, no names of Python's exceptions, no words of our own, no cells.

Most messages stand in ``stirred.errors``. One that is raised once and says one thing may stand where it is raised; it
then shows nothing but names, constants and counts, and in modules that hold tables nothing but counts and what bears
one of the names for tables, columns, files and numbers of rows.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import stirred.errors

FOLDER = Path(stirred.errors.__file__).parent
MODULES = sorted(path.name for path in FOLDER.glob("*.py") if path.name not in ("__init__.py", "kinds.py"))
RIDDLES = (
    r"^Correct the (question|points|block|definition)\.$", r"^Correct what is (said|asked)", r"^Please ",
    r"^Nothing is asked", r"\b\w+(Error|Exception)\b", r"\bNoneType\b", r"\blattice\b", r"\bbetray",
    r"\bmade (files|inputs)\b", r"\btold by\b", r"\be\.g\.", r"\bi\.e\.", r"\bvia\b", r"\s{2,}", r" [,;]| \.(?!\.)",
)  # fmt: skip


KINDS = {
    name
    for name, kind in vars(stirred.errors).items()
    if isinstance(kind, type) and issubclass(kind, stirred.errors.StirredError)
}
HOLD_CELLS = {"polars", "pyarrow", "pandas", "pyreadstat"}
NEVER_CELLS = {
    "columns", "column", "file", "kind", "most", "name", "names", "path", "position", "records", "rows", "selected",
    "table", "unit", "what", "where",
}  # fmt: skip
"""What modules that hold tables call nothing that was read from a cell."""


def raised_in_place() -> list[tuple[Path, ast.Call]]:
    """Messages that stand where they are raised."""
    found = []
    for path in sorted(set(FOLDER.parent.rglob("*.py")) - set(FOLDER.glob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in KINDS:
                found.append((path, node))
    return found


IN_PLACE = [pytest.param(path, call, id=f"{path.stem}-{call.lineno}") for path, call in raised_in_place()]


def holds_cells(path: Path) -> bool:
    """Whether a module meets tables: it imports a library for them, for its own use or for type checkers."""
    imports = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Import)]
    return not HOLD_CELLS.isdisjoint(one.name.split(".")[0] for node in imports for one in node.names)


def may_be_shown(shown: ast.expr, cells_near: bool) -> bool:
    """Whether something in the braces of a message is seen to be no cell."""
    if isinstance(shown, ast.BinOp):
        return may_be_shown(shown.left, cells_near) and may_be_shown(shown.right, cells_near)
    if isinstance(shown, ast.Call) and getattr(shown.func, "id", "") == "len":
        return True
    if isinstance(shown, ast.Call):
        function = shown.func.value if isinstance(shown.func, ast.Attribute) else shown.func
        of_ours = isinstance(function, ast.Name) and (function is shown.func or function.id == "errors")
        return of_ours and not shown.keywords and all(may_be_shown(one, cells_near) for one in shown.args)
    if isinstance(shown, ast.Constant) or (isinstance(shown, ast.Name) and shown.id.isupper()):
        return True
    called = getattr(shown, "id", getattr(shown, "attr", ""))
    return isinstance(shown, ast.Name | ast.Attribute) and (not cells_near or called in NEVER_CELLS)


def texts(module: str) -> list[str]:
    """Every text of an error in a module: constants with spaces, templates with their fields left out."""
    tree = ast.parse((FOLDER / module).read_text(encoding="utf-8"))
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef)
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    }
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (documented | inside):
            found.append(node.value)
    return [text for text in found if " " in text.strip()]


def test_there_are_texts():
    assert sum(len(texts(module)) for module in MODULES) > 400


@pytest.mark.parametrize("module", MODULES)
def test_no_text_of_an_error_is_a_riddle(module):
    for text in texts(module):
        assert not [words for words in RIDDLES if re.search(words, text)], text


@pytest.mark.parametrize("module", MODULES)
def test_every_remedy_ends_with_a_full_stop_or_a_command(module):
    """The last text of each error is a sentence, or a command to type."""
    tree = ast.parse((FOLDER / module).read_text(encoding="utf-8"))
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", "")
        if not (name.endswith("Error") or name == "StoppedByCheck") or len(call.args) < 3:
            continue
        last = call.args[2]
        if isinstance(last, ast.Constant):
            assert last.value.endswith(".") or re.search(r": \S.*$", last.value), last.value


@pytest.mark.parametrize(("path", "call"), IN_PLACE)
def test_a_message_where_it_is_raised_shows_no_cell_and_is_written_like_the_others(path, call):
    kind, *said = call.args
    assert isinstance(kind, ast.Constant) and len(said) == 2 and not call.keywords
    for text in said:
        assert isinstance(text, ast.Constant | ast.JoinedStr)
        parts = text.values if isinstance(text, ast.JoinedStr) else [text]
        plain = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
        assert not [words for words in RIDDLES if re.search(words, plain)]
        for part in parts:
            assert isinstance(part, ast.Constant) or may_be_shown(part.value, holds_cells(path)), ast.unparse(part)
    assert plain.endswith(".") or re.search(r": \S.*$", plain)


@pytest.mark.parametrize(
    ("shown", "alone", "near"),
    [("rate", True, False), ("plan.rate", True, False), ("len(frame)", True, True), ("MOST + 1", True, True),
     ("named(curve)", True, False), ("errors.listed(names)", True, True), ("errors.listed(cells)", True, False),
     ("column.name", True, True), ("column.value", True, False), ("frame.item(name)", False, False),
     ("frame[0]", False, False), ("frame.item()", False, False),
     ("', '.join(values)", False, False), ("[one for one in cells]", False, False), ("frame[0] + 1", False, False)],
)  # fmt: skip
def test_only_names_constants_and_counts_may_be_shown_and_near_tables_only_names_and_counts(shown, alone, near):
    asked = ast.parse(shown, mode="eval").body
    assert (may_be_shown(asked, False), may_be_shown(asked, True)) == (alone, near)
