"""A real PostgreSQL server for tests, on loopback only: started when first asked for, stopped with the process.

Each test process starts its own. The server is a child that the kernel ends with its parent, so that not even a killed
test run leaves one behind.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}


def _programs() -> Path | None:
    """The folder of initdb and postgres."""
    for name in ("initdb", "postgres"):
        if found := shutil.which(name):
            folder = Path(os.path.realpath(found)).parent
            if (folder / "initdb").exists() and (folder / "postgres").exists():
                return folder
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    return folders[-1] if folders else None


class Server:
    """One server, its data folder, and the ways in which it can be stopped."""

    def __init__(self, programs: Path, user: str | None) -> None:
        self._programs, self._user = programs, user
        self._folder = Path(tempfile.mkdtemp(prefix="stirred-postgresql-"))
        self._process: subprocess.Popen[bytes] | None = None
        if user is not None:
            self._folder.chmod(0o755)
            shutil.chown(self._folder, user, pwd.getpwnam(user).pw_gid)
        command = [programs / "initdb", "-D", self._folder / "data", "-U", "owner", "-A", "trust", "--no-sync"]
        subprocess.run(
            [*command, "-E", "UTF8", "--no-locale"],
            check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, **self._as_user(),
        )  # fmt: skip
        self.port = free_port()

    def _as_user(self) -> dict[str, object]:
        if self._user is None:
            return {"cwd": self._folder}
        found = pwd.getpwnam(self._user)
        return {"cwd": self._folder, "user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}

    def start(self) -> None:
        parent = os.getpid()

        def die_with_parent() -> None:
            if sys.platform != "linux":
                return
            ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGQUIT, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

        settings = ["-k", self._folder, *(f"--{name}={value}" for name, value in _SETTINGS.items())]
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self._folder / "data", "-p", str(self.port), *settings],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=die_with_parent, **self._as_user(),
        )  # fmt: skip
        self.wait()

    def wait(self) -> None:
        """Return when the server answers."""
        import psycopg

        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.address("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def kill(self) -> None:
        """End the server as a crash does: no process of it writes anything more."""
        assert self._process is not None
        # All children first stop with their parent gone; SIGQUIT makes them go at once.
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(timeout=60)
        self._process = None

    def crash_a_session(self) -> None:
        """End one session of a ledger as a crash does; the server then ends all others and recovers."""
        assert self._process is not None
        found = self.run("SELECT pid FROM pg_stat_activity WHERE application_name = 'stirred ledger'")
        for (pid,) in found[:1]:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
                parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
                if int(parent) == self._process.pid:
                    os.kill(int(str(pid)), signal.SIGKILL)

    def stop(self) -> None:
        if self._process is not None:
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def address(self, database: str, user: str = "owner", port: int | None = None, password: str = "") -> str:
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@127.0.0.1:{port or self.port}/{database}"

    def run(self, *statements: str, database: str = "postgres", user: str = "owner") -> list[tuple[object, ...]]:
        """Run statements, each committed; gives the rows of the last."""
        import psycopg

        with psycopg.connect(self.address(database, user), autocommit=True) as connection:
            for statement in statements:
                found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []


@functools.cache
def server() -> Server:
    """The server of this test process; skips the test where there is no PostgreSQL."""
    pytest.importorskip("psycopg", reason="the package psycopg is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's server programs (initdb, postgres) are not installed")
    user = None
    if os.geteuid() == 0:
        names = [one for one in ("postgres", "nobody") if _is_user(one)]
        if not names:
            pytest.skip("PostgreSQL does not run as root, and there is no other user to run it as")
        user = names[0]
    made = Server(programs, user)
    atexit.register(made.stop)
    made.start()
    return made


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


_numbers = iter(range(1_000_000))


def new_address() -> str:
    """The address of a ledger that does not exist yet, as its owner."""
    found = server()
    if not found.run("SELECT 1 FROM pg_database WHERE datname = 'office'"):
        found.run("CREATE DATABASE office")
    return f"{found.address('office')}?stirred_ledger=t{os.getpid()}_{next(_numbers)}"


def schema_of(address: str) -> str:
    return "stirred_ledger_" + address.rpartition("stirred_ledger=")[2]


def grant(address: str, role: str = "releasing") -> str:
    """The same ledger as a role sees it that may add and read rows only, as docs/ledger.md says."""
    found, schema = server(), schema_of(address)
    if not found.run(f"SELECT 1 FROM pg_roles WHERE rolname = '{role}'"):
        found.run(f"CREATE ROLE {role} LOGIN PASSWORD 'not-shown'")
    found.run(
        f"GRANT USAGE ON SCHEMA {schema} TO {role}", f"GRANT SELECT, INSERT ON {schema}.rows TO {role}",
        database="office",
    )  # fmt: skip
    return re.sub("//owner@", f"//{role}@", address)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Proxy:
    """Stands between a client and the server, and drops, stalls or passes what goes through.

    ``at_commits`` says what happens when a client sends COMMIT: ``drop-before`` (the server never gets it),
    ``drop-after`` (the server gets it, its answer is lost), ``stall`` (the same, and the connection stays open).
    With ``refuse_afterwards`` no connection is let through after that.
    """

    def __init__(self, target: int) -> None:
        self.at_commits: list[str] = []
        """What to do at the commits that follow, in their order; then they pass."""
        self.refuse_afterwards = self.refusing = self.waited_in_vain = False
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self.refusing:
                    client.close()
                    continue
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client, socket.create_connection(("127.0.0.1", self._target)) as back:
            threading.Thread(target=self._answers, args=(back, client), daemon=True).start()
            while said := client.recv(65536):
                if b"COMMIT" not in said or not self.at_commits:
                    back.sendall(said)
                    continue
                what = self.at_commits.pop(0)
                self.refusing = self.refuse_afterwards
                if what != "drop-before":
                    self._muted = client
                    back.sendall(said)
                if what == "drop-after":
                    time.sleep(0.3)
                if what == "stall":
                    client.settimeout(300)
                    try:
                        client.recv(1)
                    except TimeoutError:
                        self.waited_in_vain = True
                break
            self._cut(client, back)

    _muted: socket.socket | None = None

    def _answers(self, back: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while said := back.recv(65536):
                if client is not self._muted:
                    client.sendall(said)
            if client is not self._muted:
                self._cut(client)

    def _cut(self, *ends: socket.socket) -> None:
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy() -> Iterator[Proxy]:
    made = Proxy(server().port)
    try:
        yield made
    finally:
        made.close()
