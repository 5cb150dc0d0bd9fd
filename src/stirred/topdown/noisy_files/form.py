"""The form of published noisy measurement files: folders, columns, names of queries, and the tables they count.

The Census Bureau published the noisy measurements of its TopDown runs as Parquet files, a folder for each level and
state. The form is written down here as public readers of these files and the pages about them describe it
(docs/noisy-measurements.md); the files themselves were not at hand.

The invariant a reader must know: nothing here looks into a file. What a folder must hold is said by names of folders,
what a query counts by its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

from stirred import errors
from stirred._bounded_reading import plain
from stirred.margins.schema import Attribute, Recode, Schema
from stirred.topdown.plan.presets import HHGQ, INSTITUTIONS

LEVELS = {"US": "us", "State": "state", "County": "county", "Tract": "tract", "Block_Group": "block_group",
          "Block": "block"}  # fmt: skip
"""By the name of its folder, what each level is called here, from the coarsest to the finest."""
NATION = "us"
QUERIES, CONSTRAINTS = "DPQuery", "Constraint"
GEOCODE, QUERY, SHAPE, VALUE, VARIANCE = "geocode", "query_name", "query_shape", "value", "variance"
MEASURED, EXACT = "_dpq", "_con"
"""How names of measured queries and of exact statements end."""
TABULATED = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
"""Tabulated areas, and how many digits of a block's published code tell each."""
BLOCK_CODE = 16
"""A block's internal code ends in state 2, county 3, tract 6, block group 1, block 4 digits."""

_STATES = (
    *(1, 2, 4, 5, 6, 8, 9, *range(10, 14), *range(15, 43), *range(44, 52), *range(53, 57)),
)  # fmt: skip
_INSIDE_AREAS = {1, 2, 4, 6, 8, 9, 12, 13, 15, 16, 19, 20, 22, 23, 25, 26, 27, 28, 30, 31, 32, 35, 36, 37, 38, 40, 41,
                 45, 46, 48, 49, 51, 53, 55, 56}  # fmt: skip
WHOLE = tuple(
    frozenset({f"0{state:02}" for state in _STATES} | {f"1{state:02}" for state in _INSIDE_AREAS | more})
    for more in ({18, 47}, {44})
)
"""The codes of all parts of states in 2020, and in the 2010 demonstration: with these a folder is the whole nation.
A code is 0 for the part outside American Indian and Alaska Native areas or 1 for the part inside, then the state's."""

_SINGLE = ("white", "black", "aian", "asian", "nhopi", "other")


@dataclass(frozen=True)
class Product:
    """A published table: what it counts and what its queries can be by, in the order of the published values."""

    table: str
    unit: str
    folder: str
    """What its folder is called."""
    attributes: tuple[tuple[str, tuple[str, ...]], ...]
    recodes: tuple[tuple[str, str, tuple[tuple[str, tuple[str, ...]], ...]], ...] = ()
    zeros: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """By the name of an exact statement, the values that do not occur together."""
    bounds: tuple[str, str] | None = None
    """The attribute whose counts are bounded by exact statements, and its value that is not a kind of facility."""
    total: bool = False
    """Whether the total of every geounit is known exactly, by the statement ``total_con``."""

    @cached_property
    def schema(self) -> Schema:
        """Attributes and recodes."""
        return Schema(
            tuple(Attribute(name, values) for name, values in self.attributes),
            tuple(Recode(name, of, groups) for name, of, groups in self.recodes),
        )

    def by(self, query: str) -> tuple[str, ...] | None:
        """What a published query is by, in the order of the published values; None if its name is not known.

        >>> PERSONS.by("hispanic * votingage_dpq"), PERSONS.by("total_dpq"), PERSONS.by("sex_dpq")
        (('votingage', 'hispanic'), (), None)
        """
        if not query.endswith(MEASURED):
            return None
        name = query.removesuffix(MEASURED)
        if name in ("total", "detailed"):
            return () if name == "total" else tuple(one for one, _ in self.attributes)
        names = [part.strip() for part in name.split("*")]
        if any(one not in self.schema.names for one in names):
            return None
        bases = [self.schema.base(one) for one in names]
        order = [one for one, _ in self.attributes]
        if len(set(bases)) < len(bases):
            return None
        return tuple(sorted(names, key=lambda one: order.index(self.schema.base(one))))

    def query(self, by: Sequence[str]) -> str:
        """The published name of the query by some attributes or recodes.

        >>> PERSONS.query(("votingage", "hispanic")), PERSONS.query(())
        ('votingage * hispanic_dpq', 'total_dpq')
        """
        if tuple(by) == tuple(name for name, _ in self.attributes):
            return f"detailed{MEASURED}"
        return (" * ".join(by) or "total") + MEASURED

    def shape(self, by: Sequence[str]) -> tuple[int, ...]:
        """What ``query_shape`` says of a query: 1 for an attribute that is summed over.

        >>> PERSONS.shape(("hhinstlevels",)), PERSONS.shape(("votingage", "cenrace"))
        ((3, 1, 1, 1), (1, 2, 1, 63))
        """
        sizes = {self.schema.base(name): len(self.schema.values(name)) for name in by}
        return tuple(sizes.get(name, 1) for name, _ in self.attributes)


