"""How the source is laid out, as far as linters cannot tell: who may import whom is a contract in pyproject.toml."""

from __future__ import annotations

import inspect
from pathlib import Path

import stirred.invariants
import stirred.spec
import stirred.swap

SOURCE = Path(__file__).parents[1] / "src" / "stirred"


def test_no_verb_of_a_room_is_also_the_name_of_a_module_in_it():
    # Importing a module makes it an attribute of its package, and hides the function behind it.
    for room in (stirred.swap, stirred.spec, stirred.invariants):
        modules = {path.stem for path in (SOURCE / room.__name__.partition(".")[2]).glob("*.py")}
        assert {name for name in room.__all__ if not inspect.ismodule(getattr(room, name))} & modules == set()


def test_the_verbs_of_the_swap_are_functions():
    assert all(callable(getattr(stirred.swap, verb)) for verb in ("check", "draw", "release", "verify", "tabulate"))


def test_the_seeded_source_is_not_named_in_plans_or_on_the_command_line():
    # A contract forbids importing stirred.noise there; this is for the same class under another room's name.
    paths = [path for path in SOURCE.rglob("*.py") if "cli" in path.parts or path.stem in ("plan", "draft")]
    assert len(paths) > 20
    assert [path.name for path in paths if "SeededSource" in path.read_text(encoding="utf-8")] == []
