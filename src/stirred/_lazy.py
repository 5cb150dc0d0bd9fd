"""Names of a package that are imported when they are first used, so that importing the package costs next to nothing.

A package says in a table where each of its public names comes from, and repeats the imports under
``if TYPE_CHECKING:`` for type checkers and editors::

    from stirred._lazy import by_module, lazy

    if TYPE_CHECKING:
        from stirred.swap.plan import LinkedTable, SwapPlan

    __all__ = ["LinkedTable", "SwapPlan"]
    __getattr__, __dir__ = lazy(__name__, by_module({"stirred.swap.plan": "LinkedTable SwapPlan"}))
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(package: str, where: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package whose names live in the modules of ``where``.

    ``where`` maps each name to the module that defines it. A name that maps to the module of that very name in the
    package (``"flavors": "stirred.spec.flavors"``) is the module itself. A name is looked up once: afterwards it is an
    ordinary attribute of the package.

    >>> look_up, names = lazy("stirred", {"Counter": "collections"})
    >>> look_up("Counter").__name__, "Counter" in names()
    ('Counter', True)
    """

    def look_up(name: str) -> Any:
        module = where.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        found = import_module(module)
        value = found if module == f"{package}.{name}" else getattr(found, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return look_up, names


def by_module(names: Mapping[str, str]) -> dict[str, str]:
    """Where each name comes from, written module by module.

    >>> by_module({"collections": "Counter deque", "fractions": "Fraction"})
    {'Counter': 'collections', 'deque': 'collections', 'Fraction': 'fractions'}
    """
    return {name: module for module, together in names.items() for name in together.split()}


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
    """A function whose module is imported when it is first called: for the few calls from a module to one above it.

    >>> function_later("math", "gcd")(12, 18)
    6
    """

    def call(*given: Any, **named: Any) -> Any:
        return getattr(import_module(module), name)(*given, **named)

    call.__name__ = name
    return call
