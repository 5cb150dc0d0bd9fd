"""Audits draws of somebody's sampler: do they have the law that is claimed for them, and are they independent?

Each question compares draws with exact probabilities of the stated law (:mod:`stirred.lab.audit.laws`), and its
p-value is exact or too large (:mod:`stirred.lab.audit.p_values`), so the false-alarm rate holds for any number of
draws. An audit sees what draws can show: errors of about one part in the square root of their number.

Draws are read from a text file, a column of a table, or what a program prints. Text has one number on each line. Whole
numbers are read as such, of any size up to 64 bits; if any is not whole, all are read as floating-point numbers. A
program is run without a shell, for a limited time, and what it prints is bounded.
"""

from __future__ import annotations

import math
import os
import selectors
import shlex
import shutil
import subprocess  # nosec B404 # runs the program that the user names, with a list of arguments and no shell
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred import errors
from stirred._bounded_reading import plain
from stirred.errors.kinds import capital
from stirred.lab.audit.laws import NoiseLaw, mean_statistic
from stirred.lab.audit.p_values import (
    POWER,
    count_p_value,
    count_power,
    find_repeat,
    fit_p_value,
    least_enough,
    log_spread,
    many_p_value,
    mean_p_value,
    rate_at_least,
    repeat_bound,
    smallest_factor,
    smallest_of,
    spread_power,
    telling_length,
)
from stirred.lab.audit.programs import end, start
from stirred.lab.audit.results import FALSE_ALARM, Audit, Result, require_effort, shares

SECONDS = 600.0
"""How long a program may take to print its draws."""
MOST_BYTES = 1 << 30
"""How much a program may print, and a text file may hold."""
_PART = 1 << 20
_LONGEST = 400
"""Characters of a number; the longest that a float prints has fewer."""


def read_draws(path: str, column: str | None = None) -> NDArray[Any]:
    """Draws from a file of numbers, a table with ``column``, or standard input (``-``)."""
    if path == "-":
        return numbers_of(_bounded(sys.stdin.buffer.read(MOST_BYTES + 1), "standard input"), "standard input")
    from stirred.tables.reading.inputs import format_of

    told = format_of(Path(path))
    if column is not None or (told is not None and told != ("csv", None)):
        return _column(Path(path), column)
    try:
        with Path(path).open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError:
        raise errors.no_such_input(path) from None
    return numbers_of(_bounded(text, path), path)


def numbers_of(text: bytes, where: str) -> NDArray[Any]:
    """The numbers of a text, one on each line; empty lines at its end do not count.

    >>> numbers_of(b"3\\n-1\\n", "a text").tolist(), numbers_of(b"0.5\\n2\\n", "a text").tolist()
    ([3, -1], [0.5, 2.0])
    """
    lines = text.rstrip().splitlines()
    if not lines:
        return np.empty(0, dtype=np.int64)
    if max(map(len, lines)) <= _LONGEST:  # all lines take as much memory as the longest
        for kind in (np.int64, np.float64):
            try:
                return np.array(lines, dtype=np.bytes_).astype(kind)
            except (ValueError, OverflowError):
                continue
    raise errors.draws_line(where, next(number for number, line in enumerate(lines, 1) if not _is_number(line)))


def printed_draws(command: str, seconds: float = SECONDS) -> NDArray[Any]:
    """What a program prints, as numbers."""
    try:
        words = shlex.split(command)
    except ValueError:
        raise errors.draws_command(command, "its quotes are not closed") from None
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise errors.draws_command(command, "there is no such program")
    with tempfile.TemporaryFile() as complaints:
        try:
            running = start([program, *words[1:]], complaints)
        except OSError as problem:
            raise errors.draws_command(command, problem.strerror or "it cannot be run") from None
        try:
            assert running.stdout is not None
            with running.stdout as pipe:
                text = _printed(running, pipe.fileno(), command, seconds)
        finally:
            end(running)
        if running.returncode != 0:
            complaints.seek(max(0, complaints.tell() - 2000))
            lines = complaints.read().decode("utf-8", "replace").strip().splitlines()
            said = f" and said: {plain(lines[-1])}" if lines else ""
            raise errors.draws_command(command, f"it ended with exit code {running.returncode}{said}")
    return numbers_of(text, "what the program printed")


