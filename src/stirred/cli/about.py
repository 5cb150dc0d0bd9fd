"""``stirred docs`` and ``stirred --version``: the documentation that comes with the package, and versions.

The pages of ``docs/`` are package data (``src/stirred/docs`` is a link to that folder), so that a page named in a
message can be read wherever the package is installed. Versions of libraries are read from what is installed, without
importing the libraries.
"""

from __future__ import annotations

import difflib
import json
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any

import typer

import stirred
from stirred import errors
from stirred.cli.options import AsJson, page_names
from stirred.cli.printing import print_json

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def docs(
    name: Annotated[
        str | None, typer.Argument(help="The page to print. Default: all pages are listed.", autocompletion=page_names)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the pages of the documentation, or print one as Markdown."""
    known = pages()
    if name is None:
        titles = {page: _title(known[page].read_text(encoding="utf-8")) for page in sorted(known)}
        if as_json:
            print_json({"stirred_docs": 1, "pages": [{"page": page, "title": title} for page, title in titles.items()]})
            return
        for page, title in titles.items():
            print(f"{page:24}{title}")
        return
    wanted = name.removeprefix("docs/").removesuffix(".md").removesuffix(".json")
    if wanted not in known:
        raise errors.unknown_page(name, difflib.get_close_matches(wanted, known))
    text = known[wanted].read_text(encoding="utf-8")
    if as_json:
        print_json({"stirred_docs": 1, "page": wanted, "title": _title(text), "text": text})
    else:
        print(text, end="")


def pages() -> dict[str, Traversable]:
    """The files of the pages, by name."""
    folder = (files("stirred") / "docs").iterdir()
    return {page.name.rpartition(".")[0]: page for page in folder if page.name.endswith((".md", ".json"))}


def _title(text: str) -> str:
    """The title of a page, in Markdown or as a JSON schema states it."""
    return str(json.loads(text)["title"]) if text.startswith("{") else text.partition("\n")[0].lstrip("# ")


FORM = 1


def bill_of_materials() -> dict[str, Any]:
    """Versions by name: of Python, of each required library, and of each form of file that is written and read."""
    from stirred.releases import plans
    from stirred.releases.folder import documents, manifest
    from stirred.releases.ledger import rows
    from stirred.semantics import explaining, targets
    from stirred.spec import specification

    return {
        "stirred_version": FORM,
        "stirred": stirred.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "libraries": {name: _version(name) for name in _required()},
        "formats": {
            "plan": plans.FORM,
            "specification": specification.FORMAT_VERSION,
            "certificate": documents.FORM,
            "manifest": manifest.FORM,
            "ledger": rows.FORM,
            "check": documents.CHECK_FORM,
            "explanation": explaining.FORMAT_VERSION,
            "calibration": targets.FORM,
            "study": plans.STUDY_FORM,
        },
    }


def bill_text(bill: dict[str, Any]) -> str:
    """The bill of materials as text; its first line is the version alone."""
    installed = "\n".join(f"  {name:20}{number or 'not installed'}" for name, number in bill["libraries"].items())
    formats = "\n".join(f"  {name:20}{number}" for name, number in bill["formats"].items())
    return (
        f"{bill['stirred']}\nPython {bill['python']} on {bill['platform']}\nlibraries:\n{installed}\n"
        f"versions of the forms in which files and JSON are written:\n{formats}"
    )


def _required() -> list[str]:
    """The names of the libraries that the installed package requires, without its extras."""
    try:
        lines = requires("stirred") or ()
    except PackageNotFoundError:  # run from its source, without being installed
        return []
    return [re.split(r"[^\w.-]", line)[0] for line in lines if "extra ==" not in line]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
