"""``import stirred`` gives what people need: quickly, documented, and never hidden by a module of the same name."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import stirred

MODULES = [name for name in stirred.__all__ if inspect.ismodule(getattr(stirred, name))]
OTHERS = [name for name in stirred.__all__ if name not in MODULES]


def test_every_public_name_is_there_and_named_in_the_help():
    assert sorted(stirred.__all__) == stirred.__all__
    for name in stirred.__all__:
        assert name in dir(stirred)
        assert f"``{name}``" in (stirred.__doc__ or ""), name
    assert len((stirred.__doc__ or "").splitlines()) < 50


def test_no_module_of_the_package_takes_the_name_of_a_verb():
    code = (
        "import pkgutil, stirred, importlib\n"
        "names = [one.name for one in pkgutil.iter_modules(stirred.__path__)]\n"
        "[importlib.import_module(f'stirred.{name}') for name in names]\n"
        "verbs = 'check release verify tabulate estimate explain compare lint compose read report'.split()\n"
        "assert all(callable(getattr(stirred, verb)) for verb in verbs)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_package_imports_no_large_library():
    code = "import stirred, sys; print([one for one in sys.modules if one.split('.')[0] in %r])"
    heavy = {"numpy", "scipy", "numba", "polars", "pyarrow", "pandas", "altair", "pydantic", "rich", "typer"}
    found = subprocess.run([sys.executable, "-c", code % heavy], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("name", OTHERS)
def test_a_public_name_refuses_wrong_arguments_what_it_gives_and_shows_it(name):
    thing = getattr(stirred, name)
    text = inspect.getdoc(thing) or ""
    first = text.splitlines()[0]
    assert first.endswith(".") and len(first) > 20, first
    assert ">>>" in text, name
    if name == "StirredError":
        return
    assert "Parameters\n----------" in text, name
    if inspect.isfunction(thing):
        assert "Returns\n-------" in text, name
        sections = text.split("Parameters\n----------")[1].split("Returns\n-------")[0]
    else:
        sections = text.split("Parameters\n----------")[1].split("Examples\n--------")[0]
    for parameter in inspect.signature(thing).parameters.values() if inspect.isfunction(thing) else ():
        assert parameter.name in sections, f"{name}: {parameter.name}"


@pytest.mark.parametrize("name", MODULES)
def test_a_public_module_says_what_it_is_for_and_lists_its_names(name):
    module = getattr(stirred, name)
    assert (inspect.getdoc(module) or "").splitlines()[0].endswith(".")
    for public in getattr(module, "__all__", ()):
        thing = getattr(module, public)
        assert thing.__doc__ or not (inspect.isfunction(thing) or inspect.isclass(thing)), f"{name}.{public}"


def moved_names():
    for path in Path(stirred.__path__[0]).glob("*/__init__.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        named = {getattr(one.targets[0], "id", ""): one.value for one in tree.body if isinstance(one, ast.Assign)}
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "moved":
                moved = named[node.value.id] if isinstance(node.value, ast.Name) else node.value
                yield from ((path.parent.name, *one) for one in ast.literal_eval(moved).items())


@pytest.mark.parametrize("room, module, names", list(moved_names()))
def test_a_name_that_moved_is_found_at_its_old_place_with_a_warning_that_says_where(room, module, names):
    package = importlib.import_module(f"stirred.{room}")
    for name in names.split():
        for _ in range(2):
            with pytest.warns(DeprecationWarning, match=f"import {name} from {module}$") as warned:
                assert getattr(package, name) is getattr(importlib.import_module(module), name)
            assert {one.filename for one in warned} == {__file__}
        assert name not in package.__all__ and name not in dir(package)


def test_nothing_that_people_meet_shows_an_address():
    hidden = {"Silent", "OnTerminal", "Printed", "ColumnEncoder", "IdentifierCollector", "SystemSource", "SeededSource"}
    hidden |= {"Places", "Answer", "Agreement", "Measurements", "RoundingReport"}  # inner parts of a run
    hidden |= {"ReadRun", "Moved", "OrderSeen", "Digits", "LinkedFile", "ListedFile", "MadeFile"}
    hidden |= {"SeenRun", "SeenRuns", "Seen"}
    hidden |= {"Swapper", "NoGuarantee", "Expectations"}  # what several classes share, which show themselves
    hidden |= {"Writable", "DrawnAtOnce"}
    found = set()
    for module in pkgutil.walk_packages(stirred.__path__, "stirred."):
        for name, thing in vars(importlib.import_module(module.name)).items():
            plain = inspect.isclass(thing) and thing.__module__ == module.name and thing.__repr__ is object.__repr__
            if plain and not name.startswith("_") and not getattr(thing, "_is_protocol", False):
                found.add(name)
    assert found <= hidden


def test_both_mechanisms_have_the_same_verbs_with_the_same_arguments():
    for verb, names in {
        "check": {"plan", "data", "progress"},
        "release": {"plan", "data", "out", "confidential", "ledger", "progress"},
        "draw": {"plan", "data", "source", "progress"},
        "verify": {"path"},
        "tabulate": {"path", "by", "table"},
    }.items():
        for module in (stirred.swap, stirred.topdown):
            assert names <= set(inspect.signature(getattr(module, verb)).parameters), (module.__name__, verb)
