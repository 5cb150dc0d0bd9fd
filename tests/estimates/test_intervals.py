"""Intervals contain the truth at least as often as they say: decided by listing the noise, not by simulation."""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import math
import pkgutil
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stirred.estimates as package
from stirred.errors import StirredError
from stirred.estimates import ErrorLaw, Estimates, Term, estimate_rows, kind_lines
from stirred.estimates.error_laws import normal_coverage, normal_half_widths, reach

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)


def law(parameter):
    """Values and probabilities of a discrete Gaussian; what is left out weighs less than 1e-30."""
    furthest = 1 + math.ceil(12 * math.sqrt(parameter))
    values = np.arange(-furthest, furthest + 1)
    weights = np.exp(-(values**2) / (2 * parameter))
    return values, weights / weights.sum()


def within(parameters, weights, half):
    """The probability that a weighted sum of discrete Gaussians is at most ``half`` from zero."""
    errors, chances = np.zeros(1), np.ones(1)
    for parameter, weight in zip(parameters, weights, strict=True):
        values, single = law(parameter)
        errors = np.add.outer(errors, weight * values).ravel()
        chances = np.multiply.outer(chances, single).ravel()
    return float(chances[np.abs(errors) <= half + 1e-9].sum())


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(("parameter", "terms"), list(itertools.product((0.001, 0.1, 0.5, 1.0, 3.7), (1, 2, 3))))
def test_the_exact_interval_is_the_shortest_that_contains_enough(parameter, terms, confidence):
    found = reach(parameter, terms, confidence)
    assert within([parameter] * terms, [1] * terms, found) >= confidence
    assert found == 0 or within([parameter] * terms, [1] * terms, found - 1) < confidence


def test_many_terms_are_nearly_normal_and_very_many_are():
    assert abs(reach(20.0, 500, 0.9) - 1.6448536 * 100) < 1
    assert reach(20.0, 10**6, 0.9) is None


@settings(max_examples=150, deadline=None)
@given(
    parameters=st.lists(st.floats(0.01, 12), min_size=1, max_size=3),
    confidence=st.sampled_from(CONFIDENCES),
)
def test_normal_intervals_contain_enough_however_small_the_noise(parameters, confidence):
    # Several measurements of one number, weighted by precision: the lattice is at its coarsest when they are few.
    precision = 1 / np.array(parameters)
    weights = precision / precision.sum()
    error = math.sqrt(1 / precision.sum())
    half = normal_half_widths(np.array([error]), confidence)[0]
    assert within(parameters, weights, half) >= confidence


def estimates(values, variances, parameter, terms, **more):
    shape = np.shape(values)
    labels = tuple((f"g{k}",) for k in range(shape[1]))
    numbers = [np.array(one, dtype=float) for one in (values, variances, parameter, terms)]
    return Estimates("persons", ("g",), {}, "town", ("t",) * shape[0], labels, *numbers, **more)


def test_the_law_is_chosen_estimate_by_estimate():
    mixed = ((Term(1 / 3, 2.0, 2), Term(2 / 3, 2.0)),)
    found = estimates(
        [[7.0] * 6], [[1, 1, 3, 4 / 3, 0, math.inf]], [[0, 1, 1, 0, 0, 0]], [[0, 1, 3, 0, 0, 0]],
        sums=mixed, sum_of=np.array([[-1, -1, -1, 0, -1, -1]]),
    )  # fmt: skip
    assert found.interval_kinds.tolist() == [["normal", "exact", "exact", "exact", "known", "none"]]
    lower, upper = found.interval(0.9)
    assert lower.tolist() == [[5, 5, 4, 5, 7, -math.inf]] and upper.tolist() == [[9, 9, 10, 9, 7, math.inf]]
    covers = found.coverage(0.9)[0]
    assert covers[0] == pytest.approx(math.erf((1.6448536 + 0.5) / math.sqrt(2)), abs=1e-6)
    for at, parameters, weights in ((1, [1], [1]), (2, [1] * 3, [1] * 3), (3, [2] * 3, [1 / 3, 1 / 3, 2 / 3])):
        half = {1: 2.0, 2: 3.0, 3: 2.0}[at]
        assert 0.9 <= covers[at] <= within(parameters, weights, half) + 1e-9
    assert covers[4:].tolist() == [1, 1]
    said = [row[-1] for row in estimate_rows(found, 0.9)]
    percents = [f"{math.floor(1000 * one) / 10}%" for one in covers]
    assert said[1:4] == [f"normal, about {percents[0]}", f"exact, {percents[1]}", f"exact, {percents[2]}"]
    assert said[5:] == ["known", "-"]
    assert [line.split(":")[0] for line in kind_lines(found)] == ["exact", "normal", "known", "none"]
    written = json.loads(found.to_json(0.9))
    assert [one["interval"] for one in written["estimates"]] == found.interval_kinds[0].tolist()
    assert written["estimates"][5]["estimate"] == 7.0 and written["estimates"][5]["upper"] is None
    assert set(written["interval_kinds"]) == {"exact", "normal", "known", "none"}
    assert found.interval(0.9, normal=True)[1][0, 1] == 9


