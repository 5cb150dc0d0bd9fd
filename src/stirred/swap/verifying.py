"""Verifies a swapped release and tabulates it, from the release folder alone.

What must be there is derived from the plan: the tables, the role of every column, the invariants. All of it is counted
again and compared with the certificate's fingerprints, and epsilon is computed again from the released data, since it
is a function of the invariants (Remark 3.2.5). The certificate's own list of invariants is compared, never used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from stirred._bounded_reading import inside, plain
from stirred._progress import stage
from stirred.releases.folder.documents import Certificate, ReleasedTable
from stirred.releases.folder.release_folder import ReleaseFolder, tabulate_rows
from stirred.releases.folder.verifying import (
    Expected,
    contents_verdicts,
    same_bytes,
    shape_verdicts,
    stored_verdict,
    verify_with,
)
from stirred.releases.verdicts import Fault, Verdict, not_checked, not_compared
from stirred.semantics.swap_exposure import PutBackShare, SwapExposure
from stirred.spec import facts
from stirred.swap.checking.movement import movement_of
from stirred.swap.checking.putting_back import FEW_RECORDS, PUT_BACK, TOLERANCE, PutBack, put_back, put_back_by
from stirred.swap.checking.undoing import Swapped, swapped_data
from stirred.swap.data.counting import (
    RatesByStratum,
    Strata,
    count_margins,
    one_rate,
    rates_of_dataset,
    stated_margins,
    strata_of_dataset,
)
from stirred.swap.data.dataset import (
    FLAT,
    Dataset,
    count_differing,
    described,
    flat_chunks,
    flat_labels,
    flat_style,
    missing_from,
    roles_of,
)
from stirred.swap.data.records import beside_record, counted_table
from stirred.swap.data.released_files import ReleasedFiles, read_files, record_of
from stirred.swap.documents import readme
from stirred.swap.law import theorem
from stirred.swap.law.exposed_pairs import ReleasedPairs
from stirred.swap.law.permutation import LinkedRows, ShuffledRows, SortedRows, later_rounds
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.guarantee import epsilon_of, specify
from stirred.swap.plan.sections import MAIN, LinkedTable, PublishedTable, table_names
from stirred.tables import Column, InputOptions, Table, open_input
from stirred.tables.columns import chunks
from stirred.tables.groups import cells, fits_one_key, pack
from stirred.tables.labelled_files import CannotCompare, Labels, differs_from, write_labelled, writer_version
from stirred.tables.reading.table_reader import ReadTable
from stirred.tables.writing import EXTENSIONS, Cell, Chunk, as_arrow, counted_chunk, write_table


def verify(path: str | Path) -> list[Verdict]:
    """Everything a recipient can check, each with its verdict."""
    return verify_with(ReleaseFolder.open(path), recount)


def recount(release: ReleaseFolder) -> list[Verdict]:
    """What can be checked of a swap's release in particular."""
    plan = SwapPlan.from_published(release.certificate["plan"])
    verdicts = _roles_agree(release, plan)
    if not all(verdict.holds for verdict in verdicts):
        return verdicts  # nothing can be counted by the plan
    files = read_files(release, plan)
    for name, found in files.tables.items():
        verdicts += shape_verdicts(release, name, found.table.rows)
        verdicts += _row_verdicts(files, name, found)
    stage("counting the invariants")
    data = files.data
    margins, by_record = count_margins(data), rates_of_dataset(data)
    strata = strata_of_dataset(data, margins)
    rates = by_record.by_stratum(data.strata) if by_record else None
    rebuilt = specify(
        plan,
        data.held,
        data.linked_columns,
        strata,
        None
        if _before(release, facts.CHANGED_SHARE)
        else movement_of(strata, margins.swapped, rates or one_rate(plan), later_rounds(plan, data.counted)),
        release.for_release,
        rates,
        None if _before(release, facts.ALONE) else margins.swapped.alone,
    )
    if _epsilon_of_earlier_version(release, plan, strata):
        rebuilt = replace(rebuilt, budget=replace(rebuilt.budget, value=release.specification.budget.number))
    stated = release.certificate["invariants"]
    for counted in margins.counted:
        same = any(one["sha256"] == counted.margin.sha256 for one in stated)
        verdicts.append(Verdict(same, f"recounted and equal: {counted.margin} ({counted.margin.cells:,} cells)"))
    if margins.whole is not None:
        whole = release.certificate["whole_records"]
        same = isinstance(whole, dict) and margins.whole == whole["fingerprint"]
        verdicts.append(Verdict(same, f"recomputed and equal: {rebuilt.multiverse.invariants[0]}"))
        verdicts += _copies_agree(files)
    verdicts += _published_tables(release, plan, data)
    if plan.flat is not None:
        verdicts += _flat_verdicts(files, plan.flat)
    stored = [table["file"] for table in release.dictionary.values()]
    verdicts.append(stored_verdict(release, stored, partial(_write, files)))
    verdicts += _labelled_verdicts(files)
    verdicts += _guarantee(release, plan, strata, rates)
    verdicts.append(Verdict(release.states(rebuilt), "the specification follows from the plan and the released tables"))
    tables = _described(files)
    stated_back, back_verdicts = _put_back(release, files)
    more = {} if stated_back is None else {PUT_BACK: stated_back.to_fields()}
    certificate = Certificate(plan, rebuilt, stated_margins(plan, rebuilt, margins), release.for_release, None, more)
    text = readme(rebuilt, plan, tables, stated_back)
    expected = Expected(certificate, tables, text, _published_files(release, plan, tables))
    return [*verdicts, *back_verdicts, *contents_verdicts(release, expected)]


