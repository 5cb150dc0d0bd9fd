"""Names of a package that are imported when they are first used, so that importing the package costs next to nothing.

A package imports its public names for type checkers and editors, under ``if TYPE_CHECKING:``, each ``as`` itself, which
tells them that it is public. The same lines say here where each comes from, and are what ``__all__`` lists::

    from stirred._lazy import lazy

    if TYPE_CHECKING:
        from stirred.swap.plan.fields import SwapPlan as SwapPlan

    __getattr__, __dir__ = lazy(__name__)

A name that left the package is found there for one more version, with a warning that says where it went::

    __getattr__, __dir__ = lazy(__name__, moved={"stirred.lab.sampling.frames": "Frame Groups"})
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any


def lazy(
    package: str, *, moved: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package that imports its names for type checkers only.

    A name is looked up once: afterwards it is an ordinary attribute of the package. ``moved`` holds, for each module,
    the names that went there, between spaces; they are looked up with a warning each time, and ``dir`` leaves them out.

    >>> look_up, names = lazy("stirred")
    >>> look_up("Ledger").__name__, "Ledger" in names()
    ('Ledger', True)
    """
    now_in = {name: module for module, names in (moved or {}).items() for name in names.split()}

    def look_up(name: str) -> Any:
        if name in now_in:
            text = f"{package}.{name} has moved: import {name} from {now_in[name]}"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return getattr(import_module(now_in[name]), name)
        if name == "__all__":
            return sorted(_imported_for_checkers(package))
        module = None if name.startswith("__") else _imported_for_checkers(package).get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        found = import_module(module)
        value = found if module == f"{package}.{name}" else getattr(found, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *_imported_for_checkers(package)})

    return look_up, names


@cache
def _imported_for_checkers(package: str) -> dict[str, str]:
    """Where each name comes from: read in the package's own source, under ``if TYPE_CHECKING:``."""
    import ast  # needed at the first name only: importing a package costs next to nothing

    path = sys.modules[package].__file__
    assert path is not None
    where = {}
    with open(path, encoding="utf-8") as source:  # noqa: PTH123
        tree = ast.parse(source.read())
    for block in tree.body:
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING":
            for line in block.body:
                assert isinstance(line, ast.ImportFrom)
                for one in line.names:
                    is_module = line.module == package
                    where[one.name] = f"{package}.{one.name}" if is_module else str(line.module)
    return where


class _Later:
    """Stands for a module until something of it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value

    def __repr__(self) -> str:
        return f"<module '{self._name}', imported when it is used>"


def later(name: str) -> Any:
    """A module that is imported when something of it is first used: for large libraries that few calls need.

    >>> special = later("scipy.special")
    >>> float(special.expit(0))
    0.5
    """
    return _Later(name)


def function_later(module: str, name: str) -> Callable[..., Any]:
    """A function whose module is imported when it is first called.

    >>> function_later("math", "gcd")(12, 18)
    6
    """

    def call(*given: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*given, **named)

    call.__name__ = name
    return call


def method_later(module: str, name: str) -> Any:
    """A function as :func:`function_later` gives it, for the body of a class: called there without the object."""
    return staticmethod(function_later(module, name))
