"""``stirred verify``: check a release from its own files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.common import MostRows
from stirred.releases.verdicts import State

_CODES = {State.CONTRADICTED: 1, State.NOT_COMPARED: 4, State.NOT_CHECKED: 5, State.WITHDRAWN: 6}


def verify(
    release: Annotated[Path, typer.Argument(help="The release folder to verify.")],
    signers: Annotated[
        Path | None,
        typer.Option(
            help="A file of trusted public keys (OpenSSH's allowed_signers): the release must be signed with one of "
            "them. Default: a signature is checked, but not whose it is."
        ),
    ] = None,
    withdrawn: Annotated[
        Path | None,
        typer.Option(
            help="The publisher's list of withdrawn releases (stirred ledger withdrawn): say whether it names this "
            "one. Default: only a notice in the folder is looked for."
        ),
    ] = None,
    most_rows: MostRows = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Verify a release from its own files: that they are complete and unchanged, that the counts which the mechanism
    keeps are kept, that the stated budget follows from what was done, and the signature.

    The first line is the answer. Exits with 0 if everything was compared and holds, 1 if anything is contradicted, 4
    if nothing is contradicted but not everything was compared (another version wrote it), 5 if it could not be checked,
    6 if it was withdrawn. Without --withdrawn it is not known whether the release was withdrawn and the notice is gone.
    """
    from stirred.releases.progress import OnTerminal
    from stirred.reports.release_with_report import verify as run

    with OnTerminal() as progress:
        progress.stage(f"verifying {release}")
        verdicts = run(release, signers=signers, withdrawn=withdrawn, most_rows=most_rows)
    if as_json:
        print(
            json.dumps([{"stirred_verify": 2, **asdict(verdict)} for verdict in verdicts], indent=2, ensure_ascii=False)
        )
    else:
        print(verdicts)
    if verdicts.state is not State.HOLDS:
        raise typer.Exit(_CODES[verdicts.state])
