"""Measures weighted sums and their standard errors with exact noise: how far one record moves them, and the draw.

A record adds w x to one cell of a query and nothing to the others. If it is replaced, or gives other answers, it may
take w x out of one cell and put w' x' into another: then a cell needs noise for twice its largest |w x|, half of the
budget for the cell that is left and half for the one that is entered. If its cell cannot change, the noise is for
max(w x) - min(w x); Gaussian noise also covers a record that could leave its cell and stays. Where one record may
change the weights of all others (Table 6.2), each of the n - 1 others adds (max w - min w) max |x| (section 6.4.5), and
its own weight may change too, even if only its answers do. Discrete Laplace noise of scale d / epsilon on whole numbers
that move by d in total satisfies epsilon-differential privacy; discrete Gaussian noise of variance d^2 / (2 rho) on a
vector that moves by d in length satisfies rho-zCDP.

The invariants a reader must know: noise follows from the plan, and no number for it is read from the data; every cell
of every query is measured, also those that no record is in, so that which ones are there says nothing about the data.

Standard errors of the sampling design are measured with noise of their own. The linearised variance of a weighted total
is the sum, over strata h of n selected primary units of N, of (1 - n/N) n/(n-1) times the sum of (T - mean T)^2 over
their totals T; primary units without a record have T = 0. Its root is the length of a vector that is linear in the
totals. A record that adds e to one primary unit therefore moves the standard error by at most |e|, and one that leaves
a cell for another moves two standard errors by at most its largest |e| each: as much as it moves the totals themselves.
If it leaves one primary unit for another of its cell and stratum, the standard error moves by at most the root of
n/(n-1), at most that of 2, times the length of the change, which is at most the root of 2 times |e|: again 2 |e|. Where
each primary unit is selected independently (Poisson sampling), the variance is at most the sum of T^2, with 1 - n/N and
n/(n-1) both 1 and no mean taken off: the length of the vector of totals itself, which moves by no more. For means,
shares and ratios e is the residual w (y - R z) around the value R that was measured before, which is public by then.

A record of value v counts in the shares of all values of its group: w (1 - p_v) in its own and w p_u in the others. The
centres p of a group are made so that they add up to at most 1, so all of this is at most 2 w, and in length at most the
root of 2 times w. A record that is replaced is taken out once and put in once: 4 w, and 8 w^2 in squares.

Where one record may change the weights of the n - 1 others, each of them moves its standard errors by at most its own
change, (max w - min w) times the largest residual, since a length grows by at most the length of what is added.

The residuals are rounded record by record to 1/1024 of their largest possible size, so that everything is whole numbers
and the root is rounded down exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.noise import RandomSource, discrete_gaussian, discrete_laplace
from stirred.spec.exact import near
from stirred.survey.checking.against_plan import require_design
from stirred.survey.data import LARGEST, Records, Whole
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import PublishSection, QuerySection
from stirred.survey.plan.sensitivity import Bounds, SurveyFacts, Units, weights_fixed
from stirred.survey.plan.settings import LEVELS, Setting, setting
from stirred.tables.exact_numbers import ExactNumbers

ROOT_OF_TWO = Fraction(17, 12)
"""An upper bound of the root of 2, less than one part in five hundred above it."""

LARGEST_SCALE = 1 << 40
"""The widest noise that is drawn, in multiples of a query's step: a scale or a standard deviation."""

Classes = NDArray[np.int64]

LEAST = 1e-12
"""Smaller variances, in steps of the lattice, are told as this: such noise is hardly ever met, and least squares need
positive ones."""


