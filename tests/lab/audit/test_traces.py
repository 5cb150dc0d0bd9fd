"""Traces of an input in a release: ours have none, and every planted one is found.

Releases of ours are drawn from the operating system's generator (a release cannot be seeded), so each test that finds
nothing fails with a probability of 1e-9 at most: that is the false-alarm rate it asks for.
"""

from __future__ import annotations

import getpass
import gzip
import json
import shutil
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stirred import errors
from stirred.lab.audit.results import Audit
from stirred.lab.audit.traces import audit_release, chance_of_order
from stirred.swap.drawing import release as release_swap
from stirred.swap.plan.fields import SwapPlan
from stirred.topdown import preset
from stirred.topdown.drawing import release as release_topdown

NEVER = 1e-9
ROWS = 600


@pytest.fixture(autouse=True)
def somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that stand in no text by chance."""
    monkeypatch.setattr(getpass, "getuser", lambda: "annabel")
    monkeypatch.setattr(socket, "gethostname", lambda: "census-7")


def households(seed: int = 1, rows: int = ROWS) -> pl.DataFrame:
    """Households sorted by county and size, as such files often are, with ids in that order."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "size": rng.integers(1, 4, rows),
            "county": rng.choice(["Barnstable", "Dukes", "Suffolk"], rows),
            "tenure": rng.choice(["owned", "rented"], rows),
            "rent": rng.integers(1, 200, rows),
            "year": rng.integers(1900, 1990, rows),
        }
    ).sort("county", "size")
    return frame.insert_column(0, pl.Series("id", [f"H{17 * number + 1000}" for number in range(rows)]))


def persons(frame: pl.DataFrame, seed: int = 2) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    link = frame["id"].gather(np.repeat(np.arange(frame.height), frame["size"].to_numpy()))
    return pl.DataFrame(
        {
            "id": link,
            "person": [f"P{number}" for number in range(len(link))],
            "age": rng.integers(0, 100, len(link)),
            "income": rng.integers(0, 5000, len(link)),
        }
    )


def plan(**more: Any) -> SwapPlan:
    fields: dict[str, Any] = {
        "unit": "household", "id": "id", "match": ["size"], "swap": ["county"], "hold": ["tenure", "rent", "year"],
        "rate": "1/20",
    }  # fmt: skip
    return SwapPlan(**fields | more)


def wrong(audit: Audit) -> set[str]:
    return {one.name for one in audit.wrong}


def rows_of(audit: Audit, name: str) -> int:
    return int(next(one for one in audit.results if one.name == name).numbers["rows"])


# -- ours ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: Any) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("swapped")
    households().write_csv(place / "census_final_v7.csv")
    release_swap(plan(), place / "census_final_v7.csv", out=place / "out")
    return place / "out", place / "census_final_v7.csv"


def test_a_sorted_swap_of_ours_has_no_traces(swapped):
    found = audit_release(*swapped, false_alarm=NEVER)
    assert found.passed, found
    assert str(found).startswith("Confidential")
    assert "rows are sorted by what is released" in str(found)
    assert rows_of(found, "row-order-microdata") > ROWS / 2


def test_a_shuffled_swap_of_ours_with_linked_rows_has_no_traces(tmp_path):
    linked = [{"name": "persons", "link": "id", "id": "person", "hold": ["age", "income"]}]
    frames = {"microdata": households(), "persons": persons(households())}
    allow = ["tells:all-held-columns"]
    release_swap(plan(linked=linked, format="parquet", allow=allow), frames, out=tmp_path / "out")
    found = audit_release(tmp_path / "out", frames, false_alarm=NEVER)
    assert found.passed, found
    names = {one.name for one in found.results if one.p_value is not None}
    assert {"row-order-microdata", "row-order-persons"} <= names, "both orders were compared"


def test_a_topdown_release_of_ours_has_no_traces(tmp_path):
    rng = np.random.default_rng(3)
    places = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
    rows = pl.DataFrame(
        {"town": rng.choice(["a1", "a2", "b1"], 300), "race": rng.choice(["p", "q"], 300), "adult": ["yes", "no"] * 150}
    ).sort("town", "race")
    chosen = preset("teaching", {"race": ["q", "p"], "adult": ["yes", "no"]}, ["county", "town"])
    release_topdown(chosen, {"persons": rows, "geography": places}, out=tmp_path / "out")
    found = audit_release(tmp_path / "out", {"persons": rows}, false_alarm=NEVER)
    assert found.passed, found


