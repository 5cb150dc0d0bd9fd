"""The ledger: what it counts, what it refuses, and what it finds when it looks after its releases."""

from __future__ import annotations

import json
import math
import os
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from ledger_tools import DOMAIN, ZCDP, refused

from postgresql_server import new_address
from stirred.errors import StirredError
from stirred.releases.folder.atomic import appearing
from stirred.releases.folder.manifest import manifest_of, write_manifest
from stirred.releases.ledger import rows
from stirred.releases.ledger.ledger import Ledger
from stirred.spec import Invariant, Specification, flavors

PURE = flavors.pure("person", domain=DOMAIN)


@pytest.fixture(params=["file", "server"])
def path(request, tmp_path) -> str:
    """Where a ledger can be started: every test of this module runs with both kinds of places."""
    return str(tmp_path / "survey.ledger") if request.param == "file" else new_address()


@pytest.fixture
def ledger(path) -> Ledger:
    return Ledger.create(path, "health survey", ZCDP.at(1))


def make_release(folder: Path, text: str = "rows", nonce: str | None = None, **certificate: object) -> Path:
    stated = {"stirred_certificate": 1, **({} if nonce is None else {"nonce": nonce}), **certificate}
    with appearing(folder) as unfinished:
        (unfinished / "microdata.csv").write_text(text)
        if nonce is not None:
            (unfinished / "measurements").mkdir()
            (unfinished / "measurements" / "1.parquet").write_text(f"what was drawn with {nonce}")
        (unfinished / "certificate.json").write_text(json.dumps(stated))
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


def test_a_refusal_gives_the_argument_and_writes_nothing(ledger):
    before = ledger.seal
    with refused("ledger-over-limit", "is rho = 1.5, above 1.00, the limit of the ledger"):
        ledger.spend(ZCDP.at("1.5"), "too much")
    assert ledger.seal == before and ledger.entries() == ()
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
    with refused("ledger-missing"):
        Ledger.open(path)


def test_what_is_marked_as_not_for_release_is_refused(ledger):
    with refused("ledger-marked", "not for release"):
        ledger.spend(replace(ZCDP.at("0.1"), marks=("not for release: a test",)), "seeded")
    with refused("ledger-marked"):
        ledger.record(replace(ZCDP.at("0.1"), marks=("not for release",)), "seeded", past=True)


def test_entries_keep_what_they_were_told(ledger, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rows, "now", lambda: 1_700_000_000)
    given = ZCDP.at("1/3", name="tables of 2030")
    spent = ledger.spend(given, "county tables", "out")
    (entry,) = Ledger.open(ledger.path).entries()
    assert entry == spent
    assert (entry.id, entry.what, entry.spent_at, entry.state) == (1, "county tables", 1_700_000_000, "spent")
    assert entry.specification == given and entry.specification.name == "tables of 2030"
    assert entry.folder == tmp_path / "out"
    assert (entry.derived_from, entry.past, entry.manifest) == (None, False, None)


def test_names_that_are_not_text_do_not_stop_a_spend(ledger, tmp_path):
    entry = ledger.spend(ZCDP.at("0.1"), os.fsdecode(b"tables\xff"), tmp_path / os.fsdecode(b"out\xff"))
    assert ledger.entries()[0].what == entry.what == r"tables\udcff"
    assert ledger.spend(ZCDP.at("0.1"), "tables", who=os.fsdecode(b"Ada\xff")).who == "Ada"


def test_a_specification_that_could_not_be_read_again_is_refused_and_nothing_is_spent(ledger):
    with refused("not-a-specification", error=StirredError):
        ledger.spend(ZCDP.at("0.1", name="tables\x1b[2J"), "tables")
    assert ledger.entries() == ()


# -- derived products, and releases made elsewhere -------------------------------------------------------------


NONCE, OTHER_NONCE = "0123456789abcdef" * 2, "f" * 32


