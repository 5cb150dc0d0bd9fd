"""What a spinner says about the time that is left."""

from __future__ import annotations

import pytest

from stirred.releases import progress
from stirred.releases.progress import OnTerminal


@pytest.fixture
def said(monkeypatch):
    """A spinner, a clock that the test sets, and the last words shown."""
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    shown = OnTerminal()
    words = []
    monkeypatch.setattr(shown._status, "update", words.append)

    def at(moment: float, *given: object) -> str:
        clock[0] = moment
        shown.stage(*given)
        return str(words[-1])

    return at


def test_the_time_left_follows_from_the_share_that_is_done(said):
    assert said(100, "measuring", 0.0) == "measuring ..."
    assert said(101, "measuring", 0.01) == "measuring ..."  # too early to tell
    assert said(110, "measuring", 0.25) == "measuring ... about 30 s left"
    assert said(120, "measuring", 0.5) == "measuring ... about 20 s left"


def test_a_stage_without_shares_tells_no_time_and_the_next_work_begins_anew(said):
    said(100, "measuring", 0.0)
    assert said(150, "writing") == "writing ..."
    assert said(150, "fitting", 0.0) == "fitting ..."
    assert said(160, "fitting", 0.1) == "fitting ... about 90 s left"
    assert said(1150, "fitting", 0.5) == "fitting ... about 17 min left"
