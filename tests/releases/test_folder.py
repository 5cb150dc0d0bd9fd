"""A release folder appears whole or not at all, whatever ends the run that writes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stirred.errors import OutputError
from stirred.releases.folder.atomic import Terminated, alone, appearing, leftovers
from stirred.releases.folder.manifest import differences, read_manifest, write_manifest


@pytest.fixture
def target(tmp_path) -> Path:
    return tmp_path / "release"


@pytest.fixture
def umask():
    """Sets a umask for one test."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def fill(folder: Path) -> None:
    (folder / "note.txt").write_text("whole")
    (folder / "tables").mkdir()
    (folder / "tables" / "counts.csv").write_text("a,b\n1,2\n")


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


# -- whole ---------------------------------------------------------------------------------------------------


def test_the_target_appears_only_when_the_block_has_ended(target):
    with appearing(target) as folder:
        fill(folder)
        assert not target.exists()
        assert folder.parent == target.parent
    assert names(target) == ["note.txt", "tables", "tables/counts.csv"]
    assert list(target.parent.iterdir()) == [target]


def test_until_then_the_folder_is_hidden_and_private(target, umask):
    umask(0)
    with appearing(target) as folder:
        assert folder.name.startswith(".")
        assert mode(folder) == 0o700


def test_a_relative_target_stays_where_it_was_named_when_the_working_folder_changes(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with appearing(Path("release")) as folder:
        fill(folder)
        monkeypatch.chdir("elsewhere")
    assert names(tmp_path / "elsewhere") == []
    assert (tmp_path / "release" / "note.txt").read_text() == "whole"


# -- or not at all -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [RuntimeError("no"), KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=repr)
def test_nothing_is_left_when_the_block_is_broken_off(target, end):
    with pytest.raises(type(end)) as raised, appearing(target) as folder:
        fill(folder)
        raise end
    assert raised.value is end
    assert names(target.parent) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_after_a_termination_signal(target, number):
    before = signal.getsignal(number)
    with pytest.raises(Terminated), appearing(target) as folder:
        fill(folder)
        os.kill(os.getpid(), number)
        pytest.fail("the signal did not end the block")
    assert names(target.parent) == []
    assert signal.getsignal(number) is before


def test_signals_are_as_before_once_the_folder_is_there(target):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    with appearing(target) as folder:
        fill(folder)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)] == before


def test_two_folders_written_together_are_both_gone_after_a_termination_signal(tmp_path):
    with pytest.raises(Terminated), appearing(tmp_path / "one") as one, appearing(tmp_path / "two") as two:
        fill(one)
        fill(two)
        os.kill(os.getpid(), signal.SIGTERM)
    assert names(tmp_path) == []


def test_a_failed_write_is_told_by_its_reason_and_leaves_nothing(target):
    with (
        pytest.raises(OutputError, match=r"could not be written \(No space left on device\)") as refusal,
        appearing(target),
    ):
        raise OSError(28, "some text that may quote a cell")
    assert refusal.value.kind == "cannot-write"
    assert "quote" not in str(refusal.value)
    assert names(target.parent) == []


# -- targets that cannot be ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere")])
def test_an_existing_target_is_refused_before_anything_is_written(target, make):
    make(target)
    with pytest.raises(OutputError) as refusal, appearing(target):
        pytest.fail("the block was entered")
    assert refusal.value.kind == "output-exists"
    assert list(target.parent.iterdir()) == [target]


def test_a_target_whose_parent_is_missing_is_refused(tmp_path):
    with pytest.raises(OutputError) as refusal, appearing(tmp_path / "missing" / "release"):
        pytest.fail("the block was entered")
    assert refusal.value.kind == "output-parent-missing"
    assert str(tmp_path / "missing") in str(refusal.value)
    assert names(tmp_path) == []


def test_a_target_whose_parent_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as refusal, appearing(tmp_path / "file" / "release"):
        pytest.fail("the block was entered")
    assert refusal.value.kind == "output-parent-missing"


