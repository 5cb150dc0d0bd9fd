"""``stirred explain``: what a guarantee means."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from stirred.spec.allocations import Allocation

from stirred.cli.compare import WHAT, read_named


def explain(
    specification: Annotated[str, typer.Argument(help=WHAT)],
    concern: Annotated[
        list[str] | None,
        typer.Option(
            help="What somebody minds, in place of the whole record: 'cenrace', 'block within tract', "
            "'cenrace + within tract'. Can be given several times."
        ),
    ] = None,
    allocation: Annotated[
        Path | None, typer.Option(help="A TOML file that divides the budget among levels and queries.")
    ] = None,
    level: Annotated[
        list[float] | None, typer.Option(help="False-alarm probability of tests (default 0.01, 0.05, 0.1).")
    ] = None,
    delta: Annotated[
        list[float] | None, typer.Option(help="Probability of exceptions (default 0.05 to 1e-10).")
    ] = None,
    group: Annotated[list[int] | None, typer.Option(help="Units that change together (default 2 and 5).")] = None,
    figures: Annotated[Path | None, typer.Option(help="Also draw figures into this new folder.")] = None,
    html: Annotated[Path | None, typer.Option(help="Also write the explanation as an HTML page.")] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Leave out what is said of every guarantee.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a guarantee means: what can be tested, believed and learnt, about whom, and what is not protected."""
    import json

    from stirred.reports.limits_said import of_explanation
    from stirred.semantics.explaining import explain as run
    from stirred.semantics.setting import DELTAS, GROUPS, LEVELS
    from stirred.spec.allocations import read_allocation

    if html is not None or figures is not None:
        from stirred.releases.folder import check_target

        for target in (html, figures):
            if target is not None:
                check_target(target)
    explained = run(
        read_named(specification),
        allocation=read_allocation(allocation) if allocation is not None else _own_allocation(specification),
        concerns=concern or (),
        levels=level or LEVELS,
        deltas=delta or DELTAS,
        groups=group or GROUPS,
    )
    limits = of_explanation(explained)
    name = explained.specification.name or specification
    if html is not None:
        from stirred.cli.common import write_new
        from stirred.spec.pages import page

        write_new(html, page(f"What {name} means", explained._repr_html_() + limits.html()))
    if figures is not None:
        from stirred.cli.common import save_pictures

        save_pictures(explained.pictures(), figures)
    if as_json:
        fields = {**explained.to_fields(), "limits": limits.to_fields()}
        sys.stdout.write(json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        sys.stdout.write(f"{explained.text(brief)}\n{limits.text(brief)}")


def _own_allocation(specification: str) -> Allocation | None:
    """How a TopDown release divides its budget, which its certificate states."""
    if not Path(specification).is_dir():
        return None
    from stirred.releases.documents import CERTIFICATE
    from stirred.releases.opened import ReleaseFolder

    if not (Path(specification) / CERTIFICATE).is_file():
        return None
    release = ReleaseFolder.open(specification)
    if release.mechanism != "topdown":
        return None
    from stirred.topdown.plan import TopDownPlan

    return TopDownPlan.from_published(release.certificate["plan"]).allocation()
