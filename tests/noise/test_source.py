"""Where bits come from: the system's generator for releases, a repeatable one for tests that says so."""

from __future__ import annotations

import os

import numpy as np
import pytest

from stirred.noise import SeededSource, SystemSource
from stirred.noise.source import BLOCK_BYTES, block_of_words


def test_the_system_source_is_for_release():
    assert SystemSource().for_release is True


@pytest.mark.fresh_draws
def test_the_system_source_never_serves_the_same_bytes_twice():
    # 32 bytes agree by chance with probability 2^-256.
    source = SystemSource()
    assert source.take(32) != source.take(32)
    assert SystemSource().take(32) != SystemSource().take(32)


def test_a_seeded_source_is_not_for_release():
    assert SeededSource(1).for_release is False


def test_a_seeded_source_repeats_its_whole_stream():
    one, other = SeededSource(5), SeededSource(5)
    assert [one.take(count) for count in (3, 100, 8)] == [other.take(count) for count in (3, 100, 8)]


def test_seeded_sources_with_different_keys_differ():
    keys = [0, 1, -1, 2**100, -(2**100)]
    assert len({SeededSource(key).take(32) for key in keys}) == len(keys)


def test_every_block_of_a_seeded_source_is_new():
    source = SeededSource(5)
    assert len({source.take(32) for _ in range(1000)}) == 1000


@pytest.mark.parametrize("source", [SystemSource(), SeededSource(2)], ids=["system", "seeded"])
@pytest.mark.parametrize("count", [0, 1, 8, 4097])
def test_as_many_bytes_come_as_were_asked_for(source, count):
    assert len(source.take(count)) == count


@pytest.mark.parametrize("width", [2, 4], ids=["16 bits", "32 bits"])
def test_a_block_of_words_is_what_is_wanted_between_64_words_and_a_block(width):
    assert len(block_of_words(SeededSource(3), width, 0)) == 64
    assert len(block_of_words(SeededSource(3), width, 1000)) == 1000
    assert len(block_of_words(SeededSource(3), width, 10**9)) == BLOCK_BYTES // width


@pytest.mark.parametrize("width", [2, 4], ids=["16 bits", "32 bits"])
def test_words_are_the_bytes_of_the_source_in_order_low_byte_first(width):
    block = SeededSource(3).take(100 * width)
    expected = [int.from_bytes(block[i : i + width], "little") for i in range(0, len(block), width)]
    assert block_of_words(SeededSource(3), width, 100).tolist() == expected


def test_two_blocks_of_words_share_nothing():
    source = SeededSource(4)
    assert not np.array_equal(block_of_words(source, 2, 64), block_of_words(source, 2, 64))


def test_draws_of_a_test_are_repeated_in_every_run():
    """The stream of this test's name, which tests/repeated_draws.py serves, unless the run asked for another."""
    if os.environ.get("STIRRED_DRAWS"):
        pytest.skip("this run asked for other draws")
    assert SystemSource().take(4).hex() == "899cca3e"


@pytest.mark.fresh_draws
def test_bits_of_the_operating_system_are_served_where_a_test_asks_for_them(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda count: b"7" * count)
    assert SystemSource().take(3) == b"777"
