"""A generated census of any size, for TopDown's examples, tests and benchmarks: persons, housing units, facilities.

States, counties, tracts, block groups and blocks nest as in the United States, and ids look like theirs: 2, 5, 11, 12
and 15 digits, each beginning with the id above. Block sizes and group quarters have heavy tails, three blocks in ten
are empty, races are segregated. Everybody is invented, by the laws in :mod:`~stirred.tables.synthetic.inhabitants`.

The invariant a reader must know: the same arguments give the same rows in the same order (for one version of numpy),
whether held in memory or streamed, and persons are **exactly as many as asked for**.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow.parquet as pq

from stirred import errors
from stirred.tables.synthetic.inhabitants import (
    ADULT,
    CENRACE,
    HHGQ,
    HISPANIC,
    RACE,
    SEX,
    TEACHING_RACE,
    VERSION,
    VOTINGAGE,
    Drawn,
    Part,
    draw,
    parts_of_county,
    shared_out,
)

GEOGRAPHY = ("state", "county", "tract", "block_group", "block")
"""The columns of places, in every table, from the widest to the narrowest."""

OCCUPANCY = ("occupied", "vacant")
UNIT_SIZES = ("0", "1", "2", "3", "4", "5", "6", "7+")
FACILITY_TYPES = HHGQ[1:]

DOMAINS: dict[str, tuple[str, ...]] = {
    "hhgq": HHGQ,
    "votingage": VOTINGAGE,
    "hispanic": HISPANIC,
    "cenrace": CENRACE,
    "race": RACE,
    "adult": ADULT,
    "sex": SEX,
    "occupancy": OCCUPANCY,
    "size": UNIT_SIZES,
    "type": FACILITY_TYPES,
}
"""All categories of each categorical column, in order, also those that do not occur."""

FEWEST, MOST = 100, 400_000_000
_MOST_STATES = 99  # two digits
_VOTING_AGE = 18


@dataclass(frozen=True, eq=False)
class Tables:
    """The four files of a census, or of a part of one. ``blocks`` lists every block, also where nobody lives."""

    blocks: pl.DataFrame
    persons: pl.DataFrame
    units: pl.DataFrame
    facilities: pl.DataFrame


@dataclass(frozen=True)
class Population:
    """A country of ``persons`` inhabitants.

    Without ``states`` there is one, and with more than six million persons about one for each six million.

    >>> country = Population(persons=5_000, seed=1)
    >>> tables = country.tables()
    >>> tables.persons.height
    5000
    >>> tables.persons.columns[5:]
    ['residence', 'hhgq', 'votingage', 'hispanic', 'cenrace', 'race', 'adult', 'age', 'sex']
    >>> tables.units.columns[5:], tables.facilities.columns[5:]
    (['residence', 'occupancy', 'size', 'persons'], ['residence', 'type', 'persons'])

    ``residence`` numbers units and facilities together, from 1, and ties persons to where they live. ``votingage`` and
    ``adult`` say the same, as do ``race`` and the pair of ``hispanic`` and ``cenrace`` where several races are one.
    """

    persons: int
    seed: int = 0
    states: int | None = None

    def __post_init__(self) -> None:
        if not FEWEST <= self.persons <= MOST:
            wanted = f"a whole number from {FEWEST} to {MOST:,}"
            raise errors.parameter_out_of_range("The number of persons", self.persons, wanted)
        if self.seed < 0:
            raise errors.parameter_out_of_range("The seed", self.seed, "zero or a positive whole number")
        if self.states is not None and not 1 <= self.states <= _MOST_STATES:
            wanted = f"a whole number from 1 to {_MOST_STATES}"
            raise errors.parameter_out_of_range("The number of states", self.states, wanted)

    def tables(self) -> Tables:
        """The whole census in memory: about 70 bytes a person, twice that while it is built."""
        parts = list(self.parts())
        return Tables(*(pl.concat([getattr(part, field.name) for part in parts]) for field in fields(Tables)))

    def parts(self) -> Iterator[Tables]:
        """The census part by part, a county or some tracts of a large one at a time."""
        residences = 0
        for part in self._plan():
            drawn = draw(part)
            yield _tables(part, drawn, residences)
            residences += len(drawn.residence_hhgq)

    def write(self, folder: str | Path) -> dict[str, Path]:
        """Write one Parquet file for each table into ``folder``, part by part; returns the paths by table."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = {field.name: folder / f"{field.name}.parquet" for field in fields(Tables)}
        writers: dict[str, Any] = {}
        try:
            for part in self.parts():
                for name, path in paths.items():
                    table = getattr(part, name).to_arrow(compat_level=pl.CompatLevel.oldest())
                    if name not in writers:
                        writers[name] = pq.ParquetWriter(path, table.schema, compression="zstd")
                    if table.num_rows:
                        writers[name].write_table(table)
        finally:
            for writer in writers.values():
                writer.close()
        return paths

    def _plan(self) -> Iterator[Part]:
        states = self.states if self.states is not None else max(1, round(self.persons / 6_000_000))
        generator = np.random.default_rng([VERSION, self.seed])
        state_persons = _heavy_tailed(generator, self.persons, states, spread=0.9)
        for state, persons in enumerate(state_persons.tolist(), start=1):
            generator = np.random.default_rng([VERSION, self.seed, state])
            counties = max(1, round(5 * (persons / 1_000_000) ** 0.7))
            for county, inhabitants in enumerate(_heavy_tailed(generator, persons, counties, spread=1.0).tolist()):
                yield from parts_of_county(self.seed, state, 2 * county + 1, inhabitants)  # odd, as the real ones


