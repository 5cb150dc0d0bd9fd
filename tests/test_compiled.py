"""Compiled kernels: whoever shows progress hears of compiling, and the collector works on afterwards."""

from __future__ import annotations

import gc

import numba
import pytest

from stirred import _progress as progress
from stirred._compiled import helper, kernel, told_of_compiling


def test_compiling_is_told_once_with_what_a_kernel_calls() -> None:
    @helper
    def half(number):  # type: ignore[no-untyped-def]
        return number // 2

    @numba.njit  # not cached, so it is compiled in every run
    def quarter(number):  # type: ignore[no-untyped-def]
        return half(half(number))

    told: list[tuple[bool, bool]] = []
    with told_of_compiling(lambda begins: told.append((begins, gc.isenabled()))):
        assert quarter(9) == 2
        assert quarter(21) == 5
    assert told == [(True, False), (False, True)]
    assert quarter(2.0) == 0  # compiled for another type
    assert len(told) == 2 and gc.isenabled()


def test_what_fails_to_compile_ends_compiling_too() -> None:
    @kernel
    def wrong(number):  # type: ignore[no-untyped-def]
        return number.nothing

    told: list[bool] = []
    with told_of_compiling(told.append), pytest.raises(numba.TypingError):
        wrong(1)
    assert told == [True, False] and gc.isenabled()


def test_the_line_on_a_terminal_says_so_and_then_what_it_said_before() -> None:
    shown = progress.OnTerminal()
    lines: list[object] = []
    shown._status.update = lines.append  # type: ignore[method-assign, assignment]
    shown.stage("fitting")
    shown._compiling(True)
    shown._compiling(False)
    assert [str(line) for line in lines] == ["fitting ...", progress.COMPILING, "fitting ..."]
