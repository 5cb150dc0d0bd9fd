"""The commands of the laboratory: ``stirred audit``, ``stirred study`` and ``stirred reproduce``.

They add themselves to the command line: :func:`register` is called when one of these words is typed.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stirred import errors
from stirred.cli.help_texts import as_epilog
from stirred.cli.options import Paper, computing
from stirred.lab.audit.results import FALSE_ALARM

if TYPE_CHECKING:
    from stirred.lab.audit.laws import NoiseLaw
    from stirred.lab.audit.programs import Program
    from stirred.lab.audit.results import Audit
    from stirred.releases.plans import Plan

PlanFile = Annotated[Path, typer.Argument(help="The plan, a TOML file. Its data are not read.")]
Runs = Annotated[
    int | None,
    typer.Option(help="How often the program is run for each question. Default: chosen for the plan.", min=2),
]
Time = Annotated[
    str | None,
    typer.Option("--time", help="About how long the audit may take, such as 90s, 5m or 1h; takes the place of --runs."),
]
FalseAlarm = Annotated[
    float | None,
    typer.Option(
        help="The largest probability with which a program that keeps its promise may be reported as wrong. "
        "Default: one in a million."
    ),
]
Confidence = Annotated[
    float, typer.Option(help="The confidence level of the lower bounds on the privacy loss that are printed.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON; stirred docs json lists its fields.")]

_SECONDS = {"s": 1, "m": 60, "h": 3600}


def register(app: typer.Typer) -> None:
    """Add the commands of the laboratory to ``app``, each with its line in the list of commands and its example."""
    audit = typer.Typer(
        help="Test whether a program keeps the guarantee that it promises, and look for traces of the data in "
        "releases.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for command, summary, example in (
        (plan, "Test stirred's own program for a plan.", "plan plan.toml --time 5m"),
        (
            program,
            "Test another program against a plan.",
            "program plan.toml --command 'python swap.py {input} {output}' --runs 200",
        ),
        (release, "Look for traces of the data in a release.", "release release --input households.csv"),
        (noise, "Test random numbers against a distribution.", "noise draws.txt --law gaussian --sigma2 10"),
        (exact, "Compute the exact loss of a swap of one stratum.", "exact --held 10,10 --swapped 5,5,10 --rate 0.05"),
    ):
        audit.command(command.__name__, short_help=summary, epilog=as_epilog(f"stirred audit {example}"))(
            computing(command)
        )
    app.add_typer(audit, name="audit", epilog=as_epilog("stirred audit release release --input households.csv"))
    app.command("study", epilog=as_epilog("stirred study study.toml --draws 5 --out compared"))(computing(study))
    app.command("reproduce", epilog=as_epilog("stirred reproduce thesis/table-3.2"))(computing(reproduce))


def plan(
    plan: PlanFile,
    runs: Runs = None,
    time: Time = None,
    false_alarm: FalseAlarm = None,
    confidence: Confidence = 0.95,
    as_json: AsJson = False,
) -> None:
    """Test stirred's own program for a plan: whether its outputs have the right probabilities, and whether it keeps its
    guarantee on the pairs of inputs that are hardest to protect.

    The inputs are invented; no data are read. Exits with 1 if anything is wrong.
    """
    _audit(_read(plan), None, runs, time, false_alarm, confidence, as_json)


def program(
    plan: PlanFile,
    command: Annotated[
        str | None,
        typer.Option(
            help="The program as a command line, such as 'python swap.py {input} {output}'. {input} and {output} are "
            "replaced by paths of CSV files, {input:persons} and {output:persons} by those of another table, "
            "{input.parquet} by a Parquet file."
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            help="The program as a Python function, written module:function, that takes tables and returns tables."
        ),
    ] = None,
    runs: Runs = None,
    time: Time = None,
    timeout: Annotated[
        str, typer.Option(help="How long one run of --command may take before it is ended, such as 60s.")
    ] = "60s",
    false_alarm: FalseAlarm = None,
    confidence: Confidence = 0.95,
    as_json: AsJson = False,
) -> None:
    """Test a program that you or others wrote: whether its outputs have the probabilities that the plan prescribes, and
    whether it keeps the guarantee.

    The program is run on invented files, never on data. Exits with 1 if anything is wrong.
    """
    from stirred.lab.audit.plan_audit import command_program, python_program

    if (command is None) == (python is None):
        raise typer.BadParameter("name the program with either --command or --python.")
    read = _read(plan)
    made = python_program(read, python) if python is not None else None
    tried = made or command_program(read, command or "", seconds_of(timeout))
    _audit(read, tried, runs, time, false_alarm, confidence, as_json)


def release(
    release: Annotated[
        Path, typer.Argument(help="A release folder or a released file, made by stirred or by another program.")
    ],
    input: Annotated[
        list[str],
        typer.Option(
            help="The confidential file from which the release was made; for several tables, TABLE=FILE. Repeatable."
        ),
    ],
    false_alarm: Annotated[
        float | None,
        typer.Option(
            help="The largest probability with which an order of rows or ids without a trace may be reported. "
            "Default: one in a million."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look for traces of the confidential file in a release: order of rows, ids, metadata, names and paths, forgotten
    files.

    What it prints is confidential. Exits with 1 if anything is found.
    """
    from stirred._progress import OnTerminal
    from stirred.lab.audit.traces import audit_release

    with OnTerminal() as progress:
        rate = FALSE_ALARM if false_alarm is None else false_alarm
        found = audit_release(release, _inputs(input), false_alarm=rate, progress=progress)
    show(found, as_json)


