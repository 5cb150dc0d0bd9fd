"""The data of a model as a list, with how probable an output is given each of them: sums over the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred.limits.models import LARGEST, Clamp, DataModel
from stirred.limits.noise_laws import EVERYWHERE, FAR, NoiseLaw

Array = NDArray[np.float64]
Query = Callable[[Array], Array] | None

FIRST_COUNTS = 64
MORE = 4
MOST_COUNTS = 4_096
"""Where nobody knows which counts matter, the first 64, 256, ... are listed, up to these."""

AT_ONCE = 4_000_000
"""Probabilities of x that are held in memory."""

SUMMED = 1e-12
"""Listed probabilities that add up to 1 within this are taken for all of them: sums are rounded."""


def log_densities(noise: NoiseLaw, output: float, query: Query, x: Array) -> Array:
    """ln g(t | q(x)) for each dataset."""
    answers = np.asarray(x if query is None else query(x), dtype=np.float64)
    if answers.shape != x.shape[:1] or not bool(np.all(np.isfinite(answers))):
        raise errors.parameter_out_of_range(
            "The query", "not one number for each dataset", "one finite number for each"
        )
    return np.asarray(noise.log_density(output, answers), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Listing:
    """Data x with their weights, g(t | q(x)) over e^log_top, which no g of this output exceeds."""

    model: DataModel
    x: Array
    weights: Array
    log_top: float
    rest: float | None
    """The weight of all data that are not listed, where it is known; 0 where there are none."""
    outside: float = 1.0
    """Else a bound on the weights of data that are not listed."""

    @classmethod
    def of(cls, model: DataModel, noise: NoiseLaw, output: float, query: Query, count: int) -> Listing:
        """All data of a list; counts up to the end of a clamp; with noise of a known reach all counts that matter; else
        the first ``count``."""
        if model.pmf is None:
            raise errors.posterior_needs("A sum over the data", "P(x | theta): counts or a list of data")
        if model.values is not None:
            logs = log_densities(noise, output, query, model.values)
            return cls._of(model, model.values, logs, float(np.max(logs)), lambda weights: 0.0)
        if isinstance(query, Clamp):
            last = max(model.low, math.ceil(query.high))
            if last - model.low >= LARGEST:
                raise errors.parameter_out_of_range("The clamp", f"up to {last:,}", f"at most {LARGEST:,} counts")
            x = np.arange(model.low, last + 1, dtype=np.float64)
            logs = log_densities(noise, output, query, x)
            return cls._of(model, x, logs, float(np.max(logs)), lambda weights: float(weights[-1]))
        if query is None and noise.reach <= LARGEST / 2:
            nearest = max(model.low, math.ceil(output))
            x = np.arange(max(model.low, nearest - math.ceil(noise.reach) - 1), nearest + math.ceil(noise.reach) + 1.0)
            top = float(noise.log_highest(output, (float(model.low), math.inf)))
            found = cls._of(model, x, log_densities(noise, output, query, x), top, lambda weights: None)
            if not found.weights.any():
                raise errors.impossible_output()
            return replace(found, outside=math.exp(-FAR))
        x = np.arange(model.low, model.low + count, dtype=np.float64)
        answers = EVERYWHERE if query is not None else (float(model.low), math.inf)
        top = float(noise.log_highest(output, answers))
        return cls._of(model, x, log_densities(noise, output, query, x), top, lambda weights: None)

    @classmethod
    def _of(cls, model: DataModel, x: Array, logs: Array, top: float, rest: Callable[[Array], float | None]) -> Listing:
        if top == -math.inf:
            raise errors.impossible_output()
        weights = np.exp(logs - top)
        return cls(model, x, weights, top, rest(weights))

    def likelihood(self, theta: Array) -> tuple[Array, Array]:
        """p(t | theta) over e^log_top from the listed data, and the most that all others may add."""
        listed, left = np.empty(len(theta)), np.zeros(len(theta))
        step = max(1, AT_ONCE // len(self.x))
        for start in range(0, len(theta), step):
            part = slice(start, start + step)
            chances = self.model.probabilities(self.x, theta[part])
            missing = np.maximum(0.0, 1 - chances.sum(axis=1))
            listed[part] = chances @ self.weights
            if self.rest is None:
                left[part] = np.where(missing > SUMMED, missing * self.outside, 0.0)
            else:
                listed[part] += missing * self.rest
        return listed, left