def _printed(running: subprocess.Popen[bytes], pipe: int, command: str, seconds: float) -> bytes:
    """All that a program prints until it ends."""
    deadline, parts, size = time.monotonic() + seconds, [], 0
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not ready.select(left):
                raise errors.draws_command(command, f"it did not end within {seconds:g} seconds")
            part = os.read(pipe, _PART)
            if not part:
                break
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise errors.draws_command(command, f"it printed more than {MOST_BYTES:,} bytes")
    try:
        running.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise errors.draws_command(command, f"it did not end within {seconds:g} seconds") from None
    return b"".join(parts)


def _bounded(text: bytes, where: str) -> bytes:
    if len(text) > MOST_BYTES:
        raise errors.audit_question(f"The draws in {where}", f"must have at most {MOST_BYTES:,} bytes")
    return text


def _is_number(line: bytes) -> bool:
    try:
        float(line)
    except ValueError:
        return False
    return len(line) <= _LONGEST


def _column(path: Path, column: str | None) -> NDArray[Any]:
    import pyarrow as pa

    from stirred.tables.reading.inputs import open_input
    from stirred.tables.reading.table_reader import read_table

    opened = open_input("draws", path)
    names = list(opened.kinds)
    if column is None and len(names) > 1:
        raise errors.draws_column(names)
    column = column if column is not None else names[0]
    if column not in names:
        raise errors.missing_columns("draws", [column])
    found = read_table(opened, (column,)).table[column]
    if found.values.null_count:
        raise errors.draws_not_numbers(column)
    for kind in (pa.int64(), pa.float64()):
        try:
            return np.asarray(found.values.cast(kind).to_numpy(zero_copy_only=False)[found.codes])
        except pa.ArrowException:
            continue
    raise errors.draws_not_numbers(column)


LEAST_DRAWS = 100
"""With fewer draws nothing worth saying can be said."""
GRID = 256
"""The grid of a rate that is compared with one random byte."""
INTEGER_BIAS = 0.01
SIGMA_SHORT = 0.01
"""The effects that :func:`draws_needed` is about: the lower half 1% too frequent, sigma or the scale 1% too small."""

_COARSEST = 40
"""A grid of 2^-40 or coarser is no accident of floating-point numbers."""
_LAGS = (1, 2, 3, 4, 8, 16, 64, 256)
_WORDS = (8, 16, 32, 64)
_BLOCK = 64
_BY_THE_LAW = "If the law itself is wrong (see above), that alone can explain it."
"""Independence is judged by the stated law, so draws of another one may seem to depend on each other."""
_Numbers = NDArray[np.int64]


def audit_noise(draws: Sequence[float] | NDArray[Any], law: NoiseLaw, *, false_alarm: float = FALSE_ALARM) -> Audit:
    """Whether draws have the stated law and are independent of each other.

    Parameters
    ----------
    draws
        What the sampler drew, in the order in which it drew them; of two runs, one after the other.
    law
        The law they should have: :func:`~stirred.lab.audit.laws.gaussian`, ``laplace``, ``integers`` or ``coin``.
    false_alarm
        The probability that an exact sampler is found to be wrong.

    Examples
    --------
    >>> from stirred.lab.audit.laws import gaussian
    >>> from stirred.noise import SeededSource
    >>> audit_noise(gaussian(10).draw(10_000, SeededSource(1)), gaussian(10)).passed
    True
    """
    require_effort(None, false_alarm)
    numbers = _as_numbers(draws)
    results, whole = _whole_numbers(numbers)
    if whole is not None and law.highest is not None:
        outside = int(np.count_nonzero((whole < 0) | (whole > law.highest)))
        words = f"This is another law: {outside:,} draws are outside. Nothing else was asked."
        asked = f"Are all draws from 0 to {law.highest:,}?"
        results.append(Result.seen("support", asked, bool(outside), right="Yes.", wrong=words, outside=outside))
        whole = None if outside else whole
    if whole is not None:
        questions = _QUESTIONS[law.kind]
        parts = shares(false_alarm, [1.0] * len(questions))
        results += [ask(law, whole, part) for ask, part in zip(questions, parts, strict=True)]
    about = (f"{len(numbers):,} draws, which should be {law}, independent of each other.",)
    limits = _limits(law, len(numbers), false_alarm) if whole is not None else ()
    return Audit("Audit of noise", tuple(results), false_alarm, 1, about, limits)


