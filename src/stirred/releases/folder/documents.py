"""Writes and reads certificate, specification and data dictionary of a release, and lays out what its texts share.

They repeat the published plan, the guarantee and facts about the released tables. They contain nothing of the input
except what the mechanism releases and the declared invariants: no paths, no file times, no timings, no number of
moved records.

The parts of README.txt, and of the text and JSON of a check, that all mechanisms share are here too.
"""

from __future__ import annotations

import datetime
import json
import platform
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from stirred import _bounded_reading as received
from stirred import errors
from stirred._bounded_reading import plain
from stirred._sentences import sentences_of
from stirred.invariants import Margin
from stirred.noise import RandomSource
from stirred.releases.context import Context, parameters, safes
from stirred.releases.context import words as context_words
from stirred.releases.folder.manifest import readable
from stirred.releases.plans import Plan
from stirred.spec import Finding, Specification
from stirred.spec.exact import bound, without_infinities
from stirred.tables import Table
from stirred.tables.labelled_files import TITLES, Labels
from stirred.tables.writing import USUAL, CsvStyle

CERTIFICATE = "certificate.json"
DICTIONARY = "data_dictionary.json"
SPECIFICATION = "specification.json"
README = "README.txt"
REPORT = "report.html"
"""The page for people, where the release was made with a writer of it (``document_writer.py``)."""
FORM = 1
SYSTEM_RANDOMNESS = "the operating system's generator"
SEEDED_RANDOMNESS = "a seeded source: not for release"
PROGRAMS = ("stirred", "numpy", "numba", "pyarrow", "polars")
"""Programs whose versions a certificate states, beside Python's."""
_NEW = {"id": "the number of the row, from 1 on", "link": "the id of the record a row belongs to"}
"""Roles of columns that a release numbers anew."""
_LISTED_VALUES = 200
_LISTED_CHARACTERS = 20_000
say = sentences_of("shared")


@dataclass(frozen=True)
class ReleasedTable:
    """What the data dictionary says about one table."""

    name: str
    file: str
    format: str
    rows: int
    order: str
    columns: tuple[tuple[str, str], ...]
    """(name, role) in the order of the file."""
    encoded: Table
    """The released columns, for their types and values; new ids are not among them."""
    style: CsvStyle = USUAL
    """How a CSV file is written."""
    labels: Labels | None = None
    """The labels in a second file of the same rows, for Stata, SPSS or SAS."""


@dataclass(frozen=True)
class Certificate:
    """What a certificate states: what was done, under which guarantee, from which draw.

    ``margins`` are the counted invariants; ``more`` are further fields of one mechanism.
    """

    plan: Plan
    specification: Specification
    margins: Sequence[Margin]
    for_release: bool
    nonce: str | None
    """The identity of the draw: random, the same in every release made from it. Earlier versions had none."""
    more: Mapping[str, Any] = field(default_factory=dict)

    def to_fields(self) -> dict[str, Any]:
        """Everything but the day and the versions of the programs."""
        return {
            "stirred_certificate": FORM,
            **({} if self.nonce is None else {"nonce": self.nonce}),
            "plan": self.plan.published(),
            "plan_sha256": self.plan.hash(),
            "specification": json.loads(self.specification.to_json()),
            "conversions": [self.specification.budget.conversion],
            "randomness": SYSTEM_RANDOMNESS if self.for_release else SEEDED_RANDOMNESS,
            "invariants": [margin.to_fields() for margin in self.margins if not margin.linked],
            "whole_records": next((margin.to_fields() for margin in self.margins if margin.linked), None),
            **self.more,
        }

    def text(self, made: Mapping[str, Any] | None = None) -> str:
        """The text of ``certificate.json``; ``made`` states when and by which programs, by default now and these."""
        if made is None:
            made = {
                "released_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "versions": {"python": platform.python_version()} | {name: version(name) for name in PROGRAMS},
            }
        return _json({**self.to_fields(), **made})


def draw_nonce(source: RandomSource) -> str:
    """A new identity for a draw: 32 hexadecimal digits."""
    return source.take(16).hex()


def write_documents(folder: Path, specification: Specification, tables: Sequence[ReleasedTable], readme: str) -> None:
    """Write the specification, the data dictionary and the README of a release."""
    (folder / SPECIFICATION).write_text(specification.to_json(), encoding="utf-8")
    (folder / DICTIONARY).write_text(dictionary_text(tables), encoding="utf-8")
    (folder / README).write_text(readme, encoding="utf-8")


