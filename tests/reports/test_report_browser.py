"""Reports in a real browser, Debian's chromium: no message in its console, nothing wider than a phone, printable.

Folded parts are opened by styles in print, and pages are counted in the PDF file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import stirred

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_5"
SUBJECTS = {
    "typed": "rho=1/2",
    "swap": FIXTURES / "swap",
    "several": ["topdown-2020-pl", "rho=1", FIXTURES / "topdown"],
}
MEASURE = """
<!doctype html><title>?</title><iframe src="{page}" style="width:{width}px;height:800px;border:0"></iframe>
<script>
addEventListener("load", () => {{
  const inside = document.querySelector("iframe").contentDocument.documentElement;
  document.title = "width " + inside.scrollWidth;
}});
</script>
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {name: stirred.report(what, folder / f"{name}.html") for name, what in SUBJECTS.items()}


def browse(*arguments):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_console_stays_empty(pages, name):
    ended = browse("--enable-logging=stderr", "--v=0", "--dump-dom", pages[name].as_uri())
    assert "CONSOLE" not in ended.stderr and "</main>" in ended.stdout


def test_a_message_of_the_console_would_be_seen(tmp_path):
    page = tmp_path / "loud.html"
    page.write_text("<!doctype html><script>console.log('loud')</script>", encoding="utf-8")
    assert "CONSOLE" in browse("--enable-logging=stderr", "--v=0", "--dump-dom", page.as_uri()).stderr


@pytest.mark.parametrize("width", [320, 375, 1200])
@pytest.mark.parametrize("name", SUBJECTS)
def test_nothing_is_wider_than_the_screen(pages, name, width, tmp_path):
    frame = tmp_path / "frame.html"
    frame.write_text(MEASURE.format(page=pages[name].as_uri(), width=width), encoding="utf-8")
    found = re.search(r"<title>width (\d+)</title>", browse("--dump-dom", frame.as_uri()).stdout)
    assert found is not None and int(found[1]) <= width


@pytest.mark.parametrize("name", SUBJECTS)
def test_it_can_be_printed(pages, name, tmp_path):
    target = tmp_path / "report.pdf"
    browse("--no-pdf-header-footer", f"--print-to-pdf={target}", pages[name].as_uri())
    printed = target.read_bytes()
    assert printed.startswith(b"%PDF-") and len(re.findall(rb"/Type\s*/Page\b", printed)) > 5
