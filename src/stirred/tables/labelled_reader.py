"""Reads Stata, SPSS and SAS transport files and says what is in them, as a program of its own.

``labelled_files.py`` runs it, since the library that reads these formats is not made for strangers' files: a damaged
one can end the process that reads it, or take all memory. It imports nothing of this package, gets the search path of
its caller, and writes a line of JSON for each file: names, labels, and a digest of each column.

    labelled_reader.py SEARCH-PATH KIND MOST-BYTES FILE...
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

_PART = 10_000


def main(arguments: list[str]) -> None:
    """Describe each file in a line, in order, each before the next one is opened."""
    sys.path[:] = json.loads(arguments[0])
    kind, most = arguments[1], int(arguments[2])
    import pyreadstat

    readers: dict[str, Any] = {"stata": pyreadstat.read_dta, "spss": pyreadstat.read_sav, "sas": pyreadstat.read_xport}
    _bound(most)
    for file in arguments[3:]:
        found, meta = readers[kind](file, output_format="dict", disable_datetime_conversion=True)
        print(json.dumps(_described(found, meta)), flush=True)


def _bound(most: int) -> None:
    """Let this process take so many more bytes of memory than it has now, where the system can be told so."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        has = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (has + most, hard))


def _described(found: dict[str, Any], meta: Any) -> dict[str, Any]:
    labels = dict(meta.column_names_to_labels or {})
    return {
        "rows": max((len(column) for column in found.values()), default=0),
        "columns": list(found),
        "cells": {name: _digest(column) for name, column in found.items()},
        "labels": {name: labels.get(name) or "" for name in found},
        "values": {
            name: sorted([_cell(value), str(label)] for value, label in listed.items())
            for name, listed in (meta.variable_value_labels or {}).items()
            if listed
        },
        "formats": {name: text or "" for name, text in (meta.original_variable_types or {}).items()},
        "notes": [str(getattr(meta, name, None) or "") for name in ("file_label", "notes", "mr_sets")],
        "missing": [str(getattr(meta, name, None) or "") for name in ("missing_ranges", "missing_user_values")],
        "times": [str(getattr(meta, name, None) or "") for name in ("creation_time", "modification_time")],
    }


def _digest(column: Any) -> str:
    listed = column.tolist() if hasattr(column, "tolist") else list(column)
    digest = hashlib.sha256()
    for first in range(0, len(listed), _PART):
        cells = [_cell(value) for value in listed[first : first + _PART]]
        digest.update(json.dumps(cells).encode() + b"\n")
    return digest.hexdigest()


def _cell(value: Any) -> str:
    """A cell as text; the same number in another type is the same text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, int | float) else f"={value}"


if __name__ == "__main__":
    main(sys.argv[1:])
