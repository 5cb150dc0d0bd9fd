"""Looks for traces of the confidential input in a release: the order of its rows, ids, metadata, paths, leftovers.

An order of rows that is a function of the released values tells nothing else, and so does a shuffled one. Where an
order is neither, it is compared with that of the input. Under the hypothesis that it was drawn uniformly, disjoint
pairs of rows stand in the order of the input as fair coins fall, and k kept neighbours have probability at most
2^k / k!: both p-values need no approximation.

The invariant a reader must know: the result is confidential, since it says what a comparison with the input shows.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._bounded_reading import plain
from stirred._progress import Progress, Silent
from stirred.lab.audit import file_traces
from stirred.lab.audit.p_values import smallest_of
from stirred.lab.audit.programs import collected
from stirred.lab.audit.results import FALSE_ALARM, Answer, Audit, judged, require_effort
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.mechanism import Data
from stirred.tables import open_input
from stirred.tables.reading.first_look import form_of
from stirred.tables.reading.inputs import format_of

CONFIDENTIAL = "Confidential: do not give this page away with the release."
_FEWEST = 20
"""Matched rows without which no order is compared."""
_DISTINCT = 0.9
"""The share of different values from which a column is taken for one of ids."""
_LOOKED_AT = 100_000
"""Rows that are looked at for an order which a few of them break."""
_NUMBERED = ("id", "link")
"""Roles of columns that hold new numbers."""

Integers = NDArray[np.int64]


def audit_release(
    release: str | Path,
    data: Data,
    *,
    false_alarm: float = FALSE_ALARM,
    progress: Progress | None = None,
) -> Audit:
    """Compare a release with its confidential input, and say what betrays the input beyond what is released.

    Parameters
    ----------
    release
        A release folder, or any folder or file of released tables.
    data
        The input: a path or a frame, or several in a mapping from names of released tables. One without a name is
        compared with the one table that shares most columns with it.
    false_alarm
        The probability of finding a trace in the order of rows or ids where there is none, at most.
    progress
        Receives the name of each stage when it begins.
    """
    path, progress = Path(release), progress or Silent()
    if not path.exists():
        raise errors.nothing_released(path)
    require_effort(None, false_alarm)
    progress.stage("reading the release and the input")
    inputs = _inputs(data)
    released, unread = _released(path)
    compared = _paired(released, inputs)
    tests: list[Answer] = []
    moved = 0
    for table, given in compared:
        progress.stage(f"comparing {table.name}")
        one = Compared.of(table, given.frame)
        tests += _table_tests(one)
        moved += one.differing()
    progress.stage("looking into the files")
    paths = [one.path for one in inputs.values() if one.path is not None]
    results = [*judged(tests, false_alarm), *file_traces.results(path, paths, moved)]
    title = f"{CONFIDENTIAL} Traces of the input in {path.name}:"
    about = _told(released, compared)
    limits = (*unread, *_LIMITS)
    return Audit(title, tuple(results), false_alarm, 0, about, limits, _IF_FOUND, _IF_NOTHING, _ON_FALSE_ALARMS)


_IF_FOUND = "FOUND: {wrong} of {asked} questions show traces of the input{more}."
_IF_NOTHING = "No trace was found in {asked} questions{more}. That is no proof that there is none."
_ON_FALSE_ALARMS = "False alarms: at most {rate:g} of audits find a trace in an order of rows or ids that has none."
_LIMITS = (
    "Not seen: whether the values are protected at all; this looks for traces only. Nor ids or an order that were "
    "encrypted or hashed, what cells themselves say, and times that the file system keeps outside the files.",
)


# -- tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Released:
    """A released table; ``roles`` of its columns are known for releases of this package only."""

    name: str
    frame: pl.DataFrame
    roles: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Given:
    """A table of the input, and the path of its file if it was one."""

    frame: pl.DataFrame
    path: Path | None

    @property
    def called(self) -> str:
        """What it is called on the page: its file without folders."""
        return "the frame given" if self.path is None else plain(self.path.name)


def _inputs(data: Data) -> dict[str, Given]:
    """The inputs by the names of their tables; one without a name under an empty one."""
    several = data if isinstance(data, Mapping) else {"": data}
    return {
        str(name): Given(_texts(_read(str(name) or "input", one)), Path(one) if isinstance(one, str | Path) else None)
        for name, one in several.items()
    }


def _paired(released: list[Released], inputs: Mapping[str, Given]) -> list[tuple[Released, Given]]:
    """The released tables that are compared, each beside its input."""

    def shared(table: Released, given: Given) -> int:
        return len(set(table.frame.columns) & set(given.frame.columns))

    if "" in inputs:
        best = max(released, key=lambda table: shared(table, inputs[""]), default=None)
        pairs = [] if best is None else [(best, inputs[""])]
    else:
        tables = [table.name for table in released]
        for name in inputs:
            if name not in tables:
                raise errors.unknown_table(name, tables)
        pairs = [(table, inputs[table.name]) for table in released if table.name in inputs]
    for table, given in pairs:
        if not shared(table, given):
            raise errors.nothing_to_compare(f"'{table.name}' has no column of {given.called}")
    if not pairs:
        raise errors.nothing_to_compare("it has no table that can be read")
    return pairs


def _told(released: list[Released], compared: list[tuple[Released, Given]]) -> tuple[str, ...]:
    """Lines that say which tables were compared with what, and which were not."""
    pairs = [f"'{table.name}' with {given.called}" for table, given in compared]
    lines = [f"Compared: {', '.join(pairs)}."]
    done = [table for table, _ in compared]
    lines += [
        f"Not compared: '{table.name}'. Give its input with --input {table.name}=FILE."
        for table in released
        if table not in done
    ]
    return tuple(lines)


def _read(name: str, data: object) -> pl.DataFrame:
    if isinstance(data, str | Path):
        return collected(open_input(name, data, form_of(Path(data), header=True).options()))
    return collected(open_input(name, data))


def _released(path: Path) -> tuple[list[Released], tuple[str, ...]]:
    """The tables of a release, and lines about files that could not be read as tables."""
    try:
        folder = ReleaseFolder.open(path)
    except errors.StirredError:
        folder = None
    if folder is not None:
        return [
            Released(
                name,
                _texts(collected(folder.open_table(name))),
                {column: fields["role"] for column, fields in folder.columns(name).items()},
            )
            for name in folder.dictionary
        ], ()
    found, unread = [], []
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        document = file.suffix.lower() == ".txt" and path.is_dir()
        if not file.is_file() or file.is_symlink() or format_of(file) is None or document:
            continue
        try:
            found.append(Released(file.stem, _texts(_read(file.stem, file)), {}))
        except errors.StirredError:
            frame = _read_anyhow(file)
            if frame is None:
                unread.append(f"Not compared, since it cannot be read as a table: {file.name}.")
            else:
                found.append(Released(file.stem, _texts(frame), {}))
    return found, tuple(unread)


def _read_anyhow(path: Path) -> pl.DataFrame | None:
    """A CSV file that our readers refuse, such as one with a column without a name."""
    told = format_of(path)
    if told is None or told[0] != "csv":
        return None
    try:
        return pl.read_csv(path, infer_schema=False, comment_prefix="#")
    except (pl.exceptions.PolarsError, OSError):
        return None


def _texts(frame: pl.DataFrame) -> pl.DataFrame:
    """All cells as text, whole numbers alike whatever their type was; a missing cell is a text of its own."""
    return frame.select(pl.all().cast(pl.String).str.replace(r"^(-?\d+)\.0$", "$1").fill_null("\0"))


# -- a table beside its input --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Compared:
    """A released table beside its input, and which rows of the two belong together.

    Rows are matched where their values are unique in both; a record that was swapped is matched by what it kept, or
    not at all.
    """

    table: Released
    given: pl.DataFrame
    values: tuple[str, ...]
    """Columns that hold values of the input: the same ones in both, in whatever rows."""
    place: Integers
    """For each released row the row of the input, or -1."""

    @classmethod
    def of(cls, table: Released, given: pl.DataFrame) -> Compared:
        """Match the rows of a table."""
        values = tuple(
            name
            for name in table.frame.columns
            if name in given.columns and table.roles.get(name, "") not in _NUMBERED and _same_values(table, given, name)
        )
        plain = [name for name in values if name in table.roles or not _nearly_distinct(table.frame[name])]
        kept = [name for name in plain if table.roles.get(name) != "swap"]
        places = [_matched(table.frame, given, columns) for columns in (plain, kept) if columns]
        place = max(places, key=lambda one: int(np.count_nonzero(one >= 0)), default=_nowhere(table.frame))
        return cls(table, given, values, place)

    def is_id(self, name: str) -> bool:
        """Whether a released column holds ids, old or new, and no values that could explain an order of rows."""
        role, column = self.table.roles.get(name), self.table.frame[name]
        if role is not None or not _nearly_distinct(column):
            return role == "id"
        return name not in self.values or _nearly_distinct(self.given[name]) or _numbers_the_rows(column, role)

    def set_aside(self) -> list[str]:
        """Columns of both that hold new ids, as far as can be told, and so do not show whether a row was changed."""
        return [
            name
            for name in self.table.frame.columns
            if name in self.given.columns
            and (name not in self.values or _counts(self.table.frame[name]))
            and (self.table.roles.get(name) in _NUMBERED or self.is_id(name))
        ]

    def unchanged(self) -> list[str]:
        """All columns of both but new ids, if the released rows are rows of the input in these; else none."""
        aside = self.set_aside()
        both = [name for name in self.table.frame.columns if name in self.given.columns and name not in aside]
        return both if both and _without_equals(self.table.frame, self.given, both) == 0 else []

    def differing(self) -> int:
        """How many records of the input have no equal among the released ones."""
        if not self.values or self.table.frame.height != self.given.height:
            return 0
        return _without_equals(self.given, self.table.frame, self.values)


def _without_equals(frame: pl.DataFrame, other: pl.DataFrame, columns: Sequence[str]) -> int:
    """How many rows have no equal in another table, each of whose rows is the equal of one only."""
    counts = [one.group_by(columns).len(name) for one, name in ((frame, "\0here"), (other, "\0there"))]
    both = counts[0].join(counts[1], on=columns, how="left")
    return int((both["\0here"].cast(pl.Int64) - both["\0there"].fill_null(0).cast(pl.Int64)).clip(0).sum())


def _nowhere(frame: pl.DataFrame) -> Integers:
    return np.full(frame.height, -1, dtype=np.int64)


def _same_values(table: Released, given: pl.DataFrame, name: str) -> bool:
    """Whether a column has values of the input's column of that name, and not new ones."""
    return name in table.roles or _share_in(table.frame[name].unique(), given[name]) > 0.5


