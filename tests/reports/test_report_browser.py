"""Reports in a real browser, Debian's chromium: a silent console, nothing wider than a phone, accessible, printable.

In print the summary has at most two pages, on the paper of either continent, and what is folded is printed open.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import stirred
from chromium import IN_A_BROWSER, SCREENS, browser, opened  # noqa: F401
from stirred.survey.demo import write_lines

FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_5"
SINGLE = {
    "typed": "rho=1/2",
    "census": "topdown-2020-pl",
    "swap": FIXTURES / "swap",
    "topdown": FIXTURES / "topdown",
    "survey": "a survey",
}
SUBJECTS = {
    **SINGLE,
    "two": [FIXTURES / "swap", FIXTURES / "topdown"],
    "several": ["topdown-2020-pl", "rho=1", "epsilon=1", FIXTURES / "swap", "a survey"],
}

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """``report("swap")``: the page about it, written when it is first asked for."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def survey() -> Path:
        write_lines(folder / "made", persons=20_000)
        stirred.release(folder / "made" / "survey.toml", out=folder / "a survey")
        return folder / "a survey"

    @cache
    def written(name: str) -> Path:
        listed = SUBJECTS[name] if isinstance(SUBJECTS[name], list) else [SUBJECTS[name]]
        return stirred.report([survey() if one == "a survey" else one for one in listed], folder / f"{name}.html")

    return written


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_console_stays_empty_and_nothing_is_fetched(report, browser, name):  # noqa: F811
    with opened(browser, report(name)) as found:
        assert found.messages == [] and found.fetched == []
        assert found.page.locator("main h1").count() == 1


def test_a_message_a_script_that_fails_and_an_address_would_be_seen(tmp_path, browser):  # noqa: F811
    page = tmp_path / "loud.html"
    page.write_text(
        "<!doctype html><img src='https://a.example/b.png'><script>console.log('loud'); nothing()</script>", "utf-8"
    )
    with opened(browser, page) as found:
        assert found.fetched == ["https://a.example/b.png"]
        assert "log: loud" in found.messages and any("nothing is not defined" in one for one in found.messages)


@pytest.mark.parametrize("name", SUBJECTS)
def test_nothing_is_wider_than_the_screen(report, browser, name):  # noqa: F811
    with opened(browser, report(name)) as found:
        found.unfold()
        for width in (320, 375, 768, 1280):
            found.page.set_viewport_size({"width": width, "height": 800})
            assert found.width <= width


@pytest.mark.parametrize(
    ("name", "screen", "scheme"),
    [(name, *seen) for name in SUBJECTS for seen in (("desktop", "light"), ("phone", "dark"))]
    + [("swap", "desktop", "dark"), ("swap", "phone", "light")],
)
def test_it_keeps_the_guidelines_of_accessibility(report, browser, name, screen, scheme):  # noqa: F811
    width, height = SCREENS[screen]
    with opened(browser, report(name), width=width, height=height, scheme=scheme) as found:
        assert found.violations() == []


def test_what_breaks_the_guidelines_would_be_seen(tmp_path, browser):  # noqa: F811
    page = tmp_path / "pale.html"
    page.write_text(
        "<!doctype html><html lang=en><title>pale</title><main><h1>Pale</h1><p style='color:#ccc'>words", "utf-8"
    )
    with opened(browser, page) as found:
        (only,) = found.violations()
        assert only.startswith("color-contrast:")


@pytest.mark.parametrize("paper", ["A4", "Letter"])
@pytest.mark.parametrize("name", SUBJECTS)
def test_the_summary_has_at_most_two_printed_pages(report, browser, name, paper):  # noqa: F811
    with opened(browser, report(name)) as found:
        pages = found.printed(paper)
        found.page.emulate_media(media="print")
        titles = [words for words in found.page.locator("h2").all_inner_texts() if words]
    following = titles[1] if name in SINGLE else "Side by side"
    starts = [number for number, words in enumerate(pages, 1) if words.startswith(following)]
    assert "In short" in pages[0] and starts and starts[0] == (2 if name in SINGLE else starts[0]) <= 3
    assert name in SINGLE or "Can these be ranked?" in " ".join(pages[: starts[0] - 1])


@pytest.mark.parametrize("name", SUBJECTS)
def test_in_print_nothing_is_cut_off_and_folded_parts_are_open(report, browser, name):  # noqa: F811
    with opened(browser, report(name), width=673) as found:  # A4 without its margins, at 96 pixels for an inch
        found.page.emulate_media(media="print")
        assert found.width <= 673
        wider = "[...document.querySelectorAll('main *')].filter(one => one.getBoundingClientRect().right > 674).length"
        assert found.page.evaluate(wider) == 0
        inside = found.page.evaluate(
            "[...document.querySelectorAll('details')].map(one => one.lastElementChild.textContent)"
        )
        printed = re.sub(r"\W", "", " ".join(found.printed("A4")))
        for words in inside:
            assert re.sub(r"\W", "", words)[-20:] in printed
