"""Verifies a TopDown release and tabulates it, from the release folder alone.

Verification uses nothing but the folder: microdata are counted again and held against the invariants' values, the
zeros, the constraints and the tables beside them; measurement files against what the plan says was measured; the budget
against the sum of all shares. Whether the noise was what it says cannot be seen from one release.

The measurements are fitted again, and the bias is forecast again: both are functions of what is in the folder. Both are
sums of floating-point numbers, whose last digits differ between machines, and a tie that is broken otherwise moves a
record. So what is equal holds, what is far apart is contradicted, and between the two nothing is decided.

Tables are counted by columns or by the plan's recodes. Where a recode's groups overlap, a row counts in each group that
it is in, so such counts add up to more than the number of rows.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from stirred._bounded_reading import inside, read_json
from stirred._progress import stage
from stirred.margins.schema import Schema
from stirred.margins.spine import Spine
from stirred.releases.folder.documents import Certificate
from stirred.releases.folder.manifest import digest_of
from stirred.releases.folder.release_folder import ReleaseFolder, tabulate_rows
from stirred.releases.folder.verifying import Expected, contents_verdicts, shape_verdicts, stored_verdict, verify_with
from stirred.releases.verdicts import LAST_DIGITS, Verdict, contradicted, not_compared
from stirred.tables.reading.table_reader import read_parts
from stirred.tables.writing import write_table
from stirred.topdown.checking.fit_bias import ExpectedBias, expected_bias, has_forecast, simulated_records
from stirred.topdown.data.constraints import Known, constraint_words, leaves_breaking
from stirred.topdown.data.counting import Counted, Places, count_release
from stirred.topdown.data.histograms import Histograms
from stirred.topdown.documents import readme
from stirred.topdown.drawing import (
    ATTRIBUTE,
    ORDER,
    PLACE,
    attribute_columns,
    described,
    fit_tables,
    place_columns,
    rows,
)
from stirred.topdown.fitting.relations import leaves_breaking_relation, relation_words
from stirred.topdown.fitting.table_fit import BY_LEVEL, FALLBACKS, LEAST_SQUARES, TOO_WIDE, LevelReport
from stirred.topdown.measuring import (
    GEOGRAPHY_FILE,
    INDEX,
    INVARIANTS,
    MEASUREMENTS,
    Measurements,
    cell_labels,
    counts_table,
    entries,
    fingerprint,
    geography_table,
    invariant_files,
    measurement_files,
    read_geography,
    read_invariants,
    write_again,
)
from stirred.topdown.plan.fields import TopDownPlan
from stirred.topdown.plan.guarantee import specify
from stirred.topdown.plan.sections import TableSection


def columns_behind(table: TableSection, by: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The columns that must be counted by so that counts by some columns and recodes can be told."""
    recodes = {one.name for one in table.recodes} - set(known)
    column = {one.name: one.column or one.name for one in table.attributes}
    schema = table.schema_of
    found = [[column[base] for base in schema.bases(name)] if name in recodes else [name] for name in by]
    return tuple(dict.fromkeys(name for names in found for name in names))


def recoded(counts: pa.Table, table: TableSection, by: Sequence[str]) -> pa.Table:
    """Counts by columns, added up to counts by some of these columns and recodes of them; the last column counts."""
    *columns, number = counts.column_names
    recodes = {name: _groups_of(table, name) for name in by if name not in columns}
    sums: Counter[tuple[object, ...]] = Counter()
    for row in counts.to_pylist():
        for key in product(*(recodes[name](row) if name in recodes else [row[name]] for name in by)):
            sums[key] += row[number]
    orders = [table.schema_of.values(name) if name in recodes else () for name in by]
    found = sorted(
        sums.items(),
        key=lambda item: [
            (order.index(str(value)) if order else 0, str(value)) for order, value in zip(orders, item[0], strict=True)
        ],
    )
    kinds = [pa.string() if name in recodes else counts.schema.field(name).type for name in by]
    arrays = [pa.array([key[at] for key, _ in found], kind) for at, kind in enumerate(kinds)]
    totals = pa.array([count for _, count in found], counts.schema.field(number).type)
    return pa.table([*arrays, totals], names=[*by, number])


