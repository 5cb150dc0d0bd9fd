"""Numbers about tests and beliefs: Kifer et al. (2022)."""

from __future__ import annotations
