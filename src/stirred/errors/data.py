"""Errors about the data: files that cannot be read or do not fit the plan, files of places for maps, and stops.

Names of units and places are public.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from shlex import quote

from stirred.errors.kinds import FEW, DataError, StoppedByCheck, few, listed

_WIDTH = 110
_NO_HEADER = (
    "If the names look like data, the file has no header line: add one, or write header = false and names = [...] in "
    "the section of the plan that has its path (init: --names a,b,c)."
)


def no_such_input(path: object) -> DataError:
    return DataError(
        "no-such-input",
        f"Nothing can be read at {path}: there is no such file, or it may not be read.",
        "Check the path and its permissions; a path in a plan starts from the folder of the plan.",
    )


def not_csv(path: object, what: str, remedy: str) -> DataError:
    return DataError("unreadable-file", f"{path} is no CSV text: its bytes are those of {what}.", remedy)


def not_a_table(table: str, kind: str) -> DataError:
    return DataError(
        "not-a-table",
        f"What was given for table '{table}' is no table: it is of the type {kind}.",
        "Give a path, or a pandas, polars or pyarrow frame.",
    )


def unknown_format(path: object) -> DataError:
    return DataError(
        "unknown-format",
        f"The file format of {path} cannot be told from its name.",
        'Name it: format = "csv", "parquet", "arrow", "stata", "sas" or "spss".',
    )


def mixed_formats(path: object) -> DataError:
    return DataError(
        "mixed-formats",
        f"{path} covers files of more than one format, or files whose columns differ.",
        "Give files of one format with the same columns.",
    )


def unreadable_format(path: object, kind: str) -> DataError:
    return DataError(
        "unreadable-file",
        f"{path} cannot be read as {kind}.",
        "It may be damaged, cut short, or of another format than its name says: copy it again, or name its format.",
    )


def ragged_csv(path: object, line: int = 0, fields: int = 0, wanted: int = 0) -> DataError:
    """``line`` is the first line with another number of fields than the header, or 0 where it was not found."""
    where = f"Line {line:,} of {path}" if line else f"A line of {path}"
    counted = f": {fields:,}, not {wanted:,}" if line else ""
    return DataError(
        "ragged-csv",
        f"{where} has more or fewer fields than its header{counted}.",
        "Correct that line: a field with the delimiter in it must stand in quotation marks. If all lines look right, "
        "write the right delimiter in [input] of the plan.",
    )


def unclosed_quote(path: object) -> DataError:
    return DataError(
        "unclosed-quote",
        f"{path} has an odd number of quotation marks: a quote may be unclosed, and hide the lines after it.",
        "Correct the file, or write quotes = false in [input] if quotation marks are part of the cells.",
    )


def not_utf8(path: object, encoding: str = "utf-8") -> DataError:
    said = "UTF-8" if encoding == "utf-8" else encoding
    return DataError(
        "not-utf8",
        f"{path} is not {said} text.",
        'Convert it, or name its encoding in [input], for example encoding = "cp1252"; stirred init FILE finds it.',
    )


def unsupported_type(table: str, column: str, kind: str) -> DataError:
    return DataError(
        "unsupported-type",
        f"Column '{column}' of table '{table}' holds {kind} values, which cannot be released cell by cell.",
        "Flatten it into plain columns, or drop it.",
    )


def wrong_type(table: str, column: str, wanted: str, path: object = None, line: int = 0) -> DataError:
    """``line`` is the first line with such a value, or 0 where it was not found."""
    where = f" The first is in line {line:,} of {path}." if line else ""
    return DataError(
        "wrong-type",
        f"Column '{column}' of table '{table}' has values that are not of the type {wanted} the plan gives it.{where}",
        "Correct the cells, or change types in [input] of the plan: a column without a type is kept as text. If such a "
        "value means an empty cell, list it under null_values in [input].",
    )


def empty_file(table: str) -> DataError:
    return DataError(
        "empty-file", f"Table '{table}' has no records: its file has no rows below the header.", "Check its path."
    )


def missing_columns(table: str, names: Sequence[str], known: Iterable[str] = ()) -> DataError:
    """``known`` are the columns there are. Only names that are nearly the asked ones are shown: in a file without a
    header line, names are cells."""
    there = {name.casefold().strip(): name for name in known}
    close = [
        there[found] for name in names for found in get_close_matches(name.casefold().strip(), there, n=1, cutoff=0.75)
    ]
    meant = f"Did you mean {listed(dict.fromkeys(close))}? " if close else ""
    return DataError(
        "missing-column",
        f"Table '{table}' has no column {listed(names)}.",
        f"{meant}Write column names exactly as in the table, capitals and spaces included.",
    )


def index_column(table: str, names: Sequence[str]) -> DataError:
    return DataError(
        "index-column",
        f"In the frame given for table '{table}', {listed(names)} is in the index, not a column.",
        "Indexes are not read: call reset_index() on the frame first.",
    )


def duplicate_columns(table: str, first: int, second: int) -> DataError:
    return DataError(
        "duplicate-column",
        f"Columns {first} and {second} of table '{table}' have the same name.",
        f"Rename one of them in the file. {_NO_HEADER}",
    )


def nameless_column(table: str, position: int) -> DataError:
    return DataError(
        "nameless-column",
        f"Column {position} of table '{table}' has no name.",
        "Give it a name in the header line of the file, or delete the column: it may be an index saved with the table. "
        + _NO_HEADER,
    )


def column_name(table: str, position: int) -> DataError:
    return DataError(
        "column-name",
        f"The name of column {position} of table '{table}' has line breaks or control characters.",
        f"Rename it, and look whether a quotation mark in it is not closed. {_NO_HEADER}",
    )


def columns_without_role(table: str, names: Sequence[str]) -> DataError:
    return DataError(
        "column-without-role",
        f"Table '{table}' has columns that the plan gives no role: {listed(names)}.",
        'List each under match, swap, hold, drop or id, or write hold = "rest".',
    )


@dataclass(frozen=True)
class NullsFound:
    """The columns of one table that have nulls and must not."""

    table: str
    counts: Mapping[str, int]
    ids: Sequence[str]
    """Those that identify rows or records: they can never have nulls."""
    allowed: Sequence[str]
    """What the plan's ``nulls`` lists already."""
    main: bool


