"""No mechanism escapes: whatever the library says about random specifications holds for random mechanisms.

A *yes* is tested by mechanisms that satisfy the first specification narrowly, a *no* by building one that satisfies
the first and breaks the second, a composition by the product of the mechanisms.
"""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from random_specifications import (
    DOMAIN,
    FILES,
    MORE_FILES,
    budgets_like,
    calibrated,
    file_mechanism,
    listed,
    pick,
    random_budget,
    random_pair,
)

from finite_oracle import METRICS, NUMBERS, near_budgets, random_mechanism, satisfied
from finite_oracle import random_flavor as random_table
from repeats import times
from stirred import errors
from stirred.loss.curves.power_curves import GaussianCurve, approximate_power, pure_power
from stirred.spec import (
    Budget,
    Domain,
    Flavor,
    InputPremetric,
    Invariant,
    Multiverse,
    OutputPremetric,
    Specification,
    compose,
    flavors,
)
from stirred.spec.order.conversions import convert
from stirred.spec.order.finite_mechanisms import FiniteMechanism, bernoulli, randomised_response
from stirred.spec.order.implication import implies_by_table, witness

pytestmark = pytest.mark.repeats


def weakest_implied(a: Specification, target: Flavor) -> Specification | None:
    """The smallest budget, of many, for which ``a`` is said to imply the target."""
    size = Fraction(1) if a.budget.is_curve else a.budget.number
    for factor in ("0", "1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8", "16"):
        for budget in budgets_like(target.output_premetric, size * Fraction(factor)):
            b = target.at(budget)
            if a.implies(b):
                return b
    return None


# -- in general ----------------------------------------------------------------------------------------------


def test_whatever_satisfies_the_first_satisfies_what_it_implies():
    random = np.random.default_rng(20)
    steps = Counter()
    for _ in range(times(1500)):
        first, second = random_pair(random)
        mechanism = file_mechanism(random)
        a = calibrated(first, mechanism)
        b = a and weakest_implied(a, second)
        if not b:
            continue
        answer = a.implies(b)
        steps.update({step.rule for step in answer.steps})
        assert mechanism.satisfies(b, FILES), f"{a}\nimplies\n{b}\n{answer}\n{mechanism.satisfies(b, FILES)}"
    for rule in ("order", "size", "sharpening", "neighbours", "scale", "conversion", "refinement", "budget"):
        assert steps[rule] > times(2), steps


def test_general_answers_never_contradict_those_by_enumeration():
    random = np.random.default_rng(21)
    seen = Counter()
    for _ in range(times(1200)):
        first, second = random_pair(random)
        a = first.at(random_budget(random, first.output_premetric))
        b = second.at(random_budget(random, second.output_premetric))
        answer = a.implies(b)
        if answer.verdict == "unknown":
            continue
        here = implies_by_table(listed(a), listed(b))
        if answer.verdict == "no" and here.verdict != "no":
            # Some witnesses need longer files or a third value.
            here = implies_by_table(listed(a, MORE_FILES), listed(b, MORE_FILES))
        seen[answer.verdict, here.verdict] += 1
        assert (answer.verdict, here.verdict) not in {("yes", "no"), ("no", "yes")}, f"{a}\n{b}\n{answer}\n{here}"
        if answer.verdict == "yes" and second.output_premetric in METRICS and first.output_premetric in METRICS:
            assert here.verdict == "yes", f"{a}\n{b}\n{answer}\n{here}"
    assert min(seen["yes", "yes"], seen["no", "no"]) > times(100)
    assert seen["yes", "unknown"] + seen["no", "unknown"] < 0.02 * sum(seen.values())


def test_whatever_is_refuted_in_general_has_a_witness_on_small_files():
    random = np.random.default_rng(22)
    found = Counter()
    for _ in range(times(600)):
        first, second = random_pair(random)
        a = first.at(random_budget(random, first.output_premetric))
        b = second.at(random_budget(random, second.output_premetric))
        if a.implies(b).verdict == "no":
            mechanism = witness(listed(a), listed(b))
            found[mechanism is not None] += 1
            if mechanism:
                assert mechanism.satisfies(a, FILES)
                assert mechanism.satisfies(b, FILES).verdict == "no"
    assert found[True] > 20 * found[False]


def test_the_product_of_mechanisms_satisfies_the_composition():
    random = np.random.default_rng(23)
    composed = Counter()
    for _ in range(times(600)):
        first, second = random_pair(random)
        mechanisms = file_mechanism(random), file_mechanism(random)
        given = [calibrated(*pair) for pair in zip((first, second), mechanisms, strict=True)]
        if None in given:
            continue
        try:
            total = compose(*given)
        except errors.SpecificationError as refusal:
            assert refusal.kind == "no-rule"
            continue
        composed[total.specification.output_premetric.name] += 1
        both = mechanisms[0].and_then(mechanisms[1])
        assert both.satisfies(total.specification, FILES), f"{total}\n{both.satisfies(total.specification, FILES)}"
    assert sum(composed.values()) > times(90)
    assert len(composed) >= 5, composed


