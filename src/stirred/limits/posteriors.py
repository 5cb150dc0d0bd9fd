"""Exact posteriors behind Figure 5.4 (Example 5.6.5), for a model, a prior, a query and a noise of one's own.

theta has a prior, the data x a law given theta, and what is published is the answer q(x) with noise. After an output t

    p(t | theta) = sum over x of P(x | theta) g(t | q(x)),   posterior(theta) = prior(theta) p(t | theta) / p(t).

:class:`Posterior` computes it by sums over x and, where the prior has a density, by quadrature over theta.
:meth:`Posterior.draws` draws from it, exactly, by rejection (Gong 2022, which Figure 5.4 was made with): theta from the
prior, x from the model, and theta is kept with probability g(t | q(x)) over the largest g at this output. For Laplace
noise of scale D/epsilon that is e^(-epsilon |t - q(x)| / D) wherever t is a possible answer.

Keep in mind: every number comes with its error. Of sums it is a bound: data that are not listed have probability 1
less that of the listed ones, and no g is larger than the largest. Of integrals it is the estimate of
:mod:`stirred.limits.quadrature`. Of draws it is the standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import says_what_it_is_made_of
from stirred._lazy import later
from stirred._shown import brief
from stirred.limits.bounds import Band, density_bounds
from stirred.limits.listings import FIRST_COUNTS, MORE, MOST_COUNTS, Listing, log_densities
from stirred.limits.models import Clamp, DataModel, Prior
from stirred.limits.noise_laws import EVERYWHERE, NoiseLaw
from stirred.limits.posterior_draws import PosteriorDraws, WithError, accepted
from stirred.limits.quadrature import ROUNDING, Integrals, integrals, part_of_panel
from stirred.loss.argument_checks import Number, as_float, as_floats
from stirred.noise.source import RandomSource, SystemSource

optimize = later("scipy.optimize")

Array = NDArray[np.float64]
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


@says_what_it_is_made_of
@brief
@dataclass(frozen=True, eq=False)
class Posterior:
    """What is believed about theta after an output, by Bayes' rule.

    Parameters
    ----------
    prior
        What was believed before: see :class:`stirred.limits.Prior`.
    model
        The law of the data given theta: see :class:`stirred.limits.DataModel`.
    noise
        The law of the output given the answer: see :class:`stirred.limits.NoiseLaw`.
    output
        What was published.
    query
        From data to the answer without noise, for arrays; :func:`stirred.limits.clamp_to` cuts off. By default the data
        themselves.

    Examples
    --------
    >>> from scipy import stats
    >>> from stirred.limits import DataModel, Density, NoiseLaw, Prior, clamp_to
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
