"""``stirred deployments``: list or show known deployments, what they promise and what is not stated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred.cli.common import Paper, check_paper
from stirred.cli.completing import deployment_names

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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")
    ] = False,
) -> None:
    """List known uses of differential privacy, or show one: what its sources state, how that was checked, and what they
    do not state."""
    check_paper(paper, figures)
    if figures is not None:
        from stirred.cli.common import check_new

        check_new(figures)
    if name is None:
        _print_all(as_json)
    else:
        _print_one(name, as_json)
    if figures is not None:
        from stirred.cli.common import save_pictures
        from stirred.semantics.pictures.panels import deployment_picture
        from stirred.spec.known_deployments.names import meant

        save_pictures([deployment_picture(marked=meant(name or "") or "")], figures, paper=paper)


def _print_all(as_json: bool) -> None:
    import textwrap

    from stirred.spec.known_deployments.accounts import BLOCKS, accounts
    from stirred.spec.known_deployments.names import titles

    known = accounts()
    hypothetical = {name: title for name, title in titles().items() if name not in known}
    if as_json:
        what_if = [{"name": name, "title": title} for name, title in hypothetical.items()]
        _print_json(
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
    from stirred.cli.common import fitted
    from stirred.cli.compare import say_what_is_taken
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
            import json

            fields["specification"] = json.loads(found.specification.to_json())
        _print_json(fields)
    elif known is None:
        print(fitted(str(found)))
    else:
        print("\n".join(_shown(known, None if found is None else str(found))))


def _shown(known: Account, found: str | None) -> list[str]:
    """The account in plain words; of a complete one also the formal blocks, which have its parts, errata and notes."""
    import textwrap

    from stirred.cli.common import fitted

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
    import textwrap

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


def _print_json(fields: dict[str, Any]) -> None:
    import json

    print(json.dumps(fields, ensure_ascii=False, indent=2))
