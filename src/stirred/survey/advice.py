"""Advice for a committee on where the guarantee of a survey starts: ``stirred advise survey.toml``.

:func:`advise` puts the ten settings side by side, for one survey, one estimate and one epsilon. For each it says which
record is protected, what is held fixed, what the noise costs in both readings of a unit's change, what may be claimed
for sampling, and what the authors of chapter 6 say. It rests on Tables 6.1 to 6.3, section 6.6 and
:mod:`stirred.survey.plan.sensitivity`; it looks at public facts only, and a number that nobody has proved is shown as
not known, with the reason.

The command puts four answers on one page: where this plan stands, what the ten settings of Table 6.1 protect and cost
for its public facts, what sampling would buy and for whom it buys nothing (:mod:`stirred.survey.design.amplification`,
section 6.5.1), and what cutting the largest weights would cost and save (:mod:`stirred.survey.weights.trade`). The
invariant a reader must know: no data are read, only the plan.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from stirred import errors
from stirred.semantics.pictures.shapes import Picture
from stirred.semantics.sentences.formatting import columns
from stirred.spec.exact import exact, near, significant, written
from stirred.survey.design.amplification import Claim, SamplingFacts, amplify, amplify_zcdp, claimable, may_claim
from stirred.survey.design.selections import simple_random
from stirred.survey.measuring import facts_of, may_vanish, query_noise, query_reach, setting_of, weights_may_move
from stirred.survey.plan.fields import SurveyPlan
from stirred.survey.plan.sections import QuerySection
from stirred.survey.plan.sensitivity import Bounds, Estimator, Sensitivity, SurveyFacts, sensitivity, weights_fixed
from stirred.survey.plan.settings import CHANGES, LEVELS, SETTINGS, Change, Setting, printed_amplification
from stirred.survey.weights.trade import PublicWeights, WeightTrade

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
            "What the authors say\n"
            + "\n".join(_by_text({row.number: f"{row.verdict}. {row.reason}" for row in self.rows})),
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
    return "not known" if cost.noise_sd is None else _digits(cost.noise_sd, 3)


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
    return [_filled(f"{start}: {words}", "  ", "    ") for start, words in said.items()]


def _by_text(said: Mapping[int, str]) -> list[str]:
    """One line for each text, with the numbers of the settings that have it."""
    numbers: dict[str, list[str]] = {}
    for number, text in said.items():
        numbers.setdefault(text, []).append(str(number))
    return [_filled(f"{', '.join(of)}: {text}", "  ", "    ") for text, of in numbers.items()]


def _positive(value: Any, name: str) -> Fraction:
    found = exact(value, name)
    if not 0 < found < math.inf:
        raise errors.bad_number(name, value)
    return Fraction(found)


DELTA = Fraction(1, 10**6)
"""The delta at which rho is read as an epsilon, where sampling is asked about: rho itself is not amplified."""

_MOST = "the plan does not say how many records the sample can have at most ([sample] most)"

GIVEN_UP = {
    "edited and imputed data": (
        "This start is later than all ten settings. Protected is one record of the completed file, not all that one "
        "respondent contributed: whose answers were copied or averaged into other people's missing answers has a part "
        "in their records too, and that part is not protected. What nonresponse, coding, editing and imputation let "
        "through is not covered either."
    ),
    "weights": (
        "This start is later than all ten settings. Protected is one record of the weighted file, with its weight as a "
        "part of it. A respondent also has a part in other people's records: through nonresponse adjustment and "
        "calibration in their weights, and through imputation in their answers. That part is not protected, and the "
        "noise is smaller for it."
    ),
}
"""What starts outside the ten settings give up."""

VANISHES = (
    "the nosy neighbour, who knows that a certain unit is in the sample",
    "the journalist, who asks about any record of the sample, whoever it is of",
    "anyone who knows who was sampled, such as an interviewer, or the readers of a published file",
)
"""For whom sampling lowers nothing (section 6.5.1)."""


@dataclass(frozen=True)
class QueryCost:
    """What one query of the plan costs: by how much one record moves it, and the noise at its share."""

    query: str
    share: str
    moved: Fraction
    noise_sd: float


@dataclass(frozen=True)
class Standing:
    """Where the plan stands: its setting, what is protected, what is given up, and its own noise."""

    starts: str
    holds_fixed: str
    setting: int | None
    """Its number in Table 6.1; None for starts outside the ten."""
    verdict: str
    protects: str
    change: str
    weights: str
    """Why one record may change all weights; empty if it cannot."""
    gives_up: str
    queries: tuple[QueryCost, ...]


@dataclass(frozen=True)
class SamplingAdvice:
    """What sampling would buy if it were part of the mechanism, and whether this plan may claim it."""

    sampled: int
    frame: int
    on_sample: float
    """Epsilon without sampling; for a plan in rho, the epsilon that it gives at delta."""
    on_frame: float
    delta: str
    claimable: bool
    reasons: tuple[str, ...]
    vanishes_for: tuple[str, ...]


def advise_lines(
    plan: str | Path, of: str | None = None, sampled: str | None = None, as_json: bool = False
) -> list[str]:
    """The page, or JSON, in lines. ``of`` is a variable (weighted counts without it), ``sampled`` is ``n/N``."""
    read = SurveyPlan.from_toml(plan)
    advice = plan_advice(read, of)
    stands, buys = _standing(read), None if sampled is None else _sampling(read, *_numbers(sampled))
    trade = weight_trade(read, of)
    if as_json:
        fields = json.loads(advice.to_json())
        fields |= {"plan": asdict(stands), "sampling": None if buys is None else asdict(buys), "weights": _json(trade)}
        return json.dumps(fields, indent=2, default=written).splitlines()
    parts = [
        _filled(advice.headline),
        _standing_text(read, stands),
        *advice.sections,
        _sampling_text(read, buys),
        _weights_text(read, of, trade),
        _filled(
            "Computed from the plan alone; no data were read. Tables, sections, theorems: chapter 6 of J. Bailie, "
            "Topics in Privacy, Data Privacy and Differential Privacy (2025). stirred docs surveys explains the words."
        ),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts if part).splitlines()


def advice_pictures(plan: str | Path, of: str | None = None, **_: Any) -> Sequence[Picture]:
    """Bias against noise by the largest weight as pictures; none where there is nothing to trade."""
    trade = weight_trade(SurveyPlan.from_toml(plan), of)
    return () if trade is None else trade.pictures()


def plan_advice(plan: SurveyPlan, of: str | None = None) -> Advice:
    """The ten settings for the public facts of a plan, at its whole budget; what the plan does not state is unknown."""
    most = plan.sample.most
    if most is None:
        plan = plan.model_copy(update={"sample": plan.sample.model_copy(update={"most": plan.sample.fewest})})
    facts = facts_of(plan, of)
    found = advise(facts, plan.epsilon, rho=plan.rho)
    named = f"{'weighted count' if of is None else f'weighted total of {of}'}, the whole budget spent on it,"
    rows = found.rows
    if most is None:
        rows = tuple(
            row if row.weights_fixed else replace(row, costs=tuple(_unknown(cost) for cost in row.costs))
            for row in rows
        )
    return replace(found, rows=rows, estimate=named)


def _unknown(cost: Cost) -> Cost:
    if cost.not_known:
        return cost
    return replace(cost, sensitivity=None, noise_sd=None, attained=False, not_known=f"Here {_MOST}.")


# -- where the plan stands -------------------------------------------------------------------------------------------


def _standing(plan: SurveyPlan) -> Standing:
    inside = plan.starts in LEVELS
    setting = setting_of(plan)
    return Standing(
        plan.starts,
        plan.holds_fixed or "nothing",
        setting.number if inside else None,
        setting.recommendation.verdict if inside else "outside the ten settings",
        plan.pipeline.protects,
        "another unit in its place" if plan.change == "unit" else "other answers of the same unit",
        weights_may_move(plan),
        GIVEN_UP.get(plan.starts, ""),
        tuple(_query_cost(plan, query) for query in plan.queries),
    )


def _query_cost(plan: SurveyPlan, query: QuerySection) -> QueryCost:
    moved = max(query_reach(plan, query)[0].total)
    sd = math.sqrt(float(query_noise(plan, query).variances.max()))
    return QueryCost(query.name, written(plan.share(query)), moved, sd)


def _standing_text(plan: SurveyPlan, stands: Standing) -> str:
    where = f"setting {stands.setting} ({stands.verdict})" if stands.setting else "none of the ten settings"
    start = "weighted file" if stands.starts == "weights" else stands.starts
    held = f"the {plan.holds_fixed}" if plan.holds_fixed else "nothing"
    adjusted = plan.weights is not None and plan.weights.kind == "final" and stands.verdict == "recommended"
    said = [
        f"This plan starts at the {start} and holds {held} fixed: {where}. It protects {stands.protects}, against "
        f"{stands.change}.",
        "The authors recommend it for design weights; these are final weights." if adjusted else "",
        stands.gives_up,
        f"One record may change the weights of all others, and the noise covers that: {stands.weights}"
        if stands.weights
        else "",
    ]
    rows = [("query", "share of the budget", "one record moves it by", "noise (standard deviation)")]
    rows += [(one.query, one.share, _digits(near(one.moved), 4), _digits(one.noise_sd, 4)) for one in stands.queries]
    law = "Laplace" if plan.noise == "laplace" else "Gaussian"
    return (
        "Where this plan stands\n"
        + _filled(" ".join(part for part in said if part), "  ")
        + f"\n  What it costs, with {law} noise in each cell of each query:\n"
        + columns(rows, numbers_right=True)
    )


# -- sampling --------------------------------------------------------------------------------------------------------


def _numbers(sampled: str) -> tuple[int, int]:
    try:
        drawn, frame = (int(part.replace(",", "")) for part in sampled.split("/"))
    except ValueError:
        raise errors.parameter_out_of_range(
            "--sampled", sampled, "two whole numbers: sampled units / units of the frame, such as 1000/250000"
        ) from None
    return drawn, frame


def _sampling(plan: SurveyPlan, drawn: int, frame: int) -> SamplingAdvice:
    selection = simple_random(drawn, frame)
    delta = ""
    if plan.epsilon is not None:
        after = amplify(selection, plan.epsilon)
        before, lowered = float(plan.epsilon), after.epsilon
    else:
        before = amplify_zcdp(simple_random(1, 1), plan.budget, DELTA)
        lowered, delta = amplify_zcdp(selection, plan.budget, DELTA), written(DELTA)
    claim = _claim(plan)
    return SamplingAdvice(
        drawn,
        frame,
        before,
        lowered,
        delta,
        claim.claimable,
        claim.reasons,
        VANISHES,
    )


def _claim(plan: SurveyPlan) -> Claim:
    """Whether this plan may claim what sampling buys: what it does not state counts against."""
    response = "complete" if plan.sample.everybody_responds else "uncontrolled"
    return may_claim(SamplingFacts(setting_of(plan).level, None, response))  # type: ignore[arg-type]


def _sampling_text(plan: SurveyPlan, buys: SamplingAdvice | None) -> str:
    head = "What sampling would buy\n"
    reasons = "".join("\n" + _filled(f"- {reason}", "    ", "      ") for reason in _claim(plan).reasons)
    refused = _filled("This plan may not claim it, since", "  ") + reasons
    if buys is None:
        return head + refused + "\n" + _filled("How much it would be elsewhere: add --sampled n/N.", "  ")
    at = f" at delta {buys.delta}" if buys.delta else ""
    also = " (rho itself does not become smaller by sampling, so it is read as an epsilon here)" if buys.delta else ""
    design = plan.design
    apart = ""
    if design.clusters is not None or design.strata is not None:
        what = "clusters" if design.clusters is not None else "strata"
        apart = f" That is for a simple random sample; this design has {what}, with which less is gained or nothing."
    text = (
        f"If a mechanism started at the frame, and drawing the sample were a secret part of it, {buys.sampled:,} of "
        f"{buys.frame:,} units would turn epsilon {_digits(buys.on_sample, 3)}{at} on the sample into epsilon "
        f"{_digits(buys.on_frame, 3)} on the frame{also}.{apart} For these nothing is gained, and epsilon stays "
        f"{_digits(buys.on_sample, 3)}: {'; '.join(buys.vanishes_for)} (section 6.5.1)."
    )
    return head + _filled(text, "  ") + "\n" + refused


# -- weights ---------------------------------------------------------------------------------------------------------


def weight_trade(plan: SurveyPlan, of: str | None = None) -> WeightTrade | None:
    """Bias against noise by the largest weight, for the query of a variable (or of counts) with the largest share.

    None where there is nothing to trade: no weights, equal ones, weights that one record may change for all (the noise
    is then in proportion to how far weights can be apart), or too few public facts.
    """
    query, sample = _largest_query(plan, of), plan.sample
    low, high = plan.stratum_weights()
    if query is None or low == high or weights_may_move(plan) or sample.most is None or sample.population is None:
        return None
    bounds = Bounds(Fraction(1), Fraction(1)) if of is None else plan.variable(of).bounds
    if may_vanish(plan):  # a unit that does not answer counts as 0
        bounds = Bounds(min(bounds.low, Fraction(0)), max(bounds.high, Fraction(0)))
    reach, class_of = query_reach(plan, query)
    least, most = sample.fewest * low, min(sample.population, sample.most * high)
    if least > most:
        return None
    known = PublicWeights(low, high, (least + most) / 2, sample.fewest, sample.most, (most - least) / 2)
    return WeightTrade(
        known,
        plan.weight_step,
        plan.epsilon,
        plan.rho,
        plan.share(query),
        bounds,
        len(class_of),
        moves=reach.moves,
        change=plan.change,
    )


def _largest_query(plan: SurveyPlan, of: str | None) -> QuerySection | None:
    family = plan.family(of)
    return max(family, key=plan.share) if family else None


def _weights_text(plan: SurveyPlan, of: str | None, trade: WeightTrade | None) -> str:
    head = "What cutting the largest weights would cost and save\n"
    if trade is not None:
        query = _largest_query(plan, of)
        best, now = trade.recommended_cut(), trade.at()
        advice = (
            "No cut is recommended: each costs more in bias than it saves in noise."
            if best.rule.upper == now.rule.upper
            else f'Recommended is a cut at {written(best.rule.upper)} ([weights] upper, with outside = "cut"): the '
            f"error at worst falls from {_digits(now.cell_error, 3)} to {_digits(best.cell_error, 3)}."
        )
        text = (
            f"For a cell of the query {query.name if query else ''}, taking the weights to add up to at most the "
            f"population of {near(plan.sample.population or Fraction(0)):,.0f}. Bias at worst is over all samples that "
            f"the plan allows, so that the true bias is mostly smaller; sampling error is not in it. {advice} If "
            "groups have few records, or the weights themselves are public, more can be said: stirred docs weights."
        )
        rows = "\n".join(f"  {line}" for line in trade.table().splitlines()[1:] if line.strip() != "shrunk by")
        return head + _filled(text, "  ") + "\n" + rows
    low, high = plan.stratum_weights()
    if low == high:
        return head + "  Nothing: all weights are equal."
    if weights_may_move(plan):
        return head + _filled(_moving(plan), "  ")
    if _largest_query(plan, of) is None:
        return head + _filled(f"Not computed: the plan has no query of {of or 'weighted counts'}.", "  ")
    return head + _filled(
        "Not computed: it needs [sample] most and population, the most records that the sample can have and the "
        "public number of units.",
        "  ",
    )


def _moving(plan: SurveyPlan) -> str:
    low, high = plan.stratum_weights()
    return (
        f"One record may change all weights, so that nearly all of the noise comes from how far apart weights can be: "
        f"{written(low)} to {written(high)}. Closer bounds lower the noise in proportion; equal weights (shrink = 1) "
        "leave the noise of one record only, at the price of a bias that the plan cannot tell. The other way is to use "
        "design weights and to adjust to public totals after the noise ([[calibrations]]), which costs nothing."
    )


def _json(trade: WeightTrade | None) -> dict[str, Any] | None:
    if trade is None:
        return None
    best, now = trade.recommended_cut(), trade.at()
    shown = {"now": now, "recommended": best}
    return {
        name: {
            "upper": written(point.rule.upper),
            "bias_at_worst": written(point.cell_bias),
            "noise_sd": point.noise_sd,
            "error_at_worst": point.cell_error,
        }
        for name, point in shown.items()
    }


# -- text ------------------------------------------------------------------------------------------------------------


def _filled(text: str, indent: str = "", then: str | None = None) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent if then is None else then)


def _digits(value: float, digits: int) -> str:
    """A number, rounded up to so many digits."""
    return f"{Decimal(significant(value, digits)):,f}" if math.isfinite(value) else "infinite"