def test_one_more_folder_of_a_counted_draw_is_listed_with_its_entry_and_costs_nothing(ledger, tmp_path):
    first, second = make_release(tmp_path / "a", nonce=NONCE), make_release(tmp_path / "b", "other tables", nonce=NONCE)
    spent = ledger.spend(ZCDP.at(1), "microdata", nonce=NONCE)
    ledger.finished(spent.id, first)
    listed = ledger.record(ZCDP.at(1), "with more tables", second, derived_from=1)
    assert listed.id == 1 and [one.folder for one in listed.finishes] == [first, second]
    assert (listed.folder, listed.manifest) == (first, manifest_of(first))
    assert listed.finishes[1].what == "with more tables"
    assert listed.manifests == {manifest_of(first), manifest_of(second)}
    assert (ledger.standing().entries, ledger.standing().counted) == (1, 1)
    assert ledger.entry_of(second).id == ledger.entry_of_draw(NONCE).id == 1 and failing(ledger) == []
    with refused("ledger-counted-already"):
        ledger.record(None, "once more", second, derived_from=1)


def test_the_very_same_release_in_another_place_is_listed_too(ledger, tmp_path):
    first = make_release(tmp_path / "a")
    ledger.record(ZCDP.at(1), "microdata", first)
    copy = Path(shutil.copytree(first, tmp_path / "copy"))
    assert [one.folder for one in ledger.record(None, "a copy", copy, derived_from=1).finishes] == [first, copy]


@pytest.mark.parametrize(
    ("stated", "counted", "reason"),
    [
        (OTHER_NONCE, NONCE, "its certificate states the nonce of another draw"),
        (None, NONCE, "its certificate states no nonce"),
        (NONCE, None, "the entry was recorded without one"),
        (None, None, "the entry's own release is not there to compare it with"),
    ],
)
def test_an_independent_draw_is_never_booked_as_free(stated, counted, reason, ledger, tmp_path):
    ledger.spend(ZCDP.at("0.5"), "microdata", nonce=counted)
    folder = make_release(tmp_path / "independent", nonce=stated)
    with refused("ledger-not-derived", reason):
        ledger.record(None, "free, it says", folder, derived_from=1)
    if counted is not None:
        with refused("ledger-other-release"):
            ledger.finished(1, folder)
    assert ledger.entries()[0].finishes == ()


def test_nothing_without_a_release_folder_is_booked_as_free(ledger):
    ledger.spend(ZCDP.at("0.5"), "microdata", nonce=NONCE)
    for specification in (None, ZCDP.at("0.5")):
        with refused("ledger-not-derived", "no release folder was given"):
            ledger.record(specification, "maps", derived_from=1)
    with refused(
        "ledger-not-derived", "A table or an estimate computed from a release costs nothing and needs no entry"
    ):
        ledger.record(None, "maps", derived_from=1)
    assert len(ledger.entries()) == 1


def test_a_folder_that_is_not_as_its_manifest_says_is_not_believed(ledger, tmp_path):
    ledger.spend(ZCDP.at("0.5"), "microdata", nonce=NONCE)
    folder = make_release(tmp_path / "independent", nonce=OTHER_NONCE)
    (folder / "certificate.json").write_text(json.dumps({"stirred_certificate": 1, "nonce": NONCE}))
    with refused("ledger-not-derived", "the folder is not as its manifest says (certificate.json"):
        ledger.record(None, "free, it says", folder, derived_from=1)


