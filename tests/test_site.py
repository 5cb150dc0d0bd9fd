"""The documentation site: it builds without a warning and fetches nothing; in chromium it is silent and accessible."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from chromium import IN_A_BROWSER, SCREENS, browser, opened  # noqa: F401

ROOT = Path(__file__).parents[1]
NEEDS_SPHINX = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")),
    reason="the tool that builds the site is not installed; make docs and make test-slow install it",
)

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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as ``make docs`` builds it."""
    target = tmp_path_factory.mktemp("built") / "site"
    words = [sys.executable, str(ROOT / "scripts" / "site" / "build.py"), str(target)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return target


@pytest.mark.slow
@NEEDS_SPHINX
def test_the_site_builds_without_a_warning_and_fetches_nothing(site):
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / f"{page.stem}.html").exists()
    assert "SwapPlan" in (site / "api" / "stirred.html").read_text(encoding="utf-8")
    assert (site / "searchindex.js").exists()
    for path in site.rglob("*"):
        if path.suffix in (".html", ".css", ".js"):
            assert fetched(path.read_text(encoding="utf-8")) == [], path.name


@pytest.mark.slow
@NEEDS_SPHINX
def test_every_link_of_the_site_leads_to_a_page_and_a_part_of_it(site):
    parts = {}
    for page in site.rglob("*.html"):
        parts[page.resolve()] = set(re.findall(r'\sid="([^"]+)"', page.read_text(encoding="utf-8")))
    wrong, seen = set(), 0
    for page in parts:
        for target in re.findall(r'<a [^>]*href="([^"]+)"', page.read_text(encoding="utf-8")):
            path, _, part = target.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            there = (page.parent / path).resolve() if path else page
            seen += 1
            if not there.exists() or (part and there in parts and part not in parts[there]):
                wrong.add((page.name, target))
    assert seen > 1000 and wrong == set()


def in_a_browser(test):
    for mark in (*IN_A_BROWSER, NEEDS_SPHINX):
        test = mark(test)
    return test


@in_a_browser
def test_every_page_of_the_site_is_silent_and_no_wider_than_a_phone(site, browser):  # noqa: F811
    problems = []
    pages = sorted(site.rglob("*.html"))
    for page in pages:
        with opened(browser, page, width=375) as found:
            if found.messages or found.fetched or found.width > 375:
                problems.append((page.name, found.messages, found.fetched, found.width))
    assert len(pages) > 50 and problems == []


@in_a_browser
def test_the_sentences_of_the_first_page_are_read_without_scrolling_sideways(site, browser):  # noqa: F811
    with opened(browser, site / "index.html", width=375) as found:
        sentences = found.page.locator("pre", has_text="* Not covered")
        assert sentences.count() == 1
        assert sentences.evaluate("one => one.scrollWidth - one.clientWidth") == 0


@in_a_browser
def test_the_site_finds_words_without_a_network(site, browser):  # noqa: F811
    with opened(browser, f"{(site / 'search.html').as_uri()}?q=stratum") as found:
        found.page.locator("#search-results li a").first.wait_for(timeout=30_000)
        assert found.messages == [] and found.fetched == []


@in_a_browser
@pytest.mark.parametrize(("screen", "scheme"), [("desktop", "light"), ("phone", "dark")])
@pytest.mark.parametrize("page", ["index", "tutorial-minister", "tutorial-analyse", "tutorial-research"])
def test_pages_of_the_site_keep_the_guidelines_of_accessibility(site, browser, page, screen, scheme):  # noqa: F811
    width, height = SCREENS[screen]
    with opened(browser, site / f"{page}.html", width=width, height=height, scheme=scheme) as found:
        assert found.violations() == []
