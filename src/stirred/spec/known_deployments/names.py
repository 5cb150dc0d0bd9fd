"""Names of known deployments: which there are, and which one a person means.

The data files of ``stirred/deployments`` are read here as plain tables, without building the guarantees in them, so
that listing and looking up names is quick. :mod:`stirred.spec.known_deployments.deployments` makes the guarantees of
those whose building blocks are all stated; :mod:`stirred.spec.known_deployments.accounts` says of each what is known.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from stirred.errors.kinds import listed

VERSION = 1
"""Format version of the data files."""

MOST = 12
"""Names that are suggested at most."""


@dataclass(frozen=True)
class Known:
    """The tables of all deployments by name, in the order of the files, and the domains they refer to."""

    deployments: dict[str, dict[str, Any]]
    domains: dict[str, dict[str, Any]]


def data_files(*, allocations: bool) -> list[dict[str, Any]]:
    """The data files by name: those that divide budgets, or all others."""
    folder = files("stirred") / "deployments"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    chosen = [name for name in names if name.startswith("allocations-") == allocations]
    read = [tomllib.loads((folder / name).read_text(encoding="utf-8")) for name in chosen]
    assert all(file["stirred_deployments"] == VERSION for file in read)
    return read


@cache
def tables() -> Known:
    """Everything in the data files, each deployment merged with what its file shares."""
    found: dict[str, dict[str, Any]] = {}
    read = data_files(allocations=False)
    for file in read:
        for own in file.get("deployment", ()):
            assert own["name"] not in found
            found[own["name"]] = _merged(file.get("shared", {}), own)
    return Known(found, {name: fields for file in read for name, fields in file.get("domains", {}).items()})


def names() -> list[str]:
    """The names of all whose guarantee is stated in full, in the order of the files; aliases are left out.

    >>> names()[:2]
    ['das-2020-overall', 'psa-1940-ma-p01']
    """
    return [name for name, fields in tables().deployments.items() if "specification" in fields]


def titles() -> dict[str, str]:
    """Every name with the title of its deployment."""
    return {name: fields["title"] for name, fields in tables().deployments.items()}


def exactly(text: str) -> str | None:
    """The name of the deployment that is called so, by its name or an alias."""
    found = tables().deployments
    return text if text in found else next((n for n, one in found.items() if text in one.get("aliases", ())), None)


def meant(text: str) -> str | None:
    """The name of the one deployment that a text can mean, or None where it means none, or several.

    A text means a deployment by its name, by an alias, or by the beginning of its name if no other begins so; capitals,
    underscores and spaces do not matter.

    >>> meant("das-2020"), meant("Topdown_2020 PL"), meant("psa-2010"), meant("psa-2020")
    ('das-2020-overall', 'topdown-2020-pl', 'psa-2010-p02', None)
    """
    if name := exactly(_plain(text)):
        return name
    found = variants(text)
    return found[0] if len(found) == 1 else None


def variants(text: str) -> list[str]:
    """The deployments whose name continues this one.

    >>> variants("topdown-2020")
    ['topdown-2020-pl', 'topdown-2020-pl-dhc']
    """
    wanted = _plain(text)
    return [name for name in tables().deployments if wanted and name.startswith(f"{wanted}-")]


def taken_as(text: str) -> str:
    """What to tell someone who named a deployment by something other than its name, else nothing.

    >>> taken_as("psa-1940-ma")
    "'psa-1940-ma' is taken as 'psa-1940-ma-p01'; the others are 'psa-1940-ma-p05', 'psa-1940-ma-p10' and \
'psa-1940-ma-p50'."
    >>> taken_as("phsafe-2020")
    ''
    """
    name = meant(text)
    if name is None or name == _plain(text):
        return ""
    others = [one for one in variants(text) if one != name]
    words = f"'{text}' is taken as '{name}'"
    if len(others) > MOST // 2:
        return f"{words}; {len(others)} others begin so, and 'stirred deployments' lists them."
    return f"{words}; the other{'s are' if len(others) > 1 else ' is'} {listed(others)}." if others else f"{words}."


def close(text: str) -> list[str]:
    """Names that look like this one, the nearest first.

    >>> close("das-2020-overal"), close("safetab")
    (['das-2020-overall'], ['safetab-p-2020', 'safetab-h-2020'])
    """
    wanted = _plain(text)
    if not wanted or len(wanted) > 100:
        return []
    if begun := variants(text):
        return begun[:MOST]
    aliases = {alias: name for name, fields in tables().deployments.items() for alias in fields.get("aliases", ())}
    candidates = [*tables().deployments, *aliases]
    found = (
        difflib.get_close_matches(wanted, candidates, n=3, cutoff=0.6)
        or [candidate for candidate in candidates if wanted in candidate][:3]
        or difflib.get_close_matches(wanted, candidates, n=3, cutoff=0.4)
    )
    return [name for name in found if aliases.get(name) not in found]


def _plain(text: str) -> str:
    """A name as the files write them: small letters, with hyphens."""
    return re.sub(r"[\s_-]+", "-", text.strip().lower()).strip("-")


def _merged(shared: Any, own: Any) -> Any:
    if isinstance(shared, dict) and isinstance(own, dict):
        both = {name: _merged(shared[name], own[name]) for name in shared.keys() & own.keys()}
        return {**shared, **own, **both}
    return shared + own if isinstance(shared, list) and isinstance(own, list) else own
