"""Looks into the files of a release for what they say beside their tables: metadata, names, paths, times, leftovers.

Cells are not looked at here. What is looked at are texts: whole documents, and in files of tables the places that hold
something else, such as the key-value metadata of Parquet, comments and labels.

The invariant a reader must know: no link is followed, and nothing outside the release is opened.
"""

from __future__ import annotations

import contextlib
import getpass
import gzip
import json
import re
import socket
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from stirred import errors
from stirred._bounded_reading import MOST_BYTES, Unacceptable, plain, read_bytes
from stirred.lab.audit.results import Result
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import differences, read_manifest
from stirred.tables.reading.inputs import format_of

_PATHS = re.compile(r"(?<![\w.:/#<~-])(?:~|[A-Za-z]:)?[/\\](?:[\w.@+ -]+[/\\])+[\w.@+-]+|\\\\[\w.-]+\\[\w.$-]+")
_TIMES = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\b\d{1,2} [A-Z][a-z]{2} \d{2,4} \d\d:\d\d|\b\d\d[A-Z]{3}\d\d(?:\d\d)?:\d\d:\d\d"
)
_NO_TIMES = re.compile(r"1970-01-01|01 Jan (?:19)?70|01JAN(?:19)?70|1960-01-01|01 Jan (?:19)?60|01JAN(?:19)?60")
"""What is written in place of a time."""
_LEFT_OVER = re.compile(
    r"^\.|~$|\.(?:tmp|temp|bak|old|orig|swp|swo|log|lock|pyc|part)$|^(?:Thumbs\.db|desktop\.ini|__pycache__)$", re.I
)
_MOVED = r"(?:moved|swapped|changed|exchanged|permuted|selected)"
_USUAL_KEYS = frozenset({"ARROW:schema", "pandas", "PARQUET:field_id", "rho", "variance"})
"""Keys of metadata that say nothing of an input; the last two are the noise of a TopDown measurement."""
_COMMON_NAMES = frozenset({"root", "user", "admin", "ubuntu", "runner", "localhost", "home", "data", "test", "build"})
_SHOWN = 3
_FEWEST_MOVED = 10
"""Smaller numbers stand in any text by chance."""
_EARLIEST = 1980
"""Times in files before this year stand for none."""


@dataclass(frozen=True)
class Text:
    """A text of a release, and where it stands."""

    where: str
    text: str


def results(release: Path, inputs: Sequence[Path], moved: int | None) -> list[Result]:
    """What the files betray; ``inputs`` are paths of the confidential files, ``moved`` how many records differ."""
    folder = release if release.is_dir() else release.parent
    inside = (path for path in release.rglob("*") if path.is_symlink() or not path.is_dir())
    found = sorted(inside) if release.is_dir() else [release]
    names = {path.relative_to(folder).as_posix(): path for path in found}
    files = [_File(name, path) for name, path in names.items() if path.is_file() and not path.is_symlink()]
    texts = [text for one in files for text in one.texts()]
    keys = [words for one in files for words in one.needless_keys()]
    times = [words for one in files for words in one.times()]
    words = {path.name for path in inputs} - {path.name for path in found}
    people = {name for name in _names() if len(name) > 3 and name.lower() not in _COMMON_NAMES}
    asked = [
        _seen("paths", "Do texts or metadata hold paths of the machine?", _matches(texts, _PATHS),
              "No absolute path was found.", "They do, in"),
        _seen("input-names", "Do they name the files of the input?", _words(texts, words),
              "None is named.", "They do, in"),
        _seen("user-and-machine", "Do they name the user or the machine?", _words(texts, people),
              "Neither is named.", "They do, in"),
        _seen("times", "Do files hold the time at which they were made?",
              [*times, *_matches(texts, _TIMES, _NO_TIMES)], "No time of day was found.", "They do:"),
        _seen("metadata", "Do files of tables hold metadata that nobody needs to read them?", keys,
              "None was found.", "They do:"),
        _seen("left-over", "Are there files that do not belong to the release?",
              _left_over(folder, names, release.is_dir()), "None was found.", "There are:"),
    ]  # fmt: skip
    if moved is not None and moved >= _FEWEST_MOVED:
        asked.append(
            _seen("moved-number", "Is it said how many records differ from the input?",
                  _matches(texts, _said_to_be_moved(moved), quoted=False), "It is not said.", "It is said, in")
        )  # fmt: skip
    return asked


