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
    from stirred.releases.audit_pairs import AuditPair
    from stirred.releases.document_writer import DocumentWriter
    from stirred.releases.ledger import Ledger
    from stirred.releases.progress import Progress
    from stirred.releases.release_folder import ReleaseFolder, Verdict
    from stirred.semantics.calibration import Calibration
    from stirred.semantics.targets import Target
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


def _spine(**options: Any) -> list[str]:
    from stirred.topdown.spine_file import spine_lines

    return spine_lines(**options)


def _noisy_measurements(**options: Any) -> list[str]:
    from stirred.topdown.nmf_writing import write_noisy_measurements

    return write_noisy_measurements(**options)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


READING = (
    Option("--states", "Of noisy measurement files: read these states only, by code, e.g. 44,25.", "states",
           read=_listed, of_measurements=True),
    Option("--down-to", "Of noisy measurement files: read down to this level only, e.g. tract.", "down_to",
           of_measurements=True),
    Option("--nation", "Of noisy measurement files: every state is there, so use the nation's measurements too.",
           "nation", bool, of_measurements=True),
    Option("--totals", "Of noisy measurement files: a CSV file with the columns state and total, published totals of "
           "states.", "totals", Path, of_measurements=True),
)  # fmt: skip
"""Options for reading noisy measurement files."""


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
            *READING,
        ),
        "calibrate": (
            Option("--rho", "Divide this budget, or with 'plan' the plan's own, in place of looking for the smallest.",
                   "rho"),
            Option("--goal", "What is best where --rho is given: the smallest worst quotient of a variance and its "
                   "limit, or the smallest sum of them, each times its weight.", "goal", choices=("worst", "sum")),
            Option("--least", "The share of its table's budget that every measured query keeps at every level. "
                   "Default: a twentieth of the budget is divided equally.", "least"),
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
            PLACES,
            PLACE_COLUMN,
            Option("--tabulated", "Estimate for every published area of this kind, by the codes of blocks: state, "
                   "county, tract, block_group or block.", "tabulated"),
            Option("--blocks", "Estimate for areas in this CSV or Parquet file: a column block with published codes of "
                   "blocks or their first digits, and a column area if there are several.", "blocks", Path),
            Option("--against", "Compare --place with this unit, as level=name; with --difference places, --ratio "
                   "places or --odds-ratio 'places;sex=f,m'. Repeatable: all together are one place. With --places and "
                   "no --place, every place of the file is compared with it.", "against",
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
            *READING,
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
            example="stirred population country --persons 100000",
        ),
        Verb(
            "spine",
            "Propose a spine that serves districts, precincts and other areas off the administrative one, from a "
            "public list of blocks: write the list of geounits for a TopDown plan, and print how many units each sort "
            "of area takes before and after. No count is read.",
            (
                Option("--blocks", "The public list of blocks, a row for each: columns for levels and areas.",
                       "blocks", Path),
                Option("--targets", "Columns with the areas to serve, such as places,districts: their intersections "
                       "are one level. Districts/places gives each a level of its own. An empty cell is no area.",
                       "targets"),
                Option("--levels", "The levels, coarsest first and blocks last. Default: those of state, county, "
                       "tract, block_group, block that the list has. With lengths, as in state=2,county=5,block, they "
                       "are prefixes of the last.", "levels"),
                Option("--inside", "The level whose units are divided. Default: the second of four or more, else the "
                       "first.", "inside"),
                Option("--groups", "The last level above the blocks: parts of the administrative units, or even "
                       "groups of blocks that lie in the same areas, the optimised block groups of the 2020 Census.",
                       "groups", choices=("parts", "even"), default="parts"),
                Option("--fan-out", "With --groups even: at most the root of the number of blocks plus this plus one "
                       "in a group.", "fan_out", int, default=12),
                Option("--null", "A text that stands for no area, such as NA. Repeatable.", "null", several=True),
                Option("--out", "Write the list of geounits to this new file (.csv, .parquet or .arrow).", "out", Path),
                Option("--json", "Print JSON.", "as_json", bool),
            ),
            _spine,
            example="stirred spine --blocks blocks.csv --targets places,districts --out geography.csv",
        ),
        Verb(
            "noisy-measurements",
            "Write the measurements of a TopDown release in the form in which the Census Bureau published its noisy "
            "measurement files.",
            (
                Option("RELEASE", "A release folder, or the folder of its measurements.", "release", Path,
                       argument=True),
                Option("OUT", "The folder to write; it must not exist.", "out", Path, argument=True),
            ),
            _noisy_measurements,
            example="stirred noisy-measurements release files",
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

    def reads_measurements(self, folder: Path) -> bool:
        from stirred.topdown.nmf_form import is_noisy_measurements

        return is_noisy_measurements(folder)

    def adopt(
        self, measurements: Path, folder: Path, *, progress: Progress | None = None, **options: Any
    ) -> TopDownDraw:
        from stirred.topdown.nmf_adopting import adopt

        return adopt(measurements, folder, progress=progress, **options)

    def readopt(self, measurements: Path, work: Path, **options: Any) -> TopDownDraw:
        from stirred.topdown.nmf_adopting import readopt

        return readopt(measurements, work, **options)

    def for_analysts(self, release: ReleaseFolder) -> Sequence[AnalystNote]:
        from stirred.topdown.for_analysts import for_analysts

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

    def place_units(self, release: ReleaseFolder, table: str | None = None) -> dict[str, pa.Array | None]:
        from stirred.topdown.verifying import place_units

        return place_units(release, table)

    def estimate(self, release: str | Path, **options: Any) -> Estimates | Answers:
        from stirred.topdown.estimating import estimate

        reading = {one.keyword: options.pop(one.keyword) for one in READING if one.keyword in options}
        if self.reads_measurements(Path(release)):
            from stirred.topdown.nmf_reading import open_noisy_measurements

            return estimate(open_noisy_measurements(release, **reading), **options)
        if reading:
            raise errors.noisy_question(
                "--states, --down-to, --nation and --totals", "are for folders of noisy measurement files"
            )
        return estimate(release, **options)

    def allocation(self, release: ReleaseFolder) -> Allocation:
        from stirred.topdown.plan import TopDownPlan

        return TopDownPlan.from_published(release.certificate["plan"]).allocation()

    def calibrate(
        self,
        plan: TopDownPlan,
        targets: Sequence[Target],
        data: Data | None = None,
        *,
        progress: Progress | None = None,
        **options: Any,
    ) -> Calibration:
        from stirred.topdown.calibrating import calibrate

        return calibrate(plan, targets, data, progress=progress, **options)

    def audit_pairs(self, plan: TopDownPlan) -> list[AuditPair]:
        from stirred.topdown.audit_pairs import audit_pairs

        return audit_pairs(plan)

    def for_custodian(
        self, release: ReleaseFolder, plan: TopDownPlan, data: Data | None = None, *, progress: Progress | None = None
    ) -> Sequence[CustodianNote]:
        from stirred.releases.progress import Silent
        from stirred.topdown.for_custodian import for_custodian

        return tuple(for_custodian(release, plan, data, progress or Silent()))

    def demo(self, folder: Path, documents: DocumentWriter | None = None) -> None:
        from stirred.topdown.demo import run

        run(folder, documents)


MECHANISM = TopDown()
