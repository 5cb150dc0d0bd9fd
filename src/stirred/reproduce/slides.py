"""Numbers of the slides of 2024."""

from __future__ import annotations
