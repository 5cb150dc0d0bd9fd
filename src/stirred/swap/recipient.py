"""What a recipient can do with a release folder: verify it, and make further tables of it.

Verification uses nothing but the folder: the manifest's checksums, the dictionary's schema, a recount of the invariants
against the certificate's fingerprints, and epsilon recomputed from the released data, since it is a function of the
invariants (Remark 3.2.5).
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred import errors
from stirred.invariants import Margin
from stirred.release import documents
from stirred.release.folder import is_unfinished
from stirred.release.manifest import differences, read_manifest
from stirred.spec import Specification
from stirred.spec.forms import from_fields
from stirred.swap import guarantee
from stirred.swap.dataset import count_differing
from stirred.swap.margins import Strata, count_margin, strata_of
from stirred.swap.plan import MAIN, SwapPlan, table_names
from stirred.swap.records import beside_record, linked_kinds, multiset_class, whole_fingerprint
from stirred.swap.specify import specify
from stirred.tables import Input, InputOptions, Table, open_input
from stirred.tables.columns import recast, type_named
from stirred.tables.groups import Groups, cells, group
from stirred.tables.read import ReadTable, read_table
from stirred.tables.write import EXTENSIONS, counted_chunk, write_table


@dataclass(frozen=True)
class Verdict:
    """One thing that was verified, and whether it holds."""

    holds: bool
    words: str


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseFolder:
    """An opened release: its documents, and its tables read on demand."""

    path: Path
    certificate: dict[str, Any]
    dictionary: dict[str, dict[str, Any]]

    @classmethod
    def open(cls, path: str | Path) -> ReleaseFolder:
        path = Path(path)
        if not path.is_dir():
            raise errors.not_a_release(path, "there is no such folder")
        if is_unfinished(path):
            raise errors.not_a_release(path, "the run that wrote it did not end")
        read_manifest(path)
        certificate = documents.read_json(path, documents.CERTIFICATE, "stirred_certificate")
        described = documents.read_json(path, documents.DICTIONARY, "stirred_data_dictionary")
        return cls(path, certificate, {table["name"]: table for table in described["tables"]})

    def with_role(self, table: str, *roles: str) -> list[str]:
        return [name for name, fields in self.columns(table).items() if fields["role"] in roles]

    def columns(self, table: str) -> dict[str, dict[str, Any]]:
        return {column["name"]: column for column in self.dictionary[table]["columns"]}

    def read(self, name: str, wanted: Sequence[str] | None = None) -> ReadTable:
        """Read columns of a released table, all or those wanted, with the types the dictionary states."""
        entry, described = self.dictionary[name], self.columns(name)
        opened = self.open_table(name)
        columns = list(described) if wanted is None else list(wanted)
        missing = [column for column in columns if column not in opened.kinds]
        if missing:
            raise errors.missing_columns(name, missing)
        numbered = [column for column in columns if described[column]["role"] in ("id", "link")]
        found = read_table(opened, [column for column in columns if column not in numbered], numbered)
        if entry["format"] != "csv":
            return found
        typed = {
            column: recast(encoded, type_named(described[column]["type"]))
            for column, encoded in found.table.columns.items()
        }
        return replace(found, table=Table(name, found.table.rows, typed))

    def open_table(self, name: str) -> Input:
        entry = self.dictionary[name]
        types = {column: "integer" for column, fields in self.columns(name).items() if fields["role"] in ("id", "link")}
        options = InputOptions(format=entry["format"], types=types if entry["format"] == "csv" else {})
        if entry["file"] != name + EXTENSIONS[entry["format"]]:
            raise errors.not_a_release(self.path, "its data dictionary names a file that is not its own")
        return open_input(name, self.path / entry["file"], options)


def verify(path: str | Path) -> list[Verdict]:
    """Everything a recipient can check, each with its verdict."""
    release = ReleaseFolder.open(path)
    found = differences(release.path, read_manifest(release.path))
    verdicts = [Verdict(not found, "the files are those of the manifest" if not found else "; ".join(found))]
    if found:
        return verdicts
    try:
        return verdicts + _documents_agree(release) + _recount(release)
    except errors.StirredError as problem:
        reason = str(problem)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        reason = "its documents contradict its tables, or each other"
    return [*verdicts, Verdict(False, f"the tables can be read and recounted: {reason}")]


def _documents_agree(release: ReleaseFolder) -> list[Verdict]:
    plan = release.certificate["plan"]
    digest = hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()
    stated = documents.read_specification(release.path)
    same = json.loads(stated.to_json()) == release.certificate["specification"]
    return [
        Verdict(digest == release.certificate["plan_sha256"], "the plan is the one whose hash is certified"),
        Verdict(same, "the specification is the one that is certified"),
    ]


def _recount(release: ReleaseFolder) -> list[Verdict]:
    verdicts = []
    plan = release.certificate["plan"]
    tables = {name: release.read(name) for name in release.dictionary}
    main = tables[MAIN].table
    for name, found in tables.items():
        entry = release.dictionary[name]
        expected = [column["name"] for column in entry["columns"]]
        verdicts.append(
            Verdict(
                list(release.open_table(name).kinds) == expected,
                f"{name} has the columns of the data dictionary",
            )
        )
        verdicts.append(Verdict(found.table.rows == entry["rows"], f"{name} has {entry['rows']:,} rows"))
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