# -- what is compared with what --------------------------------------------------------------------------------------


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder of households in any order, and of persons as they were."""
    place = tmp_path / "linked"
    place.mkdir()
    shuffled(exchanged(households())).drop("id").write_csv(place / "microdata.csv")
    persons(households()).write_csv(place / "persons.csv")
    return place


def test_one_input_is_compared_with_one_table_and_the_others_are_named(linked, tmp_path):
    households().write_csv(tmp_path / "h.csv")
    found = audit_release(linked, tmp_path / "h.csv", false_alarm=NEVER)
    assert found.about == (
        "Compared: 'microdata' with h.csv.",
        "Not compared: 'persons'. Give its input with --input persons=FILE.",
    )
    assert found.passed, found
    assert not any("persons" in one.name for one in found.results)
    found = audit_release(linked, persons(households()))
    assert found.about[0] == "Compared: 'persons' with the frame given."
    assert {"row-order-persons", "unchanged-persons"} <= wrong(found)


def test_named_inputs_are_compared_with_the_tables_of_these_names(linked):
    found = audit_release(linked, {"microdata": households(), "persons": persons(households())})
    assert found.about == ("Compared: 'microdata' with the frame given, 'persons' with the frame given.",)
    assert {"row-order-persons", "unchanged-persons"} <= wrong(found)
    assert not any("microdata" in name for name in wrong(found))


def test_an_input_of_a_table_that_is_not_released_is_refused(linked):
    with pytest.raises(errors.StirredError, match=r"no table 'a'\. Its tables are 'microdata' and 'persons'"):
        audit_release(linked, {"a": households()})


# -- values ----------------------------------------------------------------------------------------------------------


UNCHANGED: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "without ids": lambda frame: frame.drop("id"),
    "some of the rows": lambda frame: frame.drop("id")[:200],
    "new ids under a new name": lambda frame: frame.drop("id").with_row_index("number"),
    "new ids under the old name": lambda frame: frame.with_columns(id=pl.int_range(7000, 7000 + ROWS)),
}


@pytest.mark.parametrize("form", UNCHANGED)
def test_the_input_itself_in_any_order_is_found(form, tmp_path):
    UNCHANGED[form](shuffled(households())).write_csv(tmp_path / "made.csv")
    found = audit_release(tmp_path / "made.csv", households())
    assert wrong(found) == {"unchanged-made"}
    assert "FOUND: 1 of" in str(found) and "nothing was changed" in str(found) and "promise" not in str(found)


def test_new_ids_that_count_as_the_old_ones_do_hide_no_unchanged_rows(tmp_path):
    """Whatever columns are called: 'len' is also what polars calls a number of rows."""
    given = households().with_columns(id=pl.int_range(1, ROWS + 1)).rename({"rent": "len"})
    shuffled(given).with_columns(id=pl.int_range(1, ROWS + 1)).write_csv(tmp_path / "made.csv")
    found = audit_release(tmp_path / "made.csv", given)
    assert wrong(found) == {"unchanged-made"}
    assert "leaving aside new ids in 'id'" in str(found)


def test_one_exchanged_value_or_a_column_with_noise_is_a_change(tmp_path):
    made = shuffled(households().drop("id"))
    county = pl.when(pl.int_range(ROWS) == 0).then(pl.lit("Nantucket")).otherwise("county")
    for number, frame in enumerate((made.with_columns(county=county), made.with_columns(pl.col("rent") + 0.5))):
        frame.write_csv(tmp_path / f"{number}.csv")
        found = audit_release(tmp_path / f"{number}.csv", households(), false_alarm=NEVER)
        assert found.passed, found
        assert "whether the values are protected at all" in str(found) and "promise" not in str(found)


def test_an_unchanged_draw_of_ours_is_told_and_not_called_wrong(swapped):
    """The release stands for its own input: as if the draw had given that back."""
    given = shuffled(pl.read_csv(swapped[0] / "microdata.csv", infer_schema=False))
    found = audit_release(swapped[0], given, false_alarm=NEVER)
    assert found.passed, found
    assert "nothing was changed. The plan allows this outcome; to draw again for it" in str(found)


# -- orders ----------------------------------------------------------------------------------------------------------


def exchanged(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows as they stand, a few counties exchanged."""
    made = frame.with_row_index("_row")
    moved = made.filter(pl.col("_row") % 20 == 0)
    county = moved["county"].gather(np.roll(np.arange(moved.height), 1))
    return made.update(moved.with_columns(county=county), on="_row").drop("_row")


