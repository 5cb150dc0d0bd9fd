"""What a recipient can do with a release folder: verify it, and make further tables of it.

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
from stirred.releases.opened import ReleaseFolder, Verdict, shape_verdicts, verify_with
from stirred.spec import Specification
from stirred.spec.forms import from_fields
from stirred.swap import guarantee
from stirred.swap.dataset import count_differing
from stirred.swap.margins import Strata, count_margin, strata_of
from stirred.swap.plan import MAIN, SwapPlan, table_names
from stirred.swap.records import beside_record, linked_kinds, multiset_class, whole_fingerprint
from stirred.swap.specify import specify
from stirred.tables import Table
from stirred.tables.groups import Groups, cells, group
from stirred.tables.read import ReadTable
from stirred.tables.write import EXTENSIONS, counted_chunk, write_table


def verify(path: str | Path) -> list[Verdict]:
    """Everything a recipient can check, each with its verdict."""
    return verify_with(path, _recount)


def _recount(release: ReleaseFolder) -> list[Verdict]:
    verdicts: list[Verdict] = []
    plan = release.certificate["plan"]
    tables = {name: release.read(name) for name in release.dictionary}
    main = tables[MAIN].table
    for name, found in tables.items():
        verdicts += shape_verdicts(release, name, found.table.rows)
        verdicts += [
            Verdict(_counts_rows(found.identifiers[column]), f"{name}: '{column}' counts the rows")
            for column in release.with_role(name, "id")
        ]
    match = plan.get("match", [])
    records = {name: _record(release, name, found) for name, found in tables.items() if name != MAIN}
    joined = {name: beside_record(main, match, tables[name].table, record) for name, record in records.items()}
    counted = []
    for stated in release.certificate["invariants"]:
        margin = Margin(stated["table"], tuple(stated["columns"]))
        counted.append(count_margin(margin, joined.get(margin.table, main), len(match)))
        same = counted[-1].fingerprint == stated["sha256"]
        verdicts.append(Verdict(same, f"recounted and equal: {margin.words()} ({counted[-1].cells:,} cells)"))
    kinds = [
        linked_kinds(tables[name].table.pick(release.with_role(name, "hold")), record, main.rows)
        for name, record in records.items()
    ]
    if kinds:
        fixed = group(main.pick([*match, *release.with_role(MAIN, "hold")]), main.rows)
        stated = release.certificate["whole_records"]
        same = whole_fingerprint(fixed, kinds) == stated["fingerprint"]
        verdicts.append(Verdict(same, f"refound and equal: {stated['words']}"))
        verdicts += _copies_agree(release, tables, main, records)

    def classes() -> tuple[Groups, list[NDArray[np.uint32]]]:
        return group(main.pick(match), main.rows), [multiset_class(entry) for entry in kinds]

    verdicts += _published_tables(release, main)
    strata = strata_of(counted[0], counted[1], classes if kinds else None)
    value = guarantee.epsilon(strata.largest, Fraction(plan["rate"]))
    stated = from_fields(release.certificate["specification"])
    number = float(stated.budget.number)
    agrees = value == number or isclose(value, number, rel_tol=1e-12)
    verdicts.append(Verdict(agrees, f"epsilon recomputed from the released data is the one certified ({value:.6f})"))
    rebuilt = _rebuilt(release, strata)
    same = (rebuilt.flavor, rebuilt.nearest, rebuilt.facts) == (stated.flavor, stated.nearest, stated.facts)
    verdicts.append(Verdict(same, "the blocks of the specification are those of the plan and the released tables"))
    return verdicts


def _rebuilt(release: ReleaseFolder, strata: Strata) -> Specification:
    """The specification that the published plan has on the released tables, which have the universe of the data."""
    fields = {key: value for key, value in release.certificate["plan"].items() if key not in ("stirred", "mechanism")}
    plan = SwapPlan(**fields)
    linked = {entry.name: release.with_role(entry.name, "hold") for entry in plan.linked}
    return specify(plan, release.with_role(MAIN, "hold"), linked, strata)


def _published_tables(release: ReleaseFolder, main: Table) -> list[Verdict]:
    """Whether the tables beside the microdata are tables of it."""
    plan, kind = release.certificate["plan"], release.dictionary[MAIN]["format"]
    wanted = plan.get("tables", [])
    stated = [(by, Path("tables") / f"{name}.csv", "csv") for by, name in zip(wanted, table_names(wanted), strict=True)]
    if plan.get("saturated"):
        stated.append((list(main.columns), Path(f"saturated{EXTENSIONS[kind]}"), kind))
    verdicts = []
    with tempfile.TemporaryDirectory() as scratch:
        for by, file, form in stated:
            again = Path(scratch) / file.name
            write_table(again, form, [counted_chunk(main, cells(main.pick(by), main.rows))])
            same = again.read_bytes() == (release.path / file).read_bytes()
            verdicts.append(Verdict(same, f"{file.as_posix()} is a table of the microdata"))
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
            f"{name}: '{copy}' is that of the record",
        )
        for name, record in records.items()
        for copy in release.with_role(name, "copy")
    ]


def tabulate(path: str | Path, by: Sequence[str], table: str = MAIN) -> pa.Table:
    """Counts of a released table by some columns; a linked table may use the columns of its records too."""
    release = ReleaseFolder.open(path)
    if table not in release.dictionary:
        raise errors.unknown_table(table, list(release.dictionary))
    own = release.with_role(table, "match", "swap", "hold", "copy")
    of_record = [name for name in release.with_role(MAIN, "match", "swap", "hold") if name not in own]
    known = own if table == MAIN else own + of_record
    unknown = [name for name in by if name not in known]
    if unknown:
        raise errors.unknown_table_column(unknown, known)
    if set(by) <= set(own):
        source = release.read(table, by).table
    else:
        found = release.read(table, [*(name for name in by if name in own), *release.with_role(table, "link")])
        wanted = [name for name in by if name not in own]
        source = beside_record(release.read(MAIN, wanted).table, wanted, found.table, _record(release, table, found))
    counted = cells(source.pick(by), source.rows)
    decoded = [source[name].decode(codes) for name, codes in zip(by, counted.codes, strict=True)]
    return pa.table([*decoded, pa.array(counted.counts.astype(np.int64))], names=[*by, counted.label])
