"""Stata, SAS and SPSS files, through the optional part ``stata-sas-spss``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from stirred import errors
from stirred.tables.inputs import TYPES, Found, Input, check_columns, columns_of
from stirred.tables.labelled_files import labels_of


def open_statistical(found: Found) -> Input:
    """A Stata, SAS or SPSS file, read whole."""
    table, path, files, kind, options = found.table, found.path, found.files, found.kind, found.options
    try:
        import pyreadstat
    except ImportError:
        raise errors.needs_extra(kind) from None
    readers = {
        "stata": pyreadstat.read_dta,
        "spss": pyreadstat.read_sav,
        "sas": pyreadstat.read_xport if files[0].suffix.lower() == ".xpt" else pyreadstat.read_sas7bdat,
    }
    if len(files) != 1:
        raise errors.mixed_formats(path)
    before = found.state()
    try:
        frame, meta = readers[kind](str(files[0]))
        labels = None if files[0].suffix.lower() == ".sas7bdat" else labels_of(kind, meta)  # nobody can write these
        whole = _with_integers(pa.Table.from_pandas(frame, preserve_index=False))
    except Exception:
        raise errors.unreadable_format(path, kind) from None
    if found.state() != before:
        raise errors.changed_while_reading(f"the input of table '{table}'")
    check_columns(table, whole.schema.names)
    for column, wanted in options.types.items():  # SPSS, for one, stores every number as a floating-point one
        if column not in whole.schema.names:
            raise errors.missing_columns(table, [column])
        try:
            typed = whole.column(column).cast(TYPES[wanted])
        except pa.ArrowException:
            raise errors.wrong_type(table, column, wanted) from None
        whole = whole.set_column(whole.schema.get_field_index(column), column, typed)

    def read(columns: Sequence[str], identifiers: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from whole.select([*columns, *identifiers]).to_batches()

    kinds = columns_of(whole.schema)
    return Input(table, "parquet", kinds, read, found.bytes, whole.num_rows, state=found.state, labels=labels)


def _with_integers(table: pa.Table) -> pa.Table:
    """Whole numbers as integers: these formats store every number as a float, and floats cannot match."""
    for at, item in enumerate(table.schema):
        if pa.types.is_floating(item.type):
            column = table.column(at)
            if bool(pc.all(pc.equal(pc.floor(column), column)).as_py()) and bool(pc.all(pc.is_finite(column)).as_py()):
                table = table.set_column(at, item.name, column.cast(pa.int64()))
    return table
