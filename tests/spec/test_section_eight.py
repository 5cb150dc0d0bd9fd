"""The worked examples and counterexamples 8.1 to 8.14 of the reference, each by enumeration of a finite mechanism.

The swapping ones come from ``tests/swap/swap_oracle.py``, which follows Algorithm 3.2.1 in exact fractions; universes
are those that the declared invariants induce on the listed files.
"""

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from finite_oracle import APPROXIMATE, MULTIPLICATIVE, NUMBERS, RENYI, RHO, apart, random_mechanism, random_rows
from stirred.lab.definitions.multiverses import along_components
from stirred.loss.divergences import approximate, multiplicative, normalised_renyi
from stirred.spec import (
    Domain,
    Flavor,
    InputPremetric,
    Invariant,
    Multiverse,
    OutputPremetric,
    compose,
    flavors,
    per_respondent,
)
from stirred.spec.order.finite_flavors import comparability, explicit
from stirred.spec.order.finite_mechanisms import FiniteMechanism, bernoulli, randomised_response
from stirred.spec.order.implication import implies_by_table, witness
from stirred.swap.law.theorem import epsilon, lower_bound
from swap.swap_oracle import exact_loss_all_distinct, released_law, universe

HOUSEHOLDS = flavors.pure(
    "household", invariants=[Invariant("household", by=("h",)), Invariant("household", by=("s",))]
)


def named(table) -> str:
    return " ".join(f"{h}{s}" for h, s in table)


def swap(tables, rate) -> FiniteMechanism:
    """The Permutation Swapping Algorithm on these tables and whatever they can become."""
    laws = {named(table): released_law(table, Fraction(rate)) for table in tables}
    return FiniteMechanism.of({x: {named(z): chance for z, chance in law.items()} for x, law in laws.items()})


def as_files(tables):
    return {named(table): [{"h": h, "s": s} for h, s in table] for table in tables}


def every_table(size: int, categories: int):
    cells = list(itertools.product(range(categories), repeat=2))
    return list(itertools.combinations_with_replacement(cells, size))


def swap_loss(tables, rate):
    return swap(tables, rate).loss(HOUSEHOLDS, as_files(tables))


# -- swapping ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", ["0.05", "0.25", "0.5", "0.9"])
def test_8_1_two_records(rate):
    p = Fraction(rate)
    tables = every_table(2, 2)
    law = swap(tables, p).law("00 11")
    kept, swapped = (1 - p) ** 2, p**2
    assert law["00 11"] == pytest.approx(float(kept / (kept + swapped)), rel=1e-15)
    assert law["01 10"] == pytest.approx(float(swapped / (kept + swapped)), rel=1e-15)
    loss = swap_loss(tables, p)
    assert loss.value == pytest.approx(abs(math.log(p / (1 - p))), abs=1e-12)
    # One universe of ten tables holds two of them, two apart; all others hold one.
    assert sorted(map(len, explicit(HOUSEHOLDS, as_files(tables)).multiverse.universes)) == [1] * 8 + [2]
    assert loss.worst.distance == 2
    assert {loss.worst.first, loss.worst.second} == {"00 11", "01 10"}


def test_8_2_three_distinct_records():
    p = Fraction("0.3")
    normal = 1 - 3 * p * (1 - p) ** 2
    law = swap(universe((1, 1, 1), (1, 1, 1)), p).law("00 11 22")
    expected = {0: (1 - p) ** 3 / normal, 2: p**2 * (1 - p) / normal, 3: p**3 / (2 * normal)}
    for table, chance in law.items():
        moved = sum(record[0] != record[1] for record in table.split())
        assert chance == pytest.approx(float(expected[moved]), rel=1e-14)
    assert sum(law.values()) == pytest.approx(1)


