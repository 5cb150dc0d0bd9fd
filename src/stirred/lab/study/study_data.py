"""The one dataset of a study: the table whose records are swapped, tables of linked rows, and the list of places.

It may come from files, from frames, or from a generator. A record is one row of the main table; linked rows belong to
a record by its id and go wherever it goes. A flat file has linked rows in which the columns of the record are
repeated. Everything here is confidential unless it was generated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred import errors
from stirred._display import withheld
from stirred.lab.audit.programs import collected
from stirred.swap.plan.sections import MAIN
from stirred.tables import InputOptions, open_input
from stirred.tables.synthetic import massachusetts_1940
from stirred.tables.synthetic.population import GEOGRAPHY as LEVELS
from stirred.tables.synthetic.population import Population

PLACES = "geography"
"""The name of the public list of places among the tables."""
RECORDS = "records"
"""What the records of a flat file are called, unless they are given a name."""


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class StudyData:
    """Tables by name, and what they have to do with one another. Confidential unless generated.

    Parameters
    ----------
    tables
        Frames by name; the list of places, if there is one, is called ``geography``.
    main
        The table whose records are swapped.
    geography
        The columns that say where a record is, from the widest to the narrowest.
    id
        The column that identifies a record of the main table.
    links
        Tables whose rows belong to records: the column with the record's id.
    ids
        Columns of linked tables that identify a row. They are no values: nobody publishes them as they are.
    words
        What the data are, in a few words.
    generated
        Whether nobody in them is real.
    flat
        The linked table that is a flat file, if there is one: the main table has been made from it.
    """

    tables: Mapping[str, pl.DataFrame]
    main: str
    geography: tuple[str, ...]
    id: str | None = None
    links: Mapping[str, str] = field(default_factory=dict)
    words: str = "data that were given"
    generated: bool = False
    ids: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flat: str | None = None

    def __post_init__(self) -> None:
        for name in (self.main, *self.links):
            if name not in self.tables:
                raise errors.unknown_choice("table", name, list(self.tables))
        self.require(self.main, [*self.geography, *([self.id] if self.id else [])])
        for table, link in self.links.items():
            self.require(table, [link])
            if self.id is None:
                raise errors.study_parameter("links", "needs an id", "name the id of the main table's records")
            if lost := int(np.count_nonzero(self._record_of[table] < 0)):
                raise errors.linked_without_record(table, link, self.main, lost)
        for table, columns in self.ids.items():
            if table not in self.links:
                raise errors.unknown_choice("linked table", table, list(self.links))
            self.require(table, columns)

    def require(self, table: str, columns: Sequence[str]) -> None:
        """Raise if a table, or one of these columns of it, is not there."""
        if table not in self.tables:
            raise errors.unknown_choice("table", table, list(self.tables))
        for name in columns:
            if name not in self.tables[table].columns:
                raise errors.study_column(table, name, self.tables[table].columns)

    def with_ids(self, further: Iterable[tuple[str, str]]) -> StudyData:
        """The same data, with further columns of linked tables that identify a row."""
        ids = {table: list(columns) for table, columns in self.ids.items()}
        for table, column in further:
            if table in self.links and column not in ids.setdefault(table, []):
                ids[table].append(column)
        return replace(self, ids={table: tuple(columns) for table, columns in ids.items()})

    @property
    def records(self) -> pl.DataFrame:
        """The main table without its ids."""
        frame = self.tables[self.main]
        return frame if self.id is None else frame.drop(self.id)

    @cached_property
    def _record_of(self) -> dict[str, NDArray[np.int64]]:
        """For each row of a linked table, the row of the main table that it belongs to; -1 where there is none."""
        assert self.id is not None
        ids = self.tables[self.main].select(pl.col(self.id)).with_row_index("_row")
        if repeated := len(ids) - ids[self.id].n_unique():
            raise errors.duplicate_ids(self.main, self.id, repeated)
        found = {}
        for table, link in self.links.items():
            rows = self.tables[table].select(pl.col(link).alias(self.id))
            record = rows.join(ids, on=self.id, how="left", maintain_order="left")["_row"]
            found[table] = record.cast(pl.Int64).fill_null(-1).to_numpy()
        return found

    def following(self, frame: pl.DataFrame, places: Sequence[str]) -> dict[str, pl.DataFrame]:
        """All tables after their records have been swapped: ``frame`` is the main table, in the order of its rows."""
        found = dict(self.tables)
        found[self.main] = frame
        for table in self.links:
            record = pl.Series(self._record_of[table].astype(np.uint32))
            copied = [name for name in places if name in self.tables[table].columns]
            found[table] = self.tables[table].with_columns(**{name: frame[name].gather(record) for name in copied})
        return found

    def for_flat_swap(self) -> dict[str, pl.DataFrame]:
        """The flat file, as a swapping plan for one takes it."""
        if self.flat is None:
            raise errors.study_parameter(
                "flat", "is true in the plan", "give the study one flat file, with repeated under [data]"
            )
        return {MAIN: self.tables[self.flat]}

    def for_swap(self, linked: Sequence[str]) -> dict[str, pl.DataFrame]:
        """The tables as a swapping plan with these linked tables takes them."""
        for name in linked:
            self.require(name, [])
        return {MAIN: self.tables[self.main], **{name: self.tables[name] for name in linked}}

    def for_topdown(self, names: Sequence[str]) -> dict[str, pl.DataFrame]:
        """The tables as a TopDown plan takes them, with the list of places."""
        for name in (*names, PLACES):
            self.require(name, [])
        return {name: self.tables[name] for name in (*names, PLACES)}


def from_files(
    files: Mapping[str, Path],
    main: str,
    geography: Sequence[str],
    id: str | None = None,
    links: Mapping[str, str] | None = None,
    ids: Mapping[str, str] | None = None,
    repeated: Sequence[str] = (),
    options: Mapping[str, InputOptions] | None = None,
) -> StudyData:
    """Read the tables of a study; ``ids`` are columns that identify rows of linked tables, ``options`` how a file is
    read.

    With ``repeated`` the first file is flat: these columns of the record are the same in all rows with its ``id``, and
    the table ``main`` is made from them.
    """
    tables = {name: _read(name, path, (options or {}).get(name)) for name, path in files.items()}
    own = {table: (column,) for table, column in (ids or {}).items()}
    if repeated:
        name = next(iter(files))
        return from_flat(
            tables[name], name, id, repeated, main=main, geography=geography, ids=own, places=tables.get(PLACES)
        )
    return StudyData(tables, main, tuple(geography), id, dict(links or {}), f"the files of '{main}'", ids=own)


def from_flat(
    frame: pl.DataFrame,
    name: str,
    id: str | None,
    repeated: Sequence[str],
    *,
    main: str = RECORDS,
    geography: Sequence[str] = (),
    ids: Mapping[str, tuple[str, ...]] | None = None,
    places: pl.DataFrame | None = None,
) -> StudyData:
    """The data of a flat file: its rows are called ``name``, and the records to which they belong ``main``.

    >>> flat = pl.DataFrame({"hid": [1, 1, 2], "county": ["a", "a", "b"], "sex": ["f", "m", "f"]})
    >>> from_flat(flat, "persons", "hid", ["county"]).records.height
    2
    """
    if id is None or main == name:
        raise errors.study_parameter(
            "repeated", "is given", "name the id of the records, and give these another name than the file (main)"
        )
    for column in (id, *repeated):
        if column not in frame.columns:
            raise errors.study_column(name, column, frame.columns)
    first = pl.col(*repeated).first().over(id)
    differs = frame.select(pl.col(*repeated).ne_missing(first).sum()).row(0, named=True)
    if varying := {column: count for column, count in differs.items() if count}:
        raise errors.flat_varies(id, varying)
    records = frame.select(id, *repeated).unique(subset=id, keep="first", maintain_order=True)
    tables = {main: records, name: frame} | ({} if places is None else {PLACES: places})
    words = f"the flat file of '{name}'"
    return StudyData(tables, main, tuple(geography), id, {name: id}, words, ids=dict(ids or {}), flat=name)


def generated(name: str, **options: Any) -> StudyData:
    """Generated data by name: ``massachusetts-1940`` (scale), ``country`` (persons, states, seed).

    >>> generated("massachusetts-1940", scale=0.001).records.height
    1144
    """
    if name not in GENERATED:
        raise errors.unknown_choice("generated dataset", name, list(GENERATED))
    return GENERATED[name](**options)


def _massachusetts(scale: float = 0.02) -> StudyData:
    dwellings = massachusetts_1940(scale)
    words = f"{dwellings.height:,} generated dwellings of Massachusetts in 1940 (published counts times {scale:g})"
    return StudyData({"dwellings": dwellings}, "dwellings", ("county",), "serial", {}, words, True)


def _country(persons: int = 20_000, states: int = 2, seed: int = 1) -> StudyData:
    """Households with their persons, and all blocks. Group quarters are left out, since nobody swaps them."""
    census = Population(persons, seed, states).tables()
    kept = [*LEVELS, "residence", "race", "adult", "sex"]
    people = census.persons.filter(pl.col("hhgq") == "household").select(kept).with_columns(
        pl.col("race", "adult", "sex").cast(pl.String)
    )  # fmt: skip
    households = people.group_by("residence", maintain_order=True).agg(
        pl.col(*LEVELS).first(),
        adults=(pl.col("adult") == "yes").sum(),
        minors=(pl.col("adult") == "no").sum(),
        race=pl.col("race").first(),
    )
    tables = {"households": households, "persons": people, PLACES: census.blocks}
    many = "1 state" if states == 1 else f"{states} states"
    words = f"{people.height:,} persons in {households.height:,} households and {census.blocks.height:,} blocks"
    return StudyData(
        tables,
        "households",
        LEVELS,
        "residence",
        {"persons": "residence"},
        f"a generated country of {many}: {words}",
        True,
    )


GENERATED: Mapping[str, Callable[..., StudyData]] = {"massachusetts-1940": _massachusetts, "country": _country}
"""Datasets that can be generated, by name."""


def _read(name: str, path: Path, options: InputOptions | None) -> pl.DataFrame:
    frame = collected(open_input(name, path, options))
    if frame.is_empty():
        raise errors.empty_file(name)
    return frame
