"""From one input premetric to another, and from one output premetric to another, with the budget that follows.

*Input* (Proposition 2.4.15, Appendix A.4). If l d <= d' between all datasets that are compared, a guarantee under d is
one under d' with its constant divided by l; rho, the square of the constant, by l squared. The rules here give the
largest l that is known for distances that count records: bounded or not, ordered or not, neighbours or paths, and units
within units.

Of units within units (persons in households) nothing holds unless it is said what changes. Here a file is one list of
persons, each with its household, and a household's record is all its persons:

* replaced, each within its household (``stays_in``, or an invariant that counts persons by household):
  d^household <= d^person;
* replaced, and free to move: no bound. One move changes two households (h1 = {m, f}, h2 = {f} against h1 = {m},
  h2 = {f, f}), and may leave one empty, so that the number of households changes;
* added or removed: d^household <= 2 d^person, for a household that loses a person is one removed and another added.

*Output*. Every rule is licensed by a bound that holds for all laws P, Q, and is declared by one of the two kinds that
it is about (:attr:`stirred.spec.kinds.Kind.rules`). Rules whose bound is not linear in the distance apply where only
neighbours are compared, or where no two datasets are closer than one. The numbers come from :mod:`stirred.loss`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from stirred import errors
from stirred.loss.curves.power_curves import Curve
from stirred.spec.blocks import Budget, InputPremetric, OutputPremetric
from stirred.spec.exact import exact
from stirred.spec.invariant import Invariant, implied, missing, plural
from stirred.spec.kinds import Rule
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


class Brought(NamedTuple):
    """A guarantee that follows from another one, and the steps that led to it."""

    specification: Specification
    steps: tuple[Step, ...]


class Stop(Exception):
    """Raised where a chain of steps ends: no further step is known, or a mechanism shows that there is none."""

    def __init__(self, verdict: str, step: Step) -> None:
        super().__init__(verdict)
        self.verdict = verdict
        self.step = step


def _stop(words: str, source: str = GRANULARITY, verdict: str = "unknown") -> Stop:
    return Stop(verdict, Step("input premetric", source, words))


def bring(a: Specification, to: InputPremetric, held: Iterable[Invariant]) -> Brought:
    """The guarantee of ``a`` under the premetric ``to``, where universes hold the invariants ``held`` fixed; raises
    :class:`Stop` where none is known, or none follows."""
    walk = _Walk(a, to, tuple(held))
    walk.go()
    return Brought(walk.reached, tuple(walk.steps))


class _Walk:
    """The steps from one premetric to another, one property at a time."""

    def __init__(self, start: Specification, to: InputPremetric, held: tuple[Invariant, ...]) -> None:
        self.reached = start
        self.to = to
        self.held = held
        self.steps: list[Step] = []

    def go(self) -> None:
        here, to = self.reached.input_premetric, self.to
        if here.kind != "records" or to.kind != "records":
            if replace(here, scale=1, within=()) != replace(to, scale=1, within=()):
                raise _stop(f"how '{here}' and '{to}' compare is not known")
        else:
            middle = (self._size, self._unit)
            if self._finer() and not here.bounded and not self._stays():
                middle = (self._unit, self._size)  # where units move, the rule for what is added or removed still holds
            for move in (self._leave, self._order, *middle, self._neighbours, self._stay):
                move()
        self._scale()

    @property
    def here(self) -> InputPremetric:
        return self.reached.input_premetric

    def _step(
        self, premetric: InputPremetric, per: Fraction | int, rule: str, words: str, source: str = GRANULARITY
    ) -> None:
        """One unit of the new premetric is at most ``per`` of the old one."""
        if per != 1:
            if self.reached.budget.is_curve:
                raise _stop(f"{words}, and no rule is known for a curve at other distances", source)
            kind = self.reached.output_premetric.kind
            words += f", so {kind.budget} is multiplied by {Fraction(per) ** kind.power}"
        self.reached = scaled(replace(self.reached, input_premetric=premetric, nearest=None), Fraction(per))
        self.steps.append(Step(rule, source, words))

    def _order(self) -> None:
        if self.here.ordered == self.to.ordered:
            return
        if self.here.ordered:
            words = "files that differ in their order alone are apart in the first and not in the second"
            raise _stop(words, "Appendix A.4, randomised response", "no")
        self._step(
            replace(self.here, ordered=True), 1, "order", "files with an order are at least as far apart as without"
        )

    def _size(self) -> None:
        here, to = self.here, self.to
        if here.bounded == to.bounded:
            return
        if not here.bounded:
            self._repeat(replace(here, bounded=True), 2, "size", "replacing a record removes one and adds one")
            return
        counted = Invariant(here.unit)
        if not implied(self.held, counted):
            words = f"{counted} is fixed by the first, whose files all have the same size, and not by the second"
            raise _stop(words, "Proposition A.3.3", "no")
        if here.ordered or not here.sharpened or not to.sharpened:
            raise _stop("how these distances compare among files of one size is not known")
        words = f"{counted} is fixed, and there a replaced record counts twice"
        self._step(replace(here, bounded=False), Fraction(1, 2), "size", words)

    def _leave(self) -> None:
        """Give up what the first holds fixed by itself and the second does not."""
        here, to = self.here, self.to
        kept = set(to.stays_in) if here.unit == to.unit else set()
        for coarse in sorted(set(here.stays_in) - kept):
            counted = Invariant(here.unit, by=(coarse,))
            if not implied(self.held, counted):
                words = f"{counted} is fixed by the first, which lets no {here.unit} change its {coarse}"
                raise _stop(f"{words}, and is not known to be fixed by the second", "Proposition A.3.3")
            stays = tuple(name for name in self.here.stays_in if name != coarse)
            self._step(replace(self.here, stays_in=stays), 1, "fixed units", f"{counted} is fixed by the second too")

    def _stay(self) -> None:
        """Compare only the files that the second compares."""
        here, to = self.here, self.to
        if here.stays_in != to.stays_in:
            coarse = " or its ".join(to.stays_in)
            words = f"the second compares fewer files: those in which no {to.unit} changes its {coarse}"
            self._step(replace(here, stays_in=to.stays_in), 1, "fixed units", words)

    def _finer(self) -> bool:
        """Whether the unit of the second is part of that of the first."""
        return is_part(self.to, self.here)

    def _stays(self) -> bool:
        """Whether the second compares only files in which none of its units changes the unit of the first."""
        return implied(self.held, Invariant(self.to.unit, by=(self.here.unit,)))

    def _to_finer(self) -> None:
        fine, coarse = self.to.unit, self.here.unit
        changed = replace(self.here, unit=fine, within=self.to.within)
        if self.here.ordered:
            raise _stop(f"how an order of {plural(fine)} compares with one of {plural(coarse)} is not known")
        if not self.here.bounded:
            words = f"a {coarse} with one {fine} more or less is one {coarse} removed and another added"
            self._repeat(changed, 2, "unit", words)
            return
        if fine in SHARED:
            raise _stop(f"one {fine} belongs to two {plural(coarse)}, and replacing it can change four")
        if not self._stays():
            raise _stop(moving(fine, coarse))
        words = (
            f"no {fine} changes its {coarse} (the condition: {Invariant(fine, by=(coarse,))} is held fixed), so what "
            f"replaces one {fine} changes at most one {coarse}"
        )
        self._step(changed, 1, "unit", words)

    def _unit(self) -> None:
        here, to = self.here, self.to
        if here.unit == to.unit:
            return
        if self._finer():
            self._to_finer()
            return
        most = dict(here.within).get(to.unit)
        if most is None:
            raise _stop(f"at most how many {plural(here.unit)} one {to.unit} holds is not declared")
        if here.bounded and not implied(self.held, Invariant(here.unit)):
            raise _stop(f"a {to.unit} can change its number of {plural(here.unit)}, which no invariant fixes")
        changed = replace(here, unit=to.unit, within=to.within)
        self._repeat(changed, most, "unit", f"one {to.unit} holds at most {most:,} {plural(here.unit)}")

    def _repeat(self, premetric: InputPremetric, times: int, rule: str, words: str) -> None:
        """Take a step of the new premetric as ``times`` steps of the old one."""
        if not self.here.sharpened and not self.to.sharpened:
            self._group(premetric, times, rule, words)
            return
        if not self.here.sharpened:
            self._sharpen()
            premetric = replace(premetric, sharpened=True)
        self._step(premetric, times, rule, words)

    def _neighbours(self) -> None:
        if self.here.sharpened < self.to.sharpened:
            self._sharpen()
        elif self.here.sharpened > self.to.sharpened:
            words = "neighbours are one apart by paths too, and the second asks for nothing further"
            self._step(replace(self.here, sharpened=False), 1, "neighbours", words)

    def _sharpen(self) -> None:
        output = self.reached.output_premetric
        if not output.kind.metric:
            raise _stop(
                f"{output.symbol} is not a metric: it does not add up along paths of neighbours", "Appendix A.4"
            )
        self._require_paths()
        words = f"{output.symbol} is a metric, so it adds up along paths of neighbours"
        self._step(replace(self.here, sharpened=True), 1, "sharpening", words, "Appendix A.4")

    def _group(self, premetric: InputPremetric, times: int, rule: str, words: str) -> None:
        """Group privacy between neighbours of the new premetric, by the rule of the output premetric."""
        output, budget = self.reached.output_premetric, self.reached.budget
        self._require_paths()
        if output.kind.metric:
            self._step(premetric, times, rule, words)
            return
        found = output.kind.grouped(budget.value, output.parameter, times)
        if found is None:
            raise _stop(f"no rule is known for groups under {output.symbol}", "group privacy")
        if isinstance(found, str):
            raise _stop(f"{words}, and {found}", "group privacy")
        self.reached = replace(
            self.reached,
            input_premetric=premetric,
            output_premetric=replace(output, parameter=found.parameter),
            budget=Budget(found.budget),
            nearest=None,
        )
        self.steps.append(Step(rule, "group privacy", f"{words}, so {found.words}"))

    def _require_paths(self) -> None:
        """Stop where a path of neighbours between two datasets of a universe may lead through others."""
        multiverse = self.reached.multiverse
        # Replacing records keeps their number.
        kept = (Invariant(self.here.unit),) if self.here.bounded else ()
        if missing(kept, multiverse.invariants) or multiverse.universes:
            raise _stop("paths between the datasets of a universe lead outside it", "Appendix A.4")

    def _scale(self) -> None:
        ratio = Fraction(self.here.scale) / Fraction(self.to.scale)
        if ratio != 1:
            words = "the second measures the same distance in other units"
            self._step(replace(self.here, scale=self.to.scale), ratio, "scale", words)
        self.reached = replace(self.reached, input_premetric=self.to)


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


CLASSICAL = "Bun and Steinke 2016, Proposition 1.3"


def convert(a: Specification, to: OutputPremetric) -> Brought | None:
    """The guarantee of ``a`` under another output premetric, by the first rule that applies; None if there is none."""
    output = a.output_premetric
    steps: list[Step] = []
    if (output.events, output.partition) != (to.events, to.partition):
        if output.events or output.partition or not output.kind.immune:
            return None
        words = "the second looks at fewer events, which is a way of processing the output"
        steps.append(Step("events", "Proposition 2.5.4", words))
        output = replace(output, events=to.events, partition=to.partition)
        a = replace(a, output_premetric=output)
        if output == to:
            return Brought(a, tuple(steps))
    if a.budget.by_universe:
        return None
    for rule in output.kind.rules_to(to.kind):
        if rule.neighbours and not _neighbours_only(a):
            continue
        if rule.from_one and not _at_least_one(a):
            continue
        if _lets_copies_differ(a, to) or (rule.start != rule.end and one_way(a)):
            continue
        found = rule.formula(a.budget.value, output.parameter, to.parameter)
        if found is None:
            continue
        reached = replace(a, output_premetric=to, budget=_converted(a, found, rule))
        words = f"{_said(a)} gives {_said(reached)}: {rule.words}"
        return Brought(reached, (*steps, Step("conversion", rule.source, words)))
    return None


def _converted(a: Specification, found: Any, rule: Rule) -> Budget:
    value = found if isinstance(found, Curve) else exact(found, "A converted budget")
    return Budget(value, varies=a.budget.varies, conversion=f"from {_said(a)}: {rule.words} ({rule.source})")


def _neighbours_only(a: Specification) -> bool:
    """Whether finite distances are 0 and 1 alone."""
    premetric = a.input_premetric
    if premetric.kind == "table":
        return all(d in (0, 1) for _, _, d in premetric.distances) and premetric.scale == 1
    return premetric.scale == 1 and (premetric.kind == "relation" or not premetric.sharpened)


def _at_least_one(a: Specification) -> bool:
    """Whether no distance lies between 0 and 1."""
    premetric = a.input_premetric
    if premetric.kind == "table":
        return all(d == 0 or d * premetric.scale >= 1 for _, _, d in premetric.distances)
    return premetric.kind in ("records", "relation") and premetric.scale >= 1


def one_way(a: Specification) -> bool:
    """Whether a divergence of one direction is bounded in one direction only, between some listed datasets."""
    if a.output_premetric.kind.symmetric:
        return False
    listed = {(first, second): distance for first, second, distance in a.input_premetric.distances}
    return any(listed.get((second, first)) != distance for (first, second), distance in listed.items())


def _lets_copies_differ(a: Specification, to: OutputPremetric) -> bool:
    """Whether ``a`` allows a delta between datasets at distance 0, such as files in another order, and ``to`` does not.

    At distance 0 the bound is 0, and D_Mult^delta is 0 between laws that differ by delta.
    """
    output, premetric = a.output_premetric, a.input_premetric
    if not output.kind.takes_off or to.kind.takes_off:
        return False
    if output.parameter == 0:
        return False
    if premetric.kind == "table":
        return any(distance == 0 for _, _, distance in premetric.distances)
    return premetric.kind == "records" and not premetric.ordered


def _said(a: Specification) -> str:
    output = a.output_premetric
    said = f"{output.kind.budget} = {a.budget.shown()}"
    return said if output.parameter is None else f"{said} at {output.symbol.partition(' with ')[2]}"


def as_approximate(a: Specification, delta: Any, method: str = "tight") -> Specification:
    """The guarantee of ``a`` as an (epsilon, delta) of neighbours, with the conversion in its budget.

    ``method`` is ``tight`` or, for zCDP, ``classical`` (the formula behind the 2020 Census's published epsilons).

    >>> from stirred.spec import flavors
    >>> overall = flavors.zcdp("person").at("55.371")
    >>> as_approximate(overall, "1e-10", "classical").budget.shown()
    '126.79'
    """
    to = OutputPremetric("approximate", delta)
    near = replace(a, input_premetric=replace(a.input_premetric, sharpened=False)) if _countable(a) else a
    if method == "classical":
        epsilon = None if a.budget.is_curve else a.output_premetric.kind.classical_epsilon(a.budget.number, to.at)
        if epsilon is None:
            raise errors.no_rule("the classical conversion", "it is one from rho", "Use the tight conversion.")
        words = f"classical: {_said(a)} plus 2 root(rho ln 1/delta) ({CLASSICAL})"
        return replace(near, output_premetric=to, budget=Budget(epsilon, varies=a.budget.varies, conversion=words))
    converted = convert(near, to)
    if converted is None:
        reason = f"{a.output_premetric.symbol} gives none at these distances"
        raise errors.no_rule("an epsilon at this delta", reason, "Bring the specification to neighbours first.")
    return converted.specification


def _countable(a: Specification) -> bool:
    return a.input_premetric.kind == "records" and a.input_premetric.scale == 1
