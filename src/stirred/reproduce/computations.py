"""The functions that compute published numbers, by the names that the list uses.

A function takes the inputs of its item, as they are written in the list, and returns

* a number (``int``, ``float`` or ``Fraction``),
* :class:`Between`, where only two bounds are known,
* a text or a truth value, for statements, or
* a sequence of pictures, for figures.

An erratum about a formula returns :class:`Forms`: the printed form and the correct one at an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_MODULES = (
    "chapter_1",
    "blocks",
    "appendix_a",
    "processing",
    "swapping",
    "appendix_b",
    "census",
    "inference",
    "appendix_c",
    "surveys",
    "survey_guarantees",
    "semantics",
    "slides",
)
"""The modules of this package that define computations."""

_KNOWN: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True)
class Between:
    """A number that is known to lie between two bounds."""

    lower: float
    upper: float


@dataclass(frozen=True)
class Forms:
    """What a printed formula and the correct one say about one example."""

    example: str
    printed: float | Fraction | str | bool
    correct: float | Fraction | str | bool


def computation(function: _Function) -> _Function:
    """Make a function known to the list under its own name."""
    name = function.__name__
    if name in _KNOWN and _KNOWN[name] is not function:
        raise ValueError(f"two computations are called {name}")
    _KNOWN[name] = function
    return function


@cache
def computations() -> Mapping[str, Callable[..., Any]]:
    """All computations, by name."""
    for module in _MODULES:
        import_module(f"stirred.reproduce.{module}")
    return dict(_KNOWN)