@dataclass(frozen=True)
class Reach:
    """How far one record can move a vector of weighted sums, by class of cells: strata where their weights differ."""

    moves: bool
    """Whether a record may leave its cell for another."""
    largest: tuple[Fraction, ...]
    """By class, the largest |w x|."""
    width: tuple[Fraction, ...]
    """By class, max(w x) - min(w x) of a record that stays in its cell."""
    others: Fraction
    """How much all other records may add, where one record may change their weights."""

    @property
    def total(self) -> tuple[Fraction, ...]:
        """By class, by how much the absolute changes of all cells can add up, if all noise is that of this class."""
        own = [2 * one for one in self.largest] if self.moves else self.width
        return tuple(one + self.others for one in own)

    @property
    def square(self) -> tuple[Fraction, ...]:
        """By class, an upper bound of the sum of the squared changes of all cells, likewise."""
        if not self.moves:
            return tuple((one + self.others) ** 2 for one in self.width)
        both = zip(self.largest, self.width, strict=True)
        if not self.others:  # a record that could move may also stay, and change from -|w x| to |w x|
            return tuple(max(2 * one**2, width**2) for one, width in both)
        return tuple((max(ROOT_OF_TWO * one, width) + self.others) ** 2 for one, width in both)


@dataclass(frozen=True, eq=False)
class CellNoise:
    """The noise of a query: its law, and its parameter for each class of cells, in multiples of ``step``."""

    law: Literal["laplace", "gaussian"]
    step: Fraction
    parameters: tuple[Fraction, ...]
    """Scales of discrete Laplace noise, or variances of discrete Gaussian noise."""
    class_of: Classes
    """The class of each cell."""

    @property
    def uniform(self) -> bool:
        """Whether all cells have the same noise."""
        return len(self.parameters) == 1

    def draw(self, source: RandomSource) -> NDArray[np.int64]:
        """Exact noise for every cell, in multiples of the step."""
        found = np.zeros(len(self.class_of), dtype=np.int64)
        sampler = discrete_laplace if self.law == "laplace" else discrete_gaussian
        for number, parameter in enumerate(self.parameters):
            here = np.flatnonzero(self.class_of == number)
            found[here] = sampler(parameter, len(here), source)
        return found

    @property
    def variances(self) -> NDArray[np.float64]:
        """The variance of the noise of every cell, in the units of the query."""
        unit = near(self.step) ** 2
        each = np.array([_variance(self.law, near(one)) * unit for one in self.parameters])
        return np.asarray(each[self.class_of])


def _variance(law: str, parameter: float) -> float:
    """The variance of discrete noise; of a Gaussian its parameter, which bounds it. At least :data:`LEAST`."""
    if law == "gaussian":
        return max(parameter, LEAST)
    if parameter > 1e6:  # 2 s^2 - 1/6, to all digits
        return 2 * parameter * parameter
    return max(1 / (2 * math.sinh(0.5 / parameter) ** 2) if parameter > 1e-2 else 0.0, LEAST)


def facts_of(plan: SurveyPlan, of: str | None = None) -> SurveyFacts:
    """The public facts of a plan about its weights and one variable (or a count), for advice and sensitivities."""
    value = Bounds(Fraction(0), Fraction(1)) if of is None else plan.variable(of).bounds
    strata: Sequence[str | None] = [None]
    if plan.design.strata is not None:
        strata = plan.attribute(plan.design.strata).values
    units = tuple(Units(Bounds(*plan.stratum_weights(one)), value, stratum=one or "") for one in strata)
    sample, weights = plan.sample, plan.weights
    most = sample.most
    if most is None and weights_may_move(plan):
        raise errors.survey_bounds_missing("the most records that the sample could have ([sample] most)")
    return SurveyFacts(
        units,
        sample.fewest,
        max(sample.fewest, most or sample.fewest),
        weights="design" if weights is None else weights.kind,
        weights_cut_by_rule=weights is not None and weights.outside == "cut",
        design_depends_on_frame=sample.design_depends_on_frame,
        everybody_responds=sample.everybody_responds,
        stratum_sizes_fixed=sample.stratum_sizes_fixed,
        title=plan.dataset or "A survey",
    )


def setting_of(plan: SurveyPlan) -> Setting:
    """The setting of Table 6.1 in which the plan starts; later starts are treated like the responding sample."""
    level = plan.starts if plan.starts in LEVELS else "responding sample"
    return setting(level, plan.holds_fixed)


