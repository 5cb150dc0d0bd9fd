"""Makes the list of geounits for a spine that serves target areas: ``stirred spine``.

Reads a public list of blocks, proposes a spine (:mod:`stirred.margins.target_spine`), writes the list with its new
levels, and says how many units areas take before and after. Codes are read as text, so that zeros in front are kept.
The invariant a reader must know: no count is read, so nothing here is confidential and nothing is spent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred import errors
from stirred.margins.areas import Areas
from stirred.margins.spine import Spine
from stirred.margins.target_spine import FAN_OUT, Groups, ProposedSpine, propose_spine
from stirred.releases.folder.atomic import check_target
from stirred.releases.folder.documents import fill
from stirred.semantics.sentences.formatting import columns
from stirred.tables import Column, Input, open_input
from stirred.tables.columns import as_text, chunks
from stirred.tables.reading.first_look import form_of
from stirred.tables.reading.inputs import find_files, format_of
from stirred.tables.reading.table_reader import read_table
from stirred.tables.writing import EXTENSIONS, Cell, write_table
from stirred.topdown.counting import prefix_columns

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
    """Areas of one sort, before and after."""

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
    groups: Groups = "parts",
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
    read = read_table(opened, list(dict.fromkeys([*chosen, *names]))).table
    of_levels = read.pick(chosen)
    for column in of_levels:
        if column.values.null_count:
            missing = int((column.codes == column.cardinality - 1).sum())
            raise errors.nested_levels(column.name, f"has nulls in {missing:,} rows of the list")
    if prefixes:
        of_levels = [*prefix_columns(of_levels[0], prefixes), of_levels[0]]
    areas = [[_without(column, null_values) for column in read.pick(group)] for group in targets]
    proposed = propose_spine(of_levels, areas, inside, groups=groups, fan_out=fan_out)
    opened.require_unchanged()
    if out is not None:
        _write(Path(out), proposed)
    return _report(proposed, None if out is None else str(out), names)


def spine_lines(
    blocks: Path | None = None,
    targets: str | None = None,
    levels: str | None = None,
    out: Path | None = None,
    inside: str | None = None,
    groups: Groups = "parts",
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
