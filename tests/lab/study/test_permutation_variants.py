"""Variants of the permutation swap: their laws against every permutation of few records, and what is proved of them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from swap_oracle import to_other_places

from chi_square import FALSE_ALARM, p_value
from stirred import check, errors
from stirred.lab.definitions.swap_practices import (
    Law,
    Moves,
    deranged,
    name_of,
    reselected,
    selected,
    tables,
)
from stirred.lab.study.swappers import AcrossStrata, FrozenImputed, NoVacuousSwaps, PerturbedSwap, RatesByRisk
from stirred.lab.study.swappers.permutation_variants import _to_others
from stirred.loss.curves.swap_laws import derangements
from stirred.noise import SeededSource
from stirred.swap.law.theorem import epsilon
from stirred.swap.plan.fields import SwapPlan

COPIES = 20_000
"""Strata that are alike: independent draws of one law. Chi-square tests have the false-alarm rate of chi_square.py."""


def copies(file: str, many: int = COPIES, **more: str) -> pl.DataFrame:
    """A stratum of records, written as in docs/coming-from-sdcmicro.md, many times; ``more`` are further columns."""
    records = file.split()
    columns = {"held": [one[0] for one in records], "place": [one[1] for one in records]}
    columns |= {name: list(values) for name, values in more.items()}
    repeated = {name: values * many for name, values in columns.items()}
    return pl.DataFrame(repeated | {"copy": np.repeat(np.arange(many), len(records))})


def released(frame: pl.DataFrame, records: int) -> Counter[str]:
    """How often each table was released, over the copies."""
    names = (frame["held"] + frame["place"]).to_numpy().reshape(-1, records)
    return Counter(" ".join(sorted(row)) for row in names)


def agrees(found: Counter[str], law: Law) -> bool:
    if set(found) - {name for name, chance in law.items() if chance}:
        return False
    return p_value([found[name] for name in law], list(law.values())) > FALSE_ALARM


def file_of(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(sorted((one[0], one[1]) for one in text.split()))


# -- laws ----------------------------------------------------------------------------------------------------


def test_rates_by_risk_have_the_law_of_a_stratum_that_is_selected_afresh():
    text = "0A 0B 1C"
    swapper = RatesByRisk(match=("copy",), swap=("place",), rate="0.2", rare_on=("copy", "held"), rare_rate="0.6")
    found = swapper.simulate(copies(text), SeededSource(1)).frame
    law = tables(file_of(text), deranged(reselected([Fraction(1, 5), Fraction(1, 5), Fraction(3, 5)])))
    assert agrees(released(found, 3), law)
    assert not agrees(released(found, 3), tables(file_of(text), deranged(reselected([Fraction(1, 5)] * 3))))


def test_frozen_records_stay_and_the_others_are_swapped_as_a_file_of_their_own():
    text = "0A 1B 2C 3D"
    swapper = FrozenImputed(match=("copy",), swap=("place",), rate="0.4", imputed="imputed")
    found = swapper.simulate(copies(text, imputed="0010"), SeededSource(2)).frame
    assert found.filter(pl.col("held") == "2")["place"].unique().to_list() == ["C"]
    others = tables(file_of("0A 1B 3D"), deranged(reselected([Fraction(2, 5)] * 3)))
    assert agrees(released(found.filter(pl.col("held") != "2"), 3), others)


@pytest.mark.parametrize("text", ["0A 1B", "0A 1B 2C", "0A 0B 1A 1B", "0A 1A 2B 3C"])
def test_without_vacuous_swaps_all_who_are_selected_change_places(text):
    swapper = NoVacuousSwaps(match=("copy",), swap=("place",), rate="0.3")
    many = 6_000
    found = swapper.simulate(copies(text, many), SeededSource(3))
    moved = found.giver != np.arange(len(found.giver))
    assert found.changed == moved.sum() > 0
    law = tables(file_of(text), to_other_places(file_of(text), [Fraction(3, 10)] * len(text.split())))
    assert agrees(released(found.frame, len(text.split())), law)


def moves_between(place: np.ndarray, giver: np.ndarray) -> tuple[int, ...]:
    """How many records went from each place to each other one."""
    return tuple(np.bincount(3 * place + place[giver], minlength=9).tolist())


def test_a_chain_of_exchanges_comes_near_to_the_uniform_law_of_eight_records():
    place = np.array([0, 0, 0, 1, 1, 1, 2, 2], dtype=np.uint32)
    orders = np.array(list(itertools.permutations(range(8))))
    fitting = orders[np.all(place[orders] != place, axis=1)]
    ways = Counter(moves_between(place, order) for order in fitting)
    seen = Counter()
    for key in range(3_000):
        giver = _to_others(place, SeededSource(key))
        assert sorted(giver.tolist()) == list(range(8)) and np.all(place[giver] != place)
        seen[moves_between(place, giver)] += 1
    law = {name: Fraction(many, len(fitting)) for name, many in ways.items()}
    assert set(seen) <= set(law)
    assert p_value([seen[name] for name in law], list(law.values())) > FALSE_ALARM


def test_a_stratum_in_which_one_place_has_most_records_is_left_as_it_is():
    frame = copies("0A 1A 2A 3A 4A 5A 6A 7A 8A 9B", 1)
    found = NoVacuousSwaps(match=("copy",), swap=("place",), rate="0.9").simulate(frame, SeededSource(1))
    assert found.changed == 0 and found.unmatched == 10


def across_law(text: str, sizes: str, rate: Fraction, across: Fraction) -> Law:
    """By enumeration: each record stays, exchanges within its size, or with all; who is alone in either stays."""
    file = [tuple(one) for one in text.split()]
    slots = range(len(file))
    moves: Moves = {}
    for choice in itertools.product((0, 1, 2), repeat=len(file)):
        chance = math.prod(((1 - rate, rate * (1 - across), rate * across)[one] for one in choice), start=Fraction(1))
        pools = [[i for i in slots if choice[i] == 1 and sizes[i] == size] for size in sorted(set(sizes))]
        pools.append([i for i in slots if choice[i] == 2])
        ways = [_derangements_of(pool) if len(pool) > 1 else [{}] for pool in pools]
        for parts in itertools.product(*ways):
            order = list(slots)
            for part in parts:
                for i, j in part.items():
                    order[i] = j
            moves[tuple(order)] = moves.get(tuple(order), Fraction(0)) + chance / math.prod(map(len, ways))
    law: Law = {}
    for order, chance in moves.items():
        name = name_of(tuple(sorted((file[i][0], file[order[i]][1]) for i in slots)))
        law[name] = law.get(name, Fraction(0)) + chance
    return law


def _derangements_of(pool: list[int]) -> list[dict[int, int]]:
    found = [
        dict(zip(pool, order, strict=True))
        for order in itertools.permutations(pool)
        if all(i != j for i, j in zip(pool, order, strict=True))
    ]
    assert len(found) == derangements(len(pool))
    return found


def test_some_of_the_selected_exchange_across_strata():
    text, sizes = "0A 1B 2C 3D", "1122"
    swapper = AcrossStrata(match=("copy", "size"), swap=("place",), rate="0.6", across="0.3", across_match=("copy",))
    found = swapper.simulate(copies(text, size=sizes), SeededSource(4)).frame
    law = across_law(text, sizes, Fraction(3, 5), Fraction(3, 10))
    assert sum(law.values()) == 1 and agrees(released(found, 4), law)
    assert not agrees(released(found, 4), across_law(text, sizes, Fraction(3, 5), Fraction(1, 5)))


@pytest.mark.parametrize("when", ["before", "after"])
def test_values_are_replaced_with_the_probability_that_is_stated(when):
    text = "0A 1B"
    swapper = PerturbedSwap(
        match=("copy",), swap=("place",), rate="0.5", columns=("held",), probability="0.2", when=when
    )
    found = swapper.simulate(copies(text), SeededSource(5)).frame
    flip, move = Fraction(1, 5), reselected([Fraction(1, 2)] * 2)[(0, 1)]
    law: Law = {}
    for first, second, swapped in itertools.product((0, 1), (0, 1), (False, True)):
        chance = (flip if first else 1 - flip) * (flip if second else 1 - flip) * (move if swapped else 1 - move)
        held, places = (str(first), str(1 - second)), "BA" if swapped else "AB"
        name = " ".join(sorted(h + s for h, s in zip(held, places, strict=True)))
        law[name] = law.get(name, Fraction(0)) + chance
    assert agrees(released(found, 2), law)


def test_selection_of_the_variants_is_that_of_independent_coins():
    # The oracle itself: probabilities of all selections add up, and reselecting conditions on not exactly one.
    rates = [Fraction(1, 5), Fraction(1, 3), Fraction(1, 2)]
    every, kept = selected(rates), reselected(rates)
    alone = sum(every[(i,)] for i in range(3))
    assert sum(every.values()) == 1 and kept[(0, 1)] == every[(0, 1)] / (1 - alone)


# -- guarantees ----------------------------------------------------------------------------------------------

FEW = copies("0A 0B 1C 2A 3B", 4, imputed="00001", size="11222")


def test_rates_by_what_stays_have_the_epsilon_of_the_package_itself():
    swapper = RatesByRisk(match=("copy",), swap=("place",), rate="0.02", rare_on=("copy", "held"), rare_rate="0.5")
    plan = SwapPlan(
        match=("copy",), swap=("place",), hold="rest", most_unchangeable=1,
        rates=[{"unique_on": ["copy", "held"], "rate": "0.5"}, {"otherwise": True, "rate": "0.02"}],
        allow=("few-change", "determines:imputed", "determines:held", "determines:size"),
    )  # fmt: skip
    stated = swapper.specification(FEW)
    assert stated.fact["guarantee"] == "proved"
    assert float(stated.budget.number) == check(plan, FEW).epsilon
    assert stated.nearest == 2


def test_rates_by_match_values_and_places_are_covered_too_and_rates_by_both_are_open():
    common = {"match": ("copy",), "swap": ("place",), "rate": "0.02", "rare_rate": "0.5"}
    mirrored = RatesByRisk(**common, rare_on=("copy", "place"))
    both = RatesByRisk(**common, rare_on=("held", "place"))
    assert mirrored.covered and not both.covered
    assert math.isfinite(mirrored.specification(FEW).budget.number)
    open_one = both.specification(FEW)
    assert open_one.budget.number == math.inf and open_one.fact["guarantee"] == "open"
    assert "1.33 times" in open_one.budget.conversion
    assert both.power_curve(FEW) is None and float(mirrored.power_curve(FEW).power(0.05)) <= 1


def test_the_mirror_image_stays_within_its_bound_on_all_files_of_four_records():
    # Rates by place alone: exact laws of all files with these margins, by enumeration.
    rates = {"A": Fraction(1, 50), "B": Fraction(1, 2), "C": Fraction(1, 2)}
    held, places = "0011", "AABC"
    files = sorted({tuple(sorted(zip(held, order, strict=True))) for order in itertools.permutations(places)})
    laws = [tables(file, deranged(reselected([rates[place] for _, place in file]))) for file in files]
    bound = max(epsilon(4, rate) for rate in rates.values())
    for (one, first), (other, second) in itertools.combinations(zip(files, laws, strict=True), 2):
        apart = 4 - (Counter(one) & Counter(other)).total()
        assert set(first) == set(second)
        for name in first:
            assert abs(math.log(first[name] / second[name])) <= apart * bound * (1 + 1e-12)


def test_frozen_records_are_held_fixed_and_do_not_count_for_b():
    stated = FrozenImputed(match=("copy",), swap=("place",), rate="0.1", imputed="imputed").specification(FEW)
    assert float(stated.budget.number) == epsilon(4, Fraction(1, 10)) < epsilon(5, Fraction(1, 10))
    assert "the imputed household records, with all their values" in str(stated.multiverse)
    assert stated.fact["guarantee"] == "proved"


@pytest.mark.parametrize(
    "swapper",
    [
        NoVacuousSwaps(match=("copy",), swap=("place",), rate="0.1"),
        AcrossStrata(match=("copy", "size"), swap=("place",), rate="0.1", across_match=("copy",)),
        AcrossStrata(match=("size",), swap=("place",), rate="0.1"),
    ],
)
def test_what_nobody_has_proved_has_no_finite_epsilon(swapper):
    stated = swapper.specification(FEW)
    assert stated.budget.number == math.inf and stated.fact["guarantee"] == "open"
    assert stated.budget.conversion.startswith("no bound is proved")
    assert swapper.power_curve(FEW) is None


def test_replacing_afterwards_keeps_the_epsilon_of_the_swap():
    swapper = PerturbedSwap(match=("copy",), swap=("place",), rate="0.1", columns=("held",), when="after")
    stated = swapper.specification(FEW)
    assert float(stated.budget.number) == epsilon(5, Fraction(1, 10)) and "post-processing" in stated.budget.conversion
    assert not swapper.publishes_counts


def test_replacing_before_has_the_epsilon_of_randomised_response_by_enumeration():
    swapper = PerturbedSwap(
        match=("copy",), swap=("place",), rate="0.5", columns=("held",), probability="0.2", when="before"
    )
    stated = swapper.specification(copies("0A 1B", 1))
    assert float(stated.budget.number) == pytest.approx(math.log(4)) and stated.nearest == 1
    # All files of two records at places A and B, whatever is held: replaced, then swapped at 50%.
    flip, move = Fraction(1, 5), reselected([Fraction(1, 2)] * 2)[(0, 1)]
    laws = {}
    for file in itertools.product("01", repeat=2):
        law: Law = {}
        for shown in itertools.product("01", repeat=2):
            chance = math.prod(
                (1 - flip if a == b else flip for a, b in zip(file, shown, strict=True)), start=Fraction(1)
            )
            for places, share in (("AB", 1 - move), ("BA", move)):
                name = " ".join(sorted(h + s for h, s in zip(shown, places, strict=True)))
                law[name] = law.get(name, Fraction(0)) + chance * share
        laws[file] = law
    worst = 0.0
    for one, other in itertools.combinations(laws, 2):
        apart = sum(a != b for a, b in zip(one, other, strict=True))
        for name in laws[one]:
            worst = max(worst, abs(math.log(laws[one][name] / laws[other][name])) / apart)
    assert worst <= float(stated.budget.number) * (1 + 1e-12)


def test_the_power_of_a_test_is_that_of_a_swap_where_the_guarantee_is():
    from stirred.loss import swap_power_curve, swap_rates_power_curve

    after = PerturbedSwap(match=("copy",), swap=("place",), rate="0.5", columns=("held",), when="after")
    frozen = FrozenImputed(match=("copy",), swap=("place",), rate="0.5", imputed="imputed")
    risk = RatesByRisk(match=("copy",), swap=("place",), rate="0.5", rare_on=("copy", "held"), rare_rate="0.4")
    assert after.power_curve(FEW).power(0.05) == swap_power_curve(5, "0.5").power(0.05)
    assert frozen.power_curve(FEW).power(0.05) == swap_power_curve(4, "0.5").power(0.05)
    mixed = swap_rates_power_curve([{Fraction(1, 2): 2, Fraction(2, 5): 3}])
    assert risk.power_curve(FEW).power(0.05) == mixed.power(0.05)


@pytest.mark.parametrize(
    "swapper",
    [
        RatesByRisk(match=("copy",), swap=("place",), rate="0.4", rare_on=("held",)),
        FrozenImputed(match=("copy",), swap=("place",), rate="0.4", imputed="imputed"),
        NoVacuousSwaps(match=("copy",), swap=("place",), rate="0.4"),
        AcrossStrata(match=("copy", "size"), swap=("place",), rate="0.4", across="0.5", across_match=("copy",)),
    ],
)
def test_the_counts_that_a_specification_names_are_kept(swapper):
    frame = copies("0A 0B 1C 2A 3B", 200, imputed="00001", size="11222")
    found = swapper.simulate(frame, SeededSource(9))
    assert found.changed > 0
    for invariant in swapper.specification(frame).multiverse.invariants:
        frames = [one.filter(pl.col("imputed") == "1") if invariant.where else one for one in (frame, found.frame)]
        by = list(invariant.by)
        before, after = (one.group_by(by).len().sort(by) for one in frames)
        assert before.equals(after)


# -- bad parameters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: NoVacuousSwaps(match=(), swap=("place",), rate=0),
        lambda: NoVacuousSwaps(match=(), swap=(), rate="0.1"),
        lambda: RatesByRisk(match=(), swap=("place",), rate="0.1"),
        lambda: RatesByRisk(match=(), swap=("place",), rate="0.1", rare_on=("held",), rare_rate=1),
        lambda: FrozenImputed(match=(), swap=("place",), rate="0.1"),
        lambda: FrozenImputed(match=(), swap=("place",), rate="0.1", imputed="place"),
        lambda: AcrossStrata(match=("size",), swap=("place",), rate="0.1", across_match=("size",)),
        lambda: PerturbedSwap(match=(), swap=("place",), rate="0.1", columns=("place",)),
        lambda: PerturbedSwap(match=(), swap=("place",), rate="0.1", columns=("held",), probability=0),
        lambda: PerturbedSwap(match=(), swap=("place",), rate="0.1", columns=("held",), when="during"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_in_words(make):
    with pytest.raises(errors.StudyError) as refusal:
        make()
    assert refusal.value.kind == "study-parameter"
