"""``stirred docs``: the documentation that comes with the package.

The pages of ``docs/`` are package data (``src/stirred/docs`` is a link to that folder), so that a page named in a
message can be read wherever the package is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stirred.cli.completing import page_names
from stirred.cli.printing import print_json

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def docs(
    name: Annotated[
        str | None, typer.Argument(help="The page to print. Default: all pages are listed.", autocompletion=page_names)
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """List the pages of the documentation, or print one as Markdown."""
    import difflib

    from stirred import errors

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
    from importlib.resources import files

    folder = (files("stirred") / "docs").iterdir()
    return {page.name.rpartition(".")[0]: page for page in folder if page.name.endswith((".md", ".json"))}


def _title(text: str) -> str:
    """The title of a page, in Markdown or as a JSON schema states it."""
    import json

    return str(json.loads(text)["title"]) if text.startswith("{") else text.partition("\n")[0].lstrip("# ")