def _share_in(values: pl.Series, others: pl.Series) -> float:
    """The share of values that are among others."""
    return int(values.is_in(others.unique().implode()).sum()) / max(1, len(values))


def _nearly_distinct(column: pl.Series) -> bool:
    return len(column) >= _FEWEST and column.n_unique() >= _DISTINCT * len(column)


def _matched(made: pl.DataFrame, given: pl.DataFrame, columns: list[str]) -> Integers:
    """For each row the row of the input with the same values, where these are unique in both; else -1."""
    sides = []
    for frame, name in ((made, "_made"), (given, "_given")):
        chosen = frame.select(columns)
        sides.append(chosen.with_row_index(name).filter(chosen.is_unique()))
    both = sides[0].join(sides[1], on=columns)
    place = _nowhere(made)
    place[both["_made"].to_numpy()] = both["_given"].to_numpy()
    return place


# -- values ----------------------------------------------------------------------------------------------------------


def _unchanged_test(one: Compared) -> Answer:
    """Whether every released row is one of the input, so that nothing was protected.

    In a release of this package that is a draw like any other, with its probability by the plan's law: to call it
    wrong would make users draw again, and so release from another law.
    """
    asked = f"Is anything changed in '{one.table.name}'?"
    name, rows = f"unchanged-{one.table.name}", one.table.frame.height
    same = "Every row of the release is a row of the input: nothing was changed"
    columns = one.unchanged()
    if not columns:
        return _answer(name, asked, rows, right="Something is.")
    matched = int(np.count_nonzero(_matched(one.table.frame, one.given, columns) >= 0))
    if matched < _FEWEST:
        return _answer(name, asked, matched, unasked=_too_few(matched))
    if one.table.roles:
        by_chance = f"{same}. The plan allows this outcome; to draw again for it would break the guarantee."
        return _answer(name, asked, rows, right=by_chance)
    aside = ", ".join(f"'{column}'" for column in one.set_aside())
    return _answer(name, asked, rows, wrong=f"{same}, leaving aside new ids in {aside}." if aside else f"{same}.")


