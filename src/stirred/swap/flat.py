"""Flat files: one row for each person, in which the columns of the household are repeated.

Read, such a file is split into the records (households) and their linked rows (persons); a release puts them together
again, row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.tables import Column, Table
from stirred.tables.writing import Cell, Chunk

FLAT = "flat"
"""The name of the flat file in a release."""


def records_of(ids: pa.ChunkedArray) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The number of the record that each row belongs to, and the first row of each record.

    >>> [one.tolist() for one in records_of(pa.chunked_array([["b", "a"], ["b"]]))]
    [[0, 1, 0], [0, 1]]
    """
    codes = ids.combine_chunks().dictionary_encode().indices.to_numpy()
    return codes.astype(np.uint32), np.unique(codes, return_index=True)[1]


def count_varying(column: Column, record: NDArray[np.uint32], first: NDArray[np.int64]) -> int:
    """In how many rows a column differs from the first row of the same record."""
    return int(np.count_nonzero(column.codes != column.codes[first][record]))


def flat_chunks(columns: Sequence[str], link: str, main: Table, linked: Iterable[Chunk]) -> Iterator[Chunk]:
    """Linked rows beside the columns of their record; ``main`` and ``linked`` are in the order of the release."""
    for chunk in linked:
        own = {cell.name: cell for cell in chunk}
        at = own[link].codes - 1
        yield [own[name] if name in own else Cell(name, main[name].codes[at], main[name]) for name in columns]
