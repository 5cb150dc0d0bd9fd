"""Write the report of one or several guarantees as one HTML page that needs no other file, no network and no script.

First the summary, and for several guarantees whether they can be ranked and both tables of the comparison. Then for
each: what was released and how; the five blocks as questions; what is kept exactly; what the guarantee means, with
pictures; what it does not mean; what analysts need; five safes; the registry's record. Last glossary, sources and the
versions of the programs.

Keep in mind: every number comes from the explanation, the specification or the public documents of the release. The
page holds no seed and nothing confidential, and every text of others is escaped (``page_elements.py``).
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path

from stirred._bounded_reading import plain
from stirred.releases.folder.atomic import new_file
from stirred.reports.limits_section import HEADING as LIMITS
from stirred.reports.limits_section import of_explanation
from stirred.reports.page_elements import (
    Figures,
    Glossary,
    Markup,
    element,
    folded,
    joined,
    listing,
    paragraphs,
    section,
    shown,
    table,
)
from stirred.reports.subjects import Subject, draft_record
from stirred.semantics.pictures.shapes import AnyPicture
from stirred.semantics.sentences.summary import everyday
from stirred.semantics.sentences.templates import SECTIONS, Sources, Statement
from stirred.semantics.side_by_side import FOLLOWS, SideBySide, five_questions, side_by_side
from stirred.spec import lint
from stirred.spec.invariant import Invariant
from stirred.spec.specification import Held, held, taken_as_known

FINDINGS = 3
"""Findings that are shown; the others are folded."""
LISTED = 50
"""Rows of a table about a release that are shown; a stranger's folder may have any number."""
PICTURES = {
    "tests": ("level-and-power",),
    "beliefs": ("beliefs", "belief-in-the-true-record"),
    "delta": ("epsilon-and-delta",),
    "concerns": ("concerns",),
}
"""By section of an explanation the names of the pictures that go with it."""
TABLES = {
    "tests": "How likely a test is to notice the change",
    "delta": "Epsilon at probabilities of exceptions",
    "concerns": "How likely a test is to notice, concern by concern",
}
"""By section of an explanation what its tables show."""
KEPT, TAKEN = "What is published exactly as it is", "What is taken as known and not protected"
BOTH = "What is published exactly, and what is taken as known"
"""Titles of the part about what is held fixed, by what of it is published."""
MEANS = ("noticed", "compares", "protects", "tests", "beliefs", "delta", "groups", "concerns")


@dataclass
class Page:
    """What all parts of one page share: numbered sources and figures, and the words to explain."""

    sources: Sources
    figures: Figures
    glossary: Glossary

    def said(self, statements: Iterable[Statement]) -> list[Markup]:
        """Sentences with links on technical words and the numbers of their sources."""
        return [Markup(self.glossary.mark(one.words) + self.cited(one.source)) for one in statements]

    def cited(self, source: str) -> Markup:
        """The number of a source, as a link to it."""
        number = str(self.sources.number(source))
        link = element("a", f"[{number}]", href=f"#source-{number}", aria_label=f"source {number}")
        return Markup(f" {element('sup', link)}") if source else Markup("")


def summary(page: Page, one: Subject) -> Markup:
    """The sentences for people in a hurry."""
    marks = [element("p", mark, class_="mark") for mark in one.specification.marks]
    return joined([*marks, *(element("p", words) for words in page.said(one.explanation.section("summary")))])


def parts(page: Page, one: Subject, level: int, prefix: str) -> Iterator[tuple[str, str, Markup]]:
    """Id, title and content of each part after the summary; parts without content are left out."""
    told = (
        ("released", "What was released and how", released),
        ("blocks", "The guarantee in five questions", blocks),
        ("kept", _kept_title(one), kept),
        ("means", "What the guarantee means", means),
        ("not", "What it does not mean", does_not_mean),
        ("analysts", "For analysts", analysts),
        ("safes", "Five safes and contextual integrity", five_safes),
        ("registry", "Record for the public registry", registry),
    )
    for id, title, make in told:
        page.glossary.new_part()
        content = make(page, one, level + 1)
        if content:
            yield f"{prefix}{id}", title, section(level, title, content, id=f"{prefix}{id}")


# -- what was released ---------------------------------------------------------------------------------------


