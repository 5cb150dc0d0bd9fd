"""``stirred registry``: write records for the public registry of deployments, and read guarantees from them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

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
    from stirred.reports.registry_entry import together
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
    text = to_registry(specification, together(known, given))
    if as_json:
        from stirred.cli.printing import print_json
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
    from stirred.cli.compare import read_named, say_what_is_taken
    from stirred.reports.registry_entry import of_deployment
    from stirred.spec.known_deployments import deployments
    from stirred.spec.known_deployments.names import exactly

    known = None if Path(release).exists() and exactly(release) is None else deployments.find(release)
    if known is None:
        specification = read_named(release)
        return specification, _from_certificate(Path(release), specification) if Path(release).is_dir() else {}
    say_what_is_taken(release)
    return known.specification, of_deployment(known)


def _from_certificate(folder: Path, specification: Any) -> dict[str, Any]:
    """What a release's certificate adds."""
    from stirred.releases.folder.documents import CERTIFICATE, read_json
    from stirred.reports.registry_entry import of_certificate

    return of_certificate(read_json(folder, CERTIFICATE, "stirred_certificate"), specification)
