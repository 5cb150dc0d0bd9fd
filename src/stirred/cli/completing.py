"""What a shell offers when Tab is pressed where a name is expected: deployments, pages, modes, mechanisms.

Where a file may be named too, an unknown beginning offers no name, and shells then offer files.
"""

from __future__ import annotations


def deployment_names(incomplete: str) -> list[str]:
    """Known deployments whose names begin so."""
    from stirred.spec.known_deployments.accounts import accounts
    from stirred.spec.known_deployments.names import titles

    return sorted(name for name in {*accounts(), *titles()} if name.startswith(incomplete))


def complete_names(incomplete: str) -> list[str]:
    """Known deployments with a full guarantee whose names begin so."""
    from stirred.spec.known_deployments.names import titles

    return sorted(name for name in titles() if name.startswith(incomplete))


def page_names(incomplete: str) -> list[str]:
    """Pages of the documentation whose names begin so."""
    from stirred.cli.docs import pages

    return sorted(name for name in pages() if name.startswith(incomplete))


def mode_names(incomplete: str) -> list[str]:
    """Modes of access whose names begin so."""
    from stirred.releases.context import MODES

    return [name for name in MODES if name.startswith(incomplete)]


def mechanism_names(incomplete: str) -> list[str]:
    """Mechanisms whose names begin so."""
    from stirred import mechanisms

    return [name for name in mechanisms.names() if name.startswith(incomplete)]
