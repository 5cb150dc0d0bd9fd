"""The standing referee: stirred's numbers and answers on random parameters, beside independent ones.

A few cases of every claim in each run of the tests; all of them in the slow suite, with a fixed seed. ``make referee``
takes another seed: see CONTRIBUTING.md.
"""

from __future__ import annotations

import dataclasses
import os

import pytest
from referee_claims import CLAIMS
from referee_harness import ROOMS, SEED, Case, claim, judge
from run_referee import asked, chunks, table

CASES = {one.key: one for one in CLAIMS}
AT_ONCE = int(os.environ.get("STIRRED_REFEREE_SEED") or SEED)


def few(cases: int) -> int:
    return min(6, max(2, cases // 100))


@pytest.mark.parametrize("key", CASES)
def test_a_few_cases_of_every_claim(key):
    outcome = judge(CASES[key], AT_ONCE, range(few(CASES[key].cases)))
    assert not outcome.violations, "\n".join(outcome.violations)


@pytest.mark.slow
@pytest.mark.parametrize("key", CASES)
def test_all_cases_of_every_claim(key):
    one = CASES[key]
    outcome = judge(one, AT_ONCE, range(one.cases))
    assert not outcome.violations, f"{len(outcome.violations)} of {one.cases}:\n" + "\n".join(outcome.violations[:5])
    assert outcome.counted >= one.counted * one.cases


def test_every_room_has_thousands_of_cases():
    counted = {room: sum(int(one.cases * one.counted) for one in CLAIMS if one.room == room) for room in ROOMS}
    assert min(counted.values()) >= 2000, counted
    assert {one.room for one in CLAIMS} == set(ROOMS) and len(CASES) == len(CLAIMS)


# -- the referee itself --------------------------------------------------------------------------------------


@claim("loss", cases=10)
def too_small(case: Case) -> None:
    value = case.size("value", 1, 2)
    case.at_most(value, 1.5, "the value", relative=0.1)


@claim("loss", cases=3)
def crashing(case: Case) -> None:
    case.pick("which", "a")
    raise ZeroDivisionError("by nothing")


def test_a_violation_tells_how_to_run_it_again():
    outcome = judge(too_small, 4, range(10))
    assert 0 < len(outcome.violations) < 10 and outcome.counted == 10
    first = outcome.violations[0]
    number = int(first.partition(", case ")[2].partition(":")[0])
    assert f"make referee SEED=4 CASE=loss/too-small:{number}" in first and "value=1." in first
    assert judge(too_small, 4, [number]).violations == [first]


def test_a_crash_is_a_violation():
    outcome = judge(crashing, 4, range(3))
    assert len(outcome.violations) == 3 and "ZeroDivisionError: by nothing" in outcome.violations[0]


def test_another_seed_draws_other_cases():
    drawn = [Case("loss", "x", seed, number).random.random() for seed in (1, 2) for number in (0, 1)]
    assert len(set(drawn)) == 4 and drawn[0] == Case("loss", "x", 1, 0).random.random()


def test_the_table_adds_up_what_the_pieces_found():
    parts = [judge(dataclasses.replace(too_small, cases=10), 4, numbers) for numbers in chunks(10, 4)]
    whole = judge(too_small, 4, range(10))
    assert sum(part.drawn for part in parts) == 10
    assert [said for part in parts for said in part.violations] == whole.violations
    line = next(line for line in table(parts).splitlines() if line.startswith("loss"))
    assert line.split()[:4] == ["loss", "10", "10", str(len(whole.violations))]


def test_what_is_asked_for_is_one_case_or_one_claim_or_one_room():
    some = CLAIMS[0]
    assert asked(f"{some.key}:7") == [(some, range(7, 8))]
    assert asked(some.key) == [(some, range(some.cases))]
    assert {one.room for one, _ in asked(some.room)} == {some.room}
    assert len(asked("")) == len(CLAIMS)
    with pytest.raises(SystemExit, match="no claim"):
        asked("loss/nothing")
