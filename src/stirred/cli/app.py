"""The command ``stirred``: puts all commands together, prints errors, and decides how the process exits.

An error meant for users is printed without a traceback, and the exit code is 2. An unexpected error prints where it
happened, but not its text, which may quote the data, and the exit code is 3; ``STIRRED_DEBUG=1`` shows everything.
docs/exit-codes.md lists all exit codes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from stirred import mechanisms
from stirred.cli import (
    about,
    deployments,
    drawing,
    estimating,
    guarantees,
    ledger,
    planning,
    verifying,
)
from stirred.cli.about import bill_of_materials, bill_text
from stirred.cli.help_texts import EXAMPLES, HelpOfGroup, add_examples, as_epilog
from stirred.cli.options import computing, of_verb, with_options
from stirred.cli.printing import Printed, complain, note, print_json
from stirred.errors import StirredError
from stirred.errors.kinds import place_of
from stirred.releases.folder.atomic import Terminated

FINE, VERDICT, REFUSED, FAULT, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: done; done, and what was asked about does not hold; not done, for a reason; a fault of ours; stopped.
``verify`` has three more (``cli/verifying.py``)."""
_CODES = (
    "Exit codes: 0 done; 1 done, and the answer is no (something does not hold, is wrong, or is left over); 2 refused, "
    "with the reason; 3 a fault in stirred; 4 verify: nothing contradicts, but not everything was compared; 5 verify: "
    "could not be checked; 6 verify: withdrawn; 130 interrupted. See: stirred docs exit-codes"
)
_SYSTEM = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOSPC, errno.EROFS, errno.EMFILE,
           errno.ENFILE, errno.EIO, errno.ENOMEM, errno.ESTALE, errno.ETIMEDOUT)  # fmt: skip
"""What an operating system may refuse for a reason outside of this program."""
LABORATORY = {"audit", "reproduce", "study"}
"""Commands that ``stirred.lab.commands`` adds: the one place where the product loads something of the laboratory."""
_STOPPED_WORDS = "interrupted. Partial files were removed; a release folder that exists is complete."


def build(words: Sequence[str] | None = None) -> typer.Typer:
    """All commands, with the options and commands that each mechanism adds.

    The laboratory adds its commands itself, and is loaded if one of them is among ``words``, the command line.
    Otherwise they stand in the list of commands only. Without ``words`` all commands are there.
    """
    app = typer.Typer(
        name="stirred",
        cls=HelpOfGroup,
        help="Publish data under differential privacy with invariants, and explain what the guarantee means.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        epilog=f"{as_epilog('stirred demo')}\n\n{_CODES}",
    )
    app.command("init")(with_options(planning.init, "init"))
    app.command("check")(with_options(planning.check, "check"))
    app.command("calibrate")(with_options(planning.calibrate, "calibrate"))
    app.command("release")(with_options(drawing.release, "release"))
    app.command("sign")(computing(verifying.sign))
    app.command("verify")(computing(verifying.verify))
    app.command("tabulate")(computing(verifying.tabulate))
    app.command("estimate")(with_options(estimating.estimate, "estimate"))
    app.command("compare")(guarantees.compare)
    app.command("explain")(guarantees.explain)
    app.command("report")(with_options(guarantees.report, "report"))
    app.command("limits")(guarantees.limits)
    app.command("responses")(estimating.responses)
    app.command("lint")(guarantees.lint)
    app.add_typer(planning.app, name="plan")
    if words is None or "_STIRRED_COMPLETE" in os.environ or not LABORATORY.isdisjoint(words):
        import_module("stirred.lab.commands").register(app)
    else:
        for name in sorted(LABORATORY):
            app.command(name)(_not_loaded)
    app.command("deployments")(deployments.deployments)
    app.command("context")(planning.context)
    app.add_typer(ledger.app, name="ledger")
    app.add_typer(deployments.app, name="registry")
    app.command("leftovers")(verifying.leftovers)
    app.command("demo")(computing(drawing.demo))
    app.command("docs")(about.docs)
    for mechanism in mechanisms.every():
        for verb in mechanism.verbs:
            app.command(verb.name)(of_verb(verb))
    added = {verb.name: verb.example for mechanism in mechanisms.every() for verb in mechanism.verbs if verb.example}
    add_examples(app, {**added, **EXAMPLES})
    app.callback(invoke_without_command=True)(options)
    return app


def _not_loaded() -> None:
    """Stands in the list of commands for a command of the laboratory that was not typed."""


def options(
    version: bool = typer.Option(
        False, "--version", help="Print the version, and those of libraries and file formats, and exit."
    ),
    as_json: bool = typer.Option(False, "--json", help="With --version: print them as JSON."),
) -> None:
    """Options of ``stirred`` itself, before any command."""
    if version:
        if as_json:
            print_json(bill_of_materials())
        else:
            print(bill_text(bill_of_materials()))
        raise typer.Exit
    if as_json:
        raise typer.BadParameter("before a command, --json goes with --version only; put it after the command.")


def main() -> None:
    """Entry point of the console script."""
    with contextlib.redirect_stdout(Printed(sys.stdout)):
        code = _run()
        sys.stdout.flush()
    sys.exit(code)


def _run() -> int:
    """Run the command that was typed, say what went wrong if anything did, and give its exit code."""
    try:
        build(sys.argv[1:])(prog_name="stirred", standalone_mode=True)
    except SystemExit as ending:
        if ending.code == INTERRUPTED:  # typer's way of passing on Ctrl-C
            complain(_STOPPED_WORDS)
        return ending.code if isinstance(ending.code, int) else 0 if ending.code is None else REFUSED
    except StirredError as refusal:
        complain(f"{refusal.problem} {refusal.remedy}")
        for pasted in refusal.lines:
            note(f"  {pasted}")
        return REFUSED
    except (KeyboardInterrupt, Terminated):
        complain(_STOPPED_WORDS)
        return INTERRUPTED
    except BaseException as fault:  # a panic of Polars is no Exception
        if isinstance(fault, MemoryError):
            complain("the memory of this machine is not enough. Partial files were removed.")
            return REFUSED
        if isinstance(fault, OSError) and fault.errno in _SYSTEM:
            complain(f"the operating system refused: {fault.strerror}: {fault.filename or 'no file named'}.")
            return REFUSED
        if os.environ.get("STIRRED_DEBUG"):
            raise
        place, line = place_of(fault)
        complain(
            f"unexpected {type(fault).__name__} in {place}, line {line}. This is a fault in stirred: please "
            "report it. Partial files were removed. The error's text is not shown because it may quote the data; set "
            "STIRRED_DEBUG=1 to see it."
        )
        return FAULT
    return FINE