def released(page: Page, one: Subject, level: int) -> Markup:
    """Where the guarantee comes from, and what was made under it."""
    stated, plan = one.certificate, one.published_plan
    said: list[str] = []
    if one.release is not None and one.mechanism is not None:
        said.append(f"A release of {_text(plan, 'dataset') or 'data without a name'}, by the {one.mechanism.title}.")
        said += [f"Released by {by}." if (by := _text(plan, "released_by")) else ""]
        said += [f"Released on {day}." if (day := _text(stated, "released_on")) else ""]
        said += [f"Licence of the data: {words}" if (words := _text(plan, "licence")) else ""]
        said += [f"Randomness came from {words}." if (words := _text(stated, "randomness")) else ""]
        said.append(f"How the budget follows: {words}." if (words := one.specification.budget.conversion) else "")
    elif one.plan is not None and one.mechanism is not None:
        said.append(f"Nothing was released: this is a plan for the {one.mechanism.title}.")
        said += [f"It is about {words}." if (words := _text(plan, "dataset")) else ""]
        said.append(f"How the budget follows: {words}." if (words := one.specification.budget.conversion) else "")
        said.append("No data were read for this report.")
    elif one.deployment is not None:
        known = one.deployment
        real = known.kind == "deployment"
        said.append(f"{known.title}. " + ("" if real else "Nothing was released this way: this is a what-if."))
        said += [f"Made under this guarantee: {'; '.join(known.products)}." if known.products else ""]
        said += [f"Not covered by it: {'; '.join(known.not_covered)}." if known.not_covered else ""]
    else:
        said.append("Nothing is known of a release: this report is about a guarantee as it was stated.")
    more: list[Markup] = []
    if one.release is not None:
        rows = [
            (_text(entry, "file"), _number(entry, "rows"), _columns(entry), _text(entry, "order"))
            for entry in list(one.release.dictionary.values())[:LISTED]
        ]
        more.append(table("The released tables", ("file", "rows", "columns", "order of rows"), rows))
        more.append(
            element("p", "The folder was taken as it is. Whether it is what it says, this command tells: ",
                    element("code", f"stirred verify {_folder(one)}"), class_="quiet")
        )  # fmt: skip
    if one.deployment is not None:
        more.append(folded("Notes", listing(one.deployment.notes)))
        more.append(folded("Sources of this deployment", listing(one.deployment.sources)))
        errata = [f"{e.id}: printed: {e.printed}; here: {e.correct}. {e.explanation}" for e in one.deployment.errata]
        more.append(folded("Errata", listing(errata)))
    return joined([paragraphs(page.glossary.mark(text) for text in said if text), *(part for part in more if part)])


# -- the guarantee -------------------------------------------------------------------------------------------


def blocks(page: Page, one: Subject, level: int) -> Markup:
    """The five blocks as questions, with the formal line beside each."""
    asked, formal = five_questions(one.explanation.setting), one.specification.blocks()
    rows = [
        (question, page.glossary.mark(answer), Markup(f"{element('b', name)}: {page.glossary.mark(words)}"))
        for (question, answer), (name, words) in zip(asked, formal, strict=True)
    ]
    near = element("p", page.glossary.mark(_sentence(one.specification.nearest_words())))
    return joined([table("Five questions about a guarantee", ("question", "answer", "formally"), rows), near])


def kept(page: Page, one: Subject, level: int) -> Markup:
    """What is published exactly, how many counts it has, and what they give away; then what is assumed known."""
    multiverse, both = one.specification.multiverse, held(one.specification)
    stated = [entry for entry in one.certificate.get("invariants", ()) if isinstance(entry, dict)]
    rows: list[tuple[str, str]] = []
    matched: list[object] = []
    for invariant in both.published[:LISTED]:
        found = _entry(invariant, stated)
        matched += [id(found)] if found else []
        alone = not invariant.by and not invariant.name
        rows.append((everyday(invariant, one.specification.domain.nested), "1" if alone else _cells(found)))
    rows += [(_text(entry, "words"), _cells(entry)) for entry in stated[:LISTED] if id(entry) not in matched]
    if multiverse.universes:
        return paragraphs(["Which listed group of datasets the data belong to."])
    assumed = _assumed(page, one, both)
    if not rows:
        return assumed or paragraphs(["Nothing."])
    gives = (
        "Whoever reads the release knows these counts as they are. Where a count is 1, it shows one record as far as "
        "its columns go; where it is 0, it rules such records out. The guarantee says nothing about what these "
        "invariants reveal, alone or together with other sources, and no budget limits it."
    )
    shown = table("Kept exactly", ("what", "number of counts"), rows)
    return joined([shown, element("p", page.glossary.mark(gives)), *([assumed] if assumed else [])])


