"""How much a weighted estimate can change if one unit's record changes, in each setting, from public facts alone.

Every fact must hold for every dataset that is compared, and must be known without looking at the confidential
data: a bound that was read from the data would itself reveal something. All numbers are exact fractions.

The noise of a mechanism is in proportion to the sensitivity (Definition 6.4.2, Theorem 6.4.3). It is taken over all
pairs of datasets that the public facts allow and that differ in one record, never from the data. Where the design
weights are fixed the bounds are those of sections 6.4.3 to 6.4.5 and 7.4; where a record may change all weights (Table
6.2) they are the larger ones of section 6.4.5. What nobody has bounded is refused.

The source's bound is printed for all pairs of samples and holds for pairs that differ in one record; that is how it is
used here. The two readings of a change are different numbers: with weights 1 and 10 and both values 1, a total changes
by 9 if the unit is replaced, and not at all if only its value may change.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from stirred import errors
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.spec.exact import near
from stirred.survey.plan.settings import Change, Setting, require_change


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
        require_sizes(self)
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


def require_number(facts: Any, name: str, what: str) -> None:
    """Make a field that must be stated an exact number."""
    if getattr(facts, name) is None:
        raise errors.survey_bounds_missing(f"{what[0].lower()}{what[1:]}")
    object.__setattr__(facts, name, number(getattr(facts, name), what))


def require_sizes(facts: Any) -> None:
    """Raise unless the fewest and the most records of a sample are such numbers."""
    for given in (facts.fewest, facts.most):
        if type(given) is not int or given < 1:
            raise errors.survey_fact("The number of records in a sample", "is a whole number, at least 1")


KINDS = ("horvitz-thompson", "hajek", "ratio", "post-stratified")
TARGETS = ("total", "mean", "proportion", "ratio")


@dataclass(frozen=True)
class PostStratum:
    """One post-stratum: its public number of units, the fewest of its records in any sample, bounds of its values."""

    population: Fraction
    fewest: int
    value: Bounds

    def __post_init__(self) -> None:
        object.__setattr__(self, "population", positive(self.population, "The size of a post-stratum"))
        if type(self.fewest) is not int or self.fewest < 1:
            raise errors.denominator_may_be_zero("a post-stratum may hold no record of the sample")


@dataclass(frozen=True)
class Estimator:
    """A weighted estimate of one number.

    ``horvitz-thompson`` is the sum of weight times value; ``hajek`` that sum over the sum of weights; ``ratio`` the
    sum of weight times value over that of weight times size; ``post-stratified`` the sum, over post-strata, of their
    known size times their weighted mean.
    """

    kind: Literal["horvitz-thompson", "hajek", "ratio", "post-stratified"] = "horvitz-thompson"
    target: Literal["total", "mean", "proportion", "ratio"] = "total"
    population: Fraction | None = None
    """The public number of units: divides a Horvitz-Thompson or ratio mean, multiplies a Hajek total."""
    size_total: Fraction | None = None
    """The public total of the sizes, which multiplies a ratio."""
    post_strata: tuple[PostStratum, ...] = ()
    units_stay: bool = False
    """The post-stratum of a unit stands in the frame, so that other answers do not move it to another one."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise errors.survey_fact("The kind of an estimator", f"is one of {', '.join(KINDS)}")
        if self.target not in TARGETS or (self.target == "ratio") > (self.kind == "ratio"):
            raise errors.survey_fact("The target of an estimator", "is total, mean or proportion, or ratio for a ratio")
        for name in ("population", "size_total"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, positive(given, "A public total"))
        object.__setattr__(self, "post_strata", tuple(self.post_strata))
        if (self.kind == "post-stratified") != bool(self.post_strata):
            raise errors.survey_fact("A post-stratified estimate, and no other,", "has post-strata")
        if self.population is None and self._needs_population():
            raise errors.survey_bounds_missing("the public number of units in the population")
        if self.size_total is None and self.kind == "ratio" and self.target != "ratio":
            raise errors.survey_bounds_missing("the public total of the sizes")

    def _needs_population(self) -> bool:
        averaged = self.target in ("mean", "proportion")
        return averaged if self.kind in ("horvitz-thompson", "ratio") else self.kind == "hajek" and not averaged

    @property
    def factor(self) -> Fraction:
        """What the sum, mean or ratio is multiplied with; public."""
        averaged = self.target in ("mean", "proportion")
        if self.kind == "post-stratified":
            return 1 / sum((one.population for one in self.post_strata), Fraction(0)) if averaged else Fraction(1)
        if self.kind == "hajek":
            return Fraction(1) if averaged else Fraction(self.population or 1)
        found = Fraction(self.size_total or 1) if self.kind == "ratio" and self.target != "ratio" else Fraction(1)
        return found / Fraction(self.population or 1) if averaged else found

    def __str__(self) -> str:
        names = {"horvitz-thompson": "Horvitz-Thompson", "hajek": "Hajek"}
        of = "" if self.target == self.kind else f" {self.target}"
        return f"{names.get(self.kind, self.kind)}{of}"


