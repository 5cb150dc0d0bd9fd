"""Bounds of exp and of distribution functions, and every entry of every table made from them, against 120 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from exact_laws import DIGITS, decimal, distribution

from stirred.noise import SeededSource
from stirred.noise.fixed_point import exp_bounds, exp_floor, exp_steps
from stirred.noise.gaussian import block_table, gaussian_law
from stirred.noise.inversion import Law, Widths, _side, certified_cuts, cut_table, floors, happens, resolve
from stirred.noise.laplace import digit_tables
from stirred.noise.scale_per_row import references

PRODUCTION = Fraction(214437516707, 177339451520)
VARIANCES = [Fraction(1), Fraction(3, 7), Fraction(100), Fraction(12345, 7), Fraction(10**4), PRODUCTION]
VARIANCES += [Fraction(1, 1000), Fraction(1, 10**9), Fraction(2**200 + 1, 2**199)]
EXPONENTS = [Fraction(n, d) for n, d in [(1, 10**30), (1, 3), (1, 1), (2, 1), (255, 256), (44, 1), (1234, 7), (300, 1)]]


def floored(value, bits, ends=False):
    """floor(2^bits value); a value that is 1 after rounding is below 1 unless the law ends."""
    with localcontext() as context:
        context.prec = DIGITS
        return min(int(value * 2**bits), 2**bits - (not ends))


@pytest.mark.parametrize("bits", [1, 16, 64, 130, 300])
@pytest.mark.parametrize("x", EXPONENTS, ids=str)
def test_exp_lies_between_its_bounds_and_they_are_two_apart_at_most(x, bits):
    low, high = exp_bounds(x, bits)
    with localcontext() as context:
        context.prec = DIGITS
        true = (-decimal(x)).exp() * 2**bits
    assert low <= true <= high <= low + 2
    if bits < 200 and x < 250:
        assert exp_floor(x, bits) == int(true)


def test_exp_of_nothing_is_one_and_of_much_is_nearly_nothing():
    assert exp_bounds(Fraction(0), 70) == (2**70, 2**70)
    assert exp_bounds(Fraction(10**9), 70) == (0, 1)


def cuts_are_exact(law, first, cuts, bits=64):
    values, sums = distribution(law)
    at = {k: floored(cut, bits) for k, cut in zip(values, sums, strict=True)}
    for offset, cut in enumerate(cuts.tolist()):
        assert cut == at.get(first + offset, 0 if offset == 0 else None), first + offset
    assert law.count is not None or cuts[-1] == 2**bits - 1
    assert law.shape in ("half", "folded") or cuts[0] == 0


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_every_cut_of_a_gaussian_is_the_floor_of_its_distribution_function(variance):
    law = gaussian_law(variance)
    cuts_are_exact(law, *certified_cuts(law))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "scale", [Fraction(1, 50), Fraction(3, 7), Fraction(1), Fraction(100), Fraction(10**6)], ids=str
)
def test_every_cut_of_every_digit_of_a_laplace_is_the_floor_of_its_distribution_function(scale):
    tables = digit_tables(scale)
    assert (len(tables.lower) > 0) == (scale > 128)
    for table in (tables.high, *tables.lower):
        cuts_are_exact(table.law, table.first, table.cuts)


@pytest.mark.parametrize("variance", [Fraction(12345, 7), Fraction(10**8), Fraction(10**12 + 1, 3)], ids=str)
def test_blocks_are_certified_and_what_is_accepted_at_once_is_below_every_acceptance(variance):
    table = block_table(variance)
    cuts_are_exact(table.blocks.law, table.blocks.first, table.blocks.cuts)
    t = 2**table.within_bits
    for k in range(0, len(table.at_once), 7):
        least = (-decimal((t - 1) * (2 * k * t + t - 1) / (2 * variance))).exp() * 65536
        assert table.at_once[k] <= least
        assert table.at_once[k] + 2 >= (-decimal(t * (2 * k * t + t) / (2 * variance))).exp() * 65536


@pytest.mark.parametrize(("power", "step"), [(1, 7), pytest.param(1, 1, marks=pytest.mark.slow), (2, 1)])
def test_every_cut_of_the_references_is_exact_and_their_rates_are_where_the_kernel_looks(power, step):
    tables = references(power)
    for i in range(0, len(tables.laws), step):
        law, own = tables.laws[i], tables.cuts[tables.starts[i] : tables.starts[i + 1]]
        bottom = 11 if power == 2 else 5
        assert law.rate * 2**57 == (8 + i % 8) << (54 - bottom + i // 8)
        cuts_are_exact(law, 0, own)
        assert law.rate * len(own) ** power <= 80


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("width", "margin"), [(4, 4), (8, 6), (16, 8), (64, 64)], ids=str)
@pytest.mark.parametrize(
    "law",
    [Law(2, Fraction(1, 50), "half"), Law(1, Fraction(1, 9), "half"), Law(1, Fraction(1, 9), "half", count=20)],
    ids=str,
)
def test_weights_lie_between_their_bounds_and_what_is_left_out_below_its_own(law, width, margin):
    """With few bits every rounding shows."""
    low, high, tail, precision = _side(law, width, margin)
    with localcontext() as context:
        context.prec = DIGITS
        unit = Decimal(2) ** precision
        for k, bounds in enumerate(zip(low, high, strict=True)):
            assert bounds[0] <= (-decimal(law.rate) * k**law.power).exp() * unit <= bounds[1], k
        beyond = range(len(low), 4000 if law.count is None else law.count)
        assert sum((-decimal(law.rate) * k**law.power).exp() for k in beyond) * unit <= tail + (law.count is not None)


@pytest.mark.parametrize(("width", "margin"), [(4, 4), (8, 6), (16, 8)], ids=str)
@pytest.mark.parametrize(
    "law",
    [
        gaussian_law(Fraction(5)),
        Law(1, Fraction(1, 3), "halves", gap=Fraction(1, 50)),
        Law(2, Fraction(1, 9), "folded"),
    ],
    ids=str,
)
def test_floors_from_few_bits_enclose_the_distribution_function(law, width, margin):
    known = floors(law, width, margin)
    at = dict(zip(*distribution(law), strict=True))
    for offset, (low, high) in enumerate(zip(known.low, known.high, strict=True)):
        assert low <= floored(at[known.first + offset], width) <= high


@pytest.mark.parametrize("widths", [Widths(16, 64), Widths(3, 6), Widths(5, 12)], ids=str)
@pytest.mark.parametrize("law", [gaussian_law(Fraction(100)), Law(1, Fraction(1, 9), "half", count=16)], ids=str)
def test_every_cell_names_a_value_exactly_when_no_cut_falls_inside(law, widths):
    table = cut_table(law, widths)
    values, sums = distribution(law)
    scaled = [cut * 2**widths.head for cut in sums if cut < 1]
    known = sum(k < table.first for k in values)
    for head, passed in enumerate(table.cells.tolist()):
        if widths.head == 16 and 300 < head < 65000:
            continue
        inside = sum(head <= cut < head + 1 for cut in scaled)
        below = sum(cut < head for cut in scaled) - known
        # All that lies left of the table lies in the first cell, and right of it in the last.
        assert passed == (-1 if inside or (head == 2**widths.head - 1 and law.count is None) else below), head


def test_steps_of_exp_are_certified():
    assert exp_steps().tolist() == [floored((-decimal(Fraction(i, 64))).exp(), 64) for i in range(64 * 45)]


@pytest.mark.parametrize(
    "law",
    [gaussian_law(PRODUCTION), Law(1, Fraction(1, 3), "halves", gap=Fraction(1, 50)), Law(2, Fraction(1, 9), "folded")],
    ids=str,
)
@pytest.mark.parametrize("width", [64, 128, 192])
def test_wider_floors_enclose_the_distribution_function_too(law, width):
    known = floors(law, width)
    at = dict(zip(*distribution(law), strict=True))
    for offset, (low, high) in enumerate(zip(known.low, known.high, strict=True)):
        if known.first + offset in at:
            assert low <= floored(at[known.first + offset], width) <= high <= low + 1


def test_a_law_cut_off_ends_with_its_last_value():
    law = Law(1, Fraction(1, 100), "half", count=4)
    assert floors(law, 64).ends
    assert resolve(law, 2**64 - 1, 64, SeededSource(1)) == 3
    assert resolve(Law(1, Fraction(1, 100), "half", count=1), 0, 0, SeededSource(1)) == 0


def test_the_far_tail_is_reached_by_bits_that_stay_zero():
    """U < 2^-128 is a value at some 13 standard deviations, by the exact distribution function."""

    class Zeros:
        for_release = False
        asked = 0

        def take(self, count):
            self.asked += 1
            return (b"\0" * count) if self.asked < 2 else b"\1" + b"\0" * (count - 1)

    law = gaussian_law(Fraction(100))
    u = Decimal(1) / Decimal(2) ** 136
    values, sums = distribution(law)
    expected = next(k for k, cut in zip(values, sums, strict=True) if u < cut)
    assert resolve(law, 0, 64, Zeros()) == expected < -120


def test_a_certain_event_happens_without_bits():
    assert happens(Fraction(0), 0, 0, None) is True
    assert happens(Fraction(10**6), 0, 64, SeededSource(1)) is False


@pytest.mark.parametrize("x", [Fraction(1), Fraction(1, 3), Fraction(12345, 777)], ids=str)
def test_bits_between_the_bounds_of_a_probability_are_continued(x):
    """The first 128 bits agree with exp(-x); the next 64 are one less, the same, and one more."""
    true = exp_floor(x, 256)
    for change, expected in ((-1, True), (1, False), (0, True)):
        words = [(true >> 128) % 2**64, (true >> 64) % 2**64 + change, 0]

        class Words:
            for_release = False

            def take(self, count, words=words):
                return words.pop(0).to_bytes(8, "big")

        assert happens(x, true >> 192, 64, Words()) is expected
        assert len(words) == (0 if change == 0 else 1)


def test_tables_too_large_for_their_cells_are_refused():
    with pytest.raises(ValueError, match="32,767"):
        cut_table(gaussian_law(Fraction(10**8)))
    with pytest.raises(ValueError, match="at most 16 bits"):
        cut_table(gaussian_law(Fraction(1)), Widths(17, 64))
    assert np.all(np.diff(cut_table(gaussian_law(Fraction(100))).cuts.astype(object)) > 0)
