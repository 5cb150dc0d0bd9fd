"""What the generated data sets promise: published margins exactly, ids unique, files that fit together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from stirred.lab.reproduce.catalogue import items, published
from stirred.tables.synthetic import (
    DWELLINGS,
    PUBLISHED_MAPE,
    TABLE_3_1,
    TWO_PERSON_HOUSEHOLDS,
    households_and_persons,
    massachusetts_1940,
    records,
)


@pytest.fixture(scope="module")
def dwellings() -> pl.DataFrame:
    return massachusetts_1940()


@pytest.fixture(scope="module")
def country() -> tuple[pl.DataFrame, pl.DataFrame]:
    return households_and_persons(20_000)


def sorted_counts(table: pl.DataFrame) -> pl.DataFrame:
    columns = ["state", "county", "household_size", "tenure"]
    return table.group_by(columns).len().sort(columns)


def mape(true: npt.NDArray[np.float64], changed: npt.NDArray[np.float64]) -> float:
    return float(np.mean(np.abs(true - changed) / true))


# -- Massachusetts -------------------------------------------------------------------------------------------


def test_massachusetts_reproduces_the_left_half_of_table_3_1(dwellings: pl.DataFrame) -> None:
    counted = {(county, tenure): n for county, tenure, n in dwellings.group_by("county", "tenure").len().rows()}
    printed = {(row.county, "owned"): row.owned for row in TABLE_3_1}
    printed |= {(row.county, "rented"): row.rented for row in TABLE_3_1}
    assert counted == printed
    assert dwellings.height == DWELLINGS
    assert dwellings["state"].unique().to_list() == ["Massachusetts"]


def test_printed_table_3_1_adds_up() -> None:
    assert len(TABLE_3_1) == 14
    for half in ("totals", "totals-swapped"):
        suffix = "_swapped" if half.endswith("swapped") else ""
        for tenure in ("owned", "rented"):
            total = sum(getattr(row, tenure + suffix) for row in TABLE_3_1)
            assert total == int(published(f"thesis/table-3.1/{half}/all-{tenure}"))
        for row in TABLE_3_1:
            both = getattr(row, f"owned{suffix}") + getattr(row, f"rented{suffix}")
            assert both == int(published(f"thesis/table-3.1/{half}/{row.county}"))
    assert int(published("thesis/table-3.1/totals/all-total")) == DWELLINGS


def test_published_mape_follows_from_the_printed_table() -> None:
    true = np.array([[row.owned, row.rented] for row in TABLE_3_1], dtype=np.float64)
    swapped = np.array([[row.owned_swapped, row.rented_swapped] for row in TABLE_3_1], dtype=np.float64)
    assert round(mape(true, swapped), 6) == PUBLISHED_MAPE


def test_two_person_households_are_the_largest_stratum(dwellings: pl.DataFrame) -> None:
    strata = dwellings.group_by("state", "household_size").len().sort("len", descending=True)
    assert strata.row(0) == ("Massachusetts", 2, TWO_PERSON_HOUSEHOLDS)
    assert items()["thesis/table-3.2/0.05"].inputs["largest_stratum"] == TWO_PERSON_HOUSEHOLDS
    assert strata["len"][1] < TWO_PERSON_HOUSEHOLDS
    assert sorted(strata["household_size"]) == list(range(1, 16))


def test_swapping_half_is_expected_to_disturb_it_about_as_much_as_the_published_run(
    dwellings: pl.DataFrame,
) -> None:
    """Expected cell within a stratum: (1 - p) n_hs + p (n_h n_s - n_hs) / (n - 1)."""
    counties = [row.county for row in TABLE_3_1]
    cells = np.zeros((14, 2, 15))
    for _, county, size, tenure, count in sorted_counts(dwellings).rows():
        cells[counties.index(county), int(tenure == "rented"), size - 1] = count
    by_county, by_tenure = cells.sum(axis=1, keepdims=True), cells.sum(axis=0, keepdims=True)
    strata = cells.sum(axis=(0, 1))
    expected = 0.5 * cells + 0.5 * (by_county * by_tenure - cells) / (strata - 1)
    assert mape(cells.sum(axis=2), expected.sum(axis=2)) == pytest.approx(0.13660, abs=5e-6)


def test_every_call_gives_the_same_dwellings(dwellings: pl.DataFrame) -> None:
    again = massachusetts_1940()
    assert again.equals(dwellings)
    # Pinned, since the multiset must not depend on the machine or on the version of numpy.
    sizes = dwellings["household_size"].value_counts().sort("household_size")["count"].to_list()
    assert sizes[:5] == [91_042, 264_331, 228_366, 211_590, 137_479]


def test_serial_numbers_are_complete_and_tell_nothing(dwellings: pl.DataFrame) -> None:
    serial = dwellings["serial"]
    assert serial.min() == 1 and serial.max() == DWELLINGS and serial.n_unique() == DWELLINGS
    # With a fixed seed there is no chance here; for a random order |correlation| > 7 / sqrt(n) has
    # probability below 1e-11.
    position = np.arange(DWELLINGS)
    for other in (
        position,
        (dwellings["tenure"] == "owned").to_numpy(),
        dwellings["household_size"].to_numpy(),
    ):
        assert abs(np.corrcoef(serial.to_numpy(), other)[0, 1]) < 7 / np.sqrt(DWELLINGS)


@pytest.mark.parametrize("scale", [0.0001, 0.01, 0.37, 1.5])
def test_a_scaled_file_keeps_the_margins_up_to_rounding(scale: float) -> None:
    table = massachusetts_1940(scale)
    assert table.height == round(DWELLINGS * scale)
    assert (table["household_size"] == 2).sum() == round(TWO_PERSON_HOUSEHOLDS * scale)
    for row in TABLE_3_1:
        here = table.filter(pl.col("county") == row.county)
        assert abs(here.filter(pl.col("tenure") == "owned").height - row.owned * scale) <= 1.001


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_not_positive_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scale must be a positive number"):
        massachusetts_1940(scale)


# -- households and persons ----------------------------------------------------------------------------------


def test_persons_number_the_sum_of_sizes(country: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    households, persons = country
    assert households.height == 20_000
    assert persons.height == households["size"].sum()
    members = persons.group_by("household_id").len()
    joined = households.join(members, on="household_id", how="full")
    assert (joined["size"] == joined["len"]).all(ignore_nulls=False)
    assert set(households["size"]) == set(range(1, 9))
    # A mean of 20,000 sizes has standard deviation below 0.0125; eight of them have probability below 1e-14.
    assert persons.height / households.height == pytest.approx(3.5, abs=0.1)


def test_copies_of_county_agree(country: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    households, persons = country
    joined = persons.join(households, on="household_id", how="left")
    assert (joined["county"] == joined["county_right"]).all(ignore_nulls=False)


def test_ids_are_unique_and_are_no_row_numbers(country: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    for table, column in zip(country, ("household_id", "person_id"), strict=True):
        ids = table[column]
        assert ids.dtype == pl.Int64
        assert ids.n_unique() == table.height
        assert not ids.is_sorted()
        assert ids.min() >= 0 and ids.max() < 2**53  # type: ignore[operator]
    households, persons = country
    assert persons["household_id"].unique(maintain_order=True).to_list() != households["household_id"].to_list()


def test_places_nest_and_keep_their_leading_zeros(country: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    households, _ = country
    for inner, outer in (("tract", "county"), ("county", "region")):
        assert households.group_by(inner).agg(pl.col(outer).n_unique())[outer].max() == 1
        assert households[inner].dtype == pl.String
    assert households["region"].min() == "01"
    assert households["county"].min() == "001"
    assert households["tract"].n_unique() > households["county"].n_unique() > households["region"].n_unique() > 1


def test_each_household_has_one_head_and_at_most_one_spouse(
    country: tuple[pl.DataFrame, pl.DataFrame],
) -> None:
    _, persons = country
    by_household = persons.group_by("household_id").agg(
        heads=(pl.col("relation") == "head").sum(), spouses=(pl.col("relation") == "spouse").sum()
    )
    assert by_household["heads"].unique().to_list() == [1]
    assert set(by_household["spouses"]) == {0, 1}
    assert persons["age"].min() == 0
    assert persons.filter(pl.col("relation").is_in(["head", "spouse"]))["age"].min() == 18
    assert set(persons.filter(pl.col("age") < 6)["education"]) == {"none yet"}


def test_the_seed_decides_the_country(country: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    households, persons = households_and_persons(20_000)
    assert households.equals(country[0]) and persons.equals(country[1])
    assert not households_and_persons(20_000, seed=1)[0].equals(households)
    assert households_and_persons(1)[0].height == 1
    with pytest.raises(ValueError, match="households must be at least 1"):
        households_and_persons(0)


# -- records -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strata", [1, 6, 350, 353])
def test_records_have_the_strata_asked_for_in_15_bytes_a_row(strata: int) -> None:
    # With 50,000 rows one of 353 strata stays empty with probability below 353 exp(-141).
    rows = 50_000
    table = pl.concat(records(rows, strata, rows_per_chunk=20_000))
    assert table.height == rows
    assert table.select("area", "size").n_unique() == strata
    assert table.schema["area"] == pl.UInt16
    assert table.estimated_size() == 15 * rows
    assert table["id"].n_unique() == rows
    assert table["county"].n_unique() == 100


def test_a_million_strata_take_a_wider_area() -> None:
    table = pl.concat(records(2_000_000, 1_000_000))
    assert table.schema["area"] == pl.UInt32
    stratum = table["area"].cast(pl.Int64) * 7 + table["size"] - 1
    assert stratum.min() >= 0 and stratum.max() < 1_000_000  # type: ignore[operator]
    # A stratum is hit with probability 1 - e**-2; the standard deviation of the number hit is below 350.
    assert stratum.n_unique() == pytest.approx(1_000_000 * (1 - np.exp(-2)), abs=3_500)
    assert table["id"].n_unique() == table.height


def test_records_repeat_with_their_seed() -> None:
    first = pl.concat(records(1_000, 350, seed=3))
    assert first.equals(pl.concat(records(1_000, 350, seed=3)))
    assert not first.equals(pl.concat(records(1_000, 350, seed=4)))
    assert list(records(0, 350)) == []


def test_impossible_records_are_refused_before_the_first_chunk() -> None:
    with pytest.raises(ValueError, match="rows must lie between"):
        records(-1, 350)
    with pytest.raises(ValueError, match="strata must lie between"):
        records(10, 0)
    with pytest.raises(ValueError, match="rows_per_chunk must be at least 1"):
        records(10, 10, rows_per_chunk=0)