def nulls(found: Sequence[NullsFound], looked: bool) -> DataError:
    """``looked``: the plan says already that types and formats of this data, or more, were looked at."""
    parts: list[str] = []
    lines: list[str] = []
    ids: list[str] = []
    for one in found:
        for name, count in one.counts.items():
            parts.append(f"Column '{name}' of table '{one.table}' has {count:,} null cells.")
        ids += [name for name in one.counts if name in one.ids]
        others = [name for name in one.counts if name not in one.ids]
        if others:
            place = "before the first [section]" if one.main else f'in the [[linked]] of name = "{one.table}"'
            lines.append(f"# {place}, in place of the nulls that may stand there:")
            lines += _nulls_in_toml([*one.allowed, *others])
    remedy = ""
    if ids:
        remedy = (
            f"{listed(dict.fromkeys(ids))} must say which record a row is or belongs to, so no plan can allow nulls "
            "there: fill in the ids, or remove those rows from the file. "
        )
    if lines:
        remedy += (
            "Where a missing value is a category of its own, put the lines below into the plan; otherwise fill the "
            "cells, or drop the columns."
        )
    if lines and not looked:
        remedy += (
            " Which columns have missing cells was found out from this data, and the line looked_at says so: the "
            "guarantee then holds given what that tells."
        )
        lines = ["# before the first [section], in place of a looked_at that may stand there:",
                 'looked_at = "types and formats"', *lines]  # fmt: skip
    return DataError("nulls", " ".join(parts), remedy.strip(), lines)


def _nulls_in_toml(values: Sequence[str]) -> list[str]:
    """The plan's list of columns that may have nulls, as lines of TOML."""
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    whole = f"nulls = [{', '.join(texts)}]"
    return [whole] if len(whole) <= _WIDTH else ["nulls = [", *(f"    {text}," for text in texts), "]"]