# -- order -----------------------------------------------------------------------------------------------------------


def _answer(
    name: str, asked: str, rows: int, p_value: float | None = None, right: str = "", wrong: str = "", unasked: str = ""
) -> Answer:
    """The answer to a question about the rows of a table, or about so many of them as could be matched."""
    return Answer(name, asked, p_value, right, wrong, numbers={"rows": rows}, unasked=unasked)


def _too_few(matched: int) -> str:
    return f"only {matched:,} rows could be matched with the input"


def _table_tests(one: Compared) -> list[Answer]:
    """All questions about one table."""
    order = _order_test(one)
    return [_unchanged_test(one), _old_order_test(one), order, *_id_tests(one, order)]


def _old_order_test(one: Compared) -> Answer:
    """Whether the order of rows is nearly a function of the released values, so that rows out of order stand out."""
    asked = f"Are rows of '{one.table.name}' sorted by values that some of them no longer have?"
    by = _nearly_sorted(one)
    outliers = f"They are: but for few rows they are sorted by '{by}', and these show themselves as moved."
    right = "They are not." if by is None else ""
    return _answer(f"old-order-{one.table.name}", asked, one.table.frame.height, right=right, wrong=outliers)


def _order_test(one: Compared) -> Answer:
    """Whether the order of rows follows that of the input, where it is not a function of the released values."""
    asked = f"Does the order of rows of '{one.table.name}' follow that of the input?"
    name, matched = f"row-order-{one.table.name}", int(np.count_nonzero(one.place >= 0))
    p_values = [chance_of_order(groups, place) for groups, place in _unexplained(one)]
    if matched < _FEWEST:
        return _answer(name, asked, matched, unasked=_too_few(matched))
    if not p_values:
        return _answer(name, asked, matched, right="It does not: rows are sorted by what is released.")
    return _answer(
        name,
        asked,
        matched,
        smallest_of(p_values),
        right="Nothing shows that it does.",
        wrong="It does: rows that could be matched with the input stand in its order more often than by chance.",
    )


