"""Whether the report in a release folder is the page that goes with the release, for ``verify``.

The page is made again from the other files of the folder and compared letter for letter. In drawings every label is
compared and every shape, with coordinates to half a pixel, since their last digits differ between machines. Keep in
mind: the folder may come from somebody who wants to deceive. Drawings by other versions of the programs that draw may
have other shapes, so only their labels are compared, and the verdict says so.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stirred.releases.verdicts import Verdict, not_compared
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
_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?")
_NEAR = 0.5
DRAWS = ("altair ", "vl-convert-python ")
"""Programs that decide how a picture is drawn."""
_SHAPES = frozenset({"g", "path", "rect", "line", "circle", "text", "tspan", "defs", "clipPath"})


_TEXT = "report.html says what the other documents say"
_ALL = f"{_TEXT}, in its drawings too"
_DRAWINGS = "the drawings of report.html"


def compared(mechanism: Mechanism, release: ReleaseFolder, found: str) -> list[Verdict]:
    """Whether a page is the one about this release, but for the versions of the programs, and what was compared."""
    if _reduced(found) != _reduced(report_text([of_folder(mechanism, release)], drawing=False)):
        return [Verdict(False, _TEXT)]
    drawings = _drawings(found)
    if not any(drawings):
        return [Verdict(True, f"{_TEXT}; its pictures are in words only")]
    made = report_text([of_folder(mechanism, release)])
    own_drawings = _drawings(made)
    if not any(own_drawings):
        return [Verdict(True, _TEXT), not_compared(_DRAWINGS, "they cannot be made again here")]
    pairs = list(zip(drawings, own_drawings, strict=True))
    if not all(set(_labels(one)) <= set(_labels(own)) for one, own in pairs):
        return [Verdict(False, _ALL)]
    if _drawn_by(found) != _drawn_by(made):
        why = "other versions of the programs drew them"
        return [Verdict(True, _TEXT), not_compared(f"{_DRAWINGS}, but for words in them", why)]
    return [Verdict(all(_same_drawing(one, own) for one, own in pairs), _ALL)]


def _drawings(page: str) -> list[str]:
    return [match[4] for match in _DRAWING.finditer(page)]


def _labels(drawing: str) -> list[str]:
    return [text for text in re.split(r"<[^<>]*>", drawing) if text.strip()]


def _drawn_by(page: str) -> list[str]:
    """The versions of the programs that draw, as a page states them."""
    ((_, stated, _),) = _VERSIONS.findall(page)
    return [one for one in stated.split(", ") if one.startswith(DRAWS)]


def _same_drawing(found: str, made: str) -> bool:
    """Whether two drawings have the same labels and shapes, coordinates within half a pixel of each other."""
    if _labels(found) != _labels(made) or _NUMBER.sub("#", found) != _NUMBER.sub("#", made):
        return False
    pairs = zip(_NUMBER.findall(found), _NUMBER.findall(made), strict=True)
    return all(abs(float(one) - float(own)) <= _NEAR for one, own in pairs)


def _reduced(page: str) -> str | None:
    """A page without what differs between machines; None if that is not what it should be."""
    stated = _VERSIONS.findall(page)
    if len(stated) != 1 or not _LISTED.fullmatch(stated[0][1]) or not all(map(_harmless, _drawings(page))):
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
