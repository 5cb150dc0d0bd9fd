"""The propositions of chapter 2 and Appendix A, on thousands of random finite mechanisms against enumeration.

Worlds are drawn with fixed seeds; premetrics are as wild as Definition 2.4.14 allows.
"""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from finite_oracle import (
    APPROXIMATE,
    METRICS,
    MULTIPLICATIVE,
    NUMBERS,
    RENYI,
    RHO,
    SEPARATING,
    VARIATION,
    apart,
    losses,
    near_budgets,
    random_flavor,
    random_mechanism,
    random_rows,
    satisfied,
    universes,
)
from repeats import times
from stirred import errors
from stirred.lab.definitions.multiverses import (
    along_components,
    as_pairs,
    as_premetric,
    sharpened,
    with_declared_invariants,
)
from stirred.loss.curves.power_curves import PowerCurve
from stirred.loss.divergences import power_curve
from stirred.spec import Budget, InputPremetric, Kind, Multiverse, OutputPremetric, may_publish_budget, register
from stirred.spec.order.finite_flavors import comparability, realised_budgets
from stirred.spec.order.finite_mechanisms import FiniteMechanism, bernoulli
from stirred.spec.order.implication import implies_by_table

pytestmark = pytest.mark.repeats
NAMES = tuple("abcd")
by_number = pytest.mark.parametrize("output", NUMBERS, ids=lambda output: output.name)
by_metric = pytest.mark.parametrize("output", METRICS, ids=lambda output: output.name)


