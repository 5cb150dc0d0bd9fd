"""Hashes what an input holds: the bytes of files, or the cells of a frame.

A hash of confidential data lets anyone who has it test guesses about them, so it is as confidential as they are.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred import errors
from stirred.tables.columns import plain_type
from stirred.tables.reading.inputs import Told, find_files, root_of, state_of

_PART = 1 << 22


def settled(table: str, data: object) -> object:
    """The data as something that is the same whenever it is read: a lazy frame is collected."""
    from stirred.tables.reading.frames import collected

    return data if isinstance(data, str | os.PathLike) else collected(table, data)


def states(inputs: Mapping[str, object]) -> dict[str, object]:
    """Sizes and times of the files, by table: equal before and after means that nothing was written meanwhile."""
    return {table: state_of(table, path) for table, path in _paths(inputs).items()}


def require_there(inputs: Mapping[str, object]) -> None:
    """Raise if a path stands for no file."""
    for path in _paths(inputs).values():
        find_files(path)


def _paths(inputs: Mapping[str, object]) -> dict[str, Path]:
    return {table: Path(data) for table, data in inputs.items() if isinstance(data, str | os.PathLike)}


def digest(inputs: Mapping[str, object], told: Told) -> bytes:
    """SHA-256 of all tables by name: contents of files, with their places in a folder, or cells of a frame."""
    sizes = {table: _size(data) for table, data in inputs.items()}
    whole, done = max(1, sum(sizes.values())), 0
    found = hashlib.sha256()
    for table, data in sorted(inputs.items()):
        start = done

        def share(read: int, start: int = start) -> None:
            told((start + read) / whole)

        one = _of_files(Path(data), share) if isinstance(data, str | os.PathLike) else _of_frame(table, data)
        found.update(hashlib.sha256(table.encode()).digest() + one)
        done += sizes[table]
    return found.digest()


def _size(data: object) -> int:
    return sum(file.stat().st_size for file in find_files(Path(data))) if isinstance(data, str | os.PathLike) else 0


def _of_files(path: Path, told: Callable[[int], None]) -> bytes:
    """Names count below a folder, where they may be columns, and what a file's name tells of its format; no more."""
    found, read, root = hashlib.sha256(), 0, root_of(path)
    for file in find_files(path):
        name = "".join(file.suffixes[-2:]) if path.is_file() else file.relative_to(root).as_posix()
        inside = hashlib.sha256()
        try:
            with file.open("rb") as stream:
                while part := stream.read(_PART):
                    inside.update(part)
                    read += len(part)
                    told(read)
        except FileNotFoundError:
            raise errors.no_such_input(file) from None
        found.update(hashlib.sha256(name.encode(errors="surrogateescape")).digest() + inside.digest())
    return found.digest()


def _of_frame(table: str, frame: object) -> bytes:
    """The same for the same names, types and cells, however the frame cuts its columns into pieces."""
    from stirred.tables.reading.frames import open_frame

    opened = open_frame(table, frame)
    streams = {name: [hashlib.sha256() for _ in range(2)] for name in opened.kinds}
    for batch in opened.read(list(opened.kinds), ()):
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            for stream, part in zip(streams[name], _bytes(array), strict=True):
                stream.update(part)
    found = hashlib.sha256()
    for name, kind in opened.kinds.items():
        found.update(hashlib.sha256(f"{name}\0{plain_type(kind)}".encode(errors="surrogatepass")).digest())
        found.update(b"".join(stream.digest() for stream in streams[name]))
    return found.digest()


def _bytes(array: Any) -> tuple[Any, Any]:
    """Two streams of a column: for each cell whether it is null, or how long, and the values that are not null."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind, there = array.type, array.drop_null()
    valid = np.ascontiguousarray(array.is_valid().to_numpy(zero_copy_only=False)).view(np.uint8)
    if pa.types.is_boolean(kind):
        return valid, np.ascontiguousarray(there.to_numpy(zero_copy_only=False)).view(np.uint8)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        texts = there.cast(pa.large_string())
        lengths = pc.fill_null(pc.binary_length(array.cast(pa.large_string())), -1).to_numpy(zero_copy_only=False)
        ends = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
        whole = texts.buffers()[2]
        return lengths.astype(np.int64), b"" if whole is None or not len(texts) else whole[ends[0] : ends[-1]]
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        width = kind.bit_width // 8
        values = (
            b"" if not len(there) else there.buffers()[1][there.offset * width : (there.offset + len(there)) * width]
        )
        return valid, values
    return valid, repr(there.to_pylist()).encode(errors="surrogatepass")