@dataclass(frozen=True)
class Sensitivity:
    """The largest change of an estimate, how it was found, and what it takes for granted."""

    value: Fraction
    estimator: Estimator
    setting: Setting
    change: Change
    weights_fixed: bool
    attained: bool
    """Whether two datasets within the stated bounds differ by exactly this; otherwise it is an upper bound."""
    rule: str
    source: str
    assumes: tuple[str, ...] = ()

    def laplace_scale(self, epsilon: Any) -> Fraction:
        """The scale of Laplace noise for this epsilon (Definition 6.4.2)."""
        return self.value / positive(epsilon, "Epsilon")

    def noise_sd(self, epsilon: Any) -> float:
        """The standard deviation of that noise: the root of 2, times its scale."""
        return math.sqrt(2) * near(self.laplace_scale(epsilon))


def sensitivity(estimator: Estimator, facts: SurveyFacts, setting: Setting, change: Change) -> Sensitivity:
    """The sensitivity of an estimate in a setting, for one reading of a unit's change.

    >>> from stirred.survey.plan.settings import setting
    >>> frame = SurveyFacts(Units.listed([1, 10], [1, 1]), fewest=1, most=1, everybody_responds=True)
    >>> at = setting("target sample", "frame")
    >>> [int(sensitivity(Estimator(), frame, at, change).value) for change in ("unit", "value")]
    [9, 0]
    """
    require_change(change)
    _require_bounded(estimator, facts, setting)
    fixed, _ = weights_fixed(facts, setting)
    case = _Case(facts, setting, change, fixed, _may_vanish(facts, setting))
    found = {
        "horvitz-thompson": _horvitz_thompson,
        "hajek": _ratio,
        "ratio": _ratio,
        "post-stratified": _post_stratified,
    }[estimator.kind](estimator, case)
    return Sensitivity(
        found.value * estimator.factor,
        estimator,
        setting,
        change,
        fixed,
        found.attained,
        found.rule,
        found.source,
        _assumed(case),
    )


def weights_fixed(facts: SurveyFacts, setting: Setting) -> tuple[bool, str]:
    """Whether other units keep their weights if one record changes, and why (Table 6.2)."""
    if facts.weight.width == 0:
        return True, "All weights are equal, whatever the data."
    if facts.weights == "final":
        return False, "Final weights look at all records and can never be treated as fixed (Table 6.2)."
    if setting.frame_invariant:
        return True, f"With the {setting.fixed_through} held fixed, design weights do not change (Table 6.2)."
    if setting.level != "population" and not facts.design_depends_on_frame:
        return True, "In this design one record does not change the chances of any other (section 6.4.3)."
    return False, "One record may change the chances of all others, and so all design weights (Table 6.2)."


