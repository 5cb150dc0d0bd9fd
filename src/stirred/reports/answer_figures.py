"""Pictures of what ``stirred limits`` was asked, and of estimates.

Keep in mind: nothing is computed here. Bounds are those of :mod:`stirred.limits.bounds` at the distances, false-alarm
probabilities and priors that were asked about, which are marked. Estimates are drawn each with its interval, beside
what the released rows give without correction.
"""

from __future__ import annotations

import math
from dataclasses import replace

from stirred import errors
from stirred.estimates import Answers, Estimates
from stirred.limits import Limit, radius
from stirred.loss import pure_power
from stirred.reports.limits_section import LimitsSection, as_float, shown_distance
from stirred.semantics.pictures.curves import belief_picture
from stirred.semantics.pictures.readable import NotDrawn, readable_beliefs, readable_powers
from stirred.semantics.pictures.shapes import Interval, Intervals, Picture, Point
from stirred.semantics.sentences.formatting import shown_up
from stirred.spec.exact import exact, quoted

FARTHEST = 700.0
"""Beyond this epsilon times distance a factor between probabilities is too large for a float."""


def question_pictures(asked: LimitsSection) -> tuple[Picture | NotDrawn, ...]:
    """What :func:`stirred.reports.limits_section.of_epsilon` answers: tests and beliefs, with what was asked marked.

    >>> from stirred.reports.limits_section import of_epsilon
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


MOST = 60
"""Estimates that one picture shows."""


def interval_picture(found: Answers | Estimates, confidence: float = 0.95, guarantee: str = "") -> Intervals:
    """The first estimates with their intervals; those without an estimate are left out. ``guarantee`` is that of the
    release that they are made from."""
    frame = found.to_frame(confidence)
    names = frame.columns[: frame.columns.index("estimate")]
    shown = []
    for row in frame.rows(named=True):
        beside = row.get("naive", row["estimate"])
        numbers = row["lower"], row["estimate"], row["upper"], beside
        if all(number is not None and math.isfinite(number) for number in numbers):
            shown.append(Interval(", ".join(str(row[name]) for name in names) or "all", *numbers))
    if not shown:
        raise errors.nothing_to_draw("no estimate here has a finite interval", "Leave --figures out.")
    measure = found.measure if isinstance(found, Answers) else "count"
    left = len(frame) - min(len(shown), MOST)
    return Intervals(
        "estimates",
        f"Estimates with {100 * confidence:g}% intervals",
        f"{measure}, table {found.table}",
        measure,
        tuple(shown[:MOST]),
        "estimate",
        "released rows, uncorrected" if "naive" in frame.columns else "estimate again",
        "Each interval by itself contains the true number about as often as it says, or more often."
        + (f" {left:,} more are not shown." if left else "")
        + "".join(f" {remark}" for remark in (found.remarks if isinstance(found, Answers) else ())),
        guarantee,
    )
