"""Drafts a plan for swapping from the form of a file and the names of its columns; cells are read only if asked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from stirred import errors
from stirred.swap.plan import MAIN, LinkedTable
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
) -> str:
    """The draft as TOML, with a guessed role for every column; paths in it are relative to ``folder``.

    ``delimiter`` and ``encoding`` are told by the files unless they are given. With ``look_at_cells`` types and nulls
    are proposed too, and the draft states that its choices were made on this data.
    """
    form = form_of(path, delimiter, encoding)
    opened = open_input(MAIN, path, form.options())
    looked = look(MAIN, path, form) if look_at_cells else None
    roles = _guess(opened.kinds)
    unclaimed = [name for name in opened.kinds if name not in roles]  # a county_id is a place first
    identifier = next((name for name in unclaimed if re.search(_IDENTIFIER, name.lower())), None)
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
    lines += _nulls(looked, [identifier, *of_role["drop"]])
    lines += [
        "",
        "# publish = [[...]]        # tables of counts to write beside the microdata",
        "",
        *_input(path, folder, form, looked, held),
    ]
    if linked is not None:
        form = form_of(linked, delimiter, encoding)
        looked = look(_table_name(linked), linked, form) if look_at_cells else None
        lines += _linked(linked, folder, identifier, of_role["swap"], form, looked)
    return "\n".join(lines) + "\n"


def _guess(kinds: Mapping[str, pa.DataType]) -> dict[str, str]:
    roles = {}
    for name in kinds:
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