@pytest.mark.parametrize("make", [fill, Path.touch], ids=["folder", "file"])
def test_a_target_that_appears_meanwhile_is_left_as_it_is(target, make):
    with pytest.raises(OutputError) as refusal, appearing(target) as folder:
        fill(folder)
        if make is fill:
            target.mkdir()
        make(target)
        before = names(target.parent)
    assert refusal.value.kind == "output-exists"
    assert names(target.parent) == [name for name in before if not name.startswith(".")]


def test_of_two_runs_to_one_target_the_first_to_finish_wins_and_the_other_refuses(target):
    with pytest.raises(OutputError) as refusal, appearing(target) as slow:
        (slow / "note.txt").write_text("slow")
        with appearing(target) as quick:
            (quick / "note.txt").write_text("quick")
    assert refusal.value.kind == "output-exists"
    assert (target / "note.txt").read_text() == "quick"
    assert list(target.parent.iterdir()) == [target]


def test_of_many_runs_at_the_same_moment_exactly_one_wins(target):
    runs = 8
    together = threading.Barrier(runs)
    ended: list[str] = []

    def run(number: int) -> None:
        try:
            with appearing(target) as folder:
                (folder / "note.txt").write_text(str(number))
                together.wait(timeout=30)
            ended.append("won")
        except OutputError as refusal:
            ended.append(refusal.kind)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ended) == sorted(["won"] + ["output-exists"] * (runs - 1))
    assert names(target.parent) == ["release", "release/note.txt"]


# -- permissions ---------------------------------------------------------------------------------------------


def test_a_private_folder_can_be_read_by_its_owner_only(target, umask):
    umask(0)
    with appearing(target, private=True) as folder:
        fill(folder)
    assert mode(target) == mode(target / "tables") == 0o700
    assert mode(target / "note.txt") == mode(target / "tables" / "counts.csv") == 0o600


@pytest.mark.parametrize(
    ("mask", "folders", "files"), [(0o022, 0o755, 0o644), (0o027, 0o750, 0o640), (0, 0o777, 0o666)]
)
def test_a_release_has_the_permissions_that_the_umask_gives(target, umask, mask, folders, files):
    umask(mask)
    with appearing(target) as folder:
        fill(folder)
    assert mode(target) == mode(target / "tables") == folders
    assert mode(target / "note.txt") == mode(target / "tables" / "counts.csv") == files


# -- leftovers -----------------------------------------------------------------------------------------------