def _unexplained(one: Compared) -> Iterator[tuple[Integers, Integers]]:
    """Orders that the released values do not explain: for each, groups of rows and their places in the input.

    The rows are cut into blocks of equal values again and again, by columns whose equal values stand together in every
    block. Blocks that are sorted are explained, and so are those in one and the same order everywhere; the order of
    others, and that of rows within the last blocks, is not.
    """
    place = one.place
    rows = np.flatnonzero(place >= 0)
    block = np.zeros(one.table.frame.height, dtype=np.int64)
    codes = _codes(one)
    while (cut := _next_cut(codes, block, set(one.values))) is not None:
        name, explained = cut
        finer = _cut(block, codes[name])
        if not explained:
            # The first matched row stands for its block: where blocks stand in a random order, so do these.
            _, first = np.unique(finer[rows], return_index=True)
            yield from _several(block, rows[first], place)
        block = finer
        del codes[name]
    yield from _several(block, rows, place)


def _codes(one: Compared) -> dict[str, Integers]:
    """The columns as numbers in their order, but for ids."""
    frame = one.table.frame
    return {name: _ranks(frame[name]) for name in frame.columns if not one.is_id(name)}


def _cut(block: Integers, code: Integers) -> Integers:
    """The blocks, cut wherever the value of a column changes."""
    changes = (np.diff(block) != 0) | (np.diff(code) != 0)
    return np.concatenate([[0], np.cumsum(changes)]).astype(np.int64)


