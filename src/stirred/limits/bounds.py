"""Bounds from epsilon and a distance alone: on data, tests and beliefs (Theorems 5.4.1 to 5.6.3).

Everything depends on the radius r = epsilon d, where d is how far apart the datasets in question can be: d_* from one
dataset to all that are possible, d_** between any two. One record, Hamming distance: 1. The whole database: the number
of records. Arguments are broadcast. An infinite distance gives the vacuous bound, also for epsilon = 0, since nothing
is promised between datasets that are not connected.

Keep in mind: every bound holds for every model of the data and every prior. The posterior has three
forms, each inside the next: *odds* (prior odds times e^r, attained), *interval* (the probability interval around the
prior) and *published* (prior times e^r). *mass* is the probability, under the model, of the datasets that can give the
output at all. The published lower bounds on the probability of data leave it out, which is right only where it is 1.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.limits.distances import count, measure
from stirred.limits.graphs import DatabaseGraph, Datasets
from stirred.loss.argument_checks import Number, as_floats, non_negative, probabilities

Array = NDArray[np.float64]
Form = Literal["odds", "interval", "published"]
FORMS: tuple[str, ...] = get_args(Form)

LEVELS = (0.01, 0.05, 0.1)
PRIORS = (0.01, 0.1, 0.5)
"""What the standard questions are answered for, unless told otherwise."""


@brief
@dataclass(frozen=True, eq=False)
class Band:
    """A lower and an upper bound on each of several numbers."""

    lower: Array
    upper: Array

    def contains(self, values: ArrayLike, rounding: float = 1e-12) -> NDArray[np.bool_]:
        """Which values lie in the band, up to a part ``rounding`` of it."""
        numbers = np.asarray(values, dtype=np.float64)
        above = numbers >= self.lower - rounding * np.maximum(1.0, np.abs(self.lower))
        with np.errstate(invalid="ignore"):
            below = numbers <= self.upper + rounding * np.maximum(1.0, np.abs(self.upper))
        return np.asarray(above & (below | np.isinf(self.upper)))

    def inside(self, other: Band, rounding: float = 1e-12) -> bool:
        """Whether no bound of the other band is tighter."""
        return bool(np.all(other.contains(self.lower, rounding) & other.contains(self.upper, rounding)))


@refuses_wrong_arguments
def radius(epsilon: ArrayLike, distance: ArrayLike) -> Array:
    """epsilon times distance, where 0 times an infinite distance is infinite, and anything times no distance is 0.

    >>> radius([0, 0.5, math.inf], [math.inf, 3, 0]).tolist()
    [inf, 1.5, 0.0]
    """
    wanted = "a number that is at least 0"
    e, d = as_floats("epsilon", epsilon, wanted), as_floats("distance", distance, wanted)
    for name, array in (("epsilon", e), ("distance", d)):
        if not bool(np.all(array >= 0)):
            raise errors.parameter_out_of_range(name, "negative or not a number", "a number that is at least 0")
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(d), math.inf, np.where(d == 0, 0.0, e * d))


# -- tests ---------------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def power_bounds(level: ArrayLike, epsilon: ArrayLike, distance: ArrayLike = 1) -> Band:
    """The least and the greatest power of a test with false alarm ``level`` between two hypotheses whose datasets are
    at most ``distance`` apart (Corollary 5.5.2, and (5.22) for Pufferfish):

        max(a e^-r, 1 - e^r (1 - a)) <= power <= min(a e^r, 1 - e^-r (1 - a)).

    The upper bound rises with ``level`` and so holds for tests with at most this false alarm (Theorem 5.5.1). At an
    infinite radius every power is possible at every size, also at 0 and 1: what one hypothesis cannot give, the other
    may.

    >>> band = power_bounds([0.05, 0.5], epsilon=1)
    >>> band.lower.round(6).tolist(), band.upper.round(6).tolist()
    ([0.018394, 0.18394], [0.135914, 0.81606])
    """
    a, r = np.broadcast_arrays(probabilities("level", level), radius(epsilon, distance))
    band, free = _interval(a, r), np.isinf(r)
    return Band(np.where(free, 0.0, band.lower), np.where(free, 1.0, band.upper))


# -- beliefs -------------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def posterior_bounds(prior: ArrayLike, epsilon: ArrayLike, distance: ArrayLike = 1, form: Form = "odds") -> Band:
    """The least and the greatest posterior probability of an event with this prior probability (Theorem 5.6.3).

    The published form follows from D_MULT(posterior, prior) <= r. Its proof bounds ratios of likelihoods, and so gives
    more: d_DR(posterior, prior) <= r, the odds form, which some mechanism, model and prior attain. All forms take for
    granted that the output rules out no dataset more probable under one parameter than under another; see
    :meth:`stirred.lab.limits.finite_analysis.FiniteAnalysis.prior_given`.

    >>> for form in FORMS:
    ...     band = posterior_bounds(0.1, epsilon=1, form=form)
    ...     print(form, band.lower.round(6), band.upper.round(6))
    odds 0.03927 0.231969
    interval 0.036788 0.271828
    published 0.036788 0.271828
    """
    if form not in FORMS:
        raise errors.unknown_choice("form of the posterior bound", form, FORMS)
    p, r = np.broadcast_arrays(probabilities("The prior", prior), radius(epsilon, distance))
    if form == "interval":
        return _interval(p, r)
    if form == "published":
        return Band(p * np.exp(-r), _raised(p, r))
    shrunk, rest = p * np.exp(-r), (1 - p) * np.exp(-r)
    lower = np.where(p == 1, 1.0, shrunk / np.where(p == 1, 1.0, shrunk + (1 - p)))
    upper = np.where(p == 0, 0.0, p / np.where(p == 0, 1.0, p + rest))
    return Band(lower, upper)


# -- data ----------------------------------------------------------------------------------------------------


@refuses_wrong_arguments
def density_bounds(density: ArrayLike, epsilon: ArrayLike, distance: ArrayLike = 1, mass: ArrayLike = 1.0) -> Band:
    """Densities times e^-r and e^r, from one density that is known.

    Of p_x* at some dataset, with d_* its distance from all possible ones: the probability of the data under any model
    (Lemma C.6.3). Of a prior density, with d_** between any two: the posterior density (Theorem 5.6.3).

    >>> band = density_bounds(math.exp(-1) / 2, epsilon=1)  # Gamma(3, 1) at 1
    >>> band.lower.round(6).tolist(), band.upper.round(6).tolist()
    (0.067668, 0.5)
    """
    p, m = measure("The density", np.atleast_1d(np.asarray(density, dtype=np.float64))), probabilities("mass", mass)
    shape = np.broadcast_shapes(np.shape(density), np.shape(epsilon), np.shape(distance), m.shape)
    r = radius(epsilon, distance)
    p = p.reshape(np.shape(density))
    with np.errstate(over="ignore", invalid="ignore"):
        upper = np.where(np.isinf(r), math.inf, np.where(p == 0, 0.0, p * np.exp(r)))
        lower = np.where(np.isinf(r), 0.0, p * np.exp(-r))  # also where a density is infinite
    return Band(np.broadcast_to(_times(lower, m), shape).copy(), np.broadcast_to(_times(upper, m), shape).copy())


@refuses_wrong_arguments
def data_bounds(
    densities: ArrayLike,
    graph: DatabaseGraph,
    epsilon: Number,
    among: Datasets = None,
    mass: ArrayLike = 1.0,
    centres: Datasets = None,
) -> Band:
    """Bounds on the probability of outputs under any model of the data (Theorem 5.4.1), and on the prior predictive one
    (Theorem 5.6.2): the best over all datasets x_* of p_x*(t) e^(-epsilon d_*) and p_x*(t) e^(epsilon d_*).

    ``densities`` holds p_x(t), a row for each dataset of the graph and a column for each output; ``among`` are the
    datasets that are possible, which must be connected. Each x_* has a d_* of its own. As published, x_* is one of the
    possible datasets; ``centres`` may be any that are connected with them: one in their midst narrows the band.

    >>> graph = DatabaseGraph.hamming((0, 1), 1)
    >>> band = data_bounds([[0.75, 0.25], [0.25, 0.75]], graph, math.log(3))
    >>> band.lower.round(6).tolist(), band.upper.round(6).tolist()
    ([0.25, 0.25], [0.75, 0.75])
    """
    rows, e = _rows(densities, graph), non_negative("epsilon", epsilon)
    graph.require_connected("The possible datasets", among)
    at = graph.places(among)
    if centres is not None:
        graph.require_connected("The possible datasets and the centres", _both(graph, at, graph.places(centres)))
    starts = at if centres is None else graph.places(centres)
    farthest = np.max(graph.distances[np.ix_(starts, at)], axis=1)
    each = density_bounds(rows[starts], e, farthest.reshape(-1, *[1] * (rows.ndim - 1)))
    m = probabilities("mass", mass)
    return Band(_times(np.max(each.lower, axis=0), m), _times(np.min(each.upper, axis=0), m))


@refuses_wrong_arguments
def mixture_bounds(densities: ArrayLike, graph: DatabaseGraph, among: Datasets = None, mass: ArrayLike = 1.0) -> Band:
    """Bounds for somebody who knows the whole mechanism: the least and greatest p_x(t) of the possible datasets.

    A probability under a model is an average of them. The band is never wider than that of :func:`data_bounds`, which
    needs no more than epsilon, a distance and one p_x(t).
    """
    rows = _rows(densities, graph)[graph.places(among)]
    m = probabilities("mass", mass)
    return Band(_times(np.min(rows, axis=0), m), _times(np.max(rows, axis=0), m))


# -- the standard questions ----------------------------------------------------------------------------------


@brief
@dataclass(frozen=True, eq=False)
class Limit:
    """What can be learnt about one question: bounds on the power of tests and on posteriors."""

    question: str
    distance: float
    data: Band
    """Around the probability of what was released given one possible dataset: its probability under any model of the
    data, and the prior predictive one."""
    levels: Array
    power: Band
    priors: Array
    posterior: Band
    published: Band


@refuses_wrong_arguments
def standard_limits(
    epsilon: Number,
    records: int,
    levels: ArrayLike = LEVELS,
    priors: ArrayLike = PRIORS,
    bounded: bool = True,
) -> tuple[Limit, ...]:
    """The limits for one record and for a whole database of ``records`` records.

    Bounded means that datasets have the same size and records are replaced; else they are added and removed, and a
    replacement counts twice.

    >>> for limit in standard_limits(0.1, 10):
    ...     print(limit.question, limit.distance, limit.power.upper.round(4).tolist())
    one record 1.0 [0.0111, 0.0553, 0.1105]
    the whole database 10.0 [0.0272, 0.1359, 0.2718]
    """
    e, n = non_negative("epsilon", epsilon), count("records", records)
    questions = [("one record", 1.0), ("the whole database", float(n))]
    if not bounded:
        questions = [("whether one record is there", 1.0), ("what one record says", 2.0)]
        questions.append(("the whole database", 2.0 * n))
    return tuple(limit_at(question, e, distance, levels, priors) for question, distance in questions)


@refuses_wrong_arguments
def limit_at(
    question: str, epsilon: Number, distance: Number, levels: ArrayLike = LEVELS, priors: ArrayLike = PRIORS
) -> Limit:
    """The limits at one distance, under the name of a question.

    >>> limit_at("five records", 0.1, 5).power.upper.round(4).tolist()
    [0.0165, 0.0824, 0.1649]
    """
    e, d = non_negative("epsilon", epsilon), non_negative("distance", distance)
    at, believed = probabilities("level", levels), probabilities("The prior", priors)
    for name, asked in (("level", at), ("prior", believed)):
        if asked.ndim != 1 or not len(asked):
            raise errors.parameter_out_of_range(name, "not a list or an empty one", "a list of at least one number")
    return Limit(
        question,
        d,
        density_bounds(1.0, e, d),
        at,
        power_bounds(at, e, d),
        believed,
        posterior_bounds(believed, e, d),
        posterior_bounds(believed, e, d, "published"),
    )


# -- helpers -------------------------------------------------------------------------------------------------


def _interval(p: Array, r: Array) -> Band:
    """The probabilities of an event over I_1(e^-r P, e^r P), P giving it probability p."""
    lower = np.maximum(p * np.exp(-r), 1 - _raised(1 - p, r))
    upper = np.minimum(_raised(p, r), 1 - (1 - p) * np.exp(-r))
    return Band(np.minimum(lower, p), np.maximum(upper, p))  # 1 - (1 - p) may be rounded beyond p


def _raised(p: Array, r: Array) -> Array:
    """min(1, p e^r), where 0 stays 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(p == 0, 0.0, np.minimum(1.0, p * np.exp(r)))


def _times(bound: Array, mass: Array) -> Array:
    """A bound times a mass, where no mass of anything is nothing."""
    return np.where(mass == 0, 0.0, bound * np.where(mass == 0, 1.0, mass))


def _both(graph: DatabaseGraph, first: NDArray[np.intp], second: NDArray[np.intp]) -> list[Hashable]:
    return [graph.datasets[int(at)] for at in (*first, *second)]


def _rows(densities: ArrayLike, graph: DatabaseGraph) -> Array:
    rows = measure("The mechanism", densities)
    if rows.ndim < 2 or len(rows) != len(graph.datasets):
        raise errors.analysis_does_not_fit("the mechanism does not have one row for each dataset of the graph")
    return rows
