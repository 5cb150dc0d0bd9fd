"""Links of the documentation lead somewhere; the built site has tests of its own (``test_site.py``)."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING"))]


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.S))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, made as the sites that show Markdown make them."""
    found: dict[str, int] = {}
    names = set()
    for heading in re.findall(r"^#+ +(.*?) *$", re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        again = found.get(slug, 0)
        found[slug] = again + 1
        names.add(f"{slug}-{again}" if again else slug)
    return names


def broken(page: Path) -> list[str]:
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    assert broken(page) == []


def test_no_paragraph_stands_on_two_pages():
    found: dict[str, str] = {}
    for page in PAGES:
        for paragraph in re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S).split("\n\n"):
            words = " ".join(paragraph.split())
            if len(words) > 100 and not words.startswith("|"):
                assert found.setdefault(words, page.name) == page.name, words


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / "other.md").write_text("# Other\n\n## A part, with signs: `x`\n")
    page = tmp_path / "page.md"
    page.write_text("# P\n[a](other.md#a-part-with-signs-x) [b](gone.md) [c](other.md#none) [d](#p) [e](#q) `[f](g)`\n")
    assert broken(page) == ["gone.md", "other.md#none", "#q"]


def module(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_contents_of_the_site_list_every_page_once():
    listed = [page for pages in module("build_site", "site/build.py").CONTENTS.values() for page in pages]
    assert len(listed) == len({*listed})
    written = {"api/index", "results"}  # by the program that builds the site
    assert {*listed} - written == {page.stem for page in PAGES if page.parent.name == "docs"} - {"index"}


def test_the_page_of_errata_lists_every_erratum():
    written = module("errata_page", "errata_page.py")
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    assert page == written.page(), "run make reproduced"
    assert written.lists().count("\n| ") > 100
