"""``stirred release`` and ``stirred demo``: write a release folder, from data or from generated ones."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stirred import mechanisms, verbs
from stirred._progress import OnTerminal
from stirred.cli.ledger import counted
from stirred.cli.options import AsJson, Given, chosen, mechanism_names
from stirred.cli.printing import complain, note, print_json

if TYPE_CHECKING:
    from stirred.releases.ledger.ledger import Ledger
    from stirred.releases.mechanism import Release
    from stirred.spec import Specification

GRAVE = ("allowed-", "nothing-", "parameters-", "rate-")
"""Beginnings of the names of findings that are printed in full: they can be acted on, or leave no guarantee."""


def release(
    out: Annotated[Path, typer.Option(help="The release folder to write; it must not exist yet.")],
    given: Given,
    plan: Annotated[
        Path | None, typer.Argument(help="The plan, a TOML file. Left out only with --measurements.")
    ] = None,
    measurements: Annotated[
        Path | None,
        typer.Option(
            help="In place of a plan: a folder of noisy measurements that others published. The release is computed "
            "from them; no confidential data are read and no budget is spent."
        ),
    ] = None,
    confidential: Annotated[
        Path | None,
        typer.Option(help="Also write a comparison with the true values into this new folder. Keep it confidential."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Record the release in this ledger: a file, or postgresql://USER@HOST/DATABASE. If the total would "
            "exceed the ledger's limit, nothing is released. Default: the release is not recorded."
        ),
    ] = None,
    who: Annotated[
        str | None, typer.Option(help="Who makes the release. Written into the ledger, and nowhere else.")
    ] = None,
    why: Annotated[
        str | None, typer.Option(help="Why the release is made. Written into the ledger, and nowhere else.")
    ] = None,
    as_checked: Annotated[
        str | None,
        typer.Option(
            help="The code that stirred check printed: if the plan or the data are not those that it has seen, nothing "
            "is drawn. The code is as confidential as the data, and is written nowhere."
        ),
    ] = None,
    report: Annotated[
        bool,
        typer.Option(
            "--report/--no-report",
            help="Write report.html, the page about the guarantee, into the folder. It is made from what is published.",
        ),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Protect the data as the plan says, with fresh random numbers, and write a release folder to be published.

    The folder appears complete or not at all. Every draw of random numbers spends budget; --ledger keeps the total.
    """
    from stirred.releases.ledger.ledger import Ledger
    from stirred.releases.steps import default_work

    if (plan is None) == (measurements is None):
        raise typer.BadParameter("Give either a plan or --measurements.")
    if measurements is not None:
        if any(one is not None for one in (confidential, ledger, who, why, as_checked)):
            raise typer.BadParameter(
                "Published measurements spend nothing: leave out --ledger, --who, --why, --confidential and "
                "--as-checked."
            )
        _from_measurements(measurements, out, given, report, as_json)
        return
    assert plan is not None
    if ledger is None and (who is not None or why is not None):
        raise typer.BadParameter("--who and --why are kept in a ledger: name one with --ledger.")
    mechanism = mechanisms.mechanism_of_plan(plan)
    if strange := [
        one.name for one in mechanism.options.get("release", ()) if one.of_measurements and one.name in given
    ]:
        raise typer.BadParameter(f"{strange[0]} goes with --measurements.")
    of_plan, options = chosen(mechanism, "release", given)
    work = options.get("work")
    _name_leftovers([out, confidential, work])
    read = mechanism.read_plan(plan, **of_plan)
    opened = None if ledger is None else Ledger.open(ledger, who=who, why=why)
    place = work or default_work(out)
    if mechanism.keeps_draws and mechanism.is_work(place):
        (note if as_json else print)(f"Continuing from the draw in {place}: nothing is spent again.")
    mechanism.warm_up()
    with _running():
        made = verbs.release(
            read, out=out, confidential=confidential, ledger=opened, as_checked=as_checked, report=report, **options
        )
    _print(made, out, as_json, _kept(confidential, work, opened), confidential, work, opened)


