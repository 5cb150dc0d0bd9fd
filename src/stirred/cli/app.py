"""The command ``stirred``: puts all commands together, and prints errors.

An error meant for users is printed without a traceback, and the exit code is 2. An unexpected error prints where it
happened, but not its text, which may quote the data, and the exit code is 1; ``STIRRED_DEBUG=1`` shows everything.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import typer

import stirred
from stirred import mechanisms
from stirred.cli import (
    check,
    compare,
    demo,
    deployments,
    docs,
    estimate,
    explain,
    init,
    ledger,
    leftovers,
    limits,
    lint,
    registry,
    release,
    sign,
    tabulate,
    verify,
)
from stirred.cli.options import of_verb, with_options
from stirred.errors import StirredError
from stirred.releases.folder import Terminated

_STOPPED = 130
_STOPPED_WORDS = "stirred: interrupted. Partial files were removed; a release folder that exists is complete."


def build() -> typer.Typer:
    """All commands, with the options and commands that each mechanism adds."""
    app = typer.Typer(
        name="stirred",
        help="Publish data under differential privacy with invariants, and explain what the guarantee means.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.command("init")(with_options(init.init, "init"))
    app.command("check")(with_options(check.check, "check"))
    app.command("release")(with_options(release.release, "release"))
    app.command("sign")(sign.sign)
    app.command("verify")(verify.verify)
    app.command("tabulate")(tabulate.tabulate)
    app.command("estimate")(with_options(estimate.estimate, "estimate"))
    app.command("compare")(compare.compare)
    app.command("explain")(explain.explain)
    app.command("limits")(limits.limits)
    app.command("lint")(lint.lint)
    app.command("deployments")(deployments.deployments)
    app.add_typer(ledger.app, name="ledger")
    app.add_typer(registry.app, name="registry")
    app.command("leftovers")(leftovers.leftovers)
    app.command("demo")(demo.demo)
    app.command("docs")(docs.docs)
    for mechanism in mechanisms.every():
        for verb in mechanism.verbs:
            app.command(verb.name)(of_verb(verb))
    app.callback(invoke_without_command=True)(options)
    return app


def options(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Options of ``stirred`` itself, before any command."""
    if version:
        print(stirred.__version__)
        raise typer.Exit


def main() -> None:
    """Entry point of the console script."""
    try:
        build()(standalone_mode=True)
    except StirredError as refusal:
        print(f"stirred: {refusal}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as ending:
        if ending.code == _STOPPED:  # typer's way of passing on Ctrl-C
            print(_STOPPED_WORDS, file=sys.stderr)
        raise
    except (KeyboardInterrupt, Terminated):
        print(_STOPPED_WORDS, file=sys.stderr)
        sys.exit(_STOPPED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as fault:
        if os.environ.get("STIRRED_DEBUG"):
            raise
        place, line = _place_of(fault)
        print(
            f"stirred: unexpected {type(fault).__name__} in {place}, line {line}. This is a fault in stirred: please "
            "report it. Partial files were removed. The error's text is not shown because it may quote the data; set "
            "STIRRED_DEBUG=1 to see it.",
            file=sys.stderr,
        )
        sys.exit(1)


def _place_of(fault: BaseException) -> tuple[str, int | None]:
    """The innermost line of this package that ``fault`` came through: its path inside the package, and its number."""
    package = Path(stirred.__file__).parent
    frames = traceback.extract_tb(fault.__traceback__)
    where = [frame for frame in frames if Path(frame.filename).is_relative_to(package)][-1]
    return Path(where.filename).relative_to(package).as_posix(), where.lineno
