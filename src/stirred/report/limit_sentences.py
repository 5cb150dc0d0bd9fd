"""The sentences about limits, in the form of those of :mod:`stirred.semantics`: an id, a formula and a source each.

They are kept here because the rooms of limits and of semantics do not know each other. Facts that are numbers come with
the text that shows them, upper bounds rounded up and lower ones down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.limits import Limit, laplace_power, radius
from stirred.semantics import shown
from stirred.semantics.templates import Fact, Numbers, Statement, Template
from stirred.spec.exact import display_down

NEARLY_CERTAIN = 1 - 1e-6
"""Powers beyond this are told as certainty."""

_CHAPTER = "Bailie 2025"

TEMPLATES = {
    template.id: template
    for template in (
        Template(
            "limits.what",
            "These limits hold whatever model of the data somebody has and whatever they believed before; all they "
            "need to know of the mechanism is its epsilon. The distance says how far apart any two datasets are at "
            "most that they still hold possible, what else they know being the same in both.",
            f"{_CHAPTER}, Theorems 5.4.1 to 5.6.3",
        ),
        Template(
            "limits.attackers",
            "These limits hold for the attackers of the domain and between paired secrets only; whoever has another "
            "model of the data may learn more.",
            f"{_CHAPTER}, Theorems 5.8.1 to 5.8.6",
        ),
        Template(
            "limits.data",
            "What was released ({question}): under any model of the data its probability is at least {lowest} and at "
            "most {factor} times that which any one possible dataset gives it.",
            f"{_CHAPTER}, Theorem 5.4.1 and Lemma C.6.3",
            "e^-r and e^r, with r = epsilon times the distance",
        ),
        Template(
            "limits.predictive",
            "Before the release ({question}): the prior predictive probability of what was released lies within the "
            "same factors, {lowest} and {factor}, for every prior.",
            f"{_CHAPTER}, Theorem 5.6.2",
            "e^-r and e^r, with r = epsilon times the distance",
        ),
        Template(
            "limits.posterior",
            "What is believed ({question}): whoever{knowing} gave something a probability of {priors} gives it, "
            "whatever is released, at least {lower}, and at most {upper}.",
            f"{_CHAPTER}, Theorem 5.6.3, in the sharper form of its proof",
            "p/(p + (1 - p) e^r) and p e^r/(p e^r + 1 - p), with r = epsilon times the distance",
        ),
        Template(
            "limits.power",
            "What is tested ({question}): tests whose probability of a false alarm is {levels} detect a difference "
            "with probabilities of at most {powers}.",
            f"{_CHAPTER}, Theorem 5.5.1 and Corollary 5.5.2",
            "min(a e^r, 1 - e^-r (1 - a)), with r = epsilon times the distance",
        ),
        Template(
            "limits.attained",
            "How near this is ({question}): on a count that differs by the distance, with Laplace noise of this "
            "epsilon, the best test reaches {powers}. What the mechanism in use allows may be less.",
            f"{_CHAPTER}, section 5.9",
            "a e^r up to a = e^-r/2, then 1 - e^-r/(4 a) up to a = 1/2, then 1 - (1 - a) e^-r",
        ),
        Template(
            "limits.infinite",
            "Nothing limits what can be learnt here ({question}): {why}. Probabilities of data may differ by any "
            "factor, and every belief and every power from 0 to 1 is possible.",
            f"{_CHAPTER}, Definitions 5.2.1 and 5.3.2",
            "r = epsilon times the distance, infinite",
        ),
        Template(
            "limits.vacuous",
            "As good as nothing is promised here ({question}): epsilon times the distance is {radius}, and tests of "
            "every level asked for may have a power of {power}.",
            f"{_CHAPTER}, Corollary 5.5.2",
            "min(a e^r, 1 - e^-r (1 - a)), with r = epsilon times the distance",
        ),
        Template(
            "limits.secrets",
            "What is believed ({question}): an attacker of the domain who knows that one of two paired secrets is true "
            "and gave one a probability of {priors} gives it, whatever is released, at least {lower}, and at most "
            "{upper}.",
            f"{_CHAPTER}, equation 5.17 and Theorem 5.8.4",
            "p/(p + (1 - p) e^r) and p e^r/(p e^r + 1 - p), with r = epsilon times the distance",
        ),
        Template(
            "limits.given",
            "What was released ({question}): given one of two paired secrets its probability is at least {lowest} and "
            "at most {factor} times that given the other, for every attacker of the domain.",
            f"{_CHAPTER}, Theorem 5.8.1",
            "e^-r and e^r, with r = epsilon times the distance",
        ),
        Template(
            "limits.further",
            "Limits depend on epsilon times the distance. For somebody who knows nothing of n {units} but their number "
            "the distance is {times}: much can be learnt about many, and in places of few hardly more than about one.",
            f"{_CHAPTER}, sections 5.5 and 5.10",
        ),
        Template(
            "limits.other",
            "Limits that hold for every output need the multiplicative standard of pure differential privacy: under "
            "{standard} some outputs may be possible, or far more probable, for one dataset and not for another, so no "
            "factor bounds the probability of what was released or what is believed after it.",
            f"{_CHAPTER}, Remarks 5.3.7 and 5.6.4",
        ),
        Template(
            "limits.events",
            "Only some events of the output are looked at, so no limit holds for somebody who sees all of it.",
            f"{_CHAPTER}, Theorem 5.3.5",
        ),
        Template(
            "limits.nothing",
            "No two datasets are compared, or no finite budget is promised, so nothing limits what can be learnt.",
            f"{_CHAPTER}, Definition 5.2.1",
        ),
    )
}
"""Every sentence by its id."""


def say(name: str, /, **facts: Fact) -> Statement:
    """The sentence of this id with its facts.

    >>> say("limits.events").section
    'limits'
    """
    template = TEMPLATES[name]
    texts = {key: fact if isinstance(fact, str) else fact.shown for key, fact in facts.items()}
    words = template.words.format(**texts)
    return Statement(name, words, template.source, template.formula, template.guidance, facts)


@dataclass(frozen=True)
class Asked:
    """Whom and what a limit is about, beside its numbers."""

    epsilon: float
    knowing: str = ""
    """What beliefs must already know, as a clause."""
    secrets: bool = False
    """Whether distributions are compared, as under Pufferfish."""


def about(limit: Limit, asked: Asked) -> Iterator[Statement]:
    """What is said about one question: data, prior predictive, posterior, power, and how near a mechanism comes."""
    r, question = float(radius(asked.epsilon, limit.distance)), _titled(limit)
    if math.isinf(r):
        why = "epsilon is infinite" if math.isfinite(limit.distance) else "the datasets are infinitely far apart"
        yield say("limits.infinite", question=limit.question, why=why)
        return
    powers = shown.powers(limit.power.upper)
    if min(powers.values) > NEARLY_CERTAIN:
        yield say("limits.vacuous", question=question, radius=shown.up(r), power=shown.power(max(powers.values)))
        return
    factors: dict[str, Fact] = {"lowest": shown.lowest_factor(r), "factor": shown.factor(r)}
    beliefs: dict[str, Fact] = {
        "priors": typed(limit.priors),
        "lower": downwards(limit.posterior.lower),
        "upper": shown.powers(limit.posterior.upper),
    }
    if asked.secrets:
        yield say("limits.given", question=question, **factors)
        yield say("limits.secrets", question=question, **beliefs)
    else:
        yield say("limits.data", question=question, **factors)
        yield say("limits.predictive", question=question, **factors)
        yield say("limits.posterior", question=question, knowing=asked.knowing, **beliefs)
    yield say("limits.power", question=question, levels=typed(limit.levels), powers=powers)
    if not asked.secrets:
        exact = laplace_power(limit.levels, asked.epsilon, limit.distance)
        yield say("limits.attained", question=question, powers=shown.powers(exact))


def typed(values: NDArray[np.float64]) -> Numbers:
    """Numbers as somebody typed them."""
    found = tuple(values.tolist())
    return Numbers(found, shown.listed_plainly(f"{value:.12g}" for value in found))


def downwards(values: NDArray[np.float64]) -> Numbers:
    """Lower bounds, rounded down."""
    found = tuple(values.tolist())
    return Numbers(found, shown.listed_plainly(shown_down(value) for value in found))


def shown_down(value: float) -> str:
    """Three decimals, rounded down; more where three would turn it into nothing."""
    for decimals in (3, 4):
        text = display_down(min(1.0, value + shown.SLACK), decimals)
        if float(text) > 0:
            return text
    return "0"


def _titled(limit: Limit) -> str:
    return f"{limit.question}, distance {limit.distance:g}"