def weights_may_move(plan: SurveyPlan) -> str:
    """Why one record may change the weights of others; empty if it cannot."""
    return "" if plan.starts == "weights" else _weights_depend(plan)


def keeps_weight(plan: SurveyPlan) -> bool:
    """Whether the changed record has the same weight in both files: only its answers change, and no weight looks at
    them."""
    return plan.change == "value" and not _weights_depend(plan)


def _weights_depend(plan: SurveyPlan) -> str:
    """Why weights look at answers, or at a frame that may differ; empty if they do not (Table 6.2)."""
    low, high = plan.stratum_weights()
    if low == high:
        return ""
    facts = SurveyFacts(
        (Units(Bounds(low, high), Bounds(0, 1)),),  # type: ignore[arg-type]
        1,
        1,
        weights="design" if plan.weights is None else plan.weights.kind,
        design_depends_on_frame=plan.sample.design_depends_on_frame,
    )
    fixed, why = weights_fixed(facts, setting_of(plan))
    return "" if fixed else why


def stays(plan: SurveyPlan, name: str) -> bool:
    """Whether a record keeps its value of an attribute or recode in all datasets that are compared."""
    attribute = plan.attribute(name)
    if not setting_of(plan).frame_invariant or attribute.name in [one.of for one in plan.imputation]:
        return False  # what is imputed follows from the other answers of the record
    stratum = attribute.name == plan.design.strata
    if plan.change == "value":
        return attribute.in_frame or stratum
    sample = plan.sample
    # A design fixes how many are selected in each stratum, not how many answer.
    return stratum and sample.stratum_sizes_fixed and (plan.starts == "target sample" or sample.everybody_responds)


def may_vanish(plan: SurveyPlan) -> bool:
    """Whether the changed record may have no part in the sums, since its unit does not answer."""
    return plan.starts == "target sample" and not plan.sample.everybody_responds


def reach(plan: SurveyPlan, bounds: Bounds, by: Sequence[str]) -> tuple[Reach, Classes]:
    """How far one record can move the sums of a value with these bounds in the cells by some names; and the class of
    each cell."""
    schema = plan.schema_of(by)
    others = Fraction(0)
    if weights_may_move(plan):
        facts = facts_of(plan)
        others = (facts.most - 1) * facts.weight.width * max(map(abs, bounds.ends))
    free = [name for name in by if not stays(plan, name)]
    moves = math.prod(len(schema.values(name)) for name in free) > 1
    strata = plan.design.strata
    limits = [plan.stratum_weights()]
    class_of = np.zeros(schema.number_of_groups(by), dtype=np.int64)
    if strata is not None and strata in by and not others:
        values = schema.values(strata)
        limits = [plan.stratum_weights(value) for value in values]
        after = math.prod(len(schema.values(name)) for name in list(by)[list(by).index(strata) + 1 :])
        class_of = np.arange(len(class_of)) // after % len(values)
        limits, which = _merged(limits)
        class_of = which[class_of]
    largest, width = [], []
    for low, high in limits:
        largest.append(max(abs(weight * value) for weight in (low, high) for value in bounds.ends))
        width.append(_width(plan, bounds, low, high))
    if len(limits) == 1 and strata is not None and stays(plan, strata):
        width = [max(_width(plan, bounds, *plan.stratum_weights(one)) for one in plan.attribute(strata).values)]
    return Reach(moves, tuple(largest), tuple(width), others), class_of


def _width(plan: SurveyPlan, bounds: Bounds, low: Fraction, high: Fraction) -> Fraction:
    """How far apart w x of a record can be whose cell stays, for weights between two limits."""
    weights = (high,) if keeps_weight(plan) else (low, high)
    ends = [weight * value for weight in weights for value in bounds.ends]
    ends += [Fraction(0)] if may_vanish(plan) else []
    return max(ends) - min(ends)


