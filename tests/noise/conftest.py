"""What the tests of gaps share."""

from __future__ import annotations

from functools import cache

import pytest

from stirred.noise import bernoulli


@pytest.fixture
def remembered_cuts(monkeypatch):
    """Undecided draws are common with narrow words; let them not compute all cuts afresh each time."""
    monkeypatch.setattr(bernoulli, "cut_values", cache(bernoulli.cut_values))


@pytest.fixture
def resolved(monkeypatch):
    """The answers that the rational fall-back gives, in a list."""
    answers = []
    original = bernoulli._resolve

    def recording(*arguments):
        answers.append(original(*arguments))
        return answers[-1]

    monkeypatch.setattr(bernoulli, "_resolve", recording)
    return answers
