"""The road of the data: the shapes that every mechanism's plan, check and release take.

* A **plan** is frozen and public; ``published()`` is the part of it that a release repeats.
* A **check** looks at the confidential data and draws no randomness. What it says is confidential.
* A **release** has two stages: *draw* touches the data, spends budget and happens once; *finish* is
  post-processing, free and repeatable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from stirred.spec import Specification


@runtime_checkable
class Plan(Protocol):
    """What is to be done."""

    def published(self) -> dict[str, Any]: ...

    def hash(self) -> str: ...


@runtime_checkable
class Check(Protocol):
    """What the data say about a plan. Confidential."""

    @property
    def specification(self) -> Specification: ...

    def to_json(self) -> str: ...


@runtime_checkable
class Release(Protocol):
    """What was drawn, ready to be finished."""

    @property
    def specification(self) -> Specification: ...

    def write(self, out: Path) -> Path: ...
