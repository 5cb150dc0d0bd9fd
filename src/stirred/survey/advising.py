"""Advice for a committee on one survey plan: ``stirred advise survey.toml``.

Puts four answers on one page: where this plan stands, what the ten settings of Table 6.1 protect and cost for its
public facts (:mod:`stirred.survey.advice`), what sampling would buy and for whom it buys nothing
(:mod:`stirred.survey.claims`, section 6.5.1), and what cutting the largest weights would cost and save
(:mod:`stirred.survey.weight_trade`). The invariant a reader must know: no data are read, only the plan.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from stirred import errors
from stirred.semantics.pictures.lines_and_bars import Picture
from stirred.semantics.sentences.formatting import columns
from stirred.spec.exact import near, significant, written
from stirred.survey.advice import Advice, Cost, advise
from stirred.survey.amplification import amplify
from stirred.survey.claims import Claim, SamplingFacts, may_claim
from stirred.survey.facts import Bounds
from stirred.survey.pipeline import LEVELS
from stirred.survey.plan import SurveyPlan
from stirred.survey.plan_sections import QuerySection
from stirred.survey.public_weights import PublicWeights
from stirred.survey.query_noise import facts_of, may_vanish, query_noise, query_reach, setting_of, weights_may_move
from stirred.survey.renyi_amplification import amplify_zcdp
from stirred.survey.selections import simple_random
from stirred.survey.weight_trade import WeightTrade

DELTA = Fraction(1, 10**6)
"""The delta at which rho is read as an epsilon, where sampling is asked about: rho itself is not amplified."""

_WIDTH = 110
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
    ("the nosy neighbour", "knows that a certain unit is in the sample"),
    ("the journalist", "asks about any record of the sample, whoever it is of"),
    ("anyone who knows who was sampled", "such as an interviewer, or the readers of a published file"),
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
        _filled_lines(advice.headline),
        _standing_text(read, stands),
        *advice.sections,
        _sampling_text(read, buys),
        _weights_text(read, of, trade),
        _filled_lines(
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
    facts = facts_of(plan if most is not None else _with_most(plan, plan.sample.fewest), of)
    found = advise(facts, plan.epsilon, rho=plan.rho)
    named = f"{'weighted count' if of is None else f'weighted total of {of}'}, the whole budget spent on it,"
    rows = found.rows
    if most is None:
        rows = tuple(
            row if row.weights_fixed else replace(row, costs=tuple(_unknown(cost) for cost in row.costs))
            for row in rows
        )
    return replace(found, rows=rows, estimate=named)


def _with_most(plan: SurveyPlan, most: int) -> SurveyPlan:
    return plan.model_copy(update={"sample": plan.sample.model_copy(update={"most": most})})


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
    rows += [
        (one.query, one.share, _digits_shown(near(one.moved)), _digits_shown(one.noise_sd)) for one in stands.queries
    ]
    law = "Laplace" if plan.noise == "laplace" else "Gaussian"
    return (
        "Where this plan stands\n"
        + _filled_lines(" ".join(part for part in said if part), "  ")
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
        tuple(f"{who}, who {what}" if who.startswith("the") else f"{who}, {what}" for who, what in VANISHES),
    )


def _claim(plan: SurveyPlan) -> Claim:
    """Whether this plan may claim what sampling buys: what it does not state counts against."""
    response = "complete" if plan.sample.everybody_responds else "uncontrolled"
    start = plan.starts if plan.starts in LEVELS else "responding sample"
    return may_claim(SamplingFacts(start, None, response))  # type: ignore[arg-type]


def _sampling_text(plan: SurveyPlan, buys: SamplingAdvice | None) -> str:
    head = "What sampling would buy\n"
    reasons = "".join("\n" + _filled_lines(f"- {reason}", "    ", "      ") for reason in _claim(plan).reasons)
    refused = _filled_lines("This plan may not claim it, since", "  ") + reasons
    if buys is None:
        return head + refused + "\n" + _filled_lines("How much it would be elsewhere: add --sampled n/N.", "  ")
    at = f" at delta {buys.delta}" if buys.delta else ""
    also = " (rho itself does not become smaller by sampling, so it is read as an epsilon here)" if buys.delta else ""
    design = plan.design
    apart = ""
    if design.clusters is not None or design.strata is not None:
        what = "clusters" if design.clusters is not None else "strata"
        apart = f" That is for a simple random sample; this design has {what}, with which less is gained or nothing."
    text = (
        f"If a mechanism started at the frame, and drawing the sample were a secret part of it, {buys.sampled:,} of "
        f"{buys.frame:,} units would turn epsilon {_up(buys.on_sample)}{at} on the sample into epsilon "
        f"{_up(buys.on_frame)} on the frame{also}.{apart} For these nothing is gained, and epsilon stays "
        f"{_up(buys.on_sample)}: {'; '.join(buys.vanishes_for)} (section 6.5.1)."
    )
    return head + _filled_lines(text, "  ") + "\n" + refused


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
            f"error at worst falls from {_up(now.cell_error)} to {_up(best.cell_error)}."
        )
        text = (
            f"For a cell of the query {query.name if query else ''}, taking the weights to add up to at most the "
            f"population of {near(plan.sample.population or Fraction(0)):,.0f}. Bias at worst is over all samples that "
            f"the plan allows, so that the true bias is mostly smaller; sampling error is not in it. {advice} If "
            "groups have few records, or the weights themselves are public, more can be said: stirred docs weights."
        )
        rows = "\n".join(f"  {line}" for line in trade.table().splitlines()[1:] if line.strip() != "shrunk by")
        return head + _filled_lines(text, "  ") + "\n" + rows
    low, high = plan.stratum_weights()
    if low == high:
        return head + "  Nothing: all weights are equal."
    if weights_may_move(plan):
        return head + _filled_lines(_moving(plan), "  ")
    if _largest_query(plan, of) is None:
        return head + _filled_lines(f"Not computed: the plan has no query of {of or 'weighted counts'}.", "  ")
    return head + _filled_lines(
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


def _filled_lines(text: str, indent: str = "", then: str | None = None) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=indent, subsequent_indent=indent if then is None else then)


def _digits_shown(value: float) -> str:
    return f"{Decimal(significant(value, 4)):,f}" if math.isfinite(value) else "infinite"


def _up(value: float) -> str:
    return f"{Decimal(significant(value, 3)):,f}"
