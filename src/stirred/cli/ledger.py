"""``stirred ledger``: what was ever released from one confidential dataset, and what it cost together."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from stirred.releases.ledger import Entry, Ledger, Standing
    from stirred.spec import Specification

app = typer.Typer(
    help="Count the releases of one confidential dataset against a limit. A ledger is confidential.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

File = Annotated[Path, typer.Argument(help="The ledger, a file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("init")
def init(
    file: File,
    dataset: Annotated[str, typer.Option(help="The name of the confidential dataset, as plans give it.")],
    limit: Annotated[
        str | None,
        typer.Option(
            help="What all releases together must imply: a specification.json, a release folder, or what "
            "stirred check --json printed."
        ),
    ] = None,
    budget: Annotated[str | None, typer.Option(help="The limit's budget, instead of the one in --limit.")] = None,
    as_json: AsJson = False,
) -> None:
    """Start the ledger of a dataset, before its first release."""
    from stirred.releases.ledger import Ledger

    if budget is not None and limit is None:
        raise typer.BadParameter("a budget alone limits nothing; name its other blocks with --limit.")
    started = Ledger.create(file, dataset, None if limit is None else _limit(limit, budget, dataset))
    if as_json:
        _print_json(_standing_fields(started, started.standing()))
        return
    print(f"Started {file}, the ledger of '{dataset}'.")
    if started.limit is None:
        print("  limit: none. Releases are counted and never refused for their cost; --limit gives one.")
    else:
        print(f"  limit: {_budget(started.limit)}, and every other block as it stands in {limit}")
    print(
        "It is confidential: keep it with the data, and keep one only, since a copy that is used counts by itself.\n"
        f"Releases made before: stirred ledger add {file} RELEASE_FOLDER --what WHAT\n"
        f"Next: write dataset = {json.dumps(dataset, ensure_ascii=False)} in the plan, then "
        f"stirred release PLAN --out FOLDER --ledger {file}"
    )


@app.command("add")
def add(
    file: File,
    specification: Annotated[
        str | None, typer.Argument(help="A release folder or a specification.json; not needed with --derived-from.")
    ] = None,
    what: Annotated[str, typer.Option(help="What was released, in a few words.")] = "",
    derived_from: Annotated[
        int | None, typer.Option(help="The entry whose release this was made from, and nothing else of the data.")
    ] = None,
    past: Annotated[
        bool, typer.Option("--past", help="It is out already: record it even if the total passes the limit.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count a release that was made without this ledger, or list a product derived from a counted one (free)."""
    from stirred.releases.ledger import Ledger

    if specification is None and derived_from is None:
        raise typer.BadParameter("name a release folder or a specification.json, or --derived-from ENTRY.")
    if not what.strip():
        raise typer.BadParameter("say with --what what was released; later nobody remembers.")
    ledger = Ledger.open(file)
    place = Path(specification) if specification is not None and Path(specification).exists() else None
    read = None if specification is None else _load(specification)
    folder = place if place is not None and place.is_dir() else None
    entry = ledger.record(read, what, folder, derived_from, past=past)
    standing = _standing_or_none(ledger)
    if as_json:
        _print_json(_entry_fields(entry))
    elif entry.counted:
        print(f"Counted as entry {entry.id} of {file}. {standing or ''}".rstrip())
    else:
        print(f"Listed as entry {entry.id} of {file}: derived from entry {derived_from}, it costs nothing.")
    if past and (standing is None or (standing.within is not None and not standing.within)):
        print(
            f"stirred: WARNING: with entry {entry.id} the total of '{ledger.dataset}' is not known to keep its limit. "
            "The entry\nstays, and every further release from this dataset is refused.",
            file=sys.stderr,
        )


@app.command("list")
def entries(file: File, as_json: AsJson = False) -> None:
    """List every release, the oldest first."""
    from stirred.releases.ledger import Ledger

    ledger = Ledger.open(file)
    found = ledger.entries()
    if as_json:
        _print_json([_entry_fields(entry) for entry in found])
        return
    print(f"'{ledger.dataset}': {len(found)} entries, {sum(entry.counted for entry in found)} counted. Confidential.")
    for entry in found:
        cost = _cost(entry) if entry.counted else f"from entry {entry.derived_from}, free"
        past = ", recorded as past" if entry.past else ""
        print(f"{entry.id:>4}  {_when(entry.spent_at)}  {entry.state + past:<10}  {cost:<20}  {entry.what}")
        if entry.folder is not None:
            print(f"      {entry.folder}")


