"""From files as offices have them to a release of the same form: init, check, release, verify, and another reader."""

from __future__ import annotations

import csv
import itertools
import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from stirred.errors import DataError
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import write_manifest
from stirred.swap.checking.plan_check import check
from stirred.swap.data import dataset
from stirred.swap.drawing import draw
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.verifying import verify

TENURES = ("Miete", "Eigentum", "NA", '"NA"', "")


def households(rows: int = 240) -> list[list[str]]:
    """Rows of a file with decimal commas, quoted and unquoted nulls, and an umlaut."""
    return [
        [
            f"h{i}",
            f"{1 + i % 3}",
            ("Köln", "Fürth", "Mainz")[(i // 3) % 3],
            TENURES[(i * 7 // 4) % 5],
            f"{(i * 13) % 7},{(5, 25)[(i * 11) % 2]}",
        ]
        for i in range(rows)
    ]


HEADER = ["hhid", "size", "county_größe", "tenure", "rent"]


def office_file(path: Path, encoding: str = "cp1252", end: str = "\r\n") -> Path:
    lines = [";".join(row) for row in [HEADER, *households()]]
    path.write_bytes((end.join(lines) + end).encode(encoding))
    return path


def rows_of(path: Path, style: dict[str, str]) -> list[dict[str, str]]:
    """A released file as the csv module reads it, by what the data dictionary states."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=style["delimiter"]))


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8-sig", "utf-16", "utf-8"])
@pytest.mark.parametrize("look", [[], ["--look"]])
def test_a_file_of_an_office_is_released_in_its_own_form(tmp_path, command, encoding, look):
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    office_file(tmp_path / "haushalte.csv", encoding)
    assert command("init", tmp_path / "haushalte.csv", *look, "--out", plan).code == 0
    drafted = tomllib.loads(plan.read_text(encoding="utf-8"))
    assert drafted["input"]["delimiter"] == ";"
    assert drafted["input"]["decimal"] == ","
    assert drafted["input"].get("encoding") == (None if encoding == "utf-8" else encoding)
    assert (drafted["match"], drafted["swap"]) == (["size"], ["county_größe"])
    assert "chosen_from" not in drafted and drafted.get("looked_at") == ("types and formats" if look else None)
    if look:
        assert drafted["nulls"] == ["tenure"]
        assert drafted["input"]["null_values"] == ["NA"]
        assert drafted["input"]["types"] == {"rent": "number"}
    else:
        assert "nulls" not in drafted and "null_values" not in drafted["input"]
        text = plan.read_text(encoding="utf-8")
        plan.write_text(text.replace("[input]", 'nulls = ["tenure"]\n[input]\nnull_values = ["NA"]'), encoding="utf-8")
    ended = command("release", plan, "--out", out)
    assert ended.code == 0, ended.err
    assert command("verify", out).code == 0
    entry = json.loads((out / "data_dictionary.json").read_text(encoding="utf-8"))["tables"][0]
    assert entry["csv"] == {"delimiter": ";", "null": "NA", "decimal": ","}
    assert "fields separated by ';', missing cells written as 'NA', decimal comma" in (
        (out / "README.txt").read_text(encoding="utf-8")
    )
    released = rows_of(out / "microdata.csv", entry["csv"])
    was = [dict(zip(HEADER, row, strict=True)) for row in households()]
    held = Counter((row["size"], row["tenure"].strip('"') or "NA", row["rent"]) for row in was)
    assert Counter((row["size"], row["tenure"], row["rent"]) for row in released) == held
    assert Counter(row["county_größe"] for row in released) == Counter(row["county_größe"] for row in was)
    found = command("tabulate", out, "--by", "tenure")
    assert found.code == 0


def test_what_looking_tells_is_the_same_for_all_files_that_a_swap_compares(tmp_path, command):
    """So the finding may say that the guarantee holds given it: the draft follows from what the swap keeps."""
    rows = [(f"h{i}", str(i % 2), ("A", "", "C")[i % 3], ("x", "NA")[i % 2], str(i % 2)) for i in range(4)]
    drafts = set()
    for order in itertools.permutations(range(4)):
        if all(order[i] % 2 == i % 2 for i in range(4)):  # within strata of one size
            lines = [",".join((*row[:2], rows[order[i]][2], *row[3:])) for i, row in enumerate(rows)]
            (tmp_path / "a.csv").write_text(
                "hhid,size,county,tenure,rooms\n" + "\n".join(lines) + "\n", encoding="utf-8"
            )
            drafts.add(command("init", tmp_path / "a.csv", "--look").out)
    assert len(drafts) == 1
    assert 'looked_at = "types and formats"' in drafts.pop()


def test_a_release_that_states_another_form_than_its_file_has_is_not_verified(tmp_path, command):
    office_file(tmp_path / "a.csv")
    command("init", tmp_path / "a.csv", "--look", "--out", tmp_path / "plan.toml")
    plan = SwapPlan.from_toml(tmp_path / "plan.toml")
    for name, value in (("delimiter", ","), ("null", "N"), ("decimal", "."), ("delimiter", "ab"), ("null", "a;b")):
        out = draw(plan).write(tmp_path / f"out-{name}-{value}")
        path = out / "data_dictionary.json"
        path.write_text(path.read_text(encoding="utf-8").replace(*_changed(path, name, value)), encoding="utf-8")
        (out / MANIFEST).unlink()
        write_manifest(out)
        assert not all(verdict.holds for verdict in verify(out))


def _changed(path: Path, name: str, value: str) -> tuple[str, str]:
    stated = json.loads(path.read_text(encoding="utf-8"))["tables"][0]["csv"][name]
    return f'"{name}": {json.dumps(stated)}', f'"{name}": {json.dumps(value)}'


def test_tabs_are_kept(tmp_path, command):
    rows = "".join(f"{i % 2}\t{'ab'[i // 2 % 2]}\t{'xyz'[i % 3]}\n" for i in range(60))
    (tmp_path / "a.txt").write_text("size\tcounty\ttenure\n" + rows, encoding="utf-8")
    plan = tmp_path / "plan.toml"
    assert command("init", tmp_path / "a.txt", "--out", plan).code == 0
    assert SwapPlan.from_toml(plan).input.delimiter == "tab"
    assert command("release", plan, "--out", tmp_path / "out").code == 0
    assert command("verify", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "microdata.csv").read_bytes().startswith(b"size\tcounty\ttenure\n")
    readme = (tmp_path / "out" / "README.txt").read_text(encoding="utf-8")
    assert "fields separated by tabs" in readme


@pytest.mark.parametrize(
    ("marker", "kept"), [("7", ""), ("-7", "-7"), ("a;b", ""), ('"', ""), ("unbekannt", "unbekannt")]
)
def test_a_null_marker_is_kept_only_where_it_cannot_be_mistaken(tmp_path, marker, kept):
    cells = ["x", "y", '"a;b"' if marker == "a;b" else '""""' if marker == '"' else marker]
    lines = "".join(f"h{i};{i % 2};{'ab'[i // 2 % 2]};{cells[i % 3]}\n" for i in range(60))
    (tmp_path / "a.csv").write_text("hhid;size;county;tenure\n" + lines, encoding="utf-8")
    plan = SwapPlan(
        id="hhid", match=["size"], swap=["county"], hold=["tenure"], nulls=["tenure"], rate=0.5,
        input={"path": str(tmp_path / "a.csv"), "delimiter": ";", "null_values": [marker]},
    )  # fmt: skip
    out = draw(plan).write(tmp_path / "out")
    assert all(verdict.holds for verdict in verify(out))
    stated = json.loads((out / "data_dictionary.json").read_text(encoding="utf-8"))["tables"][0]["csv"]
    assert stated["null"] == kept
    assert Counter(row["tenure"] for row in rows_of(out / "microdata.csv", stated)) == {"x": 20, "y": 20, kept: 20}


# -- advice that works ------------------------------------------------------------------------------------------------

PLAN = """\
stirred = 1
mechanism = "swap"
rate = 0.5
match = ["size"]
swap = ["county"]
hold = ["tenure", "rent"]
id = "hhid"
{main}
[input]
path = "households.csv"

[[linked]]
name = "persons"
link = "hhid"
hold = ["age", "job"]
{linked}
[linked.input]
path = "persons.csv"
"""


def two_files(folder: Path, link: str = "h1") -> None:
    rows = [f"h{i},{i % 2},{'ab'[i // 2 % 2]},{('x', 'y', '')[i % 3]},{i * 7 // 3 % 4 or ''}" for i in range(60)]
    (folder / "households.csv").write_text("hhid,size,county,tenure,rent\n" + "\n".join(rows) + "\n", encoding="utf-8")
    persons = [f"h{i % 60},{i % 5 or ''},{('x', '')[i % 2]}" for i in range(120)]
    (folder / "persons.csv").write_text("hhid,age,job\n" + "\n".join(persons) + f"\n{link},1,x\n", encoding="utf-8")


def test_the_lines_of_the_message_about_nulls_make_the_plan_pass(tmp_path, command):
    two_files(tmp_path)
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(main='nulls = ["rent"]', linked=""), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        check(SwapPlan.from_toml(plan))
    for name, count in (("tenure", 20), ("age", 24), ("job", 60)):
        assert f"Column '{name}' of table '{'microdata' if name == 'tenure' else 'persons'}' has {count} null" in str(
            caught.value
        )
    looked, main, linked = (line for line in caught.value.lines if not line.startswith("#"))
    assert command("check", plan).err.splitlines()[1:] == [f"  {line}" for line in caught.value.lines]
    plan.write_text(PLAN.format(main=f"{looked}\n{main}", linked=linked), encoding="utf-8")
    found = check(SwapPlan.from_toml(plan))
    assert found.records == 60
    assert "formats-from-this-data" in [finding.id for finding in found.specification.findings]


def test_many_columns_with_nulls_are_listed_in_lines_that_are_never_cut(tmp_path):
    names = [f"a_rather_long_name_of_a_column_{i}" for i in range(150)]
    text = (
        ",".join(["size", "county", *names]) + "\n" + "".join(f"{i % 2},{'ab'[i % 2]}{',' * 150}\n" for i in range(9))
    )
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    plan = {
        "match": ["size"],
        "swap": ["county"],
        "hold": "rest",
        "rate": 0.5,
        "input": {"path": str(tmp_path / "a.csv")},
    }
    with pytest.raises(DataError) as caught:
        check(SwapPlan(**plan))
    assert tomllib.loads("\n".join(caught.value.lines)) == {"looked_at": "types and formats", "nulls": names}
    for stated in ({"looked_at": "values"}, {"looked_at": "types and formats"}, {"chosen_from": "this data"}):
        with pytest.raises(DataError) as caught:
            check(SwapPlan(**plan, **stated))
        assert tomllib.loads("\n".join(caught.value.lines)) == {"nulls": names}


def test_nulls_in_a_link_are_not_told_to_be_allowed(tmp_path):
    two_files(tmp_path, link="")
    plan = tmp_path / "plan.toml"
    text = PLAN.format(main='nulls = ["tenure", "rent"]', linked='nulls = ["age", "job", "hhid"]')
    plan.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        check(SwapPlan.from_toml(plan))
    assert caught.value.kind == "nulls"
    assert caught.value.lines == ()
    assert "fill in the ids, or remove those rows" in caught.value.remedy
    two_files(tmp_path, link="h1")  # the row is filled in
    plan.write_text(text.replace(', "hhid"]', "]"), encoding="utf-8")
    check(SwapPlan.from_toml(plan))


def test_the_line_of_the_message_about_one_column_makes_the_plan_pass(tmp_path, command):
    office_file(tmp_path / "a.csv", "utf-8", "\n")
    plan = tmp_path / "plan.toml"
    text = (
        'stirred = 1\nmechanism = "swap"\nrate = 0.5\nmatch = ["size"]\nswap = ["county_größe"]\nhold = ["tenure", '
        '"rent"]\nid = "hhid"\nnulls = ["tenure"]\n[input]\npath = "a.csv"\n'
    )
    plan.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        check(SwapPlan.from_toml(plan))
    assert caught.value.kind == "one-column"
    assert command("init", tmp_path / "a.csv", "--delimiter", ",").code == 0  # who says so is believed
    plan.write_text(text + "\n".join(caught.value.lines) + "\n", encoding="utf-8")
    assert command("check", plan).code == 0


# -- one moment -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["households.csv", "persons.csv"])
@pytest.mark.parametrize("use", [check, draw])
def test_files_that_change_between_the_readings_of_two_tables_are_noticed(tmp_path, monkeypatch, name, use):
    """The main table is read whole before either file changes, so no single reading sees it."""
    two_files(tmp_path)
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(main='nulls = ["tenure", "rent"]', linked='nulls = ["age", "job"]'), encoding="utf-8")
    read, done = dataset.read_table, []

    def read_and_change(opened, *given, **named):
        found = read(opened, *given, **named)
        if not done:
            done.append(opened.table)
            path = tmp_path / name
            path.write_bytes(path.read_bytes().replace(b"x", b"z"))
        return found

    monkeypatch.setattr(dataset, "read_table", read_and_change)
    with pytest.raises(DataError) as caught:
        use(SwapPlan.from_toml(plan))
    assert caught.value.kind == "file-changed"
    assert done == ["microdata"]


def test_a_file_added_to_a_folder_while_it_is_read_is_noticed(tmp_path):
    from stirred.tables import open_input

    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "1.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    opened = open_input("people", tmp_path / "parts")
    (tmp_path / "parts" / "2.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        list(opened.batches(["a"]))
    assert caught.value.kind == "file-changed"