# -- on listed datasets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", NUMBERS, ids=lambda output: output.name)
def test_answers_by_table_hold_for_random_mechanisms_and_refusals_have_witnesses(output):
    random = np.random.default_rng(24)
    verdicts, witnesses = Counter(), 0
    for _ in range(times(60 if output.name == "normalised-renyi" else 200)):
        flavor = random_table(random, output)
        mechanism = random_mechanism(random, flavor.domain.datasets)
        a = near_budgets(random, flavor, mechanism)
        other = random_table(random, output)
        b = near_budgets(random, pick(random, (other, replace(flavor, multiverse=other.multiverse))), mechanism)
        answer = implies_by_table(a, b)
        verdicts[answer.verdict] += 1
        if answer and mechanism.satisfies(a):
            assert satisfied(mechanism, b), f"{a}\n{b}\n{answer}"
        if answer.verdict == "no" and output.name != "normalised-renyi":
            found = witness(a, b)
            if found is None:  # the two differ by less than floats can tell
                assert implies_by_table(a, slightly_larger(b)).verdict != "no", f"{a}\n{b}\n{answer}"
                continue
            witnesses += 1
            assert satisfied(found, a)
            assert not satisfied(found, b, 1e-11)
        if output in METRICS:
            assert answer.verdict != "unknown" or output.name == "normalised-renyi"
    assert min(verdicts["yes"], verdicts["no"]) > times(10)
    assert witnesses > 0.9 * verdicts["no"] or output.name == "normalised-renyi"


def slightly_larger(specification: Specification) -> Specification:
    budget, more = specification.budget, 1 + Fraction(1, 10**6)
    listed_ = tuple(one * more for one in budget.by_universe)
    return replace(specification, budget=Budget(budget.number * more, by_universe=listed_))


def test_answers_by_table_across_output_premetrics_hold_for_random_mechanisms():
    random = np.random.default_rng(25)
    verdicts = Counter()
    for _ in range(times(150)):
        flavor = random_table(random, pick(random, NUMBERS))
        other = replace(flavor, output_premetric=pick(random, NUMBERS))
        mechanism = random_mechanism(random, flavor.domain.datasets)
        a = near_budgets(random, flavor, mechanism)
        for factor in (Fraction(1, 4), Fraction(1), Fraction(4)):
            b = other.at(a.budget.number * factor)
            answer = implies_by_table(a, b)
            verdicts[answer.verdict] += 1
            if answer and mechanism.satisfies(a):
                assert satisfied(mechanism, b), f"{a}\n{b}\n{answer}"
            if answer.verdict == "no" and (found := witness(a, b)):
                assert satisfied(found, a)
                assert not satisfied(found, b)
    assert min(verdicts["yes"], verdicts["no"]) > times(50)


def test_the_product_of_mechanisms_satisfies_the_composition_on_listed_datasets():
    random = np.random.default_rng(26)
    composed = Counter()
    for _ in range(times(250)):
        flavor = random_table(random, pick(random, NUMBERS))
        other = replace(flavor, output_premetric=pick(random, (flavor.output_premetric, *NUMBERS)))
        mechanisms = [random_mechanism(random, flavor.domain.datasets, 3) for _ in range(2)]
        a, b = (near_budgets(random, *pair) for pair in zip((flavor, other), mechanisms, strict=True))
        try:
            total = compose(a, b)
        except errors.SpecificationError as refusal:
            assert refusal.kind == "no-rule"
            continue
        if mechanisms[0].satisfies(a) and mechanisms[1].satisfies(b):
            composed[a.output_premetric == b.output_premetric] += 1
            assert satisfied(mechanisms[0].and_then(mechanisms[1]), total.specification), f"{a}\n{b}\n{total}"
    assert composed[True] > times(20)
    assert composed[False] > times(5)


def line(*distances, output=None) -> Flavor:
    """Datasets a, b, c, ... in a row, each at a distance from the next, in both directions."""
    names = "abcdefg"[: len(distances) + 1]
    steps = {pair: d for x, y, d in zip(names, names[1:], distances, strict=False) for pair in ((x, y), (y, x))}
    return Flavor(Domain("toy", datasets=tuple(names)), Multiverse(), InputPremetric.table(steps), output or METRICS[0])