def foreign(
    tmp_path: Path,
    frame: pl.DataFrame,
    name: str = "swapped.csv",
    order: Callable[[pl.DataFrame], pl.DataFrame] = lambda frame: frame,
) -> Path:
    """A file that somebody else released: the ids dropped, a few counties exchanged, then put into an order."""
    made = order(exchanged(frame.drop("id")))
    place = tmp_path / "released"
    place.mkdir()
    made.write_parquet(place / name) if name.endswith("parquet") else made.write_csv(place / name)
    return place


def shuffled(frame: pl.DataFrame, seed: int = 5) -> pl.DataFrame:
    return frame[np.random.default_rng(seed).permutation(frame.height)]


def in_blocks(frame: pl.DataFrame) -> pl.DataFrame:
    """Runs of ten rows as they were, the runs in any order."""
    order = np.random.default_rng(6).permutation(np.arange(frame.height).reshape(-1, 10))
    return frame[order.reshape(-1)]


def nearly(frame: pl.DataFrame) -> pl.DataFrame:
    """In the order of the input, but for a noise of a third of its length."""
    return frame[
        np.argsort(np.arange(frame.height) + np.random.default_rng(7).normal(0, frame.height / 3, frame.height))
    ]


ORDERS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "as it was": lambda frame: frame,
    "backwards": lambda frame: frame.reverse(),
    "in blocks": in_blocks,
    "nearly": nearly,
    "sorted by tenure, and then as it was": lambda frame: frame.sort("tenure", maintain_order=True),
    "by county in any order, and then as it was": lambda frame: pl.concat(
        [frame.filter(pl.col("county") == one) for one in ("Suffolk", "Barnstable", "Dukes")]
    ),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_order_that_betrays_the_input_is_found(order, kind, tmp_path):
    given = shuffled(households())  # its order is not told by its values
    place = foreign(tmp_path, given, f"swapped.{kind}", ORDERS[order])
    assert wrong(audit_release(place, given)) == {"row-order-swapped"}


@pytest.mark.parametrize(
    "order",
    [
        shuffled,
        lambda frame: frame.sort(pl.all()),
        lambda frame: frame.sort("tenure", "year", "rent", "county", "size", descending=True),
        lambda frame: shuffled(frame).sort("tenure", maintain_order=True),
        lambda frame: shuffled(frame).sort("size", "county", maintain_order=True),
    ],
)
@pytest.mark.parametrize("given", [households(), shuffled(households(), 8)], ids=["sorted", "unsorted"])
def test_an_order_that_is_shuffled_or_told_by_the_values_is_no_trace(order, given, tmp_path):
    found = audit_release(foreign(tmp_path, given, order=order), given, false_alarm=NEVER)
    assert found.passed, found


@pytest.mark.parametrize("by", [["county"], ["size", "county"], ["county", "tenure", "rent"]])
def test_a_file_that_was_sorted_before_it_was_swapped_is_found(by, tmp_path):
    """Rows whose county is not that of their neighbours were moved."""
    given = shuffled(households())
    assert "old-order-swapped" in wrong(audit_release(foreign(tmp_path, given.sort(by)), given))


def test_one_released_file_is_enough(tmp_path):
    given = shuffled(households())
    place = foreign(tmp_path, given)
    found = audit_release(place / "swapped.csv", given)
    assert wrong(found) == {"row-order-swapped"}


def test_the_chance_of_an_order_is_at_most_that_of_the_uniform_law():
    """All orders of six rows, and of two groups of three: the p-value is at most a with probability at most a."""
    from itertools import permutations

    whole = [chance_of_order(np.zeros(6, dtype=np.int64), np.array(one)) for one in permutations(range(6))]
    groups = np.array([0, 0, 0, 1, 1, 1])
    parts = [
        chance_of_order(groups, np.array([*one, *(3 + np.array(other))]))
        for one in permutations(range(3))
        for other in permutations(range(3))
    ]
    for p_values in (np.array(whole), np.array(parts)):
        for level in np.unique(p_values):
            assert np.mean(p_values <= level) <= level + 1e-12


