"""Names of a package that are imported when they are first used, so that importing the package costs next to nothing.

A package says in a table where each of its public names comes from, and repeats the imports under
``if TYPE_CHECKING:`` for type checkers and editors::

    from stirred._lazy import lazy

    if TYPE_CHECKING:
        from stirred.swap.plan import SwapPlan

    _WHERE = {"SwapPlan": "stirred.swap.plan"}
    __getattr__, __dir__ = lazy(__name__, _WHERE)
    __all__ = ["SwapPlan"]
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
