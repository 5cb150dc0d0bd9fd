"""The referee of ``noise``: certified bounds beside mpmath, and what samplers decide on every string of few bits.

Laws are drawn with random parameters. Bits are served by sources that hold them, so that a draw is a function of its
bits; with words of a few bits all of them are gone through, and the law is what it is, without simulation.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf
from referee_harness import Case, claim
from referee_numbers import number

from stirred.noise.fixed_point import exp_bounds, exp_floor
from stirred.noise.inversion import Law, Widths, certified_cuts, cut_table, floors, happens, invert, resolve
from stirred.noise.uniform import draw_below

DIGITS = 70


def fraction(case: Case, name: str, low: float, high: float) -> Fraction:
    """A rational number of no particular denominator."""
    bottom = int(case.random.integers(1, 10**6))
    found = Fraction(max(1, round(bottom * math.exp(case.random.uniform(math.log(low), math.log(high))))), bottom)
    case.given[name] = str(found)
    return found


def law(case: Case, largest: float = 12) -> Law:
    """A law whose scale is at most about ``largest``."""
    power = case.pick("power", (1, 2))
    shape = case.pick("shape", ("line", "half", "folded") if power == 2 else ("line", "half", "folded", "halves"))
    scale = fraction(case, "scale", 0.05, largest)
    rate = 1 / (2 * scale * scale) if power == 2 else 1 / scale
    gap = fraction(case, "gap", 0.001, 5) if shape == "halves" else Fraction(0)
    count = case.pick("count", (None, None, 1, 2, 7, 40)) if shape == "half" else None
    return Law(power, rate, shape, gap, count)


def distribution(one: Law) -> tuple[list[int], list[mpf]]:
    """Values and the distribution function at each, from exponentials of their own; tails below 1e-60 left out."""
    with mp.workdps(DIGITS):
        rate, known, k = number(one.rate), {}, 0
        while (weight := mp.exp(-rate * k**one.power)) > mpf(10) ** -60 and k != one.count:
            known[k] = 2 * weight if one.shape == "folded" and k else weight
            if one.shape == "line":
                known[-k] = weight
            if one.shape == "halves":
                known[-1 - k] = weight * mp.exp(-number(one.gap))
            k += 1
        values = sorted(known)
        total = mp.fsum(known.values())
        sums, so_far = [], mpf(0)
        for value in values:
            so_far += known[value]
            sums.append(so_far / total)
        if len(values) == one.count:
            sums[-1] = mpf(1)
        return values, sums


def floored(one: Law, value: int, share: mpf, width: int) -> int:
    """floor(2^width F(value)): below 2^width, however near, but at the last value of all."""
    last = one.count is not None and value == one.count - 1
    return min(int(mp.floor(share * 2**width)), 2**width - (not last))


@claim("noise", cases=1500)
def exponentials(case: Case) -> None:
    x, bits = fraction(case, "x", 1e-12, 300), case.pick("bits", (1, 5, 16, 64, 130))
    low, high = exp_bounds(x, bits)
    with mp.workdps(DIGITS + 40):
        truth = mp.exp(-number(x)) * mpf(2) ** bits
        # Exact: integers on both sides of a number known to a hundred digits.
        case.holds(low <= truth <= high <= low + 2, f"{low} <= 2^{bits} exp(-x) <= {high}: {truth}")
        case.holds(exp_floor(x, bits) == int(mp.floor(truth)), "the floor of 2^bits exp(-x)")


@claim("noise", cases=300)
def distribution_functions(case: Case) -> None:
    one = law(case)
    width, margin = case.pick("width and margin", ((4, 4), (8, 6), (16, 16), (64, 64)))
    values, sums = distribution(one)
    known = floors(one, width, margin)
    at = dict(zip(values, sums, strict=True))
    with mp.workdps(DIGITS):
        for offset, (low, high) in enumerate(zip(known.low, known.high, strict=True)):
            value = known.first + offset
            share = at.get(value, mpf(0) if value < values[0] else mpf(1))
            floor = floored(one, value, share, width)
            case.holds(low <= floor <= high, f"floor(2^{width} F({value})) = {floor} is not from {low} to {high}")
    case.holds(known.low == sorted(known.low) and known.high == sorted(known.high), "bounds do not fall")
    last = known.first + len(known.low)
    case.holds(not known.ends or last == (one.count or 0) - 1, "the value after the last bound is the largest of all")


@claim("noise", cases=200)
def certified_tables(case: Case) -> None:
    one = law(case)
    first, cuts = certified_cuts(one)
    values, sums = distribution(one)
    at = dict(zip(values, sums, strict=True))
    with mp.workdps(DIGITS):
        for offset, cut in enumerate(cuts.tolist()):
            share = at.get(first + offset, mpf(0) if first + offset < values[0] else mpf(1))
            floor = floored(one, first + offset, share, 64)
            case.holds(cut == floor, f"the cut at {first + offset}: {cut} instead of {floor}")
    case.holds(one.count == 1 or len(cuts) > 0, "a table has cuts")
    widths = Widths(case.whole("head", 1, 8), 12)
    table = cut_table(one, widths)
    tops = [int(mp.floor(at.get(table.first + k, mpf(0)) * 2**12)) for k in range(len(table.cuts))]
    for head in range(2**widths.head):
        start, stop = head << (12 - widths.head), (head + 1) << (12 - widths.head)
        inside = any(start <= min(top, 2**12 - 1) < stop for top in tops)
        below = sum(min(top, 2**12 - 1) < start for top in tops)
        case.holds(int(table.cells[head]) == (-1 if inside else below), f"the cell of the bits {head}")


class Held:
    """Serves words that were chosen, and then the lowest or the highest continuation, eight bytes at a time."""

    for_release = False

    def __init__(self, words: np.ndarray, ones: bool) -> None:
        self.words, self.more = words, (b"\xff" if ones else b"\0") * 8

    def take(self, count: int) -> bytes:
        if count == 8:
            return self.more
        return self.words.tobytes().ljust(count, b"\0")[:count]


class Stream:
    """Serves words one after the other."""

    for_release = False

    def __init__(self, words: np.ndarray) -> None:
        self.served, self.at = words.tobytes(), 0

    def take(self, count: int) -> bytes:
        self.at += count
        assert self.at - count < len(self.served), "more words are asked for than there are"
        return self.served[self.at - count : self.at].ljust(count, b"\0")


def value_at(values: list[int], sums: list[mpf], uniform: mpf) -> int:
    """min {k : U < F(k)}"""
    return values[bisect_right(sums, uniform)]


FEW = 5
"""Bits of the words that are all gone through."""


@claim("noise", cases=300)
def draws_from_a_table(case: Case) -> None:
    """Every string of 5 bits, continued at its lowest and at its highest: what is drawn is min {k : U < F(k)}."""
    one = law(case, 8)
    values, sums = distribution(one)
    widths = Widths(case.whole("head", 1, FEW - 1), FEW)
    table = cut_table(one, widths)
    with mp.workdps(DIGITS):
        tiny = mpf(10) ** -55
        for bits in range(2**FEW):
            for ones in (False, True):
                if (bits == 0 and not ones and one.shape in ("line", "halves")) or (bits == 2**FEW - 1 and ones):
                    continue  # a uniform number of 0 or 1, at which no finite number of bits decides
                left = FEW - widths.head
                head, rest = bits >> left, (bits & ((1 << left) - 1)) << (48 - left)
                words = [head << (16 - widths.head), rest >> 32, (rest >> 16) & 0xFFFF, rest & 0xFFFF]
                out = np.empty(1, dtype=np.int64)
                invert(table, out, Held(np.array(words, dtype="<u2"), ones))
                low = value_at(values, sums, mpf(bits) / 2**FEW)
                high = value_at(values, sums, mpf(bits + 1) / 2**FEW - tiny)
                truth = high if ones else low
                if int(table.cells[head]) >= 0 or low == high:
                    case.holds(low == high == int(out[0]), f"the bits {bits} settle {out[0]}, from {low} to {high}")
                else:
                    case.holds(int(out[0]) == truth, f"the bits {bits}, ones {ones}, drew {out[0]} instead of {truth}")


@claim("noise", cases=800)
def draws_that_need_more_bits(case: Case) -> None:
    one = law(case, 15)
    values, sums = distribution(one)
    width = case.whole("width", 0, 40)
    bits = int(case.random.integers(2**width))
    case.say(bits=bits)
    ones = bool(case.random.integers(2))
    with mp.workdps(DIGITS):
        edge = (mpf(bits) + ones) / mpf(2) ** width - (mpf(10) ** -55 if ones else 0)
        if not (mpf(10) ** -15 < edge < 1 - mpf(10) ** -15):
            edge, ones, bits, width = mpf(1) / 2, False, 1, 1
        found = resolve(one, bits, width, Held(np.zeros(0, dtype="<u2"), ones))
        case.holds(found == value_at(values, sums, edge), f"{found} instead of {value_at(values, sums, edge)}")
        rate = fraction(case, "rate", 0.001, 30)
        if width:
            truth = edge < mp.exp(-number(rate))
            case.holds(happens(rate, bits, width, Held(np.zeros(0, dtype="<u2"), ones)) == truth, "U < exp(-rate)")


@claim("noise", cases=400)
def uniform_integers(case: Case) -> None:
    """Every word of few bits once: each value below the bound comes equally often, and no word gives two."""
    bits = case.whole("bits", 2, 9)
    bound = case.whole("bound", 1, 2**bits)
    words = np.arange(2**bits, dtype=np.uint32) << np.uint32(32 - bits)
    kept = 2**bits // bound * bound
    out = np.full(kept, -1, dtype=np.int64)
    draw_below(np.array([bound], dtype=np.uint64), bits, out, Stream(case.random.permutation(words)))
    counted = np.bincount(out, minlength=bound)
    case.holds(len(counted) == bound and set(counted.tolist()) == {2**bits // bound}, f"counts {counted.tolist()}")


CLAIMS = (
    exponentials,
    distribution_functions,
    certified_tables,
    draws_from_a_table,
    draws_that_need_more_bits,
    uniform_integers,
)
