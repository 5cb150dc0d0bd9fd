"""Errors about audits of programs and of releases: what does not run, and what cannot be compared."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.errors.kinds import StirredError, listed


def not_audited(what: str, why: str) -> StirredError:
    return StirredError(
        "not-audited",
        f"{what} cannot be audited by running a program: {why}.",
        "Audit a plan without it; a release of it can be looked at for traces with stirred audit release.",
    )


def program_command(what: str) -> StirredError:
    return StirredError(
        "program-command",
        f"The command of the program cannot be used: {what}.",
        'Write it as "python swap.py {input} {output}": {input} and {output} stand for files, {input:persons} and '
        "{output:persons} for those of another table, {input.parquet} for a Parquet file.",
    )


def program_not_found(program: str) -> StirredError:
    return StirredError(
        "program-not-found",
        f"There is no program '{program}' that can be run.",
        "Give its path, or install it; the command is run as it is, without a shell.",
    )


def program_failed(how: str, said: Sequence[str], printed: bool = True) -> StirredError:
    """``said`` are the last lines that it printed, or else the words of its exception."""
    if printed:
        heading = "The last lines that it printed:" if said else "It printed nothing about the reason."
    else:
        heading = "It said:" if said else "It said nothing about the reason."
    return StirredError(
        "program-failed",
        f"The program failed on a file that the audit had made: {how}.",
        f"Correct it and audit again. {heading}",
        said,
    )


def program_hangs(seconds: float) -> StirredError:
    return StirredError(
        "program-hangs",
        f"The program did not end within {seconds:g} s, and was killed with everything that it had started.",
        "Correct it, or allow more time for each run with --timeout.",
    )


def program_wrote_nothing(table: str) -> StirredError:
    return StirredError(
        "program-wrote-nothing",
        f"The program ended without an error, and wrote nothing for the table '{table}'.",
        "It must write a table to the path that stands for {output} in its command.",
    )


def program_wrote_no_table(table: str, why: str) -> StirredError:
    return StirredError(
        "program-wrote-no-table",
        f"What the program wrote for the table '{table}' cannot be read as a table: {why}.",
        "It must write a CSV file with a header, or a Parquet file where the command says {output.parquet}; a Python "
        "function must return a mapping from names of tables to frames.",
    )


def program_other_columns(table: str, missing: Sequence[str], strange: Sequence[str]) -> StirredError:
    found = []
    if missing:
        found.append(f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    if strange:
        found.append(f"{listed(strange)} should not be there")
    return StirredError(
        "program-other-columns",
        f"The program wrote other columns for the table '{table}' than it should: {'; '.join(found)}.",
        "It must write every column of its input that the plan releases, under the same name, and no other.",
    )


def program_not_callable(name: str, why: str) -> StirredError:
    return StirredError(
        "program-not-callable",
        f"'{name}' is not a Python function that can be run: {why}.",
        "Write it as module:function. The module must be importable from here: add its folder to PYTHONPATH.",
    )


def nothing_released(path: object) -> StirredError:
    return StirredError(
        "nothing-released",
        f"There is no release at {path}: no folder and no file.",
        "Name a release folder, or a released file.",
    )


def nothing_to_compare(why: str) -> StirredError:
    return StirredError(
        "nothing-to-compare",
        f"The release cannot be compared with the input: {why}.",
        "Name the file that the release was made from with --input FILE, or --input TABLE=FILE for each of several.",
    )
