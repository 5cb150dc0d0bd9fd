"""How far one record can move the cells of a query, and the noise that follows from it.

A record adds w x to one cell of a query and nothing to the others. If it is replaced, or gives other answers, it may
take w x out of one cell and put w' x' into another: then a cell needs noise for twice its largest |w x|, half of the
budget for the cell that is left and half for the one that is entered. If its cell cannot change, the noise is for
max(w x) - min(w x); Gaussian noise also covers a record that could leave its cell and stays. Where one record may
change the weights of all others (Table 6.2), each of the n - 1 others adds (max w - min w) max |x| (section 6.4.5), and
its own weight may change too, even if only its answers do. Discrete Laplace noise of scale d / epsilon on whole numbers
that move by d in total satisfies epsilon-differential privacy; discrete Gaussian noise of variance d^2 / (2 rho) on a
vector that moves by d in length satisfies rho-zCDP.

The invariant a reader must know: everything here follows from the plan. No number is read from the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.noise import RandomSource, discrete_gaussian, discrete_laplace
from stirred.spec.exact import near
from stirred.survey.facts import Bounds, SurveyFacts, Units
from stirred.survey.pipeline import LEVELS
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import QuerySection
from stirred.survey.sensitivity import weights_fixed
from stirred.survey.settings import Setting, setting

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
        raise errors.survey_noise_too_wide()
    return CellNoise(plan.noise, step, parameters, class_of)


def _merged(limits: Sequence[tuple[Fraction, Fraction]]) -> tuple[list[tuple[Fraction, Fraction]], Classes]:
    """Equal limits once, and for each of the given ones which it is."""
    once = list(dict.fromkeys(limits))
    return once, np.array([once.index(one) for one in limits], dtype=np.int64)
