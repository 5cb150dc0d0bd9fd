"""The five building blocks of a guarantee: domain, multiverse, input premetric, output premetric and budget.

Which datasets there could have been, which are compared, and how far apart they are; then how different two laws of the
output are, and how much difference is allowed. Blocks are frozen and equal when they mean the same: ``words`` are for
people and do not count. What is written here can also be written in JSON; distances and universes that no formula gives
are listed in full (finite domains only).

An output premetric is a *kind* (:mod:`stirred.spec.kinds`), which knows how it behaves: whether it is a metric (then
distances add up along paths), whether processing the output can raise it, how it composes and converts. What is not
declared is not used; ``register`` adds a kind of one's own.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from stirred import errors
from stirred._display import brief
from stirred.errors import listed
from stirred.loss.curves.power_curves import Curve, EpsilonProfile, GaussianCurve, PowerCurve
from stirred.spec.exact import Exact, bound, exact, near, quoted, written
from stirred.spec.invariant import Invariant, plural
from stirred.spec.kinds import KINDS, Kind


@brief
@dataclass(frozen=True)
class Domain:
    """X, the protection objects: all datasets that the recording phase could have produced (section 2.4.2).

    ``name`` says whose datasets they are and is what two domains have in common; ``variables`` are those the mechanism
    reads (None: all), so that a guarantee about some variables is one about the whole dataset.
    """

    name: str
    variables: tuple[str, ...] | None = None
    starts: str = ""
    """Where recording ends and processing begins: what came before is not covered."""
    record: str = field(default="", compare=False)
    """What one record is."""
    restricted_by: tuple[str, ...] = ()
    """Steps that made the domain smaller before the guarantee starts: clipping, top-coding, deduplication."""
    nested: tuple[tuple[str, str], ...] = ()
    """Pairs (fine, coarse) of columns: a block lies in one county, in every dataset."""
    free: bool = False
    """No rule of the domain ties one count to others: an invariant that others do not imply differs somewhere."""
    objects: Literal["datasets", "distributions"] = "datasets"
    datasets: tuple[str, ...] = ()
    """A finite domain's datasets by name."""
    words: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise errors.bad_block("A domain", "has a name")
        if self.variables is not None:
            object.__setattr__(self, "variables", tuple(sorted(set(self.variables))))
        object.__setattr__(self, "nested", tuple(sorted({(fine, coarse) for fine, coarse in self.nested})))
        if len(set(self.datasets)) < len(self.datasets):
            raise errors.bad_block("A finite domain", "names each dataset once")

    def __str__(self) -> str:
        if self.words:
            return self.words
        said = self.name if self.objects == "datasets" else f"Distributions of {self.name}"
        if self.datasets:
            said += f" ({len(self.datasets)} {self.objects}, listed)"
        if self.variables is not None:
            said += ": " + (", ".join(self.variables) or "no variables")
        return said + (f"; the guarantee starts at {self.starts}" if self.starts else "")

    def is_part_of(self, other: Domain) -> bool:
        """Whether this domain is the other one read through some of its variables, record by record.

        Then a guarantee here is one there: dropping variables brings no two datasets further apart.
        """
        whole: dict[str, Any] = {"variables": None, "nested": (), "free": False}
        if not other.starts:  # it does not say where it starts
            whole["starts"] = ""
        same = replace(self, **whole) == replace(other, **whole)
        if not same or other.variables is None:
            return same
        return self.variables is not None and set(self.variables) <= set(other.variables)


