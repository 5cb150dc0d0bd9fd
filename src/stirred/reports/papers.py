"""Figures and tables of Kifer et al. (2022) about the 2020 redistricting data, computed again.

Figures 1 to 15 as pictures, Tables 1, 2 and 6 as printed and as they follow from the paper's formulas. Where the paper
samples the discrete Gaussian (one million draws), its loss is composed exactly between two bounds.

Keep in mind: what is printed is kept beside what follows. A figure whose rho does not follow from
the paper's Tables 3 to 5 shows both, and its caption says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from stirred import errors
from stirred.loss import ComposedLoss, GaussianCurve, PowerCurve, ZcdpCurve, pure_power
from stirred.semantics.belief_bounds import AnyPriorBelief, BeliefBound, PredictiveBelief, TrueRecordBelief
from stirred.semantics.concerns import Concern, PublishedExposure, exposure, published_exposures
from stirred.semantics.pictures import (
    Bar,
    Bars,
    Picture,
    Powers,
    epsilon_delta_picture,
    gaussian_deltas,
    level_power_picture,
    rounded_up,
)
from stirred.spec.allocations import PublishedConcern, allocation
from stirred.spec.deployments import Erratum

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
    whole = PublishedConcern("all", "everything about one person", "2.63")
    everything = PublishedExposure(whole, exposure(pl94, Concern.of(whole), rounded=True))
    return {one.published.id: one for one in (everything, *published_exposures(pl94))}


@cache
def _loss(scenario: str) -> ComposedLoss:
    return kifer_scenarios()[scenario].exposure.loss(GRID)


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
    return Bars("kifer-concerns", title, "Printed values, and sums over the queries", "rho", tuple(bars), caption)


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
    return replace(picture, name=f"kifer-figure-{number}", subtitle=subtitle, caption=caption)


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
        discrete: _loss(scenario.published.id).power_curve(),
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


# -- tables --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaperCell:
    """A number as printed, and bounds on what it should be; they are equal where it is known."""

    printed: str
    lower: float
    upper: float

    @property
    def agrees(self) -> bool:
        """Whether the printed number is a correct rounding."""
        return _rounds_to(self.printed, self.lower, self.upper)


@dataclass(frozen=True)
class PaperTable:
    """A table of powers: one row for each false-alarm probability, one cell for each column."""

    number: int
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PaperCell, ...]], ...]
    errata: tuple[Erratum, ...] = ()
    notes: tuple[str, ...] = ()

    def to_fields(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        rows = [
            {"level": level, "cells": [{**asdict(cell), "agrees": cell.agrees} for cell in cells]}
            for level, cells in self.rows
        ]
        return {**asdict(self), "rows": rows}


_TABLE_1 = {
    "0.01": ("0.011", "0.016", "0.027", "0.074", "0.550"),
    "0.05": ("0.055", "0.820", "0.136", "0.370", "0.983"),
    "0.10": ("0.111", "0.165", "0.272", "0.739", "0.984"),
}
_TABLE_2 = {"0.01": ("0.49", "0.49", "0.70"), "0.05": ("0.74", "0.74", "0.95"), "0.10": ("0.84", "0.84", "0.96")}
_TABLE_6 = {"0.01": ("0.03", "0.03", "0.04"), "0.05": ("0.12", "0.12", "0.14"), "0.10": ("0.21", "0.21", "0.24")}
_EPSILONS = ("0.1", "0.5", "1", "2", "4")


@cache
def kifer_table(number: int) -> PaperTable:
    """A table of powers of the paper: 1, 2 or 6.

    >>> [(one.printed, one.correct) for one in kifer_table(1).errata]
    [('0.550', '0.546'), ('0.820', '0.082'), ('0.370', '0.369')]
    """
    if number == 1:
        return _pure_table()
    if number == 2:
        return _power_table(2, "Largest power, 2020 redistricting data", kifer_scenarios()["all"], _TABLE_2)
    if number == 6:
        return _power_table(6, "Largest power, block within block group", kifer_scenarios()["A"], _TABLE_6)
    raise errors.unknown_choice("table", str(number), ["1", "2", "6"])


def _pure_table() -> PaperTable:
    rows, errata = [], []
    for level, printed in _TABLE_1.items():
        powers = [float(pure_power(float(epsilon)).power(float(level))) for epsilon in _EPSILONS]
        cells = [PaperCell(text, power, power) for text, power in zip(printed, powers, strict=True)]
        rows.append((level, tuple(cells)))
        for epsilon, cell in zip(_EPSILONS, cells, strict=True):
            if not cell.agrees:
                why = f"At false alarm {level} and epsilon = {epsilon} the bound of Theorem 6.1 is {cell.upper:.6f}."
                errata.append(Erratum(f"table-1-{level}-{epsilon}", cell.printed, f"{cell.upper:.3f}", why))
    columns = tuple(f"epsilon = {epsilon}" for epsilon in _EPSILONS)
    return PaperTable(1, "Largest power under pure DP", columns, tuple(rows), tuple(errata))


def _power_table(
    number: int, title: str, scenario: PublishedExposure, printed: Mapping[str, tuple[str, ...]]
) -> PaperTable:
    rho, rows = float(scenario.published.rho), []
    gaussian, zcdp, discrete = GaussianCurve(math.sqrt(2 * rho)), ZcdpCurve(rho), _loss(scenario.published.id)
    for level, texts in printed.items():
        at = float(level)
        exact, bound, known = float(gaussian.power(at)), float(zcdp.power(at)), discrete.power(at)
        bounds = ((exact, exact), (known.lower, known.upper), (bound, bound))
        rows.append((level, tuple(PaperCell(text, *pair) for text, pair in zip(texts, bounds, strict=True))))
    notes = (
        "The column of the discrete Gaussian, which the paper samples, is composed between two bounds.",
        "The bound from zCDP takes all orders and the limit at order 1, which binds in the middle of the curve; a grid "
        "of orders that stops short of 1 gives slightly more.",
    )
    columns = ("Gaussian noise", "discrete Gaussian noise", "bound from zCDP")
    return PaperTable(number, f"{title}, rho = {scenario.published.rho}", columns, tuple(rows), notes=notes)


# -- helpers -------------------------------------------------------------------------------------------------


def _rounds_to(printed: str, lower: float, upper: float) -> bool:
    """Whether some number between two bounds is rounded to what is printed."""
    half = 0.5 * 10.0 ** -len(printed.partition(".")[2]) * (1 + 1e-9)
    return lower - half <= float(printed) <= upper + half
