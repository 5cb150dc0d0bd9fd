"""Weighted survey estimates with exact noise, as one of the package's mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from stirred._lazy import function_later, method_later
from stirred.releases.mechanism import FORM_OPTIONS, Mechanism, Option, Verb, measures

if TYPE_CHECKING:
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.survey.plan.fields import SurveyPlan


class Survey(Mechanism):
    """Surveys: plan, check, draw, verify, tabulate, estimate, and advice for a committee."""

    name = "survey"
    title = "weighted survey estimates with exact noise"
    options: ClassVar = {
        "init": FORM_OPTIONS,
        "estimate": (
            Option("--kind",
                   "What to estimate. Default: it follows from the other options; a count if there are none.", "kind",
                   choices=("count", "total", "mean", "proportion", "ratio", "quantiles")),
            Option("--of",
                   "The variable to estimate; for quantiles, the attribute that groups it into intervals.", "of"),
            Option("--over", "With --kind ratio: the variable in the denominator.", "over"),
            Option("--quantiles",
                   "Estimate quantiles of --of at these probabilities, such as 0.1,0.5,0.9.", "probabilities",
                   read=function_later("stirred.survey.estimating.questions", "as_probabilities")),
            Option("--calibration",
                   "Adjust to public totals: the name of a calibration in the plan. Default: no adjustment.",
                   "calibration"),
            *(one for one in measures() if one.name in ("--share", "--difference")),
        ),
    }  # fmt: skip
    instead: ClassVar = {
        "ratio": "The ratio of two variables is asked for with 'of' and 'over' (--of income --over hours), one group "
        "less another with 'difference' (--by sex --difference sex=f,m).",
    }
    verbs = (
        Verb(
            "advise",
            "Say where the guarantee of a survey can start (population, frame, sample or responses; ten settings): "
            "what each protects, how much noise it costs, whether sampling lowers the privacy loss, and which one is "
            "recommended. A page for a committee. Reads no data.",
            (
                Option("PLAN", "The survey plan, a TOML file.", "plan", Path, argument=True),
                Option("--of", "Advise on totals of this variable. Default: on weighted counts.", "of"),
                Option("--sampled",
                       "Also print by how much sampling would lower the privacy loss, if who is sampled stayed "
                       "secret: the numbers of sampled units and of units in the frame, such as 1000/250000.",
                       "sampled"),
                Option("--figures", "Also save a figure into this new folder: bias and noise by the largest weight.",
                       "figures", Path),
                Option("--paper", "With --figures: draw for papers, without titles, as PDF and SVG in the widths of "
                       "one and two columns.", "paper", bool),
                Option("--json", "Print the result as JSON; stirred docs json lists its fields.", "as_json", bool),
            ),
            function_later("stirred.survey.advice", "advise_lines"),
            function_later("stirred.survey.advice", "advice_pictures"),
            example="stirred advise survey.toml",
        ),
        Verb(
            "generate-survey",
            "Generate an invented survey, with strata, clusters, nonresponse and replicate weights, and a survey plan "
            "for it. The same options give the same rows.",
            (
                Option("OUT", "The folder to write; it must not exist yet.", "out", Path, argument=True),
                Option("--persons",
                       "The number of persons in the frame from which the sample is drawn.",
                       "persons", int, default=100_000),
                Option("--seed",
                       "The seed of the random numbers: the same seed gives the same rows.", "seed", int, default=1),
                Option("--design", "The sampling design.", "design",
                       choices=("simple", "stratified", "two-stage", "poisson"), default="two-stage"),
            ),
            function_later("stirred.survey.demo", "write_lines"),
            example="stirred generate-survey survey --persons 20000",
        ),
    )  # fmt: skip

    draft = method_later("stirred.survey.plan.draft", "draft_plan")
    specify = method_later("stirred.survey.plan.guarantee", "specify")
    inputs = method_later("stirred.survey.data", "inputs")
    check = method_later("stirred.survey.checking.plan_check", "check")
    draw = method_later("stirred.survey.drawing", "draw")
    for_analysts = method_later("stirred.survey.documents", "for_analysts")
    verify = method_later("stirred.survey.verifying", "recount")
    tabulate = method_later("stirred.survey.verifying", "tabulate_release")
    place_units = method_later("stirred.survey.verifying", "place_units")
    estimate = method_later("stirred.survey.estimating.questions", "estimate")
    calibrate = method_later("stirred.survey.plan.budget", "calibrate")
    audit_pairs = method_later("stirred.survey.audit_pairs", "audit_pairs")
    for_custodian = method_later("stirred.survey.checking.comparison", "for_custodian")
    prepare_demo = method_later("stirred.survey.demo", "prepare")
    show_demo = method_later("stirred.survey.demo", "show")

    @property
    def plan_type(self) -> type[SurveyPlan]:
        from stirred.survey.plan.fields import SurveyPlan

        return SurveyPlan

    def tabulate_note(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> str:
        from stirred.survey.estimating.questions import answered_only
        from stirred.survey.plan.fields import SurveyPlan

        said = (
            "Estimates of weighted sums, without intervals and with noise; stirred estimate gives them with standard "
            "errors, and means, shares and quantiles."
        )
        return f"{said} {answered_only(SurveyPlan.from_published(release.certificate['plan']))}".rstrip()


MECHANISM = Survey()
