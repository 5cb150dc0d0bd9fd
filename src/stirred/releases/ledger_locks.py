"""Whether locks exclude other processes where a ledger file is kept.

SQLite lets one process at a time write by POSIX locks on the file. Some file systems grant such locks to everyone, and
network file systems may grant them on each machine separately: two machines then decide on the same total, and together
pass the limit. Both are looked for before anything is written. The first by a trial on an unnamed file in the ledger's
folder, never on the ledger itself: closing any handle of a file drops all of a process's locks on it. The second by the
kind of file system, since no trial on one machine tells what another one sees.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import subprocess  # nosec B404 # runs this Python on a fixed program, see below
import sys
from collections.abc import Iterator
from pathlib import Path

from stirred import errors

_OVER_A_NETWORK = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3", "smbfs", "vboxsf"),
        *(f"fuse.{name}" for name in ("ceph", "davfs2", "gcsfuse", "glusterfs", "goofys", "rclone", "s3fs", "sshfs")),
    }
)
_CHILD = "import fcntl, sys\ntry: fcntl.lockf(0, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept OSError: sys.exit(7)"


def locks_problem(path: Path) -> str | None:
    """Why locks cannot be relied on for a ledger in this file; None if nothing speaks against them."""
    folder = Path(os.path.realpath(path)).parent
    kind = file_system(folder)
    if kind in _OVER_A_NETWORK:
        return f"it is on a network file system ({kind}), whose locks may not reach other machines"
    if not exclusive(folder):
        return "the file system that it is on gives one lock to two holders"
    return None


def file_system(folder: Path) -> str | None:
    """The kind of file system that a folder is on; None where that cannot be found out."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    found: tuple[int, str | None] = (-1, None)
    for line in mounts.splitlines():
        place, _, rest = line.partition(" - ")
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), place.split(" ")[4]))
        if folder.is_relative_to(point) and len(point.parts) >= found[0]:
            found = (len(point.parts), rest.split(" ")[0])
    return found[1]


def exclusive(folder: Path) -> bool:
    """Whether a lock that is held refuses a second holder, tried on a file in this folder."""
    try:
        import fcntl
    except ImportError:
        raise errors.needs_posix() from None
    with _trial(folder) as (first, second):
        if hasattr(fcntl, "F_OFD_SETLK"):  # locks of an open file, which also exclude the process that holds one
            wanted = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            try:
                fcntl.fcntl(first, fcntl.F_OFD_SETLK, wanted)
            except OSError:
                return False
            try:
                fcntl.fcntl(second, fcntl.F_OFD_SETLK, wanted)
            except OSError:
                return True
            return False
        try:
            fcntl.lockf(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        child = [sys.executable, "-I", "-S", "-c", _CHILD]
        return subprocess.run(child, stdin=second, check=False).returncode == 7  # nosec B603 # no shell


@contextlib.contextmanager
def _trial(folder: Path) -> Iterator[tuple[int, int]]:
    """Two handles of one file that has no name, or loses it at once, so that a kill leaves nothing."""
    handles: list[int] = []
    try:
        try:
            handles.append(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600))
            handles.append(os.open(f"/proc/self/fd/{handles[0]}", os.O_RDWR))
        except (AttributeError, OSError):
            name = folder / f".stirred-lock-trial-{os.urandom(8).hex()}"
            handles.append(os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            try:
                handles.append(os.open(name, os.O_RDWR))
            finally:
                name.unlink()
        yield handles[-2], handles[-1]
    finally:
        for handle in handles:
            os.close(handle)