PERSONS = Product(
    "persons",
    "person",
    "US_Person_PL_PROD",
    (
        ("hhgq", HHGQ),
        ("votingage", ("under 18", "18 and over")),
        ("hispanic", ("not hispanic", "hispanic")),
        ("cenrace", tuple("-".join(some) for size in range(1, 7) for some in combinations(_SINGLE, size))),
    ),
    recodes=(("hhinstlevels", "hhgq", tuple(INSTITUTIONS.items())),),
    zeros=(("nurse_nva_0_con", (("hhgq", HHGQ[3]), ("votingage", "under 18"))),),
    bounds=("hhgq", HHGQ[0]),
)
"""Persons of the redistricting data: 8 x 2 x 2 x 63 cells."""
UNITS = Product("units", "housing unit", "US_Unit_PL_PROD", (("h1", ("vacant", "occupied")),), total=True)
"""Housing units of the redistricting data."""
PRODUCTS = (PERSONS, UNITS)


@dataclass(frozen=True)
class LevelFiles:
    """The files of one level: each with the code of the part of a state that it is about (empty for the nation)."""

    level: str
    queries: tuple[tuple[str, Path], ...]
    constraints: tuple[tuple[str, Path], ...]


@dataclass(frozen=True)
class ProductFiles:
    """The files of one published table that will be read."""

    folder: Path
    levels: tuple[LevelFiles, ...]
    nation_left_out: bool
    """Whether there is a file of the nation that is not read, since not all states are there."""


def is_noisy_measurements(path: str | Path) -> bool:
    """Whether a folder looks like noisy measurement files, by the names of folders in it."""
    folder = Path(path)
    return folder.is_dir() and bool(product_folders(folder))


def product_folders(folder: Path) -> list[Path]:
    """The folders with levels: the folder itself, or folders directly in it."""
    if _level_folders(folder):
        return [folder]
    try:
        return [one for one in sorted(folder.iterdir()) if one.is_dir() and _level_folders(one)]
    except OSError:
        return []


def _level_folders(folder: Path) -> dict[str, Path]:
    found = {name: folder / f"{name}.parquet" for name in LEVELS}
    try:
        return {name: path for name, path in found.items() if path.is_dir()}
    except (OSError, ValueError):
        return {}


