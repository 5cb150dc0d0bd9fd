"""The report inside a release folder: always there, covered by the checks of the folder, made of what is published."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from page_structure import Structure
from small_releases import NAMES, ROWS, plan_of, release_into

import stirred
from stirred import mechanisms
from stirred.mechanisms import open_release
from stirred.releases.folder.atomic import leftovers
from stirred.releases.folder.manifest import read_manifest, write_manifest
from stirred.releases.ledger.ledger import Ledger
from stirred.releases.verdicts import State
from stirred.reports import folder_report, page_elements, subjects
from stirred.reports.page import report_text
from stirred.reports.subjects import of_folder
from stirred.survey.documents import spread_of
from stirred.verbs import write

NUMERAL = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A release of each mechanism, made once."""
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            made[name] = release_into(tmp_path_factory.mktemp(name) / "release", name)
        return made[name]

    return get


@pytest.fixture
def copied(written, tmp_path):
    return shutil.copytree(written("swap"), tmp_path / "moved")


def failing(folder: Path) -> list[str]:
    return [verdict.words for verdict in stirred.verify(folder) if verdict.state is State.CONTRADICTED]


def open_about(folder: Path) -> list[str]:
    return [verdict.words for verdict in stirred.verify(folder) if verdict.state is State.NOT_COMPARED]