def query_reach(plan: SurveyPlan, query: QuerySection) -> tuple[Reach, Classes]:
    """How far one record can move the cells of a query, and the class of each cell."""
    bounds = Bounds(Fraction(1), Fraction(1)) if query.of is None else plan.variable(query.of).bounds
    return reach(plan, bounds, query.by)


def query_step(plan: SurveyPlan, query: QuerySection) -> Fraction:
    """The unit of a query: all its sums are whole multiples of it."""
    return plan.weight_step * (1 if query.of is None else plan.variable(query.of).step)


def query_noise(plan: SurveyPlan, query: QuerySection) -> CellNoise:
    """The noise of a query at its share of the budget."""
    found, class_of = query_reach(plan, query)
    if not any(found.total):
        raise errors.survey_plan(
            f"The query '{query.name}'", "must be about something that can change: everything in it is held fixed"
        )
    if not all(found.total):  # cells that cannot change have noise too, that of the others
        found = replace(found, width=tuple(one or max(found.width) for one in found.width))
    return noise_for(plan, found, class_of, query_step(plan, query), plan.share(query))


def noise_for(plan: SurveyPlan, found: Reach, class_of: Classes, step: Fraction, share: Fraction) -> CellNoise:
    """The noise that a share of the budget allows for sums that one record moves so far."""
    budget = plan.budget * share
    if plan.noise == "laplace":
        parameters = tuple(one / (budget * step) for one in found.total)
    else:
        parameters = tuple(one / (2 * budget * step**2) for one in found.square)
    if max(parameters) > (LARGEST_SCALE if plan.noise == "laplace" else LARGEST_SCALE**2):
        raise errors.PlanError(
            "survey-noise",
            "A query or a measured standard error would need noise of more than 2^40 steps of its variable.",
            'State a larger step of its variable, such as 100 for incomes, with rounding = "nearest"; or closer '
            "bounds, or a larger budget.",
        )
    return CellNoise(plan.noise, step, parameters, class_of)


def _merged(limits: Sequence[tuple[Fraction, Fraction]]) -> tuple[list[tuple[Fraction, Fraction]], Classes]:
    """Equal limits once, and for each of the given ones which it is."""
    once = list(dict.fromkeys(limits))
    return once, np.array([once.index(one) for one in limits], dtype=np.int64)


def contributions(records: Records, of: str | None) -> Whole:
    """What each record adds to its cell: its weight, times its value of a variable."""
    return records.weights if of is None else records.weights * records.values[of]


def true_sums(records: Records, query: QuerySection) -> Whole:
    """The sums of a query without noise, in multiples of its step. Confidential."""
    number = records.plan.number_of_cells(query.by)
    return added_up(records.cells(query.by), contributions(records, query.of), number)


def measure(records: Records, source: RandomSource) -> dict[str, Whole]:
    """The noisy sums of all queries: what a release publishes."""
    return {
        query.name: true_sums(records, query) + query_noise(records.plan, query).draw(source)
        for query in records.plan.queries
    }


def added_up(cells: NDArray[np.int64], numbers: NDArray[Any], count: int) -> NDArray[Any]:
    """Exact sums of whole numbers by cell."""
    return ExactNumbers(numbers, 0).added_up(cells, count).whole


FINE = 1024
"""Steps into which the largest residual is divided."""
CENTRES = 1000
"""Steps of a centre R in one step of the variable, or in 1 for a share."""
LEFT_AND_ENTERED = math.isqrt(2 * FINE**2) + 1
"""The root of 2 times 1024, rounded up: by how much a record of one sign moves the standard error of its cell if it
leaves one stratum of independent records for another."""
_EXACT = 1 << 53
"""Whole numbers below this are floating-point numbers too."""


@dataclass(frozen=True, eq=False)
class ErrorTable:
    """The measured standard errors of a table to publish."""

    centres: Whole
    """By cell the value around which residuals were taken, in steps; 0 for counts and totals."""
    multiples: Whole
    """By cell the noisy standard error of the sum of residuals, in multiples of the cell's unit."""


