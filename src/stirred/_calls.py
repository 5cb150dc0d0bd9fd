"""Refuse calls with wrong arguments by a message that says what the function takes.

A call that works costs nothing more. Where Python itself complains (TypeError, AttributeError, ValueError), the
arguments are held against the parameters and their type hints: one that does not fit is named in a refusal, and where
all of them fit the complaint is passed on, since it is then a fault of stirred.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections import abc
from collections.abc import Callable
from fractions import Fraction
from numbers import Real
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from stirred import errors

_Called = TypeVar("_Called", bound=Callable[..., Any])
_LISTS = (abc.Iterable, abc.Sequence, abc.Collection)


def refuses_wrong_arguments(called: _Called) -> _Called:
    """Refuse a call of a function or class with arguments that do not fit, by naming them and what is taken.

    >>> @refuses_wrong_arguments
    ... def bound(prior, epsilon, distance=1):
    ...     return prior * epsilon * distance
    >>> bound(0.5, rho=1)
    Traceback (most recent call last):
    ...
    stirred.errors.kinds.ArgumentError: bound() has no parameter 'rho'; 'epsilon' is missing. Call bound(prior, \
epsilon, distance=1).
    >>> @refuses_wrong_arguments
    ... def half(number: float) -> float:
    ...     return number / 2
    >>> half("one")
    Traceback (most recent call last):
    ...
    stirred.errors.kinds.ArgumentError: 'number' of half() cannot be a text. Give a number.
    """
    function = called.__init__ if isinstance(called, type) else called  # type: ignore[misc]

    @functools.wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except (TypeError, AttributeError, ValueError):
            refusal = _refusal(called, function, given, named)
            if refusal is None:
                raise
        raise refusal

    if not isinstance(called, type):
        return cast("_Called", checked)
    called.__init__ = checked  # type: ignore[misc]
    return called


def _refusal(
    called: Callable[..., Any], function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> Exception | None:
    """What to say about a call, or None where its arguments look right."""
    signature = inspect.signature(called)
    if isinstance(called, type):  # the first argument is the object that is made
        given = given[1:]
    if problems := _problems(signature, given, named):
        return errors.does_not_fit(called.__name__, problems, _form(signature))
    try:
        hints = get_type_hints(function)
    except (NameError, TypeError):  # a name that only type checkers see
        return None
    for name, value in signature.bind(*given, **named).arguments.items():
        variable = signature.parameters[name].kind
        if variable is inspect.Parameter.VAR_KEYWORD or name not in hints:
            continue
        for one in value if variable is inspect.Parameter.VAR_POSITIONAL else (value,):
            if not _fits(one, hints[name]):
                return errors.wrong_argument(f"'{name}' of {called.__name__}()", one, _words(hints[name]))
    return None


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value can be what a type hint says, as far as is seen from outside."""
    if hint is Any or isinstance(hint, TypeVar) or getattr(hint, "_is_protocol", False):
        return True
    if hint == ArrayLike:
        return _is_numbers(value)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if origin is Annotated:
        return _fits(value, get_args(hint)[0])
    if origin is Literal:
        return value in get_args(hint)
    wanted = origin or hint
    if wanted is np.ndarray:
        return _is_numbers(value)
    if wanted in (float, int, Fraction):
        return isinstance(value, Real | np.generic) and not isinstance(value, bool)
    if isinstance(value, str) and wanted in _LISTS:
        return False
    if wanted is tuple and isinstance(value, list):  # lists pass where tuples are written
        return True
    if isinstance(wanted, type) and not isinstance(value, wanted):
        return False
    if wanted in _LISTS and isinstance(value, list | tuple) and get_args(hint):
        return all(_fits(one, get_args(hint)[0]) for one in value)
    return True


def _is_numbers(value: Any) -> bool:
    try:
        return np.asarray(value, dtype=np.float64) is not None and value is not None
    except (TypeError, ValueError, OverflowError):
        return False


def _words(hint: Any) -> str:
    """A type hint in plain words."""
    if hint == ArrayLike or get_origin(hint) is np.ndarray:
        return "a number or an array of numbers"
    if get_origin(hint) in (Union, types.UnionType):
        said = list(dict.fromkeys(_words(one) for one in get_args(hint) if one is not type(None)))
        return " or ".join(said)
    if hint in (float, Fraction, int):
        return "a whole number" if hint is int else "a number"
    if get_origin(hint) is Literal:
        return " or ".join(repr(one) for one in get_args(hint))
    wanted = get_origin(hint) or hint
    if wanted in _LISTS:
        inside = get_args(hint)
        return "a list of pairs" if inside and get_origin(inside[0]) is tuple else "a list"
    return {str: "a text", abc.Mapping: "a dict", abc.Callable: "a function"}.get(
        wanted, f"a {getattr(wanted, '__name__', wanted)}"
    )


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
