"""Mechanisms over finitely many datasets and outputs: their loss under a flavor, and whether they satisfy one.

A finite mechanism is a matrix of probabilities, one row P_x for each named dataset x. Its *loss* in a universe is the
smallest budget that it satisfies there: the largest D_Pr(P_x, P_x') / d_X(x, x') over ordered pairs (Definition 2.4.9).
Pairs at an infinite distance are never constrained, whatever the budget (Remark 2.4.6); a pair at distance 0 with
different laws makes the loss infinite. Nothing is estimated, but numbers are floats: a divergence that exceeds a bound
by a part of 1e-12 counts as within it, and laws whose probabilities all agree to a part of 1e-12 count as equal. Where
losses and budgets are curves, trade-off functions and profiles of epsilon (section 2.4.6), the kind of output premetric
knows how a curve is computed for the rows of a mechanism, and compared with a budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred import errors
from stirred._display import brief
from stirred.loss.curves.power_curves import Curve
from stirred.loss.worst_pairs import NOTHING, WorstPair
from stirred.spec.blocks import OutputPremetric, lipschitz
from stirred.spec.order.finite_flavors import (
    Datasets,
    FiniteFlavor,
)
from stirred.spec.specification import Answer, Flavor, Specification

Array = NDArray[np.float64]

DELTAS = (0.0, 1e-10, 1e-6, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5)
"""Where a profile of epsilon is evaluated, unless told otherwise."""


def answer(verdict: str, words: str) -> Answer:
    """An answer that was found by enumeration, with its one step."""
    return Answer.by(verdict, "enumeration", "Definition 2.4.5", words)


Law = Mapping[str, Fraction | float]
Partition = Iterable[Iterable[str]]

TOLERANCE = 1e-12
SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Pair:
    """Two datasets of one universe, and how far apart they and the laws of their outputs are."""

    first: str
    second: str
    distance: float
    divergence: float
    universe: tuple[str, ...]

    def __str__(self) -> str:
        return f"'{self.first}' and '{self.second}', {self.distance:g} apart, have laws {self.divergence:.6g} apart"


@dataclass(frozen=True)
class Loss:
    """The smallest budget that a mechanism satisfies under a flavor: a property of the mechanism, not of a promise.

    ``value`` is in the budget's own sense (rho for zCDP) and is the largest of ``by_universe``; for a trade-off
    function it is the smallest power curve above those of all neighbours, for a profile the epsilons at the deltas
    that were asked for. ``worst`` is a pair that attains a number; None for curves, and where nothing is compared.
    """

    output: OutputPremetric
    value: float | Curve
    by_universe: tuple[float | Curve, ...]
    worst: Pair | None

    @property
    def number(self) -> float:
        """The loss as a number; refuses a curve."""
        if not isinstance(self.value, float):
            raise errors.bad_block("This loss", "is a curve and not a number")
        return self.value

    @property
    def lipschitz(self) -> float:
        """The Lipschitz constant of x -> P_x: the loss itself, or the root of rho."""
        return lipschitz(self.output, self.number)

    @property
    def rho(self) -> float:
        """The loss in zCDP's usual sense, the square of the Lipschitz constant in D_NoR."""
        if not self.output.kind.budget_is_rho:
            raise errors.bad_block(f"A loss in {self.output.symbol}", "has no rho")
        return self.number

    def __str__(self) -> str:
        if not isinstance(self.value, float):
            return f"{self.output.kind.budget}: {self.value}"
        said = f"{self.output.kind.budget} = {self.value:.6g}"
        return f"{said}: {self.worst}" if self.worst else said


