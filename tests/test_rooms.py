"""How the source is laid out, as far as linters cannot tell: who may import whom is a contract in pyproject.toml."""

from __future__ import annotations

import importlib
import inspect
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


def test_the_seeded_source_is_not_named_in_plans_or_on_the_command_line():
    # A contract forbids importing stirred.noise there; this is for the same class under another room's name.
    paths = [path for path in SOURCE.rglob("*.py") if {"cli", "plan"} & set(path.parts)]
    assert len(paths) > 20
    assert [path.name for path in paths if "SeededSource" in path.read_text(encoding="utf-8")] == []
