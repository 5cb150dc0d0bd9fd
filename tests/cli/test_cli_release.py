"""Release, verify, tabulate and demo from the command line: what is published, and what tampering does to it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import stat
from collections import Counter
from pathlib import Path

import pytest

from stirred.releases.folder.atomic import appearing
from stirred.releases.folder.manifest import write_manifest

ROWS = 90
PLAN = """\
stirred = 1
mechanism = "swap"
unit = "household"
rate = 0.5
chosen_from = "public"
match = ["size"]
swap = ["county"]
hold = ["tenure"]
id = "hhid"
tables = [["county", "tenure"]]
saturated = true
[input]
path = "households.csv"
[[linked]]
name = "persons"
link = "hhid"
id = "pid"
hold = ["age"]
[linked.input]
path = "persons.csv"
"""


def write_csv(path: Path, header: str, rows: list[list[object]]) -> None:
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def plan(tmp_path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    households = [[f"h{i}", 1 + i % 2, "abc"[i // 2 % 3], ("own", "rent")[i // 5 % 2]] for i in range(ROWS)]
    persons = [[f"p{i}-{j}", f"h{i}", "abc"[i // 2 % 3], 20 + (3 * i + j) % 7] for i in range(ROWS) for j in range(2)]
    write_csv(folder / "households.csv", "hhid,size,county,tenure", households)
    write_csv(folder / "persons.csv", "pid,hhid,county,age", persons)
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    return folder / "plan.toml"


@pytest.fixture
def out(plan, tmp_path, command) -> Path:
    """A release."""
    assert command("release", plan, "--out", tmp_path / "out").code == 0
    return tmp_path / "out"


def table_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# -- release -----------------------------------------------------------------------------------------------------


def test_a_release_prints_its_epsilon_and_what_to_do_next(plan, tmp_path, command):
    ended = command("release", plan, "--out", tmp_path / "out")
    assert (ended.code, ended.err) == (0, "")
    assert f"Released to {tmp_path / 'out'}" in ended.out
    # Theorem 3.2.4: two strata of 45 at rate 1/2, ln 46 = 3.8286, rounded up
    assert "epsilon 3.83 per household, given the invariants" in ended.out
    assert "differ in 2 records" in ended.out
    assert f"Next: stirred verify {tmp_path / 'out'}" in ended.out


def test_findings_are_printed_with_the_release(plan, tmp_path, command):
    plan.write_text(PLAN.replace('chosen_from = "public"\n', ""), encoding="utf-8")
    ended = command("release", plan, "--out", tmp_path / "out")
    assert "finding parameters-unexplained: " in ended.out
    assert "parameters-unexplained" in (tmp_path / "out" / "certificate.json").read_text(encoding="utf-8")


def test_a_release_keeps_the_invariants_and_the_households_of_persons(out, plan):
    before = table_of((plan.parent / "households.csv").read_text(encoding="utf-8"))
    after = table_of((out / "microdata.csv").read_text(encoding="utf-8"))
    for columns in (("size", "county"), ("size", "tenure")):
        assert Counter(tuple(row[name] for name in columns) for row in after) == Counter(
            tuple(row[name] for name in columns) for row in before
        )
    assert [row["hhid"] for row in after] == [str(1 + i) for i in range(ROWS)]
    county = {row["hhid"]: row["county"] for row in after}
    persons = table_of((out / "persons.csv").read_text(encoding="utf-8"))
    assert [row["hhid"] for row in persons] == [str(1 + i // 2) for i in range(2 * ROWS)]
    assert all(row["county"] == county[row["hhid"]] for row in persons)


def test_true_against_released_tables_go_to_a_private_folder_of_their_own(plan, tmp_path, command):
    own = tmp_path / "own"
    ended = command("release", plan, "--out", tmp_path / "out", "--confidential", own)
    assert "confidential. Drawing again and choosing the best draw voids the guarantee." in ended.said
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in own.rglob("*")}
    assert modes == {True: 0o700, False: 0o600}
    assert (own / "CONFIDENTIAL.txt").read_text(encoding="utf-8").startswith("CONFIDENTIAL")
    rows = table_of((own / "tables" / "county-by-tenure.csv").read_text(encoding="utf-8"))
    assert sum(int(row["true_count"]) for row in rows) == sum(int(row["released_count"]) for row in rows) == ROWS
    for path in (tmp_path / "out").rglob("*"):
        assert not path.is_file() or "true_count" not in path.read_text(encoding="utf-8")


def test_a_killed_run_is_named_by_the_next_one_and_a_run_at_work_is_not(plan, tmp_path, command):
    left = tmp_path / ".out.stirred-unfinished-abc"
    left.mkdir()
    with appearing(tmp_path / "other") as at_work:
        ended = command("release", plan, "--out", tmp_path / "out")
        assert at_work.name not in ended.said
    assert ended.code == 0
    assert f"{left} was left by a run that was killed" in ended.err


NAMES = ["count", "records", "number_of_records", "true_count", "released_count", "errors", "CONFIDENTIAL"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_column_may_be_called_what_the_package_calls_its_own(name, plan, tmp_path, command):
    data = plan.parent / "households.csv"
    data.write_text(data.read_text(encoding="utf-8").replace("tenure", name), encoding="utf-8")
    plan.write_text(PLAN.replace("tenure", name), encoding="utf-8")
    out, own = tmp_path / "out", tmp_path / "own"
    assert command("release", plan, "--out", out, "--confidential", own).code == 0
    assert command("verify", out).code == 0
    ended = command("tabulate", out, "--by", name)
    assert ended.code == 0
    assert len(ended.out.splitlines()) == 3
    plan.write_text(PLAN.replace('["county", "tenure"]', f'["{name}"]').replace("tenure", name), encoding="utf-8")
    assert command("release", plan, "--out", tmp_path / "out2", "--confidential", tmp_path / "own2").code == 0
    assert len(list((tmp_path / "own2").iterdir())) == 5


@pytest.mark.parametrize("tables", ["[[]]", '[["county", "county"]]'])
def test_a_table_by_nothing_or_by_a_column_twice_is_refused(tables, plan, tmp_path, command):
    plan.write_text(PLAN.replace('[["county", "tenure"]]', tables), encoding="utf-8")
    assert command("check", plan).code == 2
    assert command("release", plan, "--out", tmp_path / "out").code == 2
    assert not (tmp_path / "out").exists()


def test_a_linked_table_cannot_take_the_file_of_the_saturated_one(plan, tmp_path, command):
    plan.write_text(PLAN.replace('name = "persons"', 'name = "saturated"'), encoding="utf-8")
    assert command("release", plan, "--out", tmp_path / "out").code == 2
    assert not (tmp_path / "out").exists()


# -- verify ------------------------------------------------------------------------------------------------------


def edit_json(path: Path, change) -> None:
    fields = json.loads(path.read_text(encoding="utf-8"))
    change(fields)
    path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def renew_manifest(out: Path) -> None:
    (out / "manifest.json").unlink()
    write_manifest(out)


def replace_once(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_an_untouched_release_verifies(out, command):
    ended = command("verify", out)
    assert (ended.code, ended.err) == (0, "")
    assert "FAILS" not in ended.out
    assert "holds  recounted and equal: the number of rows of microdata by size and county" in ended.out
    findings = json.loads(command("verify", out, "--json").out)
    first, *lines = ended.out.splitlines()
    assert first.startswith("Everything was compared, and nothing contradicts. ") and len(findings) == len(lines)
    assert all(finding["holds"] for finding in findings)
    assert {finding["state"] for finding in findings} == {"holds", "note"}


@pytest.mark.parametrize(
    "file", ["microdata.csv", "persons.csv", "saturated.csv", "tables/county-by-tenure.csv", "certificate.json"]
)
def test_a_file_that_is_not_the_released_one_fails(file, out, command):
    with (out / file).open("a", encoding="utf-8") as text:
        text.write("\n")
    ended = command("verify", out)
    assert ended.code == 1
    assert ended.out.startswith("Contradicted: 1 of the lines below, those with FAILS.\n")
    assert f"FAILS  {file} is not the file that was released" in ended.out


def test_a_missing_file_and_an_extra_file_fail(out, command):
    (out / "saturated.csv").unlink()
    (out / "notes.txt").touch()
    ended = command("verify", out)
    assert ended.code == 1
    assert "saturated.csv is missing; notes.txt is not in the manifest" in ended.out
    assert json.loads(command("verify", out, "--json").out)[0]["holds"] is False


def change_a_county(out: Path) -> None:
    lines = (out / "microdata.csv").read_text(encoding="utf-8").splitlines()
    number, size, county, tenure = lines[1].split(",")
    lines[1] = ",".join([number, size, {"a": "b", "b": "c", "c": "a"}[county], tenure])
    (out / "microdata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def drop_the_last_row(out: Path) -> None:
    lines = (out / "microdata.csv").read_text(encoding="utf-8").splitlines()
    (out / "microdata.csv").write_text("\n".join(lines[:-1]) + "\n", encoding="utf-8")


def lower_epsilon(fields: dict) -> None:
    fields["specification"]["budget"]["value"] = 0.1


def claim_another_rate(fields: dict) -> None:
    fields["plan"]["rate"] = "9/10"
    fields["plan_sha256"] = hashlib.sha256(json.dumps(fields["plan"], sort_keys=True).encode()).hexdigest()


TAMPERING = {
    "a county": (
        change_a_county,
        "FAILS  not so: recounted and equal: the number of rows of microdata by size and county",
    ),
    "a held value": (
        lambda out: replace_once(out / "microdata.csv", "own", "rent"),
        "FAILS  not so: recounted and equal: the number of rows of microdata by size and tenure",
    ),
    "a new held value": (
        lambda out: replace_once(out / "microdata.csv", "rent", "squat"),
        "FAILS  not so: recounted and equal: the number of rows of microdata by size and tenure",
    ),
    "a person's age": (
        lambda out: replace_once(out / "persons.csv", ",26\n", ",27\n"),
        "FAILS  not so: recounted and equal: the number of rows of persons by size and age",
    ),
    "a record less": (drop_the_last_row, "FAILS"),
    "an id": (
        lambda out: replace_once(out / "microdata.csv", "\n2,", "\n999,"),
        "FAILS  not so: microdata: 'hhid' numbers",
    ),
    "a column's name": (lambda out: replace_once(out / "microdata.csv", "tenure", "tenor"), "FAILS"),
    "epsilon": (
        lambda out: edit_json(out / "certificate.json", lower_epsilon),
        "FAILS  the certificate states an epsilon of 0.100000; recomputed from the released data it is 3.828641",
    ),
    "the rate": (
        lambda out: edit_json(out / "certificate.json", claim_another_rate),
        "FAILS  the certificate states an epsilon of 3.828641; ",
    ),
    "the plan": (
        lambda out: edit_json(out / "certificate.json", lambda fields: fields["plan"].update(unit="person")),
        "FAILS  not so: the plan has the hash in the certificate",
    ),
    "the rows that the dictionary counts": (
        lambda out: edit_json(out / "data_dictionary.json", lambda fields: fields["tables"][0].update(rows=91)),
        "FAILS  not so: microdata has 91 rows",
    ),
    "epsilon in the specification alone": (
        lambda out: edit_json(out / "specification.json", lambda fields: fields["budget"].update(value=0.1)),
        "FAILS",
    ),
    "a published table": (
        lambda out: replace_once(out / "tables" / "county-by-tenure.csv", "a,own,", "a,own,1"),
        "FAILS",
    ),
    "the saturated table": (lambda out: replace_once(out / "saturated.csv", "\n", "\n1,a,own,7\n"), "FAILS"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("tamper", "said"), TAMPERING.values(), ids=TAMPERING.keys())
def test_tampering_shows_even_when_the_manifest_is_written_anew(tamper, said, out, command):
    tamper(out)
    renew_manifest(out)
    ended = command("verify", out)
    assert ended.code == 1
    assert ended.err == ""
    assert said in ended.out
    assert "holds  the files are those of the manifest" in ended.out


@pytest.mark.parametrize("file", ["manifest.json", "certificate.json", "data_dictionary.json"])
@pytest.mark.parametrize("text", [None, "", "{}", "[1]", "\xff"])
def test_a_release_without_its_documents_is_none(file, text, out, command):
    (out / file).unlink()
    if text is not None:
        (out / file).write_text(text, encoding="latin-1")
    ended = command("verify", out)
    assert ended.code == 2
    assert "is not a complete release" in ended.err


def test_a_folder_that_is_no_release_is_refused(tmp_path, command):
    for folder in (tmp_path, tmp_path / "missing"):
        for words in (["verify", folder], ["tabulate", folder, "--by", "county"]):
            ended = command(*words)
            assert ended.code == 2
            assert "is not a complete release" in ended.err


def test_a_certificate_that_lacks_its_parts_fails_or_is_refused_in_words(out, command):
    edit_json(out / "certificate.json", lambda fields: fields.pop("plan"))
    renew_manifest(out)
    ended = command("verify", out)
    assert ended.code in (1, 2)
    assert "unexpected" not in ended.err


# -- tabulate ----------------------------------------------------------------------------------------------------


def test_a_table_is_printed_as_csv_that_counts_the_released_rows(out, command):
    ended = command("tabulate", out, "--by", "county, tenure")
    assert ended.code == 0 and ended.err.startswith("Note: the swap weakened how 'county' and 'tenure' go together.")
    assert f"stirred estimate {out} --by county,tenure" in ended.err
    released = table_of((out / "microdata.csv").read_text(encoding="utf-8"))
    expected = Counter((row["county"], row["tenure"]) for row in released)
    found = {(row["county"], row["tenure"]): int(row["count"]) for row in table_of(ended.out)}
    assert found == dict(expected)
    assert ended.out == (out / "tables" / "county-by-tenure.csv").read_text(encoding="utf-8")


def test_a_table_is_written_to_a_file_once(out, tmp_path, command):
    file = tmp_path / "table.csv"
    assert command("tabulate", out, "--by", "county", "--out", file).out == ""
    written = file.read_text(encoding="utf-8")
    assert written == command("tabulate", out, "--by", "county").out
    again = command("tabulate", out, "--by", "tenure", "--out", file)
    assert again.code == 2
    assert f"{file} exists already." in again.err
    assert file.read_text(encoding="utf-8") == written
    assert command("tabulate", out, "--by", "county", "--out", tmp_path / "missing" / "t.csv").code == 2


def test_a_table_of_persons_may_use_the_columns_of_their_household(out, command):
    ended = command("tabulate", out, "--table", "persons", "--by", "tenure,age")
    assert ended.code == 0
    tenure = {row["hhid"]: row["tenure"] for row in table_of((out / "microdata.csv").read_text(encoding="utf-8"))}
    persons = table_of((out / "persons.csv").read_text(encoding="utf-8"))
    expected = Counter((tenure[row["hhid"]], row["age"]) for row in persons)
    assert {(row["tenure"], row["age"]): int(row["count"]) for row in table_of(ended.out)} == dict(expected)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--by", "income"], "no column 'income'"),
        (["--by", "county,age"], "no column 'age'"),
        (["--by", "hhid"], "no column 'hhid'"),
        (["--by", "county", "--table", "animals"], "no table 'animals'"),
        (["--table", "persons", "--by", "pid,income"], "no column 'pid' and 'income'"),
    ],
)
def test_columns_that_the_release_does_not_have_are_refused(words, said, out, command):
    ended = command("tabulate", out, *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_column_named_twice_counts_once_and_no_column_gives_the_total(out, command):
    assert command("tabulate", out, "--by", "county,county").out == command("tabulate", out, "--by", "county").out
    assert command("tabulate", out, "--by", "").out == f"count\n{ROWS}\n"


# -- demo --------------------------------------------------------------------------------------------------------


def test_the_demonstration_prints_the_published_table_and_leaves_a_release_that_verifies(
    tmp_path, command, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("stirred-demo-swap").mkdir()
    ended = command("demo", "swap")
    assert (ended.code, ended.err) == (0, "")
    assert "Table 3.2 prints 12.48" in ended.out
    assert "epsilon = 12.48" in ended.out
    assert "Suffolk" in ended.out
    assert "Mean absolute percentage error: published run" in ended.out
    assert "FAILS" not in ended.out
    assert "stirred-demo-swap-2 holds" in ended.out
    assert list(Path("stirred-demo-swap").iterdir()) == []
    assert {path.name for path in Path("stirred-demo-swap-2").iterdir()} == {
        "dwellings.parquet",
        "plan.toml",
        "release",
    }
    assert command("verify", "stirred-demo-swap-2/release").code == 0


def test_the_demonstration_refuses_a_folder_that_exists(tmp_path, command):
    ended = command("demo", "swap", "--out", tmp_path)
    assert ended.code == 2
    assert f"{tmp_path} exists already." in ended.err
    assert list(tmp_path.iterdir()) == []
