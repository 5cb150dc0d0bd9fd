"""From one input premetric to another (Proposition 2.4.15, Appendix A.4).

If l d <= d' between all datasets that are compared, a guarantee under d is one under d' with its constant divided by l;
rho, the square of the constant, by l squared. The rules here give the largest l that is known for distances that
count records: bounded or not, ordered or not, neighbours or paths, and units within units.

Of units within units (persons in households) nothing holds unless it is said what changes. Here a file is one list of
persons, each with its household, and a household's record is all its persons:

* replaced, each within its household (``stays_in``, or an invariant that counts persons by household):
  d^household <= d^person;
* replaced, and free to move: no bound. One move changes two households (h1 = {m, f}, h2 = {f} against h1 = {m},
  h2 = {f, f}), and may leave one empty, so that the number of households changes;
* added or removed: d^household <= 2 d^person, for a household that loses a person is one removed and another added.
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
"""Pairs (finer, coarser): one of the second holds some of the first."""

SHARED = ("edge",)
"""Finer units that are part of two coarser ones at once."""

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
            middle = (self._size, self._unit)
            if self._finer() and not here.bounded and not self._stays():
                middle = (self._unit, self._size)  # where units move, the rule for what is added or removed still holds
            for move in (self._leave, self._order, *middle, self._neighbours, self._stay):
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

    def _leave(self) -> Refusal | None:
        """Give up what the first holds fixed by itself and the second does not."""
        here, to = self.here, self.to
        kept = set(to.stays_in) if here.unit == to.unit else set()
        for coarse in sorted(set(here.stays_in) - kept):
            counted = Invariant(here.unit, by=(coarse,))
            if not implied(self.held, counted):
                words = f"{counted} is fixed by the first, which lets no {here.unit} change its {coarse}"
                return "unknown", f"{words}, and is not known to be fixed by the second", "Proposition A.3.3"
            stays = tuple(name for name in self.here.stays_in if name != coarse)
            words = f"{counted} is fixed by the second too"
            self._step(replace(self.here, stays_in=stays), 1, "fixed units", GRANULARITY, words)
        return None

    def _stay(self) -> Refusal | None:
        """Compare only the files that the second compares."""
        here, to = self.here, self.to
        if here.stays_in == to.stays_in:
            return None
        coarse = " or its ".join(to.stays_in)
        words = f"the second compares fewer files: those in which no {to.unit} changes its {coarse}"
        return self._step(replace(here, stays_in=to.stays_in), 1, "fixed units", GRANULARITY, words)

    def _finer(self) -> bool:
        """Whether the unit of the second is part of that of the first."""
        return is_part(self.to, self.here)

    def _stays(self) -> bool:
        """Whether the second compares only files in which none of its units changes the unit of the first."""
        return implied(self.held, Invariant(self.to.unit, by=(self.here.unit,)))

    def _to_finer(self) -> Refusal | None:
        fine, coarse = self.to.unit, self.here.unit
        changed = replace(self.here, unit=fine, within=self.to.within)
        if self.here.ordered:
            words = f"how an order of {plural(fine)} compares with one of {plural(coarse)} is not known"
            return "unknown", words, GRANULARITY
        if not self.here.bounded:
            words = f"a {coarse} with one {fine} more or less is one {coarse} removed and another added"
            return self._repeat(changed, 2, "unit", GRANULARITY, words)
        if fine in SHARED:
            words = f"one {fine} belongs to two {plural(coarse)}, and replacing it can change four"
            return "unknown", words, GRANULARITY
        if not self._stays():
            return "unknown", moving(fine, coarse), GRANULARITY
        words = (
            f"no {fine} changes its {coarse} (the condition: {Invariant(fine, by=(coarse,))} is held fixed), so what "
            f"replaces one {fine} changes at most one {coarse}"
        )
        return self._step(changed, 1, "unit", GRANULARITY, words)

    def _unit(self) -> Refusal | None:
        here, to = self.here, self.to
        if here.unit == to.unit:
            return None
        if self._finer():
            return self._to_finer()
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


def is_part(fine: InputPremetric, coarse: InputPremetric) -> bool:
    """Whether the unit of the first is part of that of the second, as a person of a household."""
    declared = coarse.unit in dict(fine.within) or coarse.unit in fine.stays_in
    return fine.unit != coarse.unit and (declared or (fine.unit, coarse.unit) in KNOWN_UNITS)


def moving(fine: str, coarse: str) -> str:
    """Why nothing is known about the finer unit, and what to declare."""
    return (
        f"one {fine} that moves changes two {plural(coarse)}, from {{m, f}} and {{f}} to {{m}} and {{f, f}}, and may "
        f"leave one empty: a guarantee for {plural(coarse)} is one for {plural(fine)} only among files in which no "
        f"{fine} changes its {coarse}, which stays_in=('{coarse}',) in the second would declare"
    )


def scaled(specification: Specification, factor: Fraction) -> Specification:
    """The budget under a premetric in which what was at distance ``factor`` is at distance one."""
    if factor == 1:
        return specification
    budget = specification.budget.number * factor**specification.output_premetric.kind.power
    return replace(specification, budget=replace(specification.budget, value=budget, by_universe=()))
