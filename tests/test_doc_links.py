"""Links of the documentation lead somewhere, and the built site fetches nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
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


ELSEWHERE = r"(?:https?:)?//[^\"')\s]+"
FETCHING = (
    rf"<(?:script|img|iframe|source|video|audio|embed)[^>]* src=\"({ELSEWHERE})",
    rf"<link[^>]* rel=\"(?:stylesheet|preload|preconnect|icon)[^>]* href=\"({ELSEWHERE})",
    rf"<link[^>]* href=\"({ELSEWHERE})\"[^>]* rel=\"(?:stylesheet|preload|preconnect|icon)",
    rf"url\([\"']?({ELSEWHERE})",
    rf"@import +[\"']({ELSEWHERE})",
    rf"(?:fetch|importScripts|import)\([\"']({ELSEWHERE})",
)


def fetched(text: str) -> list[str]:
    """Addresses from which a browser would fetch a part of a page or a style sheet; links to click do not count."""
    return [address for pattern in FETCHING for address in re.findall(pattern, text)]


def test_what_a_browser_would_fetch_is_found():
    text = '<script src="https://a.b/c.js"></script><link rel="stylesheet" href="//a.b/c.css"><a href="https://d.e">'
    assert fetched(text) == ["https://a.b/c.js", "//a.b/c.css"]
    assert fetched("@font-face { src: url(https://a.b/c.woff2) }") == ["https://a.b/c.woff2"]


@pytest.mark.slow
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")),
    reason="the tool that builds the site is not installed; make docs installs it",
)
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "site" / "build.py"), str(tmp_path / "site")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for page in (ROOT / "docs").glob("*.md"):
        assert (tmp_path / "site" / f"{page.stem}.html").exists()
    assert "SwapPlan" in (tmp_path / "site" / "api" / "stirred.html").read_text(encoding="utf-8")
    assert (tmp_path / "site" / "searchindex.js").exists()
    for path in (tmp_path / "site").rglob("*"):
        if path.suffix in (".html", ".css", ".js"):
            assert fetched(path.read_text(encoding="utf-8")) == [], path.name


def test_the_page_of_errata_lists_every_erratum():
    written = module("errata_page", "errata_page.py")
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    assert page == written.page(), "run make reproduced"
    assert written.lists().count("\n| ") > 100