# -- which pairs of datasets are looked at ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Case:
    facts: SurveyFacts
    setting: Setting
    change: Change
    fixed: bool
    may_vanish: bool
    """The changed record may leave the data, since the unit does not answer, or join them."""

    @property
    def keeps_weight(self) -> bool:
        """Whether the unit stays, with its weight. A unit that leaves the frame, as one of the population may, has
        another one sampled in its place."""
        return self.change == "value" and self.fixed and self.setting.level != "population"

    def groups(self, units: tuple[Units, ...]) -> list[tuple[Units, ...]]:
        """Units among which one may be replaced by another: one unit, the units of a stratum, or all."""
        if self.keeps_weight:
            return [(one,) for one in units]
        if not _stays_in_stratum(self):
            return [units]
        strata = dict.fromkeys(one.stratum for one in units)
        return [tuple(one for one in units if one.stratum == stratum) for stratum in strata]


@dataclass(frozen=True)
class _Found:
    value: Fraction
    attained: bool
    rule: str
    source: str


def _require_bounded(estimator: Estimator, facts: SurveyFacts, setting: Setting) -> None:
    if not facts.once:
        raise errors.SurveyError(
            "survey-unit-twice",
            "A unit may stand in the sample more than once, and the sensitivities here are for one record per unit.",
            "Sample without replacement, or merge the records of a unit.",
        )
    if facts.weights == "final" and not facts.weights_cut_by_rule:
        raise errors.weights_unbounded()
    depends = not facts.population_changes_one if setting.level == "population" else facts.design_depends_on_frame
    if setting.level in ("population", "frame") and depends:
        raise errors.SurveyError(
            "survey-sampling-depends",
            f"At the level of the {setting.level}, changing one record may change who is sampled, so that no bound on "
            "the estimate is known.",
            "Start the mechanism at the target sample, or use a design that one record does not change.",
        )
    if estimator.target == "proportion":
        bounds = [one.value for one in estimator.post_strata] or [facts.value]
        if any(one.low < 0 or one.high > 1 for one in bounds):
            raise errors.survey_fact("The value of a proportion", "lies between 0 and 1")


def _may_vanish(facts: SurveyFacts, setting: Setting) -> bool:
    if setting.level == "responding sample":
        return False
    return setting.level == "population" or not facts.everybody_responds


def _stays_in_stratum(case: _Case) -> bool:
    """Whether a replaced unit has one of its own stratum in its place (section 6.4.4).

    A design fixes how many are selected in each stratum, not how many answer: the size of a stratum in the responding
    sample is fixed only if everybody responds.
    """
    held = case.setting.level == "target sample" or case.facts.everybody_responds
    return case.facts.stratum_sizes_fixed and case.setting.frame_invariant and held


def _assumed(case: _Case) -> tuple[str, ...]:
    said = ["The bounds and sizes hold for every dataset that is compared, and are known without the data."]
    if not case.setting.frame_invariant:
        said.append("They hold in every frame that there could have been: those of the realised frame do not suffice.")
    made = {stage.name for stage in case.setting.pipeline.steps}
    if "responding sample" in made and not case.facts.everybody_responds:
        said.append("Whether a unit answers does not depend on other units' records.")
    if "target sample" in made:
        said.append("Changing one record changes at most one record of the sample, however the dice fall.")
    said.append("Editing and imputation treat each record on its own.")
    return tuple(said)


# -- one function for each kind of estimate ------------------------------------------------------------------------