HOLD = """
import sys, time
from pathlib import Path
from stirred.releases.folder.atomic import appearing
with appearing(Path(sys.argv[1])) as folder:
    (folder / "rows.csv").write_text("confidential")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def other_run(target):
    """Another process that is writing to the same target, and the folder it writes to."""
    with subprocess.Popen([sys.executable, "-c", HOLD, target], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_a_folder_is_a_leftover_only_once_its_run_is_dead(target, other_run):
    process, folder = other_run
    assert folder.is_dir()
    assert leftovers(target.parent) == []
    process.kill()
    process.wait()
    assert leftovers(target.parent) == [folder]
    assert (folder / "rows.csv").exists()
    assert not target.exists()


def test_a_run_that_flushes_its_files_is_not_taken_for_dead(target, monkeypatch):
    seen = []
    flush = os.fsync

    def watch(handle: int) -> None:
        seen.append(leftovers(target.parent))
        flush(handle)

    monkeypatch.setattr(os, "fsync", watch)
    with appearing(target) as folder:
        fill(folder)
    assert len(seen) >= 4
    assert not any(seen)


def test_a_folder_that_lost_its_lock_file_is_a_leftover(tmp_path):
    left = tmp_path / ".release.stirred-unfinished-abc"
    left.mkdir()
    assert leftovers(tmp_path) == [left]


def test_a_folder_that_cannot_be_looked_into_is_not_called_a_leftover(tmp_path):
    folder = tmp_path / ".release.stirred-unfinished-abc"
    folder.mkdir()
    (folder / ".lock").symlink_to(".lock")  # a loop: opening it fails, whoever asks
    assert leftovers(tmp_path) == []


def test_other_hidden_folders_are_not_leftovers(target):
    (target.parent / ".cache").mkdir()
    with appearing(target) as folder:
        fill(folder)
    assert leftovers(target.parent) == []
    assert leftovers(target.parent / "missing") == []


# -- the manifest --------------------------------------------------------------------------------------------


@pytest.fixture
def listed(target) -> Path:
    target.mkdir()
    fill(target)
    write_manifest(target)
    return target


def test_a_folder_agrees_with_its_own_manifest(listed):
    entries = read_manifest(listed)
    assert [entry.path for entry in entries] == ["note.txt", "tables/counts.csv"]
    assert differences(listed, entries) == []


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (lambda folder: (folder / "note.txt").unlink(), "note.txt is missing"),
        (lambda folder: (folder / "tables" / "more.csv").touch(), "tables/more.csv is not in the manifest"),
        (lambda folder: (folder / "note.txt").write_text("hole!"), "note.txt is not the file that was released"),
        (lambda folder: (folder / "note.txt").write_text("longer"), "note.txt is not the file that was released"),
        (
            lambda folder: (folder / "tables" / "counts.csv").write_text("a,b\n1,3\n"),
            "tables/counts.csv is not the file that was released",
        ),
    ],
    ids=["missing", "extra", "same length", "other length", "in a subfolder"],
)
def test_a_manifest_tells_what_differs(listed, tamper, said):
    tamper(listed)
    assert differences(listed, read_manifest(listed)) == [said]


def test_a_renamed_file_is_missing_and_not_in_the_manifest(listed):
    (listed / "note.txt").rename(listed / "notes.txt")
    assert differences(listed, read_manifest(listed)) == ["note.txt is missing", "notes.txt is not in the manifest"]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{}",
        '{"stirred_manifest": 1}',
        '{"stirred_manifest": 1, "files": [{"path": "x"}]}',
        '{"stirred_manifest": 2, "files": []}',
    ],
)
def test_a_folder_without_a_readable_manifest_is_not_a_release(listed, text):
    if text is None:
        (listed / "manifest.json").unlink()
    else:
        (listed / "manifest.json").write_text(text)
    with pytest.raises(OutputError) as refusal:
        read_manifest(listed)
    assert refusal.value.kind == "not-a-release"


def test_a_manifest_names_sizes_and_digests_of_all_files_but_itself(listed):
    fields = json.loads((listed / "manifest.json").read_text())
    assert fields["files"][0] == {
        "path": "note.txt",
        "bytes": 5,
        "sha256": "5d5766cf2d78701614200418ee1450690d9af12c84d52545e4802f001ad53099",
    }


def test_an_interrupt_just_after_the_folder_is_made_leaves_nothing(tmp_path, monkeypatch):
    made = Path.mkdir

    def interrupted(folder, *arguments, **options):
        made(folder, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), appearing(tmp_path / "release"):
        pytest.fail("the block must not begin")
    assert list(tmp_path.iterdir()) == []


def test_without_file_locks_nothing_is_written_and_the_message_says_where_it_would_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows: importing it fails
    for use in (lambda: appearing(tmp_path / "release").__enter__(), lambda: alone(tmp_path / "release").__enter__()):
        with pytest.raises(OutputError, match="Use Linux or macOS") as refusal:
            use()
        assert refusal.value.kind == "needs-posix"
    assert list(tmp_path.iterdir()) == []


def test_the_package_and_its_commands_import_without_file_locks():
    code = "import sys; sys.modules['fcntl'] = None; import stirred.cli.app; print(stirred.read('rho=1').budget.number)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stdout == "1\n", ended.stderr
