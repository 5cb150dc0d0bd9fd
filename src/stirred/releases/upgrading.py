"""Brings a plan file of an earlier version to the present form, without a change of what it means.

Fields that have another name now are renamed, and fields that somebody decides (``Plan.decided``) are written out with
the value that the plan had by leaving them out. The rest of the file stays as it is, comments included. The invariant a
reader must know: the text that is returned is read again, and is the same plan.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from stirred import _received, errors
from stirred.releases.plans import HEAD, Plan


@dataclass(frozen=True)
class Upgraded:
    """A plan in the present form."""

    text: str
    changes: tuple[str, ...]
    """What is written otherwise than before, a line each."""


def upgrade(kind: type[Plan], path: Path, folder: Path) -> Upgraded:
    """The plan file at ``path``, a plan of this kind, as it is to be written into ``folder``."""
    before = kind.from_toml(path)
    text = _received.read_typed(path)
    written = _received.parse_toml(text)
    changes = []
    for old, new in kind.earlier_names.items():
        if old in written:
            text = _renamed(text, old, new)
            changes.append(f"{old} is called {new} now")
    lines = []
    for field, words in kind.decided.items():
        if field in written or re.search(rf"(?m)^[ \t]*#[ \t]*{field}[ \t]*=", text):
            continue
        value = kind.model_fields[field].default
        if value is None:
            lines.append(f"# {field} = ...".ljust(27) + f"# not stated: {words}")
            changes.append(f"{field} is not stated; a comment says what it would be")
        else:
            shown = json.dumps(str(value)) if isinstance(value, Fraction | str) else json.dumps(value)
            lines.append(f"{field} = {shown}".ljust(27) + f"# {words}")
            changes.append(f"{field} = {shown} is written out: what the plan meant without it")
    text = _inserted(text, lines) if lines else text
    fields = {key: value for key, value in _received.parse_toml(text).items() if key not in HEAD}
    if set(kind.earlier_names) & set(fields) or kind(**kind.placed(fields, folder)) != before:
        raise errors.plan_not_upgraded(path)
    return Upgraded(text, tuple(changes))


def _renamed(text: str, old: str, new: str) -> str:
    """The text with a field of the plan, or its sections, under another name."""
    bare, end = _bare(text), _end_of_fields(text)
    for found in reversed(list(re.finditer(rf"(?m)^[ \t]*(\[\[?[ \t]*)?({old})(?=[ \t]*[].=])", bare))):
        if found[1] or found.start() < end:
            text = text[: found.start(2)] + new + text[found.end(2) :]
    return text


def _inserted(text: str, lines: list[str]) -> str:
    """The text with lines after the last field that stands before all sections."""
    kept = _bare(text)[: _end_of_fields(text)].rstrip()
    at = text.find("\n", len(kept))
    first, rest = (text, "") if at < 0 else (text[:at], text[at:])
    return "\n".join([first, "", "# Left to what is usual by the plan so far; decide on them.", *lines]) + (
        rest or "\n"
    )


def _end_of_fields(text: str) -> int:
    """Where the first section begins: a header at the start of a line, outside of any list."""
    depth = at = 0
    for line in _bare(text).splitlines(keepends=True):
        if depth == 0 and line.lstrip().startswith("["):
            return at
        depth += sum(line.count(sign) for sign in "[{") - sum(line.count(sign) for sign in "]}")
        at += len(line)
    return len(text)


def _bare(text: str) -> str:
    """The text with blanks for what is in quotes or a comment, so that places in it are the same."""
    return _received.TOML_QUOTED.sub(lambda found: re.sub(r"[^\n]", "_" if found[0][0] != "#" else " ", found[0]), text)
