"""What an audit of a swapping program sees: every fault here is found, and nothing is found in programs without one."""

from __future__ import annotations

import re
from itertools import pairwise, permutations

import numpy as np
import polars as pl
import pytest
import swap_mutants as mutants

from stirred.errors import StirredError
from stirred.lab.audit.laws import all_derangements
from stirred.lab.audit.p_values import of_rare_coincidences
from stirred.lab.audit.swap_audit import audit_swap, plan_program
from stirred.lab.audit.swap_runs import (
    INTEGERS,
    RECORDS,
    contrasts,
    make_file,
    moved_in,
    neighbours_kept,
    permutations_by,
    ranks,
    read_run,
    stratum_sizes,
)
from stirred.noise import SeededSource
from stirred.swap import LinkedTable, SwapPlan

ROLES = {"unit": "household", "match": ["size"], "swap": ["county"], "hold": ["tenure"], "rate": 0.05}
PLAN = SwapPlan(**ROLES)
WITH_ID = SwapPlan(**ROLES, id="household")
PERSONS = LinkedTable(name="persons", link="household", id="person", hold=["age", "sex"], copies={"where": "county"})
WITH_PERSONS = SwapPlan(**ROLES, id="household", linked=[PERSONS])


def audited(plan, program, records=3_000, runs=4, seed=1, **given):
    return audit_swap(plan, program, records=records, runs=runs, source=SeededSource(seed), **given)


def found(audit):
    return {one.name for one in audit.wrong}


def changed(plan, change, table=RECORDS):
    """Our own program, with one of its tables changed afterwards."""
    own = plan_program(plan, SeededSource(2))

    def program(tables):
        released = dict(own(tables))
        released[table] = change(released[table])
        return released

    return program


# -- the made file -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.5, 0.95])
def test_a_made_file_has_small_strata_and_some_where_a_lone_record_is_common(rate):
    sizes, number = np.unique(stratum_sizes(100_000, rate), return_counts=True)
    assert {2, 3, 4, 5, 6} <= set(sizes.tolist())
    assert number[sizes <= 6].min() >= 100
    assert abs(int(np.sum(sizes * number)) - 100_000) <= 2_000
    assert max(7, round(1 / rate)) in sizes


def test_records_of_a_stratum_differ_in_held_and_swap_values_and_nothing_follows_another():
    made = make_file(WITH_ID, 5_000, SeededSource(1))
    frame = made.tables[RECORDS]
    assert frame.select("size", "tenure").is_duplicated().sum() == 0
    assert frame.select("size", "county").is_duplicated().sum() == 0
    assert frame["household"].n_unique() == frame.height
    columns = np.vstack(
        [made.row, made.held / made.sizes[made.stratum], made.swapped / made.sizes[made.stratum], made.ids]
    )
    # Correlations of 5,000 pairs have a standard deviation of .014: 7 of them, about 1e-11 for the six together.
    assert np.abs(np.corrcoef(columns) - np.eye(4)).max() < 0.1


@pytest.mark.parametrize(
    "plan", [PLAN, SwapPlan(**ROLES | {"match": ["a", "b"], "swap": ["x", "y"], "hold": ["h", "i"]})]
)
def test_a_release_shows_who_received_whose_values(plan):
    made = make_file(plan, 3_000, SeededSource(1))
    rng = np.random.default_rng(5)
    order = np.lexsort((rng.random(made.records), made.stratum))
    giver = np.empty_like(order)
    giver[order] = order[np.lexsort((rng.random(made.records), made.stratum[order]))]
    shown = rng.permutation(made.records)
    columns = made.match_digits.write(made.stratum) | made.held_digits.write(made.held)
    columns |= made.swap_digits.write(made.swapped[giver])
    read = read_run(made, pl.DataFrame({name: values[shown] for name, values in columns.items()}))
    assert read.whole
    assert np.array_equal(read.record, shown)
    assert np.array_equal(read.giver, giver)


def test_permutations_are_read_in_any_order_of_the_records():
    made = make_file(SwapPlan(**ROLES | {"match": []}), 200, SeededSource(1))
    giver = np.arange(200)
    giver[[10, 20, 30]] = [30, 10, 20]
    moved = moved_in(made, giver)
    for label in (np.arange(200), made.held, made.swapped):
        by_label = sorted([10, 20, 30], key=lambda record: label[record])
        expected = [by_label.index(giver[record]) for record in by_label]
        assert permutations_by(moved, ranks(moved, label[moved.record])).tolist() == expected


