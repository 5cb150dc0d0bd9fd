"""A release does not betray where its rows stood, what they were called, or how the input was stored.

Sorted releases are compared byte for byte between inputs that differ only in what must not show. Shuffled ones are
tested against the uniform law with fixed seeds; each statistical test raises a false alarm with probability 1e-9.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy import stats

from stirred.noise import SeededSource
from stirred.swap.dataset import load
from stirred.swap.plan import SwapPlan
from stirred.swap.recipient import verify
from stirred.swap.release import SwapRelease, draw, release
from stirred.swap.rows import ShuffledRows, SortedRows, put_in_order
from stirred.tables import write

FALSE_ALARM = 1e-9
NEVER = "1/1000000000000000000"
"""A rate at which nobody moves, but for one run in 10^14."""

DOCUMENTS = {"README.txt", "certificate.json", "data_dictionary.json", "manifest.json", "specification.json"}


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a release."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def microdata(rows: int = 600, seed: int = 1) -> pl.DataFrame:
    """Records with a telling order: row numbers as ids, sorted by the swap variable."""
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "county": random.choice(["b", "a", "c"], rows),
            "size": random.integers(1, 4, rows),
            "tenure": random.choice(["rented", "owned", "other"], rows),
            "rooms": random.integers(1, 9, rows),
        }
    )
    return frame.sort("county", descending=True).with_row_index("id", 1)


def main_plan(**changes: Any) -> SwapPlan:
    fields: dict[str, Any] = {
        "match": ["size"],
        "swap": ["county"],
        "hold": "rest",
        "id": "id",
        "rate": NEVER,
        "chosen_from": "public",
        "tables": [["county", "tenure"]],
        "saturated": True,
    }
    return SwapPlan(**(fields | changes))


# -- sorted releases are a function of the released rows -----------------------------------------------------------


def reordered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sample(fraction=1, shuffle=True, seed=5)


def renumbered(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(id=pl.lit("SECRET-") + (pl.col("id") * 17).cast(pl.String))


def as_csv(frame: pl.DataFrame, folder: Path) -> Path:
    frame.write_csv(folder / "in.csv")
    return folder / "in.csv"


def as_parquet(frame: pl.DataFrame, folder: Path) -> Path:
    frame.write_parquet(folder / "in.parquet")
    return folder / "in.parquet"


def as_parquet_parts(frame: pl.DataFrame, folder: Path) -> Path:
    """Several files and row groups, dictionaries in the order of first appearance."""
    for part in range(3):
        rows = frame[part::3].to_arrow()
        coded = [
            rows[name].dictionary_encode() if name in ("county", "tenure") else rows[name] for name in rows.schema.names
        ]
        pq.write_table(pa.table(coded, names=rows.schema.names), folder / f"{part}.parquet", row_group_size=70)
    return folder


def as_frame(frame: pl.DataFrame, folder: Path) -> pl.DataFrame:
    return frame


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize("store", [as_csv, as_parquet, as_parquet_parts, as_frame])
@pytest.mark.parametrize("change", [reordered, renumbered])
def test_inputs_that_differ_in_order_or_ids_give_the_same_bytes(tmp_path, store, change, kind):
    releases = []
    for name, frame in {"as it is": microdata(), "changed": change(microdata())}.items():
        (tmp_path / name).mkdir()
        drawn = release(main_plan(format=kind), store(frame, tmp_path / name), out=tmp_path / f"out {name}")
        assert isinstance(drawn.rows, SortedRows)
        releases.append(contents(tmp_path / f"out {name}"))
    assert releases[0] == releases[1]


def test_the_way_a_table_was_stored_does_not_show(tmp_path):
    """Whole numbers as text in CSV are another type, so only typed inputs can be compared."""
    inputs: dict[str, object] = {}
    for store in (as_parquet, as_parquet_parts, as_frame):
        (tmp_path / store.__name__).mkdir()
        inputs[store.__name__] = store(microdata(), tmp_path / store.__name__)
    inputs["pandas"] = microdata().to_pandas().set_index("rooms", drop=False).rename_axis("SECRET")
    categories = pl.Enum(["SECRET", "c", "b", "a"])
    inputs["enum"] = microdata().with_columns(pl.col("county").cast(categories))
    releases = []
    for name, data in inputs.items():
        release(main_plan(format="parquet"), data, out=tmp_path / f"out {name}")
        releases.append(contents(tmp_path / f"out {name}"))
    assert all(other == releases[0] for other in releases[1:])


def test_a_record_more_does_show(tmp_path):
    """The comparison of bytes is not blind."""
    release(main_plan(format="csv"), microdata(), out=tmp_path / "one")
    release(main_plan(format="csv"), microdata()[:-1], out=tmp_path / "other")
    assert contents(tmp_path / "one")["microdata.csv"] != contents(tmp_path / "other")["microdata.csv"]


def test_rows_are_sorted_by_all_columns_and_numbered(tmp_path):
    release(main_plan(format="csv", rate="1/2"), microdata(), out=tmp_path / "out")
    found = pl.read_csv(tmp_path / "out" / "microdata.csv")
    assert found["id"].to_list() == list(range(1, found.height + 1))
    assert found.drop("id").equals(found.drop("id").sort(pl.all()))


def test_the_documents_do_not_depend_on_what_was_drawn(tmp_path):
    """Nor, then, on which records moved or how many."""
    released = []
    for seed in range(4):
        drawn = draw(main_plan(rate="1/2", format="parquet"), microdata(), source=SeededSource(seed))
        released.append(contents(drawn.write(tmp_path / str(seed), for_tests=True)))
    assert len({found["microdata.parquet"] for found in released}) == 4, "four swaps"
    for name in DOCUMENTS - {"manifest.json"}:
        assert len({found[name] for found in released}) == 1, name


# -- bytes ----------------------------------------------------------------------------------------------------


@pytest.fixture
def uncompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written without compression, so that a search of their bytes sees dictionaries and statistics too."""
    writer, new_file = pq.ParquetWriter, pa.ipc.new_file

    def plain_writer(*given: Any, **named: Any) -> Any:
        return writer(*given, **(named | {"compression": "none", "compression_level": None}))

    monkeypatch.setattr(write.pq, "ParquetWriter", plain_writer)
    monkeypatch.setattr(write.pa.ipc, "new_file", lambda path, schema, options: new_file(path, schema))


