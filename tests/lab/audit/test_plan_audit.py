"""Audits of programs against plans: ours are not found wrong, programs that reveal too much are, and effort is divided.

The audit of the law is somebody else's and tested there; here a stand-in takes its place, so that the pairs alone
decide. Coins and our own draws come from fixed seeds; under other seeds an audit of ours fails with probability 1e-9.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from counting_mechanism import CountPlan
from stirred import errors
from stirred.lab.audit.plan_audit import audit_plan, command_program, own_program, python_program
from stirred.lab.audit.programs import Program
from stirred.lab.audit.results import Audit, Result
from stirred.noise import SeededSource
from stirred.swap import audit_pairs as swap_pairs
from stirred.swap.plan.fields import SwapPlan
from stirred.topdown import audit_pairs as topdown_pairs
from stirred.topdown import preset

NEVER = 1e-9
Tables = Mapping[str, pl.DataFrame]


def swap_plan(**more: Any) -> SwapPlan:
    fields = {"unit": "household", "match": ["size"], "swap": ["county"], "hold": ["tenure"], "rate": "1/20"}
    return SwapPlan(**fields | more)


def topdown_plan() -> Any:
    return preset("teaching", {"race": ["a", "b"], "adult": ["yes", "no"]}, ["county", "town"])


@pytest.fixture
def law(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Audits of the law that ask one question, and note how they were called."""
    calls: list[dict[str, Any]] = []

    def compare(plan: Any, program: Program, **effort: Any) -> Audit:
        calls.append({"plan": plan, "program": program, **effort})
        return Audit(
            "law", (Result.seen("law", "Law?", False, right="Yes.", wrong="No."),), 0.5, 7, ("about",), ("but",)
        )

    for name, function in (("swap_audit", "audit_swap"), ("topdown_audit", "audit_topdown")):
        real = __import__(f"stirred.lab.audit.{name}", fromlist=["plan_program"])
        fake = SimpleNamespace(**{function: compare}, plan_program=real.plan_program)
        monkeypatch.setitem(sys.modules, f"stirred.lab.audit.{name}", fake)
    return calls