class LawName(StrEnum):
    """Laws that draws can be audited against."""

    gaussian = "gaussian"
    laplace = "laplace"
    integers = "integers"
    coin = "coin"


def noise(
    law: Annotated[LawName, typer.Option(help="The distribution that the random numbers should have.")],
    file: Annotated[
        str | None,
        typer.Argument(
            help="The random numbers: a text file with one number on each line ('-' reads standard input), or a table "
            "with --column."
        ),
    ] = None,
    sigma2: Annotated[
        str | None,
        typer.Option(help="With --law gaussian: the parameter sigma^2 of the discrete Gaussian, such as 10 or 3/7."),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(help="With --law laplace: the scale of the discrete Laplace distribution, such as 2 or 3/7."),
    ] = None,
    below: Annotated[
        str | None, typer.Option(help="With --law integers: they are uniform from 0 to this number minus 1.")
    ] = None,
    probability: Annotated[
        str | None, typer.Option(help="With --law coin: the probability of a 1, such as 1/20.")
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column with the random numbers, if FILE is a table.")] = None,
    own: Annotated[
        int | None, typer.Option(help="In place of FILE: test stirred's own sampler with this number of draws.", min=1)
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            help="In place of FILE: test a program that prints one number on each line. It is run twice, to detect a "
            "fixed seed."
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help="With --command: the longest time that a run may take, in seconds.", min=0.1)
    ] = 600.0,
    false_alarm: Annotated[
        float, typer.Option(help="The probability with which a correct sampler is reported as wrong.")
    ] = FALSE_ALARM,
    as_json: AsJson = False,
) -> None:
    """Test random numbers: whether they have the distribution that they should have, and whether they depend on each
    other.

    Ends with how large an error this number of draws can detect. Exits with 1 if something is wrong.
    """
    if sum(given is not None for given in (file, own, command)) != 1:
        raise errors.audit_question("What is audited", "must be one of FILE, --own or --command")
    if column is not None and (file is None or file == "-"):
        raise errors.audit_question("--column", "must go with a FILE that is a table")
    chosen = _law(law, {"sigma2": sigma2, "scale": scale, "below": below, "probability": probability})
    show(_audited(chosen, file, column, own, command, seconds, false_alarm), as_json)


_PARAMETERS = {"gaussian": "sigma2", "laplace": "scale", "integers": "below", "coin": "probability"}


def _law(name: LawName, given: dict[str, str | None]) -> NoiseLaw:
    from stirred.lab.audit import laws

    wanted = _PARAMETERS[name]
    if [key for key, value in given.items() if value is not None] != [wanted]:
        raise errors.audit_question(f"The law '{name}'", f"must have --{wanted}, and no parameter of another law")
    made: NoiseLaw = getattr(laws, name)(given[wanted])
    return made


def _audited(
    law: NoiseLaw, file: str | None, column: str | None, own: int | None, command: str | None, seconds: float,
    false_alarm: float,
) -> Audit:  # fmt: skip
    import numpy as np

    from stirred.lab.audit.noise_audit import audit_noise, printed_draws, read_draws

    if file is not None:
        return audit_noise(read_draws(file, column), law, false_alarm=false_alarm)
    if own is not None:
        audit = audit_noise(law.draw(own), law, false_alarm=false_alarm)
        return replace(audit, about=(*audit.about, "They were drawn by stirred's own sampler, for this audit."))
    assert command is not None
    runs = [printed_draws(command, seconds) for _ in range(2)]
    audit = audit_noise(np.concatenate(runs), law, false_alarm=false_alarm)
    told = f"The first {len(runs[0]):,} are of one run of the program, the others of a second run."
    return replace(audit, runs=2, about=(*audit.about, told))


def exact(
    held: Annotated[
        str, typer.Option(help="The number of records with each value of the held variables, such as 10,10.")
    ],
    swapped: Annotated[
        str, typer.Option(help="The number of records with each value of the swapped variables, such as 5,5,10.")
    ],
    rate: Annotated[str, typer.Option(help="The swap rate, such as 0.05 or 1/20.")],
    as_json: AsJson = False,
) -> None:
    """Compute the exact privacy loss of a swap of one stratum (records with equal match variables), and compare it with
    the epsilon of the theorem. Needs counts only; no data are read."""
    from stirred.lab.audit.exact_loss import exact_audit

    audit = exact_audit(_totals("--held", held), _totals("--swapped", swapped), rate)
    sys.stdout.write(audit.to_json() if as_json else f"{audit}\n")


