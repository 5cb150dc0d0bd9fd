"""The section about limits of learning: part of an explanation, and the answer to ``stirred limits``.

``of_explanation`` asks at the distances that the universes of a specification allow: the nearest two datasets, a
replaced record, groups, the whole database where its size is known. Where the guarantee is not pure it gives one
sentence that says why there are no limits. ``of_epsilon`` answers for an epsilon and a number of records alone.

The sentences are data (``limits.toml``), like those of :mod:`stirred.semantics`. Facts that are numbers come with the
text that shows them, upper bounds rounded up and lower ones down, to three digits also where they are small. Each
sentence with a number says for whom it holds, since sentences are quoted alone: it is somebody all of whose possible
datasets are within the distance.

Keep in mind: the text, the JSON and the report show the same statements and the same limits. Where
something is held fixed it is not known which distances its universes have, beyond the nearest; limits at others are
stated for datasets *up to* that far apart, which is true whether there are any or not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from stirred import errors
from stirred.errors import listed_plainly
from stirred.limits import LEVELS, PRIORS, Band, Limit, laplace_power, limit_at, radius, standard_limits
from stirred.loss import pure_power
from stirred.semantics import Explanation
from stirred.semantics.explained_numbers import Setting
from stirred.semantics.pictures.curves import belief_picture
from stirred.semantics.pictures.readable import NotDrawn, readable_beliefs, readable_powers
from stirred.semantics.pictures.shapes import Picture, Point
from stirred.semantics.sentences import formatting
from stirred.semantics.sentences.formatting import bullet, columns, shown_down, shown_up
from stirred.semantics.sentences.templates import Fact, Number, Statement, templates
from stirred.semantics.testing import held_fixed
from stirred.spec import facts
from stirred.spec.exact import display_down, exact, quoted, significant, written
from stirred.spec.invariant import plural
from stirred.spec.specification import Specification

NEARLY_CERTAIN = 1 - 1e-6
"""Powers and beliefs beyond this are shown as certainty."""

LARGE = 1e6
"""From here on two decimals of epsilon times the distance say nothing."""

TEMPLATES = templates("limits")
"""Every sentence by its id."""


def say(name: str, /, **facts: Fact) -> Statement:
    """The sentence of this id with its facts.

    >>> say("limits.events").section
    'limits'
    """
    return TEMPLATES[name].said(facts)


def about(
    limit: Limit, epsilon: float, *, knowing: str = "", secrets: bool = False, counted: bool = True
) -> Iterator[Statement]:
    """The sentences about one question: data, prior predictive, posterior, power, and what a mechanism attains.

    ``knowing`` is what somebody must already know, as a clause; ``secrets`` says that distributions are compared, as
    under Pufferfish; ``counted`` that any record may change, so that a count with noise is an example.
    """
    r, apart = float(radius(epsilon, limit.distance)), shown_distance(limit.distance)
    question = f"{limit.question}, distance {apart.shown}"
    if math.isinf(r):
        far = "the distributions" if secrets else "the datasets"
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
        "priors": formatting.all_typed(limit.priors),
        "lower": formatting.lower_bounds(limit.posterior.lower, limit.priors),
        "upper": formatting.powers(limit.posterior.upper, limit.priors),
    }
    if secrets:
        yield say("limits.given", question=question, **factors)
        yield say("limits.secrets", question=question, **beliefs)
    else:
        who: dict[str, Fact] = {"question": question, "distance": apart, "knowing": knowing}
        yield say("limits.data", **who, **factors)
        yield say("limits.predictive", **who, **factors)
        yield say("limits.posterior", **who, **beliefs)
    hypotheses = "distributions that are" if secrets else "hypotheses whose possible datasets are"
    told: dict[str, Fact] = {
        "hypotheses": hypotheses,
        "distance": apart,
        "levels": formatting.all_typed(limit.levels),
        "powers": powers,
    }
    yield say("limits.power", question=question, **told)
    if counted and not secrets:
        reached = laplace_power(limit.levels, epsilon, limit.distance)
        yield say("limits.attained", question=question, powers=formatting.lower_bounds(reached, limit.levels))


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


def shown_distance(distance: float) -> Number:
    """A distance without an exponent: ten million as 10,000,000."""
    return Number(distance, "infinite" if math.isinf(distance) else f"{distance:,.12g}")


HEADING = "What can at most be learnt"
SHORT = {"limits.what", "limits.attackers", "limits.other", "limits.events", "limits.nothing", "limits.unknown"}
"""What a short text keeps besides sentences with numbers."""

_QUESTIONS = {
    "one record": "one record, all others known",
    "whether one record is there": "whether one record is there, all others known",
    "what one record says": "what one record says, all others known",
    "the whole database": "the whole database, only its size known",
}


@dataclass(frozen=True)
class LimitsSection:
    """The sentences about limits, the limits themselves, one for each question, and what was asked."""

    heading: str
    statements: tuple[Statement, ...]
    limits: tuple[Limit, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)

    def text(self, full: bool = True) -> str:
        """The section as text for the terminal; without ``full``, what holds for every guarantee is left out."""
        said = [one for one in self.statements if full or one.formula or one.id in SHORT]
        lines = [self.heading, *(bullet(one.words) for one in said)]
        return "\n".join(lines) + "\n" + (f"\n{columns(self.rows())}\n" if self.limits else "")

    def to_fields(self) -> dict[str, Any]:
        """All fields, ready for JSON; what is infinite, or means nothing, is None."""
        return {
            "heading": self.heading,
            **self.asked,
            "statements": [one.to_fields() for one in self.statements],
            "limits": [_fields(one) for one in self.limits],
        }

    def to_json(self) -> str:
        """The section as JSON text, with its format version."""
        return (
            json.dumps({"stirred_limits": 1, **self.to_fields()}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        )

    def rows(self) -> list[list[str]]:
        """The table: for each question the greatest powers of tests, and the range of posteriors from the priors."""
        first = self.limits[0]
        head = ["question (power at a false alarm)", "distance"]
        head += [f"power at {level:g}" for level in first.levels]
        head += [f"belief {prior:g} becomes" for prior in first.priors]
        rows = [head]
        for one in self.limits:
            tests = zip(one.power.upper.tolist(), one.levels.tolist(), strict=True)
            beliefs = zip(one.posterior.lower.tolist(), one.posterior.upper.tolist(), one.priors.tolist(), strict=True)
            rows.append(
                [one.question, shown_distance(one.distance).shown]
                + [shown_up(power, level) for power, level in tests]
                + [_range(low, high, prior) for low, high, prior in beliefs]
            )
        return rows


def of_epsilon(
    epsilon: object,
    records: int,
    *,
    distance: object | None = None,
    levels: Iterable[float] = LEVELS,
    priors: Iterable[float] = PRIORS,
    bounded: bool = True,
) -> LimitsSection:
    """Limits from epsilon and a number of records: for one record and the whole database, or for one distance.

    ``bounded`` means that records are replaced and their number is known; else they are added and removed.

    >>> print(of_epsilon("0.1", 10).statements[4].words)
    What is tested (one record, all others known, distance 1): between two hypotheses whose possible datasets are at \
