"""The report in a release folder: written while the folder is unfinished, and compared by ``verify``.

It is made from what the release publishes, and is the one that ``stirred report`` writes about that folder, wherever
it lies. To be compared, it is made again from the other files and compared letter for letter. In drawings coordinates
may be off by half a pixel in all, since their last digits differ between machines; everything else (elements, labels,
colours, widths, opacity, which part of the drawing is shown) is compared letter for letter too. Keep in mind: the
folder may come from somebody who wants to deceive. Drawings by other versions of the programs that draw may have other
shapes, so they are not compared, and a verdict says so.
"""

from __future__ import annotations

import math
import re
from html import unescape
from typing import TYPE_CHECKING

from stirred._bounded_reading import Unacceptable, inside, read_text
from stirred._progress import stage
from stirred.releases.folder.documents import REPORT
from stirred.releases.folder.foreign_texts import active_content, understates
from stirred.releases.folder.manifest import read_manifest
from stirred.releases.folder.verifying import is_version
from stirred.releases.verdicts import Verdict, not_compared
from stirred.reports.page import PROGRAMS, report_text
from stirred.reports.subjects import of_folder

if TYPE_CHECKING:
    from stirred.releases.folder.release_folder import ReleaseFolder
    from stirred.releases.mechanism import Mechanism
    from stirred.releases.steps import Unfinished

_DRAWING = re.compile(r'(<svg [^<>]*?")( viewBox="[^"<>]*")?(><title [^<>]*>[^<]*</title><desc [^<>]*>[^<]*</desc>)'
                      r"(.*?)</svg>", re.DOTALL)  # fmt: skip
_VERSIONS = re.compile(r'(<th scope="row">this report</th><td>)([^<>]*)(</td>)')
_PART = re.compile(r"<[^<>]*>|[^<]+")
_TAG = re.compile(r'<(/)?([A-Za-z]+)((?: [a-zA-Z-]+="[^"<>]*")*)(/)?>')
_ATTRIBUTE = re.compile(r' ([a-zA-Z-]+)="([^"]*)"')
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?")
_STEP = re.compile(r"([MLHVCSQTAZmlhvcsqtaz])([^MLHVCSQTAZmlhvcsqtaz]*)")
_FUNCTION = re.compile(r"([a-z]+)\(([^()]*)\) ?")
_LENGTHS = frozenset({"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height"})
_FLAGS = (2, 3, 4)
"""Which of the seven numbers of an arc are no lengths."""
_NEAR = 0.5
_DRAWN_BY = ("altair", "vl-convert-python")
"""Programs that decide how a picture is drawn."""

_TEXT = "report.html says what the other documents say"
_ALL = f"{_TEXT}, in its drawings too"
_DRAWINGS = "the drawings of report.html"


def add_report(unfinished: Unfinished) -> None:
    """Write the report of a release into its unfinished folder."""
    stage("writing the report")
    unfinished.add_report(report_text([of_folder(unfinished.mechanism, unfinished.opened())]))


def report_verdicts(mechanism: Mechanism, release: ReleaseFolder) -> list[Verdict]:
    """Whether the report of a release goes with its other documents; nothing for a release that has no report."""
    if REPORT not in {entry.path for entry in read_manifest(release.path)}:
        return []
    try:
        found = read_text(inside(release.path, REPORT))
    except Unacceptable:
        return [Verdict(False, f"{REPORT} can be read")]
    if release.is_by_version_before(0, 6):
        return [Verdict(False, f"the version that wrote the release writes {REPORT}")]
    active = active_content(found)
    words = f"{REPORT} shows words and drawings, and has nothing that runs, loads or leads elsewhere"
    if active is not None:
        return [Verdict(False, f"{words} (not so: {active})")]
    return [Verdict(True, words), *_compared(mechanism, release, found)]


def _compared(mechanism: Mechanism, release: ReleaseFolder, found: str) -> list[Verdict]:
    """Whether a page is the one about this release, but for the versions of the programs, and what was compared."""
    stage("writing the report again, to compare it")
    undrawn = report_text([of_folder(mechanism, release)], drawing=False)
    if not release.by_this_version:
        smaller = understates(_words(found), [_words(undrawn)])
        words = "report.html states no smaller budget than the guarantee has"
        return [Verdict(not smaller, words), not_compared("report.html", "another version wrote it")]
    stated = _versions(found, release.certificate["versions"])
    if stated is None or _reduced(found) != _reduced(undrawn):
        return [Verdict(False, _TEXT)]
    drawings = _drawings(found)
    if not any(any(one) for one in drawings):
        return [Verdict(True, f"{_TEXT}; its pictures are in words only")]
    made = report_text([of_folder(mechanism, release)])
    own = _drawings(made)
    if not any(any(one) for one in own):
        return [Verdict(True, _TEXT), not_compared(_DRAWINGS, "they cannot be made again here")]
    pairs = list(zip(drawings, own, strict=True))
    if not all(_said(body) <= _said(own_body) for (_, body), (_, own_body) in pairs):
        return [Verdict(False, _ALL)]
    here = _versions(made) or {}
    if any(stated.get(name) != here.get(name) for name in _DRAWN_BY):
        return [Verdict(True, _TEXT), not_compared(_DRAWINGS, "other versions of the programs drew them")]
    return [Verdict(all(_same_drawing(one, other) for one, other in pairs), _ALL)]