def worlds(seed: int, output: OutputPremetric, cases: int, **choices):
    """Flavors and mechanisms; fewer where the supremum over orders has to be found."""
    random = np.random.default_rng(seed)
    for _ in range(cases // 4 if output == RHO else times(cases)):
        flavor = random_flavor(random, output, **choices)
        yield random, flavor, random_mechanism(random, flavor.domain.datasets)


# -- loss and satisfaction -----------------------------------------------------------------------------------


@by_number
def test_loss_and_satisfaction_are_those_of_the_definition(output):
    verdicts = Counter()
    for random, flavor, mechanism in worlds(1, output, 200):
        expected = losses(mechanism, flavor)
        found = mechanism.loss(flavor)
        assert found.by_universe == pytest.approx(expected, rel=1e-8, abs=1e-12)
        assert found.value == max(found.by_universe)
        for _ in range(3):
            specification = near_budgets(random, flavor, mechanism)
            verdict = bool(mechanism.satisfies(specification))
            verdicts[verdict] += 1
            assert verdict == satisfied(mechanism, specification)
    assert min(verdicts.values()) > times(20)


# -- chapter 2 -----------------------------------------------------------------------------------------------


@by_number
def test_2_4_11_an_invariant_costs_nothing_in_its_universes_and_everything_in_larger_ones(output):
    for random, flavor, _ in worlds(2, output, 200):
        values = {name: int(random.integers(3)) for name in NAMES}
        told = FiniteMechanism.releases(values, str)
        classes = {value: tuple(name for name in NAMES if values[name] == value) for value in values.values()}
        within = replace(flavor, multiverse=Multiverse((), tuple(classes.values())))
        assert told.loss(within).value == 0
        if output not in SEPARATING:
            continue
        for universe, loss in zip(universes(flavor), told.loss(flavor).by_universe, strict=True):
            differs = any(
                values[x] != values[y] and flavor.input_premetric.distance(x, y) < math.inf
                for x, y in itertools.permutations(universe, 2)
            )
            assert loss == (math.inf if differs else 0)


@by_metric
def test_2_4_12_under_a_metric_different_laws_cost_something(output):
    for _, flavor, mechanism in worlds(3, output, 200):
        law = dict(zip(mechanism.datasets, mechanism.rows, strict=True))
        for universe, loss in zip(universes(flavor), mechanism.loss(flavor).by_universe, strict=True):
            different = any(
                not np.allclose(law[x], law[y], rtol=1e-9) and flavor.input_premetric.distance(x, y) < math.inf
                for x, y in itertools.permutations(universe, 2)
            )
            assert (loss > 0) == different


def test_2_4_12_needs_the_metric():
    toy = random_flavor(np.random.default_rng(0), APPROXIMATE, size=2, choices=(1,))
    assert bernoulli({"a": 0.5, "b": 0.55}).loss(toy).value == 0


@by_number
def test_2_4_13_refining_universes_weakens(output):
    held = 0
    for random, flavor, mechanism in worlds(4, output, 120):
        specification = near_budgets(random, flavor, mechanism)
        old = [set(universe) for universe in universes(flavor)]
        masks = random.random((4, len(NAMES))) < 0.7
        parts = {tuple(sorted(set(np.array(NAMES)[mask]) & old[random.integers(len(old))])) for mask in masks}
        refined = replace(flavor, multiverse=Multiverse((), tuple(part for part in parts if part) or (("a",),)))
        new = [set(universe) for universe in refined.multiverse.universes]
        if not all(any(part <= universe for universe in old) for part in new):
            continue
        # From the coarse budgets to the fine ones.
        budgets = specification.budget.by_universe or (specification.budget.number,) * len(old)
        fine = tuple(min(b for b, universe in zip(budgets, old, strict=True) if part <= universe) for part in new)
        weaker = refined.at(Budget(max(fine), by_universe=fine))
        if mechanism.satisfies(specification):
            held += 1
            assert mechanism.satisfies(weaker)
        answer = implies_by_table(specification, weaker)
        assert answer.verdict == "yes", answer
        # From the fine budgets to the coarse ones.
        losses_ = mechanism.loss(refined).by_universe
        budgets = tuple(math.inf if loss == math.inf else Fraction(loss) for loss in losses_)
        coarse = tuple(
            min((b for b, part in zip(budgets, new, strict=True) if part <= universe), default=math.inf)
            for universe in old
        )
        stronger = flavor.at(Budget(max(coarse), by_universe=coarse if flavor.multiverse.universes else ()))
        other = random_mechanism(random, NAMES)
        assert implies_by_table(stronger, refined.at(Budget(max(budgets), by_universe=budgets)))
        for some in (mechanism, other):
            if some.satisfies(stronger):
                assert some.satisfies(refined.at(Budget(max(budgets), by_universe=budgets)))
        # The loss does not rise with invariants; single datasets are promised nothing.
        for part, loss in zip(new, losses_, strict=True):
            around = [one for one, u in zip(mechanism.loss(flavor).by_universe, old, strict=True) if part <= u]
            assert loss <= min(around) * (1 + 1e-9) + 1e-12
    assert held > 10
    alone = replace(flavor, multiverse=Multiverse((), tuple((name,) for name in NAMES)))
    assert random_mechanism(random, NAMES).satisfies(alone.at(0))


@by_number
def test_2_4_15_comparable_distances_give_comparable_losses(output):
    choices = {"choices": (1, "3/2", 2, 3, math.inf)}
    for random, flavor, mechanism in worlds(5, output, 150, **choices):
        factor = {pair: Fraction(int(random.integers(1, 7)), 2) for pair in itertools.permutations(NAMES, 2)}
        table = {(x, y): d * factor[x, y] for x, y, d in flavor.input_premetric.distances}
        if not table:
            continue
        other = replace(flavor, input_premetric=InputPremetric.table(table))
        lower, upper = (f(factor[pair] for pair in table) for f in (min, max))
        power = output.kind.power
        loss, changed = mechanism.loss(flavor).value, mechanism.loss(other).value
        assert changed <= loss / float(lower) ** power * (1 + 1e-9)
        assert loss <= changed * float(upper) ** power * (1 + 1e-9)
        budget = Fraction(1 if loss == math.inf else loss)
        assert implies_by_table(flavor.at(budget), other.at(budget / lower**power))
        assert implies_by_table(other.at(budget), flavor.at(budget * upper**power))


@by_number
def test_2_5_3_fresh_releases_add_up(output):
    for _, flavor, mechanism in worlds(6, output, 200):
        second = random_mechanism(_, NAMES)
        both, total = mechanism.and_then(second), []
        if output == APPROXIMATE:
            flavor = replace(flavor, output_premetric=replace(output, parameter="0.2"))
            parts = [replace(flavor, output_premetric=APPROXIMATE)] * 2
        else:
            parts = [flavor, flavor]
        for part, one in zip(parts, (mechanism, second), strict=True):
            total.append(one.loss(part).by_universe)
        for found, first, other in zip(both.loss(flavor).by_universe, *total, strict=True):
            assert found <= (first + other) * (1 + 1e-8) + 1e-12


@by_number
def test_2_5_4_processing_the_output_never_adds_to_the_loss(output):
    for random, flavor, mechanism in worlds(7, output, 200):
        size = len(mechanism.outputs)
        count = int(random.integers(1, 5))
        kernel = FiniteMechanism(
            mechanism.outputs, tuple(f"s{i}" for i in range(count)), random_rows(random, size, count)
        )
        for before, after in zip(
            mechanism.loss(flavor).by_universe, mechanism.then(kernel).loss(flavor).by_universe, strict=True
        ):
            assert after <= before * (1 + 1e-8) + 1e-12


def test_2_5_4_fails_for_a_premetric_that_looks_at_single_outputs():
    register(Kind("largest-atom", "A", "t", "The largest difference of the probabilities of one output.",
                  immune=False, divergence=lambda p, q: float(np.max(np.abs(np.asarray(p) - q)))))  # fmt: skip
    flavor = random_flavor(np.random.default_rng(0), OutputPremetric("largest-atom"), size=2, choices=(1,))
    spread = FiniteMechanism.of({"a": {"1": 0.5, "2": 0.5}, "b": {"3": 0.5, "4": 0.5}})
    merged = spread.coarsen([("1", "2"), ("3", "4")])
    assert spread.loss(flavor).value == 0.5
    assert merged.loss(flavor).value == 1


# -- appendix A ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", SEPARATING, ids=lambda output: output.name)
def test_a_2_1_a_deterministic_release_is_free_or_has_no_finite_budget(output):
    free = Counter()
    for random, flavor, _ in worlds(8, output, 200):
        values = {name: int(random.integers(2)) for name in NAMES}
        told = FiniteMechanism.releases(values, str)
        by_component = all(len({values[name] for name in members}) == 1 for members in comparability(flavor).components)
        free[by_component] += 1
        assert told.loss(flavor).value == (0 if by_component else math.inf)
    assert min(free.values()) > (5 if output == RHO else times(20))


def test_a_2_2_the_realised_budget_is_free_exactly_where_it_is_that_of_the_component():
    verdicts = Counter()
    for random, flavor, _ in worlds(9, MULTIPLICATIVE, 400):
        if not flavor.multiverse.universes:
            continue
        listed = tuple(Fraction(int(random.integers(1, 3))) for _ in flavor.multiverse.universes)
        specification = flavor.at(Budget(max(listed), by_universe=listed))
        budgets = realised_budgets(specification)
        assert FiniteMechanism.releases(budgets.of_components, sorted).loss(flavor).value == 0
        own = FiniteMechanism.releases(budgets.of_universes, sorted).loss(flavor).value
        assert own == (math.inf if budgets.differ_at else 0)
        answer = may_publish_budget(specification).verdict
        verdicts[answer] += 1
        assert answer == ("no" if own else "yes")
    assert set(verdicts) == {"yes", "no"}


def test_a_2_2_universes_that_share_no_comparable_pair_are_not_enough():
    # The corollary's condition II holds, and yet b' tells the three datasets apart.
    chain = random_flavor(np.random.default_rng(0), MULTIPLICATIVE, size=3, choices=(1,))
    chain = replace(chain, multiverse=Multiverse((), (("a", "b"), ("b", "c"))))
    specification = chain.at(Budget(2, by_universe=(1, 2)))
    assert realised_budgets(specification).differ_at == ("a", "c")
    assert may_publish_budget(specification).verdict == "no"


@by_number
@pytest.mark.parametrize("translate", [as_premetric, as_pairs, with_declared_invariants, along_components])
def test_a_3_1_to_a_4_2_translations_keep_the_mechanisms(translate, output):
    verdicts = Counter()
    for random, flavor, mechanism in worlds(10, output, 80):
        specification = near_budgets(random, flavor, mechanism)
        if translate is as_premetric and len(set(specification.budget.by_universe)) > 1:
            with pytest.raises(errors.SpecificationError, match="budgets differ"):
                as_premetric(specification)
            continue
        translated = translate(specification)
        verdict = mechanism.satisfies(specification).verdict
        verdicts[verdict] += 1
        assert mechanism.satisfies(translated).verdict == verdict
        assert implies_by_table(specification, translated)
        assert implies_by_table(translated, specification)
    assert min(verdicts.values()) > 2


def test_a_3_1_to_a_3_3_have_the_form_that_they_should():
    flavor = random_flavor(np.random.default_rng(0), MULTIPLICATIVE, choices=(1,))
    table = {("a", "b"): 1, ("b", "c"): 1, ("c", "d"): 1, ("b", "a"): math.inf}
    flavor = replace(
        flavor,
        input_premetric=InputPremetric.table(table),
        multiverse=Multiverse((), (("a", "b", "d"), ("b", "c"))),
    )
    one = flavor.at(Budget(2, by_universe=(2, 1)))
    assert as_premetric(flavor.at(1)).input_premetric.distances == (("a", "b", 1), ("b", "c", 1))
    assert as_premetric(flavor.at(1)).multiverse == Multiverse()
    assert as_pairs(one).multiverse.universes == (("a", "b"), ("b",), ("d",), ("a",), ("b", "c"), ("c",))
    assert as_pairs(one).budget.by_universe == (2, 1, 2, 2, 1, 1)
    assert with_declared_invariants(one).multiverse == one.multiverse  # distances join all four
    assert along_components(one).multiverse.universes == (("a", "b"), ("d",), ("b", "c"))
    assert along_components(one).budget.by_universe == (2, 2, 1)


@by_metric
def test_a_4_under_a_metric_neighbours_say_as_much_as_paths(output):
    held = 0
    for random, flavor, mechanism in worlds(11, output, 150, choices=(1, 1, math.inf)):
        flavor = replace(flavor, multiverse=Multiverse())
        specification = near_budgets(random, flavor, mechanism)
        paths = sharpened(specification)
        verdict = mechanism.satisfies(specification).verdict
        held += verdict == "yes"
        assert mechanism.satisfies(paths).verdict == verdict
        assert implies_by_table(specification, paths)
        assert implies_by_table(paths, specification)
    assert held > 10


@pytest.mark.parametrize("output", [APPROXIMATE, RENYI], ids=lambda output: output.name)
def test_a_4_without_a_metric_paths_say_more(output):
    flavor = random_flavor(np.random.default_rng(0), output, size=3, choices=(1,))
    chain = {("a", "b"): 1, ("b", "a"): 1, ("b", "c"): 1, ("c", "b"): 1}
    flavor = replace(flavor, input_premetric=InputPremetric.table(chain), multiverse=Multiverse())
    far = replace(flavor, input_premetric=flavor.input_premetric.sharpen())
    coin = bernoulli({"a": 0.5, "b": 0.7, "c": 0.85})
    budget = coin.loss(flavor).value * 1.001
    assert coin.satisfies(flavor.at(budget))
    assert coin.satisfies(far.at(budget)).verdict == "no"
    assert implies_by_table(flavor.at(budget), far.at(budget)).verdict != "yes"
    with pytest.raises(errors.SpecificationError, match="does not add up along paths"):
        sharpened(flavor.at(1))


def test_a_4_paths_through_other_universes_are_refused():
    flavor = random_flavor(np.random.default_rng(0), MULTIPLICATIVE, size=3, choices=(1,))
    pairs = replace(flavor, multiverse=Multiverse((), (("a", "b"), ("b", "c"))))
    with pytest.raises(errors.SpecificationError, match="paths leave the universes"):
        sharpened(pairs.at(1))
    assert sharpened(as_premetric(pairs.at(1))).input_premetric.distance("a", "c") == 2


@by_number
def test_a_5_3_extraneous_noise_changes_nothing(output):
    random = np.random.default_rng(12)
    for _ in range(times(60 if output == RHO else 300)):
        p, q = random_rows(random, 2, 4)
        noise = random_rows(random, 1, 3)[0]
        expected = apart(output, p, q)
        found = apart(output, np.outer(p, noise).ravel(), np.outer(q, noise).ravel())
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)
        deterministic = np.zeros((4, 2))
        deterministic[np.arange(4), random.integers(2, size=4)] = 1
        assert apart(output, p @ deterministic, q @ deterministic) <= expected * (1 + 1e-8) + 1e-12


