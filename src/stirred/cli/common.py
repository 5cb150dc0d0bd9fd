"""What several commands share: reading options that are lists."""

from __future__ import annotations


def names(text: str) -> tuple[str, ...]:
    """Column names separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
