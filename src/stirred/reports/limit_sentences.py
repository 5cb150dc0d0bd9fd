"""The sentences about limits: like those of :mod:`stirred.semantics`, each with an id, a formula and a source.

They are kept here because neither of the packages limits and semantics imports the other. Facts that are numbers come
with the text that shows them, upper bounds rounded up and lower ones down, to three digits also where they are small.

Keep in mind: each sentence with a number says for whom it holds, since sentences are
quoted alone. It is somebody all of whose possible datasets are within the distance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stirred.limits import Limit, laplace_power, radius
from stirred.semantics.sentences import formatting
from stirred.semantics.sentences.formatting import shown_down
from stirred.semantics.sentences.templates import Fact, Number, Numbers, Statement, Template
from stirred.spec.exact import display_down, significant

NEARLY_CERTAIN = 1 - 1e-6
"""Powers and beliefs beyond this are shown as certainty."""

LARGE = 1e6
"""From here on two decimals of epsilon times the distance say nothing."""

_CHAPTER = "Bailie 2025"
_FACTORS = "e^-r and e^r, with r = epsilon times the distance"
_BELIEFS = "p/(p + (1 - p) e^r) and p e^r/(p e^r + 1 - p), with r = epsilon times the distance"
_POWERS = "min(a e^r, 1 - e^-r (1 - a)), with r = epsilon times the distance"
_WHO = "somebody who considers only datasets possible that are at most {distance} apart{knowing}"

TEMPLATES = {
    template.id: template
    for template in (
        Template(
            "limits.what",
            "These limits hold whatever model of the data somebody has and whatever they believed before, as long as "
            "all datasets that they consider possible are within the stated distance of each other; all they need to "
            "know of the mechanism is its epsilon.",
            f"{_CHAPTER}, Theorems 5.4.1 to 5.6.3",
        ),
        Template(
            "limits.attackers",
            "These limits hold for the attackers of the domain and between paired secrets only; somebody with "
            "another model of the data may learn more.",
            f"{_CHAPTER}, Theorems 5.8.1 to 5.8.6",
        ),
        Template(
            "limits.data",
            f"What was released ({{question}}): for {_WHO}, its probability is at least {{lowest}} and at most "
            "{factor} times the probability under any one of these datasets, whatever their model of the data.",
            f"{_CHAPTER}, Theorem 5.4.1 and Lemma C.6.3",
            _FACTORS,
        ),
        Template(
            "limits.predictive",
            f"Before the release ({{question}}): for {_WHO}, the prior predictive probability of what was released "
            "lies within the same factors, {lowest} and {factor}, whatever their prior.",
            f"{_CHAPTER}, Theorem 5.6.2",
            _FACTORS,
        ),
        Template(
            "limits.posterior",
            f"What is believed ({{question}}): {_WHO}, and gave something a probability of {{priors}}, gives it "
            "afterwards, whatever is released, at least {lower}, and at most {upper}.",
            f"{_CHAPTER}, Theorem 5.6.3, in the sharper form of its proof",
            _BELIEFS,
        ),
        Template(
            "limits.power",
            "What is tested ({question}): between two {hypotheses} at most {distance} apart, tests whose probability "
            "of a false alarm is {levels} detect a difference with probabilities of at most {powers}.",
            f"{_CHAPTER}, Theorem 5.5.1 and Corollary 5.5.2",
            _POWERS,
        ),
        Template(
            "limits.attained",
            "How near this is ({question}): on a count that differs by the distance, with Laplace noise of this "
            "epsilon, the best test reaches {powers}, rounded down. What the mechanism in use allows may be less.",
            f"{_CHAPTER}, section 5.9",
            "a e^r up to a = e^-r/2, then 1 - e^-r/(4 a) up to a = 1/2, then 1 - (1 - a) e^-r",
        ),
        Template(
            "limits.infinite",
            "Nothing limits what can be learnt here ({question}): {why}. Probabilities of data may differ by any "
            "factor, every power from 0 to 1 is possible, and so is every belief in what was neither impossible nor "
            "certain before.",
            f"{_CHAPTER}, Definitions 5.2.1 and 5.3.2",
            "r = epsilon times the distance, infinite",
        ),
        Template(
            "limits.zero",
            "Nothing can be learnt here ({question}): epsilon times the distance is {radius}, so what is released has "
            "the same probability whatever the data, beliefs stay what they were, and tests detect no difference more "
            "often than they give a false alarm.",
            f"{_CHAPTER}, Theorems 5.4.1 to 5.6.3",
            "r = epsilon times the distance",
        ),
        Template(
            "limits.vacuous",
            "Next to nothing is promised here ({question}): epsilon times the distance is {radius}. At every "
            "false-alarm probability asked for, a test may miss a difference with a probability below {miss}, and from "
            "every prior probability asked for, something may become almost certain or almost impossible to somebody.",
            f"{_CHAPTER}, Corollary 5.5.2 and Theorem 5.6.3",
            f"e^-r; {_POWERS}; {_BELIEFS}",
        ),
        Template(
            "limits.secrets",
            "What is believed ({question}): an attacker of the domain who knows that one of two paired secrets is true "
            "and gave one a probability of {priors} gives it, whatever is released, at least {lower}, and at most "
            "{upper}.",
            f"{_CHAPTER}, equation 5.17 and Theorem 5.8.4",
            _BELIEFS,
        ),
        Template(
            "limits.given",
            "What was released ({question}): given one of two paired secrets its probability is at least {lowest} and "
            "at most {factor} times that given the other, for every attacker of the domain.",
            f"{_CHAPTER}, Theorem 5.8.1",
            _FACTORS,
        ),
        Template(
            "limits.further",
            "Limits depend on epsilon times the distance. For somebody who knows nothing of n {units} but their number"
            "{fixed} the distance is {times}: much can be learnt about large groups, and about groups of a few hardly "
            "more than about one only where epsilon times their number is small.",
            f"{_CHAPTER}, sections 5.5 and 5.10",
        ),
        Template(
            "limits.unknown",
            "Somebody who does not know {unknown} may learn it from the release: datasets that differ in it are "
            "infinitely far apart, and none of these limits holds for somebody who considers several of them possible.",
            f"{_CHAPTER}, Definition 5.3.2 and Theorem 5.6.3",
        ),
        Template(
            "limits.other",
            "Limits that hold for every output need the multiplicative standard of pure differential privacy: under "
            "{standard} some outputs may be {how}, so no factor bounds the probability of what was released or what is "
            "believed after it.",
            f"{_CHAPTER}, Remarks 5.3.7 and 5.6.4",
        ),
        Template(
            "limits.events",
            "Only some events of the output are looked at, so no limit holds for somebody who sees all of it.",
            f"{_CHAPTER}, Theorem 5.3.5",
        ),
        Template("limits.nothing", "Nothing limits what can be learnt: {why}.", f"{_CHAPTER}, Definition 5.2.1"),
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
    """For whom a limit holds and what is compared."""

    epsilon: float
    knowing: str = ""
    """What somebody must already know, as a clause."""
    secrets: bool = False
    """Whether distributions are compared, as under Pufferfish."""
    counted: bool = True
    """Whether the distance is one of records any of which may change, so that a count with noise is an example."""


def about(limit: Limit, asked: Asked) -> Iterator[Statement]:
    """The sentences about one question: data, prior predictive, posterior, power, and what a mechanism attains."""
    r, apart = float(radius(asked.epsilon, limit.distance)), shown_distance(limit.distance)
    question = f"{limit.question}, distance {apart.shown}"
    if math.isinf(r):
        far = "the distributions" if asked.secrets else "the datasets"
        endless = "epsilon is infinite, or too large to compute with"
        why = endless if math.isfinite(limit.distance) else f"{far} are infinitely far apart"
        yield say("limits.infinite", question=limit.question, why=why)
        return
    if r == 0:
        yield say("limits.zero", question=question, radius=Number(r, "0"))
        return
    powers = formatting.powers(limit.power.upper, limit.levels)
    if min(powers.values) > NEARLY_CERTAIN and _all_believed(limit):
        size = formatting.up(r) if r < LARGE else Number(r, significant(r, 3))
        yield say("limits.vacuous", question=question, radius=size, miss=_missed(r))
        return
    factors: dict[str, Fact] = {"lowest": formatting.lowest_factor(r), "factor": formatting.factor(r)}
    beliefs: dict[str, Fact] = {
        "priors": typed(limit.priors),
        "lower": downwards(limit.posterior.lower, limit.priors),
        "upper": formatting.powers(limit.posterior.upper, limit.priors),
    }
    if asked.secrets:
        yield say("limits.given", question=question, **factors)
        yield say("limits.secrets", question=question, **beliefs)
    else:
        who: dict[str, Fact] = {"question": question, "distance": apart, "knowing": asked.knowing}
        yield say("limits.data", **who, **factors)
        yield say("limits.predictive", **who, **factors)
        yield say("limits.posterior", **who, **beliefs)
    hypotheses = "distributions that are" if asked.secrets else "hypotheses whose possible datasets are"
    told: dict[str, Fact] = {
        "hypotheses": hypotheses,
        "distance": apart,
        "levels": typed(limit.levels),
        "powers": powers,
    }
    yield say("limits.power", question=question, **told)
    if asked.counted and not asked.secrets:
        reached = laplace_power(limit.levels, asked.epsilon, limit.distance)
        yield say("limits.attained", question=question, powers=downwards(reached, limit.levels))


def _all_believed(limit: Limit) -> bool:
    """Whether anything may be believed, from all of the priors that leave something open."""
    beliefs = zip(limit.priors, limit.posterior.lower, limit.posterior.upper, strict=True)
    return all(low < 1 - NEARLY_CERTAIN and high > NEARLY_CERTAIN for prior, low, high in beliefs if 0 < prior < 1)


def _missed(r: float) -> Number:
    """e^-r, rounded up: above the smallest type II error at every false-alarm probability."""
    value = math.exp(-r)
    if r > formatting.LARGEST_FACTOR:
        return Number(value, f"e^-{display_down(r)}")
    return Number(value, significant(value * (1 + formatting.ROUNDING), 2))


# -- how numbers are shown -----------------------------------------------------------------------------------


def typed(values: Iterable[float]) -> Numbers:
    """Numbers as somebody typed them."""
    found = tuple(map(float, values))
    return Numbers(found, formatting.listed_plainly(f"{value:.12g}" for value in found))


def downwards(values: Iterable[float], starts: Iterable[float]) -> Numbers:
    """Lower bounds and attained values, rounded down."""
    found = tuple(map(float, values))
    return Numbers(found, formatting.listed_plainly(map(shown_down, found, map(float, starts))))


def shown_distance(distance: float) -> Number:
    """A distance without an exponent: ten million as 10,000,000."""
    return Number(distance, "infinite" if math.isinf(distance) else f"{distance:,.12g}")
