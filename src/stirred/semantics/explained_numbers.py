"""The numbers of one explanation: the two datasets, the power curves between them, the concerns.

Keep in mind: curves and exposures are made here and nowhere else. Sentences, tables and pictures
read their numbers off one :class:`Setting`, so that what is said, shown and drawn agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._display import brief
from stirred.loss import (
    Bounds,
    ComposedLoss,
    EpsilonProfile,
    GaussianCurve,
    PowerCurve,
    RenyiCurve,
    TradeOff,
    ZcdpCurve,
    gaussian_epsilon,
    renyi_to_approximate,
    tradeoff_to_pbdp_epsilon,
    zcdp_to_approximate,
    zcdp_to_pbdp_epsilon,
)
from stirred.loss.conversions import power_to_epsilon
from stirred.semantics.belief_bounds import AnyPriorBelief, PredictiveBelief, PureBelief, TrueRecordBelief
from stirred.semantics.concern_changes import WorstChange, worst_change
from stirred.semantics.concerns import Concern, Exposure, exposure, overview
from stirred.semantics.swap_exposure import SwapExposure, SwapPair, exposure_of
from stirred.semantics.testing import (
    Change,
    Curve,
    GroupCurve,
    allowed_power,
    gaussian_curve,
    power_bounds,
    replaced_record,
    smallest_change,
)
from stirred.spec.exact import exact, near
from stirred.spec.known_deployments.allocations import Allocation, allocation_of
from stirred.spec.specification import Specification

Array = NDArray[np.float64]

LEVELS = (0.01, 0.05, 0.10)
DELTAS = (0.05, 1e-3, 1e-6, 1e-10)
GROUPS = (2, 5)
MOST_UNITS = 10**10
"""The largest group that is asked about: more than there are people."""

MIDDLE = 0.05
LARGEST = 10**6
"""Budgets beyond this promise nothing that a float could tell from nothing."""

GRID = 1e-3
"""Losses of discrete Gaussian noise are rounded to this grid, outward: powers are then known to about 1e-5."""

ANY = "any mechanism with this guarantee"
GAUSSIAN = "Gaussian noise with this budget"
EXACT = "the noise of this mechanism"
"""What a row of powers, or a line, is about."""


@brief
@dataclass(frozen=True)
class Concerned:
    """One concern: how much of the budget tells about it, between which datasets, and what that allows."""

    exposure: Exposure
    worst: WorstChange
    asked: bool
    """Whether somebody asked about it; the others are those of the overview."""

    @property
    def gaussian(self) -> GaussianCurve:
        """The power curve of Gaussian noise with this rho."""
        return gaussian_curve(self.worst.rho)

    @property
    def bound(self) -> ZcdpCurve:
        """What any noise of these shares allows between datasets at this distance."""
        return ZcdpCurve(float(self.worst.any_rho))

    @cached_property
    def exact(self) -> ComposedLoss | None:
        """The loss of the noise itself, where one record is replaced."""
        return self.exposure.loss(GRID) if not self.worst.joint and self.exposure.cells else None


@brief
@dataclass(frozen=True)
class Setting:
    """A specification, and what is asked about it."""

    specification: Specification
    allocation: Allocation | None
    rounded: bool
    concerns: tuple[Concern, ...]
    levels: tuple[float, ...]
    deltas: tuple[float, ...]
    groups: tuple[int, ...]
    own: SwapExposure | None = None
    """The numbers of a swap itself, far below what its epsilon allows."""

    @property
    def level(self) -> float:
        """The false-alarm probability of sentences that name one: 0.05 if it is asked about, else the first."""
        return MIDDLE if MIDDLE in self.levels else self.levels[0]

    @cached_property
    def change(self) -> Change:
        """The nearest two datasets of a universe."""
        return smallest_change(self.specification)

    @cached_property
    def replaced(self) -> Change | None:
        """The change of one redrawn record; None where no record can change alone."""
        return replaced_record(self.specification)

    @property
    def protects(self) -> bool:
        """Whether anything is promised: there is a counterfactual, and the budget is finite."""
        return self.change.exists and not self.unbounded

    @property
    def unbounded(self) -> bool:
        """Whether the budget is infinite, or so large that no number of it means anything."""
        budget = self.specification.budget
        if isinstance(budget.value, GaussianCurve):
            return budget.value.mu > LARGEST
        return not budget.is_curve and budget.number > LARGEST

    @property
    def partial(self) -> bool:
        """Whether the guarantee looks at some events of the output only."""
        return bool(self.specification.output_premetric.events or self.specification.output_premetric.partition)

    @property
    def of_datasets(self) -> bool:
        """Whether datasets are protected, and not distributions of them."""
        return self.specification.domain.objects == "datasets"

    @property
    def of_records(self) -> bool:
        """Whether distances count records of datasets."""
        return self.of_datasets and self.specification.input_premetric.kind == "records"

    @property
    def known(self) -> bool:
        """Whether the definition is one whose meaning is known here."""
        return self.specification.output_premetric.kind.explained

    # -- between the nearest datasets ------------------------------------------------------------------------

    @cached_property
    def curve(self) -> Curve | None:
        """The greatest power between the two datasets; None where the definition has none."""
        return self.curve_at(self.change.distance) if self.known and self.protects else None

    def curve_at(self, distance: Fraction | float) -> Curve | None:
        """The greatest power at a distance; None where there is no rule for it."""
        try:
            return allowed_power(self.specification, distance)
        except errors.SpecificationError:
            return None

    @cached_property
    def certainty(self) -> float:
        """The probability with which an output may give certainty: the power of a test without false alarms."""
        assert self.curve is not None
        specification, budget = self.specification, self.specification.budget
        kind, parameter = specification.output_premetric.kind, specification.output_premetric.parameter
        if kind.same_support:  # where the budget is finite
            return 0.0
        if self.change.distance == specification.input_premetric.scale:
            # The curve of an epsilon whose factor is too large for a float has all its power at once.
            if isinstance(budget.value, EpsilonProfile):
                return min((delta for delta, epsilon in budget.value.points if epsilon < np.inf), default=1.0)
            told = None if budget.is_curve else kind.told(budget.number, parameter)
            if told is not None:
                return float(told)
        return float(self.curve.power(0.0))

    @cached_property
    def missed(self) -> tuple[float, ...]:
        """The smallest probability of missing the change at each false-alarm probability; 0 only where the definition
        allows certainty, and not where a float cannot tell."""
        assert self.curve is not None
        errors, sure = np.asarray(self.curve.type_two_error(self.levels)), 1 - exact(self.certainty)
        if isinstance(self.specification.budget.value, PowerCurve):  # its powers are what was stated
            return tuple(map(float, errors))
        floored = np.maximum(errors, np.nextafter(0.0, 1.0))
        return tuple(float(error) if exact(at) < sure else 0.0 for error, at in zip(floored, self.levels, strict=True))

    @cached_property
    def gaussian(self) -> GaussianCurve | None:
        """The curve if a budget of zCDP was spent on Gaussian noise."""
        if not self.specification.output_premetric.kind.budget_is_rho or not self.protects:
            return None
        return gaussian_curve(self.specification.budget_at(self.change.distance))

    @cached_property
    def exact(self) -> ComposedLoss | None:
        """The loss of the noise itself, where the allocation of the budget is known."""
        if self.allocation is None or self.replaced is None or self.change.distance != self.replaced.distance:
            return None
        return exposure(self.allocation, Concern(), rounded=self.rounded).loss(GRID)

    def powers(self) -> list[tuple[str, Array, Array]]:
        """Lower and upper bounds on powers: under the definition, with Gaussian noise, with the noise in use."""
        found = []
        if self.curve is not None:
            found.append((ANY, *power_bounds(self.curve, self.levels)))
        if self.gaussian is not None:
            found.append((GAUSSIAN, *power_bounds(self.gaussian, self.levels)))
        if self.exact is not None:
            found.append((EXACT, *power_bounds(self.exact, self.levels)))
        for what, own in self.own.rows() if self.own is not None else ():
            found.append((what, *_both_bounds(own, self.levels)))
        return found

    def exact_powers(self, loss: ComposedLoss) -> list[Bounds]:
        """Bounds on the power of the best test on a mechanism, at each false-alarm probability."""
        return [loss.power(level) for level in self.levels]

    # -- beliefs ---------------------------------------------------------------------------------------------

    @cached_property
    def beliefs(self) -> tuple[PureBelief | PredictiveBelief | AnyPriorBelief | TrueRecordBelief, ...]:
        """The theorems about a redrawn record that apply, at the distance of a replacement."""
        if self.replaced is None or not self.protects or not self.known or self.partial:
            return ()
        distance, output = self.replaced.distance, self.specification.output_premetric
        curve = self.curve_at(distance)
        if output.kind.pure:
            return (PureBelief(float(self.specification.budget_at(distance))),)
        if curve is None or isinstance(curve, GroupCurve):
            return ()
        if isinstance(curve, ZcdpCurve):
            rho = curve.rho
            true = TrueRecordBelief(gaussian_curve(rho)), TrueRecordBelief(curve)
            return (*true, AnyPriorBelief(rho), PredictiveBelief(rho))
        if isinstance(curve, RenyiCurve):
            return (TrueRecordBelief(curve), AnyPriorBelief(points=curve.points), PredictiveBelief(points=curve.points))
        return (TrueRecordBelief(curve),)

    @cached_property
    def exact_beliefs(self) -> tuple[TrueRecordBelief, TrueRecordBelief] | None:
        """Theorem 7.4 for the noise of the mechanism itself: from curves below and above its power curve."""
        if self.exact is None or not any(isinstance(one, TrueRecordBelief) for one in self.beliefs):
            return None
        lower, upper = self.exact.power_curve(symmetric=True)
        return TrueRecordBelief(lower), TrueRecordBelief(upper)

    # -- epsilon and delta -----------------------------------------------------------------------------------

    def approximate(self, curve: Curve | None, delta: float) -> float | None:
        """Epsilon of (epsilon, delta)-DP at ``delta`` between the two datasets, by the sharpest conversion here."""
        if isinstance(curve, GaussianCurve):
            return gaussian_epsilon(curve.mu, delta)
        if isinstance(curve, ZcdpCurve):
            return zcdp_to_approximate(curve.rho, delta, "tight")
        if isinstance(curve, RenyiCurve):
            return min(renyi_to_approximate(order, epsilon, delta) for order, epsilon in curve.points)
        if curve is None or isinstance(curve, GroupCurve):
            return None
        found, stated = float(power_to_epsilon(curve, delta)), self.stated_delta
        if not self.specification.budget.is_curve and stated is not None and delta >= stated:
            found = min(found, float(self.specification.budget_at(self.change.distance)))
        return found

    def bounded(self, curve: TradeOff, delta: float) -> float:
        """Epsilon that bounds the odds but for a probability of ``delta`` (pbdp)."""
        found = tradeoff_to_pbdp_epsilon(curve, delta)
        return min(found, zcdp_to_pbdp_epsilon(curve.rho, delta)) if isinstance(curve, ZcdpCurve) else found

    @property
    def read_deltas(self) -> tuple[float, ...]:
        """The deltas asked for, the largest first, with twice the one that the guarantee names: below it a bound on
        the probability of large losses does not exist."""
        own = {min(2 * self.stated_delta, 0.5)} if self.stated_delta else set()
        return tuple(sorted({*self.deltas, *own}, reverse=True))

    def losses(self) -> list[tuple[str, float, float, float | None]]:
        """For each curve that is known and each delta: epsilon of pbdp, and of (epsilon, delta)-DP."""
        if self.specification.output_premetric.kind.pure:
            return []  # the same epsilon at every delta
        curves = [(ANY, self.readable), (GAUSSIAN, self.gaussian)]
        found = [
            (what, delta, self.bounded(curve, delta), self.approximate(curve, delta))
            for what, curve in curves
            if curve is not None
            for delta in self.read_deltas
        ]
        if self.exact is not None and self.exact_beliefs is not None:
            for one in self.read_deltas:
                found.append((EXACT, one, self.exactly_bounded(one).upper, self.exact.epsilon(one).upper))
        return found

    def exactly_bounded(self, delta: float) -> Bounds:
        """Bounds on epsilon of pbdp for the noise of the mechanism itself; where that is rounded coarsely, its rho says
        more."""
        assert self.exact_beliefs is not None and self.readable is not None
        lower, upper = (bound.epsilon(delta) for bound in self.exact_beliefs)
        return Bounds(lower, min(upper, self.bounded(self.readable, delta)))

    @property
    def readable(self) -> TradeOff | None:
        """The curve as one that conversions take: not the one of a group."""
        return None if isinstance(self.curve, GroupCurve) else self.curve

    @property
    def stated_delta(self) -> float | None:
        """The delta that the guarantee itself names."""
        output, budget = self.specification.output_premetric, self.specification.budget.value
        if output.kind.takes_off and output.parameter is not None:
            return float(output.parameter)
        if isinstance(budget, EpsilonProfile):
            return budget.points[0][0]
        return None

    # -- concerns --------------------------------------------------------------------------------------------

    @cached_property
    def concerned(self) -> tuple[Concerned, ...]:
        """The concerns asked about, then those of the overview, as far as anything about them is protected."""
        return tuple(one for one in self._concerned if one.worst.change.exists)

    @property
    def unprotected(self) -> tuple[Concerned, ...]:
        """The concerns about which what is held fixed tells everything."""
        return tuple(one for one in self._concerned if not one.worst.change.exists)

    @cached_property
    def _concerned(self) -> tuple[Concerned, ...]:
        if self.allocation is None or not self.protects:
            return ()
        asked = [exposure(self.allocation, concern, rounded=self.rounded) for concern in self.concerns]
        rest = overview(self.allocation, self.specification.input_premetric.unit, rounded=self.rounded)
        known = {one.cells for one in asked}
        every = (*asked, *(one for one in rest if one.cells not in known))
        return tuple(
            Concerned(one, worst_change(self.specification, one), number < len(asked))
            for number, one in enumerate(every)
        )


def setting(
    specification: Specification,
    allocation: Allocation | None = None,
    concerns: tuple[Concern | str, ...] = (),
    levels: tuple[float, ...] = LEVELS,
    deltas: tuple[float, ...] = DELTAS,
    groups: tuple[int, ...] = GROUPS,
    own: SwapExposure | None = None,
) -> Setting:
    """Check what is asked: the allocation adds up to the budget, and there is one where concerns are asked about."""
    for name, values in (("level", levels), ("delta", deltas)):
        if not values or not all(0 < value < 1 for value in values):
            raise errors.parameter_out_of_range(name, "0, 1 or beyond", "above 0 and below 1")
    for units in groups:
        if not isinstance(units, int) or not 1 <= units <= MOST_UNITS:
            raise errors.parameter_out_of_range("group", units, f"a whole number from 1 to {MOST_UNITS:,}")
    divided = allocation or allocation_of(specification.name)
    way = _division(specification, divided) if divided is not None else None
    if divided is not None and way is None:
        if allocation is not None:
            total, budget = near(divided.total(rounded=True)), specification.budget.shown()
            raise errors.SpecificationError(
                "allocation-does-not-fit",
                f"The allocation divides a rho of {total:g}; the specification has a budget of {budget} in "
                f"{specification.output_premetric.symbol}.",
                "Give the specification of which this is the allocation: zCDP with that rho.",
            )
        divided = None  # a changed budget under a known name
    if concerns and divided is None:
        raise errors.SpecificationError(
            "nothing-to-look-up",
            f"How the budget of '{specification.name}' is divided among levels and queries is not known, so no "
            "concern can be looked up.",
            "Give the division with --allocation FILE (in Python: allocation=); docs/semantics.md shows the format "
            "(stirred docs semantics).",
        )
    unit = specification.input_premetric.unit
    if divided is not None and unit not in [part.unit for part in divided.parts]:
        raise errors.allocation_unit(unit, [part.unit for part in divided.parts])
    read = tuple(Concern.read(one, divided) if isinstance(one, str) and divided else one for one in concerns)
    chosen = tuple(one for one in read if isinstance(one, Concern))
    if divided is not None:
        parts = [part for part in divided.parts if part.unit == unit]
        known = {name for part in parts for query in part.queries for name in query.attributes}
        for strange in (set(concern.attributes) - known for concern in chosen):
            if strange:
                raise errors.unknown_choice(f"attribute of a {unit}", min(strange), sorted(known))
    swap = own or exposure_of(specification)
    return Setting(specification, divided, way is not False, chosen, tuple(levels), tuple(deltas), tuple(groups), swap)


def _both_bounds(own: PowerCurve | SwapPair, levels: tuple[float, ...]) -> tuple[Array, Array]:
    """Powers of the worst and the best test, of a curve or of two records."""
    if isinstance(own, PowerCurve):
        return power_bounds(own, levels)
    return 1 - own.powers([1 - level for level in levels]), own.powers(levels)


def _division(specification: Specification, allocation: Allocation) -> bool | None:
    """Whether the budget is the rounded total of an allocation (True) or the unrounded one (False); None if neither."""
    budget = specification.budget
    if not specification.output_premetric.kind.budget_is_rho or budget.is_curve:
        return None
    return next((way for way in (True, False) if allocation.total(rounded=way) == budget.number), None)