@brief
@dataclass(frozen=True)
class Multiverse:
    """The scope: which datasets are compared with one another (section 2.4.3).

    Either all of them, or those that agree on ``invariants``, or those that share a universe listed in ``universes``.
    """

    invariants: tuple[Invariant, ...] = ()
    universes: tuple[tuple[str, ...], ...] = ()
    words: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "invariants", tuple(dict.fromkeys(self.invariants)))
        listed = dict.fromkeys(tuple(sorted(set(universe))) for universe in self.universes)
        object.__setattr__(self, "universes", tuple(listed))
        if self.invariants and self.universes:
            raise errors.bad_block("A multiverse", "is given by invariants or by a list of universes, not by both")

    def __str__(self) -> str:
        if self.words:
            return self.words
        if self.universes:
            return "; ".join("{" + ", ".join(universe) + "}" for universe in self.universes)
        if not self.invariants:
            return "All datasets are compared: no invariant is declared."
        kept = "; ".join(f"({number}) {invariant}" for number, invariant in enumerate(self.invariants, 1))
        return f"Datasets are compared only if they agree on {kept}."

    def holds(self, first: Any, second: Any) -> bool | None:
        """Whether two datasets share a universe; None where that cannot be decided from their records."""
        if self.universes:
            return any(first in universe and second in universe for universe in self.universes)
        unknown = False
        for invariant in self.invariants:
            values = invariant.value(first), invariant.value(second)
            if values[0] is None or values[1] is None:
                unknown = True
            elif values[0] != values[1]:
                return False
        return None if unknown else True