def _said_to_be_moved(number: int) -> re.Pattern[str]:
    """``37 records were swapped``, ``swapped: 37``, ``"moved_records": 37``; not ``swapped at 1/37``."""
    alone = rf"(?<![\w.,/-])(?:{number}|{re.escape(f'{number:,}')})(?![\d/%]|[.,]\d)"
    return re.compile(
        rf"{alone} (?:[a-z-]+ ){{0,2}}(?:records|rows|cases|units|households|persons)\b[^.\n]{{0,40}}\b{_MOVED}\b"
        rf"|{_MOVED}[\w \"'-]{{0,40}}[:=]\s*{alone}",
        re.I,
    )


def _seen(name: str, asked: str, found: Iterable[str], right: str, wrong: str) -> Result:
    listed = list(dict.fromkeys(found))
    more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
    said = f"{wrong} {'; '.join(listed[:_SHOWN])}{more}."
    return Result.seen(name, asked, bool(listed), right=right, wrong=said, places=len(listed))


def _matches(texts: Iterable[Text], wanted: re.Pattern[str], but: re.Pattern[str] | None = None, quoted: bool = True
             ) -> Iterator[str]:  # fmt: skip
    for one in texts:
        for match in wanted.finditer(one.text):
            if but is None or not but.search(match[0]):
                yield f"{one.where} ({plain(match[0], 80)})" if quoted else one.where


def _words(texts: Sequence[Text], words: Iterable[str]) -> Iterator[str]:
    for word in sorted(words):
        yield from _matches(texts, re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w-])", re.I))


def _names() -> Iterator[str]:
    with contextlib.suppress(KeyError, OSError):  # a user without a name
        yield getpass.getuser()
    yield socket.gethostname()


def _left_over(folder: Path, files: Mapping[str, Path], whole: bool) -> list[str]:
    """Files that the manifest does not list; in a folder without one, files that look as if nobody meant them."""
    if whole and (folder / MANIFEST).is_file():
        try:
            return differences(folder, read_manifest(folder))
        except errors.StirredError as problem:
            return [problem.problem]
    strange = [plain(name) for name in files if any(_LEFT_OVER.search(part) for part in Path(name).parts)]
    links = [f"{name} is a link" for name, path in files.items() if path.is_symlink()]
    return [*(strange if whole else []), *links]


