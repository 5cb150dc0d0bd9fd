"""``stirred ledger``: record all releases of one confidential dataset, and compare their total with a limit."""

from __future__ import annotations

import datetime
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred import errors, verbs
from stirred.cli.guarantees import read_named
from stirred.cli.options import AsJson, check_new, fitted, write_new
from stirred.cli.printing import note, print_json

if TYPE_CHECKING:
    from stirred.releases.ledger.ledger import Ledger
    from stirred.releases.ledger.rows import Entry, Finish
    from stirred.releases.ledger.store import ServerAddress
    from stirred.releases.ledger.totals import Standing
    from stirred.spec import Specification

app = typer.Typer(
    help="Record all releases of one confidential dataset, and compare their total privacy loss with a limit. A ledger "
    "is confidential.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

File = Annotated[
    str, typer.Argument(help="The ledger: a file, or postgresql://USER@HOST/DATABASE (see stirred docs ledger).")
]


@app.command("init")
def init(
    file: File,
    dataset: Annotated[str, typer.Option(help="The name of the confidential dataset, as in its plans.")],
    limit: Annotated[
        list[str] | None,
        typer.Option(
            help="The guarantee that all releases together must keep: a specification.json, a release folder, or the "
            "output of stirred check --json. Given several times, for releases of several kinds: all of them "
            "together. Default: no limit. Repeatable."
        ),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="With --limit: a budget in place of the one that is written there.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start the ledger of a dataset, before the first release."""
    from stirred.releases.ledger.ledger import Ledger

    if budget is not None and not limit:
        raise typer.BadParameter("a budget alone is not a guarantee; give its other parts with --limit.")
    started = Ledger.create(file, dataset, _limit(limit, budget, dataset) if limit else None)
    refuses = _refuses(started)
    if as_json:
        print_json(_standing_fields(started, started.standing()))
        if refuses is not None:
            note(refuses)
        return
    print(f"Started {started.path}, the ledger of '{dataset}'.")
    if started.limit is None:
        print("  limit: none. Releases of any cost are recorded; start a ledger with --limit to have one.")
    else:
        print(f"  limit: {_budget(started.limit)}, and all other parts as in {' and '.join(limit or [])}")
    if refuses is not None:
        print(f"  {refuses}")
    if isinstance(started.path, Path):
        print("It is confidential: keep it with the data. Use one file only: a copy lacks what is recorded later.")
    else:
        _print_roles(started.path)
    print(
        f"Record earlier releases with: stirred ledger add {started.path} RELEASE_FOLDER --what WHAT\n"
        f"Next: write dataset = {json.dumps(dataset, ensure_ascii=False)} in the plan, then "
        f"stirred release PLAN --out FOLDER --ledger {started.path}\n{_seal_to_keep(started)}"
    )


@app.command("add")
def add(
    file: File,
    specification: Annotated[
        str | None, typer.Argument(help="A release folder or a specification.json. Left out only with --derived-from.")
    ] = None,
    what: Annotated[str, typer.Option(help="Required: what was released, in a few words.")] = "",
    derived_from: Annotated[
        int | None,
        typer.Option(
            help="The number of the entry whose random draw this folder was made from, as its certificate must show. "
            "It costs no further budget."
        ),
    ] = None,
    past: Annotated[
        bool,
        typer.Option("--past", help="It is published already: record it even if the total then exceeds the limit."),
    ] = False,
    who: Annotated[
        str | None, typer.Option(help="Who made the release. Written into the ledger, and nowhere else.")
    ] = None,
    why: Annotated[
        str | None, typer.Option(help="Why the release was made. Written into the ledger, and nowhere else.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Record a release that was made without this ledger; or, with --derived-from, another folder made from a random
    draw that is recorded already, at no cost."""
    if specification is None and derived_from is None:
        raise typer.BadParameter("name a release folder or a specification.json.")
    if not what.strip():
        raise typer.BadParameter("say in a few words what was released: --what WORDS.")
    ledger = _open(file)
    place = Path(specification) if specification is not None and Path(specification).exists() else None
    read = None if specification is None else _load(specification)
    folder = place if place is not None and place.is_dir() else None
    if folder is not None:
        _require_verified(folder)
    entry = ledger.record(read, what, folder, derived_from, past=past, who=who, why=why)
    standing = _standing_or_none(ledger)
    if as_json:
        print_json(_entry_fields(entry))
    elif derived_from is None:
        print(f"Recorded as entry {entry.id} of {ledger.path}. {standing or ''}".rstrip())
        print(_seal_to_keep(ledger))
    else:
        print(f"Listed with entry {entry.id} of {ledger.path}, from whose draw it was finished: it costs nothing.")
        print(_seal_to_keep(ledger))
    if past and (standing is None or (standing.within is not None and not standing.within)):
        print(
            f"stirred: WARNING: with entry {entry.id} the total of '{ledger.dataset}' is not known to keep its limit.\n"
            "The entry stays, and no further release of this dataset can be recorded.",
            file=sys.stderr,
        )


def _require_verified(folder: Path) -> None:
    """Raise if a release folder does not verify: what it states is what would be counted."""

    for verdict in verbs.verify(folder):
        if not verdict.holds:
            raise errors.LedgerError(
                "ledger-not-verified",
                f"{folder} does not verify, so what it cost is not known (FAILS {verdict.words}).",
                f"Nothing was recorded. To see all that fails: stirred verify {folder}. If it was published like "
                "this, record the specification that it really had.",
            )


@app.command("withdraw")
def withdraw(
    file: File,
    release: Annotated[
        str, typer.Argument(help="The release folder, or the number of an entry: then all releases of that entry.")
    ],
    reason: Annotated[
        str | None,
        typer.Option(help="Required the first time: why, in a sentence. It is PUBLIC, unlike --why of a release."),
    ] = None,
    superseded_by: Annotated[
        Path | None,
        typer.Option(help="The folder of the recorded release that takes its place. It can also be named later, once."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Record that a release should no longer be used, and write WITHDRAWN.txt into its folder.

    The budget that it spent stays spent. Repeated, it adds nothing, and writes what notice is missing.
    """
    from stirred.releases.ledger.withdrawals import Notice

    ledger = _open(file)
    number = int(release) if release.isascii() and release.isdecimal() and not Path(release).exists() else None
    done = ledger.withdraw(release if number is None else number, reason, superseded_by=superseded_by)
    notices = [Notice.of(one) for one in done.withdrawals]
    if as_json:
        print_json(
            {
                "stirred_withdrawal": 1,
                "entry": done.entry.id,
                "added": done.added,
                "withdrawn": [notice.fields for notice in notices],
                "folders": [{"folder": str(folder), "not_stated": problem} for folder, problem in done.placed],
                "last_seal": ledger.seal,
            }
        )
        return
    days = ", ".join(sorted({notice.day for notice in notices}))
    said = "Withdrawn" if done.added else f"Nothing to add: withdrawn on {days}"
    print(f"{said}: {_releases(len(notices))} of entry {done.entry.id} of {ledger.path}.")
    for folder, problem in done.placed:
        print(f"  {folder}: {problem or 'WITHDRAWN.txt states it'}")
    print(
        "The budget that it spent stays spent, and counts towards the limit as before.\n"
        "Copies that others have do not change. Let their holders know it by the list, which has nothing "
        f"confidential:\n  stirred ledger withdrawn {ledger.path} --out withdrawn.json\n"
        "They look it up with: stirred verify FOLDER --withdrawn withdrawn.json"
    )
    print(_seal_to_keep(ledger))


@app.command("withdrawn")
def withdrawn(
    file: File,
    out: Annotated[Path | None, typer.Option(help="Write the list for the public to this new file, as JSON.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the withdrawn releases, for the public: the SHA-256 of each release's manifest, the day, the reason, and the
    release that takes its place.

    The list names no folders, no people and no other releases.
    """
    check_new(out)
    ledger = _open(file)
    text = ledger.withdrawn()
    if out is not None:
        write_new(out, text)
    if as_json:
        print(text, end="")
        return
    found = json.loads(text)["withdrawn"]
    print(f"'{ledger.dataset}': {_releases(len(found))} withdrawn.")
    for one in found:
        print(f"  {one['withdrawn_on']}  {one['manifest_sha256']}\n      reason: {one['reason']}")
        if one["superseded_by"] is not None:
            print(f"      superseded by {one['superseded_by']}")
    if out is None:
        print(f"Write the list for the public with: stirred ledger withdrawn {ledger.path} --out withdrawn.json")
    else:
        print(f"Wrote {out}. Publish it by a way that recipients trust, and anew after each withdrawal.")


@app.command("list")
def entries(file: File, as_json: AsJson = False) -> None:
    """List all recorded releases, oldest first."""
    from stirred.releases.ledger.rows import one_line

    ledger = _open(file)
    found = ledger.entries()
    if as_json:
        print_json([_entry_fields(entry) for entry in found])
        return
    spent = sum(entry.counted for entry in found)
    print(f"'{ledger.dataset}': {_entries(len(found))}, of which {spent} spent budget. Confidential.")
    for entry in found:
        cost = _cost(entry) if entry.counted else f"from entry {entry.derived_from}, free"
        past = ", recorded as past" if entry.past else ""
        print(f"{entry.id:>4}  {_when(entry.spent_at)}  {entry.state + past:<10}  {cost:<20}  {one_line(entry.what)}")
        for name, told in (("who", entry.who), ("why", entry.why)):
            if told is not None:
                print(f"      {name}: {one_line(told)}")
        places = {one.folder: one.manifest for one in (entry.finishes or (entry,)) if one.folder is not None}
        for folder, manifest in places.items():
            gone = f" (withdrawn: {taken.reason})" if (taken := entry.withdrawal(manifest)) else ""
            print(f"      {one_line(str(folder))}{gone}")
    print(_last_seal(ledger))


@app.command("total")
def total(file: File, as_json: AsJson = False) -> None:
    """Print the guarantee of all releases together, and how much of the limit is left."""
    ledger = _open(file)
    standing = ledger.standing()
    if as_json:
        print_json(_standing_fields(ledger, standing))
        return
    print(f"'{ledger.dataset}': {_entries(standing.entries)}, of which {standing.counted} spent budget. Confidential.")
    if standing.withdrawn:
        print(f"Withdrawn: {_entries(standing.withdrawn)}. What they spent stays spent, and is counted here.")
    print()
    print(fitted(str(standing.total)) if standing.total else "No release has spent budget yet.")
    if standing.limit is not None:
        print(f"\nLimit: {_budget(standing.limit)}")
    if standing.within is not None:
        print(f"Does the total keep the limit? {standing.within}")
    print(f"\n{standing}\n{_last_seal(ledger)}")


@app.command("verify")
def verify(
    file: File,
    seal: Annotated[
        str | None,
        typer.Option(
            help="A seal (64 hexadecimal digits) that you noted earlier: check that it is still in the ledger, and "
            "print what was recorded after it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look for entries without a release, releases that were changed, unfinished folders, a total beyond the limit, and
    a seal that is missing.

    Exits with 1 if it finds any of these.
    """
    from stirred.releases.ledger.rows import one_line

    ledger = _open(file)
    verdicts = ledger.verify(seal)
    if as_json:
        print_json([{"stirred_ledger_verify": 1, **asdict(verdict)} for verdict in verdicts])
    else:
        for verdict in verdicts:
            print(f"{'holds ' if verdict.holds else 'FAILS '} {one_line(verdict.words)}")
        print(_last_seal(ledger))
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)


def _open(file: str) -> Ledger:
    from stirred.releases.ledger.ledger import Ledger

    return Ledger.open(file)


def counted(ledger: Ledger) -> str:
    """What to print after a recorded release: the ledger's standing and last seal, or less if it is busy."""
    try:
        return f"Recorded in {ledger.path}. {ledger.standing()}\n{_seal_to_keep(ledger)}"
    except errors.LedgerError:
        return f"Recorded in {ledger.path}."


def _last_seal(ledger: Ledger) -> str:
    return f"Last seal: {ledger.seal}"


def _seal_to_keep(ledger: Ledger) -> str:
    return (
        f"{_last_seal(ledger)}\n"
        "Keep it outside the ledger: with it, stirred ledger verify --seal SEAL tells later whether anything was "
        "removed or replaced."
    )


def _print_roles(address: ServerAddress) -> None:
    """What the owner of a ledger on a server runs once, so that releasing needs no right to change or remove."""
    print(
        "It is confidential. The role that started it owns it and could change it: release with another role, which "
        "may add and read rows only. The owner lets it by:\n"
        f"  GRANT USAGE ON SCHEMA {address.schema} TO releasing;\n"
        f"  GRANT SELECT, INSERT ON {address.schema}.rows TO releasing;"
    )


def _load(text: str) -> Specification:
    from stirred.spec.loading import load

    return load(Path(text)) if Path(text).exists() else read_named(text)


def _releases(number: int) -> str:
    return f"{number:,} {'release' if number == 1 else 'releases'}"


def _entries(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


def _limit(texts: list[str], budget: str | None, dataset: str) -> Specification:
    """Specifications as a limit, without what belongs to one release only."""
    from stirred.releases.ledger.totals import together
    from stirred.spec import Budget

    read = together(*(_of_dataset(text, dataset) for text in texts))
    bound = Budget(read.budget.value if budget is None else budget)
    # A limit is about the whole dataset, whichever variables a release reads and wherever its mechanism starts.
    domain = replace(read.domain, variables=None, starts="", words="")
    name = f"limit of {dataset}"
    return replace(read, domain=domain, budget=bound, name=name, covers=(), facts=(), findings=(), marks=())


def _refuses(ledger: Ledger) -> str | None:
    """What a limit that holds nothing fixed will refuse whatever it costs; None for other limits.

    The invariants of a first release are not taken over: given them, the same number is a weaker limit than was asked.
    """
    if ledger.limit is None or ledger.limit.multiverse.invariants or ledger.limit.multiverse.universes:
        return None
    return (
        "This limit holds nothing fixed, so it refuses every release that keeps counts exactly, whatever its budget: "
        "every swap, and TopDown with invariants. For these, start the ledger with the guarantee of a plan: "
        "stirred check PLAN --specification limit.json, then --limit limit.json --budget NUMBER"
    )


def _of_dataset(text: str, dataset: str) -> Specification:
    """A specification that was named or, if it was typed in full, one about this dataset."""
    read = _checked(Path(text)) or _load(text)
    typed = "=" in text and not Path(text).exists()
    return replace(read, domain=replace(read.domain, name=dataset)) if typed else read


def _checked(path: Path) -> Specification | None:
    """The specification in the output of ``stirred check --json``; None if the file is not such an output."""
    from stirred.spec.specification import from_fields

    try:
        fields = json.loads(path.read_bytes())
        return from_fields(fields["specification"]) if "stirred_check" in fields else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _standing_or_none(ledger: Ledger) -> Standing | None:
    """The ledger's standing; None where the recorded releases do not compose, as past ones may not."""
    try:
        return ledger.standing()
    except errors.LedgerError:
        return None


def _budget(specification: Specification) -> str:
    return f"{specification.output_premetric.kind.budget} = {specification.budget.shown()}"


def _cost(entry: Entry) -> str:
    try:
        return _budget(entry.specification)
    except errors.StirredError:
        return "unreadable"


def _when(seconds: int) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _entry_fields(entry: Entry) -> dict[str, Any]:
    from stirred.releases.ledger.withdrawals import Notice

    return {
        "stirred_ledger_entry": 1,
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
        "who": entry.who,
        "why": entry.why,
        "nonce": entry.nonce,
        "seal": entry.seal,
        "token": entry.token,
        "finishes": [_finish_fields(finish) for finish in entry.finishes],
        "withdrawals": [Notice.of(one).fields for one in entry.withdrawals],
        "stirred": entry.version,
        "specification": json.loads(entry.text),
    }


def _finish_fields(finish: Finish) -> dict[str, Any]:
    return {
        "folder": None if finish.folder is None else str(finish.folder),
        "manifest_sha256": finish.manifest,
        "when": _when(finish.finished_at),
        "what": finish.what,
        "seal": finish.seal,
        "stirred": finish.version,
    }


def _standing_fields(ledger: Ledger, standing: Standing) -> dict[str, Any]:
    from stirred.spec.exact import written

    total, within = standing.total, standing.within
    return {
        "stirred_ledger": 1,
        "dataset": ledger.dataset,
        "entries": standing.entries,
        "counted": standing.counted,
        "withdrawn": standing.withdrawn,
        "total": json.loads(total.specification.to_json()) if total else None,
        "steps": [str(step) for step in total.steps] if total else [],
        "limit": json.loads(standing.limit.to_json()) if standing.limit else None,
        "within_limit": within.verdict if within is not None else None,
        "why": [str(step) for step in within.steps] if within is not None else [],
        "left": None if standing.left is None else written(standing.left),
        "last_seal": ledger.seal,
    }