@dataclass(frozen=True)
class InputPremetric:
    """d_X, the protection units: how far apart two datasets are (section 2.4.4, Appendix A.4).

    ``kind`` is ``records`` (the number of records that differ), ``relation`` (1 for neighbours in the relation
    ``name``, else infinite), ``metric`` (the metric called ``name``) or ``table`` (``distances`` between named
    datasets; infinite where none is given). ``sharpened`` replaces neighbours by shortest paths (Definition A.4.1).
    """

    kind: Literal["records", "relation", "metric", "table"] = "records"
    unit: str = "record"
    bounded: bool = True
    """Datasets of different sizes are infinitely far apart: the number of records is then an invariant."""
    ordered: bool = False
    sharpened: bool = True
    name: str = ""
    scale: Exact = Fraction(1)
    within: tuple[tuple[str, int | None], ...] = ()
    """Coarser units that hold this one, and at most how many (None: no limit known): ``(("household", 99999),)``."""
    stays_in: tuple[str, ...] = ()
    """Coarser units that none of this unit changes: with ``("household",)``, files in which a household has another
    number of persons are infinitely far apart, so that a person is only ever replaced by one of the same household."""
    distances: tuple[tuple[str, str, Exact], ...] = ()
    words: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", exact(self.scale, "The scale of an input premetric"))
        if not 0 < self.scale < math.inf:
            raise errors.bad_block("The scale of an input premetric", "is positive and finite")
        if (self.kind in ("relation", "metric")) != bool(self.name):
            raise errors.bad_block(
                "An input premetric", "has a name exactly if it is a relation or a metric of its own"
            )
        object.__setattr__(self, "stays_in", tuple(sorted(set(self.stays_in))))
        if self.stays_in and (self.kind != "records" or not self.bounded):
            raise errors.bad_block("'stays_in'", "belongs to distances that replace records in files of equal size")
        if (self.kind == "table") < bool(self.distances):
            raise errors.bad_block("A list of distances", "belongs to the kind 'table'")
        listed = {(a, b): exact(d, "A distance") for a, b, d in self.distances}
        if any(a == b and d != 0 for (a, b), d in listed.items()):
            raise errors.bad_block("A premetric", "puts a dataset at distance 0 from itself")
        kept = sorted((a, b, d) for (a, b), d in listed.items() if a != b and d != math.inf)
        object.__setattr__(self, "distances", tuple(kept))

    @classmethod
    def neighbours(
        cls, unit: str = "record", *, bounded: bool = True, ordered: bool = False, **fields: Any
    ) -> InputPremetric:
        """d_r: 1 for datasets that differ in one unit, infinite for others that differ."""
        return cls("records", unit, bounded, ordered, False, **fields)

    @classmethod
    def metric(cls, name: str, unit: str = "record", **fields: Any) -> InputPremetric:
        """A metric that is known by its name only."""
        return cls("metric", unit, False, True, True, name=name, **fields)

    @classmethod
    def relation(cls, name: str, unit: str = "record", **fields: Any) -> InputPremetric:
        """A relation of neighbours that is known by its name only: distance 1 where it holds, else infinite."""
        return cls("relation", unit, False, True, False, name=name, **fields)

    @classmethod
    def table(cls, distances: Mapping[tuple[str, str], Any], unit: str = "dataset", **fields: Any) -> InputPremetric:
        """Distances between named datasets as they are given, in each direction; infinite where none is."""
        listed = tuple((a, b, d) for (a, b), d in distances.items())
        return cls("table", unit, False, True, False, distances=listed, **fields)

    @classmethod
    def measured(
        cls, datasets: Mapping[str, Any], distance: Callable[[Any, Any], Any], unit: str = "dataset"
    ) -> InputPremetric:
        """A table from a metric: ``distance`` between any two of the datasets.

        >>> InputPremetric.measured({"a": 1, "b": 3}, lambda x, y: abs(x - y)).distance("a", "b")
        Fraction(2, 1)
        """
        pairs = {(a, b): distance(x, y) for a, x in datasets.items() for b, y in datasets.items() if a != b}
        return cls.table(pairs, unit)

    @classmethod
    def related(
        cls, datasets: Mapping[str, Any], relation: Callable[[Any, Any], bool], unit: str = "dataset"
    ) -> InputPremetric:
        """A table from a relation: 1 where it holds, infinite elsewhere (Equation A.2)."""
        return cls.measured(datasets, lambda x, y: 1 if relation(x, y) else math.inf, unit)

    def __str__(self) -> str:
        said = self.words or self._sentence()
        if not self.stays_in:
            return said
        return f"{said}; infinite if the number of {plural(self.unit)} in a {' or a '.join(self.stays_in)} differs"

    def _sentence(self) -> str:
        times = "" if self.scale == 1 else f"{written(self.scale)} times "
        if self.kind == "table":
            return f"{times}a table of {len(self.distances)} finite distances"
        if self.kind == "metric":
            return f"{times}the metric '{self.name}'"
        if self.kind == "relation":
            return f"{times}1 for neighbours in '{self.name}', infinite for others (unit: {self.unit})"
        how = (
            f"{plural(self.unit)} replaced between files of equal size"
            if self.bounded
            else f"{plural(self.unit)} added or removed"
        )
        order = "in the order of the file" if self.ordered else "whatever their order"
        if self.sharpened:
            return f"{times}the number of {how}, {order}"
        return f"{times}1 for files that differ in one of the {how}, {order}; infinite for others"

    def fixes(self) -> tuple[Invariant, ...]:
        """What is held fixed without standing in the multiverse, since files that differ in it are infinitely far apart
        (Proposition A.3.3): the number of records, and their number in each unit that they stay in.

        >>> [str(one) for one in InputPremetric(unit="person", stays_in=("household",)).fixes()]
        ['the number of persons', 'the number of persons by household']
        """
        if self.kind != "records" or not self.bounded:
            return ()
        return (Invariant(self.unit), *(Invariant(self.unit, by=(coarse,)) for coarse in self.stays_in))

    def sharpen(self) -> InputPremetric:
        """d*: the length of the shortest path (Definition A.4.1)."""
        if self.kind == "metric":
            return self
        if self.kind == "relation":
            raise errors.cannot_evaluate(f"the shortest paths of the relation '{self.name}'")
        if self.kind == "records":
            return replace(self, sharpened=True)
        paths = shortest_paths({(a, b): d for a, b, d in self.distances})
        return replace(self, distances=tuple((a, b, d) for (a, b), d in paths.items()), sharpened=True)

    def distance(self, first: Any, second: Any) -> Fraction | float:
        """d_X between two datasets: sequences of records of this unit, or names in a finite domain.

        >>> InputPremetric().distance("ab", "ca"), InputPremetric(ordered=True).distance("ab", "ca")
        (Fraction(1, 1), Fraction(2, 1))
        """
        if self.kind == "table":
            found = {(a, b): d for a, b, d in self.distances}.get((first, second), math.inf)
            return Fraction(0) if first == second else found * self.scale
        if self.kind != "records":
            raise errors.cannot_evaluate(f"the {self.kind} '{self.name}'")
        for kept in (Invariant(self.unit, by=(coarse,)) for coarse in self.stays_in):
            counted = kept.value(first), kept.value(second)
            if None in counted:
                raise errors.cannot_evaluate(f"{kept} of records without that column")
            if counted[0] != counted[1]:
                return math.inf
        records = [_hashable(record) for record in first], [_hashable(record) for record in second]
        steps = _ordered(*records, self.bounded) if self.ordered else _unordered(*records, self.bounded)
        if not self.sharpened and steps > 1:
            return math.inf
        return steps if steps == math.inf else Fraction(steps) * self.scale


