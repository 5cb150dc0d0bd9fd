"""Batches: chunks and threads change nothing but the time; blocks of words are used once; memory stays bounded."""

from __future__ import annotations

import threading
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from stirred.noise import (
    SeededSource,
    SystemSource,
    bernoulli_exp,
    discrete_gaussian,
    discrete_gaussian_each,
    discrete_laplace,
    discrete_laplace_each,
    randomised_response,
    uniform_integers,
)
from stirred.noise import (
    source as feeding,
)

SIZE = 400_000
MANY = (np.arange(1, SIZE + 1), np.full(SIZE, 7))
DRAWS = {
    "table": lambda source: discrete_gaussian(2, SIZE, source),
    "blocks": lambda source: discrete_gaussian(10**12, SIZE, source),
    "digits": lambda source: discrete_laplace(10**6, SIZE, source),
    "each": lambda source: discrete_gaussian_each(MANY, source),
    "each laplace": lambda source: discrete_laplace_each(MANY, source),
    "grouped": lambda source: discrete_gaussian_each((MANY[0] % 3 + 1, MANY[1]), source),
    "coins": lambda source: bernoulli_exp(MANY, SIZE, source),
    "integers": lambda source: uniform_integers(MANY[0], SIZE, source),
    "response": lambda source: randomised_response(MANY[0] % 5, "1/3", source, categories=5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_draws_whatever_the_number_of_threads(name, monkeypatch):
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setenv("STIRRED_THREADS", str(threads))
        found.append(DRAWS[name](SeededSource(71)))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], DRAWS[name](SeededSource(72)))


def test_two_calls_with_one_source_share_nothing():
    source = SeededSource(73)
    assert not np.array_equal(discrete_gaussian(100, 1000, source), discrete_gaussian(100, 1000, source))


def test_chunks_of_one_call_share_nothing(monkeypatch):
    monkeypatch.setattr(feeding, "CHUNK_ROWS", 1000)
    drawn = discrete_gaussian(10**6, 50_000, SeededSource(74)).reshape(50, 1000)
    assert len({chunk.tobytes() for chunk in drawn}) == 50


@pytest.mark.parametrize("name", DRAWS)
def test_the_system_source_is_asked_from_several_threads_and_never_for_more_than_a_block(name, monkeypatch):
    asked, met = {}, threading.Barrier(2, timeout=60)

    class Watched(SystemSource):
        def take(self, count):
            if threading.get_ident() not in asked:
                asked[threading.get_ident()] = []
                if len(asked) <= 2:
                    met.wait()  # for a second thread, which must come
            asked[threading.get_ident()].append(count)
            return super().take(count)

    monkeypatch.setenv("STIRRED_THREADS", "2")
    first = DRAWS[name](Watched())
    assert len(asked) >= 2
    assert max(count for counts in asked.values() for count in counts) <= feeding.WORDS_BYTES
    assert not np.array_equal(first, DRAWS[name](SystemSource()))


def test_other_sources_are_asked_by_one_thread_in_the_order_of_rows(monkeypatch):
    class Own:
        for_release = False

        def __init__(self):
            self.inner, self.threads = SeededSource(75), set()

        def take(self, count):
            self.threads.add(threading.get_ident())
            return self.inner.take(count)

    monkeypatch.setenv("STIRRED_THREADS", "4")
    one, other = Own(), Own()
    assert np.array_equal(discrete_gaussian(2, SIZE, one), discrete_gaussian(2, SIZE, other))
    assert one.threads == {threading.get_ident()}


def test_an_error_in_a_thread_reaches_the_caller(monkeypatch):
    class Broken(SystemSource):
        def take(self, count):
            raise RuntimeError("no randomness")

    monkeypatch.setenv("STIRRED_THREADS", "2")
    with pytest.raises(RuntimeError, match="no randomness"):
        discrete_gaussian(2, SIZE, Broken())


def test_little_more_memory_is_used_than_the_draws_take():
    discrete_gaussian_each(MANY, SystemSource())
    big = (np.arange(1, 4 * SIZE + 1), np.full(4 * SIZE, 7))
    tracemalloc.start()
    drawn = discrete_gaussian_each(big, SystemSource())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2.5 * drawn.nbytes + 20_000_000


def test_the_smallest_calls_take_little_randomness():
    class Counted(SystemSource):
        taken = 0

        def take(self, count):
            self.taken += count
            return super().take(count)

    for variance in (1, 10**12):
        source = Counted()
        discrete_gaussian(Fraction(variance), 1, source)
        assert source.taken <= 200
