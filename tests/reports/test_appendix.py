"""The custodian's confidential appendix: true errors against oracles, the ledger's total, and where it may not lie."""

from __future__ import annotations

import csv
import re
import shutil
import stat

import polars as pl
import pytest
from page_structure import Structure
from small_releases import NAMES, PEOPLE, PLACES, ROWS, data_of, plan_of, release_into

import stirred
from stirred import errors, mechanisms
from stirred.mechanisms import open_release
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.mechanism import Mechanism
from stirred.reports.appendix import CAREFUL, WARNING, appendix


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A release of each mechanism with its ledger and its confidential comparison, made once."""
    made = {}

    def get(name):
        if name not in made:
            place = tmp_path_factory.mktemp(name)
            ledger = Ledger.create(place / "rows.ledger", "rows")
            release_into(place / "release", name, ledger=ledger, confidential=place / "secret")
            made[name] = place
        return made[name]

    return get


def rows_of(name, place, sort="errors"):
    """The tables of a release's notes, each row by its headings."""
    mechanism, opened = open_release(place / "release")
    notes = [note for note in mechanism.for_custodian(opened, plan_of(name), data_of(name)) if note.sort == sort]
    return [[dict(zip(note.rows[0], row, strict=True)) for row in note.rows[1:]] for note in notes if note.rows]


@pytest.mark.parametrize("name", NAMES)
def test_it_says_that_it_is_confidential_and_states_the_total(kept, name, tmp_path):
    place = kept(name)
    written = appendix(place / "release", tmp_path / "appendix.html", plan=plan_of(name), data=data_of(name),
                       ledger=place / "rows.ledger")  # fmt: skip
    page = written.read_text(encoding="utf-8")
    found = Structure(page)
    assert found.faults == []
    assert found.text.count(WARNING) == 2 and CAREFUL in found.text and "CONFIDENTIAL: appendix" in found.text
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert "Entries for rows: 1, of which 1 spent budget." in found.text and "This release is entry 1" in found.text
    total = Ledger.open(place / "rows.ledger").standing().total
    for _, words in total.specification.blocks():
        assert " ".join(words.split()) in found.text
    assert f"SHA-256 {plan_of(name).hash()}" in found.text and "this appendix" in found.text
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert titles == ["Total of the ledger", "True errors of this release",
                      "What the invariants reveal about these data", "Bill of materials"]  # fmt: skip
    assert "Not computed" not in found.text and "offers no such" not in found.text


def test_errors_of_a_swap_are_those_of_the_rows(kept):
    place = kept("swap")
    released = pl.read_parquet(place / "release" / "microdata.parquet")
    (rows,) = rows_of("swap", place)
    for row, by in zip(rows, (["county", "tenure"], ["county"]), strict=True):
        both = ROWS.group_by(by).len("true").join(released.group_by(by).len("ours"), on=by, how="full", coalesce=True)
        true, ours = both["true"].fill_null(0).cast(pl.Int64), both["ours"].fill_null(0).cast(pl.Int64)
        error = (ours - true).abs()
        assert int(row["cells"]) == len(both) and int(row["cells that differ"]) == int((error > 0).sum())
        assert float(row["mean absolute error"]) == pytest.approx(error.mean(), rel=1e-3)
        assert float(row["largest error"]) == error.max()
        relative = (error / true).filter(true > 0).mean()
        assert float(row["mean relative error"].rstrip("%")) == pytest.approx(100 * relative, rel=1e-2, abs=1e-9)
    assert rows[1]["cells that differ"] == "0"  # counties are kept


def test_what_a_swap_reveals_is_what_its_check_says(kept):
    found = rows_of("swap", kept("swap"), "revealed")[0]
    shown = stirred.check(plan_of("swap"), ROWS).revealing
    assert [row["number"] for row in found][:3] == [
        f"{one:,}" for one in (shown.counts.determined_records, shown.counts.pinned_records, shown.counts.guessed)
    ]


