"""Earlier releases that a new one must agree with: ``H(Z) = P``, as detailed tables follow redistricting data.

An earlier release is public, so agreeing with it costs nothing: it is read like the geography, and its counts become
bounds of the fit. What both releases together satisfy is the composition of their specifications.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stirred import errors
from stirred.release.manifest import NAME as MANIFEST
from stirred.release.opened import ReleaseFolder
from stirred.topdown.counting import count_rows
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import EarlierSection
from stirred.topdown.problems import Histograms
from stirred.topdown.spine import Spine


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """How many records an earlier release has in each leaf and each group of the marginal ``by`` of a table."""

    table: str
    by: tuple[str, ...]
    leaves: Histograms
    manifest: str
    """SHA-256 of the earlier release's manifest."""

    def published(self) -> dict[str, Any]:
        return {"table": self.table, "by": list(self.by), "manifest_sha256": self.manifest}


def read_agreements(plan: TopDownPlan, spine: Spine) -> tuple[Agreement, ...]:
    """Count the earlier releases that a plan names."""
    return tuple(_read(plan, spine, section) for section in plan.earlier)


def _read(plan: TopDownPlan, spine: Spine, section: EarlierSection) -> Agreement:
    release = ReleaseFolder.open(section.path)
    name = section.of or section.table
    if name not in release.dictionary:
        raise errors.unknown_table(name, list(release.dictionary))
    schema, place = plan.table(section.table).schema_of, plan.spine.levels[-1]
    by = section.by or tuple(release.with_role(name, "attribute"))
    missing = [column for column in (place, *by) if column not in release.columns(name)]
    if missing:
        raise errors.missing_columns(f"the earlier release's {name}", missing)
    strange = [column for column in by if column not in schema.names]
    if strange:
        raise errors.unknown_choice("attribute or recode", strange[0], schema.names)
    domains = {column: schema.values(column) for column in by}
    counts = count_rows(release.open_table(name), f"the earlier release's {name}", spine, place, domains)
    manifest = hashlib.sha256((release.path / MANIFEST).read_bytes()).hexdigest()
    return Agreement(section.table, tuple(by), counts, manifest)


def about(agreements: Sequence[Agreement], table: str) -> list[Agreement]:
    """Those that bind a table."""
    return [one for one in agreements if one.table == table]
