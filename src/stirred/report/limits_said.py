"""Limits of learning as people read them: a section for an explanation, and the answer to ``stirred limits``.

``of_explanation`` asks at the distances that the universes of a specification allow: the nearest two datasets, a
replaced record, groups, the whole database where its size is known. It says one sentence where the guarantee is not
pure, and why. ``of_epsilon`` answers for an epsilon and a number of records alone.

The invariant a reader must know: the text, the JSON and the HTML show the same statements and the same limits.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from stirred.limits import LEVELS, PRIORS, Limit, limit_at, standard_limits
from stirred.report.limit_sentences import Asked, about, say, shown_down
from stirred.semantics import Explanation
from stirred.semantics.counterfactuals import held_fixed
from stirred.semantics.setting import Setting
from stirred.semantics.shown import shown_power
from stirred.semantics.templates import Statement
from stirred.spec import facts
from stirred.spec.exact import display, exact
from stirred.spec.invariant import plural
from stirred.spec.pages import table

HEADING = "What can at most be learnt"
WIDTH = 110
BRIEFLY = {"limits.what", "limits.attackers", "limits.other", "limits.events", "limits.nothing"}
"""What a brief text keeps besides sentences with numbers."""


_QUESTIONS = {
    "one record": "one record, all others known",
    "the whole database": "the whole database, only its size known",
}


@dataclass(frozen=True)
class LimitsSection:
    """Sentences about limits, and the limits themselves, one for each question."""

    heading: str
    statements: tuple[Statement, ...]
    limits: tuple[Limit, ...] = ()

    def text(self, brief: bool = False) -> str:
        """For the terminal."""
        said = [one for one in self.statements if not brief or one.formula or one.id in BRIEFLY]
        lines = [self.heading, *(_bullet(one.words) for one in said)]
        return "\n".join(lines) + "\n" + (f"\n{_columns(self._rows())}\n" if self.limits else "")

    def html(self) -> str:
        """To stand below an explanation."""
        items = "".join(f'<li title="{escape(one.source)}">{escape(one.words)}</li>' for one in self.statements)
        rows = self._rows() if self.limits else []
        shown = table(rows[0], [(row, False) for row in rows[1:]]) if rows else ""
        return f"<h3>{escape(self.heading.capitalize())}</h3><ul>{items}</ul>{shown}"

    def to_fields(self) -> dict[str, Any]:
        """All of it, ready for JSON; what is infinite is None."""
        return {"statements": [one.to_fields() for one in self.statements], "limits": [_fields(n) for n in self.limits]}

    def to_json(self) -> str:
        return (
            json.dumps({"stirred_limits": 1, **self.to_fields()}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        )

    def _rows(self) -> list[list[str]]:
        """The table: for each question powers at the levels and the range of beliefs, from the priors."""
        first = self.limits[0]
        head = ["powers at most; beliefs from, to", "distance"]
        head += [f"level {level:g}" for level in first.levels] + [f"belief {prior:g}" for prior in first.priors]
        rows = [head]
        for one in self.limits:
            beliefs = zip(one.posterior.lower, one.posterior.upper, strict=True)
            rows.append(
                [one.question, "infinite" if math.isinf(one.distance) else f"{one.distance:g}"]
                + [shown_power(float(power)) for power in one.power.upper]
                + [f"{shown_down(float(low))} to {shown_power(float(high))}" for low, high in beliefs]
            )
        return rows


def of_epsilon(
    epsilon: object,
    records: int,
    *,
    distance: object | None = None,
    levels: Iterable[float] = LEVELS,
    priors: Iterable[float] = PRIORS,
) -> LimitsSection:
    """The standard questions: one record and the whole database, or one distance of one's own.

    >>> print(of_epsilon("0.1", 10).statements[4].words)
    What is tested (one record, all others known, distance 1): tests whose probability of a false alarm is 0.01, 0.05 \