@dataclass(frozen=True)
class _File:
    """One file, and what it says beside its table."""

    name: str
    path: Path

    @property
    def kind(self) -> str:
        """The format of its table; empty for a document."""
        told = format_of(self.path)
        return "" if told is None or self.path.suffix.lower() == ".txt" else told[0]

    def texts(self) -> Iterator[Text]:
        """The text of a document; of a table, what it holds beside cells."""
        if self.kind == "":
            if not zipfile.is_zipfile(self.path):
                yield Text(self.name, _text(self.path))
            yield from (Text(f"{self.name}, member {name}", text) for name, text in _members(self.path))
        elif self.kind == "csv":
            comments = list(takewhile(lambda line: line.startswith("#"), _text(self.path).splitlines()))
            yield from ([Text(f"comments of {self.name}", "\n".join(comments))] if comments else [])
        else:
            yield from (Text(f"metadata of {self.name}", f"{key}: {value}") for key, value in self._metadata())

    def needless_keys(self) -> Iterator[str]:
        """Keys of metadata that no reader needs, and an index that pandas stored."""
        if self.kind not in ("parquet", "arrow"):
            return
        for key, value in self._metadata():
            if key not in _USUAL_KEYS and not key.startswith("org.apache.spark"):
                yield f"the key {plain(key, 60)!r} in {self.name}"
            if key == "pandas" and _stored_index(value):
                yield f"an index of pandas in {self.name}"

    def times(self) -> Iterator[str]:
        """Times in the headers of compressed and labelled files."""
        if self.path.suffix.lower() == ".gz":
            head = self.path.open("rb").read(10)
            if len(head) == 10 and (int.from_bytes(head[4:8], "little") or head[3] & 8):
                yield f"{self.name} holds the time, or the name, of the file that was compressed"
        if self.kind in ("stata", "sas", "spss"):
            meta = _labels(self.path, self.kind)
            for word in ("creation_time", "modification_time"):
                year = getattr(getattr(meta, word, None), "year", 0)
                if year >= _EARLIEST:
                    yield f"{self.name} holds its {word.replace('_', ' ')}"
        if zipfile.is_zipfile(self.path):
            with zipfile.ZipFile(self.path) as archive:
                if any(member.date_time[0] > _EARLIEST for member in archive.infolist()):
                    yield f"{self.name} holds the times of its members"

    def _metadata(self) -> list[tuple[str, str]]:
        """Keys and values of a file's own metadata and of its columns', or its labels."""
        if self.kind in ("stata", "sas", "spss"):
            meta = _labels(self.path, self.kind)
            labels = [("label", getattr(meta, "file_label", None)), ("table", getattr(meta, "table_name", None))]
            labels += [("note", note) for note in getattr(meta, "notes", None) or ()]
            labels += [("label", one) for one in (getattr(meta, "column_names_to_labels", None) or {}).values()]
            return [(key, str(value)) for key, value in labels if value]
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            if self.kind == "parquet":
                schema = pq.read_schema(self.path)
            else:
                with pa.OSFile(str(self.path)) as stream:
                    schema = pa.ipc.open_file(stream).schema
        except (OSError, ValueError, pa.ArrowException):
            return []
        owners = [schema.metadata, *(field.metadata for field in schema)]
        pairs = [pair for metadata in owners for pair in (metadata or {}).items()]
        return [(key.decode("utf-8", "replace"), value.decode("utf-8", "replace")) for key, value in pairs]


def _stored_index(text: str) -> bool:
    try:
        return any(isinstance(one, str) for one in json.loads(text).get("index_columns", ()))
    except (ValueError, AttributeError):
        return False


def _text(path: Path) -> str:
    """The text of a file, of a large one its beginning; what is no text is left out."""
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path) as stream:
                return stream.read(MOST_BYTES).decode("utf-8", "ignore")
        if path.stat().st_size > MOST_BYTES:
            with path.open("rb") as file:
                return file.read(MOST_BYTES).decode("utf-8", "ignore")
        return read_bytes(path).decode("utf-8", "ignore")
    except (OSError, EOFError, Unacceptable):
        return ""


def _members(path: Path) -> Iterator[tuple[str, str]]:
    """The documents inside an archive, such as the properties of a workbook."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.filename.lower().endswith((".xml", ".txt", ".json", ".rels")) and member.file_size < 1 << 20:
                    yield member.filename, archive.read(member).decode("utf-8", "ignore")


def _labels(path: Path, kind: str) -> object | None:
    """What a statistical package stored beside the rows; None if it cannot be read here."""
    try:
        import pyreadstat
    except ImportError:
        return None
    readers = {"stata": pyreadstat.read_dta, "spss": pyreadstat.read_sav}
    sas = pyreadstat.read_xport if path.suffix.lower() == ".xpt" else pyreadstat.read_sas7bdat
    try:
        meta: object = readers.get(kind, sas)(str(path), metadataonly=True)[1]
    except Exception:  # whatever is wrong with a damaged file
        return None
    return meta
