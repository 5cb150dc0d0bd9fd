"""The exact law and loss of a swap of few records, against the oracle that shares no code with the package."""

from __future__ import annotations

from fractions import Fraction

import pytest
from swap_oracle import exact_loss as loss_by_oracle
from swap_oracle import partitions, universe
from swap_oracle import released_law as law_by_oracle

from stirred.errors import StirredError
from stirred.lab.definitions.swap_practices import exact_loss, released_law, tables_of

RATES = [Fraction(0), Fraction(1, 20), Fraction(1, 2), Fraction(9, 10), Fraction(1)]


@pytest.mark.parametrize("n", range(1, 6))
def test_universes_laws_and_losses_are_those_of_the_oracle(n):
    for held in partitions(n):
        for swapped in partitions(n):
            tables = tables_of(held, swapped)
            assert list(tables) == universe(held, swapped)
            for rate in RATES if n > 1 else RATES[1:2]:
                possible = {z: chance for z, chance in law_by_oracle(tables[-1], rate).items() if chance}
                assert released_law(tables[-1], rate) == possible
                if len(tables) < 25:
                    assert exact_loss(tables, rate).value == pytest.approx(
                        loss_by_oracle(held, swapped, rate), rel=1e-9
                    )


def test_a_record_alone_stays_where_it_is():
    assert released_law(((0, 0),), Fraction(1)) == {((0, 0),): 1}


def test_too_many_records_and_margins_that_differ_are_refused():
    with pytest.raises(StirredError, match="at most 7"):
        tables_of((4, 4), (4, 4))
    with pytest.raises(StirredError, match="as many records"):
        tables_of((2, 1), (2, 2))
