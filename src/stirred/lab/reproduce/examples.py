"""Examples that statements are tried on: laws, and flavors and mechanisms over four listed datasets.

Laws are spread evenly by multiples of the golden ratio, so that nothing is drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.limits import DatabaseGraph
from stirred.loss.curves.power_curves import PowerCurve
from stirred.loss.divergences import power_curve
from stirred.spec import Domain, FiniteMechanism, Flavor, InputPremetric, Multiverse, OutputPremetric
from stirred.spec.order.finite_mechanisms import randomised_response

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


def response(epsilon: float, respondents: int = 1) -> FiniteMechanism:
    """Randomised response that loses epsilon."""
    return randomised_response(1 / (1 + math.exp(epsilon)), respondents=respondents)


def power_of_tests(p: Any, q: Any) -> PowerCurve:
    """Tr(P, Q)."""
    return PowerCurve(tuple(map(tuple, power_curve(p, q).tolist())))


def sensitivity_of(graph: DatabaseGraph, values: Any) -> float:
    """The largest difference of numbers, one for each dataset of a graph, between neighbours."""
    found = np.asarray(values, dtype=float)
    return float(np.max(np.abs(found[:, None] - found[None, :])[graph.distances == 1]))


def flavor_of(
    distances: Mapping[tuple[str, str], Any] | None = None,
    *universes: Sequence[str],
    output: OutputPremetric | None = None,
    names: Sequence[str] = NAMES,
    symmetric: bool = True,
) -> Flavor:
    """A flavor with listed datasets and distances, by default 1 between any two; and with these universes, or one."""
    one_way = distances or dict.fromkeys(itertools.combinations(names, 2), 1)
    both = {**one_way, **({(y, x): d for (x, y), d in one_way.items()} if symmetric else {})}
    listed = Domain("listed", datasets=tuple(names))
    return divided(Flavor(listed, Multiverse(), InputPremetric.table(both), output or OutputPremetric()), *universes)


def divided(flavor: Flavor, *universes: Sequence[str]) -> Flavor:
    """The flavor with these universes."""
    return replace(flavor, multiverse=Multiverse((), tuple(map(tuple, universes)))) if universes else flavor


def chain(*universes: Sequence[str], output: OutputPremetric | None = None) -> Flavor:
    """Three datasets a, b and c in a row, of which neighbours are 1 apart."""
    return flavor_of({("a", "b"): 1, ("b", "c"): 1}, *universes, output=output, names="abc")


def worlds() -> Iterator[tuple[Flavor, FiniteMechanism]]:
    """Flavors on four listed datasets and mechanisms of four outputs."""
    rows = spread_laws(48, 4).reshape(12, 4, 4)
    for number, row in enumerate(rows):
        table = {pair: 1 + (number + 2 * place) % 3 for place, pair in enumerate(itertools.combinations(NAMES, 2))}
        yield flavor_of(table, NAMES, output=_OUTPUTS[number % 3]), FiniteMechanism(NAMES, ("s", "t", "u", "v"), row)
