"""Exact posteriors behind Figure 5.4 (Example 5.6.5), for a model, a prior, a query and a noise of one's own.

theta has a prior, the data x a law given theta, and what is published is the answer q(x) with noise. After an output
t

    p(t | theta) = sum over x of P(x | theta) g(t | q(x)),   posterior(theta) = prior(theta) p(t | theta) / p(t).

:class:`Posterior` computes it by sums over x and, where the prior has a density, by quadrature over theta.
:meth:`Posterior.draws` draws from it, exactly, by rejection (Gong 2022, which Figure 5.4 was made with): theta from
the prior, x from the model, and theta is kept with probability g(t | q(x)) over the largest g at this output. For
Laplace noise of scale D/epsilon that is e^(-epsilon |t - q(x)| / D) wherever t is a possible answer.

Keep in mind: every number comes with its error. Of sums it is a bound: data that are not listed have probability 1
less that of the listed ones, and no g is larger than the largest. Of integrals it is an estimate. Of draws it is the
standard error.

:func:`integrals` takes several functions at once over the line. Panels shrink towards every break by halves, so that
a function may live on any scale around a break and may have an integrable pole there. Each panel is integrated by the
rules of Gauss (7 points) and Kronrod (15); those on which the two differ too much are halved. The differences, added
up, are the stated error. The 15-point value is usually far better than that; a peak between the points of a panel
goes unnoticed by both.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred._lazy import later
from stirred.lab.limits.models import (
    EVERYWHERE,
    FIRST_COUNTS,
    MORE,
    MOST_COUNTS,
    Clamp,
    DataModel,
    Listing,
    NoiseLaw,
    Prior,
    log_densities,
    uniforms,
)
from stirred.limits.bounds import Band, density_bounds
from stirred.loss.argument_checks import Number, as_float, as_floats
from stirred.noise.source import RandomSource, SystemSource

Array = NDArray[np.float64]
Rows = Callable[[Array], Array]
"""From points to one row of values for each function."""

HALVINGS = 50
"""Panels next to a break are 2^-50 of their interval wide, or of 1 where it has no end; as many double outwards."""

FARTHER = 2.0**16
FARTHEST = 1e100
"""A panel without end is divided at 2^16 times its beginning, up to here. What still does not settle has no error that
could be stated: it is infinite."""

MOST_PANELS = 40_000
ROUNDING = 2.0**-48
"""Sums and functions are rounded: no error is stated below this part of the integral of the absolute value."""

# Kronrod's points on [0, 1) with their weights; every second one, from the second on, is Gauss's.
_POINTS = (
    0.9914553711208126,
    0.9491079123427585,
    0.8648644233597691,
    0.7415311855993945,
    0.5860872354676911,
    0.4058451513773972,
    0.20778495500789848,
    0.0,
)
_KRONROD = (
    0.022935322010529224,
    0.06309209262997856,
    0.10479001032225019,
    0.14065325971552592,
    0.1690047266392679,
    0.19035057806478542,
    0.20443294007529889,
    0.20948214108472782,
)
_GAUSS = (
    0.1294849661688697,
    0.27970539148927664,
    0.3818300505051189,
    0.4179591836734694,
)

NODES = np.array([*(-x for x in _POINTS), *_POINTS[-2::-1]])
KRONROD = np.array([*_KRONROD, *_KRONROD[-2::-1]])
GAUSS = np.zeros(15)
GAUSS[1::2] = [*_GAUSS, *_GAUSS[-2::-1]]


@dataclass(frozen=True, eq=False)
class Integrals:
    """The integral of each function, its error, and both by panel: panels in the first axis of ``edges``, ascending."""

    values: Array
    errors: Array
    edges: Array
    parts: Array


def integrals(
    functions: Rows, breaks: Sequence[float], tolerance: float = 1e-10, beside: Sequence[int] | None = None
) -> Integrals:
    """The integrals over all between the first and the last break, which may be infinite.

    The tolerance is a part of each integral of the absolute value or, if that is larger, of that of the function
    ``beside`` it: what adds little to another one need not be known well.

    >>> found = integrals(lambda x: np.stack([np.exp(-x), x * np.exp(-x)]), (0, math.inf))
    >>> found.values.round(10).tolist(), bool(np.all(found.errors < 1e-9))
    ([1.0, 1.0], True)
    """
    edges = _panels(breaks)
    kept: list[tuple[Array, Array, Array]] = []
    size = np.zeros(1)
    while True:
        parts, differences, sizes, moved = _measured(functions, edges)
        size = size + sizes.sum(axis=0)
        known = sum(len(one[0]) for one in kept)
        against = size if beside is None else np.maximum(size, size[list(beside)])
        allowed = tolerance * against / max(64, known + len(edges))
        middles = _middles(edges)
        # Where the rounding of points matters more, halving makes it worse.
        rough = (
            np.any((differences > allowed) & (differences > moved), axis=1)
            & (middles > edges[:, 0])
            & (middles < edges[:, 1])
        )
        endless = np.isinf(edges).any(axis=1) & ~rough
        differences[endless] = np.where(differences[endless] > tolerance * against, math.inf, differences[endless])
        if known + len(edges) + int(rough.sum()) > MOST_PANELS:
            rough[:] = False
        kept.append((edges[~rough], parts[~rough], (differences + moved)[~rough]))
        if not rough.any():
            break
        size = size - sizes[rough].sum(axis=0)
        left = np.stack([edges[rough, 0], middles[rough]], axis=1)
        edges = np.concatenate([left, np.stack([middles[rough], edges[rough, 1]], axis=1)])
    every, parts, differences = (np.concatenate([one[at] for one in kept]) for at in range(3))
    order = np.argsort(every[:, 0], kind="stable")
    parts, differences = parts[order], differences[order]
    sums = np.array([math.fsum(column) for column in parts.T])
    return Integrals(sums, differences.sum(axis=0) + ROUNDING * np.asarray(size), every[order], parts)


def part_of_panel(functions: Rows, left: float, right: float) -> Array:
    """The integrals over a part of one panel, by the 15 points."""
    parts, *_ = _measured(functions, np.array([[left, right]]))
    return np.asarray(parts[0])


def _panels(breaks: Sequence[float]) -> Array:
    """Panels between breaks, narrower towards each of them; the last one of an end at infinity is infinite."""
    edges: set[float] = set()
    ends = [float(at) for at in breaks]
    if len(ends) == 2 and math.isinf(ends[0]) and math.isinf(ends[1]):
        ends = [ends[0], 0.0, ends[1]]
    halves = 0.5 ** np.arange(1, HALVINGS + 1)
    for a, b in itertools.pairwise(ends):
        edges |= {a, b}
        if math.isinf(b):
            edges |= set((a + 1 / halves).tolist()) | set((a + halves).tolist()) | {a + 1.0}
        elif math.isinf(a):
            edges |= set((b - 1 / halves).tolist()) | set((b - halves).tolist()) | {b - 1.0}
        else:
            edges |= set((a + (b - a) * halves).tolist()) | set((b - (b - a) * halves).tolist())
    listed = np.array(sorted(edges))
    return np.stack([listed[:-1], listed[1:]], axis=1)


def _middles(edges: Array) -> Array:
    """Where panels are divided: in their middle; one without end farther and farther out."""
    left, right = edges[:, 0], edges[:, 1]
    below, above = np.isinf(left), np.isinf(right)
    inside = (np.where(below, 0.0, left) + np.where(above, 0.0, right)) / 2
    near = np.where(above, left, np.where(below, right, 0.0))
    out = FARTHER * np.maximum(1.0, np.abs(near))
    farther = near + np.where(below, -out, out)
    return np.where(below | above, np.where(np.abs(farther) < FARTHEST, farther, near), inside)


def _measured(functions: Rows, edges: Array) -> tuple[Array, Array, Array, Array]:
    """For each panel and function: the integral, the difference of the two rules, the integral of the absolute value,
    and what the rounding of points may change."""
    left, right = edges[:, 0], edges[:, 1]
    below, above = np.isinf(left), np.isinf(right)
    # The last panel of an infinite end, from c on: x = c + s (u + 1)/(1 - u) with s = max(1, |c|), u from -1 to 1.
    near = np.where(above, left, np.where(below, right, 0.0))
    scale = np.maximum(1.0, np.abs(near))
    open_ended = below | above
    half = np.where(open_ended, 1.0, (np.where(open_ended, 1.0, right) - np.where(open_ended, 0.0, left)) / 2)
    points = np.where(open_ended, 0.0, left + half)[:, None] + half[:, None] * NODES[None, :]
    far = near[:, None] + np.where(below, -scale, scale)[:, None] * ((1 + NODES) / (1 - NODES))[None, :]
    # A point that is rounded to the end of its panel is taken next to it: there may be a pole.
    inner = np.clip(points, np.nextafter(left, math.inf)[:, None], np.nextafter(right, -math.inf)[:, None])
    at = np.where(open_ended[:, None], far, inner)
    lengths = np.where(open_ended[:, None], scale[:, None] * (2 / (1 - NODES) ** 2)[None, :], half[:, None])
    with np.errstate(under="ignore"):
        values = np.asarray(functions(at.ravel()), dtype=np.float64).reshape(-1, *at.shape) * lengths
    kronrod, gauss = values @ KRONROD, values @ GAUSS
    sizes = np.abs(values) @ KRONROD
    # Points are rounded too: by a part of the panel that counts next to a pole.
    moved = np.where(open_ended, 0.0, np.spacing(np.abs(points).max(axis=1)) / (2 * half))
    return kronrod.T, np.abs(kronrod - gauss).T, sizes.T, (moved * sizes).T


Decide = Callable[[Array, Array], NDArray[np.bool_]]
"""Which of these thetas are kept, given a uniform number for each."""

SMALLEST, BIGGEST = 1_000, 200_000
"""Proposals in one round."""


class WithError(NamedTuple):
    """A number and its error: a bound, an estimate or a standard error, as the function that gives it says."""

    value: float
    error: float


@brief
@dataclass(frozen=True, eq=False)
class PosteriorDraws:
    """Independent draws of theta from a posterior, one in each row, and how many proposals they took.

    All errors are Monte Carlo errors: one standard error.
    """

    values: Array
    proposals: int
    log_top: float

    def __len__(self) -> int:
        return len(self.values)

    @property
    def acceptance(self) -> WithError:
        """The share of proposals that are kept: p(t) over the largest density of this output given an answer.

        Proposals are made until the last draw, so (n - 1) / (proposals - 1) is unbiased.
        """
        n = len(self.values)
        rate = (n - 1) / (self.proposals - 1) if n > 1 else 1 / self.proposals
        return WithError(rate, rate * math.sqrt(max(1 - rate, 0.0) / n))

    @property
    def predictive(self) -> WithError:
        """p(t), from the acceptance."""
        top = math.exp(self.log_top)
        return WithError(top * self.acceptance.value, top * self.acceptance.error)

    @property
    def mean(self) -> WithError:
        """The posterior mean of theta, a number."""
        return self.expected(lambda theta: theta)

    def expected(self, function: Callable[[Array], Array]) -> WithError:
        """The posterior expectation of a function that gives one number for each draw."""
        found = np.asarray(function(self.values), dtype=np.float64)
        if found.shape != (len(self.values),):
            raise errors.parameter_out_of_range("The function", "not one number for each draw", "one number for each")
        spread = float(np.std(found, ddof=1)) if len(found) > 1 else math.inf
        return WithError(float(np.mean(found)), spread / math.sqrt(len(found)))

    def quantile(self, probability: Number) -> WithError:
        """A quantile of theta, a number; its error is half the distance of the draws one standard error of the share
        below and above."""
        p = as_float("probability", probability, "above 0 and below 1")
        if not 0 < p < 1:
            raise errors.parameter_out_of_range("probability", probability, "above 0 and below 1")
        off = math.sqrt(p * (1 - p) / len(self.values))
        low, at, high = np.quantile(self.values, [max(p - off, 0.0), p, min(p + off, 1.0)])
        return WithError(float(at), float(high - low) / 2)


def accepted(
    draw: Callable[[int, RandomSource], Array],
    decide: Decide,
    size: int,
    source: RandomSource,
    most: int,
    log_top: float,
) -> PosteriorDraws:
    """Propose in rounds until ``size`` are kept.

    Given which proposals are kept, those that are kept are independent draws from the posterior. So it does no harm
    that the rounds, and the end, depend on how many there are.
    """
    kept: list[Array] = []
    count, proposals, round_size = 0, 0, min(max(SMALLEST, 2 * size), BIGGEST)
    while True:
        theta = draw(round_size, source)
        if len(theta) != round_size:
            raise errors.parameter_out_of_range("The prior", f"{len(theta)} draws", f"{round_size} draws, as asked")
        where = np.flatnonzero(decide(theta, uniforms(round_size, source)))
        if count + len(where) >= size:
            last = size - count
            kept.append(theta[where[:last]])
            return PosteriorDraws(np.concatenate(kept), proposals + int(where[last - 1]) + 1, log_top)
        kept.append(theta[where])
        count, proposals = count + len(where), proposals + round_size
        if proposals >= most:
            raise errors.too_few_accepted(count, proposals, size)
        needed = (size - count) * proposals / max(count, 1)
        round_size = int(min(max(SMALLEST, 1.1 * needed), BIGGEST))


optimize = later("scipy.optimize")

Function = Callable[[Array], Array]

PROPER = 1e-6
"""How far from 1 a prior density may integrate."""

ENOUGH = 1e-11
"""Counts are listed until those left out add less than this part to p(t), or there are too many."""


BESIDE = (0, 1, 1)
"""Of the three rows that are integrated: what is left out need only be known beside what is not."""

COIN = 2.0**-53
"""The resolution of the uniform numbers that decide what is kept."""


class _Solved(NamedTuple):
    listing: Listing
    total: WithError
    """p(t) over e^log_top."""
    integrals: Integrals | None


@refuses_wrong_arguments
@brief
@dataclass(frozen=True, eq=False)
class Posterior:
    """What is believed about theta after an output, by Bayes' rule.

    Parameters
    ----------
    prior
        What was believed before: see :class:`stirred.lab.limits.models.Prior`.
    model
        The law of the data given theta: see :class:`stirred.lab.limits.models.DataModel`.
    noise
        The law of the output given the answer: see :class:`stirred.lab.limits.models.NoiseLaw`.
    output
        What was published.
    query
        From data to the answer without noise, for arrays; :func:`stirred.lab.limits.models.clamp_to` cuts off. By
        default the data themselves.

    Examples
    --------
    >>> from scipy import stats
    >>> from stirred.lab.limits.models import DataModel, NoiseLaw, Prior, clamp_to
    >>> from stirred.limits import Density
    >>> prior, model = Prior.of(Density.gamma(3, 1)), DataModel.counts(stats.poisson.pmf)
    >>> after = Posterior(prior, model, NoiseLaw.laplace(6), output=3, query=clamp_to(0, 6))  # Figure 5.4
    >>> round(after.mean.value, 6), after.mean.error < 1e-8, round(after.predictive.value, 8)
    (2.974003, True, 0.06423075)
    """

    prior: Prior
    model: DataModel
    noise: NoiseLaw
    output: float
    query: Function | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", as_float("output", self.output, "a finite number"))
        if not math.isfinite(self.output):
            raise errors.parameter_out_of_range("output", self.output, "a finite number")

    # -- numbers ---------------------------------------------------------------------------------------------

    @cached_property
    def predictive(self) -> WithError:
        """p(t): the density, or probability, of the output before anything is known of theta."""
        scale, total = math.exp(self._solved.listing.log_top), self._solved.total
        return WithError(scale * total.value, scale * total.error)

    def likelihood(self, theta: ArrayLike) -> Array:
        """p(t | theta), without what data that are not listed may add."""
        return math.exp(self._solved.listing.log_top) * self._relative(theta)

    def ratio(self, theta: ArrayLike) -> Array:
        """Posterior over prior, p(t | theta) / p(t): by Theorem 5.6.3 within e^(+-epsilon d) where the release is
        epsilon-DP and possible data are at most d apart."""
        return self._relative(theta) / self._solved.total.value

    def density(self, theta: ArrayLike) -> Array:
        """The posterior density at theta; of a prior that is a list the probability of a listed theta, else 0."""
        at = as_floats("theta", theta, "numbers")
        believed = self._believed(at.ravel())
        found = np.zeros(at.size)
        possible = believed > 0
        found[possible] = believed[possible] * self.ratio(at.ravel()[possible])
        return found.reshape(at.shape)

    def bounds(self, theta: ArrayLike, epsilon: ArrayLike, distance: ArrayLike = 1) -> Band:
        """Theorem 5.6.3: the prior at theta times e^(-epsilon d) and e^(epsilon d). :meth:`density` lies between them
        where the release is epsilon-DP and possible data are at most ``distance`` apart."""
        at = as_floats("theta", theta, "numbers")
        return density_bounds(self._believed(at.ravel()).reshape(at.shape), epsilon, distance)

    @cached_property
    def mean(self) -> WithError:
        """The posterior mean; its error is infinite where there is none."""
        return self.expected(lambda theta: theta)

    @cached_property
    def deviation(self) -> WithError:
        """The standard deviation of the posterior."""
        mean = self.mean
        if math.isinf(mean.error):
            return WithError(math.nan, math.inf)
        square = self.expected(lambda theta: (theta - mean.value) ** 2)
        root = math.sqrt(max(square.value, 0.0))
        error = square.error + mean.error**2  # E (theta - m)^2 is the variance and (mean - m)^2, whatever m
        return WithError(root, error / root if error < root**2 else math.sqrt(error))

    def expected(self, function: Function) -> WithError:
        """The posterior expectation of a function of theta that takes and gives arrays."""
        return self._expected(function, self.prior.breaks)

    def probability(self, low: Number = -math.inf, high: Number = math.inf) -> WithError:
        """The posterior probability that theta is from ``low`` to ``high``, both included."""
        a, b = as_float("low", low, "a number"), as_float("high", high, "a number")
        if not a <= b:
            raise errors.parameter_out_of_range("high", high, "at least as large as low")
        if self.prior.values is not None:
            return self._expected(lambda theta: ((theta >= a) & (theta <= b)).astype(np.float64), ())
        if self.prior.density is None:
            raise errors.posterior_needs("An integral over theta", "a prior with a density or a list of values")
        ends = self.prior.breaks
        a, b = max(a, ends[0]), min(b, ends[-1])
        if a >= b:
            return WithError(0.0, 0.0)
        found = self._expected(np.ones_like, (a, *(at for at in ends if a < at < b), b))
        return WithError(min(found.value, 1.0), found.error)

    def quantile(self, probability: Number) -> WithError:
        """The smallest theta up to which the posterior probability is at least this.

        Of a prior that is a list the error is 0, or infinite where the errors of sums leave open which one it is; else
        it is the error of the probability over the density there.
        """
        p = as_float("probability", probability, "above 0 and below 1")
        if not 0 < p < 1:
            raise errors.parameter_out_of_range("probability", probability, "above 0 and below 1")
        solved = self._solved
        off = 2 * solved.total.error / solved.total.value
        if self.prior.values is not None:
            ends = np.cumsum(self.density(self.prior.values))
            first, at, last = np.searchsorted(ends, [p - off, p, p + off]).clip(0, len(ends) - 1)
            return WithError(float(self.prior.values[at]), 0.0 if first == last else math.inf)
        assert solved.integrals is not None
        edges, parts = solved.integrals.edges, solved.integrals.parts[:, 1]
        below = np.cumsum(parts)
        at = min(int(np.searchsorted(below, p * below[-1])), len(below) - 1)
        left, right = (float(edge) for edge in edges[at])
        if math.isinf(left) or math.isinf(right):
            return WithError(left if math.isinf(right) else right, math.inf)
        wanted = p * below[-1] - (below[at] - parts[at])

        def missing(theta: float) -> float:
            part = part_of_panel(self._rows(solved.listing, np.ones_like), left, theta)[1] if theta > left else 0.0
            return float(part - wanted)

        inside = missing(left) < 0 < missing(right)
        theta = float(optimize.brentq(missing, left, right, xtol=1e-300, rtol=1e-14)) if inside else right
        height = float(self.density(theta))
        return WithError(theta, off / height + ROUNDING * abs(theta) if height > 0 else math.inf)

    # -- draws -----------------------------------------------------------------------------------------------

    def draws(self, size: int, source: RandomSource | None = None, most: int = 10_000_000) -> PosteriorDraws:
        """Independent draws from the posterior by rejection, and how many proposals they took.

        Exact: no tolerance and no summaries, as approximate Bayesian computation has them. Where P(x | theta) is known,
        theta is kept with probability p(t | theta) over the largest g, which gives the same law as drawing x.
        ``source`` decides what is kept (the operating system's by default; a :class:`stirred.noise.SeededSource`
        repeats); samplers of one's own use a generator of one's own. It ends in an error after ``most`` proposals.
        """
        for name, value in (("size", size), ("most", most)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise errors.parameter_out_of_range(name, value, "a whole number from 1 on")
        if self.prior.draw is None:
            raise errors.posterior_needs("Drawing from the posterior", "a way to draw from the prior: draw=")
        bits = source or SystemSource()
        if self.model.pmf is None:
            return accepted(self.prior.draw, self._decide_drawn, int(size), bits, int(most), self._drawn_top)
        listing = self._listing(FIRST_COUNTS)
        return accepted(self.prior.draw, self._decide_listed, int(size), bits, int(most), listing.log_top)

    def _decide_listed(self, theta: Array, uniform: Array) -> NDArray[np.bool_]:
        """Keep where U < p(t | theta) over the largest g: more counts are listed until that is settled for each."""
        if theta.ndim != 1:
            raise errors.parameter_out_of_range(
                "theta", "more than one number", "one number, where P(x | theta) is given"
            )
        kept = np.zeros(len(theta), dtype=np.bool_)
        open_, count = np.arange(len(theta)), FIRST_COUNTS
        while len(open_):
            listed, left = self._listing(count).likelihood(theta[open_])
            u = uniform[open_]
            kept[open_] = u < listed
            open_ = open_[(u >= listed) & (u < listed + left) & (left > COIN)]
            count *= MORE
            if len(open_) and count > MOST_COUNTS:
                raise errors.parameter_out_of_range(
                    "x", f"above {MOST_COUNTS:,} for some theta", "a query that is clamped"
                )
        return kept

    @property
    def _drawn_top(self) -> float:
        answers = (self.query.low, self.query.high) if isinstance(self.query, Clamp) else EVERYWHERE
        return float(self.noise.log_highest(self.output, answers))

    def _decide_drawn(self, theta: Array, uniform: Array) -> NDArray[np.bool_]:
        """Keep where U < g(t | q(x)) over the largest g, with x drawn given theta."""
        assert self.model.draw is not None
        x = np.asarray(self.model.draw(theta))
        if len(x) != len(theta):
            raise errors.parameter_out_of_range("The model", f"{len(x)} datasets", f"{len(theta)}, one for each theta")
        logs = log_densities(self.noise, self.output, self.query, x)
        return np.asarray(uniform < np.exp(np.minimum(logs - self._drawn_top, 0.0)))

    # -- sums and integrals ----------------------------------------------------------------------------------

    def _listing(self, count: int) -> Listing:
        return Listing.of(self.model, self.noise, self.output, self.query, count)

    @cached_property
    def _solved(self) -> _Solved:
        count = FIRST_COUNTS
        while True:
            listing = self._listing(count)
            total, left, found = self._totals(listing)
            if listing.rest is not None or left <= ENOUGH * total.value or count * MORE > MOST_COUNTS:
                break
            count *= MORE
        if not total.value > 0:
            raise errors.impossible_output()
        return _Solved(listing, total, found)

    def _totals(self, listing: Listing) -> tuple[WithError, float, Integrals | None]:
        """p(t) over e^log_top with its error, what data that are not listed may add to it, and integrals by panel."""
        if self.prior.values is not None:
            assert self.prior.probabilities is not None
            listed, left = listing.likelihood(self.prior.values)
            value, more = float(self.prior.probabilities @ listed), float(self.prior.probabilities @ left)
            return WithError(value, more + ROUNDING * value), more, None
        if self.prior.density is None:
            raise errors.posterior_needs("An integral over theta", "a prior with a density or a list of values")
        found = integrals(self._rows(listing, np.ones_like), self.prior.breaks, beside=BESIDE)
        believed, value, more = (float(one) for one in found.values)
        if not abs(believed - 1) <= PROPER + float(found.errors[0]) or not float(found.errors[0]) < 0.01:
            raise errors.not_a_prior(f"its density integrates to {believed:.6g} and not to 1")
        return WithError(value, more + float(found.errors[1])), more, found

    def _rows(self, listing: Listing, function: Function) -> Function:
        """At each theta: the prior, the prior times p(t | theta) times a function, and what may be missing of that."""

        def rows(theta: Array) -> Array:
            assert self.prior.density is not None
            believed = np.asarray(self.prior.density(theta), dtype=np.float64)
            if not bool(np.all((believed >= 0) & (believed < math.inf))):
                raise errors.not_a_prior("its density is negative, infinite or not a number somewhere")
            found = np.zeros((3, len(theta)))
            possible = believed > 0
            listed, left = listing.likelihood(theta[possible])
            with np.errstate(over="ignore", invalid="ignore"):
                values = np.asarray(function(theta[possible]), dtype=np.float64)
                found[0] = believed
                found[1, possible] = believed[possible] * listed * values
                found[2, possible] = believed[possible] * left * np.abs(values)
            return found

        return rows

    def _expected(self, function: Function, breaks: Sequence[float]) -> WithError:
        listing, total, _ = self._solved
        if self.prior.values is not None:
            assert self.prior.probabilities is not None
            listed, left = listing.likelihood(self.prior.values)
            values = np.asarray(function(self.prior.values), dtype=np.float64)
            part = float(self.prior.probabilities @ (listed * values))
            error = float(self.prior.probabilities @ ((left + ROUNDING * listed) * np.abs(values)))
        else:
            found = integrals(self._rows(listing, function), breaks, beside=BESIDE)
            part, error = float(found.values[1]), float(found.values[2] + found.errors[1])
        if not (math.isfinite(part) and math.isfinite(error)) or total.error >= total.value:
            return WithError(part / total.value, math.inf)
        value = part / total.value
        return WithError(value, (error + abs(value) * total.error) / (total.value - total.error))

    def _believed(self, theta: Array) -> Array:
        """The prior density, or probability, at these points."""
        if self.prior.values is None:
            if self.prior.density is None:
                raise errors.posterior_needs("A posterior density", "a prior with a density or a list of values")
            return np.asarray(self.prior.density(theta), dtype=np.float64)
        assert self.prior.probabilities is not None
        place = np.searchsorted(self.prior.values, theta).clip(0, len(self.prior.values) - 1)
        return np.where(self.prior.values[place] == theta, self.prior.probabilities[place], 0.0)

    def _relative(self, theta: ArrayLike) -> Array:
        at = as_floats("theta", theta, "numbers")
        return np.asarray(self._solved.listing.likelihood(at.ravel())[0]).reshape(at.shape)
