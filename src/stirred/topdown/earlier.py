"""Reads earlier releases that a new one must agree with (``H(Z) = P``), such as redistricting data before details.

An earlier release is public, so agreeing with it costs nothing: it is read like the geography, and its counts become
bounds of the fit. What both releases together satisfy is the composition of their specifications, and a release that
repeats another's invariants declares them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stirred import errors
from stirred.margins.spine import Spine
from stirred.releases.ledger import Ledger, manifest_of
from stirred.releases.manifest import differences, read_manifest
from stirred.releases.release_folder import ReleaseFolder
from stirred.topdown.counting import count_rows
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import EarlierSection, InvariantSection
from stirred.topdown.problems import Histograms


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """The counts of an earlier release in each finest geounit, by the attributes ``by`` of a table."""

    path: Path
    table: str
    by: tuple[str, ...]
    leaves: Histograms
    manifest: str
    """SHA-256 of the earlier release's manifest."""

    def published(self) -> dict[str, Any]:
        """The agreement as the certificate states it."""
        return {"table": self.table, "by": list(self.by), "manifest_sha256": self.manifest}


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
    schema, place = plan.table(section.table).schema_of, plan.spine.levels[-1]
    if place not in release.columns(name):
        raise errors.missing_columns(f"the earlier release's {name}", [place])
    _require_invariants(plan, before, section, name, by)
    domains = {columns[one]: schema.values(one) for one in by}
    counts = count_rows(release.open_table(name), f"the earlier release's {name}", spine, place, domains)
    return Agreement(release.path, section.table, tuple(by), counts, manifest_of(release.path))


def _require_invariants(
    plan: TopDownPlan, before: TopDownPlan, section: EarlierSection, name: str, by: Sequence[str]
) -> None:
    """Raise unless each invariant of the earlier release that this one repeats is an invariant here too."""
    mine = [one for one in plan.invariants if one.table == section.table]
    for kept in before.invariants:
        if (
            kept.table == name
            and set(kept.by) <= set(by)
            and not any(_at_least_as_fine(plan, one, kept) for one in mine)
        ):
            words = f"by {', '.join(kept.by)} " if kept.by else ""
            problem = (
                f"it keeps the number of '{name}' {words}in each {kept.level} exactly, so this plan must declare it"
            )
            raise errors.topdown_earlier(section.path, problem)


def _at_least_as_fine(plan: TopDownPlan, mine: InvariantSection, theirs: InvariantSection) -> bool:
    levels = plan.spine.all_levels
    finer = theirs.level in levels and levels.index(mine.level) >= levels.index(theirs.level)
    return finer and set(theirs.by) <= set(mine.by)


def about(agreements: Sequence[Agreement], table: str) -> list[Agreement]:
    """The agreements that are about a table."""
    return [one for one in agreements if one.table == table]
