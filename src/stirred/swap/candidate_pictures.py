"""Pictures of what other variables and rates would reveal, against epsilon and against the error that they cost.

They are there so that nobody takes "more match variables, smaller epsilon" for better: the published counts then reveal
more. Drawn from a check, so they are confidential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING

from stirred.semantics.pictures.lines_and_bars import Line, Picture

if TYPE_CHECKING:
    from stirred.swap.checking import WhatIf

_CAPTION = (
    "CONFIDENTIAL: computed from the data. A choice made by looking at it voids the guarantee. Each point is one "
    "choice of variables and rate: "
)
_SHARES = (
    "determined by the published counts",
    "unique on match and held values",
    "guessed rightly from the counts",
    "expected to change",
)
_SUBTITLE = "Shares of records; only the last depends on the swap rate"


@dataclass(frozen=True)
class _Point:
    """One choice of variables and rate; ``shares`` are those of ``_SHARES``."""

    epsilon: float
    error: float
    words: str
    shares: tuple[float, ...]


def candidate_pictures(entries: Sequence[WhatIf], unit: str = "record") -> tuple[Picture, ...]:
    """Shares of records against epsilon, and against the expected error of the tables asked for.

    Where several choices of variables were tried, each is one point, at the first rate; else each rate is. Nothing is
    drawn where fewer than two points have a finite epsilon, or an error.
    """
    points = _points(entries)
    asked = [
        ("revealed-by-epsilon", "A smaller epsilon does not mean that less is revealed", "epsilon", "epsilon"),
        ("revealed-by-error", "What is revealed, and what it costs", "expected MAPE of the tables asked for", "error"),
    ]
    found = []
    for name, title, x_title, axis in asked:
        drawn = sorted((one for one in points if isfinite(getattr(one, axis))), key=lambda one: getattr(one, axis))
        if len(drawn) > 1:
            x = tuple(getattr(one, axis) for one in drawn)
            shares = zip(*(one.shares for one in drawn), strict=True)
            lines = tuple(Line(words, x, share) for words, share in zip(_SHARES, shares, strict=True))
            caption = _CAPTION + "; ".join(one.words for one in drawn) + " (from left to right)."
            found.append(
                Picture(
                    name,
                    title,
                    _SUBTITLE,
                    x_title,
                    "share of records",
                    lines,
                    caption=caption,
                    guarantee=_guarantee(drawn, unit),
                )
            )
    return tuple(found)


def _guarantee(drawn: Sequence[_Point], unit: str) -> str:
    finite = [one.epsilon for one in drawn if isfinite(one.epsilon)]
    budgets = f"epsilon from {min(finite):.4g} to {max(finite):.4g}" if finite else "no finite epsilon"
    return f"Guarantees: {budgets} per {unit} that differs, pure differential privacy; each choice holds others fixed"


def _points(entries: Sequence[WhatIf]) -> list[_Point]:
    found = []
    for entry in entries:
        for at in range(len(entry.epsilons)) if len(entries) == 1 else (0,):
            rate, epsilon = entry.epsilons[at]
            error = entry.errors[at][1]
            words = f"match {', '.join(entry.match) or 'nothing'}, swap {', '.join(entry.swap)}, rate {rate}"
            shares = (entry.determined_share, entry.unique_share, entry.guessed_share, entry.changed_shares[at][1])
            found.append(_Point(epsilon, inf if error is None else error, words, shares))
    return found
