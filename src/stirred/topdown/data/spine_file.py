"""Proposes a spine that serves areas off the administrative one (places, districts, precincts): ``stirred spine``.

Reads a public list of blocks, writes the list with its new levels, and says how many units areas take before and after.
Codes are read as text, so that zeros in front are kept.

Inside every unit of a chosen level the children become its intersections with the target areas; further down the
administrative units are cut by these. With ``groups="even"`` the last level above the blocks is that of the optimised
block groups of the 2020 Census: blocks of a unit that lie in the same target areas, divided evenly into groups of at
most int(sqrt(n) + fan_out + 1), n the number of blocks in the unit (Cumings-Menon et al., arXiv 2203.16654).

Where a unit has one child, the two are the same place, measured at two levels. The least squares fit knows that they
are, and gives them the precision of both measurements together, which is that of one measurement with both budgets. The
2020 system does the same by giving the child's budget to the parent.

The invariant a reader must know: no count is read, so nothing here is confidential and nothing is spent; and the same
blocks give the same spine in whatever order they are listed. Work is linear in blocks, but for sorting.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred import errors
from stirred._progress import stage
from stirred.margins.areas import Areas, Overlap
from stirred.margins.spine import Index, Spine, build_spine, by_text
from stirred.releases.folder.atomic import check_target
from stirred.releases.folder.documents import fill
from stirred.semantics.sentences.formatting import columns
from stirred.tables import Input, open_input
from stirred.tables.columns import Column, as_text, chunks
from stirred.tables.reading.first_look import form_of
from stirred.tables.reading.inputs import find_files, format_of
from stirred.tables.reading.table_reader import read_table
from stirred.tables.writing import EXTENSIONS, Cell, write_table
from stirred.topdown.data.counting import prefix_columns

FAN_OUT = 12
"""Added to the root of the number of blocks; that of the 2020 production code."""
Grouping = Literal["parts", "even"]
GROUPINGS: tuple[Grouping, ...] = ("parts", "even")


@dataclass(frozen=True, eq=False)
class ProposedSpine:
    """A spine for target areas, beside the administrative one that it was made from."""

    before: Spine
    after: Spine
    columns: tuple[Column, ...]
    """The levels of the new spine, a row for each block; then the other columns of the list."""
    targets: tuple[Areas, ...]
    """The target areas, and the units of administrative levels that are no longer on the spine; by block in the order
    of the administrative spine."""
    leaf_after: Index
    """For each block in the order of the administrative spine, its number in the new one."""

    def distances(self, areas: Areas) -> tuple[Index, Index]:
        """By area, how many units are added and subtracted to get it: on the administrative spine, and on this one."""
        moved = np.empty_like(areas.of_leaf)
        moved[self.leaf_after] = areas.of_leaf
        before = Overlap.of(self.before, areas.of_leaf, len(areas)).distances()
        return before, Overlap.of(self.after, moved, len(areas)).distances()


def propose_spine(
    levels: Sequence[Column],
    targets: Sequence[Sequence[Column]],
    inside: str | None = None,
    *,
    groups: Grouping = "parts",
    fan_out: int = FAN_OUT,
) -> ProposedSpine:
    """A spine from the administrative levels of a list of blocks, coarsest first, and the target areas of each block.

    Each group of ``targets`` is one level of the new spine: the intersections of all its columns. A null stands for a
    block in no area. ``inside`` is the level whose units are divided, by default the second if there are four or more
    levels, else the first.
    """
    names = [column.name for column in levels]
    if len(names) < 2:
        raise errors.spine_question("The list of blocks", "must have at least two levels, the last that of the blocks")
    inside = inside or names[1 if len(names) >= 4 else 0]
    if inside not in names[:-1]:
        raise errors.spine_question(
            f"The level to divide, '{inside}',", f"must be one of {errors.listed(names[:-1], 'or')}"
        )
    if groups not in GROUPINGS:
        raise errors.spine_question(f"The groups {groups!r}", "must be 'parts' or 'even'")
    if fan_out < 0:
        raise errors.spine_question("The fan-out", "cannot be negative")
    if not targets or not all(targets):
        raise errors.spine_question("The target areas", "must be given: at least one column of the list")
    chosen = [column.name for group in targets for column in group]
    twice = [name for name in chosen if chosen.count(name) > 1 or name in names]
    if twice:
        raise errors.spine_question(f"The column '{twice[0]}'", "can be a level or a target area, and only once")
    before, leaf = build_spine(names, levels)
    many = np.bincount(leaf)
    if (many > 1).any():
        raise errors.block_twice(names[-1], before.names[-1][int(np.argmax(many > 1))].as_py(), int((many > 1).sum()))
    row = np.empty(before.leaves, dtype=np.int64)
    row[leaf] = np.arange(len(leaf))  # every array below has an entry for each block, in the order of the spine
    work = _Making(before, row, {*names, *chosen})
    at = names.index(inside)
    for level in range(at + 1):
        work.keep(level)
    middle = list(range(at + 1, len(names) - 1))
    alone = groups == "even" and len(middle) == 1 and len(targets) == 1
    numbered = [f"area_{number}" for number in range(1, len(targets) + 1)] if len(targets) > 1 else ["area"]
    sets = np.zeros(before.leaves, dtype=np.int64)
    for name, group in zip(numbered, targets, strict=True):
        for column in group:
            codes = column.codes[row].astype(np.int64)
            none = column.values.is_null().to_numpy(zero_copy_only=False)
            sets = _joined(sets, np.where(none[codes], -1, codes) + 1)
        if not alone:
            work.divide(name, sets)
    for level in middle:
        if groups == "even" and level == middle[-1]:
            work.divide(f"{names[level]}_optimised", _evenly(work.unit, sets, fan_out))
        else:
            work.cut(level)
    return work.finish([column for group in targets for column in group], [names[level] for level in middle], row)


class _Making:
    """A spine in the making: the levels so far, and the unit of the last of them in which each block lies."""

    def __init__(self, before: Spine, row: Index, taken: set[str]) -> None:
        self.before = before
        self.taken = taken
        self.row = row
        self.unit = np.zeros(before.leaves, dtype=np.int64)
        self.names = pa.array([""])
        self.levels: list[tuple[str, Index, pa.Array]] = []

    def keep(self, level: int) -> None:
        """An administrative level as it is."""
        self._add(self.before.levels[level], self._administrative(level), self.before.names[level])

    def divide(self, name: str, by: Index) -> None:
        """Divide the units of the last level; the parts of a unit are numbered."""
        unit = _joined(self.unit, by)
        parent = _sample(unit, self.unit)
        self._add(self._free(name), unit, _numbered(self.names, parent))

    def cut(self, level: int) -> None:
        """Divide the units of the last level by those of an administrative one."""
        own = self._administrative(level)
        unit = _joined(self.unit, own)
        parent, of = _sample(unit, self.unit), _sample(unit, own)
        # A part that is the whole unit has its name; one that is all of the area has the area's.
        only = (np.bincount(parent)[parent] == 1) & (np.bincount(of)[of] > 1)
        names = pc.if_else(pa.array(only), self.names.take(parent), _numbered(self.before.names[level], of))
        self._add(self._free(f"{self.before.levels[level]}_part"), unit, _distinct(names))

    def finish(self, targets: Sequence[Column], middle: Sequence[str], row: Index) -> ProposedSpine:
        last = len(self.before.levels) - 1
        blocks = np.arange(self.before.leaves)
        self._add(self.before.levels[last], blocks, self.before.names[last])
        columns = [by_text(*level) for level in self.levels]
        after, leaf_after = build_spine([column.name for column in columns], columns)
        others = [
            Column(name, self._administrative(number).astype(np.uint32), self.before.names[number])
            for number, name in enumerate(self.before.levels)
            if name in middle
        ]
        asked = [Column(column.name, column.codes[row], column.values) for column in targets]
        areas = [Areas.of_rows(column.name, column, self.before, blocks) for column in (*asked, *others)]
        return ProposedSpine(self.before, after, (*columns, *others, *asked), tuple(areas), leaf_after)

    def _add(self, name: str, unit: Index, names: pa.Array) -> None:
        self.unit, self.names = unit, names
        self.levels.append((name, unit, names))

    def _administrative(self, level: int) -> Index:
        """The unit of an administrative level in which each block lies."""
        return self.before.ancestors(level, len(self.before.levels) - 1)

    def _free(self, name: str) -> str:
        """A name that no column of the list has."""
        return name if name not in self.taken else self._free(f"{name}_")


def _joined(one: Index, other: Index) -> Index:
    """The distinct pairs of two numbers, numbered in their order."""
    _, found = np.unique(one * (int(other.max(initial=0)) + 1) + other, return_inverse=True)
    return np.asarray(found.ravel(), dtype=np.int64)


def _sample(unit: Index, of: Index) -> Index:
    """For each unit what ``of`` has for its blocks, which is the same for all of them."""
    found = np.empty(int(unit.max(initial=-1)) + 1, dtype=np.int64)
    found[unit] = of
    return found


def _evenly(unit: Index, sets: Index, fan_out: int) -> Index:
    """Groups of blocks in the same unit and the same target areas, of even sizes within the limit."""
    alike = _joined(unit, sets)
    blocks = np.bincount(alike)
    within = np.bincount(unit)[_sample(alike, unit)]
    most = (np.sqrt(within) + fan_out + 1).astype(np.int64)
    pieces = -(-blocks // most)
    order = np.argsort(alike, kind="stable")
    starts = np.cumsum(blocks) - blocks
    place = np.empty(len(alike), dtype=np.int64)
    place[order] = np.arange(len(alike)) - np.repeat(starts, blocks)
    return _joined(alike, place * pieces[alike] // blocks[alike])


def _numbered(names: pa.Array, of: Index) -> pa.Array:
    """Names for parts of units, given the unit of each part: the unit's own and a number, or only the unit's own if it
    has one part."""
    many = np.bincount(of, minlength=len(names))
    order = np.argsort(of, kind="stable")
    number = np.empty(len(of), dtype=np.int64)
    number[order] = np.arange(len(of)) - np.repeat(np.cumsum(many) - many, many) + 1
    width = len(str(int(many.max(initial=1))))
    digits = pc.utf8_lpad(pa.array(number).cast(pa.string()), width, padding="0")
    own = as_text(names).take(pa.array(of))
    return _distinct(pc.if_else(pa.array(many[of] == 1), own, pc.binary_join_element_wise(own, digits, "-")))


def _distinct(names: pa.Array) -> pa.Array:
    """The names as they are if no two are the same, else numbers in their place."""
    if len(pc.unique(names)) == len(names):
        return names
    width = int(math.log10(max(1, len(names)))) + 1
    return pa.array([f"unit-{number:0{width}}" for number in range(1, len(names) + 1)])


BLOCKS = "blocks"
"""What the list of blocks is called in messages."""
USUAL = ("state", "county", "tract", "block_group", "block")
"""The levels that are looked for if none are named."""


@dataclass(frozen=True)
class LevelSize:
    """A level of a spine: its units, and how many children they have."""

    level: str
    units: int
    median_children: float | None
    """None at the level of the blocks."""
    most_children: int | None
    only_children: int
    """Units that are all of their parent: they are measured at two levels, and known as well as by both together."""


@dataclass(frozen=True)
class AreaDistances:
    """How many units areas of one sort take on one spine: added or subtracted, and as few as possible."""

    mean: float
    median: float
    nine_in_ten: float
    """Nine areas in ten take at most so many."""
    most: int
    on_spine: int
    """Areas that are one unit."""


@dataclass(frozen=True)
class TargetReport:
    """How many units of the spine areas of one sort consist of, before and after the proposal."""

    target: str
    areas: int
    blocks_outside: int
    """Blocks in no area."""
    before: AreaDistances
    after: AreaDistances


@dataclass(frozen=True)
class SpineReport:
    """What a proposed spine does for target areas; public."""

    blocks: int
    inside: str
    levels_before: tuple[LevelSize, ...]
    levels_after: tuple[LevelSize, ...]
    targets: tuple[TargetReport, ...]
    file: str | None
    target_columns: tuple[str, ...]

    def to_json(self) -> str:
        """The report as JSON."""
        return json.dumps({"stirred_spine": 1, **asdict(self)}, indent=2, ensure_ascii=False) + "\n"

    def __str__(self) -> str:
        return "\n\n".join([_sizes(self), _distances(self), _next(self)]) + "\n"


def make_spine(
    blocks: str | Path,
    targets: Sequence[Sequence[str]],
    out: str | Path | None = None,
    *,
    levels: Sequence[str] = (),
    prefixes: Mapping[str, int] | None = None,
    inside: str | None = None,
    groups: Grouping = "parts",
    fan_out: int = FAN_OUT,
    null_values: Sequence[str] = (),
) -> SpineReport:
    """Propose a spine for the target areas of a list of blocks, write its list of geounits to ``out``, and report.

    Each group of ``targets`` names columns whose intersections are one level. ``levels`` are columns from the coarsest
    to the blocks; with ``prefixes`` the last one only, and the others are its first characters. ``null_values`` are
    texts that stand for no area.
    """
    if out is not None:
        check_target(Path(out))
        _kind(Path(out))
    names = [name for group in targets for name in group]
    opened, chosen = _open(Path(blocks), levels, names)
    told = partial(stage, f"reading {blocks}")
    read = read_table(opened, list(dict.fromkeys([*chosen, *names])), told=told).table
    of_levels = read.pick(chosen)
    for column in of_levels:
        if column.values.null_count:
            missing = int((column.codes == column.cardinality - 1).sum())
            raise errors.nested_levels(column.name, f"has nulls in {missing:,} rows of the list")
    if prefixes:
        of_levels = [*prefix_columns(of_levels[0], prefixes), of_levels[0]]
    areas = [[_without(column, null_values) for column in read.pick(group)] for group in targets]
    stage("cutting the units of each level by the areas")
    proposed = propose_spine(of_levels, areas, inside, groups=groups, fan_out=fan_out)
    opened.require_unchanged()
    if out is not None:
        stage(f"writing {out}")
        _write(Path(out), proposed)
    stage("counting the units that areas take")
    return _report(proposed, None if out is None else str(out), names)


def spine_lines(
    blocks: Path | None = None,
    targets: str | None = None,
    levels: str | None = None,
    out: Path | None = None,
    inside: str | None = None,
    groups: Grouping = "parts",
    fan_out: int = FAN_OUT,
    null: Sequence[str] | None = None,
    as_json: bool = False,
) -> list[str]:
    """What ``stirred spine`` prints, from what was typed."""
    if blocks is None:
        raise errors.spine_question("The list of blocks", "must be named: --blocks FILE")
    if not targets:
        raise errors.spine_question("The target areas", "must be named: --targets places,districts")
    wanted = [[name.strip() for name in part.split(",") if name.strip()] for part in targets.split("/")]
    found, lengths = [], {}
    for part in (one.strip() for one in (levels or "").split(",") if one.strip()):
        name, sign, length = part.partition("=")
        if sign and not (length.isdigit() and int(length)):
            raise errors.spine_question(f"The level {part!r}", "must be a column, or be written as state=2")
        if sign:
            lengths[name] = int(length)
        else:
            found.append(name)
    if lengths and len(found) != 1:
        raise errors.spine_question(
            "Levels that are prefixes", "must be all levels but the last: state=2,county=5,block"
        )
    report = make_spine(
        blocks, wanted, out, levels=found, prefixes=lengths, inside=inside, groups=groups, fan_out=fan_out,
        null_values=null or (),
    )  # fmt: skip
    return (report.to_json() if as_json else str(report)).rstrip("\n").split("\n")


# -- files ---------------------------------------------------------------------------------------------------


def _open(path: Path, levels: Sequence[str], targets: Sequence[str]) -> tuple[Input, list[str]]:
    """The list, with all columns that are needed as text, and the names of its levels."""
    options = form_of(path).options()
    there = open_input(BLOCKS, path, options)
    chosen = list(levels) or [name for name in USUAL if name in there.kinds]
    if not levels and chosen[-1:] != [USUAL[-1]]:
        raise errors.spine_question(
            f"The levels of {path}", f"must be named, since there is no column '{USUAL[-1]}': --levels county,block"
        )
    missing = [name for name in (*chosen, *targets) if name not in there.kinds]
    if missing:
        raise errors.missing_columns(BLOCKS, list(dict.fromkeys(missing)))
    if (format_of(find_files(path)[0]) or ("", None))[0] != "csv":  # other files carry types of their own
        return there, chosen
    return open_input(BLOCKS, path, replace(options, types=dict.fromkeys((*chosen, *targets), "text"))), chosen


def _without(column: Column, null_values: Sequence[str]) -> Column:
    """The column with nulls in the place of some texts."""
    texts = as_text(column.values)
    none = pc.is_in(texts, value_set=pa.array(null_values, pa.string()), skip_nulls=True)
    return Column(column.name, column.codes, pc.if_else(none, None, texts))


def _kind(out: Path) -> str:
    for kind, extension in EXTENSIONS.items():
        if out.suffix == extension:
            return kind
    raise errors.spine_question(f"The file to write, {out},", "must end in .csv, .parquet or .arrow")


def _write(out: Path, proposed: ProposedSpine) -> None:
    """Write the list whole or not at all."""
    unfinished = out.with_name(f".{out.name}.unfinished")
    rows = proposed.before.leaves
    parts = ([Cell(one.name, one.codes[some], one) for one in proposed.columns] for some in chunks(rows))
    try:
        write_table(unfinished, _kind(out), parts)
        unfinished.replace(out)
    except OSError as problem:
        raise errors.cannot_write(out, problem.strerror or "an input/output error") from None
    finally:
        unfinished.unlink(missing_ok=True)


# -- what is told --------------------------------------------------------------------------------------------


def _report(proposed: ProposedSpine, file: str | None, targets: Sequence[str]) -> SpineReport:
    before, after = set(proposed.before.levels), proposed.after.levels
    first_new = next(number for number, level in enumerate(after) if level not in before)
    return SpineReport(
        blocks=proposed.before.leaves,
        inside=after[first_new - 1],
        levels_before=_levels(proposed.before),
        levels_after=_levels(proposed.after),
        targets=tuple(_target(proposed, areas) for areas in proposed.targets),
        file=file,
        target_columns=tuple(areas.name for areas in proposed.targets if areas.name in (*targets, *before)),
    )


def _levels(spine: Spine) -> tuple[LevelSize, ...]:
    found = []
    for number, level in enumerate(spine.levels):
        children = np.diff(spine.first_child[number]) if number < len(spine.levels) - 1 else None
        above = np.diff(spine.first_child[number - 1]) if number else np.zeros(0)
        found.append(
            LevelSize(
                level,
                spine.units(number),
                None if children is None else float(np.median(children)),
                None if children is None else int(children.max()),
                int((above == 1).sum()),
            )
        )
    return tuple(found)


def _target(proposed: ProposedSpine, areas: Areas) -> TargetReport:
    outside = int((areas.of_leaf < 0).sum())
    before, after = (_spread(one) for one in proposed.distances(areas))
    return TargetReport(areas.name, len(areas), outside, before, after)


def _spread(distances: np.ndarray[tuple[int], np.dtype[np.int64]]) -> AreaDistances:
    if not len(distances):
        return AreaDistances(0.0, 0.0, 0.0, 0, 0)
    return AreaDistances(
        float(distances.mean()),
        float(np.median(distances)),
        float(np.quantile(distances, 0.9, method="higher")),
        int(distances.max()),
        int((distances == 1).sum()),
    )


def _sizes(report: SpineReport) -> str:
    head = ("level", "units", "children: median", "most", "all of their parent")
    parts = []
    for title, levels in (("Administrative spine", report.levels_before), ("Proposed spine", report.levels_after)):
        rows = [
            (
                one.level,
                f"{one.units:,}",
                "-" if one.median_children is None else f"{one.median_children:g}",
                "-" if one.most_children is None else f"{one.most_children:,}",
                f"{one.only_children:,}",
            )
            for one in levels
        ]
        parts.append(f"{title}\n" + columns([head, *rows], numbers_right=True))
    return "\n\n".join(parts)


def _distances(report: SpineReport) -> str:
    head = ("areas", "spine", "number", "one unit", "units: mean", "median", "90% within", "most")
    rows = []
    for one in report.targets:
        for name, found in (("before", one.before), ("after", one.after)):
            rows.append(
                (
                    one.target,
                    name,
                    f"{one.areas:,}",
                    f"{found.on_spine:,}",
                    f"{found.mean:.1f}",
                    f"{found.median:g}",
                    f"{found.nine_in_ten:g}",
                    f"{found.most:,}",
                )
            )
    return (
        "Units that areas take: the fewest whose sum, each added or subtracted, is the area\n"
        + columns([head, *rows], numbers_right=True)
        + "\n"
        + fill(
            "The error of an area grows with the units it takes. Areas that were units of the administrative spine are "
            "listed too: serving others moves them off it."
        )
    )


def _next(report: SpineReport) -> str:
    levels = ", ".join(json.dumps(one.level) for one in report.levels_after)
    lines = [f"levels = [{levels}]"]
    named = json.dumps(report.file) if report.file is not None else '"..."'
    lines += [f"input = {{path = {named}}}"]
    lines += [line for name in report.target_columns for line in ("", "[[targets]]", f"column = {json.dumps(name)}")]
    wrote = f"Wrote {report.file}. " if report.file is not None else "Nothing was written: give --out FILE. "
    return (
        fill(
            wrote + "In a TopDown plan, with a share of the budget for every level; with the targets check says which "
            "errors to expect:"
        )
        + "\n\n[spine]\n"
        + "\n".join(lines)
    )