def households(number: int = 300, seed: int = 2) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Households sorted by county with persons in a telling order, head first; markers in ids and dropped columns."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 6, number)
    names = np.array([f"SECRET-H{i:05}" for i in range(number)])
    county = np.sort(random.choice(["north", "south", "west"], number))
    main = pl.DataFrame(
        {
            "household": names,
            "county": county,
            "class": np.minimum(sizes, 3),
            "tenure": random.choice(["owned", "rented"], number),
            "address": [f"SECRET street {i}" for i in range(number)],
        }
    )
    owner = np.repeat(np.arange(number), sizes)
    place = np.concatenate([np.arange(size) for size in sizes])
    persons = pl.DataFrame(
        {
            "person": [f"SECRET-P{i:06}" for i in range(len(owner))],
            "household": names[owner],
            "role": np.array(["1 head", "2 spouse", "3 child"])[np.minimum(place, 2)],
            "age": random.integers(0, 90, len(owner)),
            "county": county[owner],
            "home": county[owner],
        }
    )
    return main, persons


def household_plan(**changes: Any) -> SwapPlan:
    fields: dict[str, Any] = {
        "unit": "household",
        "match": ["class"],
        "swap": ["county"],
        "hold": ["tenure"],
        "drop": ["address"],
        "id": "household",
        "rate": "1/2",
        "chosen_from": "public",
        "linked": [
            {
                "name": "persons",
                "link": "household",
                "id": "person",
                "hold": ["role", "age"],
                "copies": {"home": "county"},
            }
        ],
    }
    return SwapPlan(**(fields | changes))


def marked_parquet(frame: pl.DataFrame, path: Path) -> Path:
    """A Parquet file that tells its origin wherever such a file can."""
    table = pa.Table.from_pandas(frame.to_pandas().rename_axis("SECRET-index"))
    fields = [field.with_metadata({"SECRET-field": "SECRET"}) for field in table.schema]
    coded = table.cast(pa.schema(fields, metadata=table.schema.metadata | {b"SECRET": b"SECRET"}))
    levels = pa.array(["west", "SECRET-unused", "south", "north"])
    county = pa.DictionaryArray.from_arrays(
        pa.array([levels.to_pylist().index(value) for value in frame["county"]], pa.int8()), levels
    )
    coded = coded.set_column(coded.schema.names.index("county"), "county", county)
    pq.write_table(coded, path)
    return path


