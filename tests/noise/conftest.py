"""What the tests of gaps share."""

from __future__ import annotations

from functools import cache

import pytest

from stirred.noise import selection


@pytest.fixture
def remembered_cuts(monkeypatch):
    """Undecided draws are common with narrow words; let them not compute all cuts afresh each time."""
    monkeypatch.setattr(selection, "cut_values", cache(selection.cut_values))


@pytest.fixture
def resolved(monkeypatch):
    """The answers that the rational fall-back gives, in a list."""
    answers = []
    original = selection._resolve

    def recording(*arguments):
        answers.append(original(*arguments))
        return answers[-1]

    monkeypatch.setattr(selection, "_resolve", recording)
    return answers