def error_noise(plan: SurveyPlan, wanted: PublishSection) -> CellNoise:
    """The noise of measured standard errors, in multiples of the unit of each cell."""
    cells = plan.number_of_cells(wanted.cells)
    values, largest = 1, Fraction(FINE)
    if wanted.kind == "proportion":  # half a step of rounding for each value
        values = plan.number_of_cells([str(wanted.of)])
        largest = 2 * FINE + Fraction(values, 2)
    others = Fraction(0)
    if weights_may_move(plan):
        low, high = plan.stratum_weights()
        if plan.sample.most is None:
            raise errors.survey_bounds_missing("the most records that the sample could have ([sample] most)")
        # The difference of two rounded residuals may be one step larger than that of the residuals.
        each = (1 if wanted.kind != "proportion" else 2) * FINE * (1 - low / high) + values
        others = (plan.sample.most - 1) * each
    width = largest if wanted.kind == "proportion" else Fraction(_within_a_cell(plan, wanted))
    moves = wanted.kind == "proportion" or cells > 1
    return noise_for(plan, Reach(moves, (largest,), (width,), others), np.zeros(cells, dtype=np.int64), Fraction(1),
                     wanted.errors)  # fmt: skip


def _within_a_cell(plan: SurveyPlan, wanted: PublishSection) -> int:
    """By how much a record can move the standard error of a cell that it does not leave."""
    one_sign = wanted.kind == "count"
    if wanted.kind == "total":
        bounds = plan.variable(str(wanted.of))
        one_sign = bounds.lower >= 0 or bounds.upper <= 0
    stays = plan.design.clusters is None or (plan.change == "value" and setting_of(plan).frame_invariant)
    # Else a residual may change its sign, or a record may leave a primary unit for the only other one of its stratum.
    return LEFT_AND_ENTERED if one_sign and stays else 2 * FINE


def units(plan: SurveyPlan, wanted: PublishSection, centres: Whole) -> NDArray[np.float64]:
    """By cell the unit of its standard error: the largest residual that there could be, divided by 1024."""
    sizes = _largest(plan, wanted, centres)
    step = _residual_step(plan, wanted) / FINE
    if sizes.dtype != object and max(int(sizes.max(initial=1)) * step.numerator, step.denominator) < _EXACT:
        return np.asarray((sizes * step.numerator) / step.denominator)  # both are exact, so one rounding
    return np.array([near(step * int(size)) for size in sizes])


def centres_of(plan: SurveyPlan, wanted: PublishSection, values: NDArray[np.float64]) -> Whole:
    """Measured means, shares or ratios as centres: rounded to their steps, and cut to what is possible."""
    if wanted.kind in ("count", "total"):
        return np.zeros(len(values), dtype=np.int64)
    if wanted.kind == "proportion":
        return _share_centres(values, plan.number_of_cells([str(wanted.of)]))
    variable = plan.variable(str(wanted.of))
    low, high = (int(end / variable.step) * CENTRES for end in (variable.lower, variable.upper))
    step = variable.step / CENTRES
    if wanted.kind == "ratio":
        over = plan.variable(str(wanted.over))
        step /= over.step
        low, high = -max(abs(low), abs(high)), max(abs(low), abs(high))
    with np.errstate(invalid="ignore"):
        found = np.where(np.isfinite(values), values / float(step), (low + high) / 2)
    return np.clip(np.rint(found), low, high).astype(np.int64)


def _share_centres(values: NDArray[np.float64], each: int) -> Whole:
    """Shares as centres: at least 0, and in each group adding up to at most 1, on which the noise relies."""
    found = np.clip(np.where(np.isfinite(values), values, 1 / each), 0.0, 1.0).reshape(-1, each)
    found = np.floor(found / np.maximum(found.sum(axis=1, keepdims=True), 1.0) * CENTRES)
    return np.asarray(found.ravel().astype(np.int64))