def _groups_of(table: TableSection, name: str) -> Callable[[Mapping[str, Any]], list[str]]:
    """What tells the groups of a recode that a row is in."""
    schema = table.schema_of
    bases = [one for one in table.attributes if one.name in schema.bases(name)]
    small = Schema(
        tuple(one for one in schema.attributes if one.name in schema.bases(name)),
        tuple(one for one in schema.recodes if one.name == name),
    )
    cells = {label: at for at, label in enumerate(small.labels([one.name for one in bases]))}
    members, groups = small.members(name), small.values(name)

    def found(row: Mapping[str, Any]) -> list[str]:
        inside = members[:, cells[tuple(str(row[one.column or one.name]) for one in bases)]]
        return [groups[at] for at in np.flatnonzero(inside)]

    return found


MOVED = Fraction(1, 20)
"""The share of records that ties may move: noise alone moves far more."""
RECORDS, TIMES = 20_000_000, 4
"""Records that are simulated again for a forecast: so many, or so many times those that were released."""
_FIT = "the released rows are the fit of the measurements, and the certificate reports how it went"
_FORECAST = "the certificate has the forecast of bias of every table whose totals are not kept, as it is computed again"


def fit_verdicts(release: ReleaseFolder, counted: Counted, known: Known) -> list[Verdict]:
    """Whether the released rows are what fitting the measurements gives, and the certificate reports it so."""
    plan, spine, stated = counted.plan, counted.spine, release.certificate["fit"]
    if not _is_report(release, plan, spine):
        return [Verdict(False, "the certificate reports the fit of every table and level")]
    if plan.earlier:
        return [not_compared(f"whether {_FIT}", "the earlier releases that it agrees with are not in the folder")]
    found = fit_tables(known, Measurements(release.path / MEASUREMENTS))
    rows = [_moved(counted.leaves[table.name], found[table.name][0]) for table in plan.released]
    reports = [report.published() for table in plan.released for report in found[table.name][1]]
    if not any(rows) and json.dumps(stated) == json.dumps(reports):
        return [Verdict(True, _FIT)]
    if not release.by_this_version:
        return [not_compared(f"whether {_FIT}", "another version made the fit")]
    if max(rows) > MOVED or not all(_alike(*pair) for pair in zip(stated, reports, strict=True)):
        return [Verdict(False, _FIT)]
    return [not_compared("the last digits of the fit, and records that ties move", LAST_DIGITS)]


def _moved(one: Histograms, other: Histograms) -> Fraction:
    """The share of records that must be moved, added or removed to make one table of the other."""
    keys = [
        np.repeat(np.arange(each.units, dtype=np.int64), np.diff(each.starts)) * (1 << 31) + each.cells
        for each in (one, other)
    ]
    places, at = np.unique(np.concatenate(keys), return_inverse=True)
    differing = np.bincount(at, np.concatenate([one.counts, -other.counts]), len(places))
    return Fraction(int(np.abs(differing).sum()), max(1, 2 * int(other.counts.sum())))


def _alike(stated: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether two reports of the fit of a level are the same but for what last digits change."""
    exact = [{**one, "most_sweeps": 0, "worst_gap": 0, "kappa": 0, "fallbacks": []} for one in (stated, found)]
    return (
        json.dumps(exact[0]) == json.dumps(exact[1])
        and abs(len(stated["fallbacks"]) - len(found["fallbacks"])) <= MOVED * stated["units"]
        and all(_near(stated[name], found[name], most) for name, most in (("kappa", 1e-6), ("most_sweeps", 0.5)))
        and stated["worst_gap"] <= max(10 * found["worst_gap"], 1e-12)
    )


def _near(stated: float | None, found: float | None, most: float) -> bool:
    if stated is None or found is None:
        return stated == found
    return abs(stated - found) <= most * abs(found)


def _is_report(release: ReleaseFolder, plan: TopDownPlan, spine: Spine) -> bool:
    """Whether the reports of the fit are of the plan's tables and levels, and have no fields or words of their own."""
    fit = release.certificate["fit"]
    expected = [
        (table.name, level, spine.units(at)) for table in plan.released for at, level in enumerate(spine.levels)
    ]
    if not isinstance(fit, list) or [(one["table"], one["level"], one["units"]) for one in fit] != expected:
        return False
    known = {field.name for field in fields(LevelReport)}
    if not release.by_this_version and "way" not in fit[0]:  # before 0.6 there was one way, and it was not stated
        known -= {"way"}
    for one in fit:
        if not isinstance(one["fallbacks"], list) or len(one["fallbacks"]) > 3 * one["units"]:
            return False
        numbers = [one["passes"], one["most_sweeps"], one["worst_gap"], 0 if one["kappa"] is None else one["kappa"]]
        at = spine.levels.index(one["level"])
        above = set(spine.names[max(0, at - 1)].to_pylist()) if one["fallbacks"] else set()
        if set(one) != known or not all(_is_modest(number) for number in numbers):
            return False
        if "way" in one and one["way"] not in ((BY_LEVEL,) if plan.fit == BY_LEVEL else (LEAST_SQUARES, TOO_WIDE)):
            return False
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in one["fallbacks"]):
            return False
        if not all(isinstance(name, str) and name in above and words in FALLBACKS for name, words in one["fallbacks"]):
            return False
    return True


