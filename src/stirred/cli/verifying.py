"""``stirred verify``, ``tabulate`` and ``sign`` take a release folder; ``leftovers`` finds unfinished ones."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from stirred import errors, mechanisms, verbs
from stirred._progress import OnTerminal
from stirred.cli.options import AsJson, MostRows, RowsAsJson, check_new, names, write_new, write_parquet
from stirred.cli.printing import note, print_json, show
from stirred.releases.mechanism import PLACE_COLUMN_HELP, PLACES_HELP
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
    as_json: AsJson = False,
) -> None:
    """Verify a release from its own files: that they are complete and unchanged, that the counts which the mechanism
    keeps are kept, that the stated budget follows from what was done, and the signature.

    The first line is the answer. Exits with 0 if everything was compared and holds, 1 if anything is contradicted, 4
    if nothing is contradicted but not everything was compared (another version wrote it), 5 if it could not be checked,
    6 if it was withdrawn. Without --withdrawn it is not known whether the release was withdrawn and the notice is gone.
    """

    with OnTerminal() as progress:
        progress.stage(f"verifying {release}")
        verdicts = verbs.verify(release, signers=signers, withdrawn=withdrawn, most_rows=most_rows)
    if as_json:
        print_json([{"stirred_verify": 2, **asdict(verdict)} for verdict in verdicts])
    else:
        print(verdicts)
    if verdicts.state is not State.HOLDS:
        raise typer.Exit(_CODES[verdicts.state])


def tabulate(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    by: Annotated[
        str | None, typer.Option(help="Columns to count by, such as county,tenure. Required unless --places is given.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The name of a released table. Default: the first.")] = None,
    places: Annotated[Path | None, typer.Option(help=PLACES_HELP)] = None,
    place_column: Annotated[str | None, typer.Option(help=PLACE_COLUMN_HELP)] = None,
    most_rows: MostRows = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the table to this file instead of the terminal: CSV, or Parquet (FILE.parquet)."),
    ] = None,
    as_json: RowsAsJson = False,
) -> None:
    """Count the rows of a release by some columns. Reads only the release, and spends no budget."""
    from stirred.tables.writing import csv_text

    check_new(out)
    columns = list(dict.fromkeys(names(by or "")))
    if places is None and (by is None or place_column is not None):
        raise errors.estimate_question("A table", "needs columns (--by) or a file of places (--places)")
    found, remarks = verbs.tabulated(
        release, columns, table, most_rows=most_rows, place_file=places, place_column=place_column
    )
    if as_json and out is None:
        rows = found.to_pylist()
        print_json({"stirred_table": 1, "columns": found.column_names, "rows": rows, "remarks": list(remarks)})
        return
    for remark in remarks:
        note(remark)
    if out is None:
        show(found, by=columns)
    elif out.suffix == ".parquet":
        write_parquet(out, found)
    else:
        write_new(out, csv_text(found))


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
    as_json: AsJson = False,
) -> None:
    """Verify a release, then sign its list of files with ssh-keygen, so that recipients can check who published it.

    A release that verify did not compare as a whole is signed with --although-not-compared only.
    """
    from stirred.releases.folder import manifest

    check_new(release / manifest.SIGNATURE if release.is_dir() else None)
    verdicts = verbs.verify(release)
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


def leftovers(
    folder: Annotated[Path, typer.Argument(help="The folder to search: where releases are written.")] = Path(),
    ledger: Annotated[
        str | None,
        typer.Option(
            help="The ledger of the dataset, to find out for which folders budget was spent. Default: that is not "
            "known."
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Delete the folders that cannot be finished.")] = False,
    as_json: AsJson = False,
) -> None:
    """List folders of releases that were interrupted. They may contain confidential rows.

    Exits with 1 if any is left.
    """
    from stirred.releases.folder.atomic import leftovers as find
    from stirred.releases.ledger.ledger import Ledger

    if not folder.is_dir():
        raise errors.no_such_input(folder)
    opened = Ledger.open(ledger) if ledger is not None else None
    rows: list[dict[str, object]] = []
    for path in find(folder):
        counted = opened.entry_of(path) if opened is not None else None
        stated = [entry for mechanism in mechanisms.every() if (entry := mechanism.paid_entry(path)) is not None]
        if counted is not None or stated:
            number = counted.id if counted else stated[0]
            state = "paid"
            words = (
                f"never published, but entry {number} of the ledger spent budget for it. Not removed, since it is the "
                "only copy of that draw. Delete it by hand if you do not need it."
            )
        elif opened is None and _is_complete(path):
            state = "complete"
            words = "its files are complete, so budget may have been spent for it. Pass --ledger FILE to find out."
        elif remove:
            shutil.rmtree(path)
            state, words = "removed", "removed. It was not complete and could not be made a release."
        else:
            state = "incomplete"
            words = (
                "not complete, and it cannot be made a release. Remove it with --remove. stirred ledger verify says "
                "whether budget was spent for it in vain."
            )
        rows.append({"folder": str(path), "state": state, "words": words})
        if not as_json:
            print(f"{path}: {words}")
    if as_json:
        print_json({"stirred_leftovers": 1, "folders": rows})
    elif not rows:
        print(f"No unfinished folders of interrupted releases in {folder}.")
    if any(row["state"] != "removed" for row in rows):
        raise typer.Exit(1)


def _is_complete(folder: Path) -> bool:
    """Whether a folder has its manifest, which is written last and only once it is paid for."""
    from stirred.releases.folder.manifest import read_manifest

    try:
        read_manifest(folder)
    except errors.OutputError:
        return False
    return True