def _heavy_tailed(generator: np.random.Generator, total: int, members: int, spread: float) -> npt.NDArray[np.int64]:
    """Sizes at least 1 that add up to ``total``."""
    weights = np.exp(spread * generator.normal(size=members))
    return 1 + shared_out(np.array([total - members]), weights, np.array([members]))


# -- from codes to tables --------------------------------------------------------------------------------------------


def _tables(part: Part, drawn: Drawn, residences: int) -> Tables:
    blocks = _geography(part, drawn)
    number = residences + 1 + np.arange(len(drawn.residence_hhgq))
    unit = np.flatnonzero(drawn.residence_hhgq == 0)
    facility = np.flatnonzero(drawn.residence_hhgq > 0)
    size = drawn.residence_persons[unit]
    codes = {name: _labelled(name, values) for name, values in _person_codes(drawn).items()}
    persons = pl.DataFrame({"residence": number[drawn.residence], **codes, "age": drawn.age}).select(
        "residence", "hhgq", "votingage", "hispanic", "cenrace", "race", "adult", "age", "sex"
    )
    units = pl.DataFrame(
        {
            "residence": number[unit],
            "occupancy": _labelled("occupancy", size == 0),
            "size": _labelled("size", np.minimum(size, len(UNIT_SIZES) - 1)),
            "persons": size.astype(np.int32),
        }
    )
    facilities = pl.DataFrame(
        {
            "residence": number[facility],
            "type": _labelled("type", drawn.residence_hhgq[facility] - 1),
            "persons": drawn.residence_persons[facility].astype(np.int32),
        }
    )
    return Tables(
        blocks=blocks,
        persons=_placed(blocks, drawn.residence_block[drawn.residence], persons),
        units=_placed(blocks, drawn.residence_block[unit], units),
        facilities=_placed(blocks, drawn.residence_block[facility], facilities),
    )


def _person_codes(drawn: Drawn) -> dict[str, npt.NDArray[np.uint8]]:
    """The categorical columns of persons as places in their domains."""
    adult = (drawn.age >= _VOTING_AGE).astype(np.uint8)
    return {
        "hhgq": drawn.residence_hhgq[drawn.residence],
        "votingage": adult,
        "hispanic": drawn.hispanic,
        "cenrace": drawn.cenrace,
        "race": TEACHING_RACE[drawn.hispanic, drawn.cenrace],
        "adult": adult,
        "sex": drawn.sex,
    }


def _geography(part: Part, drawn: Drawn) -> pl.DataFrame:
    county = f"{part.state:02}{part.county:03}"
    number = pl.DataFrame({"tract": drawn.tract, "group": drawn.block_group, "block": drawn.block})
    tract = pl.lit(county) + pl.col("tract").cast(pl.String).str.zfill(4) + "00"
    block_group = tract + pl.col("group").cast(pl.String)
    return number.select(
        state=pl.lit(county[:2]),
        county=pl.lit(county),
        tract=tract,
        block_group=block_group,
        block=block_group + pl.col("block").cast(pl.String).str.zfill(3),
    )


def _placed(blocks: pl.DataFrame, block: npt.NDArray[np.int64], table: pl.DataFrame) -> pl.DataFrame:
    at = pl.Series(block.astype(np.uint32))
    return pl.DataFrame([blocks[level].gather(at) for level in GEOGRAPHY] + table.get_columns())


def _labelled(name: str, codes: npt.NDArray[Any]) -> pl.Series:
    kind = pl.Enum(DOMAINS[name])
    return pl.Series(name, DOMAINS[name], dtype=kind).gather(codes.astype(np.uint32))
