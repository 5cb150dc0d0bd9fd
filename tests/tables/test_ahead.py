"""Items made ahead in another thread: the same items, the same faults, and no waiting where an iterator is left."""

from __future__ import annotations

import threading

import pytest

from stirred._threads import ahead


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


def test_leaving_does_not_wait_for_the_item_that_is_being_made():
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