# -- what is summed up ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [3, 4, 5, 6, 7])
def test_every_contrast_has_mean_zero_over_all_derangements(k):
    every = np.array(all_derangements(k))
    integers, patterns = contrasts(every.ravel(), np.arange(len(every) + 1) * k)
    assert integers.sum(axis=1).tolist() == [0] * len(INTEGERS)
    assert patterns.sum(axis=1) == pytest.approx(0, abs=1e-9)
    assert (integers != 0).any(axis=1).all()
    assert (patterns != 0).any(axis=1).sum() == (3 if k > 3 else 1)  # two cycles of three differ in one pattern only


@pytest.mark.parametrize("way", range(4))
def test_integers_are_read_off_whichever_way_a_shuffle_goes(way):
    arrange = mutants.with_biased_integers(0.4, from_top=way % 2 == 0, of_givers=way < 2)
    audit = audited(PLAN, mutants.swapper(0.05, 3, arrange=arrange), 8_000, 12)
    (one,) = (one for one in audit.results if one.name == "integers")
    assert one.wrong
    assert one.numbers["smallest"] == f"{INTEGERS[way]}, by order of the file"


def test_pairs_of_rows_that_stay_neighbours_are_no_likelier_than_stated():
    for n in (4, 6, 7):
        every = np.array(list(permutations(range(n))))
        kept = np.sum(np.abs(np.diff(every, axis=1)) == 1, axis=1)
        for pairs in range(n):
            assert np.mean(kept >= pairs) <= neighbours_kept(pairs)


# -- programs without a fault --------------------------------------------------------------------------------

PLANS = {
    "one of each": PLAN,
    "several columns": SwapPlan(
        **ROLES | {"match": ["a", "b", "c"], "swap": ["x", "y"], "hold": ["h", "i"]}, drop=["name"], id="number"
    ),
    "the rest is held": SwapPlan(**ROLES | {"hold": "rest"}),
    "no match column": SwapPlan(**ROLES | {"match": []}),
    "half of all": SwapPlan(**ROLES | {"rate": "1/2"}),
    "most": SwapPlan(**ROLES | {"rate": "9/10"}),
    "hardly any": SwapPlan(**ROLES | {"rate": "1/1000"}),
    "persons": WITH_PERSONS,
    "two linked tables": SwapPlan(
        **ROLES,
        id="household",
        linked=[LinkedTable(name="persons", link="h", hold="rest"), LinkedTable(name="cars", link="no", id="car")],
    ),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_nothing_is_found_in_our_own_program(plan):
    # The audit's own false-alarm rate, with fixed seeds.
    audit = audited(plan, plan_program(plan, SeededSource(7)), false_alarm=1e-9)
    assert audit.passed, audit
    assert audit.runs == 4


@pytest.mark.parametrize("order", [mutants.shuffled, mutants.sorted_by_values])
def test_nothing_is_found_in_another_program_that_keeps_the_law(order):
    audit = audited(WITH_ID, mutants.swapper(0.05, 3, order=order), 8_000, 12, false_alarm=1e-9)
    assert audit.passed, audit


@pytest.mark.parametrize("kind", [pl.Float64, pl.String, pl.Categorical, pl.Int16])
def test_numbers_may_be_written_in_any_way(kind):
    program = changed(
        PLAN, lambda frame: frame.with_columns(pl.col("size", "county", "tenure").cast(pl.String).cast(kind))
    )
    assert audited(PLAN, program, 500).passed


def test_a_program_that_swaps_nothing_is_found_out():
    audit = audited(WITH_ID, lambda tables: {RECORDS: tables[RECORDS].with_columns(pl.col("household") - 10**15)})
    assert {"rate", "repeated-run", "row-order"} <= found(audit)
    assert "0 moved in all" in str(audit)
    nothing = {one.name for one in audit.unasked if "no record moved" in one.said}
    assert nothing >= {
        "which-are-selected",
        "between-strata",
        "between-runs",
        "moved-in-row-order",
        "moved-in-id-order",
    }


def test_what_small_files_cannot_show_is_not_called_right():
    audit = audited(PLAN, plan_program(PLAN, SeededSource(1)), 500, 3)
    unasked = {one.name for one in audit.unasked}
    assert {"selected-by-stratum", "derangements", "exchanges", "integers", "givers"} <= unasked
    assert not unasked & {"rate", "rows", "kept-values", "row-order", "repeated-run"}
    assert f"in {len(audit.results) - len(unasked)} questions; {len(unasked)} could not be asked." in str(audit)
    assert "(0 degrees of freedom)" not in str(audit)


def test_a_spread_of_hardly_any_records_is_not_called_right():
    plan = PLANS["hardly any"]
    assert "spread-over-runs" in {one.name for one in audited(plan, plan_program(plan, SeededSource(1)), 500).unasked}


def test_everything_is_asked_of_a_file_that_is_large_enough():
    plan = SwapPlan(**{**ROLES, "rate": 0.5})
    assert not audited(plan, plan_program(plan, SeededSource(1)), 20_000).unasked


def test_another_rate_is_not_said_to_be_dependence():
    audit = audited(PLAN, mutants.swapper(0.5, 1), 20_000, 12)
    said = {one.name: one.said for one in audit.wrong}
    assert {"rate", "between-strata", "between-runs"} <= set(said)
    for name in ("between-strata", "between-runs"):
        assert said[name].endswith("If the rate itself is another one (see above), that alone can explain it.")


def test_the_pairs_that_moved_alike_are_those_of_the_most_telling_comparison():
    audit = audited(PLAN, plan_program(PLAN, SeededSource(1)), 20_000)
    (strata,) = (one for one in audit.results if one.name == "between-strata")
    alike, expected = re.search(r"finds ([\d,]+) pairs .* up to ([\d.,]+) were", strata.said).groups()
    least = of_rare_coincidences(int(alike.replace(",", "")), float(expected.replace(",", "")))
    assert strata.p_value <= 5 * least * 1.1  # of five ways of looking; the expected number is rounded


def test_ids_may_be_texts():
    texts = pl.col("household").cast(pl.String).map_elements(lambda number: f"h{number}", return_dtype=pl.String)
    own = plan_program(WITH_PERSONS, SeededSource(2))

    def program(tables):
        return {name: frame.with_columns(texts) for name, frame in own(tables).items()}

    assert audited(WITH_PERSONS, program, 500).passed


# -- what is plainly seen ------------------------------------------------------------------------------------


def replaced(column, value):
    """The first row with another value."""
    return lambda frame: frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(value).otherwise(pl.col(column)).alias(column)
    )


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda frame: frame[1:], "rows"),
        (lambda frame: pl.concat([frame, frame[:1]]), "rows"),
        (lambda frame: pl.concat([frame[1:], frame[1:2]]), "kept-values"),
        (replaced("tenure", 10**6), "kept-values"),
        (lambda frame: frame.with_columns(pl.col("tenure") + 0.5), "kept-values"),
        (replaced("size", -1), "kept-values"),
        (replaced("size", None), "kept-values"),
        (replaced("county", 10**6), "kept-counts"),
        (lambda frame: frame.with_columns(pl.col("county").shuffle(seed=1)), "kept-counts"),
        (lambda frame: frame.drop("county"), "columns"),
        (lambda frame: frame.drop("household"), "columns"),
        (lambda frame: frame.with_columns(more=1), "columns"),
    ],
)
def test_a_release_that_is_not_whole_is_named_and_ends_the_audit(change, name):
    audit = audited(WITH_ID, changed(WITH_ID, change), 500)
    assert name in found(audit)
    assert audit.runs == 1
    assert "Nothing else was asked" in str(audit)


