"""Public facts about a survey that a sensitivity may use: bounds, sizes, and how design and weights depend on the data.

Everything here must hold for every dataset that is compared, and must be known without looking at the confidential
data: a bound that was read from the data would itself reveal something. All numbers are exact fractions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction


@dataclass(frozen=True)
class Bounds:
    """All numbers from ``low`` to ``high``.

    >>> Bounds(0, "2.5").width
    Fraction(5, 2)
    """

    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", number(self.low, "A lower bound"))
        object.__setattr__(self, "high", number(self.high, "An upper bound"))
        if self.low > self.high:
            raise errors.survey_fact("A lower bound", "is at most the upper bound")

    @property
    def width(self) -> Fraction:
        """How far apart two values can be."""
        return self.high - self.low

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """Both ends."""
        return self.low, self.high


@dataclass(frozen=True)
class Units:
    """Units with the same bounds: between which limits their weights, values and sizes lie.

    List one for all units, one for each stratum, or one for each unit of the frame. Every record that there could have
    been must lie within one of them; where the frame is not held fixed, that is more than the records of this frame. A
    value that is held fixed, since it stands in the frame, has equal bounds; answers to the survey do not.
    """

    weight: Bounds
    value: Bounds
    size: Bounds | None = None
    """The variable in the denominator of a ratio."""
    stratum: str = ""

    def __post_init__(self) -> None:
        for what, bounds in (("weight", self.weight), ("value", self.value)):
            if bounds is None:
                raise errors.survey_bounds_missing(f"bounds of the {what}")
        if self.weight.low <= 0:
            raise errors.survey_fact("A weight", "is positive")

    @classmethod
    def listed(cls, weights: list[Any], values: list[Any], strata: list[str] | None = None) -> tuple[Units, ...]:
        """One for each unit of a frame, weights and values as they are."""
        if len(weights) != len(values) or (strata is not None and len(strata) != len(weights)):
            raise errors.survey_fact("A listed frame", "has a weight, a value and a stratum for each unit")
        labels = strata or [""] * len(weights)
        return tuple(
            cls(Bounds(weight, weight), Bounds(value, value), stratum=label)
            for weight, value, label in zip(weights, values, labels, strict=True)
        )


@dataclass(frozen=True)
class SurveyFacts:
    """What is publicly known about a survey and its design.

    ``fewest`` and ``most`` are the numbers of records from which an estimate may be made. What is not known is left
    as it is: every default is the careful one.
    """

    units: tuple[Units, ...]
    fewest: int
    most: int
    weights: Literal["design", "final"] = "design"
    """``final`` weights are adjusted for nonresponse or calibrated: every record has a part in each of them."""
    weights_cut_by_rule: bool = False
    """Final weights are cut at the stated bounds by a published rule."""
    design_depends_on_frame: bool = True
    """Changing a record of the frame may change other units' chances of selection, or who is selected."""
    population_changes_one: bool = False
    """Changing a record of the population changes at most one record of the sample, however the dice fall."""
    everybody_responds: bool = False
    """Every selected unit answers, whatever its record."""
    stratum_sizes_fixed: bool = False
    """The design fixes the number of sampled units in each stratum."""
    once: bool = True
    """No unit can stand in the sample more than once."""
    title: str = field(default="A survey", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", tuple(self.units))
        if not self.units:
            raise errors.survey_bounds_missing("bounds of weights and values")
        if self.weights not in ("design", "final"):
            raise errors.survey_fact("The kind of weights", "is 'design' or 'final'")
        for name in ("fewest", "most"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise errors.survey_fact("The number of records in a sample", "is a whole number, at least 1")
        if self.fewest > self.most:
            raise errors.survey_fact("The fewest records", "are at most as many as the most")

    @property
    def weight(self) -> Bounds:
        """Bounds of all weights."""
        return around([one.weight for one in self.units])

    @property
    def value(self) -> Bounds:
        """Bounds of all values."""
        return around([one.value for one in self.units])


def around(several: list[Bounds]) -> Bounds:
    """The smallest bounds that hold several."""
    return Bounds(min(one.low for one in several), max(one.high for one in several))


def number(value: Any, what: str) -> Fraction:
    """An exact number, of either sign."""
    try:
        return as_fraction(value)
    except NOT_A_NUMBER:
        raise errors.survey_fact(what, "is a finite number, such as 12, '0.05' or '1/3'") from None