def page_of(folder: Path) -> str:
    return (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_release_has_a_report_that_its_checks_cover(written, name):
    folder = written(name)
    assert "report.html" in [entry.path for entry in read_manifest(folder)]
    assert failing(folder) == []
    assert any("report.html says" in verdict.words for verdict in stirred.verify(folder))
    found = Structure(page_of(folder))
    assert found.faults == [] and found.counts["svg"] >= 1
    files = (folder / "README.txt").read_text(encoding="utf-8").split("\nFiles\n")[1]
    assert files.startswith("  report.html: ")


@pytest.mark.parametrize("name", NAMES)
def test_stirred_report_gives_the_page_of_the_folder_wherever_it_lies(written, name, tmp_path, command, monkeypatch):
    moved = shutil.copytree(written(name), tmp_path / "another name")
    assert command("report", moved, "--out", tmp_path / "one.html").code == 0
    assert (tmp_path / "one.html").read_bytes() == (moved / "report.html").read_bytes()
    monkeypatch.chdir(moved)
    if name == "swap":
        stirred.report(".", tmp_path / "two.html")
        assert (tmp_path / "two.html").read_bytes() == (moved / "report.html").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_the_page_follows_from_what_is_published(written, name, tmp_path):
    """The page made where the folder is alone, without data, plan, ledger or draw, has the same numbers; and none of
    the draw's identity or of this machine."""
    page = page_of(written(name))
    alone = shutil.copytree(written(name), tmp_path / "alone")
    (alone / "report.html").unlink()
    again = report_text([subjects.subject(alone)], drawing=False)  # drawings are compared elsewhere
    undrawn = re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)
    assert set(NUMERAL.findall(undrawn)) <= set(NUMERAL.findall(again))
    certificate = json.loads((alone / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["nonce"] not in page
    for place in (written(name).parent, Path.home(), Path(stirred.__file__).parent):
        assert str(place) not in page
    assert "stirred-unfinished" not in page


def test_a_changed_report_is_noticed(copied):
    page = copied / "report.html"
    page.write_text(page_of(copied).replace("In short", "In brief"), encoding="utf-8")
    assert failing(copied) == ["report.html is not the file that was released"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "change",
    [
        lambda page: page.replace("At most", "at least").replace("at most", "at least"),
        lambda page: page.replace("</desc>", "</desc><script>alert(1)</script>", 1),
        lambda page: page.replace("</desc>", '</desc><g onload="alert(1)"></g>', 1),
        lambda page: page.replace("</desc>", '</desc><path style="background:url(//host)"/>', 1),
        lambda page: page.replace("</desc>", '</desc><rect fill="url(https://host/x)"/>', 1),
        lambda page: page.replace("</desc>", "</desc><foreignObject>words</foreignObject>", 1),
        lambda page: page.replace("</desc>", " and more</desc>", 1),
        lambda page: page.replace("</desc>", '</desc><text x="9" y="9">The guarantee is epsilon 0.01.</text>', 1),
        lambda page: re.sub(r">probability of detection[^<]*<", ">nobody can be identified<", page, count=1),
        lambda page: re.sub(r'( d="M)[^"]{40,}"', r'\1 0,0L10,0L300,300"', page, count=1),
        lambda page: re.sub(
            r'( d="M[^"]*?L)([0-9.]+)([^"]{30,}")', lambda m: f"{m[1]}{float(m[2]) + 9}{m[3]}", page, count=1
        ),
        lambda page: re.sub(r"(altair) [0-9.]+", r"\1 9.9.9", page).replace(
            "</desc>", "</desc><text>Approved</text>", 1
        ),
        lambda page: page.replace("<main>", "<main><p>More.</p>"),
        lambda page: page.replace("this report</th><td>python", "this report</th><td>a message, python"),
        lambda page: page.replace("default-src 'none'", "default-src *"),
        lambda page: "",
    ],
)
def test_a_report_that_says_something_else_does_not_hold_even_if_the_manifest_lists_it(copied, change):
    page = copied / "report.html"
    changed = change(page_of(copied))
    assert changed != page_of(copied)
    page.write_text(changed, encoding="utf-8")
    write_manifest(copied)
    assert [words.split(" ")[0] for words in failing(copied)] == ["report.html"]


def test_other_last_digits_of_coordinates_hold(copied):
    page = copied / "report.html"
    changed = re.sub(r'( d="M[0-9.]+,[0-9]+)([^"]{200,}")', r"\g<1>.0000001\2", page_of(copied), count=1)
    assert changed != page_of(copied)
    page.write_text(changed, encoding="utf-8")
    write_manifest(copied)
    assert stirred.verify(copied).state is State.HOLDS


def test_drawings_of_other_versions_of_the_programs_are_not_compared_and_do_not_hold(copied):
    page = copied / "report.html"
    page.write_text(re.sub(r"altair [0-9.]+", "altair 9.9.9", page_of(copied)), encoding="utf-8")
    write_manifest(copied)
    assert failing(copied) == []
    assert open_about(copied) == [
        "the drawings of report.html: not compared, since other versions of the programs drew them"
    ]


def test_where_nothing_can_be_drawn_only_words_are_compared(copied, monkeypatch):
    """As in a fork of a process that has drawn; what draws would wait there for ever."""
    monkeypatch.setattr(page_elements, "_drawing_process", -1)
    assert failing(copied) == []
    assert open_about(copied) == ["the drawings of report.html: not compared, since they cannot be made again here"]


def test_a_report_of_another_version_is_not_compared(copied):
    certificate = copied / "certificate.json"
    fields = json.loads(certificate.read_text(encoding="utf-8"))
    fields["versions"]["stirred"] = "99.0.0"
    certificate.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write_manifest(copied)
    assert "report.html: not compared, since another version wrote it" in open_about(copied)


@pytest.mark.parametrize("name", NAMES)
def test_a_release_can_go_without(name, tmp_path):
    folder = release_into(tmp_path / "release", name, report=False)
    assert not (folder / "report.html").exists() and "report.html" not in (folder / "README.txt").read_text("utf-8")
    assert failing(folder) == [] and not any("report.html" in one.words for one in stirred.verify(folder))


def test_the_command_writes_a_report_unless_told_not_to(tmp_path, command):
    ROWS.write_csv(tmp_path / "rows.csv")
    plan = plan_of("swap")
    (tmp_path / "plan.toml").write_text(plan.to_toml() + '\n[input]\npath = "rows.csv"\n', encoding="utf-8")
    assert command("release", tmp_path / "plan.toml", "--out", tmp_path / "with").code == 0
    assert command("release", tmp_path / "plan.toml", "--out", tmp_path / "without", "--no-report").code == 0
    assert (tmp_path / "with" / "report.html").exists() and not (tmp_path / "without" / "report.html").exists()
    assert failing(tmp_path / "with") == failing(tmp_path / "without") == []


def test_a_report_that_fails_spends_nothing_and_leaves_nothing(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "rows.ledger", "rows")

    def broken(subjects):
        folder = subjects[0].release.path
        assert (folder / "README.txt").exists() and not (folder / "certificate.json").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(folder_report, "report_text", broken)
    with pytest.raises(KeyboardInterrupt):
        release_into(tmp_path / "release", "swap", ledger=ledger)
    assert ledger.entries() == () and not (tmp_path / "release").exists() and leftovers(tmp_path) == []


def test_a_topdown_release_that_is_finished_again_gets_its_report(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "rows.ledger", "rows")

    def broken(subjects):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(folder_report, "report_text", broken)
        with pytest.raises(KeyboardInterrupt):
            release_into(tmp_path / "release", "topdown", ledger=ledger)
    assert not (tmp_path / "release").exists()
    release_into(tmp_path / "release", "topdown", ledger=ledger)
    assert len(ledger.entries()) == 1 and (tmp_path / "release" / "report.html").exists()
    assert failing(tmp_path / "release") == []


def test_rows_of_a_large_release_are_not_read_for_its_report(written, tmp_path, monkeypatch):
    def never(*arguments):
        raise AssertionError("the rows are read")

    folder = written("swap")
    monkeypatch.setattr(type(mechanisms.named("swap")), "exposure", never)
    with pytest.raises(AssertionError):
        stirred.report(folder, tmp_path / "one.html")
    monkeypatch.setattr(subjects, "MOST_ROWS", len(ROWS) - 1)
    stirred.report(folder, tmp_path / "one.html")
    assert "too many rows for a page to look at single records" in (tmp_path / "one.html").read_text(encoding="utf-8")


def test_a_release_that_was_written_from_memory_can_have_one_too(tmp_path):
    made = stirred.swap.release(plan_of("swap"), ROWS, out=tmp_path / "one")
    write(made, tmp_path / "two")
    made.write(tmp_path / "three")
    assert page_of(tmp_path / "two") == report_text([of_folder(*open_release(tmp_path / "two"))])
    assert failing(tmp_path / "two") == failing(tmp_path / "three") == []
    assert not any((tmp_path / name / "report.html").exists() for name in ("one", "three"))


def test_a_survey_says_what_was_measured_and_with_how_much_noise(written):
    folder = written("survey")
    text = Structure(page_of(folder)).text
    readme = " ".join((folder / "README.txt").read_text(encoding="utf-8").split())
    plan = plan_of("survey")
    for query in plan.queries:
        what, spread = spread_of(plan, query)
        assert spread in readme and f"{query.name} {what} {spread}" in text
    assert "What the release of rows means" in text and "stirred estimate . --by county" in text
    for part in ("Exact, as in the confidential data", "To be corrected before use", "Not to be had"):
        assert part in text
    for _, words in stirred.read(folder).blocks():
        assert " ".join(words.split()) in text


def test_the_name_of_a_dataset_is_shown_as_text(copied):
    certificate = copied / "certificate.json"
    fields = json.loads(certificate.read_text(encoding="utf-8"))
    fields["plan"]["dataset"] = "<script>alert(1)</script>"
    certificate.write_text(json.dumps(fields), encoding="utf-8")
    page = report_text([of_folder(*open_release(copied))])
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page
