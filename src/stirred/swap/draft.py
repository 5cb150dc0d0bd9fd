"""Drafts a plan for swapping from the form of a file and the names of its columns; cells are read only if asked."""

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
from stirred.tables import open_input
from stirred.tables.form import Form, form_of
from stirred.tables.looking import Looked, look

_GUESSES = (
    ("drop", r"(^|_)(name|surname|address|street|phone|email|ssn|passport)(_|$)"),
    ("swap", r"county|tract|block|puma|district|municip|commune|parish|ward|zip|postcode|geoid|nuts[23]"),
    ("match", r"state|region|province|size|npf|persons_in|nuts1"),
)
_IDENTIFIER = r"(^id$|_id$|^id_|serial|^hhid$|^hid$|^pid$)"


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
    are proposed too, and the draft states that its choices were made on this data. ``flat_id`` is the column with the
    id of the record in a file whose rows belong to records, and ``repeated`` are the columns of the record, which the
    file repeats in each of its rows; looking at cells finds them.
    """
    form = form_of(path, delimiter, encoding)
    opened = open_input(MAIN, path, form.options())
    looked = look(MAIN, path, form) if look_at_cells else None
    flat = _record_columns(list(opened.kinds), flat_id, repeated, looked)
    of_record = [name for name in opened.kinds if flat is None or name in flat]
    roles = _guess(name for name in of_record if name != flat_id)
    unclaimed = [name for name in of_record if name not in roles]  # a county_id is a place first
    identifier = flat_id or next((name for name in unclaimed if re.search(_IDENTIFIER, name.lower())), None)
    held = [name for name in unclaimed if name != identifier]
    of_role = {role: [name for name in roles if roles[name] == role] for role, _ in _GUESSES}
    lines = [
        "# A draft, guessed from column names alone. Check every choice in it."
        if looked is None
        else "# A draft, guessed from column names and from the cells of this data. Check every choice in it.",
        "stirred = 1",
        'mechanism = "swap"',
        "",
        'unit = "record"            # what one row is: household, person, business ...',
        "rate = 0.05                # probability that a record is selected for swapping",
        "most_recovered = 0.10      # stop if more of the changed records than this could be put back",
        "most_told = 0.5            # stop if held columns predict the swap values of more records than this",
        '# chosen_from = "public"   # or "earlier data" or "this data": where rate and variables came from'
        if looked is None
        else 'chosen_from = "this data"  # types, null_values and nulls were chosen by looking at this data',
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
    lines += _hint(looked, identifier) if linked is None and flat is None else []
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


def _record_columns(
    columns: Sequence[str], flat_id: str | None, repeated: Sequence[str], looked: Looked | None
) -> set[str] | None:
    """The columns of the record in a flat file, with its id; None if it is no flat file."""
    if flat_id is None:
        return None
    if missing := [name for name in (flat_id, *repeated) if name not in columns]:
        raise errors.missing_columns(MAIN, missing)
    if repeated:
        return {flat_id, *repeated}
    if looked is None:
        raise errors.flat_unclear("column names do not tell which columns are those of the record")
    found = {flat_id, *_constant_within(looked, flat_id)}
    if len(found) == 1:
        raise errors.flat_unclear(f"no column is the same in all rows with the same '{flat_id}'")
    return found


def _constant_within(looked: Looked, id: str) -> list[str]:
    """The columns that are the same in all rows with the same id."""
    record = looked.columns[id].codes
    first = np.unique(record, return_index=True)[1]
    others = (column for name, column in looked.columns.items() if name != id)
    return [column.name for column in others if not count_varying(column, record, first)]


def _hint(looked: Looked | None, identifier: str | None) -> list[str]:
    """A comment where the id repeats, as it does in a flat file; only cells tell."""
    if looked is None or identifier is None:
        return []
    column = looked.columns[identifier]
    if column.cardinality == len(column.codes) or not _constant_within(looked, identifier):
        return []
    name = json.dumps(identifier, ensure_ascii=False)
    return [
        f"# {name} repeats, and so do other columns with it: if each row is a person of a household, draft the plan",
        f"# again with --flat-id {name}, which splits the file and puts it together again in the release.",
    ]


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