@pytest.fixture
def smallest(law: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Only the first pair of a swap."""
    every = swap_pairs.strata_for
    monkeypatch.setattr(swap_pairs, "strata_for", lambda plan: every(plan)[:1])
    return law


def as_it_is(tables: Tables) -> Tables:
    """A program that swaps nothing."""
    return tables


def records_only(tables: Tables) -> Tables:
    return {"records": tables["records"]}


def wrong(audit: Audit) -> set[str]:
    return {one.name for one in audit.wrong}


def result(audit: Audit, name: str) -> Result:
    return next(one for one in audit.results if one.name == name)


# -- swaps -----------------------------------------------------------------------------------------------------------


def test_our_own_swap_is_not_found_wrong_and_its_bound_is_near_the_exact_loss(smallest):
    found = audit_plan(swap_plan(), runs=12, false_alarm=NEVER, source=SeededSource(1))
    assert found.passed, found
    bound = result(found, "pair-smallest-stratum").numbers
    exact = math.log(19**2) / 2  # ((1-p)/p)^2 between the two files, two records apart
    assert 0.9 * exact < bound["lower_bound"] <= exact
    assert bound["stated"] == pytest.approx(math.log(3 * 19))
    assert bound["lower_bound_at_false_alarm"] < bound["lower_bound"]


def test_a_bound_that_only_the_smaller_confidence_puts_above_what_is_allowed_is_in_doubt(smallest, monkeypatch):
    """All of 20,000 guesses are right: epsilon is at least 4.40 at .95, at 1e-9 only 3.43; 4.05 is allowed."""
    seen = [(coin, coin) for coin in (True, False) * 20_000]
    monkeypatch.setattr("stirred.lab.audit.plan_audit._runs_on", lambda *given: (seen, 2))
    found = audit_plan(swap_plan(), program=as_it_is, false_alarm=2 * NEVER, source=SeededSource(3))
    assert found.passed
    assert result(found, "pair-smallest-stratum").said.startswith("In doubt, which more runs would settle")


def test_a_program_that_swaps_nothing_is_found(smallest):
    found = audit_plan(swap_plan(), program=as_it_is, source=SeededSource(2))
    assert "pair-smallest-stratum" in wrong(found)
    said = result(found, "pair-smallest-stratum").said
    assert "The guarantee is broken" in said
    assert said.endswith("and the theorem allows 4.05 per household in such a stratum at this rate.")


def test_a_program_that_swaps_at_a_far_smaller_rate_than_it_says_is_found(smallest):
    program = own_program(swap_plan(rate="1/1000"), SeededSource(3))
    assert "pair-smallest-stratum" in wrong(audit_plan(swap_plan(), program=program, source=SeededSource(4)))


@pytest.mark.parametrize("more", [
    {"match": []},
    {"hold": "rest"},
    {"id": "hid", "linked": [{"name": "persons", "link": "hid", "hold": ["age"]}]},
    {"rate": None, "rates": [{"unique_on": "held", "rate": 0.5}, {"otherwise": True, "rate": 0.02}]},
])  # fmt: skip
def test_other_plans_of_ours_are_not_found_wrong(more, law):
    fields = {name: value for name, value in {"rate": "1/20", **more}.items() if value is not None}
    plan = SwapPlan(**{"match": ["size"], "swap": ["county"], "hold": ["tenure"], **fields})
    found = audit_plan(plan, runs=2, false_alarm=NEVER, source=SeededSource(5))
    assert found.passed, found


def test_bounds_are_above_the_exact_loss_no_more_often_than_stated(law):
    """200 audits at confidence 0.8; more than 77 above the truth would be a false alarm of probability 1e-9."""
    from stirred.lab.audit.plan_audit import _by_guesses

    pair = swap_pairs.audit_pairs(swap_plan(rate="1/4"))[0]
    rng = np.random.default_rng(6)
    exchanged = 1 / (1 + 3**2)
    above = 0
    for _ in range(200):
        coins, moved = rng.random(1000) < 0.5, rng.random(1000) < exchanged
        seen = [(bool(coin), bool(coin ^ move)) for coin, move in zip(coins, moved, strict=True)]
        above += _by_guesses(pair, seen, 0.8) > math.log(9) / 2
    assert above <= 77


# -- TopDown ---------------------------------------------------------------------------------------------------------


def test_our_own_measurements_are_not_found_wrong(law):
    found = audit_plan(topdown_plan(), runs=60, false_alarm=NEVER, source=SeededSource(7))
    assert found.passed, found
    assert [one.name for one in found.results[1:]] == [
        "pair-one-record", "pair-empty-cell", "pair-edge-of-domain", "pair-alone-in-its-place"
    ]  # fmt: skip
    assert "and the plan states rho " in result(found, "pair-one-record").said


def counts(tables: Tables, measured: pl.DataFrame) -> list[int]:
    """The true number of persons for every measured value."""
    persons = tables["persons"].join(tables["geography"], on="town").to_dicts()
    found = []
    for level, unit, query, cell in measured.select("level", "geounit", "query", "cell").rows():
        wanted = {level: unit} | (dict(zip(query.split("*"), cell.split("*"), strict=True)) if query != "total" else {})
        found.append(sum(wanted.items() <= one.items() for one in persons))
    return found


def test_measurements_without_noise_are_found(law, monkeypatch):
    monkeypatch.setattr(topdown_pairs, "_CHANGES", topdown_pairs._CHANGES[:1])
    ours = own_program(topdown_plan(), SeededSource(8))
    known: dict[Any, list[int]] = {}

    def program(tables: Tables) -> Tables:
        frame = ours(tables)["measurements"]
        key = tuple(tables["persons"].rows())
        if key not in known:
            known[key] = counts(tables, frame)
        return {"measurements": frame.with_columns(pl.Series("value", known[key]))}

    found = audit_plan(topdown_plan(), program=program, runs=300, source=SeededSource(9))
    assert wrong(found) == {"pair-one-record"}
    assert result(found, "pair-one-record").numbers["budget"] == "rho"


# -- effort, law, refusals -------------------------------------------------------------------------------------------


def test_the_law_and_the_pairs_share_the_false_alarm_rate_and_the_time(law):
    found = audit_plan(swap_plan(), program=as_it_is, seconds=0.2, false_alarm=0.01, source=SeededSource(10))
    assert law[0]["seconds"] == 0.1
    assert law[0]["false_alarm"] == 0.005
    assert law[0]["runs"] is None
    assert sum(one.allotted for one in found.results if one.name.startswith("pair-")) == pytest.approx(0.005)
    assert found.false_alarm == 0.01


def test_the_number_of_runs_goes_to_the_law_and_to_every_pair(law):
    found = audit_plan(swap_plan(), program=as_it_is, runs=3, source=SeededSource(11))
    assert law[0]["runs"] == 3
    assert found.runs == 7 + 3 * 5
    assert found.about[0] == "about"
    assert found.limits[0] == "but"
    assert result(found, "law").said == "Yes."


def test_stages_are_told(law):
    told: list[str] = []
    progress = SimpleNamespace(stage=lambda words, done=None: told.append(words))
    audit_plan(swap_plan(), program=as_it_is, runs=2, progress=progress, source=SeededSource(12))
    assert "running the program on pair 5 of 5" in told
    assert law[0]["progress"] is progress


def test_a_law_that_is_not_known_is_said_and_the_pairs_are_tried_all_the_same(law, monkeypatch):
    def refuses(plan: Any, program: Program, **effort: Any) -> Audit:
        raise errors.audit_of_plan("several rounds")

    monkeypatch.setattr(sys.modules["stirred.lab.audit.swap_audit"], "audit_swap", refuses)
    found = audit_plan(swap_plan(), program=as_it_is, runs=2, source=SeededSource(13))
    assert any("The law itself was not tried" in line for line in found.limits)
    assert len(found.results) == 5


def test_other_errors_of_the_law_are_raised(law):
    def fails(tables: Tables) -> Tables:
        raise errors.program_hangs(1)

    with pytest.raises(errors.StirredError) as refused:
        audit_plan(swap_plan(), program=fails, runs=2)
    assert refused.value.kind == "program-hangs"


@pytest.mark.parametrize(
    ("effort", "words"),
    [
        ({"runs": 1}, "number of runs"),
        ({"seconds": 0}, "time"),
        ({"false_alarm": 0}, "false-alarm rate"),
        ({"false_alarm": 1}, "false-alarm rate"),
        ({"confidence": 1}, "confidence"),
    ],
)
def test_an_effort_that_cannot_be_is_refused(effort, words):
    with pytest.raises(errors.StirredError, match=words) as refused:
        audit_plan(swap_plan(), program=as_it_is, **effort)
    assert refused.value.kind == "audit-question"


def test_a_mechanism_without_an_audit_is_refused():
    with pytest.raises(errors.StirredError) as refused:
        audit_plan(CountPlan())
    assert refused.value.kind == "not-audited"


# -- programs of a plan ----------------------------------------------------------------------------------------------


def test_a_command_of_a_swap_reads_and_writes_records_without_dropped_columns(law):
    program = command_program(swap_plan(drop=["note"]), "cp {input} {output}")
    with pytest.raises(errors.StirredError, match="'note' should not be there"):
        program({"records": pl.DataFrame({"size": [1], "note": [2]})})


@pytest.mark.parametrize("rounds", [[], [{"swap": ["county"], "rate": 0.1}]])
def test_a_program_that_leaves_out_a_linked_table_is_named(rounds, law):
    plan = swap_plan(id="hid", linked=[{"name": "persons", "link": "hid", "hold": ["age"]}], rounds=rounds)
    with pytest.raises(errors.StirredError, match="nothing for the table 'persons'"):
        audit_plan(plan, program=command_program(plan, "cp {input} {output}"), runs=2)
    with pytest.raises(errors.StirredError, match="nothing for the table 'persons'"):
        audit_plan(plan, program=python_program(plan, f"{__name__}:records_only"), runs=2)


def test_a_command_of_topdown_reads_the_first_table_and_writes_measurements():
    program = command_program(topdown_plan(), "cp {input:geography} {output}", 5)
    made = program({"persons": pl.DataFrame({"a": [1]}), "geography": pl.DataFrame({"value": [1], "town": ["x"]})})
    assert made["measurements"].schema == {"value": pl.Float64, "town": pl.String}
    assert program.seconds == 5


def test_a_command_that_swaps_nothing_is_found(smallest):
    program = command_program(swap_plan(), "cp {input} {output}")
    assert "pair-smallest-stratum" in wrong(audit_plan(swap_plan(), program=program, source=SeededSource(14)))


def test_a_python_function_is_a_program_of_a_plan(smallest):
    program = python_program(swap_plan(), f"{__name__}:as_it_is")
    assert program.main == "records"
    assert "pair-smallest-stratum" in wrong(audit_plan(swap_plan(), program=program, source=SeededSource(15)))
