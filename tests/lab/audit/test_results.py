"""What an audit prints and writes: marks, counts of questions, and JSON."""

from __future__ import annotations

import json

from stirred.lab.audit.results import Audit, Result

RIGHT = Result.tested("rate", "Is the rate right?", 0.5, 1e-7, right="It is.", wrong="It is not.")
WRONG = Result.tested("rows", "Are rows free?", 1e-9, 1e-7, right="They are.", wrong="They are not.")
UNASKED = Result.unasked("runs", "Are runs independent?", "no record moved", 1e-7, moved=0)
SEEN = Result.seen("ids", "Are ids new?", False, right="They are.", wrong="They are not.")


def audit(*results: Result) -> Audit:
    return Audit("An audit", results, 1e-6, 2)


def test_a_question_that_could_not_be_asked_is_neither_right_nor_wrong():
    page = str(audit(RIGHT, UNASKED))
    assert "Nothing wrong was found in 1 questions; 1 could not be asked. That is no proof" in page
    assert "-      Are runs independent? Could not be asked: no record moved.\n" in page
    assert audit(RIGHT, UNASKED).passed


def test_broken_promises_are_counted_among_the_questions_that_were_asked():
    page = str(audit(RIGHT, UNASKED, WRONG))
    assert "BROKEN: 1 of 2 questions show that the promise is not kept; 1 could not be asked." in page
    assert page.index("WRONG  Are rows free?") < page.index("ok     Is the rate right?")


def test_where_everything_was_asked_nothing_is_said_of_it():
    assert "could not be asked" not in str(audit(RIGHT, WRONG))


def test_it_is_explained_once_what_a_question_is_judged_at():
    words = "A question is WRONG where p is below the number it is judged at."
    assert str(audit(RIGHT, WRONG)).count(words) == 1
    assert words not in str(audit(SEEN, UNASKED))


def test_json_tells_what_could_not_be_asked():
    found = json.loads(audit(RIGHT, UNASKED).to_json())
    assert found["passed"] and found["could_not_be_asked"] == 1
    assert [one["could_be_asked"] for one in found["results"]] == [True, False]
    assert found["results"][1] == {
        "name": "runs",
        "asked": "Are runs independent?",
        "said": "Could not be asked: no record moved.",
        "wrong": False,
        "could_be_asked": False,
        "p_value": None,
        "judged_at": 1e-7,
        "numbers": {"moved": 0},
    }