def allotted_to_each(law: NoiseLaw, false_alarm: float = FALSE_ALARM) -> float:
    """The part of the false-alarm rate that each question about a law has."""
    return false_alarm / len(_QUESTIONS[law.kind])


def power(law: NoiseLaw, draws: int, effect: float, false_alarm: float = FALSE_ALARM) -> float:
    """At least the probability that an error of the sampler is noticed among so many draws.

    ``effect`` is, for noise, the share by which sigma or the scale is too small (negative: too large); for integers
    the share by which the lower half is too frequent; for coins what is added to the probability.
    """
    part = allotted_to_each(law, false_alarm)
    if law.family is not None:
        factor = (1 - effect) ** (-2 if law.kind == "gaussian" else -1)
        return spread_power(law.family, np.array([law.beta]), np.array([float(draws)]), factor, part)
    chance = _lower_half(law)[1] if law.kind == "integers" else float(law.parameter)
    truly = chance * (1 + effect) if law.kind == "integers" else chance + effect
    return count_power(draws, chance, truly, part)


def stated_effect(law: NoiseLaw) -> float:
    """The effect that :func:`draws_needed` is about; for a coin, that of the nearest multiple of 1/256."""
    if law.kind == "integers":
        return INTEGER_BIAS
    return SIGMA_SHORT if law.family is not None else float(_grid_rate(law) - law.parameter)


@lru_cache(maxsize=64)
def draws_needed(law: NoiseLaw, false_alarm: float = FALSE_ALARM) -> int | None:
    """How many draws notice the stated effect with power .999; None for a coin that is a multiple of 1/256 itself."""
    effect = stated_effect(law)
    if effect == 0:
        return None
    low, high = 1, LEAST_DRAWS
    while power(law, high, effect, false_alarm) < POWER:
        low, high = high, 2 * high
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if power(law, middle, effect, false_alarm) >= POWER else (middle, high)
    return high


# -- what is read --------------------------------------------------------------------------------------------


def _as_numbers(draws: Sequence[float] | NDArray[Any]) -> NDArray[Any]:
    try:
        found = np.asarray(draws)
    except (ValueError, OverflowError):
        raise errors.audit_question("The draws", "must be one list of numbers") from None
    if found.ndim != 1 or found.dtype.kind not in "iubf":
        raise errors.audit_question("The draws", "must be one list of numbers, none beyond 64 bits")
    most = np.iinfo(np.int64).max
    if found.dtype.kind in "iu" and bool(np.any(found > most) or (found.dtype.kind == "i" and np.any(found < -most))):
        raise errors.audit_question("The draws", "must be one list of numbers, none beyond 64 bits")
    if found.dtype.kind == "f" and not bool(np.all(np.isfinite(found))):
        raise errors.audit_question("The draws", "must all be numbers, none missing or infinite")
    if len(found) < LEAST_DRAWS:
        raise errors.audit_question("The draws", f"must be {LEAST_DRAWS} or more: fewer say nothing")
    return found if found.dtype.kind == "f" else found.astype(np.int64)


