"""The Permutation Swapping Algorithm on one small stratum, by enumeration: its exact law and its exact loss.

A table lists the records of one stratum as pairs (held value, swap value), sorted, since the order of rows is never
released. A universe holds all tables with the same two margins. Everything is exact but the logarithms; the cost is
that of all permutations of the records, so at most seven.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

from stirred import errors
from stirred.lab.definitions.swap_practices import swap_flavor, swap_moves
from stirred.spec import FiniteMechanism
from stirred.spec.order.finite_mechanisms import Loss
from stirred.swap.law.theorem import require_rate

Table = tuple[tuple[int, int], ...]

MOST_RECORDS = 7


def tables_of(held_totals: Sequence[int], swapped_totals: Sequence[int]) -> tuple[Table, ...]:
    """All tables with these margins: one universe of a swap.

    >>> [name_of(table) for table in tables_of((1, 1), (1, 1))]
    ['00 11', '01 10']
    """
    if sum(held_totals) != sum(swapped_totals):
        raise errors.parameter_out_of_range("swapped_totals", swapped_totals, "as many records as held_totals")
    held = [value for value, count in enumerate(held_totals) for _ in range(count)]
    swapped = [value for value, count in enumerate(swapped_totals) for _ in range(count)]
    _require_few(len(held))
    return tuple(sorted({_sorted(held, order) for order in itertools.permutations(swapped)}))


def released_law(table: Table, rate: Fraction) -> dict[Table, Fraction]:
    """The probability of each table that a swap can release from this one (Algorithm 3.2.1).

    >>> law = released_law(((0, 0), (1, 1)), Fraction(1, 20))
    >>> law[((0, 0), (1, 1))] / law[((0, 1), (1, 0))]
    Fraction(361, 1)
    """
    require_rate(rate)
    _require_few(len(table))
    law: dict[Table, Fraction] = {}
    held = [record[0] for record in table]
    for order, chance in swap_moves((rate,) * len(table)):
        released = _sorted(held, [table[i][1] for i in order])
        law[released] = law.get(released, Fraction(0)) + chance
    return law


def as_mechanism(tables: Sequence[Table], rate: Fraction) -> FiniteMechanism:
    """The swap of these tables as a finite mechanism; datasets and outputs are named by :func:`name_of`."""
    return FiniteMechanism.of(
        {name_of(x): {name_of(z): chance for z, chance in released_law(x, rate).items()} for x in tables}
    )


def exact_loss(tables: Sequence[Table], rate: Fraction) -> Loss:
    """The smallest epsilon of a swap of these tables, under the invariants that it induces and D_Mult.

    >>> round(exact_loss(tables_of((2, 1), (2, 1)), Fraction(1, 20)).number, 6)
    2.932834
    """
    return as_mechanism(tables, rate).loss(swap_flavor(), as_files(tables))


def as_files(tables: Sequence[Table]) -> dict[str, list[dict[str, int]]]:
    """The records of each table, by its name."""
    return {name_of(table): [{"held": h, "swapped": s} for h, s in table] for table in tables}


def name_of(table: Table) -> str:
    """The records one after the other, held value first."""
    return " ".join(f"{h}{s}" for h, s in table)


# -- helpers -------------------------------------------------------------------------------------------------


def _sorted(held: Sequence[int], swapped: Sequence[int]) -> Table:
    return tuple(sorted(zip(held, swapped, strict=True)))


def _require_few(records: int) -> None:
    if records > MOST_RECORDS:
        raise errors.parameter_out_of_range("records", records, f"at most {MOST_RECORDS}: all permutations are listed")