def _is_modest(number: Any) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < 10**15


def bias_verdict(release: ReleaseFolder, counted: Counted, known: Known) -> tuple[list[ExpectedBias], Verdict]:
    """The forecasts of bias that the certificate states, and whether they are those that its plan has."""
    plan, stated = counted.plan, release.certificate.get("expected_bias")
    if stated is None and not release.by_this_version:
        return [], not_compared("the forecast of bias", "another version wrote none")
    tables = [table for table in plan.released if has_forecast(plan, counted.spine, table)]
    try:
        found = [ExpectedBias.from_published(one) for one in stated or []]
    except (TypeError, ValueError, KeyError, AttributeError):
        return [], Verdict(False, _FORECAST)
    if not isinstance(stated, list) or [one.table for one in found] != [table.name for table in tables]:
        return [], Verdict(False, _FORECAST)
    records = {table.name: int(counted.leaves[table.name].counts.sum()) for table in tables}
    for table in tables:
        simulated = simulated_records(plan, counted.spine, table, records[table.name])
        if simulated > max(RECORDS, TIMES * records[table.name]):
            why = f"computing it again would take {simulated:,} simulated records"
            return found, not_compared("the numbers of the forecast of bias", why)
    stage("computing the forecast of bias again")
    again = [expected_bias(known, table, records=records[table.name]) for table in tables]
    made = [one.published() for one in again if one is not None]
    if json.dumps(made) == json.dumps(stated):
        return found, Verdict(True, _FORECAST)
    if not release.by_this_version:
        return found, not_compared("the numbers of the forecast of bias", "another version computed them")
    if not all(_same_forecast(*pair) for pair in zip(stated, made, strict=True)):
        return [], Verdict(False, _FORECAST)
    return found, not_compared("the last digits of the forecast of bias", LAST_DIGITS)


