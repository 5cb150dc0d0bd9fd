"""The setting of threads reaches all that compute and changes no result; items made ahead are the same items."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from seeded_releases import finished
from stirred import _threads
from stirred._threads import ahead, meanwhile, thread_count, thread_pool
from stirred.errors import StirredError


@pytest.fixture(autouse=True, params=["1", "3"])
def number(request, monkeypatch) -> str:
    monkeypatch.setenv("STIRRED_THREADS", request.param)
    return request.param


@pytest.mark.parametrize("mechanism", ["swap", "topdown", "survey"])
def test_what_is_released_does_not_depend_on_the_number_of_threads(mechanism, number, tmp_path, monkeypatch):
    def files(name: str) -> dict[str, bytes]:
        finished(mechanism, tmp_path / f"{name} work").write(tmp_path / name, for_tests=True)
        paths = sorted(path for path in (tmp_path / name).rglob("*") if path.suffix in (".csv", ".txt", ".parquet"))
        return {path.relative_to(tmp_path / name).as_posix(): path.read_bytes() for path in paths}

    found = files("some")
    monkeypatch.setenv("STIRRED_THREADS", "2")
    assert found == files("two") and len(found) > 1


def test_nothing_else_in_the_package_decides_how_many_threads_there_are():
    source = Path(_threads.__file__).parent
    counting = re.compile(r"cpu_count|sched_getaffinity|ThreadPoolExecutor|set_num_threads")
    found = {path.relative_to(source).as_posix() for path in source.rglob("*.py") if counting.search(path.read_text())}
    assert found == {"_threads.py"}


def test_a_pool_is_as_large_as_set_and_never_larger_than_asked(number):
    assert thread_count() == int(number)
    with thread_pool() as pool, thread_pool(2) as small:
        assert pool._max_workers == int(number) and small._max_workers == min(2, int(number))


def test_with_one_thread_nothing_is_done_in_another(number):
    with meanwhile(threading.get_ident) as asked:
        pass
    assert (asked() == threading.get_ident()) == (number == "1")
    made = (threading.get_ident() for _ in range(2))
    assert (set(ahead(made)) == {threading.get_ident()}) == (number == "1")


@pytest.mark.parametrize("said", ["0", "-1", "2.5", "many", "٣", "99999"])
def test_a_setting_that_is_no_number_of_threads_is_refused(said, monkeypatch):
    monkeypatch.setenv("STIRRED_THREADS", said)
    with pytest.raises(StirredError, match="STIRRED_THREADS"):
        thread_count()


def test_the_option_of_a_command_sets_it(command, tmp_path):
    seen = command("verify", tmp_path / "nothing", "--threads", "2")
    assert seen.code == 2 and thread_count() == 2


def test_the_items_are_the_same():
    assert list(ahead(iter(range(1, 50)))) == list(range(1, 50))
    assert list(ahead(iter(()))) == []


def test_a_fault_reaches_the_reader_after_the_items_before_it():
    def items():
        yield 1
        raise ValueError("damaged")

    read = ahead(items())
    assert next(read) == 1
    with pytest.raises(ValueError, match="damaged"):
        next(read)


def test_leaving_does_not_wait_for_the_item_that_is_being_made(monkeypatch):
    monkeypatch.setenv("STIRRED_THREADS", "2")
    # The garbage collector may end an iterator inside a thread that is just starting; waiting there waited for ever.
    begun, go_on = threading.Event(), threading.Event()

    def items():
        yield 1
        begun.set()
        go_on.wait(60)
        yield 2

    read = ahead(items())
    assert next(read) == 1 and begun.wait(60)
    leaving = threading.Thread(target=read.close, daemon=True)
    leaving.start()
    leaving.join(30)
    waited = leaving.is_alive()
    go_on.set()
    assert not waited
