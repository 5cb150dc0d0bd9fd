"""Verifies a release folder: what all mechanisms have in common.

The folder may come from somebody who wants to deceive. What must be in it is therefore derived from the plan and from
the released tables, never from what the folder says about itself, and compared: a release contains exactly what its
plan and its mechanism say, and anything else is named and does not hold.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stirred import errors
from stirred._bounded_reading import inside, is_day, is_of_content, plain, read_text
from stirred._progress import stage
from stirred.errors.releases import why_unread
from stirred.releases.folder import documents
from stirred.releases.folder.documents import Certificate, ReleasedTable, with_report
from stirred.releases.folder.foreign_texts import UNSEEN, understates
from stirred.releases.folder.manifest import NAME as MANIFEST
from stirred.releases.folder.manifest import differences, is_plain, read_manifest
from stirred.releases.folder.release_folder import ReleaseFolder
from stirred.releases.plans import hash_of
from stirred.releases.verdicts import Fault, Verdict, contradicted, not_checked, not_compared
from stirred.tables.columns import plain_type

NOT_FOR_RELEASE_WORDS = (
    "this is for release (it is not: it was drawn from a source of randomness that can be repeated, as tests do, so "
    "whoever repeats it learns the confidential data)"
)
_SHOWN = 5
_PART = 1 << 20
_ABSENT = object()


@dataclass(frozen=True)
class Expected:
    """What a release of a plan contains, derived from the plan and the released tables."""

    certificate: Certificate
    tables: Sequence[ReleasedTable]
    readme: str
    files: Sequence[str] = ()
    """Files beside the documents and the tables."""


def verify_with(
    release: ReleaseFolder,
    recount: Callable[[ReleaseFolder], list[Verdict]],
    reported: Callable[[ReleaseFolder], list[Verdict]] | None = None,
) -> list[Verdict]:
    """Check manifest and documents, then run ``recount`` and, if nothing is contradicted, ``reported``, which compares
    the report. Contradictions are verdicts that fail, not exceptions, and so is what could not be checked."""
    verdicts: list[Verdict] = []
    try:
        if not release.for_release:
            verdicts.append(Fault(False, NOT_FOR_RELEASE_WORDS))
        found = differences(release.path, read_manifest(release.path))
        verdicts.append(
            Fault(False, "; ".join(found)) if found else Verdict(True, "the files are those of the manifest")
        )
        if found:
            return verdicts
        verdicts += _documents_agree(release)
        verdicts += recount(release)
        if contradicted(verdicts):
            return verdicts
        if reported is not None:
            return verdicts + reported(release)
        if documents.REPORT in {entry.path for entry in read_manifest(release.path)}:
            verdicts.append(not_compared(documents.REPORT, "stirred.verify compares it, and this function does not"))
        return verdicts
    except Exception as problem:
        return [*verdicts, failed("the rest of the folder", problem)]


def failed(what: str, problem: Exception) -> Verdict:
    """What an error while reading a folder says about it: a contradiction, or that it could not be checked here."""
    ours = isinstance(problem, errors.StirredError)
    if says_nothing(problem):
        return not_checked(what, plain(problem, 2000) if ours else why_unread(problem))
    reason = plain(problem, 2000) if ours else "its documents contradict its tables, or each other"
    return Verdict(False, f"the tables can be read and recounted: {reason}")


def says_nothing(problem: Exception) -> bool:
    """Whether an error while reading a folder says nothing about it: the machine, a limit, perhaps a fault of ours."""
    if isinstance(problem, errors.StirredError):
        return problem.kind in ("not-read", "too-many-rows-stated")
    return not is_of_content(problem)


def _documents_agree(release: ReleaseFolder) -> list[Verdict]:
    plan = release.certificate["plan"]
    digest = hash_of(plan)
    stated = documents.read_specification(release.path)
    same = json.loads(stated.to_json()) == release.certificate["specification"]
    return [
        Verdict(digest == release.certificate["plan_sha256"], "the plan has the hash in the certificate"),
        Verdict(same, "the specification is that of the certificate"),
    ]


def contents_verdicts(release: ReleaseFolder, expected: Expected) -> list[Verdict]:
    """Whether a release contains what its plan says, and nothing else: files, documents, fields, texts."""
    stated = {entry.path for entry in read_manifest(release.path)}
    files = {
        *(documents.CERTIFICATE, documents.DICTIONARY, documents.SPECIFICATION, documents.README),
        *(table.file for table in expected.tables),
        *expected.files,
    }
    files |= stated & {documents.REPORT}  # versions before 0.6 wrote none, and it can be left out
    strange = sorted(stated - files)
    words = "the folder has the files that the plan asks for, and no others"
    if strange:
        shown = ", ".join(plain(name) for name in strange[:_SHOWN])
        words += f" (not part of the release: {shown}{', ...' if len(strange) > _SHOWN else ''})"
    return [
        Verdict(stated == files, words),
        Verdict(_dictionary_agrees(release, expected.tables), "the data dictionary describes the tables as they are"),
        *_certificate_verdicts(release, expected.certificate),
        *_text_verdicts(release, expected),
    ]


def _text_verdicts(release: ReleaseFolder, expected: Expected) -> list[Verdict]:
    """Whether the documents are, letter for letter, the texts that go with the plan and the guarantee."""
    if not release.by_this_version:
        said = plain(release.certificate["versions"].get("stirred", "unknown"), 40)
        found = read_text(inside(release.path, documents.README))
        plainly = not UNSEEN.search(found) and not understates(found, [expected.readme])
        return [
            Verdict(plainly, "README.txt states no smaller budget than the guarantee has, in letters that can be seen"),
            not_compared("README.txt and the sentences of the other documents", f"version {said} wrote them"),
        ]
    made = {name: release.certificate[name] for name in ("released_on", "versions")}
    certificate = replace(expected.certificate, nonce=release.certificate.get("nonce"))
    reported = documents.REPORT in {entry.path for entry in read_manifest(release.path)}
    texts = {
        documents.README: with_report(expected.readme) if reported else expected.readme,
        documents.DICTIONARY: documents.dictionary_text(expected.tables),
        documents.SPECIFICATION: certificate.specification.to_json(),
        documents.CERTIFICATE: certificate.text(made),
    }
    other = [name for name, text in texts.items() if read_text(inside(release.path, name)) != text]
    other += [] if is_plain(release.path) else [MANIFEST]
    words = "every document is the text that goes with the plan and the guarantee"
    return [Verdict(not other, words + (f" (not so: {', '.join(other)})" if other else ""))]


def _dictionary_agrees(release: ReleaseFolder, tables: Sequence[ReleasedTable]) -> bool:
    stated = documents.read_json(release.path, documents.DICTIONARY, "stirred_data_dictionary")
    rebuilt = documents.as_read(documents.dictionary_fields(tables))
    if not release.by_this_version:  # other versions use other words
        for table in (*stated["tables"], *rebuilt["tables"]):
            table.pop("order", None)
            for column in table["columns"]:
                column.pop("note", None)
        for before, now in zip(stated["tables"], rebuilt["tables"], strict=True):
            for one, other in zip(before["columns"], now["columns"], strict=True):
                if "listed" not in other:  # earlier versions listed long values too
                    one.pop("listed", None)
    return stated == rebuilt


def _certificate_verdicts(release: ReleaseFolder, expected: Certificate) -> list[Verdict]:
    """Every field of the certificate follows from the plan and the tables, or is a day, a version or a nonce."""
    stated = dict(release.certificate)
    versions, day, nonce = stated.pop("versions"), stated.pop("released_on", None), stated.pop("nonce", None)
    rebuilt = documents.as_read(expected.to_fields())
    rebuilt.pop("nonce", None)
    formed = set(versions) == {"python", *documents.PROGRAMS} and all(is_version(text) for text in versions.values())
    formed = formed and is_day(day)
    if nonce is not None or release.by_this_version:  # earlier versions had none
        formed = formed and isinstance(nonce, str) and bool(re.fullmatch("[0-9a-f]{32}", nonce))
    if not release.by_this_version:
        names = type(expected.plan).earlier_names
        stated["plan"] = {names.get(name, name): value for name, value in stated["plan"].items()}
        stated, rebuilt = _without_words(stated), _without_words(rebuilt)
    differing = sorted({*stated, *rebuilt} - {name for name in stated if stated[name] == rebuilt.get(name, _ABSENT)})
    words = "every field of the certificate follows from the plan and the tables"
    if differing:
        words += f" (not so: {', '.join(plain(name, 60) for name in differing[:_SHOWN])})"
    return [
        Verdict(not differing, words),
        Verdict(formed, "the certificate states the day, the versions of the programs and the nonce of the draw"),
    ]


def _without_words(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields of a certificate without sentences, which other versions word otherwise.

    The specification is compared by its meaning elsewhere (:meth:`ReleaseFolder.states`).
    """
    apart = ("specification", "conversions", "plan_sha256")
    kept = {name: value for name, value in fields.items() if name not in apart}
    kept["conversions"] = fields["conversions"] == [fields["specification"]["budget"]["conversion"]]
    kept["invariants"] = [{**one, "words": ""} for one in fields["invariants"]]
    if fields["whole_records"] is not None:
        kept["whole_records"] = {**fields["whole_records"], "words": ""}
    return kept


