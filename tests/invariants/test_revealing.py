"""What two margins reveal, against bounds cell by cell and against all tables that have these margins."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations_with_replacement, permutations
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.invariants import TwoMargins, alike, reveal, revealing
from stirred.tables.columns import Column
from stirred.tables.groups import cells

bounded = settings(max_examples=150, deadline=None, derandomize=True)

record = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2))
"""Stratum, held value, swapped value."""


def margins_of(records: list[tuple[int, int, int]]) -> TwoMargins:
    columns = [
        Column(name, np.array(codes, dtype=np.uint8), list(range(4)))  # type: ignore[arg-type]
        for name, codes in zip("mhs", zip(*records, strict=True), strict=True)
    ]
    stratum, held, swapped = columns
    return TwoMargins.of(cells([stratum, held], len(records)), cells([stratum, swapped], len(records)))


def strata_of(records):
    found = defaultdict(list)
    for stratum, held, swapped in records:
        found[stratum].append((held, swapped))
    return [found[stratum] for stratum in sorted(found)]


@bounded
@given(st.lists(record, min_size=1, max_size=40))
def test_counts_equal_those_of_bounds_cell_by_cell(records):
    found = reveal(margins_of(records))
    widths, pinned, guessed, alone, copies = [], 0, 0, 0, 0
    told = Counter()
    for stratum in strata_of(records):
        n = len(stratum)
        held, swapped = Counter(h for h, _ in stratum), Counter(s for _, s in stratum)
        for h in held.values():
            for s in swapped.values():
                lower, upper = max(0, h + s - n), min(h, s)
                widths.append(upper - lower)
                pinned += lower
        guessed += max(swapped.values())
        alone += n == 1
        copies += n > 1 and len(set(stratum)) == 1
        for percent in (50, 90, 99):
            told[percent] += n * (100 * max(swapped.values()) >= percent * n)
    assert (found.records, found.strata) == (len(records), len(strata_of(records)))
    assert (found.pinned_records, found.guessed, found.singletons, found.duplicates) == (pinned, guessed, alone, copies)
    assert (found.cells, found.total_width) == (len(widths), sum(widths))
    edges = [(0, 0), (1, 1), (2, 4), (5, 9), (10, 99), (100, 10**9)]
    assert found.widths == tuple(sum(low <= one <= high for one in widths) for low, high in edges)
    assert dict(found.told) == dict(told)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(record, min_size=1, max_size=9).filter(lambda found: max(Counter(r[0] for r in found).values()) < 7))
def test_what_is_determined_is_what_all_tables_with_these_margins_share(records):
    margins = margins_of(records)
    found = reveal(margins)
    determined = determined_records = pinned = 0
    for number, stratum in enumerate(strata_of(records)):
        tables = [
            Counter(zip([h for h, _ in stratum], order, strict=True))
            for order in set(permutations([s for _, s in stratum]))
        ]
        kinds = {frozenset(table.items()) for table in tables}
        assert margins.determined[number] == (len(kinds) == 1)
        determined += len(kinds) == 1
        determined_records += len(stratum) * (len(kinds) == 1)
        shared = {(h, s) for h, _ in stratum for _, s in stratum}
        least = {cell: min(table[cell] for table in tables) for cell in shared}
        most = {cell: max(table[cell] for table in tables) for cell in shared}
        n, held, swapped = len(stratum), Counter(h for h, _ in stratum), Counter(s for _, s in stratum)
        for h, s in shared:  # the bounds are attained
            assert (least[h, s], most[h, s]) == (max(0, held[h] + swapped[s] - n), min(held[h], swapped[s]))
        pinned += sum(least.values())
    assert (found.determined_strata, found.determined_records) == (determined, determined_records)
    assert found.pinned_records == pinned


def test_the_published_example_of_pinned_records():
    """swap-estimation, section 6: (18, 2) by (12, 5, 3) pins .70 of its records."""
    assert reveal(TwoMargins.of_lists([([18, 2], [12, 5, 3])])).pinned_share == 0.7


@pytest.mark.parametrize(("n", "share"), [(1, 1.0), (2, 0.7396), (3, 0.4708), (5, 0.198703), (10, 0.029208)])
def test_the_share_of_determined_strata_of_independent_records(n, share):
    """Section 6: P(determined) = sum pi_h^n + sum pi_s^n - sum pi_hs^n, here over all kinds of n records."""
    chances = {(h, s): p * q for h, p in enumerate((0.7, 0.3)) for s, q in enumerate((0.5, 0.3, 0.2))}
    total = 0.0
    for kinds in combinations_with_replacement(chances, n):
        orders = factorial(n) / prod(map(factorial, Counter(kinds).values()))
        stratum = tuple(list(Counter(one[side] for one in kinds).values()) for side in (0, 1))
        total += orders * prod(chances[one] for one in kinds) * TwoMargins.of_lists([stratum]).determined[0]
    assert round(total, 6) == share


def test_cells_of_few_records_are_counted():
    assert alike("x", np.array([1, 1, 2, 5, 6, 9])).cells == (2, 1, 0, 0, 1)
    assert alike("x", np.array([1, 1, 2, 5, 6, 9])).more == 2


def test_a_wide_stratum_beside_small_ones():
    """Strata of unlike sizes share the memory of the scan; each must leave it empty."""
    both = [([300, 300], [200, 400]), ([2, 1], [1, 2]), ([1], [1])]
    apart = [reveal(TwoMargins.of_lists([one])) for one in both]
    together = reveal(TwoMargins.of_lists(both))
    assert together.total_width == sum(one.total_width for one in apart) == 4 * 200 + 4
    assert together.widths == tuple(map(sum, zip(*(one.widths for one in apart), strict=True)))


def test_strata_too_large_for_a_table_of_widths_are_counted_by_sorting(monkeypatch):
    """The same strata on both paths, and one of a nation's size, which must take no memory of its size."""
    rng = np.random.default_rng(5)
    both = []
    for _ in range(40):
        records = rng.integers(0, 6, (2, int(rng.integers(2, 400))))
        both.append(tuple(np.unique(side, return_counts=True)[1] for side in records))
    margins = TwoMargins.of_lists(both)
    by_table = reveal(margins)
    monkeypatch.setattr(revealing, "_LARGE", 30)
    assert reveal(margins) == by_table
    monkeypatch.undo()
    nation = reveal(TwoMargins.of_lists([([3 * 10**8, 10**8], [10**8, 2 * 10**8, 10**8])]))
    assert (nation.total_width, nation.pinned_records) == (6 * 10**8, 10**8)