@app.command("total")
def total(file: File, as_json: AsJson = False) -> None:
    """The guarantee of all counted releases together, and what is left of the limit."""
    from stirred.cli.common import fitted
    from stirred.releases.ledger import Ledger

    ledger = Ledger.open(file)
    standing = ledger.standing()
    if as_json:
        _print_json(_standing_fields(ledger, standing))
        return
    print(f"'{ledger.dataset}': {standing.counted} counted of {standing.entries} entries. Confidential.\n")
    print(fitted(str(standing.total)) if standing.total else "Nothing is counted yet.")
    if standing.limit is not None:
        print(f"\nLimit: {_budget(standing.limit)}")
    if standing.within is not None:
        print(f"Does the total imply it? {standing.within}")
    print(f"\n{standing}")


@app.command("verify")
def verify(file: File, as_json: AsJson = False) -> None:
    """Find spends without a release, releases that changed, leftover folders, and a total beyond the limit. Exits with
    1 if it finds any."""
    from dataclasses import asdict

    from stirred.releases.ledger import Ledger

    verdicts = Ledger.open(file).verify()
    if as_json:
        _print_json([asdict(verdict) for verdict in verdicts])
    else:
        for verdict in verdicts:
            print(f"{'holds ' if verdict.holds else 'FAILS '} {verdict.words}")
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)


def counted(file: Path) -> str:
    """What to say after a release that was counted; the ledger may be busy again, and the release is out."""
    from stirred.errors import LedgerError
    from stirred.releases.ledger import Ledger

    try:
        return f"Counted in {file}. {Ledger.open(file).standing()}"
    except LedgerError:
        return f"Counted in {file}."


def _load(text: str) -> Specification:
    from stirred.cli.compare import read_named
    from stirred.spec.loading import load

    return load(Path(text)) if Path(text).exists() else read_named(text)


def _limit(text: str, budget: str | None, dataset: str) -> Specification:
    """The blocks of a specification as a limit: what belonged to one release is left off."""
    from dataclasses import replace

    from stirred.spec import Budget

    read = _checked(Path(text)) or _load(text)
    bound = Budget(read.budget.value if budget is None else budget)
    typed = "=" in text and not Path(text).exists()
    # A limit is about the whole dataset, whichever variables a release reads.
    domain = replace(read.domain, name=dataset if typed else read.domain.name, variables=None, words="")
    name = f"limit of {dataset}"
    return replace(read, domain=domain, budget=bound, name=name, covers=(), facts=(), findings=(), marks=())


def _checked(path: Path) -> Specification | None:
    """The specification in what ``stirred check --json`` printed: the blocks are known before anything is released."""
    from stirred.spec.json_format import from_fields

    try:
        fields = json.loads(path.read_bytes())
        return from_fields(fields["specification"]) if "stirred_check" in fields else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _standing_or_none(ledger: Ledger) -> Standing | None:
    """None where what is counted does not add up, as past releases may not."""
    from stirred.errors import LedgerError

    try:
        return ledger.standing()
    except LedgerError:
        return None


def _budget(specification: Specification) -> str:
    return f"{specification.output_premetric.kind.budget} = {specification.budget.shown()}"


def _cost(entry: Entry) -> str:
    from stirred.errors import StirredError

    try:
        return _budget(entry.specification)
    except StirredError:
        return "unreadable"


def _when(seconds: int) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _entry_fields(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "what": entry.what,
        "when": _when(entry.spent_at),
        "state": entry.state,
        "counted": entry.counted,
        "derived_from": entry.derived_from,
        "past": entry.past,
        "folder": None if entry.folder is None else str(entry.folder),
        "manifest_sha256": entry.manifest,
        "finished": None if entry.finished_at is None else _when(entry.finished_at),
        "stirred": entry.version,
        "specification": json.loads(entry.text),
    }


def _standing_fields(ledger: Ledger, standing: Standing) -> dict[str, Any]:
    from stirred.spec.exact import written

    total, within = standing.total, standing.within
    return {
        "dataset": ledger.dataset,
        "entries": standing.entries,
        "counted": standing.counted,
        "total": json.loads(total.specification.to_json()) if total else None,
        "steps": [str(step) for step in total.steps] if total else [],
        "limit": json.loads(standing.limit.to_json()) if standing.limit else None,
        "within_limit": within.verdict if within is not None else None,
        "why": [str(step) for step in within.steps] if within is not None else [],
        "left": None if standing.left is None else written(standing.left),
    }


def _print_json(fields: object) -> None:
    print(json.dumps(fields, indent=2, ensure_ascii=False))