def _nearly_sorted(one: Compared) -> str | None:
    """A column by which all rows but few are sorted, within the blocks that other columns explain; or None.

    By chance the longest ascending sequence of rows holds hardly more than those with the commonest value; here it
    must lack less than a third of the others.
    """
    codes = {name: code[:_LOOKED_AT] for name, code in _codes(one).items() if name in one.values}
    block = np.zeros(min(_LOOKED_AT, one.table.frame.height), dtype=np.int64)
    while (cut := _next_cut(codes, block, set(codes))) is not None and cut[1]:
        block = _cut(block, codes.pop(cut[0]))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(block) != 0]))
    for name, code in codes.items():
        parts = [part for part in np.split(code, starts[1:]) if len(part) >= _FEWEST]
        others = sum(len(part) - int(np.bincount(part).max()) for part in parts)
        lacking = sum(len(part) - _ascending(part) for part in parts)
        if others >= _FEWEST and 0 < lacking < others / 3:
            return name
    return None


def _ascending(values: Integers) -> int:
    """The length of the longest sequence of rows whose values do not descend."""
    ends: list[int] = []
    for value in values.tolist():
        at = bisect_right(ends, value)
        ends[at : at + 1] = [value]
    return len(ends)


def _several(block: Integers, rows: Integers, place: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Blocks and places of those rows that are not alone in their block, if there are any."""
    sizes = np.bincount(block[rows], minlength=1)
    chosen = rows[sizes[block[rows]] > 1]
    if len(chosen):
        yield block[chosen], place[chosen]


def _next_cut(codes: Mapping[str, Integers], block: Integers, values: set[str]) -> tuple[str, bool] | None:
    """A column whose equal values stand together in every block and cut one; one that explains the order first."""
    together = None
    blocks = int(block[-1]) + 1 if len(block) else 0
    for name, code in codes.items():
        pairs = block * (int(code.max(initial=0)) + 1) + code
        runs = 1 + int(np.count_nonzero(np.diff(pairs)))
        if runs > blocks and len(np.unique(pairs)) == runs:
            if name in values and _sorted(code, block):
                return name, True
            together = together or name
    return None if together is None else (together, False)


def _sorted(code: Integers, block: Integers) -> bool:
    """Whether values ascend, or descend, in every block; or stand in one order, whichever it is, in several."""
    inside = np.diff(block) == 0
    steps = np.diff(code)[inside]
    if np.all(steps >= 0) or np.all(steps <= 0):
        return True
    at = np.flatnonzero(inside & (np.diff(code) != 0))
    largest = int(code.max()) + 1
    pairs, times = np.unique(code[at] * largest + code[at + 1], return_counts=True)
    reversed_pairs = pairs % largest * largest + pairs // largest
    return bool(times.max() > 1 and not np.isin(reversed_pairs, pairs).any())


def _ranks(column: pl.Series) -> Integers:
    """The values of a column as numbers in their own order: of numbers if all are, else of texts."""
    numbers = column.cast(pl.Float64, strict=False)
    ordered = column if numbers.null_count() else numbers
    return ordered.rank("dense").cast(pl.Int64).to_numpy() - 1


def chance_of_order(groups: Integers, place: Integers) -> float:
    """The probability, at most, that rows drawn into a random order within groups follow the input as well as these.

    ``groups`` do not descend. Disjoint pairs of rows of a group, neighbours and far ones, ascend as fair coins fall;
    and neighbours of the input that are neighbours still are few.
    """
    from scipy import stats

    starts = np.flatnonzero(np.concatenate([[True], np.diff(groups) != 0]))
    sizes = np.diff(np.append(starts, len(groups)))
    within = np.arange(len(groups)) - np.repeat(starts, sizes)
    size = np.repeat(sizes, sizes)
    p_values = []
    near = np.flatnonzero((within % 2 == 0) & (within + 1 < size))
    far = np.flatnonzero(within < size // 2)
    for first, second in ((near, near + 1), (far, far + size[far] // 2)):
        if len(first):
            ascending = int(np.count_nonzero(place[second] > place[first]))
            p_values.append(float(stats.binomtest(ascending, len(first)).pvalue))
    rank = np.empty(len(place), dtype=np.int64)
    rank[np.lexsort((place, groups))] = np.arange(len(place))
    kept = int(np.count_nonzero((np.abs(np.diff(rank)) == 1) & (np.diff(groups) == 0)))
    several = max(1, int(np.count_nonzero(sizes > 1)))
    p_values.append(math.exp(min(0.0, kept * math.log(2 * several) - math.lgamma(kept + 1))))
    return smallest_of(p_values)


# -- ids -------------------------------------------------------------------------------------------------------------


def _id_tests(one: Compared, order: Answer) -> Iterator[Answer]:
    """Whether columns that could be ids are those of the input, or number its rows.

    A column that numbers the released rows tells what their order tells: it is judged by the p-value of that.
    """
    frame = one.table.frame
    for name in frame.columns:
        role = one.table.roles.get(name)
        if role not in _NUMBERED and (role is not None or not _nearly_distinct(frame[name])):
            continue
        asked = f"Does the column '{name}' of '{one.table.name}' tell which row of the input a row was?"
        told = f"ids-{one.table.name}-{name}"
        rows = np.flatnonzero(one.place >= 0)
        if _numbers_the_rows(frame[name], role):
            # A link ascends with records, while rows may stand in the input's order only within these.
            chance = None if role == "link" else order.p_value
            numbers = "It does: it numbers the released rows, and these stand in the input's order."
            yield _answer(
                told, asked, frame.height, chance, right="It does not: it numbers the released rows.", wrong=numbers
            )
        elif (owner := _holds_ids_of(frame[name], one.given)) is not None:
            survives = f"It does: it holds the values of the input's column '{owner}', different in nearly every row."
            yield _answer(told, asked, frame.height, wrong=survives)
        elif len(rows) < _FEWEST:
            yield _answer(told, asked, len(rows), unasked=_too_few(len(rows)))
        else:
            yield _answer(
                told,
                asked,
                len(rows),
                _chance_of_ids(frame[name], one),
                right="Nothing shows that it does.",
                wrong="It does: its values are the input's own, or ascend or descend with its rows, more often than "
                "by chance.",
            )


def _chance_of_ids(column: pl.Series, one: Compared) -> float:
    """The probability, at most, that new ids follow the rows of the input, or agree with its ids, as these do.

    Of ids in a random order at least k agree with others with probability at most 1 / k!.
    """
    rows = np.flatnonzero(one.place >= 0)
    ordered = rows[np.argsort(_ranks(column)[rows], kind="stable")]
    p_values = [chance_of_order(np.zeros(len(rows), dtype=np.int64), one.place[ordered])]
    for name in one.given.columns:
        if _nearly_distinct(one.given[name]):
            agreeing = int((column[rows] == one.given[name][one.place[rows]]).sum())
            p_values.append(math.exp(-math.lgamma(agreeing + 1)))
    return smallest_of(p_values)


def _numbers_the_rows(column: pl.Series, role: str | None) -> bool:
    """Whether a column counts the released rows, or (a link) the records that they belong to; then it tells no more
    than their order, which is compared by itself."""
    numbers = column.cast(pl.Int64, strict=False)
    if numbers.null_count() or numbers.is_empty():
        return False
    steps = np.diff(numbers.to_numpy())
    if role == "link":
        return bool(np.all(steps >= 0))
    return bool(np.all(steps == 1)) and int(numbers[0]) in (0, 1)


def _holds_ids_of(column: pl.Series, given: pl.DataFrame) -> str | None:
    """The column of the input with different values in nearly every row that most values are from, if there is one.

    Numbers from 1 on are everybody's: that both count does not mean that they count alike.
    """
    for name in given.columns:
        theirs = given[name]
        both_count = _counts(theirs) and _counts(column)
        if _nearly_distinct(theirs) and not both_count and _share_in(column, theirs) > 0.5:
            return name
    return None


def _counts(column: pl.Series) -> bool:
    """Whether the values are whole numbers from 0 or 1 on, nearly without gaps, in any order."""
    numbers = column.cast(pl.Int64, strict=False)
    if numbers.null_count() or numbers.is_empty():
        return False
    low, high = int(numbers.min()), int(numbers.max())  # type: ignore[arg-type]
    return low in (0, 1) and high <= len(column) / _DISTINCT + 1
