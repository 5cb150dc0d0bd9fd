"""Reads the draws that are to be audited: from a text file, a column of a table, or what a program prints.

Text has one number on each line. Whole numbers are read as such, of any size up to 64 bits; if any is not whole, all
are read as floating-point numbers. A program is run without a shell, for a limited time, and what it prints is bounded.
"""

from __future__ import annotations

import os
import selectors
import shlex
import shutil
import signal
import subprocess  # nosec B404 # runs the program that the user names, with a list of arguments and no shell
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._received import plain

SECONDS = 600.0
"""How long a program may take to print its draws."""
MOST_BYTES = 1 << 30
"""How much a program may print, and a text file may hold."""
_PART = 1 << 20
_LONGEST = 400
"""Characters of a number; the longest that a float prints has fewer."""


def read_draws(path: str, column: str | None = None) -> NDArray[Any]:
    """Draws from a file of numbers, a table with ``column``, or standard input (``-``)."""
    if path == "-":
        return numbers_of(_bounded(sys.stdin.buffer.read(MOST_BYTES + 1), "standard input"), "standard input")
    from stirred.tables.reading.inputs import format_of

    told = format_of(Path(path))
    if column is not None or (told is not None and told != ("csv", None)):
        return _column(Path(path), column)
    try:
        with Path(path).open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError:
        raise errors.no_such_input(path) from None
    return numbers_of(_bounded(text, path), path)


def numbers_of(text: bytes, where: str) -> NDArray[Any]:
    """The numbers of a text, one on each line; empty lines at its end do not count.

    >>> numbers_of(b"3\\n-1\\n", "a text").tolist(), numbers_of(b"0.5\\n2\\n", "a text").tolist()
    ([3, -1], [0.5, 2.0])
    """
    lines = text.rstrip().splitlines()
    if not lines:
        return np.empty(0, dtype=np.int64)
    if max(map(len, lines)) <= _LONGEST:  # all lines take as much memory as the longest
        for kind in (np.int64, np.float64):
            try:
                return np.array(lines, dtype=np.bytes_).astype(kind)
            except (ValueError, OverflowError):
                continue
    raise errors.draws_line(where, next(number for number, line in enumerate(lines, 1) if not _is_number(line)))


def printed_draws(command: str, seconds: float = SECONDS) -> NDArray[Any]:
    """What a program prints, as numbers."""
    try:
        words = shlex.split(command)
    except ValueError:
        raise errors.draws_command(command, "its quotes are not closed") from None
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise errors.draws_command(command, "there is no such program")
    with tempfile.TemporaryFile() as complaints:
        try:
            running = subprocess.Popen(  # nosec B603 # a list of arguments, no shell
                [program, *words[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                start_new_session=True,
            )
        except OSError as problem:
            raise errors.draws_command(command, problem.strerror or "it cannot be run") from None
        try:
            text = _printed(running, command, seconds)
        finally:
            _end(running)
        if running.returncode != 0:
            complaints.seek(max(0, complaints.tell() - 2000))
            lines = complaints.read().decode("utf-8", "replace").strip().splitlines()
            said = f" and said: {plain(lines[-1])}" if lines else ""
            raise errors.draws_command(command, f"it ended with exit code {running.returncode}{said}")
    return numbers_of(text, "what the program printed")


def _printed(running: subprocess.Popen[bytes], command: str, seconds: float) -> bytes:
    """All that a program prints until it ends."""
    assert running.stdout is not None
    deadline, parts, size = time.monotonic() + seconds, [], 0
    with selectors.DefaultSelector() as ready:
        ready.register(running.stdout, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not ready.select(left):
                raise errors.draws_command(command, f"it did not end within {seconds:g} seconds")
            part = os.read(running.stdout.fileno(), _PART)
            if not part:
                break
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise errors.draws_command(command, f"it printed more than {MOST_BYTES:,} bytes")
    try:
        running.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise errors.draws_command(command, f"it did not end within {seconds:g} seconds") from None
    return b"".join(parts)


def _end(running: subprocess.Popen[bytes]) -> None:
    """End a program that still runs, and all that it started."""
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    if running.stdout is not None:
        running.stdout.close()


def _bounded(text: bytes, where: str) -> bytes:
    if len(text) > MOST_BYTES:
        raise errors.audit_question(f"The draws in {where}", f"must have at most {MOST_BYTES:,} bytes")
    return text


def _is_number(line: bytes) -> bool:
    try:
        float(line)
    except ValueError:
        return False
    return len(line) <= _LONGEST


def _column(path: Path, column: str | None) -> NDArray[Any]:
    import pyarrow as pa

    from stirred.tables.reading.inputs import open_input
    from stirred.tables.reading.table_reader import read_table

    opened = open_input("draws", path)
    names = list(opened.kinds)
    if column is None and len(names) > 1:
        raise errors.draws_column(names)
    column = column if column is not None else names[0]
    if column not in names:
        raise errors.missing_columns("draws", [column])
    found = read_table(opened, (column,)).table[column]
    if found.values.null_count:
        raise errors.draws_not_numbers(column)
    for kind in (pa.int64(), pa.float64()):
        try:
            return np.asarray(found.values.cast(kind).to_numpy(zero_copy_only=False)[found.codes])
        except pa.ArrowException:
            continue
    raise errors.draws_not_numbers(column)
