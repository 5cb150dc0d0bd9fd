"""Reads one noisy measurement file: first what its rows are about, then their values, in batches.

A row is one query in one geounit, with all its values in a list. Rows may stand in any order. What they are about
(geounit, query, variance) is read first, without the values, and kept as small numbers; values are read afterwards, a
few thousand rows at a time.

The invariant a reader must know: a column that is missing, of another type or with other contents than described is an
error that names the file, the column and what was expected; nothing is guessed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred import errors
from stirred._received import plain
from stirred.margins.spine import Index
from stirred.topdown.nmf_form import GEOCODE, MEASURED, QUERY, SHAPE, VALUE, VARIANCE, Product

_ROWS = 1 << 17
"""Rows whose geounits and queries are read at a time."""
_VALUES = 1 << 10
"""Rows whose values are read at a time: at 2,016 values as many numbers as other measurements are read by."""


@dataclass(frozen=True)
class Kind:
    """A query as rows of a file state it."""

    name: str
    by: tuple[str, ...]
    variance: float
    single: bool
    """Whether the file has the variance in single precision."""


@dataclass(frozen=True, eq=False, repr=False)
class FileRows:
    """What every row of a file is about."""

    path: Path
    codes: pa.Array
    """The codes of geounits that occur, once each."""
    unit: NDArray[np.int32]
    """For each row the place of its geounit among the codes."""
    kind: NDArray[np.int16]
    """For each row the place of its query and variance among the kinds."""
    kinds: tuple[Kind, ...]

    def __repr__(self) -> str:
        return f"<FileRows of {self.path}: {len(self.unit):,} rows, {len(self.codes):,} geounits>"


def read_rows(path: Path, product: Product) -> FileRows:
    """Read what the rows of a file of measurements are about, and hold it against the description."""
    codes, unit, names, name_of, shapes, variance, single = _about(path, product, len(product.attributes))
    known = [product.by(name) for name in names]
    for name, by in zip(names, known, strict=True):
        if by is None:
            allowed = ", ".join(product.schema.names)
            raise errors.noisy_column(
                path, QUERY, f"has the query '{plain(name)}', which is not known",
                f"total{MEASURED}, detailed{MEASURED}, or {allowed}, alone or joined by ' * ', with {MEASURED} behind",
            )  # fmt: skip
    pairs, kind = np.unique(np.stack([name_of.astype(np.float64), variance]), axis=1, return_inverse=True)
    kinds = []
    for at, size in pairs.T.tolist():
        by = known[int(at)]
        assert by is not None
        if not (np.isfinite(size) and size > 0):
            raise errors.noisy_column(
                path, VARIANCE, f"is {size:g} for {plain(names[int(at)])}", "a number above 0: the noise is not nothing"
            )
        expected = np.array(product.shape(by))
        if shapes is not None and (wrong := (shapes[name_of == at] != expected).any(axis=1)).any():
            found = shapes[name_of == at][wrong][0].tolist()
            raise errors.noisy_column(
                path, SHAPE, f"is {found} for {plain(names[int(at)])}", f"{expected.tolist()}, as the name says"
            )
        kinds.append(Kind(names[int(at)], by, size, single))
    return FileRows(path, codes, unit, kind.ravel().astype(np.int16), tuple(kinds))


def read_values(
    rows: FileRows, cells: dict[tuple[str, ...], int], wanted: Collection[tuple[str, ...]]
) -> Iterator[tuple[Kind, Index, NDArray[np.integer]]]:
    """The values of wanted queries in batches: the query, for each row the place of its geounit among the codes of the
    file, and the values, a row for each."""
    first = 0
    chosen = np.array([kind.by in wanted for kind in rows.kinds])
    with _damage_told(rows.path), pq.ParquetFile(rows.path) as file:
        for batch in file.iter_batches(batch_size=_VALUES, columns=[VALUE]):
            here = rows.kind[first : first + batch.num_rows]
            unit = rows.unit[first : first + batch.num_rows]
            column = batch.column(0)
            first += batch.num_rows
            for at in np.unique(here).tolist():
                if not chosen[at]:
                    continue
                kind, mask = rows.kinds[at], here == at
                some = column if mask.all() else column.filter(pa.array(mask))
                yield kind, unit[mask].astype(np.int64), _matrix(rows.path, kind.name, some, cells[kind.by])
    if first != len(rows.unit):
        raise errors.noisy_file(rows.path)


def read_exact(path: Path, wanted: dict[str, int]) -> dict[str, tuple[pa.Array, NDArray[np.int64]]]:
    """Exact statements of a file, by name: the codes of geounits, and the values, a row for each.

    ``wanted`` has the number of values of each statement that is looked for; others are left alone.
    """
    found: dict[str, list[tuple[pa.Array, NDArray[np.int64]]]] = {}
    with _damage_told(path), pq.ParquetFile(path) as file:
        _require_columns(path, file.schema_arrow, (GEOCODE, QUERY, VALUE))
        for batch in file.iter_batches(batch_size=_ROWS, columns=[GEOCODE, QUERY, VALUE]):
            codes, names, column = (_plain_text(batch[GEOCODE]), _plain_text(batch[QUERY]), batch[VALUE])
            for name, length in wanted.items():
                mask = pc.fill_null(pc.equal(names, name), False)
                if pc.any(mask).as_py():
                    values = _matrix(path, name, column.filter(mask), length).astype(np.int64)
                    found.setdefault(name, []).append((codes.filter(mask), values))
    return {
        name: (pa.concat_arrays([codes for codes, _ in parts]), np.concatenate([values for _, values in parts]))
        for name, parts in found.items()
    }


# -- helpers -------------------------------------------------------------------------------------------------


def _about(path: Path, product: Product, dimensions: int) -> tuple[Any, ...]:
    """The columns of a file but its values, as small numbers."""
    geounits, queries, shapes, variances = [], [], [], []
    with _damage_told(path), pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        _require_columns(path, schema, (GEOCODE, QUERY, SHAPE, VALUE, VARIANCE))
        single = pa.types.is_float32(schema.field(VARIANCE).type)
        for batch in file.iter_batches(batch_size=_ROWS, columns=[GEOCODE, QUERY, SHAPE, VARIANCE]):
            for name in (GEOCODE, QUERY, SHAPE, VARIANCE):
                if batch[name].null_count:
                    raise errors.noisy_column(path, name, "has rows without a value", "one in every row")
            geounits.append(pc.dictionary_encode(_plain_text(batch[GEOCODE])))
            queries.append(pc.dictionary_encode(_plain_text(batch[QUERY])))
            lengths = pc.list_value_length(batch[SHAPE]).to_numpy()
            if (lengths != dimensions).any():
                listed = " x ".join(name for name, _ in product.attributes)
                raise errors.noisy_column(
                    path, SHAPE, f"has {int(lengths[lengths != dimensions][0])} numbers in a row",
                    f"{dimensions}: {listed}",
                )  # fmt: skip
            shapes.append(pc.list_flatten(batch[SHAPE]).to_numpy().reshape(-1, dimensions).astype(np.int64))
            variances.append(batch[VARIANCE].to_numpy(zero_copy_only=False).astype(np.float64))
    if not geounits:
        nothing = np.zeros(0, dtype=np.int32)
        return pa.array([], pa.string()), nothing, [], nothing, None, np.zeros(0), False
    codes, unit = _unified(geounits)
    names, name_of = _unified(queries)
    return codes, unit, names.to_pylist(), name_of, np.concatenate(shapes), np.concatenate(variances), single


def _unified(parts: list[pa.DictionaryArray]) -> tuple[pa.Array, NDArray[np.int32]]:
    whole = pa.chunked_array(parts).unify_dictionaries()
    places = [chunk.indices.to_numpy().astype(np.int32) for chunk in whole.chunks]
    return whole.chunk(0).dictionary.cast(pa.string()), np.concatenate(places)


def _require_columns(path: Path, schema: pa.Schema, names: tuple[str, ...]) -> None:
    """Raise if a column is missing or of another type than described."""
    for name in names:
        what, fits = _TYPES[name]
        if name not in schema.names:
            raise errors.noisy_column(path, name, "is missing", what)
        if not fits(schema.field(name).type):
            raise errors.noisy_column(path, name, f"is of type {schema.field(name).type}", what)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_integers(kind: pa.DataType) -> bool:
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(lists and pa.types.is_integer(kind.value_type))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


_TYPES = {
    GEOCODE: ("text: the code of a geounit on the internal geography", _is_text),
    QUERY: ("text: the name of a query", _is_text),
    SHAPE: ("a list of whole numbers: how many values each attribute has in the query", _is_integers),
    VALUE: ("a list of whole numbers: the noisy counts", _is_integers),
    VARIANCE: ("a number: the parameter of the query's discrete Gaussian noise", _is_number),
}


def _plain_text(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _matrix(path: Path, name: str, column: pa.Array, cells: int) -> NDArray[np.integer]:
    """The values of rows of one query, which must all have the same length."""
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if column.null_count or (lengths != cells).any():
        found = "nothing" if column.null_count else f"{int(lengths[lengths != cells][0]):,} numbers"
        raise errors.noisy_column(path, VALUE, f"has {found} in a row of {plain(name)}", f"{cells:,} numbers")
    flat = pc.list_flatten(column)
    if flat.null_count:
        raise errors.noisy_column(path, VALUE, f"has a gap in a row of {plain(name)}", f"{cells:,} numbers")
    return np.asarray(flat.to_numpy()).reshape(-1, cells)


@contextlib.contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """Say of a file that cannot be read which one it is."""
    try:
        yield
    except (OSError, pa.ArrowException):
        raise errors.noisy_file(path) from None


def dimensions(path: Path) -> int:
    """How many numbers ``query_shape`` has in the first row of a file; 0 if it has no row."""
    with _damage_told(path), pq.ParquetFile(path) as file:
        _require_columns(path, file.schema_arrow, (SHAPE,))
        for batch in file.iter_batches(batch_size=1, columns=[SHAPE]):
            return len(batch[SHAPE][0].as_py() or ())
    return 0
