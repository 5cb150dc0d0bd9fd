"""The commands about plans: ``stirred init``, ``context``, ``plan upgrade``, ``check`` and ``calibrate``.

Nothing is drawn here. What ``check`` and ``calibrate`` print may be confidential; a plan is public.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from stirred import errors, mechanisms, verbs
from stirred._progress import OnTerminal
from stirred.cli.options import (
    AsJson,
    Given,
    Paper,
    check_new,
    chosen,
    mechanism_names,
    mode_names,
    save_pictures,
    write_new,
)
from stirred.cli.printing import note, print_json


def init(
    file: Annotated[
        Path,
        typer.Argument(
            help="The confidential microdata: a file, a folder of files, or a pattern such as 'part-*.csv'."
        ),
    ],
    given: Given,
    mechanism: Annotated[
        str,
        typer.Option(
            help="The mechanism that will protect the data: swap, topdown or survey.", autocompletion=mechanism_names
        ),
    ] = "swap",
    out: Annotated[Path | None, typer.Option(help="Write the plan to this new file instead of the terminal.")] = None,
) -> None:
    """Draft a plan, a TOML file that says which columns are protected and how, to be read and corrected.

    It is drafted from the file format and the names of columns. Cells are looked at only with --look, which proposes
    types and where cells may be missing; columns that are called like ids are read to see whether they repeat.
    """

    check_new(out)
    found = mechanisms.named(mechanism)
    _, options = chosen(found, "init", given)
    text = found.draft(file, out.parent if out else Path(), **options)
    if out is None:
        sys.stdout.write(text)
        return
    write_new(out, text)
    note(f"Wrote {out}. Read and correct it. Next: stirred check {out}")


def context(
    mode: Annotated[
        str | None,
        typer.Argument(
            help="The form of access, such as open-data, whose typical answers are printed. Default: all forms are "
            "listed.",
            autocompletion=mode_names,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List forms of access to data, or print typical answers for one of them about who gets the data, why and how: the
    section [context] of a plan, to be corrected."""
    from stirred.releases.context import modes, template

    if mode is not None:
        text = template(mode)
        if as_json:
            answers = tomllib.loads(text)["context"]
            print_json({"stirred_context": 1, "mode": mode, "title": modes()[mode].title, "answers": answers})
        else:
            sys.stdout.write(text)
        return
    if as_json:
        print_json({"stirred_context": 1, "modes": [{"mode": key, "title": one.title} for key, one in modes().items()]})
        return
    for name, one in modes().items():
        print(f"{name:20}{one.title}")


app = typer.Typer(
    help="Bring a plan of an earlier version to the present form.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def group() -> None:
    """Keeps ``upgrade`` a command of its own."""


@app.command("upgrade")
def upgrade(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    out: Annotated[
        Path | None, typer.Option(help="Write the plan to this new file, beside the old one, not to the terminal.")
    ] = None,
) -> None:
    """Write a plan in the present form: fields under their present names, and every choice that the plan left to what
    is usual written out, for somebody to decide.

    What the plan means stays the same, and so does the guarantee. Comments are kept. What changed is printed.
    """
    from stirred.releases.plans import upgrade as run

    check_new(out)
    found = run(mechanisms.mechanism_of_plan(plan).plan_type, plan, plan.parent if out is None else out.parent)
    if out is None:
        sys.stdout.write(found.text)
    else:
        write_new(out, found.text)
        note(f"Wrote {out}. Read it and decide. Next: stirred check {out}")
    for change in found.changes or ("nothing: the plan has the present form already",):
        note(f"Changed: {change}." if found.changes else f"Changed {change}.")


def check(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.")],
    given: Given,
    specification: Annotated[
        Path | None,
        typer.Option(
            help="Write the guarantee that a release by this plan would have to this new JSON file. explain, report "
            "and ledger init --limit read it."
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Also save figures into this new folder: what each choice of --candidate or --rates would reveal."
        ),
    ] = None,
    paper: Paper = False,
    as_json: AsJson = False,
) -> None:
    """Check a plan against its data: the guarantee, risks, expected errors and cost. Nothing is released or spent.

    What it prints is confidential, the code for release --as-checked too: it has a hash of the data, by which guesses
    about them can be tested, and is written into no file. Exits with 2 if a release by this plan would be refused.
    """
    from stirred.releases.check_code import checked
    from stirred.releases.mechanism import Drawable

    check_new(specification, figures=figures, paper=paper)
    mechanism = mechanisms.mechanism_of_plan(plan)
    of_plan, options = chosen(mechanism, "check", given)
    read = mechanism.read_plan(plan, **of_plan)
    with OnTerminal():
        found = checked(mechanism, read, **options)
    if figures is not None:
        pictures = found.pictures() if isinstance(found, Drawable) else ()
        if not pictures:
            raise errors.nothing_to_draw()
        save_pictures(pictures, figures, paper=paper)
    if specification is not None:
        write_new(specification, found.specification.to_json())
    sys.stdout.write(found.to_json() if as_json else str(found))
    if found.open_stops:
        raise typer.Exit(2)


def calibrate(
    what: Annotated[
        str,
        typer.Argument(
            help="A plan (a TOML file); or, without a plan, rho or epsilon; or the value in use, such as rho=2.63."
        ),
    ],
    given: Given,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help="A limit that must be kept: 'error of race at tract <= 5', 'relative error of total at county <= 1% "
            "for 10000', 'power at 5% <= 20%', 'belief from 1% <= 5%', 'epsilon <= 2', 'rho <= 1'. Repeatable."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the plan with the parameters that were found to this new file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the parameters that keep stated limits: rho and its shares for TopDown, the swap rate for a swap, or rho or
    epsilon alone.

    Prints which limit decides, and what else changes. Nothing is released or spent. Exits with 1 if a given budget does
    not keep all limits.
    """
    from stirred.releases.plans import text_beside
    from stirred.semantics.budgets_for_targets import is_number

    check_new(out)
    options: dict[str, Any] = {}
    plan: object = what
    if is_number(what):
        if given:
            raise errors.option_not_for(next(iter(given)), what)
    else:
        mechanism = mechanisms.mechanism_of_plan(what)
        _, options = chosen(mechanism, "calibrate", given)
        plan = mechanism.read_plan(what)
    with OnTerminal():
        found = verbs.calibrate(plan, target or [], **options)  # type: ignore[arg-type]
    if out is not None:
        if found.plan is None:
            raise errors.calibration_option("--out", "writes a plan, and here is none to write")
        write_new(out, text_beside(found.plan, out))
    sys.stdout.write(found.to_json() if as_json else str(found))
    if not all(one.met for one in found.targets):
        raise typer.Exit(1)
