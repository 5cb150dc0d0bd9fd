"""Advice for a committee: the ten settings side by side, for one survey, one estimate and one epsilon.

For each setting it says which record is protected, what is held fixed, what the noise costs in both readings of a
unit's change, what may be claimed for sampling, and what the authors of chapter 6 say. It rests on Tables 6.1 to 6.3,
section 6.6 and :mod:`stirred.survey.sensitivity`; it looks at public facts only, and a number that nobody has proved is
shown as not known, with the reason.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from stirred import errors
from stirred.spec.exact import exact, near, significant, written
from stirred.survey.claims import claimable
from stirred.survey.facts import SurveyFacts
from stirred.survey.sensitivity import Estimator, Sensitivity, sensitivity, weights_fixed
from stirred.survey.settings import CHANGES, SETTINGS, Change, Setting, printed_amplification

_WIDTH = 110
_READINGS = {"value": "other answers", "unit": "another unit"}


@dataclass(frozen=True)
class Cost:
    """What protection costs in noise for one reading of a unit's change; without numbers where none is known."""

    change: Change
    epsilon: Fraction | None
    """The epsilon of Laplace noise: larger than the one of the guarantee where sampling is counted."""
    rho: Fraction | None = None
    """Of Gaussian noise."""
    sensitivity: Fraction | None = None
    noise_sd: float | None = None
    attained: bool = False
    rule: str = ""
    source: str = ""
    assumes: tuple[str, ...] = ()
    not_known: str = ""
    """Why there is no number."""


@dataclass(frozen=True)
class Row:
    """One setting: what it protects, what it costs, what it gains, and what the authors say."""

    number: int
    starts: str
    held_fixed: tuple[str, ...]
    invariance: str
    protects: str
    weights_fixed: bool
    weights: str
    amplification: str
    """As Table 6.3 prints it."""
    claimable: bool
    claim: str
    costs: tuple[Cost, ...]
    verdict: str
    reason: str
    source: str


@dataclass(frozen=True)
class Advice:
    """The ten settings for one survey. Prints as a page for a committee; ``to_json`` gives it as data."""

    title: str
    estimate: str
    epsilon: Fraction | None
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    rho: Fraction | None = None
    """The budget of Gaussian noise, in the place of epsilon."""

    @property
    def recommended(self) -> Row:
        """The setting that the authors recommend."""
        return next(row for row in self.rows if row.verdict == "recommended")

    @property
    def budget(self) -> str:
        """The budget with its name."""
        name, number = ("epsilon", self.epsilon) if self.epsilon is not None else ("rho", self.rho)
        return f"{name} {written(number or 0)}"

    def __str__(self) -> str:
        return "\n\n".join([self.headline, *self.sections]) + "\n"

    @property
    def headline(self) -> str:
        """The question that the page answers."""
        return f"Where should the guarantee start? {self.title}: {self.estimate} at {self.budget}"

    @property
    def sections(self) -> list[str]:
        """The page below its headline: the recommendation, the table, and what it says in sentences."""
        best = self.recommended
        opening = (
            "'Whose Data Is It Anyway?' (J. Bailie and J. Drechsler) names ten settings. "
            f"The authors recommend setting {best.number}: start at the {best.starts} and hold the "
            f"{best.held_fixed[-1]} fixed. {best.reason} ({best.source}) It protects {best.protects}. "
            + _noise_sentence(best)
        )
        parts = [
            _filled(opening),
            _table(self.rows),
            *(_filled(note) for note in self.notes),
            "What each start protects\n" + "\n".join(_by_start(self.rows, "protects")),
            "What happens to the weights\n" + "\n".join(_by_text({row.number: row.weights for row in self.rows})),
            "What may be claimed for sampling\n" + "\n".join(_by_start(self.rows, "claim")),
            "What the authors say\n" + "\n".join(_by_text({row.number: _verdict(row) for row in self.rows})),
        ]
        unknown = {row.number: cost.not_known for row in self.rows for cost in row.costs if cost.not_known}
        if unknown:
            parts.append("Why some noise is not known\n" + "\n".join(_by_text(unknown)))
        return parts

    def to_json(self) -> str:
        """The advice as JSON text; exact numbers are texts."""
        return json.dumps({"stirred_survey_advice": 1, **asdict(self)}, indent=2, default=written) + "\n"


