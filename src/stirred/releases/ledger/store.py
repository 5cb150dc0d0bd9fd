"""Where a ledger is kept: the interface of a file and of a server, and which of them an address names.

The address of a server never shows the password that it may hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

from stirred import errors
from stirred.releases.ledger.rows import Contents, Draft, Row

SCHEMES = ("postgresql://", "postgres://")
SCHEMA = "stirred_ledger"
PARAMETER = "stirred_ledger"
"""The part of an address that tells several ledgers in one database apart."""
_SHOWN = ("host", "port")
_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._%-]*)(?::[0-9]*)?"
_FORM = re.compile(
    rf"postgres(?:ql)?://(?:(?P<user>[^@/?#\s]*)@)?(?P<hosts>{_HOST}(?:,{_HOST})*)(?:/(?P<database>[^@/?#\s]*))?"
    r"(?:\?(?P<query>[^#\s]*))?"
)
_NAME = re.compile("[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class ServerAddress:
    """Where a ledger is kept on a server. As text it has no password."""

    shown: str
    schema: str
    """The schema in the database that holds the ledger."""
    conninfo: str = field(repr=False)
    """The address as the driver takes it, perhaps with a password."""
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        return self.shown

    @classmethod
    def parse(cls, text: str) -> ServerAddress:
        """Read an address such as ``postgresql://ada@db.office/census?stirred_ledger=households``.

        >>> ServerAddress.parse("postgresql://ada:secret@db.office/census?stirred_ledger=households")
        ServerAddress(shown='postgresql://ada@db.office/census?stirred_ledger=households', schema=...)
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise errors.ledger_address(
                "it is not of the form postgresql://USER@HOST:PORT/DATABASE?stirred_ledger=NAME"
            )
        # libpq's own reading: a plus sign stays a plus sign, unlike in the forms of the web.
        parts = [part.partition("=") for part in (found["query"] or "").split("&") if part]
        if any(not equals for _, equals, _ in parts):
            raise errors.ledger_address("what follows its question mark is not of the form name=value")
        query = [(unquote(name), unquote(value)) for name, _, value in parts]
        names = [value for name, value in query if name == PARAMETER]
        if len(names) > 1 or any(not _NAME.fullmatch(name) for name in names):
            raise errors.ledger_address(
                f"{PARAMETER}=NAME is given once, and NAME begins with a small letter and has at most 40 small "
                "letters, digits and underscores"
            )
        user, _, password = (found["user"] or "").partition(":")
        others = [(name, value) for name, value in query if name != PARAMETER]
        secrets = [password, unquote(password), *(value for name, value in others if "password" in name)]
        base = f"{found['hosts']}" + (f"/{found['database']}" if found["database"] is not None else "")
        named = [(name, value) for name, value in others if name in _SHOWN] + [(PARAMETER, name) for name in names]
        shown = f"postgresql://{user + '@' if user else ''}{base}" + _query(named)
        login = f"{found['user']}@" if found["user"] is not None else ""
        return cls(
            shown,
            f"{SCHEMA}_{names[0]}" if names else SCHEMA,
            f"postgresql://{login}{base}{_query(others)}",
            tuple(dict.fromkeys(one for one in secrets if one)),
        )

    def without_secrets(self, text: str) -> str:
        """A text in which the address's passwords do not occur."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def looks_like_an_address(path: Path) -> bool:
    """Whether a Path was made from an address, which loses one of its two slashes."""
    return str(path).startswith(tuple(scheme[:-1] for scheme in SCHEMES))


def _query(pairs: list[tuple[str, str]]) -> str:
    return "?" + "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs) if pairs else ""


PATIENCE = 30.0
"""Seconds to wait for another process, or for a server, before giving up."""
Decision = Callable[[Contents], Sequence[Draft]]
"""From what a ledger says to the rows that are to be added, or an error. May be asked more than once."""


class Store(Protocol):
    """What a ledger needs of the place where it is kept."""

    def create(self, first: Draft) -> None:
        """Start a ledger with its first row; raises if there is one already."""

    def read(self, thorough: bool = False) -> Contents:
        """Everything that the ledger says; raises if it is damaged."""

    def append(self, decide: Decision) -> tuple[Contents, Sequence[Row]]:
        """Add the rows that ``decide`` asks for, while no other process can add any.

        Returns what the ledger says and the rows that were added, both as read back after they were committed. If this
        raises :func:`stirred.errors.ledger_unknown`, the rows may be there; after any other error they are not.
        """

    def require_recording(self) -> None:
        """Raise if rows cannot be added here, as far as that can be told without adding one."""

    def cautions(self) -> list[tuple[bool, str, str]]:
        """What must be known about this place: whether it is as it should be, a stable name, and words."""


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
        from stirred.releases.ledger.postgresql import ServerStore

        return ServerStore(place, patience)
    from stirred.releases.ledger.sqlite_file import FileStore

    return FileStore(place, patience)


def read_back(read: Callable[[], Contents], rows: Sequence[Row], place: object) -> Contents:
    """What is read after a commit, if the rows that were committed are in it; else raises."""
    try:
        contents = read()
    except errors.LedgerError as refusal:
        raise errors.ledger_unknown(place, rows[0].token, f"it could not be read back. {refusal.problem}") from None
    if any(contents.rows[row.number - 1 : row.number] != (row,) for row in rows):
        raise errors.LedgerError(
            "ledger-not-kept",
            f"What was just recorded in the ledger {place} is not in it when it is read again.",
            "Nothing was published. Something else replaces or changes the ledger, such as a program that "
            "synchronises or restores files: find it, then compare the ledger with the last seal you kept (stirred "
            "ledger verify --seal).",
        )
    return contents