def released_exposure(release: ReleaseFolder, pairs: Sequence[str] = (), level: float = 0.05) -> SwapExposure | None:
    """How well exchanged pairs of a release are noticed, and how many changed records can be put back.

    The second is read from the certificate, or computed where an earlier version did not state it.
    """
    found = ReleasedPairs(release).exposure(pairs, level)
    if found is None:
        return None
    plan = SwapPlan.from_published(release.certificate["plan"])
    stated = PutBack.from_fields(release.certificate.get(PUT_BACK))
    limit = None if stated is None else float(plan.most_recovered)
    stated = stated or PutBack.of(put_back(_swapped(read_files(release, plan).data)))
    return replace(found, put_back=PutBackShare(stated.share, stated.columns, stated.variables, limit))


def _put_back(release: ReleaseFolder, files: ReleasedFiles) -> tuple[PutBack | None, list[Verdict]]:
    """What the certificate says can be put back at least, and whether that is so, within a tolerance.

    It is recomputed for the columns that are stated, and searched anew: what is found may be little more than that.
    """
    if PUT_BACK not in release.certificate and not release.by_this_version:
        return None, []  # versions before 0.7 did not state it
    stated = PutBack.from_fields(release.certificate.get(PUT_BACK))
    if stated is None:
        return None, [Verdict(False, "the certificate says how many changed records can be put back")]
    stage("looking for records that can be put back")
    given = _swapped(files.data)
    by_stated, anew = put_back_by(given, stated), put_back(given)
    found = by_stated.recovered if by_stated is not None else 0.0
    near = abs(found - stated.share) <= TOLERANCE and (by_stated is not None) == bool(stated.columns)
    near = near and (bool(stated.columns) or stated == PutBack.of(None))
    more = 0.0 if anew is None else anew.recovered - stated.share
    few = anew is None or more <= 2 * TOLERANCE or more * anew.changed <= FEW_RECORDS
    words = (
        f"at least {100 * stated.share:.3g}% of the changed records can be put back from the released rows: "
        f"recomputed, within {100 * TOLERANCE:.0f} in 100"
    )
    return stated, [Verdict(near and few, words)]


