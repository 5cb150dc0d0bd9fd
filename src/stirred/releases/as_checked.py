"""Ties a release to the check before it: a code of the plan and of the data that were checked.

The code ends in a hash of confidential data, so that whoever has it can test guesses about them. It is therefore
printed to the custodian and written nowhere: not into a release, a ledger, a report or a work folder.

Sizes and times of the files are compared before the first and after the last reading, so that what was hashed is what
was read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stirred import errors
from stirred._shown import withheld
from stirred.releases.mechanism import Check, Data, Mechanism
from stirred.releases.plans import Plan
from stirred.releases.progress import Progress, Silent
from stirred.tables import contents

_GROUP, _OF_PLAN, _OF_ALL = 4, 4, 16
"""Letters in a group of a code; of the plan, to tell what differs (20 bits); of plan and data together (80 bits)."""


def checked(
    mechanism: Mechanism, plan: Plan, data: Data | None = None, *, progress: Progress | None = None, **options: Any
) -> Check:
    """Check a plan against its data, and give the check the code by which a release can be tied to it."""
    progress = progress or Silent()
    watched = Watched.of(mechanism, plan, data)
    found = mechanism.check(plan, watched.data, progress=progress, **options)
    code = watched.code(progress, "computing the code of this check")
    watched.require_unchanged()
    return replace(found, code=code)  # type: ignore[type-var]


@withheld
@dataclass(frozen=True, eq=False, repr=False)
class Watched:
    """A plan and its data, and how the files were before anything was read."""

    plan: Plan
    inputs: dict[str, object]
    data: Data | None
    """What is read, in the form that a mechanism takes."""
    since: dict[str, object]

    @classmethod
    def of(cls, mechanism: Mechanism, plan: Plan, data: Data | None) -> Watched:
        """Look at the files, and collect lazy frames once for all readings."""
        if isinstance(data, Mapping):
            data = {table: contents.settled(str(table), one) for table, one in data.items()}
        elif data is not None:
            data = contents.settled("data", data)
        inputs = mechanism.inputs(plan, data)
        contents.require_there(inputs)
        return cls(plan, inputs, data, contents.states(inputs))

    def code(self, progress: Progress, words: str) -> str:
        """The code of plan and data."""
        plan = self._plan()
        seen = contents.digest(self.inputs, lambda done: progress.stage(words, done))
        both = hashlib.sha256(b"stirred check 1" + plan + seen).digest()
        text = _letters(plan)[:_OF_PLAN] + _letters(both)[:_OF_ALL]
        return "-".join(text[at : at + _GROUP] for at in range(0, len(text), _GROUP))

    def require(self, code: str, progress: Progress) -> None:
        """Raise unless plan and data are those of a check with this code; the right code is not told."""
        wanted = re.sub(r"[\s-]", "", code).upper()
        if not re.fullmatch(f"[A-Z2-7]{{{_OF_PLAN + _OF_ALL}}}", wanted):
            raise errors.check_code()
        if wanted[:_OF_PLAN] != _letters(self._plan())[:_OF_PLAN]:
            raise errors.not_as_checked("The plan is not the one")
        if wanted != self.code(progress, "comparing the data with those that were checked").replace("-", ""):
            raise errors.not_as_checked("The data are not those")

    def require_unchanged(self) -> None:
        """Raise if the files are not as they were at first."""
        for table, state in contents.states(self.inputs).items():
            if state != self.since[table]:
                raise errors.changed_while_reading(f"the input of table '{table}'")

    def _plan(self) -> bytes:
        """A hash of everything that the plan says but where the data lie."""
        fields = self.plan.model_dump(mode="json")
        for section in self.plan.input_sections(fields):
            if isinstance(section, dict):
                section.pop("path", None)
        return hashlib.sha256(json.dumps([self.plan.mechanism, fields], sort_keys=True).encode()).digest()


def _letters(digest: bytes) -> str:
    return base64.b32encode(digest).decode("ascii")
