"""Texts of errors, read from the source: no riddles, no names of Python's exceptions, no words of our own."""

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
