"""How many exchanged pairs of a swapped file would be noticed: the numbers that an explanation of a swap leads with.

Three sorts of numbers, and which one is meant is always said. The *worst file* bounds every test in every universe with
strata of these sizes: it is the guarantee. A *pair* that nobody equals in what is held is what a test on these two
records finds out. A pair *as it stands* shares its held values with others, who hide it.

Keep in mind: where these come from a release, :mod:`stirred.swap` has read its public files; from a specification alone
only the worst file is known, for all sizes of strata up to the largest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stirred._display import brief
from stirred.loss import GaussianCurve, PowerCurve, swap_power_curve
from stirred.loss.curves.swap_curves import least_overlap
from stirred.spec import facts
from stirred.spec.order.swap_trade_off import as_trade_off
from stirred.spec.specification import Specification

Array = NDArray[np.float64]

How = Literal["two records", "normal"]
TWO_RECORDS: How = "two records"
NORMAL: How = "normal"
"""How the power of a pair is known: exactly, for a test that looks at the two records; or by a normal approximation to
the law of the cells that the two records stand in."""

WORST = "this swap, in the worst file"
MOST_EXPOSED = "this swap, the most exposed two records"
UNIQUE = "this swap, two records if nobody equalled them"
TYPICAL = "this swap, a typical pair"
"""What a row of powers, or a line, is about."""
ROUGHLY = " (about)"
"""Added to a row that is an approximation: it bounds nothing."""

_LISTED, _SMALL = 512, 65
"""Strata of fewer records than the second are looked at one by one, and one of the first many; larger ones are hardly
different."""


@brief
@dataclass(frozen=True)
class SwapPair:
    """Two records of one stratum with different held and different swap values, and how well they can be told apart
    from the same two with their swap values exchanged."""

    words: str
    """Who they are: values and numbers that the release publishes."""
    curve: PowerCurve | GaussianCurve
    how: How
    worst: PowerCurve
    """No test has more power than this."""
    size: int
    held: tuple[int, int]
    """How many records of the stratum have the held values of the one, and of the other."""
    swapped: tuple[int, int]
    odds: float | None = None
    """By how much the odds rise that the two are as the release shows them; None where others hide them."""

    def powers(self, levels: Sequence[float]) -> Array:
        """The power at each false-alarm probability."""
        return np.minimum(self.curve.power(levels), self.worst.power(levels))

    def power(self, level: float) -> float:
        """The power at one false-alarm probability."""
        return float(self.powers([level])[0])

    def belief(self, before: float) -> float | None:
        """The probability that the two are as the release shows them, from that before the release."""
        if self.odds is None:
            return None
        return 1.0 if math.isinf(self.odds) else before * self.odds / (before * self.odds + 1 - before)

    def more_sharing(self, level: float, target: float) -> float | None:
        """How many times as many records would have to share the held values for the power to fall to ``target``.

        The distance between the two laws falls with the root of their number.
        """
        if not isinstance(self.curve, GaussianCurve) or not level < target < self.power(level):
            return None
        from scipy.special import ndtri

        wanted = float(ndtri(target) - ndtri(level))
        return (self.curve.mu / wanted) ** 2

    def to_fields(self, levels: Sequence[float]) -> dict[str, Any]:
        """The pair as a dictionary that JSON can hold."""
        return {
            "records": self.words,
            "how": self.how,
            "stratum": self.size,
            "share_held_values": list(self.held),
            "share_swap_values": list(self.swapped),
            "powers": [float(power) for power in self.powers(levels)],
            "odds": None if self.odds is None or math.isinf(self.odds) else self.odds,
        }


@dataclass(frozen=True)
class ExactLoss:
    """The exact loss of a swap in one universe: that of the released file, and no other."""

    epsilon: float
    strata: int


@dataclass(frozen=True)
class PutBackShare:
    """How many changed records rows that belong together let anyone put back."""

    at_least: float
    """Of the records that changed, the share."""
    columns: tuple[str, ...]
    """The columns on which such rows agree; empty where none were found."""
    variables: tuple[str, ...]
    """The swap variables that are put back."""
    limit: float | None = None
    """The plan's limit for what is forecast before the draw; None for a release of a version that had none."""


