"""The referee of ``invariants``: margins beside counts by hand, and implications beside all pairs of small files."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import polars as pl
from referee_harness import Case, claim

from stirred.lab.definitions.invariant_values import agree, digest, evaluate, recount
from stirred.spec import Invariant
from stirred.spec.invariant import merged, missing
from stirred.tables import Table, open_input
from stirred.tables.reading.table_reader import read_table

COLUMNS = ("block", "county", "size", "tenure")
COUNTY = {"b1": "c1", "b2": "c1", "b3": "c2"}
NESTED = (("block", "county"),)
VALUES = {"block": ("b1", "b2", "b3"), "county": ("c1", "c2"), "size": ("1", "2"), "tenure": ("own", "rent")}

Row = tuple[str, ...]


def rows(random: np.random.Generator, least: int, most: int) -> list[Row]:
    found = []
    for _ in range(int(random.integers(least, most + 1))):
        block, size, tenure = (str(random.choice(VALUES[name])) for name in ("block", "size", "tenure"))
        found.append((block, COUNTY[block], size, tenure))
    return found


def table(records: list[Row], name: str = "microdata") -> Table:
    frame = pl.DataFrame(records, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    return read_table(open_input(name, frame), list(COLUMNS)).table


def invariant(random: np.random.Generator) -> Invariant:
    by = tuple(name for name in COLUMNS if random.random() < 0.4)
    where = tuple((name, str(random.choice(VALUES[name]))) for name in COLUMNS if random.random() < 0.15)
    at_least = int(random.integers(1, 4)) if random.random() < 0.3 else None
    return Invariant("household", by=by, where=where, at_least=at_least)


def value(one: Invariant, records: list[Row]) -> Any:
    """What the invariant keeps, counted row by row."""
    places = [COLUMNS.index(name) for name in one.by]
    chosen = [row for row in records if all(row[COLUMNS.index(name)] == wanted for name, wanted in one.where)]
    counts = Counter(tuple(row[at] for at in places) for row in chosen)
    if one.at_least is None:
        return dict(counts)
    return {cell for cell, count in counts.items() if count >= one.at_least}


@claim("invariants", cases=500)
def values_of_invariants(case: Case) -> None:
    records, one = rows(case.random, 1, 12), invariant(case.random)
    case.say(rows=records, invariant=str(one))
    held, counted = evaluate(one, table(records))
    texts = [held[name].texts() for name in counted.names]
    cells = [
        tuple(text[code] for text, code in zip(texts, codes, strict=True)) for codes in zip(*counted.codes, strict=True)
    ]
    cells = cells if counted.names else [()] * len(counted.counts)
    truth = value(one, records)
    found: Any = dict(zip(cells, counted.counts.tolist(), strict=True))
    order = [counted.names.index(name) for name in one.by]
    found = {tuple(cell[at] for at in order): count for cell, count in found.items()}
    if one.at_least is not None:
        case.holds(one.by == () or set(found.values()) <= {1}, "cells that reach a threshold are counted once")
        found = {cell for cell, count in found.items() if count > 0}
    elif not one.by:
        found = {cell: count for cell, count in found.items() if count}
    case.holds(found == truth, f"{found} instead of {truth}")
    small = [dict(zip(COLUMNS, row, strict=True)) for row in records]
    case.holds(one.value(small) == truth, f"on records: {one.value(small)} instead of {truth}")


@claim("invariants", cases=400)
def fingerprints(case: Case) -> None:
    """Equal exactly where the values are, on files that are often nearly the same."""
    first = rows(case.random, 1, 6)
    second = [first[int(at)] for at in case.random.permutation(len(first))]
    for _ in range(case.whole("changed", 0, 2)):
        second[int(case.random.integers(len(second)))] = rows(case.random, 1, 1)[0]
    if case.random.random() < 0.3:
        second += rows(case.random, 1, 1)
    chosen = [invariant(case.random) for _ in range(case.whole("invariants", 1, 4))]
    case.say(first=first, second=second, chosen=[str(one) for one in chosen])
    one, other = table(first), table(second)
    for each in chosen:
        truth = value(each, first) == value(each, second)
        case.holds((digest(each, one) == digest(each, other)) == truth, f"fingerprints of {each}: equal is {truth}")
    together = all(value(each, first) == value(each, second) for each in chosen)
    case.holds(agree(chosen, one, other) == together, "agreement on all of them")
    case.holds(recount(chosen, {"household": one}) == {each: digest(each, one) for each in chosen}, "recounted")


@claim("invariants", cases=1200, counted=0.5)
def implications(case: Case) -> None:
    """Where one invariant is said to imply another, no two files agree on the first and not on the second."""
    first = [invariant(case.random) for _ in range(case.whole("given", 1, 3))]
    wanted = invariant(case.random)
    if case.random.random() < 0.6:  # something that may follow: fewer columns of one of them
        one = first[0]
        kept = tuple(name for name in one.by if case.random.random() < 0.6)
        wanted = Invariant("household", by=kept, where=one.where, at_least=one.at_least)
    case.say(given=[str(one) for one in first], wanted=str(wanted))
    if missing(first, [wanted], NESTED):
        return
    for _ in range(40):
        a = rows(case.random, 1, 5)
        b = like(case.random, a)
        if all(value(one, a) == value(one, b) for one in first):
            case.holds(value(wanted, a) == value(wanted, b), f"{a} and {b} agree on what is given, not on {wanted}")


def like(random: np.random.Generator, records: list[Row]) -> list[Row]:
    """A file that often agrees with another: values of one column exchanged, one row changed, or a few rows more."""
    found = [list(row) for row in records]
    if len(found) > 1 and random.random() < 0.7:
        i, j = random.choice(len(found), 2, replace=False)
        column = int(random.integers(4))
        for at in {0: (0, 1), 1: (0, 1)}.get(column, (column,)):
            found[i][at], found[j][at] = found[j][at], found[i][at]
    elif random.random() < 0.5:
        found[int(random.integers(len(found)))] = list(rows(random, 1, 1)[0])
    else:
        found += [list(row) for row in rows(random, 1, 2)]
    return [tuple(row) for row in found]


@claim("invariants", cases=500)
def merging(case: Case) -> None:
    """Merged invariants hold the same files together as all of them."""
    chosen = [invariant(case.random) for _ in range(case.whole("invariants", 1, 4))]
    case.say(chosen=[str(one) for one in chosen])
    kept = merged(chosen, NESTED)
    case.holds(set(kept) <= set(chosen), "nothing is added")
    for _ in range(20):
        a = rows(case.random, 1, 5)
        b = like(case.random, a)
        together = [all(value(one, a) == value(one, b) for one in some) for some in (kept, chosen)]
        case.holds(together[0] == together[1], f"{a} and {b}: kept agree {together[0]}, all agree {together[1]}")


CLAIMS = (values_of_invariants, fingerprints, implications, merging)
