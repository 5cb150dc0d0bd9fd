"""A fingerprint tells margins apart and does not depend on the order of rows."""

import polars as pl
import pytest

from stirred.invariants import Margin, fingerprint
from stirred.tables import Table, open_input
from stirred.tables.reading.table_reader import read_table

ROWS = [("A", 1, "x"), ("A", 1, "y"), ("A", 2, "x"), ("B", 2, "x"), ("B", 2, "x")]


def table(rows: list[tuple[str, int, str]], names: tuple[str, ...] = ("area", "size", "tenure")) -> Table:
    frame = pl.DataFrame(rows, schema=list(names), orient="row")
    return read_table(open_input("microdata", frame), list(names)).table


def digest(encoded: Table, *columns: str) -> str:
    return fingerprint(encoded, Margin("microdata", columns).count(encoded))


def test_a_margin_counts_rows_by_its_columns():
    counted = Margin("microdata", ("area", "size")).count(table(ROWS))
    assert counted.counts.tolist() == [2, 1, 2]


@pytest.mark.parametrize("columns", [("area",), ("area", "size"), ("size", "tenure"), ("area", "size", "tenure")])
def test_the_order_of_rows_leaves_the_fingerprint_alone(columns):
    assert digest(table(ROWS), *columns) == digest(table(ROWS[::-1]), *columns)


def test_one_moved_record_changes_the_fingerprint_of_the_margin_it_changes_and_of_no_other():
    moved = [("B", 1, "x"), *ROWS[1:]]
    assert digest(table(moved), "area", "size") != digest(table(ROWS), "area", "size")
    assert digest(table(moved), "size", "tenure") == digest(table(ROWS), "size", "tenure")


def test_the_same_counts_under_another_name_or_of_other_values_are_another_margin():
    renamed = table(ROWS, ("place", "size", "tenure"))
    assert digest(renamed, "place") != digest(table(ROWS), "area")
    other = table([(area.lower(), size, tenure) for area, size, tenure in ROWS])
    assert digest(other, "area") != digest(table(ROWS), "area")


def test_a_margin_of_no_columns_is_the_number_of_rows():
    counted = Margin("microdata", ()).count(table(ROWS))
    assert counted.counts.tolist() == [5]
    assert str(Margin("microdata", ())) == "the number of rows of microdata"
