"""Lint rules about the output premetric: the standard by which laws of the output are compared."""

from __future__ import annotations

from fractions import Fraction

from stirred.loss.curves.power_curves import GaussianCurve
from stirred.spec import facts
from stirred.spec.exact import display
from stirred.spec.lint_rules import also_before, fall, letter, number, rule, short, smaller, spent
from stirred.spec.premetrics import OutputPremetric
from stirred.spec.specification import Specification

LARGE_DELTA = Fraction(1, 100_000)
"""Above it a delta is called large where the number of records is not known."""
EXPECTED = Fraction(1, 10)
"""Above it, delta times the number of records is too many records to publish whole."""


@rule(
    "weaker-standard",
    "output premetric",
    "A standard that finds the same two laws closer gives the same mechanism a smaller number, without more noise.",
    "section 4.3, fourth way; Equation 4.3; section 2.4.5",
)
def weaker_standard(specification: Specification) -> str:
    """A delta, or a budget of total variation, is so large that publishing each record whole with that probability is
    expected to publish a tenth of a record or more (fact `records`); where that cannot be told, it is above
    1/100,000."""
    delta = _unlimited(specification)
    if not delta:
        return ""
    name = specification.output_premetric.kind.parameter or letter(specification)
    records = number(specification, facts.RECORDS)
    premetric = specification.input_premetric
    if records is None or premetric.kind != "records" or premetric.scale < 1:
        if delta <= LARGE_DELTA:
            return ""
        return (
            f"What happens with a probability of {name} = {short(delta)} is not limited at all: publishing a record "
            "whole, for example."
        )
    if delta * records < EXPECTED:
        return ""
    return (
        f"With {name} = {short(delta)}, publishing each of {int(records):,} records whole with that probability meets "
        f"the specification, and publishes {display(delta * records)} of them on average."
    )


def _unlimited(specification: Specification) -> Fraction | float | None:
    """The probability of events that are not limited."""
    output, budget = specification.output_premetric, specification.budget
    return None if budget.is_curve else output.kind.told(budget.number, output.parameter)


@also_before("weaker-standard")
def weaker_standard_than(specification: Specification, before: Specification) -> str:
    """Against an earlier specification: its standard asked for more, and the budget is smaller or in another letter."""
    now, then = specification.output_premetric, before.output_premetric
    if not _asks_less(now, then):
        return ""
    said = f"The standard was {then.symbol} and is {now.symbol}, which asks for less"
    if letter(specification) != letter(before):
        return f"{said}: {spent(before)} and {spent(specification)} are different scales."
    return f"{said}, while {fall(specification, before)}." if smaller(specification, before) else ""


def _asks_less(now: OutputPremetric, then: OutputPremetric) -> bool:
    """Whether a standard is known to ask for less than another."""
    now, then = now.simplified, then.simplified
    if now.kind != then.kind:
        return now.kind.asks_less_than(then.kind)
    if now.parameter is None or then.parameter is None:
        return False
    return now.kind.asks_less(now.parameter, then.parameter)


@rule(
    "no-events",
    "output premetric",
    "Where all outputs are one event, its probability is always 1: every mechanism has loss 0, also one that publishes "
    "the data.",
    "Appendix A.1",
    voids=True,
)
def no_events(specification: Specification) -> str:
    """The standard tells no two outputs apart."""
    if len(specification.output_premetric.partition) == 1:
        return "No two outputs are told apart, so that nothing is asked of the mechanism."
    return ""


@rule(
    "fewer-events",
    "output premetric",
    "The budget is a largest value over events. Looking at fewer of them lowers it, down to zero, and the output that "
    "people see is not limited to them.",
    "section 4.3, on events; Appendix A.1",
)
def fewer_events(specification: Specification) -> str:
    """The standard looks at some events of the output only, or does not tell some outputs apart."""
    output = specification.output_premetric
    if output.events:
        return f"Of the output, only these events are looked at: {output.events}."
    groups, outputs = len(output.partition), sum(map(len, output.partition))
    if groups > 1:
        return f"{f'{outputs:,} outputs' if outputs > groups else 'Outputs'} are told apart as {groups:,} groups only."
    return ""


@rule(
    "not-likelihood-based",
    "output premetric",
    "Tests and beliefs work with ratios of likelihoods. A bound on anything else does not limit what can be learnt.",
    "section 2.4.5",
)
def not_likelihood_based(specification: Specification) -> str:
    """The kind of output premetric is declared not to speak about likelihood ratios (a Wasserstein distance)."""
    kind = specification.output_premetric.kind
    return (
        ""
        if kind.likelihood
        else f"The standard, {kind.symbol}, does not bound ratios of probabilities: {_words(specification)}"
    )


def _words(specification: Specification) -> str:
    output = specification.output_premetric
    return (output.words or output.kind.words).rstrip(".") + "."


@rule(
    "standard-does-not-compose",
    "output premetric",
    "The guarantee of a second release from the same data cannot be added to this one, so that nothing bounds the two "
    "together.",
    "Definition 2.5.1; Proposition 2.5.3",
)
def standard_does_not_compose(specification: Specification) -> str:
    """No rule for the budgets of several releases is declared for the kind of output premetric, and the budget is not a
    Gaussian curve, which has one."""
    kind = specification.output_premetric.kind
    if kind.composition is not None or isinstance(specification.budget.value, GaussianCurve):
        return ""
    return f"How budgets of {kind.symbol} add up over several releases is not known here."


@rule(
    "not-post-processing-immune",
    "output premetric",
    "A recipient can process the release until it tells datasets apart better than the budget says.",
    "Definition 2.5.2; Proposition 2.5.4",
)
def not_post_processing_immune(specification: Specification) -> str:
    """Processing the output can raise the kind of output premetric, by its declaration."""
    kind = specification.output_premetric.kind
    if kind.immune:
        return ""
    return f"Processing the output can raise {kind.symbol}: {spent(specification)} is about the raw output alone."