def test_every_conversion_holds_between_random_laws_and_mirrored_ones_at_any_distance():
    random = np.random.default_rng(27)
    used = Counter()
    coins = [bernoulli({"a": chance, "b": 1 - chance}) for chance in (0.500001, 0.51, 0.6, 0.75, 0.95, 0.999)]
    mechanisms = [*coins, *(random_mechanism(random, ("a", "b")) for _ in range(12))]
    standards = (*NUMBERS, OutputPremetric("renyi", 2), OutputPremetric("approximate", "0.2"))
    for mechanism, start, distance in itertools.product(mechanisms, standards, ("1/2", 1, 2)):
        flavor = line(distance, output=start)
        loss = mechanism.loss(flavor).value
        if loss == math.inf:
            continue
        a = flavor.at(Fraction(loss) * (1 + Fraction(1, 10**9)))
        for end in standards:
            if start != end and (found := convert(a, end)):
                used[start.name, end.name] += 1
                assert mechanism.satisfies(found[0]), f"{a}\n{found[0]}\n{mechanism.satisfies(found[0])}"
    assert len(used) >= 11, used


def test_roots_of_different_numbers_are_not_told_from_a_tie():
    zcdp = line(1, 1, output=OutputPremetric("normalised-renyi"))
    far = replace(zcdp, input_premetric=InputPremetric.table({("a", "c"): 1}))
    assert implies_by_table(zcdp.at(2), far.at(8))  # twice the root of 2, squared
    assert implies_by_table(zcdp.at(2), far.at("7.999")).verdict == "no"
    pairs = replace(zcdp, multiverse=Multiverse((), (("a", "b"), ("b", "c"))))
    uneven = pairs.at(Budget(3, by_universe=(2, 3)))
    exact = float(2**0.5 + 3**0.5) ** 2
    assert implies_by_table(uneven, far.at(exact * 1.001))
    assert implies_by_table(uneven, far.at(exact * 0.999)).verdict == "no"
    assert implies_by_table(uneven, far.at(exact)).verdict == "unknown"


def test_a_listed_answer_says_which_rules_it_used():
    pairs = replace(line(1, 1), multiverse=Multiverse((), (("a", "b"), ("b", "c"))))
    far = replace(line(1, 1), input_premetric=InputPremetric.table({("a", "c"): 2}))
    sources = [step.source for step in implies_by_table(pairs.at(1), far.at(1)).steps]
    assert sources == [
        "Propositions A.3.1 and A.3.2", "Proposition 2.4.13", "Appendix A.4", "Proposition 2.4.15", "Definition 2.4.5",
    ]  # fmt: skip
    refusal = implies_by_table(pairs.at(1), far.at("0.9"))
    assert refusal.verdict == "no"
    assert "'a' and 'c'" in str(refusal)
    gaussian = replace(far, output_premetric=OutputPremetric("normalised-renyi"))
    assert "section 3.5.2" in str(implies_by_table(gaussian.at("0.01"), far.at(100)))
    assert implies_by_table(gaussian.at(0), far.at(100)).verdict == "unknown"
    assert implies_by_table(line(1).at(1), line(1, 1).at(1)).verdict == "unknown"


# -- faults that these tests found ---------------------------------------------------------------------------


def records(output, *invariants, **premetric) -> Flavor:
    return Flavor(DOMAIN, Multiverse(invariants), InputPremetric("records", "person", **premetric), output)


def test_a_delta_that_grows_with_groups_is_compared_with_the_delta_that_was_asked_for():
    near = {"ordered": True, "sharpened": False}
    a = records(OutputPremetric("trade-off"), bounded=False, **near).at(approximate_power(0, 0.05))
    b = records(OutputPremetric("approximate", "0.05"), **near).at(2)
    assert a.implies(b).verdict != "yes"
    a = records(OutputPremetric("approximate", "0.05"), bounded=False, **near).at(0)
    assert a.implies(b).verdict != "yes"
    assert a.implies(records(OutputPremetric("approximate", "0.1"), **near).at(2))


def test_paths_that_leave_the_universes_of_the_first_are_not_followed():
    fixed = records(OutputPremetric(), Invariant("person"), bounded=False, sharpened=False).at("0.5")
    replaced = records(OutputPremetric(), sharpened=False).at(2)
    assert fixed.implies(replaced).verdict != "yes"  # neighbours of equal size there are none
    paths = records(OutputPremetric(), Invariant("person"), sharpened=False).at("0.5")
    assert paths.implies(records(OutputPremetric()).at("0.5"))  # replacing records keeps their number


