"""Whether the report in a release folder is the page that goes with the release, for ``verify``.

The page is made again from the other files of the folder, without drawings, and compared letter for letter. Drawings
are left out, since their coordinates differ in the last digits between machines; they may hold nothing but shapes and
labels. Keep in mind: the folder may come from somebody who wants to deceive, so what is left out is taken apart first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stirred.reports.page import report_text
from stirred.reports.subjects import of_folder

if TYPE_CHECKING:
    from stirred.releases.mechanism import Mechanism
    from stirred.releases.release_folder import ReleaseFolder

_DRAWING = re.compile(r'(<svg [^<>]*?")( viewBox="[0-9. -]*")?(><title [^<>]*>[^<]*</title><desc [^<>]*>[^<]*</desc>)'
                      r"(.*?)</svg>", re.DOTALL)  # fmt: skip
_VERSIONS = re.compile(r'(<th scope="row">this report</th><td>)([^<>]*)(</td>)')
_LISTED = re.compile(r"[a-z-]+ [0-9][0-9a-z.+]{0,30}(, [a-z-]+ [0-9][0-9a-z.+]{0,30}){0,20}")
_TAG = re.compile(r"<(/?)([A-Za-z]+)((?:\s+[a-zA-Z][a-zA-Z0-9:-]*=\"[^\"<>]*\")*)\s*/?>")
_ATTRIBUTE = re.compile(r"([a-zA-Z][a-zA-Z0-9:-]*)=\"([^\"]*)\"")
_SHAPES = frozenset({"g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clipPath"})


def same_page(mechanism: Mechanism, release: ReleaseFolder, found: str) -> bool:
    """Whether a page is the one about this release, but for its drawings and the versions of the programs."""
    return _reduced(found) == _reduced(report_text([of_folder(mechanism, release)], drawing=False))


def _reduced(page: str) -> str | None:
    """A page without what differs between machines; None if that is not what it should be."""
    drawings = [match[4] for match in _DRAWING.finditer(page)]
    stated = _VERSIONS.findall(page)
    if len(stated) != 1 or not _LISTED.fullmatch(stated[0][1]) or not all(map(_harmless, drawings)):
        return None
    return _VERSIONS.sub(r"\1\3", _DRAWING.sub(r"\1\3</svg>", page))


def _harmless(drawing: str) -> bool:
    """Whether a drawing has shapes and labels only: nothing that loads, runs or links."""
    tags = list(_TAG.finditer(drawing))
    if "<" in _TAG.sub("", drawing) or any(match[2] not in _SHAPES for match in tags):
        return False
    for match in tags:
        for name, value in _ATTRIBUTE.findall(match[3]):
            refers = "url(" in value and not re.fullmatch(r"url\(#[A-Za-z0-9_-]+\)", value)
            if name.lower().startswith("on") or "href" in name.lower() or refers or ":" in name or name == "style":
                return False
    return True