def _horvitz_thompson(estimator: Estimator, case: _Case) -> _Found:
    """Own change: weight times value between its extremes. Where weights are not fixed, each of the n - 1 others adds
    at most (max w - min w) max |x|."""
    own = Fraction(0)
    for group in case.groups(case.facts.units):
        if case.keeps_weight:
            products = {one.weight.high * value for one in group for value in one.value.ends}
        else:
            products = {weight * value for one in group for weight, value in _corners(one.weight, one.value)}
        if case.may_vanish:
            products.add(Fraction(0))
        own = max(own, max(products) - min(products))
    rule = "max w (max x - min x)" if case.keeps_weight else "max(w x) - min(w x)"
    rule += ", 0 among them" if case.may_vanish else ""
    attained = not case.may_vanish or case.facts.fewest < case.facts.most
    if case.fixed:
        return _Found(own, attained, rule, "section 7.4" if case.keeps_weight else "section 6.4.5")
    weight, value = case.facts.weight, case.facts.value
    others = (case.facts.most - 1) * weight.width * max(map(abs, value.ends))
    rule += " + (n - 1) (max w - min w) max |x|"
    return _Found(own + others, attained and len(case.facts.units) == 1, rule, "section 6.4.5")


def _ratio(estimator: Estimator, case: _Case) -> _Found:
    """A ratio is a mean of the units' own ratios, each with the weight times the size for its weight; a weighted mean
    is a ratio whose sizes are 1. It moves by at most its record's share of the weight, times how far values lie apart.
    """
    facts, units, mean = case.facts, case.facts.units, estimator.kind == "hajek"
    if mean:
        units = tuple(replace(one, size=Bounds(Fraction(1), Fraction(1))) for one in units)
    if any(_size(one).low <= 0 for one in units):
        raise errors.denominator_may_be_zero("the denominator of the ratio may be zero")
    attained = mean and len(units) == 1
    if case.fixed:
        rule, source = _OWN_SHARE_OF_MEANS if mean else _OWN_SHARE
        return _Found(_largest_step(case, units), attained, rule, source)
    sizes = around([_size(one) for one in units])
    spread = facts.weight.high * sizes.high / (facts.weight.low * sizes.low)
    value = _ratios(units).width * _largest_share(spread, facts.fewest, facts.most)
    return _Found(value, attained, _ALL_CHANGE, "derived; all weights within their bounds")


def _post_stratified(estimator: Estimator, case: _Case) -> _Found:
    """A change stays within one post-stratum, or takes a record out of one and puts it into another."""
    weight = case.facts.weight
    spread = weight.high / weight.low

    def moved(one: PostStratum, others: int) -> Fraction:
        """The largest change of this post-stratum's part, if one of its records changes beside so many others."""
        if not case.fixed:
            share = _largest_share(spread, others + 1, max(others + 1, case.facts.most))
        else:
            share = weight.high / (weight.high + others * weight.low)
        return one.population * one.value.width * share

    def left(one: PostStratum) -> Fraction:
        """The largest change of a part none of whose records changes; its weights may."""
        return Fraction(0) if case.fixed else one.population * one.value.width * (spread - 1) / (spread + 1)

    strata = estimator.post_strata
    rest = sum(map(left, strata), Fraction(0))
    value = max(rest - left(one) + moved(one, one.fewest - 1) for one in strata)
    stays = estimator.units_stay and case.keeps_weight and case.setting.frame_invariant
    if len(strata) > 1 and not stays:
        # A record that leaves a post-stratum leaves the fewest behind, and one that joins finds as many.
        gains = sorted((moved(one, one.fewest) - left(one) for one in strata), reverse=True)
        value = max(value, rest + gains[0] + gains[1])
    rule = "over post-strata that a record leaves, joins or stays in: N_g (max x - min x) times its share of the weight"
    return _Found(value, False, rule, "derived; upper bound over post-strata")


_OWN_SHARE = (
    "(max y/z - min y/z) times a record's largest share of the denominator",
    "derived; upper bound over corners",
)
_OWN_SHARE_OF_MEANS = ("(max x - min x) max w / (max w + (n - 1) min w)", "derived from section 7.4")
_ALL_CHANGE = "(max - min) times the largest part of the weight that can move from low to high values"


