"""Sums of losses are exact, and filters hold for mechanisms whose losses are chosen from earlier outputs."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import LossError
from stirred.lab.definitions.composition_filters import (
    Filter,
    PureFilter,
    ZcdpFilter,
    composed_approximate,
    composed_pure,
    composed_renyi,
    composed_zcdp,
)
from stirred.loss import approximate_power, composed_power_curve, multiplicative, normalised_renyi, power_to_approximate

losses = st.fractions(0, 3, max_denominator=50)

# -- composition ---------------------------------------------------------------------------------------------


def test_sums_are_exact():
    assert composed_pure([0.1] * 10) == 1
    assert composed_zcdp([2.56, 0.07]) == Fraction(263, 100)
    assert composed_zcdp([Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)]) == 1
    assert composed_zcdp([15.29, 19.776, 17.79, 2.515]) == Fraction("55.371")  # all products of the 2020 Census
    assert composed_approximate([(0.1, 1e-10)] * 3) == (Fraction(3, 10), Fraction(3, 10**10))
    assert composed_approximate([(1, 0.75), (1, 0.75)]) == (2, 1)
    assert composed_renyi([{2: 0.1, 4: 0.2}, {4: 0.1, 8: 1, 2: 0.2}]) == {2: Fraction(3, 10), 4: Fraction(3, 10)}
    assert composed_renyi([{2: 1}, {3: 1}]) == {}


def test_an_infinite_loss_makes_the_sum_infinite():
    assert composed_pure([1, math.inf]) == math.inf
    assert composed_zcdp([math.inf]) == math.inf
    assert composed_renyi([{2: math.inf, 3: 1}, {2: 1, 3: 1}]) == {2: math.inf, 3: 2}
    assert composed_approximate([(math.inf, 0), (1, 0.5)]) == (math.inf, Fraction(1, 2))


@given(st.lists(st.tuples(st.floats(0, 1.5), st.floats(0, 0.2)), min_size=1, max_size=4))
@settings(deadline=None)
def test_naive_composition_is_above_the_optimal_one(points):
    epsilon, delta = composed_approximate(points)
    best = composed_power_curve([approximate_power(e, d) for e, d in points])
    assert power_to_approximate(best, epsilon) <= float(delta) + 1e-12


@pytest.mark.parametrize(
    ("job", "kind", "words"),
    [
        (lambda: composed_pure([]), "nothing-to-compose", "There is no epsilon to compose. Give at least one"),
        (lambda: composed_zcdp([]), "nothing-to-compose", "no rho"),
        (lambda: composed_renyi([]), "nothing-to-compose", "no divergence"),
        (lambda: composed_approximate([]), "nothing-to-compose", "no delta"),
        (lambda: composed_pure([1, -1]), "parameter-out-of-range", "epsilon is -1."),
        (lambda: composed_zcdp([math.nan]), "parameter-out-of-range", "rho is nan."),
        (lambda: composed_renyi([{0.5: 1}]), "parameter-out-of-range", "order is 0.5."),
        (lambda: composed_approximate([(1, 1.5)]), "parameter-out-of-range", "delta is 1.5."),
        (lambda: PureFilter(-1), "parameter-out-of-range", "limit is -1."),
        (lambda: ZcdpFilter(math.inf), "parameter-out-of-range", "promises nothing"),
        (lambda: PureFilter(1).allows(-0.1), "parameter-out-of-range", "epsilon is -0.1."),
        (lambda: ZcdpFilter(1).spend(math.nan), "parameter-out-of-range", "rho is nan."),
    ],
)
def test_bad_input_is_refused(job, kind, words):
    with pytest.raises(LossError) as refusal:
        job()
    assert refusal.value.kind == kind
    assert words in str(refusal.value)


# -- filters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PureFilter, ZcdpFilter])
def test_a_filter_is_spent_exactly_and_not_beyond(kind):
    budget = kind(1)
    for spent in range(10):
        assert budget.spent == Fraction(spent, 10)
        assert budget.allows(0.1)
        assert budget.spend(0.1) == budget.left == Fraction(9 - spent, 10)
    assert budget.left == 0
    assert budget.allows(0)
    assert not budget.allows(Fraction(1, 10**30))
    with pytest.raises(LossError) as refusal:
        budget.spend(Fraction(1, 4))
    assert refusal.value.kind == "filter-exceeded"
    assert f"a total {budget.loss} of 1; 1 is spent and 1/4 was asked for. Ask for at most 0" in str(refusal.value)
    assert budget.spent == budget.limit == 1


def test_what_is_refused_is_not_spent():
    budget = ZcdpFilter(2.63)
    budget.spend(2.56)
    assert not budget.allows(math.inf)
    for cost in (0.08, math.inf):
        with pytest.raises(LossError, match="Ask for at most 7/100"):
            budget.spend(cost)
    assert budget.spend(0.07) == 0
    assert repr(budget) == "ZcdpFilter(263/100, spent=263/100)"


def test_a_filter_cannot_be_turned_back():
    budget = PureFilter(1)
    for name in ("limit", "spent", "left"):
        with pytest.raises(AttributeError):
            setattr(budget, name, Fraction(0))


def test_threads_share_one_limit():
    class Slow(PureFilter):
        """Leaves time between looking and spending."""

        @property
        def left(self) -> Fraction:
            found = super().left
            time.sleep(1e-4)
            return found

    budget, passed = Slow(100), []

    def work() -> None:
        for _ in range(50):
            try:
                budget.spend(1)
            except LossError:
                continue
            passed.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(passed) == budget.spent == 100


@given(st.lists(losses, max_size=12), losses)
def test_the_sum_never_passes_the_limit(costs, limit):
    budget = PureFilter(limit)
    passed = []
    for cost in costs:
        if budget.allows(cost):
            budget.spend(cost)
            passed.append(cost)
        else:
            assert sum(passed) + cost > limit
    assert budget.spent == sum(passed) <= limit


# -- mechanisms whose losses depend on what came before --------------------------------------------------------


def paths(
    choose: Callable[[tuple[int, ...]], list[Fraction]],
    coin: Callable[[Fraction], float | Fraction],
    new: Callable[[], Filter] | None,
    depth: int,
    so_far: tuple[int, ...] = (),
    spent: tuple[Fraction, ...] = (),
) -> Iterator[tuple[float | Fraction, float | Fraction]]:
    """Probabilities of every run under both datasets: a bit is asked by randomised response, again and again.

    ``choose`` names the losses to try next from the answers so far; the first that the filter allows is taken, and
    without one the run ends. ``coin`` is the probability of a true answer at a loss.
    """
    budget = new() if new else None
    for cost in spent:
        if budget:
            budget.spend(cost)
    fits = [cost for cost in choose(so_far) if budget is None or budget.allows(cost)]
    if len(so_far) == depth or not fits:
        yield 1, 1
        return
    true = coin(fits[0])
    for answer in (0, 1):
        first, second = (true, 1 - true) if answer else (1 - true, true)
        for p, q in paths(choose, coin, new, depth, (*so_far, answer), (*spent, fits[0])):
            yield first * p, second * q


def greedy(answers: tuple[int, ...]) -> list[Fraction]:
    """Spend more after each true answer: what happens on good luck is what would break a rule for averages."""
    return [Fraction(1 + 2 * sum(answers)), Fraction(1)]


def hesitant(answers: tuple[int, ...]) -> list[Fraction]:
    return [Fraction(3), Fraction(1)] if answers in ((), (1, 1)) else [Fraction(2), Fraction(1)]


def in_doublings(loss: Fraction) -> Fraction:
    """Randomised response whose odds are 2^loss: epsilon counted in ln 2, so that probabilities are fractions."""
    return Fraction(2**loss.numerator, 1 + 2**loss.numerator)


@pytest.mark.parametrize("choose", [greedy, hesitant])
@pytest.mark.parametrize("limit", [1, 3, 5, 7])
def test_a_pure_filter_holds_exactly_on_every_run_of_an_adaptive_mechanism(choose, limit):
    runs = list(paths(choose, in_doublings, lambda: PureFilter(limit), 6))
    assert sum(p for p, _ in runs) == sum(q for _, q in runs) == 1
    worst = max(max(p / q, q / p) for p, q in runs)
    assert worst <= 2**limit
    assert worst == 2**limit  # and nothing is wasted
    unchecked = list(paths(choose, in_doublings, None, 6))
    assert max(max(p / q, q / p) for p, q in unchecked) > 2**limit


def rho_of(epsilon: float) -> float:
    """The smallest rho of randomised response, the limit at order 1."""
    return epsilon * math.tanh(epsilon / 2)


def by_rho(loss: Fraction) -> float:
    """The probability of a true answer at rho = loss / 10."""
    low, high = 0.0, 20.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if rho_of(middle) < float(loss) / 10 else (low, middle)
    return 1 / (1 + math.exp(-low))


@pytest.mark.parametrize("choose", [greedy, hesitant])
@pytest.mark.parametrize("limit", [2, 5, 8])
def test_a_zcdp_filter_holds_on_an_adaptive_mechanism(choose, limit):
    runs = np.array(list(paths(choose, by_rho, lambda: ZcdpFilter(limit), 6)), dtype=np.float64)
    p, q = (runs / runs.sum(axis=0)).T
    found = normalised_renyi(p, q) ** 2
    assert found <= limit / 10 * (1 + 1e-9)
    assert found > limit / 10 * 0.5
    unchecked = np.array(list(paths(choose, by_rho, None, 6)), dtype=np.float64)
    p, q = (unchecked / unchecked.sum(axis=0)).T
    assert normalised_renyi(p, q) ** 2 > limit / 10
    assert multiplicative(p, q) < math.inf


def test_numbers_keep_their_decimals():
    assert PureFilter(Fraction(1, 3)).limit == Fraction(1, 3)
    assert PureFilter(0.3).limit == Fraction(Decimal("0.3"))
    assert PureFilter(2).limit == 2
    assert PureFilter(float(np.float64(0.1))).limit == Fraction(1, 10)
    assert PureFilter(np.float64(0.1)).limit == Fraction(1, 10)
    assert PureFilter(np.int64(2)).limit == 2
