"""The TopDown Algorithm as one of the package's mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stirred import errors
from stirred.releases.mechanism import FORM_OPTIONS, PLACE, REGRESS, Data, Mechanism, Option, Verb, measures, places

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred.estimates import Answers, Estimates
    from stirred.noise import RandomSource
    from stirred.releases.audit_pairs import AuditPair
    from stirred.releases.ledger import Ledger
    from stirred.releases.progress import Progress
    from stirred.releases.release_folder import ReleaseFolder, Verdict
    from stirred.spec import Specification
    from stirred.spec.allocations import Allocation
    from stirred.topdown.checking import TopDownCheck
    from stirred.topdown.drawing import TopDownDraw
    from stirred.topdown.plan import TopDownPlan

PRESETS = ("pl94-2020", "pl94-units", "teaching")
"""Names of the plans that :func:`stirred.topdown.preset` knows."""


def _sizes(text: str | None) -> list[int] | None:
    """The typed sizes of places."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        raise errors.parameter_out_of_range("--sizes", text, "whole numbers from 0 on with commas between, as 0,5,40")
    return [int(part) for part in parts]


def _population(**options: Any) -> list[str]:
    from stirred.topdown.population import write_population

    return write_population(**options)


class TopDown(Mechanism):
    """TopDown: plan, check, draw into a work folder, finish, verify, tabulate, estimate."""

    name = "topdown"
    title = "TopDown Algorithm"
    keeps_draws = True
    options: ClassVar = {
        "init": (
            Option("--geography", "The public list of places, a column for each level from coarse to fine.",
                   "geography", Path),
            Option("--prefixes", "The levels as prefixes of the finest code, as state=2,county=5,tract: how many "
                   "characters, and last the finest level. By default those of census blocks, for a list of their "
                   "codes.", "prefixes"),
            Option("--dictionary", "A data dictionary with the values of attributes: JSON, or CSV with the columns "
                   "name, value and label.", "dictionary", Path),
            Option("--preset", "Take queries and shares of this built-in plan.", "preset_name", choices=PRESETS),
            Option("--count", "The column with the number of records that a row stands for.", "count"),
            *FORM_OPTIONS,
        ),
        "release": (
            Option(
                "--work",
                "The private folder that holds the draw. If it exists, the release is made from it and nothing is "
                "spent; otherwise it is created and kept. Default: OUT-work, removed once the release is written.",
                "work",
                Path,
            ),
        ),
        "check": (
            Option(
                "--sizes",
                "Typical numbers of records in a finest place, public or guessed, e.g. 0,5,40,150, for the forecast of "
                "bias.",
                "sizes",
                read=_sizes,
            ),
        ),
        "estimate": (
            Option("--level", "Estimate for every unit of this level of the geography.", "level"),
            PLACE,
            Option("--against", "Compare --place with this unit, as level=name; with --difference places, --ratio "
                   "places or --odds-ratio 'places;sex=f,m'. Repeatable: all together are one place.", "against",
                   several=True, read=places),
            *measures("places"),
            REGRESS,
            Option("--predictors", "A CSV or Parquet file with a column named like the level and the columns of "
                   "--regress.", "predictors", Path),
            Option("--no-scatter", "With --regress: take the true numbers to lie on the line exactly.", "no_scatter",
                   bool),
            Option("--nonnegative", "Move ends of intervals that lie below 0 to 0; no coverage is lost by it.",
                   "nonnegative", bool),
            Option("--sources", "With --place: also print the measurements behind the total.", "sources", bool),
        ),
    }  # fmt: skip
    verbs = (
        Verb(
            "population",
            "Generate a census of any size: blocks, persons, housing units, group quarters, and a TopDown plan for "
            "them. Nobody in it is real. The same options give the same rows.",
            (
                Option("OUT", "The folder to write; it must not exist.", "out", Path, argument=True),
                Option("--persons", "How many persons.", "persons", int, default=100_000),
                Option("--seed", "The seed of the generator.", "seed", int, default=1),
                Option("--states", "How many states; by default one for each six million.", "states", int),
                Option("--preset", "The TopDown plan to write beside the tables.", "preset_name", choices=PRESETS,
                       default="pl94-2020"),
            ),
            _population,
        ),
    )  # fmt: skip

    @property
    def plan_type(self) -> type[TopDownPlan]:
        from stirred.topdown.plan import TopDownPlan

        return TopDownPlan

    def draft(self, file: Path, folder: Path, **options: Any) -> str:
        from stirred.topdown.draft import draft_plan

        return draft_plan(file, folder=folder, **options)

    def warm_up(self) -> None:
        from stirred.topdown.compiling import start

        start()

    def specify(self, plan: TopDownPlan) -> Specification:
        from stirred.topdown.specifying import specify

        return specify(plan)

    def check(
        self, plan: TopDownPlan, data: Data | None = None, *, progress: Progress | None = None, **options: Any
    ) -> TopDownCheck:
        from stirred.topdown.checking import check

        return check(plan, data, progress=progress, **options)

    def check_ledger(self, plan: TopDownPlan, ledger: Ledger) -> None:
        from stirred.topdown.earlier import require_counted

        require_counted(plan, ledger)

    def draw(
        self,
        plan: TopDownPlan,
        data: Data | None = None,
        *,
        folder: Path | None = None,
        keep_truth: bool = False,
        source: RandomSource | None = None,
        progress: Progress | None = None,
    ) -> TopDownDraw:
        from stirred.topdown.drawing import draw_into

        if folder is None:
            raise errors.topdown_plan("A draw", "must be kept in a work folder: name one with work=FOLDER")
        return draw_into(folder, plan, data, keep_truth=keep_truth, source=source, progress=progress)

    def reopen(self, plan: TopDownPlan, work: Path) -> TopDownDraw:
        from stirred.topdown.drawing import reopen

        return reopen(plan, work)

    def is_work(self, folder: Path) -> bool:
        from stirred.topdown.work_folder import is_work

        return is_work(folder)

    def paid_entry(self, folder: Path) -> int | None:
        from stirred.topdown.work_folder import paid_entry

        return paid_entry(folder)

    def spend_words(self, plan: TopDownPlan) -> str:
        from stirred.spec.exact import display

        return f"TopDown with rho {display(plan.rho)}, plan {plan.hash()[:12]}"

    def verify(self, release: ReleaseFolder) -> list[Verdict]:
        from stirred.topdown.verifying import recount

        return recount(release)

    def tabulate(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> pa.Table:
        from stirred.topdown.verifying import tabulate_release

        return tabulate_release(release, by, table)

    def estimate(self, release: str | Path, **options: Any) -> Estimates | Answers:
        from stirred.topdown.estimating import estimate

        return estimate(release, **options)

    def allocation(self, release: ReleaseFolder) -> Allocation:
        from stirred.topdown.plan import TopDownPlan

        return TopDownPlan.from_published(release.certificate["plan"]).allocation()

    def audit_pairs(self, plan: TopDownPlan) -> list[AuditPair]:
        from stirred.topdown.audit_pairs import audit_pairs

        return audit_pairs(plan)

    def demo(self, folder: Path) -> None:
        from stirred.topdown.demo import run

        run(folder)


MECHANISM = TopDown()
