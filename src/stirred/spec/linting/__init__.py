"""Findings about a guarantee: rules that a specification is held against, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred._lazy import lazy

if TYPE_CHECKING:
    from stirred.spec.linting.findings import lint as lint

__getattr__, __dir__ = lazy(__name__)
