"""Drafts a TopDown plan from the names of a file's columns; no cell of the file is read.

The values of each attribute are public knowledge that the plan must list in full; the draft leaves them to be written.
The list of places is public, so its columns are taken as the levels, from the coarsest to the finest.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from stirred import errors
from stirred.tables import open_input
from stirred.tables.form import form_of
from stirred.topdown.plan_sections import slug


def draft_plan(
    path: Path,
    geography: Path | None = None,
    folder: Path = Path(),
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> str:
    """The draft as TOML; its levels are the columns of ``geography``, and paths in it are relative to ``folder``.

    ``delimiter`` and ``encoding`` are those of ``path``; by default, and for ``geography``, the files tell them.
    """
    if geography is None:
        raise errors.topdown_plan("A draft of it", "needs the public list of places: --geography FILE")
    places, form = form_of(geography), form_of(path, delimiter, encoding)
    levels = list(open_input("geography", geography, places.options()).kinds)
    columns = list(open_input("table", path, form.options()).kinds)
    if levels[-1] not in columns:
        raise errors.topdown_plan(
            f"The finest level '{levels[-1]}', the last column of {geography},", f"must also be a column of {path}"
        )
    attributes = [name for name in columns if name not in levels]
    share = f"1/{len(levels)}"
    name = slug(path.name.split(".")[0]) or "records"
    lines = [
        "# A draft, guessed from column names alone. Check every choice in it.",
        "stirred = 1",
        'mechanism = "topdown"',
        "",
        '# dataset = "..."          # name of the confidential dataset, as its ledger has it',
        'unit = "record"            # what one row is: person, household, business ...',
        '# chosen_from = "public"   # or "earlier data" or "this data": where budget and queries came from',
        "",
        "[spine]                    # from the coarsest level to the finest, each a column of the list of places",
        f"levels = {_text(levels)}",
        "[spine.input]",
        f"path = {_text(_relative(geography, folder))}",
        *places.lines(),
        "",
        "[[tables]]",
        f"name = {_text(name)}",
        'unit = "record"',
        'rho = "1"                  # the budget of this table, divided among levels and queries',
        "level_shares = {" + ", ".join(f"{_key(level)} = {_text(share)}" for level in levels) + "}",
        "[tables.input]",
        f"path = {_text(_relative(path, folder))}",
        *form.lines(),
    ]
    for attribute in attributes:
        lines += [
            "[[tables.attributes]]",
            f"name = {_text(attribute)}",
            "values = []                # every value that can occur, whether or not it does; or drop the attribute",
        ]
    lines += [
        "[[tables.queries]]         # the number of records; each query has a share of its level",
        'shares = "1/2"',
        "[[tables.queries]]         # all combinations of values",
        f"by = {_text(attributes)}",
        'shares = "1/2"',
        "",
        "# [[invariants]]           # counts that are published exactly, and so not protected",
        f"# table = {_text(name)}",
        f"# level = {_text(levels[0])}",
    ]
    return "\n".join(lines) + "\n"


def _relative(path: Path, folder: Path) -> str:
    return str(path if path.is_absolute() else os.path.relpath(path, folder))


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)
