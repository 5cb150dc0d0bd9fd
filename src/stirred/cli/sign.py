"""``stirred sign``: sign a release, so that recipients can check who published it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def sign(
    release: Annotated[Path, typer.Argument(help="The release folder to sign.")],
    key: Annotated[
        Path,
        typer.Option(help="An OpenSSH key: the private key file, or the .pub file of a key that ssh-agent holds."),
    ],
    although_not_compared: Annotated[
        bool,
        typer.Option(
            "--although-not-compared",
            help="Sign also if stirred verify did not compare everything (exit code 4); the signature states it.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Verify a release, then sign its list of files with ssh-keygen, so that recipients can check who published it.

    A release that verify did not compare as a whole is signed with --although-not-compared only.
    """
    from stirred import errors
    from stirred.cli.common import check_new
    from stirred.releases.folder import manifest
    from stirred.releases.folder.manifest import SIGNATURE
    from stirred.releases.verdicts import State
    from stirred.reports.release_with_report import verify

    check_new(release / SIGNATURE if release.is_dir() else None)
    verdicts = verify(release)
    for verdict in verdicts:
        if verdict.state is State.CONTRADICTED:
            raise errors.cannot_sign(release, f"stirred verify finds a fault in it ({verdict.words})")
        if verdict.state is State.WITHDRAWN:
            raise errors.cannot_sign(release, f"it was withdrawn ({verdict.words})")
    partly = verdicts.state is State.NOT_COMPARED and although_not_compared
    if verdicts.state is not State.HOLDS and not partly:
        raise errors.not_all_compared(release, verdicts.answer, verdicts.state is State.NOT_COMPARED)
    written = manifest.sign(release, key, partly)
    line = manifest.signers_line(key, "publisher@your.office", partly)
    if as_json:
        from stirred.cli.printing import print_json

        print_json(
            {
                "stirred_signature": 2,
                "release": str(release),
                "signature": str(written),
                "signers_line": line,
                "although_not_compared": partly,
            }
        )
        return
    print(f"Signed: {written}. Publish it with the release.")
    if partly:
        print(f"The signature states that not everything was compared before it was made. {verdicts.answer}")
    if line is None:
        print(f"There is no file {key}.pub. Print the public key with: ssh-keygen -y -f {key}")
        line = f'publisher@your.office namespaces="{manifest.namespaces(partly)}" PUBLIC-KEY'
    print("Recipients need this line in a file; give it to them apart from the release, by a way that they trust:")
    print(f"  {line}")
    print(f"They check it with: stirred verify {release} --signers FILE")
    print(
        "The signature shows that a holder of this key signed exactly these files. It does not show that the data are "
        "right, that the guarantee holds, or that the release was recorded in a ledger."
    )
