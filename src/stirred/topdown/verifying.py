"""Verifies a TopDown release and tabulates it, from the release folder alone.

Verification uses nothing but the folder: microdata are counted again and held against the invariants' values, the
zeros, the constraints and the tables beside them, and with the fit of the measurements, which is made again
(``refitting.py``); measurement files against what the plan says was measured; the budget against the sum of all shares.
Whether the noise was what it says cannot be seen from one release.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from stirred._received import inside, read_json
from stirred.margins.spine import Spine
from stirred.releases.folder.documents import Certificate
from stirred.releases.folder.manifest import digest_of
from stirred.releases.folder.release_folder import (
    Expected,
    ReleaseFolder,
    contents_verdicts,
    shape_verdicts,
    stored_verdict,
    tabulate_rows,
    verify_with,
)
from stirred.releases.verdicts import Verdict, contradicted
from stirred.tables.reading.table_reader import read_parts
from stirred.tables.writing import write_table
from stirred.topdown.constraints import (
    Counts,
    constraint_words,
    leaves_breaking,
)
from stirred.topdown.counting import Counted, Places, count_rows
from stirred.topdown.measuring import INDEX, Measurements, cell_labels, entries, write_again
from stirred.topdown.microdata import ATTRIBUTE, ORDER, PLACE, attribute_columns, described, place_columns, rows
from stirred.topdown.plan import TopDownPlan
from stirred.topdown.plan_sections import TableSection
from stirred.topdown.problems import Histograms
from stirred.topdown.readme import readme
from stirred.topdown.recoded_tables import columns_behind, recoded
from stirred.topdown.refitting import bias_verdict, fit_verdicts
from stirred.topdown.relations import leaves_breaking_relation, relation_words
from stirred.topdown.specifying import specify
from stirred.topdown.work_folder import (
    GEOGRAPHY,
    INVARIANTS,
    MEASUREMENTS,
    counts_table,
    fingerprint,
    geography_table,
    invariant_files,
    measurement_files,
    read_geography,
    read_invariants,
    write_geography,
    write_invariants,
)


def verify(path: str | Path) -> list[Verdict]:
    """Everything a recipient can check, each with its verdict."""
    return verify_with(ReleaseFolder.open(path), recount)


def recount(release: ReleaseFolder) -> list[Verdict]:
    """What can be checked of a TopDown release in particular."""
    stated = {table["format"] for table in release.dictionary.values()}
    plan = TopDownPlan.from_published(release.certificate["plan"]).model_copy(update={"format": sorted(stated)[0]})
    released = [table.name for table in plan.released] == list(release.dictionary) and len(stated) == 1
    verdicts = [Verdict(released, "the released tables are those of the plan")]
    geography = inside(release.path, f"{MEASUREMENTS}/{GEOGRAPHY}")
    same = release.certificate["geography_sha256"] == digest_of(geography)
    verdicts.append(Verdict(same, "the geography is that of the certificate"))
    if not (same and released):
        return verdicts
    spine = read_geography(geography, plan)
    listed = pq.read_table(geography).equals(geography_table(plan, spine), check_metadata=True)
    verdicts.append(Verdict(listed, "the geography lists every finest place once, in order, and nothing else"))
    exact = read_invariants(release.path / INVARIANTS, plan, spine)
    leaves = {}
    for table in plan.released:
        leaves[table.name] = count_release(release, plan, spine, table)
        verdicts += shape_verdicts(release, table.name, int(leaves[table.name].counts.sum()))
        nested, ordered = _places_agree(release, plan, spine, table)
        verdicts.append(Verdict(nested, f"{table.name}: the coarser places of every row are those of the geography"))
        verdicts.append(Verdict(ordered, f"{table.name}: the order of the rows is: {ORDER}"))
        impossible = np.zeros(table.schema_of.cells, dtype=np.bool_)
        for zero in table.zeros:
            impossible |= table.schema_of.where(zero)
        if table.zeros:
            clean = not impossible[leaves[table.name].cells].any()
            verdicts.append(Verdict(clean, f"{table.name} has no combination of values that the plan rules out"))
    counted = Counted(plan, spine, leaves)
    verdicts += _invariants(release, counted, exact)
    verdicts += [
        Verdict(
            not len(leaves_breaking(counted, constraint, exact)), f"recounted and kept: {constraint_words(constraint)}"
        )
        for constraint in plan.constraints
    ]
    verdicts += [
        Verdict(not len(leaves_breaking_relation(counted, one)), f"recounted and kept: {relation_words(one)}")
        for one in plan.relations
    ]
    verdicts += [*_published(release, counted), *_measurements(release, plan, spine), *_guarantee(release, plan)]
    if not contradicted(verdicts):
        verdicts += [_stored(release, counted, exact), *fit_verdicts(release, counted, exact)]
    return verdicts + _contents(release, counted, exact)


def _stored(release: ReleaseFolder, counted: Counted, exact: Sequence[Counts]) -> Verdict:
    """Whether all tables, measurements, values of invariants and the geography are stored as a release stores them."""
    plan, spine = counted.plan, counted.spine

    def write(folder: Path) -> None:
        for table in plan.released:
            path = folder / release.dictionary[table.name]["file"]
            write_table(path, plan.format, rows(plan, spine, table, counted.leaves[table.name]))
        (folder / MEASUREMENTS).mkdir()
        write_again(Measurements(release.path / MEASUREMENTS), folder / MEASUREMENTS, plan, spine)
        write_geography(folder / MEASUREMENTS / GEOGRAPHY, plan, spine)
        write_invariants(folder / INVARIANTS, plan, spine, tuple(exact))

    tables = [table["file"] for table in release.dictionary.values()]
    return stored_verdict(release, [*tables, *measurement_files(plan, spine), *invariant_files(plan)], write)


def _contents(release: ReleaseFolder, counted: Counted, exact: Sequence[Counts]) -> list[Verdict]:
    """Whether the folder contains what the plan says, and nothing else."""
    plan, spine = counted.plan, counted.spine
    stated = specify(plan, release.for_release)
    tables = [described(plan, spine, table, int(counted.leaves[table.name].counts.sum())) for table in plan.released]
    margins = [
        invariant.margin.counted_as(values.size, fingerprint(values))
        for invariant, values in zip(plan.invariants, exact, strict=True)
    ]
    fit, agreed = release.certificate["fit"], release.certificate["agrees_with"]
    more = {"fit": fit, "geography_sha256": release.certificate["geography_sha256"], "agrees_with": agreed}
    biases, forecast = bias_verdict(release, counted, exact)
    if "expected_bias" in release.certificate:
        more = {"expected_bias": release.certificate["expected_bias"], **more}
    certificate = Certificate(plan, stated, margins, release.for_release, None, more)
    files = [
        *measurement_files(plan, spine),
        *invariant_files(plan),
        *(f"tables/{one.name}.csv" for one in plan.publish),
    ]
    return [
        Verdict(_earlier_are_named(plan, agreed), "the certificate names the earlier releases of the plan"),
        forecast,
        *contents_verdicts(
            release, Expected(certificate, tables, readme(stated, plan, tables, _ways(fit), biases), files)
        ),
    ]


def _ways(fit: Any) -> dict[str, str]:
    """How each table was fitted, as far as the certificate says it."""
    listed = [one for one in fit if isinstance(one, dict)] if isinstance(fit, list) else []
    return {str(one["table"]): str(one["way"]) for one in listed if "way" in one and "table" in one}


def _names(plan: TopDownPlan, table: str) -> set[str]:
    return {attribute.name for attribute in plan.table(table).attributes}


def _earlier_are_named(plan: TopDownPlan, agreed: Any) -> bool:
    return (
        isinstance(agreed, list)
        and len(agreed) == len(plan.earlier)
        and all(
            set(one) - {"level"} == {"table", "by", "manifest_sha256"}
            and one.get("level", plan.spine.levels[-1]) in plan.spine.levels  # not stated before levels could differ
            and one["table"] == section.table
            and isinstance(one["by"], list)
            and (one["by"] == list(section.by) if section.by else set(one["by"]) <= _names(plan, section.table))
            and bool(re.fullmatch("[0-9a-f]{64}", one["manifest_sha256"]))
            for one, section in zip(agreed, plan.earlier, strict=True)
        )
    )


def count_release(release: ReleaseFolder, plan: TopDownPlan, spine: Spine, table: TableSection) -> Histograms:
    """The released microdata, counted in the leaves."""
    domains = {one.column or one.name: one.values for one in table.attributes}
    return count_rows(release.open_table(table.name), table.name, spine, plan.spine.levels[-1], domains)


def _places_agree(release: ReleaseFolder, plan: TopDownPlan, spine: Spine, table: TableSection) -> tuple[bool, bool]:
    """Whether the coarser places of every row are those of its finest one, and whether rows are in their order."""
    columns, attributes = place_columns(plan, spine), attribute_columns(table)
    names = [column.name for column in (*columns, *attributes)]
    known = {column.name: Places(column.values) for column in (*columns, *attributes)}
    nested = ordered = True
    last = -1
    for part in read_parts(release.open_table(table.name), names):
        found = [known[column.name].of(part[column.name]) for column in columns]
        leaf = found[-1].astype(np.int64)
        nested = nested and all(
            np.array_equal(one, column.codes[leaf]) for one, column in zip(found, columns, strict=True)
        )
        key = leaf
        for column in attributes:
            key = key * column.cardinality + known[column.name].of(part[column.name])
        ordered = ordered and not np.any(np.diff(key, prepend=last) < 0)
        last = int(key[-1]) if len(key) else last
    return nested, ordered


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
        file = inside(release.path, f"tables/{wanted.name}.csv")
        same = file.stat().st_size == made.tell() and made.getvalue().to_pybytes() == file.read_bytes()
        verdicts.append(Verdict(same, f"tables/{file.name} has the counts of the microdata"))
    return verdicts


def _measurements(release: ReleaseFolder, plan: TopDownPlan, spine: Spine) -> list[Verdict]:
    folder = release.path / MEASUREMENTS
    planned = entries(plan, spine)
    stated = read_json(inside(release.path, f"{MEASUREMENTS}/{INDEX}"))
    same = stated == json.loads(json.dumps([asdict(entry) for entry in planned]))
    verdicts = [Verdict(same, f"the {len(planned)} measured queries are those of the plan, each with variance 1/rho")]
    if not same:
        return verdicts
    measurements, names = Measurements(folder), dict(zip(spine.levels, spine.names, strict=True))
    labelled = [
        measurements.labelled(entry, names[entry.level], cell_labels(plan.table(entry.table).schema_of, entry.by))
        for entry in planned
    ]
    return [
        *verdicts,
        Verdict(all(labelled), "every query has a whole number in every geounit and every cell, in order"),
    ]


def _guarantee(release: ReleaseFolder, plan: TopDownPlan) -> list[Verdict]:
    stated = release.specification
    rebuilt = specify(plan, release.for_release)
    spent = stated.budget.number == plan.rho
    words = f"rho recomputed from all shares is that of the certificate ({float(plan.rho):.6f})"
    return [
        Verdict(spent, words),
        Verdict(release.states(rebuilt), "the specification is the one that the plan has"),
    ]


def tabulate(path: str | Path, by: Sequence[str], table: str | None = None) -> pa.Table:
    """Counts of a released table by some of its columns, or recodes of its plan."""
    return tabulate_release(ReleaseFolder.open(path), by, table)


def place_units(release: ReleaseFolder, table: str | None = None) -> dict[str, pa.Array | None]:
    """By level that the released rows have a column for, the finest first, the names of its units."""
    plan = TopDownPlan.from_published(release.certificate["plan"])
    spine = read_geography(inside(release.path, f"{MEASUREMENTS}/{GEOGRAPHY}"), plan)
    known = dict(zip(spine.levels, spine.names, strict=True))
    return {name: known[name] for name in reversed(release.with_role(release.require_table(table), PLACE))}


def tabulate_release(release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> pa.Table:
    """As :func:`tabulate`, of an opened release."""
    name = release.require_table(table)
    columns = release.with_role(name, PLACE, ATTRIBUTE)
    section = TopDownPlan.from_published(release.certificate["plan"]).table(name)
    if all(one in columns for one in by) or not any(one.name in by for one in section.recodes):
        return tabulate_rows(release, by, name, columns)
    return recoded(tabulate_rows(release, columns_behind(section, by, columns), name, columns), section, by)
