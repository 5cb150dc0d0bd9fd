"""A release that must agree with an earlier one: exactly, declared, whole, and paid for."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from census import fields, plan, refused, tables

from stirred.releases.ledger import Ledger
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.releasing import release
from stirred.topdown.specifying import specify
from stirred.topdown.verifying import verify


def detailed(path: Path, **more):
    """A plan with one attribute more than the earlier one knows."""
    section = {"path": str(path), "table": "persons", "by": ["kind", "colour"]}
    return plan("1/4", earlier=[section], **more)


@pytest.mark.parametrize("seed", range(5))
def test_a_later_release_agrees_with_an_earlier_one_exactly(seed, tmp_path):
    data = tables(seed=seed)
    first = release(plan("1/8"), data, out=tmp_path / "first")
    # What is not kept is measured anew, and may come out the same by chance, but not five times.
    for out in (tmp_path / f"second-{number}" for number in range(5)):
        second = release(detailed(tmp_path / "first"), data, out=out)
        for level in ("state", "county", "town"):
            by = ("kind", "colour")
            assert np.array_equal(first.counts("persons", level, by), second.counts("persons", level, by))
        differs = not np.array_equal(first.leaves["persons"].counts, second.leaves["persons"].counts)
        if differs:
            break
    assert differs
    assert all(verdict.holds for verdict in verify(out))
    certificate = json.loads((out / "certificate.json").read_text())
    [agreed] = certificate["agrees_with"]
    assert agreed["by"] == ["kind", "colour"] and len(agreed["manifest_sha256"]) == 64


def test_without_names_everything_the_earlier_release_has_is_kept(tmp_path):
    data = tables()
    first = release(plan("1/8"), data, out=tmp_path / "first")
    later = plan("1/4", earlier=[{"path": str(tmp_path / "first"), "table": "persons"}])
    second = release(later, data, out=tmp_path / "second")
    assert np.array_equal(first.leaves["persons"].counts, second.leaves["persons"].counts)


def test_what_an_earlier_release_keeps_must_be_declared_again(tmp_path):
    release(plan("1/8"), tables(), out=tmp_path / "first")
    with refused("topdown-earlier") as found:
        release(detailed(tmp_path / "first", invariants=plan().invariants[1:]), tables(), out=tmp_path / "second")
    assert "the number of 'persons' in each county exactly" in str(found.value)


def test_earlier_releases_must_be_whole_counted_and_of_topdown(tmp_path):
    first = tmp_path / "first"
    release(plan("1/8", dataset="town"), tables(), out=first)
    ledger = Ledger.create(tmp_path / "town.ledger", "town")
    with refused("topdown-earlier") as uncounted:
        release(detailed(first, dataset="town"), tables(), out=tmp_path / "second", ledger=ledger)
    assert "is not recorded in the ledger" in str(uncounted.value) and ledger.entries() == ()
    ledger.record(specify(plan("1/8", dataset="town")), "the first", first)
    release(detailed(first, dataset="town"), tables(), out=tmp_path / "second", ledger=ledger)
    assert ledger.total().specification.budget.number == Fraction(5, 8) + Fraction(3, 4)
    readme = " ".join((tmp_path / "second" / "README.txt").read_text().split())
    assert "Agrees with an earlier release" in readme and "budget comes on top" in readme
    pl.read_parquet(first / "persons.parquet").head(3).write_parquet(first / "persons.parquet")
    with refused("topdown-earlier") as damaged:
        release(detailed(first), tables(), out=tmp_path / "third")
    assert "not the file that was released" in str(damaged.value)


def test_an_earlier_release_may_call_its_columns_otherwise(tmp_path):
    changed = fields("1/8")
    changed["tables"][0]["attributes"][2]["column"] = "farbe"
    data = tables()
    renamed = {**data, "persons": data["persons"].rename({"colour": "farbe"})}
    first = release(TopDownPlan(**changed), renamed, out=tmp_path / "first")
    second = release(detailed(tmp_path / "first"), data, out=tmp_path / "second")
    by = ("kind", "colour")
    assert np.array_equal(first.counts("persons", "town", by), second.counts("persons", "town", by))


def test_earlier_releases_that_do_not_fit_are_refused_by_name(tmp_path):
    first = tmp_path / "first"
    other = tables(seed=8)
    release(plan("1/8", invariants=plan().invariants[1:], constraints=[]), other, out=first)
    with refused("topdown-contradiction") as found:  # the earlier one did not keep the counties, this one must
        release(detailed(first), tables(persons=150), out=tmp_path / "second")
    assert "the earlier release's 'persons' by kind, colour" in str(found.value)
    assert not (tmp_path / "second-work").exists()  # found before any noise
    with refused("unknown-table"):
        release(plan(earlier=[{"path": str(first), "table": "persons", "of": "people"}]), tables(), out=tmp_path / "x")
    with refused("missing-column"):
        section = {"path": str(first), "table": "persons", "by": ["minor"]}
        release(plan(earlier=[section]), tables(), out=tmp_path / "x")
    with refused("topdown-crossing"):
        crossing = {"path": str(first), "table": "persons", "by": ["colour"]}
        release(plan(earlier=[crossing]), tables(), out=tmp_path / "x")