def _whole_numbers(numbers: NDArray[Any]) -> tuple[list[Result], _Numbers | None]:
    """Whether draws are whole numbers, and if not, whether they lie on a grid."""
    fractional = int(np.count_nonzero(numbers != np.floor(numbers))) if numbers.dtype.kind == "f" else 0
    words = (
        "Digits after the point can betray the count that noise was added to: "
        f"{fractional:,} of {len(numbers):,} draws have some. Nothing else was asked."
    )
    asked = "Are all draws whole numbers?"
    whole = Result.seen("whole-numbers", asked, bool(fractional), right="Yes.", wrong=words, fractional=fractional)
    if not fractional:
        if numbers.dtype.kind == "f" and bool(np.any(np.abs(numbers) >= 2.0**63)):
            raise errors.audit_question("The draws", "must be one list of numbers, none beyond 64 bits")
        return [whole], numbers.astype(np.int64)
    scaled = (numbers * 2.0**bits for bits in range(1, _COARSEST + 1))
    grid = next((bits for bits, one in enumerate(scaled, 1) if np.array_equal(one, np.floor(one))), None)
    on_grid = Result.seen(
        "grid", "Are the draws on a coarse grid?", grid is not None,
        right=f"Not on one of 2^-{_COARSEST} or coarser.",
        wrong="Noise plus a count that is not on the grid shows which count it was: all draws are multiples of "
        f"2^-{grid}.",
        grid_bits=grid,
    )  # fmt: skip
    return [whole, on_grid], None


# -- the questions -------------------------------------------------------------------------------------------


