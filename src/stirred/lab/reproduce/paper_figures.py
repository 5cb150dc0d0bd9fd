"""Figures of papers and the thesis, computed again: Figures 1 to 15 of Kifer et al. (2022), and two about swapping.

Where Kifer et al. sample the discrete Gaussian (one million draws), its loss is composed exactly between two bounds.
What is printed is kept beside what follows: a figure whose rho does not follow from the paper's Tables 3 to 5 shows
both, and its caption says so.

Figure 3.2 of the thesis (Figure 2.1 of the working paper) follows from Theorem 3.2.4. Figure 3.1 (Figure 5.1) was made
from census records that are licensed; here the file of the demonstration is swapped, which has the published counts by
county and tenure and the published number of two-person households, and household sizes of our own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.lab.reproduce.catalogue import published
from stirred.loss import ComposedLoss, GaussianCurve, PowerCurve, ZcdpCurve
from stirred.noise import SeededSource
from stirred.semantics.belief_bounds import AnyPriorBelief, BeliefBound, PredictiveBelief, TrueRecordBelief
from stirred.semantics.concerns import Concern, PublishedExposure, exposure, published_exposures
from stirred.semantics.pictures.curves import (
    Powers,
    epsilon_delta_picture,
    gaussian_deltas,
    level_power_picture,
    rounded_up,
)
from stirred.semantics.pictures.shapes import Bar, Bars, Line, Picture
from stirred.semantics.sentences.formatting import guarantee_line
from stirred.spec.exact import display
from stirred.spec.known_deployments.allocations import PublishedConcern, allocation
from stirred.spec.known_deployments.deployments import deployment
from stirred.swap.checking.forecast import expected_table
from stirred.swap.data.counting import count_margins, strata_of_dataset
from stirred.swap.data.dataset import Dataset, load
from stirred.swap.law import permutation
from stirred.swap.law.theorem import best_rate, epsilon, rates_for, smallest_epsilon
from stirred.swap.plan.fields import SwapPlan
from stirred.tables.synthetic import massachusetts_1940

PAPER = "Kifer et al. (2022)"
GRID = 1e-3
"""The step of losses; it moves powers by at most about 1e-5."""

_INVARIANTS = "What was published exactly, such as the states' totals, is not covered."

# -- scenarios -----------------------------------------------------------------------------------------------


@cache
def kifer_scenarios() -> Mapping[str, PublishedExposure]:
    """Concerns by the letters of section 8.2, and ``all``: the printed rho beside that of Tables 3 to 5.

    >>> one = kifer_scenarios()["E"]
    >>> one.published.rho, round(float(one.exposure.rho), 4), one.agrees
    ('1.32', 1.3787, False)
    """
    pl94 = allocation("pl94-2020")
    whole = PublishedConcern("all", "everything about one person", published("semantics-paper/section-8.1/rho"))
    everything = PublishedExposure(whole, exposure(pl94, Concern.of(whole), rounded=True))
    return {one.published.id: one for one in (everything, *published_exposures(pl94))}


@cache
def discrete_loss(scenario: str) -> ComposedLoss:
    """The loss of the discrete noise of a scenario's queries. Composing it is dear: tables and figures share it."""
    return kifer_scenarios()[scenario].exposure.loss(GRID)


@cache
def discrete_powers(scenario: str) -> tuple[PowerCurve, PowerCurve]:
    """Two curves between which the largest power with this noise lies."""
    return discrete_loss(scenario).power_curve()


def kifer_concerns() -> Bars:
    """rho of every scenario, as printed and from Tables 3 to 5."""
    bars = []
    for letter, one in kifer_scenarios().items():
        name = one.published.what if letter == "all" else f"{letter}: {one.published.what}"
        bars.append(Bar(name, float(one.published.rho), "as printed"))
        bars.append(Bar(name, float(one.exposure.rho), "from Tables 3 to 5"))
    caption = (
        f"Scenarios of section 8.2 of {PAPER}: rho of the queries that change when one person's record changes in what "
        "the bar names. Printed values of C to H are 0.057 to 0.059 below what the paper's tables add up to: they "
        f"understate what can be learned. {_INVARIANTS}"
    )
    title = "What the 2020 redistricting data spent on each concern"
    return Bars(
        "kifer-concerns", title, "Printed values, and sums over the queries", "rho", tuple(bars), caption,
        guarantee=_guarantee(),
    )  # fmt: skip


def _guarantee() -> str:
    return guarantee_line(deployment("topdown-2020-pl").specification)


# -- figures -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaperFigure:
    """What a figure of the paper shows, and of which scenario."""

    shows: str
    scenario: str = "all"


_SHOWN = [
    PaperFigure("definitions"),
    PaperFigure("power, three ways"),
    *(PaperFigure(theorem) for theorem in ("7.3", "7.4", "7.5")),
    PaperFigure("power, three ways", "A"),
    *(PaperFigure(theorem, "A") for theorem in ("7.3", "7.4", "7.5")),
    *(PaperFigure(shows, letter) for letter in "BEF" for shows in ("power", "7.4")),
]
KIFER_FIGURES: Mapping[int, PaperFigure] = dict(enumerate(_SHOWN, 1))