@pytest.mark.slow
def test_shuffled_files_are_found_wrong_no_more_often_than_stated(tmp_path):
    """1,000 audits at a false-alarm rate of 0.05; more than 98 alarms would themselves be one of 1e-9."""
    given = shuffled(households(rows=150), 20)
    alarms = 0
    for seed in range(1_000):
        made = shuffled(exchanged(given.drop("id")), 1_000 + seed).with_columns(
            id=np.random.default_rng(seed).permutation(given.height) + 1
        )
        made.write_csv(tmp_path / "made.csv")
        alarms += not audit_release(tmp_path / "made.csv", given, false_alarm=0.05).passed
    assert alarms <= 98


def test_the_order_of_a_long_file_is_plainly_seen():
    assert chance_of_order(np.zeros(400, dtype=np.int64), np.arange(400)) < 1e-50
    assert chance_of_order(np.zeros(400, dtype=np.int64), np.random.default_rng(1).permutation(400)) > 1e-9


# -- ids -------------------------------------------------------------------------------------------------------------


def numbered(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows in a random order, with the number of the input's row."""
    return shuffled(frame.with_row_index("number", offset=1))


def growing(rows: int) -> np.ndarray:
    """Different large numbers that nearly ascend."""
    return np.arange(rows) * 7 + 10**6 + np.random.default_rng(9).integers(0, 900, rows)


IDS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "ids survive": lambda frame: shuffled(frame),
    "ids survive under another name": lambda frame: shuffled(frame.rename({"id": "key"})),
    "rows are numbered": lambda frame: numbered(frame.drop("id")),
    "numbers that grow with the row": lambda frame: shuffled(frame.drop("id").with_columns(key=growing(frame.height))),
    "an index of pandas": lambda frame: numbered(frame.drop("id")).rename({"number": ""}),
}  # fmt: skip


@pytest.mark.parametrize("ids", IDS)
def test_ids_that_tell_the_row_of_the_input_are_found(ids, tmp_path):
    given = shuffled(households(), 11)
    made = IDS[ids](exchanged(given))
    made.write_csv(tmp_path / "made.csv")
    found = wrong(audit_release(tmp_path / "made.csv", given))
    assert len(found) == 1
    assert found.pop().startswith("ids-made-")


def test_ids_that_count_in_both_files_and_survive_are_found(tmp_path):
    ids = np.random.default_rng(12).permutation(ROWS) + 1  # in the input too they are in no order
    given = households().with_columns(id=ids)
    shuffled(exchanged(given)).write_csv(tmp_path / "made.csv")
    assert wrong(audit_release(tmp_path / "made.csv", given)) == {"ids-made-id"}


@pytest.mark.parametrize("first", ["H1000", "1"], ids=["any ids", "ids that count"])
def test_the_order_of_the_input_is_found_where_the_old_ids_explain_it(first, tmp_path):
    """Rows sorted by a surviving id are not sorted by what is released."""
    given = shuffled(households(), 11)
    if first == "1":
        given = given.with_columns(id=pl.int_range(1, ROWS + 1))
    else:
        given = given.with_columns(id=households()["id"])
    exchanged(given).write_csv(tmp_path / "made.csv")
    assert wrong(audit_release(tmp_path / "made.csv", given)) == {"row-order-made", "ids-made-id"}


def test_numbers_of_rows_in_the_order_of_the_input_tell_it(tmp_path):
    given = shuffled(households(), 11)
    made = exchanged(given).drop("id")
    made.with_row_index("number", offset=1).write_csv(tmp_path / "made.csv")
    found = audit_release(tmp_path / "made.csv", given)
    assert wrong(found) == {"row-order-made", "ids-made-number"}
    assert "it numbers the released rows, and these stand in the input's order" in str(found)
    shuffled(made).with_row_index("number", offset=1).write_csv(tmp_path / "made.csv")
    found = audit_release(tmp_path / "made.csv", given, false_alarm=NEVER)
    assert found.passed, found
    assert "It does not: it numbers the released rows." in str(found)


