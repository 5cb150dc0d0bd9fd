"""Verifies a swapped release and tabulates it, from the release folder alone.

Verification uses nothing but the folder: the manifest's checksums, the dictionary's schema, a recount of the invariants
against the certificate's fingerprints, and epsilon recomputed from the released data, since it is a function of the
invariants (Remark 3.2.5).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from fractions import Fraction
from math import isclose
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred import errors
from stirred.invariants import Margin
from stirred.releases.release_folder import ReleaseFolder, Verdict, shape_verdicts, tabulate_rows, verify_with
from stirred.spec import Specification
from stirred.swap import guarantee
from stirred.swap.dataset import count_differing
from stirred.swap.margins import Strata, count_margin, strata_of
from stirred.swap.plan import MAIN, SwapPlan, table_names
from stirred.swap.records import beside_record, linked_kinds, multiset_class, whole_fingerprint
from stirred.swap.specifying import specify
from stirred.tables import Table
from stirred.tables.groups import Groups, cells, group
from stirred.tables.read import ReadTable
from stirred.tables.write import EXTENSIONS, counted_chunk, write_table


def verify(path: str | Path) -> list[Verdict]:
    """Everything a recipient can check, each with its verdict."""
    return verify_with(ReleaseFolder.open(path), recount)


def recount(release: ReleaseFolder) -> list[Verdict]:
    """What can be checked of a swap's release in particular."""
    verdicts: list[Verdict] = []
    plan = release.certificate["plan"]
    tables = {name: release.read(name) for name in release.dictionary}
    main = tables[MAIN].table
    for name, found in tables.items():
        verdicts += shape_verdicts(release, name, found.table.rows)
        verdicts += [
            Verdict(_counts_rows(found.identifiers[column]), f"{name}: '{column}' numbers the rows from 1 on")
            for column in release.with_role(name, "id")
        ]
    match = plan.get("match", [])
    records = {name: _record(release, name, found) for name, found in tables.items() if name != MAIN}
    joined = {name: beside_record(main, match, tables[name].table, record) for name, record in records.items()}
    counted = []
    for stated in release.certificate["invariants"]:
        margin = Margin(stated["table"], tuple(stated["columns"]))
        counted.append(count_margin(margin, joined.get(margin.table, main), len(match)))
        again = counted[-1].margin
        same = again.sha256 == stated["sha256"]
        verdicts.append(Verdict(same, f"recounted and equal: {again} ({again.cells:,} cells)"))
    kinds = [
        linked_kinds(tables[name].table.pick(release.with_role(name, "hold")), record, main.rows)
        for name, record in records.items()
    ]
    if kinds:
        fixed = group(main.pick([*match, *release.with_role(MAIN, "hold")]), main.rows)
        stated = release.certificate["whole_records"]
        same = whole_fingerprint(fixed, kinds) == stated["fingerprint"]
        verdicts.append(Verdict(same, f"recomputed and equal: {stated['words']}"))
        verdicts += _copies_agree(release, tables, main, records)

    def classes() -> tuple[Groups, list[NDArray[np.uint32]]]:
        return group(main.pick(match), main.rows), [multiset_class(entry) for entry in kinds]

    verdicts += _published_tables(release, main)
    strata = strata_of(counted[0], counted[1], classes if kinds else None)
    value = guarantee.epsilon(strata.largest, Fraction(plan["rate"]))
    stated = release.specification
    number = float(stated.budget.number)
    agrees = value == number or isclose(value, number, rel_tol=1e-12)
    verdicts.append(
        Verdict(agrees, f"epsilon recomputed from the released data is that of the certificate ({value:.6f})")
    )
    rebuilt = _rebuilt(release, strata)
    same = (rebuilt.flavor, rebuilt.nearest, rebuilt.facts) == (stated.flavor, stated.nearest, stated.facts)
    verdicts.append(Verdict(same, "the specification follows from the plan and the released tables"))
    return verdicts


def _rebuilt(release: ReleaseFolder, strata: Strata) -> Specification:
    """The specification that the published plan has on the released tables, which have the universe of the data."""
    plan = SwapPlan.from_published(release.certificate["plan"])
    linked = {entry.name: release.with_role(entry.name, "hold") for entry in plan.linked}
    return specify(plan, release.with_role(MAIN, "hold"), linked, strata)


def _published_tables(release: ReleaseFolder, main: Table) -> list[Verdict]:
    """Whether the published tables can be counted from the microdata."""
    plan, kind = SwapPlan.from_published(release.certificate["plan"]), release.dictionary[MAIN]["format"]
    stated: list[tuple[Sequence[str], Path, str]] = [
        (by, Path("tables") / f"{name}.csv", "csv")
        for by, name in zip(plan.publish, table_names(plan.publish), strict=True)
    ]
    if plan.saturated:
        stated.append((list(main.columns), Path(f"saturated{EXTENSIONS[kind]}"), kind))
    verdicts = []
    with tempfile.TemporaryDirectory() as scratch:
        for by, file, form in stated:
            again = Path(scratch) / file.name
            write_table(again, form, [counted_chunk(main, cells(main.pick(by), main.rows))])
            same = again.read_bytes() == (release.path / file).read_bytes()
            verdicts.append(Verdict(same, f"{file.as_posix()} has the counts of the microdata"))
    return verdicts


def _counts_rows(numbers: pa.ChunkedArray) -> bool:
    """Whether the values are 1 to N in the order of the rows."""
    return bool(np.array_equal(numbers.to_numpy(), np.arange(1, len(numbers) + 1)))


def _record(release: ReleaseFolder, name: str, found: ReadTable) -> NDArray[np.uint32]:
    """The row of the main table that each row of a linked one belongs to."""
    position = found.identifiers[release.with_role(name, "link")[0]].to_numpy() - 1
    if position.min() < 0 or position.max() >= release.dictionary[MAIN]["rows"]:
        raise errors.linked_without_record(name, release.with_role(name, "link")[0], MAIN, 1)
    return np.asarray(position, dtype=np.uint32)


def _copies_agree(
    release: ReleaseFolder, tables: dict[str, ReadTable], main: Table, records: dict[str, NDArray[np.uint32]]
) -> list[Verdict]:
    """Whether copies of swap variables in linked tables are those of the record."""
    stated = {entry["name"]: entry.get("copies", {}) for entry in release.certificate["plan"].get("linked", [])}
    return [
        Verdict(
            count_differing(tables[name].table[copy], main[stated[name].get(copy, copy)], record) == 0,
            f"{name}: '{copy}' agrees with the record",
        )
        for name, record in records.items()
        for copy in release.with_role(name, "copy")
    ]


def tabulate(path: str | Path, by: Sequence[str], table: str | None = None) -> pa.Table:
    """Counts of a released table by some columns; a linked table may use the columns of its records too."""
    return tabulate_release(ReleaseFolder.open(path), by, table)


def tabulate_release(release: ReleaseFolder, by: Sequence[str], table: str | None = None) -> pa.Table:
    """As :func:`tabulate`, of an opened release."""
    name = release.require_table(table)
    own = release.with_role(name, "match", "swap", "hold", "copy")
    of_record = [column for column in release.with_role(MAIN, "match", "swap", "hold") if column not in own]

    def joined(wanted: Sequence[str]) -> Table:
        found = release.read(name, [*(one for one in wanted if one in own), *release.with_role(name, "link")])
        borrowed = [one for one in wanted if one not in own]
        main = release.read(MAIN, borrowed).table
        return beside_record(main, borrowed, found.table, _record(release, name, found))

    return tabulate_rows(release, by, name, own, joined, () if name == MAIN else of_record)
