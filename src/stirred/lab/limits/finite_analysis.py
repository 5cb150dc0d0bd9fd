"""A finite mechanism with models of the data and a prior: exact answers beside the bounds (sections 5.4 to 5.6).

Everything is listed: P_x(t) for each dataset x of a graph, P_theta(x) for each parameter, pi(theta). Bounds use epsilon
and distances; the exact numbers beside them use everything.

Keep in mind: an output t is possible for some datasets only, its *support*. Where a model gives the
support a mass below 1, part of p(t | theta) is missing, and the published lower bounds of Theorems 5.4.1 and 5.6.2 and
both of Theorem 5.6.3 fail: to learn that the data are in the support is to learn something, and it costs no epsilon.
Bounds here carry the mass, and posteriors are compared with the prior given the support. With mass 1 they are the
published ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.lab.limits.measure_intervals import events
from stirred.limits.bounds import Band, Form, data_bounds, mixture_bounds, posterior_bounds, power_bounds
from stirred.limits.distances import one_probability
from stirred.limits.graphs import DatabaseGraph, in_intervals, mechanism, privacy_loss
from stirred.loss import PowerCurve, power_curve
from stirred.loss.argument_checks import non_negative, require_probabilities

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@refuses_wrong_arguments
@brief
@dataclass(frozen=True, eq=False)
class FiniteAnalysis:
    """A mechanism (datasets x outputs) on a graph, models (parameters x datasets) and a proper prior of the parameters.

    ``epsilon`` is by default the mechanism's own loss; a smaller one is refused. The prior may be left out where no
    question needs it.

    >>> bits = DatabaseGraph.hamming((0, 1), 1)
    >>> response = [[0.75, 0.25], [0.25, 0.75]]
    >>> coin = FiniteAnalysis(response, bits, [[0.9, 0.1], [0.5, 0.5]], [0.5, 0.5])
    >>> coin.likelihood.round(3).tolist(), coin.likelihood_bounds().upper.round(3).tolist()
    ([[0.7, 0.3], [0.5, 0.5]], [[0.75, 0.75], [0.75, 0.75]])
    """

    rows: Array
    graph: DatabaseGraph
    models: Array
    prior: Array | None = None
    epsilon: float | None = None

    def __post_init__(self) -> None:
        rows, models = mechanism(self.rows, self.graph).copy(), np.array(self.models, dtype=np.float64)
        if models.ndim != 2 or models.shape[1] != len(rows):
            raise errors.analysis_does_not_fit("the models do not have one column for each dataset of the graph")
        require_probabilities("A model", models)
        for name, values in (("rows", rows), ("models", models)):
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if self.prior is not None:
            prior = one_probability("The prior", self.prior)
            if len(prior) != len(models):
                raise errors.analysis_does_not_fit("the prior does not have one probability for each model")
            object.__setattr__(self, "prior", prior)
        if self.epsilon is None:
            object.__setattr__(self, "epsilon", privacy_loss(rows, self.graph).ratio)
            return
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon))
        if not in_intervals(rows, self.graph, self.budget).holds:
            raise errors.analysis_does_not_fit("the privacy loss of the mechanism on this graph exceeds epsilon")

    @property
    def budget(self) -> float:
        """Epsilon as a number."""
        assert self.epsilon is not None
        return self.epsilon

    # -- what is true ----------------------------------------------------------------------------------------

    @property
    def likelihood(self) -> Array:
        """p(t | theta) for each parameter and output (5.6)."""
        return self.models @ self.rows

    @property
    def predictive(self) -> Array:
        """p(t), the prior predictive probability of each output."""
        return np.asarray(self._prior @ self.likelihood)

    def posterior(self, output: int) -> Array:
        """pi(theta | t) for each parameter (5.13)."""
        joint = self._prior * self.likelihood[:, self._output(output)]
        if joint.sum() <= 0:
            raise errors.impossible_condition("The output")
        return np.asarray(joint / joint.sum())

    def best_power(self, null: int, alternative: int, level: ArrayLike) -> Array:
        """The power of the best test of one parameter against another, by Neyman and Pearson."""
        found = power_curve(self.likelihood[null], self.likelihood[alternative])
        return np.asarray(PowerCurve(tuple(map(tuple, found.tolist()))).power(level))

    # -- supports --------------------------------------------------------------------------------------------

    def support(self, output: int, parameter: int | None = None) -> Mask:
        """The datasets that a parameter can give and that can give the output: supp(x | t, theta); for no parameter
        those of all parameters that the prior allows, supp(x | t)."""
        return np.asarray((self.rows[:, self._output(output)] > 0) & self._possible(parameter))

    def covered(self, output: int, parameter: int | None = None) -> Mask:
        """T_0, the outputs that no further dataset can give: one support serves for all of them."""
        outside = ~self.support(output, parameter) & self._possible(parameter)
        return np.asarray(~np.any(self.rows[outside] > 0, axis=0))

    def prior_given(self, output: int) -> Array:
        """The prior given that the data are in supp(x | t), and nothing else: pi(theta) P_theta(support), normalised.
        What posterior bounds are about; the prior itself where every model gives the support the same mass."""
        joint = self._prior * self.models[:, self.support(output)].sum(axis=1)
        if joint.sum() <= 0:
            raise errors.impossible_condition("The output")
        return np.asarray(joint / joint.sum())

    def farthest(self, output: int) -> float:
        """d_**, the largest distance in supp(x | t)."""
        return self.graph.diameter(self._connected(self.support(output)))

    # -- bounds ----------------------------------------------------------------------------------------------

    def likelihood_bounds(self) -> Band:
        """Theorem 5.4.1 for each parameter and output, each output with its own support."""
        bands = [self._outputs(number, trivial=False) for number in range(len(self.models))]
        return Band(np.stack([band.lower for band in bands]), np.stack([band.upper for band in bands]))

    def likelihood_mixture_bounds(self) -> Band:
        """Bounds for somebody who knows the whole mechanism: the least and greatest probability over datasets."""
        bands = [self._outputs(number, trivial=True) for number in range(len(self.models))]
        return Band(np.stack([band.lower for band in bands]), np.stack([band.upper for band in bands]))

    def predictive_bounds(self) -> Band:
        """Theorem 5.6.2 for each output."""
        return self._outputs(None, trivial=False)

    def predictive_mixture_bounds(self) -> Band:
        """Bounds for somebody who knows the whole mechanism: the least and greatest probability over datasets."""
        return self._outputs(None, trivial=True)

    def posterior_bounds(self, output: int, event: ArrayLike | None = None, form: Form = "odds") -> Band:
        """Theorem 5.6.3 for events of parameters, by default each parameter alone; around :meth:`prior_given`."""
        inside = np.eye(len(self.models)) if event is None else events(event, len(self.models))
        believed = np.clip(inside @ self.prior_given(output), 0.0, 1.0)
        return posterior_bounds(believed, self.budget, self.farthest(output), form)

    def power_bounds(self, null: int, alternative: int, level: ArrayLike) -> Band:
        """Theorem 5.5.1 and Corollary 5.5.2 for a test of one parameter against another."""
        first, second = (self._named(self.models[number] > 0) for number in (null, alternative))
        self.graph.require_connected("The datasets of the two hypotheses", [*first, *second])
        return power_bounds(level, self.budget, self.graph.between(first, second))

    # -- helpers ---------------------------------------------------------------------------------------------

    @property
    def _prior(self) -> Array:
        if self.prior is None:
            raise errors.analysis_does_not_fit("this question needs a prior")
        return self.prior

    def _output(self, output: int) -> int:
        if not 0 <= output < self.rows.shape[1]:
            raise errors.parameter_out_of_range("output", output, f"between 0 and {self.rows.shape[1] - 1}")
        return output

    def _possible(self, parameter: int | None) -> Mask:
        if parameter is None:
            return np.asarray(np.any(self.models[self._prior > 0] > 0, axis=0))
        return np.asarray(self.models[parameter] > 0)

    def _outputs(self, parameter: int | None, trivial: bool) -> Band:
        lower, upper = np.zeros(self.rows.shape[1]), np.zeros(self.rows.shape[1])
        weights = self._prior @ self.models if parameter is None else self.models[parameter]
        for support, outputs in self._supports(parameter):
            among = self._connected(support)
            mass = min(1.0, math.fsum(weights[support]))
            columns = self.rows[:, outputs]
            if trivial:
                band = mixture_bounds(columns, self.graph, among, mass)
            else:
                band = data_bounds(columns, self.graph, self.budget, among, mass)
            lower[outputs], upper[outputs] = band.lower, band.upper
        return Band(lower, upper)

    def _supports(self, parameter: int | None) -> Iterator[tuple[Mask, Mask]]:
        """Each support that some output has, with its outputs; outputs that are impossible have none."""
        able = (self.rows > 0) & self._possible(parameter)[:, None]
        kinds, which = np.unique(able.T, axis=0, return_inverse=True)
        for number, support in enumerate(kinds):
            if bool(np.any(support)):
                yield support, which.ravel() == number

    def _connected(self, support: Mask) -> list[object]:
        if not bool(np.any(support)):
            raise errors.impossible_condition("The output")
        named = self._named(support)
        self.graph.require_connected("The datasets that can give the output", named)
        return named

    def _named(self, support: Mask) -> list[object]:
        return [self.graph.datasets[int(at)] for at in np.flatnonzero(support)]
