"""What an attacker believes about one person after a release, and what he would believe had her record not been used.

An attacker holds a prior over datasets and sees the output w of a mechanism M. In the *actual world* the dataset X goes
in; in the *counterfactual world* the record R of one person, the target, is first replaced by a draw from P(R | X-),
what the attacker would think of her if he knew everyone else. The *posterior-to-posterior ratio* of a record r,

    P(R = r | M(X) = w) / P(R = r | M(X with the target resampled) = w),

is what using her record adds to what is learnt from everyone else (Kifer et al. 2022, section 7.2). The ratio of
posterior to prior is another thing: it also counts what the others tell about her.

Keep in mind: the chance of a large ratio is taken under one of two laws of the output, and the
theorems in :mod:`stirred.semantics.belief_bounds` are each about one of them. *predictive*: the prior is correct, a
dataset is drawn from it, and nothing else is given. *record*: the prior is correct and the target's record truly is r.
The first averages over who the target may be; it says nothing about the person whose record is r.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import says_what_it_is_made_of
from stirred._lazy import later
from stirred.loss.argument_checks import SUM_TOLERANCE, Number, finite, probability
from stirred.spec import FiniteMechanism, Specification

sparse = later("scipy.sparse")
special = later("scipy.special")

Array = NDArray[np.float64]
Dataset = tuple[Hashable, ...]
Law = Literal["predictive", "record"]
LAWS = ("predictive", "record")

TIE = 1e-12
"""A ratio that differs from e^epsilon by a smaller part is taken for equal to it: ratios are rounded numbers."""


def joined(dataset: Dataset) -> str:
    """The default name of a dataset: its records, one after the other."""
    return "".join(map(str, dataset))


@says_what_it_is_made_of
@dataclass(frozen=True, eq=False)
class Beliefs:
    """All posteriors of one attacker about one target under one mechanism, by enumeration.

    ``prior`` gives datasets, tuples of records with one record for each person, their probabilities; any dependence
    between the records is allowed, and what is left out has probability 0. ``name`` is the name by which the mechanism
    knows a dataset. Of the arrays the axes are (record, output), in the order of ``records`` (those of the target that
    the prior holds possible) and of ``outputs``; an output that cannot occur has no posterior, which is nan.

    >>> from stirred.spec.order.finite_mechanisms import randomised_response
    >>> alike = {("0", "0"): 0.81, ("0", "1"): 0.09, ("1", "0"): 0.01, ("1", "1"): 0.09}
    >>> seen = Beliefs(alike, randomised_response("1/4", respondents=2), target=0)
    >>> at = seen.records.index("1"), seen.outputs.index("11")
    >>> float(seen.ratio[at].round(4)), float(seen.prior_to_posterior[at].round(4))  # pure DP at ln 3 bounds the first
    (1.5266, 4.375)
    """

    prior: Mapping[Any, Number] = field(repr=False)
    mechanism: FiniteMechanism = field(repr=False)
    target: int
    name: Callable[[Dataset], str] = field(default=joined, repr=False)

    records: tuple[Hashable, ...] = field(init=False, repr=False)
    outputs: tuple[str, ...] = field(init=False, repr=False)
    prior_of_record: Array = field(init=False, repr=False)
    """P(R = r), by record."""
    given_record: Array = field(init=False, repr=False)
    """P(M(X) = w | R = r), the law *record* of the output."""
    predictive: Array = field(init=False, repr=False)
    """P(M(X) = w), by output: the law *predictive*."""
    predictive_counterfactual: Array = field(init=False, repr=False)
    """The same in the counterfactual world. It is the same law: resampling from P(R | X-) gives X its own law again."""
    posterior: Array = field(init=False, repr=False)
    """P(R = r | M(X) = w), the actual world."""
    counterfactual: Array = field(init=False, repr=False)
    """P(R = r | M(X with the target resampled) = w)."""
    ratio: Array = field(init=False, repr=False)
    """The posterior-to-posterior ratio."""
    prior_to_posterior: Array = field(init=False, repr=False)
    """P(R = r | M(X) = w) / P(R = r)."""
    _worlds: Mapping[Dataset, tuple[Hashable, ...]] = field(init=False, repr=False)
    """By the rest of the data, the records of the target that the prior allows beside it."""

    def __post_init__(self) -> None:
        prior = checked_prior(self.prior)
        target = checked_target(self.target, len(next(iter(prior))))
        worlds: dict[Dataset, list[Hashable]] = {}
        for dataset in prior:
            worlds.setdefault(dataset[:target] + dataset[target + 1 :], []).append(dataset[target])
        rests = {rest: number for number, rest in enumerate(worlds)}
        records = {record: number for number, record in enumerate(dict.fromkeys(d[target] for d in prior))}
        at_rest = np.array([rests[dataset[:target] + dataset[target + 1 :]] for dataset in prior])
        at_record = np.array([records[dataset[target]] for dataset in prior])
        chances = np.array(list(prior.values()))
        chances = chances / math.fsum(chances)
        of_rest = np.bincount(at_rest, chances, len(rests))
        of_record = np.bincount(at_record, chances, len(records))
        laws = self.mechanism.rows[_places(prior, self.mechanism, self.name)]
        # Only quotients in one column count, so that an output as rare as floats can hold keeps its posteriors.
        largest = laws.max(axis=0)
        laws = laws / np.where(largest > 0, largest, 1.0)

        every = np.arange(len(prior))
        rest_given_record = chances / of_record[at_record]
        actual = sparse.csr_matrix((rest_given_record, (at_record, every)), (len(records), len(prior))) @ laws
        mixed = sparse.csr_matrix((chances / of_rest[at_rest], (at_rest, every)), (len(rests), len(prior))) @ laws
        resampled = sparse.csr_matrix((rest_given_record, (at_record, at_rest)), (len(records), len(rests))) @ mixed
        predictive, again = of_record @ actual, of_record @ resampled
        with np.errstate(invalid="ignore"):
            found = {
                "records": tuple(records),
                "outputs": self.mechanism.outputs,
                "prior_of_record": of_record,
                "given_record": actual * largest,
                "predictive": predictive * largest,
                "predictive_counterfactual": again * largest,
                "posterior": of_record[:, None] * actual / predictive,
                "counterfactual": of_record[:, None] * resampled / again,
                "ratio": actual / resampled,
                "prior_to_posterior": actual / predictive,
                "_worlds": {rest: tuple(allowed) for rest, allowed in worlds.items()},
            }
        object.__setattr__(self, "target", target)
        for attribute, value in found.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, attribute, value)

    def law(self, record: Hashable, given: Law) -> Array:
        """The probabilities of the outputs under one of the two laws; ``record`` is the true one under *record*."""
        row = self._row(record)
        return self.predictive if _checked_law(given) == "predictive" else np.asarray(self.given_record[row])

    def exceeds(self, epsilon: Number, record: Hashable, given: Law, strict: bool = False) -> float:
        """The probability that the ratio of ``record`` is at least e^epsilon; above it if ``strict``.

        Theorems 7.3 (*predictive*) and 7.5 (*record*) are about at least, 7.4 (*record*) about above. Outputs at which
        the record is impossible in both worlds have no ratio and do not count.
        """
        law, limit = self.law(record, given), _number("epsilon", epsilon)
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = np.log(self.ratio[self._row(record)])
            large = losses > limit + TIE if strict else losses >= limit - TIE
        return min(1.0, math.fsum(law[large]))

    # -- whether the theorems apply --------------------------------------------------------------------------

    @property
    def rest_determines_record(self) -> bool:
        """Whether everyone else's records leave one record possible: then resampling changes nothing, the ratio is 1
        whatever the mechanism, and a bound on it protects nobody."""
        return all(len(allowed) == 1 for allowed in self._worlds.values())

    def worlds_apart(
        self, specification: Specification, dataset: Callable[[Dataset], Any] | None = None
    ) -> Fraction | float | None:
        """The largest distance, under a specification, between datasets that differ in the target's record only.

        Infinite if no universe holds two of them, None where that cannot be decided. ``dataset`` turns a tuple into
        what the specification looks at, if that is neither the tuple nor a name of its domain: into records with
        columns, for example. Pairs that the prior holds impossible do not count.
        """
        look = dataset or (self.name if specification.domain.datasets else _itself)
        largest: Fraction | float = Fraction(0)
        known = True
        for rest, allowed in self._worlds.items():
            whole = [look((*rest[: self.target], record, *rest[self.target :])) for record in allowed]
            for first in range(len(whole)):
                for second in range(len(whole)):
                    if first == second:
                        continue
                    try:
                        found = specification.counterfactual(whole[first], whole[second])
                    except (errors.SpecificationError, TypeError):  # records that its blocks cannot read
                        known = False
                        continue
                    if found.inside is False:
                        return math.inf
                    known = known and found.inside is True
                    largest = max(largest, found.distance)
        return largest if known else None

    def worlds_stay_inside(
        self, specification: Specification, dataset: Callable[[Dataset], Any] | None = None
    ) -> bool | None:
        """Whether all that the prior holds possible for the target stays within one universe and one unit.

        The theorems about her record apply with the specification's own budget only if so; None where it cannot be
        decided. With invariants it often is not so, or holds because the rest determines the record.
        """
        apart = self.worlds_apart(specification, dataset)
        return None if apart is None else apart <= specification.input_premetric.scale

    def _row(self, record: Hashable) -> int:
        if record not in self.records:
            raise errors.parameter_out_of_range(
                "The record", "not one that the prior holds possible", "one of the records of these beliefs"
            )
        return self.records.index(record)


# -- two records and Gaussian noise, in closed form ----------------------------------------------------------


@dataclass(frozen=True)
class GaussianBelief:
    """Two candidate records, the rest known, Gaussian noise: of the record r with probability ``prior`` the output is
    N(mu, 1), of the other N(0, 1). Under rho-zCDP mu is sqrt(2 rho).

    With the loss L = ln of the two densities at the output, the posterior-to-posterior ratio of r, here also that of
    posterior to prior, is 1 / (q + (1 - q) e^-L), so at most 1/q. It is at least e^epsilon if q < e^-epsilon and L is
    at least -ln((e^-epsilon - q) / (1 - q)), where L is N(+-mu^2/2, mu^2).

    >>> belief = GaussianBelief(math.sqrt(2 * 2.63), 0.01)  # the 2020 redistricting data
    >>> round(belief.exceeds(3, "record"), 8), round(belief.exceeds(3, "predictive"), 8)
    (0.39947464, 0.00935499)
    """

    mu: float
    prior: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", finite("mu", self.mu))
        object.__setattr__(self, "prior", probability("The prior", self.prior))
        if self.prior in (0, 1):
            raise errors.parameter_out_of_range("The prior", self.prior, "above 0 and below 1")

    def loss(self, output: ArrayLike) -> Array:
        """L at an output: mu w - mu^2 / 2; of the shape of ``output``."""
        return np.asarray(self.mu * np.asarray(output, dtype=np.float64) - self.mu**2 / 2)

    def posterior(self, output: ArrayLike) -> Array:
        """The posterior of r at an output."""
        return np.asarray(special.expit(special.logit(self.prior) + self.loss(output)))

    def ratio(self, output: ArrayLike) -> Array:
        """The posterior-to-posterior ratio of r at an output.

        An output far from what the prior holds possible takes it to 1/prior, however small mu is: a *perceived* breach
        by an attacker with a wrong prior, against which pure DP alone protects (Example 7.2).

        >>> float(GaussianBelief(1, 0.01).ratio(101.3)), float(GaussianBelief(0.1, 0.01).ratio(1000))
        (100.0, 100.0)
        """
        return self.posterior(output) / self.prior

    def threshold(self, epsilon: Number) -> float:
        """The loss from which on the ratio is at least e^epsilon; infinite if it never is."""
        e, q = _number("epsilon", epsilon), self.prior
        missing = -math.expm1(-e) / (1 - q) if e > -700 else -math.inf
        if missing < 0.5:
            return -math.log1p(-missing) if missing > -math.inf else -math.inf
        left = math.exp(-e) - q
        return math.log1p(-q) - math.log(left) if left > 0 else math.inf

    def exceeds(self, epsilon: Number, given: Law) -> float:
        """The probability that the ratio is at least e^epsilon, under one of the two laws; above it is as likely,
        unless mu is 0."""
        threshold = self.threshold(epsilon)
        if self.mu == 0:  # the loss is 0
            _checked_law(given)
            return 1.0 if threshold <= 0 else 0.0
        truly = float(special.ndtr(self.mu / 2 - threshold / self.mu))
        if _checked_law(given) == "record":
            return truly
        return self.prior * truly + (1 - self.prior) * float(special.ndtr(-self.mu / 2 - threshold / self.mu))


# -- checks --------------------------------------------------------------------------------------------------


def checked_prior(prior: Mapping[Any, Number]) -> dict[Dataset, float]:
    """The datasets of positive probability; refused unless the probabilities of all are a distribution."""
    chances: dict[Dataset, float] = {}
    for key, value in prior.items():
        try:
            dataset, chance = tuple(key), float(value)
        except (TypeError, ValueError):
            raise errors.not_a_distribution("The prior", "it does not map tuples of records to probabilities") from None
        if not chance >= 0:
            raise errors.not_a_distribution("The prior", "a probability is negative or not a number")
        chances[dataset] = chances.get(dataset, 0.0) + chance
    if not chances or not abs(math.fsum(chances.values()) - 1) <= SUM_TOLERANCE:
        raise errors.not_a_distribution("The prior", "the probabilities do not sum to 1")
    if len({len(dataset) for dataset in chances}) > 1:
        raise errors.not_a_distribution("The prior", "its datasets do not all have the same number of records")
    return {dataset: chance for dataset, chance in chances.items() if chance > 0}


def checked_target(target: int, people: int) -> int:
    """The target's position as a whole number; refused unless there is such a person."""
    try:
        index = operator.index(target)
    except TypeError:
        index = -1
    if not 0 <= index < people:
        raise errors.parameter_out_of_range("The target", target, f"the index of a person, from 0 to {people - 1}")
    return index


def _places(prior: Mapping[Dataset, float], mechanism: FiniteMechanism, name: Callable[[Dataset], str]) -> list[int]:
    """For each dataset the row of the mechanism."""
    places = {dataset: place for place, dataset in enumerate(mechanism.datasets)}
    names = [name(dataset) for dataset in prior]
    if any(one not in places for one in names):
        raise errors.not_a_mechanism("it has no law for some datasets that the prior holds possible")
    if name is joined and len(set(names)) < len(names):
        raise errors.parameter_out_of_range("The name", "the same for two datasets", "given by a function of your own")
    return [places[one] for one in names]


def _checked_law(given: str) -> str:
    if given not in LAWS:
        raise errors.unknown_choice("law of the output", given, LAWS)
    return given


def _number(name: str, value: Number) -> float:
    number = float(value)
    if math.isnan(number):
        raise errors.parameter_out_of_range(name, value, "a number")
    return number


def _itself(dataset: Dataset) -> Any:
    return dataset