def _mean(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    assert law.family is not None
    total = _exact_sum(draws)
    mean = float(Fraction(total, len(draws)))
    return Result.tested(
        "mean", "Is the noise zero on average?", mean_p_value(law.family, law.beta, len(draws), float(total)), part,
        right=f"Yes, as far as draws can tell: {mean:.4g}.",
        wrong=f"Counts are shifted by {mean:.4g} on average.",
        mean=mean,
    )  # fmt: skip


def _spread(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    assert law.family is not None
    gauss = law.kind == "gaussian"
    total = float(_exact_sum(draws, squared=True) if gauss else _exact_sum(np.abs(draws)))
    rates, number, sums = np.array([law.beta]), np.array([float(len(draws))]), np.array([total])
    smaller, larger, _ = (float(one[0]) for one in log_spread(law.family, rates[None], number[None], sums[None]))
    p_value = min(1.0, 2 * math.exp(min(smaller, larger)))
    seen, stated = total / len(draws), float(mean_statistic(law.family, rates)[0])
    name = "mean square" if gauss else "mean distance from 0"
    compared = f"{name} {seen:.6g}, and {stated:.6g} by the stated law"
    if smaller < larger:
        ratio = float(rate_at_least(law.family, number, sums, part)[0]) / law.beta
        loss = "rho" if gauss else "epsilon"
        wrong = (
            f"Too little noise, a privacy fault: at least {ratio:.4g} times the stated {loss} is spent, if the law is "
            f"otherwise as stated; {compared}."
        )
    else:
        wrong = f"More noise than stated: stated errors are too small. {_privacy(law, draws, part)}{capital(compared)}."
    return Result.tested(
        "spread", "Is there as much noise as stated?", p_value, part,
        right=f"Yes, as far as draws can tell: {compared}.", wrong=wrong, seen=seen, stated=stated,
    )  # fmt: skip


def _privacy(law: NoiseLaw, draws: _Numbers, part: float) -> str:
    """Whether more noise does no harm: only noise of the stated family does not, so its shape must be right."""
    if _fit(law, draws, part).wrong or _tails(law, draws, part).wrong:
        return "Whether privacy suffers depends on the law, which is not the stated one. "
    return "Privacy does not suffer, as far as draws can tell. "


def _fit(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    edges = fit_edges(law)
    observed = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=len(edges) + 1)
    chances = law.chances(edges)
    expected = chances * len(draws)
    worst = int(np.argmax(np.abs(observed - expected) / np.sqrt(np.maximum(expected, 1e-9))))
    return Result.tested(
        "fit", f"Do values occur as often as they should, in {len(chances)} cells?", fit_p_value(observed, chances),
        part, right="Yes, as far as draws can tell.",
        wrong=f"This is another law: most of all {_cell(edges, worst)}, {observed[worst]:,} times instead of about "
        f"{expected[worst]:,.0f}.",
        cells=len(chances), worst_observed=int(observed[worst]), worst_expected=float(expected[worst]),
    )  # fmt: skip


def fit_edges(law: NoiseLaw) -> _Numbers:
    """Where the cells of the fit begin: 32 of about the same probability, and two small ones at each end."""
    ends = np.array([2.0**-10, 2.0**-7])
    return law.edges(np.concatenate([ends, np.arange(1, 32) / 32, 1 - ends[::-1]]))


def _cell(edges: _Numbers, place: int) -> str:
    if place == 0:
        return f"values below {edges[0]:,}"
    return f"values from {edges[place - 1]:,} on" + (f" and below {edges[place]:,}" if place < len(edges) else "")


def _tails(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    furthest = max(abs(int(draws.min())), abs(int(draws.max())))
    far, further = law.beyond(furthest), law.beyond(furthest + 1)
    as_far = -math.expm1(len(draws) * math.log1p(-far)) if far < 1 else 1.0
    as_near = math.exp(len(draws) * math.log1p(-further)) if further < 1 else 0.0
    wrong = (
        "Noise of the stated law hardly ever goes so far"
        if as_far < as_near
        else "Tails are missing, and noise that is cut off has no finite epsilon or rho"
    )
    return Result.tested(
        "tails", "Is the largest value as far out as it should be?", min(1.0, 2 * min(as_far, as_near)), part,
        right=f"Yes, as far as draws can tell: {furthest:,}.", wrong=f"{wrong}: the largest value is {furthest:,}.",
        furthest=furthest,
    )  # fmt: skip


def _low_bits(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    modulus = 16 if law.spread >= 8 else 2
    observed, chances = np.bincount(draws % modulus, minlength=modulus), law.residues(modulus)
    p_value = fit_p_value(observed, chances) if modulus > 2 else count_p_value(
        int(observed[1]), len(draws), float(chances[1])
    )  # fmt: skip
    seen = ", ".join(f"{share:.4f}" for share in observed / len(draws))
    return Result.tested(
        "low-bits", f"Do remainders modulo {modulus} occur as often as they should?", p_value, part,
        right="Yes, as far as draws can tell.",
        wrong=f"Noise plus a count shows something of the count's own last digits: remainders have shares {seen}.",
        modulus=modulus, shares=(observed / len(draws)).tolist(),
    )  # fmt: skip


def _neighbours(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    """Pairs of draws some places apart, each draw in one pair, by the quarters of the law that they fall in."""
    edges = law.edges(np.array([0.25, 0.5, 0.75]))
    chances, groups = law.chances(edges), np.searchsorted(edges, draws, side="right")
    pairs, number = np.outer(chances, chances).ravel(), len(chances)
    asked = "Is a draw independent of those before it?"
    if number == 1:
        return Result.unasked("neighbours", asked, "the law has one value", part)
    found = {}
    for lag in _LAGS:
        if 2 * lag <= len(draws):
            whole = groups[: len(groups) // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
            counts = np.bincount((whole[:, 0] * number + whole[:, 1]).ravel(), minlength=number * number)
            found[lag] = fit_p_value(counts, pairs)
    lag = min(found, key=lambda one: found[one])
    return Result.tested(
        "neighbours", asked, smallest_of(list(found.values())), part,
        right=f"Yes, as far as draws can tell, {len(found)} distances up to {max(found)}.",
        wrong=f"Who knows one value may learn about others: pairs of draws {lag} apart are not as independent draws of "
        f"the stated law would be. {_BY_THE_LAW}",
        lag=lag,
    )  # fmt: skip


def _repeats(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    length = telling_length(law.log_coincidence, len(draws), part)
    asked = "Does any long segment of draws occur twice?"
    if 2 * length > len(draws):
        why = f"there are too few draws, since it would take {length:,} equal ones"
        return Result.unasked("repeats", asked, why, part, length=length)
    found = find_repeat(draws, length)
    first, second = (0, 0) if found is None else (found[0] + 1, found[1] + 1)
    return Result.tested(
        "repeats", asked, 1.0 if found is None else repeat_bound(law.log_coincidence, len(draws), length), part,
        right=f"No segment of {length:,}.",
        wrong="The seed may have been used again, and the difference of two values is then free of noise: "
        f"{length:,} draws from number {first:,} on occur again from number {second:,} on. {_BY_THE_LAW}",
        length=length, places=None if found is None else [first, second],
    )  # fmt: skip


def _half(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    middle, chance = _lower_half(law)
    lower = int(np.count_nonzero(draws < middle))
    return Result.tested(
        "lower-half", f"Are values below {middle:,} as frequent as they should be?",
        count_p_value(lower, len(draws), chance), part,
        right=f"Yes, as far as draws can tell: {lower / len(draws):.5f}.",
        wrong=f"The integers are biased: values below {middle:,} have a share of {lower / len(draws):.5f} instead of "
        f"{chance:.5f}.",
        share=lower / len(draws), stated=chance,
    )  # fmt: skip


def _lower_half(law: NoiseLaw) -> tuple[int, float]:
    bound = int(law.parameter)
    return bound // 2, float(Fraction(bound // 2, bound))


def _modulo(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    """A word of w bits modulo n falls below 2^w mod n more often than it should."""
    bound = int(law.parameter)
    found = {}
    for bits in _WORDS:
        favoured = (1 << bits) % bound
        if bound < 1 << bits and favoured:
            lower = int(np.count_nonzero(draws < favoured))
            found[bits] = many_p_value(lower, len(draws), float(Fraction(favoured, bound)))
    asked = "Are the smallest values favoured, as by a random word modulo the bound?"
    if not found:
        return Result.unasked("modulo", asked, f"a random word modulo {bound:,} favours none", part)
    bits = min(found, key=lambda one: found[one])
    return Result.tested(
        "modulo", asked, smallest_of(list(found.values())), part, right="No, as far as draws can tell.",
        wrong=f"The integers are biased: values look like words of {bits} bits modulo {bound:,}.",
        word_bits=bits,
    )  # fmt: skip


def _rate(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    ones, chance = int(draws.sum()), float(law.parameter)
    seen = ones / len(draws)
    return Result.tested(
        "rate", "Do coins show 1 as often as stated?", count_p_value(ones, len(draws), chance), part,
        right=f"Yes, as far as draws can tell: {seen:.6f}.",
        wrong=f"The rate is another one: {seen:.6f} instead of {chance:.6f}.",
        seen=seen, stated=chance,
    )  # fmt: skip


def _blocks(law: NoiseLaw, draws: _Numbers, part: float) -> Result:
    """How many ones blocks of 64 draws have: fixed numbers vary too little, decisions that are shared too much."""
    from scipy.stats import binom

    chance = float(law.parameter)
    sums = draws[: len(draws) // _BLOCK * _BLOCK].reshape(-1, _BLOCK).sum(axis=1)
    edges = np.unique(binom.ppf(np.arange(1, 16) / 16, _BLOCK, chance).astype(np.int64) + 1)
    chances = np.diff(binom.cdf(edges - 1, _BLOCK, chance), prepend=0.0, append=1.0)
    observed = np.bincount(np.searchsorted(edges, sums, side="right"), minlength=len(edges) + 1)
    return Result.tested(
        "blocks", f"Does the number of ones vary from block to block of {_BLOCK} as it should?",
        fit_p_value(observed, chances), part, right="Yes, as far as draws can tell.",
        wrong=f"Blocks do not vary as those of independent coins of the stated rate would: the variance is "
        f"{sums.var():.4g} instead of {_BLOCK * chance * (1 - chance):.4g}. {_BY_THE_LAW}",
        variance=float(sums.var()), stated=_BLOCK * chance * (1 - chance),
    )  # fmt: skip


def _exact_sum(draws: _Numbers, squared: bool = False) -> int:
    """The sum as an integer of any size; values of 40 bits and more would overflow."""
    if len(draws) * float(np.abs(draws.astype(np.float64)).max()) ** (2 if squared else 1) < 2.0**62:
        return int(np.sum(draws * draws if squared else draws))
    return sum(one * one if squared else one for one in draws.tolist())


_Question = Callable[[NoiseLaw, _Numbers, float], Result]
_QUESTIONS: dict[str, tuple[_Question, ...]] = {
    "gaussian": (_mean, _spread, _fit, _tails, _low_bits, _neighbours, _repeats),
    "laplace": (_mean, _spread, _fit, _tails, _low_bits, _neighbours, _repeats),
    "integers": (_half, _modulo, _fit, _low_bits, _neighbours, _repeats),
    "coin": (_rate, _blocks, _neighbours, _repeats),
}


# -- what would have been caught -----------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _limits(law: NoiseLaw, draws: int, false_alarm: float) -> tuple[str, ...]:
    part = allotted_to_each(law, false_alarm)
    lines = [f"Caught with probability {POWER} or more, had it been so, by these {draws:,} draws:"]
    if law.family is not None:
        factor = smallest_factor(law.family, np.array([law.beta]), np.array([float(draws)]), part)
        gauss = law.kind == "gaussian"
        short = 1 - factor ** (-0.5 if gauss else -1)
        lines.append(f"  {'sigma' if gauss else 'the scale'} too small by {_percent(short)} or more")
        if gauss and law.parameter >= 1:
            rounded = float(law.parameter / (law.parameter + Fraction(1, 12)))
            seen = spread_power(law.family, np.array([law.beta]), np.array([float(draws)]), rounded, part) >= POWER
            lines.append(
                f"  {'also' if seen else 'but not'} a float Gaussian rounded to whole numbers, whose variance is too "
                "large by about 1/12"
            )
    else:
        bias = law.kind == "integers"
        most = 1.0 if bias else float(1 - law.parameter)
        off = least_enough(lambda effect: power(law, draws, effect, false_alarm) >= POWER, most)
        lines.append(
            f"  a lower half that is too frequent by {_percent(off)} or more"
            if bias
            else f"  a probability that is too large by {off:.2g} or more"
        )
    if (needed := draws_needed(law, false_alarm)) is not None:
        lines.append(f"{_effect_words(law)} takes {needed:,} draws.")
    return (
        *lines,
        "Smaller errors, such as those of a law computed in floating-point numbers, off by 1e-16 or so, can be seen by "
        "no audit that looks at draws only: they are for a proof of the sampler. Nor does it see who watches the "
        "machine, or where random bits come from.",
    )  # fmt: skip


def _effect_words(law: NoiseLaw) -> str:
    if law.kind == "coin":
        return f"A rate rounded to a grid of 1/{GRID}, here {_grid_rate(law)},"
    if law.kind == "integers":
        return f"A bias of {INTEGER_BIAS:.0%} in the lower half"
    return f"{'Sigma' if law.kind == 'gaussian' else 'A scale'} too small by {SIGMA_SHORT:.0%}"


def _grid_rate(law: NoiseLaw) -> Fraction:
    return Fraction(round(law.parameter * GRID), GRID)


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"
