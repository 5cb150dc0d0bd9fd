"""The TopDown Algorithm as one of the package's mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stirred import errors
from stirred._lazy import function_later, method_later
from stirred.releases.mechanism import (
    FORM_OPTIONS,
    PLACE,
    PLACE_COLUMN,
    PLACES,
    REGRESS,
    Data,
    Mechanism,
    Option,
    Verb,
    measures,
    places,
)

if TYPE_CHECKING:
    from stirred.estimates import Answers, Estimates
    from stirred.noise import RandomSource
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.spec.known_deployments.allocations import Allocation
    from stirred.topdown.drawing import TopDownDraw
    from stirred.topdown.plan.fields import TopDownPlan

PRESETS = ("pl94-2020", "pl94-units", "teaching")
"""Built-in plans that a draft or a generated census can have: those of :data:`stirred.topdown.plan.presets.NEEDED`
without the seven levels of the DHC plans."""


def _sizes(text: str | None) -> list[int] | None:
    """The sizes of places that were typed after ``--sizes``, as numbers."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        raise errors.parameter_out_of_range("--sizes", text, "whole numbers from 0 on with commas between, as 0,5,40")
    return [int(part) for part in parts]


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
            function_later("stirred.topdown.demo", "write_population"),
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
            function_later("stirred.topdown.data.spine_file", "spine_lines"),
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
            function_later("stirred.topdown.noisy_files.writing", "write_noisy_measurements"),
            example="stirred noisy-measurements release files",
        ),
    )  # fmt: skip

    draft = method_later("stirred.topdown.plan.draft", "draft_plan")
    warm_up = method_later("stirred.topdown.fitting.one_level", "start_compiling")
    specify = method_later("stirred.topdown.plan.guarantee", "specify")
    inputs = method_later("stirred.topdown.data.counting", "inputs")
    check = method_later("stirred.topdown.checking.plan_check", "check")
    check_ledger = method_later("stirred.topdown.data.constraints", "require_counted")
    reopen = method_later("stirred.topdown.drawing", "reopen")
    is_work = method_later("stirred.topdown.measuring", "is_work")
    paid_entry = method_later("stirred.topdown.measuring", "paid_entry")
    reads_measurements = method_later("stirred.topdown.noisy_files.form", "is_noisy_measurements")
    adopt = method_later("stirred.topdown.noisy_files.reading", "adopt")
    readopt = method_later("stirred.topdown.noisy_files.reading", "readopt")
    for_analysts = method_later("stirred.topdown.documents", "for_analysts")
    verify = method_later("stirred.topdown.verifying", "recount")
    tabulate = method_later("stirred.topdown.verifying", "tabulate_release")
    place_units = method_later("stirred.topdown.verifying", "place_units")
    calibrate = method_later("stirred.topdown.plan.budget", "calibrate")
    audit_pairs = method_later("stirred.topdown.audit_pairs", "audit_pairs")
    for_custodian = method_later("stirred.topdown.checking.comparison", "for_custodian")
    prepare_demo = method_later("stirred.topdown.demo", "prepare")
    show_demo = method_later("stirred.topdown.demo", "show")

    @property
    def plan_type(self) -> type[TopDownPlan]:
        from stirred.topdown.plan.fields import TopDownPlan

        return TopDownPlan

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

    def spend_words(self, plan: TopDownPlan) -> str:
        from stirred.spec.exact import display

        return f"TopDown with rho {display(plan.rho)}, plan {plan.hash()[:12]}"

    def tabulate_note(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> str:
        from stirred.topdown.documents import say

        return f"Note: these are counts of released rows. {say('which_values')}"

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


MECHANISM = TopDown()
