"""Verifies a TopDown release and tabulates it, from the release folder alone.

Verification uses nothing but the folder: microdata are counted again and held against the invariants' values, the
zeros, the constraints and the tables beside them; measurement files against what the plan says was measured; the
budget against the sum of all shares. Whether the noise was what it says cannot be seen from one release.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from stirred.releases.manifest import digest_of
from stirred.releases.release_folder import ReleaseFolder, Verdict, shape_verdicts, tabulate_rows, verify_with
from stirred.tables.read import read_parts
from stirred.topdown.constraints import (
    Counts,
    constraint_words,
    leaves_breaking,
)
from stirred.topdown.counting import Counted, Places, count_rows
from stirred.topdown.measuring import INDEX, Measurements, cell_labels, entries
from stirred.topdown.microdata import ATTRIBUTE, PLACE, place_columns
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import TableSection
from stirred.topdown.problems import Histograms
from stirred.topdown.specifying import specify
from stirred.topdown.spine import Spine
from stirred.topdown.work_folder import (
    GEOGRAPHY,
    INVARIANTS,
    MEASUREMENTS,
    counts_table,
    fingerprint,
    read_geography,
    read_invariants,
)


def verify(path: str | Path) -> list[Verdict]:
    """Everything a recipient can check, each with its verdict."""
    return verify_with(ReleaseFolder.open(path), recount)


def recount(release: ReleaseFolder) -> list[Verdict]:
    """What can be checked of a TopDown release in particular."""
    plan = TopDownPlan.from_published(release.certificate["plan"])
    geography = release.path / MEASUREMENTS / GEOGRAPHY
    same = release.certificate["geography_sha256"] == digest_of(geography)
    verdicts = [Verdict(same, "the geography is that of the certificate")]
    if not same:
        return verdicts
    spine = read_geography(geography, plan)
    exact = read_invariants(release.path / INVARIANTS, plan, spine)
    leaves = {}
    for table in plan.released:
        leaves[table.name] = count_release(release, plan, spine, table)
        verdicts += shape_verdicts(release, table.name, int(leaves[table.name].counts.sum()))
        nested = _places_agree(release, plan, spine, table)
        verdicts.append(Verdict(nested, f"{table.name}: the coarser places of every row are those of the geography"))
        impossible = np.zeros(table.schema_of.cells, dtype=np.bool_)
        for zero in table.zeros:
            impossible |= table.schema_of.where(zero)
        if table.zeros:
            clean = not impossible[leaves[table.name].cells].any()
            verdicts.append(Verdict(clean, f"{table.name} has no combination of values that the plan rules out"))
    counted = Counted(plan, spine, leaves)
    verdicts += _invariants(release, counted, exact)
    verdicts += [
        Verdict(not leaves_breaking(counted, constraint, exact), f"recounted and kept: {constraint_words(constraint)}")
        for constraint in plan.constraints
    ]
    return [*verdicts, *_published(release, counted), *_measurements(release, plan, spine), *_guarantee(release, plan)]


def count_release(release: ReleaseFolder, plan: TopDownPlan, spine: Spine, table: TableSection) -> Histograms:
    """The released microdata, counted in the leaves."""
    domains = {one.column or one.name: one.values for one in table.attributes}
    return count_rows(release.open_table(table.name), table.name, spine, plan.spine.levels[-1], domains)


def _places_agree(release: ReleaseFolder, plan: TopDownPlan, spine: Spine, table: TableSection) -> bool:
    """Whether the coarser places of every row are those of its finest one."""
    columns = place_columns(plan, spine)
    known = [Places(column.values) for column in columns]
    for part in read_parts(release.open_table(table.name), [column.name for column in columns]):
        found = [places.of(part[column.name]) for places, column in zip(known, columns, strict=True)]
        leaf = found[-1]
        if any(not np.array_equal(one, column.codes[leaf]) for one, column in zip(found, columns, strict=True)):
            return False
    return True


def _invariants(release: ReleaseFolder, counted: Counted, exact: Sequence[Counts]) -> list[Verdict]:
    plan, stated = counted.plan, release.certificate["invariants"]
    verdicts = [Verdict(len(stated) == len(plan.invariants), "the certificate states the plan's invariants")]
    for invariant, values, entry in zip(plan.invariants, exact, stated, strict=False):
        words = str(invariant.margin)
        same = entry["sha256"] == fingerprint(values)
        verdicts.append(Verdict(same, f"as in the certificate: {words} ({values.size:,} counts)"))
        if invariant.table in counted.leaves:
            counts = counted.counts(invariant.table, invariant.level, invariant.by)
            verdicts.append(Verdict(np.array_equal(counts, values), f"recounted and equal: {words}"))
    return verdicts


def _published(release: ReleaseFolder, counted: Counted) -> list[Verdict]:
    """Whether the published tables can be counted from the microdata."""
    verdicts = []
    for wanted in counted.plan.publish:
        counts = counted.counts(wanted.table, wanted.level, wanted.by)
        table = counts_table(counted.plan, counted.spine, wanted.table, wanted.level, wanted.by, counts)
        made = pa.BufferOutputStream()
        pc.write_csv(table, made)
        file = release.path / "tables" / f"{wanted.name}.csv"
        same = made.getvalue().to_pybytes() == file.read_bytes()
        verdicts.append(Verdict(same, f"tables/{file.name} has the counts of the microdata"))
    return verdicts


def _measurements(release: ReleaseFolder, plan: TopDownPlan, spine: Spine) -> list[Verdict]:
    folder = release.path / MEASUREMENTS
    planned = entries(plan, spine)
    stated = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    same = stated == json.loads(json.dumps([asdict(entry) for entry in planned]))
    verdicts = [Verdict(same, f"the {len(planned)} measured queries are those of the plan, each with variance 1/rho")]
    measurements, names = Measurements(folder), dict(zip(spine.levels, spine.names, strict=True))
    labelled = [
        measurements.labelled(entry, names[entry.level], cell_labels(plan.table(entry.table).schema_of, entry.by))
        for entry in planned
    ]
    return [*verdicts, Verdict(all(labelled), "every query is measured in every geounit and every cell, in order")]


def _guarantee(release: ReleaseFolder, plan: TopDownPlan) -> list[Verdict]:
    stated = release.specification
    rebuilt = specify(plan, not stated.marks)
    spent = stated.budget.number == plan.rho
    words = f"rho recomputed from all shares is that of the certificate ({float(plan.rho):.6f})"
    return [
        Verdict(spent, words),
        Verdict(release.states(rebuilt), "the specification is the one that the plan has"),
    ]


def tabulate(path: str | Path, by: Sequence[str], table: str | None = None) -> pa.Table:
    """Counts of a released table by some of its columns."""
    return tabulate_release(ReleaseFolder.open(path), by, table)


def tabulate_release(release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> pa.Table:
    """As :func:`tabulate`, of an opened release."""
    name = release.require_table(table)
    return tabulate_rows(release, by, name, release.with_role(name, PLACE, ATTRIBUTE))