def advise(
    facts: SurveyFacts,
    epsilon: Any = None,
    estimator: Estimator | None = None,
    *,
    epsilon_on_sample: Any = None,
    rho: Any = None,
) -> Advice:
    """The ten settings for a survey with these public facts.

    Parameters
    ----------
    facts
        What is publicly known about the survey.
    epsilon
        The loss that the guarantee may state, in every setting, with Laplace noise.
    rho
        The loss in the place of epsilon, with Gaussian noise.
    estimator
        What is to be published; a Horvitz-Thompson total if none is given.
    epsilon_on_sample
        The larger epsilon at which the sample may be used if sampling is counted, from a theorem for this design. It
        lowers the noise where the mechanism starts at the frame and one record does not change other units' weights.
        Such theorems exchange one unit of the sample for another, so that the noise must cover another unit.
    """
    if (epsilon is None) == (rho is None) or (rho is not None and epsilon_on_sample is not None):
        raise errors.survey_fact("The budget", "is epsilon or rho, one of them; rho is not amplified by sampling")
    stated, squared = (
        None if one is None else _positive(one, name) for one, name in ((epsilon, "Epsilon"), (rho, "Rho"))
    )
    raised = None if epsilon_on_sample is None else _positive(epsilon_on_sample, "Epsilon")
    if raised is not None and stated is not None and raised < stated:
        raise errors.survey_fact("The epsilon on the sample", "is at least the epsilon of the guarantee")
    asked = estimator or Estimator()
    rows = tuple(_row(facts, asked, setting, (stated, squared), raised) for setting in SETTINGS)
    return Advice(facts.title, str(asked), stated, rows, _notes(facts, raised, stated is None), squared)


Budget = tuple[Fraction | None, Fraction | None]
"""Epsilon or rho, the other one None."""


def _row(facts: SurveyFacts, asked: Estimator, setting: Setting, budget: Budget, raised: Fraction | None) -> Row:
    may_claim, claim = claimable(setting)
    fixed, weights = weights_fixed(facts, setting)
    # A theorem on sampling compares samples of one frame: where one record changes the weights of all, samples without
    # it differ as well, and nothing is gained.
    used: Budget = (raised, None) if raised is not None and setting.level == "frame" and fixed else budget
    unit = _cost(facts, asked, setting, "unit", used)
    value = _cost(facts, asked, setting, "value", budget)
    if value.noise_sd is not None and unit.noise_sd is not None and unit.noise_sd < value.noise_sd:
        value = replace(unit, change="value")  # what covers another unit covers other answers
    said = setting.recommendation
    return Row(
        setting.number,
        setting.level,
        tuple(stage.name for stage in setting.pipeline.held_fixed),
        setting.invariance,
        setting.protects,
        fixed,
        weights,
        printed_amplification(setting),
        may_claim,
        claim,
        (value, unit),
        said.verdict,
        said.reason,
        said.source,
    )


def _cost(facts: SurveyFacts, asked: Estimator, setting: Setting, change: Change, budget: Budget) -> Cost:
    epsilon, rho = budget
    try:
        found: Sensitivity = sensitivity(asked, facts, setting, change)
    except errors.SurveyError as refused:
        if refused.kind not in _NOT_KNOWN:
            raise
        return Cost(change, epsilon, rho, not_known=refused.problem)
    return Cost(
        change,
        epsilon,
        rho,
        found.value,
        found.noise_sd(epsilon) if epsilon is not None else math.sqrt(near(found.value**2 / (2 * (rho or 1)))),
        found.attained,
        found.rule,
        found.source,
        found.assumes,
    )


