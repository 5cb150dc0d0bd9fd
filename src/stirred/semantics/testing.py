"""What a test can find out: the greatest power of a test between two datasets of one universe.

The hypotheses are two datasets; *level* is the probability of a false alarm, *power* that of a detection, and for a
blind guess the two are equal. A definition alone bounds the power of every test on every mechanism that satisfies it
(Kifer et al. 2022, section 6; the bounds are attained). What is known of the mechanism gives the power itself.

Keep in mind: a curve belongs to a distance. :func:`allowed_power` asks for it and computes epsilon
times d or rho times d squared; where the specification has no rule for that distance it refuses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred.loss import (
    Bounds,
    ComposedLoss,
    GaussianCurve,
    LossDistribution,
    PowerCurve,
    TradeOff,
    compose,
)
from stirred.loss.curves.tradeoffs import in_unit
from stirred.semantics.counterfactuals import smallest_change
from stirred.spec.exact import exact
from stirred.spec.order.conversions import one_way
from stirred.spec.specification import Specification

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
        reached = in_unit("level", level)
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


@says_what_it_takes
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


@says_what_it_takes
def power(specification: Specification, level: ArrayLike, distance: Any = None) -> tuple[Array, Array]:
    """Lower and upper bounds on the power of a test with false-alarm probability ``level``, at ``distance``.

    The lower one is what even the worst test has: a test with less could be turned round into one with too much, at
    level 1 - level (the left sides of Theorems 6.1 and 6.2).
    """
    return power_bounds(allowed_power(specification, distance), level)


@says_what_it_takes
def power_bounds(curve: Curve | ComposedLoss | LossDistribution, level: ArrayLike) -> tuple[Array, Array]:
    """Lower and upper bounds on power under a curve; for a loss distribution, of its worst and best test.

    >>> from stirred.loss import pure_power
    >>> lower, upper = power_bounds(pure_power(1), 0.05)
    >>> round(float(lower), 6), round(float(upper), 6)
    (0.018394, 0.135914)
    """
    levels = in_unit("level", level)
    if isinstance(curve, LossDistribution):
        curve = compose([(curve, 1)])
    if isinstance(curve, ComposedLoss):
        best = np.array([curve.power(float(at)).upper for at in levels.ravel()]).reshape(levels.shape)
        worst = np.array([curve.power(float(1 - at)).upper for at in levels.ravel()]).reshape(levels.shape)
    else:
        best, worst = np.asarray(curve.power(levels)), np.asarray(curve.power(1 - levels))
    return np.minimum(1 - worst, levels), best


@says_what_it_takes
def loss_power(loss: ComposedLoss | LossDistribution, level: float) -> Bounds:
    """The power of the best test on one mechanism, known between two numbers."""
    composed = compose([(loss, 1)]) if isinstance(loss, LossDistribution) else loss
    return composed.power(level)


@says_what_it_takes
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