@brief
@dataclass(frozen=True, eq=False)
class FiniteMechanism:
    """A mechanism as the laws of its output: one row of probabilities for each dataset.

    >>> response = FiniteMechanism.of({"yes": {"y": 0.75, "n": 0.25}, "no": {"y": 0.25, "n": 0.75}})
    >>> response.then({"y": {"seen": 1}, "n": {"seen": 1}}).outputs
    ('seen',)
    """

    datasets: tuple[str, ...]
    outputs: tuple[str, ...]
    rows: Array

    def __post_init__(self) -> None:
        for what, names in (("dataset", self.datasets), ("output", self.outputs)):
            object.__setattr__(self, f"{what}s", tuple(names))
            if not names:
                raise errors.not_a_mechanism(f"it has no {what}")
            if len(set(names)) < len(names):
                raise errors.not_a_mechanism(f"it names the same {what} twice")
        object.__setattr__(self, "rows", _stochastic(self.rows, self.datasets, self.outputs))

    @classmethod
    def of(cls, laws: Mapping[str, Law]) -> FiniteMechanism:
        """From the law of each dataset's output; an output that a law leaves out has probability 0."""
        outputs = tuple(dict.fromkeys(output for law in laws.values() for output in law))
        rows = [[law.get(output, 0) for output in outputs] for law in laws.values()]
        return cls(tuple(laws), outputs, rows)  # type: ignore[arg-type]

    @classmethod
    def releases(cls, datasets: Mapping[str, Any], function: Callable[[Any], Any]) -> FiniteMechanism:
        """The deterministic mechanism T(x) = f(x): the release of an invariant, for example."""
        return cls.of({name: {str(function(dataset)): 1} for name, dataset in datasets.items()})

    def law(self, dataset: str) -> dict[str, float]:
        """P_x by output."""
        return dict(zip(self.outputs, map(float, self.rows[self.datasets.index(dataset)]), strict=True))

    # -- other mechanisms made from it -----------------------------------------------------------------------

    def coarsen(self, partition: Partition) -> FiniteMechanism:
        """The mechanism as seen by a smaller sigma-algebra: outputs in one cell are not told apart."""
        cells = [tuple(cell) for cell in partition]
        if sorted(output for cell in cells for output in cell) != sorted(self.outputs):
            raise errors.not_a_partition()
        place = {output: index for index, output in enumerate(self.outputs)}
        rows = np.column_stack([self.rows[:, [place[output] for output in cell]].sum(axis=1) for cell in cells])
        return FiniteMechanism(self.datasets, tuple(_cell_name(cell) for cell in cells), rows)

    def then(self, kernel: FiniteMechanism | Mapping[str, Law]) -> FiniteMechanism:
        """Post-processing: the output goes through a kernel that reads nothing else."""
        step = kernel if isinstance(kernel, FiniteMechanism) else FiniteMechanism.of(kernel)
        if set(self.outputs) - set(step.datasets):
            raise errors.not_a_mechanism("the kernel has no law for some outputs")
        order = [step.datasets.index(output) for output in self.outputs]
        return FiniteMechanism(self.datasets, step.outputs, self.rows @ step.rows[order])

    def and_then(self, other: FiniteMechanism) -> FiniteMechanism:
        """Fresh composition: both outputs, drawn independently given the dataset."""
        _same_datasets(self.datasets, other.datasets)
        rows = other.rows[[other.datasets.index(name) for name in self.datasets]]
        outputs = tuple(f"({a}, {b})" for a in self.outputs for b in other.outputs)
        joint = self.rows[:, :, None] * rows[:, None, :]
        return FiniteMechanism(self.datasets, outputs, joint.reshape(len(rows), -1))

    # -- what it loses ---------------------------------------------------------------------------------------

    def loss(
        self,
        flavor: Flavor | Specification | FiniteFlavor,
        datasets: Datasets | None = None,
        *,
        partition: Partition | None = None,
        deltas: Sequence[float] = DELTAS,
    ) -> Loss:
        """The privacy loss under a flavor that lists its datasets, or on ``datasets``.

        ``partition`` is a sigma-algebra of the mechanism's own; that of the output premetric is always applied.

        >>> from stirred.spec import flavors
        >>> print(randomised_response("1/4").loss(flavors.local(), {"0": "0", "1": "1"}))
        epsilon = 1.09861: '0' and '1', 1 apart, have laws 1.09861 apart
        """
        seen, finite = self._seen(flavor, datasets, partition)
        if finite.output.kind.curve:
            inside = [finite.compared & np.outer(mask, mask) for mask in finite.universes]
            held = [np.where(pairs, finite.distances, np.inf) for pairs in inside]
            curves = tuple(finite.output.kind.loss_curve(seen.rows, distances, deltas) for distances in held)
            return Loss(finite.output, finite.output.kind.largest_curve(curves, deltas), curves, None)
        power, found = finite.output.kind.power, []
        for number, mask in enumerate(finite.universes):
            own = np.flatnonzero(mask)
            worst = _worst(seen.rows[own], finite.distances[np.ix_(own, own)], finite.output)
            pair = None
            if worst.first is not None and worst.second is not None:
                names = (finite.names[own[worst.first]], finite.names[own[worst.second]])
                pair = Pair(*names, worst.distance, worst.divergence, finite.members(number))
            found.append((worst.ratio**power, pair))
        value, pair = max(found, key=lambda one: (one[0], one[1] is not None), default=(0.0, None))
        return Loss(finite.output, value, tuple(ratio for ratio, _ in found), pair)

    def satisfies(self, specification: Specification, datasets: Datasets | None = None) -> Answer:
        """Whether D_Pr(P_x, P_x') <= eps_D d_X(x, x') for all pairs of all universes, by enumeration."""
        seen, finite = self._seen(specification, datasets, None)
        if specification.budget.is_curve:
            compared = np.where(finite.compared, finite.distances, np.inf)
            kept, words = finite.output.kind.within_curve(seen.rows, compared, finite.names, specification.budget.value)
            return answer("yes" if kept else "no", words)
        budgets = specification.budget.by_universe or (specification.budget.number,) * len(finite.universes)
        bounds = np.full(finite.distances.shape, math.inf)
        for mask, budget in zip(finite.universes, budgets, strict=True):
            inside = finite.compared & np.outer(mask, mask)
            if budget < math.inf:
                bounds[inside] = np.minimum(bounds[inside], finite.distances[inside] * lipschitz(finite.output, budget))
        worst = _worst(seen.rows, bounds, finite.output)
        if worst.first is None or worst.second is None:
            return answer("yes", "no two datasets are compared with a finite bound")
        said = (
            f"'{finite.names[worst.first]}' and '{finite.names[worst.second]}' have laws {worst.divergence:.6g} apart "
            f"in {finite.output.symbol}, where {worst.distance:.6g} is allowed"
        )
        if worst.ratio > 1 + TOLERANCE:
            return answer("no", said)
        return answer("yes", f"of all pairs of datasets {said}; no other comes nearer to its bound")

    def _seen(
        self, flavor: Flavor | Specification | FiniteFlavor, datasets: Datasets | None, partition: Partition | None
    ) -> tuple[FiniteMechanism, FiniteFlavor]:
        """The mechanism as the flavor sees it: rows in the flavor's order, outputs as its events tell them apart."""
        finite = flavor if isinstance(flavor, FiniteFlavor) else FiniteFlavor.of(flavor, datasets)
        if finite.output.events:
            raise errors.cannot_evaluate(f"the events '{finite.output.events}'")
        _same_datasets(self.datasets, finite.names)
        rows = self.rows[[self.datasets.index(name) for name in finite.names]]
        seen = FiniteMechanism(finite.names, self.outputs, rows)
        given = [[tuple(cell) for cell in cells] for cells in (partition, finite.output.partition) if cells]
        return (seen.coarsen(_joined(self.outputs, given)) if given else seen), finite