def test_8_3_one_swap_changes_four_cells_and_no_margin_within_the_stratum():
    rows = [dict(zip("mhs", values, strict=True)) for values in itertools.product("01", "ab", "xyz")]
    margins = [Invariant("household", by=by) for by in (("m", "h"), ("m", "s"))]
    inside, across = Invariant("household", by=("m", "h", "s")), Invariant("household", by=("h", "s"))
    seen = Counter()
    for one, other in itertools.combinations(rows, 2):
        if one["m"] != other["m"]:
            continue
        before = [one, other, *rows]
        after = [one | {"s": other["s"]}, other | {"s": one["s"]}, *rows]
        assert all(margin.value(before) == margin.value(after) for margin in margins)
        cells = Counter(inside.value(before))
        cells.subtract(inside.value(after))
        real = one["h"] != other["h"] and one["s"] != other["s"]
        seen[real] += 1
        assert sorted(count for count in cells.values() if count) == ([-1, -1, 1, 1] if real else [])
        assert (across.value(before) != across.value(after)) == real
    assert min(seen.values()) > 10


def test_8_4_no_swapping_and_nothing_but_swapping():
    for rate in (0, 1):
        assert swap_loss(every_table(2, 2), rate).value == epsilon(2, Fraction(rate)) == math.inf
    assert swap_loss(every_table(1, 3), "0.3").value == 0
    same = [table for table in every_table(3, 2) if len(set(table)) == 1]
    assert swap_loss(same, 1).value == epsilon(0, Fraction(1)) == 0


def test_8_5_a_cap_on_the_number_of_swaps_has_no_finite_loss():
    tables = universe((1, 1, 1), (1, 1, 1))
    single = {}
    for x in tables:
        near = [z for z in tables if sum(a != b for a, b in zip(x, z, strict=True)) == 2]
        assert len(near) == 3
        single[named(x)] = {named(x): Fraction(1, 2)} | {named(z): Fraction(1, 6) for z in near}
    loss = FiniteMechanism.of(single).loss(HOUSEHOLDS, as_files(tables))
    assert loss.value == math.inf
    assert swap_loss(tables, "0.5").value < 1


@pytest.mark.parametrize(
    ("held", "swapped", "rate", "expected"),
    [
        ((2, 1), (2, 1), "0.05", 2.932834),
        ((2, 1), (2, 1), "0.9", 0.846239),
        ((2, 2), (2, 2), "0.5", 0.779072),
        ((3, 2), (3, 2), "0.05", 3.377963),
        ((1,) * 4, (1,) * 4, "0.5", 1.098612),
        ((1, 1, 2, 2), (1, 1, 2, 2), "0.5", 1.691253),
    ],
)
def test_exact_losses_of_swapping_universes(held, swapped, rate, expected):
    tables = universe(held, swapped)
    loss = swap_loss(tables, rate)
    assert loss.value == pytest.approx(expected, abs=1e-6)
    size = sum(held)
    assert loss.value <= epsilon(size, Fraction(rate))
    if set(held + swapped) == {1}:
        assert loss.value == pytest.approx(exact_loss_all_distinct(size, Fraction(rate)), rel=1e-12)
        assert loss.value >= lower_bound(size, Fraction(rate)) - 1e-12


def test_the_loss_of_a_whole_domain_is_that_of_its_worst_universe():
    tables = every_table(3, 2)
    loss = swap_loss(tables, "0.05")
    assert loss.value == max(loss.by_universe) == pytest.approx(2.932834, abs=1e-6)
    assert loss.worst.distance == 2
    # Without its invariants the swap publishes margins: no finite budget.
    assert swap(tables, "0.05").loss(flavors.pure("household"), as_files(tables)).value == math.inf


# -- randomised response and (epsilon, delta) ----------------------------------------------------------------


def test_8_6_randomised_response_protects_in_order_only():
    answers = randomised_response("1/4", respondents=2)
    files = {name: name for name in answers.datasets}
    assert answers.loss(flavors.local(), files).value == pytest.approx(math.log(3))
    unordered = answers.loss(flavors.pure(), files)
    assert unordered.value == math.inf
    assert {unordered.worst.first, unordered.worst.second} == {"01", "10"}
    assert unordered.worst.distance == 0
    ordered, counted = (explicit(one, files).at(math.log(3)) for one in (flavors.pure(ordered=True), flavors.pure()))
    assert implies_by_table(counted, ordered)
    assert implies_by_table(ordered, counted).verdict == "no"