def test_a_swap_that_publishes_no_table_is_compared_by_its_held_columns(tmp_path):
    plan = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1)
    stirred.release(plan, ROWS, out=tmp_path / "release", report=False)
    mechanism, opened = open_release(tmp_path / "release")
    (note, *_) = mechanism.for_custodian(opened, plan, ROWS)
    assert [row[0] for row in note.rows[1:]] == ["Table by 'county' and 'tenure'"]


def test_errors_of_topdown_are_those_of_the_confidential_comparison(kept):
    place = kept("topdown")
    with (place / "secret" / "errors.csv").open(encoding="utf-8") as file:
        expected = list(csv.DictReader(file))
    (rows,) = rows_of("topdown", place)
    assert len(rows) == len(expected) > 0
    for row, other in zip(rows, expected, strict=True):
        assert (row["table"], row["level"], row["query"].replace(" ", "")) == (
            other["table"], other["level"], other["query"],
        )  # fmt: skip
        assert float(row["mean absolute error"]) == pytest.approx(float(other["mean_absolute_error"]), rel=1e-3)
        assert int(row["largest"]) == int(other["largest_error"])


def test_errors_of_a_survey_are_those_of_the_confidential_comparison(kept):
    place = kept("survey")
    (rows,) = rows_of("survey", place)
    for row in rows:
        noise = pl.read_csv(place / "secret" / f"{row['query']}.csv")["noise"].abs()
        assert float(row["mean absolute error"]) == pytest.approx(noise.mean(), rel=1e-3)
        assert float(row["largest error"]) == pytest.approx(noise.max(), rel=1e-3)


def test_a_survey_that_fills_cells_is_not_compared(tmp_path):
    counties = {"name": "county", "values": ["a", "b", "c"]}
    fields = {"epsilon": 1, "attributes": [counties], "queries": [{"by": ["county"]}],
              "imputation": [{"of": "county", "kind": "frequencies", "share": "1/10"}]}  # fmt: skip
    data = ROWS.with_columns(pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise(pl.col("county")).alias("county"))
    plan = stirred.SurveyPlan(**fields)
    stirred.release(plan, data, out=tmp_path / "release", report=False)
    mechanism, opened = open_release(tmp_path / "release")
    (note, *_) = mechanism.for_custodian(opened, plan, data)
    assert note.rows == () and "fills empty cells at random" in note.words


def test_without_data_it_says_what_it_has_not(kept, tmp_path):
    text = Structure(appendix(kept("swap") / "release", tmp_path / "a.html", ledger=kept("swap") / "rows.ledger")
                     .read_text(encoding="utf-8")).text  # fmt: skip
    assert text.count("Not computed: the plan of the release was not given") == 2
    text = Structure(appendix(kept("swap") / "release", tmp_path / "b.html", plan=plan_of("swap"), data=ROWS)
                     .read_text(encoding="utf-8")).text  # fmt: skip
    assert "Not stated: no ledger was given." in text


def test_a_release_that_is_not_in_the_ledger_is_said_to_be_missing(kept, tmp_path):
    Ledger.create(tmp_path / "other.ledger", "rows")
    page = appendix(kept("swap") / "release", tmp_path / "a.html", ledger=tmp_path / "other.ledger")
    assert "This release is not in the ledger" in page.read_text(encoding="utf-8")


