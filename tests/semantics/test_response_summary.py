"""What ``stirred responses`` says: the slides' numbers, and posteriors by enumeration."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest

from stirred.errors import StirredError
from stirred.lab.definitions.beliefs import Beliefs
from stirred.semantics.randomised_response import summarise_responses
from stirred.spec.order.finite_mechanisms import randomised_response


def test_slides_7_5_the_estimate_has_its_published_numbers():
    found = summarise_responses(45, 100, 0.6)
    assert found.share == 0.25
    assert found.largest_standard_error**2 == pytest.approx(0.0625)
    assert found.standard_error_of_coins**2 == pytest.approx(0.06)
    assert found.epsilon == pytest.approx(0.4054651, abs=5e-8)
    assert found.likelihood_ratio == pytest.approx(1.5)


@pytest.mark.parametrize("keep", ["0.6", "1/5", "1"])
@pytest.mark.parametrize("prior", [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(1)])
def test_slides_7_6_posteriors_are_those_of_bayes(keep, prior):
    found = summarise_responses(3, 10, keep, [prior])
    if 0 < prior < 1 and keep != "1":
        law = {("0",): 1 - prior, ("1",): prior}
        seen = Beliefs(law, randomised_response(1 - Fraction(keep), respondents=1), target=0)
        for told in ("1", "0"):
            place = seen.records.index("1"), seen.outputs.index(told)
            exact = float(seen.prior_to_posterior[place]) * float(prior)
            assert found.posterior(prior, told == "1") == pytest.approx(exact)
    elif keep == "1":
        assert found.posterior(prior, True) == (1.0 if prior > 0 else None)
    else:
        assert found.posterior(prior, True) == float(prior)


def test_one_answer_has_no_estimated_standard_error():
    found = summarise_responses(1, 1, "0.75")
    assert found.standard_error is None
    assert "estimated as" not in found.text()
    assert json.loads(found.to_json())["standard_error"] is None


def test_answers_that_are_always_true_have_no_finite_epsilon():
    found = summarise_responses(1, 4, 1)
    assert math.isinf(found.epsilon)
    assert "no finite epsilon" in found.text()
    assert json.loads(found.to_json())["epsilon"] is None


WRONG = [(5, 4, 0.6), (-1, 4, 0.6), (0, 0, 0.6), (1, 4, 0.5), (1, 4, "x"), (True, 4, 0.6)]


@pytest.mark.parametrize("wrong", [*WRONG, (1, 4, 0.6, [2]), (1, 4, 0.6, ["x"])])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(StirredError):
        summarise_responses(*wrong)


def test_the_command_prints_the_estimate_and_posteriors(command):
    ended = command("responses", "--yes", "45", "--answers", "100", "--keep", "0.6", "--prior", "1/5")
    out = " ".join(ended.out.split())
    assert ended.code == 0
    assert "Estimated share of yes: 0.25." in out
    assert "epsilon = 0.406" in out and "is 1.5 times as probable" in out
    assert "0.2 0.2727 0.1429" in out
    fields = json.loads(command("responses", "--yes", "45", "--answers", "100", "--keep", "3/5", "--json").out)
    assert fields["share"] == 0.25 and fields["keep"] == "3/5" and len(fields["posteriors"]) == 3


def test_the_command_says_what_is_wrong(command):
    ended = command("responses", "--yes", "45", "--answers", "100", "--keep", "0.5")
    assert ended.code == 2 and "tell nothing" in ended.err