@pytest.mark.parametrize(
    ("change", "words"), [("", ""), ("noise", "its measurements are not"), ("plan", "another plan")]
)
def test_draws_without_a_nonce_are_compared_by_their_plan_and_measurements(change, words, ledger, tmp_path):
    def topdown(folder: Path, measured: str, plan: str, text: str) -> Path:
        made = make_release(folder, text, plan_sha256=plan)
        (made / "measurements").mkdir()
        (made / "measurements" / "1.parquet").write_text(measured)
        (made / "manifest.json").unlink()
        write_manifest(made)
        return made

    first = topdown(tmp_path / "a", "noise", "1", "first fit")
    second = topdown(
        tmp_path / "b", "other" if change == "noise" else "noise", "2" if change == "plan" else "1", "second fit"
    )
    entry = ledger.spend(ZCDP.at("0.5"), "microdata")
    ledger.finished(entry.id, first)
    if change:
        with refused("ledger-not-derived", words):
            ledger.record(None, "again", second, derived_from=1)
        with refused("ledger-other-release"):
            ledger.finished(1, second)
        ledger.finished(1, second, seal=entry.seal)  # the work folder of the draw says so
    else:
        ledger.record(None, "again", second, derived_from=1)
    assert [one.folder for one in ledger.entries()[0].finishes] == [first, second]


def test_what_states_a_stronger_guarantee_than_its_draw_is_not_covered(ledger, tmp_path):
    ledger.spend(ZCDP.at("0.5"), "microdata", nonce=NONCE)
    with refused("ledger-not-covered", "the budget 0.5 is above 0.25"):
        ledger.record(ZCDP.at("0.25"), "maps", make_release(tmp_path / "a", nonce=NONCE), derived_from=1)
    assert ledger.entries()[0].finishes == ()


@pytest.mark.parametrize("number", [-1, 0, 2])
def test_a_release_of_an_unknown_entry_is_refused(number, ledger, tmp_path):
    ledger.spend(ZCDP.at("0.5"), "microdata")
    with refused("ledger-unknown-entry", "Its entries are 1 to 1"):
        ledger.record(None, "maps", make_release(tmp_path / "a"), derived_from=number)


def test_one_draw_is_counted_once(ledger, tmp_path):
    ledger.spend(ZCDP.at("0.1"), "microdata", nonce=NONCE)
    with refused("ledger-same-draw", "already counted: it has the nonce of entry 1"):
        ledger.spend(ZCDP.at("0.1"), "microdata again", nonce=NONCE)
    with refused("ledger-same-draw"):
        ledger.record(ZCDP.at("0.1"), "by hand", make_release(tmp_path / "a", nonce=NONCE))
    ledger.spend(ZCDP.at("0.1"), "another draw", nonce=OTHER_NONCE)
    ledger.record(ZCDP.at("0.1"), "a third", make_release(tmp_path / "c", nonce="0" * 32))
    assert [entry.nonce for entry in ledger.entries()] == [NONCE, OTHER_NONCE, "0" * 32]


@pytest.mark.parametrize("nonce", ["", "0" * 31, "0" * 33, "G" * 32, "F" * 32, "0" * 31 + "\n"])
def test_a_nonce_is_32_hexadecimal_digits(nonce, ledger):
    with refused("ledger-bad-nonce"):
        ledger.spend(ZCDP.at("0.1"), "microdata", nonce=nonce)
    assert ledger.entries() == ()


def test_who_made_a_release_and_why_are_kept_on_one_line(ledger):
    named = replace(ledger, who="Ada Lovelace", why="request 17")
    named.spend(ZCDP.at("0.1"), "tables")
    named.spend(ZCDP.at("0.1"), "tables", who="Grace\x1b[2J\r\nHopper \u202eevil", why=" \n ")
    ledger.record(ZCDP.at("0.1"), "tables", who="Emmy Noether", why="made in spring")
    ledger.spend(ZCDP.at("0.1"), "tables")
    assert [entry.who for entry in ledger.entries()] == ["Ada Lovelace", "Grace [2J Hopper evil", "Emmy Noether", None]
    assert [entry.why for entry in ledger.entries()] == ["request 17", None, "made in spring", None]
    with refused("ledger-note-too-long", "'who' has 201 characters; the ledger keeps 200"):
        ledger.spend(ZCDP.at("0.1"), "tables", who="x" * 201)
    ledger.spend(ZCDP.at("0.1"), "tables\x1b[2J\nholds  everything")
    assert ledger.entries()[-1].what == "tables [2J holds everything"
    with refused("ledger-note-too-long", "'why'"):
        Ledger.open(ledger.path, why="x" * 2001)
    assert len(ledger.entries()) == 5


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