_NOT_KNOWN = ("survey-weights", "survey-sampling-depends", "survey-unit-twice", "survey-denominator")
"""Errors that say that a number is not known; others are about the question."""


def _notes(facts: SurveyFacts, raised: Fraction | None, gaussian: bool) -> tuple[str, ...]:
    notes = [
        f"Noise is the standard deviation of {'Gaussian' if gaussian else 'Laplace'} noise, rounded up. It is "
        "shown for both readings of a change: the "
        "unit gives other answers and keeps its weight, or another unit stands in its place. Say in the plan which one "
        "is promised; the second promises more. A guarantee that starts at one stage says nothing about the records of "
        "another, so that noise is to be compared within one start."
    ]
    if raised is not None:
        notes.append(
            f"Sampling is counted: where the mechanism starts at the frame and the weights are fixed, noise is drawn "
            f"at epsilon = {significant(raised, 3, down=True)}, as stated for this design, and covers another unit. "
            "Against anyone who may know who was sampled, the guarantee is that larger epsilon."
        )
    if not facts.design_depends_on_frame and facts.weights == "design":
        notes.append(
            "In this design one record does not change other units' weights. What the authors say of weights that "
            "cannot be treated as fixed does then not count against settings 2 to 5, 7 and 8."
        )
    if facts.weights == "final":
        notes.append(
            "The weights are final: nonresponse adjustment and calibration look at all records, so that these weights "
            "are fixed in no setting (Table 6.2)."
        )
    return tuple(notes)


# -- the page ------------------------------------------------------------------------------------------------------


def _table(rows: Sequence[Row]) -> str:
    head = (
        "",
        "starts at",
        "held fixed",
        "weights",
        "may gain by",
        *(f"noise: {_READINGS[c]}" for c in CHANGES),
        "authors",
    )
    cells = [
        (
            str(row.number),
            row.starts,
            ", ".join(row.held_fixed) or "nothing",
            "fixed" if row.weights_fixed else "may change",
            "sampling" if row.claimable else "nothing",
            *(_shown(cost) for cost in row.costs),
            row.verdict,
        )
        for row in rows
    ]
    widths = [2, 17, 13, 10, 8, 13, 13, 15]
    lines = []
    for line in (head, *cells):
        wrapped = [textwrap.wrap(cell, width) or [""] for cell, width in zip(line, widths, strict=True)]
        for at in range(max(map(len, wrapped))):
            parts = [part[at] if at < len(part) else "" for part in wrapped]
            lines.append("  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip())
        if line is head:
            lines.append("  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _shown(cost: Cost) -> str:
    if cost.noise_sd is None:
        return "not known"
    return f"{Decimal(significant(cost.noise_sd, 3)):,f}" if math.isfinite(cost.noise_sd) else "infinite"


def _noise_sentence(row: Row) -> str:
    costs = {cost.change: cost for cost in row.costs}
    if costs["unit"].noise_sd is None:
        return "What it costs in noise is not known for this survey."
    return (
        f"The noise has a standard deviation of {_shown(costs['unit'])} if a unit may be replaced by another, and of "
        f"{_shown(costs['value'])} if only its answers may change."
    )


def _by_start(rows: Sequence[Row], name: str) -> list[str]:
    said = {row.starts: getattr(row, name) for row in rows}
    return [_filled(f"{start}: {words}", "  ") for start, words in said.items()]


def _by_text(said: Mapping[int, str]) -> list[str]:
    """One line for each text, with the numbers of the settings that have it."""
    numbers: dict[str, list[str]] = {}
    for number, text in said.items():
        numbers.setdefault(text, []).append(str(number))
    return [_filled(f"{', '.join(of)}: {text}", "  ") for text, of in numbers.items()]


def _verdict(row: Row) -> str:
    return f"{row.verdict}. {row.reason}"


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent * 2)


def _positive(value: Any, name: str) -> Fraction:
    found = exact(value, name)
    if not 0 < found < math.inf:
        raise errors.bad_number(name, value)
    return Fraction(found)