def header_is_record(table: str, columns: int, numbers: Sequence[int], values: Sequence[int]) -> DataError:
    """``numbers`` and ``values`` are positions of columns; the names themselves may be a record, so none is quoted."""
    seen = []
    if numbers:
        seen.append(f"{_columns(numbers)} would have {'a number' if len(numbers) == 1 else 'numbers'} as name")
    if values:
        seen.append(f"what would be the name of {_columns(values)} is also a value below it")
    return DataError(
        "header-is-record",
        f"The first line of table '{table}' looks like a record, not like a header: {'; '.join(seen)}. Taken for a "
        "header, it would be published as it is.",
        "If the file has no header line, write header = false and names = [...], a name for each of its "
        f"{columns:,} columns, in the section of the plan that has its path (init: --names a,b,c), or add the line to "
        "the file. If the first line is the header, write header = true there (init: --header).",
    )


def _columns(positions: Sequence[int]) -> str:
    shown = ", ".join(str(position) for position in positions[:FEW])
    more = f" and {len(positions) - FEW:,} more" if len(positions) > FEW else ""
    return f"column{'s' * (len(positions) > 1)} {shown}{more}"


def one_column(table: str, delimiter: str) -> DataError:
    named = "tab" if delimiter == "\t" else delimiter
    shown = "tabs" if delimiter == "\t" else f"'{delimiter}'"
    return DataError(
        "one-column",
        f"Table '{table}' was read as a single column, and its name contains {shown}: the fields seem to be separated "
        f"by {shown}.",
        f'Write delimiter = "{named}" in the [input] of this table (init: --delimiter "{named}"). If it has one column '
        'indeed, write the delimiter that it was read with, as in delimiter = ",".',
        [f'delimiter = "{named}"'],
    )


def float_match(column: str) -> DataError:
    return DataError(
        "float-match",
        f"The match variable '{column}' is a floating-point number.",
        "Records match when their values are equal: group it into categories, or give it a text or integer type.",
    )


def too_many_records(table: str, limit: int) -> DataError:
    return DataError(
        "too-many-records",
        f"Table '{table}' has more than {limit:,} records, the most one run can index.",
        "Split the file by the values of a match variable: records of different strata never mix.",
    )


def more_rows_than_expected(table: str, expected: int) -> DataError:
    return DataError(
        "more-rows-than-expected",
        f"Table '{table}' has more than the {expected:,} rows that it may have here.",
        "The rest was not read. If you trust the file and it should have that many rows, allow more of them.",
    )


def changed_while_reading(path: object) -> DataError:
    return DataError(
        "file-changed",
        f"{path} changed while it was being read.",
        "Nothing was released. Run again when nothing writes to the file.",
    )


def duplicate_ids(table: str, column: str, count: int, *, may_be_flat: bool = False) -> DataError:
    remedy = "Correct the ids, or name another column as the id: each record needs an id of its own."
    if may_be_flat:
        remedy = (
            f"If each row is a person and '{column}' is the id of the household, the file is flat: write flat = true "
            f"in a section [[linked]], as stirred init FILE --flat-id {quote(column)} drafts it; docs/plans.md says "
            f"more (stirred docs plans). Else c{remedy[1:]}"
        )
    return DataError(
        "duplicate-id", f"The id column '{column}' of table '{table}' repeats {count:,} of its values.", remedy
    )


def linked_without_record(table: str, column: str, main: str, count: int) -> DataError:
    return DataError(
        "linked-row-without-record",
        f"{count:,} rows of table '{table}' have a '{column}' that no record of {main} has.",
        "Correct or remove these rows: every linked row must belong to a record of the main table.",
    )


def copies_disagree(table: str, column: str, target: str, count: int) -> DataError:
    return DataError(
        "copies-disagree",
        f"In {count:,} rows of table '{table}' the column '{column}' differs from '{target}' of the record they "
        "belong to.",
        "Correct them: copies of swap variables are rewritten with the record, so they must agree with it first.",
    )


def flat_varies(id: str, counts: Mapping[str, int]) -> DataError:
    parts = [f"'{name}' (in {count:,} rows)" for name, count in counts.items()]
    return DataError(
        "flat-varies",
        f"Rows with the same '{id}' differ in columns that the plan gives to the record: {', '.join(parts)}.",
        "Correct the rows, or list these columns under hold of [[linked]], where each row has a value of its own.",
    )


def flat_unclear(reason: str) -> DataError:
    return DataError(
        "flat-unclear",
        f"The file cannot be split into records and their rows: {reason}.",
        "Name the id of the record with --flat-id, and columns that are the same in all rows of a record with "
        "--repeated COLUMN,COLUMN. If there are none, every row is a record of its own: leave --flat-id out.",
    )


