"""Errors about arguments of the wrong type, and calls or options that do not fit what they are given to."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import StirredError

_KINDS = {
    "NoneType": "None",
    "str": "a text",
    "bytes": "bytes",
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "Fraction": "a fraction",
    "list": "a list",
    "tuple": "a tuple",
    "set": "a set",
    "dict": "a dict",
    "ndarray": "an array",
    "function": "a function",
    "PosixPath": "a path",
    "WindowsPath": "a path",
}


class ArgumentError(StirredError):
    """An argument has a type that the function does not take."""


def wrong_argument(what: str, given: object, wanted: str) -> ArgumentError:
    return ArgumentError("wrong-argument", f"{what} cannot be {kind_of(given)}.", f"Give {wanted}.")


def does_not_fit(function: str, problems: Sequence[str], form: str) -> ArgumentError:
    return ArgumentError("call-does-not-fit", f"{function}() {'; '.join(problems)}.", f"Call {function}{form}.")


def kind_of(given: object) -> str:
    """The type of an object in words; never its contents.

    >>> kind_of([1, 2]), kind_of(None), kind_of(3 + 4j)
    ('a list', 'None', "a 'complex'")
    """
    name = type(given).__name__
    return _KINDS.get(name, f"a '{name}'")


def option_needs(option: str, other: str) -> StirredError:
    return StirredError("option-needs", f"The option {option} has no effect without {other}.", f"Add {other}.")