most 1 apart, tests whose probability of a false alarm is 0.01, 0.05 and 0.1 detect a difference with probabilities of \
at most 0.0111, 0.0553 and 0.111.
    """
    stated = exact(epsilon, "Epsilon")
    e, at, believed = as_float(stated), list(levels), list(priors)
    limits = standard_limits(e, records, at, believed, bounded)
    if distance is not None:
        apart = _distance(distance, records if bounded else 2 * records)
        limits = (limit_at("datasets this far apart", e, apart, at, believed),)
    elif bounded and records == 1:
        limits = (replace(limits[0], question="the one record there is"),)  # one record and all of them are one
    said = [say("limits.what")]
    limits = tuple(replace(one, question=_QUESTIONS.get(one.question, one.question)) for one in limits)
    for limit in limits:
        said += about(limit, e)
    if bounded and any(one.id != "limits.infinite" for one in said[1:]):
        said.append(say("limits.unknown", unknown="the number of records"))
    many = "1 record" if records == 1 else f"{records:,} records"
    how = "replaced" if bounded else "added or removed"
    heading = f"WHAT ANYONE CAN AT MOST LEARN: epsilon = {quoted(stated)} for each record that is {how}, {many}"
    asked = {"epsilon": written(stated), "records": records, "bounded": bounded}
    return LimitsSection(heading, tuple(said), limits, asked)


def of_explanation(explained: Explanation, priors: Iterable[float] = PRIORS) -> LimitsSection:
    """The limits that follow from an explained specification, as a section of its explanation."""
    given = explained.setting
    why = _why_not(given)
    if why is not None:
        return LimitsSection(HEADING.upper(), (why,))
    specification = given.specification
    epsilon = as_float(specification.budget.number)
    limits = tuple(
        limit_at(question, epsilon, float(distance), given.levels, list(priors))
        for question, distance in _questions(given)
    )
    of_distributions = specification.domain.objects == "distributions"
    said = [say("limits.attackers" if of_distributions else "limits.what")]
    must = _known(specification)
    knowing = f" and knows {listed_plainly(must)}" if must else ""
    said += about(limits[0], epsilon, knowing=knowing, secrets=of_distributions, counted=_counted(specification))
    premetric = specification.input_premetric
    if premetric.kind == "records" and premetric.sharpened and not of_distributions:
        fixed = held_fixed(specification)
        times = "n" if premetric.bounded and not fixed else "at most n" if premetric.bounded else "up to 2n"
        knows = " and what is held fixed" if fixed else ""
        said.append(say("limits.further", units=plural(premetric.unit), fixed=knows, times=times))
    if must and not of_distributions:
        said.append(say("limits.unknown", unknown=listed_plainly(must).replace(" and ", " or ")))
    if of_distributions:
        # Beliefs are one attacker's. Distributions that are no pair may be those of two, and nobody holds both.
        limits = (limits[0], *(_without_beliefs(one) for one in limits[1:]))
    return LimitsSection(HEADING.upper(), tuple(said), limits, {"epsilon": written(specification.budget.number)})


# -- helpers -------------------------------------------------------------------------------------------------


def _why_not(given: Setting) -> Statement | None:
    """The sentence that says why there are no limits; None where there are."""
    output, objects = given.specification.output_premetric, given.specification.domain.objects
    if not output.kind.pure:
        one = objects.removesuffix("s")
        more = f"far more probable for one {one} than for another"
        how = more if output.kind.same_support else f"possible for one {one} and not for another, or {more}"
        return say("limits.other", standard=output.kind.standard, how=how)
    if given.partial:
        return say("limits.events")
    if not given.change.exists:
        return say("limits.nothing", why=f"no two {objects} are compared")
    if not given.protects:
        return say("limits.nothing", why="no finite budget is promised, or one so large that it means nothing")
    return None


def _questions(given: Setting) -> Iterator[tuple[str, Any]]:
    """Questions and distances, the nearest first; only those that are further apart follow."""
    specification, premetric = given.specification, given.specification.input_premetric
    objects, reached = specification.domain.objects, given.change.distance
    if given.change.status == "assumed":
        yield f"two {objects} {shown_distance(float(reached)).shown} apart, if there are any", reached
    else:
        yield f"the nearest two {objects}", reached
    if premetric.kind == "table":
        inside = [d * premetric.scale for a, b, d in premetric.distances if specification.multiverse.holds(a, b)]
        if inside and max(inside) > reached:
            yield f"the farthest two {objects}", max(inside)
    if premetric.kind != "records" or not premetric.sharpened or objects == "distributions":
        return
    units, step = plural(premetric.unit), premetric.scale * (1 if premetric.bounded else 2)
    fixed = held_fixed(specification)
    if given.replaced is not None and given.replaced.distance > reached:
        reached = given.replaced.distance
        sure = "" if given.replaced.status == "inside" else ", if there are such datasets"
        yield f"one {premetric.unit} replaced{sure}", reached
    records = specification.fact.get(facts.RECORDS)
    whole = records if isinstance(records, int) and not isinstance(records, bool) and records > 0 else None
    for number in sorted(given.groups):
        if number * step > reached and (whole is None or number < whole):
            reached = number * step
            kept = f"up to {number} {units} that differ, what is held fixed known"
            yield kept if fixed else f"{number} {units} replaced", reached
    if whole is not None and whole * step > reached:
        yield f"all {whole:,} {units}" + (", what is held fixed known" if fixed else ""), whole * step


def _known(specification: Specification) -> list[str]:
    """What somebody must know for the limits: else the release may tell them, at no cost."""
    premetric = specification.input_premetric
    number = premetric.kind == "records" and premetric.bounded
    found = [f"the number of {plural(premetric.unit)}"] if number else []
    return found + (["what is held fixed"] if held_fixed(specification) else [])


def _counted(specification: Specification) -> bool:
    """Whether a count of records may differ by the distance, nothing being held fixed."""
    premetric = specification.input_premetric
    return premetric.kind == "records" and premetric.scale == 1 and not held_fixed(specification)


def as_float(value: Fraction | float) -> float:
    """The float above an exact number: one that is too large is as good as infinite, none but 0 becomes 0."""
    try:
        found = float(value)
    except OverflowError:
        return math.inf
    return found or (math.nextafter(0.0, 1.0) if value > 0 else 0.0)


def _distance(distance: object, most: int) -> float:
    """A distance in records: a whole number, at most that of the whole database, or infinite."""
    asked = exact(distance, "A distance")
    if asked != math.inf and (asked > most or Fraction(asked).denominator != 1):
        wanted = f"infinity or a whole number of records, at most {most:,}, the distance of the whole database"
        raise errors.parameter_out_of_range("distance", quoted(asked), wanted)
    return float(asked)


def _without_beliefs(limit: Limit) -> Limit:
    nothing = Band(*(np.full(len(limit.priors), math.nan) for _ in range(2)))
    return replace(limit, posterior=nothing, published=nothing)


def _range(low: float, high: float, prior: float) -> str:
    return "" if math.isnan(low) else f"{shown_down(low, prior)} to {shown_up(high, prior)}"


def _fields(limit: Limit) -> dict[str, Any]:
    return {
        "question": limit.question,
        "distance": _finite(limit.distance),
        "data": {"lower": float(limit.data.lower), "upper": _finite(float(limit.data.upper))},
        "levels": limit.levels.tolist(),
        "power": _band(limit.power),
        "priors": limit.priors.tolist(),
        "posterior": _band(limit.posterior),
        "posterior_as_published": _band(limit.published),
    }


def _band(band: Band) -> dict[str, list[float | None]]:
    return {end: [*map(_finite, getattr(band, end).tolist())] for end in ("lower", "upper")}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# -- pictures of an answer --------------------------------------------------------------------------------------

FARTHEST = 700.0
"""Beyond this epsilon times distance a factor between probabilities is too large for a float."""


def question_pictures(asked: LimitsSection) -> tuple[Picture | NotDrawn, ...]:
    """What :func:`of_epsilon` answers as pictures: tests and beliefs, with what was asked marked.

    >>> tests, beliefs = question_pictures(of_epsilon(1, 10, distance=2, levels=[0.2], priors=[0.3]))
    >>> [line.name for line in tests.lines], [point.words for point in tests.points]
    (['datasets this far apart (distance 2)'], ['0.892 at 0.2'])
    >>> [point.words for point in beliefs.points]
    ['0.3 becomes at most 0.761']
    """
    stated = exact(asked.asked["epsilon"], "Epsilon")
    epsilon, records, bounded = as_float(stated), asked.asked["records"], asked.asked["bounded"]
    many = "1 record" if records == 1 else f"{records:,} records"
    how = "replaced" if bounded else "added or removed"
    guarantee = f"Guarantee: epsilon = {quoted(stated)} per record {how}, pure differential privacy; {many}"
    near = [(one, r) for one in asked.limits if (r := float(radius(epsilon, one.distance))) <= FARTHEST]
    left = [one.question for one in asked.limits if one not in [kept for kept, _ in near]]
    said = f"Not drawn, since nothing practical is ruled out: {'; '.join(left)}." if left else ""
    if not near:
        return tuple(
            NotDrawn(name, f"No picture of {what}: nothing practical is ruled out about {'; '.join(left)}.")
            for name, what in (("limits-tests", "tests"), ("limits-beliefs", "beliefs"))
        )
    return (_tests(near, guarantee, said), _beliefs(near, guarantee, said))


def _tests(limits: list[tuple[Limit, float]], guarantee: str, caption: str) -> Picture | NotDrawn:
    points = [
        Point(level, power, f"{shown_up(power, level)} at {level:g}")
        for one, _ in limits
        for level, power in zip(one.levels.tolist(), one.power.upper.tolist(), strict=True)
        if level > 0
    ]
    found = readable_powers(
        {_named(one): pure_power(r) for one, r in limits},
        worlds="two hypotheses about the data whose possible datasets are at most the distance apart",
        caption=caption,
        guarantee=guarantee,
        points=points,
    )
    if isinstance(found, NotDrawn):
        return replace(found, name="limits-tests")
    return replace(found, name="limits-tests", title="What can the best test find out, whatever the model of the data?")


def _beliefs(limits: list[tuple[Limit, float]], guarantee: str, caption: str) -> Picture | NotDrawn:
    lines, points = [], []
    for one, r in limits:
        lines += [replace(line, name=_named(one)) for line in belief_picture([r]).lines]
        for prior, after in zip(one.priors.tolist(), one.posterior.upper.tolist(), strict=True):
            if prior > 0:
                points.append(Point(prior, after, f"{prior:g} becomes at most {shown_up(after, prior)}"))
    said = (
        "Above the diagonal is the highest belief, below it the lowest; on it nothing changes. It is the belief of "
        "somebody who considers only datasets possible that are at most the distance apart."
    )
    usual = replace(
        belief_picture([1]),
        name="limits-beliefs",
        title="How far can anyone's belief move, whatever the model of the data?",
        x_title="belief before the release (prior probability)",
        lines=tuple(lines),
        points=tuple(points),
        caption=f"{said} {caption}" if caption else said,
        guarantee=guarantee,
    )
    return readable_beliefs(usual, [r for _, r in limits])


def _named(limit: Limit) -> str:
    far = shown_distance(limit.distance).shown
    return f"{limit.question} (distance {far})"
