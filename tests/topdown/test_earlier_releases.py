"""A release that must agree with an earlier one: exactly, declared, whole, and paid for."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from census import fields, plan, refused, tables

from stirred.releases.ledger.ledger import Ledger
from stirred.releases.verdicts import State
from stirred.topdown.drawing import release
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify
from stirred.topdown.verifying import verify


def assert_all_but_the_fit_holds(folder):
    """The fit cannot be made again without the earlier release, which is not in the folder."""
    [verdict] = [verdict for verdict in verify(folder) if not verdict.holds]
    assert verdict.state is State.NOT_COMPARED and "the earlier releases that it agrees with" in verdict.words


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
    assert_all_but_the_fit_holds(out)
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


# -- another geography -----------------------------------------------------------------------------------------------


def upto(finest, rho="1/8", **more):
    """The plan for the levels from the state to ``finest``, with no constraints."""
    changed = fields(rho)
    levels = ["state", "county", "town", "street"]
    kept = levels[: levels.index(finest) + 1]
    for table in changed["tables"]:
        if "rho" in table:
            table["level_shares"] = {level: Fraction(1, len(kept)) for level in kept}
            table["queries"] = [
                {"by": one["by"], "shares": Fraction(1, len(table["queries"]))} for one in table["queries"]
            ]
    invariants = [{"table": "persons", "level": "state"}]
    changed |= {"spine": {"levels": kept}, "invariants": invariants, "constraints": [], **more}
    changed["tables"] = changed["tables"][:1]
    return TopDownPlan(**changed)


def streets(seed=3):
    """The same census with two streets in every town."""
    data = tables(seed=seed)
    rng = np.random.default_rng(seed)
    persons = data["persons"]
    street = [f"{town}-{rng.integers(2)}" for town in persons["town"]]
    towns = data["geography"]
    listed = pl.concat([towns.with_columns(street=pl.col("town") + f"-{number}") for number in (0, 1)])
    wider = persons.with_columns(pl.Series("street", street))
    county = pl.Series("county", [town[0] for town in persons["town"]])
    return {"geography": listed, "persons": wider.with_columns(county)}


def of_level(data, finest):
    levels = ["state", "county", "town", "street"]
    places = data["geography"].select(levels[: levels.index(finest) + 1]).unique(maintain_order=True)
    return {"geography": places, "persons": data["persons"]}


@pytest.mark.parametrize(("first_level", "second_level"), [("county", "town"), ("county", "street"), ("town", "street"),
                                                           ("street", "town"), ("street", "county")])  # fmt: skip
def test_an_earlier_release_of_another_geography_binds_at_the_finest_shared_level(first_level, second_level, tmp_path):
    data = streets()
    by = ("kind", "colour")
    first = release(upto(first_level), of_level(data, first_level), out=tmp_path / "first")
    section = {"path": str(tmp_path / "first"), "table": "persons", "by": list(by)}
    second = release(
        upto(second_level, "1/4", earlier=[section]), of_level(data, second_level), out=tmp_path / "second"
    )
    levels = ("state", "county", "town", "street")
    shared = levels[: 1 + min(levels.index(first_level), levels.index(second_level))]
    for level in shared:
        assert np.array_equal(first.counts("persons", level, by), second.counts("persons", level, by)), level
    assert_all_but_the_fit_holds(tmp_path / "second")
    certificate = json.loads((tmp_path / "second" / "certificate.json").read_text())
    assert certificate["agrees_with"][0]["level"] == shared[-1]


def test_an_invariant_of_a_finer_earlier_release_is_declared_at_the_shared_level(tmp_path):
    data = streets()
    kept = [{"table": "persons", "level": "street"}]
    release(upto("street", invariants=kept), of_level(data, "street"), out=tmp_path / "first")
    section = {"path": str(tmp_path / "first"), "table": "persons", "by": ["kind"]}
    with refused("topdown-earlier") as found:
        release(upto("town", earlier=[section]), of_level(data, "town"), out=tmp_path / "second")
    assert "exactly, so this plan must declare it as an invariant in each town" in str(found.value)
    declared = [{"table": "persons", "level": "town"}]
    release(upto("town", earlier=[section], invariants=declared), of_level(data, "town"), out=tmp_path / "second")


def test_a_coarser_earlier_release_that_contradicts_finer_invariants_is_refused(tmp_path):
    release(upto("county", invariants=[]), of_level(streets(5), "county"), out=tmp_path / "first")
    data = streets()
    section = {"path": str(tmp_path / "first"), "table": "persons", "by": ["kind"]}
    chosen = upto("town", earlier=[section], invariants=[{"table": "persons", "level": "town"}])
    with refused("topdown-contradiction") as found:
        release(chosen, of_level(data, "town"), out=tmp_path / "second")
    assert "county" in str(found.value) and not (tmp_path / "second-work").exists()


def test_geographies_that_cannot_be_related_are_refused_by_name(tmp_path):
    data = streets()
    release(upto("county"), of_level(data, "county"), out=tmp_path / "first")
    section = {"path": str(tmp_path / "first"), "table": "persons", "by": ["kind"]}
    geography = data["geography"].rename({"state": "land", "county": "kreis"})
    renamed = upto("town", earlier=[section]).model_dump()
    renamed["spine"]["levels"] = ["land", "kreis", "town"]
    renamed["tables"][0]["level_shares"] = {"land": "1/3", "kreis": "1/3", "town": "1/3"}
    renamed["invariants"] = []
    with refused("topdown-earlier") as found:
        other = {"geography": geography.drop("street").unique(), "persons": data["persons"]}
        release(TopDownPlan(**renamed), other, out=tmp_path / "x")
    assert "have none in common" in str(found.value)
    more = pl.concat(
        [data["geography"], pl.DataFrame({"state": ["s"], "county": ["c"], "town": ["c1"], "street": ["c1-0"]})]
    )
    with refused("topdown-earlier") as found:
        release(upto("town", earlier=[section]), of_level({**data, "geography": more}, "town"), out=tmp_path / "x")
    assert "this plan lists 1 units (c) that the earlier release does not" in str(found.value)
    fewer = {"geography": data["geography"].filter(pl.col("county") == "a"),
             "persons": data["persons"].filter(pl.col("county") == "a")}  # fmt: skip
    with refused("topdown-earlier") as found:
        release(upto("town", earlier=[section]), of_level(fewer, "town"), out=tmp_path / "x")
    assert "the earlier release lists 1 units (b) that this plan does not" in str(found.value)
