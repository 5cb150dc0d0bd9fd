"""Standard errors of the sampling design, measured with noise of their own.

The linearised variance of a weighted total is the sum, over strata h of n selected primary units of N, of
(1 - n/N) n/(n-1) times the sum of (T - mean T)^2 over their totals T; primary units without a record have T = 0. Its
root is the length of a vector that is linear in the totals. A record that adds e to one primary unit therefore moves
the standard error by at most |e|, and one that leaves a cell for another moves two standard errors by at most its
largest |e| each: as much as it moves the totals themselves. If it leaves one primary unit for another of its cell and
stratum, the standard error moves by at most the root of n/(n-1), at most that of 2, times the length of the change,
which is at most the root of 2 times |e|: again 2 |e|. Where each primary unit is selected independently (Poisson
sampling), the variance is at most the sum of T^2, with 1 - n/N and n/(n-1) both 1 and no mean taken off: the length of
the vector of totals itself, which moves by no more. For means, shares and ratios e is the residual w (y - R z) around
the value R that was measured before, which is public by then.

A record of value v counts in the shares of all values of its group, with 1 - p_v in its own and p_u in the others. Of
one that is replaced by a record of value u in another primary unit, the standard errors of all shares together move by
at most 2 roots of 2 (its own value and the other's) plus 2 (all other values), which is less than 5, times the weight.

The residuals are rounded record by record to 1/1024 of their largest possible size, so that everything is whole numbers
and the root is rounded down exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.noise import RandomSource
from stirred.survey.measuring import added_up
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import PublishSection
from stirred.survey.query_noise import CellNoise, Reach, noise_for, weights_may_move
from stirred.survey.records import LARGEST, Records, Whole

FINE = 1024
"""Steps into which the largest residual is divided."""
CENTRES = 1000
"""Steps of a centre R in one step of the variable, or in 1 for a share."""
TWO_TOGETHER = Fraction(3, 2)
"""An upper bound of the root of 2: by how much many primary units that change together may count more than one."""


@dataclass(frozen=True, eq=False)
class ErrorTable:
    """The measured standard errors of a table to publish."""

    centres: Whole
    """By cell the value around which residuals were taken, in steps; 0 for counts and totals."""
    multiples: Whole
    """By cell the noisy standard error of the sum of residuals, in multiples of the cell's unit."""


def error_names(wanted: PublishSection) -> tuple[str, ...]:
    """The attributes and recodes of the cells for which standard errors are measured."""
    return (*wanted.by, str(wanted.of)) if wanted.kind == "proportion" else wanted.by


def error_noise(plan: SurveyPlan, wanted: PublishSection) -> CellNoise:
    """The noise of measured standard errors, in multiples of the unit of each cell."""
    largest, values = Fraction(FINE), 1
    if wanted.kind == "proportion":  # half of the 5 weights, and half a step of rounding for each value
        values = plan.schema_of([str(wanted.of)]).number_of_groups([str(wanted.of)])
        largest = FINE * Fraction(5, 2) + values
    others = Fraction(0)
    if weights_may_move(plan):
        low, high = plan.stratum_weights()
        if plan.sample.most is None:
            raise errors.survey_bounds_missing("the most records that the sample could have ([sample] most)")
        # Many totals change together, and every rounded residual may be one step off.
        moved = largest * (plan.sample.most - 1) * (1 - low / high) + plan.sample.most * values
        others = TWO_TOGETHER * (moved + 2 * largest) - 2 * largest
    # Within one cell a residual may change its sign, or its primary unit: twice the largest one, and not its root of 2.
    reach = Reach(True, (largest,), (2 * largest,), others)
    cells = plan.schema_of(error_names(wanted)).number_of_groups(error_names(wanted))
    return noise_for(plan, reach, np.zeros(cells, dtype=np.int64), Fraction(1), wanted.errors)


def units(plan: SurveyPlan, wanted: PublishSection, centres: Whole) -> list[Fraction]:
    """By cell the unit of its standard error: the largest residual that there could be, divided by 1024."""
    sizes = _largest(plan, wanted, centres)
    step = _residual_step(plan, wanted)
    return [step * int(size) / FINE for size in sizes]


def centres_of(plan: SurveyPlan, wanted: PublishSection, values: NDArray[np.float64]) -> Whole:
    """Measured means, shares or ratios as centres: rounded to their steps, and cut to what is possible."""
    if wanted.kind in ("count", "total"):
        return np.zeros(len(values), dtype=np.int64)
    if wanted.kind == "proportion":
        low, high, step = 0, CENTRES, Fraction(1, CENTRES)
    else:
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
    number = plan.schema_of(wanted.by).number_of_groups(wanted.by)
    sizes = _largest(plan, wanted, centres)
    places = _Places.of(records)
    if wanted.kind != "proportion":
        residuals = _rounded(_residuals(records, wanted, centres[groups]), sizes[groups])
        return places.lengths(residuals, groups, number)
    shares = records.cells([str(wanted.of)])
    each = plan.schema_of([str(wanted.of)]).number_of_groups([str(wanted.of)])
    found = np.zeros((number, each), dtype=object)
    for value in range(each):
        here = centres.reshape(number, each)[groups, value]
        numbers = records.weights * (CENTRES * (shares == value) - here)
        found[:, value] = places.lengths(_rounded(numbers, sizes[groups * each + value]), groups, number)
    return [int(one) for one in found.ravel()]