def _kept(confidential: Path | None, work: Path | None, ledger: Ledger | None) -> Iterator[str]:
    """Where else something of a release stands."""
    if confidential is not None:
        yield (
            f"The comparison with the true values is in {confidential}. It is confidential. Drawing again and choosing "
            "the best draw voids the guarantee."
        )
    if work is not None:
        yield f"The draw is kept in {work}: another release from it, with other tables to publish, spends nothing."
    if ledger is None:
        yield "Not recorded in a ledger; pass --ledger FILE (start one with: stirred ledger init FILE --dataset NAME)."
    else:
        yield counted(ledger)


def _from_measurements(measurements: Path, out: Path, given: Given, report: bool, as_json: bool) -> None:
    """Fit and write a release from measurements that others published."""
    from stirred.releases.steps import default_work

    mechanism = mechanisms.mechanism_of_measurements(measurements)
    _, options = chosen(mechanism, "release", given)
    work = options.pop("work", None)
    _name_leftovers([out, work])
    if mechanism.is_work(work or default_work(out)):
        (note if as_json else print)(f"Continuing from the measurements in {work or default_work(out)}.")
    mechanism.warm_up()
    with _running():
        made = verbs.release_measurements(measurements, out=out, work=work, report=report, **options)
    said = "Nothing was spent: the measurements are public, and the guarantee is that of those who drew them."
    _print(made, out, as_json, [said], work=work)


@contextmanager
def _running() -> Iterator[None]:
    """Show the stages of a run; if it fails, print what it has spent and left behind."""

    try:
        with OnTerminal():
            yield
    except BaseException as failure:
        for words in getattr(failure, "__notes__", ()):
            complain(words)
        raise


def _print(
    made: Release,
    out: Path,
    as_json: bool,
    said: Iterable[str],
    confidential: Path | None = None,
    work: Path | None = None,
    ledger: Ledger | None = None,
) -> None:
    """Print what was released; ``said`` is left out of JSON."""
    if as_json:
        kept = {"confidential": confidential, "work": work, "ledger": None if ledger is None else ledger.path}
        print_json(
            {
                "stirred_release": 1,
                "folder": str(out),
                "mechanism": made.draw.plan.mechanism,
                "plan_sha256": made.draw.plan.hash(),
                "summary": list(made.summary),
                "specification": json.loads(made.specification.to_json()),
                **{name: None if path is None else str(path) for name, path in kept.items()},
                "last_seal": None if ledger is None else ledger.seal,
            }
        )
        return
    first, *others = made.summary
    print(f"Released to {out}: {first}")
    for line in others:
        print(f"  {line}")
    _print_findings(made.specification, out)
    for line in (*said, f"Next: stirred verify {out}"):
        print(line)


def _name_leftovers(targets: list[Path | None]) -> None:
    from stirred.releases.folder.atomic import leftovers

    for folder in sorted({target.absolute().parent for target in targets if target is not None}):
        for left in leftovers(folder):
            complain(
                f"{left} was left by a run that was killed. It may hold confidential rows. Remove it with: "
                f"stirred leftovers {folder} --remove"
            )


def _print_findings(specification: Specification, out: Path) -> None:
    for finding in specification.findings:
        if finding.id.startswith(GRAVE):
            print(f"  finding {finding.id}: {finding.words}")
    if others := [finding.id for finding in specification.findings if not finding.id.startswith(GRAVE)]:
        print(f"  findings: {', '.join(others)}; stirred lint {out} explains them")


def demo(
    mechanism: Annotated[
        str, typer.Argument(help="The mechanism to show: swap, topdown or survey.", autocompletion=mechanism_names)
    ] = "swap",
    out: Annotated[
        Path | None, typer.Option(help="The folder to write; it must not exist yet. Default: stirred-demo-MECHANISM.")
    ] = None,
) -> None:
    """Generate data, check a plan and make a release from them: households of Massachusetts in 1940 (swap), the census
    of a county (topdown), or a weighted survey (survey)."""
    began, folder, shown = time.monotonic(), out or _free_name(f"stirred-demo-{mechanism}"), mechanisms.named(mechanism)
    plan = shown.prepare_demo(folder)
    with OnTerminal():
        made = verbs.release(plan, out=folder / "release")
    shown.show_demo(folder, made, began)


def _free_name(name: str) -> Path:
    """The name, with a number added if it exists."""
    return next(path for number in count(1) if not (path := Path(name + (f"-{number}" if number > 1 else ""))).exists())