@brief
@dataclass(frozen=True)
class SwapExposure:
    """How well exchanged pairs of a swapped file can be noticed."""

    worst: PowerCurve
    rate: Fraction | None
    """The rate of all records; None where records have rates by rule."""
    largest: int
    """The size of the largest stratum that counts."""
    strata: int | None = None
    """How many strata of the release a swap can change; None from a specification alone."""
    smallest: int | None = None
    """The size of the smallest of them."""
    records: int | None = None
    """Records of the release, and"""
    uniques: int | None = None
    """those in such strata whom no other equals in what is held."""
    most: SwapPair | None = None
    """Of two records that nobody equals in what is held: those whose exchange is noticed most often,"""
    least: SwapPair | None = None
    """and least often."""
    real: bool = False
    """Whether the release has a stratum with two such records; else ``most`` and ``least`` are what would be."""
    typical: SwapPair | None = None
    """Of pairs as they stand in the release, the median."""
    named: tuple[SwapPair, ...] = ()
    """The pairs that the reader asked about."""
    loss: ExactLoss | None = None
    put_back: PutBackShare | None = None
    """How many changed records anyone can put back from the released rows; None where that was not looked at."""

    def rows(self) -> list[tuple[str, PowerCurve | SwapPair]]:
        """The curves by their names, for tables and pictures."""
        named = [(f"this swap, {one.words}", one) for one in self.named]
        pairs = [(MOST_EXPOSED if self.real else UNIQUE, self.most), (TYPICAL, self.typical), *named]
        known = [(name, pair) for name, pair in pairs if pair is not None]
        return [(WORST, self.worst), *((name + (ROUGHLY if pair.how == NORMAL else ""), pair) for name, pair in known)]

    def to_fields(self, levels: Sequence[float]) -> dict[str, Any]:
        """The numbers as a dictionary that JSON can hold."""

        def pair(one: SwapPair | None) -> dict[str, Any] | None:
            return None if one is None else one.to_fields(levels)

        return {
            "false_alarms": list(levels),
            "worst_file": [float(power) for power in self.worst.power(levels)],
            "rate": None if self.rate is None else str(self.rate),
            "strata": self.strata,
            "largest_stratum": self.largest,
            "smallest_stratum": self.smallest,
            "records": self.records,
            "unique_records": self.uniques,
            "most_exposed": pair(self.most),
            "least_exposed": pair(self.least),
            "unique_pair_in_release": self.real,
            "typical": pair(self.typical),
            "named": [pair(one) for one in self.named],
            "exact_loss_of_this_universe": None if self.loss is None else self.loss.epsilon,
            "put_back": None if self.put_back is None else asdict(self.put_back),
        }


def exposure_of(specification: Specification) -> SwapExposure | None:
    """What a specification alone tells, where it is that of one swap; else None."""
    exchanged, told = as_trade_off(specification), specification.fact
    if exchanged is None or not isinstance(exchanged.budget.value, PowerCurve):
        return None
    return SwapExposure(exchanged.budget.value, Fraction(str(told[facts.RATE])), int(told[facts.LARGEST_STRATUM]))


@lru_cache(maxsize=64)
def halving(target: float, level: float) -> tuple[Fraction, int] | None:
    """A rate, in whole percent, and the smallest stratum with which the worst file allows at most the power ``target``
    at the false-alarm probability ``level``; None where no such rate is found. Above one half, small strata are worse
    than large ones, and strata of several sizes have one concave bound, which may be above those of each size."""
    for percent in range(1, 100):
        rate = Fraction(percent, 100)
        if level + 1 - least_overlap(_LISTED, rate) > target:
            continue
        for least in range(2, _SMALL):
            curve = swap_power_curve([*range(least, _SMALL), _LISTED], rate)
            if float(curve.power(level)) <= target:
                return rate, least
    return None
