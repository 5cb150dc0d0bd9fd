"""From one input premetric to another (Proposition 2.4.15, Appendix A.4).

If l d <= d' between all datasets that are compared, a guarantee under d is one under d' with its constant divided by l;
rho, the square of the constant, by l squared. The rules here give the largest l that is known for distances that
count records: bounded or not, ordered or not, neighbours or paths, and units within units.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

from stirred.spec.blocks import InputPremetric
from stirred.spec.invariant import Invariant, implied, missing, plural
from stirred.spec.premetrics import Budget
from stirred.spec.specification import Specification, Step

KNOWN_UNITS = (
    ("person", "household"),
    ("person", "family"),
    ("event", "user"),
    ("message", "user"),
    ("user-day", "user"),
    ("transaction", "person"),
    ("transaction", "business"),
    ("employee", "business"),
    ("establishment", "business"),
    ("edge", "node"),
)
"""Pairs (finer, coarser): whatever changes one of the first changes one of the second and no more."""

GRANULARITY = "Proposition 2.4.15"


@dataclass(frozen=True)
class Change:
    """A specification brought to another input premetric."""

    specification: Specification
    steps: tuple[Step, ...]


Refusal = tuple[str, str, str]
"""(no or unknown, words, source)."""


def bring(a: Specification, to: InputPremetric, held: Iterable[Invariant]) -> Change | Refusal:
    """The guarantee of ``a`` under the premetric ``to``, where universes hold the invariants ``held`` fixed."""
    walk = _Walk(a, to, tuple(held))
    refusal = walk.go()
    return refusal if refusal else Change(walk.reached, tuple(walk.steps))


class _Walk:
    """The steps from one premetric to another, one property at a time."""

    def __init__(self, start: Specification, to: InputPremetric, held: tuple[Invariant, ...]) -> None:
        self.reached = start
        self.to = to
        self.held = held
        self.steps: list[Step] = []

    def go(self) -> Refusal | None:
        here, to = self.reached.input_premetric, self.to
        if here.kind != "records" or to.kind != "records":
            if replace(here, scale=1, within=()) != replace(to, scale=1, within=()):
                return "unknown", f"how '{here}' and '{to}' compare is not known", GRANULARITY
        else:
            moves = (self._order, self._size, self._unit, self._neighbours)
            for move in moves:
                if refusal := move():
                    return refusal
        return self._scale()

    @property
    def here(self) -> InputPremetric:
        return self.reached.input_premetric

    def _step(
        self, premetric: InputPremetric, per: Fraction | int, rule: str, source: str, words: str
    ) -> Refusal | None:
        """One unit of the new premetric is at most ``per`` of the old one."""
        if per != 1 and self.reached.budget.is_curve:
            return "unknown", f"{words}, and no rule is known for a curve at other distances", source
        if per != 1:
            words += f", so {self.reached.output_premetric.kind.budget} is multiplied by "
            words += str(Fraction(per) ** self.reached.output_premetric.kind.power)
        self.reached = scaled(replace(self.reached, input_premetric=premetric, nearest=None), Fraction(per))
        self.steps.append(Step(rule, source, words))
        return None

    def _order(self) -> Refusal | None:
        if self.here.ordered == self.to.ordered:
            return None
        if self.here.ordered:
            words = "files that differ in their order alone are apart in the first and not in the second"
            return "no", words, "Appendix A.4, randomised response"
        words = "files with an order are at least as far apart as without"
        return self._step(replace(self.here, ordered=True), 1, "order", GRANULARITY, words)

    def _size(self) -> Refusal | None:
        here, to = self.here, self.to
        if here.bounded == to.bounded:
            return None
        if not here.bounded:
            return self._repeat(
                replace(here, bounded=True), 2, "size", GRANULARITY, "replacing a record removes one and adds one"
            )
        counted = Invariant(here.unit)
        if not implied(self.held, counted):
            words = f"{counted} is fixed by the first, whose files all have the same size, and not by the second"
            return "no", words, "Proposition A.3.3"
        if here.ordered or not here.sharpened or not to.sharpened:
            return "unknown", "how these distances compare among files of one size is not known", GRANULARITY
        words = f"{counted} is fixed, and there a replaced record counts twice"
        return self._step(replace(here, bounded=False), Fraction(1, 2), "size", GRANULARITY, words)

    def _unit(self) -> Refusal | None:
        here, to = self.here, self.to
        if here.unit == to.unit:
            return None
        if (to.unit, here.unit) in KNOWN_UNITS or here.unit in dict(to.within):
            words = f"what changes one {to.unit} changes at most one {here.unit}"
            return self._step(replace(here, unit=to.unit, within=to.within), 1, "unit", GRANULARITY, words)
        most = dict(here.within).get(to.unit)
        if most is None:
            words = f"at most how many {plural(here.unit)} one {to.unit} holds is not declared"
            return "unknown", words, GRANULARITY
        if here.bounded and not implied(self.held, Invariant(here.unit)):
            words = f"a {to.unit} can change its number of {plural(here.unit)}, which no invariant fixes"
            return "unknown", words, GRANULARITY
        changed = replace(here, unit=to.unit, within=to.within)
        return self._repeat(
            changed, most, "unit", GRANULARITY, f"one {to.unit} holds at most {most:,} {plural(here.unit)}"
        )

    def _repeat(self, premetric: InputPremetric, times: int, rule: str, source: str, words: str) -> Refusal | None:
        """Take a step of the new premetric as ``times`` steps of the old one."""
        if self.here.sharpened:
            return self._step(premetric, times, rule, source, words)
        if not self.to.sharpened:
            return self._group(premetric, times, rule, source, words)
        return self._sharpen() or self._repeat(replace(premetric, sharpened=True), times, rule, source, words)

    def _neighbours(self) -> Refusal | None:
        if self.here.sharpened == self.to.sharpened:
            return None
        if not self.here.sharpened:
            return self._sharpen()
        words = "neighbours are one apart by paths too, and the second asks for nothing further"
        return self._step(replace(self.here, sharpened=False), 1, "neighbours", GRANULARITY, words)

    def _sharpen(self) -> Refusal | None:
        output = self.reached.output_premetric
        if not output.kind.metric:
            words = f"{output.symbol} is not a metric: it does not add up along paths of neighbours"
            return "unknown", words, "Appendix A.4"
        if self._paths_leave():
            return "unknown", "paths between the datasets of a universe lead outside it", "Appendix A.4"
        words = f"{output.symbol} is a metric, so it adds up along paths of neighbours"
        return self._step(replace(self.here, sharpened=True), 1, "sharpening", "Appendix A.4", words)

    def _group(self, premetric: InputPremetric, times: int, rule: str, source: str, words: str) -> Refusal | None:
        """Group privacy between neighbours of the new premetric, by the rule of the output premetric."""
        output, budget = self.reached.output_premetric, self.reached.budget
        if self._paths_leave():
            return "unknown", "paths between the datasets of a universe lead outside it", "Appendix A.4"
        if output.kind.metric:
            return self._step(premetric, times, rule, source, words)
        found = output.kind.grouped(budget.value, output.parameter, times)
        if found is None:
            return "unknown", f"no rule is known for groups under {output.symbol}", "group privacy"
        if isinstance(found, str):
            return "unknown", f"{words}, and {found}", "group privacy"
        self.reached = replace(
            self.reached,
            input_premetric=premetric,
            output_premetric=replace(output, parameter=found.parameter),
            budget=Budget(found.budget),
            nearest=None,
        )
        self.steps.append(Step(rule, "group privacy", f"{words}, so {found.words}"))
        return None

    def _paths_leave(self) -> bool:
        """Whether a path of neighbours between two datasets of a universe may lead through others."""
        multiverse = self.reached.multiverse
        # Replacing records keeps their number.
        kept = (Invariant(self.here.unit),) if self.here.bounded else ()
        return bool(missing(kept, multiverse.invariants) or multiverse.universes)

    def _scale(self) -> Refusal | None:
        ratio = Fraction(self.here.scale) / Fraction(self.to.scale)
        if ratio != 1:
            words = "the second measures the same distance in other units"
            if refusal := self._step(replace(self.here, scale=self.to.scale), ratio, "scale", GRANULARITY, words):
                return refusal
        self.reached = replace(self.reached, input_premetric=self.to)
        return None


def scaled(specification: Specification, factor: Fraction) -> Specification:
    """The budget under a premetric in which what was at distance ``factor`` is at distance one."""
    if factor == 1:
        return specification
    budget = specification.budget.number * factor**specification.output_premetric.kind.power
    return replace(specification, budget=replace(specification.budget, value=budget, by_universe=()))
