"""Published rules that bound weights, so that what one record can add is bounded in advance; what unequal weights cost.

Weights w_1, ..., w_n have the effective sample size (sum w)^2 / sum w^2 and the design effect n sum w^2 / (sum w)^2
(Kish 1965). They say how an estimated mean would fare if values had nothing to do with weights; strata and clusters are
not in them.

A rule takes each weight by itself, in this order: cut to the bounds, w -> min(max(w, lower), upper); shrink towards a
public centre, w -> (1 - s) w + s c (the regularisation of Seeman et al. 2024; s = 1 gives equal weights); round to the
nearest multiple of a step, ties to the even one. Everything is computed in whole numbers.

Keep in mind: the rule looks at one weight and at public numbers only, never at another record. If one weight changes
before the rule, only that one changes after it, within :attr:`WeightRule.after`. Weights that were raked or calibrated
may all have changed before it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._display import withheld
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.spec.exact import written
from stirred.survey.plan.sensitivity import Bounds, number, require_number

_MOST_BITS = 10_000
"""Bits of a common denominator of weights, beyond which exact sums are refused."""


def effective_sample_size(weights: Iterable[Any]) -> Fraction:
    """How many units with equal weights would do as well: (sum of weights)^2 / sum of squared weights, exactly.

    >>> effective_sample_size([1, 1, 1, 1]), effective_sample_size(["0.5", 1, 1.5])
    (Fraction(4, 1), Fraction(18, 7))
    """
    _, total, squares = _sums(weights)
    return Fraction(total * total, squares)


def design_effect(weights: Iterable[Any]) -> Fraction:
    """By what factor unequal weights raise the variance: the number of units over the effective sample size.

    >>> design_effect([1, 3])
    Fraction(5, 4)
    """
    number, total, squares = _sums(weights)
    return Fraction(number * squares, total * total)


def effective_size_of_multiples(weights: NDArray[np.int64]) -> Fraction:
    """The effective sample size of many weights that are whole numbers of one unit, whatever the unit.

    >>> effective_size_of_multiples(np.array([1, 2, 3]))
    Fraction(18, 7)
    """
    if not len(weights) or int(weights.min()) <= 0:
        return effective_sample_size(weights.tolist())  # refuses them
    largest = int(weights.max())
    if largest * largest * len(weights) < 1 << 62:
        return Fraction(int(weights.sum()) ** 2, int(np.dot(weights, weights)))
    distinct, times = np.unique(weights, return_counts=True)
    pairs = list(zip(distinct.tolist(), times.tolist(), strict=True))
    return Fraction(sum(one * many for one, many in pairs) ** 2, sum(one * one * many for one, many in pairs))


def _sums(weights: Iterable[Any]) -> tuple[int, int, int]:
    """The number of weights, and their sum and sum of squares as whole numbers of a common unit."""
    try:
        times = Counter(weights)
        numbers = {as_fraction(weight): 0 for weight in times}
    except NOT_A_NUMBER:
        raise errors.weights_do_not_fit("A weight is missing or not a number", "Give positive numbers") from None
    if not numbers:
        raise errors.weights_do_not_fit("There are no weights", "Give the weight of each sampled unit") from None
    if min(numbers) <= 0:
        raise errors.weights_do_not_fit(
            "A weight is 0 or negative", "Leave out units that are not in the sample; design weights are positive"
        )
    for weight, count in times.items():
        numbers[as_fraction(weight)] += count  # 1 and "1" are one weight
    unit = 1
    for one in numbers:
        unit = math.lcm(unit, one.denominator)
        if unit.bit_length() > _MOST_BITS:
            raise errors.weights_do_not_fit(
                f"The {len(numbers):,} different weights have no common denominator of less than {_MOST_BITS:,} bits",
                "Round them to so many decimals",
            )
    whole = [(int(number * unit), count) for number, count in numbers.items()]
    return (
        sum(count for _, count in whole),
        sum(number * count for number, count in whole),
        sum(number * number * count for number, count in whole),
    )


OUTSIDE = ("refuse", "cut")
ROUNDING = ("refuse", "nearest")

_MOST = 2**62
"""Whole numbers below this are computed with in arrays; larger ones one by one."""


@withheld
@dataclass(frozen=True)
class WeightEffects:
    """What a rule does to the weights of a file: numbers of records. Confidential: counted from the data."""

    records: int
    missing: int
    not_positive: int
    below: int
    """Below the lower bound; weights of 0 or less are not among them."""
    above: int
    off_lattice: int
    """Within the bounds, but no multiple of the step after the shrinking."""

    def __str__(self) -> str:
        said = (
            (self.missing, "have no weight"),
            (self.not_positive, "have a weight of 0 or less"),
            (self.below, "have a weight below the bounds"),
            (self.above, "have a weight above the bounds"),
            (self.off_lattice, "have a weight between two multiples of the step"),
        )
        lines = [f"CONFIDENTIAL: counted from the data. Of {self.records:,} records,"]
        return "\n".join(lines + [f"  {count:,} {words}" for count, words in said])


@dataclass(frozen=True)
class WeightRule:
    """A published rule for weights: bounds, a step, and what happens to weights that do not fit them.

    >>> rule = WeightRule(1, 50, "0.5", outside="cut", rounding="nearest")
    >>> rule.apply([75, 125, 130, 9900], scale=100)  # 0.75, 1.25, 1.30 and 99, as multiples of 0.5
    array([  2,   2,   3, 100])
    >>> print(WeightRule(1, 50, "0.5"))
    Weights are at least 1 and at most 50; others are refused. They are whole multiples of 0.5; others are refused.
    """

    lower: Fraction
    upper: Fraction
    step: Fraction
    """Every weight after the rule is a whole multiple of it; so are both bounds."""
    outside: Literal["refuse", "cut"] = "refuse"
    rounding: Literal["refuse", "nearest"] = "refuse"
    shrink: Fraction = Fraction(0)
    """How far each weight is drawn to the centre: 0 not at all, 1 all the way."""
    centre: Fraction | None = None
    """A public weight, such as the size of the population over the number of records."""

    def __post_init__(self) -> None:
        for name, what in (("lower", "The lower bound of weights"), ("upper", "The upper bound of weights")):
            require_number(self, name, what)
        object.__setattr__(self, "step", number(self.step, "The step of weights"))
        object.__setattr__(self, "shrink", number(self.shrink, "The shrinking of weights"))
        if self.centre is not None:
            object.__setattr__(self, "centre", number(self.centre, "The centre of weights"))
        if self.outside not in OUTSIDE:
            raise errors.weight_rule("outside is not known", f"Choose one of {', '.join(OUTSIDE)}")
        if self.rounding not in ROUNDING:
            raise errors.weight_rule("rounding is not known", f"Choose one of {', '.join(ROUNDING)}")
        self._require_lattice()
        self._require_centre()

    @property
    def multiples(self) -> tuple[int, int]:
        """The smallest and the largest weight after the rule, in multiples of the step."""
        return self._multiple(self.lower), self._multiple(self.upper)

    @property
    def after(self) -> Bounds:
        """Bounds of the weights after the rule, both on the lattice.

        >>> WeightRule(1, 50, 1, shrink="1/2", centre="20.3", rounding="nearest").after
        Bounds(low=Fraction(11, 1), high=Fraction(35, 1))
        """
        low, high = self.multiples
        return Bounds(low * self.step, high * self.step)

    def apply(self, weights: ArrayLike, scale: int, missing: ArrayLike | None = None) -> NDArray[np.int64]:
        """The weights after the rule, as whole multiples of the step, record by record.

        Parameters
        ----------
        weights
            Whole numbers: the weight of each record times ``scale``.
        scale
            How many of them make 1; 100 means that weights are given in hundredths.
        missing
            True for each record that has no weight; what stands in its place is not looked at.
        """
        return self.applied(weights, scale, missing)[0]

    def applied(
        self, weights: ArrayLike, scale: int, missing: ArrayLike | None = None
    ) -> tuple[NDArray[np.int64], WeightEffects]:
        """What :meth:`apply` and :meth:`effects` give, of one look at the weights."""
        multiples, found = self._looked_at(weights, scale, missing)
        if found.missing:
            raise errors.SurveyError(
                "weight-missing",
                f"{found.missing:,} records have no weight.",
                "Give each record a weight, or leave out of the file what is not in the sample.",
            )
        if found.not_positive:
            raise errors.SurveyError(
                "weight-not-positive",
                f"{found.not_positive:,} records have a weight of 0 or less.",
                "Leave out of the file what is not in the sample; weights are positive.",
            )
        if self.outside == "refuse" and (count := found.below + found.above):
            raise errors.SurveyError(
                "weight-outside",
                f"{count:,} records have a weight outside the bounds {written(self.lower)} to {written(self.upper)} "
                "of the rule.",
                "State other bounds from public knowledge, never from these records, or cut weights to them (outside "
                '= "cut").',
            )
        if self.rounding == "refuse" and found.off_lattice:
            raise errors.weight_off_lattice(found.off_lattice, written(self.step), self.shrink > 0)
        return multiples, found

    def effects(self, weights: ArrayLike, scale: int, missing: ArrayLike | None = None) -> WeightEffects:
        """How many records the rule refuses, cuts or rounds. Nothing is refused here; the counts are confidential."""
        return self._looked_at(weights, scale, missing)[1]

    def __str__(self) -> str:
        lower, upper, step = written(self.lower), written(self.upper), written(self.step)
        said = [
            f"Weights below {lower} are raised to {lower}, and weights above {upper} are cut to {upper}."
            if self.outside == "cut"
            else f"Weights are at least {lower} and at most {upper}; others are refused."
        ]
        if self.shrink == 1:
            said.append(f"Each weight is then {written(self.centre or 0)}, whatever it was.")
        elif self.shrink:
            said.append(
                f"Each weight is then {written(1 - self.shrink)} of itself plus {written(self.shrink)} of "
                f"{written(self.centre or 0)}."
            )
        said.append(
            f"They are rounded to the nearest multiple of {step}, ties to the even one."
            if self.rounding == "nearest"
            else f"They are whole multiples of {step}; others are refused."
        )
        return " ".join(said)

    # -- how it is computed ----------------------------------------------------------------------------------------

    def _shrunk(self, weight: Fraction) -> Fraction:
        return (1 - self.shrink) * weight + self.shrink * (self.centre or 0)

    def _multiple(self, weight: Fraction) -> int:
        """What a weight within the bounds is after the rule, in multiples of the step."""
        return round(self._shrunk(weight) / self.step)  # of a Fraction: to the nearest, ties to the even one

    def _looked_at(
        self, weights: ArrayLike, scale: int, missing: ArrayLike | None
    ) -> tuple[NDArray[np.int64], WeightEffects]:
        """Weights after the rule; where one would be refused, its multiple means nothing."""
        given = _whole(weights)
        if type(scale) is not int or scale < 1:
            raise errors.weights_not_whole("have a scale that is no positive whole number")
        gone = _mask(missing, len(given))
        # Whole numbers are below a bound if and only if they are below the next whole number above it.
        least, most = math.ceil(self.lower * scale), math.floor(self.upper * scale)
        known = np.ones(len(given), bool) if gone is None else ~gone
        wrong = known & (given <= 0)
        known &= ~wrong
        below, above = known & (given < least), known & (given > most)
        inside = known & ~below & ~above
        multiples, exact = self._within(np.where(inside, given, 0), scale)
        lowest, highest = self.multiples
        multiples[below], multiples[above] = lowest, highest
        missed = 0 if gone is None else int(gone.sum())
        counts = (int(one.sum()) for one in (wrong, below, above, inside & ~exact))
        return multiples, WeightEffects(len(given), missed, *counts)

    def _within(self, given: NDArray[np.int64], scale: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Weights within the bounds after the rule, and which of them were on the lattice.

        In multiples of the step a weight of v / scale is (slope v + shift) / unit, all of them whole numbers.
        """
        by, plus = (1 - self.shrink) / (scale * self.step), self._shrunk(Fraction(0)) / self.step
        unit = math.lcm(by.denominator, plus.denominator)
        slope, shift = int(by * unit), int(plus * unit)
        largest = int(given.max(initial=1))
        if max(slope * largest + shift, 2 * unit) < _MOST:
            return nearest(given * slope + shift, unit)
        different, where = np.unique(given, return_inverse=True)
        found, exact = nearest(different.astype(object) * slope + shift, unit)
        return found[where], exact[where]

    def _require_lattice(self) -> None:
        if self.step <= 0:
            raise errors.weight_rule("its step is not positive", "Give a step such as 1 or '0.01'")
        if self.lower <= 0:
            raise errors.weight_rule("its lower bound is not positive", "Give the smallest weight that is used")
        if self.lower > self.upper:
            raise errors.weight_rule("its lower bound is above the upper one", "Give the lower bound first")
        for one in (self.lower, self.upper):
            if (one / self.step).denominator != 1:
                problem = f"its bound {written(one)} is no whole multiple of the step {written(self.step)}"
                raise errors.weight_rule(problem, "State bounds on the lattice, or a finer step")
        if self.upper / self.step >= _MOST:
            raise errors.weight_rule("its upper bound has 2^62 steps or more", "State a coarser step")

    def _require_centre(self) -> None:
        if not 0 <= self.shrink <= 1:
            raise errors.weight_rule("its shrinking is not between 0 and 1", "Give 0 for none, 1 for equal weights")
        if self.shrink and self.centre is None:
            raise errors.weight_rule(
                "it draws weights to a centre and names none",
                "Give a public centre, such as the size of the population over the number of records",
            )
        if self.centre is not None and not self.lower <= self.centre <= self.upper:
            raise errors.weight_rule("its centre is outside its bounds", "Give a centre between them")
        if self.rounding == "refuse" and any(
            (self._shrunk(one) / self.step).denominator != 1 for one in (self.lower, self.upper)
        ):
            raise errors.weight_rule(
                "it draws its bounds to where no multiple of the step is",
                'Round to the step (rounding = "nearest"), or choose another centre or another step',
            )


