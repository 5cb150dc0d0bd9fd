"""Declared invariants meet tables: what is counted, what is compared, what implies what."""

from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repeats import some_or
from stirred.errors import StirredError
from stirred.lab.definitions.invariant_values import agree, digest, evaluate, recount
from stirred.spec import Invariant
from stirred.tables import Table, open_input
from stirred.tables.reading.table_reader import read_table

NAMES = ("block", "size", "tenure")
COUNTY = {"b1": "c1", "b2": "c1", "b3": "c2"}
NESTED = [("block", "county")]
records = st.lists(
    st.tuples(st.sampled_from(sorted(COUNTY)), st.sampled_from(["1", "2"]), st.sampled_from(["own", "rent"])),
    min_size=1,
    max_size=8,
)


def table(rows, names=NAMES, name="microdata") -> Table:
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    return read_table(open_input(name, frame), list(names)).table


def with_county(rows):
    return [(*row, COUNTY[row[0]]) for row in rows]


def test_an_invariant_counts_the_rows_that_satisfy_its_condition():
    rows = [("b1", "1", "own"), ("b1", "1", "rent"), ("b1", "1", "own"), ("b2", "2", "own")]
    owners = Invariant("household", by=("block",), where=(("tenure", "own"),))
    found, counted = evaluate(owners, table(rows))
    assert dict(zip(found["block"].texts(), counted.counts.tolist(), strict=True)) == {"b1": 2, "b2": 1}
    empty = Invariant("household", by=("block",), where=(("tenure", "neither"),))
    assert len(evaluate(empty, table(rows))[1]) == 0


def test_an_inequality_invariant_keeps_only_which_cells_reach_it():
    two = Invariant("household", by=("block",), at_least=2)
    few, many = [("b1", "1", "own")] * 2 + [("b2", "1", "own")], [("b1", "1", "own")] * 5
    assert digest(two, table(few)) == digest(two, table(many))
    assert digest(two, table(few)) != digest(two, table([("b1", "1", "own"), ("b2", "1", "own")]))
    one = Invariant("household", by=("block",), at_least=1)
    assert digest(one, table(few)) != digest(one, table(many))


@pytest.mark.repeats
@settings(max_examples=some_or(40, 100))
@given(records, records)
def test_digests_agree_exactly_where_the_values_do(first, second):
    for invariant in (
        Invariant("household"),
        Invariant("household", by=("block",)),
        Invariant("household", by=("size", "tenure")),
        Invariant("household", by=("block",), where=(("tenure", "own"),)),
        Invariant("household", by=("size",), at_least=2),
    ):
        small = [[dict(zip(NAMES, row, strict=True)) for row in rows] for rows in (first, second)]
        same = invariant.value(small[0]) == invariant.value(small[1])
        assert (digest(invariant, table(first)) == digest(invariant, table(second))) == same


INVARIANTS = [
    Invariant("household", by=by, where=where, at_least=at_least)
    for by in [(), ("block",), ("county",), ("size",), ("block", "size"), ("county", "tenure"), ("size", "tenure")]
    for where in [(), (("tenure", "own"),)]
    for at_least in [None, 1, 2]
]


@pytest.mark.parametrize("given_one", INVARIANTS, ids=str)
def test_what_is_implied_never_differs_where_the_given_agrees(given_one):
    """Every pair of files of three records: an exhaustive check of implication, nested geographies included."""
    kinds = [(block, size, tenure) for block in COUNTY for size in "12" for tenure in ("own", "rent")]
    names = (*NAMES, "county")
    files = [
        [dict(zip(names, row, strict=True)) for row in with_county(rows)]
        for rows in ([a, b, c] for i, a in enumerate(kinds) for j, b in enumerate(kinds[i:], i) for c in kinds[j::3])
    ]
    values = {invariant: [_frozen(invariant.value(file)) for file in files] for invariant in INVARIANTS}
    implied = [other for other in INVARIANTS if given_one.implies(other, NESTED)]
    assert given_one in implied
    for other in INVARIANTS:
        seen: dict[object, object] = {}
        holds = all(
            seen.setdefault(mine, theirs) == theirs
            for mine, theirs in zip(values[given_one], values[other], strict=True)
        )
        if other in implied:
            assert holds, str(other)
        elif given_one.at_least is None and other.at_least is None and not (given_one.where or other.where):
            # Among plain margins nothing that follows is missed, but for the number of records, the same in all files.
            assert not holds or not other.by, str(other)


def _frozen(value):
    return frozenset(value.items()) if isinstance(value, dict) else frozenset(value)


def test_two_tables_share_a_universe_if_they_agree_on_every_invariant():
    kept = [Invariant("household", by=("block", "size")), Invariant("household", by=("size", "tenure"))]
    rows = [("b1", "1", "own"), ("b2", "1", "rent")]
    swapped = [("b1", "1", "rent"), ("b2", "1", "own")]
    assert agree(kept, table(rows), table(swapped))
    assert not agree([Invariant("household", by=NAMES)], table(rows), table(swapped))


def test_a_recount_says_which_invariants_the_tables_cannot_show():
    rows = table([("b1", "1", "own")])
    shown = Invariant("household", by=("block",))
    other_table, other_column = Invariant("person", by=("block",)), Invariant("household", by=("age",))
    found = recount([shown, other_table, other_column], {"household": rows})
    assert found[shown] == digest(shown, rows)
    assert found[other_table] is None and found[other_column] is None


def test_an_invariant_of_a_column_that_is_not_there_is_refused_by_name():
    with pytest.raises(StirredError, match="no column 'age'"):
        evaluate(Invariant("household", by=("age",)), table([("b1", "1", "own")]))
    with pytest.raises(StirredError, match="Cannot evaluate the invariant 'the mean age'"):
        evaluate(Invariant(name="the mean age"), table([("b1", "1", "own")]))


@given(records)
def test_a_null_is_a_value_like_others(rows):
    frame = pl.DataFrame([*rows, ("b1", None, "own")], schema=dict.fromkeys(NAMES, pl.String), orient="row")
    encoded = read_table(open_input("microdata", frame), list(NAMES)).table
    found, counted = evaluate(Invariant("household", by=("size",)), encoded)
    expected = Counter([row[1] for row in rows] + [None])
    assert dict(zip(found["size"].texts(), counted.counts.tolist(), strict=True)) == dict(expected)
