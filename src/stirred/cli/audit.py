"""``stirred audit``: does a program keep its promise, and what does a release betray?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stirred.cli.audit_exact import exact
from stirred.cli.audit_noise import noise

if TYPE_CHECKING:
    from stirred.audit.programs import Program
    from stirred.audit.results import Audit
    from stirred.releases.plans import Plan

app = typer.Typer(
    help="Test whether a program keeps the guarantee that it promises, and look for traces of the data in releases.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

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


@app.command("plan")
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


@app.command("program")
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
    from stirred.audit.auditing import command_program, python_program

    if (command is None) == (python is None):
        raise typer.BadParameter("name the program with either --command or --python.")
    read = _read(plan)
    made = python_program(read, python) if python is not None else None
    tried = made or command_program(read, command or "", seconds_of(timeout))
    _audit(read, tried, runs, time, false_alarm, confidence, as_json)


@app.command("release")
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
    from stirred.audit.results import FALSE_ALARM
    from stirred.audit.traces import audit_release
    from stirred.releases.progress import OnTerminal

    with OnTerminal() as progress:
        rate = FALSE_ALARM if false_alarm is None else false_alarm
        found = audit_release(release, _inputs(input), false_alarm=rate, progress=progress)
    show(found, as_json)


app.command("noise")(noise)
app.command("exact")(exact)


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
    from stirred import errors

    found = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*([smh]?)\s*", text)
    if found is None or float(found[1]) == 0:
        raise errors.audit_question(f"The time {text!r}", "must be written as 90s, 5m or 1h")
    return float(found[1]) * _SECONDS.get(found[2], 1)


def _read(path: Path) -> Plan:
    from stirred.verbs import mechanism_of_plan

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
    from stirred.audit.auditing import audit_plan
    from stirred.audit.results import FALSE_ALARM
    from stirred.releases.progress import OnTerminal

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
    from stirred import errors

    parts = [text.partition("=") for text in given]
    for text, (name, _, path) in zip(given, parts, strict=True):
        if not (name and path):
            raise errors.nothing_to_compare(f"of several inputs each is written as TABLE=FILE, and not {text!r}")
    return {name: Path(path) for name, _, path in parts}
