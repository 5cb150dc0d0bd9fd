"""Two figures about swapping, computed again: swap rate against epsilon, and the error of a table by swap rate.

Figure 3.2 (Figure 2.1 of the working paper) follows from Theorem 3.2.4. Figure 3.1 (Figure 5.1) was made from census
records that are licensed; here the file of the demonstration is swapped, which has the published counts by county and
tenure and the published number of two-person households, and household sizes of our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stirred.noise import SeededSource
from stirred.semantics.pictures.shapes import Line, Picture
from stirred.spec.exact import display
from stirred.swap.checking.forecast import expected_table
from stirred.swap.data.counting import count_margins, strata_of_dataset
from stirred.swap.data.dataset import Dataset, load
from stirred.swap.law import permutation
from stirred.swap.law.theorem import best_rate, epsilon, rates_for, smallest_epsilon
from stirred.swap.plan.fields import SwapPlan
from stirred.tables.synthetic import massachusetts_1940

STRATA = (2, 10, 100, 10_000, 1_000_000)
"""Sizes of the largest stratum; the figure's are from 2 to 1 million, not all of them printed."""

RATES = tuple(Fraction(one, 100) for one in (1, 5, 10, 25, 50))
RUNS = 20

_MOST = 20.0
_STEPS = 160
_HALF_BOX = 0.007


def rate_against_epsilon(name: str = "figure-3-2") -> Picture:
    """Figure 3.2: the swap rates that attain an epsilon, for each size of the largest stratum."""
    lines = [line for size in STRATA for line in _branches(size)]
    lines += [line for size in STRATA for line in _diamond(size)]
    for rate in (0.05, 0.5):
        lines.append(Line("swap rates of 5% and 50%", (0, _MOST), (rate, rate), dashed=True))
    caption = (
        "Theorem 3.2.4: the two swap rates that have this epsilon when the largest stratum with two different records "
        "has b records. Diamonds: the smallest epsilon for each b. Epsilons of different b stand for different "
        "invariants and are not comparable. The two datasets compared agree on all invariants; the nearest differ in "
        "two records."
    )
    return Picture(
        name,
        "Which swap rate has which epsilon?",
        "One line for each size b of the largest stratum",
        "epsilon",
        "swap rate p",
        tuple(lines),
        caption=caption,
        guarantee="Guarantees: epsilon per record that differs, pure differential privacy; its counts held fixed",
    )


def error_by_rate(name: str = "figure-3-1") -> Picture:
    """Figure 3.1: the mean absolute percentage error of county by tenure, by swap rate, over 20 runs each."""
    runs = _errors()
    rates = [float(rate) for rate in RATES]
    boxes = [line for rate, one in zip(rates, runs, strict=True) for line in _box(rate, one)]
    forecast = Line("forecast, without drawing", tuple(rates), tuple(_forecast(rate) for rate in RATES), dashed=True)
    caption = (
        f"Boxes: the middle half of {RUNS} runs at each rate, with their median; lines from a box: all runs. "
        "Mean absolute percentage error, as a fraction, over the 28 cells of county by tenure, Massachusetts 1940. The "
        "census records are licensed: this is the generated file of the demonstration, whose counts by county and "
        "tenure are the published ones and whose household sizes are ours."
    )
    return Picture(
        name,
        "How much does swapping disturb a table?",
        "Dwellings by county and tenure, swapped among counties within household sizes",
        "swap rate p",
        "mean absolute percentage error",
        (forecast, *boxes),
        caption=caption,
        guarantee="Guarantees: " + _epsilons(),
    )


def _epsilons() -> str:
    """The epsilon of each rate, for the largest stratum of the dwellings."""
    data = dwellings()
    largest = strata_of_dataset(data, count_margins(data, prints=False)).largest
    told = ", ".join(f"{display(epsilon(largest, rate))} at {float(rate):g}" for rate in RATES)
    return f"epsilon = {told}, per dwelling that differs, pure differential privacy"


@cache
def dwellings() -> Dataset:
    """The generated dwellings of Massachusetts in 1940 with the plan of section 3.2.4, at a rate of 50%."""
    plan = SwapPlan(
        unit="dwelling",
        match=("state", "household_size"),
        swap=("county",),
        hold=("tenure",),
        rate=Fraction(1, 2),
        chosen_from="public",
    )
    return load(plan, massachusetts_1940().drop("serial"))


def county_by_tenure(data: Dataset, moves: permutation.Moves | None = None) -> NDArray[np.int64]:
    """Counts of counties (rows, in the order of the alphabet) by owned and rented, before or after a swap."""
    county, tenure = data.table["county"], data.table["tenure"]
    codes = county.codes if moves is None else moves.apply(county.codes)
    order = np.argsort([str(text) for text in county.texts()])
    both = np.bincount(codes.astype(np.int64) * 2 + tenure.codes, minlength=2 * len(order)).reshape(-1, 2)
    return both[order][:, np.argsort([str(text) for text in tenure.texts()])]


def swapped_once(data: Dataset, rate: Fraction, key: int) -> NDArray[np.int64]:
    """The table after one run that can be repeated; not for release."""
    return county_by_tenure(data, permutation.draw(data.strata, data.strata.sizes(), rate, SeededSource(key)))


# -- helpers -------------------------------------------------------------------------------------------------


def _box(rate: float, errors: Sequence[float]) -> Iterable[Line]:
    """A box from the lower to the upper quartile with the median in it, and whiskers to the ends."""
    least, lower, median, upper, most = np.quantile(errors, (0, 0.25, 0.5, 0.75, 1)).tolist()
    left, right = rate - _HALF_BOX, rate + _HALF_BOX
    name = f"box plots of {RUNS} runs each"
    yield Line(name, (left, left, right, right), (lower, upper, upper, lower))
    for height in (lower, median):
        yield Line(name, (left, right), (height, height))
    for ends in ((least, lower), (upper, most)):
        yield Line(name, (rate, rate), ends)


@cache
def _errors() -> tuple[tuple[float, ...], ...]:
    data = dwellings()
    true = county_by_tenure(data)
    return tuple(
        tuple(float(np.mean(np.abs(swapped_once(data, rate, run) - true) / true)) for run in range(RUNS))
        for rate in RATES
    )


@cache
def _forecast(rate: Fraction) -> float:
    data = dwellings()
    table = expected_table(replace(data, plan=data.plan.model_copy(update={"rate": rate})), ["county", "tenure"])
    assert table is not None
    return table.expected_mape


def _branches(size: int) -> Iterable[Line]:
    least = smallest_epsilon(size)
    epsilons = np.linspace(least, _MOST, _STEPS).tolist()
    both = [rates_for(max(one, least), size) for one in epsilons]
    for branch in (0, 1):
        yield Line(f"b = {size:,}", tuple(epsilons), tuple(pair[branch] for pair in both if pair is not None))


def _diamond(size: int) -> Iterable[Line]:
    """Above and below the smallest epsilon, of the same name as the curve it belongs to."""
    x, y = smallest_epsilon(size), best_rate(size)
    wide, high = 0.15, 0.015
    for sign in (1, -1):
        points = ((x - wide, y), (x, y + sign * high), (x + wide, y))
        yield Line(f"b = {size:,}", tuple(p[0] for p in points), tuple(p[1] for p in points))
