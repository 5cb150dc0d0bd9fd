"""Drafts a TopDown plan from the names of a file's columns, a data dictionary and the list of places.

No cell of the confidential file is read. The values of each attribute are public knowledge that the plan must list in
full: they come from a data dictionary, or are left to be written. The list of places is public and may be read: its
columns are the levels from the coarsest to the finest, or it has codes whose prefixes are the levels.

A data dictionary is a JSON or a CSV file. JSON has for each variable an object with ``values``, whose keys are the
values and whose entries say what they mean. A pair ``min`` and ``max`` among them stands for the whole numbers between.
CSV has the columns name, value and label, a row for each value. What a variable is in plain words stands in its
``label`` or ``description``; in CSV in a column ``description``. The dictionary is public: it lists what can occur,
whether or not it does.

The invariant a reader must know: a column that looks like a number of records is asked about. A draft with an open
question is no plan, and ``check`` says which question is open.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stirred import _bounded_reading, errors
from stirred.releases.plans import InputSection, Plan, slug
from stirred.tables import open_input
from stirred.tables.columns import as_text
from stirred.tables.reading.first_look import (
    Form,
    called_id,
    dataset_called,
    form_of,
    identifying,
    toml,
    unit_called,
    written_path,
)
from stirred.tables.reading.table_reader import read_table
from stirred.topdown.plan.sections import OPEN, PlacesInput

MOST_VALUES = 1_000
"""Whole numbers that a range is written out as; a longer one is left to be cut into classes."""

LONGEST = 60
"""Characters of a label that are kept: it stands beside a bar."""

Domains = Mapping[str, tuple[str, ...]]


def read_domains(path: Path) -> Domains:
    """The values of each variable, in the order of the file; none for a variable whose values cannot be listed."""
    try:
        if path.suffix.lower() == ".json":
            fields = _bounded_reading.read_json(path)
            if not isinstance(fields, dict):
                raise ValueError
            return {str(name): _values(one) for name, one in fields.items()}
        rows = list(csv.DictReader(_bounded_reading.read_text(path).splitlines()))
        found: dict[str, list[str]] = {}
        for row in rows:
            found.setdefault(row["name"], []).append(row["value"])
        if not found:
            raise ValueError
        return {name: tuple(dict.fromkeys(values)) for name, values in found.items()}
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        raise errors.DataError(
            "topdown-dictionary",
            f"{path} is no data dictionary that can be read.",
            "Give a JSON file with an object for each variable, whose field values lists them, or a CSV file with the "
            "columns name, value and label: docs/topdown.md (stirred docs topdown).",
        ) from None


def read_labels(path: Path) -> Mapping[str, str]:
    """What each variable is in plain words, where the dictionary says so.

    The dictionary is one that :func:`read_domains` reads.
    """
    found: dict[str, Any] = {}
    if path.suffix.lower() == ".json":
        for name, one in _bounded_reading.read_json(path).items():
            if isinstance(one, dict):
                found[str(name)] = one.get("label") or one.get("description")
    else:
        for row in csv.DictReader(_bounded_reading.read_text(path).splitlines()):
            found.setdefault(row["name"], row.get("description"))
    told = {name: " ".join(said.split()) for name, said in found.items() if isinstance(said, str)}
    return {name: _bounded_reading.plain(said, LONGEST) for name, said in told.items() if said}


def _values(variable: Any) -> tuple[str, ...]:
    listed = variable.get("values") if isinstance(variable, dict) else None
    if not isinstance(listed, dict):
        return ()
    values = [str(value) for value in listed if value not in ("min", "max")]
    if "min" in listed or "max" in listed:
        try:
            low, high = int(listed["min"]), int(listed["max"])
        except (KeyError, ValueError, TypeError):
            return ()
        if high - low >= MOST_VALUES:
            return ()
        values += [str(number) for number in range(low, high + 1)]
    return tuple(dict.fromkeys(values))


CENSUS = {"state": 2, "county": 5, "tract": 11, "block_group": 12}
"""Prefixes of the codes of census blocks, which have 15 digits."""
_COUNTS = re.compile(
    r"n|counts?|num|numbers?|freq|frequency|pop|population|totals?|persons|people|records|households|units|"
    r"p?wgtp?|weights?|.*_(n|counts?|pop|total)|(n|num|count|pop|total)_.*",
    re.IGNORECASE,
)
"""Names of columns that may be numbers of records."""


@dataclass(frozen=True)
class _Places:
    """The public list of places as a draft reads it."""

    path: Path
    form: Form
    levels: tuple[str, ...]
    code: str | None = None
    prefixes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _File:
    """The confidential file: what its columns are taken for, by their names."""

    path: Path
    form: Form
    place: str
    attributes: tuple[str, ...]
    count: str | None
    """The column with the number of records, or the question about it."""
    asked: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Columns that are called like ids, names or coordinates."""


