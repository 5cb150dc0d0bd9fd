"""The TopDown Algorithm as one of the package's mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stirred import errors
from stirred.releases.mechanism import (
    FORM_OPTIONS,
    PLACE,
    PLACE_COLUMN,
    PLACES,
    REGRESS,
    AnalystNote,
    CustodianNote,
    Data,
    Mechanism,
    Option,
    Verb,
    measures,
    places,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred.estimates import Answers, Estimates
    from stirred.noise import RandomSource
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.releases.ledger.ledger import Ledger
    from stirred.releases.mechanism import AuditPair, Release
    from stirred.releases.verdicts import Verdict
    from stirred.semantics.targets import Calibration, Target
    from stirred.spec import Specification
    from stirred.spec.known_deployments.allocations import Allocation
    from stirred.topdown.checking.plan_check import TopDownCheck
    from stirred.topdown.drawing import TopDownDraw
    from stirred.topdown.plan.fields import TopDownPlan

PRESETS = ("pl94-2020", "pl94-units", "teaching")
"""Built-in plans that a draft or a generated census can have: those of :data:`stirred.topdown.plan.presets.NEEDED`
without the seven levels of the DHC plans."""


def _sizes(text: str | None) -> list[int] | None:
    """The typed sizes of places."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        raise errors.parameter_out_of_range("--sizes", text, "whole numbers from 0 on with commas between, as 0,5,40")
    return [int(part) for part in parts]


def _population(**options: Any) -> list[str]:
    from stirred.topdown.demo import write_population

    return write_population(**options)


def _spine(**options: Any) -> list[str]:
    from stirred.topdown.data.spine_file import spine_lines

    return spine_lines(**options)


def _noisy_measurements(**options: Any) -> list[str]:
    from stirred.topdown.noisy_files.writing import write_noisy_measurements

    return write_noisy_measurements(**options)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


READING = (
    Option("--states", "Read only these states, by their codes, such as 44,25. Default: all that are there.", "states",
           read=_listed, of_measurements=True),
    Option("--down-to", "Read only this level and those above it, such as tract. Default: all levels.", "down_to",
           of_measurements=True),
    Option("--nation", "Also use the measurements of the nation; only if the files of all states are there.",
           "nation", bool, of_measurements=True),
    Option("--totals",
           "A CSV file with published totals of states, used as exact: columns state and total.",
           "totals", Path, of_measurements=True),
)  # fmt: skip
"""Options for reading noisy measurement files."""


