"""A release can be tied to the check before it: another plan or other data are refused before anything is drawn."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import stirred
from stirred import errors
from stirred.releases import check_code
from stirred.releases.check_code import Watched
from stirred.swap.mechanism import MECHANISM

ROWS = {"size": [1, 1, 2, 2] * 5, "county": list("abba") * 5, "tenure": list("ooror") * 4}
PLAN = stirred.SwapPlan(match=["size"], swap=["county"], hold=["tenure"], rate="1/10", dataset="homes")


def digest(data: object) -> bytes:
    return check_code.digest({"rows": data}, lambda done: None)


def kind_of(code: str, plan: object = PLAN, data: object = None, out: Path | None = None) -> str:
    with pytest.raises(errors.OutputError) as refused:
        stirred.release(plan, pl.DataFrame(ROWS) if data is None else data, out=out, as_checked=code)
    assert out is not None and not out.exists()
    assert code not in str(refused.value)
    return refused.value.kind


def test_the_checked_plan_and_data_are_released(tmp_path):
    code = stirred.check(PLAN, pl.DataFrame(ROWS)).code
    stirred.release(PLAN, pl.DataFrame(ROWS), out=tmp_path / "release", as_checked=code.lower().replace("-", " "))
    assert stirred.verify(tmp_path / "release").state == "holds"


def test_other_data_another_plan_and_a_mistyped_code_are_refused_before_the_draw(tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("it was drawn")

    monkeypatch.setattr(type(MECHANISM), "draw", never)
    code = stirred.check(PLAN, pl.DataFrame(ROWS)).code
    other = pl.DataFrame(ROWS | {"tenure": list("ooror") * 3 + list("oorro")})
    assert kind_of(code, data=other, out=tmp_path / "one") == "not-as-checked"
    assert kind_of(code, plan=PLAN.model_copy(update={"licence": "CC0"}), out=tmp_path / "two") == "not-as-checked"
    assert kind_of(code[:-1], out=tmp_path / "three") == "check-code"


def test_the_code_is_written_into_no_file(tmp_path):
    rows, ledger = pl.DataFrame(ROWS), stirred.Ledger.create(tmp_path / "ledger", "homes")
    code = stirred.check(PLAN, rows).code
    stirred.release(
        PLAN, rows, out=tmp_path / "release", confidential=tmp_path / "compared", ledger=ledger, as_checked=code
    )
    hashed = check_code.digest({"microdata": rows}, lambda done: None).hex()
    for file in (file for file in tmp_path.rglob("*") if file.is_file()):
        found = file.read_bytes().upper()
        assert not any(text.upper().encode() in found for text in (code, code.replace("-", ""), hashed)), file


def test_a_check_tells_its_code_in_text_and_json():
    found = stirred.check(PLAN, pl.DataFrame(ROWS))
    assert f"Code of this check: {found.code}." in str(found).replace("\n", " ")
    assert f'"code": "{found.code}"' in found.to_json()
    assert dataclasses.replace(found, code=None).to_json().count('"code": null') == 1


def test_linked_tables_count(tmp_path):
    homes = pl.DataFrame(ROWS).with_row_index("id")
    persons = pl.DataFrame({"home": [row for row in range(20) for _ in range(2)], "age": list(range(40))})
    plan = stirred.SwapPlan(
        match=["size"], swap=["county"], hold=["tenure"], id="id", rate="1/10",
        linked=[{"name": "persons", "link": "home", "hold": ["age"]}],
    )  # fmt: skip
    code = stirred.check(plan, {"microdata": homes, "persons": persons}).code
    older = persons.with_columns(pl.col("age") + 1)
    data = {"microdata": homes, "persons": older}
    assert kind_of(code, plan, data, tmp_path / "release") == "not-as-checked"


def test_files_count_by_their_contents_and_folders_by_the_names_below_them(tmp_path):
    for name in ("one.csv", "two.csv", "parts/county=1/rows.csv", "moved/county=1/rows.csv", "other/county=2/rows.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a\n1\n", encoding="utf-8")
    (tmp_path / "three.csv").write_text("a\n2\n", encoding="utf-8")
    (tmp_path / "one.tsv").write_text("a\n1\n", encoding="utf-8")
    one, two, three, tabs = (digest(tmp_path / name) for name in ("one.csv", "two.csv", "three.csv", "one.tsv"))
    assert one == two
    assert len({one, three, tabs}) == 3
    parts, moved, other = (digest(tmp_path / name) for name in ("parts", "moved", "other"))
    assert parts == moved != other


def test_frames_count_by_their_cells_however_they_are_stored():
    texts, numbers = ["a", None, "bc", "", "é"], [1, None, 3, 4, 5]
    whole = pa.table({"text": texts, "number": numbers, "truth": [True, None, False, True, True]})
    cut = pa.concat_tables([whole.slice(0, 2), whole.slice(2)])
    coded = whole.set_column(0, "text", whole["text"].dictionary_encode())
    same = [whole, cut, coded, pl.from_arrow(whole), pl.from_arrow(whole).lazy().collect()]
    assert len({digest(one) for one in same}) == 1
    unlike = [
        whole,
        whole.slice(1),
        whole.set_column(1, "number", pa.array([1, 0, 3, 4, 5])),
        whole.set_column(0, "text", pa.array(["a", "", "bc", None, "é"])),
        whole.set_column(0, "text", pa.array(["ab", None, "c", "", "é"])),
        whole.rename_columns(["text", "number", "lie"]),
        whole.set_column(1, "number", whole["number"].cast(pa.float64())),
    ]
    assert len({digest(one) for one in unlike}) == len(unlike)


def test_a_lazy_frame_is_collected_once():
    collected = []
    lazy = pl.DataFrame(ROWS).lazy().map_batches(lambda frame: collected.append(1) or frame)
    assert stirred.check(PLAN, lazy).code == stirred.check(PLAN, pl.DataFrame(ROWS)).code
    assert len(collected) == 1


def test_a_file_that_changes_between_comparing_and_drawing_is_refused(tmp_path):
    file = tmp_path / "rows.csv"
    pl.DataFrame(ROWS).write_csv(file)
    watched = Watched.of(MECHANISM, PLAN, file)
    watched.require(stirred.check(PLAN, file).code)
    watched.require_unchanged()
    file.write_text(file.read_text(encoding="utf-8") + "1,a,o\n", encoding="utf-8")
    with pytest.raises(errors.DataError, match="changed"):
        watched.require_unchanged()


def test_a_file_that_is_not_there_is_said_not_to_be(tmp_path):
    with pytest.raises(errors.DataError) as refused:
        stirred.check(PLAN, tmp_path / "none.csv")
    assert refused.value.kind == "no-such-input"


def test_a_file_that_changes_while_it_is_drawn_spends_nothing(tmp_path, monkeypatch):
    file, ledger = tmp_path / "rows.csv", stirred.Ledger.create(tmp_path / "ledger", "homes")
    pl.DataFrame(ROWS).write_csv(file)
    code, drawing = stirred.check(PLAN, file).code, type(MECHANISM).draw

    def draw_and_change(self, plan, data=None, **options):
        drawn = drawing(self, plan, data, **options)
        file.write_text(file.read_text(encoding="utf-8") + "1,a,o\n", encoding="utf-8")
        return drawn

    monkeypatch.setattr(type(MECHANISM), "draw", draw_and_change)
    with pytest.raises(errors.DataError, match="changed"):
        stirred.release(PLAN, file, out=tmp_path / "release", ledger=ledger, as_checked=code)
    assert not (tmp_path / "release").exists()
    assert ledger.entries() == ()


def test_the_share_that_is_hashed_is_told(tmp_path):
    file, told = tmp_path / "rows.csv", []
    file.write_bytes(b"a\n" + b"1\n" * 5_000_000)
    check_code.digest({"rows": file}, told.append)
    assert told == sorted(told)
    assert 0 < told[0] < 0.5 < told[-1] == 1