def require_design(records: Records) -> None:
    """Raise if the file has more primary units in a stratum than the plan says are selected."""
    _Places.of(records)


# -- residuals ---------------------------------------------------------------------------------------------------


def _residual_step(plan: SurveyPlan, wanted: PublishSection) -> Fraction:
    """The unit in which residuals are whole numbers."""
    if wanted.kind == "count":
        return plan.weight_step
    if wanted.kind == "proportion":
        return plan.weight_step / CENTRES
    step = plan.weight_step * plan.variable(str(wanted.of)).step
    return step if wanted.kind == "total" else step / CENTRES


def _residuals(records: Records, wanted: PublishSection, centres: Whole) -> NDArray[Any]:
    """What each record adds to the sum of residuals, in whole numbers."""
    if wanted.kind == "count":
        return records.weights
    values = records.values[str(wanted.of)]
    if wanted.kind == "total":
        return records.weights * values
    other = 1 if wanted.kind == "mean" else records.values[str(wanted.over)]
    return records.weights * (CENTRES * values - centres * other)


def _largest(plan: SurveyPlan, wanted: PublishSection, centres: Whole) -> NDArray[Any]:
    """By cell the largest residual that a record could have, in whole numbers; at least 1."""
    weight = int(plan.stratum_weights()[1] / plan.weight_step)
    ones = np.ones(len(centres), dtype=np.int64)
    if wanted.kind == "count":
        return ones * weight
    if wanted.kind == "proportion":
        return ones * (weight * CENTRES)
    ends = _ends(plan, str(wanted.of))
    if wanted.kind == "total":
        return ones * max(1, weight * max(map(abs, ends)))
    others = (1, 1) if wanted.kind == "mean" else _ends(plan, str(wanted.over))
    corners = [np.abs(CENTRES * value - centres * other) for value in ends for other in others]
    found = np.maximum(np.max(corners, axis=0), 1)
    if int(found.max(initial=1)) * weight * FINE * 2 >= LARGEST:
        return np.asarray(found.astype(object) * weight)
    return np.asarray(found * weight)


def _ends(plan: SurveyPlan, name: str) -> tuple[int, int]:
    variable = plan.variable(name)
    return int(variable.lower / variable.step), int(variable.upper / variable.step)


def _rounded(residuals: NDArray[Any], sizes: NDArray[Any]) -> Whole:
    """Residuals in steps of 1/1024 of the largest one, each rounded to the nearest."""
    if sizes.dtype == object or int(np.max(sizes, initial=1)) * FINE * 2 >= LARGEST:
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
        if design.strata is None:
            strata = np.zeros(records.rows, dtype=np.int64)
            sizes: list[tuple[int | None, int | None]] = [(design.selected, design.population)]
        else:
            strata = records.codes[design.strata].astype(np.int64)
            values = records.plan.attribute(design.strata).values
            sizes = [(design.sizes[one].selected, design.sizes[one].population) for one in values]
        selected = [number or 0 for number, _ in sizes]
        if records.clusters is None:
            found = np.bincount(strata, minlength=len(sizes))
        else:
            first = np.unique(records.clusters, return_index=True)[1]
            found = np.bincount(strata[first], minlength=len(sizes))
        if np.any(found > np.array(selected)):
            kind = "records" if records.clusters is None else "clusters"
            raise errors.survey_design(f"it has more {kind} in a stratum than the plan says are selected")
        corrections = [Fraction(1) - (Fraction(n or 0, N) if N else 0) for n, N in sizes]
        return cls(strata, records.clusters, selected, corrections)

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
        places = at * len(self.selected) + strata
        sums = _added(places, totals, number * len(self.selected))
        squares = _added(places, totals * totals, number * len(self.selected))
        return self._roots(sums.reshape(number, -1), squares.reshape(number, -1))

    def _roots(self, sums: NDArray[Any], squares: NDArray[Any]) -> list[int]:
        """The root of the sum over strata of (1 - n/N) (n squares - sums^2) / (n - 1), rounded down."""
        if self.independent:
            return [math.isqrt(int(one)) for one in squares[:, 0]]
        usable = [at for at, n in enumerate(self.selected) if n > 1]
        parts = {at: self.corrections[at] / (self.selected[at] - 1) for at in usable}
        common = math.lcm(*(part.denominator for part in parts.values())) if parts else 1
        found = []
        for row_sums, row_squares in zip(sums, squares, strict=True):
            here = [at for at in np.flatnonzero(row_squares).tolist() if at in parts]
            total = sum(
                int(parts[at] * common) * (self.selected[at] * int(row_squares[at]) - int(row_sums[at]) ** 2)
                for at in here
            )
            found.append(math.isqrt(total // common))
        return found


def _added(places: NDArray[np.int64], numbers: NDArray[Any], count: int) -> NDArray[Any]:
    if numbers.dtype != object:
        return added_up(places, numbers, count)
    sums = np.zeros(count, dtype=object)
    np.add.at(sums, places, numbers)
    return sums


Errors = Mapping[str, ErrorTable]
"""By the name of a table to publish, its measured standard errors."""