@pytest.mark.parametrize("delta", [0.05, 0.1, 0.25])
def test_8_7_approximate_multiplicative_is_no_metric_and_does_not_compose(delta):
    a, b, c = [1, 0], [1 - delta, delta], [1 - 2 * delta, 2 * delta]
    assert approximate(a, b, delta) == approximate(b, c, delta) == 0
    assert approximate(a, c, delta) == math.inf
    twice = [np.outer(law, law).ravel() for law in (a, b)]
    assert approximate(*twice, delta) == math.inf
    assert approximate(*twice, 2 * delta) == 0
    once = Flavor(
        Domain("toy", datasets=("a", "b")), Multiverse(), InputPremetric.table({("a", "b"): 1}),
        OutputPremetric("approximate", delta),
    ).at(0)  # fmt: skip
    coin = FiniteMechanism(("a", "b"), ("0", "1"), [a, b])
    assert coin.satisfies(once)
    assert coin.and_then(coin).satisfies(once).verdict == "no"
    total = compose(once, once).specification
    assert total.output_premetric.parameter == 2 * Fraction(str(delta))
    assert coin.and_then(coin).satisfies(total)


def test_8_7_numbers_of_randomised_response():
    p, q = [0.75, 0.25], [0.25, 0.75]
    assert multiplicative(p, q) == pytest.approx(math.log(3))
    assert approximate(p, q, 0.1) == pytest.approx(0.955511, abs=1e-6)
    assert normalised_renyi(p, q) == pytest.approx(0.741151, abs=1e-6)


def test_8_8_metrics_and_compositions_on_random_triples():
    random = np.random.default_rng(88)
    for _ in range(20):
        p, q, r = random_rows(random, 3, 4)
        other = random_rows(random, 2, 3)
        for output in (MULTIPLICATIVE, RHO):
            assert apart(output, p, r) <= (apart(output, p, q) + apart(output, q, r)) * (1 + 1e-9)
            both = apart(output, np.outer(p, other[0]).ravel(), np.outer(q, other[1]).ravel())
            parts = apart(output, p, q), apart(output, *other)
            together = sum(parts) if output == MULTIPLICATIVE else math.hypot(*parts)
            assert both <= together * (1 + 1e-9)
        assert apart(RHO, p, q) <= apart(MULTIPLICATIVE, p, q) / math.sqrt(2) * (1 + 1e-9)


# -- universes -----------------------------------------------------------------------------------------------


def test_8_9_invariants_are_free_to_publish_within_their_universes_only():
    tables = every_table(2, 2)
    files = as_files(tables)
    told = FiniteMechanism.releases(files, lambda file: sorted(record["h"] for record in file))
    assert told.loss(HOUSEHOLDS, files).value == 0
    assert told.loss(flavors.pure("household"), files).value == math.inf
    for output in NUMBERS:
        assert told.loss(replace(HOUSEHOLDS, output_premetric=output), files).value == 0


def test_8_10_pairs_of_implicitly_comparable_datasets_promise_more():
    chain = Flavor(
        Domain("three", datasets=("1", "2", "3")),
        Multiverse((), (("1", "2"), ("2", "3"))),
        InputPremetric.table({("1", "2"): 1, ("2", "3"): 1, ("1", "3"): "1/2"}),
        OutputPremetric(),
    ).at(1)
    components = comparability(chain).components
    assert components == (("1", "2", "3"),)
    pairs = tuple(pair for part in components for pair in itertools.combinations(part, 2))
    printed = replace(chain, multiverse=Multiverse((), pairs))
    # As printed, Proposition A.4.2 says that the two are the same.
    assert implies_by_table(chain, printed).verdict == "no"
    escaped = witness(chain, printed)
    assert escaped.satisfies(chain)
    assert escaped.satisfies(printed).verdict == "no"
    assert "'1' and '3'" in str(escaped.satisfies(printed))
    assert implies_by_table(printed, chain)
    # Its first half is right.
    assert implies_by_table(chain, along_components(chain))
    assert implies_by_table(along_components(chain), chain)