def divergence(output: OutputPremetric, p: ArrayLike, q: ArrayLike) -> float:
    """D_Pr(P, Q) for an output premetric that is a number."""
    return output.kind.between(p, q, output.parameter)


def _worst(rows: Array, distances: Array, output: OutputPremetric) -> WorstPair:
    """The largest D_Pr / d over ordered pairs of different rows at a finite distance."""
    if len(rows) == 0:
        return NOTHING
    return output.kind.measure(output.parameter).worst_pair(rows, distances)


# -- constructors and checks ---------------------------------------------------------------------------------


def bernoulli(chances: Mapping[str, Fraction | float]) -> FiniteMechanism:
    """A mechanism that answers yes with a probability for each dataset."""
    return FiniteMechanism.of({name: {"yes": chance, "no": 1 - chance} for name, chance in chances.items()})


def randomised_response(flip: Any, answers: Sequence[str] = ("0", "1"), respondents: int = 1) -> FiniteMechanism:
    """Every respondent's answer is replaced, with probability ``flip``, by one of the others, in the order of the file.

    Datasets and outputs are named by their answers: "01" is the file of a first answer 0 and a second answer 1.
    """
    chance = Fraction(str(flip)) if isinstance(flip, float) else Fraction(flip)
    other = chance / (len(answers) - 1)
    one = FiniteMechanism.of({a: {b: 1 - chance if a == b else other for b in answers} for a in answers})
    rows: Any = one.rows
    names = list(answers)
    for _ in range(respondents - 1):
        rows = np.kron(rows, one.rows)
        names = [name + answer for name in names for answer in answers]
    return FiniteMechanism(tuple(names), tuple(names), rows)


def _stochastic(values: Any, datasets: Sequence[str], outputs: Sequence[str]) -> Array:
    try:
        rows = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise errors.not_a_mechanism("its probabilities are not numbers") from None
    if rows.shape != (len(datasets), len(outputs)):
        raise errors.not_a_mechanism("it does not have one probability for each dataset and output")
    for name, row in zip(datasets, rows, strict=True):
        if np.any(np.isnan(row)) or np.any(row < 0):
            raise errors.not_a_mechanism(f"a probability of '{name}' is negative or not a number")
        if abs(math.fsum(row) - 1) > SUM_TOLERANCE:
            raise errors.not_a_mechanism(f"the probabilities of '{name}' do not sum to 1")
    rows.setflags(write=False)
    return rows


def _same_datasets(mine: Sequence[str], theirs: Sequence[str]) -> None:
    if set(mine) != set(theirs):
        raise errors.different_datasets(sorted(set(mine) ^ set(theirs)))


def _joined(outputs: Sequence[str], partitions: Sequence[Sequence[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """The finest partition that is coarser than all: the intersection of their sigma-algebras."""
    cells = [{output} for output in outputs]
    for partition in partitions:
        if sorted(output for cell in partition for output in cell) != sorted(outputs):
            raise errors.not_a_partition()
        for cell in partition:
            touched = [known for known in cells if known & set(cell)]
            cells = [known for known in cells if not known & set(cell)] + [set().union(*touched)]
    return [tuple(output for output in outputs if output in cell) for cell in cells]


def _cell_name(cell: Sequence[str]) -> str:
    return cell[0] if len(cell) == 1 else "{" + ", ".join(cell) + "}"
