"""``stirred deployments`` and ``stirred registry``: known uses of differential privacy, and records of them.

``deployments`` shows what each promises and what it does not state; ``registry`` writes records for the public registry
of deployments, and reads guarantees from them.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred.cli.guarantees import read_named, say_what_is_taken
from stirred.cli.options import AsJson, Paper, check_new, deployment_names, fitted, save_pictures
from stirred.cli.printing import print_json

if TYPE_CHECKING:
    from stirred.spec.known_deployments.accounts import Account

_WIDTH, _INDENT = 110, 23
_COLUMNS = (
    ("name", 24),
    ("organisation", 12),
    ("year", 4),
    ("unit", 13),
    ("standard", 13),
    ("budget", 19),
    ("not stated", 13),
)


def deployments(
    name: Annotated[
        str | None,
        typer.Argument(help="The deployment to show. Default: all are listed.", autocompletion=deployment_names),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(help="Also save a figure of all deployments into this new folder; NAME is marked in it."),
    ] = None,
    paper: Paper = False,
    as_json: AsJson = False,
) -> None:
    """List known uses of differential privacy, or show one: what its sources state, how that was checked, and what they
    do not state."""
    check_new(figures=figures, paper=paper)
    if name is None:
        _print_all(as_json)
    else:
        _print_one(name, as_json)
    if figures is not None:
        from stirred.semantics.pictures.deployments import deployment_picture
        from stirred.spec.known_deployments.names import meant

        save_pictures([deployment_picture(marked=meant(name or "") or "")], figures, paper=paper)


def _print_all(as_json: bool) -> None:
    from stirred.spec.known_deployments.accounts import BLOCKS, accounts
    from stirred.spec.known_deployments.names import titles

    known = accounts()
    hypothetical = {name: title for name, title in titles().items() if name not in known}
    if as_json:
        what_if = [{"name": name, "title": title} for name, title in hypothetical.items()]
        print_json(
            {"stirred_deployments": 1, "deployments": [one.to_fields() for one in known.values()], "what_if": what_if}
        )
        return
    print("\n".join(_table(list(known.values()))))
    said = "; ".join(f"{one}: {BLOCKS[one]}" for one in ("domain", "fixed", "neighbours", "period"))
    print("\n" + textwrap.fill(f"Not stated can be: {said}.", _WIDTH))
    print(f"\n{len(known)} deployments. Budgets of different standards, units or periods are on different scales.")
    print("'stirred deployments NAME' shows one with its sources; 'stirred docs deployments' says what was found.")
    print("\nHypothetical: what if a census had been swapped.\n")
    for one, title in hypothetical.items():
        print(f"{one:38}{title}")


def _print_one(name: str, as_json: bool) -> None:
    from stirred.spec.known_deployments.accounts import find_account

    known = find_account(name)
    found = None
    if known is None or known.complete:
        from stirred.spec.known_deployments.deployments import deployment

        found = deployment(name)
    say_what_is_taken(name)
    if as_json:
        fields: dict[str, Any] = {"stirred_deployment": 1}
        fields |= {"name": found.name, "title": found.title} if found else {}
        fields |= known.to_fields() if known else {}
        if found is not None:
            fields["specification"] = json.loads(found.specification.to_json())
        print_json(fields)
    elif known is None:
        print(fitted(str(found)))
    else:
        print("\n".join(_shown(known, None if found is None else str(found))))


def _shown(known: Account, found: str | None) -> list[str]:
    """The account in plain words; of a complete one also the formal blocks, which have its parts, errata and notes."""
    lines = [f"{known.name}: {known.title}", ""]
    formal = {"Sources differ:", "Note:", "Part:"}
    for head, text in known.rows():
        if found is not None and head in formal:
            continue
        if found is not None and head == "[1] source:":
            own = [line for line in found.splitlines() if not line.startswith(("title:", "source:", "name:"))]
            lines += ["", *fitted("\n".join(own)).splitlines(), ""]
        lines += textwrap.wrap(f"{head:{_INDENT}}{text}", _WIDTH, subsequent_indent=" " * _INDENT)
    return lines


def _table(known: list[Account]) -> list[str]:
    """A row for each deployment, wrapped within its columns."""
    from stirred.spec.known_deployments.accounts import BLOCKS

    lines = ["  ".join(f"{head:{width}}" for head, width in _COLUMNS).rstrip(), "-" * _WIDTH]
    for one in known:
        says = {name: fact.says for name, fact in one.facts.items()}
        cells = (
            one.name,
            says["organisation"],
            str(one.year),
            says.get("unit", "-"),
            says.get("standard", "-"),
            one.guarantee() if one.numbers else "-",
            ", ".join(name for name in BLOCKS if name in one.not_stated) or "nothing",
        )
        wrapped = [textwrap.wrap(text, width) for text, (_, width) in zip(cells, _COLUMNS, strict=True)]
        for at in range(max(map(len, wrapped))):
            row = (part[at] if at < len(part) else "" for part in wrapped)
            lines.append("  ".join(f"{text:{width}}" for text, (_, width) in zip(row, _COLUMNS, strict=True)).rstrip())
    return lines


app = typer.Typer(
    help="Write and read records of the public registry of uses of differential privacy.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("export")
def export(
    release: Annotated[str, typer.Argument(help="A release folder, or the name of a known deployment.")],
    name: Annotated[str, typer.Option(help="The name of the data product.")] = "",
    curator: Annotated[list[str] | None, typer.Option(help="Who publishes the data. Repeatable.")] = None,
    use: Annotated[str, typer.Option(help="What the data are for.")] = "",
    region: Annotated[str, typer.Option(help="The region that the data describe.")] = "",
    date: Annotated[str, typer.Option(help="The date of publication, such as 2021-08-01.")] = "",
    kind: Annotated[
        str, typer.Option("--type", help="The type of the product, such as 'Dataset' or 'Summary statistics'.")
    ] = "",
    description: Annotated[
        str, typer.Option(help="A description of the product. Default: what the guarantee covers.")
    ] = "",
    sector: Annotated[str, typer.Option(help="The sector, such as 'Government'.")] = "",
    author: Annotated[
        list[str] | None,
        typer.Option(help="Who wrote the record; required if it has notes or sources. Repeatable."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the record as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """Print a registry record in YAML. The options give what the guarantee itself does not say; what is not given is
    left out or, if the registry requires it, asked for."""
    from stirred.spec.known_deployments.registry import details, to_registry

    given = details(
        name=name,
        curators=curator or (),
        use=use,
        region=region,
        date=date,
        type=kind,
        description=description,
        sector=sector,
        authors=author or (),
    )
    specification, known = _known(release)
    text = to_registry(specification, known, given)
    if as_json:
        from stirred.spec.known_deployments.registry import parse

        print_json(parse(text))
    else:
        print(text, end="")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A record of the registry, a YAML file.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the guarantee as JSON; stirred docs json describes it.")
    ] = False,
) -> None:
    """Print the specification that a registry record describes, and what the record leaves open."""
    from stirred.spec.known_deployments.registry import from_registry

    found = from_registry(file)
    print(found.specification.to_json() if as_json else found, end="" if as_json else "\n")


def _known(release: str) -> tuple[Any, dict[str, Any]]:
    """The specification, and the part of a record that comes with it."""
    from stirred.releases.folder.documents import CERTIFICATE, read_json
    from stirred.reports.subjects import record_of_certificate, record_of_deployment
    from stirred.spec.known_deployments import deployments
    from stirred.spec.known_deployments.names import exactly

    known = None if Path(release).exists() and exactly(release) is None else deployments.find(release)
    if known is None:
        specification = read_named(release)
        if not Path(release).is_dir():
            return specification, {}
        stated = read_json(Path(release), CERTIFICATE, "stirred_certificate")
        return specification, record_of_certificate(stated, specification)
    say_what_is_taken(release)
    return known.specification, record_of_deployment(known)