and 0.1 detect a difference with probabilities of at most 0.012, 0.056 and 0.111.
    """
    e = float(exact(epsilon, "Epsilon"))
    at, believed = list(levels), list(priors)
    if distance is None:
        limits = tuple(
            replace(one, question=_QUESTIONS[one.question]) for one in standard_limits(e, records, at, believed)
        )
    else:
        asked = float(exact(distance, "A distance"))
        limits = (limit_at("datasets this far apart", e, asked, at, believed),)
    said = [say("limits.what")]
    for limit in limits:
        said += about(limit, Asked(e))
    many = "1 record" if records == 1 else f"{records:,} records"
    heading = (
        f"WHAT ANYONE CAN AT MOST LEARN: epsilon = {display(exact(epsilon))} for each record that is replaced, {many}"
    )
    return LimitsSection(heading, tuple(said), limits)


def of_explanation(explained: Explanation, priors: Iterable[float] = PRIORS) -> LimitsSection:
    """The limits that a specification sets, in the form of a section of its explanation."""
    given = explained.setting
    why = _why_not(given)
    if why is not None:
        return LimitsSection(HEADING.upper(), (why,))
    specification = given.specification
    epsilon = float(specification.budget.number)
    limits = tuple(
        limit_at(question, epsilon, float(distance), given.levels, list(priors))
        for question, distance in _questions(given)
    )
    of_distributions = specification.domain.objects == "distributions"
    said = [say("limits.attackers" if of_distributions else "limits.what")]
    said += about(limits[0], Asked(epsilon, _knowing(given), of_distributions))
    premetric = specification.input_premetric
    if premetric.kind == "records" and premetric.sharpened:
        times = "n" if premetric.bounded else "up to 2n"
        said.append(say("limits.further", units=plural(premetric.unit), times=times))
    return LimitsSection(HEADING.upper(), tuple(said), limits)


# -- helpers -------------------------------------------------------------------------------------------------


def _why_not(given: Setting) -> Statement | None:
    """The sentence that stands in place of limits, where there are none."""
    output = given.specification.output_premetric
    if output.name != "multiplicative":
        return say("limits.other", standard=f"{output.symbol} (budget {output.kind.budget})")
    if given.partial:
        return say("limits.events")
    if not given.protects:
        return say("limits.nothing")
    return None


def _questions(given: Setting) -> Iterator[tuple[str, Any]]:
    """Questions and distances, the nearest first; only those that are further apart follow."""
    specification, premetric = given.specification, given.specification.input_premetric
    objects, reached = specification.domain.objects, given.change.distance
    yield f"the nearest two {objects}", reached
    if premetric.kind == "table":
        inside = [d * premetric.scale for a, b, d in premetric.distances if specification.multiverse.holds(a, b)]
        if inside and max(inside) > reached:
            yield f"the farthest two {objects}", max(inside)
    if premetric.kind != "records" or not premetric.sharpened:
        return
    units, step = plural(premetric.unit), premetric.scale * (1 if premetric.bounded else 2)
    if given.replaced is not None and given.replaced.distance > reached:
        reached = given.replaced.distance
        yield f"one {premetric.unit} replaced", reached
    records = specification.fact.get(facts.RECORDS)
    whole = records if isinstance(records, int) and not isinstance(records, bool) and records > 0 else None
    for count in sorted(given.groups):
        if count * step > reached and (whole is None or count < whole):
            reached = count * step
            yield f"{count} {units} replaced", reached
    if whole is not None and whole * step > reached:
        yield f"all {whole:,} {units}", whole * step


def _knowing(given: Setting) -> str:
    """What somebody must know for the limits on beliefs: else the release tells them, at no cost."""
    return " knows what is held fixed and" if held_fixed(given.specification) else ""


def _fields(limit: Limit) -> dict[str, Any]:
    return {
        "question": limit.question,
        "distance": _finite(limit.distance),
        "data": {"lower": float(limit.data.lower), "upper": _finite(float(limit.data.upper))},
        "levels": limit.levels.tolist(),
        "power": {"lower": limit.power.lower.tolist(), "upper": limit.power.upper.tolist()},
        "priors": limit.priors.tolist(),
        "posterior": {"lower": limit.posterior.lower.tolist(), "upper": limit.posterior.upper.tolist()},
        "posterior_as_published": {"lower": limit.published.lower.tolist(), "upper": limit.published.upper.tolist()},
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _bullet(words: str) -> str:
    return textwrap.fill(words, WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _columns(rows: list[list[str]]) -> str:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)
