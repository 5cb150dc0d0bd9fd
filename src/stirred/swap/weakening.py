"""By how much a swap weakens what a table shows, said before the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stirred._received import plain
from stirred.errors import listed
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.swap.coarsening import strata_groups, with_merged
from stirred.swap.counting_cells import count_cells, rates_of_release, roles_of_question, swapped_in_rounds
from stirred.swap.law_constants import LawConstants
from stirred.swap.plan import SwapPlan
from stirred.swap.plan_sections import MAIN

_SHOWN = 80


def tabulate_note(release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> str | None:
    """For a table that relates swapped to held variables: that it is weakened, by how much, and what corrects it; None
    for one that the swap cannot change, such as by a held variable that the match variables determine."""
    plan = SwapPlan.from_published(release.certificate["plan"])
    name = release.require_table(table)
    roles = roles_of_question(release, plan, name, by)
    if not roles.swapped or (not roles.held and name == MAIN):
        return None
    counted = count_cells(release, plan, name, list(dict.fromkeys(by)), {}, rates_of_release(release, plan))
    if not counted.tally.changeable.any():
        return None
    of = "" if name == MAIN else f" --table {plain(name, _SHOWN)}"
    asked = plain(",".join(by), 10 * _SHOWN)
    if roles.held:
        weakened = f"Note: the swap weakened how {listed(roles.swapped)} and {listed(roles.held)} go together."
    else:
        weakened = (
            f"Note: rows of {plain(name, _SHOWN)} moved with their records, which do not all have as many. Their "
            f"numbers by {listed(roles.swapped)} are not the true ones."
        )
    if swapped_in_rounds(plan, roles, name):
        how_much = "Differences are shown smaller than they are: these values were exchanged in several rounds."
    else:
        how_much = _how_much(release, plan)
    return (
        f"{weakened} {how_much} Corrected, with intervals: "
        f"stirred estimate {plain(release.path, 10 * _SHOWN)} --by {asked}{of}"
    )


def mean_shrinkage(release: ReleaseFolder, plan: SwapPlan) -> float | None:
    """The part of an association that the first round leaves, averaged over the records; None where the plan has
    several rates."""
    if plan.rate is None:
        return None
    wanted = [column for column in release.columns(MAIN) if column in plan.match]
    if not wanted:
        sizes = np.array([release.dictionary[MAIN]["rows"]])
    else:
        main = release.read(MAIN, wanted).table
        sizes = strata_groups(plan, with_merged(plan, main)).sizes()
    return float(np.average(LawConstants.of(sizes, plan.rate).shrinkage, weights=sizes)) if sizes.sum() else None


def _how_much(release: ReleaseFolder, plan: SwapPlan) -> str:
    left = mean_shrinkage(release, plan)
    if left is None:
        return "Differences are shown smaller than they are, by how much depends on the rates of the records."
    if left <= -0.005:  # above a critical rate most values are exchanged: those of two records nearly always
        return f"Differences are shown reversed on average, at about {-100 * left:.2g}% of their true size."
    if left < 0.005:
        return "Next to nothing is left of it on average."
    return f"Differences are shown at about {100 * left:.2g}% of their true size."