def test_a_delta_between_copies_at_distance_zero_is_not_forgotten():
    told = FiniteMechanism.of({name: {name: 0.05, "": 0.95} if name else {"": 1} for name in FILES})
    a = records(OutputPremetric("approximate", "0.05"), sharpened=False).at(0)
    variation = records(OutputPremetric("total-variation"), sharpened=False).at(1)
    assert told.satisfies(a, FILES)
    assert told.satisfies(variation, FILES).verdict == "no"  # '01' and '10' are the same file in another order
    assert a.implies(variation).verdict != "yes"
    assert a.implies(records(OutputPremetric("trade-off"), sharpened=False).at(pure_power(5))).verdict != "yes"
    in_order = {"ordered": True, "sharpened": False}
    a, variation = (records(one.output_premetric, **in_order).at(one.budget) for one in (a, variation))
    assert told.satisfies(variation, FILES)
    assert a.implies(variation)


def test_a_curve_without_power_allows_no_randomised_response():
    ordered = records(OutputPremetric("trade-off"), ordered=True, sharpened=False)
    unordered = records(OutputPremetric("approximate", "0.05"))
    assert ordered.at(GaussianCurve(0)).implies(unordered.at(1)).verdict != "no"
    assert ordered.at(GaussianCurve(1)).implies(unordered.at(1)).verdict == "no"
    response = randomised_response("1/4", respondents=2)
    pairs = {name: FILES[name] for name in response.datasets}
    assert response.satisfies(flavors.local().at("1.1"), pairs)
    assert response.satisfies(flavors.pure().at(100), pairs).verdict == "no"


def test_no_is_not_said_of_files_that_the_domain_may_not_have():
    opaque = Invariant(name="everything but the age of each person")
    small, large = records(OutputPremetric()), records(OutputPremetric(), opaque, bounded=False)
    assert small.at(1).implies(large.at(1)).verdict == "unknown"
    assert small.at(1).implies(records(OutputPremetric(), bounded=False).at(1)).verdict == "no"
    single = Domain("files of one person")
    ordered, unordered = (replace(records(OutputPremetric(), ordered=one), domain=single) for one in (True, False))
    assert ordered.at(1).implies(unordered.at(1)).verdict == "unknown"


def test_files_that_differ_in_their_order_alone_have_one_law_where_order_does_not_count():
    counts = Invariant("person", by=("v",))
    zcdp = records(OutputPremetric("normalised-renyi"), counts).at(1)
    pure = replace(records(OutputPremetric(), counts, ordered=True), nearest=2).at(1)
    assert zcdp.implies(pure).verdict != "no"


def test_a_divergence_bounded_in_one_direction_is_not_converted_to_one_of_both():
    half = FiniteMechanism.of({"a": {"x": 1}, "b": {"x": 0.5, "y": 0.5}})
    there = replace(line(1, output=OutputPremetric("renyi", 2)), input_premetric=InputPremetric.table({("a", "b"): 1}))
    renyi, target = there.at(1), OutputPremetric("approximate", "0.1")
    assert half.satisfies(renyi)
    assert half.satisfies(replace(there, output_premetric=target).at(100)).verdict == "no"
    assert convert(renyi, target) is None
    assert convert(line(1, output=OutputPremetric("renyi", 2)).at(1), target) is not None
    assert implies_by_table(renyi, replace(there, output_premetric=target).at(100)).verdict != "yes"
    back = replace(there, input_premetric=InputPremetric.table({("b", "a"): 1}))
    assert half.satisfies(back.at(100)).verdict == "no"
    assert implies_by_table(renyi, back.at(100)).verdict != "yes"
    # Bounded in both, the weaker bound counts.
    uneven = replace(there, input_premetric=InputPremetric.table({("a", "b"): 1, ("b", "a"): 10})).at(1)
    nearly = FiniteMechanism.of({"a": {"x": 0.9999, "y": 0.0001}, "b": {"x": 0.5, "y": 0.5}})
    assert nearly.satisfies(uneven)
    approximate = replace(line(1, output=target), input_premetric=InputPremetric.table({("a", "b"): 1}))
    assert nearly.satisfies(approximate.at(3)).verdict == "no"
    assert implies_by_table(uneven, approximate.at(3)).verdict != "yes"
    assert implies_by_table(uneven, approximate.at(12))


def test_a_total_variation_is_not_cut_off_at_one_before_it_is_scaled():
    zcdp = line("1/2", output=OutputPremetric("normalised-renyi")).at(6)
    variation = line("1/2", output=OutputPremetric("total-variation"))
    coin = bernoulli({"a": 0.1, "b": 0.9})
    assert coin.satisfies(replace(zcdp, budget=Budget(8)))
    assert compose(zcdp, variation.at(0)).specification.budget.number > Fraction("1.7")
    halved = records(OutputPremetric("normalised-renyi"), scale="1/2").at(6)
    assert not halved.implies(records(OutputPremetric("total-variation"), scale="1/2").at("1.7"))
    assert halved.implies(records(OutputPremetric("total-variation"), scale="1/2").at("1.8"))
