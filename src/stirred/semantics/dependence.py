"""From prior to posterior: what differential privacy bounds when the attacker holds records to be dependent.

Epsilon-DP bounds by e^epsilon what one record tells. What is learnt about a person is not only told by her own record:
if the attacker believes that others resemble her, each of their records tells of her too, and the ratio of posterior to
prior can reach e^(n epsilon) for n records. It stays within e^(+-c epsilon) if her record and c - 1 others are, in the
attacker's eyes, independent of everyone else (Bailie, Gong, Meng and Drechsler 2024, slides, corrected: see
:func:`markov_boundary`).

Keep in mind: the ratio here is that of posterior to *prior*. The posterior-to-posterior ratio of
:mod:`stirred.semantics.beliefs` keeps within e^(+-epsilon) under every dependence.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred.loss.argument_checks import SUM_TOLERANCE, Number, finite, non_negative
from stirred.loss.curves.tradeoffs import in_unit
from stirred.semantics.beliefs import Dataset, checked_prior, checked_target

Array = NDArray[np.float64]
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
    theta = in_unit("The share", share)
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
