"""Build the documentation site: ``python scripts/site/build.py site``; ``make docs`` does it with its own set-up.

The pages of docs/ are copied, the contents and the reference are written beside them, and Sphinx does the rest. Every
warning is an error, so a link that leads nowhere stops the build.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

CONTENTS = {
    "Tutorials": [
        "tutorial-minister", "tutorial-protect", "tutorial-analyse", "tutorial-research", "tutorial-survey", "tutorial",
    ],
    "Understand a guarantee": [
        "five-blocks", "specifications", "semantics", "reports", "figures", "limits", "calibrate", "deployments",
        "lint", "glossary",
    ],
    "Make a release": [
        "plans", "topdown", "spines", "relations", "surveys", "weights", "imputation", "context", "ledger",
    ],
    "Use a release": ["swapped-data", "regression", "estimates", "noisy-measurements"],
    "Judge a program": ["laboratory", "audits", "studies"],
    "The mathematics": [
        "guarantee", "invariants", "accounting", "survey-theory", "survey-coverage", "reproduced", "errata",
    ],
    "Coming from elsewhere": ["coming-from-sdcmicro", "coming-from-opendp", "coming-from-the-bureau"],
    "Reference": [
        "api/index", "command-line", "json", "exit-codes", "bounds", "security", "architecture", "results",
    ],
}  # fmt: skip
"""The pages by heading, in the order in which the site lists them."""

ROOMS = {
    "": "The front door",
    "swap": "Swapping",
    "topdown": "TopDown",
    "survey": "Surveys",
    "spec": "Specifications: the five blocks",
    "semantics": "What a guarantee means",
    "limits": "What anyone can at most learn",
    "loss": "Privacy accounting",
    "noise": "Exact noise",
    "invariants": "What kept counts reveal",
    "estimates": "Estimates",
    "tables": "Tables",
    "errors": "Errors",
    "lab.study": "The laboratory: studies",
    "lab.sampling": "The laboratory: sampling designs",
}
"""The modules whose public names are the reference."""


REACHABLE = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Contents of the site">',
    '<aside class="toc-drawer': '<aside aria-label="Contents of this page" class="toc-drawer',
    "<pre><span></span>* ": '<pre tabindex="0" style="white-space: pre-wrap"><span></span>* ',
    "<pre>": '<pre tabindex="0">',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}
"""What the theme leaves out for those who do not see the page or use the keyboard only: levels of headings, names of
parts, and that what scrolls by itself can be reached. Printed sentences (lines after an asterisk) are wrapped."""


def main(target: Path) -> int:
    """Build into a folder, which is replaced; returns the exit code of Sphinx."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        collect(source)
        shutil.rmtree(target, ignore_errors=True)
        words = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(Path(folder) / "cache"), "-c", str(HERE)]
        ended = subprocess.run([sys.executable, "-m", "sphinx", *words, str(source), str(target)], check=False)
    make_reachable(target)
    return ended.returncode


def make_reachable(target: Path) -> None:
    """Write into the built pages what REACHABLE says."""
    for page in target.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for found, written in REACHABLE.items():
            text = text.replace(found, written)
        page.write_text(text, encoding="utf-8")


def collect(source: Path) -> None:
    """Write all that Sphinx reads: the pages, the contents, the reference."""
    shutil.copytree(ROOT / "docs", source)
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    (source / "results.md").write_text(results, encoding="utf-8")
    for page in source.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("](../benchmarks/RESULTS.md)", "](results.md)"), encoding="utf-8")
    with (source / "index.md").open("a", encoding="utf-8") as index:
        for heading, pages in CONTENTS.items():
            index.write(f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n" + "\n".join(pages) + "\n```\n")
    write_reference(source / "api")


def public_names(package: ModuleType) -> set[str]:
    """What a package offers: what it lists, or, as in errors, what its own modules define."""
    if hasattr(package, "__all__"):
        return set(package.__all__)
    inside = {name: str(getattr(one, "__module__", "")) for name, one in vars(package).items()}
    return {name for name, module in inside.items() if module.startswith(package.__name__) and name[0] != "_"}


def write_reference(folder: Path) -> None:
    """Write one page for each module of the reference, and one that lists them."""
    folder.mkdir()
    title = "Reference of the Python package"
    pages = []
    for room, heading in ROOMS.items():
        module = f"stirred.{room}" if room else "stirred"
        pages.append(module)
        offered = importlib.import_module(module)
        lines = [heading, "=" * len(heading), "", f".. automodule:: {module}", ""]
        for name in sorted(public_names(offered) - {*ROOMS}):
            lines += described(f"{module}.{name}", getattr(offered, name), first=not room)
        (folder / f"{module}.rst").write_text("\n".join(lines), encoding="utf-8")
    lines = [title, "=" * len(title), "", "What each module offers, from its docstrings.", "", ".. toctree::", ""]
    (folder / "index.rst").write_text("\n".join([*lines, *(f"   {page}" for page in pages), ""]), encoding="utf-8")


def described(name: str, value: object, first: bool) -> list[str]:
    """The lines for one name; what the front door offers is indexed at the room that it comes from."""
    if isinstance(value, ModuleType) or not callable(value):
        return [f"``{name.rpartition('.')[2]}``: {'a module' if isinstance(value, ModuleType) else 'a constant'}.", ""]
    kind = "function"
    if isinstance(value, type):
        kind = "exception" if issubclass(value, BaseException) else "class"
    options = ["   :members:"] * (kind == "class") + ["   :no-index:"] * first
    return [f".. auto{kind}:: {name}", *options, ""]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "site").resolve()))
