"""Drafts a plan for swapping from the form of a file and the names of its columns.

Cells are looked at only if asked, but for one question about the form: whether an id repeats and other columns repeat
with it. Then rows belong to records, as persons to households, and the file is flat. Whether a held column is listed
with the record or with its rows changes neither which files are compared nor epsilon (docs/plans.md), so this is no
choice that the guarantee would have to cover.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from stirred import errors
from stirred.swap.flat import count_varying
from stirred.swap.plan_sections import MAIN, LinkedTable
from stirred.tables import Input, open_input
from stirred.tables.form import Form, form_of
from stirred.tables.identifiers import count_repeated
from stirred.tables.looking import Looked, look
from stirred.tables.read import read_table

_GUESSES = (
    ("drop", r"(^|_)(name|surname|address|street|phone|email|ssn|passport)(_|$)"),
    ("swap", r"county|tract|block|puma|district|municip|commune|parish|ward|zip|postcode|geoid|nuts[23]"),
    ("match", r"state|region|province|size|npf|persons_in|nuts1"),
)
_IDENTIFIER = r"(^id$|_id$|^id_|serial|^hhid$|^hid$|^pid$|^(db|hb|rb|pb|rx|px)030$|^household$|^hh_?n(o|r|um)$)"
"""030 is what ids are called in the files of EU-SILC."""
_FEWEST_REPEATS = 0.05
"""An id that repeats in a smaller share of the rows is taken for an id with mistakes in it."""


def draft_plan(
    path: Path,
    linked: Path | None = None,
    folder: Path = Path(),
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    look_at_cells: bool = False,
    flat_id: str | None = None,
    repeated: Sequence[str] = (),
) -> str:
    """The draft as TOML, with a guessed role for every column; paths in it are relative to ``folder``.

    ``delimiter`` and ``encoding`` are told by the files unless they are given. With ``look_at_cells`` types and nulls
    are proposed too, and the draft states that these were looked at. ``flat_id`` is the column with the
    id of the record in a file whose rows belong to records, by default one that is called like an id, repeats, and has
    other columns repeat with it. ``repeated`` are these columns of the record; by default those that do.
    """
    form = form_of(path, delimiter, encoding)
    opened = open_input(MAIN, path, form.options())
    looked = look(MAIN, path, form) if look_at_cells else None
    why: list[str] = []
    if flat_id is None and linked is None and (found := _repeating_id(opened)) is not None:
        flat_id, repeated = found[0], repeated or found[1]
        why = _why_flat(flat_id)
    flat = _record_columns(opened, flat_id, repeated)
    of_record = [name for name in opened.kinds if flat is None or name in flat]
    roles = _guess(name for name in of_record if name != flat_id)
    unclaimed = [name for name in of_record if name not in roles]  # a county_id is a place first
    identifier = flat_id or next((name for name in unclaimed if re.search(_IDENTIFIER, name.lower())), None)
    held = [name for name in unclaimed if name != identifier]
    of_role = {role: [name for name in roles if roles[name] == role] for role, _ in _GUESSES}
    lines = [
        _guessed_from(looked, flat_id),
        "stirred = 1",
        'mechanism = "swap"',
        "",
        *why,
        'unit = "record"            # what one row is: household, person, business ...'
        if flat is None
        else 'unit = "household"         # what has one or more rows of the file: household, business ...',
        "rate = 0.05                # probability that a record is selected for swapping",
        "most_recovered = 0.10      # stop if more of the changed records than this could be put back",
        "most_told = 0.5            # stop if held columns predict the swap values of more records than this",
        "most_alone = 0.05          # stop if more records than this are alone in a count by match and swap values",
        '# chosen_from = "public"   # or "earlier data" or "this data": where rate and variables came from',
        *(
            []
            if looked is None
            else ['looked_at = "types and formats"   # types, null_values and nulls are from this data']
        ),
        "",
        "# Records are swapped only among those that agree on all of these.",
        f"match = {_list(of_role['match'])}",
        "# These move together from record to record.",
        f"swap = {_list(of_role['swap'])}" + ("" if of_role["swap"] else "   # no guess: name at least one"),
        "# These stay, and are published exactly as they are.",
        f"hold = {_list(held)}",
        "# These are not released.",
        f"drop = {_list(of_role['drop'])}",
    ]
    if identifier:
        lines += ["# Replaced by new numbers in the release.", f"id = {json.dumps(identifier, ensure_ascii=False)}"]
    elsewhere = [name for name in opened.kinds if name not in of_record]
    lines += _nulls(looked, [identifier, *of_role["drop"], *elsewhere])
    lines += [
        "",
        "# publish = [[...]]        # tables of counts to write beside the microdata",
        "",
        *_input(path, folder, form, looked, [*held, *elsewhere]),
    ]
    if flat is not None and flat_id is not None:
        lines += _flat(elsewhere, flat_id, looked)
    if linked is not None:
        form = form_of(linked, delimiter, encoding)
        looked = look(_table_name(linked), linked, form) if look_at_cells else None
        lines += _linked(linked, folder, identifier, of_role["swap"], form, looked)
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
    name = json.dumps(flat_id, ensure_ascii=False)
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
    named = [name for name in opened.kinds if name not in places and re.search(_IDENTIFIER, name.lower())]
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


def _flat(columns: Sequence[str], flat_id: str, looked: Looked | None) -> list[str]:
    dropped = [name for name, role in _guess(columns).items() if role == "drop"]
    own = next((name for name in columns if name not in dropped and re.search(_IDENTIFIER, name.lower())), None)
    held = [name for name in columns if name != own and name not in dropped]
    return [
        "",
        "[[linked]]                  # the rows of the file, which belong to records and stay with them",
        'name = "persons"',
        "flat = true                # they are in the file above, which repeats the columns of the record",
        f"link = {json.dumps(flat_id, ensure_ascii=False)}",
        *([f"id = {json.dumps(own, ensure_ascii=False)}"] if own else []),
        f"hold = {_list(held)}",
        f"drop = {_list(dropped)}",
        *_nulls(looked, [name for name in (looked.nulls if looked else ()) if name not in held]),
    ]


def _guess(columns: Iterable[str]) -> dict[str, str]:
    roles = {}
    for name in columns:
        for role, pattern in _GUESSES:
            if re.search(pattern, name.lower()):
                roles[name] = role
                break
    return roles


def _nulls(looked: Looked | None, never: Sequence[str | None]) -> list[str]:
    """The line that names the columns with nulls; ids cannot have any."""
    found = [] if looked is None else [name for name in looked.nulls if name not in never]
    return ["# Missing values are a category of their own in these.", f"nulls = {_list(found)}"] if found else []


def _linked(
    path: Path, folder: Path, identifier: str | None, swapped: list[str], form: Form, looked: Looked | None
) -> list[str]:
    opened = open_input("linked", path, form.options())
    own = next((name for name in opened.kinds if name != identifier and re.search(_IDENTIFIER, name.lower())), None)
    link = identifier if identifier in opened.kinds else own
    dropped = [name for name, role in _guess(opened.kinds).items() if role == "drop"]
    held = [name for name in opened.kinds if name not in (link, own, *dropped, *swapped)]
    lines = [
        "",
        "[[linked]]                  # rows that belong to a record and stay with it",
        f"name = {json.dumps(_table_name(path))}",
        f"link = {json.dumps(link, ensure_ascii=False)}"
        if link
        else "# link = ...             # the column with the record's id",
    ]
    if own and own != link:
        lines.append(f"id = {json.dumps(own, ensure_ascii=False)}")
    lines += [f"hold = {_list(held)}", f"drop = {_list(dropped)}", *_nulls(looked, [link, own, *dropped])]
    return [*lines, *_input(path, folder, form, looked, held, "linked.input")]


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
    place = path if path.is_absolute() else os.path.relpath(path, folder)
    lines = [f"[{section}]", f"path = {json.dumps(str(place), ensure_ascii=False)}", *form.lines()]
    if looked is not None and looked.null_values:
        lines.append(f"null_values = {_list(list(looked.null_values))}")
    types = {} if looked is None else {name: kind for name, kind in looked.types.items() if name in held}
    if types:
        lines += [
            f"[{section}.types]         # cells of these are written as before",
            *(f"{json.dumps(name, ensure_ascii=False)} = {json.dumps(kind)}" for name, kind in types.items()),
        ]
    return lines


def _list(names: list[str]) -> str:
    return json.dumps(names, ensure_ascii=False)
