"""Where a ledger is kept: the interface of a file and of a server, and which of them an address names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from stirred import errors
from stirred.releases.ledger_address import SCHEMES, ServerAddress, looks_like_an_address
from stirred.releases.ledger_rows import Contents, Draft, Row

PATIENCE = 30.0
"""Seconds to wait for another process, or for a server, before giving up."""
Decision = Callable[[Contents], Sequence[Draft]]
"""From what a ledger says to the rows that are to be added, or an error. May be asked more than once."""


class Store(Protocol):
    """What a ledger needs of the place where it is kept."""

    def create(self, first: Draft) -> None:
        """Start a ledger with its first row; raises if there is one already."""
        ...

    def read(self, thorough: bool = False) -> Contents:
        """Everything that the ledger says; raises if it is damaged."""
        ...

    def append(self, decide: Decision) -> tuple[Contents, Sequence[Row]]:
        """Add the rows that ``decide`` asks for, while no other process can add any.

        Returns what the ledger says and the rows that were added, both as read back after they were committed. If this
        raises :func:`stirred.errors.ledger_unknown`, the rows may be there; after any other error they are not.
        """
        ...

    def require_recording(self) -> None:
        """Raise if rows cannot be added here, as far as that can be told without adding one."""
        ...

    def cautions(self) -> list[tuple[bool, str, str]]:
        """What must be known about this place: whether it is as it should be, a stable name, and words."""
        ...


def address_of(place: str | Path | ServerAddress) -> Path | ServerAddress:
    """The file or the server that an address names."""
    if isinstance(place, ServerAddress):
        return place
    if isinstance(place, Path):
        if looks_like_an_address(place):
            raise errors.ledger_address("it was given as a Path, which changes it: give it as text")
        return place
    return ServerAddress.parse(place) if place.startswith(SCHEMES) else Path(place)


def store_of(place: Path | ServerAddress, patience: float) -> Store:
    """The store of a ledger."""
    if isinstance(place, ServerAddress):
        from stirred.releases.ledger_server import ServerStore

        return ServerStore(place, patience)
    from stirred.releases.ledger_file import FileStore

    return FileStore(place, patience)


def read_back(read: Callable[[], Contents], rows: Sequence[Row], place: object) -> Contents:
    """What is read after a commit, if the rows that were committed are in it; else raises."""
    try:
        contents = read()
    except errors.LedgerError as refusal:
        raise errors.ledger_unknown(place, rows[0].token, f"it could not be read back. {refusal.problem}") from None
    if any(contents.rows[row.number - 1 : row.number] != (row,) for row in rows):
        raise errors.ledger_not_kept(place)
    return contents
