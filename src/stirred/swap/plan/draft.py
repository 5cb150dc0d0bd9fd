"""Drafts a plan for swapping from the form of a file and the names of its columns.

Cells are looked at only if asked, but for one question about the form: whether an id repeats and other columns repeat
with it. Then rows belong to records, as persons to households, and the file is flat. Whether a held column is listed
with the record or with its rows changes neither which files are compared nor epsilon (docs/plans.md), so this is no
choice that the guarantee would have to cover.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from stirred import errors
from stirred.swap.data.dataset import count_varying
from stirred.swap.plan.fields import SwapPlan
from stirred.swap.plan.sections import MAIN, LinkedTable
from stirred.tables import Input, open_input
from stirred.tables.reading.first_look import (
    Form,
    Looked,
    called_id,
    dataset_called,
    form_of,
    identifying,
    look,
    toml,
    unit_called,
    written_path,
)
from stirred.tables.reading.table_reader import count_repeated, read_table

_GUESSES = (
    (
        "drop",
        r"^(p|h)?w(gt|eight|t)(p|s)?\d*$|(^|_)(weights?|wgts?)(_(?!kg|lb)|$|\d)|^p?wgtp\d*$|^perwt$|^hhwt$|wgt$",
        "a weight: made by place, it may tell the place; hold it if it does not",
    ),
    (
        "swap",
        r"county|tract|block|puma|district|municip|commune|parish|(^|_)ward|zip|postcode|geoid|(^|_)vtd|nuts[23]",
        "a place",
    ),
    ("drop", r"(^|_)density(_|$)", "a number of the place, which tells it"),
    ("match", r"(^|_)state|region|province|nuts1", "a large area: its counts stay exact"),
    ("match", r"size|npf|persons_in", "a size: its counts stay exact"),
)
"""Roles by what columns are called, with the reason that stands beside them in a draft."""
_LIMITS = {"most_unchangeable": "0.25", "most_told": "0.5", "most_recovered": "0.10", "most_alone": "0.05"}
_AN_ID = "looks like an id, which links the file to others"
_A_POINT = "numbers with a point: if most differ, group or drop them"
_FEWEST_REPEATS = 0.05
"""An id that repeats in a smaller share of the rows is taken for an id with mistakes in it."""


def draft_plan(
    path: Path,
    folder: Path = Path(),
    *,
    linked: Path | None = None,
    look_at_cells: bool = False,
    flat_id: str | None = None,
    repeated: Sequence[str] = (),
    names: Sequence[str] = (),
    **form_options: Any,
) -> str:
    """The draft as TOML, with a guessed role for every column; paths in it are relative to ``folder``.

    ``names`` are those of the columns of ``path``, if it has no header line, and ``form_options`` the other options of
    :func:`stirred.tables.reading.first_look.form_of`, for both files, where they do not tell their form. With
    ``look_at_cells`` types and nulls are proposed too, and the draft states that these were looked at. ``flat_id`` is
    the column with the id of the record in a file whose rows belong to records, by default one that is called like an
    id, repeats, and has other columns repeat with it. ``repeated`` are these columns of the record; by default those
    that do.
    """
    form = form_of(path, names=names, **form_options)
    opened = open_input(MAIN, path, form.options())
    looked = look(MAIN, path, form) if look_at_cells else None
    why: list[str] = []
    if flat_id is None and linked is None and (found := _repeating_id(opened)) is not None:
        flat_id, repeated = found[0], repeated or found[1]
        why = _why_flat(flat_id)
    flat = _record_columns(opened, flat_id, repeated)
    of_record = [name for name in opened.kinds if flat is None or name in flat]
    roles = _guess(name for name in of_record if name != flat_id)
    ids = [name for name in of_record if name not in roles and called_id(name)]  # a county_id is a place first
    identifier = flat_id or next(iter(ids), None)
    roles |= {name: ("drop", _AN_ID) for name in ids if name != identifier}
    held = [name for name in of_record if name not in roles and name != identifier]
    of_role = {
        role: {name: why for name, (of, why) in roles.items() if of == role} for role in ("match", "swap", "drop")
    }
    pointed = _pointed(opened, looked)
    lines = [
        _guessed_from(looked, flat_id),
        "stirred = 1",
        'mechanism = "swap"',
        "",
        f"dataset = {toml(dataset_called(path))}   # {SwapPlan.decided['dataset']}",
        *why,
        *_unit(path, identifier, flat is not None),
        "# Each record is selected by chance, with this probability: 5 in 100. Selected records of a group exchange",
        "# their swap values, so that about 95 in 100 or more are published where they truly are. A higher rate",
        "# changes tables more and makes epsilon smaller, up to a rate that check prints (smallest epsilon).",
        "rate = 0.05",
        "# A release stops above these shares; stirred docs plans explains each stop.",
        *(f"{field} = {most}".ljust(27) + f"# {SwapPlan.decided[field]}" for field, most in _LIMITS.items()),
        '# chosen_from = "public"   # or "earlier data" or "this data": where rate and variables came from',
        *(
            []
            if looked is None
            else ['looked_at = "types and formats"   # types, null_values and nulls are from this data']
        ),
        "",
        "# Records are swapped only among those that agree on all of these.",
        *_listed("match", of_role["match"]),
        "# These move together from record to record.",
        *_listed("swap", of_role["swap"], "no guess: name at least one"),
        "# These stay, and are published exactly as they are: all that is not recognised.",
        *_listed("hold", {name: _A_POINT if name in pointed else "" for name in held}),
        "# These are not released.",
        *_listed("drop", of_role["drop"]),
    ]
    if identifier:
        lines += ["# Replaced by new numbers in the release.", f"id = {toml(identifier)}"]
    elsewhere = [name for name in opened.kinds if name not in of_record]
    lines += _nulls(looked, [identifier, *of_role["drop"], *elsewhere])
    lines += [
        "",
        "# publish = [[...]]        # tables of counts to write beside the microdata",
        "",
        *_input(path, folder, form, looked, [*held, *elsewhere]),
    ]
    if flat is not None and flat_id is not None:
        lines += _flat(elsewhere, flat_id, looked, pointed)
    if linked is not None:
        form = form_of(linked, **form_options)
        looked = look(_table_name(linked), linked, form) if look_at_cells else None
        lines += _linked(linked, folder, identifier, list(of_role["swap"]), form, looked)
    return "\n".join(lines) + "\n"


def _guessed_from(looked: Looked | None, flat_id: str | None) -> str:
    """The first line of a draft: what it was guessed from."""
    if looked is not None:
        said = "column names, and types and missing cells from this data"
    elif flat_id is not None:
        said = "column names and from which columns repeat with the id"
    else:
        said = "column names alone"
    return f"# A draft, guessed from {said}. Check every choice in it."


def _why_flat(flat_id: str) -> list[str]:
    name = toml(flat_id)
    return [
        f"# {name} repeats in this file, and other columns repeat with it: its rows seem to be persons of households,",
        "# which belong together. So households are the records that are swapped, each with all of its rows (see",
        "# [[linked]] below), and the release has one row for each person again. Swapped one by one, persons could be",
        "# put back by what the rows of a household have in common.",
    ]


def _repeating_id(opened: Input) -> tuple[str, list[str]] | None:
    """The id of the records of a flat file and the columns that repeat with it; None if no id repeats so.

    Of several ids that do, as those of dwellings and of families in them, the one that repeats least is meant. What
    cannot be read is no reason to draft nothing: the check says what is wrong with it.
    """
    places = _guess(opened.kinds)
    named = [name for name in opened.kinds if name not in places and called_id(name)]
    try:
        read = read_table(opened, [], named, may_be_empty=True).identifiers if named else {}
        often = {name: count_repeated(ids) for name, ids in read.items() if len(ids) and not ids.null_count}
        for name in sorted(often, key=lambda one: often[one]):
            if often[name] >= _FEWEST_REPEATS * len(read[name]):
                repeated, varies = _constant_within(opened, name)
                if varies and any(repeated.values()):
                    return name, list(repeated)
    except errors.StirredError:
        return None
    return None


def _record_columns(opened: Input, flat_id: str | None, repeated: Sequence[str]) -> set[str] | None:
    """The columns of the record in a flat file, with its id; None if it is no flat file."""
    if flat_id is None:
        return None
    if missing := [name for name in (flat_id, *repeated) if name not in opened.kinds]:
        raise errors.missing_columns(MAIN, missing)
    found = {flat_id, *(repeated or _constant_within(opened, flat_id)[0])}
    if len(found) == 1:
        raise errors.flat_unclear(f"no column is the same in all rows with the same '{flat_id}'")
    return found


def _constant_within(opened: Input, id: str) -> tuple[dict[str, bool], bool]:
    """The columns that are the same in all rows with the same id, each with whether it differs between ids; and
    whether there are other columns."""
    columns = read_table(opened, list(opened.kinds)).table.columns
    record = columns[id].codes
    first = np.unique(record, return_index=True)[1]
    others = [column for name, column in columns.items() if name != id]
    found = {column.name: column.cardinality > 1 for column in others if not count_varying(column, record, first)}
    return found, len(found) < len(others)


def _flat(columns: Sequence[str], flat_id: str, looked: Looked | None, pointed: set[str]) -> list[str]:
    own, held, dropped = _row_roles(columns, pointed)
    return [
        "",
        "[[linked]]                  # the rows of the file, which belong to records and stay with them",
        'name = "persons"',
        "flat = true                # they are in the file above, which repeats the columns of the record",
        f"link = {toml(flat_id)}",
        *([f"id = {toml(own)}"] if own else []),
        *_listed("hold", held),
        *_listed("drop", dropped),
        *_nulls(looked, [name for name in (looked.nulls if looked else ()) if name not in held]),
    ]


def _row_roles(columns: Iterable[str], pointed: set[str]) -> tuple[str | None, dict[str, str], dict[str, str]]:
    """The id of linked rows, the columns to hold and those to drop, with reasons; what belongs to records is held."""
    columns = list(columns)
    dropped = {name: why for name, (role, why) in _guess(columns).items() if role == "drop"}
    ids = [name for name in columns if name not in dropped and called_id(name)]
    own = next(iter(ids), None)
    dropped |= {name: _AN_ID for name in ids if name != own}
    kept = [name for name in columns if name != own and name not in dropped]
    return own, {name: _A_POINT if name in pointed else "" for name in kept}, dropped


def _guess(columns: Iterable[str]) -> dict[str, tuple[str, str]]:
    """By column its role and the reason, for those that are called like something."""
    roles = {}
    for name in columns:
        if why := identifying(name):
            roles[name] = ("drop", why)
            continue
        for role, pattern, why in _GUESSES:
            if re.search(pattern, name.lower()):
                roles[name] = (role, why)
                break
    return roles


def _pointed(opened: Input, looked: Looked | None) -> set[str]:
    """Columns of numbers with a point, by the types of the file or by those that were looked at."""
    types = looked.types if looked is not None else {}
    return {name for name, kind in opened.kinds.items() if pa.types.is_floating(kind) or types.get(name) == "number"}


def _unit(path: Path, identifier: str | None, flat: bool) -> list[str]:
    """The line with what a record is, by what the id or the file is called."""
    words = "# what has one or more rows of the file" if flat else "# what one row is"
    unit, said = ("household" if flat else "record"), f"{words}: household, {'' if flat else 'person, '}business ..."
    for what, called in (("file", dataset_called(path)), ("id", identifier or "")):
        if not flat and (guessed := unit_called(called)):
            unit, said = guessed, f"{words}, guessed from what its {what} is called"
    return [f"unit = {toml(unit)}".ljust(27) + said]


def _listed(role: str, columns: Mapping[str, str], empty: str = "") -> list[str]:
    """A role's columns: those with a reason one by one, the reason beside them, the others in lines of a hundred."""
    if not columns:
        return [f"{role} = []" + (f"   # {empty}" if empty else "")]
    plain = [toml(name) + "," for name, why in columns.items() if not why]
    lines = textwrap.wrap("\0".join(plain).replace(" ", "\1").replace("\0", " "), 100, break_long_words=False,
                          break_on_hyphens=False)  # fmt: skip
    lines = [line.replace("\1", " ") for line in lines]
    lines += [f"{toml(name)},".ljust(23) + f"# {why}" for name, why in columns.items() if why]
    return [f"{role} = [", *(f"    {line}" for line in lines), "]"]