def _roles_agree(release: ReleaseFolder, plan: SwapPlan) -> list[Verdict]:
    """Whether the released tables and the roles of their columns are those of the plan."""
    names = [MAIN, *(entry.name for entry in plan.linked)]
    verdicts = [Verdict(list(release.dictionary) == names, "the released tables are those of the plan")]
    if not verdicts[0].holds:
        return verdicts
    for name in names:
        stated = {column: fields["role"] for column, fields in release.columns(name).items()}
        roles = roles_of(plan, name, list(stated))
        wrong = [column for column in stated if stated[column] != roles.get(column)]
        wrong += missing_from(plan, name, list(stated))
        words = f"{name}: every column has the role that the plan gives it, and none is missing"
        words += f" (not so: {', '.join(plain(column, 60) for column in wrong[:5])})" if wrong else ""
        verdicts.append(Verdict(not wrong, words))
    return verdicts


def _guarantee(release: ReleaseFolder, plan: SwapPlan, strata: Strata, rates: RatesByStratum | None) -> list[Verdict]:
    value = epsilon_of(plan, strata, rates)
    same = float(release.specification.budget.number) == value or _epsilon_of_earlier_version(release, plan, strata)
    if same:
        return [Verdict(True, f"epsilon recomputed from the released data is that of the certificate ({value:.6f})")]
    stated = release.specification.budget.number
    words = (
        f"the certificate states an epsilon of {float(stated):.6f}; recomputed from the released data it is {value:.6f}"
    )
    return [Fault(False, words)]


def _before(release: ReleaseFolder, fact: str) -> bool:
    """Whether an earlier version wrote the release, which did not state this fact yet."""
    return not release.by_this_version and fact not in release.specification.fact


def _epsilon_of_earlier_version(release: ReleaseFolder, plan: SwapPlan, strata: Strata) -> bool:
    """Whether epsilon is rounded as versions before 0.3 did, in a release that this version did not write."""
    stated = float(release.specification.budget.number)
    if release.by_this_version or plan.rate is None:
        return False
    return stated == theorem.epsilon_before_0_3(strata.largest, plan.rate)


def _row_verdicts(files: ReleasedFiles, name: str, found: ReadTable) -> list[Verdict]:
    """What must be so of the rows of a table: new ids, the order, nulls only where the plan allows them."""
    entry = files.data.plan if name == MAIN else files.data.by_name[name].plan
    verdicts = [
        Verdict(_counts_rows(found.identifiers[column]), f"{name}: '{column}' numbers the rows from 1 on")
        for column in files.release.with_role(name, "id")
    ]
    strange = [column for column in found.nulls if column not in entry.nulls]
    verdicts.append(Verdict(not strange, f"{name} has empty cells only where the plan allows them"))
    order = _order(files, name)
    return [*verdicts, Verdict(_in_order(files, name, order), f"{name}: the order of the rows is: {order}")]


def _order(files: ReleasedFiles, name: str) -> str:
    if name != MAIN:
        return LinkedRows.order
    return SortedRows.order if not files.data.linked and fits_one_key(_coded(files)) else ShuffledRows.order


def _in_order(files: ReleasedFiles, name: str, order: str) -> bool:
    """Whether rows are in the order that is promised; a random one cannot be told from another."""
    if order == SortedRows.order:
        last = 0
        for part in chunks(files.data.records):
            keys = pack(_coded(files), part)
            if int(keys[0]) < last or np.any(keys[1:] < keys[:-1]):
                return False
            last = int(keys[-1])
    elif order == LinkedRows.order:
        record = files.data.by_name[name].record
        return not np.any(record[1:] < record[:-1])
    return True


def _coded(files: ReleasedFiles) -> list[Column]:
    return [files.data.table[name] for name in files.release.columns(MAIN) if name != files.data.plan.id]


def _write(files: ReleasedFiles, folder: Path) -> None:
    """Write all tables again, as they were read."""
    for name in files.tables:
        entry = files.release.dictionary[name]
        write_table(folder / entry["file"], entry["format"], _chunks(files, name), files.release.style(name))


def _chunks(files: ReleasedFiles, name: str) -> Iterator[Chunk]:
    copies = files.copies(name)
    for part in chunks(files.tables[name].table.rows):
        yield [_cell(files, name, column, part, copies) for column in files.release.columns(name)]


