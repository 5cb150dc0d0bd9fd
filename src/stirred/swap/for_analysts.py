"""What analysts of a swapped release need to know, for its report.

Keep in mind: everything follows from the plan and the names of columns, as in README.txt; no table is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import AnalystNote
from stirred.spec import facts
from stirred.swap.plan import SwapPlan
from stirred.swap.putting_back import PUT_BACK, PutBack
from stirred.swap.readme import analysts_words


def for_analysts(release: ReleaseFolder) -> Iterator[AnalystNote]:
    """Which tables are exact, corrected and unusable, and what to type."""
    plan = SwapPlan.from_published(release.certificate["plan"])
    held = {name: release.with_role(name, "hold") for name in release.dictionary}
    exact, weakened, missing = analysts_words(plan, held)
    yield AnalystNote("exact", exact)
    yield AnalystNote("corrected", weakened)
    yield AnalystNote("unusable", missing)
    if (changed := release.specification.fact.get(facts.CHANGED_SHARE)) is not None:
        words = (
            f"{100 * float(str(changed)):.3g}% of the records are expected to have other values of what was swapped "
            "than in the file. How wide an interval is depends on the table: stirred estimate prints it with each."
        )
        yield AnalystNote("accuracy", words)
    if (stated := PutBack.from_fields(release.certificate.get(PUT_BACK))) is not None:
        yield AnalystNote("put back", stated.words(plan))
    others = _others(plan, held)
    yield AnalystNote("command", f"stirred tabulate FOLDER --by {quote(','.join([*plan.match, *plan.swap]))}")
    if others:
        yield AnalystNote("command", f"stirred estimate FOLDER --by {quote(f'{plan.swap[0]},{others[0]}')}")


def _others(plan: SwapPlan, held: Mapping[str, Sequence[str]]) -> list[str]:
    """The held columns of the records, which are the first table."""
    return list(next(iter(held.values()), ()))
