"""How the source is laid out, as far as linters cannot tell: who may import whom is a contract in pyproject.toml."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import stirred
import stirred.swap

SOURCE = Path(__file__).parents[1] / "src" / "stirred"


PACKAGES = sorted(path.parent for path in SOURCE.rglob("__init__.py"))


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.relative_to(SOURCE.parent).as_posix())
def test_no_public_function_of_a_package_is_also_the_name_of_a_module_or_folder_in_it(folder):
    """Importing a module makes it an attribute of its package, and hides the function behind it."""
    package = importlib.import_module(".".join(folder.relative_to(SOURCE.parent).parts))
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    public = {name for name in getattr(package, "__all__", ()) if not inspect.ismodule(getattr(package, name))}
    assert public & modules == set()


def test_the_verbs_of_the_swap_are_functions():
    assert all(callable(getattr(stirred.swap, verb)) for verb in ("check", "draw", "release", "verify", "tabulate"))


NAMED_AS_TEXT = [
    (path.relative_to(SOURCE).parts[0], module, name)
    for path in sorted(SOURCE.rglob("*.py"))
    for module, name in re.findall(r'_later\("(stirred[\w.]*)", "(\w+)"\)', path.read_text(encoding="utf-8"))
]


def test_what_is_imported_at_its_first_call_is_there_and_in_its_own_room():
    # Type checker and contracts do not see modules that are named in a text.
    assert len(NAMED_AS_TEXT) > 40
    for room, module, name in NAMED_AS_TEXT:
        assert callable(getattr(importlib.import_module(module), name)), f"{module}.{name}"
        assert module.split(".")[1] == room, f"{room} reaches into {module}"


def test_the_seeded_source_is_not_named_in_plans_or_on_the_command_line():
    # A contract forbids importing stirred.noise there; this is for the same class under another room's name.
    paths = [path for path in SOURCE.rglob("*.py") if {"cli", "plan"} & set(path.parts)]
    assert len(paths) > 20
    assert [path.name for path in paths if "SeededSource" in path.read_text(encoding="utf-8")] == []