def test_missing_records_are_counted_and_what_is_then_not_looked_at_is_not_called_right():
    audit = audited(WITH_ID, changed(WITH_ID, lambda frame: frame[:0]), 500)
    assert found(audit) == {"rows", "kept-values", "kept-counts"}
    said = {one.name: one.said for one in audit.results}
    records = make_file(WITH_ID, 500, SeededSource(1)).records
    assert said["kept-values"] == f"They are not: {records:,} records are missing."
    assert said["kept-counts"] == f"They do not: {records:,} swap values are missing."
    assert [one.name for one in audit.unasked] == ["ids"]


def test_missing_records_and_strange_rows_are_both_counted():
    audit = audited(WITH_ID, changed(WITH_ID, replaced("tenure", 10**6)), 500)
    (kept,) = (one for one in audit.wrong if one.name == "kept-values")
    assert (
        kept.said
        == "They are not: 1 records are missing, and 1 rows are of no record, or of one that is there already."
    )


def test_a_dropped_column_must_not_be_released():
    plan = SwapPlan(**ROLES, drop=["name"])
    audit = audited(plan, lambda tables: tables, 500)
    assert found(audit) == {"columns"}
    assert "'name' not to be released" in str(audit)


def test_swap_columns_that_move_apart_are_found():
    plan = SwapPlan(**ROLES | {"swap": ["x", "y"]})
    audit = audited(plan, changed(plan, lambda frame: frame.with_columns(pl.col("y").shuffle(seed=1).over("size"))))
    assert found(audit) == {"kept-counts"}


def test_ids_that_survive_are_found():
    for ids in (mutants.old_ids, lambda order, before, rng: rng.permutation(before["household"].to_numpy())):
        assert "ids" in found(audited(WITH_ID, mutants.swapper(0.05, 1, ids=ids), 500))
    assert "ids" in found(audited(WITH_PERSONS, changed_ids_of_persons(), 500))


