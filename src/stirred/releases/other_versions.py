"""What is asked of texts that another version is said to have written.

Their sentences cannot be compared with ours, and ``verify`` says so. Whatever the version, though, a text has no
characters that nobody sees, and it does not state a smaller budget than the guarantee has: every number beside the
words epsilon, rho and delta must be one that our own text about the same release has there too, or a larger one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
"""Control characters but for line ends and tabulators, and marks that change the direction of text."""
_NAMES = {"epsilon": "epsilon", "ε": "epsilon", "rho": "rho", "ρ": "rho", "delta": "delta", "δ": "delta"}
_STATED = re.compile(
    r"(?<!\w)(epsilon|rho|delta|ε|ρ|δ)"
    r"(?:[\s=:<>≤≥≈~(]|\b(?:is|was|of|at|most|least|about|only|below|under|less|than|just|equals?|to|nearly)\b)+"
    r"([0-9]+(?:[.,][0-9]+)*(?:/[0-9]+|e-?[0-9]{1,3})?)",
    re.IGNORECASE,
)
_ROUNDED = Fraction(1, 100)
"""By how much versions may round a number otherwise, relative to it."""


def stated_budgets(text: str) -> dict[str, list[Fraction]]:
    """The numbers that a text has beside the words epsilon, rho and delta.

    >>> stated_budgets("Epsilon = 4.60 here, and rho is at most 3/4.")
    {'epsilon': [Fraction(23, 5)], 'rho': [Fraction(3, 4)]}
    """
    found: dict[str, list[Fraction]] = {}
    for name, number in _STATED.findall(text):
        try:
            found.setdefault(_NAMES[name.lower()], []).append(Fraction(number.replace(",", "")))
        except (ValueError, ZeroDivisionError):
            found.setdefault(_NAMES[name.lower()], []).append(Fraction(-1))
    return found


def understates(text: str, own: Iterable[str]) -> bool:
    """Whether a text states a smaller epsilon, rho or delta than our own texts about the same release do."""
    known: dict[str, list[Fraction]] = {}
    for one in own:
        for name, numbers in stated_budgets(one).items():
            known.setdefault(name, []).extend(numbers)
    return any(
        number < max(known[name]) and not any(abs(number - one) <= _ROUNDED * one for one in known[name])
        for name, numbers in stated_budgets(text).items()
        if name in known
        for number in numbers
    )
