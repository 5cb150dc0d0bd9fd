"""Draws from a posterior by rejection, and what is estimated from them with its standard error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._shown import brief
from stirred.limits.models import uniforms
from stirred.loss.argument_checks import Number, as_float
from stirred.noise.source import RandomSource

Array = NDArray[np.float64]
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