def _totals(option: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise errors.audit_question(option, "must be whole numbers with commas between them, such as 10,10") from None


def show(found: Audit, as_json: bool) -> None:
    """Print an audit, and end with exit code 1 if it found something wrong."""
    print(found.to_json() if as_json else found)
    if not found.passed:
        raise typer.Exit(1)


def seconds_of(text: str) -> float:
    """The seconds that ``90s``, ``5m`` or ``1h`` stand for.

    >>> seconds_of("90s"), seconds_of("5m"), seconds_of("0.5h"), seconds_of("20")
    (90.0, 300.0, 1800.0, 20.0)
    """
    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([smh]?)\s*", text)
    if found is None or float(found[1]) == 0:
        raise errors.audit_question(f"The time {text!r}", "must be written as 90s, 5m or 1h")
    return float(found[1]) * _SECONDS.get(found[2], 1)


def _read(path: Path) -> Plan:
    from stirred.mechanisms import mechanism_of_plan

    return mechanism_of_plan(path).read_plan(path)


def _audit(
    plan: Plan,
    program: Program | None,
    runs: int | None,
    time: str | None,
    false_alarm: float | None,
    confidence: float,
    as_json: bool,
) -> None:
    from stirred._progress import OnTerminal
    from stirred.lab.audit.plan_audit import audit_plan

    if runs is not None and time is not None:
        raise typer.BadParameter("give either --runs or --time.")
    with OnTerminal() as progress:
        found = audit_plan(
            plan,
            program=program,
            runs=runs,
            seconds=seconds_of(time) if time is not None else None,
            false_alarm=FALSE_ALARM if false_alarm is None else false_alarm,
            confidence=confidence,
            progress=progress,
        )
    show(found, as_json)


def _inputs(given: list[str]) -> Path | dict[str, Path]:
    """``persons=persons.csv`` as a table and a path; a path alone, if it is the only one, has no table's name."""
    if len(given) == 1 and ("=" not in given[0] or Path(given[0]).exists()):
        return Path(given[0])
    parts = [text.partition("=") for text in given]
    for text, (name, _, path) in zip(given, parts, strict=True):
        if not (name and path):
            raise errors.nothing_to_compare(f"of several inputs each is written as TABLE=FILE, and not {text!r}")
    return {name: Path(path) for name, _, path in parts}


def study(
    file: Annotated[Path, typer.Argument(metavar="STUDY", help="The study, a TOML file (stirred docs studies).")],
    plans: Annotated[list[Path] | None, typer.Argument(help="Further plans to compare in the study.")] = None,
    draws: Annotated[
        int | None,
        typer.Option(help="How often each plan and swapping method is drawn. Default: as the study file says.", min=1),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write the study as text, JSON and CSV into this new folder.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also save a figure of the comparison (PNG and SVG) into this new folder.")
    ] = None,
    paper: Paper = False,
    as_json: AsJson = False,
) -> None:
    """Compare plans and other swapping methods on one dataset, from several draws of each: the guarantee, how many
    records move, what published counts reveal, and errors of tables.

    What it prints is confidential. Nothing is released.
    """
    from stirred._progress import OnTerminal
    from stirred.cli.options import check_new, save_pictures
    from stirred.lab.study import read_study, run_study

    check_new(out, figures=figures, paper=paper)
    read = read_study(file, plans or ())
    with OnTerminal() as progress:
        found = run_study(read, draws=draws, progress=progress)
    if out is not None:
        found.write(out)
    if figures is not None:
        save_pictures(found.pictures(), figures, paper=paper)
    sys.stdout.write(found.to_json() if as_json else str(found))


def reproduce(
    item: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to compute: a document (thesis), a table or figure (thesis/table-3.2), one number, or a pattern "
            "with *. Default: everything."
        ),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also save the figures (PNG and SVG) into this new folder.")
    ] = None,
    paper: Paper = False,
    as_json: AsJson = False,
) -> None:
    """Compute the numbers and figures of the published papers again, and say of each whether it agrees.

    Everything takes about a minute. Exits with 1 if a number differs from what is published and no known misprint
    explains it.
    """
    from stirred._progress import OnTerminal
    from stirred.cli.options import check_new, save_pictures
    from stirred.cli.printing import note
    from stirred.lab.reproduce.verdicts import reproduce as computed

    check_new(figures=figures, paper=paper)
    with OnTerminal() as progress:
        result = computed(
            item or (), lambda done, total, name: progress.stage(f"{name}: {done + 1} of {total}", done / total)
        )
    sys.stdout.write(result.to_json() if as_json else result.text())
    if figures is not None and result.pictures:
        save_pictures(result.pictures, figures, paper=paper)
    elif figures is not None:
        note("none of these items is a figure, so no folder was made")
    if not result.holds:
        raise typer.Exit(1)