def test_a_mechanism_without_such_numbers_says_so(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(type(mechanisms.named("swap")), "for_custodian", Mechanism.for_custodian)
    page = appendix(kept("swap") / "release", tmp_path / "a.html", plan=plan_of("swap"), data=ROWS)
    assert page.read_text(encoding="utf-8").count("This mechanism offers no such numbers.") == 2


def test_it_is_not_written_into_a_release_nor_over_a_file(kept, tmp_path):
    folder = shutil.copytree(kept("swap") / "release", tmp_path / "release")
    (tmp_path / "link").symlink_to(folder)
    for place in (folder / "a.html", folder / "tables" / "a.html", tmp_path / "link" / "a.html"):
        with pytest.raises(errors.StirredError) as refused:
            appendix(folder, place, plan=plan_of("swap"), data=ROWS)
        assert refused.value.kind == "appendix-in-a-release" and not place.exists()
    (tmp_path / "there.html").write_text("mine")
    with pytest.raises(errors.StirredError) as refused:
        appendix(folder, tmp_path / "there.html", plan=plan_of("swap"), data=ROWS)
    assert refused.value.kind == "output-exists" and (tmp_path / "there.html").read_text() == "mine"


def test_another_plan_and_other_data_are_refused(kept, tmp_path):
    folder = kept("swap") / "release"
    for plan in (stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.2), plan_of("survey")):
        with pytest.raises(errors.StirredError) as refused:
            appendix(folder, tmp_path / "a.html", plan=plan, data=ROWS)
        assert refused.value.kind == "appendix-other-plan"
    with pytest.raises(errors.StirredError) as refused:
        appendix(folder, tmp_path / "a.html", plan=plan_of("swap"), data=ROWS.with_columns(pl.lit("o").alias("tenure")))
    assert refused.value.kind == "appendix-other-data"
    other = {"persons": PEOPLE.vstack(PEOPLE), "geography": PLACES}
    with pytest.raises(errors.StirredError) as refused:
        appendix(kept("topdown") / "release", tmp_path / "a.html", plan=plan_of("topdown"), data=other)
    assert refused.value.kind == "appendix-other-data" and not (tmp_path / "a.html").exists()


@pytest.fixture
def files(tmp_path, command):
    ROWS.write_csv(tmp_path / "rows.csv")
    (tmp_path / "plan.toml").write_text(plan_of("swap").to_toml() + '\n[input]\npath = "rows.csv"\n', encoding="utf-8")
    Ledger.create(tmp_path / "rows.ledger", "rows")
    recorded = ("--ledger", tmp_path / "rows.ledger", "--who", "Ada", "--why", "a test")
    made = command("release", tmp_path / "plan.toml", "--out", tmp_path / "release", *recorded)
    assert made.code == 0
    return tmp_path


def test_the_command_writes_both_files_and_the_report_is_the_public_one(files, command, as_json):
    place = files
    run = command("report", place / "release", "--out", place / "r.html", "--confidential-appendix", place / "a.html",
                  "--plan", place / "plan.toml", "--ledger", place / "rows.ledger")  # fmt: skip
    assert run.code == 0 and "do not publish it" in run.said
    assert (place / "r.html").read_bytes() == (place / "release" / "report.html").read_bytes()
    text = Structure((place / "a.html").read_text(encoding="utf-8")).text
    assert "Made by: Ada" in text and "Made because: a test" in text
    assert "Ada" not in (place / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("release", "--confidential-appendix", "a.html"), "needs something confidential"),
        (("release", "rho=1", "--confidential-appendix", "a.html", "--plan", "plan.toml"), "about one release"),
        (("rho=1", "--confidential-appendix", "a.html", "--plan", "plan.toml"), "about one release"),
        (("release", "--plan", "plan.toml"), "nothing of it goes into the report"),
        (("release", "--ledger", "rows.ledger"), "nothing of it goes into the report"),
        (("release", "--confidential-appendix", "release/a.html", "--plan", "plan.toml"), "would lie inside"),
        (("release", "--confidential-appendix", "r.html", "--plan", "plan.toml"), "another file than the report"),
    ],
)
def test_what_the_command_refuses_it_refuses_before_it_writes(files, command, monkeypatch, words, kind):
    monkeypatch.chdir(files)
    run = command("report", *words, "--out", "r.html")
    assert run.code == 2 and kind in run.said
    assert not (files / "r.html").exists() and not (files / "a.html").exists()
