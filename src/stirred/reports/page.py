"""Write the report of one or several guarantees as one HTML page that needs no other file, no network and no script.

First the summary, and for several guarantees whether they can be ranked and both tables of the comparison; then the
parts of :mod:`stirred.reports.report_parts` for each; then glossary, sources and the versions of the programs. Keep in
mind: the page holds no seed and nothing confidential, and every text of others is escaped (``elements.py``).
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred import errors
from stirred.reports import report_parts
from stirred.reports.elements import Markup, element, joined, listing, paragraphs, section, shown, table
from stirred.reports.glossary import Glossary
from stirred.reports.inline_figures import Figures
from stirred.reports.subjects import Subject, subject
from stirred.semantics import Explanation
from stirred.semantics.sentences.templates import Sources
from stirred.semantics.side_by_side import FOLLOWS, SideBySide, side_by_side
from stirred.spec import Specification

if TYPE_CHECKING:
    from stirred.releases.context import Context
    from stirred.releases.plans import Plan

PROGRAMS = ("stirred", "numpy", "pyarrow", "polars", "numba", "altair", "vl-convert-python")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""What a browser may load for the page: nothing but its own styles."""


def report(
    what: Specification | Explanation | Plan | str | Path | Sequence[Specification | Explanation | Plan | str | Path],
    out: str | Path,
    *,
    context: Context | None = None,
    **options: Any,
) -> Path:
    """Write what guarantees mean as one HTML page that needs no other file.

    Parameters
    ----------
    what
        An explanation, a specification, a plan, or anything that :func:`stirred.read` reads; or a list of several,
        which are then also compared.
    out
        The file to write; it must not exist.
    context
        Answers about the five safes, as a plan has them; by default those of the release, where ``what`` is its folder.
    options
        For a plan whose guarantee depends on the data, what is known of these: ``largest_stratum`` for a swap.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile, stirred
    >>> stirred.report("rho=1/2", tempfile.mkdtemp() + "/meaning.html").suffix
    '.html'
    """
    out = Path(out)
    if out.exists():
        raise errors.output_exists(out)
    several = [what] if isinstance(what, str) or not isinstance(what, Sequence) else list(what)
    if not several:
        raise errors.report_of_nothing()
    return write_report([subject(one, context=context, options=options) for one in several], out)


def write_report(subjects: Sequence[Subject], out: Path) -> Path:
    """Write the report of these subjects to a file that must not exist."""
    text = report_text(subjects)
    try:
        with out.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise errors.output_exists(out) from None
    except OSError as problem:
        raise errors.cannot_write(out, problem.strerror or "an input/output error") from None
    return out


def report_text(subjects: Sequence[Subject], drawing: bool = True) -> str:
    """The report of these subjects as HTML; without ``drawing``, pictures are there in words only."""
    page = report_parts.Page(Sources(), Figures(drawing), Glossary())
    single = len(subjects) == 1
    subjects = [subjects[0].alone()] if single else _told_apart(subjects)
    title = f"What {subjects[0].name} means" if single else f"{len(subjects)} guarantees side by side"
    first, listed, body = _first(page, subjects), [], []
    for number, one in enumerate(subjects, 1):
        prefix = "" if single else f"guarantee-{number}-"
        made = list(report_parts.parts(page, one, 2 if single else 3, prefix))
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


def _first(page: report_parts.Page, subjects: Sequence[Subject]) -> Markup:
    """The first pages: the summary, and for several guarantees whether they can be ranked and both tables."""
    if len(subjects) == 1:
        return section(2, "In short", report_parts.summary(page, subjects[0]), class_="short first")
    each = [section(3, one.name, report_parts.summary(page, one)) for one in subjects]
    found = side_by_side(*(replace(one.specification, name=one.specification.name or one.name) for one in subjects))
    size = "several many" if len(subjects) > 3 else "several"  # printed smaller, so that two pages are enough
    short = section(2, "In short", *each, class_=f"short {size}")
    return joined([short, *_compared(page, found, [one.name for one in subjects], f"first {size}")])


def _compared(page: report_parts.Page, found: SideBySide, names: Sequence[str], class_: str) -> tuple[Markup, Markup]:
    """Whether the guarantees can be ranked, and the comparison itself."""
    page.glossary.new_part()
    two = len(names) == 2
    asked = [(one.question, *one.answers, *([one.alone] if two else [])) for one in found.questions]
    follows = [(one.question, *one.answers) for one in found.consequences]
    picture = found.picture()
    drawn = page.figures.figure(picture, f"Guarantees: {', '.join(names)}") if picture is not None else Markup("")
    ranked = section(
        2, "Can these be ranked?", joined(element("p", one, class_="verdict") for one in found.rankings),
        paragraphs(page.glossary.mark(note) for note in found.notes), id="ranked", class_=class_,
    )  # fmt: skip
    questions = table("Five questions, and which guarantee is stricter on that row alone" if two else "Five questions",
                      ("question", *names, *(["on this row alone"] if two else [])), asked)  # fmt: skip
    answers = table(FOLLOWS, ("what follows", *names), follows)
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
