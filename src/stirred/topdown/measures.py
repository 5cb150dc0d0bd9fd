"""What shares, differences, ratios and odds ratios are made of: counts, how they are combined, and by how much the
result moves with each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stirred import errors
from stirred.estimates.answers import Parts, difference, odds_ratio, ratio
from stirred.margins.margin_blocks import Array

PLACES: Literal["places"] = "places"
"""In place of an attribute and two of its values: the places of a question against those they are compared with."""
Names = tuple[str, str]
"""What is compared: the first against the second."""
Contrast = tuple[str, str, str] | Literal["places"]
"""An attribute, recode or level and two of its values, the first against the second."""


@dataclass(frozen=True)
class Count:
    """A count of a measure: the place, the values that are the same in all rows, and what it is a total over."""

    place: int
    fixed: tuple[tuple[str, str], ...] = ()
    over: str | None = None


@dataclass(frozen=True, eq=False)
class Measure:
    """What is made of some counts."""

    words: str
    left: tuple[str, ...]
    """Names that rows of the answer differ in."""
    counts: tuple[Count, ...]
    combine: Callable[[Sequence[Parts], Array], Parts]
    slopes: Callable[[Array], Array]
    """From values, a column for each count, by how much the measure moves with each."""
    below: tuple[int, ...] = ()
    """Counts that are divided by."""
    bounds: tuple[float, float] = (-np.inf, np.inf)
    whole: bool = False
    of_shares: bool = False


def measure_of(
    by: tuple[str, ...], share: str | None, apart: Contrast | None, divided: Contrast | None,
    odds: tuple[Contrast, Contrast] | None, level: str | None,
    places: Names = ("", ""),
) -> Measure:  # fmt: skip
    """The measure that a question asks for; ``places`` are the words for two that are compared."""
    if odds is not None:
        return _odds(by, *odds, places)
    contrast = apart or divided
    if contrast is None:
        if share is None:
            return Measure("count", by, (Count(0),), lambda parts, _: parts[0], lambda at: np.ones_like(at), whole=True)
        total = Count(1) if share == level else Count(0, over=share)
        return Measure(
            f"share of {share}", by, (Count(0), total), lambda parts, c: ratio(parts[0], parts[1], c[:, 0, 1]),
            _quotient, (1,), (0.0, 1.0), of_shares=True,
        )  # fmt: skip
    left, pair, names = _pair(by, contrast, places)
    words = (" minus " if apart else " divided by ").join(names)
    if share is None:
        if apart:
            return Measure(
                words, left, pair, lambda parts, c: difference(parts[0], parts[1], c[:, 0, 1]),
                lambda at: np.broadcast_to([1.0, -1.0], at.shape), whole=True,
            )  # fmt: skip
        return Measure(
            words, left, pair, lambda parts, c: ratio(parts[0], parts[1], c[:, 0, 1]), _quotient, (1,),
            (0.0, np.inf),
        )  # fmt: skip
    if share in (_name(contrast), level):
        raise errors.estimate_question(
            "A comparison of shares", f"needs another column than '{share}', whose shares they are"
        )
    one, other = pair
    counts = (one, Count(one.place, one.fixed, share), other, Count(other.place, other.fixed, share))
    return Measure(
        f"{words} in the share of {share}", left, counts, _of_shares(difference if apart else ratio),
        _share_difference if apart else _share_ratio, (1, 3) if apart else (1, 2, 3),
        (-1.0, 1.0) if apart else (0.0, np.inf), of_shares=bool(apart),
    )  # fmt: skip


def _odds(by: tuple[str, ...], one: Contrast, other: Contrast, places: Names) -> Measure:
    if _name(one) == _name(other):
        raise errors.estimate_question("An odds ratio", "needs two different columns")
    left, rows, words = _pair(by, one, places)
    left, columns, against = _pair(left, other, places)
    counts = tuple(
        Count(max(row.place, column.place), (*row.fixed, *column.fixed)) for row in rows for column in columns
    )
    return Measure(
        f"odds ratio {':'.join(against)}, {' to '.join(words)}", left, counts, odds_ratio, _odds_slopes, (0, 1, 2, 3),
        (0.0, np.inf),
    )  # fmt: skip


def _name(contrast: Contrast) -> str | None:
    return None if contrast == PLACES else contrast[0]


def _pair(by: tuple[str, ...], contrast: Contrast, places: Names) -> tuple[tuple[str, ...], tuple[Count, Count], Names]:
    if contrast == PLACES:
        return by, (Count(0), Count(1)), places
    name, first, second = contrast
    left = tuple(one for one in by if one != name)
    return left, (Count(0, ((name, first),)), Count(0, ((name, second),))), (first, second)


def _quotient(at: Array) -> Array:
    y = np.where(at[:, 1] > 0, at[:, 1], np.inf)
    return np.stack([1 / y, -at[:, 0] / y**2], axis=1)


def _share_difference(at: Array) -> Array:
    return np.hstack([_quotient(at[:, :2]), -_quotient(at[:, 2:])])


def _share_ratio(at: Array) -> Array:
    safe = np.where(at > 0, at, np.inf)
    value = (at[:, 0] / safe[:, 1]) * at[:, 3] / safe[:, 2]
    first = at[:, 3] / (safe[:, 1] * safe[:, 2])
    return np.stack([first, -value / safe[:, 1], -value / safe[:, 2], value / safe[:, 3]], axis=1)


def _odds_slopes(at: Array) -> Array:
    safe = np.where(at > 0, at, np.inf)
    value = at[:, 0] * at[:, 3] / (safe[:, 1] * safe[:, 2])
    return np.asarray(value[:, None] * np.array([1.0, -1.0, -1.0, 1.0]) / safe)


def _of_shares(use: Callable[[Parts, Parts, Array], Parts]) -> Callable[[Sequence[Parts], Array], Parts]:
    def combine(parts: Sequence[Parts], covariance: Array) -> Parts:
        shares = [_finite(ratio(parts[at], parts[at + 1], covariance[:, at, at + 1])) for at in (0, 2)]
        slopes = [_quotient(np.stack([parts[at].values, parts[at + 1].values], axis=1)) for at in (0, 2)]
        cross = np.einsum("ri,rij,rj->r", slopes[0], covariance[:, :2, 2:], slopes[1])
        return use(shares[0], shares[1], cross)

    return combine


def _finite(shares: Parts) -> Parts:
    """Shares are between 0 and 1, where nothing else is known."""
    lower = np.where(np.isfinite(shares.lower), shares.lower, np.fmin(shares.values, 0.0))
    upper = np.where(np.isfinite(shares.upper), shares.upper, np.fmax(shares.values, 1.0))
    return Parts(shares.values, shares.variances, lower, upper)