def draft_plan(
    path: Path,
    folder: Path = Path(),
    *,
    geography: Path | None = None,
    dictionary: Path | None = None,
    preset_name: str | None = None,
    prefixes: str | None = None,
    count: str | None = None,
    header: bool | None = None,
    **form_options: Any,
) -> str:
    """The draft as TOML; its levels are those of ``geography``, and paths in it are relative to ``folder``.

    ``dictionary`` has the values of attributes, ``preset_name`` names a built-in plan whose queries and shares are
    taken, ``prefixes`` says how many characters of the finest code are that of each level, ``count`` names the column
    with the number of records that a row stands for. ``form_options`` are those of
    :func:`stirred.tables.reading.first_look.form_of` for ``path``, where the file does not tell its form; ``header`` is
    for both.
    """
    if geography is None:
        raise errors.topdown_plan("A draft of it", "needs the public list of places: --geography FILE")
    domains = {} if dictionary is None else read_domains(dictionary)
    labels = {} if dictionary is None else read_labels(dictionary)
    places = _read_places(geography, form_of(geography, header=header), prefixes)
    form = form_of(path, header=header, **form_options)
    file = _read_file(path, form, places, domains, count, dictionary is not None)
    question = _question(file)
    if preset_name is not None:
        return "\n".join([*question, _from_preset(preset_name, places, file, domains, labels, folder)])
    return "\n".join([*question, *_lines(places, file, domains, labels, folder)]) + "\n"


def _read_places(geography: Path, form: Form, prefixes: str | None) -> _Places:
    opened = open_input("geography", geography, form.options())
    columns = tuple(opened.kinds)
    if prefixes is None and len(columns) > 1:
        return _Places(geography, form, columns)
    code = columns[-1]
    if prefixes is not None:
        *above, finest = [part.strip() for part in prefixes.split(",")]
        try:
            lengths = {name: int(number) for name, number in (part.split("=") for part in above)}
        except ValueError:
            raise errors.topdown_plan(
                "The prefixes of a draft", "must be written as state=2,county=5,tract: a length for all but the finest"
            ) from None
        return _Places(geography, form, (*lengths, finest), code if code != finest else None, lengths)
    texts = as_text(read_table(opened, (code,)).table[code].values)
    if not pc.all(pc.match_substring_regex(texts, r"^\d{15}$")).as_py():
        raise errors.topdown_plan(
            f"The list of places {geography}, which has one column,",
            "must have a column for each level, or --prefixes must say them: --prefixes state=2,county=5,tract",
        )
    return _Places(geography, form, (*CENSUS, "block"), code if code != "block" else None, CENSUS)


def _read_file(path: Path, form: Form, places: _Places, domains: Domains, count: str | None, known: bool) -> _File:
    kinds = open_input("table", path, form.options()).kinds
    finest = places.levels[-1]
    place = finest if finest in kinds else places.code
    if place is None or place not in kinds:
        raise errors.topdown_plan(
            f"The finest level '{finest}', the last column of {places.path},", f"must also be a column of {path}"
        )
    if count is not None and count not in kinds:
        raise errors.missing_columns("table", [count])
    rest = [name for name in kinds if name not in (*places.levels, place, count)]
    left_out = [name for name in rest if not domains.get(name) and (called_id(name) or identifying(name))]
    rest = [name for name in rest if name not in left_out]
    asked = [
        name
        for name in rest
        if not domains.get(name)
        and (
            _COUNTS.fullmatch(name)
            or (known and (pa.types.is_integer(kinds[name]) or pa.types.is_floating(kinds[name])))
        )
    ]
    open_count = OPEN + asked[0] if asked and count is None else count
    return _File(
        path, form, place, tuple(name for name in rest if name not in asked), open_count, tuple(asked), tuple(left_out)
    )


def _question(file: _File) -> list[str]:
    lines = []
    if file.left_out:
        lines.append(f"# Left out, since they look like ids, names or coordinates: {', '.join(file.left_out)}.")
    if not file.asked:
        return lines
    if not (file.count or "").startswith(OPEN):
        return [*lines, f"# Left out, since they look like numbers and not like categories: {', '.join(file.asked)}."]
    return [
        *lines,
        f"# To be answered: is {errors.listed(file.asked, 'or')} the number of records that a row stands for?",
        f"# If so, write count = {toml(file.asked[0])} below. If each row is one record, remove the line with count.",
        "# Until then this is no plan, and check says so.",
    ]


