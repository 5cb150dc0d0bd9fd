"""The Permutation Swapping Algorithm as one of the package's mechanisms."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stirred import errors
from stirred._lazy import method_later
from stirred.releases.mechanism import (
    FORM_OPTIONS,
    PLACE,
    REGRESS,
    Data,
    Mechanism,
    Option,
    measures,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred.noise import RandomSource
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.spec import Specification
    from stirred.swap.drawing import SwapRelease
    from stirred.swap.plan.fields import SwapPlan


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _candidate(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """``match=state,size;swap=county`` as match and swap variables."""
    written = [part.partition("=") for part in text.split(";")]
    parts = {role.strip(): _names(columns) for role, _, columns in written}
    used = [name for columns in parts.values() for name in columns]
    unclear = len(parts) < len(written) or bool(set(parts) - {"match", "swap"}) or len(set(used)) < len(used)
    if unclear or not parts.get("swap"):
        raise errors.bad_candidate(text)
    return parts.get("match", ()), parts["swap"]


def _table(text: str) -> dict[str, Any]:
    """``county,sex;table=persons;weight=w`` as columns and what is counted; a semicolon elsewhere belongs to a name."""
    fields: dict[str, Any] = {}
    while (found := re.fullmatch(r"(.+);\s*(table|sum|weight)\s*=\s*([^;]+?)\s*", text)) and found[2] not in fields:
        text, fields[found[2]] = found[1], found[3]
    return {"by": _names(text)} | fields


def _references(given: Sequence[str]) -> dict[str, str]:
    """``county=Suffolk`` as a column and a value of it."""
    pairs = [tuple(part.strip() for part in text.partition("=")) for text in given]
    for text, (column, _, value) in zip(given, pairs, strict=True):
        if not (column and value):
            raise errors.estimate_question(f"The --reference {text!r}", "must be written as column=value")
    return {column: value for column, _, value in pairs}


def _moved(epsilon: float) -> None:
    raise errors.moved_to_calibrate("--epsilon", f"epsilon <= {epsilon:g}")


_ALLOW = Option(
    "--allow",
    "Do not refuse for this reason, by the name that the check prints, such as few-change. Repeatable.",
    "allow",
    several=True,
    of_plan=True,
)


class Swapping(Mechanism):
    """Permutation swapping: plan, check, draw, verify, tabulate, estimate."""

    name = "swap"
    title = "Permutation Swapping Algorithm"
    options: ClassVar = {
        "init": (
            Option("--linked",
                   "A second table whose rows belong to records of FILE, such as the persons of households.",
                   "linked", Path),
            *FORM_OPTIONS,
            Option(
                "--look",
                "Also look at the cells, to propose types of columns and where empty cells are allowed. The plan "
                "then says that types and formats were looked at; the guarantee holds given them.",
                "look_at_cells",
                bool,
            ),
            Option(
                "--flat-id",
                "For a FILE with a row for each person in which columns of the household are repeated: the column "
                "with the household's id. Households are swapped, and the release has a row for each person again, "
                "in a file of the form of FILE (of .sas7bdat: Parquet). Default: a column that is called like an id, "
                "if it repeats and other columns repeat with it.",
                "flat_id",
            ),
            Option(
                "--repeated",
                "With --flat-id: the columns of the household, such as county,tenure. Default: those that are the same "
                "in all rows with the same id.",
                "repeated",
                read=_names,
            ),
        ),
        "check": (
            Option(
                "--by",
                "Also print how accurate a table of counts by these columns would be, such as county,tenure. Of linked "
                "rows: 'county,sex;table=persons'; sums: 'county;sum=income'; weighted: 'county;weight=w'. "
                "Repeatable.",
                "tables",
                several=True,
                read=lambda given: [_table(text) for text in given],
            ),
            Option(
                "--uniques",
                "Also print how many records are unique on these columns, and how many of them are expected to keep "
                "all their swap values, such as tenure,type. Of linked rows: 'age,sex,tenure;table=persons'. "
                "Repeatable.",
                "uniques",
                several=True,
                read=lambda given: [_table(text) for text in given],
            ),
            Option("--rates", "Also print epsilon at these swap rates, such as 0.01,0.05,0.5.", "rates", read=_names),
            Option(
                "--candidate",
                "Also print epsilon and what would be revealed with these variables, such as "
                "'match=state,size;swap=county'. Repeatable.",
                "candidates",
                several=True,
                read=lambda given: [_candidate(text) for text in given],
            ),
            Option("--ledger",
                   "Also print what the earlier swaps of this ledger and this one allow together: a file, or "
                   "postgresql://USER@HOST/DATABASE.", "ledger"),
            Option("--epsilon",
                   "No longer here: type stirred calibrate PLAN --target 'epsilon <= 5'.", "wanted_epsilon", float,
                   read=_moved),
            _ALLOW,
        ),
        "release": (_ALLOW,),
        "calibrate": (
            Option("--largest-stratum",
                   "The size of the largest stratum (records with equal match variables), if it is public: no data "
                   "are then read, and the answer is public. Default: counted in the data.", "largest_stratum", int),
        ),
        "report": (
            Option("--largest-stratum",
                   "With a plan: the size of its largest stratum (records with equal match variables), "
                   "if it is public; no data are read to find it.",
                   "largest_stratum", int),
        ),
        "estimate": (
            Option("--level", "Estimate for every unit of this level of the geography, such as county.", "level"),
            PLACE,
            *measures(),
            REGRESS,
            Option("--target", "With --regress: whether coefficients are those of the population of which the file is "
                   "a sample, or of the file before the swap. Default: population.",
                   "target", choices=("population", "file")),
            Option("--reference",
                   "With --regress: the value with which the other values of a column are compared, such "
                   "as county=Suffolk. Default: the first. Repeatable.", "reference", several=True, read=_references),
            Option("--category", "With --regress: use this column of numbers as categories. Repeatable.",
                   "categories", several=True),
            Option("--robust", "With --regress: use standard errors that allow the variance of the outcome to differ "
                   "between records. Always so for an outcome of two values.", "robust", bool),
        ),
    }  # fmt: skip

    draft = method_later("stirred.swap.plan.draft", "draft_plan")
    inputs = method_later("stirred.swap.data.dataset", "inputs")
    check = method_later("stirred.swap.checking.plan_check", "check")
    for_analysts = method_later("stirred.swap.documents", "for_analysts")
    verify = method_later("stirred.swap.verifying", "recount")
    tabulate = method_later("stirred.swap.verifying", "tabulate_release")
    exposure = method_later("stirred.swap.verifying", "released_exposure")
    tabulate_note = method_later("stirred.swap.estimating.question_counts", "tabulate_note")
    estimate = method_later("stirred.swap.estimating.questions", "estimate")
    calibrate = method_later("stirred.swap.plan.budget", "calibrate")
    audit_pairs = method_later("stirred.swap.audit_pairs", "audit_pairs")
    for_custodian = method_later("stirred.swap.checking.comparison", "for_custodian")
    prepare_demo = method_later("stirred.swap.demo", "prepare")
    show_demo = method_later("stirred.swap.demo", "show")

    @property
    def plan_type(self) -> type[SwapPlan]:
        from stirred.swap.plan.fields import SwapPlan

        return SwapPlan

    def draw(
        self,
        plan: SwapPlan,
        data: Data | None = None,
        *,
        folder: Path | None = None,
        keep_truth: bool = False,
        source: RandomSource | None = None,
    ) -> SwapRelease:
        from stirred.swap.drawing import draw

        return draw(plan, data, source=source)

    def specify_plan(self, plan: SwapPlan, **options: Any) -> Specification:
        from stirred.swap.plan.guarantee import specify_typed

        largest = options.get("largest_stratum")
        return super().specify_plan(plan) if largest is None else specify_typed(plan, largest)

    def spend_words(self, plan: SwapPlan) -> str:
        at = f"rate {plan.rate}" if plan.rate is not None else "rates by rule"
        if plan.rounds:
            at += f" and {len(plan.rounds)} later round{'s' if len(plan.rounds) > 1 else ''}"
        return f"swap at {at}, plan {plan.hash()[:12]}"

    def place_units(self, release: ReleaseFolder, table: str | None = None) -> dict[str, pa.Array | None]:
        return dict.fromkeys(release.with_role(release.require_table(table), "match", "swap", "hold", "copy"))


MECHANISM = Swapping()
