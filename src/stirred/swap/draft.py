"""Drafts a plan for swapping from the names and types of a file's columns; no cell is read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from stirred import errors
from stirred.swap.plan import MAIN, LinkedTable
from stirred.tables import open_input

_GUESSES = (
    ("drop", r"(^|_)(name|surname|address|street|phone|email|ssn|passport)(_|$)"),
    ("swap", r"county|tract|block|puma|district|municip|commune|parish|ward|zip|postcode|geoid|nuts[23]"),
    ("match", r"state|region|province|size|npf|persons_in|nuts1"),
)
_IDENTIFIER = r"(^id$|_id$|^id_|serial|^hhid$|^hid$|^pid$)"


def draft_plan(path: Path, linked: Path | None = None, folder: Path = Path()) -> str:
    """The draft as TOML, with a guessed role for every column; paths in it are relative to ``folder``."""
    opened = open_input(MAIN, path)
    roles = _guess(opened.kinds)
    unclaimed = [name for name in opened.kinds if name not in roles]  # a county_id is a place first
    identifier = next((name for name in unclaimed if re.search(_IDENTIFIER, name.lower())), None)
    held = [name for name in unclaimed if name != identifier]
    of_role = {role: [name for name in roles if roles[name] == role] for role, _ in _GUESSES}
    lines = [
        "# A draft, guessed from column names alone. Check every choice in it.",
        "stirred = 1",
        'mechanism = "swap"',
        "",
        'unit = "record"            # what one row is: household, person, business ...',
        "rate = 0.05                # probability that a record is selected for swapping",
        '# chosen_from = "public"   # or "earlier data" or "this data": where rate and variables came from',
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
    lines += [
        "",
        "# publish = [[...]]        # tables of counts to write beside the microdata",
        "",
        *_input(path, folder),
    ]
    if linked is not None:
        lines += _linked(linked, folder, identifier, of_role["swap"])
    return "\n".join(lines) + "\n"


def _guess(kinds: Mapping[str, pa.DataType]) -> dict[str, str]:
    roles = {}
    for name in kinds:
        for role, pattern in _GUESSES:
            if re.search(pattern, name.lower()):
                roles[name] = role
                break
    return roles


def _linked(path: Path, folder: Path, identifier: str | None, swapped: list[str]) -> list[str]:
    opened = open_input("linked", path)
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
    lines += [f"hold = {_list(held)}", f"drop = {_list(dropped)}"]
    return [*lines, *_input(path, folder, "linked.input")]


def _table_name(path: Path) -> str:
    """The file's name as the name of a linked table; prefixed where a plan would not accept it."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", path.name.split(".")[0])
    try:
        return LinkedTable(name=name, link="").name
    except errors.PlanError:
        return f"linked_{name}"


def _input(path: Path, folder: Path, section: str = "input") -> list[str]:
    place = path if path.is_absolute() else os.path.relpath(path, folder)
    return [f"[{section}]", f"path = {json.dumps(str(place), ensure_ascii=False)}"]


def _list(names: list[str]) -> str:
    return json.dumps(names, ensure_ascii=False)