def marked_csv(frame: pl.DataFrame, path: Path) -> Path:
    frame.write_csv(path)
    return path


def marked_pandas(frame: pl.DataFrame, path: Path) -> pd.DataFrame:
    found = frame.to_pandas().set_axis([f"SECRET {i}" for i in range(frame.height)], axis=0)
    found["county"] = pd.Categorical(found["county"], categories=["west", "SECRET", "south", "north"])
    found.attrs["SECRET"] = "SECRET"
    found.columns.name = "SECRET"
    return found


def marked_arrow(frame: pl.DataFrame, path: Path) -> pa.Table:
    return pq.read_table(marked_parquet(frame, path))


@pytest.mark.usefixtures("uncompressed")
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize(
    ("store", "suffix"),
    [(marked_parquet, "parquet"), (marked_csv, "csv"), (marked_pandas, ""), (marked_arrow, "parquet")],
)
def test_no_byte_of_a_release_tells_the_origin_of_its_rows(tmp_path, store, suffix, kind):
    folder = tmp_path / "SECRET-dir"
    folder.mkdir()
    main, persons = households()
    data = store(main, folder / f"SECRET-main.{suffix}")
    linked = {"persons": store(persons, folder / f"SECRET-persons.{suffix}")}
    plan = household_plan(format=kind, tables=[["county", "tenure"]], saturated=True, hold=["tenure"])
    release(plan, data, linked, out=tmp_path / "out")
    found = contents(tmp_path / "out")
    assert {*found} == DOCUMENTS | {
        f"microdata.{kind}",
        f"persons.{kind}",
        f"saturated.{kind}",
        "tables/county-by-tenure.csv",
    }
    for name, content in found.items():
        assert b"secret" not in content.lower(), name
        assert b"pandas" not in content, name
        assert b"address" not in content, name
        assert b"ARROW:schema" not in content, name
    assert all(finding.holds for finding in verify(tmp_path / "out"))


@pytest.mark.usefixtures("uncompressed")
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_the_search_of_bytes_sees_what_is_released(tmp_path, kind):
    main, persons = households()
    plan = household_plan(format=kind, hold=["tenure", "address"], drop=[], allow=["distinct:address"])
    release(plan, main, {"persons": persons}, out=tmp_path / "out")
    assert b"SECRET street 299" in contents(tmp_path / "out")[f"microdata.{kind}"]


def test_a_parquet_footer_says_names_types_and_sizes_only(tmp_path):
    main, persons = households()
    plan = household_plan(format="parquet")
    release(plan, marked_arrow(main, tmp_path / "m.parquet"), {"persons": persons}, out=tmp_path / "out")
    for name in ("microdata", "persons"):
        metadata = pq.read_metadata(tmp_path / "out" / f"{name}.parquet")
        assert not metadata.metadata
        assert metadata.created_by.startswith("parquet-cpp-arrow version")
        schema = pq.read_schema(tmp_path / "out" / f"{name}.parquet")
        assert schema.metadata is None
        assert {kind for field in schema for kind in (field.metadata or {})} <= {b"PARQUET:field_id"}
        assert not any(pa.types.is_dictionary(field.type) for field in schema)


def test_a_release_has_times_of_its_own(tmp_path):
    main, _ = households()
    path = as_parquet(main, tmp_path)
    os.utime(path, (946_684_799, 946_684_799))
    began = time.time() - 2
    release(household_plan(linked=[]), path, out=tmp_path / "out")
    for name, content in contents(tmp_path / "out").items():
        assert (tmp_path / "out" / name).stat().st_mtime >= began
        assert b"1999-12-31" not in content
        assert b"946684799" not in content
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert set(certificate["released_on"]) <= set("0123456789-"), "a date, without the time of day"


# -- the order of shuffled rows -----------------------------------------------------------------------------------

TAGGED = 4000


