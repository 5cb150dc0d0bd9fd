"""The address of a ledger that is kept on a PostgreSQL server; it never shows the password that it may hold."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from stirred import errors

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