def test_new_ids_are_no_trace(tmp_path):
    given = households().with_columns(id=pl.int_range(1, ROWS + 1))
    made = shuffled(exchanged(given)).with_columns(id=np.random.default_rng(13).permutation(ROWS) + 1)
    made.write_csv(tmp_path / "made.csv")
    assert audit_release(tmp_path / "made.csv", given, false_alarm=NEVER).passed


def test_too_few_matched_rows_are_said_to_be_too_few(tmp_path):
    given = pl.DataFrame({"size": [1, 2] * 50, "county": ["a", "b"] * 50})
    given.write_csv(tmp_path / "made.csv")
    found = audit_release(tmp_path / "made.csv", given)
    assert found.passed
    assert "Could not be asked: only 0 rows could be matched" in str(found)
    assert "row-order-made" in {one.name for one in found.unasked}


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ours(swapped: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the sorted release, for something to be planted in."""
    return Path(shutil.copytree(swapped[0], tmp_path / "copy")), swapped[1]


def test_a_file_that_is_not_in_the_manifest_is_found(ours):
    (ours[0] / "notes.txt").write_text("nothing", encoding="utf-8")
    assert wrong(audit_release(*ours)) == {"left-over"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("read from /home/anna/census/households.csv", "paths"),
        (r"read from C:\Users\anna\census\households.csv", "paths"),
        (r"read from \\server\share", "paths"),
        ("made of census_final_v7.csv", "input-names"),
        ("written 2026-01-02T13:14:15Z", "times"),
        ("{user} made it", "user-and-machine"),
        ("made on {host}", "user-and-machine"),
        ("{moved} records were swapped", "moved-number"),
        ("swapped: {moved}", "moved-number"),
        ('"records_moved": {moved}', "moved-number"),
    ],
)
def test_what_a_text_betrays_is_found(text, name, tmp_path):
    given = shuffled(households())
    place = foreign(tmp_path, given, order=lambda frame: frame.sort(pl.all()))
    made = pl.read_csv(place / "swapped.csv")
    columns = made.columns
    left = given.select(columns).group_by(columns).len().join(made.group_by(columns).len(), on=columns, how="left")
    moved = int((left["len"].cast(pl.Int64) - left["len_right"].fill_null(0).cast(pl.Int64)).clip(0).sum())
    given.write_csv(tmp_path / "census_final_v7.csv")
    said = text.replace("{user}", "annabel").replace("{host}", "census-7").replace("{moved}", str(moved))
    (place / "README.md").write_text(f"A release of 2020.\n{said}\n", encoding="utf-8")
    assert moved > 0
    assert wrong(audit_release(place, tmp_path / "census_final_v7.csv")) == {name}


def test_other_texts_are_no_traces(tmp_path):
    place = foreign(tmp_path, shuffled(households()))
    (place / "README.md").write_text(
        "See https://example.org/docs/swap and docs/swap.md. 5% of the records and/or houses are swapped at 1/20. "
        "Released 2026-01-02. Rates: 3/4/5.\n"
        + "".join(f"Swapped at 1/{one}; {one} counties.\n" for one in range(10, 60)),
        encoding="utf-8",
    )
    found = audit_release(place, households(), false_alarm=NEVER)
    assert found.passed, found


def parquet(place: Path, **metadata: str) -> Path:
    place.mkdir()
    table = shuffled(exchanged(households().drop("id"))).to_arrow().replace_schema_metadata(metadata)
    pq.write_table(table, place / "swapped.parquet")
    return place


def test_metadata_of_parquet_files_are_found(tmp_path):
    place = parquet(tmp_path / "released", source="/home/anna/census.csv", pandas=json.dumps({"index_columns": ["id"]}))
    assert wrong(audit_release(place, households())) == {"metadata", "paths"}


def test_the_usual_metadata_of_pandas_are_no_trace(tmp_path):
    usual = json.dumps({"index_columns": [{"kind": "range", "start": 0, "stop": ROWS, "step": 1}]})
    found = audit_release(parquet(tmp_path / "released", pandas=usual), households(), false_alarm=NEVER)
    assert found.passed, found


def test_metadata_of_arrow_files_are_found(tmp_path):
    table = shuffled(exchanged(households().drop("id"))).to_arrow().replace_schema_metadata({"source": "a census"})
    with pa.OSFile(str(tmp_path / "made.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    assert wrong(audit_release(tmp_path / "made.arrow", households())) == {"metadata"}


def test_comments_of_csv_files_are_found(tmp_path):
    text = shuffled(exchanged(households().drop("id"))).write_csv()
    (tmp_path / "made.csv").write_text(f"# exported from /srv/census/2020.db\n{text}", encoding="utf-8")
    assert wrong(audit_release(tmp_path / "made.csv", households())) == {"paths"}


def test_labels_and_times_of_stata_files_are_found(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = shuffled(exchanged(households().drop("id"))).to_pandas()
    pyreadstat.write_dta(frame, str(tmp_path / "made.dta"), file_label="from /home/anna/census.dta")
    assert wrong(audit_release(tmp_path / "made.dta", households())) == {"paths", "times"}


def test_the_time_inside_a_compressed_file_is_found(tmp_path):
    text = shuffled(exchanged(households().drop("id"))).write_csv().encode()
    with (tmp_path / "with.csv.gz").open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=10**9) as file:
        file.write(text)
    with (tmp_path / "without.csv.gz").open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        file.write(text)
    assert wrong(audit_release(tmp_path / "with.csv.gz", households())) == {"times"}
    assert audit_release(tmp_path / "without.csv.gz", households(), false_alarm=NEVER).passed


def test_the_properties_of_a_workbook_are_found(tmp_path):
    place = foreign(tmp_path, shuffled(households()))
    with zipfile.ZipFile(place / "tables.xlsx", "w") as book:
        book.writestr(zipfile.ZipInfo("docProps/core.xml"), "<p>/home/anna/tables.xlsx</p>")
    assert wrong(audit_release(place, households())) == {"paths"}


@pytest.mark.parametrize("name", [".DS_Store", "swapped.csv~", "run.log", "swapped.bak", "__pycache__/x.pyc"])
def test_files_that_nobody_meant_to_release_are_found(name, tmp_path):
    place = foreign(tmp_path, shuffled(households()))
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_bytes(b"x")
    assert wrong(audit_release(place, households())) == {"left-over"}


def test_a_link_is_named_and_not_followed(tmp_path):
    place = foreign(tmp_path, shuffled(households()))
    (tmp_path / "secret.csv").write_text("/home/anna/x", encoding="utf-8")
    (place / "link.csv").symlink_to(tmp_path / "secret.csv")
    assert wrong(audit_release(place, households())) == {"left-over"}


def test_a_cell_that_looks_like_a_comment_is_none(tmp_path):
    text = (
        shuffled(exchanged(households().drop("id")))
        .with_columns(pl.lit("# /home/a/b").alias("note"))
        .select("note", pl.all().exclude("note"))
    )
    text.write_csv(tmp_path / "made.csv")
    assert audit_release(tmp_path / "made.csv", households(), false_alarm=NEVER).passed


def test_a_release_without_rows_has_no_traces(tmp_path):
    households()[:0].write_csv(tmp_path / "made.csv")
    assert audit_release(tmp_path / "made.csv", households()).passed


def test_a_table_in_a_text_file_is_read(tmp_path):
    given = shuffled(households())
    exchanged(given.drop("id")).write_csv(tmp_path / "made.txt", separator=";")
    assert wrong(audit_release(tmp_path / "made.txt", given)) == {"row-order-made"}


# -- refusals --------------------------------------------------------------------------------------------------------


def test_a_release_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(errors.StirredError) as refused:
        audit_release(tmp_path / "none", households())
    assert refused.value.kind == "nothing-released"


def test_a_release_of_something_else_is_refused(tmp_path):
    pl.DataFrame({"other": [1, 2]}).write_csv(tmp_path / "made.csv")
    with pytest.raises(errors.StirredError) as refused:
        audit_release(tmp_path / "made.csv", households())
    assert refused.value.kind == "nothing-to-compare"


def test_a_false_alarm_rate_of_nothing_is_refused(tmp_path):
    with pytest.raises(errors.StirredError, match="between 0 and 1"):
        audit_release(foreign(tmp_path, households()), households(), false_alarm=0)
