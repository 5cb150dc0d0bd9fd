"""Opens pages in Debian's chromium through playwright, for tests marked ``browser``.

Keep in mind: playwright runs an event loop while it is open, so that it is closed after each module of tests; and the
checker of accessibility (axe-core) comes with a package of its own, no line of which is in this repository.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TOOLS = ("playwright", "axe_playwright_python", "pypdf")
WITHOUT = [name for name in TOOLS if importlib.util.find_spec(name) is None]
IN_A_BROWSER = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.skipif(bool(WITHOUT), reason=f"not installed: {', '.join(WITHOUT)}; make test-slow installs them"),
]
"""The marks of a test that opens pages."""

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
"""Levels A and AA of the Web Content Accessibility Guidelines and good practice, as axe-core names them."""

SCREENS = {"phone": (375, 800), "desktop": (1280, 900)}
SWITCHES = [
    "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update",
]  # fmt: skip


@dataclass
class Opened:
    """A page in the browser; what it wrote to the console, and what it asked for from elsewhere."""

    page: Any
    messages: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Of the page and of all that does not scroll by itself, in pixels."""
        return self.page.evaluate("document.documentElement.scrollWidth")

    def unfold(self) -> None:
        """Open all folded parts."""
        self.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")

    def violations(self) -> list[str]:
        """What breaks the guidelines, folded parts opened: the rule, and where."""
        from axe_playwright_python.sync_playwright import Axe

        self.unfold()
        chosen = {
            "runOnly": {"type": "tag", "values": list(RULES)},
            "preload": False,
        }  # it would fetch the styles again
        found = Axe().run(self.page, options=chosen).response
        assert {"color-contrast", "html-has-lang"} <= {one["id"] for one in (*found["passes"], *found["violations"])}
        return [f"{one['id']}: {part['html'][:200]}" for one in found["violations"] for part in one["nodes"]]

    def printed(self, paper: str) -> list[str]:
        """The words on each printed page."""
        from io import BytesIO

        from pypdf import PdfReader

        pages = PdfReader(BytesIO(self.page.pdf(format=paper, prefer_css_page_size=False))).pages
        return [" ".join(normalize("NFKC", page.extract_text()).split()) for page in pages]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield started
        started.close()


@contextmanager
def opened(
    browser: Any, address: Path | str, *, width: int = 1280, height: int = 900, scheme: str = "light"
) -> Iterator[Opened]:
    """A page in a window of its own, which is closed in the end. The browser has no network."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    try:
        context.set_default_timeout(180_000)  # milliseconds, for a busy machine
        context.set_offline(True)
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.messages.append(f"{message.type}: {message.text}"))
        found.page.on("pageerror", lambda error: found.messages.append(f"error: {error}"))
        found.page.on("requestfailed", lambda request: found.messages.append(f"not found: {request.url}"))
        found.page.on("request", lambda request: found.fetched.append(request.url))
        found.page.goto(address.as_uri() if isinstance(address, Path) else address, wait_until="load")
        found.fetched = [url for url in found.fetched if not re.match(r"file:|data:|blob:", url)]
        yield found
    finally:
        context.close()
