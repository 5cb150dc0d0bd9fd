"""The ledger: what it counts, what it refuses, and what it finds when it looks after its releases."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_tools import DOMAIN, ZCDP, refused

from stirred.errors import StirredError
from stirred.releases import ledger_file
from stirred.releases.folder import appearing
from stirred.releases.ledger import Ledger, manifest_of
from stirred.releases.manifest import write_manifest
from stirred.spec import Invariant, Specification, flavors

PURE = flavors.pure("person", domain=DOMAIN)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "survey.ledger"


@pytest.fixture
def ledger(path) -> Ledger:
    return Ledger.create(path, "health survey", ZCDP.at(1))


def make_release(folder: Path, text: str = "rows") -> Path:
    with appearing(folder) as unfinished:
        (unfinished / "microdata.csv").write_text(text)
        write_manifest(unfinished)
    return folder


# -- counting ------------------------------------------------------------------------------------------------


def test_spends_add_up_to_the_limit_and_no_further(ledger):
    ledger.spend(ZCDP.at("0.75"), "county tables")
    ledger.spend(ZCDP.at("0.25"), "tract tables")
    assert ledger.total().specification.budget.value == 1
    assert ledger.standing().left == 0
    with refused("ledger-over-limit"):
        ledger.spend(ZCDP.at("1e-12"), "one more table")
    assert [entry.what for entry in ledger.entries()] == ["county tables", "tract tables"]


def test_a_refusal_gives_the_argument_and_writes_nothing(ledger, path):
    before = path.read_bytes()
    with refused("ledger-over-limit", "1. the budget 1.5 is above 1.00"):
        ledger.spend(ZCDP.at("1.5"), "too much")
    assert path.read_bytes() == before
    with refused("ledger-over-limit", "Nothing was released and nothing was spent"):
        ledger.check(ZCDP.at("1.5"))


def test_checking_spends_nothing(ledger):
    for _ in range(3):
        ledger.check(ZCDP.at(1))
    assert ledger.entries() == ()


def test_the_limit_is_held_in_its_own_flavor_by_conversion(ledger):
    # By randomised response epsilon = 1 costs rho = tanh(1/2) = 0.462, so the third is too much.
    ledger.spend(PURE.at(1), "pure")
    assert ledger.standing().left is None
    assert "depends on the next release" in str(ledger.standing())
    ledger.spend(PURE.at(1), "pure")
    assert ledger.total().specification.budget.value == 2  # rho = 1.523 by this road, 0.924 by converting first
    assert float(ledger.standing().left) == pytest.approx(1 - 2 * math.tanh(0.5), rel=1e-12)
    with refused("ledger-over-limit", "epsilon = 3.00 gives rho = 2.72"):
        ledger.spend(PURE.at(1), "pure")


def test_deltas_are_spent_as_well(path):
    limit = flavors.approximate("1e-5", "person", domain=DOMAIN)
    ledger = Ledger.create(path, "health survey", limit.at(10))
    half = flavors.approximate("5e-6", "person", domain=DOMAIN)
    for _ in range(2):
        ledger.spend(half.at(1), "tables")
    with refused("ledger-over-limit"):
        ledger.spend(half.at(1), "tables")


def test_what_is_not_known_to_imply_the_limit_is_refused_though_its_number_is_small(ledger):
    county = Invariant("person", by=("county",))
    given = flavors.given_invariants(ZCDP, [county]).at("0.001")
    with refused("ledger-over-limit", "publishing the number of persons by county costs nothing under the first"):
        ledger.spend(given, "given counts by county")


def test_a_release_for_households_counts_against_a_limit_for_persons_who_stay_in_them(ledger, tmp_path):
    household = flavors.zcdp("household", domain=DOMAIN).at("1/2")
    with refused("ledger-over-limit", "one person that moves changes two households"):
        ledger.spend(household, "tables")
    staying = flavors.zcdp("person", domain=DOMAIN, stays_in=("household",))
    other = Ledger.create(tmp_path / "staying.ledger", "health survey", staying.at(1))
    other.spend(household, "tables of households")
    other.spend(ZCDP.at("1/2"), "tables of persons")
    assert other.standing().left == 0
    assert other.total().specification == staying.at(1)


def test_releases_that_do_not_compose_are_refused_even_without_a_limit(path):
    ledger = Ledger.create(path, "health survey")
    ledger.spend(flavors.renyi(2, "person", domain=DOMAIN).at(1), "one")
    with refused("ledger-no-total", "different standards"):
        ledger.spend(flavors.subspace("tables", "person", domain=DOMAIN).at(1), "another")
    assert len(ledger.entries()) == 1


def test_without_a_limit_everything_that_adds_up_is_counted(path):
    ledger = Ledger.create(path, "health survey")
    for budget in (1, 100, math.inf):
        ledger.spend(ZCDP.at(budget), "anything")
    assert ledger.total().specification.budget.value == math.inf
    assert str(ledger.standing()).startswith("There is no limit")


def test_an_empty_ledger_has_no_total_and_all_of_its_limit(ledger):
    assert ledger.total() is None
    assert ledger.standing().left == 1
    assert all(verdict.holds for verdict in ledger.verify())


def test_what_is_left_is_rounded_down(path):
    ledger = Ledger.create(path, "health survey", ZCDP.at(1))
    ledger.spend(ZCDP.at(Fraction(1, 3)), "a third")
    assert ledger.standing().left == Fraction(2, 3)
    assert str(ledger.standing()) == "Left for releases of the limit's own flavor: rho = 0.66."


def test_a_release_that_reads_some_variables_leaves_a_number(path):
    part = replace(ZCDP, domain=replace(DOMAIN, variables=("age",)))
    ledger = Ledger.create(path, "health survey", ZCDP.at(1))
    ledger.spend(part.at("0.25"), "ages")
    assert ledger.standing().left == Fraction(3, 4)
    ledger.spend(ZCDP.at("0.75"), "the rest")
    with refused("ledger-over-limit"):
        ledger.spend(part.at("0.01"), "more")


def test_another_dataset_is_refused(ledger):
    other = replace(ZCDP, domain=replace(DOMAIN, name="tax register"))
    with refused("ledger-other-dataset", "records releases of 'health survey'; this specification is about 'tax regis"):
        ledger.spend(other.at("0.1"), "taxes")
    with refused("ledger-other-dataset", 'dataset = "health survey" in the plan'):
        ledger.check_dataset(None)
    ledger.check_dataset("health survey")


def test_a_limit_about_another_dataset_is_refused_and_no_file_is_made(path):
    with refused("ledger-limit-dataset"):
        Ledger.create(path, "tax register", ZCDP.at(1))
    assert not path.exists()


def test_what_is_marked_as_not_for_release_is_refused(ledger):
    with refused("ledger-marked", "not for release"):
        ledger.spend(replace(ZCDP.at("0.1"), marks=("not for release: a test",)), "seeded")
    with refused("ledger-marked"):
        ledger.record(replace(ZCDP.at("0.1"), marks=("not for release",)), "seeded", past=True)


def test_entries_keep_what_they_were_told(ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ledger_file, "now", lambda: 1_700_000_000)
    given = ZCDP.at("1/3", name="tables of 2030")
    spent = ledger.spend(given, "county tables", "out")
    (entry,) = Ledger.open(ledger.path).entries()
    assert entry == replace(spent, seal=entry.seal)
    assert (entry.id, entry.what, entry.spent_at, entry.state) == (1, "county tables", 1_700_000_000, "spent")
    assert entry.specification == given and entry.specification.name == "tables of 2030"
    assert entry.folder == tmp_path / "out"
    assert (entry.derived_from, entry.past, entry.manifest) == (None, False, None)


def test_names_that_are_not_text_do_not_stop_a_spend(ledger, tmp_path):
    entry = ledger.spend(ZCDP.at("0.1"), os.fsdecode(b"tables\xff"), tmp_path / os.fsdecode(b"out\xff"))
    assert ledger.entries()[0].what == entry.what == r"tables\udcff"


# -- derived products, and releases made elsewhere -------------------------------------------------------------


def test_derived_products_are_listed_and_cost_nothing(ledger):
    first = ledger.spend(ZCDP.at(1), "microdata")
    derived = ledger.record(None, "maps", derived_from=first.id)
    further = ledger.record(ZCDP.at(2), "maps of maps, under a weaker guarantee", derived_from=derived.id)
    assert [entry.counted for entry in ledger.entries()] == [True, False, False]
    assert derived.specification == first.specification
    assert further.derived_from == 2
    assert ledger.standing().counted == 1
    assert ledger.total().specification.budget.value == 1


def test_a_product_is_not_covered_by_a_weaker_release(ledger):
    ledger.spend(ZCDP.at("0.5"), "microdata")
    with refused("ledger-not-covered", "the budget 0.5 is above 0.25"):
        ledger.record(ZCDP.at("0.25"), "maps", derived_from=1)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("number", [-1, 0, 2])
def test_a_product_of_an_unknown_entry_is_refused(number, ledger):
    ledger.spend(ZCDP.at("0.5"), "microdata")
    with refused("ledger-unknown-entry", "Its entries are 1 to 1"):
        ledger.record(None, "maps", derived_from=number)


def test_a_release_without_a_specification_is_refused(ledger):
    with refused("not-a-specification", error=StirredError):
        ledger.record(None, "something")


def test_past_releases_are_recorded_beyond_the_limit_and_stop_all_that_follow(ledger):
    with refused("ledger-over-limit"):
        ledger.record(ZCDP.at(3), "tables of 2010")
    entry = ledger.record(ZCDP.at(3), "tables of 2010", past=True)
    assert (entry.past, entry.state) == (True, "released")
    assert "no further release can be recorded" in str(ledger.standing())
    with refused("ledger-over-limit"):
        ledger.spend(ZCDP.at(0), "something that costs nothing")
    assert [verdict.kind for verdict in ledger.verify() if not verdict.holds] == ["total"]


def test_past_releases_that_do_not_compose_are_recorded_and_stop_all_that_follow(ledger):
    ledger.record(PURE.at(1), "one", past=True)
    ledger.record(flavors.subspace("tables", "person", domain=DOMAIN).at(1), "another", past=True)
    with refused("ledger-no-total"):
        ledger.spend(ZCDP.at("0.1"), "next")
    assert [verdict.kind for verdict in ledger.verify() if not verdict.holds] == ["total"]


def test_a_release_folder_is_counted_once_wherever_it_lies(ledger, tmp_path):
    folder = make_release(tmp_path / "out")
    ledger.record(ZCDP.at("0.1"), "by hand", folder)
    moved = folder.rename(tmp_path / "moved")
    with refused("ledger-counted-already", "is already recorded as entry 1 of the ledger"):
        ledger.record(ZCDP.at("0.1"), "by hand, again", moved)


# -- verifying -------------------------------------------------------------------------------------------------


def failing(ledger: Ledger) -> list[tuple[str, str]]:
    return [(verdict.kind, verdict.words) for verdict in ledger.verify() if not verdict.holds]


def test_a_finished_release_verifies(ledger, tmp_path):
    out = tmp_path / "out"
    entry = ledger.spend(ZCDP.at("0.1"), "tables", out)
    assert [kind for kind, _ in failing(ledger)] == ["spent-without-release"]
    make_release(out)
    ledger.finished(entry.id, out)
    assert failing(ledger) == []
    assert ledger.entries()[0].manifest == manifest_of(out)


def test_a_run_that_ended_before_it_could_say_so_verifies_by_the_manifest(ledger, tmp_path):
    out = make_release(tmp_path / "out")
    ledger.spend(ZCDP.at("0.1"), "tables", out, manifest=manifest_of(out))
    assert ledger.entries()[0].state == "spent"
    assert failing(ledger) == []


def test_a_spend_without_a_release_stays_and_is_listed(ledger, tmp_path):
    ledger.spend(ZCDP.at("0.1"), "tables", tmp_path / "out")
    ((kind, words),) = failing(ledger)
    assert kind == "spent-without-release"
    assert f"entry 1 (tables) spent budget, but nothing is at {tmp_path / 'out'}" in words
    assert ledger.standing().left == Fraction(9, 10)


@pytest.mark.parametrize(
    ("disturb", "kind"),
    [
        (lambda out: out.rename(out.with_name("gone")), "release-missing"),
        (lambda out: (out / "manifest.json").write_text("{}"), "changed"),
        (lambda out: (out / "manifest.json").unlink(), "changed"),
    ],
)
def test_releases_that_changed_or_went_are_listed(disturb, kind, ledger, tmp_path):
    out = make_release(tmp_path / "out")
    entry = ledger.spend(ZCDP.at("0.1"), "tables", out)
    ledger.finished(entry.id, out)
    disturb(out)
    assert [found for found, _ in failing(ledger)] == [kind]


def test_folders_left_by_killed_runs_are_listed(ledger, tmp_path):
    out = make_release(tmp_path / "place with releases").rename(tmp_path / "out")
    ledger.record(ZCDP.at("0.1"), "tables", out)
    left = tmp_path / ".next.stirred-unfinished-abc"
    left.mkdir()
    ((kind, words),) = failing(ledger)
    assert kind == "leftover" and words.startswith(str(left))


def test_an_entry_is_finished_by_its_own_release_only(ledger, tmp_path):
    out, other = make_release(tmp_path / "out"), make_release(tmp_path / "other", "other rows")
    entry = ledger.spend(ZCDP.at("0.1"), "tables", out, manifest=manifest_of(out))
    with refused("ledger-other-release"):
        ledger.finished(entry.id, other)
    with refused("ledger-unknown-entry"):
        ledger.finished(7, out)
    with refused("not-a-release", error=StirredError):
        ledger.finished(entry.id, tmp_path)
    ledger.finished(entry.id, out)
    assert ledger.entries()[0].state == "released"


def test_a_specification_that_this_version_cannot_read_is_named(ledger, monkeypatch):
    ledger.spend(ZCDP.at("0.1"), "tables")
    text = ZCDP.at("0.1").to_json().replace('"stirred_specification": 2', '"stirred_specification": 9')
    monkeypatch.setattr(Specification, "to_json", lambda self: text)
    ledger.record(ZCDP.at("0.1"), "from the future", past=True)
    monkeypatch.undo()
    with refused("ledger-entry-unreadable", "entry 2"):
        ledger.spend(ZCDP.at("0.1"), "next")
    assert "total" in [kind for kind, _ in failing(ledger)]