def _largest_step(case: _Case, units: tuple[Units, ...]) -> Fraction:
    """An upper bound on the change of sum(w y) / sum(w z), other records and their weights being the same.

    With T and Z the sums of the others and m = T/Z, a record moves the ratio from m by w (y - m z) / (Z + w z). That
    is monotone in w, y, z and Z, and a difference of two such steps is linear in m: its corners suffice. The bound is
    attained if all units have the same bounds and z = 1.
    """
    facts, means = case.facts, _ratios(units).ends
    sizes = around([_size(one) for one in units])
    least, greatest = facts.weight.low * sizes.low, facts.weight.high * sizes.high
    sums = (facts.fewest - 1) * least, (facts.most - 1) * greatest
    largest = Fraction(0)
    if case.keeps_weight:
        for one, mean in itertools.product(units, means):
            steps = {(value - mean * size, size) for value, size in _corners(one.value, _size(one))}
            rest = sums[0] / one.weight.high, sums[1] / one.weight.low
            changes = [_largest_difference(after, before, rest) for after, before in itertools.product(steps, steps)]
            if case.may_vanish:  # at least the fewest remain
                remain = facts.fewest * least / one.weight.high
                changes += [abs(step) / (remain + size) for step, size in steps]
            largest = max(largest, *changes)
        return largest
    for group, mean in itertools.product(case.groups(units), means):
        moves = {Fraction(0)} if case.may_vanish else set()
        for one in group:
            for (weight, value), size, rest_of in itertools.product(
                _corners(one.weight, one.value), _size(one).ends, sums
            ):
                moves.add(weight * (value - mean * size) / (rest_of + weight * size))
        largest = max(largest, max(moves) - min(moves))  # each with a rest of its own
    return largest


def _largest_difference(
    after: tuple[Fraction, Fraction], before: tuple[Fraction, Fraction], rest: tuple[Fraction, Fraction]
) -> Fraction:
    """The largest a/(t+z) - b/(t+y) for t in ``rest``, of (a, z) and (b, y); inside, its root is rounded up."""
    (a, z), (b, y) = after, before
    ends = max(a / (t + z) - b / (t + y) for t in rest)
    rises, falls = (b / (t + y) ** 2 - a / (t + z) ** 2 for t in rest)
    if not rises > 0 > falls:
        return ends
    # There a (t+y)^2 = b (t+z)^2, and the difference is (sqrt|a| - sqrt|b|)^2 / |z - y|.
    product = abs(a * b) * _FINE**2
    root = Fraction(math.isqrt(math.floor(product)), _FINE)
    return max(ends, (abs(a) + abs(b) - 2 * root) / abs(z - y))


_FINE = 10**15
"""Roots are rounded down to a multiple of one over this."""


def _largest_share(spread: Fraction, fewest: int, most: int) -> Fraction:
    """The largest change of a weighted mean of numbers in [0, 1] if one number changes and all weights may, between 1
    and ``spread``, for some number of records from ``fewest`` to ``most``.

    With n records, of which k others are 1, it is (k+1) r / ((k+1) r + n-1-k) - k / (k + (n-k) r). This is concave in
    k and symmetric about (n-1)/2. With k real its largest value falls with n, and an odd n attains it: the fewest n
    and the next one suffice.
    """

    def largest(n: int) -> Fraction:
        k = (n - 1) // 2
        return (k + 1) * spread / ((k + 1) * spread + n - 1 - k) - k / (k + (n - k) * spread)

    return max(largest(n) for n in (fewest, fewest + 1) if n <= most)


def _ratios(units: tuple[Units, ...]) -> Bounds:
    """Bounds of value over size."""
    found = [value / size for one in units for value, size in _corners(one.value, _size(one))]
    return Bounds(min(found), max(found))


def _size(unit: Units) -> Bounds:
    if unit.size is None:
        raise errors.survey_bounds_missing("bounds of the variable in the denominator")
    return unit.size


def _corners(first: Bounds, second: Bounds) -> Iterable[tuple[Fraction, Fraction]]:
    return itertools.product(first.ends, second.ends)


def positive(value: Any, what: str) -> Fraction:
    """An exact number above 0."""
    found = number(value, what)
    if found <= 0:
        raise errors.survey_fact(what, "is positive")
    return found