def _assumed(page: Page, one: Subject, both: Held) -> Markup:
    """What limits the comparison only, and whether it is known not to be released; nothing where there is nothing."""
    if not both.assumed:
        return Markup("")
    head = "Assumed known, or held fixed in the comparison, and so not protected:"
    said = (
        "Datasets that differ in it are not compared, so the guarantee says nothing about what the release tells of "
        "it; nor does it say that any of it is published."
    )
    if not both.published and taken_as_known(one.specification):
        said = (
            "None of this is released, and no count is published without noise. Datasets that differ in it are not "
            "compared, so the guarantee says nothing about what the release tells of it."
        )
    words = listing([everyday(invariant, one.specification.domain.nested) for invariant in both.assumed[:LISTED]])
    return joined([element("p", head), words, element("p", page.glossary.mark(said))])


def means(page: Page, one: Subject, level: int) -> Markup:
    """The sections of the explanation with their tables and pictures, then the limits of learning."""
    explained = one.explanation
    pictures = {picture.name: picture for picture in explained.pictures()}
    instead = {absent.name: absent.words for absent in explained.not_drawn()}
    made: list[Markup] = []
    for name in MEANS:
        content = [_sentences(page, explained.section(name))]
        content += [table(TABLES[name], rows[0], rows[1:]) for rows in explained.tables(name)]
        for wanted in PICTURES.get(name, ()):
            content += [_figure(page, pictures.get(wanted), one)]
            content += [element("p", instead[wanted], class_="quiet")] if wanted in instead else []
        made.append(section(level, SECTIONS[name], *content))
    if one.unseen_rows:
        many = "The release has too many rows for a page to look at single records in it; stirred explain does."
        made.append(element("p", many, class_="quiet"))
    limits = of_explanation(explained)
    rows = limits.rows() if limits.limits else []
    tabled = table("Powers are at most these, and beliefs stay in these ranges", rows[0], rows[1:]) if rows else ""
    made.append(section(level, LIMITS, listing(page.said(limits.statements)), tabled))
    return joined(part for part in made if part)


def does_not_mean(page: Page, one: Subject, level: int) -> Markup:
    """What is not protected, findings, and how not to read a guarantee."""
    explained = one.explanation
    own = {finding.id: finding for finding in (*one.specification.findings, *lint(one.specification))}
    found = [
        Markup(f"{element('b', finding.words)} {page.glossary.mark(finding.why)}{page.cited(finding.source)}")
        for finding in list(own.values())[:LISTED]
    ]
    rest = found[FINDINGS:]
    more = folded(f"{len(rest)} more {'finding' if len(rest) == 1 else 'findings'}", listing(rest))
    return joined(
        [
            section(level, SECTIONS["exposed"], _sentences(page, explained.section("exposed"))),
            section(level, "Findings about the guarantee", listing(found[:FINDINGS]), more),
            section(level, SECTIONS["careful"], _sentences(page, explained.section("careful"))),
        ]
    )


# -- who uses it ---------------------------------------------------------------------------------------------

_SORTS = {
    "exact": "Exact, as in the confidential data",
    "corrected": "To be corrected before use",
    "unusable": "Not to be had",
    "accuracy": "Expected accuracy",
    "put back": "Records that could be put back",
}


def analysts(page: Page, one: Subject, level: int) -> Markup:
    """Which tables are exact, corrected and unusable, how accurate numbers are, and what to type."""
    notes = one.notes
    made: list[Markup] = []
    for sort, title in _SORTS.items():
        content = [
            joined([element("p", page.glossary.mark(_sentence(note.words))), *_note_table(note.rows)])
            for note in notes
            if note.sort == sort
        ]
        made.append(section(level, title, *content))
    typed = [note.words.replace("FOLDER", _folder(one)) for note in notes if note.sort == "command"]
    if one.release is not None:
        typed = [f"stirred verify {_folder(one)}", *typed, f"stirred explain {_folder(one)} --full"]
        where = "Type these in the folder of the release:" if one.folder == "." else ""
        copied = element("pre", element("code", "\n".join(typed)), tabindex="0")
        made.append(section(level, "Commands", paragraphs([where]), copied))
    return joined(part for part in made if part)