def _nulls(looked: Looked | None, never: Sequence[str | None]) -> list[str]:
    """The line that names the columns with nulls; ids cannot have any."""
    found = [] if looked is None else [name for name in looked.nulls if name not in never]
    return ["# Missing values are a category of their own in these.", f"nulls = {toml(found)}"] if found else []


def _linked(
    path: Path, folder: Path, identifier: str | None, swapped: list[str], form: Form, looked: Looked | None
) -> list[str]:
    opened = open_input("linked", path, form.options())
    rest = [name for name in opened.kinds if name != identifier and name not in swapped]
    own, held, dropped = _row_roles(rest, _pointed(opened, looked))
    link = identifier if identifier in opened.kinds else own
    lines = [
        "",
        "[[linked]]                  # rows that belong to a record and stay with it",
        f"name = {toml(_table_name(path))}",
        f"link = {toml(link)}" if link else "# link = ...             # the column with the record's id",
    ]
    if own and own != link:
        lines.append(f"id = {toml(own)}")
    lines += [*_listed("hold", held), *_listed("drop", dropped), *_nulls(looked, [link, own, *dropped])]
    return [*lines, *_input(path, folder, form, looked, list(held), "linked.input")]


def _table_name(path: Path) -> str:
    """The file's name as the name of a linked table; prefixed where a plan would not accept it."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", path.name.split(".")[0])
    try:
        return LinkedTable(name=name, link="").name
    except errors.PlanError:
        return f"linked_{name}"


def _input(
    path: Path, folder: Path, form: Form, looked: Looked | None, held: Sequence[str], section: str = "input"
) -> list[str]:
    """The section that says where a table is and how to read it; only held columns are given types."""
    lines = [f"[{section}]", f"path = {toml(written_path(path, folder))}", *form.lines()]
    if looked is not None and looked.null_values:
        lines.append(f"null_values = {toml(list(looked.null_values))}")
    types = {} if looked is None else {name: kind for name, kind in looked.types.items() if name in held}
    if types:
        lines += [
            f"[{section}.types]         # cells of these are written as before",
            *(f"{toml(name)} = {toml(kind)}" for name, kind in types.items()),
        ]
    return lines
