"""Add up privacy losses, and refuse a mechanism that would pass a limit (filters).

Composition by definition: pure DP adds epsilons, zCDP adds rhos, Rényi DP adds the divergences of each order, and
(epsilon, delta)-DP adds both (Dwork and Roth 2014, Theorem 3.16), each for mechanisms that may be chosen from earlier
outputs. These rules fix the losses beforehand. A *filter* allows the losses themselves to depend on earlier outputs: as
long as every run stops before the sum of what was spent passes the limit, the whole satisfies the limit. That holds
for pure DP (Rogers, Roth, Ullman and Vadhan 2016) and for zCDP (Feldman and Zrnic 2021), without any loss over the sum.

Keep in mind: sums are exact. A float means its shortest decimal (0.1 is 1/10), so that a limit of 1 is spent after ten
times 0.1, and not before.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from fractions import Fraction

from stirred._calls import refuses_wrong_arguments
from stirred._fractions import NOT_A_NUMBER, as_fraction
from stirred.errors import filter_exceeded, nothing_to_compose, parameter_out_of_range
from stirred.loss.argument_checks import Number, probability, renyi_order

Exact = Fraction | float
"""A fraction, or infinity."""


def exact_loss(name: str, value: Number) -> Exact:
    """A loss as a fraction that is at least 0, or infinity; a float by its shortest decimal.

    >>> exact_loss("epsilon", 0.1), exact_loss("epsilon", Fraction(1, 3)), exact_loss("epsilon", math.inf)
    (Fraction(1, 10), Fraction(1, 3), inf)
    """
    wanted = "a number that is at least 0"
    try:
        number = math.inf if isinstance(value, float) and value == math.inf else as_fraction(value)
    except NOT_A_NUMBER:
        raise parameter_out_of_range(name, value if isinstance(value, float) else "not a number", wanted) from None
    if number < 0:
        raise parameter_out_of_range(name, value, wanted)
    return number


# -- composition ---------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def composed_pure(epsilons: Iterable[Number]) -> Exact:
    """The epsilon of several pure-DP mechanisms, one after the other: the sum; infinite if one of them is.

    >>> composed_pure([0.1, 0.2, Fraction(1, 3)])
    Fraction(19, 30)
    """
    return _sum("epsilon", epsilons)


@refuses_wrong_arguments
def composed_zcdp(rhos: Iterable[Number]) -> Exact:
    """The rho of several zCDP mechanisms, one after the other: the sum (Bun and Steinke 2016, Lemma 1.7).

    >>> composed_zcdp([2.56, 0.07])
    Fraction(263, 100)
    """
    return _sum("rho", rhos)


@refuses_wrong_arguments
def composed_renyi(curves: Iterable[Mapping[float, Number]]) -> dict[float, Exact]:
    """Rényi divergences by order of several mechanisms, one after the other: the sums at the orders all have.

    An order that one of them lacks is left out: nothing is known of it. If none is left the answer is empty.

    >>> composed_renyi([{2: 0.5, 4: 1}, {2: 0.25}])
    {2: Fraction(3, 4)}
    """
    parts = list(curves)
    if not parts:
        raise nothing_to_compose("divergence")
    orders = [order for order in parts[0] if all(order in part for part in parts)]
    for order in orders:
        renyi_order(order)
    return {order: _sum("divergence", (part[order] for part in parts)) for order in orders}


@refuses_wrong_arguments
def composed_approximate(points: Iterable[tuple[Number, Number]]) -> tuple[Exact, Fraction]:
    """(epsilon, delta) of several mechanisms, one after the other: both sums, delta at most 1.

    Simple and never the smallest: :func:`composed_power_curve` of :func:`approximate_power` curves is.

    >>> composed_approximate([(1, 1e-6), (0.5, 1e-6)])
    (Fraction(3, 2), Fraction(1, 500000))
    """
    pairs = list(points)
    for _, delta in pairs:
        probability("delta", delta)
    total = _sum("delta", (delta for _, delta in pairs))
    return _sum("epsilon", (epsilon for epsilon, _ in pairs)), min(Fraction(1), Fraction(total))


def _sum(name: str, losses: Iterable[Number]) -> Exact:
    parts = [exact_loss(name, loss) for loss in losses]
    if not parts:
        raise nothing_to_compose(name)
    return math.inf if math.inf in parts else sum((Fraction(part) for part in parts), Fraction(0))


# -- filters -------------------------------------------------------------------------------------------------


class Filter:
    """A limit on the sum of losses that are chosen as outputs come in; :class:`PureFilter` and :class:`ZcdpFilter`.

    ``spend`` *before* running a mechanism. It refuses, and spends nothing, if the sum would pass the limit; an infinite
    loss never fits. A filter is used by one sequence of releases and cannot be turned back; threads may share it.
    """

    loss = "loss"
    """What is added up."""

    def __init__(self, limit: Number) -> None:
        most = exact_loss("limit", limit)
        if isinstance(most, float):
            raise parameter_out_of_range("limit", limit, "finite: an infinite limit promises nothing")
        self._limit, self._spent, self._lock = most, Fraction(0), threading.Lock()

    @property
    def limit(self) -> Fraction:
        """The largest sum of losses that the filter lets pass."""
        return self._limit

    @property
    def spent(self) -> Fraction:
        """The sum of the losses that were let through so far."""
        return self._spent

    @property
    def left(self) -> Fraction:
        """The largest loss that is still allowed."""
        return self._limit - self._spent

    def allows(self, cost: Number) -> bool:
        """Whether a mechanism of this loss may still run."""
        return exact_loss(self.loss, cost) <= self.left

    def spend(self, cost: Number) -> Fraction:
        """Count the loss of a mechanism that is about to run, and say what is left; refuse if it is too much."""
        loss = exact_loss(self.loss, cost)
        with self._lock:
            if loss > self.left:
                raise filter_exceeded(self.loss, self._limit, self._spent, loss, self.left)
            self._spent += Fraction(loss)
            return self.left

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._limit}, spent={self._spent})"


class PureFilter(Filter):
    """A filter for pure DP: the whole is ``limit``-DP if every run passes it, whatever chose the epsilons.

    >>> budget = PureFilter(1)
    >>> budget.spend(0.6)
    Fraction(2, 5)
    >>> budget.allows(0.4), budget.allows(0.41)
    (True, False)
    """

    loss = "epsilon"


class ZcdpFilter(Filter):
    """A filter for zCDP: the whole is ``limit``-zCDP if every run passes it, whatever chose the rhos.

    >>> budget = ZcdpFilter(2.63)
    >>> budget.spend(2.56)
    Fraction(7, 100)
    """

    loss = "rho"
