"""Calls that do not fit a function's parameters, answered in words that say what it takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from stirred import errors

_P = ParamSpec("_P")
_R = TypeVar("_R")


def says_what_it_takes(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse a call with missing or unknown arguments by naming them, and the parameters that there are.

    >>> @says_what_it_takes
    ... def bound(prior, epsilon, distance=1):
    ...     return prior * epsilon * distance
    >>> bound(0.5, rho=1)
    Traceback (most recent call last):
    ...
    stirred.errors.arguments.ArgumentError: bound() has no parameter 'rho'; 'epsilon' is missing. Call bound(prior, \
epsilon, distance=1).
    """

    @functools.wraps(function)
    def called(*given: _P.args, **named: _P.kwargs) -> _R:
        try:
            return function(*given, **named)
        except TypeError:
            problems = _problems(inspect.signature(function), given, named)
            if not problems:
                raise
            form = _form(inspect.signature(function))
        raise errors.does_not_fit(function.__name__, problems, form)

    return called


def _problems(signature: inspect.Signature, given: tuple[Any, ...], named: dict[str, Any]) -> list[str]:
    """What is wrong with a call, in words; nothing where it fits."""
    parameters = signature.parameters.values()
    places = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    takes_all = {one.kind for one in parameters}
    filled = places[: len(given)]
    problems = []
    if inspect.Parameter.VAR_KEYWORD not in takes_all:
        problems += [f"has no parameter '{name}'" for name in named if name not in signature.parameters]
    problems += [f"got '{name}' twice" for name in named if name in filled]
    if inspect.Parameter.VAR_POSITIONAL not in takes_all and len(given) > len(places):
        problems.append(f"takes {len(places)} arguments in order and got {len(given)}")
    problems += [
        f"'{one.name}' is missing"
        for one in parameters
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
        and one.name not in (*filled, *named)
    ]
    return problems


def _form(signature: inspect.Signature) -> str:
    """The parameters with their defaults, without types."""
    plain = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    return str(inspect.Signature(plain))
