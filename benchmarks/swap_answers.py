"""Answers about swapped releases: estimates of a national table, and how many exchanged pairs would be noticed.

Beside the estimates stands the plain way: the formula cell by cell in Python.

    python benchmarks/swap_answers.py            rewrites its section of RESULTS.md
"""

from __future__ import annotations

import argparse
from fractions import Fraction

import numpy as np

from results import machine, seconds, write_section
from stirred.loss import swap_power_curve
from stirred.swap.estimating.cell_estimates import Shape, Tally
from stirred.swap.estimating.question_counts import CountParts
from stirred.swap.law.moments import LawConstants, constants_of

RECORDS, STRATA, COUNTIES, RATE = 100_000_000, 15, 3_194, Fraction(1, 20)


def national_table() -> Tally:
    """Households by size (the strata), county and tenure, as a file of a hundred million records would be counted."""
    rng = np.random.default_rng(1940)
    shares = rng.dirichlet(np.full(STRATA * COUNTIES * 2, 0.5)).reshape(STRATA, COUNTIES, 2)
    count = rng.multinomial(RECORDS, shares.ravel()).reshape(STRATA, COUNTIES, 2)
    stratum, county, tenure = np.nonzero(count)
    return Tally(
        Shape(1, 2, COUNTIES),
        LawConstants.of(count.sum(axis=(1, 2)), RATE),
        np.zeros(STRATA, dtype=np.int64),
        stratum,
        tenure,
        county,
        count[stratum, county, tenure],
        np.arange(2),
        np.arange(2),
        np.ones(2, dtype=np.int64),
        np.arange(COUNTIES),
    )


def estimates(tally: Tally) -> int:
    """All counts by county and tenure with 90% intervals; how many there are."""
    return len(CountParts(tally, RATE).parts(0.9).values)


def cell_by_cell(tally: Tally, cells: int) -> None:
    """Estimates of some cells in plain Python, without variances and intervals."""
    size = np.bincount(tally.stratum, tally.count)
    held = np.zeros((STRATA, 2))
    swapped = np.zeros((STRATA, COUNTIES))
    np.add.at(held, (tally.stratum, tally.held), tally.count)
    np.add.at(swapped, (tally.stratum, tally.swapped), tally.count)
    for at in range(cells):
        m, h, s = int(tally.stratum[at]), int(tally.held[at]), int(tally.swapped[at])
        expected = held[m, h] * swapped[m, s] / size[m]
        _ = expected + (int(tally.count[at]) - expected) / constants_of(int(size[m]), RATE).shrinkage


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--keep", action="store_true")
    arguments = options.parse_args()
    tally = national_table()
    answers = estimates(tally)
    whole = seconds(lambda: estimates(tally))
    plain = seconds(lambda: cell_by_cell(tally, 10_000)) * len(tally.count) / 10_000
    sizes = [10**8 - 7 * number for number in range(300)]
    swap_power_curve([1_000], RATE)  # what is imported and compiled on the first call
    one = seconds(lambda: swap_power_curve([10**8 + 1], RATE), 1)  # once: curves are remembered
    many = seconds(lambda: swap_power_curve(sizes, RATE), 1)
    text = f"""{machine(["numpy", "scipy"])}

| | seconds | the plain way |
|---|---|---|
| {answers:,} counts by county and tenure with intervals, {RECORDS:,} records, {len(tally.count):,} cells | \
{whole:.2f} | {plain:.2f} (estimates alone, without intervals, cell by cell) |
| trade-off function of a stratum of 100,000,000 records | {one:.3f} | |
| of 300 strata of about that size | {many:.2f} | |
"""
    print(text)
    if not arguments.keep:
        write_section(__file__, text)


if __name__ == "__main__":
    main()
