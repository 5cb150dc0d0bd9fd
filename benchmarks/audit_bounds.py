"""Audits: lower bounds on epsilon from runs, beside plain implementations.

python benchmarks/audit_bounds.py      rewrites its section of RESULTS.md
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from scipy import stats

from stirred.lab.audit.lower_bounds import lower_bounds
from stirred.lab.definitions.swap_practices import name_of, released_law, tables_of
from stirred.noise import SeededSource, discrete_gaussian, discrete_laplace, randomised_response

Runs = Sequence[object]
Way = Callable[[Runs, Runs, float], float]
AUDITS = 20


def lower_bounds_beside_plain() -> str:
    """Mean bounds on epsilon of several mechanisms, and how long one audit takes."""
    lines = [
        f"Lower bounds on epsilon, means over {AUDITS} audits, and seconds for one audit. *All events*: each output, "
        "and for numbers each threshold, that the first half of the runs shows; two Clopper-Pearson limits on the "
        "second half, the false-alarm rate divided among all events. *One event*: the one whose bound is largest on "
        "the first half, tested on the second. *stirred*: one event, both counts together. The seconds of stirred are "
        "for epsilon at two deltas, rho and three powers; those of the plain ways for epsilon alone.",
        "",
        "| mechanism | runs on each input | confidence | true epsilon | all events | one event | stirred "
        "| all events, s | one event, s | stirred, s |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, truth, run, questions in MECHANISMS:
        for runs, false_alarm in questions:
            pairs = [(run(0, runs, 2 * seed), run(1, runs, 2 * seed + 1)) for seed in range(AUDITS)]
            ways = [plain_all_events, plain_one_event, joint_bound]
            found = [timed(way, pairs, false_alarm) for way in ways]
            cells = [f"{mean:.3f}" for mean, _ in found] + [f"{spent:.3f}" for _, spent in found]
            lines.append(f"| {name} | {runs:,} | {1 - false_alarm:.6g} | {truth:.3f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def timed(way: Way, pairs: Sequence[tuple[Runs, Runs]], false_alarm: float) -> tuple[float, float]:
    """The mean of the bounds and of the seconds; each audit has its own runs, so that nothing is remembered."""
    way(*pairs[0], false_alarm)  # what is compiled and imported on the first call
    began = time.process_time()
    bounds = [way(*pair, false_alarm) for pair in pairs]
    return float(np.mean(bounds)), (time.process_time() - began) / len(pairs)


def joint_bound(first: Runs, second: Runs, false_alarm: float) -> float:
    return lower_bounds(first, second, confidence=1 - false_alarm).epsilon.value


# -- the plain ways ------------------------------------------------------------------------------------------


def plain_all_events(first: Runs, second: Runs, false_alarm: float) -> float:
    """The largest of the plain bounds of all events that the first halves show, on the second halves."""
    events = events_of([*first[: len(first) // 2], *second[: len(second) // 2]])
    rate = false_alarm / (2 * len(events))
    return max(plain_bounds(event, first[len(first) // 2 :], second[len(second) // 2 :], rate) for event in events)


def plain_one_event(first: Runs, second: Runs, false_alarm: float) -> float:
    """The plain bound, on the second halves, of the event and the direction that look best on the first halves."""
    found, tested = zip(*((one[: len(one) // 2], one[len(one) // 2 :]) for one in (first, second)), strict=True)
    events = events_of([*found[0], *found[1]])
    best = max(events, key=lambda event: plain_bounds(event, *found, false_alarm))
    forwards = plain_bound(best, *found, false_alarm) >= plain_bound(best, *found[::-1], false_alarm)
    return plain_bound(best, *(tested if forwards else tested[::-1]), false_alarm)


def events_of(outputs: Runs) -> list[Callable[[object], bool]]:
    """Each output by itself; numbers from each of them on, and below."""
    events: list[Callable[[object], bool]] = []
    for value in sorted(set(outputs)):
        events.append(lambda output, value=value: output == value)
        if not isinstance(value, str):
            events.append(lambda output, value=value: output >= value)
            events.append(lambda output, value=value: output < value)
    return events


def plain_bounds(event: Callable[[object], bool], first: Runs, second: Runs, false_alarm: float) -> float:
    """The larger of the plain bounds in both directions; where that is reported, they are two events."""
    return max(plain_bound(event, first, second, false_alarm), plain_bound(event, second, first, false_alarm))


def plain_bound(event: Callable[[object], bool], first: Runs, second: Runs, false_alarm: float) -> float:
    """ln p/q at the two Clopper-Pearson limits, each with half of the false-alarm rate."""
    hits, others = sum(map(event, first)), sum(map(event, second))
    low = stats.beta.ppf(false_alarm / 2, hits, len(first) - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - false_alarm / 2, others + 1, len(second) - others) if others < len(second) else 1.0
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


# -- mechanisms ----------------------------------------------------------------------------------------------


def response(which: int, runs: int, seed: int) -> list[int]:
    return randomised_response(np.full(runs, which), Fraction(1, 4), SeededSource(seed)).tolist()


def geometric(which: int, runs: int, seed: int) -> list[int]:
    return (discrete_laplace(1, runs, SeededSource(seed)) + which).tolist()


def wide_gaussian(which: int, runs: int, seed: int) -> list[int]:
    return (discrete_gaussian(1_000_000, runs, SeededSource(seed)) + 1_000 * which).tolist()


def gaussian(which: int, runs: int, seed: int) -> list[int]:
    return (discrete_gaussian(4, runs, SeededSource(seed)) + which).tolist()


TABLES = tables_of((2, 2, 1), (2, 2, 1))
RATE = Fraction(1, 5)
LAWS = [released_law(TABLES[0], RATE), released_law(TABLES[-1], RATE)]


def swap(which: int, runs: int, seed: int) -> list[str]:
    chances = np.array([float(chance) for chance in LAWS[which].values()])
    names = [name_of(table) for table in LAWS[which]]
    return np.random.default_rng(seed).choice(names, size=runs, p=chances / chances.sum()).tolist()


QUESTIONS = ((1_000, 0.05), (10_000, 0.05), (10_000, 1e-6))
MECHANISMS = [
    ("randomised response, flips 1/4", math.log(3), response, QUESTIONS),
    ("geometric noise, epsilon 1", 1.0, geometric, QUESTIONS),
    ("discrete Gaussian noise, variance 4", math.inf, gaussian, QUESTIONS),
    ("discrete Gaussian noise, variance 1,000,000, counts 1,000 apart", math.inf, wide_gaussian, QUESTIONS[:1]),
    (
        "swap of five records at 1/5, the two tables furthest apart",
        max(abs(math.log(LAWS[0][table] / LAWS[1][table])) for table in LAWS[0]),
        swap,
        QUESTIONS,
    ),
]
