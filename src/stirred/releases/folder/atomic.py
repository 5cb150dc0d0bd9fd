"""Writes a folder that appears complete or not at all.

Files are written into a private folder (mode 0700) beside the target, flushed to disk, and the folder is renamed into
place as the very last step. Any error, Ctrl-C or termination signal removes it. Only a kill or a power cut can
leave one behind. Such a leftover cannot be mistaken for a release: its name is hidden, ``verify`` raises, and the next
run beside it prints its name. Each run holds a lock, which tells leftovers from the folders of runs still working.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import IO, NoReturn

from stirred import errors

CONFIDENTIAL = "CONFIDENTIAL.txt"
"""The note in a folder with true values."""
KEPT = "kept.txt"
"""A file in a work folder that was asked to be kept: no later run removes that folder."""
PARTS = "finished-parts"
"""A folder in a work folder with what a finish has done so far: an interrupted one goes on from there. It is removed
once the release is written."""
_MARK = ".stirred-unfinished-"
LOCK = ".lock"
"""The file that a run holds locked in its unfinished folder."""


class Terminated(BaseException):
    """The process got a termination signal; raised so that partial files are removed."""


@contextlib.contextmanager
def appearing(target: Path, private: bool = False) -> Iterator[Path]:
    """A private folder to write into, which becomes ``target`` if the block ends without an error.

    ``private`` leaves the folder readable by its owner only, for confidential contents.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "release"
    >>> with appearing(target) as folder:
    ...     _ = (folder / "note.txt").write_text("whole")
    >>> [path.name for path in target.iterdir()]
    ['note.txt']
    """
    with unfinished(target, private) as folder, writing(target):
        yield folder


@contextlib.contextmanager
def unfinished(target: Path, private: bool = False) -> Iterator[Path]:
    """As :func:`appearing`, for a block that does more than writing: its own OSErrors pass unchanged."""
    target = Path(os.path.abspath(target))  # noqa: PTH100 - resolve() would follow a link named as the target
    _locks()
    check_target(target)
    # Named before it is made: an interrupt that comes in between leaves nothing that is not cleaned up.
    folder = target.parent / f".{target.name}{_MARK}{os.urandom(8).hex()}"
    try:
        with ending_cleanly():
            with writing(target):
                folder.mkdir(mode=0o700)
                lock = _lock(folder)
            try:
                yield folder
                with writing(target):
                    _settle(folder, private)
                    check_target(target)
                    (folder / LOCK).unlink()
                    folder.rename(target)
            finally:
                os.close(lock)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        flush_one(target)
        flush_one(target.parent)


@contextlib.contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn an OSError into an error for users that names the target."""
    try:
        yield
    except OSError as problem:
        if os.path.lexists(target):  # another run was quicker
            raise errors.output_exists(target) from None
        raise errors.cannot_write(target, _reason(problem)) from None


@contextlib.contextmanager
def new_file(path: Path, private: bool = False) -> Iterator[IO[bytes]]:
    """A file that must not exist yet, opened to be written; a ``private`` one can be read by its owner only."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600 if private else 0o666)
        with os.fdopen(handle, "wb") as file:
            yield file
    except FileExistsError:
        raise errors.output_exists(path) from None
    except OSError as problem:
        raise errors.cannot_write(path, _reason(problem)) from None


@contextlib.contextmanager
def alone(target: Path) -> Iterator[None]:
    """Let only one run at a time create a folder beside ``target``, so that of two runs only one spends."""
    fcntl = _locks()
    lock = os.open(target.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def check_target(target: Path) -> None:
    """Raise if the target exists already, or its parent folder does not."""
    try:
        if os.path.lexists(target):
            raise errors.output_exists(target)
        if not target.parent.is_dir():
            raise errors.output_parent_missing(target)
    except (OSError, ValueError) as problem:  # a name that no file system takes
        raise errors.cannot_write(target, getattr(problem, "strerror", None) or "it cannot be a name") from None


def leftovers(parent: Path) -> list[Path]:
    """Unfinished folders in ``parent`` whose run is no longer alive. They may hold confidential rows."""
    found = []
    with contextlib.suppress(OSError):
        for folder in sorted(parent.iterdir()):
            if _MARK in folder.name and folder.is_dir() and not _alive(folder):
                found.append(folder)
    return found


def is_unfinished(folder: Path) -> bool:
    """Whether a folder is one that a run was still writing."""
    return has_unfinished_name(folder) or (folder / LOCK).exists()


def has_unfinished_name(folder: Path) -> bool:
    """Whether a folder has the name of one that a run is writing."""
    return _MARK in Path(os.path.abspath(folder)).name  # noqa: PTH100


def _locks() -> ModuleType:
    """The module of file locks. Without it nothing is written, since runs could not be told from what they left."""
    try:
        import fcntl
    except ImportError:
        raise errors.needs_posix() from None
    return fcntl


def _lock(folder: Path) -> int:
    """Create and take the lock that a run holds while it works; returns its file handle."""
    fcntl = _locks()
    lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _alive(folder: Path) -> bool:
    """Whether a run holds the lock; assumed of a folder that cannot be read, such as another user's."""
    fcntl = _locks()
    try:
        lock = os.open(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def flush(folder: Path) -> None:
    """Write everything in a folder to disk."""
    for path in sorted(folder.rglob("*")):
        flush_one(path)
    flush_one(folder)


def _settle(folder: Path, private: bool) -> None:
    """Give ordinary permissions unless private, and flush every file."""
    mask = os.umask(0)
    os.umask(mask)
    mask |= 0o077 if private else 0
    for path in sorted(folder.rglob("*")):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)
    folder.chmod(0o777 & ~mask)
    flush(folder)


def flush_one(path: Path) -> None:
    """Write one file, or the list of names of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _reason(problem: OSError) -> str:
    return os.strerror(problem.errno) if problem.errno else "an input/output error"


@contextlib.contextmanager
def ending_cleanly() -> Iterator[None]:
    """Turn termination signals into an exception while the block runs, where signals can be caught at all."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise Terminated(number)

    previous = {}
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            previous[number] = signal.signal(number, end)
    except ValueError:  # not the main thread
        previous.clear()
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
