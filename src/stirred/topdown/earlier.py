"""Reads earlier releases that a new one must agree with (``H(Z) = P``), such as redistricting data before details.

An earlier release is public, so agreeing with it costs nothing: it is read like the geography, and its counts become
bounds of the fit. What both releases together satisfy is the composition of their specifications, and a release that
repeats another's invariants declares them too.

The two geographies may differ. What binds is the finest level that both have, by its name, and that must have the same
units in both: counts of a finer earlier release are added up to it, and those of a coarser one bind sums of our places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from stirred import errors
from stirred._received import inside
from stirred.margins.spine import Spine
from stirred.releases.folder.manifest import differences, read_manifest
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.ledger.ledger import Ledger, manifest_of
from stirred.tables.columns import as_text
from stirred.topdown.counting import GEOGRAPHY, added_up, count_rows, read_spine
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import EarlierSection, InvariantSection, PlacesInput
from stirred.topdown.problems import Histograms

FOLDER = "measurements"
"""Where a release has its list of places."""


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """The counts of an earlier release in each unit of a level, by the attributes ``by`` of a table."""

    path: Path
    table: str
    by: tuple[str, ...]
    level: int
    """The finest level of our spine that the earlier release has too."""
    place: str
    """Its name."""
    units: Histograms
    manifest: str
    """SHA-256 of the earlier release's manifest."""

    def at(self, spine: Spine, level: int) -> Histograms:
        """The counts in the units of a level that is not finer than :attr:`level`."""
        return added_up(self.units, spine.first_unit(level, self.level))

    def published(self) -> dict[str, Any]:
        """The agreement as the certificate states it."""
        return {"table": self.table, "by": list(self.by), "level": self.place, "manifest_sha256": self.manifest}


def read_agreements(plan: TopDownPlan, spine: Spine) -> tuple[Agreement, ...]:
    """Count the earlier releases that a plan names."""
    return tuple(_read(plan, spine, section) for section in plan.earlier)


def require_counted(plan: TopDownPlan, ledger: Ledger) -> None:
    """Raise if an earlier release is not in the ledger: the two compose."""
    known = {one for entry in ledger.entries() for one in entry.manifests}
    for section in plan.earlier:
        if manifest_of(Path(section.path)) not in known:
            raise errors.topdown_earlier(section.path, f"it is not recorded in the ledger {ledger.path}")


def _read(plan: TopDownPlan, spine: Spine, section: EarlierSection) -> Agreement:
    release = ReleaseFolder.open(section.path)
    if release.mechanism != "topdown":
        raise errors.topdown_earlier(release.path, "it is not a TopDown release")
    if found := differences(release.path, read_manifest(release.path)):
        raise errors.topdown_earlier(release.path, found[0])
    before = TopDownPlan.from_published(release.certificate["plan"])
    name = section.of or section.table
    if name not in release.dictionary:
        raise errors.unknown_table(name, list(release.dictionary))
    columns = {one.name: one.column or one.name for one in before.table(name).attributes}
    by = section.by or tuple(columns)
    missing = [one for one in by if one not in columns]
    if missing:
        raise errors.missing_columns(f"the earlier release's {name}", missing)
    schema = plan.table(section.table).schema_of
    level = _shared_level(plan, spine, before, release.path)
    _require_invariants(plan, before, section, name, by, level)
    domains = {columns[one]: schema.values(one) for one in by}
    above = Spine(spine.levels[: level + 1], spine.names[: level + 1], spine.first_child[:level])
    words = f"the earlier release's {name}"
    counts = count_rows(release.open_table(name), words, above, spine.levels[level], domains)
    place = spine.levels[level]
    return Agreement(release.path, section.table, tuple(by), level, place, counts, manifest_of(release.path))


def _shared_level(plan: TopDownPlan, spine: Spine, before: TopDownPlan, folder: Path) -> int:
    """The finest level that both geographies have, by name; raises unless its units are the same in both."""
    shared = [level for level in plan.spine.levels if level in before.spine.levels]
    if not shared:
        raise errors.earlier_levels(folder, before.spine.levels, plan.spine.levels)
    section = before.spine.model_copy(update={"input": PlacesInput(format="parquet")})
    path = inside(folder, f"{FOLDER}/{GEOGRAPHY}.parquet")
    other = read_spine(before.model_copy(update={"spine": section}), path)
    level = spine.levels.index(shared[-1])
    mine = as_text(spine.names[level])
    theirs = as_text(other.names[other.levels.index(shared[-1])])
    for first, second, earlier in ((theirs, mine, True), (mine, theirs, False)):
        strange = first.filter(pc.invert(pc.is_in(first, value_set=second)))
        if len(strange):
            named = strange[: errors.FEW].to_pylist()
            raise errors.earlier_places(folder, shared[-1], len(strange), named, earlier=earlier)
    return level


def _require_invariants(
    plan: TopDownPlan, before: TopDownPlan, section: EarlierSection, name: str, by: Sequence[str], level: int
) -> None:
    """Raise unless each invariant of the earlier release that this one repeats is an invariant here too: at its level,
    or at the level at which the two agree where this plan does not have its level."""
    mine = [one for one in plan.invariants if one.table == section.table]
    for kept in before.invariants:
        if (
            kept.table == name
            and set(kept.by) <= set(by)
            and not any(_at_least_as_fine(plan, one, kept, level) for one in mine)
        ):
            words = f"by {', '.join(kept.by)} " if kept.by else ""
            here = plan.spine.all_levels[_level_here(plan, kept, level)]
            problem = (
                f"it keeps the number of '{name}' {words}in each {kept.level} exactly, so this plan must declare it"
                + (f" as an invariant in each {here}" if here != kept.level else "")
            )
            raise errors.topdown_earlier(section.path, problem)


def _level_here(plan: TopDownPlan, theirs: InvariantSection, level: int) -> int:
    """The level of this plan at which an earlier invariant is repeated: its own, or else the one that is shared."""
    levels = plan.spine.all_levels
    return levels.index(theirs.level) if theirs.level in levels else level


def _at_least_as_fine(plan: TopDownPlan, mine: InvariantSection, theirs: InvariantSection, level: int) -> bool:
    finer = plan.spine.all_levels.index(mine.level) >= _level_here(plan, theirs, level)
    return finer and set(theirs.by) <= set(mine.by)


def about(agreements: Sequence[Agreement], table: str) -> list[Agreement]:
    """The agreements that are about a table."""
    return [one for one in agreements if one.table == table]
