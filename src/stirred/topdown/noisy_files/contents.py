"""Reads noisy measurement files: rows, values, exact statements, and the plan that they follow.

A row is one query in one geounit, with all its values in a list. Rows may stand in any order. What they are about
(geounit, query, variance) is read first, without the values, and kept as small numbers; values are read afterwards, a
few thousand rows at a time.

Beside noisy measurements some things are known exactly. The files state the number of housing units of every geounit,
bounds on persons by kind of quarters (at least one person for each facility, none where there is none), and
combinations that do not occur. Totals of states are published elsewhere. A statement that is not there for every finest
geounit is not used.

A query with variance v was measured with rho = 1/v. Files have v rounded, so rho is a simple fraction whose inverse
rounds to it, or a decimal number; budgets and shares follow by adding up.

The invariant a reader must know: a column that is missing, of another type or with other contents than described is an
error that names the file, the column and what was expected; nothing is guessed.

The plan that follows states the guarantee of those who drew the measurements, and ``measured_by`` says so.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred import errors
from stirred._bounded_reading import plain
from stirred.margins.spine import Index, Spine
from stirred.topdown.data.histograms import Counts
from stirred.topdown.noisy_files.form import (
    EXACT,
    GEOCODE,
    MEASURED,
    NATION,
    QUERY,
    SHAPE,
    VALUE,
    VARIANCE,
    LevelFiles,
    Product,
)
from stirred.topdown.plan.fields import TopDownPlan

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
    codes, unit, names, name_of, shapes, variance, single = _about(path, product)
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
            codes, names, column = batch[GEOCODE].cast(pa.string()), batch[QUERY].cast(pa.string()), batch[VALUE]
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


def _about(path: Path, product: Product) -> tuple[Any, ...]:
    """The columns of a file but its values, as small numbers."""
    dimensions = len(product.attributes)
    geounits, queries, shapes, variances = [], [], [], []
    with _damage_told(path), pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        _require_columns(path, schema, (GEOCODE, QUERY, SHAPE, VALUE, VARIANCE))
        single = pa.types.is_float32(schema.field(VARIANCE).type)
        for batch in file.iter_batches(batch_size=_ROWS, columns=[GEOCODE, QUERY, SHAPE, VARIANCE]):
            for name in (GEOCODE, QUERY, SHAPE, VARIANCE):
                if batch[name].null_count:
                    raise errors.noisy_column(path, name, "has rows without a value", "one in every row")
            geounits.append(pc.dictionary_encode(batch[GEOCODE].cast(pa.string())))
            queries.append(pc.dictionary_encode(batch[QUERY].cast(pa.string())))
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


@dataclass(frozen=True, eq=False, repr=False)
class ExactCounts:
    """What the files of constraints state about the finest geounits of a table, as far as it is known."""

    total: Counts | None = None
    facilities: Counts | None = None
    """Of each kind that is not a household, how many facilities there are."""
    homes: Counts | None = None
    """1 where a household can live, and 0 elsewhere."""
    zeros: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    """Combinations of values that do not occur."""

    def __repr__(self) -> str:
        known = [name for name in ("total", "facilities", "homes") if getattr(self, name) is not None]
        return f"<ExactCounts: {', '.join(known) or 'nothing'}>"


def read_exact_counts(product: Product, level: LevelFiles, spine: Spine) -> ExactCounts:
    """Read what the files of constraints state about the finest geounits."""
    wanted = dict.fromkeys((name for name, _ in product.zeros), 1)
    lower, upper = "", ""
    if product.total:
        wanted[f"total{EXACT}"] = 1
    if product.bounds:
        attribute, _ = product.bounds
        lower, upper = (f"{attribute}_total_{end}{EXACT}" for end in ("lb", "ub"))
        wanted |= dict.fromkeys((lower, upper), len(product.schema.values(attribute)))
    found: dict[str, Counts] = {}
    times: dict[str, Counts] = {}
    for _, path in level.constraints:
        for name, (codes, values) in read_exact(path, wanted).items():
            place = pc.index_in(codes, spine.names[-1])
            inside = pc.is_valid(place)
            units = place.filter(inside).to_numpy(zero_copy_only=False).astype(np.int64)
            found.setdefault(name, np.zeros((spine.leaves, wanted[name]), dtype=np.int64))
            found[name][units] = values[inside.to_numpy(zero_copy_only=False)]
            times.setdefault(name, np.zeros(spine.leaves, dtype=np.int64))
            times[name] += np.bincount(units, minlength=spine.leaves)
    whole = {name: values for name, values in found.items() if (times[name] == 1).all() and (values >= 0).all()}
    zeros = tuple(
        {attribute: (value,) for attribute, value in together}
        for name, together in product.zeros
        if name in whole and not whole[name].any()
    )
    facilities = homes = None
    if product.bounds and lower in whole and upper in whole:
        attribute, household = product.bounds
        kinds = product.schema.values(attribute)
        others = [at for at, kind in enumerate(kinds) if kind != household]
        homes = (whole[upper][:, [kinds.index(household)]] > 0).astype(np.int64)
        if np.array_equal(whole[lower][:, others] > 0, whole[upper][:, others] > 0):
            facilities = whole[lower][:, others]
    return ExactCounts(whole.get(f"total{EXACT}"), facilities, homes, zeros)


def read_totals(path: Path, spine: Spine) -> Counts:
    """Published totals of states, for the units of the level of states; each state must be one unit there."""
    try:
        read = csv.read_csv(path, convert_options=csv.ConvertOptions(column_types={"state": pa.string()}))
        codes = [str(code).strip().zfill(2) for code in read["state"].to_pylist()]
        numbers = [int(number) for number in read["total"].to_pylist()]
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        raise errors.noisy_question(
            f"The totals in {path}", "must be in a CSV file with the columns state (two digits) and total"
        ) from None
    if "state" not in spine.levels:
        raise errors.noisy_question("Totals of states", "can be used only if the level of states is read")
    known = dict(zip(codes, numbers, strict=True))
    states = [name[1:] for name in spine.names[spine.levels.index("state")].to_pylist()]
    if twice := [one for one in states if states.count(one) > 1]:
        raise errors.noisy_question(
            f"The state '{twice[0]}'",
            "has two parts, and its total is that of both; totals can be used for states with one part only",
        )
    if lacking := [one for one in states if one not in known]:
        raise errors.noisy_question(f"The totals in {path}", f"must have a row for the state '{plain(lacking[0])}'")
    return np.array([[known[one]] for one in states], dtype=np.int64)


_SIMPLE = 10**12
"""Common denominators above this are replaced by a power of ten."""

Variances = Mapping[str, Sequence[Mapping[tuple[str, ...], Kind]]]
"""By table and level, the queries with their variances."""


def noisy_plan(
    folder: Path,
    products: Sequence[Product],
    spine: Spine,
    variances: Variances,
    exact: Mapping[str, ExactCounts],
    totals: Counts | None,
) -> tuple[TopDownPlan, tuple[Counts | None, ...]]:
    """The plan of some tables, and the values of its invariants."""
    tables: list[dict[str, Any]] = []
    kept: list[dict[str, Any]] = []
    bound: list[dict[str, Any]] = []
    values: list[Counts] = []
    leaf = spine.levels[-1]
    for product in products:
        known = exact[product.table]
        tables.append(_table(product, spine.levels, variances[product.table], known))
        if known.total is not None:
            kept.append({"table": product.table, "level": leaf})
            values.append(known.total)
        if totals is not None and product.bounds:
            kept.append({"table": product.table, "level": "state"})
            values.append(totals)
        if product.bounds and known.facilities is not None:
            attribute, household = product.bounds
            kinds = tuple(one for one in product.schema.values(attribute) if one != household)
            tables.append(_counted("facilities", "group-quarters facility", "type", kinds))
            kept.append({"table": "facilities", "level": leaf, "by": ("type",)})
            values.append(known.facilities)
            bound.append({"table": product.table, "counted": "facilities", "each": {attribute: "type"}, "at_least": 1})
        if product.bounds and known.homes is not None:
            attribute, household = product.bounds
            counted = _same_places(known.homes, exact)
            if counted is None:
                counted = "homes"
                tables.append(_counted(counted, "household place", "home", ("home",)))
                kept.append({"table": counted, "level": leaf})
                values.append(known.homes)
            bound.append({"table": product.table, "counted": counted, "where": {attribute: (household,)}})
    root = spine.levels[0] == NATION
    files = f"the noisy measurement files of {' and '.join(one.table for one in products)}"
    fields: dict[str, Any] = {
        "spine": {"levels": spine.levels[1:] if root else spine.levels, **({"root": NATION} if root else {})},
        "unit": products[0].unit,
        "tables": tables,
        "invariants": kept,
        "constraints": bound,
        "measured_by": f"whoever published {files}, found in a folder called '{plain(folder.name, 100)}'",
    }
    return TopDownPlan(**fields), tuple(values)


def _same_places(homes: Counts, exact: Mapping[str, ExactCounts]) -> str | None:
    """The table whose known totals are positive just where households can live, if there is one."""
    for table, known in exact.items():
        if known.total is not None and np.array_equal(known.total > 0, homes > 0):
            return table
    return None


def _counted(name: str, unit: str, attribute: str, values: Sequence[str]) -> dict[str, Any]:
    return {"name": name, "unit": unit, "attributes": [{"name": attribute, "values": tuple(values)}]}


def _table(
    product: Product,
    levels: Sequence[str],
    variances: Sequence[Mapping[tuple[str, ...], Kind]],
    known: ExactCounts,
) -> dict[str, Any]:
    spent = _budgets(variances)
    each = [sum(here.values(), Fraction(0)) for here in spent]
    rho = sum(each, Fraction(0))
    queries = dict.fromkeys(by for here in spent for by in here)
    return {
        "name": product.table,
        "unit": product.unit,
        "rho": rho,
        "level_shares": {level: one / rho for level, one in zip(levels, each, strict=True)},
        "attributes": [{"name": name, "values": values} for name, values in product.attributes],
        "recodes": [{"name": name, "of": of, "groups": dict(groups)} for name, of, groups in product.recodes],
        "zeros": [dict(one) for one in known.zeros],
        "queries": [
            {
                "by": by,
                "shares": {
                    level: here.get(by, Fraction(0)) / one for level, here, one in zip(levels, spent, each, strict=True)
                },
            }
            for by in queries
        ],
    }


def _budgets(variances: Sequence[Mapping[tuple[str, ...], Kind]]) -> list[dict[tuple[str, ...], Fraction]]:
    """rho of every query of every level."""
    found = [{by: simplest_rho(kind.variance, kind.single) for by, kind in here.items()} for here in variances]
    if math.lcm(*(rho.denominator for here in found for rho in here.values())) <= _SIMPLE:
        return found
    for digits in range(12, 60):
        grid = 10**digits
        found = [
            {by: Fraction(round(grid / Fraction(kind.variance)), grid) for by, kind in here.items()}
            for here in variances
        ]
        if all(
            _states(here[by], kind) for here, kinds in zip(found, variances, strict=True) for by, kind in kinds.items()
        ):
            break
    return found


def _states(rho: Fraction, kind: Kind) -> bool:
    """Whether a variance is one over rho, as a number in double or single precision."""
    if not rho:
        return False
    if kind.single:
        return bool(np.float32(float(1 / rho)) == np.float32(kind.variance))
    return float(1 / rho) == kind.variance


def simplest_rho(variance: float, single: bool = False) -> Fraction:
    """The simplest fraction whose inverse is the variance as stated, a number in double or single precision.

    >>> simplest_rho(4097 / 3), simplest_rho(float(np.float32(4097 / 3)), single=True)
    (Fraction(3, 4097), Fraction(3, 4097))
    """
    aim, stated = 1 / Fraction(variance), Kind("", (), variance, single)
    for digits in range(1, 40):
        rho = aim.limit_denominator(10**digits)
        if _states(rho, stated):
            return rho
    return aim