def id_types_differ(table: str, column: str) -> DataError:
    return DataError(
        "id-types-differ",
        f"The column '{column}' of table '{table}' and the column it refers to are of different types.",
        "Give both the same type: in the file, or for CSV files by types in [input] and [linked.input].",
    )


_SEE = "docs/estimates.md says what such a file must be (stirred docs estimates)."


def places_file(file: object, problem: str, remedy: str = _SEE) -> DataError:
    return DataError("places-file", f"The file of places {file} {problem}.", remedy)


def places_unknown(file: object, unit: str, number: int, named: Sequence[str]) -> DataError:
    return DataError(
        "places-unknown",
        f"The file of places {file} lists {number:,} codes in column '{unit}' that the release's list of geounits does "
        f"not have: {few(named, number)}.",
        "Correct them: codes are compared as text, leading zeros included.",
    )


def places_twice(file: object, unit: str, number: int, named: Sequence[str]) -> DataError:
    return DataError(
        "places-twice",
        f"The file of places {file} lists {number:,} pairs of '{unit}' and place more than once: {few(named, number)}.",
        "Leave each pair once. One code may lie in several places, each in a row of its own.",
    )


def map_join(what: str, problem: str, remedy: str) -> DataError:
    return DataError("map-join", f"{what} {problem}.", remedy)


# -- stops: reasons in the data for which a release ends, unless the plan allows them by name ----------------------

_SHOWN_REMEDIES = 4


def held_determines_swap(table: str, column: str, swapped: str, with_match: bool) -> StoppedByCheck:
    given = "together with the match variables " if with_match else ""
    return StoppedByCheck(
        f"determines:{column}",
        f"The held column '{column}' of table '{table}' {given}determines the swap variable '{swapped}' in this "
        "file: publishing it unchanged shows where every moved record came from.",
        f"Swap '{column}' too, drop it, or add \"determines:{column}\" to allow.",
    )


def held_tells_swap(
    table: str, columns: Sequence[str], named: str, swapped: str, share: float, most: float
) -> StoppedByCheck:
    if len(columns) < 3:
        what = f"The held column{'s' if len(columns) > 1 else ''} {listed(columns)} of table '{table}'"
    else:
        what = f"The held columns of table '{table}' together"
    verb = "tells" if len(columns) == 1 else "tell"
    return StoppedByCheck(
        f"tells:{named}",
        f"{what} {verb} the swap variable '{swapped}' of {100 * share:.0f}% of the rows that the match variables do "
        "not tell: published unchanged, they show which records moved and where from. The plan accepts at most "
        f"{100 * most:.0f}%.",
        f'Swap, drop or coarsen them, state a larger most_told in the plan, or add "tells:{named}" to allow.',
    )


def undone(
    table: str,
    columns: Sequence[str],
    swapped: Sequence[str],
    *,
    households: bool,
    changed: float,
    recovered: float,
    precision: float,
    most: float,
    changes: Sequence[tuple[str, float]],
) -> StoppedByCheck:
    named = "+".join(columns)
    like = "they look like one household" if households else "they seem to stand for a place"
    left = [f"{words}: {_remains(share)} would remain" for words, share in changes]
    change = f"change the plan ({'; '.join(left)})" if left else "drop columns (stirred check says what each leaves)"
    first = (
        "If these rows are the persons of a household, make the household the record (stirred init --flat-id, or a "
        f"linked table). Or {change}."
        if households
        else f"{change[:1].upper()}{change[1:]}."
    )
    return StoppedByCheck(
        f"undone:{named}",
        f"Rows of table '{table}' that agree on {listed(columns)} mostly share {listed(swapped)}: {like}. Whoever "
        f"knows that can put back about {recovered * changed:,.0f} of {changed:,.0f} changed records "
        f"({100 * recovered:.0f}%), {100 * precision:.0f}% of what is put back rightly. The plan accepts at most "
        f"{100 * most:.3g}%.",
        f'{first} Or state a larger most_recovered in the plan, or add "undone:{named}" to allow.',
    )


def _remains(share: float) -> str:
    return "less than 1%" if share < 0.01 else f"{100 * share:.0f}%"