def _cell(files: ReleasedFiles, name: str, column: str, part: slice, copies: Mapping[str, Column]) -> Cell:
    found = files.tables[name]
    if column in found.identifiers:
        return Cell(column, found.identifiers[column][part].to_numpy())
    if column in copies:  # with all values of the record's column, also those of records without linked rows
        return Cell(column, copies[column].codes[files.data.by_name[name].record[part]], copies[column])
    return Cell(column, found.table[column].codes[part], found.table[column])


def _copies_agree(files: ReleasedFiles) -> list[Verdict]:
    """Whether copies of swap variables in linked tables are those of the record."""
    return [
        Verdict(
            count_differing(files.tables[name].table[copy], files.data.table[target], entry.record) == 0,
            f"{name}: '{copy}' agrees with the record",
        )
        for name, entry in files.data.by_name.items()
        for copy, target in entry.copies.items()
    ]


def _labelled_verdicts(files: ReleasedFiles) -> list[Verdict]:
    """Whether files with labels are their tables and the labels that the data dictionary states.

    They are written again and compared: byte for byte, or where other versions of the programs wrote them by what
    is in them.
    """
    verdicts = []
    for name in files.tables:
        if (labels := files.release.labels(name)) is None:
            continue
        numbered = files.release.with_role(name, "id", "link")
        if labels == labels.of(list(files.release.columns(name)), numbered):
            verdicts += _compare_labelled(files, name, _chunks(files, name), labels)
        else:
            words = f"{labels.file(name)} has the rows of its table and the labels of the data dictionary"
            words += " (not so: the dictionary has labels of columns that the table has not)"
            verdicts.append(Verdict(False, words))
    return verdicts


def _compare_labelled(files: ReleasedFiles, name: str, rows: Iterator[Chunk], labels: Labels) -> list[Verdict]:
    file = labels.file(name)
    if writer_version() is None:
        return [not_compared(file, "pyreadstat is not installed here, which writes such files")]
    words = f"{file} has the rows of its table and the labels of the data dictionary"
    if labels.repeated:
        return [Verdict(False, f"{words} (not so: the dictionary has two labels of a value)")]
    with tempfile.TemporaryDirectory() as scratch:
        again, received = Path(scratch) / file, inside(files.release.path, file)
        write_labelled(again, as_arrow(rows), labels)
        if same_bytes(again, received):
            return [Verdict(True, words)]
        if files.release.by_these_programs and labels.writer == writer_version():
            return [Verdict(False, words)]
        try:
            other = differs_from(again, received, labels)
        except CannotCompare as problem:
            return [not_checked(file, str(problem))]
    if other:
        return [Verdict(False, f"{words} (not so: {other})")]
    stored = not_compared(f"how {file} stores its rows", "other versions of the programs wrote it")
    return [Verdict(True, words), stored]


def _flat_verdicts(files: ReleasedFiles, entry: LinkedTable) -> list[Verdict]:
    """Whether the flat file is its two tables put together, and one with labels has theirs; its columns may stand
    in any order."""
    kind, tables = files.release.dictionary[MAIN]["format"], _described(files)
    style, stated = flat_style(tables), inside(files.release.path, _flat_file(files.release))
    rows = files.release.dictionary[entry.name]["rows"]
    options = InputOptions(format=kind, delimiter=style.delimiter if kind == "csv" else None, header=True)
    columns = list(open_input(FLAT, stated, options, most_rows=rows).kinds)
    words = f"{stated.name} has the rows of {entry.name} beside the columns of their record"
    if sorted(columns) != sorted({name for table in tables for name, _ in table.columns}):
        return [Verdict(False, words)]

    def joined() -> Iterator[Chunk]:
        return flat_chunks(columns, entry.link, files.data.table, _chunks(files, entry.name))

    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch) / stated.name
        write_table(again, kind, joined(), style)
        verdicts = [Verdict(_same_table(again, stated, kind, files.release.by_these_programs), words)]
    labels = _flat_labels(files.release, tables, columns)
    return verdicts if labels is None else [*verdicts, *_compare_labelled(files, FLAT, joined(), labels)]


