"""How the source is laid out: who may import whom, where randomness may come from, how long a file may be.

The order of the rooms is that of the design: each imports from rooms to its left only, and rooms that stand together
never import each other. A room that does not exist yet breaks nothing; one that is not in the order does.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import stirred.invariants
import stirred.spec
import stirred.swap

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "stirred"
ORDER = [
    {"noise", "tables", "loss"},
    {"spec"},
    {"invariants", "semantics", "limits", "releases"},
    {"swap", "topdown", "survey"},
    {"audit", "estimates"},
    {"reports"},
    {"cli"},
]
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
SHARED = {"errors", "_calls", "_compiled", "_fractions", "_lazy", "_shown"}
DATA = {"deployments"}
"""Data files, without code of their own."""

MODULES = sorted(SOURCE.rglob("*.py"))
IN_ROOMS = [path for path in MODULES if path.relative_to(SOURCE).parts[0] in LEVEL]
RANDOM = {"random", "secrets", "numpy.random", "np.random"}


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for an attribute of an attribute of a name, else nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (outer := dotted(node.value)):
        return f"{outer}.{node.attr}"
    return ""


def imports(source: str, package: str) -> set[str]:
    """Full names of everything imported anywhere in a module, relative imports spelled out."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            home = ".".join(part for part in (base, node.module) if part)
            found |= {f"{home}.{alias.name}" for alias in node.names}
    return found


def package_of(path: Path) -> str:
    return ".".join(["stirred", *path.relative_to(SOURCE).parent.parts])


def rooms_imported(source: str, package: str) -> set[str]:
    """The rooms, and other things directly below ``stirred``, that a module imports."""
    return {name.split(".")[1] for name in imports(source, package) if name.startswith("stirred.")}


def strangers(room: str, imported: set[str]) -> set[str]:
    """What a module of ``room`` imports though it may not."""
    return {
        other
        for other in imported - SHARED - {room, "__version__"}
        if other not in LEVEL or LEVEL[other] >= LEVEL[room]
    }


# -- rooms ---------------------------------------------------------------------------------------------------


def test_every_room_has_its_place_in_the_order():
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    loose = {path.stem for path in SOURCE.glob("*.py")} - {"__init__"}
    assert rooms - set(LEVEL) - DATA - SHARED == set()
    assert loose - SHARED == set()


@pytest.mark.parametrize("path", IN_ROOMS, ids=named)
def test_a_room_imports_only_from_rooms_to_its_left(path):
    assert strangers(room_of(path), rooms_imported(path.read_text(encoding="utf-8"), package_of(path))) == set()


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path).removesuffix(".py") in SHARED], ids=named)
def test_what_all_rooms_share_imports_no_room(path):
    assert rooms_imported(path.read_text(encoding="utf-8"), package_of(path)) - SHARED == set()


def test_importing_the_package_imports_no_room():
    assert rooms_imported((SOURCE / "__init__.py").read_text(encoding="utf-8"), "stirred") == set()


@pytest.mark.parametrize("room", [stirred.swap, stirred.spec, stirred.invariants])
def test_no_verb_of_a_room_is_also_the_name_of_a_module_in_it(room):
    # Importing a module makes it an attribute of its package, and hides the function behind it.
    modules = {path.stem for path in (SOURCE / room.__name__.partition(".")[2]).glob("*.py")}
    assert {name for name in room.__all__ if not inspect.ismodule(getattr(room, name))} & modules == set()


def test_the_verbs_of_the_swap_are_functions():
    assert all(callable(getattr(stirred.swap, verb)) for verb in ("check", "draw", "release", "verify", "tabulate"))


@pytest.mark.parametrize(
    ("room", "line", "found"),
    [
        ("tables", "import stirred.noise.source", {"noise"}),
        ("tables", "from stirred import noise, errors", {"noise"}),
        ("spec", "def f():\n    from stirred.swap.plan import SwapPlan", {"swap"}),
        ("swap", "from stirred.topdown import spine", {"topdown"}),
        ("swap", "from ..cli import app", {"cli"}),
        ("swap", "from .plan import SwapPlan", set()),
        ("swap", "from stirred.nowhere import thing", {"nowhere"}),
        ("swap", "from stirred._compiled import kernel\nfrom stirred.tables import Table", set()),
        ("swap", "from stirred import SwapPlan", {"SwapPlan"}),
        ("cli", "from stirred import __version__", set()),
    ],
)
def test_the_import_rule_sees_every_form_of_import(room, line, found):
    assert strangers(room, rooms_imported(line, f"stirred.{room}")) == found


# -- randomness ----------------------------------------------------------------------------------------------


def random_names(source: str) -> set[str]:
    """Uses of generators that are not ours."""
    tree = ast.parse(source)
    used = imports(source, "stirred") | {dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {name for name in used if any(name == banned or name.startswith(f"{banned}.") for banned in RANDOM)}


@pytest.mark.parametrize("path", [path for path in MODULES if "synthetic" not in path.parts], ids=named)
def test_no_module_outside_synthetic_draws_from_another_generator(path):
    assert random_names(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    "line",
    [
        "import random",
        "from random import shuffle",
        "import numpy as np\nnp.random.default_rng(3)",
        "from numpy.random import default_rng",
        "from numpy import random",
        "def f():\n    import secrets",
    ],
)
def test_the_ban_sees_every_form_of_use(line):
    assert random_names(line)


@pytest.mark.parametrize(
    "path", [path for path in MODULES if room_of(path) == "cli" or path.stem in ("plan", "draft")], ids=named
)
def test_the_seeded_source_cannot_be_reached_from_a_plan_or_the_command_line(path):
    text = path.read_text(encoding="utf-8")
    assert "SeededSource" not in text
    assert "stirred.noise" not in text


# -- files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_every_module_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", MODULES + sorted((ROOT / "tests").rglob("*.py")), ids=named)
def test_no_file_grows_beyond_one_idea(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) < 450
