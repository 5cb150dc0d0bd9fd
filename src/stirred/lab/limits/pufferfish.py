"""Pufferfish privacy on listed datasets: attackers, secrets, pairs of secrets, and what a mechanism lets them tell.

An *attacker* is a distribution theta of the data; a *secret* (a conjecture, in chapter 5) is an event about the data;
a *pair* names two secrets that must not be told apart. A mechanism satisfies epsilon-PufferFish if for each attacker
and each pair (E, E') the laws of the output given E and given E' are within epsilon in the multiplicative distance
(Definition 5.7.3, Theorem 5.8.1). What is protected are therefore distributions: theta given E, theta given E'. They
are the nodes of a graph whose edges are the pairs, and d(theta, theta') is the length of a shortest path.

Keep in mind: where an attacker gives one secret of a pair probability 0 the conditional distribution does not exist,
and this attacker and pair are skipped, as the definition has it. A secret that no attacker finds possible, or a pair
that is skipped for all of them, would promise nothing and is refused.

*Attackers for datasets of records* (Remark 5.8.5). Each is a distribution over all vectors of n values, in the order
of :meth:`stirred.limits.DatabaseGraph.hamming`.

Keep in mind: attackers for whom records are independent learn about one record at most what
differential privacy allows, and those who know all records but one learn that much. Attackers for whom records depend
on each other can learn up to n times as much about one record.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief
from stirred.lab.limits.measure_intervals import DensityRatioNeighbourhood
from stirred.limits.bounds import Band, power_bounds
from stirred.limits.distances import count, different, log_ratio_range, one_probability
from stirred.limits.graphs import ROUNDING, DatabaseGraph, mechanism
from stirred.loss.argument_checks import Number, non_negative
from stirred.spec import Budget, Domain, Flavor, InputPremetric, Multiverse, OutputPremetric, Specification
from stirred.spec.order.finite_mechanisms import FiniteMechanism

Array = NDArray[np.float64]


@refuses_wrong_arguments
def independent_records(marginals: Sequence[ArrayLike]) -> Array:
    """Records that are independent, each with probabilities of its own for the values.

    >>> independent_records([[0.5, 0.5], [0.25, 0.75]]).tolist()
    [0.125, 0.375, 0.125, 0.375]
    """
    laws = [one_probability(f"The law of record {number}", law) for number, law in enumerate(marginals, 1)]
    if not laws or any(len(law) != len(laws[0]) for law in laws):
        raise errors.analysis_does_not_fit("there is no record, or not all have a probability for the same values")
    joint = np.ones(1)
    for law in laws:
        joint = np.multiply.outer(joint, law).ravel()
    return joint


@refuses_wrong_arguments
def equal_records(weights: ArrayLike, records: int) -> Array:
    """Records that are all the same: one value, with these probabilities, in every record.

    >>> equal_records([0.5, 0.5], 2).tolist()
    [0.5, 0.0, 0.0, 0.5]
    """
    law, n = one_probability("The law of the value", weights), count("records", records)
    joint = np.zeros(len(law) ** n)
    joint[np.arange(len(law)) * sum(len(law) ** power for power in range(n))] = law
    return joint


@refuses_wrong_arguments
def all_but_one_known(values: Iterable[Hashable], records: int) -> dict[str, Array]:
    """Those who know all records but one, and find all values of that one equally probable; by name.

    They are among the independent attackers, and what they can tell apart is what differential privacy is about: every
    conditional distribution is a single dataset, and its neighbours are those at Hamming distance one.

    >>> list(all_but_one_known((0, 1), 2))
    ['knows ?,0', 'knows ?,1', 'knows 0,?', 'knows 1,?']
    """
    kinds, n = different(values), count("records", records)
    found = {}
    for unknown in range(n):
        for rest in itertools.product(range(len(kinds)), repeat=n - 1):
            others = iter(rest)
            marginals = np.zeros((n, len(kinds)))
            shown = []
            for at in range(n):
                if at == unknown:
                    marginals[at] = 1 / len(kinds)
                    shown.append("?")
                else:
                    value = next(others)
                    marginals[at, value] = 1.0
                    shown.append(str(kinds[value]))
            found["knows " + ",".join(shown)] = independent_records(list(marginals))
    return found


SAME = 12
"""Conditional distributions whose probabilities all agree to so many significant digits are one node. Decimals would
not do: where two laws give an output 1e-13 and 2e-13, that output tells them apart."""

Conjecture = tuple[str, str]
"""An attacker and a secret: what this attacker believes given the secret."""


@brief
@dataclass(frozen=True)
class PufferfishLoss:
    """The smallest epsilon that a mechanism satisfies, with the attacker and the pair of secrets that attain it."""

    epsilon: float
    attacker: str
    pair: tuple[str, str]


@refuses_wrong_arguments
@brief
@dataclass(frozen=True, eq=False)
class Pufferfish:
    """Attackers by name, each with a probability for every dataset; secrets by name, each with its datasets; pairs.

    >>> rain = Pufferfish(("dry", "wet"), {"me": [0.5, 0.5]}, {"no": ["dry"], "yes": ["wet"]}, [("no", "yes")])
    >>> rain.loss([[0.75, 0.25], [0.25, 0.75]]).epsilon == math.log(3)
    True
    """

    datasets: tuple[Hashable, ...]
    attackers: Mapping[str, ArrayLike]
    secrets: Mapping[str, Iterable[Hashable]]
    pairs: Sequence[tuple[str, str]]

    def __post_init__(self) -> None:
        known = tuple(self.datasets)
        if not known or len(set(known)) < len(known):
            raise errors.not_a_graph("there is no dataset, or one is listed twice")
        read = {name: one_probability(f"The attacker '{name}'", law) for name, law in self.attackers.items()}
        if not read or any(len(law) != len(known) for law in read.values()):
            raise errors.analysis_does_not_fit("there is no attacker, or one lacks a probability for some dataset")
        events = {name: frozenset(event) for name, event in self.secrets.items()}
        if any(event - set(known) for event in events.values()):
            raise errors.not_in_graph("some datasets of a secret")
        chosen = tuple(dict.fromkeys((first, second) for first, second in self.pairs))
        for name in (name for pair in chosen for name in pair):
            if name not in events:
                raise errors.unknown_choice("secret", name, list(events))
        for first, second in chosen:
            if events[first] & events[second]:
                raise errors.LimitsError(
                    "secrets-overlap",
                    f"The secrets '{first}' and '{second}' are a pair, and some dataset has both.",
                    "Pair secrets that exclude each other; a dataset that has both does not tell them apart.",
                )
        for field, value in (("datasets", known), ("attackers", read), ("secrets", events), ("pairs", chosen)):
            object.__setattr__(self, field, value)
        possible = self._masses > 0
        for name, one in zip(events, possible.T, strict=True):
            if not bool(np.any(one)):
                raise errors.LimitsError(
                    "impossible-secret",
                    f"The secret '{name}' has probability 0 for every attacker, so nothing would be promised about it.",
                    "Leave it out, or add an attacker who finds it possible.",
                )
        for number, pair in enumerate(chosen):
            if not bool(np.any(self._defined[:, number])):
                raise errors.pair_never_compared(*pair)
        if not chosen:
            raise errors.analysis_does_not_fit("there is no pair of secrets")

    # -- instantiations --------------------------------------------------------------------------------------

    @classmethod
    def partition(
        cls, datasets: Iterable[Hashable], attackers: Mapping[str, ArrayLike], marginal: Callable[[Hashable], Hashable]
    ) -> Pufferfish:
        """Secrets are the values of a marginal Z of the data, and any two of them are a pair (Theorem 5.8.4).

        Values that no attacker finds possible, and pairs that none finds possible both, are left out.

        >>> whole = Pufferfish.partition("ab", {"me": [0.5, 0.5]}, lambda x: x)
        >>> list(whole.secrets), whole.pairs
        (['a', 'b'], (('a', 'b'),))
        """
        known = tuple(datasets)
        values = [marginal(name) for name in known]
        different(values)
        events: dict[str, list[Hashable]] = {}
        for name, value in zip(known, values, strict=True):
            events.setdefault(str(value), []).append(name)
        return cls(known, attackers, *_promising(known, attackers, events, itertools.combinations(events, 2)))

    @classmethod
    def of_records(cls, values: Iterable[Hashable], records: int, attackers: Mapping[str, ArrayLike]) -> Pufferfish:
        """Datasets are all vectors of ``records`` values; secrets say what one record is; two values of one record are
        a pair (Remark 5.8.5), but for those that no attacker finds possible. Attackers list probabilities in the order
        of ``DatabaseGraph.hamming``."""
        kinds = different(values)
        datasets = DatabaseGraph.hamming(kinds, records).datasets
        events = {
            f"record {at + 1} is {value}": [one for one in datasets if one[at] == value]  # type: ignore[index]
            for at in range(records)
            for value in kinds
        }
        names = [[f"record {at + 1} is {value}" for value in kinds] for at in range(records)]
        pairs = itertools.chain.from_iterable(itertools.combinations(one, 2) for one in names)
        return cls(datasets, attackers, *_promising(datasets, attackers, events, pairs))

    # -- what a mechanism loses ------------------------------------------------------------------------------

    def loss(self, rows: ArrayLike) -> PufferfishLoss:
        """The smallest epsilon, over all attackers and pairs (equation 5.16). ``rows`` has P_x for each dataset."""
        given = self._outputs(rows)
        lowest, highest = log_ratio_range(given[:, self._ends[0]], given[:, self._ends[1]])
        losses = np.where(self._defined, np.maximum(-lowest, highest), -math.inf)
        attacker, pair = divmod(int(np.argmax(losses)), len(self.pairs))
        return PufferfishLoss(float(losses[attacker, pair]) + 0.0, list(self.attackers)[attacker], self.pairs[pair])

    def satisfied(self, rows: ArrayLike, epsilon: Number) -> bool:
        """Whether a mechanism satisfies epsilon-PufferFish."""
        e = non_negative("epsilon", epsilon)
        return self.loss(rows).epsilon <= e + ROUNDING * max(1.0, e) or math.isinf(e)

    def odds_ratios(self, rows: ArrayLike) -> Array:
        """Posterior odds of the first secret of a pair against the second, over the prior odds (equation 5.17).

        One number for each attacker, pair and output: by Bayes, from the probabilities of secret and output together.
        The mechanism satisfies epsilon-PufferFish exactly if all lie between e^-epsilon and e^epsilon (Proposition 19).
        Skipped attackers and pairs are not a number; outputs that are possible given neither secret have ratio 1.
        """
        joint = self._joint @ mechanism(rows, self._listed)
        first, second = joint[:, self._ends[0]], joint[:, self._ends[1]]
        prior = self._masses[:, self._ends[1]] / np.where(self._defined, self._masses[:, self._ends[0]], math.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where((first == 0) & (second == 0), 1.0, first / second * prior[..., None])
        return np.where(self._defined[..., None], ratios, math.nan)

    def provision(self, rows: ArrayLike) -> FiniteMechanism:
        """The data-provision procedure (Definition 5.7.1): the law of the output for each conditional distribution.

        A mechanism on the domain of :meth:`specification`, whose loss there is the Pufferfish loss.
        """
        matrix = mechanism(rows, self._listed)
        outputs = tuple(f"output {number}" for number in range(matrix.shape[1]))
        return FiniteMechanism(tuple(map(str, self.graph.datasets)), outputs, self.laws @ matrix)

    # -- the graph of conditional distributions --------------------------------------------------------------

    def conditional(self, attacker: str, secret: str) -> Array:
        """theta given E, as probabilities of the datasets."""
        return np.asarray(self.laws[self._place[self.node(attacker, secret)]])

    def node(self, attacker: str, secret: str) -> str:
        """The name of this conditional distribution in the graph; equal ones share the first one's name."""
        a, s = self._attacker(attacker), self._secret(secret)
        if self._nodes[a, s] < 0:
            raise errors.impossible_condition(f"The secret '{secret}', for the attacker '{attacker}',")
        return str(self.graph.datasets[self._nodes[a, s]])

    @property
    def laws(self) -> Array:
        """The conditional distributions, one in each row, in the order of the graph."""
        return self._merged[0]

    @cached_property
    def graph(self) -> DatabaseGraph:
        """G(D, S): an edge for each attacker and pair. All other distributions of the data are at infinite distance."""
        _, nodes, names = self._merged
        edges = [
            (names[nodes[a, first]], names[nodes[a, second]])
            for a in range(len(nodes))
            for first, second, defined in zip(*self._ends, self._defined[a], strict=True)
            if defined
        ]
        return DatabaseGraph.of_edges(names, edges)

    def distance(self, first: Conjecture, second: Conjecture) -> float:
        """d(theta, theta') between what two attackers believe given a secret each."""
        return self.graph.distance(self.node(*first), self.node(*second))

    # -- what follows from epsilon alone ---------------------------------------------------------------------

    def power_bounds(self, level: ArrayLike, epsilon: Number, first: Conjecture, second: Conjecture) -> Band:
        """Bounds on the power of tests between two conditional distributions (Theorem 5.8.6, equation 5.22)."""
        return power_bounds(level, float(epsilon), self.distance(first, second))

    def neighbourhood(
        self, attacker: str, epsilon: Number, about: Iterable[str] | None = None
    ) -> DensityRatioNeighbourhood:
        """Where an attacker's posterior of the secrets must lie, whatever the output (Theorem 5.8.4).

        ``about`` are secrets, by default all, that divide what the attacker finds possible. The radius is epsilon times
        the largest distance between them: epsilon if any two are a pair.
        """
        chosen = list(self.secrets) if about is None else list(about)
        prior = self._divided(attacker, chosen)
        nodes = [self.node(attacker, name) for name, mass in zip(chosen, prior, strict=True) if mass > 0]
        farthest = self.graph.diameter(nodes)
        e = non_negative("epsilon", epsilon)
        return DensityRatioNeighbourhood(prior, math.inf if math.isinf(farthest) else e * farthest if farthest else 0.0)

    def beliefs(self, rows: ArrayLike, attacker: str, about: Iterable[str] | None = None) -> Array:
        """The posterior of the secrets for each output (rows); not a number where the output is impossible."""
        chosen = list(self.secrets) if about is None else list(about)
        self._divided(attacker, chosen)
        joint = self._joint[self._attacker(attacker)] @ mechanism(rows, self._listed)
        found = joint[[self._secret(name) for name in chosen]].T
        with np.errstate(invalid="ignore"):
            return np.asarray(found / found.sum(axis=1, keepdims=True))

    # -- as a specification ----------------------------------------------------------------------------------

    def specification(self, epsilon: object, name: str = "", about: str = "the data") -> Specification:
        """The five blocks: the protection objects are conditional distributions, listed, at their graph distance.

        The name of the domain carries the :attr:`fingerprint` of the distributions: two sets of attackers whose names
        are the same promise different things, and neither specification implies the other.
        """
        names = tuple(map(str, self.graph.datasets))
        apart = self.graph.distances
        listed = {
            (a, b): int(apart[i, j])
            for i, a in enumerate(names)
            for j, b in enumerate(names)
            if i != j and math.isfinite(apart[i, j])
        }
        domain = Domain(
            f"{about}, laws {self.fingerprint}",
            objects="distributions",
            starts="before the data are generated: generating them is a part of the mechanism",
            datasets=names,
            words=f"Distributions of {about}, not datasets: what {_number(len(self.attackers), 'attacker')} "
            f"believe{'s' if len(self.attackers) == 1 else ''} given each of {_number(len(self.secrets), 'secret')} "
            f"({_number(len(names), 'conditional distribution')}, listed; laws {self.fingerprint})",
        )
        premetric = InputPremetric.table(
            listed,
            "secret",
            words="On pairs of conditional distributions: 1 between what one attacker believes given one secret of a "
            f"pair and given the other ({_number(len(self.pairs), 'pair')} of secrets), else the number of such steps "
            "on the shortest way, and infinite where there is none",
        )
        held = Multiverse(words="All listed distributions are compared with one another: nothing is held fixed.")
        flavor = Flavor(domain, held, replace(premetric, sharpened=True), OutputPremetric("multiplicative"), nearest=1)
        return flavor.at(Budget(epsilon), name=name)

    @cached_property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that differ wherever the names or the probabilities (to twelve significant digits)
        of the conditional distributions do. In which order datasets are listed does not matter."""
        texts = [repr(one) for one in self.datasets]
        order = sorted(range(len(texts)), key=texts.__getitem__)
        laws = sorted((name, _digits(law[order])) for name, law in zip(self._merged[2], self.laws, strict=True))
        return sha256(repr(([texts[at] for at in order], laws)).encode()).hexdigest()[:12]

    # -- helpers ---------------------------------------------------------------------------------------------

    @cached_property
    def _joint(self) -> Array:
        """P_theta(x and E): attackers x secrets x datasets."""
        laws = np.stack([np.asarray(law) for law in self.attackers.values()])
        events = [frozenset(event) for event in self.secrets.values()]
        inside = np.array([[one in event for one in self.datasets] for event in events])
        return np.asarray(laws[:, None, :] * inside[None, :, :])

    @cached_property
    def _masses(self) -> Array:
        """P_theta(E): attackers x secrets."""
        return np.asarray(self._joint.sum(axis=-1))

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        """The first secrets of all pairs, and the second ones."""
        return np.array([[self._secret(name) for name in pair] for pair in self.pairs], dtype=np.intp).reshape(-1, 2).T

    @cached_property
    def _defined(self) -> NDArray[np.bool_]:
        """Attackers x pairs: whether both secrets are possible."""
        return np.asarray((self._masses[:, self._ends[0]] > 0) & (self._masses[:, self._ends[1]] > 0))

    def _outputs(self, rows: ArrayLike) -> Array:
        """The law of the output given each secret: attackers x secrets x outputs; some of mass where impossible."""
        masses = np.where(self._masses > 0, self._masses, 1.0)
        return np.asarray((self._joint / masses[..., None]) @ mechanism(rows, self._listed))

    @cached_property
    def _merged(self) -> tuple[Array, NDArray[np.intp], tuple[str, ...]]:
        """The different conditional distributions; where each attacker's belief given each secret is; their names."""
        nodes = np.full(self._masses.shape, -1, dtype=np.intp)
        laws: list[Array] = []
        names: list[str] = []
        found: dict[str, int] = {}
        for a, attacker in enumerate(self.attackers):
            for s, secret in enumerate(self.secrets):
                if self._masses[a, s] > 0:
                    law = self._joint[a, s] / self._masses[a, s]
                    nodes[a, s] = found.setdefault(_digits(law), len(names))
                    if nodes[a, s] == len(names):
                        laws.append(law)
                        names.append(f"{attacker}, given {secret}")
        return np.stack(laws), nodes, tuple(names)

    @property
    def _nodes(self) -> NDArray[np.intp]:
        return self._merged[1]

    @cached_property
    def _place(self) -> dict[Hashable, int]:
        return {name: number for number, name in enumerate(self.graph.datasets)}

    @cached_property
    def _listed(self) -> DatabaseGraph:
        return DatabaseGraph.of_edges(self.datasets, [])

    def _attacker(self, name: str) -> int:
        if name not in self.attackers:
            raise errors.unknown_choice("attacker", name, list(self.attackers))
        return list(self.attackers).index(name)

    def _secret(self, name: str) -> int:
        if name not in self.secrets:
            raise errors.unknown_choice("secret", name, list(self.secrets))
        return list(self.secrets).index(name)

    def _divided(self, attacker: str, about: Sequence[str]) -> Array:
        """The prior of some secrets, which must divide what the attacker finds possible."""
        chosen = [self._secret(name) for name in about]
        covered = self._joint[self._attacker(attacker), chosen]
        law = np.asarray(self.attackers[attacker])
        if not np.array_equal(covered.sum(axis=0), law) or bool(np.any((covered > 0).sum(axis=0) > 1)):
            raise errors.LimitsError(
                "secrets-do-not-divide",
                f"These secrets do not divide what the attacker '{attacker}' finds possible: some dataset has none of "
                "them, or several.",
                "Ask about secrets of which every possible dataset has exactly one, such as the values of one record.",
            )
        return np.asarray(self._masses[self._attacker(attacker), chosen])


def _promising(
    datasets: Sequence[Hashable],
    attackers: Mapping[str, ArrayLike],
    events: Mapping[str, Sequence[Hashable]],
    pairs: Iterable[tuple[str, str]],
) -> tuple[dict[str, Sequence[Hashable]], list[tuple[str, str]]]:
    """The secrets that some attacker finds possible, and the pairs that some attacker finds possible both."""
    place = {name: number for number, name in enumerate(datasets)}
    laws = [np.asarray(law, dtype=np.float64) for law in attackers.values()]
    laws = [law for law in laws if law.shape == (len(datasets),)]  # others are refused later
    masses = {name: [law[[place[one] for one in event]].sum() for law in laws] for name, event in events.items()}
    kept = {name: event for name, event in events.items() if any(mass > 0 for mass in masses[name])}
    return kept, [(a, b) for a, b in pairs if any(min(both) > 0 for both in zip(masses[a], masses[b], strict=True))]


def _digits(law: Array) -> str:
    """Probabilities to so many digits that those of one law, computed in two ways, agree; 0 is like nothing else."""
    return " ".join(f"{value:.{SAME - 1}e}" for value in law.tolist())


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
