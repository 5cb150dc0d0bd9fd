"""A fit that is interrupted goes on from the last finished level, spends nothing, and gives the same release."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import census
import numpy as np
import pytest
from census import SPENT, tables

from repeats import some_or
from stirred._progress import Silent
from stirred.noise import SeededSource
from stirred.releases.ledger.ledger import Ledger
from stirred.topdown import drawing
from stirred.topdown.data.histograms import Histograms
from stirred.topdown.drawing import draw, fit, release, reopen
from stirred.topdown.fitting.table_fit import FinishedLevels

PARTS = "finished-parts"


class Told(Silent):
    """Notes the stages of a fit that are done once, or ``every`` stage, and stops at one."""

    def __init__(self, last: int = -1, every: bool = False) -> None:
        self.stages: list[str] = []
        self.last = last
        self.every = every

    def stage(self, words: str, done: float | None = None) -> None:
        assert done is None or 0 <= done <= 1
        if not (self.every or words.startswith("fitting")):
            return
        self.stages.append(words)
        if len(self.stages) == self.last:
            raise KeyboardInterrupt


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def chosen(**more):
    return census.plan(dataset="town", **more)


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("drawn") / "work"
    draw(chosen(), tables(), work=folder, source=SeededSource(3))
    return folder


def stopped(work: Path, last: int) -> Told:
    told = Told(last)
    with pytest.raises(KeyboardInterrupt):
        fit(reopen(chosen(), work), told)
    return told


def finished(work: Path, out: Path, told: Told, **more) -> dict[str, bytes]:
    fit(reopen(chosen(**more), work), told).write(out, for_tests=True, progress=told)
    return files(out)


# -- going on ------------------------------------------------------------------------------------------------


@pytest.mark.repeats
def test_a_release_that_is_stopped_at_any_stage_spends_once_and_is_the_same(tmp_path):
    whole = Told(every=True)
    release(chosen(), tables(), out=tmp_path / "whole", progress=whole)
    assert len([words for words in whole.stages if words.startswith("fitting")]) == 6
    for last in range(1, len(whole.stages) + 1, some_or(4, 1)):
        place = tmp_path / str(last)
        place.mkdir()
        ledger = Ledger.create(place / "town.ledger", "town")
        with pytest.raises(KeyboardInterrupt):
            release(
                chosen(),
                tables(),
                out=place / "out",
                work=place / "work",
                ledger=ledger,
                progress=Told(last, every=True),
            )
        paid = len(ledger.entries())
        assert (place / "work").exists() == (paid == 1) and not (place / "out").exists()
        release(chosen(), tables(), out=place / "out", work=place / "work", ledger=ledger)
        assert len(ledger.entries()) == 1
        assert ledger.total().specification.budget.number == SPENT
        assert not (place / "work" / PARTS).exists()
        release(chosen(), out=place / "again", work=place / "work", ledger=ledger)  # in one piece
        assert files(place / "out") == files(place / "again")


def test_levels_that_are_finished_are_not_fitted_again(work, tmp_path):
    whole, copy = Told(), tmp_path / "work"
    shutil.copytree(work, copy)
    expected = finished(copy, tmp_path / "out", whole)
    fits = [words for words in whole.stages if words.startswith("fitting")]
    for done in range(len(fits)):
        stopped(copy, done + 1)
        again = Told()
        assert finished(copy, tmp_path / f"out{done}", again) == expected
        assert [words for words in again.stages if words.startswith("fitting")] == fits[done:]


def test_a_fit_that_is_stopped_again_and_again_comes_to_its_end(work, tmp_path):
    copy = tmp_path / "work"
    shutil.copytree(work, copy)
    for _ in range(5):
        assert len(stopped(copy, 2).stages) == 2  # one level further each time
    told = Told()
    fit(reopen(chosen(), copy), told)
    assert len(told.stages) == 1


def test_what_is_kept_is_private_and_one_file_for_each_table(work, tmp_path):
    copy = tmp_path / "work"
    shutil.copytree(work, copy)
    stopped(copy, 3)
    assert len(list((copy / PARTS).iterdir())) == 1
    stopped(copy, 4)
    assert len(list((copy / PARTS).iterdir())) == 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in [copy / PARTS, *(copy / PARTS).iterdir()])


# -- what is not used ----------------------------------------------------------------------------------------


def again_from_the_root(work: Path, **more) -> bool:
    told = Told()
    fit(reopen(chosen(**more), work), told)
    return "'state'" in told.stages[0]


@pytest.mark.repeats
def test_a_damaged_level_is_fitted_again(work, tmp_path):
    copy = tmp_path / "work"
    shutil.copytree(work, copy)
    expected = finished(copy, tmp_path / "whole", Told())
    for number in range(some_or(3, 12)):
        stopped(copy, 3)
        [kept] = (copy / PARTS).iterdir()
        content = bytearray(kept.read_bytes())
        rng = np.random.default_rng(number)
        if number % 3 == 0:
            content = content[: int(rng.integers(len(content)))]
        elif number % 3 == 1:
            content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        else:
            content += bytes(rng.integers(0, 256, 3, dtype=np.uint8))
        kept.write_bytes(content)
        told = Told()
        assert finished(copy, tmp_path / f"out{number}", told) == expected
        assert "'state'" in told.stages[0]


def test_levels_of_another_plan_draw_or_version_are_not_used(work, tmp_path, monkeypatch):
    copy, other = tmp_path / "work", tmp_path / "other"
    shutil.copytree(work, copy)
    draw(chosen(), tables(), work=other, source=SeededSource(4))
    stopped(copy, 3)
    shutil.copytree(copy / PARTS, other / PARTS)
    assert again_from_the_root(other)
    kept = tmp_path / "kept"
    shutil.copytree(copy / PARTS, kept)
    assert again_from_the_root(copy, passes="one")
    shutil.rmtree(copy / PARTS)
    shutil.copytree(kept, copy / PARTS)
    assert not again_from_the_root(copy)
    shutil.rmtree(copy / PARTS)
    shutil.copytree(kept, copy / PARTS)
    monkeypatch.setattr(drawing, "version", lambda _: "0.0.0")
    assert again_from_the_root(copy)


def test_a_work_folder_that_cannot_be_written_to_is_fitted_all_the_same(work, tmp_path):
    copy = tmp_path / "work"
    shutil.copytree(work, copy)
    (copy / PARTS).write_text("a file where a folder should be")
    assert again_from_the_root(copy) and again_from_the_root(copy)


def test_a_link_among_the_finished_levels_is_refused(work, tmp_path):
    copy = tmp_path / "work"
    shutil.copytree(work, copy)
    (copy / PARTS).symlink_to(tmp_path)
    with census.refused("work-folder"):
        reopen(chosen(), copy)


@pytest.mark.parametrize("units", [0, 1, 5])
def test_histograms_come_back_as_they_were(units, tmp_path):
    rng = np.random.default_rng(units)
    kept = FinishedLevels(tmp_path / "parts", "a fit")
    histograms = Histograms.from_dense(rng.integers(0, 3, (units, 7)))
    kept.keep("a table", histograms, [{"kappa": float("inf"), "worst_gap": 0.1}])
    found = kept.last("a table")
    assert found is not None and found[1] == [{"kappa": float("inf"), "worst_gap": 0.1}]
    for name in ("starts", "cells", "counts"):
        mine, theirs = getattr(histograms, name), getattr(found[0], name)
        assert mine.dtype == theirs.dtype and mine.tolist() == theirs.tolist()
    assert kept.last("another") is None and FinishedLevels(tmp_path / "parts", "another").last("a table") is None


# -- measurements once on disk -------------------------------------------------------------------------------


def links(folder: Path) -> set[int]:
    return {path.stat().st_nlink for path in (folder / "measurements").iterdir()}


class Looking(Silent):
    """Looks at the measurements of the unfinished release when the last files are to be written."""

    def __init__(self, place: Path) -> None:
        self.place, self.found = place, set[int]()

    def stage(self, words: str, done: float | None = None) -> None:
        if words == "comparing with the true values":
            [folder] = self.place.glob(".out.stirred-unfinished-*")
            self.found = links(folder)


def test_measurements_of_a_passing_work_folder_are_on_disk_once(tmp_path):
    told = Looking(tmp_path)
    release(chosen(), tables(), out=tmp_path / "out", confidential=tmp_path / "secret", progress=told)
    assert told.found == {2} and links(tmp_path / "out") == {1}
    assert not (tmp_path / "out-work").exists()
    release(chosen(), tables(), out=tmp_path / "out2", work=tmp_path / "work")
    assert links(tmp_path / "out2") == links(tmp_path / "work") == {1}


def test_measurements_are_copied_where_a_file_cannot_have_two_names(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "link", refuse)
    told = Looking(tmp_path)
    release(chosen(), tables(), out=tmp_path / "out", confidential=tmp_path / "secret", progress=told)
    assert told.found == {1}


def test_a_stopped_release_leaves_the_draw_of_a_passing_work_folder_whole(tmp_path):
    whole = Told(every=True)
    release(chosen(), tables(), out=tmp_path / "out", progress=whole)
    place = whole.stages.index("writing tables and documents") + 2
    with pytest.raises(KeyboardInterrupt):
        told = Told(place, every=True)
        release(chosen(), tables(), out=tmp_path / "b", confidential=tmp_path / "secret", progress=told)
    assert told.stages[-1] == "comparing with the true values" and links(tmp_path / "b-work") == {1}
    reopen(chosen(), tmp_path / "b-work")
    release(chosen(), tables(), out=tmp_path / "b")
    assert not (tmp_path / "b-work").exists()