def is_version(text: object) -> bool:
    """Whether a text is the number of a version, and nothing else."""
    return isinstance(text, str) and bool(re.fullmatch(r"[0-9]+(\.[0-9]+){0,3}([a-z.+-]{1,5}[0-9]{0,4})?", text))


def shape_verdicts(release: ReleaseFolder, name: str, rows: int) -> list[Verdict]:
    """Whether a table has the columns and the number of rows that the data dictionary states, and no text beside."""
    entry, opened = release.dictionary[name], release.open_table(name)
    same = list(opened.kinds) == [column["name"] for column in entry["columns"]]
    if entry["format"] != "csv":  # text files have no types of their own
        same = same and [str(plain_type(kind)) for kind in opened.kinds.values()] == [
            column["type"] for column in entry["columns"]
        ]
        same = same and [pa.types.is_dictionary(kind) for kind in opened.kinds.values()] == [
            "categories" in column for column in entry["columns"]
        ]
    verdicts = [
        Verdict(same, f"{name} has the columns of the data dictionary"),
        Verdict(rows == entry["rows"], f"{name} has {entry['rows']:,} rows"),
    ]
    if entry["format"] != "csv":
        alone = not _has_notes(inside(release.path, entry["file"]), entry["format"])
        verdicts.append(Verdict(alone, f"{entry['file']} carries no notes beside its columns"))
    return verdicts


