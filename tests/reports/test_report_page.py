"""Reports of releases, plans, deployments and typed guarantees: structure, words, and nothing of strangers as HTML."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html import escape, unescape
from pathlib import Path

import pytest
from page_structure import Structure

import stirred
from repeats import some_or
from stirred import errors
from stirred.reports.limits_section import of_explanation
from stirred.reports.page import report_text
from stirred.reports.page_elements import MOST, Figures, Glossary, element, inline, shown, terms
from stirred.reports.subjects import subject
from stirred.spec import Finding, Invariant, Multiverse, flavors

FIXTURES = Path(__file__).parents[1] / "fixtures"
RELEASES = {name: FIXTURES / "v0_5" / name for name in ("swap", "topdown", "rounds")}
HOSTILE = "\"><script>alert(1)</script>]]>--><img src=x onerror=alert(2)>'&amp;{0}</title></style>"
TYPED = ("rho=1/2", "epsilon=1,unbounded", "epsilon=1,delta=1e-6,unit=household", "mu=1", "epsilon=2,alpha=3")
NAMES = ("topdown-2020-pl", "das-2020-overall")
PLAN = """
stirred = 1
mechanism = "swap"
dataset = "households of the office"
unit = "household"
match = ["size"]
swap = ["county"]
hold = ["tenure"]
rate = 0.6
[input]
path = "not-there.csv"
[context]
people = "anyone at all"
"""


@pytest.fixture(scope="module")
def made():
    """Pages by what they are about, each made once."""
    pages: dict[object, str] = {}

    def page(*what):
        if what not in pages:
            pages[what] = report_text([subject(one) for one in what])
        return pages[what]

    return page


CASES = [(one,) for one in (*TYPED, *NAMES, *RELEASES.values())]
CASES.append(("topdown-2020-pl", "rho=1", RELEASES["swap"]))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("what", CASES, ids=lambda what: "-".join(Path(one).name for one in what))
def test_structure(made, what):
    page = made(*what)
    found = Structure(page)
    assert found.faults == []
    assert found.counts["h1"] == 1 and found.counts.get("svg", 0) >= 1
    assert not re.search(r"@import|url\(|<script|javascript:", page, re.IGNORECASE)
    assert re.findall(r"https?://[^\s\"'<)]+", re.sub(r'xmlns(:\w+)?="[^"]*"', "", page).split("</style>")[0]) == []
    assert len(page) < 250_000 * len(what)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("what", CASES, ids=lambda what: "-".join(Path(one).name for one in what))
def test_every_sentence_and_every_block_is_there(made, what):
    text = Structure(made(*what)).text
    for one in what:
        about = subject(one)
        said = [*about.explanation.statements, *of_explanation(about.explanation).statements]
        for statement in said:
            assert " ".join(statement.words.split()) in text
        for finding in stirred.lint(about.specification):
            assert " ".join(finding.words.split()) in text
        for _, words in about.specification.blocks():
            assert " ".join(words.split()) in text


def test_a_number_of_a_report_stands_in_what_it_reports(made):
    """The summary and the sentences are those of the explanation, with its numbers and no others."""
    about = subject("rho=1/2")
    first = made("rho=1/2").split("<nav")[0].split("<h2>In short</h2>")[1]
    said = " ".join(one.words for one in about.explanation.section("summary"))
    without = re.sub(r"<sup>.*?</sup>", "", first)
    assert re.findall(r"[0-9.]+", unescape(re.sub(r"<[^>]*>", "", without))) == re.findall(r"[0-9.]+", said)


def test_parts_stand_in_their_order(made):
    page = made(RELEASES["swap"])
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert titles == [
        *("In short", "What was released and how", "The guarantee in five questions"),
        *("What is published exactly as it is", "What the guarantee means", "What it does not mean", "For analysts"),
        *("Record for the public registry", "Glossary", "Sources", "Bill of materials"),
    ]


def test_a_swap_says_which_tables_are_right(made):
    text = Structure(made(RELEASES["swap"])).text
    readme = " ".join((RELEASES["swap"] / "README.txt").read_text(encoding="utf-8").split())
    # What corrects a table is said otherwise since 0.8; this folder is of an earlier version.
    exact = re.search(r"Exact, as in the file: (.*?\.) Weakened: (.*?) How much is known", readme)
    assert exact is not None
    for words in exact.groups():
        assert words[1:] in text
    assert "stirred verify . stirred tabulate . --by size,county stirred estimate . --by county,tenure" in text
    certificate = json.loads((RELEASES["swap"] / "certificate.json").read_text(encoding="utf-8"))
    assert certificate["plan_sha256"] in text and certificate["nonce"] not in text
    for entry in certificate["invariants"]:
        assert re.search(rf"\b{entry['cells']}\b", text)


def test_topdown_tells_the_noise_of_every_query(made):
    text = Structure(made(RELEASES["topdown"])).text
    path = RELEASES["topdown"] / "measurements" / "measurements.json"
    for one in json.loads(path.read_text(encoding="utf-8")):
        assert f"{one['table']} {one['level']} {one['query']} {float(one['variance']) ** 0.5:.3g}" in text


def test_several_are_ranked_and_compared(made):
    page = made("topdown-2020-pl", "rho=1", RELEASES["swap"])
    found = stirred.compare("topdown-2020-pl", "rho=1", RELEASES["swap"])
    text = Structure(page).text
    for words in (*found.rankings, *(answer for one in found.consequences for answer in one.answers)):
        assert " ".join(words.split()) in text
    assert text.index("Can these be ranked?") < text.index("What was released and how")


def test_two_of_one_name_are_told_apart():
    text = Structure(report_text([subject("rho=1"), subject("rho=1")])).text
    assert "rho=1 (1)" in text and "rho=1 (2)" in text


# -- plans ---------------------------------------------------------------------------------------------------


def test_a_swap_plan_needs_a_largest_stratum(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    with pytest.raises(errors.PlanError, match="largest stratum") as refused:
        stirred.report(path, tmp_path / "report.html")
    assert refused.value.kind == "report-needs-data" and not (tmp_path / "report.html").exists()
    stirred.report(path, tmp_path / "report.html", largest_stratum=40)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    found = Structure(page)
    assert found.faults == [] and "Nothing was released: this is a plan" in found.text
    assert "anyone at all" in found.text and stirred.SwapPlan.from_toml(path).hash() in found.text
    from stirred.swap.law.theorem import epsilon

    about = subject(path, options={"largest_stratum": 40})
    assert float(about.specification.budget.number) == epsilon(40, stirred.SwapPlan.from_toml(path).rate)


@pytest.mark.parametrize("largest", [1, 0, -5, True, 1 << 50])
def test_a_largest_stratum_is_a_number_of_records(tmp_path, largest):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    with pytest.raises(errors.PlanError, match="whole number from 2 on") as refused:
        stirred.report(path, tmp_path / "report.html", largest_stratum=largest)
    assert refused.value.kind == "report-option"


def test_options_are_for_plans_and_something_must_be_reported(tmp_path):
    with pytest.raises(errors.PlanError, match="is for plans"):
        stirred.report("rho=1", tmp_path / "report.html", largest_stratum=5)
    with pytest.raises(errors.PlanError, match="needs something to report") as refused:
        stirred.report([], tmp_path / "report.html")
    assert refused.value.kind == "report-of-nothing"
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace('hold = ["tenure"]', 'hold = "rest"'), encoding="utf-8")
    with pytest.raises(errors.PlanError, match="held columns"):
        stirred.report(path, tmp_path / "report.html", largest_stratum=5)


def test_a_file_that_exists_is_kept(tmp_path):
    (tmp_path / "report.html").write_text("mine", encoding="utf-8")
    with pytest.raises(errors.StirredError, match="exists already"):
        stirred.report("rho=1", tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "mine"


# -- strangers -----------------------------------------------------------------------------------------------


@pytest.fixture
def no_drawing(monkeypatch):
    """Drawing takes most of the time, and is tested by itself."""
    monkeypatch.setattr(Figures, "figure", lambda self, picture, about: element("p", picture.title, about))


def test_hostile_words_of_a_specification_stay_words(no_drawing):
    plain = flavors.pure("person").at(1)
    hostile = replace(
        plain,
        name=HOSTILE,
        domain=replace(plain.domain, name=HOSTILE, starts=HOSTILE, words=HOSTILE, record=HOSTILE),
        multiverse=Multiverse((Invariant(HOSTILE, by=(HOSTILE,)), Invariant(name=HOSTILE)), words=HOSTILE),
        budget=replace(plain.budget, conversion=HOSTILE, varies=HOSTILE),
        covers=(HOSTILE,),
        findings=(Finding(HOSTILE, HOSTILE, HOSTILE, HOSTILE),),
        marks=(HOSTILE,),
    )
    for subjects in ([subject(hostile)], [subject(hostile), subject("rho=1")]):
        page = report_text(subjects)
        assert Structure(page).faults == [] and "<script" not in page and escape("<script>") in page


def _leaves(fields, path=()):
    if isinstance(fields, dict):
        for name, value in fields.items():
            yield from _leaves(value, (*path, name))
    elif isinstance(fields, list):
        for at, value in enumerate(fields):
            yield from _leaves(value, (*path, at))
    elif isinstance(fields, str):
        yield path


@pytest.mark.repeats
@pytest.mark.parametrize("document", ["certificate.json", "data_dictionary.json"])
def test_hostile_words_in_any_field_of_a_folder_stay_words(tmp_path, no_drawing, document):
    folder = tmp_path / "release"
    shutil.copytree(RELEASES["rounds"], folder)
    path = folder / document
    before = path.read_text(encoding="utf-8")
    reported = 0
    for leaf in [*_leaves(json.loads(before))][:: some_or(3, 1)]:
        fields = json.loads(before)
        inside = fields
        for step in leaf[:-1]:
            inside = inside[step]
        inside[leaf[-1]] = HOSTILE
        path.write_text(json.dumps(fields), encoding="utf-8")
        try:
            page = report_text([subject(folder)])
        except errors.StirredError:
            continue  # what cannot be read is refused
        reported += 1
        assert Structure(page).faults == [] and "<script" not in page, leaf
    assert reported >= some_or(4, 10)


def test_a_hostile_name_of_a_folder(tmp_path, no_drawing):
    folder = tmp_path / "\"><script>alert(1)<'script> ; rm"
    shutil.copytree(RELEASES["rounds"], folder)
    page = report_text([subject(folder), subject("rho=1")])
    assert Structure(page).faults == [] and "<script" not in page
    assert "'\"><script>alert(1)<'\"'\"'script> ; rm'" in Structure(page).text  # as a shell takes it


def test_a_hostile_name_in_a_drawing():
    about = stirred.explain(replace(flavors.pure("person").at(1), name=HOSTILE))
    figure = Figures().figure(replace(about.pictures()[0], title=HOSTILE, caption=HOSTILE, subtitle=HOSTILE), HOSTILE)
    page = f'<html lang="en"><h1></h1>{figure}</html>'
    assert Structure(page).faults == [] and "<script" not in page


def test_long_and_unseen_characters_are_cut_and_shown():
    assert len(shown("x" * 10 * MOST)) == MOST + 1
    assert shown("a\x00\u202eb\x1b") == "a\ufffd\ufffdb\ufffd"
    assert element("p", "<", title='"') == '<p title="&quot;">&lt;</p>'


def test_ids_of_drawings_are_their_own():
    drawing = '<svg viewBox="0 0 1 1"><g id="a" role="x" aria-label="y" clip-path="url(#a)"></g></svg>'
    made = inline(drawing, "figure-7", "t", "d")
    assert 'id="figure-7-a" clip-path="url(#figure-7-a)"' in made and "aria-label=" not in made


def test_words_of_the_glossary_are_marked_once_in_each_part():
    glossary = Glossary()
    assert glossary.mark("epsilon and Epsilon, no epsilons <b>").count("<a ") == 1
    assert "&lt;b&gt;" in glossary.mark("<b>") and glossary.mark("epsilon").count("<a ") == 0
    glossary.new_part()
    assert 'href="#word-epsilon"' in glossary.mark("epsilon")
    assert len({one.id for one in terms()}) == len(terms()) and all(one.meaning.endswith(".") for one in terms())