def big(rate, power, half):
    """P(|k| <= half) of the law proportional to exp(-rate |k|^power), by fifty digits."""
    with localcontext() as context:
        context.prec = 50
        weights = [Decimal(1)]
        while weights[-1] > Decimal("1e-45"):
            weights.append((-rate * len(weights) ** power).exp())
        return (1 + 2 * sum(weights[1 : int(half) + 1])) / (1 + 2 * sum(weights[1:]))


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("rho", [20, 10, 4, 2, 1, "1/8"])
def test_an_exact_interval_of_one_measurement_is_minimal_by_fifty_digits(rho, confidence):
    # A query of sensitivity 1 has noise of parameter 1 / (2 rho): at rho 20 the estimate alone contains the truth in
    # all but 4 of a thousand million cases, so that no interval at 50% can contain it less often.
    parameter = 1 / (2 * Fraction(rho))
    found = ErrorLaw.of([Term(1, float(parameter))])
    half = found.reach(confidence)
    chance = big(1 / Decimal(float(2 * parameter)), 2, half)
    assert confidence <= found.within(half) <= chance < found.within(half) + 1e-11
    assert half == 0 or found.within(half - 1) < confidence
    if rho == 20:
        assert half == 0 and chance > 1 - 5e-9
        normal = normal_half_widths(np.array([math.sqrt(float(parameter))]), confidence)
        assert normal_coverage(np.array([math.sqrt(float(parameter))]), normal)[0] > 0.9998


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("scale", [0.05, 0.3, 1, 2.5, 20])
def test_geometric_noise_has_exact_intervals_too(scale, confidence):
    found = ErrorLaw.of([Term(1, scale, noise="geometric")])
    half = found.reach(confidence)
    chance = big(1 / Decimal(scale), 1, half)
    assert confidence <= found.within(half) <= chance < found.within(half) + 1e-10
    assert half == 0 or found.within(half - 1) < confidence


SUMS = [
    ([0.1, 0.1, 0.1], [1 / 3, 1 / 3, 1 / 3]),
    ([0.075, 0.3], [0.8, 0.2]),
    ([0.25, 0.4, 0.8], [0.61803398875, 0.2718281828, 0.11009]),
    ([1.0, 2.0], [0.5, -0.25]),
    ([0.5, 1.7, 3.0], [1.0, 0.41421356, 0.1]),
]


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(("parameters", "weights"), SUMS)
def test_weighted_sums_of_few_terms_by_listing_all_their_values(parameters, weights, confidence):
    found = ErrorLaw.of([Term(w, s) for w, s in zip(weights, parameters, strict=True)])
    half = found.reach(confidence)
    assert within(parameters, weights, half) >= found.within(half) >= confidence
    shorter = half - 2 * found.blur - found.step * (1 + 1e-6)
    assert half <= found.blur or within(parameters, weights, shorter) < confidence
    normal = normal_half_widths(np.array([math.sqrt(np.dot(parameters, np.square(weights)))]), confidence)[0]
    assert half <= normal + found.blur


def test_mixed_noise_and_repeated_terms_are_the_sum_of_their_laws():
    together = ErrorLaw.of([Term(1, 0.5, 3), Term(2, 0.7, noise="geometric")])
    chances = {0: 1.0}
    geometric = {k: math.exp(-abs(k) / 0.7) for k in range(-40, 41)}
    whole = sum(geometric.values())
    values, single = law(0.5)
    steps = [dict(zip(values.tolist(), single.tolist(), strict=True))] * 3
    for step in [*steps, {2 * k: weight / whole for k, weight in geometric.items()}]:
        added: dict[int, float] = {}
        for at, chance in chances.items():
            for k, weight in step.items():
                added[at + k] = added.get(at + k, 0) + chance * weight
        chances = added
    for half in range(12):
        exact = sum(chance for k, chance in chances.items() if abs(k) <= half)
        assert together.within(half) == pytest.approx(exact, abs=1e-11)


def test_what_cannot_be_certified_or_listed_is_not():
    assert ErrorLaw.of([Term(1, 1.0)]).reach(1 - 1e-16) is None
    assert estimates([[1.0]], [[1.0]], [[1.0]], [[1]]).interval(1 - 1e-16)[1][0, 0] > 8
    for terms in ([Term(1, 1e12)], [Term(1, 0.0)], [Term(math.inf, 1.0)]):
        with pytest.raises(StirredError):
            ErrorLaw.of(terms)


def test_intervals_are_at_95_percent_wherever_nothing_else_is_asked_for():
    """In Python and on the command line: no function that makes or shows estimates has another default."""
    modules = [
        importlib.import_module(f"stirred.estimates.{one.name}") for one in pkgutil.iter_modules(package.__path__)
    ]
    modules += [importlib.import_module("stirred.cli.estimating")]
    found = {}
    for module in modules:
        for name, one in vars(module).items():
            for made in (one, *vars(one).values()) if inspect.isclass(one) else (one,):
                if inspect.isfunction(made) and "confidence" in inspect.signature(made).parameters:
                    found[f"{module.__name__}.{name}.{made.__name__}"] = inspect.signature(made).parameters[
                        "confidence"
                    ]
    given = {name: one.default for name, one in found.items() if one.default is not one.empty}
    assert len(given) > 12 and set(given.values()) == {0.95}, given
