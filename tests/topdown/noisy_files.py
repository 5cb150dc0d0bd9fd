"""Small noisy measurement files for tests, written row by row, and dense least squares on what they say."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import stirred
from stirred.tables.synthetic.population import DOMAINS, Population
from stirred.topdown.noisy_files.form import LEVELS, Product
from stirred.topdown.noisy_files.writing import write_noisy_measurements

KINDS = ("household", "nursing", "college")
SMALL = Product(
    "persons", "person", "US_Small_PROD",
    (("hhgq", KINDS), ("votingage", ("under 18", "18 and over"))),
    recodes=(("hhinstlevels", "hhgq", (("household", KINDS[:1]), ("other", KINDS[1:]))),),
    zeros=(("nurse_nva_0_con", (("hhgq", "nursing"), ("votingage", "under 18"))),),
    bounds=("hhgq", "household"),
)  # fmt: skip
"""Six kinds of person."""

NAMES = {ours: theirs for theirs, ours in LEVELS.items()}
QUERIES: tuple[tuple[str, ...], ...] = ((), ("hhinstlevels",), ("votingage",), ("hhgq", "votingage"))
Row = dict[str, Any]

TREE = {
    "044": {"0441001": {"04410010": {"0441001000": 2, "0441001001": 1}}, "0441003": {"04410030": {"0441003000": 3}}},
    "125": {"1251001": {"12510010": {"1251001000": 2}}},
}
"""State, county, tract, block group: the number of blocks."""


def block_names(tree: Mapping[str, Any] = TREE) -> list[str]:
    found = []
    for state in tree.values():
        for county, tracts in state.items():
            for groups in tracts.values():
                for group, number in groups.items():
                    real = county[1:3] + county[4:7] + "000100"  # state 2, county 3, tract 6
                    found += [f"{group}{real}1{1000 + at + 10 * int(group[-1]):04}" for at in range(number)]
    return found


def level_names(blocks: Sequence[str], levels: Sequence[str]) -> dict[str, list[str]]:
    lengths = {"state": 3, "county": 7, "tract": 8, "block_group": 10, "block": 26}
    return {level: sorted({block[: lengths[level]] for block in blocks}) for level in levels}


def groups(by: Sequence[str], product: Product = SMALL) -> np.ndarray:
    """A row for each group of a query, which cells it counts."""
    of_cell = product.schema.groups(tuple(by))
    return (np.arange(product.schema.number_of_groups(tuple(by)))[:, None] == of_cell).astype(np.float64)


def rows_of(
    truth: Mapping[str, np.ndarray], variances: Mapping[str, Mapping[tuple[str, ...], Fraction]],
    noise: Callable[[Fraction, int], np.ndarray], product: Product = SMALL,
) -> dict[str, list[Row]]:  # fmt: skip
    """By level, the rows of all geounits, for counts of cells by block."""
    found: dict[str, list[Row]] = {}
    for level, names in level_names(list(truth), list(variances)).items():
        found[level] = []
        for by, name in itertools.product(variances[level], names):
            cells = sum(counts for block, counts in truth.items() if block.startswith(name))
            values = groups(by, product) @ cells
            found[level].append({
                "geocode": name, "query_name": product.query(by), "query_shape": list(product.shape(by)),
                "value": (values.astype(np.int64) + noise(variances[level][by], len(values))).tolist(),
                "variance": float(variances[level][by]),
            })  # fmt: skip
    return found


SCHEMA = pa.schema([
    ("geocode", pa.string()), ("query_name", pa.string()), ("query_shape", pa.list_(pa.int32())),
    ("value", pa.list_(pa.int32())), ("variance", pa.float64()),
])  # fmt: skip


def write_rows(
    folder: Path, rows: Mapping[str, Sequence[Row]], schema: pa.Schema = SCHEMA, kind: str = "DPQuery"
) -> Path:
    """Write a file for each level and state."""
    for level, some in rows.items():
        for state in sorted({row["geocode"][:3] for row in some}):
            place = folder / f"{NAMES[level]}.parquet" / kind / f"State={state}"
            place.mkdir(parents=True, exist_ok=True)
            here = [row for row in some if row["geocode"].startswith(state)]
            pq.write_table(pa.Table.from_pylist(here, schema=schema), place / "part-0.parquet")
    return folder


def dense(
    rows: Mapping[str, Sequence[Row]], blocks: Sequence[str], product: Product = SMALL
) -> tuple[np.ndarray, np.ndarray]:
    """The least squares estimate of all cells of all blocks, and its covariance matrix."""
    left, right, weight = [], [], []
    for row in itertools.chain.from_iterable(rows.values()):
        inside = np.array([float(block.startswith(row["geocode"])) for block in blocks])
        by = product.by(row["query_name"])
        assert by is not None
        left.append(np.kron(inside, groups(by, product)))
        right.append(row["value"])
        weight.append(np.full(len(row["value"]), 1 / row["variance"]))
    design, values, precision = np.vstack(left), np.concatenate(right), np.concatenate(weight)
    covariance = np.linalg.inv(design.T @ (precision[:, None] * design))
    return covariance @ design.T @ (precision * values), covariance


def dense_answer(
    found: tuple[np.ndarray, np.ndarray], blocks: Sequence[str], chosen: Sequence[bool], by: Sequence[str],
    product: Product = SMALL,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Estimates and variances of the groups of a query in the union of some blocks."""
    form = np.kron(np.array(chosen, dtype=np.float64), groups(by, product))
    return form @ found[0], np.einsum("gi,ij,gj->g", form, found[1], form)


def publish(folder: Path, persons: int, seed: int) -> None:
    """A generated census released with the 2020 plan, and its measurements as noisy measurement files beside it."""
    made = Population(persons=persons, seed=seed).tables()
    data = {"geography": made.blocks, "persons": made.persons, "units": made.units, "facilities": made.facilities}
    stirred.release(stirred.topdown.preset("pl94-2020", DOMAINS, chosen_from="public"), data, out=folder / "release")
    write_noisy_measurements(folder / "release", folder / "files")
