"""Parts of README.txt, and of the text and JSON of a check, that all mechanisms share."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from stirred import errors
from stirred._received import plain
from stirred.releases.context import HEADING, INTRODUCTION, OUTSIDE, PARAMETERS, SAFES, SILENCE, SOURCE, Context
from stirred.releases.documents import REPORT, ReleasedTable
from stirred.releases.plans import Plan
from stirred.spec import Finding, Specification
from stirred.spec.exact import bound, without_infinities
from stirred.tables.labelled_files import TITLES

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
        f"  {table.file}: {table.rows:,} rows, {table.order}" + (f"; {table.style.words}" if table.style.words else "")
        for table in tables
    ]
    files += [
        f"  {table.labels.file(table.name)}: the rows of {table.file} in a {TITLES[table.labels.kind]} file with labels"
        for table in tables
        if table.labels is not None
    ]
    documents = "  data_dictionary.json, specification.json, certificate.json, manifest.json"
    return "Files\n" + "\n".join([*files, *(f"  {line}" for line in more), documents]) + "\n"


def with_report(readme: str) -> str:
    """A README that names the report as the first of the files."""
    line = f"  {REPORT}: what was released and what the guarantee means, as a page for a browser; start here"
    before, heading, after = readme.partition("\nFiles\n")
    return f"{before}{heading}{line}\n{after}" if heading else f"{readme}\nFiles\n{line}\n"


def guarantee_section(specification: Specification) -> str:
    """The five parts of a guarantee, one after another."""
    budget = specification.output_premetric.kind.budget
    spent = (
        f"{budget} = {bound(specification.budget.number)} per {specification.input_premetric.unit} of distance. "
        f"{specification.budget.conversion}."
    )
    parts = [*specification.blocks()[:-1], ("budget", spent)]
    lines = [fill(f"{number} {name}: {words}", "  ") for number, (name, words) in enumerate(parts, 1)]
    return "The guarantee, in its five parts\n" + "\n".join(lines) + "\n"


def findings_section(specification: Specification) -> str:
    """The section of a README that lists the findings; empty if there are none."""
    if not specification.findings:
        return ""
    lines = [fill(f"- {finding.words}") for finding in specification.findings]
    return "Findings about the guarantee\n" + "\n".join(lines) + "\n"


def origin_section(plan: Plan) -> str:
    """Who releases the data and under which licence, where the plan says so."""
    said = [f"Released by {plan.released_by}."] if plan.released_by else []
    said += [f"Licence of the data: {plan.licence}"] if plan.licence else []
    return "\n".join(said) + "\n" if said else ""


def context_section(context: Context | None, heading: str = HEADING) -> str:
    """What a plan answers about the five safes and contextual integrity; empty if it has no such section.

    Beside each of the five safes stands whether the guarantee speaks about it.
    """
    if context is None:
        return ""
    safes = [(safe.name, context.shown(safe.name), safe.verdict) for safe in SAFES]
    parameters = [(one.title, context.shown(one.name), f"({one.meaning})") for one in PARAMETERS]
    return (
        f"{heading}\n{fill(INTRODUCTION, '  ', '')}\n{fill(f'Flow of information: {context.flow_words()}', '  ')}\n\n"
        f"  The five safes\n{_twofold(safes)}\n\n"
        "  Contextual integrity, and in brackets what each parameter is among the five safes (Table 8.1)\n"
        f"{_twofold(parameters)}\n\n{fill(SILENCE, '  ', '')}\n{fill(OUTSIDE, '  ', '')}\n{fill(SOURCE, '  ', '')}\n"
    )


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