def measure_errors(
    records: Records, wanted: PublishSection, values: NDArray[np.float64], source: RandomSource
) -> ErrorTable:
    """The noisy standard errors of a table whose measured values are ``values``."""
    plan = records.plan
    centres = centres_of(plan, wanted, values)
    true = np.array(true_errors(records, wanted, centres), dtype=np.int64)
    return ErrorTable(centres, true + error_noise(plan, wanted).draw(source))


def true_errors(records: Records, wanted: PublishSection, centres: Whole) -> list[int]:
    """Standard errors without noise, in multiples of the unit of each cell, rounded down. Confidential."""
    plan = records.plan
    groups = records.cells(wanted.by)
    number = plan.number_of_cells(wanted.by)
    sizes = _largest(plan, wanted, centres)
    places = _Places.of(records)
    if wanted.kind != "proportion":
        residuals = _rounded(_residuals(records, wanted, centres[groups]), sizes[groups])
        return places.lengths(residuals, groups, number)
    shares = records.cells([str(wanted.of)])
    each = plan.number_of_cells([str(wanted.of)])
    found = np.zeros((number, each), dtype=object)
    for value in range(each):
        here = centres.reshape(number, each)[groups, value]
        numbers = records.weights * (CENTRES * (shares == value) - here)
        found[:, value] = places.lengths(_rounded(numbers, sizes[groups * each + value]), groups, number)
    return [int(one) for one in found.ravel()]


# -- residuals ---------------------------------------------------------------------------------------------------


def _scale(wanted: PublishSection) -> int:
    """How many steps of a centre one step of the variable has; counts and totals have no centres."""
    return 1 if wanted.kind in ("count", "total") else CENTRES


def _residual_step(plan: SurveyPlan, wanted: PublishSection) -> Fraction:
    """The unit in which residuals are whole numbers."""
    return plan.weight_step * (1 if wanted.summed is None else plan.variable(wanted.summed).step) / _scale(wanted)


def _residuals(records: Records, wanted: PublishSection, centres: Whole) -> NDArray[Any]:
    """What each record adds to the sum of residuals, in whole numbers."""
    weights: NDArray[Any] = records.weights
    if _too_long(records.plan, wanted):
        weights, centres = weights.astype(object), centres.astype(object)
    values, other = (1 if name is None else records.values[name] for name in (wanted.summed, wanted.over))
    return np.asarray(weights * (_scale(wanted) * values - centres * other))


def _too_long(plan: SurveyPlan, wanted: PublishSection) -> bool:
    """Whether residuals around some centre could have more than 64 bits, by the bounds of the plan."""
    above, below = (max(map(abs, _ends(plan, name))) for name in (wanted.summed, wanted.over))
    return int(plan.stratum_weights()[1] / plan.weight_step) * _scale(wanted) * above * (1 + below) >= LARGEST


def _largest(plan: SurveyPlan, wanted: PublishSection, centres: Whole) -> NDArray[Any]:
    """By cell the largest residual that a record could have, in whole numbers; at least 1."""
    if wanted.kind == "proportion":
        centres = np.zeros_like(centres)  # whatever they are
    if _too_long(plan, wanted):
        centres = centres.astype(object)
    corners = [
        np.abs(_scale(wanted) * value - centres * other)
        for value in _ends(plan, wanted.summed)
        for other in _ends(plan, wanted.over)
    ]
    return np.asarray(np.maximum(np.max(corners, axis=0), 1) * int(plan.stratum_weights()[1] / plan.weight_step))


def _ends(plan: SurveyPlan, name: str | None) -> tuple[int, int]:
    """Between which numbers of steps the values of a variable lie; without one each record counts once."""
    if name is None:
        return 1, 1
    variable = plan.variable(name)
    return int(variable.lower / variable.step), int(variable.upper / variable.step)


