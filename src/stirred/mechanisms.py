"""The list of mechanisms, and what is done with any of them by name.

Mechanisms are found in one list. A plan or a received folder names one of them; a name that is not in the list is
refused, and nothing else is ever imported for it. :func:`register` adds a mechanism of one's own.
"""

from __future__ import annotations

from importlib import import_module

from stirred import errors
from stirred.releases.mechanism import Mechanism

BUILT_IN = {"swap": "stirred.swap.mechanism", "topdown": "stirred.topdown.mechanism"}
"""By name, the modules whose ``MECHANISM`` is one of the package's own."""

_REGISTERED: dict[str, Mechanism] = {}


def names() -> list[str]:
    """The names of all mechanisms, the package's own first."""
    return [*BUILT_IN, *(name for name in _REGISTERED if name not in BUILT_IN)]


def named(name: object) -> Mechanism:
    """The mechanism of this name.

    >>> named("swap").title
    'Permutation Swapping Algorithm'
    """
    if not isinstance(name, str) or name not in names():
        raise errors.unknown_mechanism(name, names())
    if name not in _REGISTERED:
        _REGISTERED[name] = import_module(BUILT_IN[name]).MECHANISM
    return _REGISTERED[name]


def every() -> list[Mechanism]:
    """All mechanisms, in the order of their names in the list."""
    return [named(name) for name in names()]


def register(mechanism: Mechanism) -> Mechanism:
    """Add a mechanism of one's own, for plans, releases and the command line of this process."""
    if mechanism.name in names() and named(mechanism.name) is not mechanism:
        raise errors.mechanism_taken(mechanism.name)
    _REGISTERED[mechanism.name] = mechanism
    return mechanism


def forget(name: str) -> None:
    """Take a mechanism of one's own off the list again."""
    if name not in BUILT_IN:
        _REGISTERED.pop(name, None)
