"""Examples that statements are tried on: laws, and flavors and mechanisms over four listed datasets.

Laws are spread evenly by multiples of the golden ratio, so that nothing is drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.loss.curves.power_curves import PowerCurve
from stirred.loss.divergences import power_curve
from stirred.spec import Domain, FiniteMechanism, Flavor, InputPremetric, Multiverse, OutputPremetric

NAMES = ("a", "b", "c", "d")
_OUTPUTS = [OutputPremetric(name) for name in ["multiplicative", "normalised-renyi", "total-variation"]]
_GOLDEN = (math.sqrt(5) - 1) / 2


def spread_laws(count: int, outcomes: int, start: int = 1) -> NDArray[np.float64]:
    """That many laws on so many outcomes, one in each row, all of their probabilities above 0.

    >>> spread_laws(2, 3).sum(axis=1).round(12).tolist()
    [1.0, 1.0]
    """
    places = np.arange(start, start + count * outcomes).reshape(count, outcomes)
    weights = -np.log1p(-0.98 * (places * _GOLDEN % 1) - 0.01)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def pairs_of_laws(count: int = 4) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Pairs of laws on four outcomes."""
    laws = spread_laws(2 * count, 4)
    return list(zip(laws[::2], laws[1::2], strict=True))


def laws_a_delta_apart() -> tuple[list[float], list[float], list[float]]:
    """Laws of which neighbours are 0 apart in D_Mult^0.1, and the ends infinitely far."""
    return [1.0, 0.0], [0.9, 0.1], [0.8, 0.2]


def power_of_tests(p: Any, q: Any) -> PowerCurve:
    """Tr(P, Q)."""
    return PowerCurve(tuple(map(tuple, power_curve(p, q).tolist())))


def one_apart() -> dict[tuple[str, str], int]:
    """Every two datasets at distance 1."""
    return dict.fromkeys(itertools.combinations(NAMES, 2), 1)


def flavor_of(
    distances: dict[tuple[str, str], Any],
    output: OutputPremetric,
    names: tuple[str, ...] = NAMES,
    symmetric: bool = True,
) -> Flavor:
    """A flavor with listed datasets and distances."""
    both = distances | ({(y, x): d for (x, y), d in distances.items()} if symmetric else {})
    return Flavor(Domain("listed", datasets=names), Multiverse(), InputPremetric.table(both), output)


def worlds() -> Iterator[tuple[Flavor, FiniteMechanism]]:
    """Flavors on four listed datasets and mechanisms of four outputs."""
    rows = spread_laws(48, 4).reshape(12, 4, 4)
    for number, row in enumerate(rows):
        table = {pair: 1 + (number + 2 * place) % 3 for place, pair in enumerate(itertools.combinations(NAMES, 2))}
        flavor = replace(flavor_of(table, _OUTPUTS[number % 3]), multiverse=Multiverse((), (NAMES,)))
        yield flavor, FiniteMechanism(NAMES, ("s", "t", "u", "v"), row)
