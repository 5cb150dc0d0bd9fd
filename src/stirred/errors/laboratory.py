"""Errors of the laboratory: audits of programs, of releases and of noise, studies, and simulated swappers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from stirred.errors.kinds import StirredError, StudyError, listed


def audit_question(what: str, must: str) -> StirredError:
    return StirredError(
        "audit-question",
        f"{what} {must}.",
        "Change that and run the audit again; docs/audits.md has examples (stirred docs audits).",
    )


def audit_runs(which: str, problem: str) -> StirredError:
    return StirredError(
        "audit-runs",
        f"The runs on the {which} input {problem}.",
        "Give one output for each run, as a list of numbers, texts or tuples, and at least two runs.",
    )


def stratum_too_large(needs: str, most: str) -> StirredError:
    return StirredError(
        "stratum-too-large",
        f"The exact loss of this stratum takes too long to compute: it has {needs}; at most {most} can be done.",
        "Take a smaller stratum or merge categories; the theorem's epsilon holds for strata of every size.",
    )


def audit_of_plan(what: str) -> StirredError:
    return StirredError(
        "audit-of-plan",
        f"This audit does not know the probabilities of a swap with {what}.",
        "Audit a plan with rates between 0 and 1, a held column and a match column, and files that are not flat.",
    )


def audit_no_table(name: str, given: Iterable[str]) -> StirredError:
    names = sorted(given)
    return StirredError(
        "audit-no-table",
        f"The program gave no table called '{name}', but {listed(names) if names else 'none at all'}.",
        "Let it give back every table that it is given, under the same name.",
    )


def draws_line(where: str, line: int) -> StirredError:
    return StirredError(
        "draws-line",
        f"Line {line:,} of {where} is not a number.",
        "Give one number on each line; for a table with named columns, say which one with --column.",
    )


def draws_column(names: Sequence[str]) -> StirredError:
    return StirredError(
        "draws-column",
        f"The file is a table with the columns {listed(names)}, and which of them has the random numbers is not said.",
        "Name it with --column.",
    )


def draws_not_numbers(column: str) -> StirredError:
    return StirredError(
        "draws-not-numbers", f"The column '{column}' is not all numbers.", "Give a column of numbers, none missing."
    )


def draws_command(command: str, problem: str) -> StirredError:
    return StirredError(
        "draws-command",
        f"The program '{command}' gave no draws: {problem}.",
        "It must print one number on each line, and end with exit code 0.",
    )


def audit_measurements(problem: str) -> StirredError:
    return StirredError(
        "audit-measurements",
        f"What the program wrote are no measurements: {problem}.",
        "It must give a table 'measurements' with the columns table, level, geounit, query, cell and value.",
    )


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


def study_parameter(name: str, problem: str, remedy: str) -> StudyError:
    """``name`` may be several names, with commas between them; the verb of the problem is then a plural."""
    *first, last = name.split(", ")
    named = f"The parameters {', '.join(first)} and {last}" if first else f"The parameter {last}"
    return StudyError("study-parameter", f"{named} {problem}.", f"{remedy[0].upper()}{remedy[1:]}.")


def study_file(path: Path, problems: Sequence[str]) -> StudyError:
    return StudyError(
        "study-file",
        f"{path} is not a study that can be run: {'; '.join(problems).removesuffix('.')}.",
        "See docs/studies.md (stirred docs studies) for the fields of a study.",
    )


def nothing_to_study() -> StudyError:
    return StudyError(
        "study-parameter",
        "The study names no plan and no swapper.",
        "Name at least one under [[plan]] or [[swapper]], or a plan after the study.",
    )


def study_column(table: str, column: str, known: Sequence[str]) -> StudyError:
    return StudyError(
        "study-column",
        f"The study names the column '{column}', which the table '{table}' does not have.",
        f"Name some of {listed(known)}.",
    )


def study_part(name: str, problem: StirredError) -> StudyError:
    return StudyError("study-part", f"'{name}' cannot be studied: {problem.problem}", problem.remedy)


def study_too_large(table: str, cells: int, most: int) -> StudyError:
    return StudyError(
        "study-too-large",
        f"The table by {table} has {cells:,} cells in all draws together; {most:,} are the most.",
        "Ask for a coarser table, or for fewer draws.",
    )