def shortest_paths(lengths: Mapping[tuple[str, str], Fraction | float]) -> dict[tuple[str, str], Fraction | float]:
    """The lengths of the shortest paths, from those of single steps; what no path leads to is left out."""
    shortest = dict(lengths)
    names = sorted({name for pair in lengths for name in pair})
    for middle in names:
        arriving = [name for name in names if (name, middle) in shortest]
        leaving = [name for name in names if (middle, name) in shortest]
        for first, second in itertools.product(arriving, leaving):
            through = shortest[first, middle] + shortest[middle, second]
            if first != second and through < shortest.get((first, second), math.inf):
                shortest[first, second] = through
    return shortest


def _hashable(record: Any) -> Any:
    return tuple(sorted(record.items())) if isinstance(record, Mapping) else record


def _unordered(first: Sequence[Any], second: Sequence[Any], bounded: bool) -> int | float:
    """Half the multiset difference (A.3) for files of equal size, or all of it (A.4)."""
    if bounded and len(first) != len(second):
        return math.inf
    counts = Counter(first)
    counts.subtract(second)
    difference = sum(abs(count) for count in counts.values())
    return difference // 2 if bounded else difference


def _ordered(first: Sequence[Any], second: Sequence[Any], bounded: bool) -> int | float:
    """Places that differ (Hamming) for files of equal size, or records to delete on both sides until they agree."""
    if bounded:
        if len(first) != len(second):
            return math.inf
        return sum(bool(a != b) for a, b in zip(first, second, strict=True))
    longest = np.zeros(len(second) + 1, dtype=np.int64)
    for a in first:
        before = longest.copy()
        for j, b in enumerate(second, 1):
            longest[j] = before[j - 1] + 1 if a == b else max(before[j], longest[j - 1])
    return len(first) + len(second) - 2 * int(longest[-1])


MOST_PARAMETER = 10**100
"""The largest finite parameter of an output premetric, an order for one: with larger ones nothing can be computed."""


@dataclass(frozen=True)
class OutputPremetric:
    """D_Pr, the standard: how different two laws of the output are (section 2.4.5)."""

    name: str = "multiplicative"
    parameter: Exact | None = None
    events: str = ""
    """Which events are looked at, if not all: a coarser sigma-algebra is a weaker standard."""
    partition: tuple[tuple[str, ...], ...] = ()
    """The same for a finite output space: outputs that are not told apart."""
    words: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise errors.SpecificationError(
                "unknown-output-premetric",
                f"There is no output premetric '{self.name}'.",
                f"Known are {listed(KINDS)}; stirred.spec.register adds one.",
            )
        if bool(self.kind.parameter) != (self.parameter is not None):
            needs = f"needs its {self.kind.parameter}" if self.kind.parameter else "has no parameter"
            raise errors.bad_block(f"The output premetric '{self.name}'", needs)
        if self.parameter is not None:
            object.__setattr__(self, "parameter", exact(self.parameter, f"The parameter {self.kind.parameter}"))
            if MOST_PARAMETER < self.parameter < math.inf:
                raise errors.bad_number(f"The parameter {self.kind.parameter}", quoted(self.parameter))
            self.kind.check_parameter(self.parameter)
        cells = tuple(sorted(tuple(sorted(cell)) for cell in self.partition))
        object.__setattr__(self, "partition", cells)

    @property
    def kind(self) -> Kind:
        """What is known about this kind of output premetric."""
        return KINDS[self.name]

    @property
    def at(self) -> Fraction | float:
        """The parameter, where the kind has one."""
        if self.parameter is None:
            raise errors.bad_block(f"The output premetric '{self.name}'", "has no parameter")
        return self.parameter

    @property
    def simplified(self) -> OutputPremetric:
        """The same premetric as the simplest kind that it is: D_Mult for D_Mult^0."""
        kind, parameter = self.kind.simplified(self.parameter)
        return self if kind.name == self.name else replace(self, name=kind.name, parameter=parameter)

    @property
    def symbol(self) -> str:
        """The symbol, with the parameter where there is one."""
        if self.parameter is None:
            return self.kind.symbol
        return f"{self.kind.symbol} with {self.kind.parameter} = {_short(self.parameter)}"

    def __str__(self) -> str:
        said = self.words or self.kind.words
        if self.parameter is not None:
            said += f" {self.kind.parameter} = {_short(self.parameter)}."
        if self.events:
            said += f" Only these events are looked at: {self.events}."
        if self.partition:
            said += f" Only {len(self.partition)} groups of outputs are told apart."
        return said