def stored_verdict(release: ReleaseFolder, files: Sequence[str], write: Callable[[Path], None]) -> Verdict:
    """Whether files are, byte for byte, what these programs write for the values that were read from them.

    ``write`` writes all of them again into an empty folder. The same values can be stored in many ways (quotation
    marks, line ends, unused entries of a dictionary, notes), and which way was chosen could say what is not in the
    plan. Other versions of the programs store them otherwise, so theirs are not compared.
    """
    if not release.by_these_programs:
        return not_compared("how the tables store their values", "other versions of the programs wrote them")
    stage("writing the tables again, to compare how they are stored")
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch))
        other = [file for file in files if not same_bytes(Path(scratch) / file, inside(release.path, file))]
    words = "every table stores its values as a release does, and nothing else"
    return Verdict(not other, words + (f" (not so: {', '.join(other[:_SHOWN])})" if other else ""))


def same_bytes(one: Path, other: Path) -> bool:
    """Whether two files have the same contents."""
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as first, other.open("rb") as second:
        return all(part == second.read(_PART) for part in iter(lambda: first.read(_PART), b""))


def _has_notes(path: Path, form: str) -> bool:
    """Whether a Parquet or Arrow file carries texts beside its columns; a release writes none."""
    if form == "parquet":
        stated = pq.read_metadata(path)
        schema, known = stated.schema.to_arrow_schema(), set(stated.metadata or {})
    else:
        with pa.OSFile(str(path)) as stream:
            schema, known = pa.ipc.open_file(stream).schema, set()
    known.update(schema.metadata or {}, *(field.metadata or {} for field in schema))
    return bool(known - {b"ARROW:schema", b"PARQUET:field_id"})
