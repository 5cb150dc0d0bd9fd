"""What a spinner says about the time that is left, and what a log is told."""

from __future__ import annotations

import re
import threading

import polars as pl
import pytest

import stirred
from seeded_releases import finished
from stirred import _progress as progress
from stirred._progress import OnTerminal, shown_by, stage
from stirred.reports.page import report_text
from stirred.reports.subjects import subject


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


def test_the_time_before_the_first_share_that_is_told_does_not_count(said):
    """Work that is continued begins at the share that was done before; what that took is not known."""
    assert said(100, "fitting", 0.5) == "fitting ..."
    assert said(110, "fitting", 0.6) == "fitting ... about 40 s left"
    assert said(130, "fitting", 0.2) == "fitting ..."  # other work
    assert said(140, "fitting", 0.3) == "fitting ... about 70 s left"


def test_a_log_tells_the_time_left_as_it_shrinks_between_two_stages(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    shown = OnTerminal()
    shown.stage("drawing", 0.0)
    assert shown.line() == "0:00:00 drawing, 0% done"
    clock[0] += 20
    shown.stage("drawing", 0.2)
    assert shown.line() == "0:00:20 drawing, 20% done, about 80 s left"
    clock[0] += 30
    assert shown.line() == "0:00:50 drawing, 20% done, about 50 s left"
    clock[0] += 50  # longer than was expected: nothing is claimed
    assert shown.line() == "0:01:40 drawing, 20% done"
    shown.stage("writing")
    assert shown.line() == "0:01:40 writing"


# -- in a log ------------------------------------------------------------------------------------------------


@pytest.fixture
def log(capsys):
    """Makes what writes a log, and lets the moments pass for which it waits between two lines."""
    moments, lines = threading.Semaphore(0), threading.Semaphore(0)

    class Moments(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            assert timeout == 7.0
            lines.release()
            moments.acquire(timeout=60)
            return self.is_set()

    def shown() -> OnTerminal:
        made = OnTerminal(every=7.0)
        made._ended = Moments()
        return made

    def passes() -> str:
        """One moment passes; returns what is written meanwhile."""
        assert lines.acquire(timeout=60)
        moments.release()
        assert lines.acquire(timeout=60)
        lines.release()
        return capsys.readouterr().err

    yield shown, passes
    moments.release(100)


def test_a_log_has_the_stage_the_share_and_the_time_once_for_every_moment(log):
    make, passes = log
    with make() as shown:
        shown.stage("reading [bold]")
        shown.stage("measuring persons at level 'tract'", 0.3749)
        first = passes()
        for share in range(40, 60):
            shown.stage("fitting persons", share / 100)
        second = passes()
    assert re.fullmatch(r"\d:\d\d:\d\d measuring persons at level 'tract', 37% done\n", first)
    assert re.fullmatch(r"\d:\d\d:\d\d fitting persons, 59% done(, about \d+ s left)?\n", second)


def test_a_short_run_writes_nothing_to_a_log(capfd):
    with OnTerminal() as shown:
        shown.stage("reading and counting", 0.5)
    assert capfd.readouterr().err == ""


def test_the_time_in_a_log_is_that_since_the_start(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    shown = OnTerminal()
    shown.stage("reading")
    clock[0] += 3_725.9
    assert shown.line() == "1:02:05 reading"


class Kept:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float | None]] = []

    def stage(self, words: str, done: float | None = None) -> None:
        self.told.append((words, done))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_reading_tells_its_share_over_all_tables(kind, tmp_path):
    homes = pl.DataFrame({"id": range(1200), "size": [1, 2] * 600, "county": list("abc") * 400})
    homes = homes.with_columns(tenure=pl.Series(["own", "rent", "rent", "own", "own"] * 240))
    persons = pl.DataFrame({"home": list(range(1200)) * 3, "age": list(range(90)) * 40})
    for name, table in (("homes", homes), ("persons", persons)):
        getattr(table, f"write_{kind}")(tmp_path / f"{name}.{kind}")
    plan = stirred.SwapPlan(
        match=["size"], swap=["county"], hold=["tenure"], id="id", rate="1/10",
        input={"path": str(tmp_path / f"homes.{kind}")},
        linked=[{
            "name": "persons", "link": "home", "hold": ["age"], "input": {"path": str(tmp_path / f"persons.{kind}")},
        }],
    )  # fmt: skip
    shown = Kept()
    stirred.check(plan, progress=shown)
    shares = [done for words, done in shown.told if words == "reading" and done is not None]
    assert len(shares) >= 2
    assert shares == sorted(shares)
    assert 0 < shares[0] < shares[-1] == 1


# -- commands that only read ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """A release of every mechanism, with its report."""
    folder = tmp_path_factory.mktemp("releases")
    for mechanism in ("swap", "topdown", "survey"):
        finished(mechanism, folder / "work").write(folder / mechanism, for_tests=True)
    return folder


def said_by(work) -> dict[str, list[float | None]]:
    """What the stages of some work are called, and the shares that each tells."""
    kept, found = Kept(), {}
    with shown_by(kept):
        work()
    stage("outside of the block")
    for words, done in kept.told:
        found.setdefault(words, []).append(done)
    for shares in found.values():
        assert shares == [None] * len(shares) or all(0 <= done <= 1 for done in shares)
    return found


@pytest.mark.parametrize(
    ("mechanism", "own"),
    [
        ("swap", ["reading microdata", "counting the invariants", "looking for records that can be put back"]),
        (
            "topdown",
            ["counting persons", "fitting persons", "writing the tables again, to compare how they are stored"],
        ),
        ("survey", ["estimating from the measured sums", "writing the tables again"]),
    ],
)
def test_verify_says_where_it_is(mechanism, own, releases):
    said = said_by(lambda: stirred.verify(releases / mechanism))
    assert "outside of the block" not in said
    shares = said["comparing the files with the manifest"]
    assert shares == sorted(shares) and shares[0] == 0 < shares[-1]
    for words in own:
        assert any(one.startswith(words) for one in said), (words, list(said))


def test_estimate_says_where_it_is(releases):
    said = said_by(lambda: stirred.estimate(releases / "topdown", ["race"], level="town"))
    assert None not in said["reading what was measured at level 'town'"]
    assert None not in said["computing how precise the estimates are"]


def test_a_report_says_which_figure_is_drawn(releases):
    said = said_by(lambda: report_text([subject(str(releases / "swap"))], drawing=False))
    assert "drawing figure 1" in said


def test_a_spine_says_where_it_is(tmp_path):
    blocks = pl.DataFrame({"county": ["1"] * 4, "block": list("abcd"), "place": ["x", "x", "y", "y"]})
    blocks.write_csv(tmp_path / "blocks.csv")
    said = said_by(lambda: stirred.topdown.make_spine(tmp_path / "blocks.csv", [["place"]], levels=["county", "block"]))
    assert said[f"reading {tmp_path / 'blocks.csv'}"][-1] == 1
    assert "cutting the units of each level by the areas" in said