def list_files(
    folder: Path, *, states: Sequence[str] = (), down_to: str | None = None, nation: bool | None = None
) -> ProductFiles:
    """The files of a published table, down to a level, of all or some states.

    The nation's own measurements are read if ``nation`` says that every state is there; by default, if the states are
    all those of a published run.
    """
    known = list(LEVELS.values())
    if down_to is not None and down_to not in known:
        raise errors.unknown_choice("level", down_to, known)
    there = [name for name in LEVELS if name in _level_folders(folder)]
    if not there:
        raise errors.noisy_folder(folder, f"there is no folder {' or '.join(f'{name}.parquet' for name in LEVELS)}")
    names = list(LEVELS)
    between = names[names.index(there[0]) : names.index(there[-1]) + 1]
    if lacking := [name for name in between if name not in there]:
        raise errors.noisy_folder(
            folder, f"there is no {lacking[0]}.parquet, though there are {there[0]} and {there[-1]}"
        )
    if down_to is not None:
        last = known.index(down_to)
        if LEVELS[there[-1]] not in known[last:]:
            raise errors.noisy_folder(folder, f"there is no {names[last]}.parquet")
        there = [name for name in there if known.index(LEVELS[name]) <= last]
    levels = [_level_files(folder, name) for name in there]
    below = [_only(level, states) for level in levels if level.level != NATION]
    codes = _same_states(folder, below)
    if strange := [one for one in states if not any(one in (code, code[1:]) for code in codes)]:
        raise errors.noisy_folder(folder, f"there are no files of the state '{plain(strange[0])}'")
    top = [level for level in levels if level.level == NATION]
    used = not below or (nation if nation is not None else not states and codes in WHOLE)
    return ProductFiles(folder, (*(top if used else ()), *below), bool(top) and not used)


def _level_files(folder: Path, name: str) -> LevelFiles:
    here = folder / f"{name}.parquet"
    level = LEVELS[name]
    measured = _part_files(here / QUERIES, level == NATION)
    if not measured:
        raise errors.noisy_folder(folder, f"there is no Parquet file below {name}.parquet/{QUERIES}")
    return LevelFiles(level, measured, _part_files(here / CONSTRAINTS, level == NATION))


def _part_files(folder: Path, whole: bool) -> tuple[tuple[str, Path], ...]:
    """The files in a folder, or in the folders of states in it; hidden ones and those that begin with '_' are not
    data."""
    if not folder.is_dir():
        return ()
    if whole:
        return tuple(("", path) for path in _parquet(folder))
    found = []
    for part in sorted(folder.iterdir()):
        if part.name.startswith((".", "_")):
            continue
        matched = re.fullmatch(r"State=([01]?\d{1,2})", part.name)
        if not matched or not part.is_dir():
            raise errors.noisy_folder(
                folder, f"{plain(part.name)} is not a folder named State=, with a part's three digits"
            )
        found += [(matched[1].zfill(3), path) for path in _parquet(part)]
    return tuple(found)


def _parquet(folder: Path) -> list[Path]:
    found = [path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "_"))]
    if strange := [path for path in found if not path.is_file()]:
        raise errors.noisy_folder(folder, f"{plain(strange[0].name)} is not a file")
    return found


def _only(level: LevelFiles, states: Sequence[str]) -> LevelFiles:
    """The files of some states, named by two digits (both parts) or three."""
    if not states:
        return level
    wanted = {code for code, _ in level.queries if code in states or code[1:] in states}
    return LevelFiles(
        level.level,
        tuple(one for one in level.queries if one[0] in wanted),
        tuple(one for one in level.constraints if one[0] in wanted),
    )


def _same_states(folder: Path, levels: Sequence[LevelFiles]) -> frozenset[str]:
    """The parts of states that the finest level has files of; a coarser level may lack some, where all its units were
    passed over, but has no others."""
    every = [frozenset(code for code, _ in level.queries) for level in levels]
    for level, codes in zip(levels, every, strict=True):
        if different := sorted(codes - every[-1]):
            raise errors.noisy_folder(
                folder, f"level '{levels[-1].level}' has no files of State={different[0]}, and '{level.level}' has",
                "Get the files, or choose states (--states).",
            )  # fmt: skip
    return every[-1] if every else frozenset()
