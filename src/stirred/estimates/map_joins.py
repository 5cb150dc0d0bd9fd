"""Joins estimates to a map: a GeoJSON file whose features get the numbers of their place as properties.

A feature has a property, such as a district's code, that is also in the first column of the estimates. Numbers of
groups are told apart by their values, as in ``estimate:race=white,adult=yes``.

The invariant a reader must know: nothing of the map is changed but for properties that it did not have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stirred import errors
from stirred.errors.kinds import few
from stirred.estimates.answers import Answers, json_rows
from stirred.estimates.place_estimates import Estimates

MOST_BYTES = 1 << 30
"""The size that a map may have."""

_OTHER = "Give a GeoJSON file with a FeatureCollection, and a property of every feature that holds the place's code."


def join_map(
    found: Estimates | Answers, path: str | Path, key: str | None = None, confidence: float = 0.95
) -> tuple[str, tuple[str, ...]]:
    """The text of a GeoJSON file with the estimates as properties, and remarks on places and features without a match.

    ``key`` is the property that holds the place's name as in the estimates; by default it is called like their column
    of places.
    """
    column, numbers = properties(found, confidence)
    key = key or column
    made = _read(Path(path))
    used: set[str] = set()
    alone: list[str] = []
    without = 0
    for feature in made["features"]:
        own = feature.get("properties")
        code = own.get(key) if isinstance(own, dict) else None
        if not isinstance(code, str | int) or isinstance(code, bool):
            without += 1
            continue
        name = str(code)
        if name not in numbers:
            alone.append(name)
            continue
        taken = next((one for one in numbers[name] if one in own), None)
        if taken is not None:
            raise errors.map_join(
                f"The map {path}", f"has features with a property '{taken}' of their own", "Remove or rename it."
            )
        own.update(numbers[name])
        used.add(name)
    if without:
        raise errors.map_join(
            f"In the map {path}", f"{without:,} of {len(made['features']):,} features have no property '{key}' that "
            "is a text or a whole number", "Name the property with the places' codes: --key NAME."
        )  # fmt: skip
    if not used:
        raise errors.map_join(
            f"In the map {path}", f"no feature has the name of a place of '{column}' in its property '{key}'",
            "Name the property with the same codes as the estimates, leading zeros included: --key NAME.",
        )  # fmt: skip
    left = [name for name in numbers if name not in used]
    said = []
    if left:
        said.append(f"{len(left):,} places have no feature in the map: {few(left, len(left))}.")
    if alone:
        said.append(f"{len(alone):,} features have no estimate: {few(alone, len(alone))}.")
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n", tuple(said)


def properties(found: Estimates | Answers, confidence: float = 0.95) -> tuple[str, dict[str, dict[str, Any]]]:
    """The column of places, and for each place its numbers by the name of a property."""
    labels = (found.level or "place", *found.by) if isinstance(found, Estimates) else found.by
    if not labels:
        raise errors.map_join("These estimates", "are of one place alone", "Ask for every place: --level or --places.")
    column, *others = labels
    numbers: dict[str, dict[str, Any]] = {}
    for row in json_rows(found.to_frame(confidence)):
        group = ",".join(f"{name}={row[name]}" for name in others)
        mine = numbers.setdefault(row[column], {})
        for name, value in row.items():
            if name not in labels:
                mine[f"{name}:{group}" if group else name] = value
    return column, numbers


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise errors.map_join(f"The map {path}", f"has more than {MOST_BYTES:,} bytes", "Simplify or divide it.")
        made = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        raise errors.map_join(f"The map {path}", "cannot be read as JSON", _OTHER) from None
    features = made.get("features") if isinstance(made, Mapping) else None
    if not isinstance(features, list) or not features or not all(isinstance(one, dict) for one in features):
        raise errors.map_join(f"The map {path}", "has no list of features", _OTHER)
    return dict(made)