def changed_ids_of_persons():
    own = plan_program(WITH_PERSONS, SeededSource(2))

    def program(tables):
        released = dict(own(tables))
        released["persons"] = released["persons"].with_columns(tables["persons"]["person"])
        return released

    return program


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.with_columns(pl.col("household").shuffle(seed=1)),
        lambda frame: frame.with_columns(pl.col("where").shuffle(seed=1)),
        lambda frame: frame.with_columns(pl.lit("x").alias("where")),
        lambda frame: frame.with_columns(household=-1),
        lambda frame: frame.drop("age"),
        lambda frame: frame[1:],
    ],
)
def test_linked_rows_that_leave_their_record_are_found(change):
    audit = audited(WITH_PERSONS, changed(WITH_PERSONS, change, "persons"), 500)
    assert found(audit) == {"linked-rows"}


def test_the_order_of_linked_rows_is_looked_at():
    def program(tables):
        """Swaps nothing, and numbers ids anew, but leaves persons where they stood."""
        new = [pl.col(name) - 10**15 for name in ("household", "person")]
        return {
            RECORDS: tables[RECORDS].with_columns(new[0]).sort("size", "tenure"),
            "persons": tables["persons"].with_columns(new),
        }

    assert "row-order-of-persons" in found(audited(WITH_PERSONS, program, 500))


# -- what is refused -----------------------------------------------------------------------------------------


def test_a_program_that_forgets_a_table_is_told_so():
    with pytest.raises(StirredError, match="gave no table called 'records', but none at all") as refused:
        audited(PLAN, lambda tables: {}, 500)
    assert refused.value.kind == "audit-no-table"
    with pytest.raises(StirredError, match="no table called 'persons', but 'records'"):
        audited(WITH_PERSONS, lambda tables: {RECORDS: plan_program(WITH_PERSONS)(tables)[RECORDS]}, 500)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"id": "h", "linked": [LinkedTable(name="persons", link="h", hold=["age"], flat=True)]}, "flat"),
        ({"hold": (), "id": "h", "linked": [LinkedTable(name="persons", link="h", hold=["age"])]}, "no held column"),
        ({"rate": 1, "allow": ["rate-zero-or-one"]}, "rate of 0 or 1"),
    ],
)
def test_plans_whose_law_is_not_known_here_are_refused(fields, words):
    plan = SwapPlan(**ROLES | fields)
    with pytest.raises(StirredError, match=words) as refused:
        audited(plan, lambda tables: tables)
    assert refused.value.kind == "audit-of-plan"


@pytest.mark.parametrize(
    "given", [{"records": 100}, {"runs": 1}, {"false_alarm": 0}, {"false_alarm": 1}, {"seconds": 0}, {"records": 0}]
)
def test_questions_that_make_no_sense_are_refused(given):
    with pytest.raises(StirredError) as refused:
        audit_swap(PLAN, lambda tables: tables, **{"source": SeededSource(1)} | given)
    assert refused.value.kind == "audit-question"


# -- effort --------------------------------------------------------------------------------------------------


def test_more_effort_finds_smaller_faults_and_the_audit_says_which():
    said = [audited(PLAN, mutants.swapper(0.05, 1), records, 6).limits[0] for records in (1_000, 30_000)]
    off = [float(words.partition("off by ")[2].partition(" ")[0]) for words in said]
    assert off[0] > 4 * off[1]
    assert "too small to find any bias" in audited(PLAN, mutants.swapper(0.05, 1), 200, 2).limits[0]


def test_so_many_seconds_are_shared_out_by_a_timed_run(monkeypatch):
    from stirred.lab.audit import swap_audit

    clock = iter(range(100))
    monkeypatch.setattr(swap_audit.time, "monotonic", lambda: next(clock))
    heights = []
    right = mutants.swapper(0.05, 1)

    def program(tables):
        heights.append(tables[RECORDS].height)
        return right(tables)

    audit = audit_swap(PLAN, program, seconds=6.0, source=SeededSource(1))  # the trial of 20,000 records takes a second
    assert audit.runs == 12
    assert heights[0] == pytest.approx(20_000, rel=0.05)
    assert heights[1:] == pytest.approx([10_000] * 12, rel=0.05)


def test_progress_is_told():
    class Told:
        def __init__(self):
            self.done = []

        def stage(self, words, done=None):
            self.done.append(done)

    told = Told()
    audited(PLAN, mutants.swapper(0.05, 1), 500, 3, progress=told)
    assert told.done == [0, 1 / 3, 2 / 3, None]


def test_the_allotted_parts_add_up_to_the_false_alarm_rate():
    audit = audited(WITH_PERSONS, plan_program(WITH_PERSONS, SeededSource(1)), 500, false_alarm=1e-4)
    assert sum(one.allotted for one in audit.results) == pytest.approx(1e-4)
    assert all(one.p_value is None for one in audit.results if not one.allotted)
    assert not any(earlier == later for earlier, later in pairwise(sorted(one.name for one in audit.results)))
