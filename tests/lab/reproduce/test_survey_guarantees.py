"""The rows about surveys that are computed with ``stirred.survey`` can fail, and say what they should."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

from stirred.lab.reproduce import surveys
from stirred.lab.reproduce.catalogue import items
from stirred.survey.design.amplification import amplify
from stirred.survey.design.selections import clusters


def test_nothing_about_surveys_is_left_for_later():
    assert [item.id for item in items().values() if item.missing] == []


@pytest.mark.parametrize(
    ("row", "broken", "name"),
    [
        ("thesis/section-6.4.5/frame-invariant", "_where_fixed", "total_sensitivity"),
        ("thesis/section-6.4.5/frame-agnostic", "_where_free", "total_sensitivity"),
    ],
)
def test_a_formula_that_is_not_our_sensitivity_is_not_shown(row, broken, name, monkeypatch):
    monkeypatch.setattr(surveys, broken, lambda weights, values, n: max(weights) * max(values))
    item = items()[row]
    assert item.computed_by == name
    assert getattr(surveys, name)(**item.inputs) == "another formula"


def test_a_loss_of_private_imputation_that_is_not_the_sum_is_not_shown(monkeypatch):
    """A model that is estimated with twice the loss that is said."""
    true = surveys.geometric
    monkeypatch.setattr(surveys, "geometric", lambda most, epsilon: true(most, 2 * epsilon))
    assert surveys.private_imputation_loss("sum", 0.3, 0.7) == "another loss"


def test_the_theorem_would_be_seen_to_fail(monkeypatch):
    monkeypatch.setattr(surveys, "geometric", lambda most, epsilon: np.eye(most + 1) * 0.5 + 0.5 / (most + 1))
    assert not surveys.amplification_theorem_holds()


def test_amplification_is_not_proportional_where_epsilon_is_large():
    assert not surveys.amplification_is_proportional("2", "1/20")


def test_who_knows_nothing_about_the_sample_is_held_to_the_amplified_loss():
    assert not surveys.sampling_is_no_help_against("frame record")


def test_what_the_list_says_about_clusters_follows_from_the_formula():
    """Which amplification is negligible is the authors' judgement; the numbers beside it are ours."""
    reason = items()["thesis/section-6.4.1/clusters/size"].cannot
    said = re.findall(r"clusters of (\d+) units (?:make epsilon 0.5 )?into (0\.\d{4})", reason)
    assert [(size, f"{amplify(clusters(1, 10, int(size)), 0.5).epsilon:.4f}") for size, _ in said] == said
    assert [size for size, _ in said] == ["15", "5"]


def test_figure_6_1_shows_the_sum_the_loss_of_both_and_the_printed_formula():
    (picture,) = surveys.figure_6_1()
    added, both, printed = picture.lines
    for x, y, z, w in itertools.islice(zip(added.x, added.y, both.y, printed.y, strict=True), 0, None, 10):
        assert y == pytest.approx(2 * math.log1p(0.1 * math.expm1(x)), abs=1e-12)
        assert z == pytest.approx(math.log1p(0.1 * math.expm1(2 * x)), abs=1e-12)
        assert w == pytest.approx(y / 2, abs=1e-12)
    assert printed.dashed and not (added.dashed or both.dashed)