def _from_preset(
    name: str, places: _Places, file: _File, domains: Domains, labels: Mapping[str, str], folder: Path
) -> str:
    """A built-in plan for these files, with the values of the dictionary."""
    from stirred.topdown.plan.presets import CENSUS_LEVELS, NEEDED, preset

    if name != "teaching" and len(places.levels) != len(CENSUS_LEVELS) - 1:
        raise errors.topdown_plan(f"The preset '{name}'", "needs five levels, from state to block")
    if lacking := [one for one in NEEDED.get(name, ()) if not domains.get(one)]:
        raise errors.topdown_plan(
            f"The preset '{name}'",
            f"needs the values of {errors.listed(lacking)}, which no data dictionary lists: give one that does with "
            "--dictionary FILE (stirred docs topdown shows its form)",
        )
    plan = preset(name, {one: values for one, values in domains.items() if values}, places.levels)
    section = PlacesInput(
        path=written_path(places.path, folder),
        code=places.code,
        prefixes=dict(places.prefixes),
        **_read_as(places.form),
    )
    first = plan.tables[0].model_copy(
        update={
            "place": file.place if file.place != places.levels[-1] else None,
            "count": file.count,
            "attributes": tuple(
                one.model_copy(update={"label": labels.get(one.name)}) for one in plan.tables[0].attributes
            ),
            "input": InputSection(path=written_path(file.path, folder), **_read_as(file.form)),
        }
    )
    spine = plan.spine.model_copy(update={"input": section})
    drafted = plan.model_copy(update={"spine": spine, "tables": (first, *plan.tables[1:])})
    others = [table.name for table in plan.tables[1:]]
    lines = [f"# A draft: the queries, shares and budgets of the preset {name}. Check every choice in it."]
    if others:
        lines.append(f"# The plan also needs the files of {errors.listed(others)}: add their paths.")
    return "\n".join([*lines, drafted.to_toml()])


def _read_as(form: Form) -> dict[str, Any]:
    return {name: value for name, value in asdict(form).items() if value not in (None, ())}


def _lines(places: _Places, file: _File, domains: Domains, labels: Mapping[str, str], folder: Path) -> list[str]:
    """The draft without a preset: even shares, the total and all combinations of values."""
    levels, share = list(places.levels), f"1/{len(places.levels)}"
    name = slug(file.path.name.split(".")[0]) or "records"
    unit = f"unit = {toml(unit_called(file.path.name) or 'record')}"
    lines = [
        "# A draft, guessed from column names alone. Check every choice in it.",
        "stirred = 1",
        'mechanism = "topdown"',
        "",
        f"dataset = {toml(dataset_called(file.path))}   # {Plan.decided['dataset']}",
        unit.ljust(27) + f"# {Plan.decided['unit']}",
        '# chosen_from = "public"   # or "earlier data" or "this data": where budget and queries came from',
        "",
        "[spine]                    # from the coarsest level to the finest, each a column of the list of places",
        f"levels = {toml(levels)}",
        "[spine.input]",
        f"path = {toml(written_path(places.path, folder))}",
        *places.form.lines(),
    ]
    if places.prefixes:
        if places.code is not None:
            lines.append(f"code = {toml(places.code)}")
        written = ", ".join(f"{_key(level)} = {length}" for level, length in places.prefixes.items())
        lines.append(f"prefixes = {{{written}}}   # characters of the finest code that are the code of each level")
    lines += [
        "",
        "[[tables]]",
        f"name = {toml(name)}",
        unit,
        *([f"place = {toml(file.place)}"] if file.place != levels[-1] else []),
        *([f"count = {toml(file.count)}"] if file.count is not None else []),
        'rho = "1"                  # the budget of this table, divided among levels and queries',
        "level_shares = {" + ", ".join(f"{_key(level)} = {toml(share)}" for level in levels) + "}",
        "[tables.input]",
        f"path = {toml(written_path(file.path, folder))}",
        *file.form.lines(),
    ]
    for attribute in file.attributes:
        lines += ["[[tables.attributes]]", f"name = {toml(attribute)}"]
        if attribute in labels:
            lines.append(f"label = {toml(labels[attribute])}")
        if domains.get(attribute):
            lines.append(f"values = {toml(list(domains[attribute]))}")
        else:
            lines.append(
                "values = []                # every value that can occur, whether or not it does; or drop the attribute"
            )
    lines += [
        "[[tables.queries]]         # the number of records; each query has a share of its level",
        'shares = "1/2"',
        "[[tables.queries]]         # all combinations of values",
        f"by = {toml(list(file.attributes))}",
        'shares = "1/2"',
        "",
        "# [[invariants]]           # counts that are published exactly, and so not protected",
        f"# table = {toml(name)}",
        f"# level = {toml(levels[0])}",
    ]
    return lines


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml(name)