def _same_forecast(stated: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """Whether two forecasts are of the same places, and differ by no more than the simulation leaves open."""
    numbers = {"bias": 0, "standard_error": 0}
    return (
        json.dumps({**stated, "classes": [{**one, **numbers} for one in stated["classes"]]})
        == json.dumps({**made, "classes": [{**one, **numbers} for one in made["classes"]]})
        and all(
            abs(one[name] - other[name]) <= other["standard_error"] + 0.01
            for one, other in zip(stated["classes"], made["classes"], strict=True)
            for name in numbers
        )
    )  # fmt: skip


def verify(path: str | Path) -> list[Verdict]:
    """Everything a recipient can check, each with its verdict."""
    return verify_with(ReleaseFolder.open(path), recount)


def recount(release: ReleaseFolder) -> list[Verdict]:
    """What can be checked of a TopDown release in particular."""
    stated = {table["format"] for table in release.dictionary.values()}
    plan = TopDownPlan.from_published(release.certificate["plan"]).model_copy(update={"format": sorted(stated)[0]})
    released = [table.name for table in plan.released] == list(release.dictionary) and len(stated) == 1
    verdicts = [Verdict(released, "the released tables are those of the plan")]
    geography = inside(release.path, f"{MEASUREMENTS}/{GEOGRAPHY_FILE}")
    same = release.certificate["geography_sha256"] == digest_of(geography)
    verdicts.append(Verdict(same, "the geography is that of the certificate"))
    if not (same and released):
        return verdicts
    spine = read_geography(geography, plan)
    listed = pq.read_table(geography).equals(geography_table(plan, spine), check_metadata=True)
    verdicts.append(Verdict(listed, "the geography lists every finest place once, in order, and nothing else"))
    known = Known(plan, spine, read_invariants(release.path / INVARIANTS, plan, spine))
    leaves = {}
    for number, table in enumerate(plan.released):
        stage(f"counting {table.name}", number / len(plan.released))
        leaves[table.name] = count_release(release, plan, spine, table)
        verdicts += shape_verdicts(release, table.name, int(leaves[table.name].counts.sum()))
        nested, ordered = _places_agree(release, plan, spine, table)
        verdicts.append(Verdict(nested, f"{table.name}: the coarser places of every row are those of the geography"))
        verdicts.append(Verdict(ordered, f"{table.name}: the order of the rows is: {ORDER}"))
        if table.zeros:
            clean = bool(table.possible[leaves[table.name].cells].all())
            verdicts.append(Verdict(clean, f"{table.name} has no combination of values that the plan rules out"))
    counted = Counted(plan, spine, leaves)
    verdicts += _invariants(release, counted, known)
    stage("recounting the invariants")
    verdicts += [
        Verdict(
            not len(leaves_breaking(counted, constraint, known)), f"recounted and kept: {constraint_words(constraint)}"
        )
        for constraint in plan.constraints
    ]
    verdicts += [
        Verdict(not len(leaves_breaking_relation(counted, one)), f"recounted and kept: {relation_words(one)}")
        for one in plan.relations
    ]
    verdicts += [*_published(release, counted), *_measurements(release, plan, spine), *_guarantee(release, plan)]
    if not contradicted(verdicts):
        verdicts += [_stored(release, counted, known), *fit_verdicts(release, counted, known)]
    return verdicts + _contents(release, counted, known)


def _stored(release: ReleaseFolder, counted: Counted, known: Known) -> Verdict:
    """Whether all tables, measurements, values of invariants and the geography are stored as a release stores them."""
    plan, spine = counted.plan, counted.spine

    def write(folder: Path) -> None:
        for table in plan.released:
            path = folder / release.dictionary[table.name]["file"]
            write_table(path, plan.format, rows(plan, spine, table, counted.leaves[table.name]))
        (folder / MEASUREMENTS).mkdir()
        measured = Measurements(release.path / MEASUREMENTS)
        write_again(measured.entries, measured.values, folder / MEASUREMENTS, plan, spine)
        known.write(folder)

    tables = [table["file"] for table in release.dictionary.values()]
    return stored_verdict(release, [*tables, *measurement_files(plan, spine), *invariant_files(plan)], write)


def _contents(release: ReleaseFolder, counted: Counted, known: Known) -> list[Verdict]:
    """Whether the folder contains what the plan says, and nothing else."""
    plan, spine = counted.plan, counted.spine
    stated = specify(plan, release.for_release)
    tables = [described(plan, spine, table, int(counted.leaves[table.name].counts.sum())) for table in plan.released]
    margins = [
        invariant.margin.counted_as(values.size, fingerprint(values))
        for invariant, values in zip(plan.invariants, known.exact, strict=True)
    ]
    fit, agreed = release.certificate["fit"], release.certificate["agrees_with"]
    more = {"fit": fit, "geography_sha256": release.certificate["geography_sha256"], "agrees_with": agreed}
    biases, forecast = bias_verdict(release, counted, known)
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


def _earlier_are_named(plan: TopDownPlan, agreed: Any) -> bool:
    return (
        isinstance(agreed, list)
        and len(agreed) == len(plan.earlier)
        and all(
            set(one) - {"level"} == {"table", "by", "manifest_sha256"}
            and one.get("level", plan.spine.levels[-1]) in plan.spine.levels  # not stated before levels could differ
            and one["table"] == section.table
            and isinstance(one["by"], list)
            and (
                one["by"] == list(section.by)
                if section.by
                else set(one["by"]) <= {attribute.name for attribute in plan.table(section.table).attributes}
            )
            and bool(re.fullmatch("[0-9a-f]{64}", one["manifest_sha256"]))
            for one, section in zip(agreed, plan.earlier, strict=True)
        )
    )


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


def _invariants(release: ReleaseFolder, counted: Counted, known: Known) -> list[Verdict]:
    plan, stated = counted.plan, release.certificate["invariants"]
    verdicts = [Verdict(len(stated) == len(plan.invariants), "the certificate states the plan's invariants")]
    for invariant, values, entry in zip(plan.invariants, known.exact, stated, strict=False):
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
    stage("reading the measurements")
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
    spine = read_geography(inside(release.path, f"{MEASUREMENTS}/{GEOGRAPHY_FILE}"), plan)
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