def correlation_is_chance(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether the order of ``other`` is unrelated to that of ``one``: under shuffling, z is nearly normal."""
    z = np.corrcoef(stats.rankdata(one), stats.rankdata(other))[0, 1] * np.sqrt(len(one) - 1)
    return bool(2 * stats.norm.sf(abs(z)) > FALSE_ALARM)


def neighbours_are_chance(places: NDArray[Any]) -> bool:
    """Whether rows that stood side by side are no more often side by side: their number is nearly Poisson(2)."""
    kept = np.count_nonzero(np.abs(np.diff(places)) == 1)
    return bool(stats.poisson.sf(kept - 1, 2) > FALSE_ALARM)


def tagged(frame: pl.DataFrame) -> pl.DataFrame:
    """Held columns that number the input's rows, so many that no 64-bit key holds them all and rows are shuffled."""
    return frame.with_columns(pl.int_range(pl.len()).alias(f"tag{i}") for i in range(18))


def tagged_plan() -> SwapPlan:
    return main_plan(rate="1/2", tables=[], saturated=False, allow=[f"distinct:tag{i}" for i in range(18)])


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_rows_stand_in_no_relation_to_the_rows_that_came_in(seed):
    frame = tagged(microdata(TAGGED))
    drawn = draw(tagged_plan(), frame, source=SeededSource(seed))
    assert isinstance(drawn.rows, ShuffledRows)
    found = drawn.frame()
    places = found["tag0"].to_numpy()
    assert sorted(places) == list(range(TAGGED))
    assert correlation_is_chance(np.arange(TAGGED), places)
    assert neighbours_are_chance(places)
    came_from = frame["county"].to_numpy()[places]
    assert correlation_is_chance(np.arange(TAGGED), np.unique(came_from, return_inverse=True)[1])
    assert found["id"].to_list() == list(range(1, TAGGED + 1))


def test_the_tests_of_order_see_an_order():
    near = np.argsort(np.arange(TAGGED) + np.random.default_rng(0).normal(0, TAGGED, TAGGED))
    assert not correlation_is_chance(np.arange(TAGGED), near)
    in_blocks = np.random.default_rng(0).permutation(np.arange(TAGGED).reshape(-1, 20)).reshape(-1)
    assert not neighbours_are_chance(in_blocks)


def test_every_row_goes_everywhere_alike():
    """Where each of twelve records ends, over many draws, is uniform."""
    dataset = load(tagged_plan(), tagged(microdata(12)))
    ends = np.zeros((12, 12), dtype=np.int64)
    for seed in range(6000):
        rows = put_in_order(dataset.columns, "id", dataset.table, False, SeededSource(seed))
        ends[np.arange(12), rows.permutation] += 1
    assert all(stats.chisquare(row).pvalue > FALSE_ALARM / 12 for row in ends)


# -- linked rows --------------------------------------------------------------------------------------------------

MANY = 6000


@pytest.fixture(scope="module")
def linked_release() -> tuple[pl.DataFrame, pl.DataFrame, SwapRelease]:
    main, persons = households(MANY, seed=8)
    return main, persons, draw(household_plan(), main, {"persons": persons}, source=SeededSource(21))


def test_ids_are_new_and_count_the_rows_of_both_tables(linked_release):
    main, persons, drawn = linked_release
    assert drawn.frame()["household"].to_list() == list(range(1, main.height + 1))
    assert drawn.frame("persons")["person"].to_list() == list(range(1, persons.height + 1))
    links = drawn.frame("persons")["household"].to_numpy()
    assert np.all(np.diff(links) >= 0), "persons follow their households"
    assert links.min() == 1 and links.max() <= main.height


def composition(main: pl.DataFrame, persons: pl.DataFrame) -> Counter[object]:
    """The multiset of households, each with what is held and the multiset of its persons."""
    members: dict[object, list[object]] = defaultdict(list)
    for household, role, age in persons.select("household", "role", "age").iter_rows():
        members[household].append((role, age))
    return Counter(
        (size, tenure, tuple(sorted(members[household])))
        for household, size, tenure in main.select("household", "class", "tenure").iter_rows()
    )


def test_persons_stay_with_their_household(linked_release):
    main, persons, drawn = linked_release
    assert composition(drawn.frame(), drawn.frame("persons")) == composition(main, persons)


def test_copies_of_the_swap_variable_follow_the_household(linked_release):
    main, _, drawn = linked_release
    joined = drawn.frame("persons").join(drawn.frame(), on="household", suffix="_of_record")
    assert joined.height == drawn.frame("persons").height
    assert joined["county"].equals(joined["county_of_record"], check_names=False)
    assert joined["home"].equals(joined["county_of_record"], check_names=False)
    before = Counter(main.select("class", "county").iter_rows())
    assert Counter(drawn.frame().select("class", "county").iter_rows()) == before


def test_households_were_moved_at_all(linked_release):
    main, persons, drawn = linked_release
    ages = persons.group_by("household").agg(pl.col("age").sort(), pl.col("role").sort())
    before = main.join(ages, on="household").drop("household", "address")
    ages = drawn.frame("persons").group_by("household").agg(pl.col("age").sort(), pl.col("role").sort())
    after = drawn.frame().join(ages, on="household").drop("household")

    def multiset(frame: pl.DataFrame) -> Counter[str]:
        return Counter(map(repr, frame.select("county", "class", "tenure", "age", "role").iter_rows()))

    moved = (multiset(after) - multiset(before)).total()
    assert 0.2 < moved / MANY < 0.5, "half are selected, and a third of those meet their own county again"


@pytest.mark.parametrize("persons_first_by", [["household"], ["role"], ["age"]])
def test_the_head_of_a_household_may_stand_anywhere(persons_first_by):
    """Its place among the persons of a household is uniform, whether persons came by household or by role."""
    main, persons = households(MANY, seed=9)
    persons = persons.sort(persons_first_by, maintain_order=True)
    found = draw(household_plan(), main, {"persons": persons}, source=SeededSource(4)).frame("persons")
    placed = found.with_columns(place=pl.int_range(pl.len()).over("household"), size=pl.len().over("household"))
    heads = placed.filter(pl.col("role") == "1 head")
    assert heads.height == MANY
    for size in (2, 3, 4, 5):
        counts = np.bincount(heads.filter(pl.col("size") == size)["place"].to_numpy(), minlength=size)
        assert counts.sum() > 500
        assert stats.chisquare(counts).pvalue > FALSE_ALARM, counts


def test_three_persons_come_in_all_six_orders():
    number = 6000
    county = np.random.default_rng(3).choice(["a", "b"], number)
    main = pl.DataFrame({"household": range(number), "county": county, "class": 1, "tenure": county[::-1]})
    persons = pl.DataFrame({"household": np.repeat(np.arange(number), 3), "role": ["x", "y", "z"] * number})
    plan = household_plan(drop=[], linked=[{"name": "persons", "link": "household", "hold": "rest"}])
    found = draw(plan, main, {"persons": persons}, source=SeededSource(6)).frame("persons")
    orders = Counter("".join(part) for part in found["role"].to_numpy().reshape(-1, 3))
    assert len(orders) == 6
    assert stats.chisquare(list(orders.values())).pvalue > FALSE_ALARM


@pytest.mark.parametrize("seed", range(3))
def test_households_stand_in_no_relation_to_the_order_they_came_in(seed):
    main, persons = households(TAGGED, seed=10)
    main = main.with_columns(tag=pl.int_range(pl.len()))
    plan = household_plan(hold=["tenure", "tag"], allow=["distinct:tag"])
    drawn = draw(plan, main, {"persons": persons}, source=SeededSource(seed))
    places = drawn.frame()["tag"].to_numpy()
    assert sorted(places) == list(range(TAGGED))
    assert correlation_is_chance(np.arange(TAGGED), places)
    assert neighbours_are_chance(places)
    came_from = main["county"].to_numpy()[places]
    assert correlation_is_chance(np.arange(TAGGED), np.unique(came_from, return_inverse=True)[1])


Change = Callable[[pl.DataFrame, pl.DataFrame], tuple[pl.DataFrame, pl.DataFrame]]


def other_ids(main: pl.DataFrame, persons: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    names = dict(zip(main["household"], range(10**6, 10**6 + main.height), strict=True))
    return (
        main.with_columns(pl.col("household").replace_strict(names)),
        persons.with_columns(pl.col("household").replace_strict(names), person=pl.int_range(pl.len()) * 3),
    )


def other_order(main: pl.DataFrame, persons: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    return reordered(main), reordered(persons)


@pytest.mark.parametrize("change", [other_ids, other_order])
def test_documents_of_a_linked_release_do_not_depend_on_ids_or_order(tmp_path, change: Change):
    main, persons = households()
    released = []
    for name, (one, other) in {"as it is": (main, persons), "changed": change(main, persons)}.items():
        release(household_plan(), one, {"persons": other}, out=tmp_path / name)
        released.append(contents(tmp_path / name))
    for name in DOCUMENTS - {"manifest.json"}:
        assert released[0][name] == released[1][name], name
