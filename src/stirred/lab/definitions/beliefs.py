"""What an attacker believes about one person after a release, and what he would believe had her record not been used.

An attacker holds a prior over datasets and sees the output w of a mechanism M. In the *actual world* the dataset X goes
in; in the *counterfactual world* the record R of one person, the target, is first replaced by a draw from P(R | X-),
what the attacker would think of her if he knew everyone else. The *posterior-to-posterior ratio* of a record r,

    P(R = r | M(X) = w) / P(R = r | M(X with the target resampled) = w),

is what using her record adds to what is learnt from everyone else (Kifer et al. 2022, section 7.2). The ratio of
posterior to prior is another thing: it also counts what the others tell about her.

Keep in mind: the chance of a large ratio is taken under one of two laws of the output, and the theorems in
:mod:`stirred.semantics.belief_bounds` are each about one of them. *predictive*: the prior is correct, a dataset is
drawn from it, and nothing else is given. *record*: the prior is correct and the target's record truly is r. The first
averages over who the target may be; it says nothing about the person whose record is r.

*From prior to posterior*, where the attacker holds records to be dependent. Epsilon-DP bounds by e^epsilon what one
record tells. What is learnt about a person is not only told by her own record: if the attacker believes that others
resemble her, each of their records tells of her too, and the ratio of posterior to prior can reach e^(n epsilon) for n
records. It stays within e^(+-c epsilon) if her record and c - 1 others are, in the attacker's eyes, independent of
everyone else (Bailie, Gong, Meng and Drechsler 2024, slides, corrected: see :func:`markov_boundary`).

Keep in mind: that is the ratio of posterior to *prior*. The posterior-to-posterior ratio keeps within e^(+-epsilon)
under every dependence.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._lazy import later
from stirred.loss.argument_checks import SUM_TOLERANCE, Number, finite, non_negative, probabilities, probability
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


@refuses_wrong_arguments
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
            for first, second in itertools.permutations(whole, 2):
                try:
                    found = specification.counterfactual(first, second)
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


Joint = Mapping[Dataset, Fraction | float]
Known = Callable[[Dataset], bool]

SAME = 1e-9
"""Floats: probabilities within this part of their product count as independent. What is missed changes a ratio of
probabilities by a factor of at most (1 + SAME) / (1 - SAME). Fractions are compared exactly."""


# -- one record, and two -------------------------------------------------------------------------------------


def posterior_factor(likelihood_ratio: ArrayLike, share: ArrayLike) -> Array:
    """The factor from prior to posterior at an output of this likelihood ratio: C = LR / (LR share + 1 - share).

    The ratio is P(w | record) / P(w | another record). C is nan where the output cannot occur: at a ratio of 0 and a
    share of 1.

    >>> posterior_factor(math.e, [0.0, 0.1, 1.0]).round(4).tolist()
    [2.7183, 2.3197, 1.0]
    """
    ratio = np.asarray(likelihood_ratio, dtype=np.float64)
    if not bool(np.all(ratio >= 0)):
        raise errors.parameter_out_of_range("The likelihood ratio", "negative or not a number", "at least 0")
    theta = probabilities("The share", share)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ratio > 0, 1 / (theta + (1 - theta) / ratio), np.where(theta < 1, 0.0, np.nan))


def posterior_factor_bounds(likelihood_ratio: Number) -> tuple[float, float]:
    """The smallest and the largest C over all shares: 1 at a share of 1, the likelihood ratio towards a share of 0.

    So C lies within e^(+-epsilon) for every share exactly if the likelihood ratio does.

    >>> posterior_factor_bounds(3), posterior_factor_bounds(0.25)
    ((1.0, 3.0), (0.25, 1.0))
    """
    ratio = non_negative("The likelihood ratio", likelihood_ratio)
    return min(1.0, ratio), max(1.0, ratio)


def pair_likelihood_ratio(epsilon: Number, joint: ArrayLike) -> float:
    """P(both answer 1 | X1 = 1) / P(both answer 1 | X1 = 0) for randomised response on two dependent records.

    ``joint[a][b]`` is P(X1 = a, X2 = b). With a = P(X2 = 1 | X1 = 1) and b = P(X2 = 1 | X1 = 0) it is

        e^epsilon (a e^epsilon + 1 - a) / (b e^epsilon + 1 - b),

    above e^epsilon exactly if a > b, that is if the covariance is positive, and e^(2 epsilon) if X1 = X2.

    >>> pair_likelihood_ratio(1, [[0.5, 0], [0, 0.5]])
    7.389056...
    """
    e, table = finite("epsilon", epsilon), _two_by_two(joint)
    shares = table.sum(axis=1)
    if not bool(np.all(shares > 0)):
        raise errors.not_a_distribution("The joint prior", "the first record has one possible value only")
    with np.errstate(divide="ignore"):
        no, yes = np.log(table / shares[:, None]).T
    low, high = np.logaddexp(yes, no - e)
    return _exp(float(e + high - low))


def covariance(joint: ArrayLike) -> float:
    """Cov(X1, X2) = (P(X2 = 1 | X1 = 1) - P(X2 = 1 | X1 = 0)) P(X1 = 0) P(X1 = 1), of ``joint[a][b]``.

    >>> covariance([[0.5, 0], [0, 0.5]])
    0.25
    """
    table = _two_by_two(joint)
    return float(table[1, 1] * table[0, 0] - table[1, 0] * table[0, 1])


# -- many records --------------------------------------------------------------------------------------------


def prior_to_posterior_bounds(records: int, epsilon: Number) -> tuple[float, float]:
    """e^(-c epsilon) and e^(c epsilon): between them epsilon-DP keeps the ratio of posterior to prior.

    ``records`` is the size of the target's :func:`dependency_component`, given what the attacker knows; for every prior
    at once the number of all records, which is attained as they become copies of each other.

    >>> prior_to_posterior_bounds(2, 1)
    (0.135335..., 7.389056...)
    """
    e = non_negative("epsilon", epsilon)
    if isinstance(records, bool) or not isinstance(records, int) or records < 1:
        raise errors.parameter_out_of_range("The number of records", records, "a whole number from 1 on")
    return _exp(-records * e), _exp(records * e)


def dependency_component(prior: Mapping[Any, Number], target: int, known: Known | None = None) -> tuple[int, ...]:
    """The smallest set S of people, the target among them, whose records are independent of everyone else's.

    ``known`` says of a dataset whether it agrees with what the attacker knows; the prior is taken given that. Under
    epsilon-DP the ratio of posterior to prior of the target's record lies within e^(+-|S| epsilon): two values of
    the records in S are |S| steps apart whatever the others are, and the others' law is the same beside both.

    >>> copies = {("0", "0", "0"): 0.25, ("1", "1", "0"): 0.25, ("0", "0", "1"): 0.25, ("1", "1", "1"): 0.25}
    >>> dependency_component(copies, 0), dependency_component(copies, 2)
    ((0, 1), (2,))
    """
    components = dependency_components(prior, known)
    index = checked_target(target, sum(map(len, components)))
    return next(component for component in components if index in component)


def dependency_components(prior: Mapping[Any, Number], known: Known | None = None) -> tuple[tuple[int, ...], ...]:
    """The finest division of the people into groups whose records are independent of each other.

    There is one: the common refinement of two divisions into independent groups is another. Found person by person: a
    new one joins those groups, of all before, that are not independent of everyone else and her.
    """
    law, tolerance = _law(prior, known)
    groups: list[tuple[int, ...]] = []
    for person in range(len(next(iter(law)))):
        everyone = _marginal(law, range(person + 1))
        joined = [group for group in groups if not _independent(everyone, group, tolerance)]
        groups = [group for group in groups if group not in joined]
        groups.append((*itertools.chain(*joined), person))
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def markov_boundary(prior: Mapping[Any, Number], target: int, known: Known | None = None) -> tuple[int, ...]:
    """The smallest set C of others given whom the target's record is independent of all that remain; the first of them.

    **Erratum.** The slides bound the ratio of posterior to prior by e^(c epsilon) with c = |C| + 1. That is false: in a
    chain X1 - X2 - X3 the boundary of X1 is X2, but a noisy output leaves X2 uncertain, so that X3 still tells of X1.
    With randomised response at epsilon = 1 of three records that are almost copies the ratio comes near e^3, where
    e^2 is claimed. It is here to show that; bounds go by :func:`dependency_component`.

    >>> copies = {("0", "0", "0"): 0.5, ("1", "1", "1"): 0.5}
    >>> markov_boundary(copies, 0), dependency_component(copies, 0)
    ((1,), (0, 1, 2))
    """
    law, tolerance = _law(prior, known)
    people = len(next(iter(law)))
    index = checked_target(target, people)
    others = [person for person in range(people) if person != index]
    subsets = itertools.chain.from_iterable(itertools.combinations(others, size) for size in range(people))
    return next(subset for subset in subsets if _screened(law, index, others, subset, tolerance))


# -- helpers -------------------------------------------------------------------------------------------------


def _law(prior: Mapping[Any, Number], known: Known | None) -> tuple[dict[Dataset, Fraction | float], float]:
    """The prior given what is known, and how far from equal its numbers may be: not at all if all are fractions."""
    checked_prior(prior)
    exact = all(isinstance(value, int | Fraction) for value in prior.values())
    law: dict[Dataset, Fraction | float] = {}
    for key, value in prior.items():
        dataset = tuple(key)
        if value > 0 and (known is None or known(dataset)):
            law[dataset] = law.get(dataset, 0) + (Fraction(value) if exact else float(value))
    if not law:
        raise errors.parameter_out_of_range("What is known", "impossible under the prior", "true of some dataset in it")
    total = sum(law.values())
    return {dataset: value / total for dataset, value in law.items()}, 0.0 if exact else SAME


def _marginal(law: Joint, people: Iterable[int]) -> dict[Dataset, Fraction | float]:
    """The law of some people's records."""
    kept = tuple(people)
    found: dict[Dataset, Fraction | float] = {}
    for dataset, chance in law.items():
        part = tuple(dataset[person] for person in kept)
        found[part] = found.get(part, 0) + chance
    return found


