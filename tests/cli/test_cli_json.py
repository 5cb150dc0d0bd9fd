"""``--json``: every command has it, and docs/json.md lists the fields that commands print."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import typer

from stirred.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
WITHOUT = {"init", "plan upgrade", "demo"}
"""Commands without ``--json``; the page says why."""
TABLES = {
    re.sub(r"[`*]", "", head): re.findall(r"^\| `(\w+)` \| (.+) \|$", text, flags=re.M)
    for head, text in re.findall(r"^##+ (.+)\n((?:(?!^##).*\n?)*)", PAGE, flags=re.M)
}
AUDIT = "stirred audit plan, audit program, audit release, audit noise"
STANDING, ENTRY = "stirred ledger init, ledger total", "stirred ledger add, ledger list"
MAKING = "stirred population, generate-survey, noisy-measurements"
RUNS = [  # a folder, what is typed, and the tables of the page that list its fields together
    ("swap", "--version", "stirred --version"),
    ("swap", "check plan.toml --by county,tenure --rates 0.01",
     "stirred check|Further fields of stirred check for a swap"),
    ("topdown", "check plan.toml", "stirred check|Further fields of stirred check for TopDown"),
    ("survey", "check survey.toml", "stirred check|Further fields of stirred check for a survey"),
    ("swap", "calibrate plan.toml --target 'epsilon <= 3'",
     "stirred calibrate|Further fields of stirred calibrate for a swap"),
    ("topdown", "calibrate plan.toml --target 'error of total at county <= 50'",
     "stirred calibrate|Further fields of stirred calibrate for TopDown"),
    ("swap", "calibrate rho --target 'rho <= 1'",
     "stirred calibrate|Further fields of stirred calibrate for a number alone"),
    ("swap", "report rho=1 --out page.html", "stirred report"),
    ("swap", "release plan.toml --out again --ledger census.ledger", "stirred release"),
    ("topdown", "release plan.toml --out again", "stirred release"),
    ("swap", "sign release --key release-key", "stirred sign"),
    ("swap", "verify release", "stirred verify"),
    ("swap", "tabulate release --by county", "stirred tabulate"),
    ("swap", "estimate release --by county,tenure", "stirred estimate"),
    ("topdown", "estimate release --level county --nonnegative", "stirred estimate"),
    ("survey", "estimate release", "stirred estimate"),
    ("swap", "compare release das-2020-overall", "stirred compare"),
    ("swap", "explain release", "stirred explain"),
    ("swap", "explain rho=1", "stirred explain"),
    ("swap", "limits --epsilon 1 --records 10", "stirred limits"),
    ("swap", "responses --yes 45 --answers 100 --keep 0.6", "stirred responses"),
    ("swap", "lint das-2020-overall", "stirred lint"),
    ("swap", "study study.toml", "stirred study"),
    ("swap", "reproduce thesis/table-3.2", "stirred reproduce"),
    ("swap", "deployments", "stirred deployments"),
    ("swap", "deployments google-mobility-2020", "stirred deployments with a name"),
    ("swap", "deployments das-2020-overall", "stirred deployments with a name"),
    ("swap", "deployments psa-2020-county-tract-p05", "stirred deployments with a name"),
    ("swap", "context", "stirred context"),
    ("swap", "context open-data", "stirred context with a mode"),
    ("swap", "audit release release --input households.csv", AUDIT),
    ("swap", "audit noise draws.txt --law gaussian --sigma2 10", AUDIT),
    ("swap", "audit exact --held 10,10 --swapped 5,5,10 --rate 0.05", "stirred audit exact"),
    ("swap", "ledger init new.ledger --dataset name", STANDING),
    ("swap", "ledger total census.ledger", STANDING),
    ("swap", "ledger add census.ledger earlier --what words", ENTRY),
    ("swap", "ledger list census.ledger", ENTRY),
    ("swap", "ledger verify census.ledger", "stirred ledger verify"),
    ("swap", "ledger withdraw census.ledger release --reason words", "stirred ledger withdraw"),
    ("swap", "ledger withdrawn census.ledger", "stirred ledger withdrawn"),
    ("swap", "registry export das-2020-overall --author A", "stirred registry export"),
    ("swap", "leftovers .", "stirred leftovers"),
    ("swap", "docs", "stirred docs"),
    ("swap", "docs plans", "stirred docs with a page"),
    ("topdown", "spine --blocks blocks.csv --targets places", "stirred spine"),
    ("survey", "advise survey.toml", "stirred advise"),
    ("survey", "generate-survey made --persons 4000", MAKING),
]  # fmt: skip


def named(group, before: str = "") -> dict[str, object]:
    """Every command that does something, by its name, such as "ledger init"."""
    found = {}
    for name, one in group.commands.items():
        found |= named(one, f"{before}{name} ") if hasattr(one, "commands") else {f"{before}{name}": one}
    return found


COMMANDS = named(typer.main.get_command(app.build()))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json_or_the_page_says_why_not(name):
    offered = any("--json" in parameter.opts for parameter in COMMANDS[name].params)
    assert offered != (name in WITHOUT)
    if name in WITHOUT:
        assert f"`{name}`" in PAGE.partition("No `--json`:")[2].partition("\n\n")[0]


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT))
def test_the_page_has_a_heading_for_every_command(name):
    heads = re.findall(r"^## .+$", PAGE, flags=re.M)
    assert any(f"`stirred {name}`" in head or f"`{name}`" in head for head in heads)


@pytest.mark.parametrize(("place", "typed", "tables"), RUNS, ids=[f"{place}: {typed}" for place, typed, _ in RUNS])
def test_the_page_lists_the_fields_that_a_command_prints(place, typed, tables, files, command):
    if typed.startswith("sign") and shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    files(place)
    ended = command(*shlex.split(typed), "--json")
    assert ended.code == 0, ended.err
    printed = json.loads(ended.out)
    said = [row for table in tables.split("|") for row in TABLES[table]]
    needed = {name for name, meaning in said if not meaning.startswith("*sometimes:*")}
    for one in printed if isinstance(printed, list) else [printed]:
        assert needed <= set(one) <= {name for name, _ in said}
        for name, meaning in said:
            if name.startswith("stirred_"):
                assert str(one[name]) == meaning  # the version of the form


@pytest.mark.parametrize("head", [head for head, rows in TABLES.items() if rows and not head.startswith("Further")])
def test_every_form_begins_with_its_version(head):
    first, meaning = TABLES[head][0]
    if head == "stirred registry export":  # the form is the registry's
        assert not any(name.startswith("stirred_") for name, _ in TABLES[head])
    else:
        assert first.startswith("stirred_") and meaning.isdigit()


def test_every_element_of_a_list_has_the_version_and_an_empty_list_has_none(files, as_json):
    files("swap")
    assert {one["stirred_verify"] for one in as_json("verify", "release")} == {2}
    assert {one["stirred_ledger_verify"] for one in as_json("ledger", "verify", "census.ledger")} == {1}
    as_json("ledger", "init", "new.ledger", "--dataset", "name")
    assert as_json("ledger", "list", "new.ledger") == []


def test_every_table_of_the_page_is_compared_with_a_command():
    compared = {table for _, _, tables in RUNS for table in tables.split("|")}
    assert {head for head, rows in TABLES.items() if rows} == compared


def test_an_imported_record_is_a_specification(files, as_json):
    files("swap")
    assert "stirred_specification" in as_json("registry", "import", "record.yaml")


def test_the_rows_of_a_table_are_those_of_the_csv(files, command, as_json):
    files("swap")
    found = as_json("tabulate", "release", "--by", "county,tenure")
    lines = command("tabulate", "release", "--by", "county,tenure").out.splitlines()
    assert lines == [",".join(found["columns"]), *(",".join(map(str, row.values())) for row in found["rows"])]
    assert sum(row["count"] for row in found["rows"]) == 240


def test_a_recorded_release_names_its_ledger_and_seal(files, as_json):
    files("swap")
    found = as_json("release", "plan.toml", "--out", "again", "--ledger", "census.ledger")
    assert found["folder"] == "again" and found["ledger"] == "census.ledger" and Path("again").is_dir()
    assert as_json("ledger", "total", "census.ledger")["last_seal"] == found["last_seal"]
    assert as_json("release", "plan.toml", "--out", "more")["last_seal"] is None


def test_json_before_a_command_is_refused_with_where_to_put_it(command):
    ended = command("--json", "docs")
    assert ended.code == 2 and "put it after the command" in ended.said


def test_versions_are_told_of_every_required_library_and_every_form(command, as_json):
    import stirred
    from stirred.releases.folder.documents import PROGRAMS

    found = as_json("--version")
    assert found["stirred"] == stirred.__version__
    assert {"numpy", "numba", "pyarrow", "scipy", "polars"} <= set(found["libraries"])
    assert all(found["libraries"].values())
    assert set(PROGRAMS) - {"stirred"} <= set(found["libraries"])
    assert {"plan", "certificate", "specification", "ledger", "explanation"} <= set(found["formats"])
    first, *others = command("--version").out.splitlines()
    assert first == stirred.__version__
    assert any(line.split() == ["numpy", found["libraries"]["numpy"]] for line in others)


def test_the_commands_of_the_page_run(files, command):
    files("swap")
    ((_, lines),) = re.findall(r"```(sh)\n(.*?)```", PAGE, flags=re.S)
    for line in lines.splitlines():
        ended = command(*shlex.split(line)[1:])
        assert ended.code == 0 and json.loads(ended.out), line