# -- a recipe for output premetrics --------------------------------------------------------------------------


def area(p, q) -> float:
    """The area under Tr(P, Q): a non-decreasing functional of trade-off functions."""
    levels, powers = power_curve(p, q).T
    return float(np.sum(np.diff(levels) * (powers[1:] + powers[:-1]) / 2))


def a_power_difference(p, q) -> float:
    """One that is not non-decreasing: the power at level 0.1 less that at level 0.5."""
    curve = PowerCurve(tuple(map(tuple, power_curve(p, q))))
    return abs(float(curve.power(0.1) - curve.power(0.5)) + 0.4)


def test_a_6_3_a_non_decreasing_functional_makes_an_output_premetric():
    register(Kind("gained-area", "L", "l", "The area that tests gain.", divergence=lambda p, q: area(p, q) - 0.5))
    random = np.random.default_rng(13)
    flavor = random_flavor(random, OutputPremetric("gained-area"), size=4, choices=(1, 2, math.inf))
    for _ in range(times(300)):
        mechanism = random_mechanism(random, NAMES)
        p, q = mechanism.rows[:2]
        noise = random_rows(random, 1, 3)[0]
        assert area(p, p) == pytest.approx(0.5)
        assert area(np.outer(p, noise).ravel(), np.outer(q, noise).ravel()) == pytest.approx(area(p, q))
        size = len(mechanism.outputs)
        kernel = FiniteMechanism(mechanism.outputs, ("s", "t"), random_rows(random, size, 2))
        assert mechanism.then(kernel).loss(flavor).value <= mechanism.loss(flavor).value + 1e-12


def test_a_6_3_a_functional_that_falls_somewhere_is_raised_by_processing():
    random = np.random.default_rng(14)
    raised = 0
    for _ in range(times(200)):
        p, q = random_rows(random, 2, 4)
        kernel = random_rows(random, 4, 2)
        raised += a_power_difference(p @ kernel, q @ kernel) > a_power_difference(p, q) + 1e-6
    assert raised > 0


def test_the_worlds_are_not_all_alike():
    seen = Counter()
    for _, flavor, mechanism in worlds(1, VARIATION, 200):
        finite = [d for _, _, d in flavor.input_premetric.distances]
        seen["zero"] += 0 in finite
        seen["universes"] += len(flavor.multiverse.universes) > 1
        seen["zeros"] += bool(np.any(mechanism.rows == 0))
    assert min(seen.values()) > times(20)