def _short(value: Fraction | float) -> str:
    text = written(value)
    return text if len(text) <= 8 else f"{near(value):g}"


def _budget_value(value: Any) -> Any:
    """A number or a curve, from either or from its JSON."""
    if isinstance(value, Curve):
        return value
    if isinstance(value, dict):
        try:
            ((kind, held),) = value.items()
            if kind == "gaussian":
                return GaussianCurve(float(held))
            curve = {"power": PowerCurve, "epsilon_by_delta": EpsilonProfile}[kind]
            return curve(tuple((float(x), float(y)) for x, y in held))
        except (KeyError, ValueError, TypeError, OverflowError):
            pass
        raise errors.bad_block("A curve", "is one of 'gaussian', 'power' or 'epsilon_by_delta', with its numbers")
    return exact(value, "A budget")


def _budget_json(value: Any) -> Any:
    if isinstance(value, GaussianCurve):
        return {"gaussian": value.mu}
    if isinstance(value, PowerCurve):
        return {"power": [list(point) for point in value.points]}
    if isinstance(value, EpsilonProfile):
        return {"epsilon_by_delta": [list(point) for point in value.points]}
    return written(value)


Value = Annotated[
    Any,
    BeforeValidator(_budget_value),
    PlainSerializer(_budget_json),
    WithJsonSchema(
        {
            "oneOf": [
                {"type": ["string", "number"], "description": "'2.63', '1/3' or 'infinity'"},
                {"type": "object", "required": ["gaussian"], "properties": {"gaussian": {"type": "number"}}},
                {"type": "object", "required": ["power"], "properties": {"power": {"type": "array"}}},
                {"type": "object", "required": ["epsilon_by_delta"],
                 "properties": {"epsilon_by_delta": {"type": "array"}}},
            ]
        }
    ),
]  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """The intensity: how much the law of the output may change per unit of distance (section 2.4.6).

    A number (exact), or a curve where the output premetric is one. For zCDP the number is rho in the usual sense; the
    Lipschitz constant is its root. Where budgets differ between listed universes, ``by_universe`` has them in the
    order of the multiverse and ``value`` is the largest; where a formula of the invariants gives it, ``varies`` says so
    and ``value`` belongs to the realised universe.
    """

    value: Value
    by_universe: tuple[Exact, ...] = ()
    varies: str = ""
    conversion: str = field(default="", compare=False)
    """What the number was computed by."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _budget_value(self.value))
        listed = tuple(exact(value, "A budget") for value in self.by_universe)
        object.__setattr__(self, "by_universe", listed)
        if listed and (self.is_curve or self.value != max(listed)):
            raise errors.bad_block("A budget by universe", "has numbers, and its value is the largest of them")

    @property
    def is_curve(self) -> bool:
        """Whether the budget is a curve and not a number."""
        return isinstance(self.value, Curve)

    @property
    def number(self) -> Fraction | float:
        """The budget as a number; refuses a curve."""
        if self.is_curve:
            raise errors.bad_block("This budget", "is a curve and not a number")
        return self.value  # type: ignore[no-any-return]

    def __str__(self) -> str:
        said = self.shown()
        return f"{said} ({self.conversion})" if self.conversion else said

    def shown(self) -> str:
        """The value alone: exact where that is short, else rounded up."""
        if isinstance(self.value, GaussianCurve):
            return f"the Gaussian curve of mu = {self.value.mu:g}"
        if self.is_curve:
            return f"a curve of {len(self.value.points)} points"
        return bound(self.value)


def lipschitz(output: OutputPremetric, budget: Fraction | float) -> float:
    """The constant of the Lipschitz condition: the budget itself, or the root of rho."""
    return math.sqrt(near(budget)) if output.kind.power == 2 else near(budget)
