"""The section about the context of a release in its explanation: as text, as JSON and as HTML.

It shows what the plan of the release answers about the five safes and contextual integrity, and which of them the
guarantee speaks about. A release whose plan answers nothing has no such section.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred import errors
from stirred._received import is_file
from stirred.spec.html import table
from stirred.verbs import CERTIFICATE

if TYPE_CHECKING:  # what has no context to show does not wait for pydantic
    from stirred.releases.context import Context
    from stirred.releases.folder.release_folder import ReleaseFolder


def of_release(what: str | Path) -> Context | None:
    """The answers in the plan of a release; None where there are none, or where ``what`` is not a release folder."""
    if not is_file(Path(what) / CERTIFICATE):
        return None
    from stirred.releases.folder.release_folder import ReleaseFolder

    return of_opened(ReleaseFolder.open(what))


def of_opened(release: ReleaseFolder) -> Context | None:
    """The answers in the plan of an opened release; None where there are none."""
    from stirred.releases.context import Context

    stated = release.certificate["plan"].get("context")
    try:
        return None if stated is None else Context(**stated)
    except (TypeError, ValueError):
        raise errors.not_a_release(release.path, "the section 'context' of its plan cannot be read") from None


def as_text(context: Context | None) -> str:
    """The section as text for the terminal, below an empty line; empty without answers."""
    if context is None:
        return ""
    from stirred.releases.context import HEADING
    from stirred.releases.folder.documents import context_section

    return f"\n{context_section(context, HEADING.upper())}"


def as_fields(context: Context | None) -> dict[str, Any]:
    """The section as a field ``context``, ready for JSON; no field without answers."""
    if context is None:
        return {}
    from stirred.releases.context import PARAMETERS, SAFES

    answers = context.answers()
    return {
        "context": {
            "flow": list(context.flow),
            "safes": [
                {"name": safe.name, "answer": answers.get(safe.name), "guarantee_speaks": safe.spoken_of}
                for safe in SAFES
            ],
            "parameters": [
                {"name": one.name, "answer": answers.get(one.name), "safes": list(one.safes)} for one in PARAMETERS
            ],
        }
    }


def as_html(context: Context | None) -> str:
    """The section as HTML, to be placed below an explanation; empty without answers."""
    if context is None:
        return ""
    from stirred.releases.context import HEADING, INTRODUCTION, OUTSIDE, PARAMETERS, SAFES, SILENCE, SOURCE

    safes = [((safe.name, context.shown(safe.name), safe.verdict), False) for safe in SAFES]
    parameters = [((one.title, context.shown(one.name), one.meaning), False) for one in PARAMETERS]
    remarks = "".join(f"<p>{escape(words)}</p>" for words in (SILENCE, OUTSIDE, SOURCE))
    return (
        f"<h3>{escape(HEADING)}</h3><p>{escape(INTRODUCTION)}</p>"
        f"<p>{escape(f'Flow of information: {context.flow_words()}')}</p>"
        + table(("of the five safes", "answer", "the guarantee"), safes)
        + table(("of contextual integrity", "answer", "among the five safes"), parameters)
        + remarks
    )
