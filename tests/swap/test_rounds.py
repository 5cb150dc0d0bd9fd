"""Several rounds of a swap: laws and movement by enumeration, the guarantee of the first round, what is refused."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from rates_oracle import permutation_chances, reselecting
from rounds_oracle import (
    distances,
    geographies,
    matrix,
    one_round,
    rounds_law,
    shares,
    worst_loss,
)
from swap_oracle import partitions, permutation_law, permutations, released_law, universe

from chi_square import FALSE_ALARM, p_value
from stirred import errors, swap
from stirred.lab.definitions.swap_practices import in_rounds
from stirred.noise import SeededSource
from stirred.swap.law.theorem import epsilon

ALLOWED = ["few-change", "many-unchangeable", "determines:h", "tells:h", "tells:all-held-columns"]
LOW, HALF, HIGH = Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)


def plan(rate, *later, swapped=("c", "t"), **others):
    """Round 1 swaps all places within m; each later round matches on one more of them."""
    rounds = [
        {"swap": swapped[number:], "match_also": [swapped[number - 1]], "rate": one}
        for number, one in enumerate(later, 1)
    ]
    fields = {"match": ["m"], "swap": swapped, "hold": ["h"], "rate": rate, "rounds": rounds, "allow": ALLOWED}
    return swap.SwapPlan(**fields | others)


def frame(rows, names=("m", "c", "t", "h")):
    return pl.DataFrame(rows, schema=list(names), orient="row")


# -- how many records move and change ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_the_share_that_changes_after_two_rounds_is_that_of_enumeration(seed):
    generator = np.random.default_rng(seed)
    rates = [(LOW, HALF, HIGH)[k] for k in generator.integers(0, 3, 2)]
    rows, moved, changed = [], Fraction(0), Fraction(0)
    places = [0, 0, 1, 1, 2]
    for m in range(3):
        n = int(generator.integers(2, 6))
        swapped = [int(s) for s in generator.integers(0, len(places), n)]
        rows += [(str(m), str(places[s]), str(s), str(k % 2)) for k, s in enumerate(swapped)]
        found = shares(swapped, [([0] * len(places), rates[0]), (places, rates[1])])
        moved += found[0]
        changed += found[1] if len(set(swapped)) > 1 else 0
    movement = swap.check(plan(*rates), frame(rows)).movement
    assert movement.expected_changed_share == pytest.approx(float(changed / len(rows)), rel=1e-12, abs=1e-15)
    assert movement.expected_share == pytest.approx(float(moved / len(rows)), rel=1e-12)
    assert movement.rate == 1 - (1 - rates[0]) * (1 - rates[1])


def test_the_share_that_changes_after_three_rounds_is_that_of_enumeration():
    region, county = [0, 0, 0, 0, 1], [0, 0, 1, 1, 2]
    swapped = [0, 1, 2, 3, 1]
    rates = [Fraction(1, 3), HALF, HIGH]
    rows = [("m", str(region[s]), str(county[s]), str(s), str(k)) for k, s in enumerate(swapped)]
    own = plan(*rates, swapped=("r", "c", "t"))
    movement = swap.check(own, frame(rows, ("m", "r", "c", "t", "h"))).movement
    moved, changed = shares(swapped, list(zip(([0] * 5, region, county), rates, strict=True)))
    assert movement.expected_changed_share == pytest.approx(float(changed / 5), rel=1e-12)
    assert movement.expected_share == pytest.approx(float(moved / 5), rel=1e-12)


def test_probabilities_of_moving_lie_between_the_smallest_and_the_largest_and_both_occur():
    swapped, places = [0, 1, 1, 2], [0, 0, 1]
    rows = [("m", str(places[s]), str(s), str(k)) for k, s in enumerate(swapped)]
    movement = swap.check(plan(LOW, HALF), frame(rows)).movement
    law = in_rounds(swapped, [([0] * 3, LOW), (places, HALF)])
    each = [float(sum(chance for (_, mask), chance in law.items() if mask >> k & 1)) for k in range(4)]
    assert (movement.smallest, movement.largest) == pytest.approx((min(each), max(each)), rel=1e-12)


def test_with_rates_by_rule_the_share_is_the_mean_over_all_ways_of_giving_out_the_swap_values():
    """Records of held value 0 have one rate, the others another; round 2 has one for all."""
    places, dealt = [0, 0, 1], [0, 1, 1, 2]
    rates = [Fraction(1, 5), Fraction(1, 5), HALF, HALF]
    every, _ = permutations(4)
    chances = permutation_chances(reselecting(rates), 4)
    total = Fraction(0)
    ways = list(itertools.permutations(dealt))
    for values in ways:
        for order, chance in zip(every, chances, strict=True):
            between = [values[k] for k in order]
            for (last, _), further in in_rounds(between, [(places, HIGH)]).items():
                total += chance * further * sum(a != b for a, b in zip(last, values, strict=True))
    rules = [{"where": {"h": ["0"]}, "rate": "1/5"}, {"otherwise": True, "rate": "1/2"}]
    own = plan(None, HIGH, rates=rules)
    rows = [("m", str(places[s]), str(s), h) for s, h in zip(dealt, "0011", strict=True)]
    movement = swap.check(own, frame(rows)).movement
    assert movement.expected_changed_share == pytest.approx(float(total / len(ways) / 4), rel=1e-12)
    assert movement.rate == 1 - (1 - Fraction(7, 20)) * (1 - HIGH)


def test_what_the_first_round_cannot_change_no_later_round_changes():
    """One held value, or one swap value: the records of the stratum are what they were, in every outcome."""
    places = [0, 0, 1]
    for table in [((0, 0), (0, 1), (0, 1), (0, 2)), ((0, 1), (1, 1), (2, 1))]:
        assert rounds_law(table, [([0] * 3, HALF), (places, HALF)]) == {table: 1}
    rows = [("a", str(places[s]), str(s), "0") for s in (0, 1, 1, 2)]
    rows += [("b", "1", "2", str(h)) for h in range(3)]
    rows += [("c", "0", str(h % 2), str(h)) for h in range(3)]
    found = swap.check(plan(HALF, HALF), frame(rows)).movement
    assert found.unchangeable_share == pytest.approx(7 / 10)
    assert found.expected_changed_share == pytest.approx(
        float(shares([0, 1, 0], [([0] * 3, HALF), (places, HALF)])[1] / 10), rel=1e-12
    )


def test_a_later_round_that_hardly_changes_anything_is_a_stop_however_high_its_rate():
    """Every county has one tract: round 2 selects nine of ten records and can change none."""
    rows = [(str(k % 2), str(k % 7), str(k % 7), str(k % 3)) for k in range(84)]
    own = plan("1/20", HIGH, allow=["tells:h", "tells:all-held-columns"])
    kinds = {stop.kind for stop in swap.check(own, frame(rows)).open_stops}
    assert "few-change" in kinds
    with pytest.raises(errors.StoppedByCheck, match=r"2 rounds select 90\.5% of them at least once"):
        swap.draw(own, frame(rows))
    assert "few-change" not in {stop.kind for stop in swap.check(plan("1/20"), frame(rows)).open_stops}


# -- forecasts of tables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [["t", "h"], ["c", "h"], ["m", "c", "t", "h"], ["c", "t"], ["m", "h"]])
@pytest.mark.parametrize("seed", range(4))
def test_mean_and_variance_of_tables_after_all_rounds_are_those_of_enumeration(by, seed):
    """Two strata of the first round, each with its own law; two or three rounds."""
    generator = np.random.default_rng(seed)
    rates = [(LOW, HALF, HIGH)[k] for k in generator.integers(0, 3, 3)]
    county, tract = [0, 0, 0, 1, 1], [0, 0, 1, 2, 3]
    names, levels = ("m", "c", "t", "u", "h"), [([0] * 5, rates[0]), (county, rates[1]), (tract, rates[2])]
    rows, laws = [], []
    for m in range(2):
        swapped, held = generator.integers(0, 5, 4).tolist(), generator.integers(0, 3, 4).tolist()
        rows += [(str(m), str(county[s]), str(tract[s]), str(s), str(h)) for s, h in zip(swapped, held, strict=True)]
        laws.append((m, held, in_rounds(swapped, levels)))
    at = {name: place for place, name in enumerate(names)}
    (table,) = swap.check(plan(*rates, swapped=("c", "t", "u")), frame(rows, names), tables=[by]).tables
    for label, mean, variance in zip(table.labels, table.mean, table.variance, strict=True):
        total = spread = Fraction(0)
        for m, held, law in laws:
            counts: Counter = Counter()
            for (values, _), chance in law.items():
                after = [
                    (str(m), str(county[s]), str(tract[s]), str(s), str(h)) for s, h in zip(values, held, strict=True)
                ]
                counts[sum(tuple(row[at[name]] for name in by) == label for row in after)] += chance
            own = sum(count * chance for count, chance in counts.items())
            total += own
            spread += sum(count**2 * chance for count, chance in counts.items()) - own**2
        assert mean == pytest.approx(float(total), rel=1e-11, abs=1e-13)
        assert variance == pytest.approx(float(spread), rel=1e-9, abs=1e-13)
    assert table.is_invariant == (set(by) <= {"m", "h"} or set(by) <= {"m", "c", "t", "u"})


# -- the law that is drawn ---------------------------------------------------------------------------------------------


COPIES = 30_000
PLACES = [0, 0, 1, 1]
SLOTS = ((0, 0), (0, 1), (1, 2), (2, 3), (2, 1))


def drawn_tables(source):
    """The tables that copies of one stratum have after two rounds."""
    rows = [(copy, str(PLACES[s]), str(s), str(h)) for copy in range(COPIES) for h, s in SLOTS]
    after = swap.draw(plan(Fraction(1, 4), HALF), frame(rows), source=source).table
    values = [np.array(after[name].values.to_pylist())[after[name].codes].astype(int) for name in ("h", "t")]
    shaped = (np.stack(values, axis=-1).reshape(COPIES, len(SLOTS), 2)).tolist()
    return Counter(tuple(sorted(map(tuple, table))) for table in shaped)


@pytest.fixture(scope="module")
def drawn():
    return drawn_tables(SeededSource(15))


def compared(drawn, law):
    if set(drawn) - set(law):
        return 0.0
    return p_value([drawn[table] for table in law], list(law.values()))


def test_two_rounds_are_drawn_with_the_law_of_enumeration(drawn):
    law = rounds_law(SLOTS, [([0] * 4, Fraction(1, 4)), (PLACES, HALF)])
    assert sum(law.values()) == 1
    assert compared(drawn, law) > FALSE_ALARM


def looking_back(table, places, rate, later, again):
    """A mutant: in round 2 only those records take part that round 1 moved, or did not (``again``)."""
    held, swapped = [h for h, _ in table], [s for _, s in table]
    found: Counter = Counter()
    first = permutation_law(len(table), rate)
    for order, moved in zip(*permutations(len(table)), strict=True):
        values = [swapped[k] for k in order]
        aside = {slot: -1 - slot for slot, k in enumerate(order) if (slot == k) == again}
        groups = {**dict(enumerate(places)), **{value: value for value in aside.values()}}
        hidden = [aside.get(slot, value) for slot, value in enumerate(values)]
        if not first[moved]:
            continue
        for (last, _), further in in_rounds(hidden, [(groups, later)]).items():
            seen = [values[-1 - value] if value < 0 else value for value in last]
            found[tuple(sorted(zip(held, seen, strict=True)))] += first[moved] * further
    return dict(found)


@pytest.mark.parametrize(
    "mutant",
    {
        "one round only": lambda: rounds_law(SLOTS, [([0] * 4, Fraction(1, 4))]),
        "the later round works on the original": lambda: rounds_law(SLOTS, [(PLACES, HALF)]),
        "rates exchanged": lambda: rounds_law(SLOTS, [([0] * 4, HALF), (PLACES, Fraction(1, 4))]),
        "the first round twice": lambda: rounds_law(SLOTS, [([0] * 4, Fraction(1, 4)), ([0] * 4, HALF)]),
        "moved records only": lambda: looking_back(SLOTS, PLACES, Fraction(1, 4), HALF, True),
        "other records only": lambda: looking_back(SLOTS, PLACES, Fraction(1, 4), HALF, False),
    }.items(),
    ids=lambda one: one[0],
)
def test_other_laws_would_be_noticed(drawn, mutant):
    law = mutant[1]()
    assert sum(law.values()) == 1
    assert compared(drawn, law) < FALSE_ALARM


def test_groups_by_the_original_places_would_break_the_invariants(monkeypatch):
    """What the release recounts: a later round that looks up its groups in the original tears places apart."""
    from stirred.swap import drawing

    rows = [(str(k % 3), str(PLACES[k % 4]), str(k % 4), str(k // 4 % 5)) for k in range(400)]
    right = drawing.draw_later_rounds

    def wrong(own, table, source):
        original = frame(rows)["c"].to_numpy().astype(table["c"].codes.dtype)
        moved = right(own, table.replace({"c": table["c"].with_codes(original)}), source)
        return table.replace({"t": moved["t"]})

    swap.draw(plan(HALF, HALF), frame(rows), source=SeededSource(1))
    monkeypatch.setattr(drawing, "draw_later_rounds", wrong)
    with pytest.raises(errors.StirredError, match="number of rows of microdata by m, c and t"):
        swap.draw(plan(HALF, HALF), frame(rows), source=SeededSource(1))


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_rounds_makes_no_difference_to_the_law(seed):
    """Exactly, also where the coarser round has rates by held values. So the coarsest round's epsilon holds in either
    order, over its own universe: what was a conjecture for nested places."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(3, 6))
    table = tuple(sorted((int(generator.integers(0, 3)), int(generator.integers(0, 4))) for _ in range(n)))
    fine, all_together = (PLACES, HALF), ([0] * 4, Fraction(1, 4))
    assert rounds_law(table, [all_together, fine]) == rounds_law(table, [fine, all_together])
    held, swapped = [h for h, _ in table], [s for _, s in table]
    chances = permutation_chances(reselecting([(LOW, HALF, HIGH)[h] for h in held]), n)
    first, last = Counter(), Counter()
    for order, chance in zip(permutations(n)[0], chances, strict=True):
        for (values, _), further in in_rounds([swapped[k] for k in order], [fine]).items():
            first[tuple(sorted(zip(held, values, strict=True)))] += chance * further
        for (values, _), further in in_rounds(swapped, [fine]).items():
            last[tuple(sorted(zip(held, [values[k] for k in order], strict=True)))] += chance * further
    assert +first == +last


