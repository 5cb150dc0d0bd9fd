"""Reads the values that attributes can have from a data dictionary: a JSON or a CSV file.

JSON has for each variable an object with ``values``, whose keys are the values and whose entries say what they mean. A
pair ``min`` and ``max`` among them stands for the whole numbers between. CSV has the columns name, value and label, a
row for each value. What a variable is in plain words stands in its ``label`` or ``description``; in CSV in a column
``description``. The dictionary is public: it lists what can occur, whether or not it does.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stirred import _received, errors

MOST_VALUES = 1_000
"""Whole numbers that a range is written out as; a longer one is left to be cut into classes."""

LONGEST = 60
"""Characters of a label that are kept: it stands beside a bar."""

Domains = Mapping[str, tuple[str, ...]]


def read_domains(path: Path) -> Domains:
    """The values of each variable, in the order of the file; none for a variable whose values cannot be listed."""
    try:
        if path.suffix.lower() == ".json":
            fields = _received.read_json(path)
            if not isinstance(fields, dict):
                raise ValueError
            return {str(name): _values(one) for name, one in fields.items()}
        rows = list(csv.DictReader(_received.read_text(path).splitlines()))
        found: dict[str, list[str]] = {}
        for row in rows:
            found.setdefault(row["name"], []).append(row["value"])
        if not found:
            raise ValueError
        return {name: tuple(dict.fromkeys(values)) for name, values in found.items()}
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        raise errors.topdown_dictionary(path) from None


def read_labels(path: Path) -> Mapping[str, str]:
    """What each variable is in plain words, where the dictionary says so.

    The dictionary is one that :func:`read_domains` reads.
    """
    found: dict[str, Any] = {}
    if path.suffix.lower() == ".json":
        for name, one in _received.read_json(path).items():
            if isinstance(one, dict):
                found[str(name)] = one.get("label") or one.get("description")
    else:
        for row in csv.DictReader(_received.read_text(path).splitlines()):
            found.setdefault(row["name"], row.get("description"))
    told = {name: " ".join(said.split()) for name, said in found.items() if isinstance(said, str)}
    return {name: _received.plain(said, LONGEST) for name, said in told.items() if said}


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