def test_8_11_a_premetric_of_one_direction_shows_what_a_divergence_is():
    random = np.random.default_rng(811)
    domain, table = Domain("two", datasets=("a", "b")), InputPremetric.table({("a", "b"): 1})
    for output in (RENYI, MULTIPLICATIVE, APPROXIMATE):
        one_way = Flavor(domain, Multiverse(), table, output)
        for _ in range(50):
            mechanism = random_mechanism(random, ("a", "b"))
            assert mechanism.loss(one_way).value == pytest.approx(apart(output, *mechanism.rows), rel=1e-9)
    half = FiniteMechanism.of({"a": {"x": 1}, "b": {"x": 0.5, "y": 0.5}})
    assert half.loss(Flavor(domain, Multiverse(), table, RENYI)).value == pytest.approx(math.log(2))
    back = InputPremetric.table({("b", "a"): 1})
    assert half.loss(Flavor(domain, Multiverse(), back, RENYI)).value == math.inf


def test_8_12_neighbours_and_paths():
    neighbours = InputPremetric.neighbours("person")
    assert neighbours.distance("ab", "cd") == math.inf
    assert neighbours.sharpen().distance("ab", "cd") == 2
    listed = InputPremetric.related(
        {name: name for name in ("ab", "cb", "cd")}, lambda x, y: x[0] == y[0] or x[1] == y[1]
    )
    assert listed.distance("ab", "cd") == math.inf
    assert listed.sharpen().distance("ab", "cd") == 2


def test_8_13_a_total_that_is_kept_must_be_declared():
    # Counts of two blocks in a state: noise between the blocks, and then the state's total as it was.
    files = {f"{a}+{b}": [{"state": "S", "block": 1}] * a + [{"state": "S", "block": 2}] * b
             for a in range(3) for b in range(3)}  # fmt: skip
    laws = {}
    for name, records in files.items():
        first, total = sum(record["block"] == 1 for record in records), len(records)
        weights = {f"{k}+{total - k}": Fraction(1, 2 ** abs(k - first)) for k in range(total + 1)}
        laws[name] = {output: weight / sum(weights.values()) for output, weight in weights.items()}
    topdown = FiniteMechanism.of(laws)
    declared = flavors.zcdp("person", bounded=False, invariants=[Invariant("person", by=("state",))])
    loss = topdown.loss(declared, files)
    assert 0 < loss.rho < math.inf
    assert loss.lipschitz == pytest.approx(math.sqrt(loss.rho))
    assert topdown.satisfies(declared.at(loss.rho * 1.0001), files)
    undeclared = flavors.zcdp("person", bounded=False)
    assert topdown.loss(undeclared, files).value == math.inf
    assert topdown.satisfies(undeclared.at(10**6), files).verdict == "no"
    # Files of one size have the total in their distance already.
    assert topdown.loss(flavors.zcdp("person"), files).rho < math.inf


def test_8_14_a_respondent_in_two_records_quadruples_rho():
    person = flavors.zcdp("person").at("55.371")
    assert per_respondent(person, 2).specification.budget.number == Fraction("221.484")
    files = {name: name for name in ("00", "01", "11")}
    coin = bernoulli({"00": 0.3, "01": 0.5, "11": 0.6})
    records = coin.loss(flavors.zcdp("person"), files).rho
    halves = InputPremetric("records", "respondent", scale="1/2")
    respondents = coin.loss(replace(flavors.zcdp("person"), input_premetric=halves), files).rho
    assert respondents == pytest.approx(4 * records)
    assert coin.satisfies(per_respondent(flavors.zcdp("person").at(records * 1.0001), 2).specification, files)
    told = bernoulli({"00": 0.2, "01": 0.5, "11": 0.9})
    assert told.loss(replace(flavors.pure(), input_premetric=halves), files).value == pytest.approx(
        2 * told.loss(flavors.pure(), files).value
    )
