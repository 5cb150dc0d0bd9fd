"""Audits of measuring programs: our own passes, faulty ones are caught, and what a program writes is read with care.

Seeds are fixed. Where a number of alarms is compared, the comment says the false-alarm probability, 1e-9.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import census
import numpy as np
import polars as pl
import pytest
from noise_mutants import PLAN, PROGRAMS, Measurer, power_of_program
from scipy import stats

from stirred.errors import StirredError
from stirred.lab.audit.p_values import POWER
from stirred.lab.audit.results import FALSE_ALARM
from stirred.lab.audit.topdown_audit import audit_topdown, plan_program, powers, runs_needed
from stirred.lab.audit.topdown_runs import KEYS, make_data
from stirred.noise import SeededSource
from stirred.tables.synthetic.population import DOMAINS
from stirred.topdown import preset
from stirred.topdown.data.counting import count_tables
from stirred.topdown.drawing import draw_into

QUESTIONS = 9


@cache
def default_runs():
    return runs_needed(PLAN)


PLANS = {
    "census": census.plan(),
    "teaching": preset("teaching", DOMAINS),
    "pl94-2020": preset("pl94-2020", DOMAINS),
    "root": PLAN.model_copy(
        update={
            "spine": PLAN.spine.model_copy(update={"root": "nation"}),
            "tables": (
                PLAN.tables[0].model_copy(
                    update={"level_shares": dict.fromkeys(("nation", "county", "town"), PLAN.tables[0].rho / 3 * 2)}
                ),
            ),
        }
    ),
}


# -- the made data -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_made_data_fit_the_plan_and_hold_empty_and_full_cells(name):
    made = make_data(PLANS[name])
    for group in made.groups():
        keys = made.keys(group.entry)
        assert keys.columns == list(KEYS) and len(keys) == group.truth.size and not keys.is_duplicated().any()
        if group.entry.units > 1:
            assert (group.truth == 0).any() and (group.truth > 0).any()
    plan = PLANS[name]
    named = {(one.entry.table, one.entry.level, one.entry.query) for one in made.groups()}
    assert named == {
        (table.name, level, query.name)
        for table in plan.released
        for level in plan.spine.all_levels
        for query in table.queries
        if table.rho_of(level, query)
    }


def test_a_plan_that_leaves_no_data_is_refused():
    fields = census.fields()
    fields["tables"][0]["zeros"] = [{"kind": ["nursing"]}]  # and yet one for each nursing home
    with pytest.raises(StirredError) as found:
        make_data(census.TopDownPlan(**fields))
    assert found.value.kind == "audit-question" and "constraints" in str(found.value)


def test_tables_with_a_column_of_counts_are_made():
    table = PLAN.tables[0].model_copy(update={"count": "number"})
    made = make_data(PLAN.model_copy(update={"tables": (table,)}))
    plain = make_data(PLAN)
    assert "number" in made.tables["persons"].columns
    for one, other in zip(made.groups(), plain.groups(), strict=True):
        assert np.array_equal(one.truth, other.truth)


# -- our own program -----------------------------------------------------------------------------------------


def test_our_program_gives_what_a_release_measures(tmp_path):
    """The same seed gives the same values in the files of a draw."""
    plan = census.plan()
    made = make_data(plan)
    frame = plan_program(plan, SeededSource(3))(made.tables)["measurements"]
    drawn = draw_into(tmp_path, plan, dict(made.tables), source=SeededSource(3))
    start = 0
    for entry in drawn.measurements.entries:
        part = frame[start : start + entry.units * entry.cells]
        assert part["value"].to_list() == drawn.measurements.values(entry, slice(0, entry.units)).ravel().tolist()
        written = pl.read_parquet(drawn.measurements.path(entry)).cast(pl.String)
        assert part.select("level", "geounit", "query", "cell").equals(
            written.select("level", "geounit", "query", "cell")
        )
        assert set(part["table"]) == {entry.table}
        start += len(part)
    assert start == len(frame)


def test_our_program_names_the_places_that_it_is_given():
    program = plan_program(PLAN, SeededSource(1))
    made = make_data(PLAN)
    others = {
        "geography": pl.DataFrame({"county": ["a"], "town": ["b"]}),
        "persons": made.tables["persons"].with_columns(pl.lit("b").alias("town")),
    }
    first = program(made.tables)["measurements"]
    assert set(program(others)["measurements"]["geounit"]) == {"a", "b"}
    assert program(made.tables)["measurements"].select(KEYS).equals(first.select(KEYS))


@pytest.mark.parametrize("name", ["census", "teaching", "root"])
def test_our_program_passes(name):
    plan = PLANS[name]
    audit = audit_topdown(plan, plan_program(plan, SeededSource(21)), runs=20)
    assert audit.passed and audit.runs == 20, str(audit)
    budget = next(one for one in audit.results if one.name == "budget")
    assert 0.3 * float(plan.rho) < budget.numbers["rho_at_least"] < float(plan.rho)
    assert "proof of the sampler" in str(audit)


def test_our_program_passes_at_default_effort():
    audit = audit_topdown(PLAN, plan_program(PLAN, SeededSource(22)))
    assert audit.passed and audit.runs == default_runs(), str(audit)
    assert min(powers(PLAN, audit.runs).values()) >= POWER


def test_too_little_noise_everywhere_is_not_said_to_depend_on_the_count():
    for name in ("a forgotten level", "half the variance"):
        assert "by-count" not in {one.name for one in caught(name, 2).wrong}


def test_limits_say_what_so_few_runs_do_not_catch():
    few = audit_topdown(PLAN, Measurer(np.random.default_rng(1)), runs=2)
    assert "Not caught with that probability: 'total' of persons at level 'county' averaged" in str(few)
    assert "More runs would do it" in str(few)
    enough = audit_topdown(PLAN, Measurer(np.random.default_rng(1)), runs=default_runs())
    assert "Not caught" not in str(enough) and "any query that is measured twice" in str(enough)


def test_what_no_number_of_runs_catches_does_not_make_more_runs():
    """A level with a share of 1/1000: to forget it changes the noise of the others by as much."""
    table = PLAN.tables[0].model_copy(
        update={"level_shares": {"county": Fraction(1, 1000), "town": Fraction(999, 1000)}}
    )
    uneven = PLAN.model_copy(update={"tables": (table,)})
    runs = runs_needed(uneven)
    missed = [words for words, chance in powers(uneven, runs).items() if chance < POWER]
    assert missed == ["level 'county' of persons forgotten"] and runs < 1.2 * default_runs()


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated():
    # Binomial(1000, .05) exceeds the limit with probability below 1e-9.
    alarms = 0
    for number in range(1000):
        program = plan_program(PLAN, SeededSource(30_000 + number))
        alarms += not audit_topdown(PLAN, program, runs=2, false_alarm=0.05).passed
    assert alarms <= stats.binom.isf(1e-9, 1000, 0.05)


def test_seconds_end_an_audit_after_two_runs():
    assert audit_topdown(PLAN, Measurer(np.random.default_rng(1)), seconds=0).runs == 2


def test_progress_is_told_of_each_run():
    told = []

    class Told:
        def stage(self, words, done=None):
            told.append((words, done))

    audit_topdown(PLAN, Measurer(np.random.default_rng(1)), runs=4, progress=Told())
    assert told[0] == ("run 1 of 4", 0) and told[-1] == ("run 4 of 4", 0.75)


# -- faulty programs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_faults_are_noticed_with_power_of_999_or_more(name):
    runs = PROGRAMS[name].runs or default_runs()
    assert power_of_program(name, runs, FALSE_ALARM / QUESTIONS, make_data(PLAN).groups()) >= 0.999


def test_a_program_without_fault_passes():
    audit = audit_topdown(PLAN, Measurer(np.random.default_rng(1)))
    assert audit.passed, str(audit)
    assert len(audit.results) == QUESTIONS + 2


def caught(name, seed):
    faulty = PROGRAMS[name]
    audit = audit_topdown(PLAN, faulty.program(np.random.default_rng(seed)), runs=faulty.runs or default_runs())
    assert {one.name for one in audit.wrong} & set(faulty.questions), str(audit)
    return audit


@pytest.mark.parametrize("name", PROGRAMS)
def test_faulty_programs_are_caught(name):
    caught(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_faulty_programs_are_caught_thirty_times(name):
    for seed in range(30):
        caught(name, 100 + seed)


def said(audit, name):
    return next(one for one in audit.results if one.name == name).said


def test_what_is_spent_beyond_the_plan_is_counted():
    """Two answers to the total, and a query that the plan does not have, cost at least what their noise says."""
    stated = float(PLAN.rho)
    for name in ("a query asked twice", "a query not counted", "half the variance"):
        audit = audit_topdown(PLAN, PROGRAMS[name].program(np.random.default_rng(1)), runs=300)
        budget = next(one for one in audit.wrong if one.name == "budget")
        assert budget.numbers["rho_at_least"] > stated and "More is spent than stated" in budget.said


def test_rows_that_are_merely_repeated_cost_nothing():
    class Copied(Measurer):
        def measured(self, entry, truth, keys):
            return 2 * super().measured(entry, truth, keys)

    audit = audit_topdown(PLAN, Copied(np.random.default_rng(1)), runs=60)
    assert [one.name for one in audit.wrong] == ["there-once"]


def test_copies_of_one_query_do_not_hide_behind_a_second_measurement_of_another():
    class Both(Measurer):
        def measured(self, entry, truth, keys):
            once = super().measured(entry, truth, keys)
            return once + (once if entry.query == "total" else super().measured(entry, truth, keys))

    copied = audit_topdown(PLAN, Both(np.random.default_rng(1)), runs=100)
    spent = next(one for one in copied.results if one.name == "budget").numbers["rho_at_least"]
    assert float(PLAN.rho) < spent < 7 / 4 * float(PLAN.rho)  # three quarters of the budget are spent twice


def test_a_program_that_measures_nothing_is_wrong_and_the_audit_ends():
    def nothing(tables):
        return {"measurements": Measurer(np.random.default_rng(1))(tables)["measurements"].clear()}

    audit = audit_topdown(PLAN, nothing, runs=2)
    assert [one.name for one in audit.wrong] == ["there-once"]
    assert {one.name for one in audit.unasked} == {
        "spread", "budget", "fit", "mean", "by-count", "runs", "places", "queries", "whole-runs"
    }  # fmt: skip
    assert "1 of 2 questions show that the promise is not kept; 9 could not be asked." in str(audit)


class MoreNoise(Measurer):
    def variance(self, entry):
        return super().variance(entry) * Fraction(6, 5)


class RareAndHuge(Measurer):
    def noise(self, entry, truth):
        """Zeros but for one value in fifty, which is far out: more noise than stated, and hardly any protection."""
        far = round(10 * float(entry.variance) ** 0.5)
        return np.where(self.rng.random(truth.shape) < 0.02, self.rng.choice([-far, far], truth.shape), 0)


def test_more_noise_costs_no_privacy_only_where_the_law_is_right():
    more = audit_topdown(PLAN, MoreNoise(np.random.default_rng(1)), runs=60)
    assert [one.name for one in more.wrong] == ["spread"]
    words = "More noise than stated: stated errors are too small. "
    assert said(more, "spread").startswith(f"{words}Privacy does not suffer")
    rare = audit_topdown(PLAN, RareAndHuge(np.random.default_rng(1)), runs=60)
    assert {"spread", "fit"} <= {one.name for one in rare.wrong}
    assert said(rare, "spread").startswith(f"{words}Whether privacy suffers depends on the law")


def test_noise_that_is_shifted_is_not_said_to_be_used_again():
    class Shifted(Measurer):
        def noise(self, entry, truth):
            return super().noise(entry, truth) + round(2 * float(entry.variance) ** 0.5)

    audit = audit_topdown(PLAN, Shifted(np.random.default_rng(1)), runs=60)
    assert {"mean", "runs", "places", "queries"} <= {one.name for one in audit.wrong}
    for name in ("runs", "places", "queries"):
        assert said(audit, name).endswith("is shifted to one side (see above), that alone can explain it.")


def test_consequences_are_said_first():
    assert said(caught("a query asked twice", 3), "there-once").startswith("The budget is spent more than once")
    assert said(caught("empty places left out", 3), "there-once").startswith("Which values are there can betray")
    uncounted = said(caught("a level not counted", 3), "there-once")
    assert uncounted.startswith("More is measured than the plan counts: 12 rows") and "level 'nation'" in uncounted
    assert said(caught("a forgotten level", 3), "spread").startswith("Too little noise, a privacy fault")
    assert "level 'county'" in said(caught("a query averaged", 3), "spread")
    assert said(caught("float noise", 3), "whole-numbers").startswith("Digits after the point can betray")


def test_the_order_of_rows_does_not_matter_and_the_table_may_be_left_out():
    class Shuffled(Measurer):
        def __call__(self, tables):
            frame = super().__call__(tables)["measurements"].drop("table")
            return {"measurements": frame.sample(fraction=1, shuffle=True, seed=int(self.rng.integers(1 << 30)))}

    audit = audit_topdown(PLAN, Shuffled(np.random.default_rng(1)), runs=10)
    assert audit.passed, str(audit)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: None, "no table 'measurements'"),
        (lambda frame: frame.drop("cell"), "no column 'cell'"),
        (lambda frame: frame.with_columns(value=pl.lit("a")), "not all numbers"),
        (lambda frame: frame.with_columns(value=pl.lit(None, dtype=pl.Int64)), "not all numbers"),
        (lambda frame: frame.with_columns(value=pl.lit(float("nan"))), "not all numbers"),
    ],
)
def test_what_are_no_measurements_is_refused(change, words):
    whole = Measurer(np.random.default_rng(1))

    def program(tables):
        frame = change(whole(tables)["measurements"])
        return {} if frame is None else {"measurements": frame}

    with pytest.raises(StirredError) as found:
        audit_topdown(PLAN, program, runs=2)
    assert found.value.kind == "audit-measurements" and words in str(found.value)


@pytest.mark.parametrize("effort", [{"runs": 1}, {"runs": 2, "false_alarm": 0.0}])
def test_efforts_that_say_nothing_are_refused(effort):
    with pytest.raises(StirredError) as found:
        audit_topdown(PLAN, Measurer(np.random.default_rng(1)), **effort)
    assert found.value.kind == "audit-question"


def test_counts_of_the_made_data_are_those_of_the_tables():
    made = make_data(PLAN)
    again = count_tables(PLAN, dict(made.tables))
    for group in made.groups():
        entry = group.entry
        assert np.array_equal(group.truth, again.counts(entry.table, entry.level, entry.by))
