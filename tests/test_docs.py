"""Every example in the documentation runs."""

import ast
import doctest
import importlib
import math
import random
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from typer.main import get_command

import account_findings
import stirred
from stirred.cli import app
from stirred.releases.folder.manifest import signers_line
from stirred.releases.plans import InputSection, Section
from stirred.survey import PublicWeights, WeightTrade
from stirred.survey.plan import sections
from stirred.survey.plan.fields import SurveyPlan
from stirred.swap.plan.fields import SwapPlan
from stirred.tables.synthetic import households_and_persons
from stirred.tables.synthetic.population import DOMAINS, Population
from stirred.topdown import TopDownPlan
from stirred.topdown.plan.sections import RelationSection

ROOT = Path(__file__).parent.parent


def blocks(document: str) -> list[tuple[str, str]]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(r"```(\w+)\n(.*?)```", text, flags=re.S)


def run_command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(line, comments=True)
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code in (0, None), line


def run_blocks(document: str, names: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    for language, text in blocks(document):
        if language == "python":
            exec(compile(text, document, "exec"), names)
        elif language == "sh":
            for line in text.splitlines():
                if line.startswith("stirred "):
                    run_command(line, monkeypatch)


PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
OF_PAST_VERSIONS = {"CHANGELOG.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if page not in OF_PAST_VERSIONS])
def test_every_import_and_every_command_of_a_page_exists(page):
    """That they do what the page says is asked page by page below; of pages that take long, in the long run."""
    cli = get_command(app.build())
    for language, text in blocks(page):
        if language == "python":
            plain = "\n".join(line[4:] for line in text.splitlines() if line[:3] in (">>>", "..."))
            for node in ast.walk(ast.parse(plain or text)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stirred"):
                    module = importlib.import_module(node.module)
                    assert [one.name for one in node.names if not hasattr(module, one.name)] == []
        elif language == "sh":
            for line in text.splitlines():
                if line.startswith("stirred "):
                    command, words = cli, shlex.split(line, comments=True)[1:]
                    while hasattr(command, "commands") and words and not words[0].startswith("-"):
                        assert words[0] in command.commands, line
                        command, words = command.commands[words[0]], words[1:]
                    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
                    assert {word for word in words if word.startswith("--")} <= known, line


@pytest.mark.slow
def test_the_tutorial_runs_as_it_stands_in_an_empty_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks("docs/tutorial.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert "CONFIDENTIAL" in printed and "county,tenure,count" in printed and "FAILS" not in printed


def test_the_guide_to_specifications_runs_on_a_plan_that_fits_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{size},{county},{tenure}" for size in (1, 2) for county in "xyz" for tenure in "or"]
    Path("households.csv").write_text("size,county,tenure\n" + "\n".join(rows * 5) + "\n")
    Path("plan.toml").write_text(
        'stirred = 1\nmechanism = "swap"\ndataset = "census 2030"\nunit = "household"\nrate = 0.05\n'
        'match = ["size"]\nswap = ["county"]\nhold = ["tenure"]\nchosen_from = "public"\n'
        '[input]\npath = "households.csv"\n'
    )
    run_blocks("docs/specifications.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert "rho = 55.371" in printed and "221.484" in printed
    assert "which the multiverse does not hold fixed" in printed
    assert Path("release/specification.json").exists()


def test_the_guide_to_noise_and_accounting_runs(monkeypatch, capsys):
    run_blocks("docs/accounting.md", {}, monkeypatch)
    assert "Bounds(lower=0.7417" in capsys.readouterr().out


def test_the_guide_to_what_invariants_reveal_runs_on_a_plan_that_fits_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{state},{size},{county},{tenure}" for state in "AB" for size in (1, 2) for county in "xyz" for tenure in "or"
    ]
    Path("households.csv").write_text("state,size,county,tenure\n" + "\n".join(rows * 5) + "\n")
    Path("plan.toml").write_text(
        'stirred = 1\nmechanism = "swap"\nunit = "household"\nrate = 0.05\nchosen_from = "public"\n'
        'match = ["size"]\nswap = ["county"]\nhold = ["state", "tenure"]\n[input]\npath = "households.csv"\n'
    )
    run_blocks("docs/invariants.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert "1 15 1.714" in printed and "0.0725420" in printed and "0.1732708" in printed
    assert "What the published counts alone reveal" in printed
    assert sorted(path.name for path in Path("compared").glob("*.png")) == [
        "revealed-by-epsilon.png", "revealed-by-error.png",
    ]  # fmt: skip


@pytest.mark.slow
def test_the_page_of_known_deployments_runs_and_shows_what_the_data_files_hold(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks("docs/deployments.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert "The standards differ" in printed and Path("pictures/known-deployments.svg").exists()
    page = (ROOT / "docs" / "deployments.md").read_text(encoding="utf-8")
    assert "".join(f"* {one}\n" for one in account_findings.sentences()) in page
    assert account_findings.table() in page and account_findings.differences() in page


@pytest.mark.slow
def test_the_guide_to_semantics_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks("docs/semantics.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert "3565936167303232/3529616082688675" in printed and "two households of one stratum" in printed
    ((_, text),) = [block for block in blocks("docs/semantics.md") if block[0] == "toml"]
    Path("mine.toml").write_text(text)
    run_command("stirred explain rho=1/2 --allocation mine.toml --concern age", monkeypatch)
    assert "one person has another age" in capsys.readouterr().out


@pytest.mark.slow
def test_the_guide_to_topdown_runs_and_its_plan_is_a_plan(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("block,race,adult\n")
    Path("blocks.csv").write_text("county,tract,block\n")
    Path("codes.csv").write_text("block\n150010201001000\n")
    Path("dictionary.json").write_text('{"race": {"values": {"w": "white"}}, "adult": {"values": {"yes": ""}}}')
    Path("dictionary.csv").write_text("name,value,label\nrace,w,white\nadult,yes,\nadult,no,\n")
    run_blocks("docs/topdown.md", {}, monkeypatch)
    assert 'name = "race"' in Path("plan.toml").read_text() and "district" in Path("codes.toml").read_text()
    printed = capsys.readouterr().out
    assert "FAILS" not in printed and "nothing is spent again" in printed and "95% interval" in printed
    ((_, text),) = [block for block in blocks("docs/topdown.md") if block[0] == "toml"]
    Path("example.toml").write_text(text)
    plan = TopDownPlan.from_toml("example.toml")
    assert plan.rho == Fraction(9, 20) and plan.publish[0].name == "persons-county-adult-sex"


def test_the_guide_to_spines_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = Population(persons=2_000, seed=4).tables()
    at = pl.int_range(pl.len())
    districts, places = (at // 30).cast(pl.String), pl.when(at % 5 > 0).then((at // 17).cast(pl.String))
    blocks_and_areas = made.blocks.with_columns(districts=districts, places=places)
    blocks_and_areas.write_csv("blocks.csv")
    data = {"geography": "blocks.csv", "persons": "persons.parquet"}
    made.persons.write_parquet("persons.parquet")
    plan = stirred.topdown.preset("teaching", DOMAINS, chosen_from="public", targets=[{"column": "places"}])
    Path("plan.toml").write_text(plan.reading(data).to_toml())
    run_blocks("docs/spines.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert "Expected standard error of a cell in target areas" in printed and "block_group_optimised" in printed
    written = pl.read_csv("geography.csv", infer_schema=False)
    assert written.columns == [
        *("state", "county", "area", "tract_part", "block_group_part", "block", "tract", "block_group"),
        *("places", "districts"),
    ]
    assert written.height == made.blocks.height


@pytest.mark.slow
def test_the_guide_to_calibration_runs_and_shows_what_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{size},{county},{tenure}" for size in (1, 2) for county in "xyz" for tenure in "or"]
    Path("households.csv").write_text("size,county,tenure\n" + "\n".join(rows * 5) + "\n")
    ((_, text),) = [block for block in blocks("docs/calibrate.md") if block[0] == "toml"]
    Path("swap.toml").write_text(text)
    names: dict[str, object] = {}
    run_blocks("docs/calibrate.md", names, monkeypatch)
    printed = capsys.readouterr().out
    shown = [line for language, text in blocks("docs/calibrate.md") if language == "text" for line in text.splitlines()]
    assert len(shown) == 6 and set(shown) <= set(printed.splitlines())
    assert "epsilon of at most 1.65 " in printed and names["found"].plan.rho < Fraction(1, 10)
    assert TopDownPlan.from_toml("town/better.toml").rho == Fraction("0.1066") * Fraction(5, 6)


@pytest.mark.slow
def test_the_guide_to_relations_runs_and_its_relation_is_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    run_blocks("docs/relations.md", names, monkeypatch)
    assert "True True" in capsys.readouterr().out
    ((_, text),) = [block for block in blocks("docs/relations.md") if block[0] == "toml"]
    plan = names["plan"]
    assert isinstance(plan, TopDownPlan)
    assert RelationSection(**tomllib.loads(text)["relations"][0]) == plan.relations[0]


@pytest.mark.slow
def test_the_guide_to_swapped_data_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks("docs/swapped-data.md", {}, monkeypatch)
    ended = capsys.readouterr()
    assert "intervals contain the truth" in ended.out and "share of tenure" in ended.out
    assert "stirred estimate demo/release --by county,tenure" in ended.err
    assert (tmp_path / "pictures" / "estimates.png").exists() and (tmp_path / "rented.csv").exists()


@pytest.mark.slow
def test_the_guide_to_studies_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    run_blocks("docs/studies.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert "dwellings have another county" in printed and "infinite (no finite epsilon holds" in printed
    assert Path("country/study.csv").exists() and list(Path("pictures").glob("*.png"))


@pytest.mark.slow
def test_the_guide_to_audits_runs_and_finds_the_wrong_swapper(tmp_path, monkeypatch, capsys):
    """With smaller files than by default, for the time they take."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("stirred.lab.audit.swap_audit.DEFAULT_RECORDS", 20_000)
    ((_, text),) = [block for block in blocks("docs/audits.md") if block[0] == "toml"]
    Path("plan.toml").write_text(text)
    run_blocks("docs/audits.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert "BROKEN" not in printed and "True loss:    3.66" in printed and "epsilon is at least 1.028" in printed
    swapper = f"{sys.executable} {ROOT / 'examples/audit/pairwise_swapper.py'} {{input}} {{output}}"
    monkeypatch.setattr(sys, "argv", ["stirred", "audit", "program", "plan.toml", "--command", swapper, "--runs", "12"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 1
    assert "BROKEN" in capsys.readouterr().out


@pytest.mark.slow
def test_the_guide_to_surveys_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    run_blocks("docs/surveys.md", names, monkeypatch)
    assert "FAILS" not in capsys.readouterr().out and Path("advice/weight-cut.png").exists()
    assert len(names["means"]) == 8 and len(names["median"]) == 2


def test_the_guide_to_surveys_has_a_complete_plan_and_names_every_field(tmp_path):
    ((_, text),) = [block for block in blocks("docs/surveys.md") if block[0] == "toml"]
    (tmp_path / "plan.toml").write_text(text)
    plan = SurveyPlan.from_toml(tmp_path / "plan.toml")
    rows = pl.DataFrame({"weight": [100, 300], "area": ["city", "country"], "tenure": ["owned", "rented"], "rooms": 4})
    assert "measured" in str(stirred.check(plan, rows))
    guide = (ROOT / "docs" / "surveys.md").read_text(encoding="utf-8")
    parts = [one for one in vars(sections).values() if isinstance(one, type) and issubclass(one, Section)]
    assert len(parts) > 10
    for part in (SurveyPlan, InputSection, *parts):
        for name in part.model_fields:
            assert re.search(rf"`{name}`|`\[+{name}\]+`", guide), (part.__name__, name)


def test_the_page_on_the_theory_of_surveys_runs(monkeypatch, capsys):
    run_blocks("docs/survey-theory.md", {}, monkeypatch)
    assert "recommended" in capsys.readouterr().out
    found = doctest.testfile(str(ROOT / "docs" / "survey-theory.md"), module_relative=False)
    assert found.attempted >= 8 and not found.failed


def test_the_guide_to_imputation_runs(monkeypatch, capsys):
    names: dict[str, object] = {}
    run_blocks("docs/imputation.md", names, monkeypatch)
    printed = capsys.readouterr().out
    assert "\n6\n2\n1\n" in printed and '"kind": "conditional frequencies"' in printed
    assert (names["completed"] >= 0).all() and (names["completed_income"] >= 0).all()
    assert 350 < names["line"].slope < 650  # 500 by construction; its standard deviation is below 20


def test_the_guide_to_the_context_of_a_release_runs_and_its_section_is_one(tmp_path, monkeypatch, capsys):
    run_blocks("docs/context.md", {}, monkeypatch)
    assert "[context]" in capsys.readouterr().out
    ((_, text),) = [block for block in blocks("docs/context.md") if block[0] == "toml"]
    plan = SwapPlan(swap=["county"], hold=["tenure"], rate="1/2", **tomllib.loads(text))
    assert plan.context is not None and len(plan.context.answers()) == 10


def test_the_guide_to_weights_runs_and_its_table_is_computed():
    found = doctest.testfile(str(ROOT / "docs" / "weights.md"), module_relative=False)
    assert found.attempted >= 8 and not found.failed
    text = (ROOT / "docs" / "weights.md").read_text(encoding="utf-8")
    listed = PublicWeights.listed([(12, 4000), (60, 800), (900, 3)])
    bounds = PublicWeights(12, 900, population=98700, fewest=4803, most=4803)
    assert [(int(weight), count) for weight, count in bounds.worst[0]] == [(900, 46), (228, 1), (12, 4756)]
    for epsilon in ("0.1", "1", "10"):
        few = WeightTrade(bounds, 1, epsilon=epsilon, cell_records=3)
        trades = WeightTrade(listed, 1, epsilon=epsilon), WeightTrade(bounds, 1, epsilon=epsilon), few
        points = [trades[0].at(), *(trade.recommended_cut() for trade in trades)]
        row = " | ".join(f"{point.rule.upper} ({math.ceil(point.cell_error):,})" for point in points)
        assert f"| {epsilon} | {row} |" in text


@pytest.mark.slow
def test_the_guide_to_estimates_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks("docs/estimates.md", {}, monkeypatch)
    assert "two tracts" in capsys.readouterr().out and Path("adults.csv").exists()


def test_the_guide_to_regressions_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    run_blocks("docs/regression.md", names, monkeypatch)
    printed = capsys.readouterr().out
    assert "difference of means of income" in " ".join(printed.split()) and "compared with Suffolk" in printed
    assert [label[0] for label in names["found"].labels][1:] == ["county=Barnstable", "county=Essex", "tenure=rented"]


def test_the_guide_to_limits_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    run_blocks("docs/limits.md", names, monkeypatch)
    printed = capsys.readouterr().out
    assert "at most 0.0272, 0.136 and 0.272" in " ".join(printed.split())
    assert "0.700000" in printed and "2.1" in printed and "one is the stronger" in printed
    assert round(names["others_known"].loss(names["rows"]).epsilon, 9) == 0.7
    assert round(names["all_alike"].loss(names["rows"]).epsilon, 9) == 2.1
    assert {path.name for path in Path("limit-figures").iterdir()} == {
        f"limits-{what}.{ending}" for what in ("tests", "beliefs") for ending in ("png", "svg")
    }


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
def test_the_commands_of_the_page_on_security_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = pl.DataFrame({"size": [1, 1, 2, 2] * 10, "county": list("abbac") * 8, "tenure": list("oororroo") * 5})
    stirred.release(SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate=0.1), rows, out="release")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "release-key"], check=True)
    line = signers_line("release-key", "publisher@your.office")
    Path("publishers.txt").write_text(f"{line}\n", encoding="utf-8")
    run_blocks("docs/security.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert f"  {line}\n" in printed and "FAILS" not in printed
    assert "signed by publisher@your.office" in printed
    ((_, text),) = [block for block in blocks("docs/security.md") if "ssh-keygen -Y verify" in block[1]]
    subprocess.run(text, shell=True, check=True, stdout=subprocess.DEVNULL)


def test_the_reading_guide_lists_what_sentences_carry():
    text = (ROOT / "docs/semantics.md").read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"^\| G(\d+) \|", text, flags=re.M)] == list(range(1, 27))


def test_the_readme_runs_on_a_file_that_fits_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"{state},{size},{county},{tenure}" for state in "AB" for size in (1, 2) for county in "xyz" for tenure in "or"
    ]
    Path("households.csv").write_text("state,size,county,tenure\n" + "\n".join(rows * 5) + "\n")
    for language, text in blocks("README.md"):
        if language == "python":
            exec(compile(text, "README.md", "exec"), {})
    assert Path("release/microdata.csv").exists()


def test_the_page_about_reports_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks("docs/reports.md", {}, monkeypatch)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "side-by-side.html", "page.html", "pages.html"}


def test_the_commands_of_the_readme_exist(tmp_path, monkeypatch, capsys):
    commands = {
        line.split()[1]
        for language, text in blocks("README.md")
        if language == "sh"
        for line in text.splitlines()
        if line.startswith("stirred ")
    }
    assert commands == {
        *("init", "check", "release", "verify", "tabulate", "explain", "compare", "lint", "ledger"),
        *("population", "estimate", "limits", "leftovers", "sign", "responses", "reproduce", "audit", "study"),
        *("advise", "context", "calibrate", "report", "spine"),
    }
    for command in commands:
        run_command(f"stirred {command} --help", monkeypatch)


def test_the_example_plan_is_a_plan(tmp_path):
    text, *parts, flat = [block[1] for block in blocks("docs/plans.md") if block[0] == "toml"]
    (tmp_path / "plan.toml").write_text(text)
    plan = SwapPlan.from_toml(tmp_path / "plan.toml")
    assert plan.rate.denominator == 20
    assert plan.linked[0].input.path == str(tmp_path / "persons.csv")
    assert len(parts) == 4
    households, persons = households_and_persons(300)
    for part in parts:  # each takes the place of fields of the whole plan
        fields = tomllib.loads(text) | tomllib.loads(part)
        for name in ("stirred", "mechanism", *(["rate"] if "rates" in tomllib.loads(part) else [])):
            del fields[name]
        plan = SwapPlan(**fields)
        if plan.rounds:
            data = {"microdata": households, "persons": persons}
            release = stirred.release(plan, data, out=tmp_path / "rounds")
            assert release.specification.fact["rounds"] == 2
            assert all(verdict.holds for verdict in stirred.verify(tmp_path / "rounds"))
    (tmp_path / "flat.toml").write_text(flat)
    assert SwapPlan.from_toml(tmp_path / "flat.toml").flat is not None


def test_the_plan_for_those_who_come_from_sdcmicro_runs_on_a_file_like_theirs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ((_, text),) = [block for block in blocks("docs/coming-from-sdcmicro.md") if block[0] == "toml"]
    Path("plan.toml").write_text(text)
    drawn = random.Random(3)
    rows = []
    for household in range(600):
        places = [drawn.randint(1, 3)]
        for most in (5, 15, 5):
            places.append(places[-1] * 100 + drawn.randint(1, most))
        size, kind, income = drawn.choice([1, 1, 2, 2, 3, 3, 4, 4, 5, 6]), drawn.randint(1, 10), drawn.randint(1, 10)
        for _ in range(size):
            person = (drawn.randint(1, 7), drawn.randint(1, 2), drawn.randint(1, 5))
            rows.append((*places, household, size, *person, kind, income))
    names = "nuts1,nuts2,nuts3,lau2,hid,hsize,ageGroup,gender,national,htype,hincome"
    Path("dat.csv").write_text("\n".join([names, *(",".join(map(str, row)) for row in rows)]) + "\n")
    for command in ("check plan.toml", "release plan.toml --out release", "verify release"):
        run_command(f"stirred {command}", monkeypatch)
    assert "FAILS" not in capsys.readouterr().out
    assert Path("release/flat.csv").read_text().splitlines()[0] == names
    run_command("stirred docs coming-from-sdcmicro", monkeypatch)
    assert "feature by feature" in capsys.readouterr().out


def test_make_demo_and_make_test_are_on_the_readmes_first_screen():
    first = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:20]
    assert any("make demo" in line for line in first) and any("make test" in line for line in first)


@pytest.mark.slow
def test_the_guide_to_noisy_measurement_files_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks("docs/noisy-measurements.md", {}, monkeypatch)
    printed = capsys.readouterr().out
    assert "Nothing was spent" in printed and "FAILS" not in printed and "white-black" in printed