def _independent(law: Joint, group: tuple[int, ...], tolerance: float) -> bool:
    """Whether a group's records are independent of all others' in ``law``."""
    others = tuple(person for person in range(len(next(iter(law)))) if person not in group)
    first, second = _marginal(law, group), _marginal(law, others)
    if len(first) * len(second) != len(law):  # some combination is impossible though its parts are not
        return False
    for dataset, chance in law.items():
        product = first[tuple(dataset[p] for p in group)] * second[tuple(dataset[p] for p in others)]
        if not _same(chance, product, tolerance):
            return False
    return True


def _screened(law: Joint, target: int, others: list[int], by: tuple[int, ...], tolerance: float) -> bool:
    """Whether P(X_target | all others) = P(X_target | those in ``by``)."""
    rest, some = _marginal(law, others), _marginal(law, by)
    whole, part = _marginal(law, (*others, target)), _marginal(law, (*by, target))
    places = [others.index(person) for person in by]
    for (*records, value), chance in whole.items():  # what is missing here makes another value too likely
        seen = tuple(records[place] for place in places)
        if not _same(chance * some[seen], part[(*seen, value)] * rest[tuple(records)], tolerance):
            return False
    return True


def _same(found: Fraction | float, expected: Fraction | float, tolerance: float) -> bool:
    if tolerance == 0:
        return found == expected
    return abs(float(found) - float(expected)) <= tolerance * float(expected)


def _two_by_two(joint: ArrayLike) -> Array:
    table = np.asarray(joint, dtype=np.float64)
    if table.shape != (2, 2):
        raise errors.not_a_distribution("The joint prior", "it is not a table of two by two")
    if not bool(np.all(table >= 0)):
        raise errors.not_a_distribution("The joint prior", "a probability is negative or not a number")
    if abs(float(table.sum()) - 1) > SUM_TOLERANCE:
        raise errors.not_a_distribution("The joint prior", "the probabilities do not sum to 1")
    return np.asarray(table / table.sum())


def _exp(exponent: float) -> float:
    return math.exp(exponent) if exponent < 709 else math.inf