def test_every_folder_of_a_draw_is_looked_after(ledger, tmp_path):
    first, second = make_release(tmp_path / "a", nonce=NONCE), make_release(tmp_path / "b", "more", nonce=NONCE)
    entry = ledger.spend(ZCDP.at("0.1"), "tables", nonce=NONCE)
    for folder in (first, second, first):
        ledger.finished(entry.id, folder)
    assert len(ledger.entries()[0].finishes) == 2 and failing(ledger) == []
    (second / "manifest.json").write_text("{}")
    assert [kind for kind, _ in failing(ledger)] == ["changed"]
    shutil.rmtree(first)
    assert [kind for kind, _ in failing(ledger)] == ["release-missing", "changed"]


def test_the_last_seal_tells_what_was_recorded_since(ledger, tmp_path):
    seals = [ledger.seal]
    entry = ledger.spend(ZCDP.at("0.1"), "tables")
    seals.append(ledger.seal)
    ledger.finished(entry.id, make_release(tmp_path / "a"))
    seals.append(ledger.seal)
    assert len(set(seals)) == 3 and seals[1] == entry.seal
    said = [next(one for one in ledger.verify(seal) if one.kind == "seal") for seal in seals]
    assert all(one.holds for one in said)
    assert said[0].words.endswith("recorded after it: entry 1 was spent, entry 1 was finished")
    assert said[1].words.endswith("recorded after it: entry 1 was finished")
    assert said[2].words.endswith("nothing was recorded after it")
    gone = next(one for one in ledger.verify("0" * 64) if one.kind == "seal")
    assert not gone.holds and "this is an older copy, or another ledger, or a row was removed or replaced" in gone.words
    assert next(one for one in ledger.verify(f" {seals[0].upper()}\n") if one.kind == "seal").holds
    with refused("ledger-bad-seal"):
        ledger.verify(seals[0][:-1])


def test_what_was_recorded_is_read_back_before_success_is_told(ledger, monkeypatch):
    read = type(ledger._store).read

    def older(self, thorough=False):
        contents = read(self, thorough)
        return replace(contents, rows=contents.rows[:-1], entries=contents.entries[:-1])

    monkeypatch.setattr(type(ledger._store), "read", older)
    with refused("ledger-not-kept", "is not in it when it is read again. Nothing was published"):
        ledger.spend(ZCDP.at("0.1"), "tables")


def test_a_ledger_that_cannot_be_read_back_leaves_the_spend_unknown_and_says_so(ledger, monkeypatch):
    from stirred import errors

    def locked(self, thorough=False):
        raise errors.ledger_locked(ledger.path, 30)

    with monkeypatch.context() as patched:
        patched.setattr(type(ledger._store), "read", locked)
        with refused("ledger-unknown", "Nothing is published, and the budget may have been spent") as refusal:
            ledger.spend(ZCDP.at("0.1"), "tables")
    (entry,) = ledger.entries()
    assert f'look for "token": "{entry.token}"' in str(refusal.value)


def test_a_specification_that_this_version_cannot_read_is_named(ledger, monkeypatch):
    ledger.spend(ZCDP.at("0.1"), "tables")
    text = ZCDP.at("0.1").to_json().replace('"stirred_specification": 2', '"stirred_specification": 9')
    monkeypatch.setattr(Specification, "to_json", lambda self: text)
    monkeypatch.setattr(Specification, "from_json", lambda text: None)
    ledger.record(ZCDP.at("0.1"), "from the future", past=True)
    monkeypatch.undo()
    with refused("ledger-entry-unreadable", "entry 2"):
        ledger.spend(ZCDP.at("0.1"), "next")
    assert "total" in [kind for kind, _ in failing(ledger)]
