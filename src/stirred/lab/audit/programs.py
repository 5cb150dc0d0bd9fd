"""Runs a program that somebody else wrote: a command line with files in and files out, or a Python function.

A *program* is a callable that takes tables by name and gives tables by name. Here are the two that are named on a
command line. Whatever goes wrong with a run is one of the errors ``program_...``.

The invariant a reader must know: every run has a private folder of its own, which is gone when the run ends, however
it ends; and nothing that the run started is left running. Only files that an audit has made are given to a program, so
what it prints may be shown.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shlex
import shutil
import signal
import subprocess  # nosec B404 # runs the command that the user names, with a list of arguments and no shell
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import IO, Any

import polars as pl

from stirred import errors
from stirred.releases.folder.atomic import ending_cleanly
from stirred.tables import Input, InputOptions, open_input

Tables = Mapping[str, pl.DataFrame]
Program = Callable[[Tables], Tables]

_PLACEHOLDER = re.compile(r"\{(input|output)(?::([A-Za-z][\w -]*))?(?:\.(csv|parquet))?\}")
_KEPT_BYTES = 1 << 16
"""How much of what a program prints is kept: the last of it."""
_SHOWN_LINES = 12
_TYPES = {pl.Boolean: "boolean", pl.Date: "date", pl.Float32: "number", pl.Float64: "number"}


@dataclass(frozen=True)
class Columns:
    """Which columns a program writes: those of the input of the same name, but for some that are ``left_out``.

    ``numbers`` are columns that hold numbers in tables that are no input; CSV files do not say so. ``tables`` are those
    that it must write.
    """

    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    numbers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tables: tuple[str, ...] = ()

    def require(self, given: Tables, made: Tables) -> None:
        """Raise if a table is missing, or has other columns than it should."""
        for name in self.tables:
            if name not in made:
                raise errors.program_wrote_nothing(name)
        for name in (one for one in made if one in given):
            wanted = [one for one in given[name].columns if one not in self.left_out.get(name, ())]
            missing = [one for one in wanted if one not in made[name].columns]
            strange = [one for one in made[name].columns if one not in wanted]
            if missing or strange:
                raise errors.program_other_columns(name, missing, strange)

    def types(self, name: str, given: Tables) -> dict[str, str]:
        """The types of the columns of a table, where they are not text."""
        if name not in given:
            return dict.fromkeys(self.numbers.get(name, ()), "number")
        told = {column: _type(kind) for column, kind in given[name].schema.items()}
        return {column: kind for column, kind in told.items() if kind is not None}


@dataclass(frozen=True)
class CommandProgram:
    """A program that is run by its command line, once for each call: files in, files out.

    Parameters
    ----------
    command
        The command, such as ``"python swap.py {input} {output}"``. ``{input}`` and ``{output}`` become paths of CSV
        files, ``{input:persons}`` and ``{output:persons}`` those of another table, and ``{input.parquet}`` or
        ``{output:persons.parquet}`` paths of Parquet files. No shell reads it.
    seconds
        How long one run may take; then it is killed, with everything that it started.
    names
        The tables that ``{input}`` and ``{output}`` stand for.
    columns
        Which columns it writes.

    Examples
    --------
    >>> copy = CommandProgram("cp {input} {output}")
    >>> copy({"records": pl.DataFrame({"size": [2, 3]})})["records"]["size"].to_list()
    [2, 3]
    """

    command: str
    seconds: float = 60.0
    names: tuple[str, str] = ("records", "records")
    columns: Columns = field(default_factory=Columns)

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise errors.audit_question("The time for one run", "must be above 0 seconds")
        asked = {found[1] for argument in self._arguments() for found in _PLACEHOLDER.finditer(argument)}
        for word in ("input", "output"):
            if word not in asked:
                raise errors.program_command(f"{{{word}}} is nowhere in it")

    def __call__(self, tables: Tables) -> Tables:
        """Run it once."""
        with ending_cleanly(), TemporaryDirectory(prefix="stirred-audit-", ignore_cleanup_errors=True) as private:
            arguments, inputs, outputs = self._placed(Path(private))
            for name, path in inputs.items():
                if name not in tables:
                    raise errors.program_command(f"the plan has no table '{name}', only {errors.listed(tables)}")
                _write(tables[name], path)
            self._run(arguments)
            made = {name: _read(name, path, self.columns.types(name, tables)) for name, path in outputs.items()}
        self.columns.require(tables, made)
        return made

    def _arguments(self) -> list[str]:
        try:
            arguments = shlex.split(self.command)
        except ValueError:
            raise errors.program_command("a quotation mark is not closed") from None
        if not arguments:
            raise errors.program_command("it is empty")
        for argument in arguments:
            if wrong := re.search(r"\{(?:input|output)[^}]*\}", _PLACEHOLDER.sub("", argument)):
                raise errors.program_command(f"{wrong[0]} stands for nothing")
        return arguments

    def _placed(self, folder: Path) -> tuple[list[str], dict[str, Path], dict[str, Path]]:
        """The arguments with paths in a folder, and the path of each table that is read and written."""
        places: dict[str, dict[str, Path]] = {"input": {}, "output": {}}

        def place(found: re.Match[str]) -> str:
            way, name, kind = found[1], found[2] or self.names[found[1] == "output"], found[3] or "csv"
            path = folder / way / f"{name}.{kind}"
            if places[way].setdefault(name, path) != path:
                raise errors.program_command(f"the table '{name}' is asked for as CSV and as Parquet")
            return str(path)

        arguments = [_PLACEHOLDER.sub(place, argument) for argument in self._arguments()]
        for way in places:
            (folder / way).mkdir()
        return arguments, places["input"], places["output"]

    def _run(self, arguments: Sequence[str]) -> None:
        program = shutil.which(arguments[0])
        if program is None:
            raise errors.program_not_found(arguments[0])
        started, printed, said = None, None, []
        try:
            with _uninterrupted():  # or nobody would know of a process that has just been started
                started = start([program, *arguments[1:]])
            assert started.stdout is not None
            printed = _LastBytes(started.stdout)
            code = started.wait(self.seconds)
        except OSError:
            raise errors.program_not_found(arguments[0]) from None
        except subprocess.TimeoutExpired:
            raise errors.program_hangs(self.seconds) from None
        finally:  # also at Ctrl-C, which does not reach another session
            if started is not None:
                end(started)
            if printed is not None:
                said = printed.lines()
        if code != 0:
            how = f"it ended with exit code {code}" if code > 0 else f"it was ended by signal {-code}"
            raise errors.program_failed(how, said)


def start(arguments: Sequence[str], errors_to: int | IO[bytes] = subprocess.STDOUT) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that all of it can be ended together."""
    return subprocess.Popen(  # nosec B603 # a list of arguments, no shell: what the user asked to be run
        list(arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors_to,
        start_new_session=True,
    )


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let signals that end a run wait until the block is done; in other threads than the first none arrive."""
    came: list[tuple[int, FrameType | None]] = []
    previous: dict[int, Any] = {}
    with contextlib.suppress(ValueError):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            previous[number] = signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for one, handler in previous.items():
            signal.signal(one, handler)
        for one, frame in came:
            if callable(previous[one]):
                previous[one](one, frame)


class _LastBytes:
    """Reads a pipe to its end in a thread, and keeps the last of it."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe, self._kept = pipe, b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._pipe:
            while part := os.read(self._pipe.fileno(), _KEPT_BYTES):
                self._kept = (self._kept + part)[-_KEPT_BYTES:]

    def lines(self) -> list[str]:
        """The last lines that were printed."""
        self._thread.join(1.0)  # a process that has left its session may hold the pipe open
        printed = self._kept.decode("utf-8", "replace").splitlines()
        return [line for line in printed if line.strip()][-_SHOWN_LINES:]


def end(started: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a run: the program itself, and all processes of its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


# -- Python functions ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FunctionProgram:
    """A program that is a Python function: it takes a mapping from names to Polars frames, and gives one.

    A function that gives a single frame gives the main table.
    """

    name: str
    function: Callable[[Tables], object]
    main: str = "records"
    columns: Columns = field(default_factory=Columns)

    def __call__(self, tables: Tables) -> Tables:
        """Run it once."""
        try:
            given = self.function({name: frame.clone() for name, frame in tables.items()})
        except SystemExit as ending:  # no Exception: it would end the audit as if all were well
            raise errors.program_failed(f"{self.name} {_ended(ending)}", _lines(ending), printed=False) from None
        except Exception as problem:
            how = f"{self.name} raised {type(problem).__name__}"
            raise errors.program_failed(how, _lines(problem), printed=False) from None
        made = given if isinstance(given, Mapping) else {self.main: given}
        found = {str(name): _frame(str(name), frame) for name, frame in made.items()}
        self.columns.require(tables, found)
        return found


def callable_program(name: str, *, main: str = "records", columns: Columns | None = None) -> FunctionProgram:
    """The Python function that ``"module:function"`` names, as a program."""
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise errors.program_not_callable(name, "there is no colon between the module and the function")
    if (here := str(Path.cwd())) not in sys.path:  # as python -m has it
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as problem:
        raise errors.program_not_callable(name, f"there is no module '{problem.name}'") from None
    except SystemExit as ending:
        why = ": ".join([f"importing it {_ended(ending)}", *_lines(ending)])
        raise errors.program_not_callable(name, why) from None
    except Exception as problem:
        why = ": ".join([f"importing it raised {type(problem).__name__}", *_lines(problem)])
        raise errors.program_not_callable(name, why) from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise errors.program_not_callable(name, f"there is no '{part}' in it")
        found = getattr(found, part)
    if not callable(found):
        raise errors.program_not_callable(name, f"it is a {type(found).__name__}, which cannot be called")
    return FunctionProgram(name, found, main, columns or Columns())


def _ended(ending: SystemExit) -> str:
    """How Python was to be ended; a text is what it was to print before exit code 1."""
    return f"ended the audit with sys.exit({(ending.code or 0) if _is_code(ending) else 1})"


def _is_code(ending: SystemExit) -> bool:
    return ending.code is None or isinstance(ending.code, int)


def _lines(problem: BaseException) -> list[str]:
    """What an exception says; an exit code is no words."""
    said = "" if isinstance(problem, SystemExit) and _is_code(problem) else str(problem)
    return [line for line in said.splitlines() if line.strip()][-_SHOWN_LINES:]


def _frame(name: str, made: object) -> pl.DataFrame:
    """A frame of any supported library as a Polars frame."""
    if isinstance(made, pl.DataFrame):
        return made
    try:
        return collected(open_input(name, made))
    except errors.StirredError as problem:
        raise errors.program_wrote_no_table(name, problem.problem.rstrip(".")) from None


# -- tables ------------------------------------------------------------------------------------------------------


def measurements_of(wrote: Tables, keys: Sequence[str]) -> pl.DataFrame:
    """What a program measured, the ``keys`` that say what as text beside a ``value``; raises if it cannot be read."""
    frame = wrote.get("measurements")
    if frame is None:
        raise errors.audit_measurements("there is no table 'measurements'")
    if missing := [name for name in (*keys, "value") if name not in frame.columns]:
        raise errors.audit_measurements(f"there is no column '{missing[0]}'")
    kind = frame["value"].dtype
    values = frame["value"].cast(pl.Int64 if kind.is_integer() else pl.Float64, strict=False)
    if not kind.is_numeric() or values.null_count() or not bool(values.is_finite().all()):
        raise errors.audit_measurements("the column 'value' is not all numbers")
    return frame.select(pl.col(name).cast(pl.String) for name in keys).with_columns(values)


# -- files -------------------------------------------------------------------------------------------------------


def _write(frame: pl.DataFrame, path: Path) -> None:
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path)


def _read(name: str, path: Path, types: Mapping[str, str]) -> pl.DataFrame:
    """A table that a program wrote; ``types`` are those of the columns of a CSV file."""
    if not path.is_file() or path.stat().st_size == 0:
        raise errors.program_wrote_nothing(name)
    try:
        opened = open_input(name, path, InputOptions(header=True))
        if path.suffix == ".csv":
            there = {column: kind for column, kind in types.items() if column in opened.kinds}
            opened = open_input(name, path, InputOptions(types=there, header=True))
        return collected(opened)
    except errors.StirredError as problem:
        raise errors.program_wrote_no_table(name, problem.problem.rstrip(".")) from None


def _type(kind: pl.DataType) -> str | None:
    return "integer" if kind.is_integer() else _TYPES.get(type(kind))


def collected(opened: Input) -> pl.DataFrame:
    """All rows of an input, texts as plain texts."""
    import pyarrow as pa

    from stirred.tables.columns import plain_type

    schema = pa.schema([(name, plain_type(kind)) for name, kind in opened.kinds.items()])
    parts = [pa.Table.from_batches([batch]).cast(schema) for batch in opened.batches(list(opened.kinds))]
    return pl.DataFrame(pa.concat_tables(parts) if parts else schema.empty_table())
