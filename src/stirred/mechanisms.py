"""The list of mechanisms, by name.

A plan or a release folder names one of them. An unknown name is an error, and never imports anything.
:func:`register` adds a mechanism of your own.
"""

from __future__ import annotations

from importlib import import_module

from stirred import errors
from stirred.releases.mechanism import Mechanism

BUILT_IN = {
    "swap": "stirred.swap.mechanism",
    "topdown": "stirred.topdown.mechanism",
    "survey": "stirred.survey.mechanism",
}
"""The modules of the built-in mechanisms, by name; each has its mechanism as ``MECHANISM``."""

_REGISTERED: dict[str, Mechanism] = {}


def names() -> list[str]:
    """The names of all mechanisms, built-in ones first."""
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
    """Add a mechanism of your own, for plans, releases and the command line of this process."""
    if mechanism.name in names() and named(mechanism.name) is not mechanism:
        raise errors.mechanism_taken(mechanism.name)
    _REGISTERED[mechanism.name] = mechanism
    return mechanism


def forget(name: str) -> None:
    """Remove a mechanism that was added by :func:`register`."""
    if name not in BUILT_IN:
        _REGISTERED.pop(name, None)
