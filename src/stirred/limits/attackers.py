"""Attackers for datasets of records: models of the data that Pufferfish is asked about (Remark 5.8.5).

Each is a distribution over all vectors of n values, in the order of :meth:`stirred.limits.DatabaseGraph.hamming`.

Keep in mind: attackers for whom records are independent learn about one record at most what
differential privacy allows, and those who know all records but one learn that much. Attackers for whom records depend
on each other can learn up to n times as much about one record.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._calls import says_what_it_takes
from stirred.limits.distances import count, different, one_probability

Array = NDArray[np.float64]


@says_what_it_takes
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


@says_what_it_takes
def equal_records(weights: ArrayLike, records: int) -> Array:
    """Records that are all the same: one value, with these probabilities, in every record.

    >>> equal_records([0.5, 0.5], 2).tolist()
    [0.5, 0.0, 0.0, 0.5]
    """
    law, n = one_probability("The law of the value", weights), count("records", records)
    joint = np.zeros(len(law) ** n)
    joint[np.arange(len(law)) * sum(len(law) ** power for power in range(n))] = law
    return joint


@says_what_it_takes
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