def undone_by_releases(releases: int, *, recovered: float, most: float, changed: float) -> StoppedByCheck:
    return StoppedByCheck(
        "undone-by-releases",
        f"The ledger has {releases:,} earlier swaps of this dataset. Held values link the rows of all of them, and the "
        f"swap value that most of them show is the true one: together they let anyone put back about "
        f"{recovered * changed:,.0f} of {changed:,.0f} records that this release would change "
        f"({100 * recovered:.0f}%). The plan accepts at most {100 * most:.3g}%.",
        "Publish the earlier release again instead of drawing another, hold fewer columns in all of them, state a "
        'larger most_recovered in the plan, or add "undone-by-releases" to allow.',
    )


def nearly_distinct(table: str, column: str, percent: int) -> StoppedByCheck:
    return StoppedByCheck(
        f"distinct:{column}",
        f"The held column '{column}' of table '{table}' takes a different value in {percent}% of the rows: it is "
        "published unchanged and may identify them.",
        f'Drop it, list it as the id if that is what it is, group it, or add "distinct:{column}" to allow.',
    )


def text_changes(table: str, column: str, kind: str, count: int) -> StoppedByCheck:
    return StoppedByCheck(
        f"changes-text:{column}",
        f"The type {kind} that the plan gives column '{column}' of table '{table}' changes how {count:,} of its cells "
        "are written (as 01 becomes 1, and 1.50 becomes 1.5), so the release would differ from the file in more than "
        "the swap.",
        f"Leave '{column}' out of types in [input] to carry its cells as they are. If a table adds it up or takes it "
        f'as a weight, it needs its type: add "changes-text:{column}" to allow.',
    )


def nothing_can_change() -> StoppedByCheck:
    return StoppedByCheck(
        "nothing-can-change",
        "No group of records that agree on the match variables has both two different held values and two different "
        "swap values: no other file has the counts that are published, so the release would be the confidential file.",
        "Match on fewer or coarser variables. This stop cannot be allowed.",
    )


def few_change(share: float, rate: Fraction, rounds: int = 1, *, selected_alone: bool = False) -> StoppedByCheck:
    """``selected_alone``: groups are large enough, and at this rate hardly any has two selected records."""
    selected = f"a rate of {100 * float(rate):.3g}%"
    if rounds > 1:
        selected = f"rates by which {rounds} rounds select {100 * float(rate):.3g}% of them at least once"
    why = (
        "a selected record moves only if another one of those that agree with it on the match variables is selected "
        "too, and with so few selected that is rare in groups of these sizes"
        if selected_alone
        else "most groups of records that agree on the match variables are too small, or have one swap value"
    )
    remedy = "Raise the rate, match" if selected_alone else "Match"
    return StoppedByCheck(
        "few-change",
        f"Only {100 * share:.3g}% of the records are expected to end with other swap values, at {selected}: "
        f"{why}. The release would be nearly the confidential file, whatever its epsilon.",
        f'{remedy} on fewer or coarser variables, or add "few-change" to allow.',
    )


def many_unchangeable(share: float, most: Fraction) -> StoppedByCheck:
    return StoppedByCheck(
        "many-unchangeable",
        f"{100 * share:.3g}% of the records can never change: they are alone in their group of records that agree on "
        "the match variables, or all of the group have the same held or the same swap values. The plan accepts at most "
        f"{100 * float(most):.3g}%.",
        "Match on fewer or coarser variables, state a larger most_unchangeable in the plan, or add "
        '"many-unchangeable" to allow.',
    )


def many_alone(
    alone: int, records: int, columns: Sequence[str], most: Fraction, without: Mapping[str, float]
) -> StoppedByCheck:
    left = [f"without '{name}' {100 * share:.3g}%" for name, share in sorted(without.items(), key=lambda one: one[1])]
    return StoppedByCheck(
        "many-alone",
        f"{alone:,} of {records:,} records ({100 * alone / records:.3g}%) are the only one with their values of "
        f"{listed(columns)}. How many records have which of these values is published exactly, so that each of these "
        "counts shows one record where it is, at any rate of swapping. The plan accepts at most "
        f"{100 * float(most):.3g}%.",
        "Swap coarser places, or match on fewer or coarser variables"
        + (f" ({', '.join(left[:_SHOWN_REMEDIES])} would remain)" if left else "")
        + ', state a larger most_alone in the plan, or add "many-alone" to allow.',
    )
