"""Audits: exact losses of whole strata, and lower bounds from runs (``audit_bounds.py``).

Beside exact losses stands the plain way: the same sums over sub-tables, row by row, in a Python loop, or all
permutations.

    python benchmarks/audits.py            rewrites its section of RESULTS.md
"""

from __future__ import annotations

import argparse
import itertools
import math
import operator
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from audit_bounds import lower_bounds_beside_plain
from results import machine, seconds, write_section
from stirred.lab.definitions.swap_practices import exact_loss, tables_of
from stirred.swap.law.stratum_laws import Table, stratum_law, tables_with

RATE = Fraction(1, 20)


def exact_losses() -> str:
    """Rows of a table: the whole law and the loss of a stratum, and the same in plain Python."""
    _loss((3, 2, 2), (3, 4))  # what is imported and compiled on the first call
    rows = ["| exact loss of a stratum | tables | seconds | the plain way | times faster |", "|---|---|---|---|---|"]
    for held, swapped, pairs in (
        ((4, 3), (4, 3), None),
        ((20, 20), (20, 20), 60),
        ((50, 50), (50, 50), 20),
        ((100, 100), (100, 100), 0),
        ((4, 4, 4), (4, 4, 4), 400),
        ((6, 6, 6), (6, 6, 6), 400),
        ((8, 8, 8), (8, 8, 8), 0),
        ((5, 5, 1, 1), (5, 5, 1, 1), 400),
        ((10, 10), (5, 5, 5, 5), 200),
    ):
        tables = list(tables_with(held, swapped))
        ours = seconds(lambda h=held, s=swapped: _loss(h, s), 3 if sum(held) < 60 else 1)
        if pairs is None:
            plain, how = seconds(lambda h=held, s=swapped: exact_loss(tables_of(h, s), RATE), 1), "all permutations"
        elif pairs:
            plain, how = _plain(tables, pairs), f"row by row; {pairs} pairs timed"
        name = f"{', '.join(map(str, held))} by {', '.join(map(str, swapped))}, {sum(held)} records"
        beside = "|  |  |" if pairs == 0 else f"| {plain:.3g} ({how}) | {plain / ours:,.0f} |"
        rows.append(f"| {name} | {len(tables):,} | {ours:.3g} {beside}")
    return "\n".join(rows)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--keep", action="store_true")
    arguments = options.parse_args()
    text = f"{machine(['numpy', 'numba'])}\n\n{exact_losses()}\n\n{lower_bounds_beside_plain()}\n"
    print(text)
    if not arguments.keep:
        write_section(__file__, text)


# -- helpers -------------------------------------------------------------------------------------------------


def _loss(held: Sequence[int], swapped: Sequence[int]) -> float:
    worst = stratum_law(held, swapped, RATE).worst
    assert worst is not None
    return worst.loss


def _plain(tables: Sequence[Table], pairs: int) -> float:
    """Seconds of counting permutations for all pairs of tables, from some that are spread evenly over them."""
    every = list(itertools.combinations_with_replacement(tables, 2))
    chosen = every[:: -(-len(every) // pairs)]
    return seconds(lambda: [_counts(x, z) for x, z in chosen], 1) * len(every) / len(chosen)


def _counts(x: Table, z: Table) -> list[int]:
    """Permutations from x to z by how many records they leave in place, row by row with column sums as the state."""
    held, swapped = [sum(row) for row in x], [sum(column) for column in zip(*x, strict=True)]
    states: Counter[tuple[int, ...]] = Counter({(0,) * len(swapped): 1})
    for total, row_x, row_z in zip(held, x, z, strict=True):
        choices = []
        for kept in itertools.product(*(range(min(pair) + 1) for pair in zip(row_x, row_z, strict=True))):
            rest = math.prod(math.factorial(n - k) for n, k in zip(row_z, kept, strict=True))
            ways = math.prod(map(math.comb, row_x, kept)) * math.factorial(total - sum(kept)) // rest
            choices.append((kept, ways))
        following: Counter[tuple[int, ...]] = Counter()
        for sums, many in states.items():
            for kept, ways in choices:
                following[tuple(map(operator.add, sums, kept))] += many * ways
        states = following
    size = sum(held)
    marked = [0] * (size + 1)
    for sums, many in states.items():
        marked[sum(sums)] += many * math.prod(math.factorial(n - k) for n, k in zip(swapped, sums, strict=True))
    return [sum((-1) ** (m - j) * math.comb(m, j) * marked[m] for m in range(j, size + 1)) for j in range(size + 1)]


if __name__ == "__main__":
    main()
