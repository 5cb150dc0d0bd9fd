"""Bias against noise: never below a search of all small samples, and the recommended rule is the best of all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import SurveyError
from stirred.reports.figures import draw
from stirred.survey import Bounds, PublicWeights, WeightRule, WeightTrade


class Facts(NamedTuple):
    """The fields of public weights, unchecked."""

    lower: int
    upper: int
    population: int
    fewest: int
    most: int
    slack: int


def samples(public: PublicWeights | Facts) -> Iterator[tuple[int, ...]]:
    """Every sample of whole weights that the facts allow, up to the order of its records."""
    weights = range(int(public.lower), int(public.upper) + 1)
    for records in range(public.fewest, public.most + 1):
        for one in itertools.combinations_with_replacement(weights, records):
            if abs(sum(one) - public.population) <= public.slack:
                yield one


def moved(rule: WeightRule, weight: int) -> Fraction:
    """The change of a weight by the rule, rounding apart."""
    cut = min(max(Fraction(weight), rule.lower), rule.upper)
    return cut + rule.shrink * ((rule.centre or 0) - cut) - weight


def largest_bias(rule: WeightRule, weights: tuple[int, ...], value: Bounds, records: int | None) -> Fraction:
    """The largest bias of a sum over all records (None), or over at most so many of them, by the best values."""
    best = Fraction(0)
    for sign in (1, -1):
        each = [max(sign * moved(rule, weight) * x for x in value.ends) for weight in weights]
        if records is None:
            best = max(best, sum(each, Fraction(0)))
        else:
            best = max(best, sum(sorted((one for one in each if one > 0), reverse=True)[:records], Fraction(0)))
    return best


@st.composite
def small_facts(draw) -> PublicWeights:
    lower = draw(st.integers(1, 3))
    upper = lower + draw(st.integers(0, 5))
    sample = draw(st.lists(st.integers(lower, upper), min_size=1, max_size=5))
    fewest, most = draw(st.integers(max(1, len(sample) - 2), len(sample))), draw(st.integers(len(sample), 6))
    slack = draw(st.sampled_from([0, 0, 1, 3]))
    population = max(1, sum(sample) + draw(st.integers(-slack, slack)))
    return PublicWeights(lower, upper, population, fewest, most, slack)


VALUES = st.sampled_from([(1, 1), (0, 1), (0, 3), (2, 5), (-2, 3), (-4, 1), (-5, -1), (-3, 0), (0, 0)])


@settings(max_examples=150)
@given(small_facts(), VALUES, st.sampled_from([0, 0, "1/4", "2/3", 1]), st.sampled_from([None, 1, 2, 3]), st.data())
def test_worst_bias_is_that_of_a_search_of_all_samples(public, value, shrink, limit, data):
    cut = data.draw(st.integers(int(public.lower), int(public.upper)))
    centre = data.draw(st.fractions(public.lower, cut, max_denominator=3)) if shrink else None
    trade = WeightTrade(
        public,
        1,
        epsilon=1,
        value=Bounds(*value),
        cell_records=limit,
        centre=centre,
        cells=data.draw(st.integers(1, 3)),
    )
    rule, point = trade.rule(cut, shrink), trade.at(cut, shrink)
    possible = list(samples(public))
    records = max(map(len, possible))
    most, half = max(map(abs, value)), Fraction(1, 2) if shrink else 0
    cell = point.cell_bias - half * most * min(limit or records, records)
    total = point.total_bias - half * most * records
    wanted = max(largest_bias(rule, one, trade.value, limit or records) for one in possible)
    of_all = max(largest_bias(rule, one, trade.value, None) for one in possible)
    assert cell >= wanted and total >= of_all
    if value[0] >= 0 or value[1] <= 0 or (public.fewest == public.most and not public.slack):
        assert cell == wanted
        if not shrink or cut == public.upper or value[0] < 0 < value[1]:
            assert total == of_all


@settings(max_examples=150)
@given(small_facts(), st.fractions(0, 9, max_denominator=2), st.sampled_from([None, 1, 2, 3, 9]))
def test_most_weight_above_and_below_a_level(public, level, records):
    possible = list(samples(public))

    def searched(sign: int) -> Fraction:
        return max(
            sum(sorted((max(sign * (weight - level), Fraction(0)) for weight in one), reverse=True)[:records])
            for one in possible
        )

    unit = math.lcm(public.unit, level.denominator)
    at = int(level * unit)
    for sign in (1, -1):
        found = public.largest_sum(lambda weight, sign=sign: max(sign * (weight - at), 0), unit, records)
        assert Fraction(found, unit) == searched(sign)


@given(
    st.integers(1, 4), st.integers(0, 3), st.integers(1, 30), st.integers(1, 4), st.integers(0, 2), st.integers(0, 2)
)
def test_facts_are_refused_where_no_sample_fits_them(lower, width, population, fewest, more, slack):
    facts = Facts(lower, lower + width, population, fewest, fewest + more, slack)
    if any(samples(facts)):
        assert PublicWeights(*facts).records[0] <= PublicWeights(*facts).records[1]
    else:
        with pytest.raises(SurveyError, match="do not add up"):
            PublicWeights(*facts)


@given(small_facts())
def test_the_worst_samples_are_samples_that_the_facts_allow(public):
    possible = set(samples(public))
    for classes in public.worst:
        assert tuple(sorted(int(weight) for weight, count in classes for _ in range(count))) in possible


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 9)), min_size=1, max_size=5),
    st.sampled_from([{"epsilon": 2}, {"epsilon": "0.1"}, {"rho": "0.5"}, {"rho": "0.002", "share": "1/3"}]),
    VALUES,
    st.sampled_from(["cell", "total"]),
    st.sampled_from(["1/2", 1]),
    st.booleans(),
    st.sampled_from(["unit", "value"]),
    st.booleans(),
)
def test_the_recommended_cut_is_the_best_of_all_cuts(classes, budget, value, target, step, listed, change, moves):
    public = PublicWeights.listed(classes)
    if not listed:
        public = PublicWeights(public.lower, public.upper, public.population, public.fewest, public.most + 2, 3)
    trade = WeightTrade(
        public, step, **budget, value=Bounds(*value), cells=4, cell_records=5, change=change, moves=moves
    )
    low, high = (int(end / trade.step) for end in trade.range)
    points = [trade.at(steps * trade.step) for steps in range(low, high + 1)]
    best = min(points, key=lambda point: point.squared(target))
    assert trade.recommended_cut(target) == best
    middle = low + (high - low) // 3
    within = points[: middle - low + 1]
    found = trade.recommended_cut(target, (low * trade.step, middle * trade.step))
    assert found == min(within, key=lambda point: point.squared(target))


def test_the_recommended_shrinking_is_the_best_of_the_grid_and_the_recommended_rule_the_better_of_both():
    trade = WeightTrade(PublicWeights(1, 900, 98_700, 4803, 4803), 1, epsilon="0.1", cell_records=20, cells=50)
    for target in ("cell", "total"):
        grid = [trade.at(shrink=Fraction(k, 20)).squared(target) for k in range(21)]
        assert trade.recommended_shrink(target, grid=20).squared(target) == min(grid)
        both = trade.recommended_cut(target), trade.recommended_shrink(target)
        assert trade.recommended(target).squared(target) == min(one.squared(target) for one in both)
    assert trade.recommended("total").rule.shrink == 1  # the sum of all weights is public
    assert trade.recommended_shrink(cut=300).rule.upper == 300


@given(VALUES, st.booleans(), st.sampled_from(["unit", "value"]), st.sampled_from([0, "1/2"]))
def test_noise_covers_every_change_of_one_record(value, moves, change, shrink):
    public = PublicWeights(2, 6, 40, 10, 10)
    rule = WeightTrade(public, 1, epsilon=1).rule(5, shrink)
    weights = sorted({int(one) for one in rule.apply(range(2, 7), 1)})
    values = range(value[0], value[1] + 1)
    first = second = Fraction(0)
    for old, new in itertools.product(itertools.product(weights, values, range(2)), repeat=2):
        if (change == "value" and old[0] != new[0]) or (not moves and old[2] != new[2]):
            continue
        cells = [Fraction(0), Fraction(0)]
        cells[old[2]] -= old[0] * old[1]
        cells[new[2]] += new[0] * new[1]
        first = max(first, sum(map(abs, cells)))
        second = max(second, sum(one**2 for one in cells))
    facts = {"value": Bounds(*value), "moves": moves, "change": change, "share": "1/2"}
    assert WeightTrade(public, 1, epsilon=3, **facts).at(5, shrink).variance == 2 * (first / Fraction(3, 2)) ** 2
    assert WeightTrade(public, 1, rho=3, **facts).at(5, shrink).variance == second / 3


def test_noise_as_in_the_formulas_for_a_replaced_record():
    public = PublicWeights.listed([(2, 10), (50, 4)])
    counts = WeightTrade(public, 1, epsilon="1/2").at()
    assert counts.variance == 2 * (2 * 50 / Fraction(1, 2)) ** 2
    assert WeightTrade(public, 1, rho=2, value=Bounds(0, 7)).at().variance == Fraction((50 * 7) ** 2, 2)
    stays = WeightTrade(public, 1, epsilon=1, moves=False)
    assert stays.at().variance == 2 * 48**2 and stays.at(2).variance == 0
    assert WeightTrade(public, 1, epsilon=1, moves=False, change="value").at().variance == 0
    # Values of both signs: a record that stays changes its cell by twice the most, more than one that moves in squares.
    assert WeightTrade(public, 1, rho=1, value=Bounds(-1, 1)).at().variance == 2 * 50**2


def test_the_example_by_calculus():
    """Three weights of 900 and Laplace noise: 9 (900 - u)^2 + 8 u^2 is least at u = 8100 / 17."""
    trade = WeightTrade(PublicWeights.listed([(12, 4000), (60, 800), (900, 3)]), "0.001", epsilon=1)
    assert abs(trade.recommended_cut().rule.upper - Fraction(8100, 17)) <= trade.step
    cuts = [point.rule.upper for point in trade.recommended_cuts(["0.05", 1, 50])]
    assert cuts == sorted(cuts) and cuts[0] == 60 and cuts[-1] > 899


def test_sharper_facts_give_smaller_errors():
    """Listed weights, then bounds for the same sample, then bounds of its size too."""
    listed = PublicWeights.listed([(12, 4000), (60, 800), (900, 3)])
    bounded = PublicWeights(12, 900, listed.population, 4803, 4803)
    vague = PublicWeights(12, 900, listed.population, 4000, 5000, 1000)
    errors = [WeightTrade(one, 1, epsilon=1).recommended_cut().squared("cell") for one in (listed, bounded, vague)]
    assert errors == sorted(errors) and errors[0] < errors[1] < errors[2]
    few = WeightTrade(bounded, 1, epsilon=1, cell_records=2).recommended_cut()
    assert few.squared("cell") < errors[1]


def test_listed_weights_off_the_lattice_are_rounded_and_the_bias_says_so():
    public = PublicWeights.listed([("12.3", 10), ("40.5", 4)])
    trade = WeightTrade(public, 1, epsilon=1)
    assert trade.range == (12, 41) and trade.rule().rounding == "nearest"
    assert trade.at().cell_bias == 7  # fourteen records, half a step each
    weights = [123] * 10 + [405] * 4
    after = trade.rule().apply(weights, 10)
    assert abs(int(after.sum()) - Fraction(sum(weights), 10)) <= trade.at().total_bias
    assert WeightTrade(PublicWeights.listed([(12, 10)]), 1, epsilon=1).rule().rounding == "refuse"
    assert WeightTrade(PublicWeights.listed([(12, 10)]), 1, epsilon=1, rounded=True).at().cell_bias == 5


def test_the_table_marks_what_is_recommended():
    trade = WeightTrade(PublicWeights.listed([(12, 4000), (60, 800), (900, 3)]), 1, epsilon=1)
    lines = trade.table().splitlines()
    assert lines[0] == "One cell, Laplace noise, epsilon 1"
    assert [line.split() for line in lines if line.startswith("*")] == [
        ["*", "476", "1,272", "1,347", "1,853"], ["*", "0", "0", "2,546", "2,546"],
    ]  # fmt: skip
    assert "The sum over all cells, Gaussian noise, 1/3 of rho 0.5" in WeightTrade(
        trade.weights, 1, rho="0.5", share="1/3", cells=7
    ).table("total")


def test_pictures_have_the_numbers_of_the_table_and_can_be_drawn():
    trade = WeightTrade(PublicWeights.listed([(12, 4000), (60, 800), (900, 3)]), 1, epsilon=1)
    by_cut, by_shrink = trade.pictures()
    bias, noise, error = by_cut.lines
    at = error.y.index(min(error.y))
    assert error.x[at] == 476 and (bias.y[at], round(noise.y[at])) == (1272, 1346)
    assert by_cut.subtitle == "The smallest error is at 476: 1,853"
    assert by_shrink.lines[0].x[0] == 0 and by_shrink.lines[0].x[-1] == 1
    for picture in (*trade.pictures(), *trade.pictures("total")):
        assert draw(picture).to_dict() and "public facts only" in picture.caption
    equal = WeightTrade(PublicWeights.listed([(12, 40)]), 1, epsilon=1)
    assert [one.name for one in equal.pictures()] == ["weight-shrink"]
    unknown = WeightTrade(PublicWeights(1, 9, 40, 10, 12), 1, epsilon=1)
    assert [one.name for one in unknown.pictures()] == ["weight-cut"] and "shrunk" not in unknown.table()


KNOWN = PublicWeights(1, 9, 40, 10, 12)
REFUSED = [
    (lambda: PublicWeights(None, 9, 40, 10, 12), "survey-bounds", "the lower bound of weights"),
    (lambda: PublicWeights(1, 9, None, 10, 12), "survey-bounds", "the size of the population"),
    (lambda: PublicWeights(0, 9, 40, 10, 12), "weight-facts", "bounds of weights are positive"),
    (lambda: PublicWeights(9, 1, 40, 10, 12), "weight-facts", "the lower one first"),
    (lambda: PublicWeights(1, 9, -40, 10, 12), "weight-facts", "population is positive"),
    (lambda: PublicWeights(1, 9, 40, 10, 12, -1), "weight-facts", "slack is not negative"),
    (lambda: PublicWeights(1, 9, 40, 0, 12), "survey-fact", "at least 1"),
    (lambda: PublicWeights(1, 9, 40, 10, 12.0), "survey-fact", "whole number"),
    (lambda: PublicWeights(1, 9, 40, 13, 12), "weight-facts", "more than the most"),
    (lambda: PublicWeights(1, 9, 400, 10, 12), "weight-facts", "10 to 12 weights from 1 to 9 do not add up to 400"),
    (lambda: PublicWeights(5, 9, 40, 10, 12), "weight-facts", "do not add up to 40"),
    (lambda: PublicWeights.listed([]), "weight-facts", "no weight is listed"),
    (lambda: PublicWeights.listed([(3, 0)]), "weight-facts", "no weight is listed"),
    (lambda: PublicWeights.listed([(3, -1)]), "survey-fact", "at least 0"),
    (lambda: PublicWeights.listed([(0, 1)]), "weight-facts", "positive"),
    (lambda: WeightTrade(KNOWN, 1), "survey-fact", "epsilon or rho"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1, rho=1), "survey-fact", "one of them"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=0), "survey-fact", "The epsilon is positive"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1, share=2), "survey-fact", "at most 1"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1, cells=0), "survey-fact", "The number of cells is"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1, cell_records=0), "survey-fact", "number of cell records"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1, change="both"), "survey-fact", "one of value, unit"),
    (lambda: WeightTrade(KNOWN, 0, epsilon=1), "weight-rule", "step is not positive"),
    (lambda: WeightTrade(KNOWN, 2, epsilon=1), "weight-rule", "larger than the smallest weight"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1).at(10), "weight-rule", "above the largest weight"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1).at("2.5"), "weight-rule", "no whole multiple of the step"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1).at(shrink="1/2"), "weight-rule", "names none"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1).recommended_cut("all"), "survey-fact", "one of cell, total"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1).recommended_cut(within=(0, 3)), "weight-rule", "range of cuts is not"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1).recommended_cut(within=("2.1", "2.9")), "weight-rule", "no multiple"),
    (lambda: WeightTrade(KNOWN, 1, epsilon=1, centre=3).recommended_shrink(grid=0), "survey-fact", "at least 1"),
]


@pytest.mark.parametrize(("refused", "kind", "words"), REFUSED, ids=[f"{one[1]}-{one[2]}" for one in REFUSED])
def test_facts_that_cannot_be_used_are_refused_by_name(refused, kind, words):
    with pytest.raises(SurveyError, match=words) as found:
        refused()
    assert found.value.kind == kind
