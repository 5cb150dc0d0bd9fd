"""The fourth and fifth blocks: how different two laws of the output are, and how much difference is allowed.

An output premetric is a *kind* (:mod:`stirred.spec.kinds`), which knows how it behaves: whether it is a metric (then
distances add up along paths), whether processing the output can raise it, how it composes and converts. What is not
declared is not used; ``register`` adds a kind of one's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from stirred import errors
from stirred.loss.curves.power_curves import Curve, EpsilonProfile, GaussianCurve, PowerCurve
from stirred.spec.exact import Exact, bound, exact, near, quoted, written
from stirred.spec.kinds import KINDS, Kind, register

__all__ = ["KINDS", "Budget", "Curve", "Kind", "OutputPremetric", "lipschitz", "register"]

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
            raise errors.unknown_output_premetric(self.name, list(KINDS))
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
            if set(value) == {"gaussian"}:
                return GaussianCurve(float(value["gaussian"]))
            (kind, points), *more = value.items()
            curve = {"power": PowerCurve, "epsilon_by_delta": EpsilonProfile}[kind]
            if not more:
                return curve(tuple((float(x), float(y)) for x, y in points))
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