def five_safes(page: Page, one: Subject, level: int) -> Markup:
    """What the plan answers about the context of the release; empty where it has no answers."""
    if one.context is None:
        return Markup("")
    from stirred.releases.context import parameters, safes, words

    given = one.context
    asked = [(safe.name, given.shown(safe.name), safe.verdict) for safe in safes()]
    others = [(other.title, given.shown(other.name), other.meaning) for other in parameters()]
    return joined(
        [
            paragraphs([page.glossary.mark(words("introduction")), f"Flow of information: {given.flow_words()}"]),
            table("The five safes", ("of the five safes", "answer", "the guarantee"), asked),
            table("Contextual integrity", ("of contextual integrity", "answer", "among the five safes"), others),
            paragraphs([words("silence"), words("outside"), words("source")]),
        ]
    )


def registry(page: Page, one: Subject, level: int) -> Markup:
    """The record of the public registry, folded."""
    text = draft_record(one)
    if not text:
        return Markup("")
    lines = Markup("\n".join(element("span", line) for line in text.splitlines()[:1_000]))
    said = "As stirred registry export writes it. Where nobody has said something, it says so; complete it before use."
    return joined([element("p", said, class_="quiet"), folded("Show the record", element("pre", lines, tabindex="0"))])


# -- helpers -------------------------------------------------------------------------------------------------


def _sentences(page: Page, said: Sequence[Statement]) -> Markup:
    """Sentences about this guarantee, and folded those that hold for every one of its kind."""
    from stirred.semantics.explaining import about_this

    own = [one for one in said if about_this(one)]
    others = [one for one in said if not about_this(one)]
    shown, rest = page.said(own), page.said(others)
    fold = folded("What holds for every guarantee of this kind", listing(rest))
    return joined(part for part in (listing(shown), fold) if part)


def _figure(page: Page, picture: AnyPicture | None, one: Subject) -> Markup:
    return Markup("") if picture is None else page.figures.figure(picture, f"Guarantee: {one.name}")


def _note_table(rows: Sequence[Sequence[str]]) -> list[Markup]:
    return [table("Noise by query", rows[0], rows[1:])] if rows else []


def _kept_title(one: Subject) -> str:
    both = held(one.specification)
    return (BOTH if both.assumed else KEPT) if both.published or not both.assumed else TAKEN


def _entry(invariant: Invariant, stated: Sequence[dict[str, object]]) -> dict[str, object] | None:
    """The certificate's entry of the same columns, if there is just one."""
    found = [
        entry for entry in stated if isinstance(columns := entry.get("columns"), list)
        and all(isinstance(name, str) for name in columns) and {*columns} == {*invariant.by}
    ]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _cells(entry: dict[str, object] | None) -> str:
    cells = entry.get("cells") if entry is not None else None
    return f"{cells:,}" if isinstance(cells, int) else "not stated"


def _columns(entry: dict[str, object]) -> str:
    columns = entry.get("columns")
    names = (
        [plain(one.get("name", ""), 60) for one in columns if isinstance(one, dict)]
        if isinstance(columns, list)
        else []
    )
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more} more" if more > 0 else "")


def _folder(one: Subject) -> str:
    """The folder, as one types it."""
    return shlex.quote(one.folder)


def _text(fields: object, name: str) -> str:
    value = fields.get(name) if hasattr(fields, "get") else None
    return plain(value, 500) if isinstance(value, str) else ""


def _number(fields: dict[str, object], name: str) -> str:
    value = fields.get(name)
    return f"{value:,}" if isinstance(value, int) else ""


def _sentence(words: str) -> str:
    words = words[:1].upper() + words[1:]
    return words if not words or words.endswith((".", "?", "!")) else f"{words}."


