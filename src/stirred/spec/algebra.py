"""Combine and change specifications: several releases together, processed releases, other units.

*Composition* (section 2.5, Appendix A.5): releases with seeds of their own add up, once they speak of one domain, one
multiverse, one input and one output premetric. *Post-processing* is free if all it reads is the release and what the
multiverse holds fixed. Where no rule is known the answer is a refusal that says why.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred._calls import refuses_wrong_arguments
from stirred._display import brief, html_table
from stirred.errors import listed
from stirred.spec.blocks import Budget, Domain, InputPremetric, Multiverse, OutputPremetric
from stirred.spec.exact import added, quoted
from stirred.spec.facts import NOT_STATED, ROW
from stirred.spec.invariant import Invariant, merged, missing
from stirred.spec.order.conversions import Brought, Stop, bring, convert, is_part, scaled
from stirred.spec.order.finite_flavors import realised_budgets
from stirred.spec.specification import Answer, Fact, Flavor, Specification, Step, held, taken_as_known, taken_fact


@brief
@dataclass(frozen=True)
class Composition:
    """The guarantee of several releases together, and how it was reached."""

    specification: Specification
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        steps = [f"  {number}. {step}" for number, step in enumerate(self.steps, 1)]
        return "\n".join([str(self.specification), *(["by", *steps] if steps else [])])

    def _repr_html_(self) -> str:
        rows = [((step.rule, step.words, step.source), False) for step in self.steps]
        steps = html_table(("by", "step", "source"), rows) if rows else ""
        return self.specification._repr_html_() + steps


@refuses_wrong_arguments
def compose(*specifications: Specification, fresh: bool = True, name: str = "") -> Composition:
    """Add up the guarantees of several releases of the same data.

    Each is first weakened to what they have in common: the union of variables, of invariants, the finest unit, one
    output premetric. Findings were about each and are left behind: :func:`stirred.spec.lint` finds those of the whole.

    Parameters
    ----------
    specifications
        The guarantee of each release.
    fresh
        Whether every release drew its own randomness; without that nothing is known about them together.
    name
        What to call the whole.

    Returns
    -------
    Composition
        ``specification`` is the guarantee of all together, ``steps`` says how it was reached.

    Examples
    --------
    >>> from stirred.spec import flavors
    >>> both = compose(flavors.zcdp("person").at("2.56"), flavors.zcdp("person").at("0.07"))
    >>> both.specification.budget.shown()
    '2.63'
    """
    if not specifications:
        raise errors.no_rule("no releases at all", "a composition needs a flavor", "Name at least one specification.")
    if not fresh:
        reason = "the joint law of releases that share randomness is needed"
        raise errors.no_rule(
            "releases that are not fresh", reason, "Describe them as one mechanism (Definition A.5.5)."
        )
    if len(specifications) == 1:
        return Composition(specifications[0], ())
    steps: list[Step] = []
    domain = _common_domain([one.domain for one in specifications])
    reached = [replace(one, domain=domain) for one in specifications]
    reached = _common_multiverse(reached, steps)
    reached = _common_output(_common_input(reached, steps), steps)
    output, budget, step = _added(reached)
    first = reached[0]
    total = Specification(
        domain,
        first.multiverse,
        first.input_premetric,
        output,
        budget,
        nearest=_common_nearest(specifications, first),
        name=name,
        covers=tuple(dict.fromkeys(product for one in specifications for product in one.covers)),
        facts=_common_facts(specifications, first.multiverse),
        marks=tuple(dict.fromkeys(mark for one in specifications for mark in one.marks)),
    )
    return Composition(total, (*steps, step))


def _common_facts(given: Sequence[Specification], multiverse: Multiverse) -> tuple[tuple[str, Fact], ...]:
    """That a row is not stated of one of them; and which invariants none of them publishes."""
    published = [invariant for one in given for invariant in held(one).published]
    known = missing(published, (invariant for one in given for invariant in taken_as_known(one)))
    rows: dict[str, Fact] = {ROW: NOT_STATED} if any(one.condition for one in given) else {}
    return tuple((rows | taken_fact(multiverse.invariants, known)).items())


def _common_domain(domains: Sequence[Domain]) -> Domain:
    """The domain that holds the variables of all."""
    first = domains[0]
    variables: set[str] | None = set()
    for domain in domains:
        if not replace(domain, variables=None).is_part_of(replace(first, variables=None)):
            raise errors.SpecificationError(
                "different-domains",
                f"'{first.name}' and '{domain.name}' are different domains.",
                "Guarantees about different sets of datasets do not add up; bring both to one domain first.",
            )
        variables = None if variables is None or domain.variables is None else variables | set(domain.variables)
    return replace(
        first,
        variables=None if variables is None else tuple(variables),
        nested=tuple(set(itertools.chain.from_iterable(domain.nested for domain in domains))),
        free=all(domain.free for domain in domains),
        words=first.words if len(set(domains)) == 1 else "",
    )


def _common_multiverse(given: Sequence[Specification], steps: list[Step]) -> list[Specification]:
    multiverses = {one.multiverse for one in given}
    if len(multiverses) == 1:
        return list(given)
    if any(multiverse.universes for multiverse in multiverses):
        reason = "their listed universes differ"
        raise errors.no_rule("these multiverses together", reason, "List the universes that they have in common.")
    union = merged((i for one in given for i in one.multiverse.invariants), given[0].domain.nested)
    words = f"all are read under the union of their invariants, {len(union)} in number"
    steps.append(Step("refinement", "Proposition 2.4.13", words))
    return [replace(one, multiverse=Multiverse(union), nearest=None) for one in given]


def _common_input(given: Sequence[Specification], steps: list[Step]) -> list[Specification]:
    """Bring all to the premetric, among theirs, that costs least.

    Where units may move between coarser ones, as persons between households, the releases have a distance in common
    only among files in which none does. The whole is then stated for these, which its premetric says.
    """
    targets = list(dict.fromkeys(one.input_premetric for one in given))
    if len(targets) == 1:
        return list(given)
    options: list[list[Brought]] = []
    refusals: list[str] = []
    for target in targets:
        changes, reasons = _all_under(target, given)
        if reasons:
            changes, _ = _all_under(_staying(target, targets), given)
        refusals += reasons
        options += [changes] if len(changes) == len(given) else []
    if not options:
        remedy = "Declare how many of one unit another holds, or compose those that agree."
        raise errors.no_rule("these input premetrics together", "; ".join(dict.fromkeys(refusals)), remedy)
    least = min(options, key=lambda changes: _weight(change.specification for change in changes))
    steps += list(dict.fromkeys(step for change in least for step in change.steps))
    return [change.specification for change in least]


def _staying(target: InputPremetric, others: Iterable[InputPremetric]) -> InputPremetric:
    """The same distance between the files in which none of its units changes the coarser unit of another."""
    coarser = {other.unit for other in others if is_part(target, other)}
    if target.kind != "records" or not target.bounded or not coarser:
        return target
    return replace(target, stays_in=(*target.stays_in, *coarser))


def _all_under(target: InputPremetric, given: Sequence[Specification]) -> tuple[list[Brought], list[str]]:
    """Those that can be brought to a premetric, and why the others cannot."""
    held = Flavor(given[0].domain, given[0].multiverse, target, OutputPremetric()).invariants()
    changes, reasons = [], []
    for one in given:
        try:
            changes.append(bring(one, target, held))
        except Stop as stop:
            reasons.append(stop.step.words)
    return changes, reasons


def _weight(specifications: Iterable[Specification]) -> Fraction | float:
    return sum((one.budget.number for one in specifications if not one.budget.is_curve), Fraction(0))


def _common_output(given: Sequence[Specification], steps: list[Step]) -> list[Specification]:
    """Bring all to one output premetric, where a conversion to one of theirs is known."""
    targets = list(dict.fromkeys(one.output_premetric for one in given))
    alike = len({(target.name, target.events, target.partition) for target in targets}) == 1
    if len(targets) == 1 or (alike and targets[0].kind.composition == "sum-with-parameter"):
        return list(given)
    for target in targets:
        converted = [_converted(one, target) for one in given]
        if all(converted):
            steps += [step for one in converted if one for step in one.steps]
            return [one.specification for one in converted if one]
    reason = f"{' and '.join(target.symbol for target in targets)} are different standards"
    raise errors.no_rule("these output premetrics together", reason, "Convert them to one standard first.")


def _converted(one: Specification, target: OutputPremetric) -> Brought | None:
    """One of several under the standard of another; where deltas add up, each keeps its own, and a pure one keeps 0."""
    output = one.output_premetric
    if output.kind == target.kind and target.kind.composition == "sum-with-parameter":
        target = replace(target, parameter=output.parameter)
    if output.kind.pure and target.kind.takes_off and target.parameter is not None:
        target = replace(target, parameter=0)
    return Brought(one, ()) if output == target else convert(one, target)


def _added(given: Sequence[Specification]) -> tuple[OutputPremetric, Budget, Step]:
    output = given[0].output_premetric
    kind = output.kind
    varies = "; ".join(dict.fromkeys(one.budget.varies for one in given if one.budget.varies))
    together = kind.composed_curves([one.budget.value for one in given]) if kind.curve else None
    if together is not None:
        return output, Budget(together.budget), Step("composition", together.source, together.words)
    if kind.composition is None or kind.curve:
        reason = f"{kind.symbol} has no rule for its budgets"
        raise errors.no_rule("this composition", reason, "Convert to a standard that composes, such as rho.")
    words = f"{kind.sum_words}: {added([one.budget.number for one in given])}"
    source = "Proposition 2.5.3"
    if kind.composition == "sum-with-parameter":
        total = min(sum((Fraction(one.output_premetric.parameter or 0) for one in given), Fraction(0)), Fraction(1))
        output = replace(output, parameter=total)
        words += f"; so do their deltas, to {quoted(total)}"
        source = "section 2.5; a fixed delta does not compose"
    value: Fraction | float = sum((one.budget.number for one in given), Fraction(0))
    listed: tuple[Any, ...] = ()
    if any(one.budget.by_universe for one in given):
        spread = [one.budget.by_universe or (one.budget.number,) * len(one.multiverse.universes) for one in given]
        listed = tuple(sum(column, Fraction(0)) for column in zip(*spread, strict=True))
        value = max(listed)
    return output, Budget(value, listed, varies, conversion=words), Step("composition", source, words)


def _common_nearest(given: Sequence[Specification], reached: Specification) -> Fraction | float | None:
    """Known where one of them has the datasets, the universes and the distances that all have come to."""
    wanted = (reached.domain, reached.multiverse, reached.input_premetric)
    same = (one.nearest for one in given if (one.domain, one.multiverse, one.input_premetric) == wanted)
    return next(same, None)


@refuses_wrong_arguments
def post_process(specification: Specification, reads: Iterable[Invariant] = (), *, adds: str = "") -> Specification:
    """The specification after a step that sees the release and the invariants ``reads``, and nothing else of the data.

    The budget stays. A step that reads something the multiverse does not hold fixed is not post-processing, whatever
    it is called: TopDown's second step reads its invariants, and is free only under them.
    """
    if not specification.output_premetric.kind.immune:
        reason = f"processing the output can raise {specification.output_premetric.symbol}"
        raise errors.no_rule("post-processing", reason, "Account for the step as a part of the mechanism.")
    lacking = list(map(str, missing(specification.flavor.invariants(), reads, specification.domain.nested)))
    if lacking:
        raise errors.SpecificationError(
            "not-post-processing",
            f"The step reads {listed(lacking)}, which the multiverse does not hold fixed.",
            "It is a mechanism of its own: give it a budget, or add what it reads to the invariants.",
        )
    return replace(specification, covers=(*specification.covers, *([adds] if adds else [])))


@refuses_wrong_arguments
def retabulate(specification: Specification, product: str) -> Specification:
    """The same guarantee, covering one more product tabulated from what was released."""
    return post_process(specification, adds=product)


@refuses_wrong_arguments
def change_unit(specification: Specification, to: InputPremetric) -> Composition:
    """The guarantee in other units, for example of households instead of persons (Proposition 2.4.15)."""
    held = replace(specification.flavor, input_premetric=to).invariants()
    try:
        return Composition(*bring(specification, to, held))
    except Stop as stop:
        remedy = "Declare at most how many one unit holds of the other."
        raise errors.no_rule("this change of unit", stop.step.words, remedy) from None


@refuses_wrong_arguments
def per_respondent(specification: Specification, records: int, unit: str = "respondent") -> Composition:
    """The guarantee for respondents who touch up to ``records`` records, their own and those imputed from it.

    One respondent's change is that many records' change: epsilon is multiplied by it, rho by its square.

    >>> from stirred.spec import flavors
    >>> per_respondent(flavors.zcdp("person").at("55.371"), 2).specification.budget.shown()
    '221.484'
    """
    if records < 1:
        raise errors.bad_block("A respondent", "touches at least one record")
    premetric = specification.input_premetric
    if premetric.kind != "records" or not premetric.sharpened or specification.budget.is_curve:
        remedy = "Use a specification whose distances count records along paths."
        raise errors.no_rule("respondents who touch several records", "distances go no further than neighbours", remedy)
    words = (
        f"a {unit} touches at most {records} records, so "
        f"{specification.output_premetric.kind.budget} is multiplied by "
        f"{records**specification.output_premetric.kind.power}"
    )
    staying = premetric.fixes()[1:]
    invariants = (*specification.multiverse.invariants, *staying)
    known = taken_fact(invariants, (*taken_as_known(specification), *staying))
    changed = scaled(specification, Fraction(records))
    changed = replace(
        changed,
        # What the records stay in is about records and not about respondents: it becomes an invariant.
        multiverse=replace(specification.multiverse, invariants=invariants),
        facts=tuple({**specification.fact, **known}.items()),
        input_premetric=replace(premetric, unit=unit, within=(), stays_in=(), words=""),
        budget=replace(changed.budget, conversion=words),
        nearest=None,
    )
    return Composition(changed, (Step("duplication", "Proposition 2.4.15; sections 2.4.4 and 3.4.4", words),))


@refuses_wrong_arguments
def may_publish_invariants(specification: Specification, invariants: Iterable[Invariant]) -> Answer:
    """Whether these may be published as they are, at no cost (Proposition 2.4.11)."""
    lacking = missing(specification.flavor.invariants(), invariants, specification.domain.nested)
    if not lacking:
        words = "they are constant on every universe, so publishing them has loss 0 whatever the premetrics"
        return Answer.by("yes", "invariants", "Proposition 2.4.11", words)
    named = "; ".join(map(str, lacking))
    words = f"not known to be constant on the universes: {named}"
    return Answer.by("unknown", "invariants", "Proposition 2.4.11", words)


@refuses_wrong_arguments
def may_publish_budget(specification: Specification) -> Answer:
    """Whether the realised budget may be published (Corollary A.2.2).

    The whole function from universes to budgets always may. The realised value may where each dataset lies in one
    universe only, as under invariants, or where the universes that overlap have the same budget.
    """
    budget, multiverse = specification.budget, specification.multiverse
    source = "Corollary A.2.2"
    if not budget.by_universe and not budget.varies:
        return Answer.by("yes", "budget", source, "the budget is the same in every universe")
    if not multiverse.universes:
        words = "invariants divide the datasets into disjoint universes, so the budget is a function of the invariants"
        return Answer.by("yes", "budget", source, words)
    if not budget.by_universe:
        words = "how the budget varies between the listed universes is not said"
        return Answer.by("unknown", "budget", source, words)
    known = zip(multiverse.universes, budget.by_universe, strict=True)
    for (first, one), (second, other) in itertools.combinations(known, 2):
        if one != other and set(first) & set(second):
            return _publishable(specification, min(set(first) & set(second)))
    words = "no dataset lies in two universes with different budgets"
    return Answer.by("yes", "budget", source, words)


def _publishable(specification: Specification, shared: str) -> Answer:
    """Whether the budgets of a dataset's universes are a function of its component, where universes overlap."""
    source = "Corollary A.2.2"
    if specification.input_premetric.kind != "table":
        words = f"'{shared}' lies in universes with different budgets, and distances are not listed"
        return Answer.by("unknown", "budget", source, words)
    differ = realised_budgets(specification).differ_at
    if not differ:
        words = "datasets that are comparable, directly or through others, have the same budgets"
        return Answer.by("yes", "budget", source, words)
    words = (
        f"'{shared}' lies in universes with different budgets: which budgets a dataset has tells '{differ[0]}' from "
        "others that are comparable with it"
    )
    verdict = "no" if specification.output_premetric.kind.separates else "unknown"
    return Answer.by(verdict, "budget", source, words)
