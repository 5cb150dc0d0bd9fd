"""Which two datasets of one universe a statement compares, and the greatest power of a test between them.

*Which two datasets.* A guarantee bounds how differently two datasets of one universe make the output behave, per unit
of their distance. A sentence about a person therefore needs two datasets first: what is, and what might have been.
Where invariants hold, changing one record usually breaks them, and the nearest dataset of the same universe is further
away: two records for swapping, where values change places.

Keep in mind: a :class:`Change` never leaves its universe. Its distance is what every bound of this package is computed
at; where no other dataset shares the universe its status is ``none``, and nothing is protected.

*What a test can find out.* The hypotheses are two datasets; *level* is the probability of a false alarm, *power* that
of a detection, and for a blind guess the two are equal. A definition alone bounds the power of every test on every
mechanism that satisfies it (Kifer et al. 2022, section 6; the bounds are attained). What is known of the mechanism
gives the power itself.

Keep in mind: a curve belongs to a distance. :func:`allowed_power` asks for it and computes epsilon times d or rho times
d squared; where the specification has no rule for that distance it refuses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred.loss import Bounds, ComposedLoss, GaussianCurve, LossDistribution, PowerCurve, TradeOff, compose
from stirred.loss.argument_checks import probabilities
from stirred.spec.blocks import InputPremetric
from stirred.spec.exact import exact
from stirred.spec.facts import MECHANISM, PERMUTATION_SWAPPING, SWAP
from stirred.spec.invariant import plural
from stirred.spec.order.conversions import one_way
from stirred.spec.specification import Specification

Status = Literal["inside", "assumed", "none"]


@dataclass(frozen=True)
class Change:
    """From one dataset to another of the same universe.

    ``status`` is *inside* where such datasets are known to exist, *assumed* where the specification does not know how
    far apart datasets of a universe are (then statements hold for those that are this far apart, if there are any), and
    *none* where no universe holds two datasets.
    """

    words: str
    distance: Fraction | float
    status: Status

    @property
    def exists(self) -> bool:
        """Whether there may be such a dataset; False where it is known that there is none."""
        return self.status != "none"


@refuses_wrong_arguments
def smallest_change(specification: Specification) -> Change:
    """The nearest two datasets of a universe: what the strongest statement is about.

    >>> from stirred.spec import flavors
    >>> smallest_change(flavors.zcdp("person").at("2.63")).words
    'the record of one person is replaced by any other record'
    """
    premetric = specification.input_premetric
    nearest, status = specification.nearest, "inside"
    if premetric.kind == "table":
        nearest, status = _nearest_listed(specification)
    elif nearest is None:
        # Neighbours in a relation are at distance one, whatever they are; only invariants can part them.
        known = premetric.kind == "relation" and not specification.multiverse.invariants
        nearest, status = premetric.scale, "inside" if known else "assumed"
    if nearest == math.inf:
        what = specification.domain.objects.removesuffix("s")
        return Change(f"no other {what} agrees with what is held fixed", math.inf, "none")
    return Change(_words(specification, nearest), nearest, status)  # type: ignore[arg-type]


@refuses_wrong_arguments
def changed_group(specification: Specification, units: int) -> Change:
    """The records of ``units`` units change together: those of a household, of a family."""
    if not isinstance(units, int) or units < 1:
        raise errors.parameter_out_of_range("units", units, "a whole number that is at least 1")
    smallest = smallest_change(specification)
    distance = units * specification.input_premetric.scale
    if not smallest.exists or smallest.distance >= distance:
        return smallest
    how = "change" if specification.input_premetric.bounded else "are added or removed"
    words = f"the records of {units} {plural(specification.input_premetric.unit)} {how} together"
    return Change(words, distance, smallest.status)


@refuses_wrong_arguments
def replaced_record(specification: Specification) -> Change | None:
    """The world in which one unit's record is drawn anew from what the others' records tell (psample of Kifer et al.
    2022, section 7.2); None where that world leaves the universe or the distance does not count records.

    Where records are added and removed a replacement is both, at twice the distance. Where the nearest datasets are
    further apart than that, as in swapping, nobody's record can change alone: the rest and the invariants determine it,
    and theorems about this world say nothing.
    """
    premetric, smallest = specification.input_premetric, smallest_change(specification)
    if premetric.kind != "records" or specification.domain.objects != "datasets":
        return None
    distance = premetric.scale if premetric.bounded else 2 * premetric.scale
    if smallest.distance > distance:
        return None
    # Under invariants a record may be removed or added where none can be replaced, and the other way round.
    sure = premetric.bounded or smallest.distance == distance or not held_fixed(specification)
    added = "" if premetric.bounded else " (one is removed and another added)"
    return Change(f"{_replaced(specification)}{added}", distance, smallest.status if sure else "assumed")


def held_fixed(specification: Specification) -> bool:
    """Whether only datasets are compared that agree on something declared."""
    multiverse, stays_in = specification.multiverse, specification.input_premetric.stays_in
    return bool(multiverse.invariants or multiverse.universes or stays_in)


@refuses_wrong_arguments
def change_of_record(
    specification: Specification, dataset: Sequence[Any], index: int, candidates: Iterable[Sequence[Any]]
) -> Change:
    """The nearest of some datasets of the same universe that lack the record at ``index`` (or have fewer copies of it).

    For small datasets given as records, against all those that could have been. A record that every dataset of the
    universe holds is fixed by the invariants: nothing about it is protected.

    >>> from stirred.spec import Invariant, flavors
    >>> given = flavors.given_invariants(flavors.pure("person"), [Invariant("person", by=("block",))], nearest=1).at(1)
    >>> here = [{"block": 1, "age": 7}, {"block": 2, "age": 8}]
    >>> moved = [{"block": 2, "age": 7}, {"block": 2, "age": 8}]
    >>> change_of_record(given, here, 0, [moved]).status
    'none'
    """
    unit, record = specification.input_premetric.unit, dataset[index]
    copies = sum(one == record for one in dataset)
    nearest: Fraction | float = math.inf
    for other in candidates:
        if sum(one == record for one in other) < copies:
            found = specification.counterfactual(dataset, other)
            if found.inside and found.distance > 0:
                nearest = min(nearest, found.distance)
    if nearest == math.inf:
        return Change(f"no dataset of the universe has another record of this {unit}", nearest, "none")
    return Change(f"the record of this {unit} is another, and what is held fixed is kept", nearest, "inside")


Array = NDArray[np.float64]

CERTAINTY = PowerCurve(((0, 1), (1, 1)))
"""The curve that promises nothing."""


@dataclass(frozen=True)
class GroupCurve:
    """The power against datasets ``steps`` neighbours away, from the curve of neighbours: the curve after itself.

    A test of level a between the ends has at most power g(a) against the first neighbour, which is a level there, and
    so on (Dong, Roth and Su 2022, Theorem 2.14). Holds where every dataset on the way shares the universe.

    >>> from stirred.loss import pure_power
    >>> two = GroupCurve(pure_power(1), 2)
    >>> bool(np.allclose(two.power([0.01, 0.4, 0.9]), pure_power(2).power([0.01, 0.4, 0.9])))
    True
    """

    curve: TradeOff
    steps: int

    def power(self, level: ArrayLike) -> Array:
        """The largest power of a test with false-alarm probability ``level``; an array of the same shape."""
        reached = probabilities("level", level)
        for _ in range(self.steps):
            further = np.asarray(self.curve.power(reached))
            if np.array_equal(further, reached):
                break
            reached = further
        return reached

    def type_two_error(self, level: ArrayLike) -> Array:
        """One minus the power: the trade-off function of f-DP."""
        return 1 - self.power(level)


Curve = TradeOff | GroupCurve


@refuses_wrong_arguments
def allowed_power(specification: Specification, distance: Any = None) -> Curve:
    """The smallest power curve that the specification implies between datasets of one universe at ``distance``, by
    default the nearest (Theorems 6.1, 6.2, 6.3 of Kifer et al. 2022, each for its output premetric).

    >>> from stirred.spec import flavors
    >>> round(float(allowed_power(flavors.pure().at(4)).power(0.01)), 3)
    0.546
    >>> round(float(allowed_power(flavors.zcdp().at("2.63")).power(0.01)), 4)
    0.6982
    """
    change = smallest_change(specification)
    if not change.exists:
        return CERTAINTY
    apart = change.distance if distance is None else exact(distance, "A distance")
    if apart < change.distance and change.status == "inside":
        reason = f"the nearest datasets of a universe are {float(change.distance):g} apart"
        raise errors.no_rule("a bound at this distance", reason, "Ask for that distance or a larger one.")
    if one_way(specification):
        raise errors.no_rule("a power curve", "some distances bind one direction only", "List both directions.")
    premetric, steps = specification.input_premetric, apart / specification.input_premetric.scale
    if steps == 1 or premetric.kind in ("metric", "table") or premetric.sharpened:
        return _within(specification, apart)
    if not _reaches(specification) or steps != int(steps):
        reason = "only neighbours are compared, and no path of neighbours inside a universe is known to lead so far"
        raise errors.no_rule("a bound at this distance", reason, "Ask about neighbours.")
    return _along(specification, int(steps))


@refuses_wrong_arguments
def power(specification: Specification, level: ArrayLike, distance: Any = None) -> tuple[Array, Array]:
    """Lower and upper bounds on the power of a test with false-alarm probability ``level``, at ``distance``.

    The lower one is what even the worst test has: a test with less could be turned round into one with too much, at
    level 1 - level (the left sides of Theorems 6.1 and 6.2).
    """
    return power_bounds(allowed_power(specification, distance), level)


@refuses_wrong_arguments
def power_bounds(curve: Curve | ComposedLoss | LossDistribution, level: ArrayLike) -> tuple[Array, Array]:
    """Lower and upper bounds on power under a curve; for a loss distribution, of its worst and best test.

    >>> from stirred.loss import pure_power
    >>> lower, upper = power_bounds(pure_power(1), 0.05)
    >>> round(float(lower), 6), round(float(upper), 6)
    (0.018394, 0.135914)
    """
    levels = probabilities("level", level)
    if isinstance(curve, LossDistribution):
        curve = compose([(curve, 1)])
    if isinstance(curve, ComposedLoss):
        best = np.array([curve.power(float(at)).upper for at in levels.ravel()]).reshape(levels.shape)
        worst = np.array([curve.power(float(1 - at)).upper for at in levels.ravel()]).reshape(levels.shape)
    else:
        best, worst = np.asarray(curve.power(levels)), np.asarray(curve.power(1 - levels))
    return np.minimum(1 - worst, levels), best


@refuses_wrong_arguments
def loss_power(loss: ComposedLoss | LossDistribution, level: float) -> Bounds:
    """The power of the best test on one mechanism, known between two numbers."""
    composed = compose([(loss, 1)]) if isinstance(loss, LossDistribution) else loss
    return composed.power(level)


@refuses_wrong_arguments
def gaussian_curve(rho: Fraction | float) -> GaussianCurve:
    """The power where rho was spent on Gaussian noise: mu is the root of 2 rho (Kifer et al. 2022, section 8.3)."""
    return GaussianCurve(float(2 * rho) ** 0.5)


# -- helpers -------------------------------------------------------------------------------------------------


def _reaches(specification: Specification) -> bool:
    """Whether paths of neighbours lead everywhere: nothing is held fixed, and no rule of the domain bars the way."""
    multiverse = specification.multiverse
    free = specification.domain.free and not multiverse.invariants and not multiverse.universes
    return free and specification.input_premetric.kind == "records"


def _within(specification: Specification, distance: Fraction | float) -> TradeOff:
    """The curve where the Lipschitz condition itself reaches the distance."""
    output, budget = specification.output_premetric, specification.budget
    if budget.is_curve:
        found = output.kind.tests_of_curve(budget.value, distance, specification.input_premetric.scale)
    else:
        found = output.kind.tests(specification.budget_at(distance), output.parameter)
    if found is None:
        reason = f"the output premetric '{output.name}' has no power curve at this distance"
        raise errors.no_rule("a bound on the power of tests", reason, "Convert the specification first.")
    return found


def _along(specification: Specification, steps: int) -> Curve:
    """The curve at so many neighbours' steps, where no invariant bars the way."""
    output, scale = specification.output_premetric, specification.input_premetric.scale
    sharper = output.kind.tests_of_group(specification.budget.value, output.parameter, scale, steps)
    if sharper is not None:
        return sharper
    if output.kind.metric:
        near = replace(specification, input_premetric=replace(specification.input_premetric, sharpened=True))
        return _within(near, steps * scale)
    neighbours = _within(specification, scale)
    return GroupCurve(neighbours, steps)


