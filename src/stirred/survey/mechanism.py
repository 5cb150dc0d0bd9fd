"""Weighted survey estimates with exact noise, as one of the package's mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stirred._lazy import function_later
from stirred.releases.mechanism import FORM_OPTIONS, AnalystNote, CustodianNote, Data, Mechanism, Option, Verb, measures

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred.estimates import Answers
    from stirred.noise import RandomSource
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.releases.mechanism import AuditPair, Release
    from stirred.releases.verdicts import Verdict
    from stirred.semantics.targets import Calibration, Target
    from stirred.spec import Specification
    from stirred.survey.checking.plan_check import SurveyCheck
    from stirred.survey.documents import SurveyRelease
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

    @property
    def plan_type(self) -> type[SurveyPlan]:
        from stirred.survey.plan.fields import SurveyPlan

        return SurveyPlan

    def draft(self, file: Path, folder: Path, **options: Any) -> str:
        from stirred.survey.plan.draft import draft_plan

        return draft_plan(file, folder=folder, **options)

    def specify(self, plan: SurveyPlan) -> Specification:
        from stirred.survey.plan.guarantee import specify

        return specify(plan)

    def inputs(self, plan: SurveyPlan, data: Data | None = None) -> dict[str, Data]:
        from stirred.survey.data import inputs

        return inputs(plan, data)

    def check(self, plan: SurveyPlan, data: Data | None = None, **options: Any) -> SurveyCheck:
        from stirred.survey.checking.plan_check import check

        return check(plan, data, **options)

    def draw(
        self,
        plan: SurveyPlan,
        data: Data | None = None,
        *,
        folder: Path | None = None,
        keep_truth: bool = False,
        source: RandomSource | None = None,
    ) -> SurveyRelease:
        from stirred.survey.drawing import draw

        return draw(plan, data, keep_truth=keep_truth, source=source)

    def for_analysts(self, release: ReleaseFolder) -> Sequence[AnalystNote]:
        from stirred.survey.documents import for_analysts

        return tuple(for_analysts(release))

    def verify(self, release: ReleaseFolder) -> list[Verdict]:
        from stirred.survey.verifying import recount

        return recount(release)

    def tabulate(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> pa.Table:
        from stirred.survey.verifying import tabulate_release

        return tabulate_release(release, by, table)

    def place_units(self, release: ReleaseFolder, table: str | None = None) -> dict[str, pa.Array | None]:
        from stirred.survey.verifying import place_units

        return place_units(release)

    def tabulate_note(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> str:
        from stirred.survey.estimating.questions import answered_only
        from stirred.survey.plan.fields import SurveyPlan

        said = (
            "Estimates of weighted sums, without intervals and with noise; stirred estimate gives them with standard "
            "errors, and means, shares and quantiles."
        )
        return f"{said} {answered_only(SurveyPlan.from_published(release.certificate['plan']))}".rstrip()

    def estimate(self, release: str | Path, **options: Any) -> Answers:
        from stirred.survey.estimating.questions import estimate

        return estimate(release, **options)

    def calibrate(
        self, plan: SurveyPlan, targets: Sequence[Target], data: Data | None = None, **options: Any
    ) -> Calibration:
        from stirred.survey.plan.budget import calibrate

        return calibrate(plan, targets, **options)

    def audit_pairs(self, plan: SurveyPlan) -> list[AuditPair]:
        from stirred.survey.audit_pairs import audit_pairs

        return audit_pairs(plan)

    def for_custodian(
        self, release: ReleaseFolder, plan: SurveyPlan, data: Data | None = None
    ) -> Sequence[CustodianNote]:
        from stirred.survey.checking.comparison import for_custodian

        return tuple(for_custodian(release, plan, data))

    def prepare_demo(self, folder: Path) -> SurveyPlan:
        from stirred.survey.demo import prepare

        return prepare(folder)

    def show_demo(self, folder: Path, made: Release, began: float) -> None:
        from stirred.survey.demo import show

        show(folder, made, began)


MECHANISM = Survey()