def test_a_fine_round_by_held_values_too_does_not_commute():
    """Why match_also takes no held columns: groups then depend on where records are."""
    held, swapped = [0, 0, 1, 1], [0, 1, 2, 2]

    def later(values):
        groups = {(k, s): (s // 2, held[k]) for k, s in enumerate(values)}
        found = Counter()
        for (last, _), chance in in_rounds(list(enumerate(values)), [(groups, HALF)]).items():
            found[tuple(s for _, s in last)] += chance
        return found

    first, last = Counter(), Counter()
    for (values, _), chance in in_rounds(swapped, [([0] * 3, HALF)]).items():
        for end, further in later(values).items():
            first[end] += chance * further
    for values, chance in later(swapped).items():
        for (end, _), further in in_rounds(values, [([0] * 3, HALF)]).items():
            last[end] += chance * further
    assert first != last


# -- the guarantee of the first round ----------------------------------------------------------------------------------


def assert_no_universe_loses_more(n, rates):
    """All universes of one stratum of n records, with every nesting of places, at these (first, later) rates."""
    nestings: dict = {}
    for totals, places in geographies(n):
        nestings.setdefault(totals, []).append(places)
    met = 0
    for held, totals in itertools.product(partitions(n), nestings):
        if len(held) < 2 or len(totals) < 2:
            continue
        tables = universe(held, totals)
        between = distances(tables)
        alone = {first: matrix(tables, lambda table, rate=first: released_law(table, rate)) for first, _ in rates}
        for places, (first, later) in itertools.product(nestings[totals], rates):
            again = matrix(tables, lambda table, rate=later, own=places: one_round(table, own, rate))
            assert worst_loss(alone[first] @ again, between) <= epsilon(n, first) * (1 + 1e-9)
            met += 1
    assert met >= len(nestings)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_no_small_universe_loses_more_than_the_first_rounds_epsilon(n):
    assert_no_universe_loses_more(n, list(itertools.product((LOW, HALF, HIGH), (LOW, HALF, HIGH))))


def test_no_universe_of_five_loses_more_than_the_first_rounds_epsilon():
    assert_no_universe_loses_more(5, [(HIGH, HALF)])


@pytest.mark.slow
@pytest.mark.parametrize(("n", "rates"), [(5, [(LOW, HALF), (HALF, HIGH)]), (6, [(LOW, HALF)])])
def test_no_larger_universe_loses_more_than_the_first_rounds_epsilon(n, rates):
    assert_no_universe_loses_more(n, rates)


@pytest.mark.parametrize(
    ("again", "places", "rate", "later", "times"),
    [
        (False, (0, 0, 1), HALF, HIGH, 1.984),
        (True, (0, 0, 0), HIGH, HIGH, 2.566),
        (False, (0, 0, 1), Fraction(3, 4), Fraction(999, 1000), 6.519),
        (True, (0, 0, 0), Fraction(3, 4), Fraction(999, 1000), 10.432),
    ],
)
def test_a_later_round_that_looks_at_the_original_exceeds_epsilon(again, places, rate, later, times):
    """Three records that share nothing; only those that round 1 moved, or left (``again``), take part in round 2."""
    tables = universe((1, 1, 1), (1, 1, 1))
    mutant = matrix(tables, lambda table: looking_back(table, places, rate, later, not again))
    assert worst_loss(mutant, distances(tables)) / epsilon(3, rate) == pytest.approx(times, abs=1e-3)


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_files_that_agree_only_on_what_all_rounds_keep_have_no_guarantee_in_general():
    """Round 1 matches on the first column and swaps the second, round 2 matches on the second and swaps the third."""

    def after(rows):
        law = {tuple(rows): Fraction(1)}
        for matched, swapped in ((0, 1), (1, 2)):
            found: Counter = Counter()
            for file, chance in law.items():
                names = sorted({record[matched] for record in file})
                places = {(k, record): names.index(record[matched]) for k, record in enumerate(file)}
                for (last, _), further in in_rounds(list(enumerate(file)), [(places, HALF)]).items():
                    exchanged = [list(record) for record in file]
                    for slot, (_, giver) in enumerate(last):
                        exchanged[slot][swapped] = giver[swapped]
                    found[tuple(map(tuple, exchanged))] += chance * further
            law = dict(found)
        return {tuple(sorted(file)) for file in law}

    one, other = [(1, "a", "u"), (2, "a", "v"), (1, "b", "w")], [(1, "a", "v"), (2, "a", "u"), (1, "b", "w")]
    for columns in ((0, 1), (1, 2), (0,), (2,)):
        assert Counter(tuple(r[c] for c in columns) for r in one) == Counter(
            tuple(r[c] for c in columns) for r in other
        )
    assert after(one) != after(other)
    with pytest.raises(errors.PlanError, match="there is no guarantee in general"):
        swap.SwapPlan(
            match=["h1"], swap=["s1"], hold=["s2"], rate=HALF, rounds=[{"swap": "s2", "match_also": "s1", "rate": HALF}]
        )


@pytest.mark.parametrize(
    ("rounds", "kind"),
    [
        ([{"swap": "m", "match_also": ["c", "t"], "rate": HALF}], "round-swaps-match"),
        ([{"swap": "t", "match_also": "c", "rate": HALF}, {"swap": "c", "rate": HALF}], "round-swaps-match"),
        ([{"swap": ["t", "h"], "match_also": "c", "rate": HALF}], "round-swaps-held"),
        ([{"swap": "t", "match_also": ["c", "h"], "rate": HALF}], "round-matches-held"),
        ([{"swap": "t", "match_also": ["c", "m"], "rate": HALF}], "round-matches-held"),
        ([{"swap": "t", "rate": HALF}], "round-leaves"),
        ([{"swap": ["c", "t"], "match_also": "c", "rate": HALF}], "two-roles"),
        ([{"swap": [], "match_also": ["c", "t"], "rate": HALF}], "plan-field"),
        ([{"swap": "t", "match_also": "c", "rate": 1}], "plan-field"),
        ([{"swap": "t", "match_also": "c"}], "plan-field"),
        ([{"swap": "t", "match_also": "c", "rates": [{"otherwise": True, "rate": 0.1}]}], "plan-field"),
    ],
)
@pytest.mark.parametrize("hold", ["rest", ["h"]])
def test_other_rounds_are_refused(rounds, kind, hold):
    with pytest.raises(errors.PlanError) as refused:
        plan(HALF, rounds=rounds, hold=hold)
    assert refused.value.kind == kind


def test_a_round_may_swap_all_columns_once_more():
    own = plan(HALF, rounds=[{"swap": ["c", "t"], "rate": LOW}])
    assert own.rounds[0].words == "'c' and 't' at rate 1/20 again"
    swapped = [0, 1, 2, 2]
    rows = [("m", str(PLACES[s]), str(s), str(k)) for k, s in enumerate(swapped)]
    found = swap.check(own, frame(rows)).movement.expected_changed_share
    expected = shares(swapped, [([0] * 4, HALF), ([0] * 4, LOW)])[1] / 4
    assert found == pytest.approx(float(expected), rel=1e-12)
    assert math.isfinite(swap.check(own, frame(rows)).epsilon)
