"""Flat person files: split by the plan, swapped by households, put together again; the csv module is the judge."""

from __future__ import annotations

import csv
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
import pytest

from stirred.errors import StirredError
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import write_manifest
from stirred.swap.data.counting import stated_margins
from stirred.swap.data.dataset import load
from stirred.swap.drawing import draw
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.verifying import verify

HEADER = ["age", "hhid", "county", "pid", "size", "tenure", "sex"]
RECORD = ("county", "size", "tenure")


def flat_rows(households: int = 80) -> list[dict[str, str]]:
    rows = []
    for i in range(households):
        size = 1 + i % 3
        for j in range(size):
            rows.append({
                "age": ("NA", "30", "41", "07")[(i * 5 + j) % 4], "hhid": f"h{i * 37 % households}",
                "county": ("Köln", "Fürth")[i // 3 % 2], "pid": f"p{i}-{j}", "size": str(size),
                "tenure": ("own", "rent")[i // 5 % 2], "sex": "fm"[(i + j) % 2],
            })  # fmt: skip
    return sorted(rows, key=lambda row: row["pid"][::-1])  # persons of a household are not together


def flat_file(path: Path, rows: list[dict[str, str]] | None = None) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEADER, delimiter=";")
        writer.writeheader()
        writer.writerows(flat_rows() if rows is None else rows)
    return path


def read_back(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


def of_households(rows: list[dict[str, str]]) -> Counter[object]:
    """What a swap keeps of each household: size, tenure and its persons."""
    found = defaultdict(list)
    for row in rows:
        found[row["hhid"], row["size"], row["tenure"]].append((row["age"], row["sex"]))
    return Counter((key[1:], tuple(sorted(persons))) for key, persons in found.items())


@pytest.mark.parametrize("words", [["--look"], ["--flat-id", "hhid", "--repeated", "county,size,tenure"]])
def test_a_flat_file_comes_back_flat(tmp_path, command, words):
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    flat_file(tmp_path / "a.csv")
    assert command("init", tmp_path / "a.csv", *words, "--out", plan).code == 0
    drafted = tomllib.loads(plan.read_text(encoding="utf-8"))
    assert drafted["unit"] == "household"
    assert (drafted["match"], drafted["swap"], drafted["hold"]) == (["size"], ["county"], ["tenure"])
    linked = drafted["linked"][0]
    assert (linked["flat"], linked["link"], linked["id"], linked["hold"]) == (True, "hhid", "pid", ["age", "sex"])
    if words == ["--look"]:
        assert linked["nulls"] == ["age"]
    assert command("check", plan).code == 0
    assert command("release", plan, "--out", out).code == 0
    ended = command("verify", out)
    assert ended.code == 0, ended.out
    assert "flat.csv has the rows of persons beside the columns of their record" in ended.said
    released, was = read_back(out / "flat.csv"), flat_rows()
    assert list(released[0]) == HEADER
    assert of_households(released) == of_households(was)
    assert Counter((row["size"], row["county"]) for row in released) == Counter((r["size"], r["county"]) for r in was)
    for row in released:
        same = [one for one in released if one["hhid"] == row["hhid"]]
        assert {tuple(one[name] for name in RECORD) for one in same} == {tuple(row[name] for name in RECORD)}
    assert sorted(int(row["pid"]) for row in released) == list(range(1, len(was) + 1))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_other_formats_come_back_flat_too(tmp_path, kind):
    flat_file(tmp_path / "a.csv")
    plan = SwapPlan(
        id="hhid", match=["size"], swap=["county"], hold=["tenure"], rate=0.5, format=kind,
        linked=[{"name": "persons", "flat": True, "link": "hhid", "id": "pid", "hold": "rest"}],
        input={"path": str(tmp_path / "a.csv"), "delimiter": ";"},
    )  # fmt: skip
    out = draw(plan).write(tmp_path / "out")
    assert all(verdict.holds for verdict in verify(out))
    read = pl.read_parquet if kind == "parquet" else pl.read_ipc
    frame = read(out / f"flat.{kind}")
    assert frame.columns == HEADER
    assert frame.height == len(flat_rows())


@pytest.mark.parametrize("damage", ["cell", "order", "column"])
def test_a_flat_file_that_is_not_its_two_tables_is_not_verified(tmp_path, damage):
    flat_file(tmp_path / "a.csv")
    plan = SwapPlan(
        id="hhid", match=["size"], swap=["county"], hold="rest", rate=0.5,
        linked=[{"name": "persons", "flat": True, "link": "hhid", "id": "pid", "hold": ["age", "sex"]}],
        input={"path": str(tmp_path / "a.csv"), "delimiter": ";"},
    )  # fmt: skip
    out = draw(plan).write(tmp_path / "out")
    path = out / "flat.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    if damage == "cell":
        lines[1] = "99" + lines[1].removeprefix(lines[1].split(";")[0])
    elif damage == "order":
        lines[1], lines[2] = lines[2], lines[1]
    else:
        lines = [f"{line};x" for line in lines]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (out / MANIFEST).unlink()
    write_manifest(out)
    failed = [verdict.words for verdict in verify(out) if not verdict.holds]
    assert failed == ["flat.csv has the rows of persons beside the columns of their record"]


def test_a_flat_frame_comes_back_flat_and_of_its_kind():
    frame = pl.DataFrame(flat_rows()).select(HEADER)
    plan = SwapPlan(
        id="hhid", match=["size"], swap=["county"], hold=["tenure"], rate=0.5,
        linked=[{"name": "persons", "flat": True, "link": "hhid", "id": "pid", "hold": ["age", "sex"]}],
    )  # fmt: skip
    released = draw(plan, frame).frame("flat")
    assert isinstance(released, pl.DataFrame)
    assert released.columns == HEADER
    rows = [{name: str(value) for name, value in row.items()} for row in released.to_dicts()]
    assert of_households(rows) == of_households(flat_rows())


def test_the_records_of_a_flat_file_are_those_of_two_files(tmp_path):
    rows = flat_rows()
    flat_file(tmp_path / "a.csv", rows)
    households = {row["hhid"]: {name: row[name] for name in ("hhid", *RECORD)} for row in rows}
    pl.DataFrame(list(households.values())).write_csv(tmp_path / "h.csv")
    pl.DataFrame([{name: row[name] for name in ("hhid", "pid", "age", "sex")} for row in rows]).write_csv(
        tmp_path / "p.csv"
    )
    common = {"id": "hhid", "match": ["size"], "swap": ["county"], "hold": ["tenure"], "rate": 0.5}
    linked = {"name": "persons", "link": "hhid", "id": "pid", "hold": ["age", "sex"]}
    flat = SwapPlan(
        **common, linked=[linked | {"flat": True}], input={"path": str(tmp_path / "a.csv"), "delimiter": ";"}
    )
    two = SwapPlan(
        **common,
        linked=[linked | {"input": {"path": str(tmp_path / "p.csv")}}],
        input={"path": str(tmp_path / "h.csv")},
    )
    one, other = draw(flat), draw(two)
    assert one.specification.budget == other.specification.budget
    said = [stated_margins(made.plan, made.specification, made.margins) for made in (one, other)]
    assert said[0] and [margin.to_fields() for margin in said[0]] == [margin.to_fields() for margin in said[1]]
    assert load(flat).records == 80


def test_a_flat_file_is_recognised_by_an_id_that_repeats_with_other_columns(tmp_path, command):
    flat_file(tmp_path / "a.csv")
    text = command("init", tmp_path / "a.csv").out
    drafted = tomllib.loads(text)
    assert text.startswith("# A draft, guessed from column names and from which columns repeat with the id.")
    assert '"hhid" repeats in this file, and other columns repeat with it: its rows seem to be persons' in text
    assert (drafted["id"], drafted["match"], drafted["swap"], drafted["hold"]) == (
        "hhid",
        ["size"],
        ["county"],
        ["tenure"],
    )
    assert drafted["linked"][0]["flat"] and drafted["linked"][0]["hold"] == ["age", "sex"]
    assert "chosen_from" not in drafted  # which columns repeat is the form of the file, no choice of variables
    told = command("init", tmp_path / "a.csv", "--flat-id", "hhid").out
    assert [line for line in told.splitlines() if line not in text.splitlines()] == []
    assert command("init", tmp_path / "a.csv", "--flat-id", "nothing").code == 2


@pytest.mark.parametrize(
    "lines",
    [
        ["hid,county,size", *(f"{i},c{i % 3},{1 + i % 4}" for i in range(40))],  # every row has an id of its own
        ["hid,county,size", *(f"{i // 2},c{i // 2 % 3},{1 + i // 2 % 4}" for i in range(40))],  # rows entered twice
        ["hid,county,size", *(f"{max(i, 1)},c{i % 3},{1 + i % 4}" for i in range(40))],  # one mistake in an id
        ["county_id,state,size", *(f"{i % 4},s{i % 2},{1 + i % 5}" for i in range(40))],  # a place, not an id
        ["hid,county,size", *(f"{'' if i % 2 else i},c,{1 + i % 4}" for i in range(40))],  # ids are missing
        ["hid,county,size", *(f"{i // 2},c,{i}" for i in range(40))],  # what repeats is the same in the whole file
        ["hid,county,size"],
    ],
    ids=["unique", "twice", "mistake", "place", "missing", "constant", "empty"],
)
def test_other_files_are_not_taken_for_flat_ones(tmp_path, command, lines):
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    drafted = command("init", tmp_path / "a.csv")
    assert drafted.code == 0 and "linked" not in tomllib.loads(drafted.out)


def test_a_repeated_id_leads_to_flat(tmp_path):
    flat_file(tmp_path / "a.csv")
    plan = SwapPlan(
        id="hhid", match=["size"], swap=["county"], hold="rest", drop=["pid"], rate=0.5,
        nulls=["age"], input={"path": str(tmp_path / "a.csv"), "delimiter": ";", "null_values": ["NA"]},
    )  # fmt: skip
    with pytest.raises(StirredError) as caught:
        load(plan)
    assert caught.value.kind == "duplicate-id"
    assert "the file is flat" in caught.value.remedy and "stirred init FILE --flat-id hhid" in caught.value.remedy


def test_nothing_repeats_where_all_columns_differ(tmp_path):
    from stirred.swap.plan.draft import draft_plan

    (tmp_path / "a.csv").write_text("hhid,x\n1,a\n1,b\n", encoding="utf-8")
    with pytest.raises(StirredError) as caught:
        draft_plan(tmp_path / "a.csv", flat_id="hhid", look_at_cells=True)
    assert caught.value.kind == "flat-unclear"


def test_nulls_of_both_parts_are_named_where_they_belong(tmp_path):
    rows = flat_rows()
    for row in rows:
        row["tenure"] = "" if row["size"] == "2" else row["tenure"]
    flat_file(tmp_path / "a.csv", rows)
    plan = SwapPlan(
        id="hhid", match=["size"], swap=["county"], hold=["tenure"], rate=0.5,
        linked=[{"name": "persons", "flat": True, "link": "hhid", "id": "pid", "hold": ["age", "sex"]}],
        input={"path": str(tmp_path / "a.csv"), "delimiter": ";", "null_values": ["NA"]},
    )  # fmt: skip
    with pytest.raises(StirredError) as caught:
        load(plan)
    lines = caught.value.lines
    wanted = ['looked_at = "types and formats"', 'nulls = ["tenure"]', 'nulls = ["age"]']
    assert [line for line in lines if not line.startswith("#")] == wanted
    assert '[[linked]] of name = "persons"' in lines[4]
