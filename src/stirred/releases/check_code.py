"""Ties a release to the check before it: a code of the plan and of the data that were checked.

The code ends in a hash of confidential data: the bytes of files, or the cells of a frame. Whoever has it can test
guesses about them, so it is as confidential as they are: printed to the custodian and written nowhere, not into a
release, a ledger, a report or a work folder.

Sizes and times of the files are compared before the first and after the last reading, so that what was hashed is what
was read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred import errors
from stirred._display import withheld
from stirred._progress import stage
from stirred.releases.mechanism import Check, Data, Mechanism
from stirred.releases.plans import Plan
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


_GROUP, _OF_PLAN, _OF_ALL = 4, 4, 16
"""Letters in a group of a code; of the plan, to tell what differs (20 bits); of plan and data together (80 bits)."""


def checked(mechanism: Mechanism, plan: Plan, data: Data | None = None, **options: Any) -> Check:
    """Check a plan against its data, and give the check the code by which a release can be tied to it."""
    watched = Watched.of(mechanism, plan, data)
    found = mechanism.check(plan, watched.data, **options)
    code = watched.code("computing the code of this check")
    watched.require_unchanged()
    return replace(found, code=code)  # type: ignore[type-var]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Watched:
    """A plan and its data, and how the files were before anything was read."""

    plan: Plan
    inputs: dict[str, object]
    data: Data | None
    """What is read, in the form that a mechanism takes."""
    since: dict[str, object]

    @classmethod
    def of(cls, mechanism: Mechanism, plan: Plan, data: Data | None) -> Watched:
        """Look at the files, and collect lazy frames once for all readings."""
        if isinstance(data, Mapping):
            data = {table: settled(str(table), one) for table, one in data.items()}
        elif data is not None:
            data = settled("data", data)
        inputs = mechanism.inputs(plan, data)
        require_there(inputs)
        return cls(plan, inputs, data, states(inputs))

    def code(self, words: str) -> str:
        """The code of plan and data."""
        plan = self._plan()
        seen = digest(self.inputs, lambda done: stage(words, done))
        both = hashlib.sha256(b"stirred check 1" + plan + seen).digest()
        text = _letters(plan)[:_OF_PLAN] + _letters(both)[:_OF_ALL]
        return "-".join(text[at : at + _GROUP] for at in range(0, len(text), _GROUP))

    def require(self, code: str) -> None:
        """Raise unless plan and data are those of a check with this code; the right code is not told."""
        wanted = re.sub(r"[\s-]", "", code).upper()
        if not re.fullmatch(f"[A-Z2-7]{{{_OF_PLAN + _OF_ALL}}}", wanted):
            raise errors.OutputError(
                "check-code",
                "This is not a code of a check: those have 20 letters and digits, in groups of four.",
                "Copy the code that stirred check printed, as a whole. Nothing was drawn.",
            )
        if wanted[:_OF_PLAN] != _letters(self._plan())[:_OF_PLAN]:
            raise errors.not_as_checked("The plan is not the one")
        if wanted != self.code("comparing the data with those that were checked").replace("-", ""):
            raise errors.not_as_checked("The data are not those")

    def require_unchanged(self) -> None:
        """Raise if the files are not as they were at first."""
        for table, state in states(self.inputs).items():
            if state != self.since[table]:
                raise errors.changed_while_reading(f"the input of table '{table}'")

    def _plan(self) -> bytes:
        """A hash of everything that the plan says but where the data lie."""
        fields = self.plan.model_dump(mode="json")
        for section in self.plan.input_sections(fields):
            if isinstance(section, dict):
                section.pop("path", None)
        return hashlib.sha256(json.dumps([self.plan.mechanism, fields], sort_keys=True).encode()).digest()


def _letters(digest: bytes) -> str:
    return base64.b32encode(digest).decode("ascii")
