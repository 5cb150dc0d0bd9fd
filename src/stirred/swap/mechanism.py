"""The Permutation Swapping Algorithm as one of the package's mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stirred import errors
from stirred.releases.mechanism import FORM_OPTIONS, Data, Mechanism, Option

if TYPE_CHECKING:
    import pyarrow as pa

    from stirred.noise import RandomSource
    from stirred.releases.progress import Progress
    from stirred.releases.release_folder import ReleaseFolder, Verdict
    from stirred.swap.checking import SwapCheck
    from stirred.swap.plan import SwapPlan
    from stirred.swap.releasing import SwapRelease


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


_ALLOW = Option("--allow", "Allow a stop, by its name. Repeatable.", "allow", several=True, of_plan=True)


class Swapping(Mechanism):
    """Permutation swapping: plan, check, draw, verify, tabulate."""

    name = "swap"
    title = "Permutation Swapping Algorithm"
    options: ClassVar = {
        "init": (
            Option("--linked", "A table whose rows belong to records of FILE.", "linked", Path),
            *FORM_OPTIONS,
            Option(
                "--look",
                "Also look at the cells, to propose types and nulls; the plan then says that its choices "
                "were made on this data.",
                "look_at_cells",
                bool,
            ),
            Option(
                "--flat-id",
                "FILE has a row for each person and repeats the columns of the household: the column with the "
                "household's id. The plan splits the file, and the release puts it together again.",
                "flat_id",
            ),
            Option(
                "--repeated",
                "With --flat-id: the columns of the household, e.g. county,tenure. --look finds them.",
                "repeated",
                read=_names,
            ),
        ),
        "check": (
            Option(
                "--by",
                "Forecast the table by these columns, e.g. county,tenure. Repeatable.",
                "tables",
                several=True,
                read=lambda given: [_names(by) for by in given],
            ),
            Option("--rates", "Also show epsilon at these swap rates, e.g. 0.01,0.05,0.5.", "rates", read=_names),
            Option(
                "--candidate",
                "Also show epsilon and what is revealed with these variables, e.g. 'match=state,size;swap=county'. "
                "Repeatable.",
                "candidates",
                several=True,
                read=lambda given: [_candidate(text) for text in given],
            ),
            Option("--epsilon", "Also show the range of rates that reach this epsilon.", "wanted_epsilon", float),
            _ALLOW,
        ),
        "release": (_ALLOW,),
    }

    @property
    def plan_type(self) -> type[SwapPlan]:
        from stirred.swap.plan import SwapPlan

        return SwapPlan

    def draft(self, file: Path, folder: Path, **options: Any) -> str:
        from stirred.swap.draft import draft_plan

        return draft_plan(file, folder=folder, **options)

    def check(
        self, plan: SwapPlan, data: Data | None = None, *, progress: Progress | None = None, **options: Any
    ) -> SwapCheck:
        from stirred.swap.checking import check

        return check(plan, data, progress=progress, **options)

    def draw(
        self,
        plan: SwapPlan,
        data: Data | None = None,
        *,
        folder: Path | None = None,
        keep_truth: bool = False,
        source: RandomSource | None = None,
        progress: Progress | None = None,
    ) -> SwapRelease:
        from stirred.swap.releasing import draw

        return draw(plan, data, source=source, progress=progress)

    def spend_words(self, plan: SwapPlan) -> str:
        at = f"rate {plan.rate}" if plan.rate is not None else "rates by rule"
        return f"swap at {at}, plan {plan.hash()[:12]}"

    def verify(self, release: ReleaseFolder) -> list[Verdict]:
        from stirred.swap.verifying import recount

        return recount(release)

    def tabulate(self, release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> pa.Table:
        from stirred.swap.verifying import tabulate_release

        return tabulate_release(release, by, table)

    def demo(self, folder: Path) -> None:
        from stirred.swap.demo import run

        run(folder)


MECHANISM = Swapping()