def require_readable(folder: Path, certificate: str) -> None:
    """Raise if a recipient could not read the documents of a release that is about to be published."""
    try:
        read_json(folder, DICTIONARY, "stirred_data_dictionary")
        read_specification(folder)
        received.parse_json(certificate)
        large = len(certificate.encode()) > received.MOST_BYTES
    except (errors.StirredError, ValueError) as problem:
        raise errors.unreadable_release(str(problem)) from None
    if large:
        raise errors.unreadable_release(f"its certificate would have more than {received.MOST_BYTES:,} bytes")


def dictionary_text(tables: Sequence[ReleasedTable]) -> str:
    """The text of ``data_dictionary.json``."""
    return _json(dictionary_fields(tables))


def dictionary_fields(tables: Sequence[ReleasedTable]) -> dict[str, Any]:
    """The data dictionary: each column of each table, with its role, its type and (where few) its values."""
    return {"stirred_data_dictionary": FORM, "tables": [_table_fields(table) for table in tables]}


def as_read(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as they come back from a document that was written with them."""
    return dict(json.loads(_json(fields)))


def read_json(folder: Path, name: str, form: str) -> dict[str, Any]:
    """The fields of a JSON document of a release; ``form`` is the key that holds its format version."""
    with readable(folder, name):
        fields = received.read_json(received.inside(folder, name))
        known = fields[form] == FORM and not isinstance(fields[form], bool)
    if not known:
        raise errors.not_a_release(folder, f"this version does not know the format of its {name}")
    return dict(fields)


def read_specification(folder: Path) -> Specification:
    """The guarantee that a release states."""
    with readable(folder, SPECIFICATION):
        text = received.read_text(received.inside(folder, SPECIFICATION))
    return Specification.from_json(text)


def _table_fields(table: ReleasedTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "file": table.file,
        "format": table.format,
        **({} if table.style == USUAL else {"csv": table.style.to_fields()}),
        **({} if table.labels is None else {"labelled": table.labels.to_fields()}),
        "rows": table.rows,
        "order": table.order,
        "columns": [_column_fields(table, name, role) for name, role in table.columns],
    }


def _column_fields(table: ReleasedTable, name: str, role: str) -> dict[str, Any]:
    if role in _NEW:
        return {"name": name, "role": role, "type": "int64", "note": f"new: {_NEW[role]}"}
    column = table.encoded[name]
    fields: dict[str, Any] = {"name": name, "role": role, "type": str(column.type), "values": column.cardinality}
    if column.cardinality <= _LISTED_VALUES:
        texts = column.texts()
        if sum(len(text or "") for text in texts) <= _LISTED_CHARACTERS:
            fields["listed"] = texts
    if column.is_categorical_in(table.format):
        fields["categories"] = column.stated_categories()
    return fields


def _json(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, indent=2, ensure_ascii=False, default=_plain, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, np.integer):
        return int(value)
    raise TypeError(f"{type(value).__name__} has no place in a document")


WIDTH = 110
CHECK_FORM = 2
"""The format version of the JSON of a check."""


_LONGEST_NAME = 60
_MOST = 20_000
"""Characters of a text that are wrapped into lines; what is longer is somebody's value, not a sentence."""


def fill(text: str, indent: str = "", hanging: str = "  ") -> str:
    """Text wrapped to the page width; further lines of indented text are indented by ``hanging`` more."""
    return textwrap.fill(
        text[:_MOST], WIDTH, initial_indent=indent, subsequent_indent=indent + (hanging if indent else "")
    )


def named_rows(rows: Sequence[tuple[str, str]]) -> str:
    """Lines with a name and a wrapped text, the texts below one another."""
    rows = [(plain(name, _LONGEST_NAME), words) for name, words in rows]
    width = max(len(name) for name, _ in rows) + 2  # textwrap never ends where an indent is wider than the page
    return "\n".join(
        textwrap.fill(
            words[:_MOST],
            WIDTH,
            initial_indent=f"  {name:{width}}",
            subsequent_indent=" " * (width + 2),
            replace_whitespace=False,
        )
        for name, words in rows
    )


def titled(title: str, specification: Specification) -> str:
    """The title of a README, after the mark "not for release" if there is one."""
    marks = "".join(f"*** {mark} ***\n\n" for mark in specification.marks)
    return f"{marks}{title}\n{'=' * len(title)}\n"


def files_section(tables: Sequence[ReleasedTable], more: Sequence[str] = ()) -> str:
    """The section of a README that lists the files."""
    files = [
        say("file", file=table.file, rows=table.rows, order=table.order)
        + (f"; {table.style.words}" if table.style.words else "")
        for table in tables
    ]
    files += [labelled_line(table.labels, table.name, table.file) for table in tables if table.labels is not None]
    return "\n  ".join([say("files"), *files, *more, say("documents")]) + "\n"


def labelled_line(labels: Labels, name: str, file: str) -> str:
    """The line of a README about the second file of a table, which has its labels."""
    return say("labelled", file=labels.file(name), of=file, kind=TITLES[labels.kind])


def with_report(readme: str) -> str:
    """A README that names the report as the first of the files."""
    line = f"  {say('report', file=REPORT)}\n"
    before, heading, after = readme.partition(f"\n{say('files')}\n")
    return f"{before}{heading}{line}{after}" if heading else f"{readme}\n{say('files')}\n{line}"


def guarantee_section(specification: Specification) -> str:
    """The five parts of a guarantee, one after another."""
    budget = specification.output_premetric.kind.budget
    spent = say(
        "budget",
        budget=budget,
        number=bound(specification.budget.number),
        unit=specification.input_premetric.unit,
        conversion=specification.budget.conversion,
    )
    parts = [*specification.blocks()[:-1], ("budget", spent)]
    lines = [fill(f"{number} {name}: {words}", "  ") for number, (name, words) in enumerate(parts, 1)]
    return "\n".join([say("guarantee"), *lines]) + "\n"


def findings_section(specification: Specification) -> str:
    """The section of a README that lists the findings; empty if there are none."""
    if not specification.findings:
        return ""
    lines = [fill(f"- {finding.words}") for finding in specification.findings]
    return "\n".join([say("findings"), *lines]) + "\n"


def origin_section(plan: Plan) -> str:
    """Who releases the data and under which licence, where the plan says so."""
    said = [say("released_by", who=plan.released_by)] if plan.released_by else []
    said += [say("licence", licence=plan.licence)] if plan.licence else []
    return "\n".join(said) + "\n" if said else ""


def context_section(context: Context | None, heading: str | None = None) -> str:
    """What a plan answers about the five safes and contextual integrity; empty if it has no such section.

    Beside each of the five safes stands whether the guarantee speaks about it.
    """
    if context is None:
        return ""
    asked = [(safe.name, context.shown(safe.name), safe.verdict) for safe in safes()]
    others = [(one.title, context.shown(one.name), f"({one.meaning})") for one in parameters()]
    head = [
        context_words("heading") if heading is None else heading,
        fill(context_words("introduction"), "  ", ""),
        fill(say("flow", flow=context.flow_words()), "  "),
    ]
    parts = [
        "",
        f"  {say('five_safes')}",
        _twofold(asked),
        "",
        f"  {say('contextual_integrity')}",
        _twofold(others),
        "",
    ]
    ends = (fill(context_words(name), "  ", "") for name in ("silence", "outside", "source"))
    return "\n".join([*head, *parts, *ends]) + "\n"


def _twofold(rows: Sequence[tuple[str, str, str]]) -> str:
    """Lines with a name and a text, and a second text below the first."""
    return named_rows([line for name, first, second in rows for line in ((f"  {name}", first), ("", second))])


def allowed_findings(allow: Sequence[str]) -> list[Finding]:
    """A finding for every stop that a plan allows, whether or not it applies: that it applies is confidential."""
    return [
        Finding(
            f"allowed-{name.replace(':', '-')}",
            f"The plan allows the stop '{name}', whether or not it applies to the data.",
        )
        for name in allow
    ]


def findings_and_stops(specification: Specification, stops: Sequence[errors.StirredError]) -> list[str]:
    """The last lines of a check: every finding, and every stop that the plan does not allow."""
    lines = [fill(f"FINDING {finding.id}: {finding.words}") for finding in specification.findings]
    return lines + [fill(f"STOP {stop.kind}: {stop}") for stop in stops]


def code_line(code: str | None) -> list[str]:
    """The lines of a check that tell its code; none where it has none."""
    if code is None:
        return []
    return [
        fill(
            f"Code of this check: {code}. stirred release PLAN --out FOLDER --as-checked CODE refuses another plan "
            "or other data than these. Keep the code to yourself: it has a hash of the data, by which guesses about "
            "them can be tested, and stirred writes it into no file."
        )
    ]


def check_json(
    plan: Plan,
    specification: Specification,
    stops: Sequence[errors.StirredError],
    open_stops: Sequence[errors.StirredError],
    fields: Mapping[str, Any],
    code: str | None = None,
) -> str:
    """A check as JSON: the same head for every mechanism, then the mechanism's own fields.

    JSON has no infinity; it is written as the text "infinity".
    """
    head = {
        "stirred_check": CHECK_FORM,
        "confidential": True,
        "mechanism": plan.mechanism,
        "plan_sha256": plan.hash(),
        "code": code,
        "specification": json.loads(specification.to_json()),
        "stops": [{"name": stop.kind, "allowed": stop not in open_stops, "words": str(stop)} for stop in stops],
    }
    return json.dumps(without_infinities({**head, **fields}), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