def _rounded(residuals: NDArray[Any], sizes: NDArray[Any]) -> Whole:
    """Residuals in steps of 1/1024 of the largest one, each rounded to the nearest."""
    if sizes.dtype == object or int(np.max(sizes, initial=1)) * FINE * 4 >= LARGEST:
        residuals, sizes = residuals.astype(object), sizes.astype(object)
    return np.asarray((2 * FINE * residuals + sizes) // (2 * sizes)).astype(np.int64)


# -- lengths -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class _Places:
    """Where the records of a survey stand in its design."""

    strata: NDArray[np.int64]
    clusters: Whole | None
    selected: Sequence[int]
    corrections: Sequence[Fraction]
    """By stratum 1 - n/N."""
    independent: bool = False
    """Whether each primary unit is selected by a chance of its own."""

    @classmethod
    def of(cls, records: Records) -> _Places:
        design = records.plan.design
        if design.selection == "independent":
            nothing = np.zeros(records.rows, dtype=np.int64)
            return cls(nothing, records.clusters, [0], [Fraction(1)], independent=True)
        sizes = records.plan.selected_units
        assert sizes is not None
        require_design(records)
        corrections = [Fraction(1) - (Fraction(n, N) if N else 0) for n, N in sizes]
        return cls(records.strata, records.clusters, [n for n, _ in sizes], corrections)

    def lengths(self, residuals: Whole, groups: NDArray[np.int64], number: int) -> list[int]:
        """By group the standard error of its sum of residuals, rounded down."""
        strata, totals, at = self.strata, residuals, groups
        if self.clusters is not None:
            keys = groups * (int(self.clusters.max(initial=0)) + 1) + self.clusters
            distinct, first, which = np.unique(keys, return_index=True, return_inverse=True)
            totals = added_up(which.astype(np.int64), residuals, len(distinct))
            strata, at = self.strata[first], groups[first]
        # |residual| <= 1024, so that squares of totals fit as long as there are fewer than 2^21 records in one place.
        if int(np.abs(totals).max(initial=0)) ** 2 * max(1, len(totals)) >= LARGEST:
            totals = totals.astype(object)
        places, which = _distinct(at * len(self.selected) + strata, number * len(self.selected))
        sums = added_up(which, totals, len(places))
        squares = added_up(which, totals * totals, len(places))
        return self._roots(places, sums.tolist(), squares.tolist(), number)

    def _roots(self, places: NDArray[np.int64], sums: list[int], squares: list[int], number: int) -> list[int]:
        """The root of the sum over strata of (1 - n/N) (n squares - sums^2) / (n - 1), rounded down.

        ``places`` are groups and strata with a record, the strata fastest, in ascending order.
        """
        groups, strata = (part.tolist() for part in np.divmod(places, len(self.selected)))
        if self.independent:
            lengths = dict(zip(groups, map(math.isqrt, squares), strict=True))
            return [lengths.get(group, 0) for group in range(number)]
        parts = [self.corrections[at] / (n - 1) if n > 1 else Fraction(0) for at, n in enumerate(self.selected)]
        tops, bottoms = [part.numerator for part in parts], [part.denominator for part in parts]
        found, ends = [0] * number, np.flatnonzero(np.diff(groups, append=-1)).tolist()
        start = 0
        for end in ends:
            here = range(start, end + 1)
            common = math.lcm(*(bottoms[strata[at]] for at in here))
            total = 0
            for at in here:
                stratum = strata[at]
                spread = self.selected[stratum] * squares[at] - sums[at] ** 2
                total += tops[stratum] * (common // bottoms[stratum]) * spread
            found[groups[start]] = math.isqrt(total // common)
            start = end + 1
        return found


def _distinct(places: NDArray[np.int64], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct numbers among some below ``most``, ascending, and for each number which of them it is."""
    if most > max(1 << 16, 4 * len(places)):
        found, which = np.unique(places, return_inverse=True)
        return found, which.astype(np.int64)
    there = np.zeros(most, dtype=np.bool_)
    there[places] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[places]
