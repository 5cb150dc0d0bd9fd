"""What is printed wrongly about swapping, beside what is right: both forms, evaluated."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from swap_oracle import distance, exact_loss, exact_loss_all_distinct, outcome_counts, partitions, universe

from stirred.lab.reproduce.catalogue import items
from stirred.loss.curves.swap_laws import derangements
from stirred.spec import Invariant
from stirred.spec.known_deployments.deployments import deployment
from stirred.spec.known_deployments.names import names
from stirred.swap.law.theorem import epsilon


def test_section_3_5_1_bounds_the_ratio_by_a_power_not_by_a_product():
    broken = 0
    for b in range(2, 20):
        for d in range(2, b + 1):
            if d == b - 1:
                continue
            ratio = Fraction(derangements(b), derangements(b - d))
            assert ratio <= (b + 1) ** d
            broken += ratio > (b + 1) * d
    assert broken > 100


def test_section_3_5_1_states_what_is_enough_and_not_what_is_needed():
    rate = Fraction(1, 2)
    for n in range(4, 8):
        enough = math.log(n + 1)
        assert epsilon(n, rate) == pytest.approx(enough)
        assert exact_loss_all_distinct(n, rate) < enough - 0.1


def test_proposition_1_excludes_equal_held_or_swapped_values_only():
    cells = Invariant("household", by=("m", "h", "s"))
    for (h, s), (other_h, other_s) in itertools.product(itertools.product("ab", "xy"), repeat=2):
        before = [{"m": "1", "h": h, "s": s}, {"m": "1", "h": other_h, "s": other_s}]
        after = [{"m": "1", "h": h, "s": other_s}, {"m": "1", "h": other_h, "s": s}]
        # m = m' in every case, so "unless m = m'" would say that no swap changes anything.
        assert (cells.value(before) != cells.value(after)) == (h != other_h and s != other_s)


def test_section_3_2_4_holds_tenure_and_swaps_county():
    held, swapped = deployment("psa-1940-ma-p50").specification.multiverse.invariants
    assert set(held.by) == {"state", "household size", "ownership"}  # n_mh.: as the thesis's first list
    assert set(swapped.by) == {"state", "household size", "county"}  # n_m.s: its second


def test_section_4_3_quotes_the_range_of_2010():
    printed = {key: items()[f"thesis/section-4.3/{key}"] for key in ("smallest-epsilon", "largest-epsilon")}
    for year, agrees in (("2010", "published"), ("2020", "corrected")):
        schemes = [name for name in names() if name.startswith(f"psa-{year}-") and name.endswith("-p05")]
        assert len(schemes) == 6
        epsilons = [float(deployment(name).specification.budget.number) for name in schemes]
        assert f"{min(epsilons):.2f}" == getattr(printed["smallest-epsilon"], agrees)
        assert f"{max(epsilons):.2f}" == getattr(printed["largest-epsilon"], agrees)


def test_section_4_6_2_chances_add_up_to_one():
    for alpha in (Fraction(1), Fraction(5), Fraction(50)):
        correct, printed = (100 - alpha) / 100, (1 - alpha) / 100
        assert alpha / 100 + correct == 1
        assert alpha / 100 + printed == Fraction(1, 100)


def test_the_swap_of_2010_matches_on_size_and_moves_all_geography():
    for name in ("psa-2010-p02", "psa-2010-p04"):
        found = deployment(name).specification
        assert found.fact["match"] == "state, household size"  # and not adults and children, as B.6.1 has it
        assert found.fact["swap"] == "county, tract, block group, block"  # and not the county alone, as 4.4.1 has it
        assert any({"block", "household size"} <= set(invariant.by) for invariant in found.multiverse.invariants)


def test_lemma_b_4_4_is_sufficient_and_not_necessary():
    met = missed = 0
    for b in range(2, 7):
        for held, swapped in itertools.product(partitions(b), repeat=2):
            tables = universe(held, swapped)
            if len(tables) > 100:
                continue
            apart = any(distance(x, other) == b for x, other in itertools.combinations(tables, 2))
            condition = max(*held, *swapped) <= b / 2 - 1
            met += condition
            assert apart or not condition
            missed += apart and not condition
            # What is necessary: no value has more than half of the records; it is not sufficient.
            assert not apart or max(*held, *swapped) <= b / 2
    assert missed > 5 and met >= 1
    assert not any(distance(x, y) == 6 for x, y in itertools.combinations(universe((3, 3), (2, 2, 2)), 2))


def test_lemma_b_4_3_tables_are_at_most_as_far_apart_as_records_were_moved():
    for held, swapped in itertools.product(partitions(5), repeat=2):
        for other, counts in outcome_counts(universe(held, swapped)[0]).items():
            fewest = next(k for k, count in enumerate(counts) if count)
            assert distance(universe(held, swapped)[0], other) <= fewest


def test_derangement_numbers_by_rounding_need_one_record():
    def rounded(k: int) -> int:
        return math.floor(math.factorial(k) / math.e + 0.5)

    assert [rounded(k) for k in range(1, 15)] == [derangements(k) for k in range(1, 15)]
    assert (rounded(0), derangements(0)) == (0, 1)
    assert all(derangements(k) == k * derangements(k - 1) + (-1) ** k for k in range(1, 15))
    with pytest.raises(ValueError, match="no derangement"):
        derangements(-1)


def test_the_example_of_proposition_5_attains_its_bound():
    rate = Fraction(1, 2)
    bound = math.log(derangements(6) / derangements(4)) / 2
    assert exact_loss((1, 1, 2, 2), (1, 1, 2, 2), rate) == pytest.approx(bound)