def nearest(numerators: NDArray[Any], unit: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Quotients rounded to the nearest whole number, ties to the even one, and which of them were whole."""
    if unit == 1:
        return numerators.astype(np.int64), np.ones(len(numerators), bool)
    quotients = numerators // unit
    rest = numerators - quotients * unit
    up = (2 * rest > unit) | ((2 * rest == unit) & (quotients % 2 == 1))
    return (quotients + up).astype(np.int64), np.asarray(rest == 0, bool)


def _whole(weights: ArrayLike) -> NDArray[np.int64]:
    try:
        given = np.asarray(weights)
    except (ValueError, TypeError, OverflowError):
        raise errors.weights_not_whole("are not an array") from None
    if given.ndim != 1:
        raise errors.weights_not_whole("are not one number for each record")
    if not len(given):
        return np.empty(0, np.int64)
    if given.dtype.kind not in "iu":
        raise errors.weights_not_whole("are not whole numbers of at most 64 bits")
    if given.dtype.kind == "u" and int(given.max()) >= 2**63:
        raise errors.weights_not_whole("are larger than 64 bits hold")
    return given.astype(np.int64, copy=False)


def _mask(missing: ArrayLike | None, records: int) -> NDArray[np.bool_] | None:
    if missing is None:
        return None
    mask = np.asarray(missing)
    if mask.dtype != np.bool_ or mask.shape != (records,):
        raise errors.weights_not_whole("do not fit the mask of missing ones, which has True or False for each record")
    return mask
