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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Verify a release, then sign its list of files with ssh-keygen, so that recipients can check who published it."""
    from stirred import errors
    from stirred.cli.common import check_new
    from stirred.releases import signatures
    from stirred.releases.manifest import SIGNATURE
    from stirred.reports.releasing import verify

    check_new(release / SIGNATURE if release.is_dir() else None)
    for verdict in verify(release):
        if not verdict.holds:
            raise errors.cannot_sign(release, f"stirred verify finds a fault in it ({verdict.words})")
    written = signatures.sign(release, key)
    line = signatures.signers_line(key, "publisher@your.office")
    if as_json:
        from stirred.cli.printing import print_json

        print_json({"stirred_signature": 1, "release": str(release), "signature": str(written), "signers_line": line})
        return
    print(f"Signed: {written}. Publish it with the release.")
    if line is None:
        print(f"There is no file {key}.pub. Print the public key with: ssh-keygen -y -f {key}")
        line = f'publisher@your.office namespaces="{signatures.NAMESPACE}" PUBLIC-KEY'
    print("Recipients need this line in a file; give it to them apart from the release, by a way that they trust:")
    print(f"  {line}")
    print(f"They check it with: stirred verify {release} --signers FILE")
    print(
        "The signature shows that a holder of this key signed exactly these files. It does not show that the data are "
        "right, that the guarantee holds, or that the release was recorded in a ledger."
    )
