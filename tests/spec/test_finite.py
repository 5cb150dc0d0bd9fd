"""Finite mechanisms: what they lose by enumeration, and what they refuse."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from stirred import errors
from stirred.loss.curves.power_curves import EpsilonProfile, GaussianCurve, PowerCurve, pure_power
from stirred.loss.divergences import power_curve
from stirred.spec import (
    Budget,
    Domain,
    Flavor,
    InputPremetric,
    Invariant,
    Kind,
    Multiverse,
    OutputPremetric,
    flavors,
    may_publish_budget,
    register,
)
from stirred.spec.order.finite_flavors import (
    FiniteFlavor,
    comparability,
    explicit,
    realised_budgets,
)
from stirred.spec.order.finite_mechanisms import FiniteMechanism, bernoulli, divergence, randomised_response
from stirred.spec.order.implication import implies_by_table

LN3 = math.log(3)
FILES = {"": "", "0": "0", "1": "1", "00": "00", "01": "01", "10": "10", "11": "11"}


def listed(distances, universes=(), output=None, names="abc") -> Flavor:
    """A flavor over datasets with one letter each."""
    table = {(pair[0], pair[1]): d for pair, d in distances.items()}
    return Flavor(
        Domain("toy", datasets=tuple(names)),
        Multiverse((), tuple(tuple(universe) for universe in universes)),
        InputPremetric.table(table),
        output or OutputPremetric(),
    )


def both_ways(distances):
    return distances | {pair[::-1]: d for pair, d in distances.items()}


LINE = both_ways({"ab": 1, "bc": 1, "ac": 2})


def refused(kind, call, *arguments, **keywords):
    with pytest.raises(errors.SpecificationError) as refusal:
        call(*arguments, **keywords)
    assert refusal.value.kind == kind
    return str(refusal.value)


# -- mechanisms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("laws", "words"),
    [
        ({"a": {"y": 0.5, "n": 0.4}}, "do not sum to 1"),
        ({"a": {"y": 1.5, "n": -0.5}}, "negative"),
        ({"a": {"y": math.nan, "n": 1}}, "not a number"),
        ({"a": {"y": "often"}}, "not numbers"),
        ({}, "no dataset"),
        ({"a": {}}, "no output"),
    ],
)
def test_a_matrix_that_is_no_mechanism_is_refused(laws, words):
    assert words in refused("not-a-mechanism", FiniteMechanism.of, laws)


def test_rows_may_miss_one_by_rounding_and_no_more():
    FiniteMechanism.of({"a": {"y": 0.5, "n": 0.5 + 5e-10}})
    refused("not-a-mechanism", FiniteMechanism.of, {"a": {"y": 0.5, "n": 0.5 + 5e-9}})


def test_names_are_given_once_and_the_matrix_has_their_shape():
    assert "dataset twice" in refused("not-a-mechanism", FiniteMechanism, ("a", "a"), ("y",), [[1], [1]])
    assert "output twice" in refused("not-a-mechanism", FiniteMechanism, ("a",), ("y", "y"), [[1, 0]])
    assert "one probability" in refused("not-a-mechanism", FiniteMechanism, ("a",), ("y", "n"), [[1]])


def test_a_mechanism_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        bernoulli({"a": 0.5}).rows[0, 0] = 1


def test_fractions_are_taken_and_laws_given_back():
    third = FiniteMechanism.of({"a": {"x": Fraction(1, 3), "y": Fraction(2, 3)}, "b": {"y": 1}})
    assert third.law("a") == {"x": 1 / 3, "y": 2 / 3}
    assert third.law("b") == {"x": 0.0, "y": 1.0}


def test_processing_composing_and_coarsening_are_matrix_algebra():
    once = randomised_response("1/4")
    twice = once.then(once)
    assert twice.law("0") == {"0": pytest.approx(10 / 16), "1": pytest.approx(6 / 16)}
    both = once.and_then(once)
    assert both.law("0")["(0, 1)"] == pytest.approx(3 / 16)
    assert both.coarsen([("(0, 0)", "(0, 1)"), ("(1, 0)", "(1, 1)")]).rows == pytest.approx(once.rows)
    assert randomised_response("1/4", respondents=2).rows == pytest.approx(np.kron(once.rows, once.rows))
    assert randomised_response("1/4", "abc").law("a") == {"a": 0.75, "b": 0.125, "c": 0.125}


def test_what_does_not_fit_together_is_refused():
    coin = bernoulli({"a": 0.5, "b": 0.5})
    refused("not-a-mechanism", coin.then, {"yes": {"y": 1}})
    refused("not-a-partition", coin.coarsen, [("yes",)])
    refused("not-a-partition", coin.coarsen, [("yes", "no"), ("yes",)])
    refused("not-a-partition", coin.loss, listed({}, names="ab"), partition=[("yes",)])
    assert "'c'" in refused("different-datasets", coin.and_then, bernoulli({"a": 0.5, "b": 0.5, "c": 0.5}))
    assert "'c'" in refused("different-datasets", coin.loss, listed(LINE))
    refused("different-datasets", bernoulli(dict.fromkeys("abcd", 0.5)).loss, listed(LINE))


# -- loss ----------------------------------------------------------------------------------------------------


def test_the_loss_is_the_largest_ratio_and_names_its_pair():
    coin = bernoulli({"a": 0.5, "b": 0.25, "c": 0.2})
    loss = coin.loss(listed(LINE))
    assert loss.value == pytest.approx(math.log(2))
    assert {loss.worst.first, loss.worst.second} == {"a", "b"}
    assert (loss.worst.distance, loss.worst.divergence) == (1, pytest.approx(math.log(2)))
    assert loss.worst.universe == ("a", "b", "c")


def test_every_universe_has_a_loss_of_its_own():
    coin = bernoulli({"a": 0.5, "b": 0.25, "c": 0.2})
    loss = coin.loss(listed(LINE, ["ab", "bc", "c"]))
    assert loss.by_universe == (pytest.approx(math.log(2)), pytest.approx(math.log(0.25 / 0.2)), 0)
    assert loss.worst.universe == ("a", "b")


def test_infinite_distances_constrain_nothing_even_at_budget_zero():
    apart = listed({"ab": 1, "ba": 1})
    assert bernoulli({"a": 0.5, "b": 0.5, "c": 1}).loss(apart).value == 0
    assert bernoulli({"a": 0.5, "b": 0.5, "c": 1}).satisfies(apart.at(0))
    assert bernoulli({"a": 0.5, "b": 0.4, "c": 1}).satisfies(apart.at(0)).verdict == "no"


def test_different_laws_at_distance_zero_have_an_infinite_loss():
    zero = listed({"ab": 0})
    assert bernoulli({"a": 0.5, "b": 0.5, "c": 0}).loss(zero).value == 0
    assert bernoulli({"a": 0.5, "b": 0.6, "c": 0}).loss(zero).value == math.inf
    assert bernoulli({"a": 0.5, "b": 0.6, "c": 0}).satisfies(zero.at(100)).verdict == "no"
    assert bernoulli({"a": 0.5, "b": 0.6, "c": 0}).satisfies(zero.at("infinity"))


def test_ordered_pairs_are_checked_in_both_directions():
    first = {"a": {"x": 1}, "b": {"x": 0.5, "y": 0.5}}
    for pair, expected in (("ab", math.log(2)), ("ba", math.inf)):
        flavor = listed({pair: 1}, output=OutputPremetric("renyi", 2), names="ab")
        assert FiniteMechanism.of(first).loss(flavor).value == pytest.approx(expected)
    # A symmetric premetric is bound by either direction.
    assert FiniteMechanism.of(first).loss(listed({"ba": 1}, names="ab")).value == math.inf


def test_rho_is_the_square_of_the_lipschitz_constant():
    flavor = listed(both_ways({"ab": 2}), output=OutputPremetric("normalised-renyi"), names="ab")
    loss = bernoulli({"a": 0.75, "b": 0.25}).loss(flavor)
    assert loss.rho == pytest.approx(0.549306 / 4, abs=1e-6)
    assert loss.lipschitz == pytest.approx(0.741151 / 2, abs=1e-6)
    assert loss.worst.divergence == pytest.approx(0.741151, abs=1e-6)
    assert "no rho" in refused("bad-block", lambda: bernoulli({"a": 1, "b": 1}).loss(listed({}, names="ab")).rho)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (OutputPremetric("multiplicative"), LN3),
        (OutputPremetric("approximate", "0.1"), 0.955511),
        (OutputPremetric("renyi", 2), 0.847298),
        (OutputPremetric("normalised-renyi"), 0.549306),
        (OutputPremetric("total-variation"), 0.5),
    ],
)
def test_randomised_response_has_the_known_losses(output, expected):
    flavor = listed(both_ways({"01": 1}), output=output, names="01")
    response = randomised_response("1/4")
    assert response.loss(flavor).value == pytest.approx(expected, abs=1e-6)
    assert response.satisfies(flavor.at(expected * (1 + 1e-5)))
    assert not response.satisfies(flavor.at(expected * (1 - 1e-5)))


def test_satisfaction_follows_the_budgets_of_the_universes():
    flavor = listed(LINE, ["ab", "bc"])
    coin = bernoulli({"a": 0.5, "b": 0.25, "c": 0.2})
    assert coin.satisfies(flavor.at(Budget("0.7", by_universe=("0.7", "0.3"))))
    answer = coin.satisfies(flavor.at(Budget("0.7", by_universe=("0.7", "0.2"))))
    assert answer.verdict == "no"
    assert "'b' and 'c'" in str(answer)
    assert coin.satisfies(flavor.at(Budget("0.7", by_universe=("0.3", "0.7")))).verdict == "no"
    assert coin.satisfies(flavor.at(math.log(2)))


def test_a_registered_premetric_is_evaluated_by_its_own_function():
    hellinger = Kind(
        "finite-hellinger", "H", "h", "The Hellinger distance.", metric=True,
        divergence=lambda p, q: float(np.sqrt(0.5 * np.sum((np.sqrt(p) - np.sqrt(q)) ** 2))),
    )  # fmt: skip
    register(hellinger)
    flavor = listed(both_ways({"ab": 2}), output=OutputPremetric("finite-hellinger"), names="ab")
    assert bernoulli({"a": 1, "b": 0}).loss(flavor).value == pytest.approx(0.5)
    assert bernoulli({"a": 1, "b": 0}).satisfies(flavor.at("0.4")).verdict == "no"
    register(Kind("finite-nameless", "N", "n", "Nothing is known."))
    empty = listed(both_ways({"ab": 2}), output=OutputPremetric("finite-nameless"), names="ab")
    refused("cannot-evaluate", bernoulli({"a": 1, "b": 0}).loss, empty)
    refused("cannot-evaluate", divergence, OutputPremetric("finite-nameless"), [1], [1])


def test_the_trivial_sigma_algebra_makes_every_mechanism_perfect():
    told = FiniteMechanism.releases({"a": 1, "b": 2, "c": 3}, str)
    assert told.loss(listed(LINE)).value == math.inf
    assert told.loss(listed(LINE), partition=[("1", "2", "3")]).value == 0
    coarse = OutputPremetric(partition=(("1", "2"), ("3",)))
    assert told.loss(listed(LINE, ["ab"], output=coarse)).value == 0
    assert told.loss(listed(LINE, output=coarse)).value == math.inf
    # Two sigma-algebras at once: what neither tells apart through the other is one cell.
    assert told.loss(listed(LINE, output=coarse), partition=[("1",), ("2", "3")]).value == 0
    refused("cannot-evaluate", told.loss, listed(LINE, output=OutputPremetric(events="counts")))


# -- curves --------------------------------------------------------------------------------------------------


def test_the_loss_of_f_dp_is_the_smallest_curve_above_all_neighbours():
    flavor = listed({"ab": 1, "ba": 1, "bc": 1, "cb": 1}, output=OutputPremetric("trade-off"))
    coin = bernoulli({"a": 0.5, "b": 0.25, "c": 0.2})
    curve = coin.loss(flavor).value
    levels = np.linspace(0, 1, 101)
    pairs = [(0, 1), (1, 0), (1, 2), (2, 1)]
    powers = [PowerCurve(tuple(map(tuple, power_curve(coin.rows[i], coin.rows[j])))).power(levels) for i, j in pairs]
    above = np.max(powers, axis=0)
    assert np.all(curve.power(levels) >= above - 1e-12)
    # A hull has its vertices on the curves.
    assert all(power in {point[1] for i, j in pairs for point in power_curve(coin.rows[i], coin.rows[j]).tolist()}
               for _, power in curve.points)  # fmt: skip
    assert coin.satisfies(flavor.at(curve))
    assert coin.satisfies(flavor.at(GaussianCurve(0.1))).verdict == "no"
    assert coin.satisfies(flavor.at(pure_power(0.68))).verdict == "no"
    assert coin.satisfies(flavor.at(pure_power(0.70)))


def test_f_dp_at_distance_zero_and_beyond_one():
    zero = listed({"ab": 0}, output=OutputPremetric("trade-off"))
    assert bernoulli({"a": 0.5, "b": 0.6, "c": 0}).loss(zero).value == PowerCurve(((0, 1), (1, 1)))
    assert bernoulli({"a": 0.5, "b": 0.6, "c": 0}).satisfies(zero.at(GaussianCurve(5))).verdict == "no"
    assert bernoulli({"a": 0.5, "b": 0.5, "c": 0}).loss(zero).value == PowerCurve(((0, 0), (1, 1)))
    refused("bad-block", bernoulli(dict.fromkeys("abc", 0.5)).loss, listed(LINE, output=OutputPremetric("trade-off")))


def test_a_profile_is_the_loss_at_each_delta():
    flavor = listed(both_ways({"ab": 1}), output=OutputPremetric("approximate-profile"), names="ab")
    response = bernoulli({"a": 0.75, "b": 0.25})
    profile = response.loss(flavor, deltas=(0, 0.1, 0.5)).value
    assert profile.points == ((0, pytest.approx(LN3)), (0.1, pytest.approx(0.955511, abs=1e-6)), (0.5, 0))
    assert response.satisfies(flavor.at(profile))
    assert response.satisfies(flavor.at(EpsilonProfile(((0.1, 0.95),)))).verdict == "no"


# -- flavors -------------------------------------------------------------------------------------------------


def test_a_flavor_is_evaluated_on_records():
    finite = FiniteFlavor.of(flavors.pure("person", bounded=False, ordered=True), FILES)
    place = finite.names.index
    assert finite.distances[place("01"), place("10")] == 2
    assert finite.distances[place(""), place("11")] == 2
    assert finite.compared.sum() == 7 * 6
    assert FiniteFlavor.of(flavors.pure("person"), FILES).compared.sum() == 2 + 4 * 3


def test_invariants_divide_listed_datasets_into_universes():
    people = {
        "x": [{"place": "A", "age": 1}, {"place": "B", "age": 2}],
        "y": [{"place": "A", "age": 2}, {"place": "B", "age": 1}],
        "z": [{"place": "A", "age": 1}, {"place": "A", "age": 2}],
    }
    kept = flavors.pure("person", invariants=[Invariant("person", by=("place",))])
    flavor = explicit(kept, people)
    assert flavor.multiverse.universes == (("x", "y"), ("z",))
    assert flavor.nearest == 2
    assert FiniteMechanism.releases(people, lambda x: sum(r["place"] == "A" for r in x)).loss(kept, people).value == 0
    assert FiniteMechanism.releases(people, lambda x: x[0]["age"]).loss(kept, people).value == math.inf
    for unknown in (Invariant(name="the mayor"), Invariant("person", by=("name",)), Invariant("household")):
        refused("cannot-evaluate", explicit, flavors.pure("person", invariants=[unknown]), people)


def test_what_is_not_listed_cannot_be_enumerated():
    refused("not-listed", FiniteFlavor.of, flavors.pure("person"))
    refused("cannot-evaluate", FiniteFlavor.of, flavors.metric("geography"), FILES)
    records = Flavor(Domain("toy", datasets=("a",)), Multiverse(), InputPremetric(), OutputPremetric())
    refused("not-listed", FiniteFlavor.of, records)


def test_scales_and_distances_are_kept_exactly_in_the_listed_form():
    tenth = Flavor(Domain("files"), Multiverse(), InputPremetric(scale="1/3"), OutputPremetric())
    flavor = explicit(tenth, {"x": "01", "y": "22"})
    assert flavor.input_premetric.distance("x", "y") == Fraction(2, 3)
    assert FiniteFlavor.of(flavor).distances[0, 1] == pytest.approx(2 / 3)
    double = replace(listed(LINE), input_premetric=replace(listed(LINE).input_premetric, scale=2))
    assert FiniteFlavor.of(double).distances.max() == 4
    assert bernoulli({"a": 0.5, "b": 0.25, "c": 0.2}).loss(double).value == pytest.approx(math.log(2) / 2)
    assert implies_by_table(double.at(1), listed(LINE).at(2))
    assert implies_by_table(double.at(1), listed(LINE).at("1.9")).verdict == "no"


def test_comparable_datasets_form_components():
    flavor = listed({"ab": 1, "bc": 1, "de": 1}, ["ab", "cd", "de"], names="abcde")
    graph = comparability(flavor)
    assert graph.components == (("a", "b"), ("c",), ("d", "e"))  # b and c share no universe; c and d no distance
    assert graph.of("e") == ("d", "e")
    assert graph.edges.sum() == 4


def is_vacuous(flavor):
    """Whether the multiverse restricts nothing: every two datasets at a finite distance share a universe."""
    finite = FiniteFlavor.of(flavor)
    return bool(np.all(finite.together[finite.distances < math.inf]))


def is_totally_vacuous(flavor):
    """Whether every two datasets share a universe, whatever their distance."""
    return bool(np.all(FiniteFlavor.of(flavor).together))


def test_vacuous_multiverses():
    assert is_totally_vacuous(listed(LINE))
    pairs = listed({"ab": 1, "bc": 1}, ["ab", "bc"])
    assert is_vacuous(pairs)
    assert not is_totally_vacuous(pairs)
    assert not is_vacuous(listed({"ab": 1, "ca": 1}, ["ab", "bc"]))


def test_the_realised_budget_is_enumerated():
    # Universes that overlap, with no distance across the overlap: the budgets are a function of the component.
    apart = listed({"ab": 1}, ["abc", "bc"]).at(Budget(2, by_universe=(2, 1)))
    assert realised_budgets(apart).of_universes == {"a": {2}, "b": {1, 2}, "c": {1, 2}}
    assert realised_budgets(apart).of_components == {"a": {1, 2}, "b": {1, 2}, "c": {1, 2}}
    assert realised_budgets(apart).differ_at == ("a",)
    assert may_publish_budget(apart).verdict == "no"
    never = listed({}, ["abc", "bc"]).at(Budget(2, by_universe=(2, 1)))
    assert realised_budgets(never).differ_at == ()
    assert may_publish_budget(never)
