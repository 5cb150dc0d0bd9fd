"""Study files: what they say, what is wrong with them in words, and the command."""

from __future__ import annotations

import dataclasses
import json
import shutil
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from stirred import errors
from stirred.lab.commands import study as command
from stirred.lab.study import read_study, run_study
from stirred.lab.study.study_file import KINDS, swapper
from stirred.lab.study.swappers import RecordSwap, Targeted2010

PLAN = """\
stirred = 1
mechanism = "swap"
rate = 0.2
match = ["size"]
swap = ["county"]
hold = ["tenure"]
id = "id"
"""
STUDY = """\
stirred_study = 1
draws = 3
seed = 5
tables = [["county", "tenure"], { of = "persons", by = ["county", "sex"] }]

[data]
main = "households"
id = "id"
geography = ["county"]
files = { households = "households.csv", persons = "persons.csv" }
links = { persons = "id" }

[[plan]]
file = "plan.toml"

[[swapper]]
kind = "record-swap"
hierarchy = ["county"]
similar = [["size"]]
k_anonymity = 0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {"id": f"h{number}", "size": number % 3 + 1, "county": "ABC"[number % 7 % 3], "tenure": "or"[number % 5 % 2]}
        for number in range(120)
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "households.csv")
    people = [
        {"id": row["id"], "county": row["county"], "sex": "fm"[one % 2]} for row in rows for one in range(row["size"])
    ]
    pl.DataFrame(people).write_csv(tmp_path / "persons.csv")
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def changed(folder: Path, old: str, new: str) -> Path:
    text = (folder / "study.toml").read_text()
    assert old in text
    (folder / "study.toml").write_text(text.replace(old, new))
    return folder / "study.toml"


def app() -> typer.Typer:
    made = typer.Typer()
    made.command("study")(command)
    return made


def test_a_study_of_files_runs_and_linked_rows_follow(folder):
    found = run_study(read_study(folder / "study.toml"))
    assert [one.name for one in found.contenders] == ["plan", "record-swap"] and found.draws == 3
    assert found["record-swap"].whole("persons by county, sex").cells == 6
    assert found["plan"].whole("persons by county, sex") is None  # the plan does not release persons
    assert not found.generated and str(found).startswith("CONFIDENTIAL")
    assert run_study(read_study(folder / "study.toml"), draws=2).draws == 2


def flat(folder: Path) -> Path:
    """The same study of one flat file, and a plan for it."""
    households, persons = (pl.read_csv(folder / f"{name}.csv") for name in ("households", "persons"))
    persons.drop("county").join(households, on="id").write_csv(folder / "flat.csv")
    linked = '\n[[linked]]\nname = "members"\nflat = true\nlink = "id"\nhold = ["sex"]\n'
    (folder / "flat.toml").write_text(PLAN + linked)
    path = changed(folder, 'files = { households = "households.csv", persons = "persons.csv" }',
                   'files = { persons = "flat.csv" }\nrepeated = ["size", "county", "tenure"]')  # fmt: skip
    changed(folder, 'links = { persons = "id" }\n', "")
    return changed(folder, 'file = "plan.toml"', 'file = "flat.toml"\nname = "plan"') and path


def test_a_flat_file_is_studied_like_its_two_tables(folder):
    (folder / "plan.toml").write_text(PLAN + '\n[[linked]]\nname = "persons"\nlink = "id"\nhold = "rest"\n')
    two = run_study(read_study(folder / "study.toml"))
    one = run_study(read_study(flat(folder)))
    assert one.records == two.records == 120
    for name in ("plan", "record-swap"):
        assert one[name].known.losses == two[name].known.losses and one[name].known.leakage == two[name].known.leakage
    for table in ("households by county, tenure", "persons by county, sex"):
        for name in ("plan", "record-swap"):
            assert one[name].whole(table) == two[name].whole(table), (name, table)


def test_rows_of_a_flat_file_are_counted_by_columns_of_their_record_too(folder):
    flat(folder)
    path = changed(
        folder, '{ of = "persons", by = ["county", "sex"] }', '{ of = "persons", by = ["county", "tenure"] }'
    )
    found = run_study(read_study(path))
    assert all(found[name].whole("persons by county, tenure") for name in ("plan", "record-swap"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "id"\n', "", "name the id of the records"),
        ('main = "households"', 'main = "persons"', "main is no file"),
        ('repeated = ["size", "county", "tenure"]', 'repeated = ["size", "sex"]', "'sex' (in "),
        ('repeated = ["size", "county", "tenure"]', 'repeated = ["size", "street"]', "street"),
    ],
)
def test_what_is_wrong_with_a_flat_file_of_a_study_is_named(folder, old, new, said):
    flat(folder)
    path = changed(folder, old, new)
    with pytest.raises(errors.StirredError) as refusal:
        run_study(read_study(path))
    assert said in str(refusal.value)


def test_a_plan_for_a_flat_file_needs_one(folder):
    read_two = (folder / "study.toml").read_text()
    flat(folder)
    (folder / "study.toml").write_text(read_two)
    with pytest.raises(errors.StirredError, match="Give the study one flat file"):
        run_study(read_study(folder / "study.toml", [folder / "flat.toml"]))


def test_ids_of_linked_tables_are_named_under_data_or_in_a_plan(folder):
    pl.read_csv(folder / "persons.csv").with_row_index("person_id").write_csv(folder / "persons.csv")
    path = folder / "study.toml"
    assert run_study(read_study(path))["record-swap"].known.leakage.unique == 1  # every person is told from all others
    linked = '\n[[linked]]\nname = "persons"\nlink = "id"\nid = "person_id"\nhold = ["sex"]\n'
    (folder / "plan.toml").write_text(PLAN + linked)
    by_plan = run_study(read_study(path))["record-swap"].known.leakage
    (folder / "plan.toml").write_text(PLAN)
    changed(folder, 'links = { persons = "id" }', 'links = { persons = "id" }\nids = { persons = "person_id" }')
    assert run_study(read_study(path))["record-swap"].known.leakage == by_plan and by_plan.unique < 1


def test_further_plans_join_under_the_name_of_their_file(folder):
    shutil.copy(folder / "plan.toml", folder / "second.toml")
    assert list(read_study(folder / "study.toml", [folder / "second.toml"]).contenders) == [
        "plan", "record-swap", "second",
    ]  # fmt: skip
    with pytest.raises(errors.StudyError, match="'plan' is used twice"):
        read_study(folder / "study.toml", [folder / "plan.toml"])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("stirred_study = 1", "stirred_study = 2", "must begin with stirred_study = 1"),
        ("draws = 3", 'draws = "many"', "draws is a whole number"),
        ("draws = 3", "draw = 3", "the field 'draw' is not known"),
        ('kind = "record-swap"', 'kind = "card-trick"', "the unknown kind 'card-trick'; known are 'targeted-2010'"),
        ("k_anonymity = 0", "k_anonymity = 0.5", "'k_anonymity' has a value of another type"),
        ("k_anonymity = 0", "anonymity = 3", "'anonymity' is not known"),
        ('similar = [["size"]]\n', "", "'similar' is missing"),
        ("k_anonymity = 0", "swaprate = 1.5", "swaprate is 1.5"),
        ('file = "plan.toml"', 'path = "plan.toml"', "the field 'path' is not known"),
        ('file = "plan.toml"', "", "plan 1 names no file"),
        ('[["county", "tenure"]', '["county"', "tables is a list of column names"),
        ("links = {", "ties = {", "the field 'ties' is not known"),
        ("[data]", "[datum]", "the field 'datum' is not known"),
        ("seed = 5", "seed = -5", "seed is a whole number"),
    ],
)
def test_what_is_wrong_with_a_study_file_is_named(folder, old, new, said):
    path = changed(folder, old, new)
    with pytest.raises(errors.StudyError) as refusal:
        read_study(path)
    assert refusal.value.kind == "study-file" and said in refusal.value.problem


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ('"tenure"]', '"rooms"]', "study-column"),
        ('similar = [["size"]]', 'similar = [["rooms"]]', "study-part"),
        ('geography = ["county"]', 'geography = ["place"]', "study-column"),
        ('persons = "persons.csv"', 'persons = "nobody.csv"', "no-such-input"),
        ('main = "households"', 'main = "houses"', "unknown-choice"),
        ('id = "id"\n', 'id = "id"\nids = { persons = "person" }\n', "study-column"),
        ('id = "id"\n', 'id = "id"\nids = { people = "id" }\n', "unknown-choice"),
        ('id = "id"\n', 'id = "id"\nids = ["persons"]\n', "study-file"),
        ('links = { persons = "id" }', "links = { persons = 3 }", "study-file"),
        ('links = { persons = "id" }', 'links = { persons = "sex" }', "linked-row-without-record"),
        ('id = "id"\n', "", "study-parameter"),
    ],
)
def test_what_does_not_fit_the_data_is_named(folder, old, new, kind):
    path = changed(folder, old, new)
    with pytest.raises(errors.StirredError) as refusal:
        run_study(read_study(path))
    assert refusal.value.kind == kind


def test_files_that_are_missing_or_no_toml_are_named(folder):
    with pytest.raises(errors.StudyError, match="cannot be read"):
        read_study(folder / "nothing.toml")
    (folder / "broken.toml").write_text("a = [")
    with pytest.raises(errors.StudyError, match="not TOML"):
        read_study(folder / "broken.toml")
    with pytest.raises(errors.StirredError) as refusal:
        read_study(changed(folder, '"plan.toml"', '"gone.toml"'))
    assert refusal.value.kind == "plan-unreadable"


def test_a_plan_that_stops_is_named_with_its_reason(folder):
    (folder / "plan.toml").write_text(PLAN.replace("rate = 0.2", "rate = 0.001"))
    with pytest.raises(errors.StudyError, match="'plan' cannot be studied") as refusal:
        run_study(read_study(folder / "study.toml"))
    assert refusal.value.kind == "study-part"


def test_generated_data_take_their_own_options_only(folder):
    path = changed(folder, STUDY[STUDY.index("[data]") : STUDY.index("[[plan]]")], '[data]\ngenerated = "moon"\n')
    with pytest.raises(errors.StudyError, match="no generated dataset 'moon'"):
        run_study(read_study(path))
    changed(folder, 'generated = "moon"', 'generated = "country"\nscale = 2.0')
    with pytest.raises(errors.StudyError, match="'scale' is not known"):
        run_study(read_study(path))


def test_every_kind_can_be_written_and_lists_become_tuples():
    made = swapper("targeted-2010", {"areas": ["county"], "match": ["size"], "rate": 0.1})
    assert made == Targeted2010(areas=("county",), match=("size",), rate=0.1)
    assert swapper("record-swap", {"hierarchy": ["a"], "similar": [["b"], ["c"]]}) == RecordSwap(
        hierarchy=("a",), similar=(("b",), ("c",))
    )
    own = {"match": ["m"], "swap": ["s"], "rate": 0.1}
    more = {
        "permutation-by-risk": {"rare_on": ["h"], "rare_rate": 0.5},
        "permutation-frozen": {"imputed": "i"},
        "permutation-no-vacuous": {},
        "permutation-across": {"across": 0.1},
        "permutation-perturbed": {"columns": ["h"], "probability": 0.1, "when": "before"},
    }
    assert set(more) | {"targeted-2010", "record-swap"} == set(KINDS)
    for kind, parameters in more.items():
        assert swapper(kind, own | parameters).match == ("m",)
    with pytest.raises(errors.StirredError, match="no kind of swapper"):
        swapper("card-trick", {})


def documented() -> dict[str, dict[str, str]]:
    """The defaults of the table of parameters in the documentation, by kind; those of all variants are in each."""
    text = (Path(__file__).parents[3] / "docs" / "studies.md").read_text()
    lines = text.split("| kind | parameter | meaning | default |\n|---|---|---|---|\n")[1].split("\n\n")[0]
    found: dict[str, dict[str, str]] = {}
    kind = ""
    for line in lines.splitlines():
        named, parameter, meaning, default = (part.strip() for part in line.strip("|").split("|"))
        kind = named.strip("`") or kind
        assert meaning
        found.setdefault(kind, {})[parameter.strip("`")] = default
    shared = found.pop("all `permutation-...")
    return {one: {**(shared if one.startswith("permutation") else {}), **found.get(one, {})} for one in KINDS} | {
        one: parameters for one, parameters in found.items() if one not in KINDS
    }


def as_written(default: object) -> str:
    """A default of a class as a study file would write it."""
    if default is None:
        return "none"
    return json.dumps(float(default) if isinstance(default, Fraction) else default)


def test_the_documentation_has_every_parameter_with_its_default():
    told = documented()
    assert set(told) == set(KINDS)
    for kind, made in KINDS.items():
        assert set(told[kind]) == {one.name for one in dataclasses.fields(made)}, kind
        for one in dataclasses.fields(made):
            if told[kind][one.name] != "required":
                assert told[kind][one.name] == as_written(one.default), (kind, one.name)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_documentation_calls_required_is_and_nothing_else(kind):
    given = {
        "areas": ["a"], "match": ["m"], "hierarchy": ["a"], "similar": [["m"]], "swap": ["a"], "rate": 0.1,
        "rare_on": ["h"], "imputed": "i", "columns": ["h"],
    }  # fmt: skip
    needed = {name: given[name] for name, default in documented()[kind].items() if default == "required"}
    assert swapper(kind, needed).places == ("a",)
    for name in needed:
        with pytest.raises(errors.StudyError, match=name):
            swapper(kind, {other: value for other, value in needed.items() if other != name})


def test_messages_are_sentences_and_list_the_parameters(folder):
    with pytest.raises(errors.StudyError) as refusal:
        read_study(changed(folder, 'similar = [["size"]]\n', ""))
    assert refusal.value.problem.endswith(
        "swapper 'record-swap': The parameter 'similar' is missing. Give it. Its parameters: 'hierarchy', "
        "'similar', 'swaprate', 'k_anonymity', 'risk_variables', 'carry_along' and 'unit'."
    )
    with pytest.raises(errors.StudyError) as refusal:
        read_study(changed(folder, "k_anonymity = 0", 'similar = [["size"]]\nk_anonymity = -1'))
    assert refusal.value.problem.endswith("Give 0 or more.") and ".." not in refusal.value.problem
    with pytest.raises(errors.StudyError, match=r"^The parameters unique_in, outside and nearby name 'block'\."):
        swapper("targeted-2010", {"areas": ["county"], "match": ["size"], "nearby": "block"})


def test_a_plan_in_place_of_a_study_is_told_so(folder):
    with pytest.raises(errors.StudyError) as refusal:
        read_study(folder / "plan.toml")
    said = "plan.toml is a plan, not a study; name it under [[plan]] or after the study."
    assert refusal.value.problem.endswith(said)


def test_a_study_of_nothing_is_told_so(folder):
    (folder / "study.toml").write_text('stirred_study = 1\n[data]\ngenerated = "massachusetts-1940"\nscale = 0.001\n')
    with pytest.raises(errors.StudyError, match="names no plan and no swapper"):
        run_study(read_study(folder / "study.toml"))


# -- the command ---------------------------------------------------------------------------------------------


def test_the_command_prints_the_table_and_writes_what_is_asked_for(folder):
    out, pictures = folder / "out", folder / "pictures"
    words = [str(folder / "study.toml"), "--draws", "2", "--out", str(out), "--figures", str(pictures)]
    ended = CliRunner().invoke(app(), words)
    assert ended.exit_code == 0, ended.output
    assert ended.stdout.startswith("CONFIDENTIAL") and "record-swap" in ended.stdout
    assert sorted(path.name for path in out.iterdir()) == [
        "CONFIDENTIAL.txt", "study.csv", "study.json", "study.txt",
    ]  # fmt: skip
    assert (pictures / "study.png").exists()
    again = CliRunner().invoke(app(), words)
    assert isinstance(again.exception, errors.StirredError) and again.exception.kind == "output-exists"


def test_the_command_prints_json(folder):
    ended = CliRunner().invoke(app(), [str(folder / "study.toml"), "--json"])
    assert json.loads(ended.stdout)["draws"] == 3
