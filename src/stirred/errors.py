"""Every message a user can meet.

One constructor per message, so that the wording stands in one place and can be tested. A message names the
table, the column and the kind of value that is wrong, then the remedy. The invariant of this module: **no
message contains a value read from the data**. Column names, plan values, counts of rows and paths the user
typed are allowed; cells are not.

Exceptions of the libraries below are caught where they arise and replaced by one of these ``from None``, since
their texts and their causes may quote cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


class StirredError(Exception):
    """A refusal: what is wrong, and what to do about it. The command line exits with code 2.

    ``kind`` is a stable slug (``"missing-column"``) by which tests and callers tell refusals apart.

    >>> print(StirredError("some-kind", "The plan is blue.", "Paint it."))
    The plan is blue. Paint it.
    """

    def __init__(self, kind: str, problem: str, remedy: str) -> None:
        super().__init__(f"{problem} {remedy}")
        self.kind = kind
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[StirredError], tuple[str, str, str]]:
        return type(self), (self.kind, self.problem, self.remedy)


class PlanError(StirredError):
    """The plan itself cannot be carried out, whatever the data."""


class DataError(StirredError):
    """The data do not fit the plan, or cannot be read."""


class OutputError(StirredError):
    """The release cannot be written where it was asked for, or a release folder is not what it claims."""


class StoppedByCheck(StirredError):
    """Something in the data makes the planned release unwise; it goes ahead only when allowed by name."""


def listed(names: Iterable[str]) -> str:
    """Names in quotes, for a sentence.

    >>> listed(["a", "b", "c"])
    "'a', 'b' and 'c'"
    """
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " and " + quoted[-1]


# -- plans ---------------------------------------------------------------------------------------------------


def plan_not_toml(path: Path, line: str) -> PlanError:
    return PlanError("plan-not-toml", f"{path} is not valid TOML ({line}).", "Mend the file and try again.")


def plan_unreadable(path: Path) -> PlanError:
    return PlanError("plan-unreadable", f"There is no readable plan at {path}.", "Draft one with: stirred init FILE")


def plan_version(found: object) -> PlanError:
    return PlanError(
        "plan-version",
        f"The plan says stirred = {found!r}; this version reads plans of form 1.",
        "Write stirred = 1 at the top of the plan.",
    )


def plan_mechanism(found: object) -> PlanError:
    return PlanError(
        "plan-mechanism",
        f"The plan asks for the mechanism {found!r}.",
        'The one known here is mechanism = "swap".',
    )


def plan_field(problems: Sequence[str]) -> PlanError:
    return PlanError(
        "plan-field",
        "The plan has fields that cannot be used: " + "; ".join(problems) + ".",
        "See docs/plans.md for the fields of a plan.",
    )


def two_roles(table: str, column: str, first: str, second: str) -> PlanError:
    return PlanError(
        "two-roles",
        f"In table '{table}' the column '{column}' is listed under {first} and again under {second}.",
        "Give every column exactly one role.",
    )


def empty_role(role: str) -> PlanError:
    return PlanError(
        f"empty-{role}",
        f"The plan lists no {role} variables.",
        "Swapping needs at least one variable that moves (swap) and one that stays (hold).",
    )


def rate_not_a_number(found: object) -> PlanError:
    return PlanError(
        "rate-not-a-number",
        f"The swap rate {found!r} is not a number.",
        'Write a decimal such as 0.05, or a fraction in quotes such as "1/20".',
    )


def rate_out_of_range(found: object) -> PlanError:
    return PlanError(
        "rate-out-of-range",
        f"The swap rate {found} lies outside 0 to 1.",
        "It is a probability: write 0.05 for five per cent.",
    )


def rate_zero_or_one(found: object) -> PlanError:
    return PlanError(
        "rate-zero-or-one",
        f"With a swap rate of {found} the guarantee is infinite: no epsilon holds (Theorem 3.2.4).",
        'Choose a rate strictly between 0 and 1, or add "rate-zero-or-one" to allow.',
    )


def rate_too_fine(digits: int) -> PlanError:
    return PlanError(
        "rate-too-fine",
        f"The denominator of the swap rate has {digits} digits; at most 18 are carried exactly.",
        "Round the rate; the rounded number is the one the guarantee will be computed from.",
    )


def linked_needs_id() -> PlanError:
    return PlanError(
        "linked-needs-id",
        "The plan links another table but names no id column of the main table.",
        'Write id = "..." with the column that identifies a record.',
    )


def linked_name(name: str) -> PlanError:
    return PlanError(
        "linked-name",
        f"'{name}' cannot name a linked table.",
        "Use letters, digits, - and _; each table needs a name of its own, and 'microdata' is taken.",
    )


def unknown_copy(table: str, column: str, target: str) -> PlanError:
    return PlanError(
        "unknown-copy",
        f"Table '{table}' says that '{column}' copies '{target}', which is not a swap variable.",
        "Only copies of swap variables are rewritten; list other columns under hold.",
    )


def table_columns(names: Sequence[str], known: Sequence[str]) -> PlanError:
    return PlanError(
        "table-column",
        f"A table is asked for by {listed(names)}, which the release will not contain.",
        f"Tables can be made from {listed(known)}.",
    )


def bad_candidate(text: str) -> PlanError:
    return PlanError(
        "bad-candidate",
        f"The candidate {text!r} cannot be read.",
        "Write it as 'match=state,size;swap=county'; match may be left out.",
    )


def seeded_release() -> PlanError:
    return PlanError(
        "seeded-release",
        "A seeded random source is for tests; what it draws is not for release and is not written to a folder.",
        "Leave out the source, or pass for_tests=True.",
    )


# -- data ----------------------------------------------------------------------------------------------------


def no_such_input(path: object) -> DataError:
    return DataError("no-such-input", f"Nothing can be read at {path}.", "Check the path and its permissions.")


def not_a_table(table: str, kind: str) -> DataError:
    return DataError(
        "not-a-table",
        f"An object of type {kind} was given for table '{table}'.",
        "Give a path, or a pandas, polars or pyarrow frame.",
    )


def unknown_format(path: object) -> DataError:
    return DataError(
        "unknown-format",
        f"The format of {path} is not told by its name.",
        'Name it: format = "csv", "parquet", "arrow", "stata", "sas" or "spss".',
    )


def mixed_formats(path: object) -> DataError:
    return DataError(
        "mixed-formats",
        f"{path} covers files of more than one format, or files whose columns differ.",
        "Point the plan at files of one kind.",
    )


def unreadable_format(path: object, kind: str) -> DataError:
    return DataError(
        "unreadable-file",
        f"{path} cannot be read as {kind}.",
        "It may be damaged, cut short, or of another format than its name says.",
    )


def ragged_csv(path: object) -> DataError:
    return DataError(
        "ragged-csv",
        f"A line of {path} has more or fewer fields than its header.",
        "Mend the file, or name the right delimiter in [input].",
    )


def not_utf8(path: object) -> DataError:
    return DataError(
        "not-utf8",
        f"{path} is not UTF-8 text.",
        'Convert it, or name its encoding in [input], for example encoding = "latin-1".',
    )


def unsupported_type(table: str, column: str, kind: str) -> DataError:
    return DataError(
        "unsupported-type",
        f"Column '{column}' of table '{table}' holds {kind} values, which cannot be released cell by cell.",
        "Flatten it into plain columns, or drop it.",
    )


def wrong_type(table: str, column: str, wanted: str) -> DataError:
    return DataError(
        "wrong-type",
        f"Column '{column}' of table '{table}' has values that are not of the type {wanted} the plan gives it.",
        "Correct types in [input], or leave the type out to carry the column as text.",
    )


def needs_extra(kind: str) -> DataError:
    return DataError(
        "needs-extra",
        f"Reading {kind} files needs an optional part that is not installed.",
        "Install it: pip install 'stirred[stata-sas-spss]'",
    )


def empty_file(table: str) -> DataError:
    return DataError("empty-file", f"Table '{table}' has no records.", "Check that the path is the right one.")


def missing_columns(table: str, names: Sequence[str]) -> DataError:
    return DataError(
        "missing-column",
        f"Table '{table}' has no column {listed(names)}.",
        "Names are taken letter for letter, capitals and spaces included.",
    )


def duplicate_columns(table: str, names: Sequence[str]) -> DataError:
    return DataError(
        "duplicate-column",
        f"Table '{table}' has more than one column called {listed(names)}.",
        "Rename them so that the plan can tell them apart.",
    )


def columns_without_role(table: str, names: Sequence[str]) -> DataError:
    return DataError(
        "column-without-role",
        f"Table '{table}' has columns that the plan gives no role: {listed(names)}.",
        'List each under match, swap, hold, drop or id, or write hold = "rest".',
    )


def nulls(table: str, column: str, count: int) -> DataError:
    return DataError(
        "nulls",
        f"Column '{column}' of table '{table}' has {count:,} null cells.",
        f"If a missing value is a category of its own, add '{column}' to nulls in the plan; otherwise fill or drop it.",
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
        "Split the job along a match variable; strata never mix.",
    )


def changed_while_reading(path: object) -> DataError:
    return DataError(
        "file-changed",
        f"{path} changed while it was being read.",
        "Nothing was released. Run again when the file is at rest.",
    )


def duplicate_ids(table: str, column: str, count: int) -> DataError:
    return DataError(
        "duplicate-id",
        f"The id column '{column}' of table '{table}' repeats {count:,} of its values.",
        "An id must identify one record.",
    )


def linked_without_record(table: str, column: str, main: str, count: int) -> DataError:
    return DataError(
        "linked-row-without-record",
        f"{count:,} rows of table '{table}' have a '{column}' that no record of {main} has.",
        "Every linked row must belong to a record of the main table.",
    )


def copies_disagree(table: str, column: str, target: str, count: int) -> DataError:
    return DataError(
        "copies-disagree",
        f"In {count:,} rows of table '{table}' the column '{column}' differs from '{target}' of the record they "
        "belong to.",
        "Copies of swap variables are rewritten, so they must agree first.",
    )


def id_types_differ(table: str, column: str) -> DataError:
    return DataError(
        "id-types-differ",
        f"The column '{column}' of table '{table}' and the column it refers to are of different types.",
        "Give both the same type in [input] types.",
    )


# -- stops: unwise unless allowed by name ----------------------------------------------------------------------


def held_determines_swap(table: str, column: str, swapped: str, with_match: bool) -> StoppedByCheck:
    given = "together with the match variables " if with_match else ""
    return StoppedByCheck(
        f"determines:{column}",
        f"The held column '{column}' of table '{table}' {given}determines the swap variable '{swapped}' in this "
        "file: publishing it unchanged tells where every moved record came from.",
        f"Swap '{column}' too, drop it, or add \"determines:{column}\" to allow.",
    )


def nearly_distinct(table: str, column: str, percent: int) -> StoppedByCheck:
    return StoppedByCheck(
        f"distinct:{column}",
        f"The held column '{column}' of table '{table}' takes a different value in {percent}% of the rows: it is "
        "published unchanged and may identify them.",
        f'Drop it, list it as the id if that is what it is, group it, or add "distinct:{column}" to allow.',
    )


# -- output --------------------------------------------------------------------------------------------------


def output_exists(path: Path) -> OutputError:
    return OutputError(
        "output-exists",
        f"{path} exists already.",
        "A release is written once: name a folder that does not exist.",
    )


def output_parent_missing(path: Path) -> OutputError:
    return OutputError(
        "output-parent-missing",
        f"The folder {path.parent} does not exist.",
        "Create it first, or choose another.",
    )


def cannot_write(path: Path, reason: str) -> OutputError:
    return OutputError(
        "cannot-write",
        f"Writing beside {path} failed ({reason}).",
        "Nothing was released and the partial files were removed. Free space, or choose another place.",
    )


def not_a_release(path: Path, reason: str) -> OutputError:
    return OutputError(
        "not-a-release", f"{path} is not a complete release: {reason}.", "Ask its publisher for a whole copy."
    )


def invariants_broken(what: str) -> OutputError:
    return OutputError(
        "invariants-broken",
        f"The recount before publishing found that {what} changed.",
        "Nothing was released. This is a fault of the program: please report it.",
    )


def unknown_table_column(names: Sequence[str], known: Sequence[str]) -> OutputError:
    return OutputError(
        "unknown-table-column",
        f"The release has no column {listed(names)}.",
        f"Its columns are {listed(known)}.",
    )