def _nearest_listed(specification: Specification) -> tuple[Fraction | float, Status]:
    """The smallest positive distance in a table between datasets that share a universe; assumed where it cannot be
    decided whether they do."""
    holds, scale = specification.multiverse.holds, specification.input_premetric.scale
    apart = [(holds(a, b), d) for a, b, d in specification.input_premetric.distances if d > 0]
    decided = min((d for inside, d in apart if inside), default=math.inf)
    undecided = min((d for inside, d in apart if inside is None), default=math.inf)
    return (undecided * scale, "assumed") if undecided < decided else (decided * scale, "inside")


def _words(specification: Specification, distance: Fraction | float) -> str:
    """What differs between two datasets at the distance of the nearest ones."""
    premetric = specification.input_premetric
    unit = premetric.unit
    if specification.domain.objects == "distributions":
        return _distributions(premetric, distance)
    if premetric.kind == "table":
        return f"one listed dataset stands in place of another, {float(distance):g} apart"
    if premetric.kind == "metric":
        return (
            f"one dataset stands in place of another that is {float(distance):g} away in the metric '{premetric.name}'"
        )
    if premetric.kind == "relation":
        return f"one dataset stands in place of a neighbour in '{premetric.name}'"
    count = distance / premetric.scale
    if count == 1:
        if premetric.bounded:
            return _replaced(specification)
        return f"the record of one {unit} is removed, or one is added"
    if count == 2 and not premetric.bounded:
        return f"one record of a {unit} is removed and another added"
    if specification.fact.get(MECHANISM) == PERMUTATION_SWAPPING and count == 2:
        moved = specification.fact.get(SWAP)
        what = f"their values of {moved}" if moved else "their swapped values"
        return f"two {plural(unit)} of one stratum have {what} exchanged, all else as it is"
    how = "differ" if premetric.bounded else "are added or removed"
    return f"{float(count):g} records of {plural(unit)} {how}"


def _distributions(premetric: InputPremetric, distance: Fraction | float) -> str:
    """What differs between two distributions of the data, which have no records of their own."""
    if premetric.kind == "table":
        return "one listed distribution stands in place of another"
    if premetric.kind == "relation":
        return f"one distribution stands in place of a neighbour in '{premetric.name}'"
    where = f"metric '{premetric.name}'" if premetric.kind == "metric" else f"number of {plural(premetric.unit)}"
    return f"one distribution stands in place of another that is {float(distance):g} away in the {where}"


def _replaced(specification: Specification) -> str:
    other = "another that keeps what is held fixed" if held_fixed(specification) else "any other record"
    return f"the record of one {specification.input_premetric.unit} is replaced by {other}"