class TopDown(Mechanism):
    """TopDown: plan, check, draw into a work folder, finish, verify, tabulate, estimate."""

    name = "topdown"
    title = "TopDown Algorithm"
    keeps_draws = True
    options: ClassVar = {
        "init": (
            Option("--geography",
                   "A file with the public list of all places: a column for each level, from the largest areas to "
                   "the smallest.",
                   "geography", Path),
            Option("--prefixes", "Levels that are the first characters of the smallest area's code, such as "
                   "state=2,county=5,tract: the number of characters of each, and last the smallest level. Default: "
                   "those of census blocks, if the list has their codes.", "prefixes"),
            Option("--dictionary",
                   "A data dictionary with the possible values of each attribute: JSON, or CSV with the "
                   "columns name, value and label.", "dictionary", Path),
            Option("--preset",
                   "Copy the queries and the division of the budget from this built-in plan.",
                   "preset_name", choices=PRESETS),
            Option("--count",
                   "The column with the number of records for which a row stands. Default: a row is one record.",
                   "count"),
            *FORM_OPTIONS,
        ),
        "release": (
            Option(
                "--work",
                "The private folder for the noisy measurements. If it exists, the release is made from it and no "
                "budget is spent; otherwise it is made, and kept. Default: OUT-work, removed once the release is "
                "written.",
                "work",
                Path,
            ),
            *READING,
        ),
        "calibrate": (
            Option("--rho",
                   "Divide this budget as well as possible, or with 'plan' the budget of the plan. Default: find the "
                   "smallest budget that keeps all limits.",
                   "rho"),
            Option("--goal", "With --rho: what to make small, of the ratios of each variance to its limit (times its "
                   "weight): the largest (worst), or their sum. Default: worst.", "goal", choices=("worst", "sum")),
            Option("--least",
                   "The share of its table's budget, such as 1/5000, that every measured query gets at least "
                   "at every level. Default: 5% of the budget is divided equally.", "least"),
        ),
        "check": (
            Option(
                "--sizes",
                "Typical numbers of records in the smallest areas, public or guessed, such as 0,5,40,150, from which "
                "the bias of small counts is forecast. Default: a third empty, the others 40 on average, or as an "
                "invariant implies.",
                "sizes",
                read=_sizes,
            ),
        ),
        "estimate": (
            Option("--level", "Estimate for every unit of this level of the geography, such as county.", "level"),
            PLACE,
            PLACES,
            PLACE_COLUMN,
            Option("--tabulated",
                   "Estimate for every area of this kind, put together from blocks by their codes: state, "
                   "county, tract, block_group or block.", "tabulated"),
            Option("--blocks",
                   "Estimate for the areas in this CSV or Parquet file: a column block with codes of blocks or "
                   "their first digits, and a column area if there are several areas.", "blocks", Path),
            Option("--against", "Compare --place with this unit, such as county=44007; goes with --difference places, "
                   "--ratio places or --odds-ratio 'places;sex=f,m'. Repeatable: all units together are one place. "
                   "With --places and no --place, every place of the file is compared with it.", "against",
                   several=True, read=places),
            *measures("places"),
            REGRESS,
            Option("--predictors",
                   "With --regress: a CSV or Parquet file with the predictors, and a column named like the "
                   "level with the names of units.", "predictors", Path),
            Option("--no-scatter",
                   "With --regress: assume that the true numbers lie exactly on the fitted line. Default: that "
                   "they scatter around it.", "no_scatter",
                   bool),
            Option("--nonnegative",
                   "Raise ends of intervals that are below 0 to 0. Intervals of counts lose no coverage by it.",
                   "nonnegative", bool),
            Option("--sources",
                   "With --place: also print the measurements from which the total is estimated.", "sources", bool),
            *READING,
        ),
    }  # fmt: skip
    verbs = (
        Verb(
            "population",
            "Generate an invented census of any size: blocks, persons, housing units, group quarters, and a TopDown "
            "plan for them. The same options give the same rows.",
            (
                Option("OUT", "The folder to write; it must not exist yet.", "out", Path, argument=True),
                Option("--persons", "The number of persons.", "persons", int, default=100_000),
                Option("--seed",
                       "The seed of the random numbers: the same seed gives the same rows.", "seed", int, default=1),
                Option("--states", "The number of states. Default: one for each six million persons.", "states", int),
                Option("--preset",
                       "The built-in TopDown plan to write beside the tables.", "preset_name", choices=PRESETS,
                       default="pl94-2020"),
            ),
            _population,
            example="stirred population country --persons 100000",
        ),
        Verb(
            "spine",
            "Propose a spine, the nested areas that a TopDown plan measures, on which districts, precincts or places "
            "become accurate: from a public list of blocks, write the list of areas for the plan, and print of how "
            "many measured areas each district consists before and after. No confidential data are read.",
            (
                Option("--blocks",
                       "Required: the public list of blocks, one row for each, with columns for its levels and areas.",
                       "blocks", Path),
                Option("--targets", "Required: the columns with areas that should become accurate, such as "
                       "places,districts, whose intersections become one level; districts/places makes a level of "
                       "each. An empty cell means that the block is in no such area.",
                       "targets"),
                Option("--levels", "The levels, from the largest areas to blocks. With numbers, as in "
                       "state=2,county=5,block, the first characters of the block's code. Default: those of state, "
                       "county, tract, block_group and block that are columns of the list.", "levels"),
                Option("--inside",
                       "The level below which new areas are made. Default: the second of four or more levels, "
                       "else the first.", "inside"),
                Option("--groups", "The level just above blocks: parts of the administrative areas, or even groups of "
                       "blocks in the same areas, as the optimised block groups of the 2020 Census.",
                       "groups", choices=("parts", "even"), default="parts"),
                Option("--fan-out",
                       "With --groups even: a group has at most sqrt(n) + this number + 1 blocks, where n is "
                       "the number of blocks to be divided.", "fan_out", int, default=12),
                Option("--null",
                       "A text, such as NA, that means the same as an empty cell. Repeatable.", "null", several=True),
                Option("--out", "Write the list of areas to this new file (.csv, .parquet or .arrow).", "out", Path),
                Option("--json", "Print the result as JSON; stirred docs json lists its fields.", "as_json", bool),
            ),
            _spine,
            example="stirred spine --blocks blocks.csv --targets places,districts --out geography.csv",
        ),
        Verb(
            "noisy-measurements",
            "Write the noisy measurements of a TopDown release in the file format of the Census Bureau's noisy "
            "measurement files.",
            (
                Option("RELEASE", "A TopDown release folder, or the folder of its measurements.", "release", Path,
                       argument=True),
                Option("OUT", "The folder to write; it must not exist yet.", "out", Path, argument=True),
            ),
            _noisy_measurements,
            example="stirred noisy-measurements release files",
        ),
    )  # fmt: skip

    @property
    def plan_type(self) -> type[TopDownPlan]:
        from stirred.topdown.plan.fields import TopDownPlan

        return TopDownPlan

    def draft(self, file: Path, folder: Path, **options: Any) -> str:
        from stirred.topdown.plan.draft import draft_plan

        return draft_plan(file, folder=folder, **options)

    def warm_up(self) -> None:
        from stirred.topdown.fitting.one_level import start_compiling

        start_compiling()

    def specify(self, plan: TopDownPlan) -> Specification:
        from stirred.topdown.plan.guarantee import specify

        return specify(plan)

    def inputs(self, plan: TopDownPlan, data: Data | None = None) -> dict[str, Data]:
        from stirred.topdown.data.counting import inputs

        return inputs(plan, data)

    def check(self, plan: TopDownPlan, data: Data | None = None, **options: Any) -> TopDownCheck:
        from stirred.topdown.checking.plan_check import check

        return check(plan, data, **options)

    def check_ledger(self, plan: TopDownPlan, ledger: Ledger) -> None:
        from stirred.topdown.data.constraints import require_counted

        require_counted(plan, ledger)

    def draw(
        self,
        plan: TopDownPlan,
        data: Data | None = None,
        *,
        folder: Path | None = None,
        keep_truth: bool = False,
        source: RandomSource | None = None,
    ) -> TopDownDraw:
        from stirred.topdown.drawing import draw_into

        if folder is None:
            raise errors.topdown_plan("A draw", "must be kept in a work folder: name one with work=FOLDER")
        return draw_into(folder, plan, data, keep_truth=keep_truth, source=source)

    def reopen(self, plan: TopDownPlan, work: Path) -> TopDownDraw:
        from stirred.topdown.drawing import reopen

        return reopen(plan, work)

    def is_work(self, folder: Path) -> bool:
        from stirred.topdown.measuring import is_work

        return is_work(folder)

    def paid_entry(self, folder: Path) -> int | None:
        from stirred.topdown.measuring import paid_entry

        return paid_entry(folder)

    def reads_measurements(self, folder: Path) -> bool:
        from stirred.topdown.noisy_files.form import is_noisy_measurements

        return is_noisy_measurements(folder)

    def adopt(self, measurements: Path, folder: Path, **options: Any) -> TopDownDraw:
        from stirred.topdown.noisy_files.reading import adopt

        return adopt(measurements, folder, **options)

    def readopt(self, measurements: Path, work: Path, **options: Any) -> TopDownDraw:
        from stirred.topdown.noisy_files.reading import readopt

        return readopt(measurements, work, **options)

    def for_analysts(self, release: ReleaseFolder) -> Sequence[AnalystNote]:
        from stirred.topdown.documents import for_analysts

        return tuple(for_analysts(release))

    def spend_words(self, plan: TopDownPlan) -> str:
        from stirred.spec.exact import display

        return f"TopDown with rho {display(plan.rho)}, plan {plan.hash()[:12]}"

    def verify(self, release: ReleaseFolder) -> list[Verdict]:
        from stirred.topdown.verifying import recount

        return recount(release)

    def tabulate(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> pa.Table:
        from stirred.topdown.verifying import tabulate_release

        return tabulate_release(release, by, table)

    def tabulate_note(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> str:
        from stirred.topdown.documents import say

        return f"Note: these are counts of released rows. {say('which_values')}"

    def place_units(self, release: ReleaseFolder, table: str | None = None) -> dict[str, pa.Array | None]:
        from stirred.topdown.verifying import place_units

        return place_units(release, table)

    def estimate(self, release: str | Path, **options: Any) -> Estimates | Answers:
        from stirred.topdown.estimating.questions import estimate

        reading = {one.keyword: options.pop(one.keyword) for one in READING if one.keyword in options}
        if self.reads_measurements(Path(release)):
            from stirred.topdown.noisy_files.reading import open_noisy_measurements

            return estimate(open_noisy_measurements(release, **reading), **options)
        if reading:
            raise errors.noisy_question(
                "--states, --down-to, --nation and --totals", "are for folders of noisy measurement files"
            )
        return estimate(release, **options)

    def allocation(self, release: ReleaseFolder) -> Allocation:
        from stirred.topdown.plan.fields import TopDownPlan

        return TopDownPlan.from_published(release.certificate["plan"]).allocation()

    def calibrate(
        self, plan: TopDownPlan, targets: Sequence[Target], data: Data | None = None, **options: Any
    ) -> Calibration:
        from stirred.topdown.plan.budget import calibrate

        return calibrate(plan, targets, data, **options)

    def audit_pairs(self, plan: TopDownPlan) -> list[AuditPair]:
        from stirred.topdown.audit_pairs import audit_pairs

        return audit_pairs(plan)

    def for_custodian(
        self, release: ReleaseFolder, plan: TopDownPlan, data: Data | None = None
    ) -> Sequence[CustodianNote]:
        from stirred.topdown.checking.comparison import for_custodian

        return tuple(for_custodian(release, plan, data))

    def prepare_demo(self, folder: Path) -> TopDownPlan:
        from stirred.topdown.demo import prepare

        return prepare(folder)

    def show_demo(self, folder: Path, made: Release, began: float) -> None:
        from stirred.topdown.demo import show

        show(folder, made, began)


MECHANISM = TopDown()