PROGRAMS = ("stirred", "numpy", "pyarrow", "polars", "numba", "altair", "vl-convert-python")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a browser may load for the page: nothing but its own styles."""


def write_report(subjects: Sequence[Subject], out: Path) -> Path:
    """Write the report of these subjects to a file that must not exist."""
    text = report_text(subjects)
    with new_file(out) as file:
        file.write(text.encode())
    return out


def report_text(subjects: Sequence[Subject], drawing: bool = True) -> str:
    """The report of these subjects as HTML; without ``drawing``, pictures are there in words only."""
    page = Page(Sources(), Figures(drawing), Glossary())
    single = len(subjects) == 1
    subjects = [subjects[0].alone()] if single else _told_apart(subjects)
    title = f"What {subjects[0].name} means" if single else f"{len(subjects)} guarantees side by side"
    first, listed, body = _first(page, subjects), [], []
    for number, one in enumerate(subjects, 1):
        prefix = "" if single else f"guarantee-{number}-"
        made = list(parts(page, one, 2 if single else 3, prefix))
        if single:
            listed += [(id, words) for id, words, _ in made]
            body += [content for _, _, content in made]
        else:
            listed.append((f"guarantee-{number}", one.name))
            inside = joined(content for _, _, content in made)
            body.append(section(2, one.name, inside, id=f"guarantee-{number}", class_="subject"))
    made_of = section(2, "Bill of materials", materials(subjects), id="materials")
    glossary = section(2, "Glossary", page.glossary.listed(), id="glossary")
    numbered = [element("li", source, id=f"source-{number}") for number, source in page.sources.listed()]
    sources = section(2, "Sources", element("ol", joined(numbered)) if numbered else "", id="sources")
    listed += [("glossary", "Glossary"), ("sources", "Sources"), ("materials", "Bill of materials")]
    contents = element(
        "nav", listing(element("a", words, href=f"#{id}") for id, words in listed), aria_label="Contents"
    )
    main = element("main", element("h1", title), first, contents, joined(body), glossary, sources, made_of)
    return document(title, main)


def _first(page: Page, subjects: Sequence[Subject]) -> Markup:
    """The first pages: the summary, and for several guarantees whether they can be ranked and both tables."""
    if len(subjects) == 1:
        return section(2, "In short", summary(page, subjects[0]), class_="short first")
    each = [section(3, one.name, summary(page, one)) for one in subjects]
    found = side_by_side(*(replace(one.specification, name=one.specification.name or one.name) for one in subjects))
    size = "several many" if len(subjects) > 3 else "several"  # printed smaller, so that two pages are enough
    short = section(2, "In short", *each, class_=f"short {size}")
    return joined([short, *_compared(page, found, [one.name for one in subjects], f"first {size}")])


def _compared(page: Page, found: SideBySide, names: Sequence[str], class_: str) -> tuple[Markup, Markup]:
    """Whether the guarantees can be ranked, and the comparison itself."""
    page.glossary.new_part()
    (_, *asked_of), *asked = found.tables(names)[0]
    (_, *told_of), *follows = found.tables(names)[1]
    picture = found.picture()
    drawn = page.figures.figure(picture, f"Guarantees: {', '.join(names)}") if picture is not None else Markup("")
    ranked = section(
        2, "Can these be ranked?", joined(element("p", one, class_="verdict") for one in found.rankings),
        paragraphs(page.glossary.mark(note) for note in found.notes), id="ranked", class_=class_,
    )  # fmt: skip
    stricter = ", and which guarantee is stricter on that row alone" if len(names) == 2 else ""
    questions = table(f"Five questions{stricter}", ("question", *asked_of), asked)
    answers = table(FOLLOWS, ("what follows", *told_of), follows)
    return ranked, section(2, "Side by side", questions, answers, drawn, id="side")


def materials(subjects: Sequence[Subject], public: bool = True) -> Markup:
    """Versions of the programs of this page and of each release, and hashes of plans. No seed."""
    single = len(subjects) == 1
    rows = [
        (
            "this report" if public else "this appendix",
            ", ".join(f"{name} {number}" for name, number in _versions().items()),
        )
    ]
    for one in subjects:
        stated = one.certificate.get("versions")
        if isinstance(stated, Mapping):
            made = ", ".join(f"{name} {number}" for name, number in stated.items() if isinstance(number, str))
            rows.append((one.name if single else f"release {one.name}", made))
        hashed = one.plan.hash() if one.plan is not None else one.certificate.get("plan_sha256")
        if isinstance(hashed, str):
            rows.append((f"plan of {one.name}", f"SHA-256 {hashed}"))
    said = "Everything here follows from public documents. The page holds no seed and no number from confidential data."
    listed = table("Programs and plans", ("of what", "versions"), rows)
    return joined([listed, element("p", said, class_="quiet")]) if public else listed


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PROGRAMS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _told_apart(subjects: Sequence[Subject]) -> list[Subject]:
    """Subjects of equal names numbered, so that nobody takes one for the other."""
    names = [one.name for one in subjects]
    return [
        replace(one, name=f"{one.name} ({names[: at + 1].count(one.name)})") if names.count(one.name) > 1 else one
        for at, one in enumerate(subjects)
    ]


def document(title: str, main: Markup) -> str:
    """A whole page that loads nothing."""
    style = (files("stirred.reports") / "report.css").read_text(encoding="utf-8")
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{shown(title)}</title>",
        f"<style>\n{style}</style>",
    ]
    return f'<!doctype html>\n<html lang="en"><head>\n{chr(10).join(head)}\n</head>\n<body>{main}</body></html>\n'
