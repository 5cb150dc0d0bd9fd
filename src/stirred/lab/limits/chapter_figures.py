"""Figures 5.1 to 5.4 of the chapter on limits as pictures, as published or at any epsilon.

The published figures leave open at which outputs the posteriors of Figure 5.4 are drawn (they come from samples); here
they are the middles of ten equally probable parts of what the release can be. Figure 5.2 is for vectors of bits at
Hamming distance, the only reading that gives its numbers; its second band, of somebody who knows the whole mechanism,
is an addition.

Keep in mind: nothing is sampled. Every y is a formula of this package at its x.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred.limits.densities import Density
from stirred.limits.worked_examples import ClampedCount, laplace_count_bounds, laplace_count_mixture, response_bounds
from stirred.loss.argument_checks import Number, finite
from stirred.semantics.pictures.shapes import Line, Picture

FIGURES = ("5.1", "5.2", "5.3", "5.4")
CHAPTER = "Bailie (2025)"

MOST_RADIUS = 200.0
"""Beyond this epsilon times n the band of a count does not fit on an axis."""
MOST_EPSILON = 5.0
"""Beyond this the posterior band of Figure 5.4 hides everything in it."""
LOG_RADIUS = 4.0
"""From this epsilon times n on the axis of Figure 5.2 is logarithmic."""
MOST_RECORDS = 50
PARTS = 10

Curve, LimitFigure = Line, Picture  # their names in stirred.limits up to version 0.7


@refuses_wrong_arguments
def chapter_figure(number: str) -> tuple[Picture, ...]:
    """A figure of the chapter as published: one panel, or two for Figure 5.2.

    >>> [panel.subtitle for panel in chapter_figure("5.2")]
    ['epsilon = 0.1, 10 bits', 'epsilon = 0.25, 10 bits']
    """
    made: dict[str, tuple[Picture, ...]] = {
        "5.1": (laplace_pair_figure(2.0),),
        "5.2": (laplace_count_figure(0.1, 10), laplace_count_figure(0.25, 10)),
        "5.3": (response_figure(1.0, 10),),
        "5.4": (clamped_figure(ClampedCount()),),
    }
    if number not in made:
        raise errors.unknown_choice("figure", number, list(FIGURES))
    panels, name = made[number], f"figure-{number.replace('.', '-')}"
    endings = [""] if len(panels) == 1 else [f"-{letter}" for letter in "ab"]
    return tuple(
        replace(panel, name=name + ending, caption=f"Figure {number} of {CHAPTER}, computed again. {panel.caption}")
        for panel, ending in zip(panels, endings, strict=True)
    )


@refuses_wrong_arguments
def figures_at(epsilon: Number, records: int) -> tuple[Picture, ...]:
    """The four kinds of figure at one epsilon and number of records; those that would show nothing are left out.

    >>> [one.name for one in figures_at(1, 10)]
    ['limits-laplace', 'limits-count', 'limits-response', 'limits-posterior']
    """
    e = finite("epsilon", epsilon)
    if e == 0:
        raise errors.parameter_out_of_range("epsilon", "0", "above 0 to be drawn")
    found = [replace(laplace_pair_figure(e), name="limits-laplace")]
    if e * records <= MOST_RADIUS:
        found.append(replace(laplace_count_figure(e, records), name="limits-count"))
    respondents = min(max(records, 2), MOST_RECORDS)  # a line needs two, and many more than fifty show nothing
    found.append(replace(response_figure(e, respondents), name="limits-response"))
    if e <= MOST_EPSILON:
        found.append(replace(clamped_figure(ClampedCount(epsilon=e)), name="limits-posterior"))
    return tuple(found)


def laplace_pair_figure(epsilon: float) -> Picture:
    """Figure 5.1: the densities of a count with Laplace noise for two neighbours whose counts differ by one."""
    t = np.linspace(-2, 3, 501)
    first, second = (Density.laplace(q, 1 / epsilon)(t) for q in (0.0, 1.0))
    heights = [float(Density.laplace(q, 1 / epsilon)(np.array([-0.5]))[0]) for q in (1.0, 0.0)]
    curves = (
        _curve("the data as they are, count q", t, first),
        _curve("a neighbour, count q + 1", t, second, dashed=True),
        _curve("a factor of e^epsilon", [-0.5, -0.5], heights),
    )
    return Picture(
        "laplace",
        "Noise that makes neighbours hard to tell apart",
        f"Laplace noise, epsilon = {epsilon:g}",
        "output, counted from q",
        "probability density",
        curves,
        caption="Left of q the first density is e^epsilon times the second, right of q + 1 it is e^-epsilon times: "
        f"whatever is released, the two worlds differ by at most a factor of {_rounded(math.exp(epsilon))}. Half a "
        f"unit left of q the first is {_rounded(heights[1])} and the second {_rounded(heights[0])}. The two datasets "
        "differ in one record.",
        guarantee=_guarantee(epsilon),
    )


def laplace_count_figure(epsilon: float, records: int) -> Picture:
    """Figure 5.2: bounds on the probability density of what is released under any model of n bits."""
    n = records
    t = np.linspace(-2.0 * n, 3.0 * n, 501)
    if epsilon * n > MOST_RADIUS:
        raise errors.parameter_out_of_range("epsilon times records", f"{epsilon * n:g}", f"at most {MOST_RADIUS:g}")
    band, known = laplace_count_bounds(t, epsilon, n), laplace_count_mixture(t, epsilon, n)
    bits = "1 bit" if n == 1 else f"{n} bits"
    return Picture(
        "count",
        "How probable a release can be, whatever the model of the data",
        f"epsilon = {epsilon:g}, {bits}",
        "output",
        "probability density",
        (
            _curve("at most, by Theorem 5.4.1", t, band.upper),
            _curve("at least, by Theorem 5.4.1", t, band.lower),
            _curve("at most, the mechanism being known", t, known.upper, dashed=True),
            _curve("at least, the mechanism being known", t, known.lower, dashed=True),
        ),
        caption="A count with Laplace noise; datasets are vectors of bits, up to all of which may differ. Theorem "
        "5.4.1 takes the best of what epsilon and a distance give around each dataset, so it uses all their "
        "densities; with one density (Lemma C.6.3) the band is wider. The band of somebody who knows the whole "
        "mechanism is narrower between the possible counts and the same outside.",
        y_log=epsilon * n > LOG_RADIUS,
        guarantee=_guarantee(epsilon),
    )


def response_figure(epsilon: float, records: int) -> Picture:
    """Figure 5.3: bounds on the probability of a sequence of randomised responses, by its length."""
    n = np.arange(1, records + 1)
    band = response_bounds(n, epsilon)
    return Picture(
        "response",
        "How probable randomised responses can be, whatever the model of the data",
        f"epsilon = {epsilon:g}",
        "number of respondents",
        "probability of the responses",
        (_curve("at most", n, band.upper), _curve("at least", n, band.lower)),
        caption="Equation 5.8. Each respondent's bit is turned round with probability 1/(1 + e^epsilon). Both bounds "
        "are attained: at most by a model that gives the bits that were answered, at least by one that gives the "
        "opposite.",
        guarantee=_guarantee(epsilon),
    )


def clamped_figure(count: ClampedCount) -> Picture:
    """Figure 5.4: the posterior density of a rate, at ten outputs, between the bounds of Theorem 5.6.3."""
    theta = np.linspace(0, 10 / count.rate, 201)
    band = count.posterior_bounds(theta)
    outputs = [count.quantile((2 * part + 1) / (2 * PARTS)) for part in range(PARTS)]
    name = "posterior, at ten outputs"
    said = ", ".join(f"{output:.1f}" for output in outputs)
    return Picture(
        "posterior",
        "What can be believed about a rate after a noisy count",
        f"epsilon = {count.epsilon:g}, count clamped to [{count.low}, {count.high}], "
        f"Gamma({count.shape:g}, {count.rate:g}) prior",
        "rate",
        "probability density",
        (
            *(_curve(name, theta, count.posterior(theta, output)) for output in outputs),
            _curve("prior", theta, count.prior(theta), dashed=True),
            _curve("at most, from epsilon alone", theta, band.upper),
            _curve("at least, from epsilon alone", theta, band.lower),
        ),
        caption="Theorem 5.6.3: one Poisson count may be replaced by any other. Posteriors are exact, not sampled, "
        f"at the middles of ten equally probable parts of the release: {said}. Beyond the clamp the posterior does "
        "not change any more. The bounds hold for every output, mechanism and model with this epsilon and this prior.",
        guarantee=_guarantee(count.epsilon),
    )


def _curve(name: str, x: ArrayLike, y: ArrayLike, dashed: bool = False) -> Line:
    across, up = (tuple(np.asarray(values, dtype=np.float64).tolist()) for values in (x, y))
    return Line(name, across, up, dashed)


def _guarantee(epsilon: float) -> str:
    return f"Guarantee: epsilon = {epsilon:g} per record replaced, pure differential privacy"


def _rounded(value: float) -> str:
    """Three digits, large numbers without an exponent."""
    return f"{float(f'{value:.3g}'):,.12g}" if 1000 <= value < 1e12 else f"{value:.3g}"