def _described(files: ReleasedFiles) -> list[ReleasedTable]:
    """The tables as the data dictionary must state them."""
    found = []
    for name, read in files.tables.items():
        kind = files.release.dictionary[name]["format"]
        columns, style = list(files.release.columns(name)), files.release.style(name)
        order, copies = _order(files, name), files.copies(name)
        table = described(files.data.plan, name, kind, columns, read.table, order, copies, style)
        found.append(replace(table, labels=files.release.labels(name)))
    return found


def _swapped(data: Dataset) -> Swapped:
    """The released tables as far as putting records back needs them."""
    return swapped_data(data, rates_of_dataset(data) or one_rate(data.plan))


def _published(release: ReleaseFolder, plan: SwapPlan) -> list[tuple[PublishedTable | None, str, str]]:
    """The tables beside the microdata, file and format of each; None stands for all columns at once."""
    kind, asked = release.dictionary[MAIN]["format"], plan.published_tables
    stated: list[tuple[PublishedTable | None, str, str]] = [
        (one, f"tables/{name}.csv", "csv") for one, name in zip(asked, table_names(asked), strict=True)
    ]
    return [*stated, *([(None, f"saturated{EXTENSIONS[kind]}", kind)] if plan.saturated else [])]


def _published_files(release: ReleaseFolder, plan: SwapPlan, tables: Sequence[ReleasedTable]) -> list[str]:
    flat = [_flat_file(release)] if plan.flat is not None else []
    if plan.flat is not None and (labels := _flat_labels(release, tables)) is not None:
        flat.append(labels.file(FLAT))
    labelled = [labels.file(name) for name in release.dictionary if (labels := release.labels(name)) is not None]
    return [*flat, *labelled, *(file for _, file, _ in _published(release, plan))]


def _flat_file(release: ReleaseFolder) -> str:
    return FLAT + EXTENSIONS[release.dictionary[MAIN]["format"]]


def _flat_labels(release: ReleaseFolder, tables: Sequence[ReleasedTable], columns: Sequence[str] = ()) -> Labels | None:
    """The labels in a second flat file; versions before 0.8 wrote none."""
    return None if release.is_by_version_before(0, 8) else flat_labels(tables, columns)


def _published_tables(release: ReleaseFolder, plan: SwapPlan, data: Dataset) -> list[Verdict]:
    """Whether the published tables can be counted or added up from the microdata."""
    verdicts, main = [], data.table
    with tempfile.TemporaryDirectory() as scratch:
        for asked, file, form in _published(release, plan):
            again = Path(scratch) / Path(file).name
            if asked is None:
                chunk = counted_chunk(main, cells(main.pick(main.columns), main.rows))
            else:
                data.require(asked)
                chunk = counted_table(data, asked).chunk()
            write_table(again, form, [chunk])
            same = _same_table(again, inside(release.path, file), form, release.by_these_programs)
            what = "sums" if asked is not None and asked.adds_up else "counts"
            verdicts.append(Verdict(same, f"{file} has the {what} of the microdata"))
    return verdicts


def _same_table(again: Path, stated: Path, form: str, by_these_programs: bool) -> bool:
    """Whether two files hold the same table; byte for byte where the same programs wrote them."""
    if form == "csv" or by_these_programs:
        return same_bytes(again, stated)
    if form == "parquet":
        # Versions before 0.5 did not say which columns have no empty cells.
        found = [pq.read_table(file) for file in (again, stated)]
        plain = [one.cast(pa.schema([item.with_nullable(True) for item in one.schema])) for one in found]
        return bool(plain[0].equals(plain[1], check_metadata=True))
    return bool(pa.ipc.open_file(again).read_all().equals(pa.ipc.open_file(stated).read_all(), check_metadata=True))


def _counts_rows(numbers: pa.ChunkedArray) -> bool:
    """Whether the values are 1 to N in the order of the rows."""
    return bool(np.array_equal(numbers.to_numpy(), np.arange(1, len(numbers) + 1)))


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
        return beside_record(main, borrowed, found.table, record_of(release, name, found))

    return tabulate_rows(release, by, name, own, joined, () if name == MAIN else of_record)