@cache
def kifer_figure(number: int) -> Picture:
    """A figure of the paper.

    >>> picture = kifer_figure(14)
    >>> [line.name for line in picture.lines]
    ['rho = 0.6116, from Tables 3 to 5', 'rho = 0.555, as printed']
    """
    if number not in KIFER_FIGURES:
        raise errors.unknown_choice("figure", str(number), [str(one) for one in KIFER_FIGURES])
    figure = KIFER_FIGURES[number]
    scenario = kifer_scenarios()[figure.scenario]
    if figure.shows == "definitions":
        picture = _definitions(scenario)
    elif figure.shows == "power, three ways":
        picture = _three_powers(scenario, legend_lacks_zcdp=number == 2)
    elif figure.shows == "power":
        picture = _powers(scenario)
    else:
        picture = _belief(scenario, _THEOREMS[figure.shows])
    subtitle = f"{picture.subtitle}; {scenario.published.what}, 2020 redistricting data"
    caption = f"Figure {number} of {PAPER}, computed again. {picture.caption} {_INVARIANTS}"
    name = f"kifer-figure-{number}"
    return replace(picture, name=name, subtitle=subtitle, caption=caption, guarantee=_guarantee())


def _definitions(scenario: PublishedExposure) -> Picture:
    curves = gaussian_deltas(rho=float(scenario.published.rho))
    del curves["tail of the loss"]  # not in the figure
    caption = (
        "The noise is taken to be continuous. The paper's caption calls that a variance of 1/2.63 on a count that "
        "changes by one; from mu = sqrt(2 rho) it is 1/5.26."
    )
    picture = epsilon_delta_picture(curves, kinks=(float(scenario.published.rho),), caption=caption)
    return replace(picture, subtitle=f"Delta for each epsilon, rho = {scenario.published.rho}")


def _three_powers(scenario: PublishedExposure, legend_lacks_zcdp: bool) -> Picture:
    rho, discrete = float(scenario.published.rho), "discrete Gaussian noise, as allocated"
    curves: dict[str, Powers | tuple[PowerCurve, PowerCurve]] = {
        "Gaussian noise": GaussianCurve(math.sqrt(2 * rho)),
        discrete: discrete_powers(scenario.published.id),
        "bound from zCDP": ZcdpCurve(rho),
    }
    caption = "The discrete noise, which the paper samples, is composed between two bounds."
    if legend_lacks_zcdp:
        caption += " The paper's caption leaves out the bound from zCDP, which its text says is drawn."
    picture = level_power_picture(curves, worlds=_worlds(scenario), caption=caption, dashed=(discrete,))
    return replace(picture, subtitle=f"Largest power at each false-alarm probability, rho = {scenario.published.rho}")


def _powers(scenario: PublishedExposure) -> Picture:
    curves = {name: GaussianCurve(math.sqrt(2 * rho)) for name, rho in _rhos(scenario).items()}
    picture = level_power_picture(
        curves, worlds=_worlds(scenario), caption=_both(scenario), dashed=[name for name in curves if "printed" in name]
    )
    return replace(picture, subtitle="Largest power at each false-alarm probability, Gaussian noise")


@dataclass(frozen=True)
class _Theorem:
    """A theorem of section 7: its bound at rho, and what it is about."""

    name: str
    bound: Callable[[float], BeliefBound]
    when: str
    rest: str = "all other records being known"


_THEOREMS = {
    "7.3": _Theorem(
        "Theorem 7.3",
        PredictiveBelief,
        "Outputs are drawn as the attacker expects them. The theorem is for epsilon above rho; below it the line is "
        "Markov's inequality.",
    ),
    "7.4": _Theorem(
        "Theorem 7.4",
        lambda rho: TrueRecordBelief(GaussianCurve(math.sqrt(2 * rho))),
        "The record is the true one, and the noise is taken to be continuous.",
    ),
    "7.5": _Theorem(
        "Theorem 7.5",
        AnyPriorBelief,
        "The record is the true one, and the prior is correct. The theorem is for epsilon above rho; below it nothing "
        "is promised.",
        "whatever is believed about all others",
    ),
}


def _belief(scenario: PublishedExposure, theorem: _Theorem) -> Picture:
    rhos, only = _rhos(scenario), _only(scenario)
    picture = epsilon_delta_picture(
        {name: theorem.bound(rho).delta for name, rho in rhos.items()},
        kinks=tuple(rhos.values()),
        dashed=[name for name in rhos if "printed" in name],
    )
    worlds = f"one{only and f'{only},'} drawn in its place from what was believed before, {theorem.rest}"
    caption = f"Beliefs are compared with the person's own record in the data and with {worlds}. {theorem.when}"
    return replace(
        picture,
        title="How unlikely is it that a belief about one person rises much?",
        subtitle=f"Delta for each epsilon, {theorem.name}",
        x_title="epsilon (natural logarithm of the factor by which the belief rises)",
        y_title="delta (probability of such a rise or more)",
        caption=" ".join(part for part in (caption, _both(scenario)) if part),
    )


def _rhos(scenario: PublishedExposure) -> dict[str, float]:
    """The rhos to draw: both where the printed one is not that of the tables."""
    if scenario.agrees:
        return {f"rho = {scenario.published.rho}": float(scenario.published.rho)}
    rho = float(scenario.exposure.rho)
    return {
        f"rho = {rounded_up(rho, 4)}, from Tables 3 to 5": rho,
        f"rho = {scenario.published.rho}, as printed": float(scenario.published.rho),
    }


def _both(scenario: PublishedExposure) -> str:
    if scenario.agrees:
        return ""
    return (
        f"The paper prints rho = {scenario.published.rho}; by its Tables 3 to 5 the queries that it names have "
        f"{rounded_up(float(scenario.exposure.rho), 5)} together. The printed line understates what can be learned."
    )


def _worlds(scenario: PublishedExposure) -> str:
    return f"one person's record as it was collected, or any other{_only(scenario)}, all other records being known"


def _only(scenario: PublishedExposure) -> str:
    return "" if scenario.exposure.concern.whole else f" that differs only in {scenario.published.what}"


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