def _words(page: str) -> str:
    """The text of a page, without what stands in its drawings."""
    return unescape(re.sub(r"<[^<>]*>", " ", _reduced(page)))


def _drawings(page: str) -> list[tuple[str, str]]:
    """The drawings of a page: which part of each is shown, and what is drawn."""
    return [(match[2] or "", match[4]) for match in _DRAWING.finditer(page)]


def _said(drawing: str) -> set[str]:
    """The words in a drawing; numbers at an axis are none."""
    return {text for text in re.split(r"<[^<>]*>", drawing) if re.search(r"[^\W\d_]", text)}


def _versions(page: str, certified: dict[str, str] | None = None) -> dict[str, str] | None:
    """The versions of the programs that made a page, as it states them; None if that is not what it should be.

    Programs that the certificate names too are stated with the same version there.
    """
    rows = _VERSIONS.findall(page)
    stated = [one.partition(" ") for one in rows[0][1].split(", ")] if len(rows) == 1 else []
    found = {name: number for name, _, number in stated}
    expected = {name: number for name, number in (certified or {}).items() if name in found}
    formed = all(is_version(number) for number in found.values()) and len(found) == len(stated)
    if not formed or list(found) != [name for name in ("python", *PROGRAMS) if name in found] or "stirred" not in found:
        return None
    return found if expected.items() <= found.items() else None


def _reduced(page: str) -> str:
    """A page without what differs between machines."""
    return _VERSIONS.sub(r"\1\3", _DRAWING.sub(r"\1\3</svg>", page))


def _same_drawing(found: tuple[str, str], made: tuple[str, str]) -> bool:
    """Whether two drawings show the same, but for coordinates that are off by half a pixel at most, all groups around
    a shape together."""
    parts, own_parts = _PART.findall(found[1]), _PART.findall(made[1])
    if found[0] != made[0] or len(parts) != len(own_parts) or "".join(parts) != found[1]:
        return False
    moved = [0.0]  # by how much the groups around a shape are off, from the outermost inwards
    for part, own in zip(parts, own_parts, strict=True):
        one, other = _TAG.fullmatch(part), _TAG.fullmatch(own)
        if one is None or other is None:
            if part != own:
                return False
            continue
        if one.group(1, 2, 4) != other.group(1, 2, 4):
            return False
        if one[1]:
            moved.pop()
            continue
        off = moved[-1] + _off(one[3], other[3])
        if not off <= _NEAR:
            return False
        if not one[4]:
            moved.append(off)
    return True


def _off(written: str, own: str) -> float:
    """By how many pixels the attributes of a shape are off together; infinite if they differ in anything else."""
    pairs = list(zip(_ATTRIBUTE.findall(written), _ATTRIBUTE.findall(own), strict=False))
    if len(_ATTRIBUTE.findall(written)) != len(_ATTRIBUTE.findall(own)) or any(one[0] != two[0] for one, two in pairs):
        return math.inf
    return sum(_off_by(one[0], one[1], two[1]) for one, two in pairs if one[1] != two[1])


def _off_by(name: str, value: str, own: str) -> float:
    """By how many pixels one attribute is off; infinite if it is no coordinate."""
    if name in _LENGTHS:
        return _distance(value, own)
    steps = {"transform": _FUNCTION, "d": _STEP}.get(name)
    if steps is None or steps.sub("", value) or len(steps.findall(value)) != len(steps.findall(own)):
        return math.inf
    absolute, relative = 0.0, 0.0
    for (step, written), (own_step, own_written) in zip(steps.findall(value), steps.findall(own), strict=True):
        numbers, own_numbers = written.split(","), own_written.split(",")
        if step != own_step or len(numbers) != len(own_numbers):
            return math.inf
        for at, (number, own_number) in enumerate(zip(numbers, own_numbers, strict=True)):
            off = 0.0 if number == own_number else _distance(number, own_number) if _moves(step, at) else math.inf
            if step.isupper():
                absolute = max(absolute, off)
            else:  # what follows is moved too
                relative += off
    return absolute + relative


def _moves(step: str, at: int) -> bool:
    """Whether a number of a path or of a transformation is a length."""
    return step == "translate" or step in "MLHVCSQTmlhvcsqt" or (step in "Aa" and at % 7 not in _FLAGS)


def _distance(one: str, other: str) -> float:
    """How far two coordinates are apart; infinite if one is not written as a drawing has it."""
    if not _NUMBER.fullmatch(one) or not _NUMBER.fullmatch(other):
        return math.inf
    return abs(float(one) - float(other))
